/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packet_program: loads eBPF programs that see each packet of a link, by bpf(2), from the bytes in a step.
 *
 * A program has two maps with one value each: its settings, which steps write, and its state (random
 * generator, counters), which the program writes. An ordinary netlink step attaches the program to a qdisc
 * and names its descriptor, BPF_FD_BASE + 3 * index (step.h); the two descriptors after it are the maps.
 */
#ifndef NETWARP_PACKET_PROGRAM_H
#define NETWARP_PACKET_PROGRAM_H

#include "cell.h"
#include "step.h"

/*
 * All return 0, or -1 with the reason set: REASON_UNSUPPORTED where this kernel does not let this user load
 * eBPF programs.
 */
int packet_program_load(struct cell *cell, const struct step_bpf *step);
/* The states of programs that ask for T0 become it, on the monotonic clock in 8 bytes, and zeros. */
int packet_programs_begin(struct cell *cell, int64_t t0_monotonic_ns);
/* Replace the settings; their length must be that of the first ones. */
int packet_program_settings(struct cell *cell, const struct step_bpf_settings *step);
/* Write the record `bpf`: settings and state as the maps hold them now, in hexadecimal. */
int packet_program_record(struct cell *cell, const struct step_bpf_record *step);

#endif
