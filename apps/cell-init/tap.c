// SPDX-License-Identifier: Apache-2.0
/*
 * One AF_PACKET socket an interface, with a TPACKET_V3 ring that is read in the kernel's own blocks: the
 * process is woken once a block is full, not once a packet (a system call costs 25 to 65 us of wall time in a
 * UML guest).
 *
 * A block that is still open at the end is read in place, after the socket was taken off its interface and
 * the kernel has waited for everyone who might still be writing.
 */
#include "tap.h"

#include "pcap.h"
#include "steps.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* A block is handed over when full; this long after it was opened at the latest (a day: never). */
#define RETIRE_MS (24 * 3600 * 1000)
/* Nobody sends this type (IEEE 802: local experimental); binding to it ends a capture but keeps the ring. */
#define UNUSED_ETHERTYPE 0x88b6
#define CONTROL_EVENT	 UINT32_MAX
/* TPACKET_ALIGN(sizeof(struct tpacket3_hdr)), unsigned; the address of the sender follows */
#define PACKET_HEADER_BYTES ((sizeof(struct tpacket3_hdr) + 15) & ~(size_t)15)

struct tap {
	const struct tap_request *request;
	struct pcap pcap;
	int fd;
	char *ring;
	size_t ring_bytes;
	uint32_t next;	   /* the block that is read next */
	uint64_t sequence; /* of the last block that was read */
	bool loopback;
	bool told; /* that writing failed */
	uint64_t seen;
	uint64_t truncated;
};

static int tell(int control_fd, const struct tap_message *message)
{
	return send(control_fd, message, sizeof(*message), MSG_NOSIGNAL) == (ssize_t)sizeof(*message) ? 0
												      : -1;
}

static void tell_failure(int control_fd, int index, int error, const char *text)
{
	struct tap_message message = {.kind = TAP_FAILED, .index = index, .error = error};

	snprintf(message.text, sizeof(message.text), "%s", text);
	tell(control_fd, &message);
}

static struct tpacket_block_desc *block_of(const struct tap *tap, uint32_t index)
{
	return (struct tpacket_block_desc *)(tap->ring + (size_t)index * tap->request->block_bytes);
}

static int bind_to(const struct tap *tap, int protocol)
{
	struct sockaddr_ll address = {
	    .sll_family = AF_PACKET,
	    .sll_protocol = htons((uint16_t)protocol),
	    .sll_ifindex = tap->request->ifindex,
	};

	return bind(tap->fd, (struct sockaddr *)&address, sizeof(address));
}

static int read_flags(struct tap *tap)
{
	struct ifreq request = {.ifr_ifindex = tap->request->ifindex};

	if (ioctl(tap->fd, SIOCGIFNAME, &request) || ioctl(tap->fd, SIOCGIFFLAGS, &request))
		return -1;
	if (!(request.ifr_flags & IFF_UP)) {
		errno = ENETDOWN;
		return -1;
	}
	tap->loopback = (request.ifr_flags & IFF_LOOPBACK) != 0;
	return 0;
}

