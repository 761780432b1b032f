/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/view_fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "shared/clock.h"
#include "shared/mem.h"

#define MIB 1048576.0
#define GIB (1024 * MIB)

static struct window_stats stats(int64_t end_ns, double seconds, double mean, double stddev,
				 bool percentiles)
{
	struct window_stats s = {
		.known = true,
		.percentiles = percentiles,
		.start_ns = end_ns - (int64_t)(seconds * NS_PER_SEC),
		.end_ns = end_ns,
		.samples = (uint64_t)(seconds * 10),
		.mean = mean,
		.stddev = stddev,
		.min = mean - 2 * stddev,
		.max = mean + 4 * stddev,
	};

	if (percentiles) {
		s.p50 = mean;
		s.p95 = mean + 2 * stddev;
		s.p99 = mean + 3 * stddev;
	}
	return s;
}

static struct latest latest(double value)
{
	return (struct latest){.known = true, .value = (float)value};
}

/* CPU and working set and memory over all windows; memory is 2 GiB, or `share` of it. */
static struct usage_summary usage(int64_t end_ns, double history_seconds, double cpu_mean,
				  double cpu_stddev, double share, bool percentiles)
{
	struct usage_summary u = {
		.latest = {.cpu_milli = latest(cpu_mean + cpu_stddev),
			   .mem_bytes = latest(2 * GIB * share),
			   .working_set_bytes = latest(GIB * share)},
	};

	for (int i = 0; i < WINDOWS; i++) {
		double seconds = fmin(history_seconds, 300.0 * (i + 1));

		u.windows[i] = (struct window_set){
			.cpu_milli = stats(end_ns, seconds, cpu_mean, cpu_stddev, percentiles),
			.mem_bytes = stats(end_ns, seconds, 2 * GIB * share, 64 * MIB * share,
					   percentiles),
			.working_set_bytes =
				stats(end_ns, seconds, GIB * share, 32 * MIB * share, percentiles),
			.counts = {.seconds = seconds,
				   .throttled_ratio = NAN,
				   .pressure = {[CONTENTION_CPU] = 0.125,
						[CONTENTION_MEMORY] = NAN,
						[STALL_CPU] = 0.03125,
						[STALL_MEMORY] = NAN},
				   .oom_kills = 1,
				   .oom_known = true},
		};
	}
	return u;
}

/* As stats pack it. */
static struct pod_usage pod_usage(int64_t end_ns, double cpu_mean, double cpu_stddev, double share)
{
	struct usage_summary u = usage(end_ns, 900, cpu_mean, cpu_stddev, share, false);
	struct pod_usage packed;

	pod_usage_pack(&u, end_ns, &packed);
	return packed;
}

struct node_stats view_fixture_node(const char *name, int64_t end_ns, double history_seconds,
				    double cpu_mean, double cpu_stddev)
{
	struct node_stats p = {
		.generation = 1,
		.name = name,
		.end_ns = end_ns,
		.tier = TIER_T1,
		.rate_hz = 10,
		.missed_ticks = 3,
		.pass_ns = 85250,
		.agent_cpu_milli = 4.5,
		.machine = {true, 700, 200.25, 120.5, 40, (int64_t)(6 * GIB)},
		.totals = {.missed_ticks = 17,
			   .cpu = {7000000000, 2002500000, 1205000000, 400000000},
			   .pressure_ns = {[CONTENTION_CPU] = 1250000000, [STALL_CPU] = 312500000},
			   .pressure_have = USAGE_CONTENTION_CPU | USAGE_STALL_CPU},
		.cpu_capacity_milli = 4000,
		.mem_capacity_bytes = (int64_t)(8 * GIB),
		.cpu_allocatable_milli = 3800,
		.mem_allocatable_bytes = (int64_t)(7 * GIB),
		.usage = usage(end_ns, history_seconds, cpu_mean, cpu_stddev, 1, true),
	};

	for (int i = 0; i < FRAME_RUN_LEN; i++)
		p.run[i] = (uint8_t)(0x11 * i);
	return p;
}

struct view_node view_fixture_around(struct node_stats *stats)
{
	return (struct view_node){
		.name = stats->name,
		.stats = stats,
		.cpu_capacity_milli = stats->cpu_capacity_milli,
		.mem_capacity_bytes = stats->mem_capacity_bytes,
		.cpu_allocatable_milli = stats->cpu_allocatable_milli,
		.mem_allocatable_bytes = stats->mem_allocatable_bytes,
	};
}

static int compare_stats(const void *a, const void *b)
{
	const struct node_stats *const *stats_a = a, *const *stats_b = b;

	return strcmp((*stats_a)->name, (*stats_b)->name);
}

struct view *view_fixture_of_stats(uint64_t version, int64_t time_ns,
				   struct node_stats **node_stats, size_t count)
{
	struct view_node **nodes = mem_zalloc(count + 1, sizeof(struct view_node *));

