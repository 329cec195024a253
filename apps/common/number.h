/* SPDX-License-Identifier: Apache-2.0 */
/* number: a decimal number of a program's arguments, within bounds. */
#ifndef NETWARP_NUMBER_H
#define NETWARP_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the whole of `text` is a number of low to high; then it is in *value. */
bool number_parse(const char *text, int64_t low, int64_t high, int64_t *value);

#endif
