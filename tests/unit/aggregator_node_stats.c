/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/state/node_stats.h"

#define SEC 1000000000LL

/*
 * Stats are independent of what they were made from: everything is overwritten before it is looked
 * at.
 */
static void stats_copies_everything(void **state)
{
	char container_name[] = "pods/a/one", id[] = "0123", pod_name[] = "pods/a", uid[] = "u-1",
	     node[] = "n1";
	struct kernel_limits limits = {.cpu_milli = 500, .mem_bytes = LIMIT_NONE};
	struct container_stats containers[] = {
		{.name = container_name, .id = id, .runtime = RUNTIME_CRIO, .limits = &limits},
		{.name = "pods/a/two"},
	};
	struct pod_stats pods[] = {
		{.name = pod_name,
		 .uid = uid,
		 .qos = QOS_BURSTABLE,
		 .container_count = 2,
		 .containers = containers},
		{.name = "pods/b", .kind = ENTITY_UNIT},
	};
	struct node_stats from = {
		.generation = 7, .name = node, .run = {9}, .pod_count = 2, .pods = pods};
	struct node_stats *p;

	(void)state;
	pods[0].usage.latest.cpu_milli.value = 12.5F;
	p = node_stats_new(&from);
	memset(container_name, 'x', sizeof(container_name) - 1);
	memset(id, 'x', sizeof(id) - 1);
	memset(pod_name, 'x', sizeof(pod_name) - 1);
	memset(uid, 'x', sizeof(uid) - 1);
	memset(node, 'x', sizeof(node) - 1);
	memset(containers, 0xff, sizeof(containers));
	memset(pods, 0xff, sizeof(pods));
	memset(&limits, 0xff, sizeof(limits));

	assert_string_equal(p->name, "n1");
	assert_int_equal(p->generation, 7);
	assert_int_equal(p->run[0], 9);
	assert_int_equal(p->pod_count, 2);
	assert_string_equal(p->pods[0].name, "pods/a");
	assert_string_equal(p->pods[0].uid, "u-1");
	assert_true(p->pods[0].usage.latest.cpu_milli.value == 12.5F);
	assert_int_equal(p->pods[0].container_count, 2);
	assert_string_equal(p->pods[0].containers[0].name, "pods/a/one");
	assert_string_equal(p->pods[0].containers[0].id, "0123");
	assert_int_equal(p->pods[0].containers[0].runtime, RUNTIME_CRIO);
	assert_int_equal(p->pods[0].containers[0].limits->cpu_milli, 500);
	assert_string_equal(p->pods[0].containers[1].id, "");
	assert_int_equal(p->pods[0].containers[1].limits->cpu_milli, LIMIT_UNKNOWN);
	assert_string_equal(p->pods[1].uid, "");
	assert_int_equal(p->pods[1].kind, ENTITY_UNIT);
	node_stats_drop(p);
}

/* Shared strings are not copied and live as long as any stats that use them. */
static void stats_share_names(void **state)
{
	struct stats_names *names = stats_names_new(1, 8);
	struct container_stats container = {.name = names->text + 4,
					    .id = names->text + 1,
					    .limits = &names->limits[0]};
	struct pod_stats pod = {.name = names->text + 2,
				.uid = names->text + 1,
				.limits = &names->limits[0],
				.container_count = 1,
				.containers = &container};
	struct node_stats from = {
		.names = names, .name = names->text, .pod_count = 1, .pods = &pod};
	struct node_stats *a, *b;

	(void)state;
	memcpy(names->text, "n\0p\0p/c", 8);
	names->limits[0] = KERNEL_LIMITS_UNKNOWN;
	names->limits[0].pids = 77;
	a = node_stats_new(&from);
	b = node_stats_new(&from);
	stats_names_drop(names);
	stats_names_drop(NULL);
	node_stats_drop(a);
	assert_ptr_equal(b->name, names->text);
	assert_string_equal(b->pods[0].name, "p");
	assert_string_equal(b->pods[0].containers[0].name, "p/c");
	assert_int_equal(b->pods[0].containers[0].limits->pids, 77);
	node_stats_drop(b);
}

static void stats_lives_until_the_last_drop(void **state)
{
	struct node_stats from = {.users = 5, .name = "n"};
	struct node_stats *p = node_stats_new(&from);

	(void)state;
	assert_int_equal(p->users, 1);
	assert_ptr_equal(node_stats_hold(p), p);
	node_stats_drop(p);
	assert_string_equal(p->name, "n");
	node_stats_drop(p);
	node_stats_drop(NULL);
}

static void freshness_goes_by_age(void **state)
{
	static const struct {
		int64_t age_ns;
		enum freshness want;
		const char *name;
	} cases[] = {
		{-60 * SEC, FRESH, "fresh"}, /* a clock that is ahead */
		{0, FRESH, "fresh"},
		{30 * SEC - 1, FRESH, "fresh"},
		{30 * SEC, LATE, "late"},
		{300 * SEC, LATE, "late"},
		{300 * SEC + 1, EXPIRED, "expired"},
	};
	struct node_stats p = {.end_ns = 1700000000 * SEC};
	struct node_stats never = {.end_ns = 0};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		enum freshness got = node_stats_freshness(&p, p.end_ns + cases[i].age_ns);

		assert_int_equal(got, cases[i].want);
		assert_string_equal(freshness_name(got), cases[i].name);
	}
	assert_int_equal(node_stats_freshness(&never, 5), NEVER);
	assert_int_equal(node_stats_freshness(NULL, 5), NEVER);
	assert_string_equal(freshness_name(NEVER), "none");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stats_copies_everything),
		cmocka_unit_test(stats_share_names),
		cmocka_unit_test(stats_lives_until_the_last_drop),
		cmocka_unit_test(freshness_goes_by_age),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
