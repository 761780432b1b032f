/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/policy/drain/drain_select.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/drain/drain_eligibility.h"
#include "shared/duration.h"
#include "shared/mem.h"

static const int64_t SECOND_NS = 1000000000;

static bool may_go(const struct drain_removable *n)
{
	return n->reason == DRAIN_NONE;
}

static bool is_atomic(const struct drain_groups *g, const struct drain_removable *n)
{
	return n->group != DRAIN_NO_GROUP && g->of[n->group].atomic;
}

/* --- time */

void drain_select_due(const struct drain_options *o, struct drain_removable *n, int64_t now_ns)
{
	if (!may_go(n))
		return;
	if (!n->timer) {
		n->reason = DRAIN_NOT_UNNEEDED_OTHER;
		return;
	}
	if ((n->timer->kind == DRAIN_TIMER_UNREADY ? o->unready_ns : o->unneeded_ns) < 0) {
		n->reason = DRAIN_UNEXPECTED;
		error_set(&n->error, "how long it must be unneeded is not known");
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
			  elapsed_ns(now_ns, n->timer->since_ns) / SECOND_NS,
			  (drain_timer_due_ns(n->timer, o) - n->timer->since_ns) / SECOND_NS);
}

/* --- room */

void drain_select_room(struct drain_groups *g, struct drain_removable *n)
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

/* Empty nodes first. `accepted` tells which atomic groups had their turn. */
static void accept_all(struct drain_groups *g, struct drain_removable *nodes, size_t count)
{
	bool *accepted = mem_zalloc(g->count + 1, sizeof(*accepted));

	for (int drains = 0; drains <= 1; drains++) {
		for (size_t i = 0; i < count; i++) {
			if ((nodes[i].movable > 0) != drains || !may_go(&nodes[i]))
				continue;
			if (!is_atomic(g, &nodes[i])) {
				drain_select_room(g, &nodes[i]);
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
		if (n->group == DRAIN_NO_GROUP) {
			n->reason = DRAIN_NOT_AUTOSCALED;
			error_set(&n->error, "it is in no group");
		} else if (is_atomic(g, n) &&
			   !drain_group_is_covered(&g->of[n->group], left[n->group])) {
			n->reason = DRAIN_ATOMIC_FAILED;
			error_set(&n->error,
				  "group \"%.60s\" goes as a whole, and %" PRId64 " of its %" PRId64
				  " nodes could",
				  g->of[n->group].name, left[n->group], g->of[n->group].registered);
		}
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
			  drain_plural((int64_t)nodes[i].waiting, "is", "are"),
			  drain_plural((int64_t)nodes[i].waiting, "by itself", "by themselves"));
	}
}

/*
 * Without this its other nodes would be told that the group is not complete, and not what it waits
 * for.
 */
static void wait_for_groups(const struct drain_groups *g, struct drain_removable *nodes,
			    size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (nodes[i].reason == DRAIN_ON_COMPLETION && is_atomic(g, &nodes[i]))
			fail_group(nodes, count, nodes[i].group, DRAIN_ON_COMPLETION,
				   &nodes[i].error);
}

/* --- together */

static void choose_kind(const struct drain_removable *nodes, size_t count, bool drains, bool risky,
			size_t *out, size_t *out_count)
{
	for (size_t i = 0; i < count; i++)
		if (may_go(&nodes[i]) && (nodes[i].movable > 0) == drains &&
		    nodes[i].risky == risky)
			out[(*out_count)++] = i;
}

static void select_upstream(struct drain_groups *g, struct drain_removable *nodes, size_t count)
{
	for (int drains = 0; drains <= 1; drains++)
		for (size_t i = 0; i < count; i++)
			if ((nodes[i].movable > 0) == drains)
				drain_select_room(g, &nodes[i]);
	drain_select_atomic(g, nodes, count);
	wait_for_pods(nodes, count);
}

static void select_corrected(struct drain_groups *g, struct drain_removable *nodes, size_t count)
{
	wait_for_pods(nodes, count);
	wait_for_groups(g, nodes, count);
	drain_select_atomic(g, nodes, count);
	accept_all(g, nodes, count);
}

void drain_select(const struct drain_options *o, struct drain_groups *g,
		  struct drain_removable *nodes, size_t count, int64_t now_ns,
		  struct drain_choice *out)
{
	for (size_t i = 0; i < count; i++) {
		nodes[i].reason = DRAIN_NONE;
		error_set(&nodes[i].error, "%s", "");
		drain_select_due(o, &nodes[i], now_ns);
	}
	if (o->variant == DRAIN_UPSTREAM)
		select_upstream(g, nodes, count);
	else
		select_corrected(g, nodes, count);
	*out = (struct drain_choice){0};
	out->empty = mem_zalloc(count + 1, sizeof(*out->empty));
	out->drain = mem_zalloc(count + 1, sizeof(*out->drain));
	for (int risky = 0; risky <= 1; risky++) {
		choose_kind(nodes, count, false, risky, out->empty, &out->empty_count);
		choose_kind(nodes, count, true, risky, out->drain, &out->drain_count);
	}
}

void drain_choice_fini(struct drain_choice *c)
{
	free(c->empty);
	free(c->drain);
	*c = (struct drain_choice){0};
}
