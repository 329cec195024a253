/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire: the TUN device that carries a script's packets. What the kernel sends is taken from a packet socket,
 * with the kernel's own time of sending; the device's queue is emptied as well, so that sending completes.
 */
#ifndef NETWARP_DRILL_WIRE_H
#define NETWARP_DRILL_WIRE_H

#include "script.h"

#include <stdint.h>

#define PACKET_MAX (1 << 17)

struct captured {
	int64_t t_ns;
	size_t length;
	unsigned char data[PACKET_MAX];
};

/* Makes tun0, with the offloads of an Ethernet device. 0, or -1 with errno set. */
int wire_make(void);
/* Begins to capture, once the device is up. 0, or -1 with errno set. */
int wire_listen(void);
/* The next packet that the kernel sent, waiting for it until that instant. 1, or 0: none came. */
int wire_next(struct captured *packet, int64_t until_ns);
/*
 * The packet's segment belongs to the connection. Learns the kernel's port and initial sequence number from
 * its first SYN.
 */
bool wire_belongs(struct connection *connection, const struct captured *packet);
/* Bytes of the segment's payload. */
size_t wire_payload(const struct captured *packet);
/* Remembers what the kernel wrote where the script has the time stamp `script`. */
void wire_stamp(struct connection *connection, const struct captured *packet, uint32_t script);
/* Sends a packet of the script into the kernel and reports it. 0, or -1 with a line `failed`. */
int wire_inject(const struct connection *connection, const struct inbound *in, uint16_t mss, int event);

#endif
