/* SPDX-License-Identifier: Apache-2.0 */
/* Reads IEEE 802.11 data frames and the headers that capturing programs put before them. */
#ifndef ANALYZER_WIRELESS_H
#define ANALYZER_WIRELESS_H

#include "cursor.h"

enum wireless_header { WIRELESS_BARE, WIRELESS_RADIOTAP, WIRELESS_PRISM, WIRELESS_AVS };

/*
 * Move the cursor to the 802.2 header. false: no data frame, no data, encrypted, a fragment, an aggregate of
 * frames, or not captured whole; the cursor may then stand anywhere.
 */
bool wireless_data(struct cursor *c, enum wireless_header header);

#endif
