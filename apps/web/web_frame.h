/* SPDX-License-Identifier: Apache-2.0 */
/*
 * web_frame: the heads of HTTP/2's DATA frames (RFC 9113 4.1, 6.1), in which objects take turns on one TCP
 * connection. Object n is HTTP/2's stream 2n + 1. Nothing else of HTTP/2 is here: neither its settings,
 * header compression nor flow control.
 */
#ifndef NETWARP_WEB_FRAME_H
#define NETWARP_WEB_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEB_FRAME_HEAD	    9
#define WEB_FRAME_BYTES_MAX 16777215

struct web_frame {
	uint8_t head[WEB_FRAME_HEAD];
	size_t head_left; /* of its head, still to be sent or read */
	uint64_t left;	  /* of its object's bytes */
	uint32_t object;  /* sent: the job's index; read: the object's number */
};

/* The head of a frame of `bytes` of an object; last: the object's last. */
void web_frame_write(struct web_frame *frame, uint32_t object, uint64_t bytes, bool last);
/* False: no DATA frame. */
bool web_frame_read(struct web_frame *frame);

#endif
