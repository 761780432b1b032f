/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a simulated agent measures: parts add up to wholes, and a node never uses more than it has.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/state/usage_check.h"
#include "shared/clock.h"
#include "tests/fleet/machine_sim.h"

#define NOW_NS (1700000000LL * NS_PER_SEC + 987654321)

static const struct cluster_config config = {
	.nodes = 64, .pods_per_node = 30, .containers = 3, .seed = 5};

static bool close_to(double a, double b)
{
	return fabs(a - b) <= 1e-4 * fmax(fabs(a), fabs(b)) + 1e-3;
}

static void check_container_sums(const struct interval *i)
{
	for (size_t at = 0; at < i->entry_count;) {
		const struct usage *pod = &i->entries[at].usage;
		double cpu = 0, memory = 0;

		assert_int_equal(i->entries[at].entity->kind, ENTITY_POD);
		while (++at < i->entry_count && i->entries[at].entity->kind == ENTITY_CONTAINER) {
			cpu += (double)i->entries[at].usage.cpu_milli.mean;
			memory += (double)i->entries[at].usage.mem_bytes.mean;
		}
		assert_true(close_to(cpu, (double)pod->cpu_milli.mean));
		assert_true(close_to(memory, (double)pod->mem_bytes.mean));
	}
}

/* Returns how long was waited for CPU. */
static uint64_t check_interval(const struct cluster_node *n, const struct interval *i)
{
	const struct usage *node = &i->node.usage;
	double pods = 0, system;

	for (size_t k = 0; k < i->entry_count; k++) {
		if (i->entries[k].entity->kind == ENTITY_POD)
			pods += (double)i->entries[k].usage.cpu_milli.mean;
	}
	system = (double)node->cpu_milli.mean - pods;
	assert_true((double)node->cpu_milli.max <= (double)n->cpu_milli);
	assert_true(system >= 0);
	if (!node->contention_cpu_ns)
		assert_true(
			close_to(system, pattern_used_milli(&n->system, i->start_ns, i->end_ns)));
	else
		assert_true((double)node->cpu_milli.max > 0.999 * (double)n->cpu_milli);
	assert_true(node->mem_bytes.max < (float)n->mem_bytes);
	assert_int_equal(histogram_total(&i->node.cpu_hist), node->cpu_milli.samples);
	return node->contention_cpu_ns;
}

static void test_parts_add_up_and_fit(void **state)
{
	struct cluster *c = cluster_new(&config);
	uint64_t waited[2] = {0}; /* elsewhere, on crowded nodes */
	struct quarantine quarantine;

	(void)state;
	for (uint32_t k = 0; k < config.nodes; k++) {
		const struct cluster_node *n = &c->nodes[k];
		struct machine_sim *m = machine_sim_new(c, k);
		int64_t start = NOW_NS;

		for (uint64_t sequence = 1; sequence <= 4; sequence++, start += 5 * NS_PER_SEC) {
			struct interval *i =
				machine_sim_take(m, sequence, start, start + 5 * NS_PER_SEC);

			assert_int_equal(i->node.usage.cpu_milli.samples, 50);
			check_container_sums(i);
			waited[n->crowded] += check_interval(n, i);
			usage_quarantine(i, &quarantine);
			assert_int_equal(quarantine.total, 0);
			interval_free(i);
		}
		machine_sim_free(m);
	}
	assert_true(waited[true] > 0);
	assert_true(waited[false] == 0);
	cluster_free(c);
}

static void test_any_length_can_be_measured(void **state)
{
	static const int64_t lengths_ms[] = {1, 49, 50, 151, 1000, 15000, 600000};
	struct cluster *c = cluster_new(&config);
	struct machine_sim *m = machine_sim_new(c, 0);
	int64_t start = NOW_NS;

	(void)state;
	for (size_t k = 0; k < sizeof(lengths_ms) / sizeof(lengths_ms[0]); k++) {
		int64_t end = start + lengths_ms[k] * NS_PER_MS;
		struct interval *i = machine_sim_take(m, k + 1, start, end);

		check_interval(&c->nodes[0], i);
		assert_int_equal(i->entries[0].fresh, k == 0);
		assert_true(close_to((double)i->node.usage.seconds, (double)(end - start) / 1e9));
		interval_free(i);
		start = end;
	}
	machine_sim_free(m);
	cluster_free(c);
}

/*
 * Within a life and a half every pod but those of DaemonSets is replaced once or twice, and told as
 * new when it is.
 */
static void test_pods_are_replaced(void **state)
{
	struct cluster_config short_lived = config;
	uint32_t greatest_ref = 0, replaced = 0, kept = 0;
	struct cluster *c;
	struct machine_sim *m;

	(void)state;
	short_lived.pod_life_ns = 60 * NS_PER_SEC;
	short_lived.epoch_ns = NOW_NS;
	c = cluster_new(&short_lived);
	m = machine_sim_new(c, 0);
	for (int64_t k = 0; k < 18; k++) {
		int64_t start = NOW_NS + k * 5 * NS_PER_SEC, end = start + 5 * NS_PER_SEC;
		struct interval *i = machine_sim_take(m, (uint64_t)k + 1, start, end);

		for (size_t e = 0; e < i->entry_count; e++) {
			const struct entity *entity = i->entries[e].entity;

			assert_int_equal(i->entries[e].ref, entity->ref);
			/* A reference not told before is a greater one, and only such are fresh. */
			assert_int_equal(i->entries[e].fresh, entity->ref > greatest_ref || k == 0);
			if (entity->kind == ENTITY_POD && k)
				*(i->entries[e].fresh ? &replaced : &kept) += 1;
			if (entity->kind == ENTITY_CONTAINER)
				assert_int_equal(entity->parent < entity->ref, true);
		}
		for (size_t e = 0; e < i->entry_count; e++) {
			if (i->entries[e].ref > greatest_ref)
				greatest_ref = i->entries[e].ref;
		}
		interval_free(i);
	}
	assert_int_equal(machine_sim_new_pods(m), replaced);
	assert_in_range(replaced, c->nodes[0].pods - DAEMONS, 2 * c->nodes[0].pods);
	assert_true(kept > 10 * replaced);
	machine_sim_free(m);
	cluster_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts_add_up_and_fit),
		cmocka_unit_test(test_any_length_can_be_measured),
		cmocka_unit_test(test_pods_are_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
