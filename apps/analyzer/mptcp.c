// SPDX-License-Identifier: Apache-2.0
/* MPTCP's options about the connection, one row each: RFC 8684 section 3. Called by tcp.c. */
#include "mptcp.h"
#include "flow.h"

enum { OPTION_END, OPTION_NOP, OPTION_MPTCP = 30 };
enum { CAPABLE, JOIN, DSS, ADD_ADDRESS, REMOVE_ADDRESS, PRIORITY, FAIL, FASTCLOSE, RESET };
enum { DATA_FIN = 16, DATA_ACK = 1, DATA_ACK_64 = 2, MAPPED = 4, DSN_64 = 8, BACKUP = 1 };

/* DSS is on every segment: only one with DATA_FIN gets a row. */
bool mptcp_has_row(const uint8_t *at, uint8_t length)
{
	return at[2] >> 4 != DSS || (length >= 4 && at[3] & DATA_FIN);
}

static void capable(struct nwa_mptcp_option *row, const uint8_t *at, uint8_t length)
{
	if (length >= 4)
		row->flags = at[3];
	if (length >= 12)
		row->key = get_be64(at + 4);
	if (length >= 20)
		row->peer_key = get_be64(at + 12);
}

/* SYN: token, number; SYN+ACK: 64 bit of HMAC, number; ACK: 160 bit of HMAC. */
static void join(struct nwa_mptcp_option *row, const uint8_t *at, uint8_t length)
{
	row->backup = at[2] & BACKUP;
	row->address_id = at[3];
	if (length == 12)
		row->token = get_be32(at + 4);
}

static void data_fin(struct nwa_mptcp_option *row, const uint8_t *at, uint8_t length)
{
	uint32_t offset = 4, wide = at[3] & DSN_64 ? 8 : 4;

	row->flags = at[3];
	if (at[3] & DATA_ACK)
		offset += at[3] & DATA_ACK_64 ? 8 : 4;
	if (at[3] & MAPPED && offset + wide <= length)
		row->dsn = (int64_t)(wide == 8 ? get_be64(at + offset) : get_be32(at + offset));
}

/* A port follows the address where two bytes are left over: 8 or 20 bytes, with HMAC 16 or 28. */
static void add_address(struct nwa_mptcp_option *row, const uint8_t *at, uint8_t length)
{
	bool v6 = length >= 20;
	uint32_t size = v6 ? 16 : 4;
	struct address address;

	row->flags = at[2] & 15;
	row->address_id = at[3];
	if (length < 4 + size)
		return;
	address = v6 ? address_v6(at + 4) : address_v4(at + 4);
	address_store(row->address, &address);
	row->family = v6 ? 6 : 4;
	if ((length - 4 - size) % 8 == 2)
		row->port = get_be16(at + 4 + size);
}

static void option(struct nwa *a, const struct packet *p, const struct mptcp_place *place, const uint8_t *at,
		   uint8_t length)
{
	struct nwa_mptcp_option *row;

	row = table_push(&a->tables[nwa_table_mptcp_options]);
	*row = (struct nwa_mptcp_option){.time_ns = p->time_ns,
					 .dsn = NWA_UNKNOWN,
					 .flow = place->flow,
					 .path = place->path,
					 .packet = p->number,
					 .length = length,
					 .direction = place->direction,
					 .subtype = at[2] >> 4,
					 .version = at[2] >> 4 == CAPABLE ? at[2] & 15 : 0};
	if (row->subtype == PRIORITY)
		row->backup = at[2] & BACKUP;
	if (length < 4)
		return;
	switch (row->subtype) {
	case CAPABLE:
		capable(row, at, length);
		break;
	case JOIN:
		join(row, at, length);
		break;
	case DSS:
		data_fin(row, at, length);
		break;
	case ADD_ADDRESS:
		add_address(row, at, length);
		break;
	case REMOVE_ADDRESS:
	case PRIORITY:
		row->address_id = at[3];
		break;
	case FAIL:
		if (length >= 12)
			row->dsn = (int64_t)get_be64(at + 4);
		break;
	case FASTCLOSE:
		if (length >= 12)
			row->key = get_be64(at + 4);
		break;
	case RESET:
		row->flags = at[3];
		break;
	default:
		break;
	}
}

void mptcp_options(struct nwa *a, const struct packet *p, const struct mptcp_place *place, const uint8_t *at,
		   uint32_t bytes)
{
	while (bytes && at[0] != OPTION_END) {
		uint8_t length = 1;

		if (at[0] != OPTION_NOP) {
			if (bytes < 2 || at[1] < 2 || at[1] > bytes)
				return;
			length = at[1];
			if (at[0] == OPTION_MPTCP && length >= 3 && mptcp_has_row(at, length))
				option(a, p, place, at, length);
		}
		at += length;
		bytes -= length;
	}
}
