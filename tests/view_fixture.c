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

static struct latest latest(int64_t end_ns, double value)
{
	return (struct latest){.known = true, .value = value, .end_ns = end_ns};
}

/* CPU and working set and memory over all windows; memory is 2 GiB, or `share` of it. */
static struct page_usage usage(int64_t end_ns, double history_seconds, double cpu_mean,
			       double cpu_stddev, double share, bool percentiles)
{
	struct page_usage u = {
		.cpu_milli = latest(end_ns, cpu_mean + cpu_stddev),
		.mem_bytes = latest(end_ns, 2 * GIB * share),
		.working_set_bytes = latest(end_ns, GIB * share),
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
				   .contention_cpu = 0.125,
				   .contention_mem = NAN,
				   .oom_kills = 1,
				   .oom_known = true},
		};
	}
	return u;
}

struct node_page view_fixture_node(const char *name, int64_t end_ns, double history_seconds,
				   double cpu_mean, double cpu_stddev)
{
	struct node_page p = {
		.generation = 1,
		.name = name,
		.end_ns = end_ns,
		.tier = TIER_T1,
		.rate_hz = 10,
		.missed_ticks = 3,
		.pass_ns = 85250,
		.agent_cpu_milli = 4.5,
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

static int compare_pages(const void *a, const void *b)
{
	const struct node_page *const *page_a = a, *const *page_b = b;

	return strcmp((*page_a)->name, (*page_b)->name);
}

struct view *view_fixture_of(const struct node_page *pages, size_t count)
{
	struct node_page **copies = mem_zalloc(count, sizeof(struct node_page *));

	for (size_t i = 0; i < count; i++)
		copies[i] = page_new(&pages[i]);
	qsort(copies, count, sizeof(struct node_page *), compare_pages);
	return view_new(7, VIEW_FIXTURE_NOW_NS, copies, count);
}

static struct view *view_of_all(struct node_page *alpha)
{
	const int64_t now = VIEW_FIXTURE_NOW_NS;
	const struct page_pod delta_pod = {
		.name = "kubepods/besteffort/pod-delta",
		.kind = ENTITY_POD,
		.qos = QOS_BEST_EFFORT,
		.limits = {LIMIT_UNKNOWN, LIMIT_UNKNOWN},
		.usage = {.cpu_milli = latest(now - NS_PER_SEC, 50)},
	};
	struct node_page pages[5] = {
		*alpha,
		view_fixture_node("bravo", now - 60 * NS_PER_SEC, 360, 2000, 400),
		view_fixture_node("delta", now - NS_PER_SEC, 90, 500, 10),
		view_fixture_node("gone", now - 400 * NS_PER_SEC, 900, 3000, 10),
		{.name = "mute"},
	};

	pages[2].pods = &delta_pod;
	pages[2].pod_count = 1;
	return view_fixture_of(pages, 5);
}

struct view *view_fixture_new(void)
{
	const int64_t end = VIEW_FIXTURE_NOW_NS - 2 * NS_PER_SEC;
	const struct page_container containers[] = {
		{.name = "app",
		 .id = "0123456789abcdef",
		 .runtime = RUNTIME_CONTAINERD,
		 .limits = {1000, 1073741824},
		 .cpu_milli = latest(end, 600.125),
		 .mem_bytes = latest(end, 512 * MIB),
		 .throttle_known = true,
		 .throttled_seconds = 0.25},
		{.name = "proxy", .limits = {LIMIT_NONE, LIMIT_NONE}},
	};
	struct page_pod pods[] = {
		{.name = "kubepods/podaaaa",
		 .uid = "aaaa",
		 .kind = ENTITY_POD,
		 .qos = QOS_GUARANTEED,
		 .limits = {1500, LIMIT_NONE},
		 .usage = usage(end, 900, 700, 70, 0.25, false),
		 .container_count = 2,
		 .containers = containers},
		{.name = "system.slice",
		 .kind = ENTITY_SLICE,
		 .limits = {LIMIT_NONE, LIMIT_NONE},
		 .usage = usage(end, 900, 300, 30, 0.125, false)},
		{.name = "system.slice/ssh.service",
		 .kind = ENTITY_UNIT,
		 .limits = {LIMIT_UNKNOWN, LIMIT_UNKNOWN},
		 .usage = usage(end, 900, 100, 10, 0.0625, false)},
	};
	struct node_page alpha = view_fixture_node("alpha", end, 900, 1000, 100);

	for (int i = 0; i < WINDOWS; i++) {
		alpha.usage.windows[i].cpu_milli.mean = 1000 + 100 * i;
		alpha.usage.windows[i].cpu_milli.stddev = 100 + 100 * i;
	}
	pods[0].usage.windows[WINDOW_5M].counts.throttle_known = true;
	pods[0].usage.windows[WINDOW_5M].counts.throttled_seconds = 1.5;
	pods[0].usage.windows[WINDOW_5M].counts.throttled_ratio = 0.03125;
	alpha.pods = pods;
	alpha.pod_count = sizeof(pods) / sizeof(pods[0]);
	return view_of_all(&alpha);
}
