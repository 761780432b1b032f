/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole aggregator under 5000 agents that report 30 pods of two containers each every 5 s: real sockets, seals and
 * frames from ten processes on the same machine, which take their share of it. What the simulator itself used is a
 * row, too, so that a machine too small or too busy for both can be told from an aggregator that is too slow.
 */
#include <math.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>

#include "shared/clock.h"
#include "tests/bench_agent.h"
#include "tests/bench_report.h"
#include "tests/fleet/launch.h"
#include "tests/process.h"

#define NODES "5000"
/* From the start of the fleet: connecting, first intervals and identities, windows that begin. */
#define WARMUP "20s"

enum { NODE_COUNT = 5000, WARMUP_MS = 20000, MEASURED_MS = 45000, START_S = 60 };

static double applied(const struct stack *s)
{
	return stack_metric(s, 0, "evenkeel_frames_total{result=\"applied\"}");
}

static bool all_are_heard(void *ctx)
{
	return applied(ctx) >= NODE_COUNT;
}

static double number(const cJSON *json, const char *path)
{
	const cJSON *value = json_at(json, path);

	return cJSON_IsNumber(value) ? cJSON_GetNumberValue(value) : (double)NAN;
}

static void report_fleet(const cJSON *report, double unaccounted)
{
	double made = number(report, "intervals.made"), seconds = number(report, "seconds");

	bench_row("ack of an interval, median", "ms", (double)NAN, 0,
		  number(report, "ackMilliseconds.p50"));
	bench_row("ack of an interval, 99 of 100", "ms", 5, 0,
		  number(report, "ackMilliseconds.p99"));
	bench_row("bytes of an interval, identities once a minute", "bytes", 20 * 1024, 0,
		  number(report, "bytesPerInterval"));
	bench_row("intervals made and neither applied nor told as lost", "intervals", 0, 0,
		  unaccounted);
	bench_row("frames sent again for want of an answer", "frames", (double)NAN, 0,
		  number(report, "frames.timeouts"));
	bench_row("intervals the simulator made late by over 100 ms", "%", (double)NAN, 0,
		  100 * number(report, "intervals.late") / made);
	bench_row("CPU of the simulator, of one core", "%", 100, 0,
		  100 * number(report, "cpuSeconds") / seconds);
}

static void sleep_until_warm(int64_t begin_ns)
{
	int64_t left_ms = WARMUP_MS - (clock_mono_ns() - begin_ns) / NS_PER_MS;

	if (left_ms > 0)
		poll(NULL, 0, (int)left_ms);
}

int main(void)
{
	static const char *const options[] = {"--nodes",  NODES,	  "--pods-per-node",
					      "30",	  "--containers", "2",
					      "--warmup", WARMUP,	  NULL};
	struct stack *s = stack_new();
	pid_t fleet, aggregator;
	double cpu_percent, resident_mib;
	cJSON *report;
	int64_t begin;

	stack_start_aggregator(s, 0);
	aggregator = s->aggregators[0].pid;
	begin = clock_mono_ns();
	fleet = fleet_start(s, options);
	if (!await(all_are_heard, s, START_S)) {
		fprintf(stderr, "%.0f intervals were applied after %d s\n", applied(s), START_S);
		fleet_print_log(s);
		stack_free(s, 1);
		return 1;
	}
	bench_begin("fleet");
	bench_row("until all 5000 agents are heard", "s", 30, 0,
		  (double)(clock_mono_ns() - begin) / NS_PER_SEC);
	sleep_until_warm(begin);
	cpu_percent = bench_cpu_percent(aggregator, MEASURED_MS);
	resident_mib = bench_resident_mib(aggregator);
	report = fleet_stop(s, fleet);
	if (!report) {
		fleet_print_log(s);
		stack_free(s, 1);
		return 1;
	}
	bench_row("CPU of the aggregator, of one core", "%", 25, 0, cpu_percent);
	bench_row("resident memory of the aggregator", "MiB", 1024, 0, resident_mib);
	report_fleet(report, number(report, "intervals.made") - applied(s) -
				     number(report, "intervals.skipped") -
				     number(report, "intervals.refused") -
				     number(report, "intervals.unanswered"));
	bench_end();
	cJSON_Delete(report);
	stack_free(s, 0);
	return 0;
}
