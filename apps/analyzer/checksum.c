// SPDX-License-Identifier: Apache-2.0
/*
 * Checksums: TCP's (RFC 9293 3.1), UDP's (RFC 768), SCTP's CRC32c (RFC 9260 Appendix A) and that of the IPv4
 * header (RFC 791 3.1).
 */
#include <string.h>

#include "checksum.h"

static uint32_t crc_table[256];

__attribute__((constructor)) static void crc_prepare(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t crc = i;

		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
		crc_table[i] = crc;
	}
}

static uint32_t crc_bytes(uint32_t crc, const uint8_t *at, uint32_t bytes)
{
	while (bytes--)
		crc = crc >> 8 ^ crc_table[(crc ^ *at++) & 0xff];
	return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t crc_words(uint32_t crc, const uint8_t *at, uint32_t bytes)
{
	uint64_t state = crc, word;

	for (; bytes >= 8; bytes -= 8, at += 8) {
		memcpy(&word, at, 8);
		state = __builtin_ia32_crc32di(state, word);
	}
	return crc_bytes((uint32_t)state, at, bytes);
}

static uint32_t crc_add(uint32_t crc, const uint8_t *at, uint32_t bytes)
{
	return __builtin_cpu_supports("sse4.2") ? crc_words(crc, at, bytes) : crc_bytes(crc, at, bytes);
}
#else
#define crc_add crc_bytes
#endif

static bool sctp_right(const struct packet *p)
{
	static const uint8_t zero[4];
	uint32_t crc, said;

	if (p->captured < 12)
		return true;
	crc = crc_add(0xffffffffu, p->data, 8);
	crc = crc_add(crc, zero, 4);
	crc = ~crc_add(crc, p->data + 12, p->captured - 12);
	memcpy(&said, p->data + 8, 4); /* sent with the least significant byte first */
	return crc == said;
}

/*
 * The ones' complement sum of 16-bit words, in this machine's byte order: the sum of wider words folded down
 * is the same one, and swapping its bytes at the end what swapping each word's would be (RFC 1071 2).
 */
static uint64_t ones_sum(uint64_t sum, const uint8_t *at, uint32_t bytes)
{
	uint64_t last = 0, word;

	for (; bytes >= 8; bytes -= 8, at += 8) {
		memcpy(&word, at, 8);
		sum += word;
		sum += sum < word; /* the carry comes round */
	}
	memcpy(&last, at, bytes);
	sum += last;
	return sum + (sum < last);
}

static uint16_t folded(uint64_t sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* at: where the header of `bytes` bytes has its checksum. */
static bool internet_right(const struct packet *p, uint32_t bytes, uint32_t at, bool unfinished)
{
	/* the pseudo header: an IPv4 address' upper 12 bytes are 0, 0, 0xffff here, and 0xffff adds nothing
	 */
	uint64_t words[5] = {__builtin_bswap64(p->from.high), __builtin_bswap64(p->from.low),
			     __builtin_bswap64(p->to.high), __builtin_bswap64(p->to.low),
			     __builtin_bswap64((uint64_t)p->length << 32 | p->protocol)};
	uint64_t pseudo;
	uint16_t said;

	if (p->captured < bytes)
		return true;
	memcpy(&said, p->data + at, 2);
	if (!said && p->protocol == PROTOCOL_UDP && p->kind == PACKET_IPV4)
		return true; /* none */
	pseudo = ones_sum(0, (const uint8_t *)words, sizeof(words));
	if (folded(ones_sum(pseudo, p->data, p->captured)) == 0xffff)
		return true;
	return unfinished && said == folded(pseudo);
}

bool packet_checksum_right(const struct packet *p, bool unfinished)
{
	if (!unfinished && p->ipv4 && folded(ones_sum(0, p->ipv4, (p->ipv4[0] & 15u) * 4)) != 0xffff)
		return false;
	if (p->captured < p->length)
		return true;
	if (p->protocol == PROTOCOL_SCTP)
		return sctp_right(p);
	if (p->protocol == PROTOCOL_TCP)
		return internet_right(p, 20, 16, unfinished);
	if (p->protocol == PROTOCOL_UDP)
		return internet_right(p, 8, 6, unfinished);
	return true;
}
