/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Containers that live elsewhere than their pod: the pod has what they use, once, and nothing else
 * has it twice.
 */
#include "agent/account.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/account_world.h"
#include "tests/near.h"

#define MS     WORLD_MS
#define POD    WORLD_POD(1)
#define INSIDE POD WORLD_CONTAINER(9)
#define FIRST  WORLD_APART(1, 1)
#define SECOND WORLD_APART(1, 2)

static const char *const tree[] = {INSIDE, FIRST, SECOND, NULL};

static const struct usage *usage_of(const struct interval *i, const char *path)
{
	const struct entry *e = world_entry(i, path);

	if (!e)
		fail_msg("no entry %s", path);
	return &e->usage;
}

static void start(struct world *w, bool local)
{
	static const char *const all[] = {POD, INSIDE, FIRST, SECOND};

	world_start(w, tree);
	for (size_t n = 0; n < sizeof(all) / sizeof(all[0]); n++) {
		if (local)
			world_use_local(w, all[n], 5 * WORLD_S);
		else
			world_use(w, all[n], 5 * WORLD_S);
	}
	world_tick(w, 0, true);
}

/* --- CPU -------------------------------------------------------------------------------------- */

/* While one uses more the other uses less: each varies, the pod does not. */
static void test_the_sum_is_one_sample(void **state)
{
	static const uint64_t first_ms[] = {10, 50, 30}, second_ms[] = {70, 30, 50};
	struct world *w = *state;
	const struct usage *u;
	struct interval *i;

	start(w, true);
	for (int n = 0; n < 3; n++) {
		world_use(w, FIRST, first_ms[n] * MS);
		world_use(w, SECOND, second_ms[n] * MS);
		world_use(w, INSIDE, 5 * MS);
		world_use(w, POD, 2 * MS);
		world_tick(w, 100 * MS, false);
	}
	i = world_publish(w);
	u = usage_of(i, POD);
	assert_int_equal(u->cpu_milli.samples, 3);
	assert_near(u->cpu_milli.mean, 870);
	assert_near(u->cpu_milli.weight, 0.3);
	assert_near(u->cpu_milli.min, 870);
	assert_near(u->cpu_milli.max, 870);
	assert_true(u->cpu_milli.m2 < 1e-3F);
	assert_near(u->seconds, 0.3);
	assert_true(usage_of(i, FIRST)->cpu_milli.m2 > 1e3F);
	assert_near(world_total(usage_of(i, FIRST)), 90);
	assert_near(world_total(usage_of(i, SECOND)), 150);
	assert_near(world_total(usage_of(i, INSIDE)), 15);
	assert_near(world_total(&i->node.usage), 261);
	assert_int_equal(world_entry(i, FIRST)->entity->parent, world_entry(i, POD)->ref);
	interval_free(i);
}

/* Counters of subtrees, as in files and in v1: the pod's has what is below and lacks the rest. */
static void test_counters_of_subtrees(void **state)
{
	struct world *w = *state;
	struct interval *i;

	start(w, false);
	world_use(w, "/kubepods", 0);
	world_use(w, "/containerd.service", 0);
	world_tick(w, 100 * MS, false);
	world_use(w, FIRST, 10 * MS);
	world_use(w, INSIDE, 5 * MS);
	world_use(w, POD, 7 * MS);
	world_use(w, "/kubepods", 7 * MS);
	world_use(w, "/containerd.service", 10 * MS);
	world_tick(w, 100 * MS, false);
	i = world_publish(w);
	assert_near(world_total(usage_of(i, POD)), 17);
	assert_near(usage_of(i, POD)->cpu_milli.max, 170);
	assert_near(world_total(&i->node.usage), 17);
	interval_free(i);
}

