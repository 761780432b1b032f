/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/policy/drain/drain_select.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/arith.h"
#include "aggregator/policy/drain/drain_eligibility.h"
#include "shared/duration.h"
#include "shared/mem.h"

static bool may_go(const struct drain_removable *n)
{
	return n->reason == DRAIN_NONE;
}

/* --- time */

static void check_due(const struct drain_options *o, struct drain_removable *n, int64_t now_ns)
{
	n->reason = DRAIN_NONE;
	n->error.text[0] = '\0';
	if (!n->timer) {
		n->reason = DRAIN_NOT_UNNEEDED_OTHER;
		return;
	}
	if (drain_timer_threshold_ns(n->timer, o) < 0) {
		n->reason = error_fail(&n->error, DRAIN_UNEXPECTED,
				       "how long it must be unneeded is not known");
		return;
	}
	if (drain_is_disabled(o, n->node, &n->error)) {
		n->reason = DRAIN_DISABLED_ANNOTATION;
		return;
	}
	n->reason = drain_timer_due(n->timer, o, now_ns);
	if (!may_go(n))
		error_set(&n->error,
			  "it has been unneeded for %" PRId64
			  " s, and must be for more than %" PRId64 " s",
			  elapsed_ns(now_ns, n->timer->since_ns) / DRAIN_SECOND_NS,
			  drain_timer_threshold_ns(n->timer, o) / DRAIN_SECOND_NS);
}

/* --- room */

static void accept(struct drain_groups *g, struct drain_removable *n)
{
	if (may_go(n))
		n->reason = drain_groups_accept(g, n->group, &n->gives, &n->error);
}

static void fail_group(struct drain_removable *nodes, size_t count, uint32_t group,
		       enum drain_reason reason, const struct error *why)
{
	for (size_t i = 0; i < count; i++) {
		if (nodes[i].group != group || !may_go(&nodes[i]))
			continue;
		nodes[i].reason = reason;
		nodes[i].error = *why;
	}
}

/* All that are left of the group, or none. */
static void accept_group(struct drain_groups *g, struct drain_removable *nodes, size_t count,
			 uint32_t group)
{
	struct error why = {""};
	enum drain_reason reason = DRAIN_NONE;
	size_t i;

	for (i = 0; i < count && reason == DRAIN_NONE; i++)
		if (nodes[i].group == group && may_go(&nodes[i]))
			reason = drain_groups_accept(g, group, &nodes[i].gives, &why);
	if (reason == DRAIN_NONE)
		return;
	for (size_t j = 0; j + 1 < i; j++)
		if (nodes[j].group == group && may_go(&nodes[j]))
			drain_groups_release(g, group, &nodes[j].gives);
	fail_group(nodes, count, group, reason, &why);
}

/* Empty nodes first; `accepted` marks atomic groups that are done. */
static void accept_all(struct drain_groups *g, struct drain_removable *nodes, size_t count)
{
	bool *accepted = mem_zalloc(g->count + 1, sizeof(*accepted));

	for (int drains = 0; drains <= 1; drains++) {
		for (size_t i = 0; i < count; i++) {
			if ((nodes[i].movable > 0) != drains || !may_go(&nodes[i]))
				continue;
			if (!drain_group_is_atomic(g, nodes[i].group)) {
				accept(g, &nodes[i]);
			} else if (!accepted[nodes[i].group]) {
				accepted[nodes[i].group] = true;
				accept_group(g, nodes, count, nodes[i].group);
			}
		}
	}
	free(accepted);
}

/* --- atomic groups */

