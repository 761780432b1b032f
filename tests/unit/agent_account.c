/* SPDX-License-Identifier: Apache-2.0 */
/* From counters to rates: baselines, lives and deaths of cgroups, roll-up, slow values. */
#include "agent/account.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/account_world.h"
#include "tests/near.h"

static const char *const one_unit[] = {"/a.service", NULL};

static const struct usage *usage_of(const struct interval *i, const char *name)
{
	const struct entry *e = world_entry(i, name);

	assert_non_null(e);
	return &e->usage;
}

/* --- rates ------------------------------------------------------------------------------------ */

static void test_rate_from_counter_differences(void **state)
{
	struct world *w = *state;
	struct interval *i;
	const struct usage *u;

	world_start(w, one_unit);
	world_use(w, "/a.service", 77 * WORLD_S); /* before us */
	world_tick(w, 0, true);
	assert_null(world_publish(w));
	for (int n = 1; n <= 10; n++) {
		world_use(w, "/a.service", (uint64_t)n * 10 * WORLD_MS);
		world_tick(w, 100 * WORLD_MS, false);
	}
	i = world_publish(w);
	u = usage_of(i, "a.service");
	assert_true(u->have & USAGE_CPU);
	assert_int_equal(u->cpu_milli.samples, 10);
	assert_near(u->cpu_milli.weight, 1);
	assert_near(u->seconds, 1);
	assert_near(u->cpu_milli.mean, 550);
	assert_near(u->cpu_milli.min, 100);
	assert_near(u->cpu_milli.max, 1000);
	assert_near(u->cpu_milli.last, 1000);
	assert_near(u->cpu_milli.m2, 82500 * 10 * 0.1);
	assert_near(i->node.rate_hz, 10);
	interval_free(i);
	assert_null(world_publish(w));
}

static void test_missed_ticks_lose_no_use(void **state)
{
	static const int64_t gaps_ms[] = {100, 100, 700, 100, 2300, 1, 99};
	struct world *w = *state;
	struct interval *i;
	double want = 0;

	world_start(w, one_unit);
	world_use(w, "/a.service", 0);
	world_tick(w, 0, true);
	for (size_t n = 0; n < sizeof(gaps_ms) / sizeof(gaps_ms[0]); n++) {
		uint64_t used = (uint64_t)gaps_ms[n] * WORLD_MS / 3;

		world_use(w, "/a.service", used);
		want += (double)used * 1e-6;
		world_tick(w, gaps_ms[n] * WORLD_MS, false);
	}
	i = world_publish(w);
	assert_near(world_total(usage_of(i, "a.service")), want);
	assert_near(usage_of(i, "a.service")->cpu_milli.weight, 3.4);
	interval_free(i);
}

static void test_same_instant_is_left_to_the_next_tick(void **state)
{
	struct world *w = *state;
	struct interval *i;

	world_start(w, one_unit);
	world_use(w, "/a.service", 0);
	world_tick(w, 0, true);
	world_use(w, "/a.service", 10 * WORLD_MS);
	world_tick(w, 0, true);
	world_tick(w, -5, true);
	world_use(w, "/a.service", 10 * WORLD_MS);
	w->now_ns += 5;
	world_tick(w, 100 * WORLD_MS, false);
	i = world_publish(w);
	assert_near(world_total(usage_of(i, "a.service")), 20);
	interval_free(i);
}

static void test_a_pass_that_misses_a_cgroup(void **state)
{
	struct world *w = *state;
	struct interval *i;
	const struct usage *u;

	world_start(w, one_unit);
	world_use(w, "/a.service", 0);
	world_tick(w, 0, true);
	world_reading(w, "/a.service")->have = 0;
	world_tick(w, 100 * WORLD_MS, false);
	world_use(w, "/a.service", 40 * WORLD_MS);
	world_tick(w, 100 * WORLD_MS, false);
	i = world_publish(w);
	u = usage_of(i, "a.service");
	assert_int_equal(u->cpu_milli.samples, 1);
	assert_near(u->cpu_milli.weight, 0.2);
	assert_near(u->cpu_milli.mean, 200);
	assert_false(u->have & USAGE_MEMORY);
	interval_free(i);
}

