/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics of plans: slack by class, and what planning costs. Classes are named by workloads, and so
 * from outside: no more than so many have series, the first by name, and what is left out is
 * counted. Where nothing else is in a name, it is a number of pods.
 *
 * Drains are under cluster-autoscaler's names where it has the metric
 * (scaled_down_nodes_total, unneeded_nodes_count, ..), behind evenkeel_drain_. Labels are of closed
 * sets, verdicts and reasons; which node it is stands in /v1/drain alone. A reason without a node
 * has its series, too, so that an alert on it works before it is ever met.
 */
#include "aggregator/api/metrics.h"
#include "aggregator/planner/plan.h"
#include "aggregator/policy/drain/drain.h"

/* --- slack, and what planning costs */

enum { CLASSES_MOST = 1000 };

static const struct {
	const char *name, *help;
} families[] = {
	{"evenkeel_slack_wanted", "Placeholders that shall be there, by class."},
	{"evenkeel_slack_placed", "Placeholders that have a node."},
	{"evenkeel_slack_unplaced", "Placeholders for which there is no room."},
	{"evenkeel_slack_fragmentation_ratio",
	 "Share of what is free that no pod of that class can use."},
};

static double number_of(size_t family, const struct slack_class *c)
{
	const double numbers[] = {c->wanted, c->placed, c->unplaced,
				  (double)c->fragmentation_ppm / SLACK_PPM};

	return numbers[family];
}

static void write_sample(struct buf *out, const char *family, const struct slack_class *c,
			 const char *labels, double value)
{
	buf_printf(out, "%s{class=\"", family);
	metrics_write_label(out, c->key);
	buf_printf(out, "\"%s}", labels);
	metrics_write_value(out, value);
}

static size_t told(const struct slack_result *s)
{
	return s->class_count < CLASSES_MOST ? s->class_count : CLASSES_MOST;
}

static void write_slots(struct buf *out, const struct slack_result *s)
{
	static const char name[] = "evenkeel_slack_slots";

	metrics_write_family(out, name,
			     "Pods like those of the class that could start now: as requests have "
			     "it, and where the CPU and memory are really there.");
	for (size_t i = 0; i < told(s); i++) {
		const struct slack_class *c = &s->classes[i];

		write_sample(out, name, c, ",by=\"requests\"", (double)c->slots);
		if (c->slots_by_use >= 0)
			write_sample(out, name, c, ",by=\"use\"", (double)c->slots_by_use);
	}
}

static void write_moves(struct buf *out, const struct plan_result *r)
{
	static const char name[] = "evenkeel_slack_moves_total";

	metrics_write_family(out, name, "Placeholders that plans moved, by cause.");
	for (int c = 0; c < SLACK_CAUSES; c++)
		metrics_write_labelled(out, name, "cause", slack_cause_name((enum slack_cause)c),
				       (double)r->slack_moves[c]);
}

static void write_slack(struct buf *out, const struct plan_result *r)
{
	const struct slack_result *s = &r->slack;
	double add = 0;

	for (size_t f = 0; f < sizeof(families) / sizeof(families[0]); f++) {
		metrics_write_family(out, families[f].name, families[f].help);
		for (size_t i = 0; i < told(s); i++)
			write_sample(out, families[f].name, &s->classes[i], "",
				     number_of(f, &s->classes[i]));
	}
	write_slots(out, s);
	for (size_t i = 0; i < s->demand_count; i++)
		add += s->demand[i].count;
	metrics_write_one(out, "evenkeel_slack_nodes_to_add",
			  "Nodes that would hold what is unplaced.", add);
	metrics_write_one(out, "evenkeel_slack_extra_cpu_millicores",
			  "CPU that slack shall be at least, by the rate or by arrivals.",
			  (double)s->extra.cpu_milli);
	metrics_write_one(out, "evenkeel_slack_extra_memory_bytes",
			  "Memory that slack shall be at least, likewise.",
			  (double)s->extra.mem_bytes);
	write_moves(out, r);
	metrics_write_one(out, "evenkeel_slack_notes",
			  "Annotations and wishes that are not followed.", (double)s->issue_count);
	metrics_write_one(out, "evenkeel_slack_classes_left_out",
			  "Classes beyond those that have series.",
			  (double)(s->class_count - told(s)));
}

static void write_planner(struct buf *out, const struct planner_counters *c)
{
	metrics_write_counter(out, "evenkeel_planner_steps_total", "Plans that were made.",
			      &c->steps);
	metrics_write_one(out, "evenkeel_planner_seconds_total", "Time that took.",
			  (double)counter_get(&c->took_ns) / 1e9);
	metrics_write_one(out, "evenkeel_planner_last_seconds", "Time that the last took.",
			  (double)counter_get(&c->last_ns) / 1e9);
	metrics_write_counter(out, "evenkeel_planner_late_total",
			      "Plans that took longer than --plan-interval.", &c->late);
}

