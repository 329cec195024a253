/* SPDX-License-Identifier: Apache-2.0 */
/* interfaces: gives interfaces of the machine to the network namespace of this process. Each function ends
 * the process where it fails.
 */
#ifndef NETWARP_INTERFACES_H
#define NETWARP_INTERFACES_H

#define INTERFACES_MAX 64

/* A netlink socket in the namespace of now, to be called before another one is entered. */
int interfaces_open(void);
/* Move the interface of that socket's namespace here. */
void interface_take(int machine, const char *name);

#endif
