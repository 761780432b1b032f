/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the real agent costs a machine with 500 cgroups: its CPU as a share of one core at 10 and at
 * 1 Hz, on all hierarchies and on the unified tree alone, while a real aggregator acknowledges what
 * it sends; its memory and the time to its first sample; and its memory once the ring of an agent
 * without an aggregator is full.
 */
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/ring.h"
#include "shared/clock.h"
#include "shared/interval.h"
#include "shared/mem.h"
#include "tests/bench_agent.h"
#include "tests/bench_report.h"

/*
 * Rounds are as long as what the agent does most rarely but for a rescan, which is once a minute.
 */
enum { CGROUPS = 500, SETTLE_MS = 2000, ROUNDS = 3, ROUND_MS = 5000 };

struct run {
	const char *what;
	const char *root; /* --cgroup-root */
	const char *rate;
	double budget; /* percent of one core */
};

static void report(const char *what, const char *which, const char *unit, double budget,
		   double measured)
{
	char *label = mem_printf("agent %s, %s", what, which);

	bench_row(label, unit, budget, 0, measured);
	free(label);
}

static void measure(const struct run *r)
{
	struct stack *s = stack_new();
	double shares[ROUNDS], start_ms, mib;
	char *what;

	stack_start_aggregator(s, 0);
	start_ms = bench_agent_start(s, 1, r->root, r->rate, "5s");
	mib = bench_resident_mib(s->agent);
	poll(NULL, 0, SETTLE_MS);
	for (int i = 0; i < ROUNDS; i++)
		shares[i] = bench_cpu_percent(s->agent, ROUND_MS);
	what = mem_printf("CPU, %d cgroups, %s Hz", CGROUPS, r->rate);
	report(what, r->what, "% of core", r->budget, bench_median(shares, ROUNDS));
	report("resident memory at first sample", r->what, "MiB", 8, mib);
	report("start to first sample", r->what, "ms", 250, start_ms);
	free(what);
	stack_free(s, 0);
}

/* How many intervals of that many workloads fill the ring. */
static int intervals_to_fill(size_t workloads)
{
	size_t one = sizeof(struct interval) + workloads * sizeof(struct entry);

	return (int)(RING_BYTES_DEFAULT / one) + 1;
}

/* One interval a second, as fast as may be; an eighth longer, to see it full and merging. */
static void measure_full_ring(const char *root, const char *which)
{
	int seconds = intervals_to_fill(CGROUPS) * 9 / 8 + 2;
	struct stack *s = stack_new();
	double empty;

	bench_agent_start(s, 0, root, "1", "1s");
	empty = bench_resident_mib(s->agent);
	printf("filling the ring, %d s ..\n", seconds);
	fflush(stdout);
	poll(NULL, 0, seconds * 1000);
	report("resident memory, ring full", which, "MiB", 16, bench_resident_mib(s->agent));
	report("of which grew since the first sample", which, "MiB", NAN,
	       bench_resident_mib(s->agent) - empty);
	stack_free(s, 0);
}

int main(void)
{
	static const struct run runs[] = {
		{"v1 and v2", "/sys/fs/cgroup", "10", 2},
		{"v1 and v2", "/sys/fs/cgroup", "1", 0.2},
		{"v2 alone", "/sys/fs/cgroup/unified", "10", 1},
		{"v2 alone", "/sys/fs/cgroup/unified", "1", 0.1},
	};
	struct error error = {""};
	struct cgroup_fixture *f = bench_cgroups("cost", CGROUPS, &error);

	if (!f || sodium_init() < 0) {
		printf("SKIP: agent_cost: %s\n", error.text);
		return 0;
	}
	bench_begin("agent_cost");
	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		if (access(runs[i].root, X_OK) == 0)
			measure(&runs[i]);
	}
	measure_full_ring(runs[0].root, runs[0].what);
	bench_end();
	cgroup_fixture_free(f);
	return 0;
}
