/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu: chooses one CPU for a guest and keeps the guest on it. Called by guest-exec before it starts the
 * kernel.
 */
#ifndef NETWARP_CPU_H
#define NETWARP_CPU_H

/*
 * Bind this process and its future children to one CPU: the one that the fewest other guests have claimed.
 *
 * A guest's kernel and its processes never run at the same time: each system call of the guest is a ptrace
 * stop of one host process, for which another one waits. On two CPUs each such switch wakes an idle CPU,
 * which costs more than the system call (docs/decisions/0006-guest-speed.md).
 *
 * The claim is an abstract Unix socket with the name "netwarp-guest-cpu-<cpu>-<place>", open as descriptor
 * `fd`. It ends when the last process that has the descriptor ends, and leaves no file. With one CPU, or
 * where no socket can be opened, the process is not bound; `fd` is then an unbound socket or /dev/null, so
 * that descriptors have the same numbers in every run.
 */
void keep_on_one_cpu(int fd);

#endif
