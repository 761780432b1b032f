/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole aggregator under 5000 agents that report 30 pods of two containers each every 5 s: real sockets, seals and
 * frames from ten processes on the same machine, which take their share of it. What the simulator itself used is a
 * row, too, so that a machine too small or too busy for both can be told from an aggregator that is too slow.
 * build/tests/soak does the same with other numbers, for longer.
 */
#include <math.h>
#include <poll.h>
#include <stdio.h>

#include "shared/clock.h"
#include "tests/bench_agent.h"
#include "tests/bench_report.h"
#include "tests/fleet/load.h"

#define NODES "5000"
/* From the start of the fleet: connecting, first intervals and identities, windows that begin. */
#define WARMUP "20s"

enum { NODE_COUNT = 5000, WARMUP_MS = 20000, MEASURED_MS = 45000, START_S = 60 };

static void sleep_until_warm(int64_t begin_ns)
{
	int64_t left_ms = WARMUP_MS - (clock_mono_ns() - begin_ns) / NS_PER_MS;

	if (left_ms > 0)
		poll(NULL, 0, (int)left_ms);
}

/* 0, or 1 when the fleet did not come up or end well. */
static int measure(struct stack *s)
{
	static const char *const options[] = {"--nodes",  NODES,	  "--pods-per-node",
					      "30",	  "--containers", "2",
					      "--warmup", WARMUP,	  NULL};
	pid_t aggregator = s->aggregators[0].pid, fleet;
	int64_t begin = clock_mono_ns();
	double heard_s;
	cJSON *report;

	fleet = fleet_start(s, options);
	heard_s = load_await_fresh(s, NODE_COUNT, begin, START_S);
	if (isnan(heard_s))
		return 1;
	bench_row("until all 5000 agents are heard", "s", 30, 0, heard_s);
	sleep_until_warm(begin);
	bench_row("CPU of the aggregator, of one core", "%", 25, 0,
		  bench_cpu_percent(aggregator, MEASURED_MS));
	bench_row("resident memory of the aggregator", "MiB", 1024, 0,
		  bench_resident_mib(aggregator));
	report = fleet_stop(s, fleet);
	if (!report) {
		fleet_print_log(s);
		return 1;
	}
	load_report(report, load_unaccounted(report, load_applied(s)));
	cJSON_Delete(report);
	return 0;
}

int main(void)
{
	struct stack *s = stack_new();
	int failed;

	stack_start_aggregator(s, 0);
	bench_begin("fleet");
	failed = measure(s);
	bench_end();
	stack_free(s, failed);
	return failed;
}