/* A container comes first or last in the table, with its pod already there or not. */
static void test_any_order(void **state)
{
	static const struct {
		const char *pod, *container;
	} cases[] = {
		{POD, FIRST},
		{"/z" POD, FIRST},
		{"/a" POD, FIRST},
		{POD, "/z" FIRST},
	};

	(void)state;
	for (size_t n = 0; n < 2 * sizeof(cases) / sizeof(cases[0]); n++) {
		const char *pod = cases[n / 2].pod, *container = cases[n / 2].container;
		struct world *w = world_new();
		struct interval *i;

		world_mkdir(w, n % 2 ? container : pod);
		world_scan(w);
		world_tick(w, 0, true);
		world_mkdir(w, n % 2 ? pod : container);
		world_scan(w);
		for (int tick = 0; tick < 2; tick++) {
			world_use_local(w, container, 6 * MS);
			world_use_local(w, pod, 1 * MS);
			world_tick(w, 100 * MS, false);
		}
		i = world_publish(w);
		/* What was there at the start begins with its first reading. */
		assert_near(world_total(usage_of(i, pod)), n % 2 ? 8 : 13);
		assert_int_equal(usage_of(i, pod)->cpu_milli.samples, 2);
		interval_free(i);
		world_free(w);
	}
}

/*
 * However the containers of several pods lie between each other, a tick is one sample of each pod.
 */
static void test_two_pods(void **state)
{
	static const char *const paths[] = {
		POD, WORLD_POD(2), "/a" FIRST, FIRST, WORLD_APART(2, 3), "/z" SECOND, NULL,
	};
	struct world *w = *state;
	struct interval *i;

	world_start(w, paths);
	world_tick(w, 0, true);
	for (int tick = 0; tick < 2; tick++) {
		world_use_local(w, "/a" FIRST, 1 * MS);
		world_use_local(w, FIRST, 2 * MS);
		world_use_local(w, WORLD_APART(2, 3), 4 * MS);
		world_use_local(w, "/z" SECOND, 8 * MS);
		world_tick(w, 100 * MS, false);
	}
	i = world_publish(w);
	/* The first readings were baselines. */
	assert_near(world_total(usage_of(i, POD)), 11);
	assert_near(world_total(usage_of(i, WORLD_POD(2))), 4);
	assert_int_equal(usage_of(i, POD)->cpu_milli.samples, 1);
	assert_near(usage_of(i, POD)->seconds, 0.2);
	interval_free(i);
}

/* Not met by a pass: its use comes with the next, and there is no pod without memory meanwhile. */
static void test_a_pass_that_misses_the_container(void **state)
{
	struct world *w = *state;
	const struct usage *u;
	struct interval *i;

	start(w, true);
	world_reading(w, POD)->have |= HAVE_MEMORY;
	world_reading(w, POD)->mem_bytes = 100;
	world_reading(w, FIRST)->have = 0;
	world_reading(w, SECOND)->have |= HAVE_MEMORY;
	world_use(w, POD, 4 * MS);
	world_tick(w, 100 * MS, false);
	world_use(w, FIRST, 8 * MS);
	world_reading(w, FIRST)->have |= HAVE_MEMORY | HAVE_CPU_LOCAL;
	world_reading(w, FIRST)->mem_bytes = 900;
	world_tick(w, 100 * MS, false);
	i = world_publish(w);
	u = usage_of(i, POD);
	assert_near(world_total(u), 12);
	assert_int_equal(u->cpu_milli.samples, 2);
	assert_near(u->mem_bytes.mean, 1000);
	assert_near(world_total(usage_of(i, FIRST)), 8);
	interval_free(i);
}

/* --- everything else -------------------------------------------------------------------------- */

static const uint32_t everything = HAVE_CPU | HAVE_CPU_LOCAL | HAVE_MEMORY | HAVE_WORKING_SET |
				   HAVE_THROTTLE | HAVE_OOM | HAVE_PSI | HAVE_PSI_CPU_FULL |
				   HAVE_PSI_MEMORY_FULL | HAVE_SWAP | HAVE_PIDS;

static const uint32_t pressures =
	USAGE_CONTENTION_CPU | USAGE_CONTENTION_MEMORY | USAGE_STALL_CPU | USAGE_STALL_MEMORY;

/* One second of it, by and by more of each. */
static void advance(struct world *w, const char *path, uint64_t scale)
{
	struct reading *r = world_reading(w, path);

	r->have = everything;
	r->mem_bytes = 1000 * scale;
	r->inactive_file_bytes = 10 * scale;
	r->throttled_ns += 3 * MS * scale;
	r->periods += 10 * scale;
	r->throttled_periods += scale;
	r->oom_kills += scale;
	r->psi_cpu_ns += 9 * MS * scale;
	r->psi_mem_ns += MS * scale;
	r->psi_cpu_full_ns += MS * scale;
	r->psi_mem_full_ns += MS * scale;
	r->swap_bytes = 100 * scale;
	r->pids = (uint32_t)(2 * scale);
}

