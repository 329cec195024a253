/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packet_program: eBPF programs that look at each packet of a link, loaded by bpf(2) from the bytes in a
 * step.
 *
 * A program has two maps of one value: its settings, which steps write, and its state (generator, counters),
 * which it writes itself. It is attached by an ordinary netlink step, which names its descriptor.
 */
#ifndef NETWARP_PACKET_PROGRAM_H
#define NETWARP_PACKET_PROGRAM_H

#include "cell.h"
#include "step.h"

/* All return 0, or -1 with the reason set: REASON_UNSUPPORTED where this kernel lets nobody here load one. */
int packet_program_load(struct cell *cell, const struct step_bpf *step);
int packet_program_settings(struct cell *cell, const struct step_bpf_settings *step);
/* The record `bpf`: settings and state as they are. */
int packet_program_record(struct cell *cell, const struct step_bpf_record *step);

#endif
