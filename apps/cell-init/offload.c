// SPDX-License-Identifier: Apache-2.0
/* Documented in offload.h. */
#include "offload.h"

#include "namespace.h"
#include "record.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define FEATURES_MAX 256
#define BLOCKS_MAX   (FEATURES_MAX / 32)

/* The device's features: one bit each, and its name. */
struct features {
	uint32_t count;
	char names[FEATURES_MAX][ETH_GSTRING_LEN];
};

static const struct {
	const char *name;
	uint32_t get;
} summary[] = {
    {"tx", ETHTOOL_GTXCSUM}, {"rx", ETHTOOL_GRXCSUM}, {"sg", ETHTOOL_GSG},
    {"tso", ETHTOOL_GTSO},   {"gso", ETHTOOL_GGSO},   {"gro", ETHTOOL_GGRO},
};

static int ethtool(int fd, const char *iface, void *command)
{
	struct ifreq request = {.ifr_data = command};

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", iface);
	return ioctl(fd, SIOCETHTOOL, &request);
}

/* Whether this feature makes a capture differ from a wire. The kernel's names: net/ethtool/common.c. */
static bool changes_packets(const char *name)
{
	static const char *const words[] = {"segmentation", "checksum", "csum", "scatter-gather",
					    "gso",	    "gro",	"lro"};
	char text[ETH_GSTRING_LEN + 1];
	size_t i;

	/* a name that fills its field has no NUL byte */
	snprintf(text, sizeof(text), "%.*s", ETH_GSTRING_LEN, name);
	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strstr(text, words[i]))
			return true;
	return false;
}

static int read_names(int fd, const char *iface, struct features *features)
{
	struct {
		struct ethtool_sset_info info;
		uint32_t count;
	} set = {.info = {.cmd = ETHTOOL_GSSET_INFO, .sset_mask = UINT64_C(1) << ETH_SS_FEATURES}};
	struct {
		struct ethtool_gstrings head;
		char names[FEATURES_MAX][ETH_GSTRING_LEN];
	} strings = {.head = {.cmd = ETHTOOL_GSTRINGS, .string_set = ETH_SS_FEATURES}};

	if (ethtool(fd, iface, &set))
		return -1;
	if (!set.info.sset_mask || set.count > FEATURES_MAX) {
		errno = EOVERFLOW;
		return -1;
	}
	strings.head.len = set.count;
	if (ethtool(fd, iface, &strings))
		return -1;
	features->count = set.count;
	memcpy(features->names, strings.names, sizeof(features->names));
	return 0;
}

static int switch_off(int fd, const char *iface, const struct features *features)
{
	struct {
		struct ethtool_sfeatures head;
		struct ethtool_set_features_block block[BLOCKS_MAX];
	} set = {.head = {.cmd = ETHTOOL_SFEATURES, .size = (features->count + 31) / 32}};
	uint32_t i;

	for (i = 0; i < features->count; i++)
		if (changes_packets(features->names[i]))
			set.block[i / 32].valid |= 1u << i % 32;
	/* a positive result: some cannot be switched off. What is read back counts. */
	return ethtool(fd, iface, &set) < 0 ? -1 : 0;
}

/* The names that are still on, as the member `left_on` of the open record. */
static int record_left(struct cell *cell, int fd, const char *iface, const struct features *features)
{
	struct {
		struct ethtool_gfeatures head;
		struct ethtool_get_features_block block[BLOCKS_MAX];
	} get = {.head = {.cmd = ETHTOOL_GFEATURES, .size = (features->count + 31) / 32}};
	uint32_t i;

	if (ethtool(fd, iface, &get))
		return -1;
	ndjson_array_begin(&cell->out, "left_on");
	for (i = 0; i < features->count; i++)
		if (changes_packets(features->names[i]) && get.block[i / 32].active & 1u << i % 32)
			ndjson_strn(&cell->out, NULL, features->names[i],
				    strnlen(features->names[i], ETH_GSTRING_LEN));
	ndjson_array_end(&cell->out);
	return 0;
}

static int record_summary(struct cell *cell, int fd, const char *iface)
{
	struct ethtool_value value;
	size_t i;

	for (i = 0; i < sizeof(summary) / sizeof(summary[0]); i++) {
		value = (struct ethtool_value){.cmd = summary[i].get};
		if (ethtool(fd, iface, &value))
			return -1;
		ndjson_int(&cell->out, summary[i].name, value.data != 0);
	}
	return 0;
}

int offload_switch_off(struct cell *cell, const struct step_offload *step)
{
	const char *iface = step->iface;
	struct features features;
	int fd, result = -1;

	if (strlen(iface) >= IFNAMSIZ)
		return cell_fail(cell, "interface name %s is too long", iface);
	if (namespace_enter(cell, step->ns))
		return -1;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return cell_fail_errno(cell, errno, "socket");
	if (read_names(fd, iface, &features) || switch_off(fd, iface, &features)) {
		cell_fail_errno(cell, errno, "cannot switch the offloads of %s off", iface);
		goto out;
	}
	record_begin_step(cell, "offload");
	ndjson_int(&cell->out, "ns", step->ns);
	ndjson_str(&cell->out, "iface", iface);
	if (record_summary(cell, fd, iface) || record_left(cell, fd, iface, &features)) {
		cell_fail_errno(cell, errno, "cannot read the offloads of %s", iface);
		goto out;
	}
	result = record_end_line(cell);
out:
	close(fd);
	return result;
}
