/* SPDX-License-Identifier: Apache-2.0 */
#include "shared/interval.h"
#include "tests/near.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const uint32_t all = USAGE_CPU | USAGE_MEMORY | USAGE_WORKING_SET | USAGE_THROTTLE |
			    USAGE_OOM | USAGE_CONTENTION_CPU | USAGE_CONTENTION_MEMORY |
			    USAGE_STALL_CPU | USAGE_STALL_MEMORY | USAGE_SWAP | USAGE_PIDS;

/* In zeroed memory, so that usages can be compared with their padding. */
static void fill_usage(struct usage *u, uint32_t have, double milli, double seconds, float bytes)
{
	struct moments cpu = {0};

	moments_add(&cpu, milli, seconds / 2);
	moments_add(&cpu, milli * 2, seconds / 2);
	memset(u, 0, sizeof(*u));
	u->have = have;
	u->oom_kills = 1;
	u->seconds = (float)seconds;
	u->cpu_milli = moments_pack(&cpu);
	u->mem_bytes = (struct gauge){bytes, bytes * 2, bytes / 2};
	u->working_set_bytes = (struct gauge){bytes / 4, bytes, bytes / 8};
	u->throttled_ns = 10;
	u->throttled_periods = 3;
	u->periods = 4;
	u->contention_cpu_ns = 5;
	u->contention_mem_ns = 6;
	u->stall_cpu_ns = 7;
	u->stall_mem_ns = 8;
	u->swap_bytes = (uint64_t)bytes;
	u->pids = (uint32_t)bytes / 10;
}

static struct usage make_usage(uint32_t have, double milli, double seconds, float bytes)
{
	struct usage u;

	fill_usage(&u, have, milli, seconds, bytes);
	return u;
}

static void test_entities_are_counted(void **state)
{
	struct entity *e = entity_new(7, ENTITY_POD, "kubepods/pod");

	(void)state;
	assert_int_equal(e->ref, 7);
	assert_int_equal(e->kind, ENTITY_POD);
	assert_int_equal(e->users, 1);
	assert_int_equal(e->parent, 0);
	assert_string_equal(e->name, "kubepods/pod");
	assert_string_equal(e->pod_uid, "");
	assert_ptr_equal(entity_hold(e), e);
	assert_int_equal(e->users, 2);
	entity_drop(e);
	assert_int_equal(e->users, 1);
	entity_drop(e);
	entity_drop(NULL);
	interval_free(NULL);
}

static void test_a_new_interval(void **state)
{
	struct interval *i = interval_new(3), *empty = interval_new(0);

	(void)state;
	assert_int_equal(i->merged, 1);
	assert_int_equal(i->entry_count, 3);
	assert_null(i->entries[2].entity);
	assert_int_equal(interval_bytes(i) - interval_bytes(empty), 3 * sizeof(struct entry));
	assert_true(interval_bytes(empty) >= sizeof(struct interval));
	interval_free(i);
	interval_free(empty);
}

static void test_usage_merge(void **state)
{
	struct usage a = make_usage(all, 100, 2, 1000), b = make_usage(all, 400, 6, 3000);

	(void)state;
	usage_merge(&a, &b);
	assert_int_equal(a.have, all);
	assert_near(a.seconds, 8);
	assert_int_equal(a.cpu_milli.samples, 4);
	assert_near(a.cpu_milli.weight, 8);
	assert_near(a.cpu_milli.mean, (150. * 2 + 600 * 6) / 8);
	assert_near(a.cpu_milli.min, 100);
	assert_near(a.cpu_milli.max, 800);
	assert_near(a.cpu_milli.last, 800);
	assert_near(a.cpu_milli.m2, 2 * 2500. + 6 * 40000. + 450. * 450 * 12 / 8);
	assert_near(a.mem_bytes.mean, 2500);
	assert_near(a.mem_bytes.max, 6000);
	assert_near(a.mem_bytes.last, 1500);
	assert_near(a.working_set_bytes.mean, 625);
	assert_near(a.working_set_bytes.max, 3000);
	assert_near(a.working_set_bytes.last, 375);
	assert_int_equal(a.oom_kills, 2);
	assert_int_equal(a.throttled_ns, 20);
	assert_int_equal(a.throttled_periods, 6);
	assert_int_equal(a.periods, 8);
	assert_int_equal(a.contention_cpu_ns, 10);
	assert_int_equal(a.contention_mem_ns, 12);
	assert_int_equal(a.stall_cpu_ns, 14);
	assert_int_equal(a.stall_mem_ns, 16);
	assert_int_equal(a.swap_bytes, 3000);
	assert_int_equal(a.pids, 300);
}

