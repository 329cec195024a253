// SPDX-License-Identifier: Apache-2.0
/* Documented in ndjson.h. */
#include "ndjson.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void ndjson_init(struct ndjson *out, int fd)
{
	memset(out, 0, sizeof(*out));
	out->fd = fd;
}

void ndjson_free(struct ndjson *out)
{
	free(out->buf);
	out->buf = NULL;
	out->len = out->cap = 0;
}

/* Room for `more` bytes at the end of the line; NULL after a failure. */
static char *reserve(struct ndjson *out, size_t more)
{
	size_t cap = out->cap ? out->cap : 512;
	char *buf;

	if (out->error)
		return NULL;
	while (cap - out->len < more)
		cap *= 2;
	if (cap != out->cap) {
		buf = realloc(out->buf, cap);
		if (!buf) {
			out->error = ENOMEM;
			return NULL;
		}
		out->buf = buf;
		out->cap = cap;
	}
	return out->buf + out->len;
}

static void put(struct ndjson *out, const char *text, size_t len)
{
	char *to = reserve(out, len);

	if (!to)
		return;
	memcpy(to, text, len);
	out->len += len;
}

/* Length of the UTF-8 sequence at `p` (RFC 3629 section 4: no overlong forms, no surrogates), 0 if there is
 * none. */
static size_t utf8_length(const unsigned char *p, size_t left)
{
	unsigned char low = 0x80, high = 0xbf;
	size_t len, i;

	if (p[0] < 0x80)
		return 1;
	if (p[0] >= 0xc2 && p[0] <= 0xdf)
		len = 2;
	else if ((p[0] & 0xf0) == 0xe0)
		len = 3;
	else if (p[0] >= 0xf0 && p[0] <= 0xf4)
		len = 4;
	else
		return 0;
	if (left < len)
		return 0;
	if (p[0] == 0xe0)
		low = 0xa0;
	else if (p[0] == 0xed)
		high = 0x9f;
	else if (p[0] == 0xf0)
		low = 0x90;
	else if (p[0] == 0xf4)
		high = 0x8f;
	if (p[1] < low || p[1] > high)
		return 0;
	for (i = 2; i < len; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	return len;
}

static void put_text(struct ndjson *out, const char *text, size_t len)
{
	const unsigned char *p = (const unsigned char *)text;
	char escape[8];
	size_t i, n;

	put(out, "\"", 1);
	for (i = 0; i < len; i += n) {
		n = utf8_length(p + i, len - i);
		if (n == 0) {
			n = 1;
			put(out, "\\ufffd", 6);
		} else if (p[i] == '"' || p[i] == '\\') {
			escape[0] = '\\';
			escape[1] = (char)p[i];
			put(out, escape, 2);
		} else if (p[i] < 0x20 || p[i] == 0x7f) {
			put(out, escape, (size_t)snprintf(escape, sizeof(escape), "\\u%04x", p[i]));
		} else {
			put(out, text + i, n);
		}
	}
	put(out, "\"", 1);
}

/* Writes the comma and the key before a value. */
static void member(struct ndjson *out, const char *key)
{
	if (out->comma)
		put(out, ",", 1);
	out->comma = true;
	if (key) {
		put_text(out, key, strlen(key));
		put(out, ":", 1);
	}
}

void ndjson_begin(struct ndjson *out, const char *record)
{
	out->len = 0;
	out->comma = false;
	put(out, "{", 1);
	ndjson_str(out, "record", record);
}

int ndjson_end(struct ndjson *out)
{
	size_t done = 0;
	ssize_t n;

	put(out, "}\n", 2);
	while (!out->error && done < out->len) {
		n = write(out->fd, out->buf + done, out->len - done);
		if (n >= 0)
			done += (size_t)n;
		else if (errno != EINTR && !(out->retry && out->retry(out, errno)))
			out->error = errno;
	}
	out->len = 0;
	out->comma = false;
	if (!out->error)
		return 0;
	errno = out->error;
	return -1;
}

void ndjson_strn(struct ndjson *out, const char *key, const char *value, size_t len)
{
	member(out, key);
	put_text(out, value, len);
}

void ndjson_str(struct ndjson *out, const char *key, const char *value)
{
	if (value)
		ndjson_strn(out, key, value, strlen(value));
	else
		ndjson_null(out, key);
}

void ndjson_hex(struct ndjson *out, const char *key, const void *data, size_t len)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *p = data;
	char *to;
	size_t i;

	member(out, key);
	to = reserve(out, 2 * len + 2);
	if (!to)
		return;
	*to++ = '"';
	for (i = 0; i < len; i++) {
		*to++ = digits[p[i] >> 4];
		*to++ = digits[p[i] & 15];
	}
	*to = '"';
	out->len += 2 * len + 2;
}

void ndjson_int(struct ndjson *out, const char *key, int64_t value)
{
	char text[24];

	member(out, key);
	put(out, text, (size_t)snprintf(text, sizeof(text), "%" PRId64, value));
}

void ndjson_uint(struct ndjson *out, const char *key, uint64_t value)
{
	char text[24];

	member(out, key);
	put(out, text, (size_t)snprintf(text, sizeof(text), "%" PRIu64, value));
}

void ndjson_bool(struct ndjson *out, const char *key, bool value)
{
	member(out, key);
	put(out, value ? "true" : "false", value ? 4 : 5);
}

void ndjson_null(struct ndjson *out, const char *key)
{
	member(out, key);
	put(out, "null", 4);
}

void ndjson_array_begin(struct ndjson *out, const char *key)
{
	member(out, key);
	put(out, "[", 1);
	out->comma = false;
}

void ndjson_array_end(struct ndjson *out)
{
	put(out, "]", 1);
	out->comma = true;
}

void ndjson_object_begin(struct ndjson *out, const char *key)
{
	member(out, key);
	put(out, "{", 1);
	out->comma = false;
}

void ndjson_object_end(struct ndjson *out)
{
	put(out, "}", 1);
	out->comma = true;
}