void drain_select_atomic(const struct drain_groups *g, struct drain_removable *nodes, size_t count)
{
	int64_t *left = mem_zalloc(g->count + 1, sizeof(*left));

	for (size_t i = 0; i < count; i++)
		if (may_go(&nodes[i]) && nodes[i].group != DRAIN_NO_GROUP)
			left[nodes[i].group]++;
	for (size_t i = 0; i < count; i++) {
		struct drain_removable *n = &nodes[i];

		if (!may_go(n))
			continue;
		if (n->group == DRAIN_NO_GROUP)
			n->reason =
				error_fail(&n->error, DRAIN_NOT_AUTOSCALED, "it is in no group");
		else if (drain_group_is_atomic(g, n->group) &&
			 !drain_group_is_covered(&g->of[n->group], left[n->group]))
			n->reason = error_fail(&n->error, DRAIN_ATOMIC_FAILED,
					       "group \"%.60s\" goes as a whole, and %" PRId64
					       " of its %" PRId64 " nodes could",
					       g->of[n->group].name, left[n->group],
					       g->of[n->group].registered);
	}
	free(left);
}

/* --- waiting */

static void wait_for_pods(struct drain_removable *nodes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!may_go(&nodes[i]) || nodes[i].waiting == 0)
			continue;
		nodes[i].reason = DRAIN_ON_COMPLETION;
		error_set(&nodes[i].error, "%zu of its pods %s to end %s first", nodes[i].waiting,
			  drain_plural(nodes[i].waiting, "is", "are"),
			  drain_plural(nodes[i].waiting, "by itself", "by themselves"));
	}
}

/* Gives the other nodes of the group the reason it waits for, not that it is incomplete. */
static void wait_for_groups(const struct drain_groups *g, struct drain_removable *nodes,
			    size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (nodes[i].reason == DRAIN_ON_COMPLETION &&
		    drain_group_is_atomic(g, nodes[i].group))
			fail_group(nodes, count, nodes[i].group, DRAIN_ON_COMPLETION,
				   &nodes[i].error);
}

/* --- together */

static void select_upstream(struct drain_groups *g, struct drain_removable *nodes, size_t count)
{
	for (int drains = 0; drains <= 1; drains++)
		for (size_t i = 0; i < count; i++)
			if ((nodes[i].movable > 0) == drains)
				accept(g, &nodes[i]);
	drain_select_atomic(g, nodes, count);
	wait_for_pods(nodes, count);
}

void drain_select(const struct drain_options *o, struct drain_groups *g,
		  struct drain_removable *nodes, size_t count, int64_t now_ns,
		  struct drain_choice *out)
{
	for (size_t i = 0; i < count; i++)
		check_due(o, &nodes[i], now_ns);
	if (o->variant == DRAIN_UPSTREAM) {
		select_upstream(g, nodes, count);
	} else {
		wait_for_pods(nodes, count);
		wait_for_groups(g, nodes, count);
		drain_select_atomic(g, nodes, count);
		accept_all(g, nodes, count);
	}
	*out = (struct drain_choice){0};
	out->empty = mem_zalloc(count + 1, sizeof(*out->empty));
	out->drain = mem_zalloc(count + 1, sizeof(*out->drain));
	for (int risky = 0; risky <= 1; risky++)
		for (size_t i = 0; i < count; i++) {
			if (!may_go(&nodes[i]) || nodes[i].risky != risky)
				continue;
			if (nodes[i].movable)
				out->drain[out->drain_count++] = i;
			else
				out->empty[out->empty_count++] = i;
		}
}

void drain_choice_fini(struct drain_choice *c)
{
	free(c->empty);
	free(c->drain);
	*c = (struct drain_choice){0};
}

/* --- how many start now */

/* The nodes of one list by group. */
struct buckets {
	const size_t *from; /* borrowed */
	size_t from_count;
	int64_t *sizes; /* owned; by group */
	uint32_t *order; /* owned; groups as they are first met */
	size_t count;
	size_t *out, *taken; /* borrowed */
};

struct run {
	enum drain_variant variant;
	const struct drain_groups *groups;
	const struct drain_removable *nodes;
	struct buckets empty, drain;
	int64_t par, dr;
	bool may_overflow;
};

static bool takes_part(const struct drain_removable *n)
{
	return n->out == DRAIN_STILL_IN && n->group != DRAIN_NO_GROUP;
}

