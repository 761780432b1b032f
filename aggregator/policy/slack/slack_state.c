/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory from step to step: the places of each class, and since when fewer would suffice.
 *
 * A target rises at once. It drops once it has been lower for unneeded_ns without a break, to the
 * largest of that time (slack_entry_follow()): otherwise slack itself would start and stop nodes.
 * The size of a unit follows the average node, and so every drain: it changes as late, together
 * with the count.
 */
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/slack/slack_internal.h"
#include "shared/array.h"
#include "shared/duration.h"
#include "shared/mem.h"

struct slack_state *slack_state_new(void)
{
	struct slack_state *s = mem_zalloc(1, sizeof(*s));

	slack_pattern_of_shape(&s->plain, "plain", &(struct slack_amount){0, 0});
	return s;
}

void slack_state_set_limit(struct slack_state *s, bool (*out_of_time)(void *ctx), void *ctx)
{
	s->out_of_time = out_of_time;
	s->out_of_time_ctx = ctx;
}

void slack_entry_forget_standing(struct slack_entry *e)
{
	for (size_t i = 0; i < e->standing_count; i++)
		free(e->standing[i].node);
	free(e->standing);
	e->standing = NULL;
	e->standing_count = 0;
}

static void free_entry(struct slack_entry *e)
{
	slack_entry_forget_standing(e);
	slack_pattern_fini(&e->pattern);
	free(e->objects);
	free(e->key);
	free(e);
}

void slack_state_remove(struct slack_state *s, struct slack_entry *e)
{
	HASH_DEL(s->entries, e);
	free_entry(e);
}

void slack_state_free(struct slack_state *s)
{
	struct slack_entry *e, *next;

	if (!s)
		return;
	HASH_RELEASE (s->entries, e, next)
		free_entry(e);
	slack_pattern_fini(&s->plain);
	slack_arrivals_fini(&s->arrivals);
	free(s);
}

struct slack_entry *slack_state_entry(struct slack_state *s, const char *key, enum slack_kind kind)
{
	struct slack_entry *e;

	HASH_INTERN(s->entries, e, key, key);
	e->kind = kind;
	return e;
}

/* Appends: callers add nodes in the order of names. */
void slack_entry_stand(struct slack_entry *e, const char *node, uint32_t count)
{
	size_t at = e->standing_count;

	if (at > 0 && strcmp(e->standing[at - 1].node, node) == 0) {
		e->standing[at - 1].count += count;
		return;
	}
	ARRAY_ADD(e->standing, e->standing_count) = (struct slack_place){mem_strdup(node), count};
}

void slack_entry_follow(struct slack_entry *e, int64_t now_ns, int64_t unneeded_ns)
{
	if (e->target >= e->wanted) {
		e->wanted = e->target;
		e->lower_since_ns = 0;
		return;
	}
	/* A future time is from another clock. */
	if (!e->lower_since_ns || e->lower_since_ns > now_ns) {
		e->lower_since_ns = now_ns;
		e->lower_target = e->target;
	}
	if (e->target > e->lower_target)
		e->lower_target = e->target;
	if (elapsed_ns(now_ns, e->lower_since_ns) < unneeded_ns)
		return;
	e->wanted = e->lower_target < e->wanted ? e->lower_target : e->wanted;
	/* A target below that starts its own waiting time. */
	e->lower_since_ns = e->wanted > e->target ? now_ns : 0;
	e->lower_target = e->target;
}

static uint32_t convert(uint32_t count, int64_t from, int64_t to)
{
	__int128 result;

	if (count == from || from <= 0)
		result = to;
	else
		result = ((__int128)count * to + from - 1) / from;
	return result > UINT32_MAX ? UINT32_MAX : (uint32_t)result;
}

struct slack_amount slack_entry_follow_shape(struct slack_entry *e, const struct slack_target *t,
					     int64_t now_ns, int64_t unneeded_ns)
{
	const struct slack_amount *held = &e->pattern.shape;
	bool same = held->cpu_milli == t->unit.cpu_milli && held->mem_bytes == t->unit.mem_bytes;
	bool kept = !same && e->wanted && t->held_count >= 0;

	if (kept && (!e->shape_since_ns || e->shape_since_ns > now_ns))
		e->shape_since_ns = now_ns;
	if (kept && elapsed_ns(now_ns, e->shape_since_ns) < unneeded_ns) {
		e->target = convert(1, 1, t->held_count);
		return *held;
	}
	e->shape_since_ns = 0;
	/* Records of older versions have no shape. */
	if (!same && e->wanted && (held->cpu_milli || held->mem_bytes)) {
		e->wanted = convert(e->wanted, t->held_count, t->unit_count);
		e->lower_target = convert(e->lower_target, t->held_count, t->unit_count);
	}
	e->target = convert(1, 1, t->unit_count);
	return t->unit;
}

/* --- persistence */

static int compare_keys(struct slack_entry *a, struct slack_entry *b)
{
	return strcmp(a->key, b->key);
}

void slack_state_sort(struct slack_state *s)
{
	HASH_SORT(s->entries, compare_keys);
}

struct slack_record *slack_state_records(const struct slack_state *s, size_t *count)
{
	size_t room = 0, at = 0;
	struct slack_record *of;

	for (const struct slack_entry *e = s->entries; e; e = e->hh.next)
		room += 1 + e->standing_count;
	of = mem_zalloc(room + 1, sizeof(*of));
	for (const struct slack_entry *e = s->entries; e; e = e->hh.next) {
		of[at++] = (struct slack_record){.class = e->key,
						 .node = "",
						 .count = e->wanted,
						 .lower_since_ns = e->lower_since_ns,
						 .lower_target = e->lower_target,
						 .shape_since_ns = e->shape_since_ns};
		if (e->kind == SLACK_UNIT)
			of[at - 1].shape = e->pattern.shape;
		for (size_t i = 0; i < e->standing_count; i++)
			of[at++] = (struct slack_record){.class = e->key,
							 .node = e->standing[i].node,
							 .count = e->standing[i].count};
	}
	*count = at;
	return of;
}

static enum slack_kind kind_of(const char *key)
{
	if (strchr(key, '/'))
		return SLACK_WORKLOAD;
	return strcmp(key, "unit") == 0 ? SLACK_UNIT : SLACK_COVER;
}

void slack_state_restore(struct slack_state *s, const struct slack_record *records, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct slack_record *r = &records[i];
		struct slack_entry *e = slack_state_entry(s, r->class, kind_of(r->class));

		if (*r->node) {
			slack_entry_stand(e, r->node, r->count);
			continue;
		}
		e->wanted = r->count;
		e->lower_since_ns = r->lower_since_ns > 0 ? r->lower_since_ns : 0;
		e->lower_target = r->lower_target;
		e->shape_since_ns = r->shape_since_ns > 0 ? r->shape_since_ns : 0;
		if (e->kind == SLACK_UNIT && (r->shape.cpu_milli || r->shape.mem_bytes))
			slack_pattern_of_shape(&e->pattern, e->key, &r->shape);
	}
	slack_state_sort(s);
}

struct slack_arrivals *slack_state_arrivals(struct slack_state *s)
{
	return &s->arrivals;
}
