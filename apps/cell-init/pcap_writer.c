// SPDX-License-Identifier: Apache-2.0
/* Documented in pcap_writer.h. */
#include "pcap_writer.h"

#include "clock.h"
#include "files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINKTYPE_ETHERNET 1

struct file_header {
	uint32_t magic;
	uint16_t major;
	uint16_t minor;
	int32_t zone;
	uint32_t accuracy;
	uint32_t snaplen;
	uint32_t linktype;
};

struct record_header {
	uint32_t seconds;
	uint32_t nanoseconds;
	uint32_t captured;
	uint32_t length;
};

_Static_assert(sizeof(struct file_header) == PCAP_HEADER_BYTES, "layout of the file header");
_Static_assert(sizeof(struct record_header) == PCAP_RECORD_BYTES, "layout of a record header");

int pcap_writer_open(struct pcap_writer *pcap, int fd)
{
	struct file_header header = {
	    .magic = 0xa1b23c4d,
	    .major = 2,
	    .minor = 4,
	    .snaplen = PCAP_SNAPLEN,
	    .linktype = LINKTYPE_ETHERNET,
	};

	memset(pcap, 0, sizeof(*pcap));
	pcap->fd = fd;
	pcap->buf = malloc(PCAP_BUFFER_BYTES);
	if (!pcap->buf) {
		close(fd);
		pcap->fd = -1;
		errno = ENOMEM;
		return -1;
	}
	memcpy(pcap->buf, &header, sizeof(header));
	pcap->len = sizeof(header);
	return 0;
}

/* The first `len` bytes of the buffer, `records` of them, go to the file. */
static int write_out(struct pcap_writer *pcap, size_t len, uint64_t records)
{
	size_t done = 0, i;
	ssize_t n;

	while (done < len) {
		n = write(pcap->fd, pcap->buf + done, len - done);
		if (n > 0)
			done += (size_t)n;
		else if (n == 0 || errno != EINTR)
			goto fail;
	}
	if (pcap->drop_pages)
		files_drop_pages(pcap->fd);
	pcap->bytes += len;
	pcap->packets += records;
	pcap->held -= records;
	pcap->len -= len;
	memmove(pcap->buf, pcap->buf + len, pcap->len);
	for (i = 0; i < pcap->recent_count; i++)
		pcap->recent[i].offset -= len;
	return 0;
fail:
	pcap->error = n == 0 ? EIO : errno;
	pcap->broken = true;
	/* no half record: the file stays readable, with fewer records rather than a wrong one */
	if (ftruncate(pcap->fd, (off_t)pcap->bytes))
		pcap->bytes += done;
	return -1;
}

/* Write all but the `keep` latest records, before which a late one might still have to go. */
static int flush(struct pcap_writer *pcap, size_t keep)
{
	size_t gone = pcap->recent_count - keep;
	size_t len = keep ? pcap->recent[gone].offset : pcap->len;

	if (gone) {
		pcap->floor_ns = pcap->recent[gone - 1].t_ns;
		memmove(pcap->recent, pcap->recent + gone, keep * sizeof(pcap->recent[0]));
		pcap->recent_count = keep;
	}
	return write_out(pcap, len, pcap->held - keep);
}

/* Where a record of time t_ns belongs among the recent ones. */
static size_t place_of(const struct pcap_writer *pcap, int64_t t_ns)
{
	size_t i = pcap->recent_count;

	while (i > 0 && pcap->recent[i - 1].t_ns > t_ns)
		i--;
	return i;
}

static void remember(struct pcap_writer *pcap, size_t place, size_t offset, size_t bytes, int64_t t_ns)
{
	size_t i;

	for (i = place; i < pcap->recent_count; i++)
		pcap->recent[i].offset += bytes;
	if (pcap->recent_count == PCAP_WINDOW && place == 0) {
		pcap->floor_ns = t_ns;
		return;
	}
	if (pcap->recent_count == PCAP_WINDOW) {
		pcap->floor_ns = pcap->recent[0].t_ns;
		memmove(pcap->recent, pcap->recent + 1, (PCAP_WINDOW - 1) * sizeof(pcap->recent[0]));
		pcap->recent_count--;
		place--;
	}
	memmove(pcap->recent + place + 1, pcap->recent + place,
		(pcap->recent_count - place) * sizeof(pcap->recent[0]));
	pcap->recent_count++;
	pcap->recent[place].offset = offset;
	pcap->recent[place].t_ns = t_ns;
}

int pcap_writer_add(struct pcap_writer *pcap, int64_t t_ns, const void *data, uint32_t captured,
		    uint32_t length)
{
	struct record_header header = {
	    .seconds = (uint32_t)(t_ns / NS_PER_S),
	    .nanoseconds = (uint32_t)(t_ns % NS_PER_S),
	    .captured = captured,
	    .length = length,
	};
	size_t bytes = sizeof(header) + captured, place, offset;

	if (pcap->error)
		return -1;
	if (captured > PCAP_SNAPLEN) {
		pcap->error = EMSGSIZE;
		return -1;
	}
	while (pcap->len + bytes > PCAP_BUFFER_BYTES)
		if (flush(pcap, pcap->recent_count / 2))
			return -1;
	if (t_ns < pcap->floor_ns) {
		/* later than anything explains: refuse it rather than write it where it does not belong */
		pcap->error = EILSEQ;
		return -1;
	}
	place = place_of(pcap, t_ns);
	offset = place < pcap->recent_count ? pcap->recent[place].offset : pcap->len;
	memmove(pcap->buf + offset + bytes, pcap->buf + offset, pcap->len - offset);
	memcpy(pcap->buf + offset, &header, sizeof(header));
	memcpy(pcap->buf + offset + sizeof(header), data, captured);
	pcap->len += bytes;
	pcap->held++;
	remember(pcap, place, offset, bytes, t_ns);
	if (pcap->packets + pcap->held == 1 || t_ns < pcap->first_ns)
		pcap->first_ns = t_ns;
	if (t_ns > pcap->last_ns)
		pcap->last_ns = t_ns;
	if (pcap->recent[0].offset >= PCAP_WRITE_BYTES)
		return flush(pcap, pcap->recent_count);
	return 0;
}

void pcap_writer_close(struct pcap_writer *pcap)
{
	if (pcap->fd < 0)
		return;
	if (!pcap->broken)
		write_out(pcap, pcap->len, pcap->held);
	/* a guest's file is read, compressed and removed at once by netwarp, which syncs what it keeps */
	if (!pcap->drop_pages && fsync(pcap->fd))
		pcap->fsync_error = errno;
	close(pcap->fd);
	pcap->fd = -1;
	free(pcap->buf);
	pcap->buf = NULL;
}
