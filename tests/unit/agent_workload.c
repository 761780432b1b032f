/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which cgroups are workloads, their refs over their lives, and the limits the kernel enforces on
 * them.
 */
#include "agent/workload.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/account_world.h"

enum { CASE_PATHS = 16 };

struct listing {
	const char *name;
	struct {
		const char *path;
		int kind; /* NOT_LISTED: must not be there */
		const char *parent; /* path of its pod */
	} cgroups[CASE_PATHS];
};

#define NONE	  NOT_LISTED
#define DOCKER_ID "1111111111111111111111111111111111111111111111111111111111111111"
#define HELPER_ID "2222222222222222222222222222222222222222222222222222222222222222"
#define UNIT_UID  "0a1b2c3d_1111_4222_8333_44445555aaaa"
#define SLICE	  "/kubepods.slice/kubepods-pod" UNIT_UID ".slice"
#define P1	  WORLD_POD(1)
#define P2	  WORLD_POD(2)
#define C1	  WORLD_CONTAINER(1)
#define C2	  WORLD_CONTAINER(2)

static const struct listing listings[] = {
	{
		"a plain machine",
		{
			{"/init.scope", ENTITY_UNIT, NULL},
			{"/system.slice", ENTITY_SLICE, NULL},
			{"/system.slice/a.service", ENTITY_UNIT, NULL},
			{"/system.slice/b.service", ENTITY_UNIT, NULL},
			{"/system.slice/b.service/sub", NONE, NULL},
			{"/system.slice/b.service/sub.scope", NONE, NULL},
			{"/system.slice/c.socket", ENTITY_UNIT, NULL},
			{"/system.slice/system-d.slice", ENTITY_SLICE, NULL},
			{"/system.slice/system-d.slice/d@1.service", ENTITY_UNIT, NULL},
			{"/dev-hugepages.mount", ENTITY_UNIT, NULL},
			{"/dev-sda2.swap", ENTITY_UNIT, NULL},
			{"/user.slice/user-0.slice/user@0.service", ENTITY_UNIT, NULL},
			{"/user.slice/user-0.slice/user@0.service/app.slice", NONE, NULL},
			{"/user.slice/user-0.slice/user@0.service/app.slice/x.service", NONE, NULL},
			{"/user.slice/user-0.slice", ENTITY_SLICE, NULL},
			{"/empty.slice", ENTITY_SLICE, NULL},
		},
	},
	{
		"plain cgroups and containers without Kubernetes",
		{
			{"/batch", ENTITY_SLICE, NULL},
			{"/batch/one", ENTITY_UNIT, NULL},
			{"/batch/two", ENTITY_SLICE, NULL},
			{"/batch/two/deep", ENTITY_UNIT, NULL},
			{"/docker", ENTITY_SLICE, NULL},
			{"/docker/" DOCKER_ID, ENTITY_CONTAINER, NULL},
			{"/docker/" DOCKER_ID "/init", NONE, NULL},
			{"/docker/" DOCKER_ID "/x.service", NONE, NULL},
			{"/machine.slice/libpod-" DOCKER_ID ".scope", ENTITY_CONTAINER, NULL},
			{"/machine.slice/libpod-" DOCKER_ID ".scope/container", NONE, NULL},
			{"/machine.slice/libpod-conmon-" DOCKER_ID ".scope", ENTITY_UNIT, NULL},
			{"/my.service.d", ENTITY_UNIT, NULL},
		},
	},
	{
		"a node of Kubernetes",
		{
			{"/system.slice", NONE, NULL},
			{"/system.slice/kubelet.service", NONE, NULL},
			{"/system.slice/docker-" DOCKER_ID ".scope", NONE, NULL},
			{"/kubepods", NONE, NULL},
			{"/kubepods/burstable", NONE, NULL},
			{P1, ENTITY_POD, NULL},
			{P1 C1, ENTITY_CONTAINER, P1},
			{P1 C2, ENTITY_CONTAINER, P1},
			{P1 C2 "/sub", NONE, NULL},
			{P1 "/crio-conmon-" HELPER_ID, NONE, NULL},
			{P1 "/other", NONE, NULL},
			{P2, ENTITY_POD, NULL},
			{P2 C1, ENTITY_CONTAINER, P2},
			{P2 C1 "/kubepods/pod00000000-0000-0000-0000-000000000009", ENTITY_POD,
			 NULL},
			{P2 C1 "/kubepods/pod00000000-0000-0000-0000-000000000009" C1,
			 ENTITY_CONTAINER,
			 P2 C1 "/kubepods/pod00000000-0000-0000-0000-000000000009"},
		},
	},
	{
		"runtime and kubelet disagree about the driver",
		{
			{SLICE, ENTITY_POD, NULL},
			{"/a/kubepods-pod" UNIT_UID ".slice:crio:" DOCKER_ID, ENTITY_CONTAINER,
			 SLICE},
			{"/kubepods-pod" UNIT_UID ".slice:crio:" HELPER_ID, ENTITY_CONTAINER,
			 SLICE},
			{"/kubepods-pod11111111_1111_1111_1111_111111111111.slice:crio:" HELPER_ID,
			 ENTITY_CONTAINER, NULL},
		},
	},
	{
		"they disagree in a node that is a container",
		{
			{P1, ENTITY_POD, NULL},
			{P1 C1, ENTITY_CONTAINER, P1},
			{P1 C1 SLICE, ENTITY_POD, NULL},
			{P1 C1 "/a/kubepods-pod" UNIT_UID ".slice:crio:" DOCKER_ID,
			 ENTITY_CONTAINER, P1 C1 SLICE},
			/* The same pod outside, as on a node whose disk was copied. */
			{SLICE, ENTITY_POD, NULL},
			{"/a/kubepods-pod" UNIT_UID ".slice:crio:" HELPER_ID, ENTITY_CONTAINER,
			 SLICE},
		},
	},
	{
		"a container that calls its own cgroups somebody else's",
		{
			{SLICE, ENTITY_POD, NULL},
			{P1, ENTITY_POD, NULL},
			{P1 C1, ENTITY_CONTAINER, P1},
			{P1 C1 "/kubepods-pod" UNIT_UID ".slice:crio:" DOCKER_ID, ENTITY_CONTAINER,
			 P1},
		},
	},
};