/* What is now comes from the later side that knows it, also when it is 0 there. */
static void test_usage_merge_of_what_is_now(void **state)
{
	static const struct {
		uint32_t have_a, have_b;
		uint64_t swap_b, swap;
		uint32_t pids_b, pids;
	} cases[] = {
		{USAGE_SWAP | USAGE_PIDS, 0, 0, 1000, 0, 100},
		{USAGE_SWAP | USAGE_PIDS, USAGE_SWAP, 0, 0, 7, 100},
		{USAGE_SWAP | USAGE_PIDS, USAGE_PIDS, 9, 1000, 7, 7},
		{0, USAGE_SWAP | USAGE_PIDS, 9, 9, 7, 7},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct usage a = make_usage(cases[i].have_a, 100, 2, 1000);
		struct usage b = make_usage(cases[i].have_b, 100, 2, 1000);

		b.swap_bytes = cases[i].swap_b;
		b.pids = cases[i].pids_b;
		usage_merge(&a, &b);
		assert_int_equal(a.have, cases[i].have_a | cases[i].have_b);
		assert_int_equal(a.swap_bytes, cases[i].swap);
		assert_int_equal(a.pids, cases[i].pids);
	}
}

/* What only one side measured is the other's; what none did stays unknown. */
static void test_usage_merge_of_unknowns(void **state)
{
	static const struct usage nothing;
	struct usage a = make_usage(USAGE_MEMORY, 100, 2, 1000), b;

	(void)state;
	b = make_usage(USAGE_WORKING_SET, 100, 2, 9000);
	b.mem_bytes = (struct gauge){0};
	usage_merge(&a, &b);
	assert_int_equal(a.have, USAGE_MEMORY | USAGE_WORKING_SET);
	assert_near(a.mem_bytes.mean, 1000);
	assert_near(a.mem_bytes.last, 500);
	assert_near(a.working_set_bytes.mean, 2250);
	assert_near(a.working_set_bytes.last, 1125);

	fill_usage(&b, all, 300, 5, 4000);
	memcpy(&a, &nothing, sizeof(a));
	usage_merge(&a, &b);
	assert_memory_equal(&a, &b, sizeof(a));
	usage_merge(&a, &nothing);
	assert_memory_equal(&a, &b, sizeof(a));
	memcpy(&a, &nothing, sizeof(a));
	usage_merge(&a, &nothing);
	assert_memory_equal(&a, &nothing, sizeof(a));
}

static void test_usage_merge_at_the_limits(void **state)
{
	struct usage a = make_usage(all, 1, 0, 1000), b = make_usage(all, 1, 0, 500);

	(void)state;
	a.oom_kills = a.periods = a.throttled_periods = UINT32_MAX;
	usage_merge(&a, &b);
	assert_int_equal(a.oom_kills, UINT32_MAX);
	assert_int_equal(a.periods, UINT32_MAX);
	assert_int_equal(a.throttled_periods, UINT32_MAX);
	/* Without time there is no weight; the peak is known all the same. */
	assert_near(a.mem_bytes.mean, 500);
	assert_near(a.mem_bytes.max, 2000);
	assert_near(a.mem_bytes.last, 250);
}

/* An interval of 5 s, `sequence` times 5 s after the epoch, with these refs (0 ends). */
static struct interval *make_interval(uint64_t sequence, const uint32_t *refs)
{
	size_t count = 0;
	struct interval *i;