	for (size_t i = 0; i < count; i++) {
		nodes[i] = view_node_renew(NULL, node_stats[i], NULL);
		node_stats_drop(node_stats[i]);
	}
	free(node_stats);
	return view_new(version, time_ns, nodes, count, NULL, NULL);
}

struct view *view_fixture_of(const struct node_stats *node_stats, size_t count)
{
	struct node_stats **copies = mem_zalloc(count, sizeof(struct node_stats *));

	for (size_t i = 0; i < count; i++)
		copies[i] = node_stats_new(&node_stats[i]);
	qsort(copies, count, sizeof(struct node_stats *), compare_stats);
	return view_fixture_of_stats(7, VIEW_FIXTURE_NOW_NS, copies, count);
}

static struct view *view_of_all(struct node_stats *alpha)
{
	const int64_t now = VIEW_FIXTURE_NOW_NS;
	const struct pod_stats delta_pod = {
		.name = "kubepods/besteffort/pod-delta",
		.kind = ENTITY_POD,
		.qos = QOS_BEST_EFFORT,
		.usage = {.latest = {.cpu_milli = latest(50)}},
	};
	struct node_stats node_stats[5] = {
		*alpha,
		view_fixture_node("bravo", now - 60 * NS_PER_SEC, 360, 2000, 400),
		view_fixture_node("delta", now - NS_PER_SEC, 90, 500, 10),
		view_fixture_node("gone", now - 400 * NS_PER_SEC, 900, 3000, 10),
		{.name = "mute"},
	};

	node_stats[2].pods = &delta_pod;
	node_stats[2].pod_count = 1;
	return view_fixture_of(node_stats, 5);
}

struct view *view_fixture_new(void)
{
	const int64_t end = VIEW_FIXTURE_NOW_NS - 2 * NS_PER_SEC;
	const struct kernel_limits limits[] = {
		{1000, (int64_t)GIB, LIMIT_NONE, (int64_t)(64 * MIB), 50, 2500000, 0},
		{LIMIT_NONE, LIMIT_NONE, LIMIT_UNKNOWN, LIMIT_UNKNOWN, LIMIT_UNKNOWN, LIMIT_UNKNOWN,
		 0},
		{1500, LIMIT_NONE, (int64_t)(512 * MIB), 0, LIMIT_NONE, 0, 0},
		{LIMIT_NONE, LIMIT_NONE, LIMIT_UNKNOWN, LIMIT_UNKNOWN, 4096, LIMIT_UNKNOWN, 0},
	};
	const struct container_stats containers[] = {
		{.name = "app",
		 .id = "0123456789abcdef",
		 .runtime = RUNTIME_CONTAINERD,
		 .limits = &limits[0],
		 .latest = {.cpu_milli = latest(600.125),
			    .mem_bytes = latest(512 * MIB),
			    .swap_bytes = latest(8 * MIB),
			    .pids = latest(7)},
		 .throttle_known = true,
		 .throttled_seconds = 0.25,
		 .pressure_have = USAGE_CONTENTION_CPU | USAGE_STALL_MEMORY,
		 .pressure = {[CONTENTION_CPU] = 0.75, [STALL_MEMORY] = 0.5}},
		{.name = "proxy", .limits = &limits[1]},
	};
	struct pod_stats pods[] = {
		{.name = "kubepods/podaaaa",
		 .uid = "aaaa",
		 .kind = ENTITY_POD,
		 .qos = QOS_GUARANTEED,
		 .limits = &limits[2],
		 .usage = pod_usage(end, 700, 70, 0.25),
		 .container_count = 2,
		 .containers = containers},
		{.name = "system.slice",
		 .kind = ENTITY_SLICE,
		 .limits = &limits[3],
		 .usage = pod_usage(end, 300, 30, 0.125)},
		{.name = "system.slice/ssh.service",
		 .kind = ENTITY_UNIT,
		 .usage = pod_usage(end, 100, 10, 0.0625)},
	};
	struct node_stats alpha = view_fixture_node("alpha", end, 900, 1000, 100);

	for (int i = 0; i < WINDOWS; i++) {
		alpha.usage.windows[i].cpu_milli.mean = 1000 + 100 * i;
		alpha.usage.windows[i].cpu_milli.stddev = 100 + 100 * i;
	}
	alpha.usage.latest.swap_bytes = latest(128 * MIB);
	alpha.usage.latest.pids = latest(321);
	pods[0].usage.latest.swap_bytes = latest(16 * MIB);
	pods[0].usage.latest.pids = latest(12);
	pods[0].usage.counts.pressure[STALL_MEMORY] = 0.0625;
	pods[0].usage.throttle_known = true;
	pods[0].usage.counts.throttled_seconds = 1.5;
	pods[0].usage.counts.throttled_ratio = 0.03125;
	alpha.pods = pods;
	alpha.pod_count = sizeof(pods) / sizeof(pods[0]);
	return view_of_all(&alpha);
}

const struct node_stats *view_fixture_stats(const struct view *v, const char *node)
{
	const struct view_node *n = view_find(v, node);

	return n ? n->stats : NULL;
}
