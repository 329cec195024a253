/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call: makes a script's system calls. The script has its own numbers of descriptors; memory of a call is
 * never used again, as the kernel may still send from it (MSG_ZEROCOPY).
 */
#ifndef NETWARP_DRILL_CALL_H
#define NETWARP_DRILL_CALL_H

#include "script.h"

/* Makes a call and reports its end (`returned`). One that blocks runs beside the script: this returns once it
 * waits. */
void call_make(const struct call *call, int event);
/* Waits for a call that still runs. */
void call_wait(void);

#endif
