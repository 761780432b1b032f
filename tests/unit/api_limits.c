/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the kernel's limit of a pod is another than the declared one: rounding, the node's own
 * bound, what is unknown.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "aggregator/api/limits.h"

#define MIB 1048576LL

struct given {
	int64_t declared, kernel; /* LIMIT_NONE, LIMIT_UNKNOWN */
	bool differs;
	int64_t exclusive; /* CPUs of the pod */
};

static int64_t exclusive_on_node;

/* A pod of one container with these limits, on a node of 4 CPUs and 8 GiB. */
static bool find(const struct given *g, enum resource_id id, struct limits_mismatch *m)
{
	struct container_spec container = {
		.limits = {.has_cpu = g->declared > 0, .has_mem = g->declared > 0}};
	struct pod_template template = {.spec = {.container_count = 1, .containers = &container}};
	const struct kube_pod pod = {.template = &template};
	const struct kernel_limits limits = {
		.cpu_milli = id == RESOURCE_CPU ? g->kernel : LIMIT_UNKNOWN,
		.mem_bytes = id == RESOURCE_MEMORY ? g->kernel : LIMIT_UNKNOWN,
		.cpu_exclusive_milli = g->exclusive};
	const struct pod_stats use = {.limits = &limits};
	struct node_stats stats = {.exclusive_cpu_milli = exclusive_on_node};
	const struct view_node node = {.stats = &stats,
				       .cpu_allocatable_milli = 4000,
				       .mem_allocatable_bytes = 8192 * MIB};
	const struct view_pod p = {&pod, &use};

	if (g->declared > 0)
		resources_set(&template.sums.limits, id, g->declared);
	return limits_find_mismatch(&node, &p, id, m);
}

static void check(const struct given *cases, size_t count, enum resource_id id)
{
	for (size_t i = 0; i < count; i++) {
		struct limits_mismatch m = {-7, -7};

		if (find(&cases[i], id, &m) != cases[i].differs)
			fail_msg("case %zu: declared %lld, kernel %lld", i,
				 (long long)cases[i].declared, (long long)cases[i].kernel);
		assert_true(m.declared == (cases[i].differs ? cases[i].declared : -7));
		assert_true(m.kernel == (cases[i].differs ? cases[i].kernel : -7));
	}
}

static void test_cpu(void **state)
{
	static const struct given cases[] = {
		{500, 500, false, 0},
		{500, 510, true, 0},
		{500, 499, false, 0}, /* as a whole number of millicores */
		{500, 498, true, 0},
		{501, 510, false, 0}, /* a whole percent, rounded up */
		{501, 511, true, 0},
		{3, 10, false, 0}, /* the least quota */
		{3, 11, true, 0},
		{500, LIMIT_NONE, true, 0},
		{LIMIT_NONE, LIMIT_NONE, false, 0},
		{LIMIT_NONE, 3999, true, 0},
		{LIMIT_NONE, 4000, false, 0}, /* the node's */
		{8000, 4000, true, 0}, /* never to be reached */
		{500, LIMIT_UNKNOWN, false, 0},
		{LIMIT_NONE, LIMIT_UNKNOWN, false, 0},
	};

	(void)state;
	check(cases, sizeof(cases) / sizeof(cases[0]), RESOURCE_CPU);
}

/* Of 4 CPUs, 1 is exclusive: other pods are bounded by the 3 that are shared. */
static void test_shared_cpus(void **state)
{
	static const struct given cases[] = {
		{LIMIT_NONE, 3000, false, 0}, {LIMIT_NONE, 2999, true, 0},    {4000, 3000, true, 0},
		{1000, 1000, false, 1000},    {LIMIT_NONE, 3000, true, 1000},
	};

	(void)state;
	exclusive_on_node = 1000;
	check(cases, sizeof(cases) / sizeof(cases[0]), RESOURCE_CPU);
	exclusive_on_node = 0;
}

