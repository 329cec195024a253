/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netwarp_analyzer.h - the analyser's whole C interface: rows, tables and the functions nwa_*().
 *
 * A reader makes one pass over the captures of ONE capture point (all interfaces of a node; they are merged
 * by time, and at equal times in the order of the files). The result is tables: arrays of the rows below.
 * X-macros define each row once, for the C struct and for nwa_describe(), from which
 * orchestrator/netwarp/captures/native.py builds its NumPy dtypes. Who changes a row raises NWA_ABI here and
 * ABI in native.py; the dtypes follow by themselves. Python reads columns by name: grep a name before it is
 * renamed or removed. NWA_UNKNOWN, NWA_NONE and the options of nwa_open() stand a second time in native.py:
 * change both.
 *
 * Units: times in ns since 1970 as in the capture; lengths in bytes; sequence numbers and TSNs in 64 bits,
 * relative to the flow's base (flows.base): raw = (base + value) mod 2^32. NWA_UNKNOWN stands for a number
 * that cannot be known (truncated packet, handshake outside the capture). Ids (flow, path, source, packet)
 * are row numbers of their tables, assigned in the order of first appearance.
 *
 * Threads: a handle may be used by one thread at a time; handles share nothing.
 */
#ifndef NETWARP_ANALYZER_H
#define NETWARP_ANALYZER_H

#include <stdbool.h>
#include <stdint.h>

#define NWA_ABI	    14
#define NWA_UNKNOWN INT64_MIN
#define NWA_NONE    UINT32_MAX

/*
 * field types, named as NumPy names them; b1 is a byte that holds 0 or 1, addr 16 bytes (IPv4 as
 * ::ffff:a.b.c.d)
 */
typedef int64_t nwa_i8;
typedef uint64_t nwa_u8;
typedef uint32_t nwa_u4;
typedef int32_t nwa_i4;
typedef uint16_t nwa_u2;
typedef uint8_t nwa_u1;
typedef uint8_t nwa_b1;

/* F(type, name): one value. P(type, name): two, one a direction. B(name): 16 bytes. */

/* one row a capture file */
#define NWA_SOURCE(F, P, B)                                                                                  \
	F(i8, first_ns) /* the earliest and the latest time, wherever in the file */                         \
	F(i8, last_ns)                                                                                       \
	F(u8, packets)	      /* whole records */                                                            \
	F(u8, file_bytes)     /* of the uncompressed capture, up to the end of the last whole record */      \
	F(u8, frame_bytes)    /* sum of the lengths on the wire */                                           \
	F(u8, truncated)      /* packets captured shorter than they were (snaplen) */                        \
	F(u8, backwards)      /* records whose time is before the record before */                           \
	F(u8, malformed)      /* packets with a length that lies; used up to there */                        \
	F(u8, fragments)      /* IP fragments */                                                             \
	F(u8, joined)	      /* ... of datagrams that became whole; the others belong to no flow */         \
	F(u8, reassembled)    /* datagrams that became whole */                                              \
	F(u8, set_back_ns)    /* NWA_GO_ON: by how much its clock was set back at least, in all */           \
	F(i8, set_back_at_ns) /* when last, as its times go on; 0: never */                                  \
	F(u8, untimed)	      /* records without a time: that of the record before stands in */              \
	F(u8, unseen_bytes)   /* SCTP: bytes behind the last chunk header that was captured (snaplen) */     \
	F(u8, copies)	      /* packets captured a second time: see NWA_MARK_COPY */                        \
	F(u8, tunnelled)      /* packets in a tunnel: what is inside is looked at, and counted below */      \
	F(u8, arp)                                                                                           \
	F(u8, ipv4)                                                                                          \
	F(u8, ipv6)                                                                                          \
	F(u8, discovery) /* ... of them neighbour and router discovery, and multicast listeners' reports */  \
	F(u8, other)	 /* frames that are none of these three */                                           \
	F(u8, bad_checksum) /* only counted under NWA_CHECKSUMS */                                           \
	F(u4, max_frame_bytes)                                                                               \
	F(u4, snaplen)                                                                                       \
	F(u2, link_type)                                                                                     \
	F(b1, nanosecond)                                                                                    \
	F(b1, sorted) /* NWA_SORT was asked for */                                                           \
	F(b1, big_endian)                                                                                    \
	F(b1, cut_off)	   /* the file ends in the middle of something: see nwa_trouble */                   \
	F(u1, compression) /* 0 none, 1 gzip, 2 zstd, 3 xz, 4 bzip2, 5 lz4 */

