/* SPDX-License-Identifier: Apache-2.0 */
/*
 * address: converts IPv4 and IPv6 addresses between text and sockaddr, compares them, and packs lists of
 * them. A packed list is sockaddr_in and sockaddr_in6 structures one after another without padding: the form
 * that sctp_bindx() and sctp_connectx() take and sctp_getpaddrs() returns.
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

#define ADDRESS_LIST_MAX 16 /* addresses per end of a flow; options.h refuses more */

struct address_list {
	unsigned int count;
	union address items[ADDRESS_LIST_MAX];
};

/*
 * Read a numeric address with port 0 (IPv6 without brackets, "fe80::1%eth0" with its scope). False if the
 * text is no address.
 */
bool address_parse(const char *text, union address *to);

/*
 * Write the address without its port into `text` of `size` bytes (INET6_ADDRSTRLEN is enough), an
 * IPv4-mapped IPv6 address as the IPv4 address it stands for; returns `text`.
 */
const char *address_text(const struct sockaddr *address, char *text, size_t size);

/* The length in bytes to pass to bind(2) and connect(2); 0 for a family that is neither IPv4 nor IPv6. */
socklen_t address_length(const struct sockaddr *address);

/* Make an IPv4 address the IPv4-mapped one (RFC 4291 2.5.5.2) by which an IPv6 socket knows it. */
void address_map(union address *address);
/* The family of a socket for all of them: AF_INET6 if one is of IPv6. */
int address_family(const struct address_list *list);

/* Ports are in host byte order here; the sockaddr holds them in network byte order. */
void address_set_port(union address *address, uint16_t port);
uint16_t address_port(const struct sockaddr *address);
/* Compares the addresses; ports are ignored. */
bool address_equal(const struct sockaddr *a, const struct sockaddr *b);
/*
 * Whether all `count` addresses of a packed list are in `list`. An IPv4-mapped IPv6 address equals its IPv4
 * address.
 */
bool address_list_holds(const struct address_list *list, const struct sockaddr *packed, int count);

/*
 * Pack `list`, each address with `port`, into `buffer` (sizeof(union address) * count is enough). Returns
 * the number of bytes used.
 */
size_t address_pack(const struct address_list *list, uint16_t port, void *buffer);

/* Add a JSON member "key": the address as text. */
void address_write(struct ndjson *out, const char *key, const struct sockaddr *address);
/* Add a JSON member "key": `count` packed addresses as a list of texts. */
void address_write_packed(struct ndjson *out, const char *key, const struct sockaddr *packed, int count);

#endif