static void test_memory(void **state)
{
	static const struct given cases[] = {
		{100 * MIB, 100 * MIB, false, 0},
		{100000000, 99999744, false, 0}, /* pages of 4 KiB */
		{100000000, 99942400, false, 0}, /* of 64 KiB */
		{100000000, 100000000 - 65536, true, 0},
		{100 * MIB, 100 * MIB + 1, true, 0},
		{100 * MIB, LIMIT_NONE, true, 0},
		{LIMIT_NONE, 8192 * MIB, false, 0},
		{LIMIT_NONE, 8191 * MIB, true, 0},
		{LIMIT_NONE, LIMIT_NONE, false, 0},
		{1000, 0, false, 0}, /* less than a page */
	};

	(void)state;
	check(cases, sizeof(cases) / sizeof(cases[0]), RESOURCE_MEMORY);
}

/* The kubelet bounds a pod as a whole only where every container is bounded, or the pod itself. */
static void test_which_limit_is_declared(void **state)
{
	struct container_spec containers[2] = {{.limits = {.has_cpu = true, .cpu_milli = 500}},
					       {.limits = {.has_cpu = true, .cpu_milli = 500}}};
	struct container_spec init = {.limits = {.has_cpu = true, 0}};
	struct pod_template template = {.spec = {.container_count = 2,
						 .containers = containers,
						 .init_count = 1,
						 .init = &init}};
	struct kube_pod pod = {.template = &template};
	struct kernel_limits limits = {.cpu_milli = LIMIT_NONE, .mem_bytes = LIMIT_NONE};
	struct pod_stats use = {.limits = &limits};
	struct node_stats stats = {.exclusive_cpu_milli = 0};
	struct view_node node = {.stats = &stats, .cpu_allocatable_milli = 4000};
	struct view_pod p = {&pod, &use};
	struct limits_mismatch m;

	(void)state;
	resources_set(&template.sums.limits, RESOURCE_CPU, 1000);
	assert_true(limits_find_mismatch(&node, &p, RESOURCE_CPU, &m));
	init.limits.has_cpu = false;
	assert_false(limits_find_mismatch(&node, &p, RESOURCE_CPU, &m));
	init.limits.has_cpu = true;
	containers[1].limits.has_cpu = false;
	assert_false(limits_find_mismatch(&node, &p, RESOURCE_CPU, &m));
	template.spec.has_pod_resources = true;
	assert_false(limits_find_mismatch(&node, &p, RESOURCE_CPU, &m));
	template.spec.pod_limits.has_cpu = true;
	assert_true(limits_find_mismatch(&node, &p, RESOURCE_CPU, &m));
	assert_true(m.declared == 1000 && m.kernel == LIMIT_NONE);
	pod.resize = POD_RESIZE_IN_PROGRESS;
	assert_false(limits_find_mismatch(&node, &p, RESOURCE_CPU, &m));
	pod.resize = POD_RESIZE_PROPOSED;
	assert_false(limits_find_mismatch(&node, &p, RESOURCE_CPU, &m));
	pod.resize = POD_RESIZE_INFEASIBLE;
	assert_true(limits_find_mismatch(&node, &p, RESOURCE_CPU, &m));
	/* A declared limit of 0 is none; a node whose room is unknown bounds nothing. */
	resources_set(&template.sums.limits, RESOURCE_CPU, 0);
	assert_false(limits_find_mismatch(&node, &p, RESOURCE_CPU, &m));
	limits.cpu_milli = 4000;
	assert_false(limits_find_mismatch(&node, &p, RESOURCE_CPU, &m));
	node.cpu_allocatable_milli = 0;
	assert_true(limits_find_mismatch(&node, &p, RESOURCE_CPU, &m));
	assert_true(m.declared == LIMIT_NONE && m.kernel == 4000);
	use.limits = NULL;
	assert_false(limits_find_mismatch(&node, &p, RESOURCE_CPU, &m));
	p.use = NULL;
	assert_false(limits_find_mismatch(&node, &p, RESOURCE_CPU, &m));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cpu),
		cmocka_unit_test(test_shared_cpus),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_which_limit_is_declared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