/* --- lives ------------------------------------------------------------------------------------ */

static void test_a_new_cgroup_counts_from_zero(void **state)
{
	struct world *w = *state;
	struct interval *i;
	const struct entry *e;

	world_start(w, one_unit);
	world_use(w, "/a.service", 0);
	world_tick(w, 0, true);
	world_mkdir(w, "/b.service");
	world_scan(w);
	world_use(w, "/b.service", 30 * WORLD_MS);
	world_tick(w, 100 * WORLD_MS, false);
	i = world_publish(w);
	e = world_entry(i, "b.service");
	assert_non_null(e);
	assert_true(e->fresh);
	assert_near(e->usage.cpu_milli.mean, 300);
	assert_near(e->usage.seconds, 0.1);
	interval_free(i);
}

static void test_new_at_the_first_tick_counts_from_zero(void **state)
{
	struct world *w = *state;
	struct interval *i;

	world_start(w, one_unit);
	world_mkdir(w, "/b.service");
	world_scan(w);
	world_use(w, "/b.service", 10 * WORLD_MS);
	world_tick(w, 0, true);
	world_use(w, "/b.service", 20 * WORLD_MS);
	world_tick(w, 100 * WORLD_MS, false);
	i = world_publish(w);
	assert_near(usage_of(i, "b.service")->cpu_milli.mean, 300);
	interval_free(i);
}

static void test_what_vanished_keeps_its_samples(void **state)
{
	struct world *w = *state;
	struct interval *i;

	world_start(w, one_unit);
	world_use(w, "/a.service", 0);
	world_tick(w, 0, true);
	world_use(w, "/a.service", 50 * WORLD_MS);
	world_tick(w, 100 * WORLD_MS, false);
	world_rmdir(w, "/a.service");
	world_scan(w);
	world_tick(w, 100 * WORLD_MS, false);
	i = world_publish(w);
	assert_near(world_total(usage_of(i, "a.service")), 50);
	assert_near(usage_of(i, "a.service")->seconds, 0.1);
	interval_free(i);
	world_tick(w, 100 * WORLD_MS, false);
	i = world_publish(w);
	assert_int_equal(i->entry_count, 0);
	interval_free(i);
}

static void test_never_sampled_is_never_reported(void **state)
{
	struct world *w = *state;
	struct interval *i;

	world_start(w, one_unit);
	world_tick(w, 0, true);
	world_rmdir(w, "/a.service");
	world_scan(w);
	world_tick(w, 100 * WORLD_MS, false);
	i = world_publish(w);
	assert_int_equal(i->entry_count, 0);
	interval_free(i);
}

static void test_a_recreated_path_is_another_workload(void **state)
{
	struct world *w = *state;
	struct interval *i;

	world_start(w, one_unit);
	world_use(w, "/a.service", 5 * WORLD_S);
	world_tick(w, 0, true);
	world_use(w, "/a.service", 10 * WORLD_MS);
	world_tick(w, 100 * WORLD_MS, false);
	world_rmdir(w, "/a.service");
	world_mkdir(w, "/a.service");
	world_scan(w);
	world_use(w, "/a.service", 20 * WORLD_MS);
	world_tick(w, 100 * WORLD_MS, false);
	i = world_publish(w);
	assert_int_equal(i->entry_count, 2);
	assert_true(i->entries[0].ref < i->entries[1].ref);
	assert_near(world_total(&i->entries[0].usage), 10);
	assert_near(world_total(&i->entries[1].usage), 20);
	interval_free(i);
}

static void test_counters_that_go_back(void **state)
{
	struct world *w = *state;
	struct interval *i;

	world_start(w, one_unit);
	world_use(w, "/a.service", 5 * WORLD_S);
	world_tick(w, 0, true);
	/* A few hundred nanoseconds less: the same counter, cut to microseconds. */
	world_reading(w, "/a.service")->cpu_ns -= 900;
	world_tick(w, 100 * WORLD_MS, false);
	i = world_publish(w);
	assert_near(world_total(usage_of(i, "a.service")), 0);
	interval_free(i);
	world_use(w, "/a.service", 900 + 10 * WORLD_MS);
	world_tick(w, 100 * WORLD_MS, false);
	i = world_publish(w);
	assert_near(world_total(usage_of(i, "a.service")), 10);
	interval_free(i);
	world_reading(w, "/a.service")->cpu_ns = 7 * WORLD_MS;
	world_tick(w, 100 * WORLD_MS, false);
	i = world_publish(w);
	assert_near(world_total(usage_of(i, "a.service")), 7);
	interval_free(i);
}

