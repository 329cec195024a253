/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NETWARP_CPU_H
#define NETWARP_CPU_H

/*
 * Keep this process and its children on one CPU, on one that no other guest has claimed if there is one.
 *
 * The kernel and the processes of a guest take turns: each system call of the guest is a ptrace stop of one
 * host process that another one waits for. On two CPUs each turn wakes an idle CPU, which costs more than the
 * call (docs/decisions/0006-guest-speed.md).
 *
 * The claim is the name of an abstract socket at descriptor `fd`, so it ends with the last process that has
 * it and leaves nothing behind. Without a claim (one CPU only, no sockets) the process stays where the
 * scheduler puts it; `fd` is then something harmless, so that descriptors have the same numbers in every run.
 */
void keep_on_one_cpu(int fd);

#endif
