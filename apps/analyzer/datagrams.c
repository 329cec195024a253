// SPDX-License-Identifier: Apache-2.0
/* The table `datagrams`. */
#include "datagrams.h"
#include "cursor.h"

enum { UDP_HEADER = 8, HEAD_BYTES = 8 };

void datagram_take(struct nwa *a, const struct packet *p, uint32_t path, uint8_t path_direction)
{
	struct table *t = &a->tables[nwa_table_datagrams];
	uint32_t length, bytes;
	uint64_t head = 0;
	struct nwa_datagram *row;

	if (!t->wanted || p->protocol != PROTOCOL_UDP || p->captured < UDP_HEADER || p->length < UDP_HEADER)
		return;
	length = get_be16(p->data + 4);
	length = length < UDP_HEADER || length > p->length ? p->length : length;
	bytes = (length < p->captured ? length : p->captured) - UDP_HEADER;
	for (uint32_t i = 0; i < bytes && i < HEAD_BYTES; i++)
		head |= (uint64_t)p->data[UDP_HEADER + i] << 8 * i;
	row = table_push(t);
	*row = (struct nwa_datagram){.time_ns = p->time_ns,
				     .head = head,
				     .packet = p->number,
				     .path = path,
				     .ip_bytes = p->ip_bytes,
				     .payload_bytes = length - UDP_HEADER,
				     .source_port = get_be16(p->data),
				     .destination_port = get_be16(p->data + 2),
				     .path_direction = path_direction};
}
