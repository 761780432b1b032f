/* SPDX-License-Identifier: Apache-2.0 */
/* Linear probing, at most half full; zero counts stay until the next growth. */
#include "aggregator/policy/place/place_internal.h"

#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"

enum { ROOM_MIN = 8 };

#define FREE UINT32_MAX

/* The entry of the domain, or the free one where it would be. */
static struct place_tally_entry *find(const struct place_tally *t, uint32_t domain)
{
	uint32_t at = (domain * 0x9E3779B1U) >> 7;

	for (;; at++) {
		struct place_tally_entry *e = &t->of[at & (t->room - 1)];

		if (e->domain == domain || e->domain == FREE)
			return e;
	}
}

uint32_t place_tally_get(const struct place_tally *t, uint32_t domain)
{
	const struct place_tally_entry *e;

	if (!t->of)
		return 0;
	e = find(t, domain);
	return e->domain == domain ? e->count : 0;
}

static void grow(struct place_tally *t)
{
	struct place_tally old = *t;
	uint32_t used = 0;

	for (uint32_t i = 0; i < old.room; i++)
		used += old.of[i].domain != FREE && old.of[i].count > 0;
	t->room = ROOM_MIN;
	while (t->room < (used + 1) * 3)
		t->room *= 2;
	t->of = mem_alloc(t->room * sizeof(*t->of));
	memset(t->of, 0xff, t->room * sizeof(*t->of));
	t->taken = used;
	for (uint32_t i = 0; i < old.room; i++)
		if (old.of[i].domain != FREE && old.of[i].count > 0)
			*find(t, old.of[i].domain) = old.of[i];
	free(old.of);
}

uint32_t place_tally_add(struct place_tally *t, uint32_t domain, int by)
{
	struct place_tally_entry *e;

	if ((t->taken + 1) * 2 > t->room)
		grow(t);
	e = find(t, domain);
	if (e->domain == FREE) {
		*e = (struct place_tally_entry){domain, 0};
		t->taken++;
	}
	return e->count += (uint32_t)by;
}
