/* A hash map from a 64-bit key to a 32-bit value: open addressing, linear probing, nothing is ever removed.
 */
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
	uint64_t
	    salt; /* drawn once a reader, so that no capture can be made to collide; shows in no result */
};

bool map_init(struct map *m, uint64_t salt);
void map_free(struct map *m);
/* false: no memory. An existing key's value is replaced. */
bool map_put(struct map *m, uint64_t key, uint32_t value);

static inline uint64_t map_mix(uint64_t x)
{
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93u;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93u;
	return x ^ (x >> 32);
}

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
