// SPDX-License-Identifier: Apache-2.0
/* Documented in packet_program.h. */
#include "packet_program.h"

#include "record.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOG_BYTES 65536

enum { PROGRAM, SETTINGS, STATE };

static size_t sizes[BPF_MAX][3]; /* of the two maps' values; 0: not loaded */
static bool wants_t0[BPF_MAX];

static int descriptor(int index, int what)
{
	return BPF_FD_BASE + 3 * index + what;
}

static int sys_bpf(int command, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, command, attr, sizeof(*attr));
}

static int refused(struct cell *cell, const char *what)
{
	int error = errno;

	cell_fail_errno(cell, error, "%s", what);
	if (error == EPERM || error == EACCES || error == ENOSYS)
		cell->reason = REASON_UNSUPPORTED;
	return -1;
}

/* To the number that messages and programs name. */
static int keep(struct cell *cell, int fd, int number)
{
	int kept = dup3(fd, number, O_CLOEXEC), error = errno;

	close(fd);
	return kept < 0 ? cell_fail_errno(cell, error, "dup") : 0;
}

static int write_map(struct cell *cell, int fd, const struct bytes *value)
{
	uint32_t key = 0;
	union bpf_attr attr = {.map_fd = (uint32_t)fd};

	attr.key = (uintptr_t)&key;
	attr.value = (uintptr_t)value->data;
	return sys_bpf(BPF_MAP_UPDATE_ELEM, &attr) ? refused(cell, "cannot write a map of a packet program")
						   : 0;
}

static int make_map(struct cell *cell, int index, int what, const struct bytes *value)
{
	union bpf_attr attr = {
	    .map_type = BPF_MAP_TYPE_ARRAY,
	    .key_size = sizeof(uint32_t),
	    .value_size = (uint32_t)value->len,
	    .max_entries = 1,
	};
	int fd = sys_bpf(BPF_MAP_CREATE, &attr);

	if (fd < 0)
		return refused(cell, "this kernel gives us no map for a packet program");
	sizes[index][what] = value->len;
	return keep(cell, fd, descriptor(index, what)) ? -1 : write_map(cell, descriptor(index, what), value);
}

/* The maps are named 0 (settings) and 1 (state) in the step: their descriptors take that place. */
static void name_maps(struct bpf_insn *list, size_t count, int index)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (list[i].code == (BPF_LD | BPF_DW | BPF_IMM) && list[i].src_reg == BPF_PSEUDO_MAP_VALUE)
			list[i].imm = descriptor(index, list[i].imm ? STATE : SETTINGS);
}

/* The verifier's own words, its last line, behind the error. */
static int rejected(struct cell *cell, union bpf_attr *attr)
{
	int error = errno; /* before calloc() */
	char *log = calloc(1, LOG_BYTES), *line;

	if (!log || error == EPERM || error == ENOSYS) {
		free(log);
		errno = error;
		return refused(cell, "this kernel lets us load no packet program");
	}
	attr->log_buf = (uintptr_t)log;
	attr->log_size = LOG_BYTES;
	attr->log_level = 1;
	sys_bpf(BPF_PROG_LOAD, attr);
	while ((line = strrchr(log, '\n')) && line[1] == '\0')
		*line = '\0';
	cell_fail_errno(cell, error, "the kernel's verifier refuses the packet program: %.300s",
			line ? line + 1 : log);
	free(log);
	return -1;
}

int packet_program_load(struct cell *cell, const struct step_bpf *step)
{
	struct bpf_insn *list = malloc(step->program.len);
	size_t count = step->program.len / sizeof(*list);
	union bpf_attr attr = {.prog_type = BPF_PROG_TYPE_SCHED_CLS, .insn_cnt = (uint32_t)count};
	int fd;

	if (!list)
		return cell_fail(cell, "out of memory");
	memcpy(list, step->program.data, step->program.len);
	wants_t0[step->index] = step->t0;
	if (make_map(cell, step->index, SETTINGS, &step->settings) ||
	    make_map(cell, step->index, STATE, &step->state)) {
		free(list);
		return -1;
	}
	name_maps(list, count, step->index);
	attr.insns = (uintptr_t)list;
	attr.license = (uintptr_t) "Apache-2.0";
	fd = sys_bpf(BPF_PROG_LOAD, &attr);
	if (fd < 0)
		rejected(cell, &attr);
	free(list);
	return fd < 0 ? -1 : keep(cell, fd, descriptor(step->index, PROGRAM));
}

int packet_programs_begin(struct cell *cell, int64_t t0_monotonic_ns)
{
	int index, result = 0;

	for (index = 0; index < BPF_MAX && !result; index++) {
		struct bytes value;

		if (!wants_t0[index])
			continue;
		value = (struct bytes){.data = calloc(1, sizes[index][STATE]), .len = sizes[index][STATE]};
		if (!value.data)
			return cell_fail(cell, "out of memory");
		memcpy(value.data, &t0_monotonic_ns, sizeof(t0_monotonic_ns));
		result = write_map(cell, descriptor(index, STATE), &value);
		free(value.data);
	}
	return result;
}

int packet_program_settings(struct cell *cell, const struct step_bpf_settings *step)
{
	if (step->data.len != sizes[step->index][SETTINGS])
		return cell_fail(cell, "packet program %d has settings of %zu bytes", step->index,
				 sizes[step->index][SETTINGS]);
	return write_map(cell, descriptor(step->index, SETTINGS), &step->data);
}

static int record_map(struct cell *cell, int index, int what, const char *name)
{
	char *value = calloc(1, sizes[index][what]);
	union bpf_attr attr = {.map_fd = (uint32_t)descriptor(index, what)};
	uint32_t key = 0;
	int result;

	if (!value)
		return cell_fail(cell, "out of memory");
	attr.key = (uintptr_t)&key;
	attr.value = (uintptr_t)value;
	result = sys_bpf(BPF_MAP_LOOKUP_ELEM, &attr);
	if (result)
		cell_fail_errno(cell, errno, "cannot read packet program %d's %s", index, name);
	else
		ndjson_hex(&cell->out, name, value, sizes[index][what]);
	free(value);
	return result;
}

int packet_program_record(struct cell *cell, const struct step_bpf_record *step)
{
	int result;

	record_begin_step(cell, "bpf");
	ndjson_int(&cell->out, "index", step->index);
	result = record_map(cell, step->index, SETTINGS, "settings");
	if (!result)
		result = record_map(cell, step->index, STATE, "state");
	return record_end_line(cell) || result ? -1 : 0;
}