static void test_found_late_is_spread_within_capacity(void **state)
{
	struct world *w = *state;
	double total = 0;
	struct interval *i;

	world_start(w, one_unit);
	world_tick(w, 0, true);
	world_mkdir(w, "/late.service");
	world_scan(w);
	world_use(w, "/late.service", 9 * WORLD_S); /* at most 4 CPU seconds fit into a second */
	for (int n = 0; n < 10; n++)
		world_tick(w, 100 * WORLD_MS, false);
	i = world_publish(w);
	assert_near(usage_of(i, "late.service")->cpu_milli.mean, WORLD_CPU_MILLI);
	assert_near(usage_of(i, "late.service")->cpu_milli.max, WORLD_CPU_MILLI);
	total += world_total(usage_of(i, "late.service"));
	interval_free(i);
	for (int n = 0; n < 20; n++)
		world_tick(w, 100 * WORLD_MS, false);
	i = world_publish(w);
	total += world_total(usage_of(i, "late.service"));
	interval_free(i);
	assert_near(total, 9000);
}

/* --- roll-up ---------------------------------------------------------------------------------- */

#define POD	  WORLD_POD(1)
#define CONTAINER POD WORLD_CONTAINER(1)
#define SECOND	  POD WORLD_CONTAINER(2)

static const char *const one_pod[] = {CONTAINER "/deep/er", SECOND, NULL};

static void test_own_tasks_are_rolled_up(void **state)
{
	struct world *w = *state;
	struct interval *i;

	world_start(w, one_pod);
	for (size_t n = 0; n < topology_count(w->topology); n++)
		world_use_local(w, topology_at(w->topology, n)->path, 3 * WORLD_S);
	world_tick(w, 0, true);
	world_use_local(w, CONTAINER "/deep/er", 10 * WORLD_MS);
	world_use_local(w, CONTAINER "/deep", 1 * WORLD_MS);
	world_use_local(w, CONTAINER, 4 * WORLD_MS);
	world_use_local(w, SECOND, 20 * WORLD_MS);
	world_use_local(w, POD, 5 * WORLD_MS);
	world_tick(w, 100 * WORLD_MS, false);
	/* A child's death takes nothing away. */
	world_rmdir(w, SECOND);
	world_scan(w);
	world_use_local(w, CONTAINER "/deep/er", 10 * WORLD_MS);
	world_tick(w, 100 * WORLD_MS, false);
	i = world_publish(w);
	assert_near(world_total(usage_of(i, CONTAINER)), 25);
	assert_near(world_total(usage_of(i, SECOND)), 20);
	assert_near(world_total(usage_of(i, POD)), 50);
	assert_near(usage_of(i, POD)->cpu_milli.min, 100);
	assert_near(world_total(&i->node.usage), 50);
	interval_free(i);
}

static void test_whole_counters_are_not_added_again(void **state)
{
	struct world *w = *state;
	struct interval *i;

	world_start(w, one_pod);
	for (size_t n = 0; n < topology_count(w->topology); n++)
		world_use(w, topology_at(w->topology, n)->path, WORLD_S);
	world_tick(w, 0, true);
	world_use(w, CONTAINER, 20 * WORLD_MS);
	world_use(w, POD, 30 * WORLD_MS);
	world_use(w, "/", 80 * WORLD_MS);
	world_tick(w, 100 * WORLD_MS, false);
	i = world_publish(w);
	assert_near(world_total(usage_of(i, CONTAINER)), 20);
	assert_near(world_total(usage_of(i, POD)), 30);
	assert_near(world_total(&i->node.usage), 80);
	interval_free(i);
}