	while (refs[count])
		count++;
	i = interval_new(count);
	i->sequence = sequence;
	i->start_ns = (int64_t)sequence * 5000000000;
	i->end_ns = i->start_ns + 5000000000;
	i->full = true;
	for (size_t n = 0; n < count; n++) {
		i->entries[n].ref = refs[n];
		i->entries[n].entity = entity_new(refs[n], ENTITY_UNIT, "x");
		i->entries[n].limits = (struct kernel_limits){.cpu_milli = (int64_t)sequence * 100,
							      .mem_bytes = LIMIT_NONE};
		i->entries[n].cause = (struct contention_cause){(uint32_t)sequence, 0.5F};
		i->entries[n].usage = make_usage(all, refs[n] * 10., 5, 100);
	}
	i->node.usage = make_usage(all, 1000, 5, 1e9f);
	i->node.rate_hz = 10;
	i->node.pass_ns = 1000;
	i->node.cpu_capacity_milli = 4000;
	i->node.agent_cpu_ns = 7;
	histogram_add(&i->node.cpu_hist, 100, HISTOGRAM_CPU_X0);
	histogram_add(&i->node.mem_hist, 1e9, HISTOGRAM_MEMORY_X0);
	return i;
}

static void test_interval_merge(void **state)
{
	static const uint32_t refs_a[] = {1, 2, 5, 0}, refs_b[] = {2, 3, 5, 9, 0};
	static const uint32_t want[] = {1, 2, 3, 5, 9};
	struct interval *a = make_interval(4, refs_a), *b = make_interval(5, refs_b), *m;

	(void)state;
	a->entries[1].fresh = true;
	b->entries[2].fresh = true;
	b->merged = 3;
	b->full = false;
	m = interval_merge(a, b);
	assert_int_equal(m->sequence, 5);
	assert_int_equal(m->start_ns, a->start_ns);
	assert_int_equal(m->end_ns, b->end_ns);
	assert_int_equal(m->merged, 4);
	assert_false(m->full);
	assert_int_equal(m->entry_count, 5);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(m->entries[i].ref, want[i]);
	assert_ptr_equal(m->entries[0].entity, a->entries[0].entity);
	assert_ptr_equal(m->entries[1].entity, b->entries[0].entity);
	assert_int_equal(m->entries[0].entity->users, 2);
	assert_int_equal(m->entries[0].limits.cpu_milli, 400);
	assert_int_equal(m->entries[1].limits.cpu_milli, 500);
	assert_int_equal(m->entries[0].cause.ref, 4);
	assert_int_equal(m->entries[1].cause.ref, 5);
	assert_true(m->entries[1].fresh && m->entries[3].fresh);
	assert_false(m->entries[0].fresh || m->entries[2].fresh || m->entries[4].fresh);
	assert_near(m->entries[1].usage.seconds, 10);
	assert_near(m->entries[0].usage.seconds, 5);
	interval_free(a);
	interval_free(b);
	assert_int_equal(m->entries[0].entity->users, 1);
	interval_free(m);
}

static void test_interval_merge_of_the_node(void **state)
{
	static const uint32_t none[] = {0};
	struct interval *a = make_interval(4, none), *b = make_interval(5, none), *m;

	(void)state;
	a->node.rate_hz = 1;
	a->node.usage.seconds = 15;
	b->node.pass_ns = 3000;
	a->node.missed_ticks = UINT32_MAX;
	b->node.missed_ticks = 2;
	a->node.overflow = 9;
	b->node.overflow = 4;
	b->node.tier = TIER_T3;
	b->node.cpu_capacity_milli = 8000;
	b->node.boot_id[0] = 'b';
	a->node.mem_available_bytes = 11;
	b->node.mem_available_bytes = 12;
	a->node.cpu_split = (struct cpu_split){1, 20, 300, 4000};
	b->node.cpu_split = (struct cpu_split){5, 60, 700, 8000};
	m = interval_merge(a, b);
	assert_int_equal(m->entry_count, 0);
	assert_near(m->node.usage.seconds, 20);
	assert_near(m->node.rate_hz, (15 * 1. + 5 * 10.) / 20);
	assert_int_equal(m->node.pass_ns, (15 * 1 * 1000 + 5 * 10 * 3000) / 65);
	assert_int_equal(m->node.missed_ticks, UINT32_MAX);
	assert_int_equal(m->node.overflow, 9);
	assert_int_equal(m->node.tier, TIER_T3);
	assert_int_equal(m->node.cpu_capacity_milli, 8000);
	assert_int_equal(m->node.agent_cpu_ns, 14);
	assert_int_equal(m->node.mem_available_bytes, 12);
	assert_int_equal(m->node.cpu_split.user_ns, 6);
	assert_int_equal(m->node.cpu_split.system_ns, 80);
	assert_int_equal(m->node.cpu_split.iowait_ns, 1000);
	assert_int_equal(m->node.cpu_split.steal_ns, 12000);
	assert_string_equal(m->node.boot_id, "b");
	assert_int_equal(histogram_total(&m->node.cpu_hist), 2);
	assert_int_equal(histogram_total(&m->node.mem_hist), 2);
	interval_free(m);
	a->node.pass_ns = b->node.pass_ns = UINT64_MAX;
	m = interval_merge(a, b);
	assert_int_equal(m->node.pass_ns, UINT64_MAX);
	interval_free(m);
	interval_free(a);
	interval_free(b);
}

