// SPDX-License-Identifier: Apache-2.0
/* Documented in capture_file.h. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "capture_file.h"

struct capture_interface *capture_file_interface_new(struct capture_file *p)
{
	struct capture_interface *interfaces;
	uint32_t capacity = p->interface_capacity ? p->interface_capacity * 2 : 1;

	if (p->interface_count >= CAPTURE_INTERFACES_MAX)
		return NULL;
	if (p->interface_count == p->interface_capacity) {
		interfaces = realloc(p->interfaces, capacity * sizeof(*interfaces));
		if (!interfaces)
			return NULL;
		p->interfaces = interfaces;
		p->interface_capacity = capacity;
	}
	interfaces = &p->interfaces[p->interface_count++];
	*interfaces = (struct capture_interface){.resolution = 6, .multiply = 1000};
	return interfaces;
}

void capture_file_close(struct capture_file *p)
{
	stream_close(&p->stream);
	free(p->interfaces);
	p->interfaces = NULL;
	p->interface_count = p->interface_capacity = 0;
}

bool capture_file_stop(struct capture_file *p, const char *format, ...)
{
	va_list list;

	p->cut_off = true;
	va_start(list, format);
	vsnprintf(p->trouble, sizeof(p->trouble), format, list);
	va_end(list);
	return false;
}

bool capture_file_end(struct capture_file *p, const char *inside)
{
	const char *trouble = p->stream.trouble;
	size_t left = stream_left(&p->stream);

	if (left)
		return capture_file_stop(p, "cut off in a %s (%zu bytes of it are there)%s%s", inside, left,
					 trouble ? "; " : "", trouble ? trouble : "");
	if (trouble)
		return capture_file_stop(p, "cut off after a whole record: %s", trouble);
	return false;
}