/* A whole counter has what is below, however that is counted. */
static void test_a_whole_counter_above_own_tasks(void **state)
{
	struct world *w = *state;
	struct interval *i;

	world_start(w, one_pod);
	world_use(w, POD, 0);
	world_use_local(w, CONTAINER, 0);
	world_tick(w, 0, true);
	world_use(w, POD, 30 * WORLD_MS);
	world_use_local(w, CONTAINER, 20 * WORLD_MS);
	world_tick(w, 100 * WORLD_MS, false);
	i = world_publish(w);
	assert_near(world_total(usage_of(i, POD)), 30);
	interval_free(i);
}

static void test_a_change_of_tier_counts_nothing_twice(void **state)
{
	struct world *w = *state;
	struct interval *i;

	world_start(w, one_pod);
	world_use_local(w, POD, WORLD_S);
	world_use_local(w, CONTAINER, 50 * WORLD_S);
	world_tick(w, 0, true);
	world_use_local(w, CONTAINER, 10 * WORLD_MS);
	world_tick(w, 100 * WORLD_MS, false);
	/* Now the subtree: 51 s more than the pod's own tasks had. */
	*world_reading(w, POD) = (struct reading){.have = HAVE_CPU, .cpu_ns = 60 * WORLD_S};
	*world_reading(w, CONTAINER) = (struct reading){.have = HAVE_CPU, .cpu_ns = 55 * WORLD_S};
	world_tick(w, 100 * WORLD_MS, false);
	world_use(w, POD, 30 * WORLD_MS);
	world_use(w, CONTAINER, 20 * WORLD_MS);
	world_tick(w, 100 * WORLD_MS, false);
	/* And back. */
	*world_reading(w, POD) = (struct reading){.have = HAVE_CPU | HAVE_CPU_LOCAL, .cpu_ns = 9};
	world_tick(w, 100 * WORLD_MS, false);
	i = world_publish(w);
	assert_near(world_total(usage_of(i, POD)), 40);
	assert_near(world_total(usage_of(i, CONTAINER)), 30);
	interval_free(i);
}

/* --- memory ----------------------------------------------------------------------------------- */

static void set_memory(struct world *w, const char *path, uint64_t bytes, uint64_t inactive,
		       uint32_t more)
{
	struct reading *r = world_reading(w, path);

	r->have |= HAVE_MEMORY | more;
	r->mem_bytes = bytes;
	r->inactive_file_bytes = inactive;
}

static void test_memory_is_weighted_with_time(void **state)
{
	struct world *w = *state;
	struct interval *i;
	const struct usage *u;

	world_start(w, one_unit);
	set_memory(w, "/a.service", 1 << 20, 0, 0);
	world_tick(w, 0, true);
	world_tick(w, 100 * WORLD_MS, false);
	set_memory(w, "/a.service", 5 << 20, 0, 0);
	world_tick(w, 300 * WORLD_MS, false);
	set_memory(w, "/a.service", 2 << 20, 0, 0);
	world_tick(w, 100 * WORLD_MS, false);
	i = world_publish(w);
	u = usage_of(i, "a.service");
	assert_int_equal(u->have, USAGE_MEMORY);
	assert_near(u->mem_bytes.mean, (1 + 15 + 2) / 5. * (1 << 20));
	assert_near(u->mem_bytes.max, 5 << 20);
	assert_near(u->mem_bytes.last, 2 << 20);
	interval_free(i);
}

