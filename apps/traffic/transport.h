/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transport: the interface between the programs `sender` and `receiver` and the transport protocols. Only
 * tcp.c (TCP and MPTCP) and sctp.c contain code for one protocol.
 *
 * A flow is one connection or association. Functions return 0, or -1 after flow_error() has reported the
 * failure. Times are CLOCK_MONOTONIC in ns.
 */
#ifndef NETWARP_TRANSPORT_H
#define NETWARP_TRANSPORT_H

#include "account.h"
#include "config.h"
#include "heartbeat_list.h"
#include "ndjson.h"
#include "schedule.h"
#include "waiter.h"

#include <stdbool.h>
#include <stdint.h>

#define EXIT_CANNOT 77 /* exit status: this kernel lacks the protocol or option; the cell is UNSUPPORTED */

/*
 * Bytes per TCP write or SCTP batch, at most (except one larger message). Another value makes other
 * captures.
 */
#define BATCH_BYTES 262144

/* The result of sending or receiving. */
enum flow_io {
	FLOW_WAIT,    /* wait until the socket is ready */
	FLOW_MORE,    /* call again without waiting */
	FLOW_DONE,    /* the kernel has accepted all payload */
	FLOW_CLOSED,  /* the peer closed the connection in order */
	FLOW_ABORTED, /* the peer aborted the connection */
	FLOW_GAVE_UP, /* the transport gave the connection up: all its retransmissions were unacknowledged */
	FLOW_FAILED   /* flow_error() has reported why */
};

struct flow {
	const struct config *config;
	unsigned int role;
	const struct transport_ops *ops;
	struct ndjson out;
	struct waiter waiter;
	int fd; /* socket of the connection; -1 while listening */
	int listen_fd;
	int status; /* exit status of the program: 0, 1 or EXIT_CANNOT */
	bool established;
	int64_t t0_ns;		  /* T0 on CLOCK_MONOTONIC (of an end that sends) */
	struct schedule schedule; /* of what is sent */
	uint64_t sent_bytes;	  /* payload that the kernel has accepted */
	uint64_t sent_messages;
	struct account account;	  /* of what arrives */
	struct message_list peer; /* of --peer-messages */
	struct heartbeat_list heartbeats;
	int64_t read_ns; /* time after the last read that returned payload; with bulk, the time at which it
			    arrived */
	int64_t first_ns, last_ns; /* first and last arrival of new payload; 0: none yet */
	uint64_t unique_before;	   /* account.unique_bytes at last_ns */
	bool bulk;		   /* reads may block in the kernel (bulk.h) */
	bool signals_in;	   /* bulk_read_some() has left signals unblocked */
	unsigned int faults;	   /* pieces of payload with wrong bytes */
	unsigned int refused;	   /* connections aborted because the peer is not of this flow (receiver) */
	bool stranger;		   /* the connected peer's payload has another token (receiver) */
	void *state;		   /* private to the transport: made by open(), freed by close() */
};

struct transport_ops {
	const char *name;
	bool reads_in_bulk; /* after the first payload recv may block in the kernel (bulk.h) */
	bool listens_on;    /* MPTCP: the listening socket stays open for further subflows */
	/* Create the socket, set all options, bind it. A receiver's becomes flow->listen_fd, a sender's
	 * flow->fd. */
	int (*open)(struct flow *flow);
	int (*listen)(struct flow *flow);
	/* Returns FLOW_WAIT: no connection yet. FLOW_DONE: flow->fd is the connection. */
	enum flow_io (*accept)(struct flow *flow);
	int (*connect)(struct flow *flow);
	/* Returns FLOW_WAIT: not yet. FLOW_DONE: connected, and options that need a connection are set. */
	enum flow_io (*connected)(struct flow *flow);
	/* Pass payload to the kernel until it accepts no more or flow->sent_bytes is `limit`. */
	enum flow_io (*send)(struct flow *flow, uint64_t limit);
	/* Read and account the payload that has arrived; log the kernel's notifications. */
	enum flow_io (*recv)(struct flow *flow);
	/* Set *acknowledged to the amount acknowledged so far, in a unit of the transport's own; the stall
	 * deadline only checks that it changes. False: unknown. */
	bool (*progress)(struct flow *flow, uint64_t *acknowledged);
	/* Write the members of a record `sample`. */
	void (*sample)(struct flow *flow);
	/* Whether all addresses of flow->fd's peer are in --peer. */
	bool (*admits)(struct flow *flow);
	/* Write the members `local` and `peer`: address lists. */
	void (*addresses)(struct flow *flow);
	/* Write the members of the record `in_force`, and of the member `kernel` of the record `summary`. */
	void (*in_force)(struct flow *flow);
	void (*counters)(struct flow *flow);
	/* SCTP only: make the address the primary path. As setsockopt(2). */
	int (*set_primary)(struct flow *flow, const union address *address);
	/* SCTP only: send a HEARTBEAT to the address, or, if it has no family, let the kernel send them. As
	 * setsockopt(2). */
	int (*heartbeat)(struct flow *flow, const union address *address);
	/* Close the sending direction: the kernel still sends what is queued. */
	int (*shutdown)(struct flow *flow);
	/* Close the connection, in order or by an abort, and free the state. */
	void (*close)(struct flow *flow, bool abort);
};