/* one row an interface: of a pcap file one, of a pcapng file one a description block */
#define NWA_INTERFACE(F, P, B)                                                                               \
	B(name) /* cut at 16 bytes; all 0: unknown */                                                        \
	F(u8, packets)                                                                                       \
	F(u8, frame_bytes)                                                                                   \
	F(u8, dropped) /* by the capturing program and its kernel, by its own account (dropped_known) */     \
	F(u4, snaplen) /* 0: none */                                                                         \
	F(u2, source)                                                                                        \
	F(u2, link_type)                                                                                     \
	F(u1, resolution) /* of its times: 10^-n s, or with the highest bit 2^-n s */                        \
	F(b1, readable)	  /* 0: its link type is unknown here; its packets are only counted, as `other` */   \
	F(b1, dropped_known)                                                                                 \
	F(b1, malformed) /* its description contradicts itself: used up to there */

/* one row an unordered address pair; direction 0 is from a to b, a the source of its first packet */
#define NWA_PATH(F, P, B)                                                                                    \
	B(a)                                                                                                 \
	B(b)                                                                                                 \
	P(u8, packets)                                                                                       \
	P(u8, ip_bytes)                                                                                      \
	P(u8, frame_bytes)                                                                                   \
	F(u1, family) /* 4 or 6 */

/*
 * one row a TCP connection or SCTP association; direction 0 is from the initiator (unknown: the first
 * sender)
 */
#define NWA_FLOW(F, P, B)                                                                                    \
	F(i8, first_ns)                                                                                      \
	F(i8, last_ns)                                                                                       \
	P(u4, base)	  /* SYN's sequence number, INIT's initial TSN; see base_known */                    \
	P(u4, tag)	  /* SCTP: the endpoint's own verification tag */                                    \
	P(u4, copies)	  /* packets captured a second time, among its packets (NWA_LEAVE_COPIES: not) */    \
	F(u4, path)	  /* of its first packet */                                                          \
	F(u4, restart_of) /* SCTP: the association this one restarted, or NWA_NONE */                        \
	P(u2, port)                                                                                          \
	P(u2, mss)	  /* TCP: MSS option, 0 = not seen */                                                \
	F(u1, protocol)	  /* 6 TCP, 132 SCTP */                                                              \
	P(b1, base_known) /* from a handshake; 0: the first number seen stands in */                         \
	P(b1, tag_known)                                                                                     \
	P(u1, window_shift)    /* TCP: window scale in force, 255 = not known */                             \
	P(b1, ended)	       /* that side sent FIN, RST, ABORT or SHUTDOWN */                              \
	P(b1, heard)	       /* the other side's packets answer this one's, captured or not */             \
	F(b1, initiator_known) /* SYN or INIT (or its answer) was seen */                                    \
	F(u1, path_direction)  /* the direction of `path` that the flow's direction 0 is */                  \
	F(b1, mptcp)	       /* a subflow: MP_CAPABLE or MP_JOIN in its SYN */

/* one row a flow and path it used: totals by direction of the flow */
#define NWA_FLOW_PATH(F, P, B)                                                                               \
	P(i8, first_ns)                                                                                      \
	P(i8, last_ns)                                                                                       \
	P(u8, packets)                                                                                       \
	P(u8, ip_bytes)                                                                                      \
	P(u8, frame_bytes)                                                                                   \
	P(u8, data_packets)                                                                                  \
	P(u8, payload_bytes)                                                                                 \
	P(u8, new_bytes)                                                                                     \
	P(u8, retransmitted_packets)                                                                         \
	P(u8, retransmitted_chunks)                                                                          \
	P(u8, data_chunks)                                                                                   \
	P(u8, sacks)                                                                                         \
	P(u8, heartbeats)                                                                                    \
	P(u8, heartbeat_acks)                                                                                \
	P(u8, unseen_bytes) /* SCTP: as in sources */                                                        \
	F(u4, flow)                                                                                          \
	F(u4, path)                                                                                          \
	F(u1, path_direction) /* the path's direction that the flow's direction 0 is */

