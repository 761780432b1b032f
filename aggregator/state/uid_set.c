/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open addressing, between an eighth and a half full. Removal leaves no mark: later entries that
 * the removed one displaced move up.
 *
 * Two uids of one hash are taken for one: of 150,000 random ones that happens once in 10^9
 * clusters. Callers use this set as a precaution, not for counting.
 */
#include "aggregator/state/uid_set.h"

#include <stdlib.h>
#include <string.h>

#include "shared/hash.h"
#include "shared/mem.h"

enum { SIZE_LEAST = 64 };

/* FNV-1a, with its bits mixed, since the low ones choose the place. Never 0. */
static uint64_t hash_uid(const char *uid)
{
	uint64_t hash = hash_bytes(HASH_BEGIN, uid, strlen(uid));

	hash = (hash ^ hash >> 32) * 0x9e3779b97f4a7c15;
	hash ^= hash >> 29;
	return hash ? hash : 1;
}

/* Where it is, or the free slot where it belongs. */
static size_t find(const struct uid_set *s, uint64_t hash)
{
	size_t at = hash & (s->size - 1);

	while (s->slots[at] && s->slots[at] != hash)
		at = (at + 1) & (s->size - 1);
	return at;
}

static void resize(struct uid_set *s, size_t size)
{
	struct uid_set now = {s->count, size, mem_zalloc(size, sizeof(*now.slots))};

	for (size_t i = 0; i < s->size; i++)
		if (s->slots[i])
			now.slots[find(&now, s->slots[i])] = s->slots[i];
	free(s->slots);
	*s = now;
}

void uid_set_fini(struct uid_set *s)
{
	free(s->slots);
	*s = (struct uid_set){0};
}

bool uid_set_has(const struct uid_set *s, const char *uid)
{
	uint64_t hash = hash_uid(uid);

	return s->count && s->slots[find(s, hash)] == hash;
}

bool uid_set_add(struct uid_set *s, const char *uid)
{
	uint64_t hash = hash_uid(uid);
	size_t at;

	if (2 * (s->count + 1) > s->size)
		resize(s, s->size ? 2 * s->size : SIZE_LEAST);
	at = find(s, hash);
	if (s->slots[at])
		return false;
	s->slots[at] = hash;
	s->count++;
	return true;
}

/*
 * Closes the gap, so that every search still ends where it should: what a gap cuts off from its
 * first place moves into it.
 */
static void close_gap(struct uid_set *s, size_t gap)
{
	size_t mask = s->size - 1;

	for (size_t at = (gap + 1) & mask; s->slots[at]; at = (at + 1) & mask) {
		size_t home = s->slots[at] & mask;

		if (((at - home) & mask) < ((at - gap) & mask))
			continue;
		s->slots[gap] = s->slots[at];
		s->slots[at] = 0;
		gap = at;
	}
}

bool uid_set_remove(struct uid_set *s, const char *uid)
{
	uint64_t hash = hash_uid(uid);
	size_t at;

	if (!s->count)
		return false;
	at = find(s, hash);
	if (!s->slots[at])
		return false;
	s->slots[at] = 0;
	s->count--;
	close_gap(s, at);
	if (s->size > SIZE_LEAST && 8 * s->count < s->size)
		resize(s, s->size / 2);
	return true;
}
