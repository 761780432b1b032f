/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics of drains, under cluster-autoscaler's names where it has the metric
 * (scaled_down_nodes_total, unneeded_nodes_count, ..), behind evenkeel_drain_. Labels are of closed
 * sets, verdicts and reasons; which node it is stands in /v1/drain alone. A reason without a node
 * has its series, too, so that an alert on it works before it is ever met.
 */
#include "aggregator/api/metrics.h"
#include "aggregator/api/plan_slot.h"
#include "aggregator/policy/drain/drain.h"

static void write_one(struct buf *out, const char *name, const char *help, double value)
{
	metrics_write_family(out, name, help);
	metrics_write_sample(out, name, NULL, value);
}

/* One sample of several; labels: key="value". */
static void write_labelled(struct buf *out, const char *name, const char *key, const char *text,
			   double value)
{
	buf_printf(out, "%s{%s=\"", name, key);
	metrics_write_label(out, text);
	buf_add_str(out, "\"}");
	metrics_write_value(out, value);
}

/* --- what became of them, and what planning costs */

static void write_counters(struct buf *out, const struct drain_counters *c)
{
	static const char scaled[] = "evenkeel_drain_scaled_down_nodes_total",
			  took[] = "evenkeel_drain_function_duration_seconds";

	metrics_write_family(out, scaled, "Nodes that were on their way, and are gone.");
	write_labelled(out, scaled, "reason", "empty", (double)counter_get(&c->scaled_down_empty));
	write_labelled(out, scaled, "reason", "underutilized",
		       (double)counter_get(&c->scaled_down_underutilized));
	write_one(out, "evenkeel_drain_scaled_down_gpu_nodes_total", "Those of them with GPUs.",
		  (double)counter_get(&c->scaled_down_gpu));
	buf_printf(out, "# HELP %s How long planning drains took.\n# TYPE %s summary\n", took,
		   took);
	buf_printf(out, "%s_sum{function=\"plan\"}", took);
	metrics_write_value(out, (double)counter_get(&c->took_ns) / 1e9);
	buf_printf(out, "%s_count{function=\"plan\"}", took);
	metrics_write_value(out, (double)counter_get(&c->steps));
}

/* --- the plan */

struct tally {
	double verdicts[DRAIN_VERDICTS], reasons[DRAIN_REASONS], idle;
};

static void count(const struct drain_plan *p, struct tally *t)
{
	*t = (struct tally){.idle = 0};
	for (size_t i = 0; i < p->node_count; i++) {
		const struct drain_plan_node *n = &p->nodes[i];

		t->verdicts[n->verdict]++;
		t->idle += n->idle_in_fact;
		if (n->reason_count)
			t->reasons[n->reasons[0].code]++;
	}
}

static void write_nodes(struct buf *out, const struct drain_plan *p)
{
	static const char nodes[] = "evenkeel_drain_nodes",
			  stay[] = "evenkeel_drain_unremovable_nodes";
	struct tally t;

	count(p, &t);
	metrics_write_family(out, nodes, "Nodes, by what the plan says of them.");
	for (int v = DRAIN_NEEDED; v < DRAIN_VERDICTS; v++)
		write_labelled(out, nodes, "verdict", drain_verdict_name((enum drain_verdict)v),
			       t.verdicts[v]);
	write_one(out, "evenkeel_drain_unneeded_nodes",
		  "Nodes that could go, all of them together.",
		  t.verdicts[DRAIN_UNNEEDED] + t.verdicts[DRAIN_GOES]);
	metrics_write_family(out, stay, "Nodes that do not go now, by their first reason.");
	for (int r = DRAIN_NONE + 1; r < DRAIN_REASONS; r++)
		write_labelled(out, stay, "reason", drain_reason_name((enum drain_reason)r),
			       t.reasons[r]);
	write_one(out, "evenkeel_drain_idle_nodes",
		  "Nodes that requests hold, and would not if they were right-sized.", t.idle);
}

static void write_wave(struct buf *out, const struct drain_wave *w)
{
	static const char nodes[] = "evenkeel_drain_wave_nodes";

	metrics_write_family(out, nodes, "Nodes that may be drained now.");
	write_labelled(out, nodes, "kind", "empty", (double)w->empty_count);
	write_labelled(out, nodes, "kind", "drain", (double)(w->node_count - w->empty_count));
	write_one(out, "evenkeel_drain_wave_pods", "Pods that would move.", (double)w->pods);
	write_one(out, "evenkeel_drain_wave_robust",
		  "1 when there is room as well if the scheduler puts them elsewhere.", w->robust);
}

static void write_throttle(struct buf *out, const struct drain_throttle *t)
{
	static const char used[] = "evenkeel_drain_in_progress",
			  most[] = "evenkeel_drain_parallelism";

	write_one(out, "evenkeel_drain_throttled",
		  "1 when nodes wait and no more of any kind, empty or drained, may go.",
		  t->throttled);
	write_one(out, "evenkeel_drain_held_nodes", "Nodes that wait for others to be gone.",
		  (double)t->held);
	metrics_write_family(out, used, "Nodes on their way, and in the wave.");
	write_labelled(out, used, "kind", "all", (double)t->used);
	write_labelled(out, used, "kind", "drain", (double)t->drains_used);
	metrics_write_family(out, most, "How many of them may be at once.");
	write_labelled(out, most, "kind", "all", (double)t->limit);
	write_labelled(out, most, "kind", "drain", (double)t->drains_limit);
}

static void write_owed(struct buf *out, const struct drain_owed *o)
{
	static const char name[] = "evenkeel_drain_owed_pods";

	metrics_write_family(out, name, "Pods that were given room before any node was asked.");
	write_labelled(out, name, "kind", "deletion", (double)o->of_deletions);
	write_labelled(out, name, "kind", "eviction", (double)o->of_evictions);
	write_labelled(out, name, "kind", "pending", (double)o->pending);
	write_labelled(out, name, "kind", "placeholder", (double)o->placeholders);
	write_one(out, "evenkeel_drain_unplaced_pods",
		  "Pods of nodes on their way, and evicted ones, that fit nowhere.",
		  (double)(o->unplaced + o->waiting));
}

void metrics_write_drain(struct buf *out, const struct api_context *ctx)
{
	struct plan_result *r;

	if (!ctx->plans)
		return;
	write_counters(out, &ctx->counters->drain);
	r = plan_slot_take(ctx->plans);
	if (r && r->drain) {
		write_nodes(out, r->drain);
		write_wave(out, &r->drain->wave);
		write_throttle(out, &r->drain->throttle);
		write_owed(out, &r->drain->owed);
		write_one(out, "evenkeel_drain_complete", "1 when the plan asked every candidate.",
			  r->drain->complete);
	}
	plan_result_drop(r);
}