enum { U = LIMIT_UNKNOWN, N = LIMIT_NONE, ABSENT = -99 };

/* Quota and period in us. */
static void set_limits(struct world *w, const char *path, int64_t quota, int64_t period,
		       int64_t mem)
{
	struct reading *r = world_reading(w, path);

	if (quota != ABSENT) {
		r->have |= HAVE_CPU_LIMIT;
		r->cpu_quota_ns = quota == N ? LIMIT_NONE : quota * 1000;
		r->cpu_period_ns = period * 1000;
	}
	if (mem != ABSENT) {
		r->have |= HAVE_MEMORY_LIMIT;
		r->mem_limit_bytes = mem;
	}
}

static struct interval *two_ticks(struct world *w)
{
	world_tick(w, WORLD_S, true);
	world_tick(w, WORLD_S, true);
	return world_publish(w);
}

static void check_listing(const struct listing *l)
{
	struct world *w = world_new();
	struct interval *i;

	for (size_t n = 0; n < CASE_PATHS && l->cgroups[n].path; n++)
		world_mkdir(w, l->cgroups[n].path);
	world_scan(w);
	i = two_ticks(w);
	for (size_t n = 0; n < CASE_PATHS && l->cgroups[n].path; n++) {
		const struct entry *e = world_entry(i, l->cgroups[n].path), *pod = NULL;
		int kind = e ? (int)e->entity->kind : NOT_LISTED;

		if (l->cgroups[n].parent)
			pod = world_entry(i, l->cgroups[n].parent);
		if (kind == l->cgroups[n].kind && (!e || e->entity->parent == (pod ? pod->ref : 0)))
			continue;
		fail_msg("%s: %s is %d, wanted %d", l->name, l->cgroups[n].path, kind,
			 l->cgroups[n].kind);
	}
	assert_null(world_entry(i, ""));
	assert_int_equal(i->entries[i->entry_count - 1].ref, i->entry_count);
	for (size_t n = 1; n < i->entry_count; n++)
		assert_true(i->entries[n - 1].ref < i->entries[n].ref);
	interval_free(i);
	world_free(w);
}

