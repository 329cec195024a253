/* SPDX-License-Identifier: Apache-2.0 */
/* play: a script's events, one after another, each at its time. */
#ifndef NETWARP_DRILL_PLAY_H
#define NETWARP_DRILL_PLAY_H

#include "script.h"

/* Plays all events. `event`: the one under way. Returns at the end, or where the script cannot go on. */
void play(struct script *script, int *event);
/* Reports packets that no event took. */
void play_rest(void);

#endif
