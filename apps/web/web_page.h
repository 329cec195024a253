/* SPDX-License-Identifier: Apache-2.0 */
/*
 * web_page: requests, and the bytes of an object. An object is a message of the payload pattern
 * (traffic/pattern.h): stream = its number in the page, message = the page's number.
 */
#ifndef NETWARP_WEB_PAGE_H
#define NETWARP_WEB_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEB_REQUEST_MIN	    40
#define WEB_REQUEST_MAX	    16384
#define WEB_CONNECTIONS_MAX 32
#define WEB_OBJECTS_MAX	    257 /* the HTML, and NUMBER_LIST_MAX objects */

struct web_request {
	uint32_t page, object;
	uint64_t bytes;
};

/* `size` bytes at `to`: the request, of this run's token, and pattern behind it. */
void web_request_write(const struct web_request *request, uint64_t token, uint8_t *to, size_t size);
/* False: it is none of this run. */
bool web_request_read(struct web_request *request, uint64_t token, const uint8_t *from, size_t size);

#endif
