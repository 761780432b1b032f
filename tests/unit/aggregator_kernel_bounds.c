/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "aggregator/state/node_stats.h"

#define NONE	LIMIT_NONE
#define UNKNOWN LIMIT_UNKNOWN

enum { WHOLE = 4000, CONTAINERS_MOST = 3 };

/* CPU and memory alike; a container limit of 0 ends the list. */
static const struct {
	enum entity_kind kind;
	int64_t pod, containers[CONTAINERS_MOST + 1];
	int64_t limits;
	uint32_t unlimited, unknown;
} cases[] = {
	{ENTITY_POD, NONE, {100, 200}, 300, 0, 0},
	{ENTITY_POD, NONE, {100, NONE, NONE}, 100, 2, 0},
	{ENTITY_POD, NONE, {100, UNKNOWN}, 100, 0, 1},
	/* The pod's own bound, where it is the tighter one. */
	{ENTITY_POD, 250, {100, 200}, 250, 0, 0},
	{ENTITY_POD, 400, {100, 200}, 300, 0, 0},
	{ENTITY_POD, 400, {400, 400}, 400, 0, 0},
	{ENTITY_POD, 400, {NONE, UNKNOWN}, 400, 0, 0},
	{ENTITY_POD, UNKNOWN, {100, 200}, 300, 0, 0},
	/* No containers seen. */
	{ENTITY_POD, 500, {0}, 500, 0, 0},
	{ENTITY_POD, NONE, {0}, 0, 1, 0},
	{ENTITY_POD, UNKNOWN, {0}, 0, 0, 1},
	/* What bounds all pods together is no limit of one. */
	{ENTITY_POD, WHOLE, {WHOLE, 3999}, 3999, 1, 0},
	{ENTITY_POD, NONE, {INT64_MAX}, 0, 1, 0},
	{ENTITY_CONTAINER, 700, {0}, 700, 0, 0},
	{ENTITY_UNIT, 700, {0}, 0, 0, 0},
	{ENTITY_SLICE, NONE, {0}, 0, 0, 0},
};

enum { CASES = sizeof(cases) / sizeof(cases[0]) };

/* What lives as long as the test; a pod's own come last. */
static const struct kernel_limits *limits_of(size_t i, size_t place, int64_t limit)
{
	static struct kernel_limits limits[CASES][CONTAINERS_MOST + 1];

	limits[i][place] = (struct kernel_limits){.cpu_milli = limit, .mem_bytes = limit};
	return &limits[i][place];
}

static size_t fill(struct pod_stats *pod, struct container_stats *containers, size_t i)
{
	uint32_t count = 0;

	while (cases[i].containers[count]) {
		int64_t limit = cases[i].containers[count];

		containers[count] = (struct container_stats){
			.name = "c",
			.limits = limits_of(i, count, limit),
		};
		count++;
	}
	*pod = (struct pod_stats){
		.name = "p",
		.kind = cases[i].kind,
		.limits = limits_of(i, CONTAINERS_MOST, cases[i].pod),
		.container_count = count,
		.containers = containers,
	};
	return count;
}

static void assert_bound(const struct kernel_bound *b, int64_t limits, uint32_t unlimited,
			 uint32_t unknown, size_t i)
{
	if (b->limits != limits || b->unlimited != unlimited || b->unknown != unknown)
		fail_msg("case %zu: %lld, %u unlimited, %u unknown", i, (long long)b->limits,
			 b->unlimited, b->unknown);
}

static void test_one_pod(void **state)
{
	(void)state;
	for (size_t i = 0; i < CASES; i++) {
		struct container_stats containers[CONTAINERS_MOST];
		struct kernel_bounds bounds;
		struct pod_stats pod;

		fill(&pod, containers, i);
		kernel_bounds_sum(&pod, 1, WHOLE, 0, WHOLE, &bounds);
		assert_bound(&bounds.cpu, cases[i].limits, cases[i].unlimited, cases[i].unknown, i);
		assert_bound(&bounds.mem, cases[i].limits, cases[i].unlimited, cases[i].unknown, i);
	}
}