static void test_listings(void **state)
{
	(void)state;
	for (size_t n = 0; n < sizeof(listings) / sizeof(listings[0]); n++)
		check_listing(&listings[n]);
}

static void test_identity_travels_with_the_entity(void **state)
{
	static const char *const paths[] = {P1 C1, NULL};
	struct world *w = world_new();
	const struct entity *e;
	struct interval *i;

	(void)state;
	world_start(w, paths);
	i = two_ticks(w);
	assert_true(i->full);
	e = world_entry(i, P1 C1)->entity;
	assert_int_equal(e->qos, QOS_BURSTABLE);
	assert_string_equal(e->pod_uid, "00000000-0000-0000-0000-000000000001");
	assert_string_equal(e->container_id, &(C1)[1]);
	assert_int_equal(e->ref, world_entry(i, P1 C1)->ref);
	interval_free(i);
	world_free(w);
}

/* --- lives ------------------------------------------------------------------------------------ */

static void test_kind_changes_with_the_first_child(void **state)
{
	static const char *const paths[] = {"/batch", NULL};
	struct world *w = world_new();
	struct interval *i;
	uint32_t ref;

	(void)state;
	world_start(w, paths);
	set_limits(w, "/batch", 50000, 100000, 4096);
	world_use(w, "/batch", 0);
	world_tick(w, WORLD_S, true);
	world_use(w, "/batch", 100 * WORLD_MS);
	world_tick(w, WORLD_S, true);
	i = world_publish(w);
	ref = i->entries[0].ref;
	assert_int_equal(i->entries[0].entity->kind, ENTITY_UNIT);
	interval_free(i);

	world_use(w, "/batch", 10 * WORLD_MS);
	world_tick(w, WORLD_S, true);
	world_mkdir(w, "/batch/job");
	world_scan(w);
	world_use(w, "/batch", 20 * WORLD_MS);
	world_tick(w, WORLD_S, false);
	i = world_publish(w);
	assert_int_equal(i->entry_count, 3);
	assert_int_equal(i->entries[0].ref, ref);
	assert_int_equal(i->entries[1].entity->kind, ENTITY_SLICE);
	assert_string_equal(i->entries[1].entity->name, "batch");
	assert_true(i->entries[1].fresh && !i->entries[0].fresh);
	assert_int_equal(i->entries[1].limits.cpu_milli, 500);
	/* The counters go on: nothing is counted twice, nothing is lost. */
	assert_float_equal(world_total(&i->entries[0].usage), 10, 1e-4);
	assert_float_equal(world_total(&i->entries[1].usage), 20, 1e-4);
	interval_free(i);

	world_tick(w, WORLD_S, true);
	i = world_publish(w);
	assert_int_equal(i->entry_count, 2);
	interval_free(i);
	world_free(w);
}

static void test_the_first_pod_ends_the_plain_machine(void **state)
{
	static const char *const paths[] = {"/system.slice/a.service", "/kubepods/burstable", NULL};
	struct world *w = world_new();
	struct interval *i;

	(void)state;
	world_start(w, paths);
	i = two_ticks(w);
	assert_non_null(world_entry(i, "system.slice/a.service"));
	assert_non_null(world_entry(i, "kubepods"));
	interval_free(i);
	world_mkdir(w, P1);
	world_scan(w);
	world_tick(w, WORLD_S, true);
	interval_free(world_publish(w));
	world_tick(w, WORLD_S, true);
	i = world_publish(w);
	assert_int_equal(i->entry_count, 1);
	assert_int_equal(i->entries[0].entity->kind, ENTITY_POD);
	interval_free(i);
	world_free(w);
}

