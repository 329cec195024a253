/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ndjson: writes one JSON object per line.
 *
 * A line is built in memory and written by one write(2) in ndjson_end(). So a process that is killed leaves
 * whole lines only, and a line costs one system call (25 to 65 us of wall time in a UML guest).
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
 * Only ndjson_end() reports errors. The first one (ENOMEM, or that of write(2)) stays in .error, and every
 *later line is dropped: no line can be missing in the middle of a file.
 */
#ifndef NETWARP_NDJSON_H
#define NETWARP_NDJSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ndjson {
	int fd;	    /* borrowed: the caller opens and closes it */
	int error;  /* errno of the first failure, else 0 */
	bool comma; /* a comma must precede the next member */
	/* Called when write(2) fails, NULL: not. If it returns true (it made room), the same line is written
	 * again */
	bool (*retry)(struct ndjson *out, int error);
	char *buf;
	size_t len;
	size_t cap;
};

void ndjson_init(struct ndjson *out, int fd);
void ndjson_free(struct ndjson *out);

/*
 * Begin a line whose first member is "record": the given name. A line that was begun and not ended is
 * dropped.
 */
void ndjson_begin(struct ndjson *out, const char *record);
/* Write the line. Returns 0, or -1 with errno set. */
int ndjson_end(struct ndjson *out);

/*
 * Members. `key` is NULL inside an array. Each byte of a text that is not valid UTF-8 is written as U+FFFD.
 */
void ndjson_str(struct ndjson *out, const char *key, const char *value); /* value NULL: null */
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