/*
 * one row an address pair between which a tunnel of one kind runs: its IP packets and those within them, by
 * the path's directions
 */
#define NWA_TUNNEL(F, P, B)                                                                                  \
	P(u8, packets)                                                                                       \
	P(u8, outer_bytes) /* of the outermost IP packets, header included */                                \
	P(u8, inner_bytes) /* of the innermost ones */                                                       \
	F(u4, path)	   /* of the outermost IP packets */                                                 \
	F(u1, kind)	   /* NWA_TUNNEL_*, the outermost one where tunnels are in tunnels */

/*
 * one row an address pair, IP protocol and (UDP) pair of ports, of the IP packets that are in no flow; ports
 * by the path's ends a and b, the rest by its directions. Fragments count once their datagram is whole
 */
#define NWA_CONVERSATION(F, P, B)                                                                            \
	F(i8, first_ns)                                                                                      \
	F(i8, last_ns)                                                                                       \
	P(u8, packets)                                                                                       \
	P(u8, ip_bytes)                                                                                      \
	F(u4, path)                                                                                          \
	P(u2, port) /* 0: not UDP, or not captured */                                                        \
	F(u1, protocol)

/* one row a record, in the order of the merged capture: its row number + 1 is a tool's frame number */
#define NWA_PACKET(F, P, B)                                                                                  \
	F(i8, time_ns)                                                                                       \
	F(u4, flow)	     /* or NWA_NONE */                                                               \
	F(u4, path)	     /* or NWA_NONE */                                                               \
	F(u4, ip_bytes)	     /* the IP packet, header included */                                            \
	F(u4, frame_bytes)   /* on the wire, as the capture says */                                          \
	F(u4, payload_bytes) /* transport payload */                                                         \
	F(u4, new_bytes)     /* payload never seen before from that sender at this point, on any path */     \
	F(u2, source)                                                                                        \
	F(u2, interface)                                                                                     \
	F(u2, chunks)	 /* SCTP chunks bundled in it */                                                     \
	F(u2, marks)	 /* NWA_MARK_* */                                                                    \
	F(u1, protocol)	 /* of IP; 0 = not IP */                                                             \
	F(u1, direction) /* of the flow */                                                                   \
	F(u1, path_direction)                                                                                \
	F(b1, is_retransmission) /* carries anything that was seen before */                                 \
	F(b1, on_other_path)	 /* SCTP: ... and was first sent on another path */                          \
	F(b1, acks)		 /* TCP ACK flag, SCTP SACK chunk */                                         \
	F(u1, tos)		 /* of IP; its low two bits are ECN */

/* one row a TCP segment */
#define NWA_SEGMENT(F, P, B)                                                                                 \
	F(i8, time_ns)                                                                                       \
	F(i8, seq) /* of the first payload byte (of SYN: 0); first byte of the stream is 1 */                \
	F(i8, ack) /* NWA_UNKNOWN without ACK flag */                                                        \
	F(i8, dsn) /* MPTCP, 64 bit as on the wire: data sequence number of the first payload byte (options  \
		      has NWA_OPTION_MAPPED); of a segment without payload its 64-bit DATA_ACK               \
		      (NWA_OPTION_DATA_ACK) */                                                               \
	F(i8, window_bytes) /* scaled; NWA_UNKNOWN where the scale was not seen */                           \
	F(u4, flow)                                                                                          \
	F(u4, path)                                                                                          \
	F(u4, packet)                                                                                        \
	F(u4, payload_bytes)                                                                                 \
	F(u4, new_bytes)                                                                                     \
	F(u4, ip_bytes)                                                                                      \
	F(u4, frame_bytes)                                                                                   \
	F(u4, ts_val) /* timestamp option, see options */                                                    \
	F(u4, ts_ecr)                                                                                        \
	F(u4, first_block) /* in blocks, when sack_blocks > 0 */                                             \
	F(u2, window)	   /* as on the wire */                                                              \
	F(u2,                                                                                                \
	  flags) /* the 12 bits of the TCP header: FIN 1 SYN 2 RST 4 PSH 8 ACK 16 URG 32 ECE 64 CWR 128 */   \
	F(u2, options) /* NWA_OPTION_* present */                                                            \
	F(u2, ip_id)   /* IPv4: identification; IPv6: 0 */                                                   \
	F(u1, direction)                                                                                     \
	F(u1, sack_blocks)                                                                                   \
	F(u1, tos)                                                                                           \
	F(b1, is_retransmission) /* any sequence number (SYN and FIN have one) seen before from that sender  \
				  */                                                                         \
	F(b1, stray) /* its numbers are of no window of the connection: another one's, or a SYN that was not \
			the one acknowledged */                                                              \
	F(b1, probe) /* a keep-alive or a probe of a closed window, with a byte that is no data */

