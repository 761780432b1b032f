/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan in sentences, a line each: reserved pods, numbers of nodes by verdict and reason, the wave
 * with its pods, its destinations, its costs, and limits reached. Its length depends on the wave.
 */
#include <inttypes.h>
#include <string.h>

#include "aggregator/policy/drain/drain_internal.h"

static const double GIB = 1073741824.0;

enum { PODS_TOLD = 8, IDLE_TOLD = 16 };

static void tell_reserved(const struct drain_reserved *o, struct buf *b)
{
	if (o->of_deletions + o->of_evictions + o->pending + o->placeholders + o->waiting == 0)
		return;
	buf_printf(b,
		   "Placed first: %zu of %zu pods that are owed (of nodes in deletion %zu, missing "
		   "replicas %zu, pending %zu, placeholders %zu).\n",
		   o->placed, o->of_deletions + o->of_evictions + o->pending + o->placeholders,
		   o->of_deletions, o->of_evictions, o->pending, o->placeholders);
	if (*o->error.text)
		buf_printf(b, "%s.\n", o->error.text);
}

static void tell_idle(const struct drain_plan *p, size_t count, struct buf *b)
{
	size_t told = 0;

	buf_printf(b, "%zu %s needed by requests and idle in fact:", count,
		   drain_plural(count, "is", "are"));
	for (size_t i = 0; i < p->node_count && told < IDLE_TOLD; i++)
		if (p->nodes[i].idle_in_fact)
			buf_printf(b, "%s %s", told++ ? "," : "", p->nodes[i].name);
	if (told < count)
		buf_printf(b, ", and %zu more", count - told);
	buf_add_str(b, ".\n");
}

static void tell_verdicts(const struct drain_plan *p, struct buf *b)
{
	size_t verdicts[DRAIN_VERDICTS] = {0}, reasons[DRAIN_REASONS] = {0}, idle = 0;

	for (size_t i = 0; i < p->node_count; i++) {
		const struct drain_plan_node *n = &p->nodes[i];

		verdicts[n->verdict]++;
		idle += n->idle_in_fact;
		if (n->reason_count && n->verdict != DRAIN_SELECTED)
			reasons[drain_decisive(n)->code]++;
	}
	buf_printf(b, "Of %zu %s %zu could go, %zu of them now; needed: %zu, ", p->node_count,
		   drain_plural(p->node_count, "node", "nodes"),
		   verdicts[DRAIN_UNNEEDED] + verdicts[DRAIN_SELECTED], verdicts[DRAIN_SELECTED],
		   verdicts[DRAIN_NEEDED]);
	if (verdicts[DRAIN_KEPT])
		buf_printf(b, "kept: %zu, ", verdicts[DRAIN_KEPT]);
	if (verdicts[DRAIN_DRAINED])
		buf_printf(b, "drained: %zu, ", verdicts[DRAIN_DRAINED]);
	buf_printf(b, "in deletion: %zu, not examined: %zu.\n", verdicts[DRAIN_IN_DELETION],
		   verdicts[DRAIN_UNEXAMINED]);
	for (int i = DRAIN_NONE + 1; i < DRAIN_REASONS; i++)
		if (reasons[i])
			buf_printf(b, "%zu %s: %s.\n", reasons[i],
				   drain_plural(reasons[i], "stays", "stay"),
				   drain_reason_name((enum drain_reason)i));
	if (idle)
		tell_idle(p, idle, b);
}

static void tell_moves(const struct drain_plan_node *n, struct buf *b)
{
	size_t told = n->move_count < PODS_TOLD ? n->move_count : PODS_TOLD;

	if (!n->move_count) {
		buf_printf(b, "%s goes; nothing on it has to move.\n", n->name);
		return;
	}
	buf_printf(b, "%s goes, and of it", n->name);
	for (size_t i = 0; i < told; i++) {
		const struct kube_pod *pod = n->moves[i].pod;
		bool deleted = drain_is_deleted(pod);

		buf_printf(b, "%s %s/%s %s%s", i ? "," : "", pod->object.namespace,
			   pod->object.name, deleted ? "is deleted" : "to ",
			   deleted ? "" : n->moves[i].to);
	}
	if (told < n->move_count)
		buf_printf(b, ", and %zu more", n->move_count - told);
	buf_add_str(b, ".\n");
}

static void tell_destination(const struct drain_destination *d, struct buf *b)
{
	buf_printf(b, "%s takes %zu %s", d->node, d->pods, drain_plural(d->pods, "pod", "pods"));
	if (d->predicted)
		buf_printf(b, ": %.2f CPUs become %.2f of %.2f, %.2f GiB become %.2f of %.2f",
			   d->before.cpu_milli / 1000, d->after.cpu_milli / 1000,
			   d->after.cpu_limit_milli / 1000, d->before.mem_bytes / GIB,
			   d->after.mem_bytes / GIB, d->after.mem_limit_bytes / GIB);
	buf_add_str(b, ".\n");
}

static void tell_cost(const struct drain_cost *c, struct buf *b)
{
	if (!c->budget)
		return;
	buf_printf(b, "%s %s/%s: %zu %s, %" PRId64 " may at once, and %" PRId64 " more then%s.\n",
		   c->kind, c->namespace, c->name, c->pods,
		   drain_plural(c->pods, "leaves", "leave"), c->allowed, c->left,
		   c->one_after_the_other ? "; they go one after the other" : "");
}

static void tell_wave(const struct drain_plan *p, struct buf *b)
{
	const struct drain_wave *w = &p->wave;

	for (size_t i = 0; i < w->node_count; i++)
		tell_moves(w->nodes[i], b);
	for (size_t i = 0; i < w->destination_count; i++)
		tell_destination(&w->destinations[i], b);
	for (size_t i = 0; i < w->cost_count; i++)
		tell_cost(&w->costs[i], b);
	if (w->robust && w->pods)
		buf_add_str(b, "There is room also if the scheduler chooses other nodes.\n");
	else if (*w->not_robust.text)
		buf_printf(b, "It depends on where the scheduler puts pods: %s.\n",
			   w->not_robust.text);
}

static void tell_throttle(const struct drain_throttle *t, struct buf *b)
{
	if (t->held)
		buf_printf(b,
			   "%s%" PRId64 " of %" PRId64 " nodes, %" PRId64 " of %" PRId64
			   " drains; %zu more could go.\n",
			   t->throttled ? "ScaleDownThrottled: " : "", t->used, t->limit,
			   t->drains_used, t->drains_limit, t->held);
}

void drain_narrate(struct drain_run *r)
{
	struct drain_plan *p = r->plan;
	struct buf text = BUF_INIT;

	if (!p->capped && r->corrected)
		buf_add_str(&text,
			    "Real use is not asked for: it is off, or no node is measured.\n");
	tell_reserved(&p->reserved, &text);
	tell_verdicts(p, &text);
	tell_wave(p, &text);
	tell_throttle(&p->throttle, &text);
	p->narration = buf_take(&text, NULL);
}
