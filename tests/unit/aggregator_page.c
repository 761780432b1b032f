/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/state/page.h"

#define SEC 1000000000LL

/*
 * A page is independent of what it was made from: everything is overwritten before it is looked at.
 */
static void page_copies_everything(void **state)
{
	char container_name[] = "pods/a/one", id[] = "0123", pod_name[] = "pods/a", uid[] = "u-1",
	     node[] = "n1";
	struct kernel_limits limits = {.cpu_milli = 500, .mem_bytes = LIMIT_NONE};
	struct page_container containers[] = {
		{.name = container_name, .id = id, .runtime = RUNTIME_CRIO, .limits = &limits},
		{.name = "pods/a/two"},
	};
	struct page_pod pods[] = {
		{.name = pod_name,
		 .uid = uid,
		 .qos = QOS_BURSTABLE,
		 .container_count = 2,
		 .containers = containers},
		{.name = "pods/b", .kind = ENTITY_UNIT},
	};
	struct node_page from = {
		.generation = 7, .name = node, .run = {9}, .pod_count = 2, .pods = pods};
	struct node_page *p;

	(void)state;
	pods[0].usage.latest.cpu_milli.value = 12.5F;
	p = page_new(&from);
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
	page_drop(p);
}

/* Shared strings are not copied and live as long as any page that uses them. */
static void pages_share_names(void **state)
{
	struct page_names *names = page_names_new(1, 8);
	struct page_container container = {.name = names->text + 4,
					   .id = names->text + 1,
					   .limits = &names->limits[0]};
	struct page_pod pod = {.name = names->text + 2,
			       .uid = names->text + 1,
			       .limits = &names->limits[0],
			       .container_count = 1,
			       .containers = &container};
	struct node_page from = {.names = names, .name = names->text, .pod_count = 1, .pods = &pod};
	struct node_page *a, *b;

	(void)state;
	memcpy(names->text, "n\0p\0p/c", 8);
	names->limits[0] = KERNEL_LIMITS_UNKNOWN;
	names->limits[0].pids = 77;
	a = page_new(&from);
	b = page_new(&from);
	page_names_drop(names);
	page_names_drop(NULL);
	page_drop(a);
	assert_ptr_equal(b->name, names->text);
	assert_string_equal(b->pods[0].name, "p");
	assert_string_equal(b->pods[0].containers[0].name, "p/c");
	assert_int_equal(b->pods[0].containers[0].limits->pids, 77);
	page_drop(b);
}

static void page_lives_until_the_last_drop(void **state)
{
	struct node_page from = {.users = 5, .name = "n"};
	struct node_page *p = page_new(&from);

	(void)state;
	assert_int_equal(p->users, 1);
	assert_ptr_equal(page_hold(p), p);
	page_drop(p);
	assert_string_equal(p->name, "n");
	page_drop(p);
	page_drop(NULL);
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
	struct node_page p = {.end_ns = 1700000000 * SEC};
	struct node_page never = {.end_ns = 0};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		enum freshness got = page_freshness(&p, p.end_ns + cases[i].age_ns);

		assert_int_equal(got, cases[i].want);
		assert_string_equal(freshness_name(got), cases[i].name);
	}
	assert_int_equal(page_freshness(&never, 5), NEVER);
	assert_int_equal(page_freshness(NULL, 5), NEVER);
	assert_string_equal(freshness_name(NEVER), "none");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(page_copies_everything),
		cmocka_unit_test(pages_share_names),
		cmocka_unit_test(page_lives_until_the_last_drop),
		cmocka_unit_test(freshness_goes_by_age),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