/* one row an SCTP chunk */
#define NWA_CHUNK(F, P, B)                                                                                   \
	F(i8, time_ns)                                                                                       \
	F(i8, tsn) /* DATA, I-DATA: its TSN; SACK, SHUTDOWN, FORWARD-TSN: the cumulative TSN; INIT,          \
		      INIT-ACK: 0 */                                                                         \
	F(u4, flow)                                                                                          \
	F(u4, path)                                                                                          \
	F(u4, packet)                                                                                        \
	F(u4, message) /* SSN, or MID of I-DATA; HEARTBEAT, HEARTBEAT ACK: hash of what the one echoes */    \
	F(u4, ppid)    /* I-DATA that is not a first fragment: its FSN */                                    \
	F(u4, user_bytes)                                                                                    \
	F(u4, detail) /* row in sacks or inits, or NWA_NONE; DATA, I-DATA with the begin of a message: its   \
			 first four bytes, of Diameter (PPID 46, or 0 at port 3868) the second four */       \
	F(u2, length) /* of the chunk, header included, padding not */                                       \
	F(u2, stream)                                                                                        \
	F(u1, type)                                                                                          \
	F(u1, flags)                                                                                         \
	F(u1, direction)                                                                                     \
	F(b1, is_retransmission) /* DATA: TSN seen before from that sender on any path */                    \
	F(b1, on_other_path)	 /* ... and its first transmission was on another one */                     \
	F(b1, truncated)	 /* not all its bytes were captured */

/* one row a SACK chunk */
#define NWA_SACK(F, P, B)                                                                                    \
	F(i8, time_ns)                                                                                       \
	F(i8, cumulative_tsn) /* in the other direction's numbers */                                         \
	F(u4, a_rwnd_bytes)                                                                                  \
	F(u4, flow)                                                                                          \
	F(u4, path)                                                                                          \
	F(u4, packet)                                                                                        \
	F(u4, first_block)    /* in blocks: gap blocks, then duplicate TSNs */                               \
	F(u2, gap_blocks)     /* as far as captured */                                                       \
	F(u2, duplicate_tsns) /* as far as captured */                                                       \
	F(u1, direction)                                                                                     \
	F(b1, incomplete) /* its counts claim more than the chunk, or the capture, holds */

/* one row a range reported as received: [start, end) in the other direction's numbers */
#define NWA_BLOCK(F, P, B)                                                                                   \
	F(i8, start)                                                                                         \
	F(i8, end) /* may be <= start when the sender lies */                                                \
	F(u4, packet)                                                                                        \
	F(u1, kind) /* 0 SCTP gap block, 1 SCTP duplicate TSN, 2 TCP SACK block */

/* one row an INIT or INIT-ACK */
#define NWA_INIT(F, P, B)                                                                                    \
	F(i8, time_ns)                                                                                       \
	F(u4, flow)                                                                                          \
	F(u4, path)                                                                                          \
	F(u4, packet)                                                                                        \
	F(u4, tag)                                                                                           \
	F(u4, a_rwnd_bytes)                                                                                  \
	F(u4, initial_tsn)   /* as on the wire */                                                            \
	F(u4, first_address) /* in addresses */                                                              \
	F(u2, addresses)                                                                                     \
	F(u2, streams_out)                                                                                   \
	F(u2, streams_in)                                                                                    \
	F(u1, direction)                                                                                     \
	F(b1, is_ack)

/* one row an address parameter of an INIT or INIT-ACK */
#define NWA_ADDRESS(F, P, B)                                                                                 \
	B(address)                                                                                           \
	F(u4, init)                                                                                          \
	F(u1, family)

