/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packet_ring: captures an interface into a pcap file, by an AF_PACKET socket with a TPACKET_V3 ring. The
 * kernel wakes the process when a block of the ring is full, not for each packet: a system call costs 25 to
 * 65 us of wall time in a UML guest. A packet longer than a block is cut and counted in .truncated.
 */
#ifndef NETWARP_PACKET_RING_H
#define NETWARP_PACKET_RING_H

#include "pcap_writer.h"

struct packet_ring_config {
	int ns_fd; /* descriptor of the network namespace */
	int ifindex;
	const char *iface; /* for the record only */
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
	bool loopback;	   /* lo delivers each packet twice: only the arriving one is kept */
	uint64_t seen;	   /* packets read from the ring, those of lo that are not kept included */
	uint64_t truncated;
	bool failure_sent; /* set by the capture process once it has reported a failed write */
};

/*
 * Open the file, the socket and its ring, and start to capture. The interface must be up. Moves this
 * process into the namespace. Returns NULL, or the name of the operation that failed, with errno set.
 */
const char *packet_ring_open(struct packet_ring *ring, const struct packet_ring_config *config);
/*
 * Write the packets of every block that the kernel has closed to the file, and return the block to the
 * kernel.
 */
void packet_ring_take_closed(struct packet_ring *ring);
/*
 * Clear the socket's pending error. A link that goes down reports ENETDOWN once; the kernel resumes the
 * capture when the link is up again.
 */
void packet_ring_clear_error(const struct packet_ring *ring);
/*
 * End the capture: bind the socket to an EtherType that no packet has (there the kernel waits for every CPU
 * that might still write), then read all closed blocks and the block that is still open.
 */
void packet_ring_drain(struct packet_ring *ring);
/*
 * Number of packets that are not in the file though they passed the interface: dropped by the kernel, or
 * counted by it but not in the ring. Reads and so resets the kernel's counters: call once, after
 * packet_ring_drain().
 */
uint64_t packet_ring_dropped(const struct packet_ring *ring);

#endif