static void advance_all(struct world *w)
{
	advance(w, POD, 10); /* with INSIDE, where that is counted */
	advance(w, INSIDE, 5);
	advance(w, FIRST, 100);
	advance(w, SECOND, 1000);
}

static void test_all_that_adds_up(void **state)
{
	struct world *w = *state;
	const struct usage *u;
	struct interval *i;

	start(w, true);
	advance_all(w);
	world_tick(w, WORLD_S, true);
	interval_free(world_publish(w));
	advance_all(w);
	world_tick(w, WORLD_S, true);
	i = world_publish(w);
	u = usage_of(i, POD);
	assert_near(u->mem_bytes.last, 1110000);
	/* Of the subtree the inactive pages are added, as they are local. */
	assert_near(u->working_set_bytes.last, 1110000 - 11150);
	assert_int_equal(u->throttled_ns, 1115 * 3 * MS);
	assert_int_equal(u->periods, 11150);
	assert_int_equal(u->throttled_periods, 1115);
	assert_int_equal(u->oom_kills, 1110);
	assert_int_equal(u->swap_bytes, 111000);
	assert_int_equal(u->pids, 2220);
	/* Waiting of several is not the sum of their waiting. */
	assert_int_equal(u->have & pressures, 0);
	assert_int_equal(usage_of(i, FIRST)->have & pressures, pressures);
	assert_int_equal(usage_of(i, FIRST)->throttled_ns, 300 * MS);
	/* The machine has each once. */
	assert_int_equal(i->node.usage.throttled_ns, 1115 * 3 * MS);
	assert_int_equal(i->node.usage.oom_kills, 1110);
	interval_free(i);
}

/*
 * A gauge that one side lacks is not known of the sum; a counter that one side lacks counts nothing
 * there.
 */
static void test_what_one_side_lacks(void **state)
{
	static const struct {
		uint32_t without, want_not;
	} cases[] = {
		{0, 0},
		{HAVE_MEMORY, USAGE_MEMORY | USAGE_WORKING_SET},
		{HAVE_WORKING_SET, USAGE_WORKING_SET},
		{HAVE_SWAP, USAGE_SWAP},
		{HAVE_PIDS, USAGE_PIDS},
		{HAVE_THROTTLE | HAVE_OOM, 0},
	};
	const uint32_t want = USAGE_CPU | USAGE_MEMORY | USAGE_WORKING_SET | USAGE_THROTTLE |
			      USAGE_OOM | USAGE_SWAP | USAGE_PIDS;

	(void)state;
	for (size_t n = 0; n < 2 * sizeof(cases) / sizeof(cases[0]); n++) {
		struct world *w = world_new();
		struct interval *i;

		start(w, true);
		for (int tick = 0; tick < 2; tick++) {
			advance_all(w);
			world_reading(w, n % 2 ? POD : SECOND)->have &= ~cases[n / 2].without;
			world_tick(w, WORLD_S, true);
		}
		i = world_publish(w);
		assert_int_equal(usage_of(i, POD)->have, want & ~cases[n / 2].want_not);
		interval_free(i);
		world_free(w);
	}
}

/* Pages that became inactive after memory was read are not taken from the other's. */
static void test_working_sets_add_up_one_by_one(void **state)
{
	struct world *w = *state;
	struct interval *i;

	start(w, true);
	advance_all(w);
	world_reading(w, SECOND)->mem_bytes = 700;
	world_tick(w, WORLD_S, true);
	i = world_publish(w);
	assert_near(usage_of(i, SECOND)->working_set_bytes.last, 0);
	assert_near(usage_of(i, POD)->working_set_bytes.last, 110000 - 1150);
	interval_free(i);
}

/* --- limits ----------------------------------------------------------------------------------- */

static void set_limit(struct world *w, const char *path, int64_t mem_bytes)
{
	struct reading *r = world_reading(w, path);

	r->have |= HAVE_MEMORY_LIMIT;
	r->mem_limit_bytes = mem_bytes;
}

