/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/policy/drain/drain_timers.h"

#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/drain/drain_eligibility.h"
#include "shared/duration.h"
#include "shared/mem.h"

void drain_timers_fini(struct drain_timers *t)
{
	for (size_t i = 0; i < t->count; i++)
		free(t->of[i].node);
	free(t->of);
	*t = (struct drain_timers){0};
}

static int compare_timers(const void *a, const void *b)
{
	return strcmp(((const struct drain_timer *)a)->node, ((const struct drain_timer *)b)->node);
}

static int compare_key(const void *name, const void *timer)
{
	return strcmp(name, ((const struct drain_timer *)timer)->node);
}

const struct drain_timer *drain_timers_find(const struct drain_timers *t, const char *node)
{
	if (t->count == 0)
		return NULL;
	return bsearch(node, t->of, t->count, sizeof(*t->of), compare_key);
}

static bool runs_on(enum drain_variant variant, enum drain_seen seen, bool running)
{
	if (seen == DRAIN_SEEN_UNNEEDED)
		return true;
	return running && variant == DRAIN_CORRECTED && seen != DRAIN_SEEN_NEEDED;
}

void drain_timers_update(struct drain_timers *t, enum drain_variant variant,
			 const struct drain_sight *nodes, size_t count, int64_t now_ns)
{
	struct drain_timers next = {mem_zalloc(count + 1, sizeof(*next.of)), 0};

	for (size_t i = 0; i < count; i++) {
		const struct drain_timer *old = drain_timers_find(t, nodes[i].node);

		if (!runs_on(variant, nodes[i].seen, old != NULL))
			continue;
		next.of[next.count++] = (struct drain_timer){
			.node = mem_strdup(nodes[i].node),
			.since_ns = old ? old->since_ns : now_ns,
			.kind = nodes[i].ready ? DRAIN_TIMER_UNNEEDED : DRAIN_TIMER_UNREADY,
		};
	}
	qsort(next.of, next.count, sizeof(*next.of), compare_timers);
	drain_timers_fini(t);
	*t = next;
}

/* Of one node the later time stays: it waits longer. */
static void drop_doubles(struct drain_timers *t)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->count; i++) {
		struct drain_timer *last = kept > 0 ? &t->of[kept - 1] : NULL;

		if (!last || strcmp(last->node, t->of[i].node) != 0) {
			t->of[kept++] = t->of[i];
			continue;
		}
		if (t->of[i].since_ns > last->since_ns) {
			last->since_ns = t->of[i].since_ns;
			last->kind = t->of[i].kind;
		}
		free(t->of[i].node);
	}
	t->count = kept;
}

void drain_timers_load(struct drain_timers *t, const struct drain_timer *records, size_t count,
		       int64_t saved_ns, int64_t ttl_ns, int64_t now_ns)
{
	struct drain_timers next = {mem_zalloc(count + 1, sizeof(*next.of)), 0};

	for (size_t i = 0; i < count && elapsed_ns(now_ns, saved_ns) <= ttl_ns; i++)
		next.of[next.count++] = (struct drain_timer){
			.node = mem_strdup(records[i].node),
			.since_ns = records[i].since_ns < now_ns ? records[i].since_ns : now_ns,
			.kind = records[i].kind,
		};
	qsort(next.of, next.count, sizeof(*next.of), compare_timers);
	drop_doubles(&next);
	drain_timers_fini(t);
	*t = next;
}

static int64_t threshold_of(const struct drain_timer *t, const struct drain_options *o)
{
	return t->kind == DRAIN_TIMER_UNREADY ? o->unready_ns : o->unneeded_ns;
}

int64_t drain_timer_due_ns(const struct drain_timer *t, const struct drain_options *o)
{
	return t->since_ns + threshold_of(t, o);
}

enum drain_reason drain_timer_due(const struct drain_timer *t, const struct drain_options *o,
				  int64_t now_ns)
{
	if (elapsed_ns(now_ns, t->since_ns) > threshold_of(t, o))
		return DRAIN_NONE;
	return t->kind == DRAIN_TIMER_UNREADY ? DRAIN_NOT_UNREADY_LONG_ENOUGH
					      : DRAIN_NOT_UNNEEDED_LONG_ENOUGH;
}

int64_t drain_unneeded_limit(enum drain_variant variant, int64_t before, int64_t n,
			     int64_t unneeded_ns, int64_t loop_ns)
{
	int64_t longer = unneeded_ns > loop_ns ? unneeded_ns : loop_ns;
	int64_t by_count = before + 2 * n, by_time;

	if (variant == DRAIN_CORRECTED || loop_ns <= 0)
		return INT64_MAX;
	by_time = n * (longer / loop_ns) + n;
	return by_count < by_time ? by_count : by_time;
}