static void test_working_set_of_slow_ticks(void **state)
{
	struct world *w = *state;
	struct interval *i;
	const struct usage *u;

	world_start(w, one_unit);
	world_tick(w, 0, true);
	set_memory(w, "/a.service", 100, 40, HAVE_WORKING_SET);
	world_tick(w, 1000 * WORLD_MS, true);
	set_memory(w, "/a.service", 900, 0, HAVE_WORKING_SET);
	world_tick(w, 500 * WORLD_MS, false);
	set_memory(w, "/a.service", 100, 120, HAVE_WORKING_SET);
	world_tick(w, 1500 * WORLD_MS, true);
	i = world_publish(w);
	u = usage_of(i, "a.service");
	assert_int_equal(u->have, USAGE_MEMORY | USAGE_WORKING_SET);
	assert_near(u->working_set_bytes.mean, 60 * 1. / 3);
	assert_near(u->working_set_bytes.max, 60);
	assert_near(u->working_set_bytes.last, 0);
	interval_free(i);
	/* Without a slow tick the last one holds. */
	set_memory(w, "/a.service", 80, 30, HAVE_WORKING_SET);
	world_tick(w, 100 * WORLD_MS, true);
	interval_free(world_publish(w));
	world_tick(w, 100 * WORLD_MS, false);
	i = world_publish(w);
	u = usage_of(i, "a.service");
	assert_int_equal(u->have, USAGE_MEMORY | USAGE_WORKING_SET);
	assert_near(u->working_set_bytes.mean, 50);
	assert_near(u->working_set_bytes.max, 50);
	interval_free(i);
	/* A slow tick that does not know it ends that. */
	world_reading(w, "/a.service")->have = 0;
	world_tick(w, 100 * WORLD_MS, true);
	interval_free(world_publish(w));
	world_tick(w, 100 * WORLD_MS, false);
	i = world_publish(w);
	assert_int_equal(usage_of(i, "a.service")->have, 0);
	interval_free(i);
}

static void test_inactive_pages_of_the_subtree(void **state)
{
	struct world *w = *state;
	struct interval *i;

	world_start(w, one_pod);
	world_tick(w, 0, true);
	set_memory(w, POD, 1000, 1, HAVE_WORKING_SET);
	set_memory(w, CONTAINER, 500, 10, HAVE_WORKING_SET);
	set_memory(w, CONTAINER "/deep", 400, 100, HAVE_WORKING_SET);
	set_memory(w, SECOND, 300, 20, HAVE_WORKING_SET | HAVE_INACTIVE_SUBTREE);
	world_tick(w, 1000 * WORLD_MS, true);
	i = world_publish(w);
	assert_near(usage_of(i, POD)->working_set_bytes.last, 1000 - 131);
	assert_near(usage_of(i, CONTAINER)->working_set_bytes.last, 500 - 110);
	assert_near(usage_of(i, SECOND)->working_set_bytes.last, 280);
	interval_free(i);
	/* One that covers its subtree takes nothing from below. */
	set_memory(w, POD, 1000, 131, HAVE_WORKING_SET | HAVE_INACTIVE_SUBTREE);
	world_tick(w, 1000 * WORLD_MS, true);
	i = world_publish(w);
	assert_near(usage_of(i, POD)->working_set_bytes.last, 1000 - 131);
	interval_free(i);
}

/* --- throttling, kills, pressure -------------------------------------------------------------- */

static void add_slow(struct world *w, const char *path, uint32_t have, uint64_t throttled_ms,
		     uint64_t psi_ms, uint64_t kills)
{
	struct reading *r = world_reading(w, path);

	r->have |= have;
	r->throttled_ns += throttled_ms * WORLD_MS;
	r->periods += 10;
	r->throttled_periods += throttled_ms ? 4 : 0;
	r->psi_cpu_ns += psi_ms * WORLD_MS;
	r->psi_mem_ns += psi_ms * WORLD_MS / 10;
	r->oom_kills += kills;
}

static void test_slow_counters(void **state)
{
	const uint32_t all = HAVE_THROTTLE | HAVE_OOM | HAVE_PSI;
	struct world *w = *state;
	struct interval *i;
	const struct usage *u;

	world_start(w, one_unit);
	add_slow(w, "/a.service", all, 9000, 9000, 9); /* before us */
	world_tick(w, 0, false);
	world_tick(w, 100 * WORLD_MS, true); /* the first slow tick is their baseline */
	add_slow(w, "/a.service", all, 200, 500, 1);
	world_tick(w, 1000 * WORLD_MS, true);
	add_slow(w, "/a.service", all, 0, 100, 0); /* seen by the next slow tick only */
	world_tick(w, 100 * WORLD_MS, false);
	i = world_publish(w);
	u = usage_of(i, "a.service");
	assert_int_equal(u->have, USAGE_THROTTLE | USAGE_OOM | USAGE_CONTENTION_CPU |
					  USAGE_CONTENTION_MEMORY);
	assert_int_equal(u->throttled_ns, 200 * WORLD_MS);
	assert_int_equal(u->periods, 10);
	assert_int_equal(u->throttled_periods, 4);
	assert_int_equal(u->oom_kills, 1);
	assert_int_equal(u->contention_cpu_ns, 300 * WORLD_MS);
	assert_int_equal(u->contention_mem_ns, 50 * WORLD_MS);
	interval_free(i);
	world_tick(w, 1000 * WORLD_MS, true);
	i = world_publish(w);
	u = usage_of(i, "a.service");
	assert_int_equal(u->throttled_ns, 0);
	assert_int_equal(u->periods, 10);
	assert_int_equal(u->contention_cpu_ns, 100 * WORLD_MS);
	interval_free(i);
}

