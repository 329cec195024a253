// SPDX-License-Identifier: Apache-2.0
/* Documented in netlink.h. */
#include "netlink.h"

#include "namespace.h"
#include "netlink_socket.h"
#include "record.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/genetlink.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DUMP_TRIES 8

static int sockets[NS_MAX]; /* of NETLINK_ROUTE, one a namespace; 0: not open */
static uint32_t sequence;   /* of the last request */

/* The namespace's own socket, kept out of the way of the descriptors that messages name. */
static int request_socket(struct cell *cell, int ns)
{
	int fd;

	if (sockets[ns])
		return sockets[ns];
	fd = netlink_open(cell, ns, NETLINK_ROUTE);
	if (fd < 0)
		return -1;
	sockets[ns] = fcntl(fd, F_DUPFD_CLOEXEC, BPF_FD_BASE + 3 * BPF_MAX);
	close(fd);
	if (sockets[ns] < 0) {
		sockets[ns] = 0;
		return cell_fail_errno(cell, errno, "dup");
	}
	return sockets[ns];
}

/* Reads an acknowledgement of each of the requests numbered from `first` on. */
static int acknowledgements(struct cell *cell, int fd, uint32_t first, int pending)
{
	struct message_error error;
	struct nlmsghdr header;
	size_t next, at;
	const char *reply;
	int result = 0;
	ssize_t n;

	/* netlink answers while we send: every ack is there, none is waited for */
	while (pending > 0) {
		n = netlink_receive(cell, fd, &reply);
		if (n < 0)
			return -1;
		if (n == 0)
			return cell_fail(cell, "%d netlink requests were not acknowledged", pending);
		for (next = at = 0; message_next(reply, (size_t)n, &next, &header); at = next) {
			if (header.nlmsg_type != NLMSG_ERROR || header.nlmsg_seq - first > sequence - first)
				continue;
			pending--;
			error = message_error(reply + at, &header);
			if (error.error && !result)
				result = netlink_refused(cell, &error, header.nlmsg_seq - first + 1);
		}
	}
	return result;
}

/* Sends requests and reads an acknowledgement of each. */
static int exchange(struct cell *cell, int fd, const struct bytes *data)
{
	uint32_t first = sequence + 1;
	const char *why;
	int pending;

	pending = message_check(data->data, data->len, NLM_F_ACK, &why);
	sequence += (uint32_t)pending;
	message_number(data->data, data->len, first);
	return netlink_send(cell, fd, data->data, data->len) ? -1
							     : acknowledgements(cell, fd, first, pending);
}

struct batch_edge {
	struct nlmsghdr header;
	struct nfgenmsg generic;
};

/*
 * Requests of nf_tables come as one batch between two messages. Those are not acknowledged: kernels before
 * 6.10 never did it.
 */
static int nftables_batch(struct cell *cell, const struct step_netlink *step)
{
	struct batch_edge edge = {
	    .header = {.nlmsg_len = sizeof(edge),
		       .nlmsg_type = NFNL_MSG_BATCH_BEGIN,
		       .nlmsg_flags = NLM_F_REQUEST},
	    .generic = {.version = NFNETLINK_V0, .res_id = htons(NFNL_SUBSYS_NFTABLES)},
	};
	int fd = netlink_open(cell, step->ns, NETLINK_NETFILTER), pending, result = -1;
	uint32_t first = sequence + 2;
	char *batch = malloc(step->data.len + 2 * sizeof(edge));
	const char *why;

	if (fd < 0)
		goto out;
	if (!batch) {
		cell_fail(cell, "out of memory");
		goto out;
	}
	pending = message_check(step->data.data, step->data.len, NLM_F_ACK, &why);
	edge.header.nlmsg_seq = first - 1;
	memcpy(batch, &edge, sizeof(edge));
	message_number(step->data.data, step->data.len, first);
	memcpy(batch + sizeof(edge), step->data.data, step->data.len);
	sequence = first + (uint32_t)pending;
	edge.header.nlmsg_type = NFNL_MSG_BATCH_END;
	edge.header.nlmsg_seq = sequence;
	memcpy(batch + sizeof(edge) + step->data.len, &edge, sizeof(edge));
	/* what refuses the batch as a whole answers the number of its beginning */
	if (!netlink_send(cell, fd, batch, step->data.len + 2 * sizeof(edge)))
		result = acknowledgements(cell, fd, first - 1, pending);
out:
	if (result) /* the requests are right: what is missing is the kernel's or the privilege */
		cell->reason = REASON_UNSUPPORTED;
	free(batch);
	if (fd >= 0)
		close(fd);
	return result;
}

/* Parts of netfilter other than nf_tables, as connection tracking, take requests one by one. */
static int netfilter_request(struct cell *cell, const struct step_netlink *step)
{
	struct nlmsghdr first;
	int fd, result;

	memcpy(&first, step->data.data, sizeof(first));
	if (NFNL_SUBSYS_ID(first.nlmsg_type) == NFNL_SUBSYS_NFTABLES)
		return nftables_batch(cell, step);
	fd = netlink_open(cell, step->ns, NETLINK_NETFILTER);
	if (fd < 0)
		return -1;
	result = exchange(cell, fd, &step->data);
	if (result)
		cell->reason = REASON_UNSUPPORTED;
	close(fd);
	return result;
}

