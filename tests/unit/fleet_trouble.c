/* SPDX-License-Identifier: Apache-2.0 */
/* What goes wrong in a fleet goes wrong as often as asked for, and the same every time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "shared/clock.h"
#include "tests/fleet/trouble.h"

#define EPOCH_NS (1700000000LL * NS_PER_SEC)

enum { NODES = 500, ACKS = 400 };

static const struct trouble trouble = {
	.epoch_ns = EPOCH_NS,
	.node_life_ns = 100 * NS_PER_SEC,
	.node_down_ns = 20 * NS_PER_SEC,
	.skew_ns = 3 * NS_PER_SEC,
	.ack_loss = 0.2,
	.ack_delay_ns = NS_PER_SEC,
};

static struct cluster *cluster;

static int setup(void **state)
{
	const struct cluster_config config = {
		.nodes = 4, .pods_per_node = 1, .containers = 1, .seed = 3};

	(void)state;
	cluster = cluster_new(&config);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	cluster_free(cluster);
	return 0;
}

static void test_lives_end_and_begin(void **state)
{
	(void)state;
	for (uint32_t node = 0; node < NODES; node++) {
		int64_t at = EPOCH_NS, until, down_ns = 0;
		uint32_t life, last = 0;

		/* All are alive at first. */
		assert_false(trouble_is_down(&trouble, cluster, node, at, &life, &until));
		assert_int_equal(life, 0);
		while (at < EPOCH_NS + 10 * trouble.node_life_ns) {
			bool down = trouble_is_down(&trouble, cluster, node, at, &life, &until);
			uint32_t same;
			int64_t later;

			assert_true(until > at && until <= at + trouble.node_life_ns);
			assert_int_equal(trouble_is_down(&trouble, cluster, node, until - 1, &same,
							 &later),
					 down);
			assert_true(same == life && later == until);
			assert_int_equal(trouble_is_down(&trouble, cluster, node, until, &same,
							 &later),
					 !down);
			assert_in_range(life, last, last + 1);
			last = life;
			down_ns += down ? until - at : 0;
			at = until;
		}
		/* The last life may not have ended. */
		assert_in_range(down_ns / trouble.node_down_ns, last, last + 1);
	}
}

static void test_without_lives_nobody_dies(void **state)
{
	const struct trouble none = {.epoch_ns = EPOCH_NS};
	int64_t until;
	uint32_t life;

	(void)state;
	assert_false(trouble_is_down(&none, cluster, 1, INT64_MAX - 1, &life, &until));
	assert_true(life == 0 && until == INT64_MAX);
	assert_false(trouble_loses_ack(&none, cluster, 1, 1));
	assert_int_equal(trouble_ack_delay_ns(&none, cluster, 1, 1), 0);
	assert_int_equal(trouble_skew_ns(&none, cluster, 1), 0);
}

static void test_shares_are_what_was_asked_for(void **state)
{
	double lost = 0, delay_ns = 0, skew_ns = 0, skew_max = 0;

	(void)state;
	for (uint32_t node = 0; node < NODES; node++) {
		double skew = (double)trouble_skew_ns(&trouble, cluster, node);

		skew_ns += skew / NODES;
		skew_max = fmax(skew_max, fabs(skew));
		for (uint64_t n = 0; n < ACKS; n++) {
			lost += trouble_loses_ack(&trouble, cluster, node, n);
			delay_ns += (double)trouble_ack_delay_ns(&trouble, cluster, node, n);
		}
	}
	/* Five standard errors of 200,000 draws, and of 500. */
	assert_true(fabs(lost / (NODES * ACKS) - 0.2) < 0.005);
	assert_true(fabs(delay_ns / (NODES * ACKS) / 1e9 - 0.5) < 0.004);
	assert_true(fabs(skew_ns) < 0.4e9);
	assert_true(skew_max > 2.9e9 && skew_max <= 3e9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lives_end_and_begin),
		cmocka_unit_test(test_without_lives_nobody_dies),
		cmocka_unit_test(test_shares_are_what_was_asked_for),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