static void test_what_is_not_measured_is_absent(void **state)
{
	static const struct {
		uint32_t have, want;
	} cases[] = {
		{0, 0},
		{HAVE_PSI, USAGE_CONTENTION_MEMORY}, /* may be the workload's own throttling */
		{HAVE_THROTTLE, USAGE_THROTTLE},
		{HAVE_OOM, USAGE_OOM},
		{HAVE_PSI | HAVE_THROTTLE,
		 USAGE_THROTTLE | USAGE_CONTENTION_CPU | USAGE_CONTENTION_MEMORY},
		{HAVE_PSI_CPU_FULL, USAGE_STALL_CPU},
		{HAVE_PSI_MEMORY_FULL, USAGE_STALL_MEMORY},
		{HAVE_SWAP, USAGE_SWAP},
		{HAVE_PIDS, USAGE_PIDS},
		{HAVE_WORKING_SET, 0}, /* without usage */
		{HAVE_MEMORY, USAGE_MEMORY},
		{HAVE_CPU, USAGE_CPU},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		struct world *w = world_new();
		struct interval *i;

		world_start(w, one_unit);
		world_reading(w, "/a.service")->have = cases[n].have;
		world_tick(w, 0, true);
		world_tick(w, WORLD_S, true);
		i = world_publish(w);
		assert_int_equal(usage_of(i, "a.service")->have, cases[n].want);
		interval_free(i);
		world_free(w);
	}
}

static void test_stalls_swap_and_pids(void **state)
{
	struct world *w = *state;
	const struct usage *u;
	struct interval *i;
	struct reading *r;

	world_start(w, one_pod);
	r = world_reading(w, POD);
	r->have = HAVE_PSI_CPU_FULL | HAVE_PSI_MEMORY_FULL | HAVE_SWAP | HAVE_PIDS;
	r->psi_cpu_full_ns = r->psi_mem_full_ns = 9 * WORLD_S; /* before us */
	world_tick(w, 0, true);
	*world_reading(w, CONTAINER) = *r; /* what is below is in the pod's values already */
	r->psi_cpu_full_ns += 300 * WORLD_MS;
	r->psi_mem_full_ns += 20 * WORLD_MS;
	r->swap_bytes = 5000;
	r->pids = 12;
	world_tick(w, WORLD_S, true);
	r->psi_cpu_full_ns += 30 * WORLD_MS;
	r->swap_bytes = 4000;
	r->pids = 11;
	world_tick(w, WORLD_S, true);
	r->pids = 99; /* no slow tick has seen it */
	world_tick(w, 100 * WORLD_MS, false);
	i = world_publish(w);
	u = usage_of(i, POD);
	assert_int_equal(u->have, USAGE_STALL_CPU | USAGE_STALL_MEMORY | USAGE_SWAP | USAGE_PIDS);
	assert_int_equal(u->stall_cpu_ns, 330 * WORLD_MS);
	assert_int_equal(u->stall_mem_ns, 20 * WORLD_MS);
	assert_int_equal(u->swap_bytes, 4000);
	assert_int_equal(u->pids, 11);
	assert_int_equal(u->contention_cpu_ns, 0);
	interval_free(i);
	/* Without a slow tick the newest values still hold, and nothing is new in the counters. */
	world_tick(w, 100 * WORLD_MS, false);
	i = world_publish(w);
	u = usage_of(i, POD);
	assert_int_equal(u->have, USAGE_STALL_CPU | USAGE_STALL_MEMORY | USAGE_SWAP | USAGE_PIDS);
	assert_int_equal(u->stall_cpu_ns, 0);
	assert_int_equal(u->swap_bytes, 4000);
	assert_int_equal(u->pids, 11);
	interval_free(i);
	/* A slow tick that lacks them ends that. */
	r->have = 0;
	world_tick(w, WORLD_S, true);
	interval_free(world_publish(w));
	world_tick(w, 100 * WORLD_MS, false);
	i = world_publish(w);
	u = usage_of(i, POD);
	assert_int_equal(u->have, 0);
	assert_int_equal(u->swap_bytes, 0);
	assert_int_equal(u->pids, 0);
	interval_free(i);
}