/* one row an IP packet: what finds it again in a capture of another point */
#define NWA_IDENTITY(F, P, B)                                                                                \
	F(i8, time_ns)                                                                                       \
	F(u8, fingerprint) /* of what no router changes: addresses, protocol, length, IPv4 identification,   \
			      the first 64 bytes of transport without the checksum; not TTL, not TOS */      \
	F(u4, packet)                                                                                        \
	F(u4, flow) /* or NWA_NONE */                                                                        \
	F(u4, path)                                                                                          \
	F(u4, ip_bytes)                                                                                      \
	F(u1, path_direction)                                                                                \
	F(u1, hop_limit) /* TTL */

/* one row a whole datagram of UDP that carries no flow */
#define NWA_DATAGRAM(F, P, B)                                                                                \
	F(i8, time_ns)                                                                                       \
	F(u8,                                                                                                \
	  head) /* the first 8 bytes of payload, least significant first; 0 for those that are not there */  \
	F(u4, packet)                                                                                        \
	F(u4, path)                                                                                          \
	F(u4, ip_bytes)                                                                                      \
	F(u4, payload_bytes)                                                                                 \
	F(u2, source_port)                                                                                   \
	F(u2, destination_port)                                                                              \
	F(u1, path_direction)

/*
 * one row a QUIC packet that a datagram of UDP would hold if it is QUIC, by its header alone. Connection ids:
 * the first 16 bytes, and the 17th to the 20th (most significant first), 0 where it is shorter
 */
#define NWA_QUIC(F, P, B)                                                                                    \
	F(i8, time_ns)                                                                                       \
	B(dcid) /* of a short header: the 20 bytes behind the first, as far as they are there */             \
	B(scid)                                                                                              \
	F(u4, dcid_rest)                                                                                     \
	F(u4, scid_rest)                                                                                     \
	F(u4, version) /* 0 in a short header */                                                             \
	F(u4, packet)                                                                                        \
	F(u4, path)                                                                                          \
	F(u4, offset) /* in the payload of UDP */                                                            \
	F(u4, bytes)                                                                                         \
	F(u2, source_port)                                                                                   \
	F(u2, destination_port)                                                                              \
	F(u1, kind) /* NWA_QUIC_* */                                                                         \
	F(u1, dcid_bytes)                                                                                    \
	F(u1, scid_bytes)                                                                                    \
	F(b1, spin)                                                                                          \
	F(u1, path_direction)

/* one row an error cause of an ABORT or ERROR chunk (RFC 9260 3.3.10) */
#define NWA_CAUSE(F, P, B)                                                                                   \
	F(i8, time_ns)                                                                                       \
	F(u4, flow)                                                                                          \
	F(u4, path)                                                                                          \
	F(u4, packet)                                                                                        \
	F(u4, chunk) /* in chunks, or NWA_NONE where that table is not kept */                               \
	F(u2, code)                                                                                          \
	F(u2, length) /* of the cause, header included, padding not */                                       \
	F(u1, type)   /* of the chunk */                                                                     \
	F(u1, direction)

/* one row an ICMP or ICMPv6 error that quotes a packet of a TCP connection or SCTP association (RFC 792,
 * 4443) */
#define NWA_ICMP_ERROR(F, P, B)                                                                              \
	F(i8, time_ns)                                                                                       \
	B(source) /* who sent the error */                                                                   \
	F(u4, flow)                                                                                          \
	F(u4, packet)                                                                                        \
	F(u4, path)   /* of the quoted packet */                                                             \
	F(u4, number) /* of the quoted packet: TCP's sequence number, SCTP's verification tag */             \
	F(u4, mtu)    /* of "fragmentation needed" and "packet too big"; 0: unknown */                       \
	F(u1, family) /* 4 or 6 */                                                                           \
	F(u1, type)                                                                                          \
	F(u1, code)                                                                                          \
	F(u1, direction) /* of the quoted packet in its flow */

