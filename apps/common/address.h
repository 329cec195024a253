/* SPDX-License-Identifier: Apache-2.0 */
/*
 * address: IPv4 and IPv6 addresses as text and as sockaddr, and packed lists of them (the form sctp_bindx()
 * and sctp_connectx() take and sctp_getpaddrs() gives).
 */
#ifndef NETWARP_ADDRESS_H
#define NETWARP_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct ndjson;

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_storage storage;
};

#define ADDRESS_LIST_MAX 16

struct address_list {
	unsigned int count;
	union address items[ADDRESS_LIST_MAX];
};

/* Read a numeric address (IPv6 without brackets, "fe80::1%eth0" with its scope). False if it is none. */
bool address_parse(const char *text, union address *to);

/* The address without its port, at most `size` bytes of `text`; returns `text`. */
const char *address_text(const struct sockaddr *address, char *text, size_t size);

/* The length that bind(2) and connect(2) take; 0 for a family that is neither IPv4 nor IPv6. */
socklen_t address_length(const struct sockaddr *address);

void address_set_port(union address *address, uint16_t port);
uint16_t address_port(const struct sockaddr *address);
bool address_equal(const struct sockaddr *a, const struct sockaddr *b); /* ports do not count */
/* Whether all of `count` packed addresses are in the list; an IPv4 address mapped into IPv6 is that IPv4
 * address. */
bool address_list_holds(const struct address_list *list, const struct sockaddr *packed, int count);

/* Pack `list` with `port` into `buffer` (sizeof(union address) * count is enough); returns the bytes used. */
size_t address_pack(const struct address_list *list, uint16_t port, void *buffer);

/* A member "key": text of the address. */
void address_write(struct ndjson *out, const char *key, const struct sockaddr *address);
/* A member "key": list of the texts of `count` packed addresses. */
void address_write_packed(struct ndjson *out, const char *key, const struct sockaddr *packed, int count);

#endif
