/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture_slots: the bytes of a guest's captures go to netwarp through memory, not through the file system.
 *
 * hostfs writes each page of a file by a pwrite() of 4 KiB, and netwarp would read all of it again to
 * compress it. Where guest-exec was given a socket and a memory, seed.so carries out open64(), pwrite64() and
 * close() of the guest's kernel for the files that it creates as CAPTURE_PREFIX*CAPTURE_SUFFIX: what is
 * written goes into slots of that memory, and netwarp reads them while the guest runs on
 * (sandbox/capture_slots.py, which repeats the layout). The calls have the results they always had, so
 * nothing changes in the guest. On the disk such a file stays empty.
 *
 * The memory begins with struct capture_slots; the slots follow at CAPTURE_SLOTS_AT. A slot belongs to the
 * stream that it names until it is full; then its number goes to netwarp in a message. When netwarp has read
 * its bytes it sets .stream to 0 and sends one byte. Without a free slot the guest's kernel waits for that,
 * in no virtual time. What slots still hold when the guest has ended, netwarp reads then.
 */
#ifndef NETWARP_CAPTURE_SLOTS_H
#define NETWARP_CAPTURE_SLOTS_H

#include <stdint.h>

/* the descriptors that guest-exec gives its kernel, with NETWARP_CAPTURE_SLOTS=1 in its environment */
enum capture_fd { CAPTURE_SOCKET_FD = 7, CAPTURE_MEMORY_FD };

#define CAPTURE_SLOT_BYTES 262144
#define CAPTURE_SLOTS_MAX  1023
#define CAPTURE_SLOTS_AT   8192
#define CAPTURE_PREFIX	   "/proc/self/cwd/capture/"
#define CAPTURE_SUFFIX	   ".pcap"
#define CAPTURE_NAME	   240

struct capture_slots {
	uint32_t count; /* written by netwarp */
	uint32_t unused;
	struct {
		uint32_t stream; /* 0: free; set by the guest, cleared by netwarp */
		uint32_t bytes;
	} slot[CAPTURE_SLOTS_MAX];
};

_Static_assert(sizeof(struct capture_slots) <= CAPTURE_SLOTS_AT, "layout of the memory");

/* to netwarp: a new stream has this name (.slot 0, .bytes 0), or a slot of it is full */
struct slot_message {
	uint32_t stream; /* from 1 on, in the order of opening */
	uint32_t slot;	 /* from 1 on */
	uint32_t bytes;
	char name[CAPTURE_NAME]; /* "" with a slot; else what stands for the * */
};

#endif
