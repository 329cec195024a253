// SPDX-License-Identifier: Apache-2.0
/* Documented in wire.h. */
#include "wire.h"

#include "clock.h"
#include "report.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define NAME	 "tun0"
#define SYN	 0x02
#define ACK	 0x10
#define TCP	 6
#define IPV6_TCP 40 /* offset of the segment */

static int tun = -1, sniffer = -1;

int wire_make(void)
{
	struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR};

	tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (tun < 0)
		return -1;
	strcpy(request.ifr_name, NAME);
	if (ioctl(tun, TUNSETIFF, &request))
		return -1;
	return ioctl(tun, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN);
}

int wire_listen(void)
{
	struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
	struct ifreq request = {0};
	int on = 1, room = 8 << 20;

	/* of no protocol until it is bound: no packet of another device */
	sniffer = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	strcpy(request.ifr_name, NAME);
	if (sniffer < 0 || ioctl(sniffer, SIOCGIFINDEX, &request) ||
	    setsockopt(sniffer, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) ||
	    setsockopt(sniffer, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on)))
		return -1;
	address.sll_ifindex = request.ifr_ifindex;
	return bind(sniffer, (struct sockaddr *)&address, sizeof(address));
}

/* One packet that waits; 1 if it is one that the kernel sent, 0 if it is another, -1 if none waits. */
static int take(struct captured *packet)
{
	struct sockaddr_ll from = {0};
	struct iovec part = {packet->data, sizeof(packet->data)};
	union {
		char bytes[CMSG_SPACE(sizeof(struct timespec))];
		struct cmsghdr align;
	} control;
	struct msghdr message = {.msg_name = &from,
				 .msg_namelen = sizeof(from),
				 .msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	ssize_t length = recvmsg(sniffer, &message, 0);
	struct cmsghdr *header;
	struct timespec t;
	char queued[sizeof(struct virtio_net_hdr) + 1];

	if (length < 0)
		return -1;
	if (from.sll_pkttype != PACKET_OUTGOING)
		return 0;
	packet->length = (size_t)length;
	packet->t_ns = 0;
	for (header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header))
		if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_TIMESTAMPNS) {
			memcpy(&t, CMSG_DATA(header), sizeof(t));
			packet->t_ns = t.tv_sec * NS_PER_S + t.tv_nsec;
		}
	/* the device's own copy: the rest of it is dropped */
	if (read(tun, queued, sizeof(queued)) < 0 && errno != EAGAIN)
		return 0;
	return 1;
}

int wire_next(struct captured *packet, int64_t until_ns)
{
	struct pollfd wait = {.fd = sniffer, .events = POLLIN};
	struct timespec left;
	int64_t left_ns;
	int taken;

	for (;;) {
		taken = take(packet);
		if (taken > 0)
			return 1;
		if (taken == 0)
			continue;
		left_ns = until_ns - report_now_ns();
		if (left_ns <= 0)
			return 0;
		left = clock_timespec(left_ns);
		if (ppoll(&wait, 1, &left, NULL) == 0)
			return 0;
	}
}