static struct buckets fill(const struct run *r, const size_t *from, size_t count, size_t **out,
			   size_t *taken)
{
	struct buckets b = {
		.from = from,
		.from_count = count,
		.sizes = mem_zalloc(r->groups->count + 1, sizeof(*b.sizes)),
		.order = mem_zalloc(r->groups->count + 1, sizeof(*b.order)),
		.out = mem_zalloc(count + 1, sizeof(*b.out)),
		.taken = taken,
	};

	*out = b.out;
	for (size_t i = 0; i < count; i++) {
		const struct drain_removable *n = &r->nodes[from[i]];

		if (takes_part(n) && b.sizes[n->group]++ == 0)
			b.order[b.count++] = n->group;
	}
	return b;
}

static void take(const struct run *r, const struct buckets *b, uint32_t group, int64_t most)
{
	for (size_t i = 0; i < b->from_count && most > 0; i++) {
		const struct drain_removable *n = &r->nodes[b->from[i]];

		if (!takes_part(n) || n->group != group)
			continue;
		b->out[(*b->taken)++] = b->from[i];
		most--;
	}
}

static bool is_spent(const struct run *r, int64_t budget)
{
	return r->variant == DRAIN_UPSTREAM ? budget == 0 : budget <= 0;
}

/* Steps 1 and 2: whether a group of e empty nodes and d drains may start. */
static bool may_start(const struct run *r, int64_t e, int64_t d)
{
	if (r->par >= e + d && r->dr >= d)
		return true;
	return r->may_overflow && !(e > 0 && is_spent(r, r->par)) && !(d > 0 && is_spent(r, r->dr));
}

static void crop_atomic(struct run *r, const struct buckets *lead)
{
	for (size_t i = 0; i < lead->count; i++) {
		uint32_t group = lead->order[i];
		int64_t e = r->empty.sizes[group], d = r->drain.sizes[group];

		if (!r->groups->of[group].atomic || (lead == &r->drain && e > 0))
			continue;
		if (!may_start(r, e, d))
			break;
		if (!drain_group_is_covered(&r->groups->of[group], e + d))
			continue;
		take(r, &r->empty, group, e);
		take(r, &r->drain, group, d);
		r->par -= e + d;
		r->dr -= d;
		r->may_overflow = false;
	}
}

/* Returns the rest of the budget. */
static int64_t crop_others(const struct run *r, const struct buckets *b, int64_t budget)
{
	for (size_t i = 0; i < b->count && budget > 0; i++) {
		int64_t most = int_min(b->sizes[b->order[i]], budget);

		if (r->groups->of[b->order[i]].atomic)
			continue;
		take(r, b, b->order[i], most);
		budget -= most;
	}
	return budget;
}

static size_t count_complete(const struct run *r)
{
	int64_t count = 0;

	for (size_t i = 0; i < r->groups->count; i++) {
		const struct drain_group *g = &r->groups->of[i];
		int64_t nodes = r->empty.sizes[i] + r->drain.sizes[i];

		if (!g->atomic || drain_group_is_covered(g, nodes))
			count += nodes;
	}
	return (size_t)count;
}

size_t drain_budget_crop(const struct drain_budget *b, enum drain_variant variant,
			 const struct drain_groups *g, const struct drain_removable *nodes,
			 const struct drain_choice *from, struct drain_choice *out)
{
	struct run r = {
		.variant = variant,
		.groups = g,
		.nodes = nodes,
		.par = b->max - b->empty_in_progress - b->drain_in_progress,
		.dr = b->max_drain - b->drain_in_progress,
		.may_overflow = true,
	};
	size_t held;

	*out = (struct drain_choice){0};
	r.empty = fill(&r, from->empty, from->empty_count, &out->empty, &out->empty_count);
	r.drain = fill(&r, from->drain, from->drain_count, &out->drain, &out->drain_count);
	crop_atomic(&r, &r.empty);
	r.dr = int_min(r.par, r.dr);
	crop_atomic(&r, &r.drain);
	r.par = crop_others(&r, &r.empty, r.par);
	crop_others(&r, &r.drain, int_min(r.par, r.dr));
	held = count_complete(&r) - out->empty_count - out->drain_count;
	free(r.empty.sizes);
	free(r.empty.order);
	free(r.drain.sizes);
	free(r.drain.order);
	return held;
}
