/* SPDX-License-Identifier: Apache-2.0 */
/* What the placement benchmark makes of a placement, and that its world is what its table says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "tests/bench_placement/bursts.h"
#include "tests/bench_placement/figures.h"
#include "tests/lab.h"

static struct figures_nodes nodes_at(double share)
{
	struct figures_nodes n;

	for (size_t i = 0; i < NODES; i++) {
		n.used_milli[i] = share * LAB_NODE_CPU_MILLI;
		n.requested_milli[i] = 0;
	}
	return n;
}

static void test_nodes_over_the_cap(void **state)
{
	struct figures_nodes n = nodes_at(0.5);
	struct figures f;

	(void)state;
	n.used_milli[3] = 0.86 * LAB_NODE_CPU_MILLI;
	n.used_milli[4] = 1.2 * LAB_NODE_CPU_MILLI;
	n.used_milli[5] = 0.85 * LAB_NODE_CPU_MILLI;
	f = figures_of(n, NULL, 0);
	assert_true(f.over == 2 && fabs(f.highest - 120) < 1e-9);
	assert_true(f.pending == 0 && f.needless == 0);
	assert_true(figures_of(nodes_at(0.5), NULL, 0).deviation < 1e-9);
}

/* Each node has room for two pods of 2.4 cores below 13.6, by use; by requests for one. */
static void test_needlessly_pending(void **state)
{
	struct burst_pod pods[100];
	struct figures_nodes n = nodes_at(0.5);

	(void)state;
	for (size_t i = 0; i < 100; i++)
		pods[i] = (struct burst_pod){.request_milli = 100, .use_milli = 2400};
	assert_true(figures_of(n, pods, 100).needless == 2 * NODES);
	for (size_t i = 0; i < 100; i++)
		pods[i].request_milli = 10000;
	assert_true(figures_of(n, pods, 100).needless == NODES);
	assert_true(figures_of(nodes_at(0.9), pods, 100).needless == 0);
}

static void test_spread(void **state)
{
	double values[20];
	struct spread s;

	(void)state;
	for (size_t i = 0; i < 20; i++)
		values[i] = (double)(20 - i);
	s = figures_spread(values, 20);
	assert_true(s.mean == 10.5 && s.p95 == 19 && s.max == 20);
}

/* All pods of every burst would fit below the cap, by their true use, in every seed. */
static void test_bursts_fit(void **state)
{
	static struct burst_pod pods[BURST_PODS_MAX + GROWN_PODS];

	(void)state;
	for (size_t b = 0; b < burst_count; b++) {
		for (uint64_t seed = 1; seed <= 5; seed++) {
			double used = 0;

			burst_make(&bursts[b], seed, pods);
			for (size_t i = 0; i < bursts[b].pods + bursts[b].running; i++)
				used += pods[i].use_milli;
			for (size_t i = 0; i < NODES; i++) {
				struct burst_pod resident;

				burst_make_resident(seed, i, &resident);
				used += resident.use_milli;
			}
			assert_true(used < FIGURES_CAP * NODES * LAB_NODE_CPU_MILLI);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nodes_over_the_cap),
		cmocka_unit_test(test_needlessly_pending),
		cmocka_unit_test(test_spread),
		cmocka_unit_test(test_bursts_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
