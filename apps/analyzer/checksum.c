/* Transport checksums: TCP's (RFC 9293 3.1) and SCTP's CRC32c (RFC 9260 Appendix A). */
#include <string.h>

#include "packet.h"

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

static bool tcp_right(const struct packet *p)
{
	uint64_t sum = (uint64_t)PROTOCOL_TCP + p->length;
	const uint64_t words[4] = { p->from.high, p->from.low, p->to.high, p->to.low };
	uint32_t i;

	if (p->captured < 20)
		return true;
	for (i = 0; i < 4; i++) {
		uint64_t word = words[i];

		if (p->kind == PACKET_IPV4)
			word &= 0xffffffffu;
		sum += (word >> 48) + (word >> 32 & 0xffff) + (word >> 16 & 0xffff) + (word & 0xffff);
	}
	for (i = 0; i + 1 < p->captured; i += 2)
		sum += get_be16(p->data + i);
	if (i < p->captured)
		sum += (uint64_t)p->data[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum == 0xffff;
}

bool packet_checksum_right(const struct packet *p)
{
	if (p->captured < p->length)
		return true;
	if (p->protocol == PROTOCOL_SCTP)
		return sctp_right(p);
	if (p->protocol == PROTOCOL_TCP)
		return tcp_right(p);
	return true;
}