/* More cgroups come and go in one interval than there may be workloads. */
static void test_churn_is_bounded_and_counted(void **state)
{
	enum { ROUND = 100, ROUNDS = CGROUPS_MAX / ROUND + 2 };

	struct world *w = world_new();
	struct interval *i;

	(void)state;
	world_scan(w);
	world_tick(w, WORLD_S, true);
	for (int round = 0; round < ROUNDS; round++) {
		char path[64];

		for (int n = 0; n < ROUND; n++) {
			snprintf(path, sizeof(path), "/unit-%d.service", n);
			world_rmdir(w, path);
			world_mkdir(w, path);
		}
		world_scan(w);
		world_tick(w, 10 * WORLD_MS, false);
	}
	i = world_publish(w);
	assert_int_equal(i->entry_count, CGROUPS_MAX);
	assert_int_equal(i->node.overflow, 2 + ROUNDS * ROUND - CGROUPS_MAX);
	interval_free(i);
	world_tick(w, 10 * WORLD_MS, false);
	i = world_publish(w);
	assert_int_equal(i->entry_count, ROUND);
	assert_int_equal(i->node.overflow, 2);
	interval_free(i);
	world_free(w);
}

/* --- limits ----------------------------------------------------------------------------------- */

static const struct limit_case {
	/* quota and period in us, memory; of slice, unit; ABSENT: not read */
	int64_t slice_quota, slice_period, slice_mem;
	int64_t unit_quota, unit_period, unit_mem;
	int64_t cpu_milli, mem_bytes; /* of the unit */
} limit_cases[] = {
	{N, 100000, N, N, 100000, N, N, N},
	{ABSENT, 0, ABSENT, ABSENT, 0, ABSENT, U, U},
	{ABSENT, 0, ABSENT, N, 100000, N, N, N},
	{N, 100000, N, ABSENT, 0, ABSENT, N, N},
	{N, 100000, N, 150000, 100000, 4096, 1500, 4096},
	{50000, 100000, 1000, 150000, 100000, 4096, 500, 1000},
	{250000, 100000, 9000, 150000, 100000, 4096, 1500, 4096},
	{50000, 100000, 1000, N, 100000, N, 500, 1000},
	{50000, 100000, 1000, ABSENT, 0, ABSENT, 500, 1000},
	{ABSENT, 0, ABSENT, 50000, 100000, 1000, 500, 1000},
	{N, 100000, N, 100000, 30000, 0, 3333, 0}, /* rounded to nearest */
	{N, 100000, N, 20000, 30000, 1, 667, 1},
	{N, 100000, N, 20000, 0, 1, N, 1}, /* no period: no limit that could be told */
	{N, 100000, N, INT64_MAX / 1000, 1, 1, N, 1},
};

static void test_effective_limits(void **state)
{
	static const char *const paths[] = {"/a.slice/b.service", NULL};

	(void)state;
	for (size_t n = 0; n < sizeof(limit_cases) / sizeof(limit_cases[0]); n++) {
		const struct limit_case *c = &limit_cases[n];
		struct world *w = world_new();
		const struct entry *e;
		struct interval *i;

		world_start(w, paths);
		set_limits(w, "/a.slice", c->slice_quota, c->slice_period, c->slice_mem);
		set_limits(w, "/a.slice/b.service", c->unit_quota, c->unit_period, c->unit_mem);
		i = two_ticks(w);
		e = world_entry(i, "a.slice/b.service");
		if (e->limits.cpu_milli != c->cpu_milli || e->limits.mem_bytes != c->mem_bytes)
			fail_msg("case %zu: %lld %lld", n, (long long)e->limits.cpu_milli,
				 (long long)e->limits.mem_bytes);
		interval_free(i);
		world_free(w);
	}
}