/* one row for each MPTCP option about the connection (RFC 8684 3): all but DSS without DATA_FIN */
#define NWA_MPTCP_OPTION(F, P, B)                                                                            \
	F(i8, time_ns)                                                                                       \
	F(u8, key)	/* MP_CAPABLE: its sender's, MP_FASTCLOSE: its receiver's; 0: unknown */             \
	F(u8, peer_key) /* MP_CAPABLE: its receiver's, 0: unknown */                                         \
	F(i8, dsn)	/* DATA_FIN: of its mapping (64 or 32 bit as sent), MP_FAIL; or NWA_UNKNOWN */       \
	B(address)	/* ADD_ADDR */                                                                       \
	F(u4, flow)                                                                                          \
	F(u4, path)                                                                                          \
	F(u4, packet)                                                                                        \
	F(u4, token)  /* MP_JOIN on a SYN: of the connection, at the host that is asked; 0: unknown */       \
	F(u2, port)   /* ADD_ADDR; 0: unknown */                                                             \
	F(u1, length) /* of the option */                                                                    \
	F(u1, subtype)                                                                                       \
	F(u1, version) /* MP_CAPABLE */                                                                      \
	F(u1, flags)   /* MP_CAPABLE, DSS, ADD_ADDR (1: an echo), MP_TCPRST, as on the wire */               \
	F(u1, address_id)                                                                                    \
	F(u1, family) /* ADD_ADDR: 4 or 6 */                                                                 \
	F(u1, direction)                                                                                     \
	F(b1, backup) /* MP_JOIN, MP_PRIO */

#define NWA_TABLES(T)                                                                                        \
	T(sources, source, NWA_SOURCE)                                                                       \
	T(interfaces, interface, NWA_INTERFACE)                                                              \
	T(paths, path, NWA_PATH)                                                                             \
	T(flows, flow, NWA_FLOW)                                                                             \
	T(flow_paths, flow_path, NWA_FLOW_PATH)                                                              \
	T(tunnels, tunnel, NWA_TUNNEL)                                                                       \
	T(conversations, conversation, NWA_CONVERSATION)                                                     \
	T(packets, packet, NWA_PACKET)                                                                       \
	T(segments, segment, NWA_SEGMENT)                                                                    \
	T(chunks, chunk, NWA_CHUNK)                                                                          \
	T(sacks, sack, NWA_SACK)                                                                             \
	T(blocks, block, NWA_BLOCK)                                                                          \
	T(inits, init, NWA_INIT)                                                                             \
	T(addresses, address, NWA_ADDRESS)                                                                   \
	T(identities, identity, NWA_IDENTITY)                                                                \
	T(causes, cause, NWA_CAUSE)                                                                          \
	T(mptcp_options, mptcp_option, NWA_MPTCP_OPTION)                                                     \
	T(datagrams, datagram, NWA_DATAGRAM)                                                                 \
	T(quic, quic, NWA_QUIC)                                                                              \
	T(icmp_errors, icmp_error, NWA_ICMP_ERROR)

#define NWA_F(type, name) nwa_##type name;
#define NWA_P(type, name) nwa_##type name[2];
#define NWA_B(name)	  uint8_t name[16];
#define NWA_STRUCT(table, row, FIELDS)                                                                       \
	struct nwa_##row {                                                                                   \
		FIELDS(NWA_F, NWA_P, NWA_B)                                                                  \
	};
NWA_TABLES(NWA_STRUCT)

#define NWA_ENUM(table, row, FIELDS) nwa_table_##table,
enum nwa_table { NWA_TABLES(NWA_ENUM) nwa_tables };

enum nwa_mark {
	NWA_MARK_TRUNCATED = 1,	    /* captured shorter than it was */
	NWA_MARK_MALFORMED = 2,	    /* a length in it lies; used up to there */
	NWA_MARK_FRAGMENT = 4,	    /* an IP fragment */
	NWA_MARK_VLAN = 8,	    /* one or more VLAN tags */
	NWA_MARK_UDP = 16,	    /* SCTP in UDP (RFC 6951) */
	NWA_MARK_BAD_CHECKSUM = 32, /* under NWA_CHECKSUMS: transport not looked at */
	NWA_MARK_REASSEMBLED =
	    64, /* the fragment that made its datagram whole: the transport's rows hang on it */
	NWA_MARK_UNTIMED = 128, /* no time of its own */
	NWA_MARK_TUNNEL =
	    256, /* in a tunnel: all numbers are those of the packet within, frame_bytes apart */
	/* captured a second time (a mirror port, before and after a router): equal but for the hop limit and
	 * the transport's checksum: copies.c */
	NWA_MARK_COPY = 512
};

enum nwa_tunnel_kind {
	NWA_TUNNEL_NONE,
	NWA_TUNNEL_IP,
	NWA_TUNNEL_GRE,
	NWA_TUNNEL_VXLAN,
	NWA_TUNNEL_GENEVE,
	NWA_TUNNEL_GTP_U
};

