/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offload: switches the offloads of an interface off, so that a capture shows what a wire would carry: one
 * frame per packet, with its checksum.
 *
 * The six classic ethtool switches (tx, rx, sg, tso, gso, gro) leave segmentation of other protocols on,
 * among them SCTP's. So every device feature whose name says that it segments, aggregates, checksums or
 * scatters is switched off by its name. The record `offload` then holds the six switches as read back and
 * the features that stayed on; orchestrator/netwarp/testbed/readback.py judges them.
 */
#ifndef NETWARP_OFFLOAD_H
#define NETWARP_OFFLOAD_H

#include "cell.h"
#include "step.h"

/* A feature that cannot be switched off is recorded, not a failure. 0, or -1 with the cell's reason set. */
int offload_switch_off(struct cell *cell, const struct step_offload *step);

#endif