/* Open the file, the socket and its ring. Returns NULL, or what failed, with errno. */
static const char *tap_open(struct tap *tap, const struct tap_request *request)
{
	struct tpacket_req3 ring = {
	    .tp_block_size = request->block_bytes,
	    .tp_block_nr = request->blocks,
	    .tp_frame_size = 2048, /* V3 packs its blocks; this only has to divide them */
	    .tp_frame_nr = request->block_bytes / 2048 * request->blocks,
	    .tp_retire_blk_tov = RETIRE_MS,
	};
	int version = TPACKET_V3, file;

	tap->request = request;
	tap->fd = -1;
	tap->pcap.fd = -1;
	tap->ring_bytes = (size_t)request->block_bytes * request->blocks;
	file = open(request->file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (file < 0)
		return "open";
	if (pcap_open(&tap->pcap, file))
		return "pcap_open";
	tap->pcap.forget = request->forget;
	if (setns(NS_FD_BASE + request->ns, CLONE_NEWNET))
		return "setns";
	tap->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (tap->fd < 0)
		return "packet socket";
	if (read_flags(tap))
		return "interface";
	if (setsockopt(tap->fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)))
		return "PACKET_VERSION";
	if (setsockopt(tap->fd, SOL_PACKET, PACKET_RX_RING, &ring, sizeof(ring)))
		return "PACKET_RX_RING";
	tap->ring = mmap(NULL, tap->ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, tap->fd, 0);
	if (tap->ring == MAP_FAILED)
		return "mmap of the ring";
	return bind_to(tap, ETH_P_ALL) ? "bind" : NULL;
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

static void take_packet(struct tap *tap, const struct tpacket3_hdr *packet)
{
	const struct sockaddr_ll *from = (const void *)((const char *)packet + PACKET_HEADER_BYTES);
	const void *data = (const char *)packet + packet->tp_mac;
	uint32_t captured = packet->tp_snaplen, missing = packet->tp_len - packet->tp_snaplen;

	tap->seen++;
	/* lo shows each packet twice, as it leaves and as it arrives */
	if (tap->loopback && from->sll_pkttype == PACKET_OUTGOING)
		return;
	tap->truncated += missing > 0;
	if (packet->tp_status & TP_STATUS_VLAN_VALID)
		data = with_vlan(packet, data, &captured);
	pcap_packet(&tap->pcap, (int64_t)packet->tp_sec * 1000000000 + packet->tp_nsec, data, captured,
		    captured + missing);
}

static void take_block(struct tap *tap, const struct tpacket_block_desc *block)
{
	const char *packet = (const char *)block + block->hdr.bh1.offset_to_first_pkt;
	uint32_t i;

	for (i = 0; i < block->hdr.bh1.num_pkts; i++) {
		take_packet(tap, (const struct tpacket3_hdr *)packet);
		packet += ((const struct tpacket3_hdr *)packet)->tp_next_offset;
	}
	tap->sequence = block->hdr.bh1.seq_num;
}

/* Read every block that the kernel has closed, and give it back. */
static void take_closed(struct tap *tap)
{
	struct tpacket_block_desc *block;

	for (;;) {
		block = block_of(tap, tap->next);
		if (!(__atomic_load_n(&block->hdr.bh1.block_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER))
			return;
		take_block(tap, block);
		__atomic_store_n(&block->hdr.bh1.block_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
		tap->next = (tap->next + 1) % tap->request->blocks;
	}
}

/* A link that goes down in the timeline reports ENETDOWN once; the kernel resumes the capture when it is up.
 */
static void clear_error(const struct tap *tap)
{
	socklen_t len = sizeof(int);
	int error;

	getsockopt(tap->fd, SOL_SOCKET, SO_ERROR, &error, &len);
}

static void report(struct tap *tap, int index, int control_fd)
{
	struct tap_message message = {.kind = TAP_RESULT, .index = index};
	struct tpacket_stats_v3 stats = {0};
	socklen_t len = sizeof(stats);
	uint64_t delivered;

	getsockopt(tap->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &len);
	message.dropped = stats.tp_drops;
	/* tp_packets counts the dropped ones too; what it delivered and we have not seen is lost as well */
	delivered = stats.tp_packets - stats.tp_drops;
	if ((uint32_t)tap->seen != (uint32_t)delivered)
		message.dropped += delivered > tap->seen ? delivered - tap->seen : tap->seen - delivered;
	pcap_close(&tap->pcap);
	message.error = tap->pcap.error;
	message.fsync_error = tap->pcap.fsync_error;
	message.packets = tap->pcap.packets;
	message.bytes = tap->pcap.bytes;
	message.truncated = tap->truncated;
	message.first_realtime_ns = tap->pcap.first_ns;
	message.last_realtime_ns = tap->pcap.last_ns;
	tell(control_fd, &message);
}

/* Take the socket off the interface (the kernel waits for who is still in it), then read what is in the ring.
 */
static void drain(struct tap *tap)
{
	const struct tpacket_block_desc *open;

	bind_to(tap, UNUSED_ETHERTYPE);
	take_closed(tap);
	open = block_of(tap, tap->next);
	/* a ring that was full has not opened this block again: then it still shows an old sequence number */
	if (open->hdr.bh1.seq_num > tap->sequence)
		take_block(tap, open);
}

static int watch(int epoll_fd, int fd, uint32_t which)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = which};

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

/* Until the command to drain. */
static void capture(struct tap *taps, size_t count, int control_fd)
{
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC), n, i;
	struct epoll_event events[16];
	struct tap *tap;
	size_t t;

	if (epoll_fd < 0 || watch(epoll_fd, control_fd, CONTROL_EVENT)) {
		tell_failure(control_fd, -1, errno, "epoll");
		return;
	}
	for (t = 0; t < count; t++)
		if (watch(epoll_fd, taps[t].fd, (uint32_t)t))
			tell_failure(control_fd, (int)t, errno, "epoll");
	for (;;) {
		n = epoll_wait(epoll_fd, events, 16, -1);
		for (i = 0; i < n; i++) {
			if (events[i].data.u32 == CONTROL_EVENT)
				goto out;
			tap = &taps[events[i].data.u32];
			if (events[i].events & EPOLLERR)
				clear_error(tap);
			take_closed(tap);
			if (tap->pcap.error && !tap->told) {
				tap->told = true;
				tell_failure(control_fd, (int)events[i].data.u32, tap->pcap.error, "write");
			}
		}
	}
out:
	close(epoll_fd);
}

static void take_command(int control_fd)
{
	char command;

	while (recv(control_fd, &command, 1, 0) < 0 && errno == EINTR)
		;
}

int tap_run(const struct tap_request *requests, size_t count, int control_fd)
{
	struct sched_param priority = {.sched_priority = 1};
	struct tap *taps = calloc(count, sizeof(*taps));
	const char *failed = taps ? NULL : "calloc";
	size_t opened = 0, i;

	/* Above the apps, below cell-init: a ring never waits for a busy sender. Not allowed: then it may. */
	sched_setscheduler(0, SCHED_FIFO, &priority);
	while (!failed && opened < count)
		failed = tap_open(&taps[opened], &requests[opened]), opened++;
	if (failed) {
		tell_failure(control_fd, (int)opened - 1, errno, failed);
		/* what was captured until now is not worth a report; wait for the end */
		take_command(control_fd);
		return 1;
	}
	tell(control_fd, &(struct tap_message){.kind = TAP_BOUND});
	capture(taps, count, control_fd);
	/* left unread it would reset the socket when we exit, and the reset overtakes what we told */
	take_command(control_fd);
	for (i = 0; i < count; i++)
		drain(&taps[i]);
	for (i = 0; i < count; i++)
		report(&taps[i], (int)i, control_fd);
	return 0;
}