/* The minimum over the ancestors of what has no period: memory.high, swap, pids. */
static void test_effective_counts(void **state)
{
	static const struct {
		int64_t slice, unit, want;
	} cases[] = {
		{ABSENT, ABSENT, U}, {ABSENT, N, N}, {N, ABSENT, N}, {N, N, N},
		{N, 7, 7},	     {7, N, 7},	     {7, ABSENT, 7}, {7, 9, 7},
		{9, 7, 7},	     {0, 9, 0},	     {9, 0, 0},	     {-77, 9, 9},
	};
	static const char *const paths[] = {"/a.slice/b.service", NULL};
	static const struct {
		uint32_t have;
		size_t reading, limit; /* offsets */
	} members[] = {
		{HAVE_MEMORY_LIMIT, offsetof(struct reading, mem_limit_bytes),
		 offsetof(struct kernel_limits, mem_bytes)},
		{HAVE_MEMORY_HIGH, offsetof(struct reading, mem_high_bytes),
		 offsetof(struct kernel_limits, mem_high_bytes)},
		{HAVE_SWAP_LIMIT, offsetof(struct reading, swap_limit_bytes),
		 offsetof(struct kernel_limits, swap_bytes)},
		{HAVE_PIDS_LIMIT, offsetof(struct reading, pids_limit),
		 offsetof(struct kernel_limits, pids)},
	};

	(void)state;
	for (size_t n = 0; n < 4 * sizeof(cases) / sizeof(cases[0]); n++) {
		const int64_t values[] = {cases[n / 4].slice, cases[n / 4].unit};
		struct kernel_limits want = KERNEL_LIMITS_UNKNOWN;
		struct world *w = world_new();
		struct interval *i;

		world_start(w, paths);
		for (int k = 0; k < 2; k++) {
			struct reading *r = world_reading(w, k ? "/a.slice/b.service" : "/a.slice");

			if (values[k] == ABSENT)
				continue;
			r->have = members[n % 4].have;
			memcpy((char *)r + members[n % 4].reading, &values[k], sizeof(values[k]));
		}
		memcpy((char *)&want + members[n % 4].limit, &cases[n / 4].want, sizeof(int64_t));
		i = two_ticks(w);
		assert_memory_equal(&world_entry(i, "a.slice/b.service")->limits, &want,
				    sizeof(want));
		interval_free(i);
		world_free(w);
	}
}

/* The burst is that of the quota that counts. */
static void test_effective_burst(void **state)
{
	static const struct {
		int64_t slice_quota, slice_burst, unit_quota, unit_burst;
		int64_t milli, burst;
	} cases[] = {
		{ABSENT, 0, ABSENT, 0, U, U},
		{N, 0, N, 0, N, 0},
		{N, 5, N, 6, N, 0}, /* a burst without a quota is none */
		{N, 5, 50000, 6, 500, 6},
		{50000, 5, N, 6, 500, 5},
		{50000, 5, ABSENT, 0, 500, 5},
		{ABSENT, 0, 50000, 6, 500, 6},
		{50000, 5, 80000, 6, 500, 5},
		{80000, 5, 50000, 6, 500, 6},
		{80000, 5, 50000, 0, 500, 0},
		{50000, 5, 50000, 6, 500, 5},
		{50000, 6, 50000, 5, 500, 5},
	};
	static const char *const paths[] = {"/a.slice/b.service", NULL};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		struct world *w = world_new();
		const struct entry *e;
		struct interval *i;

		world_start(w, paths);
		set_limits(w, "/a.slice", cases[n].slice_quota, 100000, ABSENT);
		set_limits(w, "/a.slice/b.service", cases[n].unit_quota, 100000, ABSENT);
		world_reading(w, "/a.slice")->cpu_burst_ns = cases[n].slice_burst;
		world_reading(w, "/a.slice/b.service")->cpu_burst_ns = cases[n].unit_burst;
		i = two_ticks(w);
		e = world_entry(i, "a.slice/b.service");
		if (e->limits.cpu_milli != cases[n].milli ||
		    e->limits.cpu_burst_ns != cases[n].burst)
			fail_msg("case %zu: %lld, burst %lld", n, (long long)e->limits.cpu_milli,
				 (long long)e->limits.cpu_burst_ns);
		interval_free(i);
		world_free(w);
	}
}

static void test_any_new_limit_is_fresh(void **state)
{
	static const char *const paths[] = {"/b.service", NULL};
	const uint32_t have = HAVE_CPU_LIMIT | HAVE_MEMORY_LIMIT | HAVE_MEMORY_HIGH |
			      HAVE_SWAP_LIMIT | HAVE_PIDS_LIMIT;
	struct world *w = world_new();
	struct reading *r;

	(void)state;
	world_start(w, paths);
	r = world_reading(w, "/b.service");
	*r = (struct reading){.have = have, .cpu_quota_ns = 1000000, .cpu_period_ns = 1000000};
	interval_free(two_ticks(w));
	{
		int64_t *const limits[] = {&r->cpu_quota_ns,   &r->mem_limit_bytes,
					   &r->mem_high_bytes, &r->swap_limit_bytes,
					   &r->pids_limit,     &r->cpu_burst_ns};

		for (size_t n = 0; n < 2 * sizeof(limits) / sizeof(limits[0]); n++) {
			struct interval *i;

			if (n % 2)
				*limits[n / 2] += 1000000;
			world_tick(w, WORLD_S, true);
			i = world_publish(w);
			assert_int_equal(i->entries[0].fresh, n % 2);
			interval_free(i);
		}
	}
	world_free(w);
}

