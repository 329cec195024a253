// SPDX-License-Identifier: Apache-2.0
/* Documented in web_page.h. */
#include "web_page.h"

#include "../traffic/pattern.h"

#include <string.h>

/* In front of every request; numbers are of this machine's byte order: both ends run on it. */
struct head {
	uint64_t token;
	uint64_t bytes;
	uint32_t page, object;
	uint64_t check;
};

static uint64_t check_of(const struct head *head)
{
	return (head->bytes * UINT64_C(0x9e3779b97f4a7c15)) ^ ((uint64_t)head->page << 32) ^ head->object;
}

void web_request_write(const struct web_request *request, uint64_t token, uint8_t *to, size_t size)
{
	struct head head = {
	    .token = token, .bytes = request->bytes, .page = request->page, .object = request->object};

	head.check = check_of(&head);
	pattern_fill(to, size, (uint16_t)request->object, request->page, 0);
	memcpy(to, &head, sizeof(head));
}

bool web_request_read(struct web_request *request, uint64_t token, const uint8_t *from, size_t size)
{
	struct head head;
	size_t first;

	memcpy(&head, from, sizeof(head));
	if (head.token != token || head.check != check_of(&head) || !head.bytes ||
	    head.bytes > PATTERN_MESSAGE_MAX || head.object >= WEB_OBJECTS_MAX)
		return false;
	request->page = head.page;
	request->object = head.object;
	request->bytes = head.bytes;
	return pattern_check(from + sizeof(head), size - sizeof(head), (uint16_t)head.object, head.page,
			     sizeof(head), &first) == 0;
}
