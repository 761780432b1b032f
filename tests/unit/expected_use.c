/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/policy/expected_use.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"

#define MIB  (1 << 20)
#define NONE (-1)

/* One container as its spec states it: millicores, NONE where it is silent. */
struct stated {
	int64_t request, limit;
};

static struct resource_list cpu(int64_t milli)
{
	return (struct resource_list){.has_cpu = milli != NONE,
				      .cpu_milli = milli == NONE ? 0 : milli};
}

static const struct {
	const char *what;
	struct stated main, sidecar, init;
	bool use_limits;
	double multiplier;
	int64_t cpu, high;
	const char *source;
} sources[] = {
	{"request", {200, NONE}, {NONE, NONE}, {NONE, NONE}, false, 1, 200, 500, "requests"},
	{"large request", {900, NONE}, {NONE, NONE}, {NONE, NONE}, false, 1, 900, 900, "requests"},
	{"multiplied", {900, NONE}, {NONE, NONE}, {NONE, NONE}, false, 1.5, 1350, 1350, "requests"},
	{"its limit bounds a guess",
	 {200, 300},
	 {0, 40},
	 {NONE, NONE},
	 false,
	 2,
	 340,
	 340,
	 "requests"},
	{"one container without a limit",
	 {200, 300},
	 {10, NONE},
	 {NONE, NONE},
	 false,
	 1,
	 210,
	 500,
	 "requests"},
	{"a limit is a request",
	 {100, NONE},
	 {NONE, 50},
	 {NONE, NONE},
	 false,
	 1,
	 150,
	 500,
	 "requests"},
	{"no request, a limit",
	 {NONE, 250},
	 {NONE, 50},
	 {NONE, NONE},
	 false,
	 1,
	 300,
	 300,
	 "limits"},
	{"limits on demand, of which it has none",
	 {100, NONE},
	 {NONE, 50},
	 {NONE, NONE},
	 true,
	 1,
	 150,
	 500,
	 "requests"},
	{"limits on demand", {100, 2000}, {NONE, 50}, {NONE, NONE}, true, 1, 2050, 2050, "limits"},
	{"nothing", {NONE, NONE}, {NONE, NONE}, {NONE, NONE}, false, 1, 100, 500, "default"},
	{"zero is nothing", {0, NONE}, {0, NONE}, {0, NONE}, false, 1, 100, 500, "default"},
	{"init containers are gone",
	 {50, NONE},
	 {20, NONE},
	 {9000, NONE},
	 false,
	 1,
	 70,
	 500,
	 "requests"},
};

static void table_of_sources(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
		struct container_spec main = {cpu(sources[i].main.request),
					      cpu(sources[i].main.limit), false};
		struct container_spec init[2] = {
			{cpu(sources[i].sidecar.request), cpu(sources[i].sidecar.limit), true},
			{cpu(sources[i].init.request), cpu(sources[i].init.limit), false}};
		struct pod_spec pod = {
			.container_count = 1, .containers = &main, .init_count = 2, .init = init};
		const struct score_owner unknown = {.known = false};
		struct expected_use use;
		struct score_args args;

		score_args_default(&args, SCORE_CORRECTED);
		args.use_limits = sources[i].use_limits;
		args.default_requests_multiplier = sources[i].multiplier;
		expected_use_read(&pod, &args, &unknown, &use);
		if (use.cpu_milli != sources[i].cpu || use.cpu_high_milli != sources[i].high ||
		    strcmp(expected_use_source_name(use.source), sources[i].source) != 0)
			fail_msg("%s: %lld, high %lld, by %s", sources[i].what,
				 (long long)use.cpu_milli, (long long)use.cpu_high_milli,
				 expected_use_source_name(use.source));
	}
}

static void what_is_stated_for_the_pod_comes_first(void **state)
{
	struct container_spec c = {.requests = {{{true, true}}, {{900, 100 * MIB}}}};
	struct pod_spec pod = {.container_count = 1,
			       .containers = &c,
			       .overhead = cpu(7),
			       .has_pod_resources = true,
			       .pod_requests = cpu(100),
			       .pod_limits = cpu(400)};
	const struct score_owner unknown = {.known = false};
	struct expected_use use;
	struct score_args args;

	(void)state;
	score_args_default(&args, SCORE_CORRECTED);
	expected_use_read(&pod, &args, &unknown, &use);
	assert_int_equal(use.cpu_milli, 107);
	assert_int_equal(use.cpu_high_milli, 407);
	assert_int_equal(use.mem_bytes, 100 * MIB);
}

static void measured_pods_of_the_workload_come_before_all(void **state)
{
	struct container_spec c = {.requests = {{{true, true}}, {{900, 100 * MIB}}},
				   .limits = {{{true, true}}, {{900, 100 * MIB}}}};
	struct pod_spec pod = {.container_count = 1, .containers = &c};
	const struct owner_use measured = {.uid = "rs",
					   .pods = 3,
					   .cpu_milli = 30.4,
					   .cpu_p95_milli = 80,
					   .working_set_bytes = 7 * MIB};
	const struct workload_use before = {"shop/Deployment/web", 50, 90, 8 * MIB, 1, 2};
	struct workload_table *workloads = mem_zalloc(1, sizeof(*workloads) + sizeof(before));
	struct owner_table *owners = mem_zalloc(1, sizeof(*owners) + sizeof(measured));
	const struct view view = {.owners = owners};
	struct score_owner owner;
	struct expected_use use;
	struct score_args args;

	(void)state;
	*owners = (struct owner_table){.count = 1, .workloads = workloads};
	owners->of[0] = measured;
	workloads->count = 1;
	workloads->of[0] = before;
	owner = expected_use_of_owner(&view, "rs", "shop/Deployment/web");
	score_args_default(&args, SCORE_CORRECTED);
	expected_use_read(&pod, &args, &owner, &use);
	assert_int_equal(use.cpu_milli, 30);
	assert_int_equal(use.cpu_high_milli, 80);
	assert_int_equal(use.mem_bytes, 7 * MIB);
	assert_string_equal(expected_use_source_name(use.source), "workload");
	/* Of another ReplicaSet, or tomorrow: what they used before. */
	owner = expected_use_of_owner(&view, "new", "shop/Deployment/web");
	assert_true(owner.known && owner.cpu_milli == 50 && owner.cpu_p95_milli == 90);
	assert_false(expected_use_of_owner(&view, "new", "shop/Deployment/db").known);
	assert_false(expected_use_of_owner(&view, "", "").known);
	assert_false(expected_use_of_owner(&(struct view){.version = 1}, "rs", "x").known);
	free(workloads);
	free(owners);
}

static void absurd_amounts_saturate(void **state)
{
	struct container_spec c = {.requests = {.has_cpu = true, .cpu_milli = INT64_MAX}};
	struct pod_spec pod = {.container_count = 1, .containers = &c, .overhead = cpu(INT64_MAX)};
	const struct score_owner unknown = {.known = false};
	struct expected_use use;
	struct score_args args;

	(void)state;
	score_args_default(&args, SCORE_CORRECTED);
	args.default_requests_multiplier = 1000;
	expected_use_read(&pod, &args, &unknown, &use);
	assert_int_equal(use.cpu_milli, INT64_MAX);
	assert_int_equal(use.cpu_high_milli, INT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table_of_sources),
		cmocka_unit_test(what_is_stated_for_the_pod_comes_first),
		cmocka_unit_test(measured_pods_of_the_workload_come_before_all),
		cmocka_unit_test(absurd_amounts_saturate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
