/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Intervals from the oldest to the newest. Each push may make room:
 *
 *	too old		dropped
 *	over budget	two neighbours merge; totals stay. The pair that stands for the fewest
 *			intervals is merged, of equal pairs the oldest, so the span becomes coarser
 *			evenly. The newest is merged last.
 *	still over	the oldest is dropped: a merged interval covers at most a quarter of the
 *			span, as it is dropped as a whole
 *
 * ring_set_cursors() states which intervals may not merge.
 *
 * The budget covers intervals and the entities they hold, each entity once.
 */
#include "agent/ring.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "shared/array.h"
#include "shared/hash.h"
#include "shared/mem.h"

/* An entity and how many intervals of the ring refer to it. */
struct held {
	const struct entity *entity; /* borrowed; the intervals hold it */
	size_t intervals;
	UT_hash_handle hh; /* by entity, the pointer */
};

struct ring {
	size_t max_bytes;
	int64_t span_ns;
	struct interval **items; /* owned, as are the intervals; oldest first */
	size_t count;
	size_t bytes;
	struct held *held;
	uint64_t *cursors; /* owned */
	size_t cursor_count;
};

struct ring *ring_new(size_t max_bytes, int64_t span_ns)
{
	struct ring *r = mem_zalloc(1, sizeof(*r));

	r->max_bytes = max_bytes;
	r->span_ns = span_ns;
	return r;
}

/* --- bytes ------------------------------------------------------------------------------------ */

static size_t entity_bytes(const struct entity *e)
{
	return sizeof(struct held) + sizeof(*e) + strlen(e->name) + 1;
}

static void hold_entity(struct ring *r, const struct entity *e)
{
	struct held *held;

	HASH_FIND_PTR(r->held, &e, held);
	if (!held) {
		held = mem_zalloc(1, sizeof(*held));
		held->entity = e;
		HASH_ADD_PTR(r->held, entity, held);
		r->bytes += entity_bytes(e);
	}
	held->intervals++;
}

static void drop_entity(struct ring *r, const struct entity *e)
{
	struct held *held;

	HASH_FIND_PTR(r->held, &e, held);
	assert(held && held->intervals);
	if (--held->intervals)
		return;
	r->bytes -= entity_bytes(e);
	HASH_DEL(r->held, held);
	free(held);
}

static void count_interval(struct ring *r, const struct interval *interval)
{
	r->bytes += interval_bytes(interval);
	for (size_t i = 0; i < interval->entry_count; i++)
		if (interval->entries[i].entity)
			hold_entity(r, interval->entries[i].entity);
}

static void free_interval(struct ring *r, struct interval *interval)
{
	r->bytes -= interval_bytes(interval);
	for (size_t i = 0; i < interval->entry_count; i++)
		if (interval->entries[i].entity)
			drop_entity(r, interval->entries[i].entity);
	interval_free(interval);
}

void ring_free(struct ring *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->count; i++)
		free_interval(r, r->items[i]);
	assert(!r->held && !r->bytes);
	free(r->items);
	free(r->cursors);
	free(r);
}

/* --- making room ------------------------------------------------------------------------------ */

static void remove_item(struct ring *r, size_t index)
{
	r->count--;
	memmove(&r->items[index], &r->items[index + 1],
		(r->count - index) * sizeof(struct interval *));
}

static void drop_oldest(struct ring *r)
{
	free_interval(r, r->items[0]);
	remove_item(r, 0);
}

static int compare_sequence(const void *sequence, const void *item)
{
	uint64_t key = *(const uint64_t *)sequence;
	uint64_t of = (*(struct interval *const *)item)->sequence;

	return (key > of) - (key < of);
}

/* Index of the first interval with this sequence or a later one, or count. */
static size_t index_of(const struct ring *r, uint64_t sequence)
{
	return array_lower_bound(&sequence, r->items, r->count, sizeof(void *), compare_sequence);
}

/* Whether items[index] and the next may merge. */
static bool can_merge(const struct ring *r, size_t index)
{
	const struct interval *a = r->items[index], *b = r->items[index + 1];

	/* Not across a clock that was set back, nor into more than a quarter of the span. */
	if (a->end_ns > b->start_ns || b->end_ns - a->start_ns > r->span_ns / 4)
		return false;
	for (size_t i = 0; i < r->cursor_count; i++) {
		size_t next = index_of(r, r->cursors[i]);

		if (next == index || next == index + 1)
			return false;
	}
	return true;
}

/* The best pair below `pairs`, or SIZE_MAX. */
static size_t find_pair(const struct ring *r, size_t pairs)
{
	size_t best = SIZE_MAX;
	uint64_t fewest = UINT64_MAX;

	for (size_t i = 0; i < pairs; i++) {
		uint64_t stands_for =
			(uint64_t)r->items[i]->merged + (uint64_t)r->items[i + 1]->merged;

		if (stands_for < fewest && can_merge(r, i)) {
			fewest = stands_for;
			best = i;
		}
	}
	return best;
}

static void merge_pair(struct ring *r, size_t index)
{
	struct interval *a = r->items[index], *b = r->items[index + 1];
	struct interval *both = interval_merge(a, b);

	count_interval(r, both);
	free_interval(r, a);
	free_interval(r, b);
	r->items[index + 1] = both;
	remove_item(r, index);
}

/* By the clock that nobody sets, if both have its time. */
static int64_t time_between(const struct interval *a, const struct interval *b)
{
	return a->end_boot_ns && b->end_boot_ns ? b->end_boot_ns - a->end_boot_ns
						: b->end_ns - a->end_ns;
}

void ring_push(struct ring *r, struct interval *interval)
{
	assert(interval->sequence > ring_newest(r));
	while (r->count && time_between(r->items[0], interval) > r->span_ns)
		drop_oldest(r);
	ARRAY_ADD(r->items, r->count) = interval;
	count_interval(r, interval);
	while (r->count > 1 && r->bytes > r->max_bytes) {
		size_t pair = find_pair(r, r->count - 2);

		if (pair == SIZE_MAX)
			pair = find_pair(r, r->count - 1);
		if (pair == SIZE_MAX)
			drop_oldest(r);
		else
			merge_pair(r, pair);
	}
}

void ring_set_cursors(struct ring *r, const uint64_t *cursors, size_t count)
{
	if (count != r->cursor_count)
		r->cursors = mem_realloc(r->cursors, count * sizeof(*cursors));
	r->cursor_count = count;
	if (count)
		memcpy(r->cursors, cursors, count * sizeof(*cursors));
}

/* --- reading ---------------------------------------------------------------------------------- */

const struct interval *ring_find(const struct ring *r, uint64_t sequence)
{
	size_t index = index_of(r, sequence);

	return index < r->count ? r->items[index] : NULL;
}

uint64_t ring_newest(const struct ring *r)
{
	return r->count ? r->items[r->count - 1]->sequence : 0;
}