/* The pod's own cgroup binds only what is in it; what is above all of it binds the pod. */
static void test_limits_of_what_holds_all(void **state)
{
	static const char outer[] = "/docker.scope";
	static const struct {
		int64_t root, outer;
		int64_t want;
	} cases[] = {
		{LIMIT_UNKNOWN, LIMIT_UNKNOWN, LIMIT_UNKNOWN},
		{LIMIT_NONE, LIMIT_UNKNOWN, LIMIT_NONE},
		{LIMIT_NONE, 8000, 8000},
		{LIMIT_UNKNOWN, 8000, 8000},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		struct world *w = world_new();
		struct interval *i;

		world_mkdir(w, "/docker.scope" POD);
		world_mkdir(w, "/docker.scope" FIRST);
		world_scan(w);
		if (cases[n].root != LIMIT_UNKNOWN)
			set_limit(w, "/", cases[n].root);
		if (cases[n].outer != LIMIT_UNKNOWN)
			set_limit(w, outer, cases[n].outer);
		set_limit(w, "/docker.scope" POD, 500);
		set_limit(w, "/docker.scope" FIRST, 300);
		world_tick(w, WORLD_S, true);
		world_tick(w, WORLD_S, true);
		i = world_publish(w);
		assert_int_equal(world_entry(i, "/docker.scope" POD)->limits.mem_bytes,
				 cases[n].want);
		assert_int_equal(world_entry(i, "/docker.scope" FIRST)->limits.mem_bytes, 300);
		interval_free(i);
		world_free(w);
	}
}

/* They change with the first detached container, at once, and back after the last. */
static void test_limits_follow_the_containers(void **state)
{
	struct world *w = *state;
	struct interval *i;

	world_mkdir(w, POD);
	world_scan(w);
	advance(w, POD, 1);
	set_limit(w, "/", LIMIT_NONE);
	set_limit(w, POD, 500);
	world_tick(w, WORLD_S, true);
	world_tick(w, WORLD_S, true);
	i = world_publish(w);
	assert_int_equal(world_entry(i, POD)->limits.mem_bytes, 500);
	interval_free(i);
	world_mkdir(w, FIRST);
	world_scan(w);
	world_tick(w, 100 * MS, false);
	i = world_publish(w);
	assert_int_equal(world_entry(i, POD)->limits.mem_bytes, LIMIT_NONE);
	assert_true(world_entry(i, POD)->fresh);
	interval_free(i);
	advance(w, FIRST, 1);
	world_tick(w, WORLD_S, true);
	interval_free(world_publish(w)); /* what was known at its beginning is known */
	world_tick(w, WORLD_S, true);
	i = world_publish(w);
	assert_int_equal(world_entry(i, POD)->limits.mem_bytes, LIMIT_NONE);
	assert_false(world_entry(i, POD)->fresh);
	assert_false(world_entry(i, POD)->usage.have & pressures);
	interval_free(i);
	world_rmdir(w, FIRST);
	world_scan(w);
	world_tick(w, WORLD_S, true);
	i = world_publish(w);
	assert_int_equal(world_entry(i, POD)->limits.mem_bytes, 500);
	assert_int_equal(world_entry(i, POD)->usage.have & pressures, pressures);
	interval_free(i);
}

/* --- removals ------------------------------------------------------------------------------- */

struct totals {
	double pod, first, node;
};

static void add_entries(double *total, const struct interval *i, const char *path)
{
	for (size_t n = 0; n < i->entry_count; n++)
		if (!strcmp(i->entries[n].entity->name, path + 1))
			*total += world_total(&i->entries[n].usage);
}

static void publish(struct world *w, struct totals *t)
{
	struct interval *i = world_publish(w);

	assert_non_null(i);
	add_entries(&t->pod, i, POD);
	add_entries(&t->first, i, FIRST);
	t->node += world_total(&i->node.usage);
	assert_int_equal(i->node.overflow, 2); /* the world's own */
	interval_free(i);
}

static void expect(const struct totals *t, double pod, double first, double node)
{
	if (fabs(t->pod - pod) > 1e-3 || fabs(t->first - first) > 1e-3 ||
	    fabs(t->node - node) > 1e-3)
		fail_msg("pod %.6f (%.6f), first %.6f (%.6f), node %.6f (%.6f)", t->pod, pod,
			 t->first, first, t->node, node);
}

