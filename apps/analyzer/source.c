// SPDX-License-Identifier: Apache-2.0
/* Capture files as the reader's sources: opening, the next record of each, their rows and their interfaces'.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "link.h"
#include "source.h"
#include "filter.h"
#include "formats.h"
#include "sorted.h"

static void fill_interface(struct nwa_interface *to, const struct capture_interface *from)
{
	memcpy(to->name, from->name, sizeof(to->name));
	to->snaplen = from->snaplen;
	to->link_type = from->link_type;
	to->resolution = from->resolution;
	to->readable = packet_link_known(from->link_type);
	to->dropped = from->dropped;
	to->dropped_known = from->dropped_known;
	to->malformed = from->malformed;
}

/* Rows for the interfaces that the file has described since the last call. */
static bool take_interfaces(struct nwa *a, uint32_t source)
{
	struct table *t = &a->tables[nwa_table_interfaces];
	struct file *file = &a->files[source];
	const struct capture_file *capture = &file->capture;
	struct nwa_source *row = source_row(a, source);
	uint32_t *rows = realloc(file->interfaces, capture->interface_capacity * sizeof(*rows));

	if (!rows)
		return false;
	file->interfaces = rows;
	row->link_type = capture->link_type;
	row->snaplen = capture->snaplen;
	row->nanosecond = capture->nanosecond;
	for (uint32_t i = file->interface_count; i < capture->interface_count; i++) {
		struct nwa_interface *to;

		if (t->count >= UINT16_MAX)
			return false;
		to = table_push(t);
		if (t->full)
			return false;
		*to = (struct nwa_interface){.source = (uint16_t)source};
		fill_interface(to, &capture->interfaces[i]);
		file->interfaces[file->interface_count++] = (uint32_t)t->count - 1;
	}
	return true;
}

/* The file is at its end: its statistics of drops are known now. */
static void end_source(struct nwa *a, uint32_t source)
{
	struct file *file = &a->files[source];

	source_row(a, source)->cut_off = file->capture.cut_off;
	for (uint32_t i = 0; i < file->interface_count; i++)
		fill_interface(table_row(&a->tables[nwa_table_interfaces], file->interfaces[i]),
			       &file->capture.interfaces[i]);
}

/* Records out of order by more than any buffer holds are of a clock that was set back. */
static const int64_t SET_BACK_NS = 50000000;

static void go_on(struct file *file, struct nwa_source *row)
{
	int64_t time_ns = file->record.time_ns + file->ahead_ns;
	__int128 ahead;

	if (row->packets && time_ns < file->before_ns && file->before_ns - time_ns > SET_BACK_NS) {
		row->set_back_ns += (uint64_t)file->before_ns - (uint64_t)time_ns;
		ahead = (__int128)file->ahead_ns + file->before_ns - time_ns;
		/* with the last time there is it still fits 64 bits; who is set back by more gets that one */
		file->ahead_ns = ahead < CAPTURE_LAST_NS ? (int64_t)ahead : CAPTURE_LAST_NS - 1;
		time_ns = file->before_ns;
		row->set_back_at_ns = time_ns;
	}
	if (time_ns > CAPTURE_LAST_NS) /* set back again and again by a century */
		time_ns = CAPTURE_LAST_NS;
	file->record.time_ns = time_ns;
}

void source_advance(struct nwa *a, uint32_t source)
{
	struct file *file = &a->files[source];
	struct nwa_source *row = source_row(a, source);

	do
		file->there = file->sorted ? sorted_next(file->sorted, &file->record)
					   : capture_next(&file->capture, &file->record);
	while (file->there && a->filter && !filter_keeps(a, &file->record));
	if (file->capture.interface_count > file->interface_count && !take_interfaces(a, source)) {
		(void)reader_fail(
		    a, "", "out of memory, or more than 65535 interfaces: read fewer captures at once");
		file->there = false;
		return;
	}
	if (!file->there) {
		end_source(a, source);
		return;
	}
	if (a->options & NWA_GO_ON)
		go_on(file, row);
	row->untimed += file->record.untimed;
	row->file_bytes = file->capture.stream.taken;
	if (row->packets && file->record.time_ns < file->before_ns)
		row->backwards++;
	file->before_ns = file->record.time_ns;
	if (!row->packets || file->record.time_ns < row->first_ns)
		row->first_ns = file->record.time_ns;
	if (!row->packets || file->record.time_ns > row->last_ns)
		row->last_ns = file->record.time_ns;
	row->packets++;
	row->frame_bytes += file->record.length;
	row->truncated += file->record.captured < file->record.length;
	if (file->record.length > row->max_frame_bytes)
		row->max_frame_bytes = file->record.length;
}

int source_open(struct nwa *a, uint32_t source, const char *name, const struct memory_file *memory)
{
	struct capture_file *capture = &a->files[source].capture;
	struct nwa_source *row;
	char why[64];
	int fd = -1;

	if (!memory) {
		fd = open(name, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return reader_fail(a, name, strerror(errno));
	}
	if (!stream_open(&capture->stream, fd, a->stop_fd, memory))
		return reader_fail(a, name, "out of memory");
	if (a->options >> NWA_MOST_SHIFT)
		capture->stream.most = UINT64_C(1) << (a->options >> NWA_MOST_SHIFT & 63);
	if (!capture_start(capture))
		return reader_fail(a, name, capture->trouble);
	if (!capture->blocks && !packet_link_known(capture->link_type)) {
		snprintf(why, sizeof(why), "link type %u cannot be read", capture->link_type);
		return reader_fail(a, name, why);
	}
	if (a->filter && !capture->blocks && filter_compile(a, capture->link_type))
		return -1;
	row = table_push(&a->tables[nwa_table_sources]);
	*row =
	    (struct nwa_source){.file_bytes = capture->stream.taken,
				.big_endian = capture->swapped, /* this machine is little endian: see below */
				.compression = (uint8_t)capture->stream.kind};
	_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
		       "big_endian assumes a little-endian machine");
	if (a->tables[nwa_table_sources].full)
		return reader_fail(a, name, "out of memory");
	if (a->options & NWA_SORT) {
		a->files[source].sorted = sorted_read(capture);
		if (!a->files[source].sorted)
			return reader_fail(a, name, "out of memory: it cannot be sorted");
		row->sorted = true;
		row->backwards = a->files[source].sorted->backwards;
	}
	source_advance(a, source);
	return 0;
}

void source_close(struct file *file)
{
	capture_file_close(&file->capture);
	sorted_free(file->sorted);
	file->sorted = NULL;
	free(file->interfaces);
	file->interfaces = NULL;
}