static uint16_t get16(const unsigned char *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static uint32_t get32(const unsigned char *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void put16(unsigned char *at, uint16_t value)
{
	at[0] = (unsigned char)(value >> 8);
	at[1] = (unsigned char)value;
}

static void put32(unsigned char *at, uint32_t value)
{
	put16(at, (uint16_t)(value >> 16));
	put16(at + 2, (uint16_t)value);
}

/* The offset of the segment; 0 if the packet holds none. */
static size_t segment(const struct captured *packet)
{
	const unsigned char *data = packet->data;
	size_t at = 0;

	if (packet->length >= 40 && data[0] >> 4 == 4 && data[9] == TCP)
		at = 4 * (size_t)(data[0] & 15);
	else if (packet->length >= IPV6_TCP + 20 && data[0] >> 4 == 6 && data[6] == TCP)
		at = IPV6_TCP;
	return at && packet->length >= at + 20 && packet->length >= at + 4 * (size_t)(data[at + 12] >> 4) ? at
													  : 0;
}

bool wire_belongs(struct connection *connection, const struct captured *packet)
{
	size_t at = segment(packet);
	const unsigned char *tcp = packet->data + at;
	bool syn;

	if (!at || get16(tcp + 2) != connection->remote_port)
		return false;
	syn = tcp[13] & SYN;
	if (!connection->local_port && connection->active && syn && !(tcp[13] & ACK))
		connection->local_port = get16(tcp);
	if (get16(tcp) != connection->local_port)
		return false;
	if (syn && !connection->isn_known) {
		connection->isn_known = true;
		connection->isn = get32(tcp + 4);
	}
	return true;
}

size_t wire_payload(const struct captured *packet)
{
	size_t at = segment(packet);

	return at ? packet->length - at - 4 * (size_t)(packet->data[at + 12] >> 4) : 0;
}

void wire_stamp(struct connection *connection, const struct captured *packet, uint32_t script)
{
	size_t at = segment(packet), end = at + 4 * (size_t)(packet->data[at + 12] >> 4), length;
	const unsigned char *data = packet->data;
	struct stamp *stamps;

	for (at += 20; at < end; at += length) {
		length = data[at] < 2 ? 1 : at + 1 < end ? data[at + 1] : 0;
		if (data[at] == 8 && length == 10 && at + 10 <= end)
			break;
		if (length < 1 || (data[at] > 1 && length < 2))
			return;
	}
	if (at >= end)
		return;
	stamps = realloc(connection->stamps, (connection->stamp_count + 1) * sizeof(*stamps));
	if (!stamps)
		return;
	connection->stamps = stamps;
	stamps[connection->stamp_count++] = (struct stamp){script, get32(data + at + 2)};
}

/* The latest stamp of the kernel's that the script calls `script`. */
static bool live_stamp(const struct connection *connection, uint32_t script, uint32_t *live)
{
	size_t i;

	for (i = connection->stamp_count; i-- > 0;)
		if (connection->stamps[i].script == script) {
			*live = connection->stamps[i].live;
			return true;
		}
	return false;
}

static uint32_t add(uint32_t sum, const unsigned char *data, size_t length)
{
	size_t i;

	for (i = 0; i + 1 < length; i += 2)
		sum += get16(data + i);
	if (length % 2)
		sum += (uint32_t)data[length - 1] << 8;
	return sum;
}

static void fill_checksum(unsigned char *packet, size_t length, const struct inbound *in)
{
	bool six = packet[0] >> 4 == 6;
	uint32_t sum = 0;

	if (in->pseudo) {
		sum = add(sum, packet + (six ? 8 : 12), six ? 32 : 8);
		sum += (uint32_t)in->pseudo + (uint32_t)(length - in->sum_from);
	}
	put16(packet + in->sum_at, 0);
	/* at most 64 KiB: the sum of 32768 words fits in 32 bits */
	sum = add(sum, packet + in->sum_from, length - in->sum_from);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	put16(packet + in->sum_at, (uint16_t)~sum);
}

int wire_inject(const struct connection *connection, const struct inbound *in, uint16_t mss, int event)
{
	size_t length = in->header.length + in->zeros, i;
	struct virtio_net_hdr header = {0};
	unsigned char *packet = calloc(1, length);
	struct iovec parts[2] = {{&header, sizeof(header)}, {packet, length}};
	struct ndjson *out;
	uint32_t live;
	int result = -1;

	if (!packet)
		return -1;
	memcpy(packet, in->header.data, in->header.length);
	put16(packet + in->local_port_at, connection->local_port);
	for (i = 0; i < in->count; i++)
		put32(packet + in->counts[i], get32(packet + in->counts[i]) + connection->isn - in->minus);
	if (in->ecr_at) {
		if (!live_stamp(connection, in->ecr, &live)) {
			report_failed(event,
				      "no packet before this one has the time stamp that ecr %u echoes",
				      in->ecr);
			goto out;
		}
		put32(packet + in->ecr_at, live);
	}
	fill_checksum(packet, length, in);
	if (mss && in->pseudo == TCP) {
		header.gso_type = packet[0] >> 4 == 6 ? VIRTIO_NET_HDR_GSO_TCPV6 : VIRTIO_NET_HDR_GSO_TCPV4;
		header.gso_size = mss;
	}
	out = report_begin("injected", event);
	ndjson_int(out, "t_ns", report_now_ns());
	report_bytes(out, packet, length);
	report_end();
	if (writev(tun, parts, 2) < 0)
		report_failed(event, "the kernel refuses the packet: %s", strerror(errno));
	else
		result = 0;
out:
	free(packet);
	return result;
}