/*
 * 10 and 20 ms in one tick; then 4 and 2 more, of the first with what was below it, that only
 * removals tell.
 */
static void use_and_die(struct world *w, struct removal *first, struct removal *pod)
{
	start(w, true);
	world_use(w, FIRST, 20 * MS);
	world_use(w, POD, 10 * MS);
	world_tick(w, 100 * MS, false);
	*first = world_removal(w, FIRST, world_reading(w, FIRST)->cpu_ns + 4 * MS);
	*pod = world_removal(w, POD, world_reading(w, POD)->cpu_ns + 2 * MS);
}

static void go_on(struct world *w, struct totals *t)
{
	for (int n = 0; n < 3; n++) {
		world_tick(w, 100 * MS, n == 1);
		publish(w, t);
		world_scan(w);
	}
}

/* Before or after the scan; the last of it is in one sample of the pod, that of the next tick. */
static void test_a_container_is_removed(void **state)
{
	(void)state;
	for (int scanned = 0; scanned < 2; scanned++) {
		struct world *w = world_new();
		struct removal first, pod;
		struct totals t = {0};
		struct interval *i;

		use_and_die(w, &first, &pod);
		world_reading(w, POD)->have |= HAVE_MEMORY;
		world_reading(w, POD)->mem_bytes = 100;
		world_reading(w, SECOND)->have |= HAVE_MEMORY;
		world_rmdir(w, FIRST);
		if (scanned)
			world_scan(w);
		world_remove(w, MS, &first, 1);
		world_use(w, POD, 1 * MS);
		world_tick(w, 100 * MS, false);
		i = world_publish(w);
		assert_near(usage_of(i, POD)->mem_bytes.last, 100);
		assert_int_equal(usage_of(i, POD)->cpu_milli.samples, 2);
		assert_near(usage_of(i, POD)->cpu_milli.last, 50);
		assert_near(world_total(usage_of(i, POD)), 35);
		assert_near(world_total(usage_of(i, FIRST)), 24);
		interval_free(i);
		world_scan(w);
		go_on(w, &t);
		expect(&t, 0, 0, 0);
		world_free(w);
	}
}

/* What died below the container goes with it, and with the pod. */
static void test_what_was_below_the_container(void **state)
{
	struct world *w = *state;
	struct removal d[4], first, pod;
	struct totals t = {0};

	use_and_die(w, &first, &pod);
	world_mkdir(w, FIRST "/sub");
	d[0] = world_removal(w, FIRST "/sub", 3 * MS);
	world_remove(w, MS, d, 1);
	world_tick(w, 100 * MS, false);
	publish(w, &t);
	expect(&t, 33, 23, 33);
	world_mkdir(w, FIRST "/sub/sub");
	d[0] = world_removal(w, FIRST "/sub/sub", 5 * MS);
	d[1] = world_removal(w, FIRST "/sub", 6 * MS);
	d[2] = first;
	d[3] = pod;
	world_rmdir(w, FIRST);
	world_rmdir(w, POD);
	world_scan(w);
	world_remove(w, 50 * MS, d, 4);
	go_on(w, &t);
	expect(&t, 50, 38, 50);
}

/* A pod ends with all its containers, in one pause or two. */
static void test_the_pod_is_removed_too(void **state)
{
	(void)state;
	for (int tick_between = 0; tick_between < 2; tick_between++) {
		struct world *w = world_new();
		struct removal first, pod;
		struct totals t = {0};

		use_and_die(w, &first, &pod);
		world_rmdir(w, FIRST);
		world_remove(w, MS, &first, 1);
		if (tick_between)
			world_tick(w, 100 * MS, false);
		world_rmdir(w, POD);
		world_scan(w);
		world_remove(w, MS, &pod, 1);
		go_on(w, &t);
		expect(&t, 36, 24, 36);
		world_free(w);
	}
}

