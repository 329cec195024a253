// SPDX-License-Identifier: Apache-2.0
/* Documented in segment.h. */
#include "segment.h"

#include <netinet/in.h>
#include <string.h>

#define IPV4_MIN       20
#define TCP_MIN	       20
#define AT_IP_LENGTH   2
#define AT_IP_FRAGMENT 6
#define AT_IP_PROTOCOL 9
#define AT_IP_CHECKSUM 10
#define AT_IP_SOURCE   12
#define TCP_SEQ	       4
#define TCP_ACK	       8
#define TCP_OFFSET     12
#define TCP_FLAGS      13
#define TCP_WINDOW     14
#define TCP_CHECKSUM   16
#define OPTION_END     0
#define OPTION_NOP     1
#define OPTION_SACK    5

static uint16_t get_be16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static uint32_t get_be32(const uint8_t *at)
{
	return (uint32_t)get_be16(at) << 16 | get_be16(at + 2);
}

static void put_be16(uint8_t *at, uint16_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

/* Ones' complement sum of 16-bit words; an odd last byte counts as if a zero followed. */
static uint32_t sum(const uint8_t *data, size_t len, uint32_t total)
{
	size_t i;

	for (i = 0; i + 1 < len; i += 2)
		total += get_be16(data + i);
	if (len % 2)
		total += (uint32_t)data[len - 1] << 8;
	while (total >> 16)
		total = (total & 0xffff) + (total >> 16);
	return total;
}

/* The place of the SACK option that has blocks, or NULL. False in *whole: the options are malformed. */
static uint8_t *sack_option(const struct segment *segment, bool *whole)
{
	uint8_t *at = segment->data + segment->tcp + TCP_MIN;
	uint8_t *end =
	    segment->data + segment->tcp + (size_t)(segment->data[segment->tcp + TCP_OFFSET] >> 4) * 4;
	uint8_t *sack = NULL;

	*whole = true;
	while (at < end && *at != OPTION_END) {
		if (*at == OPTION_NOP) {
			at++;
			continue;
		}
		if (end - at < 2 || at[1] < 2 || at[1] > end - at) {
			*whole = false;
			return NULL;
		}
		if (*at == OPTION_SACK && at[1] >= 10)
			sack = at;
		at += at[1];
	}
	return sack;
}

/*
 * What SACK blocks say. The first reports bytes that came twice if it lies below the acknowledgement, or
 * within the second block; all others report what is there above it (RFC 2883, 4; Linux, tcp_check_dsack()).
 */
static void read_blocks(struct segment *segment, const uint8_t *option)
{
	size_t count = ((size_t)option[1] - 2) / 8, i;
	const uint8_t *first = option + 2, *second = first + 8;

	segment->sack = true;
	segment->duplicate_sack = !seq_before(segment->ack, get_be32(first)) ||
				  (count > 1 && !seq_before(get_be32(first), get_be32(second)) &&
				   !seq_before(get_be32(second + 4), get_be32(first + 4)));
	for (i = segment->duplicate_sack; i < count; i++)
		segment->missing |= seq_before(segment->ack, get_be32(first + 8 * i));
}

bool segment_read(uint8_t *data, size_t len, struct segment *segment)
{
	size_t ip, tcp, total;
	uint8_t *header, *sack;
	bool whole;

	if (len < IPV4_MIN || data[0] >> 4 != 4)
		return false;
	ip = (size_t)(data[0] & 0xf) * 4;
	total = get_be16(data + AT_IP_LENGTH);
	if (ip < IPV4_MIN || total > len || total < ip + TCP_MIN || data[AT_IP_PROTOCOL] != IPPROTO_TCP ||
	    get_be16(data + AT_IP_FRAGMENT) & 0x3fff)
		return false;
	header = data + ip;
	tcp = (size_t)(header[TCP_OFFSET] >> 4) * 4;
	if (tcp < TCP_MIN || ip + tcp > total)
		return false;
	*segment = (struct segment){
	    .data = data,
	    .len = total,
	    .tcp = ip,
	    .seq = get_be32(header + TCP_SEQ),
	    .ack = get_be32(header + TCP_ACK),
	    .window = get_be16(header + TCP_WINDOW),
	    .flags = header[TCP_FLAGS],
	    .payload = (uint32_t)(total - ip - tcp),
	};
	memcpy(&segment->ends.source, data + AT_IP_SOURCE, 4);
	memcpy(&segment->ends.destination, data + AT_IP_SOURCE + 4, 4);
	memcpy(&segment->ends.source_port, header, 2);
	memcpy(&segment->ends.destination_port, header + 2, 2);
	sack = sack_option(segment, &whole);
	if (sack)
		read_blocks(segment, sack);
	return whole;
}

/* A 16-bit word of the TCP header, and the checksum's part of it (RFC 1624, equation 3). */
static void change16(struct segment *segment, size_t offset, uint16_t value)
{
	uint8_t *header = segment->data + segment->tcp;
	uint32_t total = (uint16_t)~get_be16(header + TCP_CHECKSUM);

	total += (uint16_t)~get_be16(header + offset);
	total += value;
	while (total >> 16)
		total = (total & 0xffff) + (total >> 16);
	put_be16(header + offset, value);
	put_be16(header + TCP_CHECKSUM, (uint16_t)~total);
}

void segment_set_ack(struct segment *segment, uint32_t ack)
{
	change16(segment, TCP_ACK, (uint16_t)(ack >> 16));
	change16(segment, TCP_ACK + 2, (uint16_t)ack);
	segment->ack = ack;
}

void segment_set_window(struct segment *segment, uint16_t window)
{
	change16(segment, TCP_WINDOW, window);
	segment->window = window;
}

void segment_hide_sack(struct segment *segment)
{
	uint8_t *header = segment->data + segment->tcp, *sack, word[2];
	size_t at, end, i;
	bool whole;

	sack = sack_option(segment, &whole);
	if (!sack)
		return;
	at = (size_t)(sack - header);
	end = at + sack[1];
	/* by whole words of the header, as the checksum counts them */
	for (i = at & ~(size_t)1; i < end; i += 2) {
		word[0] = i >= at ? OPTION_NOP : header[i];
		word[1] = i + 1 < end ? OPTION_NOP : header[i + 1];
		change16(segment, i, get_be16(word));
	}
	segment->sack = false;
}

size_t segment_bare(const struct segment *segment, uint8_t *to)
{
	size_t tcp = (size_t)(segment->data[segment->tcp + TCP_OFFSET] >> 4) * 4, len = segment->tcp + tcp;
	struct segment bare = *segment;
	uint8_t *header = to + segment->tcp;
	uint32_t total;

	memcpy(to, segment->data, len);
	put_be16(to + AT_IP_LENGTH, (uint16_t)len);
	put_be16(to + AT_IP_CHECKSUM, 0);
	put_be16(to + AT_IP_CHECKSUM, (uint16_t)~sum(to, segment->tcp, 0));
	header[TCP_FLAGS] = SEGMENT_ACK;
	put_be16(header + TCP_SEQ, (uint16_t)(segment_end(segment) >> 16));
	put_be16(header + TCP_SEQ + 2, (uint16_t)segment_end(segment));
	bare.data = to;
	bare.len = len;
	segment_hide_sack(&bare);
	put_be16(header + TCP_CHECKSUM, 0);
	total = sum(to + AT_IP_SOURCE, 8, IPPROTO_TCP + (uint32_t)tcp);
	put_be16(header + TCP_CHECKSUM, (uint16_t)~sum(header, tcp, total));
	return len;
}
