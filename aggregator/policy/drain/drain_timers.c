/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/policy/drain/drain_timers.h"

#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/drain/drain_eligibility.h"
#include "shared/array.h"
#include "shared/duration.h"
#include "shared/mem.h"

void drain_timers_fini(struct drain_timers *t)
{
	for (size_t i = 0; i < t->count; i++)
		/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): there is an array, then */
		free(t->of[i].node);
	free(t->of);
	*t = (struct drain_timers){0};
}

const struct drain_timer *drain_timers_find(const struct drain_timers *t, const char *node)
{
	return array_search_name(t->of, t->count, sizeof(*t->of), node);
}

void drain_timers_update(struct drain_timers *t, enum drain_variant variant,
			 const struct drain_result *nodes, size_t count, int64_t now_ns)
{
	struct drain_timers next = {0};
	size_t at;

	for (size_t i = 0; i < count; i++) {
		const struct drain_timer *old = drain_timers_find(t, nodes[i].node);

		if (nodes[i].seen == DRAIN_SEEN_NEEDED ||
		    (nodes[i].seen != DRAIN_SEEN_UNNEEDED && (!old || variant == DRAIN_UPSTREAM)))
			continue;
		next.of =
			array_put_name(next.of, &next.count, sizeof(*next.of), nodes[i].node, &at);
		/* A future time is from another clock. */
		next.of[at].since_ns = old && old->since_ns < now_ns ? old->since_ns : now_ns;
		next.of[at].kind = nodes[i].ready ? DRAIN_TIMER_UNNEEDED : DRAIN_TIMER_UNREADY;
	}
	drain_timers_fini(t);
	*t = next;
}

void drain_timers_load(struct drain_timers *t, const struct drain_timer *record, int64_t saved_ns,
		       int64_t ttl_ns, int64_t now_ns)
{
	int64_t since_ns = record->since_ns < now_ns ? record->since_ns : now_ns;
	size_t before = t->count, at;

	if (elapsed_ns(now_ns, saved_ns) > ttl_ns)
		return;
	t->of = array_put_name(t->of, &t->count, sizeof(*t->of), record->node, &at);
	if (t->count == before && t->of[at].since_ns >= since_ns)
		return;
	t->of[at].since_ns = since_ns;
	t->of[at].kind = record->kind;
}

int64_t drain_timer_threshold_ns(const struct drain_timer *t, const struct drain_options *o)
{
	return t->kind == DRAIN_TIMER_UNREADY ? o->unready_ns : o->unneeded_ns;
}

int64_t drain_timer_due_ns(const struct drain_timer *t, const struct drain_options *o)
{
	return t->since_ns + drain_timer_threshold_ns(t, o);
}

enum drain_reason drain_timer_due(const struct drain_timer *t, const struct drain_options *o,
				  int64_t now_ns)
{
	if (elapsed_ns(now_ns, t->since_ns) > drain_timer_threshold_ns(t, o))
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

/* --- failed simulations */

static void failure_fini(struct drain_failure *f)
{
	free(f->node);
	free(f->why.text);
}

void drain_unremovable_fini(struct drain_unremovable *u)
{
	for (size_t i = 0; i < u->count; i++)
		failure_fini(&u->of[i]);
	free(u->of);
	memset(u, 0, sizeof(*u));
}

void drain_unremovable_update(struct drain_unremovable *u, const struct drain_options *o,
			      const struct drain_plan_node *nodes, size_t count, int64_t now_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < u->count; i++) {
		struct drain_failure *f = &u->of[i];

		if (!array_search_name(nodes, count, sizeof(*nodes), f->node) ||
		    f->until_ns <= now_ns || elapsed_ns(f->until_ns, now_ns) > o->recheck_ns) {
			failure_fini(f);
			continue;
		}
		if (o->variant == DRAIN_UPSTREAM) {
			free(f->why.text);
			f->why = (struct drain_why){.code = DRAIN_NONE};
		}
		u->of[kept++] = *f;
	}
	u->count = kept;
}

void drain_unremovable_add(struct drain_unremovable *u, const char *node,
			   const struct drain_why *why, int64_t until_ns)
{
	/* It may be the one that is replaced. */
	char *text = why->text ? mem_strdup(why->text) : NULL;
	struct drain_failure *f;
	size_t at;

	u->of = array_put_name(u->of, &u->count, sizeof(*u->of), node, &at);
	f = &u->of[at];
	free(f->why.text);
	f->why = *why;
	f->why.text = text;
	f->why.pod = NULL;
	f->until_ns = until_ns;
}

const struct drain_failure *drain_unremovable_recent(const struct drain_unremovable *u,
						     const char *node)
{
	return array_search_name(u->of, u->count, sizeof(*u->of), node);
}
