// SPDX-License-Identifier: Apache-2.0
/* Part of seed.so. What it does and why: capture_slots.h. */
#include "capture_slots.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define FDS    1024

struct stream {
	uint32_t number; /* 0: this descriptor is none */
	uint32_t slot;	 /* 0: none */
	off_t bytes;
};

static struct stream streams[FDS]; /* by descriptor */
static uint32_t stream_count;
static struct capture_slots *slots; /* NULL: nothing is handed over */

static void __attribute__((constructor)) begin(void)
{
	struct stat memory;
	void *at;

	if (!getenv("NETWARP_CAPTURE_SLOTS") || fstat(CAPTURE_MEMORY_FD, &memory))
		return;
	at = mmap(NULL, (size_t)memory.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, CAPTURE_MEMORY_FD, 0);
	if (at == MAP_FAILED)
		return;
	/* the guest's programs begin as copies of its kernel */
	madvise(at, (size_t)memory.st_size, MADV_DONTFORK);
	fcntl(CAPTURE_SOCKET_FD, F_SETFD, FD_CLOEXEC);
	fcntl(CAPTURE_MEMORY_FD, F_SETFD, FD_CLOEXEC);
	slots = at;
}

static uint8_t *slot_at(uint32_t slot)
{
	return (uint8_t *)slots + CAPTURE_SLOTS_AT + (size_t)(slot - 1) * CAPTURE_SLOT_BYTES;
}

static int send_message(const struct slot_message *message)
{
	ssize_t n;

	do
		n = send(CAPTURE_SOCKET_FD, message, sizeof(*message), MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(*message) ? 0 : -1;
}

/* Wait until netwarp has read a slot; `flags` MSG_DONTWAIT: if it has. -1: it has not, or has gone. */
static int await_slot(int flags)
{
	char one;
	ssize_t n;

	do
		n = recv(CAPTURE_SOCKET_FD, &one, sizeof(one), flags);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(one) ? 0 : -1;
}

/* Give the stream a free slot; wait for one. */
static int take_slot(struct stream *stream)
{
	uint32_t i;

	while (await_slot(MSG_DONTWAIT) == 0)
		;
	for (;;) {
		for (i = 0; i < slots->count; i++)
			if (!__atomic_load_n(&slots->slot[i].stream, __ATOMIC_ACQUIRE)) {
				slots->slot[i].bytes = 0;
				slots->slot[i].stream = stream->number;
				stream->slot = i + 1;
				return 0;
			}
		if (await_slot(0))
			return -1;
	}
}

static int give_slot(struct stream *stream)
{
	struct slot_message message = {
	    .stream = stream->number, .slot = stream->slot, .bytes = slots->slot[stream->slot - 1].bytes};

	stream->slot = 0;
	return send_message(&message);
}

/* The name of a capture: what stands for the * of its path. Returns its length, 0 if the path is not one's.
 */
static size_t capture_name(const char *path, const char **name)
{
	const char *in = strstr(path, CAPTURE_PREFIX); /* some kernels put a further / before it */
	size_t len, suffix = strlen(CAPTURE_SUFFIX);

	if (!in || in > path + 1)
		return 0;
	*name = in + strlen(CAPTURE_PREFIX);
	len = strlen(*name);
	if (len <= suffix || len - suffix >= CAPTURE_NAME || strchr(*name, '/') ||
	    strcmp(*name + len - suffix, CAPTURE_SUFFIX))
		return 0;
	return len - suffix;
}

/* A stream keeps a slot that is not full: where they have more than half of the slots, the file is written.
 */
static void open_stream(int fd, const char *path)
{
	struct slot_message message = {.stream = stream_count + 1};
	const char *name;
	size_t len = capture_name(path, &name);

	if (!len || fd >= FDS || 2 * stream_count >= slots->count)
		return;
	memcpy(message.name, name, len);
	if (send_message(&message))
		return;
	streams[fd] = (struct stream){.number = ++stream_count};
}

EXPORT int open64(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list args;
	int fd;

	if (flags & (O_CREAT | O_TMPFILE)) {
		va_start(args, flags);
		mode = va_arg(args, mode_t);
		va_end(args);
	}
	fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
	if (fd >= 0 && slots && flags & O_CREAT)
		open_stream(fd, path);
	return fd;
}

EXPORT ssize_t pwrite64(int fd, const void *data, size_t len, off64_t offset)
{
	struct stream *stream = fd >= 0 && fd < FDS && streams[fd].number ? &streams[fd] : NULL;
	size_t left = len, part;
	uint32_t *held;

	if (!stream)
		return syscall(SYS_pwrite64, fd, data, len, offset);
	if (offset != stream->bytes) {
		errno = ESPIPE;
		return -1;
	}
	while (left > 0) {
		if (!stream->slot && take_slot(stream))
			goto gone;
		held = &slots->slot[stream->slot - 1].bytes;
		part = CAPTURE_SLOT_BYTES - *held < left ? CAPTURE_SLOT_BYTES - *held : left;
		memcpy(slot_at(stream->slot) + *held, (const uint8_t *)data + (len - left), part);
		*held += (uint32_t)part;
		left -= part;
		if (*held == CAPTURE_SLOT_BYTES && give_slot(stream))
			goto gone;
	}
	stream->bytes += (off_t)len;
	return (ssize_t)len;
gone:
	errno = EPIPE;
	return -1;
}

EXPORT int close(int fd)
{
	struct stream *stream = fd >= 0 && fd < FDS && streams[fd].number ? &streams[fd] : NULL;

	if (stream) {
		if (stream->slot)
			(void)give_slot(stream);
		*stream = (struct stream){0};
	}
	return (int)syscall(SYS_close, fd);
}