static void test_fresh_with_new_limits_only(void **state)
{
	static const char *const paths[] = {"/a.slice/b.service", NULL};
	struct world *w = world_new();
	const struct entry *e;
	struct interval *i;

	(void)state;
	world_start(w, paths);
	set_limits(w, "/a.slice/b.service", 50000, 100000, 4096);
	i = two_ticks(w);
	assert_true(world_entry(i, "a.slice/b.service")->fresh);
	interval_free(i);
	world_tick(w, WORLD_S, true);
	i = world_publish(w);
	assert_false(world_entry(i, "a.slice/b.service")->fresh);
	interval_free(i);
	/* The ancestor's counts too, from the slow tick that reads it. */
	set_limits(w, "/a.slice", 20000, 100000, N);
	world_tick(w, WORLD_S, false);
	i = world_publish(w);
	assert_false(world_entry(i, "a.slice/b.service")->fresh);
	interval_free(i);
	world_tick(w, WORLD_S, true);
	i = world_publish(w);
	e = world_entry(i, "a.slice/b.service");
	assert_true(e->fresh);
	assert_int_equal(e->limits.cpu_milli, 200);
	interval_free(i);
	/* A pass without limits forgets nothing. */
	world_reading(w, "/a.slice")->have = 0;
	world_reading(w, "/a.slice/b.service")->have = 0;
	world_tick(w, WORLD_S, true);
	i = world_publish(w);
	e = world_entry(i, "a.slice/b.service");
	assert_false(e->fresh);
	assert_int_equal(e->limits.cpu_milli, 200);
	assert_int_equal(e->limits.mem_bytes, 4096);
	interval_free(i);
	world_free(w);
}

/*
 * A cgroup that fast passes found has an ancestor without a limit; its own is known after the slow
 * pass.
 */
static void test_limits_before_the_first_slow_pass(void **state)
{
	static const char *const paths[] = {"/a.slice", NULL};
	struct world *w = world_new();
	const struct entry *e;
	struct interval *i;

	(void)state;
	world_start(w, paths);
	set_limits(w, "/a.slice", N, 100000, N);
	world_tick(w, WORLD_S, true);
	world_mkdir(w, "/a.slice/b.service");
	world_scan(w);
	world_tick(w, 100 * WORLD_MS, false);
	i = world_publish(w);
	assert_int_equal(world_entry(i, "a.slice/b.service")->limits.cpu_milli, LIMIT_UNKNOWN);
	interval_free(i);
	set_limits(w, "/a.slice/b.service", 50000, 100000, N);
	world_tick(w, 100 * WORLD_MS, true);
	i = world_publish(w);
	e = world_entry(i, "a.slice/b.service");
	assert_true(e->fresh);
	assert_int_equal(e->limits.cpu_milli, 500);
	assert_int_equal(e->limits.mem_bytes, LIMIT_NONE);
	interval_free(i);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_listings),
		cmocka_unit_test(test_identity_travels_with_the_entity),
		cmocka_unit_test(test_kind_changes_with_the_first_child),
		cmocka_unit_test(test_the_first_pod_ends_the_plain_machine),
		cmocka_unit_test(test_churn_is_bounded_and_counted),
		cmocka_unit_test(test_effective_limits),
		cmocka_unit_test(test_effective_counts),
		cmocka_unit_test(test_effective_burst),
		cmocka_unit_test(test_any_new_limit_is_fresh),
		cmocka_unit_test(test_fresh_with_new_limits_only),
		cmocka_unit_test(test_limits_before_the_first_slow_pass),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