/* A counter that a lower tier reads first is as old as its cgroup. */
static void test_a_counter_read_late_begins_then(void **state)
{
	struct world *w = *state;
	struct interval *i;

	world_start(w, one_unit);
	world_tick(w, 0, true);
	world_mkdir(w, "/b.service");
	world_scan(w);
	add_slow(w, "/b.service", HAVE_OOM, 0, 0, 2);
	world_tick(w, WORLD_S, true);
	add_slow(w, "/b.service", HAVE_OOM | HAVE_PSI, 0, 50000, 0);
	world_tick(w, WORLD_S, true);
	add_slow(w, "/b.service", HAVE_OOM | HAVE_PSI, 0, 10, 0);
	world_tick(w, WORLD_S, true);
	i = world_publish(w);
	assert_int_equal(usage_of(i, "b.service")->oom_kills, 2);
	assert_int_equal(usage_of(i, "b.service")->contention_mem_ns, WORLD_MS);
	interval_free(i);
}

/*
 * The kernel shows pressure in steps of 2 s: what one interval has too little the next one has too
 * much.
 */
static void test_pressure_and_throttling_out_of_step(void **state)
{
	static const uint64_t psi_ms[] = {0, 1600, 0, 1600};
	struct world *w = *state;
	uint64_t sum = 0;

	world_start(w, one_unit);
	world_reading(w, "/a.service")->have = HAVE_PSI | HAVE_THROTTLE;
	world_tick(w, 0, true);
	for (int n = 0; n < 4; n++) {
		struct interval *i;

		add_slow(w, "/a.service", 0, 800, psi_ms[n], 0);
		world_tick(w, WORLD_S, true);
		i = world_publish(w);
		assert_true(usage_of(i, "a.service")->have & USAGE_CONTENTION_CPU);
		sum += usage_of(i, "a.service")->contention_cpu_ns;
		interval_free(i);
	}
	assert_int_equal(sum, 0);
}

/*
 * Many CPUs throttled at once count more time than passes: that must not hide contention for long.
 */
static void test_surplus_of_throttling_is_forgotten(void **state)
{
	struct world *w = *state;
	struct interval *i;

	world_start(w, one_unit);
	world_reading(w, "/a.service")->have = HAVE_PSI | HAVE_THROTTLE;
	world_tick(w, 0, true);
	add_slow(w, "/a.service", 0, 50000, 1000, 0);
	world_tick(w, WORLD_S, true);
	interval_free(world_publish(w));
	add_slow(w, "/a.service", 0, 0, 3000, 0);
	world_tick(w, 3 * WORLD_S, true);
	i = world_publish(w);
	assert_int_equal(usage_of(i, "a.service")->contention_cpu_ns, 1000 * WORLD_MS);
	interval_free(i);
}

