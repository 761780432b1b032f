/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "aggregator/model/pod_spec.h"
#include "shared/mem.h"

enum { MOST = 3 };

/* Milli-CPU of each container; negative: none given. Memory is tested as 1024 times that. */
static const struct {
	const char *name;
	int64_t containers[MOST], init[MOST];
	const char *kinds; /* of init: 's'idecar or 'i' */
	int64_t overhead, pod_level;
	int64_t kube_request, kube_limit, upstream;
} cases[] = {
	{"nothing", {-1, -1, -1}, {-1, -1, -1}, "", -1, -1, 0, 0, 0},
	{"sum", {100, 250, -1}, {-1, -1, -1}, "", -1, -1, 350, 350, 350},
	{"larger init", {1000, -1, -1}, {4000, -1, -1}, "i", -1, -1, 4000, 4000, 4000},
	{"larger containers", {2000, 3000, -1}, {2000, -1, -1}, "i", -1, -1, 5000, 5000, 5000},
	{"overhead", {2000, 3000, -1}, {2000, -1, -1}, "i", 1000, -1, 6000, 6000, 6000},
	{"overhead alone", {-1, -1, -1}, {-1, -1, -1}, "", 100, -1, 100, 0, 100},
	{"sidecar", {1000, -1, -1}, {1000, -1, -1}, "s", -1, -1, 2000, 2000, 1000},
	{"sidecar, then init", {100, -1, -1}, {10, 200, -1}, "si", -1, -1, 210, 210, 200},
	{"init, then sidecar", {100, -1, -1}, {200, 10, -1}, "is", -1, -1, 200, 200, 200},
	{"two sidecars around", {5, -1, -1}, {10, 200, 40}, "sis", -1, -1, 210, 210, 200},
	{"sidecars win", {300, -1, -1}, {10, 20, -1}, "ss", -1, -1, 330, 330, 300},
	{"pod level above", {2, -1, -1}, {4, -1, -1}, "s", -1, 8, 8, 8, 4},
	{"pod level below", {20, -1, -1}, {-1, -1, -1}, "", 3, 8, 11, 11, 23},
	{"saturates",
	 {INT64_MAX / 1024, INT64_MAX / 1024, -1},
	 {-1, -1, -1},
	 "",
	 7,
	 -1,
	 -2,
	 -2,
	 -2},
};

static struct resource_list list_of(int64_t milli)
{
	if (milli < 0)
		return (struct resource_list){0};
	return (struct resource_list){{{true, true}}, {{milli, milli * 1024}}};
}

static struct container_spec *containers_of(const int64_t milli[MOST], bool limits, size_t *count)
{
	struct container_spec *list = mem_zalloc(MOST, sizeof(*list));

	for (*count = 0; *count < MOST && milli[*count] >= 0; (*count)++)
		*(limits ? &list[*count].limits : &list[*count].requests) = list_of(milli[*count]);
	return list;
}

static void build(size_t i, bool limits, struct pod_spec *p)
{
	memset(p, 0, sizeof(*p));
	p->containers = containers_of(cases[i].containers, limits, &p->container_count);
	p->init = containers_of(cases[i].init, limits, &p->init_count);
	for (size_t k = 0; k < p->init_count; k++)
		p->init[k].sidecar = cases[i].kinds[k] == 's';
	p->overhead = list_of(cases[i].overhead);
	p->has_pod_resources = cases[i].pod_level >= 0;
	*(limits ? &p->pod_limits : &p->pod_requests) = list_of(cases[i].pod_level);
}

static void check(size_t i, bool limits, bool upstream, int64_t want)
{
	struct pod_spec p;
	int64_t cpu, mem;

	build(i, limits, &p);
	cpu = pod_spec_need(&p, RESOURCE_CPU, limits, upstream);
	mem = pod_spec_need(&p, RESOURCE_MEMORY, limits, upstream);
	pod_spec_free_members(&p);
	if (want == -2) {
		assert_true(cpu == INT64_MAX / 1024 * 2 + 7);
		assert_true(mem == INT64_MAX);
	} else if (cpu != want || mem != want * 1024) {
		fail_msg("%s%s%s: cpu %lld, memory %lld", cases[i].name, limits ? ", limits" : "",
			 upstream ? ", upstream" : "", (long long)cpu, (long long)mem);
	}
}

static void test_sums(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		check(i, false, false, cases[i].kube_request);
		check(i, true, false, cases[i].kube_limit);
		check(i, false, true, cases[i].upstream);
		check(i, true, true, cases[i].upstream);
	}
}

/* Each resource is on its own: a pod-level memory says nothing about CPU. */
static void test_pod_level_per_resource(void **state)
{
	struct container_spec c = {.requests = {{{true, true}}, {{300, 5000}}}};
	struct pod_spec p = {.container_count = 1, .containers = &c, .has_pod_resources = true};

	(void)state;
	p.pod_requests = (struct resource_list){.has_mem = true, .mem_bytes = 9000};
	assert_int_equal(pod_spec_need(&p, RESOURCE_CPU, false, false), 300);
	assert_int_equal(pod_spec_need(&p, RESOURCE_MEMORY, false, false), 9000);
	p.pod_requests = (struct resource_list){.has_cpu = true, .cpu_milli = 0};
	assert_int_equal(pod_spec_need(&p, RESOURCE_CPU, false, false), 0);
	assert_int_equal(pod_spec_need(&p, RESOURCE_MEMORY, false, false), 5000);
}

static void test_give_back(void **state)
{
	struct pod_spec p = {0};

	(void)state;
	pod_spec_free_members(&p);
	build(1, false, &p);
	pod_spec_free_members(&p);
	pod_spec_free_members(&p);
	assert_null(p.containers);
	assert_int_equal(p.container_count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_pod_level_per_resource),
		cmocka_unit_test(test_give_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
