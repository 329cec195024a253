// SPDX-License-Identifier: Apache-2.0
/* What these functions do and promise: agent.h. */
#include "agent.h"

struct segment_ends agent_ends(enum agent_side side, const struct segment *segment)
{
	const struct segment_ends *ends = &segment->ends;

	if (side == FROM_FIXED)
		return *ends;
	return (struct segment_ends){ends->destination, ends->source, ends->destination_port,
				     ends->source_port};
}

bool agent_same_ends(const struct segment_ends *a, const struct segment_ends *b)
{
	return a->source == b->source && a->destination == b->destination &&
	       a->source_port == b->source_port && a->destination_port == b->destination_port;
}
