/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SCTP's chunk types, header lengths in bytes and flags (RFC 9260 section 3; I-DATA: RFC 8260, FORWARD-TSN:
 * RFC 3758).
 */
#ifndef ANALYZER_SCTP_CHUNKS_H
#define ANALYZER_SCTP_CHUNKS_H

enum chunk_type {
	CHUNK_DATA = 0,
	CHUNK_INIT = 1,
	CHUNK_INIT_ACK = 2,
	CHUNK_SACK = 3,
	CHUNK_HEARTBEAT = 4,
	CHUNK_HEARTBEAT_ACK = 5,
	CHUNK_ABORT = 6,
	CHUNK_SHUTDOWN = 7,
	CHUNK_ERROR = 9,
	CHUNK_COOKIE_ECHO = 10,
	CHUNK_SHUTDOWN_COMPLETE = 14,
	CHUNK_I_DATA = 64,
	CHUNK_FORWARD_TSN = 192,
	CHUNK_I_FORWARD_TSN = 194,
};

enum {
	SCTP_HEADER = 12,
	CHUNK_HEADER = 4,
	DATA_HEADER = 16,
	I_DATA_HEADER = 20,
	INIT_HEADER = 20,
	SACK_HEADER = 16,
	CAUSE_HEADER = 4,
	PARAMETER_IPV4 = 5,
	PARAMETER_IPV6 = 6,
	FLAG_T = 1,	/* ABORT, SHUTDOWN COMPLETE: the header has the tag of the packet it answers */
	FLAG_FIRST = 2, /* DATA: the B bit, first fragment of a message */
	PPID_DIAMETER = 46,
	DIAMETER_PORT = 3868, /* RFC 6733 11.4; older stacks send PPID 0 there */
};

#endif
