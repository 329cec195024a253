// SPDX-License-Identifier: Apache-2.0
/* Documented in address.h. */
#include "address.h"

#include "ndjson.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

bool address_parse(const char *text, union address *to)
{
	char host[INET6_ADDRSTRLEN];
	const char *scope = strchr(text, '%');
	size_t len = scope ? (size_t)(scope - text) : strlen(text);

	memset(to, 0, sizeof(*to));
	if (len >= sizeof(host))
		return false;
	memcpy(host, text, len);
	host[len] = '\0';
	if (!scope && inet_pton(AF_INET, host, &to->v4.sin_addr) == 1) {
		to->v4.sin_family = AF_INET;
		return true;
	}
	if (inet_pton(AF_INET6, host, &to->v6.sin6_addr) != 1)
		return false;
	to->v6.sin6_family = AF_INET6;
	if (scope) {
		to->v6.sin6_scope_id = if_nametoindex(scope + 1);
		return to->v6.sin6_scope_id != 0;
	}
	return true;
}

/* An IPv6 socket shows its IPv4 peers as ::ffff:a.b.c.d. */
static void unmap(union address *address)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET};

	if (address->any.sa_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&address->v6.sin6_addr))
		return;
	memcpy(&v4.sin_addr, &address->v6.sin6_addr.s6_addr[12], sizeof(v4.sin_addr));
	address->v4 = v4;
}

const char *address_text(const struct sockaddr *address, char *text, size_t size)
{
	const void *from = NULL;
	union address a;

	memset(&a, 0, sizeof(a));
	a.any.sa_family = address->sa_family;
	if (address_length(address))
		memcpy(&a, address, address_length(address));
	unmap(&a);
	if (a.any.sa_family == AF_INET)
		from = &a.v4.sin_addr;
	else if (a.any.sa_family == AF_INET6)
		from = &a.v6.sin6_addr;
	if (!from || !inet_ntop(a.any.sa_family, from, text, (socklen_t)size))
		snprintf(text, size, "family %u", address->sa_family);
	return text;
}

socklen_t address_length(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET)
		return sizeof(struct sockaddr_in);
	if (address->sa_family == AF_INET6)
		return sizeof(struct sockaddr_in6);
	return 0;
}

void address_map(union address *address)
{
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = address->v4.sin_port};

	if (address->any.sa_family != AF_INET)
		return;
	v6.sin6_addr.s6_addr[10] = v6.sin6_addr.s6_addr[11] = 0xff;
	memcpy(&v6.sin6_addr.s6_addr[12], &address->v4.sin_addr, sizeof(address->v4.sin_addr));
	address->v6 = v6;
}

int address_family(const struct address_list *list)
{
	unsigned int i;

	for (i = 0; i < list->count; i++)
		if (list->items[i].any.sa_family == AF_INET6)
			return AF_INET6;
	return AF_INET;
}

void address_set_port(union address *address, uint16_t port)
{
	if (address->any.sa_family == AF_INET)
		address->v4.sin_port = htons(port);
	else
		address->v6.sin6_port = htons(port);
}

uint16_t address_port(const struct sockaddr *address)
{
	const union address *a = (const union address *)address;

	return ntohs(address->sa_family == AF_INET ? a->v4.sin_port : a->v6.sin6_port);
}

bool address_equal(const struct sockaddr *a, const struct sockaddr *b)
{
	const union address *x = (const union address *)a, *y = (const union address *)b;

	if (a->sa_family != b->sa_family)
		return false;
	if (a->sa_family == AF_INET)
		return x->v4.sin_addr.s_addr == y->v4.sin_addr.s_addr;
	return memcmp(&x->v6.sin6_addr, &y->v6.sin6_addr, sizeof(x->v6.sin6_addr)) == 0;
}

/* Copy the next of some packed addresses, which may begin at any multiple of four bytes; returns its length.
 */
static socklen_t unpack(const unsigned char *at, union address *to)
{
	sa_family_t family;
	socklen_t len;

	memcpy(&family, at, sizeof(family));
	len = family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
	memset(to, 0, sizeof(*to));
	memcpy(to, at, len);
	return len;
}

static bool holds(const struct address_list *list, union address one)
{
	union address known;
	unsigned int i;

	unmap(&one);
	for (i = 0; i < list->count; i++) {
		known = list->items[i];
		unmap(&known);
		if (address_equal(&known.any, &one.any))
			return true;
	}
	return false;
}

bool address_list_holds(const struct address_list *list, const struct sockaddr *packed, int count)
{
	const unsigned char *at = (const unsigned char *)packed;
	union address one;

	for (; count > 0; count--) {
		at += unpack(at, &one);
		if (!holds(list, one))
			return false;
	}
	return true;
}

size_t address_pack(const struct address_list *list, uint16_t port, void *buffer)
{
	unsigned char *to = buffer;
	unsigned int i;

	for (i = 0; i < list->count; i++) {
		union address one = list->items[i];
		socklen_t len = address_length(&one.any);

		address_set_port(&one, port);
		memcpy(to, &one, len);
		to += len;
	}
	return (size_t)(to - (unsigned char *)buffer);
}

void address_write(struct ndjson *out, const char *key, const struct sockaddr *address)
{
	char text[INET6_ADDRSTRLEN + 16];

	ndjson_str(out, key, address_text(address, text, sizeof(text)));
}

void address_write_packed(struct ndjson *out, const char *key, const struct sockaddr *packed, int count)
{
	const unsigned char *at = (const unsigned char *)packed;
	union address one;

	ndjson_array_begin(out, key);
	for (; count > 0; count--) {
		at += unpack(at, &one);
		address_write(out, NULL, &one.any);
	}
	ndjson_array_end(out);
}
