// SPDX-License-Identifier: Apache-2.0
/* What is set and read back: sysctls and offloads. */
#include "cell.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* Blanks and tabs at both ends off. */
static char *trimmed(char *text, size_t len)
{
	while (len && strchr(" \t\n", text[len - 1]))
		len--;
	text[len] = '\0';
	return text + strspn(text, " \t");
}

static ssize_t write_then_read(const char *path, const char *value, char *text, size_t room)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = write(fd, value, strlen(value));
	close(fd);
	if (n < 0)
		return -1;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, text, room);
	close(fd);
	return n;
}

int setting_sysctl(struct cell *cell, const struct step *step)
{
	const char *name = step_text(step, "path"), *value = step_text(step, "value");
	char path[512], text[4096];
	ssize_t n;

	/* /proc/sys/net shows the namespace of whoever looks it up */
	if (ns_enter(cell, (int)step_int(step, "ns", 0)))
		return -1;
	snprintf(path, sizeof(path), "/proc/sys/%.400s", name);
	n = write_then_read(path, value, text, sizeof(text) - 1);
	if (n < 0)
		return cell_fail_errno(cell, errno, "sysctl %s = %s", name, value);
	ndjson_begin(&cell->out, "sysctl");
	ndjson_int(&cell->out, "step", step->line);
	ndjson_int(&cell->out, "ns", step_int(step, "ns", 0));
	ndjson_str(&cell->out, "path", name);
	ndjson_str(&cell->out, "asked", value);
	ndjson_str(&cell->out, "value", trimmed(text, (size_t)n));
	return record_end_line(cell);
}

/* In the order that the kernel wants: what others depend on comes last. */
static const struct {
	const char *name;
	uint32_t set;
	uint32_t get;
} offloads[] = {
    {"tso", ETHTOOL_STSO, ETHTOOL_GTSO},      {"gso", ETHTOOL_SGSO, ETHTOOL_GGSO},
    {"gro", ETHTOOL_SGRO, ETHTOOL_GGRO},      {"sg", ETHTOOL_SSG, ETHTOOL_GSG},
    {"tx", ETHTOOL_STXCSUM, ETHTOOL_GTXCSUM}, {"rx", ETHTOOL_SRXCSUM, ETHTOOL_GRXCSUM},
};
#define OFFLOADS (sizeof(offloads) / sizeof(offloads[0]))

static int offload_ioctl(int fd, const char *iface, uint32_t command, uint32_t *data)
{
	struct ethtool_value value = {.cmd = command, .data = *data};
	struct ifreq request = {.ifr_data = (void *)&value};
	int result;

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", iface);
	result = ioctl(fd, SIOCETHTOOL, &request);
	*data = value.data;
	return result;
}

int setting_offload(struct cell *cell, const struct step *step)
{
	const char *iface = step_text(step, "iface");
	uint32_t value;
	int fd, result = -1;
	size_t i;

	if (strlen(iface) >= IFNAMSIZ)
		return cell_fail(cell, "interface name %s is too long", iface);
	if (ns_enter(cell, (int)step_int(step, "ns", 0)))
		return -1;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return cell_fail_errno(cell, errno, "socket");
	for (i = 0; i < OFFLOADS; i++) {
		value = 0;
		/* what a device does not have cannot be switched: the value read back decides */
		if (offload_ioctl(fd, iface, offloads[i].set, &value) && errno != EOPNOTSUPP) {
			cell_fail_errno(cell, errno, "cannot switch %s of %s off", offloads[i].name, iface);
			goto out;
		}
	}
	ndjson_begin(&cell->out, "offload");
	ndjson_int(&cell->out, "step", step->line);
	ndjson_int(&cell->out, "ns", step_int(step, "ns", 0));
	ndjson_str(&cell->out, "iface", iface);
	for (i = 0; i < OFFLOADS; i++) {
		value = 0;
		if (offload_ioctl(fd, iface, offloads[i].get, &value)) {
			cell_fail_errno(cell, errno, "cannot read %s of %s", offloads[i].name, iface);
			goto out;
		}
		ndjson_int(&cell->out, offloads[i].name, value != 0);
	}
	result = record_end_line(cell);
out:
	close(fd);
	return result;
}
