/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics of plans: slack by class, drains, and the cost of planning. Classes are named by
 * workloads, and so from outside: the first CLASSES_MOST by name have series, and the rest is
 * counted.
 *
 * Drains have cluster-autoscaler's names where it has the metric (scaled_down_nodes_total,
 * unneeded_nodes_count, ..), behind evenkeel_drain_. Labels are of closed sets, verdicts and
 * reasons; nodes are named in /v1/drain alone. A reason without a node has its series, too, so that
 * an alert on it works before its first node.
 */
#include "aggregator/api/metrics.h"

#include <math.h>

#include "aggregator/planner/plan.h"
#include "aggregator/policy/drain/drain.h"

/* --- slack, and the cost of planning */

enum { CLASSES_MOST = 1000 };

static size_t count_shown(const struct slack_result *s)
{
	return s->class_count < CLASSES_MOST ? s->class_count : CLASSES_MOST;
}

/* The samples of a class; help of a family stands in its first. */
enum { CLASS_SAMPLES = 6 };

static struct metric class_sample(const struct slack_class *c, size_t sample)
{
	static const char slots[] = "evenkeel_slack_slots";
	const struct metric of[CLASS_SAMPLES] = {
		{"evenkeel_slack_wanted", "", "Placeholders that shall be there, by class.",
		 c->wanted},
		{"evenkeel_slack_placed", "", "Placeholders that have a node.", c->placed},
		{"evenkeel_slack_unplaced", "", "Placeholders for which there is no room.",
		 c->unplaced},
		{"evenkeel_slack_fragmentation_ratio", "",
		 "Share of what is free that no pod of that class can use.",
		 (double)c->fragmentation_ppm / SLACK_PPM},
		{slots, ",by=\"requests\"",
		 "Pods like those of the class that could start now: as requests have it, and "
		 "where the CPU and memory are really there.",
		 (double)c->slots},
		{slots, ",by=\"use\"", NULL, c->slots_by_use < 0 ? NAN : (double)c->slots_by_use},
	};

	return of[sample];
}

static void write_classes(struct buf *out, const struct slack_result *s)
{
	static const struct slack_class none;

	for (size_t k = 0; k < CLASS_SAMPLES; k++) {
		const struct metric head = class_sample(&none, k);

		if (head.help)
			metrics_write_family(out, head.family, head.help);
		for (size_t i = 0; i < count_shown(s); i++) {
			const struct metric m = class_sample(&s->classes[i], k);

			metrics_write_row(out, m.family, "class", s->classes[i].key, m.labels,
					  m.value);
		}
	}
}

static double count_nodes_to_add(const struct slack_result *s)
{
	double add = 0;

	for (size_t i = 0; i < s->demand_count; i++)
		add += s->demand[i].count;
	return add;
}

static void write_slack(struct buf *out, const struct plan_result *r)
{
	static const char moves[] = "evenkeel_slack_moves_total";
	const struct slack_result *s = &r->slack;
	const struct metric samples[] = {
		{"evenkeel_slack_nodes_to_add", NULL, "Nodes that would hold what is unplaced.",
		 count_nodes_to_add(s)},
		{"evenkeel_slack_extra_cpu_millicores", NULL,
		 "CPU that slack shall be at least, by the rate or by arrivals.",
		 (double)s->extra.cpu_milli},
		{"evenkeel_slack_extra_memory_bytes", NULL,
		 "Memory that slack shall be at least, likewise.", (double)s->extra.mem_bytes},
		{"evenkeel_slack_notes", NULL, "Annotations and wishes that are not followed.",
		 (double)s->issue_count},
		{"evenkeel_slack_classes_left_out", NULL, "Classes beyond those that have series.",
		 (double)(s->class_count - count_shown(s))},
	};

	write_classes(out, s);
	METRICS_WRITE(out, samples);
	metrics_write_family(out, moves, "Placeholders that plans moved, by cause.");
	for (int c = 0; c < SLACK_CAUSES; c++)
		metrics_write_labelled(out, moves, "cause", slack_cause_name((enum slack_cause)c),
				       (double)r->slack_moves[c]);
}

void metrics_write_plan(struct buf *out, const struct api_context *ctx)
{
	const struct planner_counters *c = &ctx->counters->planner;
	const struct metric samples[] = {
		{"evenkeel_planner_steps_total", NULL, "Plans that were made.", COUNT(c->steps)},
		{"evenkeel_planner_seconds_total", NULL, "Time that took.",
		 metrics_seconds(&c->took_ns)},
		{"evenkeel_planner_last_seconds", NULL, "Time that the last took.",
		 metrics_seconds(&c->last_ns)},
		{"evenkeel_planner_late_total", NULL,
		 "Plans that took longer than --plan-interval.", COUNT(c->late)},
	};
	struct plan_result *r;

	if (!ctx->plans)
		return;
	METRICS_WRITE(out, samples);
	r = plan_slot_take(ctx->plans);
	if (r)
		write_slack(out, r);
	plan_result_drop(r);
}

/* --- waves that were carried out */

