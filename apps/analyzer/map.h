/* SPDX-License-Identifier: Apache-2.0 */
/* A hash map from 64-bit keys to 32-bit values: open addressing, linear probing. Keys are never removed. */
#ifndef ANALYZER_MAP_H
#define ANALYZER_MAP_H

#include <stdbool.h>
#include <stdint.h>

struct map_slot {
	uint64_t key;
	uint32_t value;
	uint32_t used;
};

struct map {
	struct map_slot *slots;
	uint64_t mask;
	uint64_t count;
	uint64_t salt; /* random: no capture can be built to collide. Does not affect results */
};

bool map_init(struct map *m, uint64_t salt);
void map_free(struct map *m);
/* Set the value of a key; an existing value is replaced. false: no memory. */
bool map_put(struct map *m, uint64_t key, uint32_t value);

/* Mixes all bits of a number into all bits of the result; also hashes identity.c's fingerprints and flow.c's
 * keys. */
static inline uint64_t map_mix(uint64_t x)
{
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93u;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93u;
	return x ^ (x >> 32);
}

/* The key's value in *value. false: the key is not in the map; *value stays as it is. */
static inline bool map_get(const struct map *m, uint64_t key, uint32_t *value)
{
	uint64_t i = map_mix(key ^ m->salt) & m->mask;

	for (; m->slots[i].used; i = (i + 1) & m->mask) {
		if (m->slots[i].key == key) {
			*value = m->slots[i].value;
			return true;
		}
	}
	return false;
}

#endif