/* Whether this end sends payload, and whether it receives any: with --duplex both ends do both. */
static inline bool flow_sends(const struct flow *flow)
{
	return flow->role == ROLE_SENDER || flow->config->duplex;
}

static inline bool flow_receives(const struct flow *flow)
{
	return flow->role == ROLE_RECEIVER || flow->config->duplex;
}

extern const struct transport_ops tcp_ops, mptcp_ops, sctp_ops, udp_ops;

/* Write the records `connected` and `in_force`; sets flow->established. */
void flow_connected(struct flow *flow, int64_t t_ns);

/*
 * Free the flow's memory. Returns the exit status: 1 if the output could not be written, else flow->status.
 */
int flow_exit(struct flow *flow);

/*
 * Write a record `error`: the operation `what`, errno and its text, `detail` (may be NULL). Sets
 * flow->status, unless it is set: EXIT_CANNOT where the errno says that the kernel lacks the protocol or
 * option, else 1. Returns -1.
 */
int flow_error(struct flow *flow, const char *what, int error, const char *detail);

/*
 * Classify an error on the connection: FLOW_ABORTED: the peer is gone. FLOW_GAVE_UP, with a record
 * `gave_up`: the transport gave up (ETIMEDOUT), which is behaviour to be measured under a fault and no
 * failure. Else FLOW_FAILED, after flow_error() with `detail`.
 */
enum flow_io flow_lost(struct flow *flow, const char *what, int error, const char *detail);

/* setsockopt() of an int, read back: a value that differs is an error. 0, or -1 after flow_error(). */
int flow_set(struct flow *flow, int fd, int level, int option, int value, const char *what);
/* getsockopt() of an int. */
int flow_get(int fd, int level, int option, int *value);

/*
 * Create a non-blocking socket with SO_RCVBUF and SO_SNDBUF as configured. Returns it, or -1 after
 * flow_error().
 */
int flow_socket(struct flow *flow, int family, int type, int protocol);
/*
 * Set SO_RCVBUF or SO_SNDBUF: `force_option` (CAP_NET_ADMIN) first, else `option`. A buffer of another size
 * is an error.
 */
int flow_buffer(struct flow *flow, int fd, int option, int force_option, int64_t bytes, const char *what);

/* The port to bind to; 0: any. */
uint16_t flow_own_port(const struct flow *flow);
/* An end that connects or listens again must not meet what is left of its last connection. */
int flow_reuse_port(struct flow *flow, int fd);

/* Implementations of struct transport_ops that TCP, MPTCP and SCTP share. */
int flow_listen(struct flow *flow);
enum flow_io flow_accept(struct flow *flow);
/* Abort the connection (SO_LINGER with 0 s) and close its socket. */
void flow_abort(struct flow *flow);
/* Close both sockets; the connection in order, or by an abort (SO_LINGER with 0 s). */
void flow_close(struct flow *flow, bool abort);

/* Write the members `local` and `peer` of a socket with one address at each end. */
void flow_write_addresses(struct flow *flow);

/* The error of a sender that receives payload: its peer is not netwarp's receiver. */
#define FLOW_UNEXPECTED "the peer sends payload: it is no receiver"

/*
 * Write the members rcvbuf_bytes and sndbuf_bytes: half of what getsockopt() returns, since the kernel
 * doubles the value that SO_RCVBUF and SO_SNDBUF set (socket(7)).
 */
void flow_write_buffers(struct flow *flow, int fd);

/*
 * What to do after a read that returned less than it could: FLOW_WAIT; or FLOW_MORE when the last event
 * reported the end of the connection or an error that has not been read yet: the socket is edge triggered
 * and would not wake us again.
 */
enum flow_io flow_after_short_read(const struct flow *flow);
/* The result after EINTR: a process that was stopped (SIGSTOP) and goes on reads again. */
enum flow_io flow_interrupted(void);

/* Check the token of the flow's first payload, when --token was given. 0, or -1 after flow_error(). */
int flow_recognise(struct flow *flow, const uint8_t *data, size_t len, uint16_t stream, uint64_t number);

/* Read --messages, --peer-messages and --heartbeats. 0, or -1 after flow_error(). */
int flow_read_messages(struct flow *flow);
/* Write the members of a record `summary` about what arrived: the accounting, first_t_ns and last_t_ns. */
void flow_write_arrived(struct flow *flow);

/*
 * Call after each account_bytes() or account_message() with its result: records faults and the first byte,
 * sets last_ns. 0, or -1 after flow_error().
 */
int flow_received(struct flow *flow, int result, const struct account_fault *fault);

#endif