static void write_waves(struct buf *out, const struct wave_counters *c)
{
	static const char waves[] = "evenkeel_act_waves_total",
			  evictions[] = "evenkeel_act_evictions_total";
	const struct metric samples[] = {
		{waves, "outcome=\"drained\"", "Waves that the actuator ended.",
		 COUNT(c->ended[WAVE_DRAINED])},
		{waves, "outcome=\"rolledBack\"", NULL, COUNT(c->ended[WAVE_ROLLED_BACK])},
		{waves, "outcome=\"stopped\"", NULL, COUNT(c->ended[WAVE_STOPPED])},
		{evictions, "result=\"done\"", "Evictions of these waves.", COUNT(c->evictions)},
		{evictions, "result=\"refused\"", NULL, COUNT(c->refused)},
		{"evenkeel_act_rolled_back_nodes_total", NULL, "Nodes that were rolled back.",
		 COUNT(c->rolled_back)},
		{"evenkeel_act_seconds_total", NULL, "Time that these waves took.",
		 COUNT(c->seconds)},
	};

	METRICS_WRITE(out, samples);
}

/* --- drained nodes, and the cost of planning drains */

static void write_counters(struct buf *out, const struct drain_counters *c)
{
	static const char took[] = "evenkeel_drain_function_duration_seconds";
	const struct metric samples[] = {
		{"evenkeel_drain_scaled_down_nodes_total", "reason=\"empty\"",
		 "Nodes that were on their way, and are gone.", COUNT(c->scaled_down_empty)},
		{"evenkeel_drain_scaled_down_nodes_total", "reason=\"underutilized\"", NULL,
		 COUNT(c->scaled_down_underutilized)},
		{"evenkeel_drain_scaled_down_gpu_nodes_total", NULL, "Those of them with GPUs.",
		 COUNT(c->scaled_down_gpu)},
	};

	METRICS_WRITE(out, samples);
	buf_printf(out, "# HELP %s How long planning drains took.\n# TYPE %s summary\n", took,
		   took);
	buf_printf(out, "%s_sum{function=\"plan\"}", took);
	metrics_write_value(out, metrics_seconds(&c->took_ns));
	buf_printf(out, "%s_count{function=\"plan\"}", took);
	metrics_write_value(out, COUNT(c->steps));
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
	metrics_write_family(out, stay, "Nodes that do not go now, by their first reason.");
	for (int r = DRAIN_NONE + 1; r < DRAIN_REASONS; r++)
		metrics_write_labelled(out, stay, "reason", drain_reason_name((enum drain_reason)r),
				       t.reasons[r]);
	METRICS_WRITE(out,
		      ((const struct metric[]){
			      {"evenkeel_drain_unneeded_nodes", NULL,
			       "Nodes that could go, all of them together.",
			       t.verdicts[DRAIN_UNNEEDED] + t.verdicts[DRAIN_SELECTED]},
			      {"evenkeel_drain_idle_nodes", NULL,
			       "Nodes that requests hold, and would not if they were right-sized.",
			       t.idle},
		      }));
}

static void write_drain(struct buf *out, const struct drain_plan *p)
{
	const struct drain_wave *w = &p->wave;
	const struct drain_throttle *t = &p->throttle;
	const struct drain_reserved *o = &p->reserved;
	const struct metric samples[] = {
		{"evenkeel_drain_wave_nodes", "kind=\"empty\"", "Nodes that may be drained now.",
		 (double)w->empty_count},
		{"evenkeel_drain_wave_nodes", "kind=\"drain\"", NULL,
		 (double)(w->node_count - w->empty_count)},
		{"evenkeel_drain_wave_pods", NULL, "Pods that would move.", (double)w->pods},
		{"evenkeel_drain_wave_robust", NULL,
		 "1 when there is room as well if the scheduler puts them elsewhere.", w->robust},
		{"evenkeel_drain_throttled", NULL,
		 "1 when nodes wait and no more of any kind, empty or drained, may go.",
		 t->throttled},
		{"evenkeel_drain_held_nodes", NULL, "Nodes that wait for others to be gone.",
		 (double)t->held},
		{"evenkeel_drain_in_progress", "kind=\"all\"",
		 "Nodes on their way, and in the wave.", (double)t->used},
		{"evenkeel_drain_in_progress", "kind=\"drain\"", NULL, (double)t->drains_used},
		{"evenkeel_drain_parallelism", "kind=\"all\"", "How many of them may be at once.",
		 (double)t->limit},
		{"evenkeel_drain_parallelism", "kind=\"drain\"", NULL, (double)t->drains_limit},
		{"evenkeel_drain_owed_pods", "kind=\"deletion\"",
		 "Pods that were given room before any node was asked.", (double)o->of_deletions},
		{"evenkeel_drain_owed_pods", "kind=\"eviction\"", NULL, (double)o->of_evictions},
		{"evenkeel_drain_owed_pods", "kind=\"pending\"", NULL, (double)o->pending},
		{"evenkeel_drain_owed_pods", "kind=\"placeholder\"", NULL, (double)o->placeholders},
		{"evenkeel_drain_unplaced_pods", NULL,
		 "Pods of nodes on their way, and evicted ones, that fit nowhere.",
		 (double)(o->unplaced + o->waiting)},
		{"evenkeel_drain_complete", NULL, "1 when the plan asked every candidate.",
		 p->complete},
	};

	write_nodes(out, p);
	METRICS_WRITE(out, samples);
}

void metrics_write_drain(struct buf *out, const struct api_context *ctx)
{
	struct plan_result *r;

	if (!ctx->plans)
		return;
	write_waves(out, &ctx->counters->waves);
	write_counters(out, &ctx->counters->drain);
	r = plan_slot_take(ctx->plans);
	if (r && r->drain)
		write_drain(out, r->drain);
	plan_result_drop(r);
}
