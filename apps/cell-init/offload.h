/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offload: switches the offloads of an interface off: a capture must show what a wire would carry, one frame
 * a packet, with its checksum.
 *
 * The six old switches (tx, rx, sg, tso, gso, gro) leave segmentation of other protocols on, SCTP's among
 * them. So every feature whose name says that it segments, aggregates, checksums or scatters is switched off
 * by name, and the old ones are read back as the summary.
 */
#ifndef NETWARP_OFFLOAD_H
#define NETWARP_OFFLOAD_H

#include "cell.h"
#include "step.h"

/* 0, or -1 with the reason set. */
int offload_switch_off(struct cell *cell, const struct step_offload *step);

#endif
