/* SPDX-License-Identifier: Apache-2.0 */
/* protocols: maps --protocol to the functions of that transport (transport.h). */
#ifndef NETWARP_PROTOCOLS_H
#define NETWARP_PROTOCOLS_H

#include "transport.h"

const struct transport_ops *transport_of(const struct config *config);

#endif