/* Sums, and all stats have them. */
static void test_stats(void **state)
{
	static struct container_stats containers[CASES][CONTAINERS_MOST];
	struct pod_stats pods[CASES];
	struct node_stats stats = {.name = "n",
				   .cpu_allocatable_milli = WHOLE,
				   .mem_allocatable_bytes = 2 * WHOLE,
				   .pod_count = CASES,
				   .pods = pods};
	struct kernel_bound want = {0, 0, 0};
	struct node_stats *copy;

	(void)state;
	for (size_t i = 0; i < CASES; i++) {
		fill(&pods[i], containers[i], i);
		want.limits += cases[i].limits;
		want.unlimited += cases[i].unlimited;
		want.unknown += cases[i].unknown;
	}
	copy = node_stats_new(&stats);
	assert_bound(&copy->bounds.cpu, want.limits, want.unlimited, want.unknown, CASES);
	/* With twice the memory the pod bounded by WHOLE is: its two limits, cut at its own. */
	assert_bound(&copy->bounds.mem, want.limits + 1, want.unlimited - 1, want.unknown, CASES);
	node_stats_drop(copy);
}

/* A pod in the shared pool may use all of it, which is no limit of its own. */
static void test_exclusive_cpus(void **state)
{
	const struct kernel_limits limits[] = {
		{.cpu_milli = 2500, .cpu_exclusive_milli = 2500},
		{.cpu_milli = 1500},
		{.cpu_milli = 1499},
	};
	struct pod_stats pods[] = {
		{.name = "a", .limits = &limits[0]},
		{.name = "b", .limits = &limits[1]},
		{.name = "c", .limits = &limits[2]},
		/* Not of a pod. */
		{.name = "d", .kind = ENTITY_CONTAINER, .limits = &limits[0]},
	};
	struct node_stats stats = {
		.name = "n", .cpu_allocatable_milli = WHOLE, .pod_count = 4, .pods = pods};
	struct node_stats *copy;

	(void)state;
	pods[0].usage.latest.cpu_milli = (struct latest){.value = 600, .known = true};
	pods[1].usage.latest.cpu_milli = (struct latest){.value = 700, .known = true};
	copy = node_stats_new(&stats);
	assert_int_equal(copy->exclusive_cpu_milli, 2500);
	assert_int_equal(copy->idle.cpu_milli, 1900);
	assert_bound(&copy->bounds.cpu, 2500 + 1499 + 2500, 1, 0, CASES);
	node_stats_drop(copy);
}

/* The kernel gives away what is protected and not in use. */
static void test_protected_memory(void **state)
{
	static const struct {
		float used, working_set, spared;
		bool known;
		int64_t held, idle;
	} memory[] = {
		{3000, 1500, 2000, true, 2000, 500},
		{3000, 2900, 5000, true, 3000, 100},
		{3000, 2000, 2000, true, 2000, 0},
		{3000, 1500, 0, true, 0, 0},
		{3000, 1500, 2000, false, 0, 0},
		{0x1p60F, 0, 0x1p60F, true, 1LL << 48, 1LL << 48},
	};
	const struct kernel_limits none = {.cpu_milli = LIMIT_NONE};

	(void)state;
	for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); i++) {
		struct pod_stats pod = {.name = "p", .limits = &none};
		struct node_stats stats = {.name = "n", .pod_count = 1, .pods = &pod}, *copy;

		pod.usage.latest.mem_bytes = (struct latest){memory[i].used, 0, true};
		pod.usage.latest.working_set_bytes =
			(struct latest){memory[i].working_set, 0, true};
		pod.usage.latest.mem_protected_bytes =
			(struct latest){memory[i].spared, 0, memory[i].known};
		copy = node_stats_new(&stats);
		if (pod_stats_held(&pod).mem_bytes != memory[i].held ||
		    copy->idle.mem_bytes != memory[i].idle)
			fail_msg("case %zu: %lld idle", i, (long long)copy->idle.mem_bytes);
		node_stats_drop(copy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_pod),
		cmocka_unit_test(test_stats),
		cmocka_unit_test(test_exclusive_cpus),
		cmocka_unit_test(test_protected_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