static void test_slow_counters_of_the_subtree(void **state)
{
	const uint32_t all = HAVE_THROTTLE | HAVE_OOM | HAVE_PSI;
	struct world *w = *state;
	struct interval *i;
	const struct usage *u;

	world_start(w, one_pod);
	world_reading(w, POD)->have = all;
	world_reading(w, CONTAINER)->have = all;
	world_reading(w, SECOND)->have = all;
	world_tick(w, 0, true);
	add_slow(w, CONTAINER, all, 300, 350, 1);
	add_slow(w, SECOND, all, 100, 100, 1);
	add_slow(w, POD, all, 0, 420, 2); /* v2 counts the kills below */
	world_tick(w, WORLD_S, true);
	i = world_publish(w);
	u = usage_of(i, POD);
	assert_int_equal(u->throttled_ns, 400 * WORLD_MS);
	assert_int_equal(u->contention_cpu_ns, 20 * WORLD_MS);
	assert_int_equal(u->oom_kills, 2);
	assert_int_equal(usage_of(i, CONTAINER)->contention_cpu_ns, 50 * WORLD_MS);
	assert_int_equal(i->node.usage.throttled_ns, 400 * WORLD_MS);
	assert_int_equal(i->node.usage.oom_kills, 2);
	assert_false(i->node.usage.have & USAGE_CONTENTION_CPU);
	interval_free(i);
	/* v1 counts a kill only where the victim lived. */
	add_slow(w, CONTAINER, all, 0, 0, 3);
	world_tick(w, WORLD_S, true);
	i = world_publish(w);
	assert_int_equal(usage_of(i, POD)->oom_kills, 3);
	assert_int_equal(i->node.usage.oom_kills, 3);
	interval_free(i);
}

/* The kernel protects a cgroup no further than those above it, but for the topmost. */
static void test_protection_along_the_path(void **state)
{
	static const char *const paths[] = {"/a.slice/b.service", "/c.service", NULL};
	static const struct {
		bool known; /* of the slice */
		uint64_t slice, unit, want;
	} cases[] = {{true, 1000, 3000, 1000},
		     {true, 3000, 1000, 1000},
		     {true, 0, 1000, 0},
		     {false, 0, 1000, 1000}};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		struct world *w = world_new();
		struct reading *slice, *unit, *other;
		struct interval *i;

		world_start(w, paths);
		slice = world_reading(w, "/a.slice");
		unit = world_reading(w, "/a.slice/b.service");
		other = world_reading(w, "/c.service");
		slice->have = cases[n].known ? HAVE_PROTECTED : 0;
		slice->mem_protected_bytes = cases[n].slice;
		unit->have = other->have = HAVE_PROTECTED;
		unit->mem_protected_bytes = other->mem_protected_bytes = cases[n].unit;
		world_tick(w, WORLD_S, true);
		world_tick(w, WORLD_S, true);
		i = world_publish(w);
		assert_int_equal(usage_of(i, "a.slice/b.service")->mem_protected_bytes,
				 cases[n].want);
		assert_int_equal(usage_of(i, "c.service")->mem_protected_bytes, cases[n].unit);
		interval_free(i);
		world_free(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_rate_from_counter_differences),
		WORLD_TEST(test_missed_ticks_lose_no_use),
		WORLD_TEST(test_same_instant_is_left_to_the_next_tick),
		WORLD_TEST(test_a_pass_that_misses_a_cgroup),
		WORLD_TEST(test_a_new_cgroup_counts_from_zero),
		WORLD_TEST(test_new_at_the_first_tick_counts_from_zero),
		WORLD_TEST(test_what_vanished_keeps_its_samples),
		WORLD_TEST(test_never_sampled_is_never_reported),
		WORLD_TEST(test_a_recreated_path_is_another_workload),
		WORLD_TEST(test_counters_that_go_back),
		WORLD_TEST(test_found_late_is_spread_within_capacity),
		WORLD_TEST(test_own_tasks_are_rolled_up),
		WORLD_TEST(test_whole_counters_are_not_added_again),
		WORLD_TEST(test_a_whole_counter_above_own_tasks),
		WORLD_TEST(test_a_change_of_tier_counts_nothing_twice),
		WORLD_TEST(test_memory_is_weighted_with_time),
		WORLD_TEST(test_working_set_of_slow_ticks),
		WORLD_TEST(test_inactive_pages_of_the_subtree),
		WORLD_TEST(test_slow_counters),
		cmocka_unit_test(test_what_is_not_measured_is_absent),
		WORLD_TEST(test_stalls_swap_and_pids),
		WORLD_TEST(test_a_counter_read_late_begins_then),
		WORLD_TEST(test_pressure_and_throttling_out_of_step),
		WORLD_TEST(test_surplus_of_throttling_is_forgotten),
		WORLD_TEST(test_slow_counters_of_the_subtree),
		cmocka_unit_test(test_protection_along_the_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
