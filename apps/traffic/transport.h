/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transport: the interface between `sender`, `receiver` and a protocol. Only tcp.c (TCP and MPTCP) and sctp.c
 * depend on a protocol.
 *
 * A flow is one connection or association. Functions return 0, or -1 after flow_error() has reported what
 * failed.
 */
#ifndef NETWARP_TRANSPORT_H
#define NETWARP_TRANSPORT_H

#include "account.h"
#include "config.h"
#include "ndjson.h"
#include "schedule.h"
#include "waiter.h"

#include <stdbool.h>
#include <stdint.h>

#define EXIT_CANNOT 77 /* this kernel cannot */

/* The most a TCP write or an SCTP batch hands over at once. */
#define BATCH_BYTES 262144

/* The result of sending or receiving. */
enum flow_io {
	FLOW_WAIT,    /* wait for the socket */
	FLOW_MORE,    /* there is more to do at once */
	FLOW_DONE,    /* all payload was handed over */
	FLOW_CLOSED,  /* the peer has closed in order */
	FLOW_ABORTED, /* the peer has aborted */
	FLOW_GAVE_UP, /* the transport has: nothing was acknowledged for as long as it tries */
	FLOW_FAILED   /* flow_error() has reported why */
};

struct flow {
	const struct config *config;
	unsigned int role;
	const struct transport_ops *ops;
	struct ndjson out;
	struct waiter waiter;
	int fd; /* of the connection; while listening: -1 */
	int listen_fd;
	int status; /* exit status to be: 0, 1 or EXIT_CANNOT */
	bool established;
	int64_t t0_ns;		  /* T0 on CLOCK_MONOTONIC (sender) */
	struct schedule schedule; /* sender */
	uint64_t sent_bytes;	  /* payload the kernel has taken */
	uint64_t sent_messages;
	struct account account; /* receiver */
	int64_t read_ns; /* CLOCK_MONOTONIC after the last read that gave something; of its arrival if bulk */
	int64_t first_ns, last_ns; /* of new payload; 0: none yet */
	uint64_t unique_before;	   /* account.unique_bytes at last_ns */
	bool bulk;		   /* reads may block until there is much (bulk.h) */
	unsigned int faults;	   /* pieces of payload with wrong bytes */
	unsigned int refused;	   /* connections that were refused: not of this flow (receiver) */
	bool stranger;		   /* the connected peer does not know the token (receiver) */
	void *state;		   /* the transport's own */
};

struct transport_ops {
	const char *name;
	bool reads_in_bulk; /* once payload flows, recv may block in the kernel (bulk.h) */
	bool listens_on;    /* MPTCP: more subflows find the connection by its listener */
	/* Make the socket, set every option, bind it. Receiver: flow->listen_fd, sender: flow->fd. */
	int (*open)(struct flow *flow);
	int (*listen)(struct flow *flow);
	/* FLOW_WAIT: no connection yet. FLOW_DONE: flow->fd is the connection. */
	enum flow_io (*accept)(struct flow *flow);
	int (*connect)(struct flow *flow);
	/* FLOW_WAIT: not yet. FLOW_DONE: connected, options that need a connection are set. */
	enum flow_io (*connected)(struct flow *flow);
	/* Hand over payload, at most `limit` bytes in all (flow->sent_bytes), until the kernel has enough. */
	enum flow_io (*send)(struct flow *flow, uint64_t limit);
	/* Take and account what has arrived; log the kernel's notifications. */
	enum flow_io (*recv)(struct flow *flow);
	/* Acknowledged so far, in the transport's own unit: it changes as long as the peer is there. False:
	 * unknown. */
	bool (*progress)(struct flow *flow, uint64_t *acknowledged);
	/* Members of a `sample` record. */
	void (*sample)(struct flow *flow);
	/* Whether flow->fd's peer has no address but those of --peer. */
	bool (*admits)(struct flow *flow);
	/* The members `local` and `peer`: address lists. */
	void (*addresses)(struct flow *flow);
	/* Members of `in_force` and of the summary's `kernel`. */
	void (*in_force)(struct flow *flow);
	void (*counters)(struct flow *flow);
	int (*set_primary)(struct flow *flow, const union address *address);
	/* No more payload: send what is queued, then close in order. */
	int (*shutdown)(struct flow *flow);
	/* Close the connection, in order or by an abort, and free the state. */
	void (*close)(struct flow *flow, bool abort);
};

extern const struct transport_ops tcp_ops, mptcp_ops, sctp_ops;

/* The records `connected` and `in_force`. */
void flow_connected(struct flow *flow, int64_t t_ns);

/* Free what is left; the exit status, 1 if the output could not be written. */
int flow_exit(struct flow *flow);

/*
 * An `error` record: what was tried, errno and its text, detail (may be NULL). Sets flow->status: 77 for what
 * the kernel does not have, else 1. Returns -1.
 */
int flow_error(struct flow *flow, const char *what, int error, const char *detail);

/*
 * What an error on the established connection means: the peer is gone; the transport gave up, which is its
 * own behaviour under a fault and no failure (a `gave_up` record); or a failure (flow_error() with detail).
 */
enum flow_io flow_lost(struct flow *flow, const char *what, int error, const char *detail);

/* setsockopt() of an int that must work, and be in force afterwards; -1 after flow_error(). */
int flow_set(struct flow *flow, int fd, int level, int option, int value, const char *what);
int flow_get(int fd, int level, int option, int *value);

/* The socket, non-blocking, with SO_RCVBUF and SO_SNDBUF as asked; -1 after flow_error(). */
int flow_socket(struct flow *flow, int family, int type, int protocol);
/* Set a buffer exactly, by force where that is allowed. */
int flow_buffer(struct flow *flow, int fd, int option, int force_option, int64_t bytes, const char *what);

/* Functions of struct transport_ops that both protocols share. */
int flow_listen(struct flow *flow);
enum flow_io flow_accept(struct flow *flow);
/* Close the sockets, the connection in order or by an abort (SO_LINGER 0). */
void flow_close(struct flow *flow, bool abort);

/* A sender that is sent payload did not meet a receiver of ours. */
#define FLOW_UNEXPECTED "the peer sends payload: it is no receiver"

/* The members rcvbuf_bytes and sndbuf_bytes: half of what the kernel reports, the value SO_RCVBUF takes. */
void flow_write_buffers(struct flow *flow, int fd);

/*
 * What to do after a read that took less than it could: wait, or read on because the last event reported an
 * end or an error that has not been read yet (the socket is edge triggered).
 */
enum flow_io flow_after_short_read(const struct flow *flow);

/* The first payload with a --token: 0, or -1 after flow_error() when it is not of that token. */
int flow_recognise(struct flow *flow, const uint8_t *data, size_t len, uint16_t stream, uint64_t number);

/* Payload has been accounted (`result` of account_*): report faults and the first byte. */
int flow_received(struct flow *flow, int result, const struct account_fault *fault);

#endif
