// SPDX-License-Identifier: Apache-2.0
/* The hash map's slower functions: creating, growing, inserting. Lookups are in map.h. */
#include <stdlib.h>

#include "map.h"

enum { FIRST_SLOTS = 64 };

bool map_init(struct map *m, uint64_t salt)
{
	m->slots = calloc(FIRST_SLOTS, sizeof(*m->slots));
	m->mask = FIRST_SLOTS - 1;
	m->count = 0;
	m->salt = salt;
	return m->slots != NULL;
}

void map_free(struct map *m)
{
	free(m->slots);
	m->slots = NULL;
}

static void place(struct map *m, uint64_t key, uint32_t value)
{
	uint64_t i = map_mix(key ^ m->salt) & m->mask;

	while (m->slots[i].used && m->slots[i].key != key)
		i = (i + 1) & m->mask;
	m->count += !m->slots[i].used;
	m->slots[i] = (struct map_slot){.key = key, .value = value, .used = 1};
}

bool map_put(struct map *m, uint64_t key, uint32_t value)
{
	struct map larger = {.mask = m->mask * 2 + 1, .salt = m->salt};

	if ((m->count + 1) * 2 > m->mask) {
		larger.slots = calloc(larger.mask + 1, sizeof(*larger.slots));
		if (!larger.slots)
			return false;
		for (uint64_t i = 0; i <= m->mask; i++)
			if (m->slots[i].used)
				place(&larger, m->slots[i].key, m->slots[i].value);
		free(m->slots);
		*m = larger;
	}
	place(m, key, value);
	return true;
}
