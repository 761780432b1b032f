/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics of plans: slack by class, and what planning costs. Classes are named by workloads, and so
 * from outside: no more than so many have series, the first by name, and what is left out is
 * counted. Where nothing else is in a name, it is a number of pods.
 */
#include "aggregator/api/metrics.h"
#include "aggregator/api/plan_slot.h"

enum { CLASSES_MOST = 1000 };

typedef double number_of(const struct slack_class *c);

static double wanted_of(const struct slack_class *c)
{
	return c->wanted;
}

static double placed_of(const struct slack_class *c)
{
	return c->placed;
}

static double unplaced_of(const struct slack_class *c)
{
	return c->unplaced;
}

static double fragmentation_of(const struct slack_class *c)
{
	return (double)c->fragmentation_ppm / SLACK_PPM;
}

static const struct {
	const char *name, *help;
	number_of *number;
} families[] = {
	{"evenkeel_slack_wanted", "Placeholders that shall be there, by class.", wanted_of},
	{"evenkeel_slack_placed", "Placeholders that have a node.", placed_of},
	{"evenkeel_slack_unplaced", "Placeholders for which there is no room.", unplaced_of},
	{"evenkeel_slack_fragmentation_ratio",
	 "Share of what is free that no pod of that class can use.", fragmentation_of},
};

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
	for (int c = 0; c < SLACK_CAUSES; c++) {
		buf_printf(out, "%s{cause=\"%s\"}", name, slack_cause_name((enum slack_cause)c));
		metrics_write_value(out, (double)r->slack_moves[c]);
	}
}

static void write_slack(struct buf *out, const struct plan_result *r)
{
	const struct slack_result *s = &r->slack;
	double add = 0;

	for (size_t f = 0; f < sizeof(families) / sizeof(families[0]); f++) {
		metrics_write_family(out, families[f].name, families[f].help);
		for (size_t i = 0; i < told(s); i++)
			write_sample(out, families[f].name, &s->classes[i], "",
				     families[f].number(&s->classes[i]));
	}
	write_slots(out, s);
	for (size_t i = 0; i < s->demand_count; i++)
		add += s->demand[i].count;
	metrics_write_family(out, "evenkeel_slack_nodes_to_add",
			     "Nodes that would hold what is unplaced.");
	metrics_write_sample(out, "evenkeel_slack_nodes_to_add", NULL, add);
	metrics_write_family(out, "evenkeel_slack_extra_cpu_millicores",
			     "CPU that slack shall be at least, by the rate or by arrivals.");
	metrics_write_sample(out, "evenkeel_slack_extra_cpu_millicores", NULL,
			     (double)s->extra.cpu_milli);
	metrics_write_family(out, "evenkeel_slack_extra_memory_bytes",
			     "Memory that slack shall be at least, likewise.");
	metrics_write_sample(out, "evenkeel_slack_extra_memory_bytes", NULL,
			     (double)s->extra.mem_bytes);
	write_moves(out, r);
	metrics_write_family(out, "evenkeel_slack_notes",
			     "Annotations and wishes that are not followed.");
	metrics_write_sample(out, "evenkeel_slack_notes", NULL, (double)s->issue_count);
	metrics_write_family(out, "evenkeel_slack_classes_left_out",
			     "Classes beyond those that have series.");
	metrics_write_sample(out, "evenkeel_slack_classes_left_out", NULL,
			     (double)(s->class_count - told(s)));
}

static void write_planner(struct buf *out, const struct planner_counters *c)
{
	metrics_write_family(out, "evenkeel_planner_steps_total", "Plans that were made.");
	metrics_write_sample(out, "evenkeel_planner_steps_total", NULL,
			     (double)counter_get(&c->steps));
	metrics_write_family(out, "evenkeel_planner_seconds_total", "Time that took.");
	metrics_write_sample(out, "evenkeel_planner_seconds_total", NULL,
			     (double)counter_get(&c->took_ns) / 1e9);
	metrics_write_family(out, "evenkeel_planner_last_seconds", "Time that the last took.");
	metrics_write_sample(out, "evenkeel_planner_last_seconds", NULL,
			     (double)counter_get(&c->last_ns) / 1e9);
	metrics_write_family(out, "evenkeel_planner_late_total",
			     "Plans that took longer than --plan-every.");
	metrics_write_sample(out, "evenkeel_planner_late_total", NULL,
			     (double)counter_get(&c->late));
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
