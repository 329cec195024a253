// SPDX-License-Identifier: Apache-2.0
/* Documented in packet_ring.h. */
#include "packet_ring.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>

/* A block is handed over when full; this long after it was opened at the latest (a day: never). */
#define RETIRE_MS (24 * 3600 * 1000)
/* No packet has this type (IEEE 802: local experimental): binding to it ends a capture but keeps the ring. */
#define UNUSED_ETHERTYPE 0x88b6
/* TPACKET_ALIGN(sizeof(struct tpacket3_hdr)), unsigned; the address of the sender follows */
#define PACKET_HEADER_BYTES ((sizeof(struct tpacket3_hdr) + 15) & ~(size_t)15)

static struct tpacket_block_desc *block_of(const struct packet_ring *ring, uint32_t index)
{
	return (struct tpacket_block_desc *)(ring->memory + (size_t)index * ring->config->block_bytes);
}

static int bind_to(const struct packet_ring *ring, int protocol)
{
	struct sockaddr_ll address = {
	    .sll_family = AF_PACKET,
	    .sll_protocol = htons((uint16_t)protocol),
	    .sll_ifindex = ring->config->ifindex,
	};

	return bind(ring->fd, (struct sockaddr *)&address, sizeof(address));
}

static int read_flags(struct packet_ring *ring)
{
	struct ifreq request = {.ifr_ifindex = ring->config->ifindex};

	if (ioctl(ring->fd, SIOCGIFNAME, &request) || ioctl(ring->fd, SIOCGIFFLAGS, &request))
		return -1;
	if (!(request.ifr_flags & IFF_UP)) {
		errno = ENETDOWN;
		return -1;
	}
	ring->loopback = (request.ifr_flags & IFF_LOOPBACK) != 0;
	return 0;
}

const char *packet_ring_open(struct packet_ring *ring, const struct packet_ring_config *config)
{
	struct tpacket_req3 layout = {
	    .tp_block_size = config->block_bytes,
	    .tp_block_nr = config->blocks,
	    .tp_frame_size = 2048, /* V3 packs its blocks; this only has to divide them */
	    .tp_frame_nr = config->block_bytes / 2048 * config->blocks,
	    .tp_retire_blk_tov = RETIRE_MS,
	};
	int version = TPACKET_V3, file;

	ring->config = config;
	ring->fd = -1;
	ring->pcap.fd = -1;
	file = open(config->file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (file < 0)
		return "open";
	if (pcap_writer_open(&ring->pcap, file))
		return "pcap_writer_open";
	ring->pcap.drop_pages = config->drop_pages;
	if (setns(config->ns_fd, CLONE_NEWNET))
		return "setns";
	ring->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (ring->fd < 0)
		return "packet socket";
	if (read_flags(ring))
		return "interface";
	if (setsockopt(ring->fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)))
		return "PACKET_VERSION";
	if (setsockopt(ring->fd, SOL_PACKET, PACKET_RX_RING, &layout, sizeof(layout)))
		return "PACKET_RX_RING";
	ring->memory = mmap(NULL, (size_t)config->block_bytes * config->blocks, PROT_READ | PROT_WRITE,
			    MAP_SHARED, ring->fd, 0);
	if (ring->memory == MAP_FAILED)
		return "mmap of the ring";
	return bind_to(ring, ETH_P_ALL) ? "bind" : NULL;
}

/* The frame with the VLAN tag back in its place that the kernel keeps beside it. */
static const void *with_vlan(const struct tpacket3_hdr *packet, const char *data, uint32_t *bytes)
{
	static char frame[PCAP_SNAPLEN + 4];
	uint16_t tag[2] = {htons(ETH_P_8021Q), htons((uint16_t)packet->hv1.tp_vlan_tci)};

	if (*bytes < 2 * ETH_ALEN || *bytes > PCAP_SNAPLEN - 4)
		return data;
	if (packet->tp_status & TP_STATUS_VLAN_TPID_VALID)
		tag[0] = htons(packet->hv1.tp_vlan_tpid);
	memcpy(frame, data, 2 * ETH_ALEN);
	memcpy(frame + 2 * ETH_ALEN, tag, sizeof(tag));
	memcpy(frame + 2 * ETH_ALEN + sizeof(tag), data + 2 * ETH_ALEN, *bytes - 2 * ETH_ALEN);
	*bytes += (uint32_t)sizeof(tag);
	return frame;
}

static void take_packet(struct packet_ring *ring, const struct tpacket3_hdr *packet)
{
	const struct sockaddr_ll *from = (const void *)((const char *)packet + PACKET_HEADER_BYTES);
	const void *data = (const char *)packet + packet->tp_mac;
	uint32_t captured = packet->tp_snaplen, missing = packet->tp_len - packet->tp_snaplen;

	ring->seen++;
	/* lo shows each packet twice, as it leaves and as it arrives */
	if (ring->loopback && from->sll_pkttype == PACKET_OUTGOING)
		return;
	ring->truncated += missing > 0;
	if (packet->tp_status & TP_STATUS_VLAN_VALID)
		data = with_vlan(packet, data, &captured);
	pcap_writer_add(&ring->pcap, (int64_t)packet->tp_sec * 1000000000 + packet->tp_nsec, data, captured,
			captured + missing);
}

static void take_block(struct packet_ring *ring, const struct tpacket_block_desc *block)
{
	const char *packet = (const char *)block + block->hdr.bh1.offset_to_first_pkt;
	uint32_t i;

	for (i = 0; i < block->hdr.bh1.num_pkts; i++) {
		take_packet(ring, (const struct tpacket3_hdr *)packet);
		packet += ((const struct tpacket3_hdr *)packet)->tp_next_offset;
	}
	ring->sequence = block->hdr.bh1.seq_num;
}

void packet_ring_take_closed(struct packet_ring *ring)
{
	struct tpacket_block_desc *block;

	for (;;) {
		block = block_of(ring, ring->next);
		if (!(__atomic_load_n(&block->hdr.bh1.block_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER))
			return;
		take_block(ring, block);
		__atomic_store_n(&block->hdr.bh1.block_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
		ring->next = (ring->next + 1) % ring->config->blocks;
	}
}

void packet_ring_clear_error(const struct packet_ring *ring)
{
	socklen_t len = sizeof(int);
	int error;

	getsockopt(ring->fd, SOL_SOCKET, SO_ERROR, &error, &len);
}

void packet_ring_drain(struct packet_ring *ring)
{
	const struct tpacket_block_desc *open;

	bind_to(ring, UNUSED_ETHERTYPE);
	packet_ring_take_closed(ring);
	open = block_of(ring, ring->next);
	/* a ring that was full has not opened this block again: then it still shows an old sequence number */
	if (open->hdr.bh1.seq_num > ring->sequence)
		take_block(ring, open);
}

uint64_t packet_ring_dropped(const struct packet_ring *ring)
{
	struct tpacket_stats_v3 stats = {0};
	socklen_t len = sizeof(stats);
	uint64_t delivered, dropped;

	getsockopt(ring->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &len);
	dropped = stats.tp_drops;
	/* tp_packets counts the dropped ones too; a packet that it delivered and we have not seen is lost as
	 * well */
	delivered = stats.tp_packets - stats.tp_drops;
	if ((uint32_t)ring->seen != (uint32_t)delivered)
		dropped += delivered > ring->seen ? delivered - ring->seen : ring->seen - delivered;
	return dropped;
}
