/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ndjson: one JSON object a line, written whole and at once.
 *
 * A line is built in memory and leaves in one write(2) at ndjson_end(), so that a process that is killed
 * leaves whole lines only, and a line costs one system call (25 to 65 us of wall time in a UML guest).
 *
 *	struct ndjson out;
 *
 *	ndjson_init(&out, STDOUT_FILENO);
 *	ndjson_begin(&out, "connected");	// {"record":"connected"
 *	ndjson_int(&out, "t_ns", now);
 *	ndjson_array_begin(&out, "peer");
 *	ndjson_str(&out, NULL, "10.0.0.1");	// no key inside an array
 *	ndjson_array_end(&out);
 *	ndjson_end(&out);			// } and a line feed; 0, or -1 and errno
 *
 * Nothing but ndjson_end() reports errors: the first one (ENOMEM, or that of write(2)) stays in .error and
 * every later line is dropped, so a file never continues after a hole.
 */
#ifndef NETWARP_NDJSON_H
#define NETWARP_NDJSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ndjson {
	int fd;	   /* borrowed: the caller opens and closes it */
	int error; /* errno of the first failure, else 0 */
	bool comma;
	/* Asked when write(2) fails, before the error counts: true = room was made, go on with the same line.
	 */
	bool (*retry)(struct ndjson *out, int error);
	char *buf;
	size_t len;
	size_t cap;
};

void ndjson_init(struct ndjson *out, int fd);
void ndjson_free(struct ndjson *out);

/* Begin a line; its first member is "record". An unfinished line is dropped. */
void ndjson_begin(struct ndjson *out, const char *record);
/* Write the line. Returns 0, or -1 with errno set. */
int ndjson_end(struct ndjson *out);

/* Members. `key` is NULL inside an array. Text that is not UTF-8 is written as U+FFFD, a byte each. */
void ndjson_str(struct ndjson *out, const char *key, const char *value); /* NULL: null */
void ndjson_strn(struct ndjson *out, const char *key, const char *value, size_t len);
void ndjson_hex(struct ndjson *out, const char *key, const void *data, size_t len);
void ndjson_int(struct ndjson *out, const char *key, int64_t value);
void ndjson_uint(struct ndjson *out, const char *key, uint64_t value);
void ndjson_bool(struct ndjson *out, const char *key, bool value);
void ndjson_null(struct ndjson *out, const char *key);
void ndjson_array_begin(struct ndjson *out, const char *key);
void ndjson_array_end(struct ndjson *out);
void ndjson_object_begin(struct ndjson *out, const char *key);
void ndjson_object_end(struct ndjson *out);

#endif
