// SPDX-License-Identifier: Apache-2.0
/* Documented in quic.h. */
#include <string.h>

#include "quic.h"
#include "cursor.h"

enum {
	UDP_HEADER = 8,
	FORM_LONG = 0x80,	/* RFC 8999 5.1 */
	SPIN_BIT = 0x20,	/* RFC 9000 17.4 */
	CID_MAX = 20,		/* of the versions whose packets are understood: RFC 9000 17.2 */
	CID_HEAD = 16,		/* bytes of a connection id in the columns dcid and scid; the others follow */
	INTEGRITY_TAG = 16,	/* at the end of a Retry: RFC 9000 17.2.5 */
	VERSION_1 = 1,		/* RFC 9000 */
	VERSION_2 = 0x6b3343cf, /* RFC 9369 */
	VERSION_2_DRAFT = 0x709a50c4, /* of its drafts, with its types of packets */
	DRAFT_FIRST = 0xff00001d,     /* draft-29, the first with version 1's headers that was deployed */
	DRAFT_LAST = 0xff000022	      /* draft-34 */
};

/* A variable-length integer (RFC 9000 16). false: it was not captured whole. */
static bool take_varint(struct cursor *c, uint64_t *value)
{
	uint32_t bytes;

	if (!c->captured)
		return false;
	bytes = 1u << (c->at[0] >> 6);
	if (c->captured < bytes)
		return false;
	*value = c->at[0] & 0x3f;
	for (uint32_t i = 1; i < bytes; i++)
		*value = *value << 8 | c->at[i];
	return skip(c, bytes);
}

/* A connection id behind its length. false: it was not captured whole. */
static bool take_cid(struct cursor *c, uint8_t *head, uint32_t *rest, uint8_t *bytes)
{
	if (!skip(c, 1) || c->captured < c->at[-1])
		return false;
	*bytes = c->at[-1];
	memcpy(head, c->at, *bytes < CID_HEAD ? *bytes : CID_HEAD);
	for (uint32_t i = CID_HEAD; i < *bytes && i < CID_MAX; i++)
		*rest |= (uint32_t)c->at[i] << 8 * (CID_MAX - 1 - i);
	return skip(c, *bytes);
}

static bool is_version_2(uint32_t version)
{
	return version == VERSION_2 || version == VERSION_2_DRAFT;
}

static bool understood(uint32_t version)
{
	return version == VERSION_1 || is_version_2(version) ||
	       (version >= (uint32_t)DRAFT_FIRST && version <= (uint32_t)DRAFT_LAST);
}

/*
 * A packet with a long header, whose fixed bit need not be set (RFC 9287). Moves the cursor behind it; to the
 * datagram's end where nothing tells where it ends. false: it is none, or not captured up to where that can
 * be known.
 */
static bool take_long(struct cursor *c, struct nwa_quic *row)
{
	static const uint8_t kinds_2[] = {NWA_QUIC_RETRY, NWA_QUIC_INITIAL, NWA_QUIC_ZERO_RTT,
					  NWA_QUIC_HANDSHAKE}; /* RFC 9369 3.2 */
	uint8_t first = c->at[0];
	uint64_t bytes = 0;

	if (c->captured < 5)
		return false;
	row->version = get_be32(c->at + 1);
	(void)skip(c, 5);
	if (!take_cid(c, row->dcid, &row->dcid_rest, &row->dcid_bytes) ||
	    !take_cid(c, row->scid, &row->scid_rest, &row->scid_bytes))
		return false;
	if (!row->version || !understood(row->version)) {
		row->kind = row->version ? NWA_QUIC_OTHER_VERSION : NWA_QUIC_VERSION_NEGOTIATION;
		c->at += c->captured;
		c->captured = c->length = 0;
		return true;
	}
	if (row->dcid_bytes > CID_MAX || row->scid_bytes > CID_MAX)
		return false;
	/* NWA_QUIC_INITIAL ... are the types of version 1 */
	row->kind = is_version_2(row->version) ? kinds_2[first >> 4 & 3] : first >> 4 & 3;
	if (row->kind == NWA_QUIC_RETRY) {
		if (c->length < INTEGRITY_TAG)
			return false;
		c->at += c->captured;
		c->captured = c->length = 0;
		return true;
	}
	if (row->kind == NWA_QUIC_INITIAL &&
	    (!take_varint(c, &bytes) || bytes > c->captured || !skip(c, (uint32_t)bytes)))
		return false; /* the token */
	if (!take_varint(c, &bytes) || bytes > c->length)
		return false;
	/* what the capture cut off is not there to be read, but the packet ends where it says */
	c->at += bytes < c->captured ? bytes : c->captured;
	c->captured -= bytes < c->captured ? (uint32_t)bytes : c->captured;
	c->length -= (uint32_t)bytes;
	return true;
}

/* A packet with a short header takes the rest of the datagram; how long its connection id is, only its ends
 * know. */
static void take_short(struct cursor *c, struct nwa_quic *row)
{
	uint32_t seen = c->captured - 1;

	row->kind = NWA_QUIC_SHORT;
	row->spin = !!(c->at[0] & SPIN_BIT);
	row->dcid_bytes = NWA_QUIC_CID_UNKNOWN;
	memcpy(row->dcid, c->at + 1, seen < CID_HEAD ? seen : CID_HEAD);
	for (uint32_t i = CID_HEAD; i < seen && i < CID_MAX; i++)
		row->dcid_rest |= (uint32_t)c->at[1 + i] << 8 * (CID_MAX - 1 - i);
	c->at += c->captured;
	c->captured = c->length = 0;
}

void quic_take(struct nwa *a, const struct packet *p, uint32_t path, uint8_t path_direction)
{
	struct table *t = &a->tables[nwa_table_quic];
	struct cursor c = {.at = p->data, .captured = p->captured, .length = p->length};
	const struct cursor whole = c;
	struct nwa_quic row;
	uint32_t length, before;

	if (!t->wanted || p->protocol != PROTOCOL_UDP || p->captured < UDP_HEADER || p->length < UDP_HEADER)
		return;
	length = get_be16(p->data + 4);
	if (length >= UDP_HEADER && length < c.length)
		c.length = length;
	if (c.captured > c.length)
		c.captured = c.length;
	(void)skip(&c, UDP_HEADER);
	for (before = c.length; c.captured; before = c.length) {
		row = (struct nwa_quic){.time_ns = p->time_ns,
					.packet = p->number,
					.path = path,
					.offset = (uint32_t)(c.at - whole.at) - UDP_HEADER,
					.source_port = get_be16(p->data),
					.destination_port = get_be16(p->data + 2),
					.path_direction = path_direction};
		if (c.at[0] & FORM_LONG) {
			if (!take_long(&c, &row))
				return;
		} else if (row.offset && !c.at[0]) {
			return; /* padding behind the packets of a datagram */
		} else {
			take_short(&c, &row);
		}
		row.bytes = before - c.length;
		*(struct nwa_quic *)table_push(t) = row;
	}
}