void metrics_write_plan(struct buf *out, const struct api_context *ctx)
{
	struct plan_result *r;

	if (!ctx->plans)
		return;
	write_planner(out, &ctx->counters->planner);
	r = plan_slot_take(ctx->plans);
	if (r)
		write_slack(out, r);
	plan_result_drop(r);
}

/* --- drained nodes, and what planning drains costs */

static void write_counters(struct buf *out, const struct drain_counters *c)
{
	static const char scaled[] = "evenkeel_drain_scaled_down_nodes_total",
			  took[] = "evenkeel_drain_function_duration_seconds";

	metrics_write_family(out, scaled, "Nodes that were on their way, and are gone.");
	metrics_write_labelled(out, scaled, "reason", "empty",
			       (double)counter_get(&c->scaled_down_empty));
	metrics_write_labelled(out, scaled, "reason", "underutilized",
			       (double)counter_get(&c->scaled_down_underutilized));
	metrics_write_counter(out, "evenkeel_drain_scaled_down_gpu_nodes_total",
			      "Those of them with GPUs.", &c->scaled_down_gpu);
	buf_printf(out, "# HELP %s How long planning drains took.\n# TYPE %s summary\n", took,
		   took);
	buf_printf(out, "%s_sum{function=\"plan\"}", took);
	metrics_write_value(out, (double)counter_get(&c->took_ns) / 1e9);
	buf_printf(out, "%s_count{function=\"plan\"}", took);
	metrics_write_value(out, (double)counter_get(&c->steps));
}

/* --- the plan of drains */

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
		metrics_write_labelled(out, nodes, "verdict",
				       drain_verdict_name((enum drain_verdict)v), t.verdicts[v]);
	metrics_write_one(out, "evenkeel_drain_unneeded_nodes",
			  "Nodes that could go, all of them together.",
			  t.verdicts[DRAIN_UNNEEDED] + t.verdicts[DRAIN_SELECTED]);
	metrics_write_family(out, stay, "Nodes that do not go now, by their first reason.");
	for (int r = DRAIN_NONE + 1; r < DRAIN_REASONS; r++)
		metrics_write_labelled(out, stay, "reason", drain_reason_name((enum drain_reason)r),
				       t.reasons[r]);
	metrics_write_one(out, "evenkeel_drain_idle_nodes",
			  "Nodes that requests hold, and would not if they were right-sized.",
			  t.idle);
}

static void write_wave(struct buf *out, const struct drain_wave *w)
{
	static const char nodes[] = "evenkeel_drain_wave_nodes";

	metrics_write_family(out, nodes, "Nodes that may be drained now.");
	metrics_write_labelled(out, nodes, "kind", "empty", (double)w->empty_count);
	metrics_write_labelled(out, nodes, "kind", "drain",
			       (double)(w->node_count - w->empty_count));
	metrics_write_one(out, "evenkeel_drain_wave_pods", "Pods that would move.",
			  (double)w->pods);
	metrics_write_one(out, "evenkeel_drain_wave_robust",
			  "1 when there is room as well if the scheduler puts them elsewhere.",
			  w->robust);
}

static void write_throttle(struct buf *out, const struct drain_throttle *t)
{
	static const char used[] = "evenkeel_drain_in_progress",
			  most[] = "evenkeel_drain_parallelism";

	metrics_write_one(out, "evenkeel_drain_throttled",
			  "1 when nodes wait and no more of any kind, empty or drained, may go.",
			  t->throttled);
	metrics_write_one(out, "evenkeel_drain_held_nodes",
			  "Nodes that wait for others to be gone.", (double)t->held);
	metrics_write_family(out, used, "Nodes on their way, and in the wave.");
	metrics_write_labelled(out, used, "kind", "all", (double)t->used);
	metrics_write_labelled(out, used, "kind", "drain", (double)t->drains_used);
	metrics_write_family(out, most, "How many of them may be at once.");
	metrics_write_labelled(out, most, "kind", "all", (double)t->limit);
	metrics_write_labelled(out, most, "kind", "drain", (double)t->drains_limit);
}

static void write_reserved(struct buf *out, const struct drain_reserved *o)
{
	static const char name[] = "evenkeel_drain_owed_pods";

	metrics_write_family(out, name, "Pods that were given room before any node was asked.");
	metrics_write_labelled(out, name, "kind", "deletion", (double)o->of_deletions);
	metrics_write_labelled(out, name, "kind", "eviction", (double)o->of_evictions);
	metrics_write_labelled(out, name, "kind", "pending", (double)o->pending);
	metrics_write_labelled(out, name, "kind", "placeholder", (double)o->placeholders);
	metrics_write_one(out, "evenkeel_drain_unplaced_pods",
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
		write_reserved(out, &r->drain->reserved);
		metrics_write_one(out, "evenkeel_drain_complete",
				  "1 when the plan asked every candidate.", r->drain->complete);
	}
	plan_result_drop(r);
}
