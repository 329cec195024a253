// SPDX-License-Identifier: Apache-2.0
/* Documented in web_frame.h. */
#include "web_frame.h"

#define DATA	   0
#define END_STREAM 1

void web_frame_write(struct web_frame *frame, uint32_t object, uint64_t bytes, bool last)
{
	uint32_t stream = 2 * object + 1;
	unsigned int i;

	for (i = 0; i < 3; i++)
		frame->head[i] = (uint8_t)(bytes >> (16 - 8 * i));
	frame->head[3] = DATA;
	frame->head[4] = last ? END_STREAM : 0;
	for (i = 0; i < 4; i++)
		frame->head[5 + i] = (uint8_t)(stream >> (24 - 8 * i));
	frame->head_left = WEB_FRAME_HEAD;
	frame->left = bytes;
}

bool web_frame_read(struct web_frame *frame)
{
	uint32_t stream = 0;
	unsigned int i;

	frame->left = 0;
	for (i = 0; i < 3; i++)
		frame->left = frame->left << 8 | frame->head[i];
	for (i = 5; i < WEB_FRAME_HEAD; i++)
		stream = stream << 8 | frame->head[i];
	frame->object = stream / 2;
	return frame->head[3] == DATA && stream % 2 == 1 && frame->left > 0;
}