/* Identities that did not travel with the later one are the earlier one's. */
static void test_interval_merge_keeps_identities(void **state)
{
	static const uint32_t refs[] = {3, 4, 0};
	struct interval *a = make_interval(4, refs), *b = make_interval(5, refs), *m;

	(void)state;
	a->entries[0].fresh = true;
	for (int n = 0; n < 2; n++) {
		entity_drop(b->entries[n].entity);
		b->entries[n].entity = NULL;
		b->entries[n].limits = KERNEL_LIMITS_UNKNOWN;
	}
	entity_drop(a->entries[1].entity);
	a->entries[1].entity = NULL;
	m = interval_merge(a, b);
	assert_ptr_equal(m->entries[0].entity, a->entries[0].entity);
	assert_int_equal(m->entries[0].limits.cpu_milli, 400);
	assert_true(m->entries[0].fresh);
	assert_near(m->entries[0].usage.seconds, 10);
	assert_null(m->entries[1].entity);
	interval_free(m);
	interval_free(a);
	interval_free(b);
}

/* In any grouping the same total, to the precision of floats. */
static void test_merging_is_associative(void **state)
{
	static const uint32_t refs[] = {1, 2, 0};
	struct interval *i[4], *left, *right, *pairs[2], *next;

	(void)state;
	for (unsigned int n = 0; n < 4; n++) {
		i[n] = make_interval(n + 1, refs);
		i[n]->entries[0].usage = make_usage(all, 10 + 97 * n, 1 + n, 100.f + (float)n);
	}
	left = interval_merge(i[0], i[1]);
	for (int n = 2; n < 4; n++) {
		next = interval_merge(left, i[n]);
		interval_free(left);
		left = next;
	}
	pairs[0] = interval_merge(i[0], i[1]);
	pairs[1] = interval_merge(i[2], i[3]);
	right = interval_merge(pairs[0], pairs[1]);
	assert_int_equal(left->merged, 4);
	assert_int_equal(right->merged, 4);
	assert_near(left->entries[0].usage.cpu_milli.mean, right->entries[0].usage.cpu_milli.mean);
	assert_near(left->entries[0].usage.cpu_milli.m2, right->entries[0].usage.cpu_milli.m2);
	assert_near(left->entries[0].usage.mem_bytes.mean, right->entries[0].usage.mem_bytes.mean);
	for (int n = 0; n < 4; n++)
		interval_free(i[n]);
	interval_free(pairs[0]);
	interval_free(pairs[1]);
	interval_free(left);
	interval_free(right);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_entities_are_counted),
		cmocka_unit_test(test_a_new_interval),
		cmocka_unit_test(test_usage_merge),
		cmocka_unit_test(test_usage_merge_of_what_is_now),
		cmocka_unit_test(test_usage_merge_of_unknowns),
		cmocka_unit_test(test_usage_merge_at_the_limits),
		cmocka_unit_test(test_interval_merge),
		cmocka_unit_test(test_interval_merge_of_the_node),
		cmocka_unit_test(test_interval_merge_keeps_identities),
		cmocka_unit_test(test_merging_is_associative),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
