/* SPDX-License-Identifier: Apache-2.0 */
/* Every member is named here. The sizes are asserted, so that a new one is not forgotten. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <assert.h>
#include <math.h>

#include "tests/stats_equal.h"

static_assert(sizeof(struct window_stats) == 88 && sizeof(struct window_counts) == 72,
	      "compare the new member");
static_assert(sizeof(struct machine_stats) == 48 && sizeof(struct node_totals) == 80 &&
		      sizeof(struct node_quarantine) == 216,
	      "compare the new member");
/* Beside the newest values, which follow their table. */
#define BESIDE_LATEST(type) (sizeof(struct type) - sizeof(struct latest_usage))
static_assert(BESIDE_LATEST(container_stats) == 48 && BESIDE_LATEST(pod_usage) == 288,
	      "compare the new member");
static_assert(BESIDE_LATEST(pod_stats) == 344 && BESIDE_LATEST(node_stats) == 1784,
	      "compare the new member");

#define SAME(member)                                                                               \
	do {                                                                                       \
		if (a->member != b->member)                                                        \
			fail_msg("%s: " #member " differs", where);                                \
	} while (0)

#define SAME_NUMBER(member)                                                                        \
	do {                                                                                       \
		if (!same((double)a->member, (double)b->member))                                   \
			fail_msg("%s: " #member " is %.17g and %.17g", where, (double)a->member,   \
				 (double)b->member);                                               \
	} while (0)

#define SAME_TEXT(member)                                                                          \
	do {                                                                                       \
		if (strcmp(a->member, b->member) != 0)                                             \
			fail_msg("%s: " #member " is \"%s\" and \"%s\"", where, a->member,         \
				 b->member);                                                       \
	} while (0)

static bool same(double a, double b)
{
	return (isnan(a) && isnan(b)) || (a == b && !signbit(a) == !signbit(b));
}

static void same_stats(const char *where, const struct window_stats *a,
		       const struct window_stats *b)
{
	SAME(known);
	SAME(percentiles);
	SAME(start_ns);
	SAME(end_ns);
	SAME(samples);
	SAME_NUMBER(mean);
	SAME_NUMBER(stddev);
	SAME_NUMBER(min);
	SAME_NUMBER(max);
	SAME_NUMBER(p50);
	SAME_NUMBER(p95);
	SAME_NUMBER(p99);
}

static void same_counts(const char *where, const struct window_counts *a,
			const struct window_counts *b)
{
	SAME_NUMBER(seconds);
	if (a->seconds <= 0)
		return; /* nothing was counted */
	SAME_NUMBER(throttled_seconds);
	SAME_NUMBER(throttled_ratio);
	for (int p = 0; p < PRESSURES; p++)
		SAME_NUMBER(pressure[p]);
	SAME(oom_kills);
	SAME(throttle_known);
	SAME(oom_known);
}

static void same_value(const char *where, const struct latest *a, const struct latest *b)
{
	SAME_NUMBER(value);
	SAME(age_seconds);
	SAME(known);
}

static void same_latest(const char *where, const struct latest_usage *a,
			const struct latest_usage *b)
{
	for (int i = 0; i < USAGE_LATEST_COUNT; i++)
		same_value(where, &a->of[i], &b->of[i]);
}

static void same_usage(const char *where, const struct usage_summary *a,
		       const struct usage_summary *b)
{
	same_latest(where, &a->latest, &b->latest);
	for (int w = 0; w < WINDOWS; w++) {
		const struct window_set *x = &a->windows[w], *y = &b->windows[w];

		for (int i = 0; i < USAGE_AVERAGED_COUNT; i++)
			same_stats(where, &x->averaged[i], &y->averaged[i]);
		same_counts(where, &x->counts, &y->counts);
	}
}

static void same_limits(const char *where, const struct kernel_limits *a,
			const struct kernel_limits *b)
{
	for (int i = 0; i < LIMITS; i++)
		if (*kernel_limit_at(a, i) != *kernel_limit_at(b, i))
			fail_msg("%s: limit %s differs", where, kernel_limit_key[i]);
}

static void same_container(const struct container_stats *a, const struct container_stats *b)
{
	const char *where = a->name;

	SAME_TEXT(name);
	SAME_TEXT(id);
	same_limits(where, a->limits, b->limits);
	same_latest(where, &a->latest, &b->latest);
	SAME_NUMBER(throttled_seconds);
	for (int p = 0; p < PRESSURES; p++)
		SAME_NUMBER(pressure[p]);
	SAME(pressure_have);
	SAME(runtime);
	SAME(throttle_known);
}

static void same_peaks(const char *where, const struct pod_peaks *a, const struct pod_peaks *b)
{
	if (!a || !b) {
		if (a || b)
			fail_msg("%s: peaks on one side", where);
		return;
	}
	SAME(newest);
	for (int i = 0; i < PEAK_HOURS; i++) {
		SAME_NUMBER(cpu_milli[i]);
		SAME_NUMBER(working_set_bytes[i]);
	}
}

/* Packed as it is, and as it reads. */
static void same_pod_stats(const char *where, const struct pod_window_stats *a,
			   const struct pod_window_stats *b)
{
	for (int w = 0; w < WINDOWS; w++, a++, b++) {
		SAME(start);
		SAME(end);
		SAME(samples);
		SAME_NUMBER(mean);
		SAME_NUMBER(stddev);
		SAME_NUMBER(min);
		SAME_NUMBER(max);
	}
}

static void same_pod(const struct node_stats *stats_a, const struct pod_stats *a,
		     const struct node_stats *stats_b, const struct pod_stats *b)
{
	const char *where = a->name;
	struct usage_summary x, y;

	SAME_TEXT(name);
	SAME_TEXT(uid);
	same_limits(where, a->limits, b->limits);
	same_peaks(where, a->peaks, b->peaks);
	SAME(kind);
	SAME(qos);
	SAME(cause.pod);
	SAME(cause.share);
	same_pod_stats(where, a->usage.cpu_milli, b->usage.cpu_milli);
	same_pod_stats(where, a->usage.mem_bytes, b->usage.mem_bytes);
	same_pod_stats(where, a->usage.working_set_bytes, b->usage.working_set_bytes);
	node_stats_pod_usage(stats_a, a, &x);
	node_stats_pod_usage(stats_b, b, &y);
	same_usage(where, &x, &y);
	SAME(container_count);
	for (uint32_t i = 0; i < a->container_count; i++)
		same_container(&a->containers[i], &b->containers[i]);
}

static void same_agent(const char *where, const struct node_stats *a, const struct node_stats *b)
{
	SAME(foreign);
	SAME(tier);
	SAME_NUMBER(rate_hz);
	SAME(missed_ticks);
	SAME(overflow);
	SAME(pass_ns);
	SAME_NUMBER(agent_cpu_milli);
	SAME(clock_known);
	SAME(clock_ahead_ns);
	SAME(aside_ns);
	SAME(quarantine.count);
	SAME(quarantine.last_ns);
	SAME(quarantine.reason);
	SAME_TEXT(quarantine.message);
	if (memcmp(a->run, b->run, sizeof(a->run)) != 0)
		fail_msg("%s: run differs", where);
}

static void same_totals(const char *where, const struct node_totals *a, const struct node_totals *b)
{
	SAME(missed_ticks);
	SAME(cpu.user_ns);
	SAME(cpu.system_ns);
	SAME(cpu.iowait_ns);
	SAME(cpu.steal_ns);
	SAME(pressure_have);
	for (int p = 0; p < PRESSURES; p++)
		SAME(pressure_ns[p]);
}

static void same_machine(const char *where, const struct machine_stats *a,
			 const struct machine_stats *b)
{
	SAME(known);
	SAME_NUMBER(user_milli);
	SAME_NUMBER(system_milli);
	SAME_NUMBER(iowait_milli);
	SAME_NUMBER(steal_milli);
	SAME(mem_available_bytes);
}

void stats_equal_check(const struct node_stats *a, const struct node_stats *b)
{
	const char *where = a->name;

	SAME_TEXT(name);
	SAME(end_ns);
	same_agent(where, a, b);
	same_machine(where, &a->machine, &b->machine);
	same_totals(where, &a->totals, &b->totals);
	SAME(cpu_capacity_milli);
	SAME(mem_capacity_bytes);
	SAME(cpu_allocatable_milli);
	SAME(mem_allocatable_bytes);
	same_usage(where, &a->usage, &b->usage);
	same_stats(where, &a->recent.cpu_milli, &b->recent.cpu_milli);
	same_stats(where, &a->recent.mem_bytes, &b->recent.mem_bytes);
	if (memcmp(&a->bounds, &b->bounds, sizeof(a->bounds)) != 0)
		fail_msg("%s: bounds differ", where);
	SAME(exclusive_cpu_milli);
	SAME(idle.cpu_milli);
	SAME(idle.mem_bytes);
	SAME(unseen.cpu_milli);
	SAME(unseen.mem_bytes);
	SAME(pod_count);
	for (size_t i = 0; i < a->pod_count; i++)
		same_pod(a, &a->pods[i], b, &b->pods[i]);
}
