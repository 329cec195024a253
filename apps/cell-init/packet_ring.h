/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packet_ring: captures an interface into a pcap file: an AF_PACKET socket with a TPACKET_V3 ring, read in
 * the kernel's own blocks: the process is woken once a block is full, not once a packet (a system call costs
 * 25 to 65 us of wall time in a UML guest).
 */
#ifndef NETWARP_PACKET_RING_H
#define NETWARP_PACKET_RING_H

#include "pcap_writer.h"

struct packet_ring_config {
	int ns_fd; /* of the network namespace */
	int ifindex;
	const char *iface;
	const char *file;
	uint32_t block_bytes;
	uint32_t blocks;
	bool drop_pages; /* see struct pcap_writer */
};

struct packet_ring {
	const struct packet_ring_config *config;
	struct pcap_writer pcap;
	int fd; /* readable when a block is full */
	char *memory;
	uint32_t next;	   /* the block that is read next */
	uint64_t sequence; /* of the last block that was read */
	bool loopback;
	uint64_t seen;
	uint64_t truncated;
	bool failure_sent; /* of the capture process: that writing failed */
};

/* Open the file, the socket and its ring, and begin. Returns NULL, or what failed, with errno. */
const char *packet_ring_open(struct packet_ring *ring, const struct packet_ring_config *config);
/* Read every block that the kernel has closed, and give it back. */
void packet_ring_take_closed(struct packet_ring *ring);
/* A link that goes down reports ENETDOWN once; the kernel resumes the capture when it is up. */
void packet_ring_clear_error(const struct packet_ring *ring);
/*
 * Unbind the socket from its interface, where the kernel waits for every CPU that might still be writing;
 * then read the rest, the block that is still open among it.
 */
void packet_ring_drain(struct packet_ring *ring);
/* Packets that the kernel dropped, and those that it counted but the ring did not hold. */
uint64_t packet_ring_dropped(const struct packet_ring *ring);

#endif