/* The number this kernel gave a generic netlink family. */
static int family_id(struct cell *cell, int fd, const char *name)
{
	struct {
		struct nlmsghdr header;
		struct genlmsghdr generic;
		struct nlattr attribute;
		char name[GENL_NAMSIZ];
	} query = {
	    .header = {.nlmsg_len = sizeof(query), .nlmsg_type = GENL_ID_CTRL, .nlmsg_flags = NLM_F_REQUEST},
	    .generic = {.cmd = CTRL_CMD_GETFAMILY, .version = 1},
	    .attribute = {.nla_len = sizeof(query.attribute) + sizeof(query.name),
			  .nla_type = CTRL_ATTR_FAMILY_NAME},
	};
	struct nlmsghdr header;
	size_t next, at;
	const char *reply;
	ssize_t n;
	int number;

	if (strlen(name) >= sizeof(query.name))
		return cell_fail(cell, "'%.40s' is too long for a generic netlink family", name);
	memcpy(query.name, name, strlen(name));
	query.header.nlmsg_seq = ++sequence;
	if (netlink_send(cell, fd, (const char *)&query, sizeof(query)))
		return -1;
	while ((n = netlink_receive(cell, fd, &reply)) > 0)
		for (next = at = 0; message_next(reply, (size_t)n, &next, &header); at = next) {
			number = message_family(reply + at, &header);
			if (number >= 0)
				return number;
		}
	return n < 0 ? -1 : cell_fail(cell, "this kernel has no generic netlink family '%s'", name);
}

static int generic_request(struct cell *cell, const struct step_netlink *step)
{
	int fd = netlink_open(cell, step->ns, NETLINK_GENERIC), family, result = -1;

	if (fd < 0)
		return -1;
	family = family_id(cell, fd, step->family);
	if (family >= 0) {
		message_type(step->data.data, step->data.len, (uint16_t)family);
		result = exchange(cell, fd, &step->data);
	}
	close(fd);
	return result;
}

int netlink_request(struct cell *cell, const struct step_netlink *step)
{
	int fd;

	if (step->family)
		return generic_request(cell, step);
	if (step->netfilter)
		return netfilter_request(cell, step);
	fd = request_socket(cell, step->ns);
	return fd < 0 ? -1 : exchange(cell, fd, &step->data);
}

int netlink_adopt(struct cell *cell, const struct step_adopt *step)
{
	struct {
		struct nlmsghdr header;
		struct ifinfomsg link;
		struct rtattr to;
		int to_fd;
		struct rtattr number;
		int ifindex;
	} move = {
	    .header = {.nlmsg_len = sizeof(move),
		       .nlmsg_type = RTM_NEWLINK,
		       .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK},
	    .to = {.rta_len = RTA_LENGTH(sizeof(move.to_fd)), .rta_type = IFLA_NET_NS_FD},
	    .to_fd = NS_FD_BASE + step->ns,
	    .number = {.rta_len = RTA_LENGTH(sizeof(move.ifindex)), .rta_type = IFLA_NEW_IFINDEX},
	    .ifindex = step->ifindex,
	};
	struct bytes data = {.data = (char *)&move, .len = sizeof(move)};
	int fd = netlink_open(cell, NS_OWN, NETLINK_ROUTE), result = -1;

	if (fd < 0)
		return -1;
	move.link.ifi_index = (int)if_nametoindex(step->iface);
	if (move.link.ifi_index)
		result = exchange(cell, fd, &data);
	else
		cell_fail_errno(cell, errno, "this machine's interface %s", step->iface);
	close(fd);
	return result;
}

/* Reads one dump into the open record. 0 done, 1 interrupted by a change (ask again), -1 failed. */
static int read_dump(struct cell *cell, int fd)
{
	bool done = false, changed = false;
	struct message_error error;
	struct nlmsghdr header;
	size_t next, at;
	const char *reply;
	ssize_t n;

	while (!done) {
		n = netlink_receive(cell, fd, &reply);
		if (n < 0)
			return -1;
		if (n == 0)
			return cell_fail(cell, "the netlink dump has no end");
		ndjson_hex(&cell->out, NULL, reply, (size_t)n);
		for (next = at = 0; message_next(reply, (size_t)n, &next, &header); at = next) {
			if (header.nlmsg_seq != sequence)
				continue;
			changed |= (header.nlmsg_flags & NLM_F_DUMP_INTR) != 0;
			done |= header.nlmsg_type == NLMSG_DONE || header.nlmsg_type == NLMSG_ERROR;
			if (header.nlmsg_type != NLMSG_ERROR)
				continue;
			error = message_error(reply + at, &header);
			if (error.error)
				return netlink_refused(cell, &error, 1);
		}
	}
	return changed;
}

int netlink_dump(struct cell *cell, const struct step_dump *step)
{
	int fd = step->netfilter ? netlink_open(cell, step->ns, NETLINK_NETFILTER)
				 : request_socket(cell, step->ns);
	int tries, result = 1;

	if (fd < 0)
		return -1;
	for (tries = 0; result == 1 && tries < DUMP_TRIES; tries++) {
		message_number(step->data.data, step->data.len, ++sequence);
		result = -1;
		if (netlink_send(cell, fd, step->data.data, step->data.len))
			break;
		record_begin_step(cell, "dump");
		ndjson_str(&cell->out, "label", step->label);
		ndjson_int(&cell->out, "ns", step->ns);
		ndjson_array_begin(&cell->out, "replies");
		result = read_dump(cell, fd);
		ndjson_array_end(&cell->out);
	}
	if (step->netfilter)
		close(fd);
	if (result < 0)
		return -1;
	if (result == 1)
		return cell_fail(cell, "the dump was interrupted by changes %d times", DUMP_TRIES);
	return record_end_line(cell);
}
