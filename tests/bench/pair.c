/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a second aggregator costs: the CPU of an agent with 500 cgroups, and the bytes it sends, to one
 * and to two aggregators; and the CPU of two aggregators that answer a scheduler about pods in turn,
 * without and with the exchange of reservations (--peer). Kinds alternate, so that what else the
 * machine does meets both alike.
 */
#include <curl/curl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/bench_agent.h"
#include "tests/bench_report.h"
#include "tests/fleet/launch.h"
#include "tests/process.h"
#include "tests/scheduler.h"

enum { CGROUPS = 500, SETTLE_MS = 2000, ROUND_MS = 10000, ROUNDS = 3 };
enum { NODES = 1000, PODS_PER_NODE = 30, PODS = 300, TOGETHER_S = 20 };

/* A median of each kind, and how the second stands to the first. */
static void report(const char *what, const char *const kinds[2], const char *unit,
		   double values[2][ROUNDS])
{
	double median[2];

	for (int kind = 0; kind < 2; kind++) {
		char *label = mem_printf("%s, %s", what, kinds[kind]);

		median[kind] = bench_median(values[kind], ROUNDS);
		bench_row(label, unit, NAN, 0, median[kind]);
		free(label);
	}
	bench_row_of(what, ", the latter / the former", "x", NAN, median[1] / median[0]);
}

/* --- the agent -------------------------------------------------------------------------------- */

static double received(const struct stack *s, int aggregators)
{
	double bytes = 0;

	for (int i = 0; i < aggregators; i++)
		bytes += stack_metric(s, i, "evenkeel_frames_received_bytes_total");
	return bytes;
}

static void measure_agent(int aggregators, double *percent, double *bytes_per_s)
{
	struct stack *s = stack_new();
	int64_t begin_ns;
	double before;

	for (int i = 0; i < aggregators; i++)
		stack_start_aggregator(s, i);
	bench_agent_start(s, aggregators, "/sys/fs/cgroup", "10", "1s");
	poll(NULL, 0, SETTLE_MS);
	before = received(s, aggregators);
	begin_ns = clock_mono_ns();
	*percent = bench_cpu_percent(s->agent, ROUND_MS);
	*bytes_per_s = (received(s, aggregators) - before) /
		       ((double)(clock_mono_ns() - begin_ns) / NS_PER_SEC);
	stack_free(s, 0);
}

static void bench_agent_costs(void)
{
	static const char *const kinds[] = {"one aggregator", "two"};
	double percent[2][ROUNDS], bytes[2][ROUNDS];
	struct error error = {""};
	struct cgroup_fixture *f = bench_cgroups("pair", CGROUPS, &error);

	if (!f) {
		printf("SKIP: pair: %s\n", error.text);
		return;
	}
	for (int round = 0; round < ROUNDS; round++)
		for (int kind = 0; kind < 2; kind++)
			measure_agent(kind + 1, &percent[kind][round], &bytes[kind][round]);
	report("agent CPU, 500 cgroups, 10 Hz, 1 s", kinds, "% of core", percent);
	report("agent sends, 500 cgroups, 1 s", kinds, "bytes/s", bytes);
	cgroup_fixture_free(f);
}

/* --- the aggregators -------------------------------------------------------------------------- */

static double cpu_of_both(const struct stack *s)
{
	return process_cpu(s->aggregators[0].pid).ran_s + process_cpu(s->aggregators[1].pid).ran_s;
}

static bool are_together(void *ctx)
{
	return stack_metric(ctx, 0, "evenkeel_peer_connected") == 1 &&
	       stack_metric(ctx, 1, "evenkeel_peer_connected") == 1;
}

static void start_both(struct stack *s, bool exchange, const char *const options[2][3])
{
	for (int i = 0; i < 2; i++) {
		s->aggregators[i].more = exchange ? options[i] : NULL;
		stack_start_aggregator(s, i);
	}
	if (exchange && !await(are_together, s, TOGETHER_S)) {
		fprintf(stderr, "the aggregators do not exchange reservations\n");
		stack_free(s, 1);
		exit(1);
	}
}

/* Milliseconds of CPU and of waiting for the other aggregator, for one pod: filter and prioritize. */
static void measure_burst(struct stack *s, double *cpu_ms, double *wait_ms)
{
	struct scheduler scheduler = {.count = 0};
	double before;

	scheduler_read_nodes(&scheduler, s);
	before = cpu_of_both(s);
	for (int pod = 0; pod < PODS; pod++)
		scheduler_place(&scheduler, pod % 2, pod % 2,
				&(struct scheduler_pod){"burst", pod, 1});
	*cpu_ms = 1e3 * (cpu_of_both(s) - before) / PODS;
	*wait_ms = 0;
	for (int i = 0; i < 2; i++)
		*wait_ms += 1e3 * stack_metric(s, i, "evenkeel_peer_wait_seconds_total") / PODS;
	scheduler_fini(&scheduler);
}

static void bench_aggregator_costs(void)
{
	static const char *const kinds[] = {"without the exchange", "with it"};
	struct stack *s = stack_new();
	char *objects = mem_printf("%s/objects.json", s->folder), *peers[2];
	double cpu_ms[2][ROUNDS], wait_ms[2][ROUNDS];

	fleet_dump(objects, NODES, PODS_PER_NODE);
	for (int i = 0; i < 2; i++) {
		s->aggregators[i].snapshot_path = objects;
		s->aggregators[i].http_port = free_port();
		s->aggregators[i].ingest_port = free_port();
	}
	for (int i = 0; i < 2; i++)
		peers[i] = mem_printf("tcp://127.0.0.1:%d", s->aggregators[1 - i].ingest_port);
	for (int round = 0; round < ROUNDS; round++) {
		const char *const options[2][3] = {{"--peer", peers[0]}, {"--peer", peers[1]}};

		for (int kind = 0; kind < 2; kind++) {
			start_both(s, kind == 1, options);
			measure_burst(s, &cpu_ms[kind][round], &wait_ms[kind][round]);
			stack_kill_aggregator(s, 0);
			stack_kill_aggregator(s, 1);
		}
	}
	report("CPU of both for a pod of 1000 nodes", kinds, "ms", cpu_ms);
	bench_row("wait for the other one, for a pod", "ms", NAN, 0,
		  bench_median(wait_ms[1], ROUNDS));
	stack_free(s, 0);
	free(objects);
	free(peers[0]);
	free(peers[1]);
}

int main(void)
{
	if (sodium_init() < 0 || curl_global_init(CURL_GLOBAL_DEFAULT))
		return 1;
	bench_begin("pair");
	bench_agent_costs();
	bench_aggregator_costs();
	bench_end();
	return 0;
}