enum nwa_quic_kind {
	NWA_QUIC_INITIAL,
	NWA_QUIC_ZERO_RTT,
	NWA_QUIC_HANDSHAKE,
	NWA_QUIC_RETRY,
	NWA_QUIC_VERSION_NEGOTIATION,
	NWA_QUIC_OTHER_VERSION, /* only what RFC 8999 promises of all versions is known */
	NWA_QUIC_SHORT		/* 1-RTT */
};
#define NWA_QUIC_CID_UNKNOWN 255 /* dcid_bytes of a short header */

enum nwa_option_seen {
	NWA_OPTION_MSS = 1,
	NWA_OPTION_WINDOW_SCALE = 2,
	NWA_OPTION_SACK_PERMITTED = 4,
	NWA_OPTION_SACK = 8,
	NWA_OPTION_TIMESTAMP = 16,
	NWA_OPTION_MPTCP = 32,
	NWA_OPTION_MAPPED = 64,	  /* no option: dsn is known */
	NWA_OPTION_DATA_ACK = 128 /* dsn is the DATA_ACK of a segment without payload */
};

/* nwa_open's options */
enum nwa_open_option {
	NWA_CHECKSUMS =
	    1,	      /* verify TCP checksums and SCTP CRC32c; a bad packet is counted, not interpreted */
	NWA_SORT = 2, /* each file's records in the order of time; the file is held in memory */
	NWA_LEAVE_COPIES = 4, /* packets captured a second time belong to no flow */
	NWA_GO_ON = 16,	      /* where a file's clock was set back its times go on: see set_back_ns */
	NWA_UNFINISHED = 8,   /* a TCP checksum that is left to the network card counts as right */
	NWA_MOST_SHIFT = 24   /* bits 24 to 29: a compressed file is unpacked up to 2^n bytes; 0: whole */
};

struct nwa_field {
	const char *name;
	const char *type; /* NumPy's: i8, u4, b1, ...; S for 16 bytes */
	uint32_t offset;
	uint32_t values; /* 1, or 2 (one a direction) */
};

struct nwa;
#define NWA_API __attribute__((visibility("default")))

/* NWA_ABI of this library: native.py compares it with its own ABI. */
NWA_API uint32_t nwa_abi(void);
/* Name of a table (NULL: no such table), size of its row, its fields. */
NWA_API const char *nwa_describe(uint32_t table, uint32_t *row_bytes, uint32_t *count,
				 const struct nwa_field **fields);
/*
 * Open `count` files as one capture point. `wanted`: bit t set = keep the rows of table t (the tables
 * before `packets` are always kept). filter: only packets it matches are there at all, in libpcap's language
 * (NULL: all). stop_fd: when it can be read, reading ends (-1: never): for pipes. NULL = out of memory;
 * nwa_error() has any other failure.
 */
NWA_API struct nwa *nwa_open(const char *const *files, uint32_t count, uint32_t wanted, uint32_t options,
			     const char *filter, int32_t stop_fd);
/*
 * Before reading: the end with `port` chose `tag`, the one with `other_port` chose `other_tag`, of one SCTP
 * association whose handshake the capture lacks. false: no memory.
 */
NWA_API bool nwa_join(struct nwa *a, uint16_t port, uint32_t tag, uint16_t other_port, uint32_t other_tag);
/*
 * Read up to `packets` records (0: all), and no more once the rows of this call take NWA_ROW_BYTES for each
 * of those: a single packet may have thousands of chunks. 1: there is more; 0: the end; -1: see nwa_error.
 */
enum { NWA_ROW_BYTES = 256 };
NWA_API int nwa_read(struct nwa *a, uint64_t packets);
/* A table's rows: valid until the next nwa_read, nwa_clear or nwa_close. */
NWA_API const void *nwa_rows(const struct nwa *a, uint32_t table, uint64_t *rows);
/* Forget the rows of all tables but those that are always kept: for reading in parts, in constant memory. */
NWA_API void nwa_clear(struct nwa *a);
/* The error, or "" */
NWA_API const char *nwa_error(const struct nwa *a);
/* The reason why a file was not read to a clean end, or "" */
NWA_API const char *nwa_trouble(const struct nwa *a, uint32_t source);
NWA_API void nwa_close(struct nwa *a);

#endif