/* What was below removed in time, and then the container vanishes with it. */
static void test_vanished_with_what_was_below(void **state)
{
	struct world *w = *state;
	struct removal below, first, pod;
	struct totals t = {0};

	use_and_die(w, &first, &pod);
	world_mkdir(w, FIRST "/sub");
	below = world_removal(w, FIRST "/sub", 3 * MS);
	world_rmdir(w, FIRST);
	world_scan(w);
	world_remove(w, MS, &below, 1);
	world_tick(w, 100 * MS, false);
	world_remove(w, MS, &first, 1);
	go_on(w, &t);
	expect(&t, 37, 27, 37);
}

/* The scan finds them gone before the kernel tells. */
static void test_told_after_they_vanished(void **state)
{
	static const struct {
		bool pod; /* vanishes, too */
		bool published; /* between the tick that missed them and the telling */
		struct totals want;
	} cases[] = {
		{false, false, {34, 24, 34}},
		{false, true, {34, 20, 34}},
		{true, false, {36, 24, 36}},
		{true, true, {30, 20, 36}},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		struct world *w = world_new();
		struct removal d[2];
		struct totals t = {0};

		use_and_die(w, &d[0], &d[1]);
		world_rmdir(w, FIRST);
		if (cases[n].pod)
			world_rmdir(w, POD);
		world_scan(w);
		world_tick(w, 100 * MS, false);
		if (cases[n].published)
			publish(w, &t);
		world_remove(w, MS, d, cases[n].pod ? 2 : 1);
		go_on(w, &t);
		expect(&t, cases[n].want.pod, cases[n].want.first, cases[n].want.node);
		world_free(w);
	}
}

/* Throttling waits for the next slow tick, whose pressure lacks what the dead waited. */
static void test_removed_throttling_counts(void **state)
{
	struct world *w = *state;
	struct removal d;
	const struct usage *u;
	struct interval *i;

	start(w, true);
	advance_all(w);
	world_tick(w, WORLD_S, true);
	interval_free(world_publish(w));
	d = world_removal(w, FIRST, world_reading(w, FIRST)->cpu_ns);
	d.have |= HAVE_THROTTLE;
	d.throttled_ns = 330 * MS;
	d.periods = 1010;
	d.throttled_periods = 105;
	world_rmdir(w, FIRST);
	world_rmdir(w, SECOND);
	world_scan(w);
	world_remove(w, MS, &d, 1);
	world_tick(w, 100 * MS, false);
	i = world_publish(w);
	assert_int_equal(usage_of(i, POD)->throttled_ns, 0);
	assert_int_equal(usage_of(i, FIRST)->throttled_ns, 30 * MS);
	interval_free(i);
	world_reading(w, POD)->psi_cpu_ns += 90 * MS;
	world_tick(w, WORLD_S, true);
	i = world_publish(w);
	u = usage_of(i, POD);
	assert_int_equal(u->throttled_ns, 30 * MS);
	assert_int_equal(u->periods, 10);
	assert_int_equal(u->throttled_periods, 5);
	assert_false(u->have & pressures);
	assert_int_equal(i->node.usage.throttled_ns, 30 * MS);
	interval_free(i);
	world_reading(w, POD)->psi_cpu_ns += 40 * MS;
	world_tick(w, WORLD_S, true);
	i = world_publish(w);
	u = usage_of(i, POD);
	assert_int_equal(u->throttled_ns, 0);
	assert_int_equal(u->have & pressures, pressures);
	assert_int_equal(u->contention_cpu_ns, 40 * MS);
	interval_free(i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_the_sum_is_one_sample),
		WORLD_TEST(test_counters_of_subtrees),
		cmocka_unit_test(test_any_order),
		WORLD_TEST(test_two_pods),
		WORLD_TEST(test_a_pass_that_misses_the_container),
		WORLD_TEST(test_all_that_adds_up),
		cmocka_unit_test(test_what_one_side_lacks),
		WORLD_TEST(test_working_sets_add_up_one_by_one),
		cmocka_unit_test(test_limits_of_what_holds_all),
		WORLD_TEST(test_limits_follow_the_containers),
		cmocka_unit_test(test_a_container_is_removed),
		WORLD_TEST(test_what_was_below_the_container),
		cmocka_unit_test(test_the_pod_is_removed_too),
		WORLD_TEST(test_vanished_with_what_was_below),
		cmocka_unit_test(test_told_after_they_vanished),
		WORLD_TEST(test_removed_throttling_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
