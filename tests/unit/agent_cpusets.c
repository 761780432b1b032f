/* SPDX-License-Identifier: Apache-2.0 */
/* CPU limits by the number of CPUs, and exclusive CPUs, on a machine of four CPUs. */
#include "agent/cpusets.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "shared/mem.h"
#include "tests/account_world.h"

enum { U = LIMIT_UNKNOWN, N = LIMIT_NONE, CGROUPS = 8 };

#define G1 "/kubepods/pod00000000-0000-0000-0000-000000000001"
#define G2 "/kubepods/pod00000000-0000-0000-0000-000000000002"
#define B3 WORLD_POD(3)
#define C1 WORLD_CONTAINER(1)
#define C2 WORLD_CONTAINER(2)

static void test_lists(void **state)
{
	static const struct {
		const char *cpus;
		int64_t want;
	} cases[] = {
		{NULL, U},	 {"", U},	   {"\n", U},	    {"0\n", 1000},
		{"3\n", 1000},	 {"0-3\n", N},	   {"0-2\n", 3000}, {"0,2-3\n", 3000},
		{"1,3\n", 2000}, {"0-1,2-3\n", N}, {"0-7\n", N},    {"0-x\n", U},
		{"0,\n", U},	 {"2-1\n", U},	   {"-1\n", U},	    {"8191\n", 1000},
		{"8192\n", U},	 {"0 1\n", U},	   {"0-1", 2000},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (cpusets_limit(cases[i].cpus, 4000) != cases[i].want)
			fail_msg("%s: %lld", cases[i].cpus,
				 (long long)cpusets_limit(cases[i].cpus, 4000));
}

static const struct share_case {
	const char *name;
	struct {
		const char *path, *cpus;
		int64_t quota_milli; /* its own */
		int64_t milli, exclusive; /* wanted */
	} of[CGROUPS];
} share_cases[] = {
	{"static CPU manager, no quota with exclusive CPUs",
	 {{G1, "0-3\n", N, 2000, 2000},
	  {G1 C1, "0-3\n", N, N, 0}, /* the sandbox */
	  {G1 C2, "2-3\n", N, 2000, 2000},
	  {B3, "0-3\n", N, N, 0},
	  {B3 C1, "0-3\n", N, N, 0},
	  {B3 C2, "0-1\n", N, 2000, 0}}},
	{"with its quota",
	 {{G1, "0-3\n", 2000, 2000, 2000},
	  {G1 C2, "2-3\n", 2000, 2000, 2000},
	  {B3 C1, "0-1\n", 500, 500, 0}}},
	{"a Guaranteed pod alone in the shared pool",
	 {{G1, "0-3\n", 500, 500, 0}, {G1 C1, "0-2\n", 500, 500, 0}}},
	{"another class is never given exclusive CPUs", {{B3 C1, "2-3\n", N, 2000, 0}}},
	{"CPUs of two pods",
	 {{G1, "0-3\n", N, N, 0},
	  {G1 C1, "1-2\n", N, 2000, 0},
	  {G2, "0-3\n", N, N, 0},
	  {G2 C1, "2-3\n", N, 2000, 0}}},
	{"containers of one pod share its CPUs",
	 {{G1, "0-3\n", N, 2000, 2000},
	  {G1 C1, "2-3\n", N, 2000, 2000},
	  {G1 C2, "3\n", N, 1000, 1000}}},
	{"a sidecar in the shared pool",
	 {{G1, "0-3\n", N, 1500, 1000},
	  {G1 C1, "3\n", N, 1000, 1000},
	  {G1 C2, "0-2\n", 500, 500, 0},
	  {B3 C1, "0-2\n", N, 3000, 0}}},
	{"the least along the path",
	 {{"/kubepods", "0-2\n", N, N, 0},
	  {B3, "0-2\n", 1500, 1500, 0},
	  {B3 C1, NULL, N, 1500, U},
	  {B3 C2, "0\n", 2000, 1000, 0},
	  {G1, "", N, 3000, U}}},
	{"nothing read", {{G1, NULL, N, N, U}, {G1 C1, NULL, 700, 700, U}}},
};

static struct cgroup *find(struct world *w, const char *path)
{
	return (struct cgroup *)((char *)world_reading(w, path) - offsetof(struct cgroup, reading));
}

static void set(struct world *w, const char *path, const char *cpus, int64_t quota_milli)
{
	struct cgroup *c = find(w, path);

	c->cpus = cpus ? mem_strdup(cpus) : NULL;
	c->reading.have |= HAVE_CPU_LIMIT;
	c->reading.cpu_quota_ns = quota_milli == N ? N : quota_milli * 100000;
	c->reading.cpu_period_ns = 100000000;
}

static void check(const struct share_case *c)
{
	struct world *w = world_new();
	struct interval *interval;

	for (size_t i = 0; i < CGROUPS && c->of[i].path; i++)
		world_mkdir(w, c->of[i].path);
	world_scan(w);
	for (size_t i = 0; i < CGROUPS && c->of[i].path; i++)
		set(w, c->of[i].path, c->of[i].cpus, c->of[i].quota_milli);
	world_tick(w, WORLD_S, true);
	world_tick(w, WORLD_S, true);
	interval = world_publish(w);
	for (size_t i = 0; i < CGROUPS && c->of[i].path; i++) {
		const struct entry *e = world_entry(interval, c->of[i].path);

		if (e && (e->limits.cpu_milli != c->of[i].milli ||
			  e->limits.cpu_exclusive_milli != c->of[i].exclusive))
			fail_msg("%s: %s has %lld, of them %lld exclusive", c->name, c->of[i].path,
				 (long long)e->limits.cpu_milli,
				 (long long)e->limits.cpu_exclusive_milli);
		assert_true(e || i == 0); /* kubepods is no workload */
	}
	interval_free(interval);
	world_free(w);
}

static void test_exclusive(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(share_cases) / sizeof(share_cases[0]); i++)
		check(&share_cases[i]);
}

/* A burst needs CPUs to run on. */
static void test_no_burst_beyond_the_cpus(void **state)
{
	struct world *w = *state;
	struct interval *interval;

	world_mkdir(w, G1);
	world_scan(w);
	set(w, G1, "0\n", 1500);
	find(w, G1)->reading.cpu_burst_ns = 5000000;
	world_tick(w, WORLD_S, true);
	world_tick(w, WORLD_S, true);
	interval = world_publish(w);
	assert_int_equal(world_entry(interval, G1)->limits.cpu_milli, 1000);
	assert_int_equal(world_entry(interval, G1)->limits.cpu_burst_ns, 0);
	interval_free(interval);
}

/* A list belongs to one life of its cgroup. */
static void test_lists_in_the_topology(void **state)
{
	struct world *w = *state;

	world_mkdir(w, G1);
	world_scan(w);
	set(w, G1, "0\n", N);
	world_mkdir(w, G2);
	world_scan(w);
	assert_string_equal(find(w, G1)->cpus, "0\n");
	assert_null(find(w, G2)->cpus);
	world_rmdir(w, G1);
	world_mkdir(w, G1);
	world_scan(w);
	assert_null(find(w, G1)->cpus);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_exclusive),
		WORLD_TEST(test_no_burst_beyond_the_cpus),
		WORLD_TEST(test_lists_in_the_topology),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
