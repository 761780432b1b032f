/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fleet/load.h"

#include <math.h>
#include <stdio.h>

#include "shared/clock.h"
#include "tests/bench_report.h"
#include "tests/process.h"

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

/* /metrics has a dozen samples of each node: asked for at every look it would cost the aggregator more than its agents do. */
#define LOOK_NS (500 * NS_PER_MS)

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

double load_await_fresh(struct stack *s, double nodes, int64_t begin_ns, double patience_s)
{
	struct wait w = {s, nodes, 0};

	if (await(all_are_fresh, &w, patience_s))
		return (double)(clock_mono_ns() - begin_ns) / NS_PER_SEC;
	fprintf(stderr, "%.0f of %.0f nodes are fresh after %.0f s\n", load_fresh(s), nodes,
		patience_s);
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
	return load_number(report, "intervals.made") - applied -
	       load_number(report, "intervals.skipped") - load_number(report, "intervals.refused") -
	       load_number(report, "intervals.unanswered");
}

void load_report(const cJSON *report, double unaccounted)
{
	double made = load_number(report, "intervals.made");
	double seconds = load_number(report, "seconds");

	bench_row("ack of an interval, median", "ms", (double)NAN, 0,
		  load_number(report, "ackMilliseconds.p50"));
	bench_row("ack of an interval, 99 of 100", "ms", 5, 0,
		  load_number(report, "ackMilliseconds.p99"));
	bench_row("bytes of an interval, identities once a minute", "bytes", 20 * 1024, 0,
		  load_number(report, "bytesPerInterval"));
	bench_row("intervals made and neither applied nor told as lost", "intervals",
		  isnan(unaccounted) ? (double)NAN : 0, 0, unaccounted);
	bench_row("frames sent again for want of an answer", "frames", (double)NAN, 0,
		  load_number(report, "frames.timeouts"));
	bench_row("intervals the simulator made late by over 100 ms", "%", (double)NAN, 0,
		  100 * load_number(report, "intervals.late") / made);
	bench_row("CPU of the simulator, of one core", "%", 100, 0,
		  100 * load_number(report, "cpuSeconds") / seconds);
}
