/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fleet/load.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/bench_report.h"
#include "tests/process.h"

/* Between looks: an aggregator that is asked all the time would be measured with that. */
#define LOOK_NS (500 * NS_PER_MS)

double load_applied(const struct stack *s)
{
	return stack_metric(s, 0, "evenkeel_frames_total{result=\"applied\"}");
}

double load_fresh(const struct stack *s)
{
	cJSON *status = stack_get(s, 0, "/v1/status");
	const cJSON *fresh = json_at(status, "agents.fresh");
	double count = cJSON_IsNumber(fresh) ? cJSON_GetNumberValue(fresh) : 0;

	cJSON_Delete(status);
	return count;
}

struct wait {
	const struct stack *stack;
	double nodes;
	int64_t looked_ns;
};

static bool all_are_fresh(void *ctx)
{
	struct wait *w = ctx;
	int64_t now_ns = clock_mono_ns();

	if (now_ns - w->looked_ns < LOOK_NS)
		return false;
	w->looked_ns = now_ns;
	return load_fresh(w->stack) >= w->nodes;
}

double load_await_fresh(struct stack *s, double nodes, int64_t begin_ns, double timeout_s)
{
	struct wait w = {s, nodes, 0};

	if (await(all_are_fresh, &w, timeout_s))
		return (double)(clock_mono_ns() - begin_ns) / NS_PER_SEC;
	fprintf(stderr, "%.0f of %.0f nodes are fresh after %.0f s\n", load_fresh(s), nodes,
		timeout_s);
	fleet_print_log(s);
	return NAN;
}

double load_number(const cJSON *report, const char *path)
{
	const cJSON *value = json_at(report, path);

	return cJSON_IsNumber(value) ? cJSON_GetNumberValue(value) : (double)NAN;
}

double load_unaccounted(const cJSON *report, double applied)
{
	double doubt =
		load_number(report, "intervals.inDoubt") + load_number(report, "intervals.merged");
	/* All that may have been applied and is not counted so. */
	double gap = load_number(report, "intervals.made") -
		     load_number(report, "intervals.skipped") -
		     load_number(report, "intervals.refused") -
		     load_number(report, "intervals.unanswered") +
		     load_number(report, "intervals.inDoubt") - applied;

	if (gap < 0 || isnan(gap))
		return gap;
	return gap > doubt ? gap - doubt : 0;
}

double load_acks(const cJSON *report, int phase, const char *name)
{
	const cJSON *of = cJSON_GetArrayItem(json_at(report, "phases"), phase);

	return of ? load_number(of, name) : (double)NAN;
}

void load_report_acks(const cJSON *report, int phase, const char *what, double budget_ms)
{
	if (!(load_acks(report, phase, "count") > 0))
		return;
	bench_row_of(what, ", median", "ms", (double)NAN, load_acks(report, phase, "p50"));
	bench_row_of(what, ", 99 of 100", "ms", budget_ms, load_acks(report, phase, "p99"));
	bench_row_of(what, ", longest", "ms", (double)NAN, load_acks(report, phase, "max"));
}

/* Of the acks of one kind, whose name in the report is `key`. */
static void report_kind(const cJSON *report, int phase, const char *what, const char *key,
			double budget_ms)
{
	static const struct {
		const char *label, *name, *unit;
	} rows[] = {
		{"number", "count", "acks"},
		{"median", "p50", "ms"},
		{"99 of 100", "p99", "ms"},
		{"longest", "max", "ms"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *label = mem_printf("%s, %s", what, rows[i].label);
		char *name = mem_printf("%s.%s", key, rows[i].name);
		bool budgeted = !strcmp(rows[i].name, "p99");

		bench_row(label, rows[i].unit, budgeted ? budget_ms : (double)NAN, 0,
			  load_acks(report, phase, name));
		free(label);
		free(name);
	}
}

void load_report_kinds(const cJSON *report, int phase, const char *prefix, double budget_ms)
{
	char *first = mem_printf("%sack at first try", prefix);
	char *again = mem_printf("%sack after a frame sent again", prefix);

	report_kind(report, phase, first, "firstTry", budget_ms);
	report_kind(report, phase, again, "again", (double)NAN);
	free(first);
	free(again);
}

void load_report(const cJSON *report, const char *prefix, double unaccounted)
{
	double made = load_number(report, "intervals.made");

	bench_row_of(prefix, "bytes of an interval", "bytes", (double)NAN,
		     load_number(report, "bytesPerInterval"));
	if (!isnan(unaccounted))
		bench_row_of(prefix, "intervals made and neither applied nor told as lost",
			     "intervals", 0, fabs(unaccounted));
	bench_row_of(prefix, "intervals told as lost", "intervals", (double)NAN,
		     load_number(report, "intervals.skipped") +
			     load_number(report, "intervals.refused"));
	bench_row_of(prefix, "intervals still unanswered at the end", "intervals", (double)NAN,
		     load_number(report, "intervals.unanswered"));
	bench_row_of(prefix, "frames sent again for want of an answer", "frames", (double)NAN,
		     load_number(report, "frames.timeouts"));
	bench_row_of(prefix, "intervals the simulator made late by over 100 ms", "%", (double)NAN,
		     100 * load_number(report, "intervals.late") / made);
	bench_row_of(prefix, "CPU of the simulator, of one core", "%", (double)NAN,
		     100 * load_number(report, "cpuSeconds") / load_number(report, "seconds"));
}
