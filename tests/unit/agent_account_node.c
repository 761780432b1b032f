/* SPDX-License-Identifier: Apache-2.0 */
/* The node's own samples: cgroups and the rest of the machine, memory, what only the loop knows. */
#include "agent/account.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/account_world.h"
#include "tests/near.h"

static const char *const one_unit[] = {"/a.service", NULL};

/*
 * The machine is busy 900 millicores, of which one unit has 500: read once a second, in the middle
 * of ticks.
 */
static void test_rest_of_the_machine(void **state)
{
	struct world *w = *state;
	double total = 0;

	world_start(w, one_unit);
	w->machine.cpu_busy_ns = 50 * WORLD_S;
	world_use(w, "/a.service", 0);
	world_tick(w, 0, true);
	for (int second = 0; second < 6; second++) {
		struct interval *i;

		for (int n = 1; n <= 10; n++) {
			world_use(w, "/a.service", 50 * WORLD_MS);
			if (n == 4)
				w->machine.cpu_busy_ns += second ? 900 * WORLD_MS : 360 * WORLD_MS;
			world_tick(w, 100 * WORLD_MS, n == 4);
		}
		i = world_publish(w);
		total += world_total(&i->node.usage);
		assert_near(i->node.usage.cpu_milli.weight, 1);
		assert_int_equal(histogram_total(&i->node.cpu_hist), 10);
		if (second > 1) { /* by then every tick has its share */
			assert_near(i->node.usage.cpu_milli.mean, 900);
			assert_near(i->node.usage.cpu_milli.min, 900);
			assert_near(i->node.usage.cpu_milli.max, 900);
		}
		interval_free(i);
	}
	/* The 5.4 s up to the last reading, and what is assumed of the 0.6 s since. */
	assert_near(total, 5400);
}

static void test_rest_that_ends_is_taken_back(void **state)
{
	struct world *w = *state;
	double total = 0;

	world_start(w, one_unit);
	w->machine.cpu_busy_ns = 1;
	world_use(w, "/a.service", 0);
	world_tick(w, 0, true);
	for (int second = 0; second < 3; second++) {
		for (int n = 1; n <= 10; n++) {
			struct interval *i;

			if (n == 10 && second == 0)
				w->machine.cpu_busy_ns += 800 * WORLD_MS;
			world_use(w, "/a.service", 30 * WORLD_MS);
			if (n == 10 && second > 0)
				w->machine.cpu_busy_ns += 300 * WORLD_MS;
			world_tick(w, 100 * WORLD_MS, n == 10);
			if (n % 5)
				continue;
			i = world_publish(w);
			assert_true((double)i->node.usage.cpu_milli.min >= 0);
			total += world_total(&i->node.usage);
			interval_free(i);
		}
	}
	assert_near(total, 1400);
}

/* /proc/stat counts whole ticks: less than the cgroups' sum in one second is more in the next. */
static void test_rounding_of_proc_stat(void **state)
{
	struct world *w = *state;
	double total = 0;

	world_start(w, one_unit);
	w->machine.cpu_busy_ns = WORLD_S;
	world_use(w, "/a.service", 0);
	world_tick(w, 0, true);
	for (int second = 0; second < 10; second++) {
		struct interval *i;

		world_use(w, "/a.service", 5 * WORLD_MS);
		w->machine.cpu_busy_ns += second % 2 ? 10 * WORLD_MS : 0;
		world_tick(w, WORLD_S, true);
		i = world_publish(w);
		total += world_total(&i->node.usage);
		interval_free(i);
	}
	assert_near(total, 50);
	/* A counter far behind the cgroups' sum is not made up for. */
	world_use(w, "/a.service", 1000 * WORLD_MS);
	world_tick(w, WORLD_S, true);
	world_use(w, "/a.service", 100 * WORLD_MS);
	w->machine.cpu_busy_ns += 600 * WORLD_MS;
	world_tick(w, WORLD_S, true);
	{
		struct interval *i = world_publish(w);

		assert_near(world_total(&i->node.usage), 1600 - 20 * WORLD_CPU_MILLI / 1000.);
		interval_free(i);
	}
}

/*
 * A burst of the machine, then one of the cgroups: what is assumed never exceeds what the CPUs can
 * do.
 */
static void test_node_stays_within_capacity(void **state)
{
	struct world *w = *state;
	double total = 0;

	world_start(w, one_unit);
	world_use(w, "/a.service", 0);
	w->machine.cpu_busy_ns = WORLD_S;
	world_tick(w, 0, true);
	for (int second = 0; second < 6; second++) {
		struct interval *i;

		if (second == 1)
			world_use(w, "/a.service", 4 * WORLD_S);
		w->machine.cpu_busy_ns += second < 2 ? 4 * WORLD_S : 0;
		world_tick(w, WORLD_S, true);
		i = world_publish(w);
		assert_true((double)i->node.usage.cpu_milli.mean <= WORLD_CPU_MILLI);
		assert_true((double)i->node.usage.cpu_milli.max <= WORLD_CPU_MILLI);
		total += world_total(&i->node.usage);
		interval_free(i);
	}
	assert_near(total, 8000);
}

/*
 * The tier changes: first the root's counter has everything, then only the cgroups and /proc/stat.
 */
static void test_a_root_that_is_no_longer_read(void **state)
{
	struct world *w = *state;
	struct interval *i;

	world_start(w, one_unit);
	world_use(w, "/", 0);
	world_use(w, "/a.service", 0);
	w->machine.cpu_busy_ns = 5 * WORLD_S;
	world_tick(w, 0, true);
	world_use(w, "/", WORLD_S);
	world_use(w, "/a.service", 300 * WORLD_MS);
	w->machine.cpu_busy_ns += WORLD_S;
	world_tick(w, WORLD_S, true);
	world_reading(w, "/")->have = HAVE_CPU | HAVE_CPU_LOCAL;
	for (int second = 0; second < 3; second++) {
		world_use(w, "/a.service", 300 * WORLD_MS);
		w->machine.cpu_busy_ns += WORLD_S;
		world_tick(w, WORLD_S, true);
	}
	i = world_publish(w);
	/* Of the second of the change only the cgroups' part is known. */
	assert_near(world_total(&i->node.usage), 1000 + 300 + 2 * 1000);
	interval_free(i);
}

/* Whatever was settled: an aggregator puts aside what contradicts itself. */
static void expect_consistent_histogram(const struct node_sample *n)
{
	const struct moments32 *m = &n->usage.cpu_milli;

	for (unsigned int i = 0; i < HISTOGRAM_BUCKETS; i++)
		assert_true(!n->cpu_hist.count[i] ||
			    (i >= histogram_bucket((double)m->min, HISTOGRAM_CPU_X0) &&
			     i <= histogram_bucket((double)m->max, HISTOGRAM_CPU_X0)));
	assert_int_equal(histogram_total(&n->cpu_hist), m->samples);
}

/* /proc/stat jumps, as after a migration of the machine. */
static void test_a_jump_of_proc_stat(void **state)
{
	struct world *w = *state;
	double total = 0;

	world_start(w, one_unit);
	w->machine.cpu_busy_ns = WORLD_S;
	world_tick(w, 0, true);
	for (int second = 0; second < 20; second++) {
		struct interval *i;

		w->machine.cpu_busy_ns += second == 2 ? 5000 * WORLD_S : WORLD_S;
		if (second == 5)
			w->machine.cpu_busy_ns = WORLD_S;
		world_tick(w, WORLD_S, true);
		i = world_publish(w);
		assert_true((double)i->node.usage.cpu_milli.min >= 0);
		expect_consistent_histogram(&i->node);
		total += world_total(&i->node.usage);
		interval_free(i);
	}
	/* The four CPUs were busy for the second of the jump, and idle for the one of the fall. */
	assert_near(total, 18 * 1000 + 4000);
}

static void test_node_without_any_counter(void **state)
{
	struct world *w = *state;
	struct interval *i;

	world_start(w, one_unit);
	w->machine.mem_total_bytes = w->machine.mem_available_bytes = 0;
	world_tick(w, 0, true);
	world_tick(w, WORLD_S, true);
	i = world_publish(w);
	assert_int_equal(i->node.usage.have, 0);
	assert_int_equal(histogram_total(&i->node.cpu_hist), 0);
	assert_int_equal(histogram_total(&i->node.mem_hist), 0);
	interval_free(i);
}

static void test_node_memory(void **state)
{
	struct world *w = *state;
	struct interval *i;

	world_start(w, one_unit);
	world_tick(w, 0, true);
	world_tick(w, WORLD_S, true);
	w->machine.mem_available_bytes = 5ULL << 30;
	world_tick(w, WORLD_S, true);
	i = world_publish(w);
	assert_int_equal(i->node.usage.have, USAGE_MEMORY | USAGE_WORKING_SET);
	assert_near(i->node.usage.mem_bytes.mean, 2.5 * (1 << 30));
	assert_near(i->node.usage.mem_bytes.max, 3. * (1 << 30));
	assert_near(i->node.usage.working_set_bytes.last, 3. * (1 << 30));
	assert_int_equal(histogram_total(&i->node.mem_hist), 2);
	assert_int_equal(
		i->node.mem_hist.count[histogram_bucket(3. * (1 << 30), HISTOGRAM_MEMORY_X0)], 1);
	interval_free(i);
	*world_reading(w, "/") = (struct reading){
		.have = HAVE_MEMORY | HAVE_WORKING_SET,
		.mem_bytes = 1 << 30,
		.inactive_file_bytes = 1 << 20,
	};
	*world_reading(w, "/a.service") = (struct reading){
		.have = HAVE_WORKING_SET,
		.inactive_file_bytes = 1 << 20,
	};
	world_tick(w, WORLD_S, true);
	i = world_publish(w);
	assert_near(i->node.usage.working_set_bytes.last, (1 << 30) - (2 << 20));
	interval_free(i);
}

/* Counters since boot: what was before us does not count, nor does time that runs backwards. */
static void test_cpu_split(void **state)
{
	struct world *w = *state;
	struct cpu_split *cpu = &w->machine.cpu;
	struct interval *i;

	world_start(w, one_unit);
	*cpu = (struct cpu_split){100 * WORLD_S, 50 * WORLD_S, 20 * WORLD_S, 10 * WORLD_S};
	world_tick(w, 0, true);
	cpu->user_ns += 700 * WORLD_MS;
	cpu->system_ns += 60 * WORLD_MS;
	cpu->iowait_ns -= 30 * WORLD_MS;
	world_tick(w, WORLD_S, true);
	cpu->user_ns += 10 * WORLD_MS;
	cpu->iowait_ns += 50 * WORLD_MS;
	cpu->steal_ns += 8 * WORLD_MS;
	world_tick(w, WORLD_S, true);
	i = world_publish(w);
	assert_int_equal(i->node.cpu_split.user_ns, 710 * WORLD_MS);
	assert_int_equal(i->node.cpu_split.system_ns, 60 * WORLD_MS);
	assert_int_equal(i->node.cpu_split.iowait_ns, 20 * WORLD_MS);
	assert_int_equal(i->node.cpu_split.steal_ns, 8 * WORLD_MS);
	interval_free(i);
	/* Far back: they began anew. */
	*cpu = (struct cpu_split){3 * WORLD_S, 2 * WORLD_S, 0, 0};
	world_tick(w, WORLD_S, true);
	cpu->user_ns += 40 * WORLD_MS;
	cpu->iowait_ns += 5 * WORLD_MS;
	world_tick(w, WORLD_S, true);
	i = world_publish(w);
	assert_int_equal(i->node.cpu_split.user_ns, 40 * WORLD_MS);
	assert_int_equal(i->node.cpu_split.system_ns, 0);
	assert_int_equal(i->node.cpu_split.iowait_ns, 5 * WORLD_MS);
	assert_int_equal(i->node.cpu_split.steal_ns, 0);
	interval_free(i);
}

static void add_pressure(struct world *w, uint64_t some_ms, uint64_t full_ms, uint64_t memory_ms)
{
	w->machine.psi_cpu_ns += some_ms * WORLD_MS;
	w->machine.psi_cpu_full_ns += full_ms * WORLD_MS;
	w->machine.psi_mem_ns += memory_ms * WORLD_MS;
	w->machine.psi_mem_full_ns += memory_ms * WORLD_MS / 2;
}

/*
 * The machine's pressure less what cgroups were throttled; the root cgroup's own values do not
 * matter then.
 */
static void test_pressure_of_the_machine(void **state)
{
	const uint32_t psi = USAGE_CONTENTION_CPU | USAGE_CONTENTION_MEMORY | USAGE_STALL_CPU |
			     USAGE_STALL_MEMORY;
	struct world *w = *state;
	const struct usage *u;
	struct interval *i;

	world_start(w, one_unit);
	w->machine.psi_known = w->machine.psi_cpu_full_known = true;
	add_pressure(w, 70000, 6000, 500);
	world_reading(w, "/")->have = HAVE_PSI;
	world_reading(w, "/a.service")->have = HAVE_THROTTLE;
	world_tick(w, 0, true);
	add_pressure(w, 500, 3, 40);
	world_reading(w, "/")->psi_cpu_ns += 9 * WORLD_S;
	world_reading(w, "/a.service")->throttled_ns += 120 * WORLD_MS;
	world_tick(w, WORLD_S, true);
	i = world_publish(w);
	u = &i->node.usage;
	assert_int_equal(u->have & psi, psi);
	assert_int_equal(u->contention_cpu_ns, 380 * WORLD_MS);
	assert_int_equal(u->contention_mem_ns, 40 * WORLD_MS);
	assert_int_equal(u->stall_cpu_ns, 3 * WORLD_MS);
	assert_int_equal(u->stall_mem_ns, 20 * WORLD_MS);
	interval_free(i);
	/* Several are throttled at the same time: no less than 0. */
	add_pressure(w, 100, 0, 0);
	world_reading(w, "/a.service")->throttled_ns += 300 * WORLD_MS;
	world_tick(w, WORLD_S, true);
	i = world_publish(w);
	assert_true(i->node.usage.have & USAGE_CONTENTION_CPU);
	assert_int_equal(i->node.usage.contention_cpu_ns, 0);
	interval_free(i);
}

static void test_pressure_that_is_not_known(void **state)
{
	static const struct {
		bool known, full_known;
		uint32_t throttle, want;
	} cases[] = {
		{false, false, HAVE_THROTTLE, 0},
		{true, false, 0, USAGE_CONTENTION_MEMORY | USAGE_STALL_MEMORY},
		{true, true, 0, USAGE_CONTENTION_MEMORY | USAGE_STALL_MEMORY | USAGE_STALL_CPU},
		{true, false, HAVE_THROTTLE,
		 USAGE_CONTENTION_MEMORY | USAGE_STALL_MEMORY | USAGE_CONTENTION_CPU},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		struct world *w = world_new();
		struct interval *i;

		world_start(w, one_unit);
		world_reading(w, "/a.service")->have = cases[n].throttle;
		world_tick(w, 0, true);
		/* It may come later, and then begins with that reading. */
		w->machine.psi_known = cases[n].known;
		w->machine.psi_cpu_full_known = cases[n].full_known;
		add_pressure(w, 70000, 6000, 500);
		world_tick(w, WORLD_S, true);
		i = world_publish(w);
		assert_int_equal(i->node.usage.have & ~(uint32_t)USAGE_THROTTLE,
				 USAGE_MEMORY | USAGE_WORKING_SET);
		assert_int_equal(i->node.usage.contention_mem_ns, 0);
		interval_free(i);
		add_pressure(w, 0, 0, 10);
		world_tick(w, WORLD_S, true);
		i = world_publish(w);
		assert_int_equal(i->node.usage.have & ~(uint32_t)(USAGE_THROTTLE | USAGE_MEMORY |
								  USAGE_WORKING_SET),
				 cases[n].want);
		assert_int_equal(i->node.usage.contention_mem_ns,
				 cases[n].known ? 10 * WORLD_MS : 0);
		interval_free(i);
		world_free(w);
	}
}

/* A container's own /proc can say so. */
static void test_more_available_than_there_is(void **state)
{
	struct world *w = *state;
	struct interval *i;

	world_start(w, one_unit);
	w->machine.mem_available_bytes = w->machine.mem_total_bytes + 1;
	world_tick(w, 0, true);
	world_tick(w, WORLD_S, true);
	i = world_publish(w);
	assert_false(i->node.usage.have & USAGE_MEMORY);
	assert_int_equal(i->node.mem_available_bytes, i->node.mem_capacity_bytes);
	interval_free(i);
}

static void test_what_the_loop_knows(void **state)
{
	struct world *w = *state;
	struct interval *i;

	world_start(w, one_unit);
	world_tick(w, 0, true);
	for (int n = 0; n < 4; n++)
		world_tick(w, 250 * WORLD_MS, false);
	i = world_publish(w);
	assert_int_equal(i->sequence, 1);
	assert_int_equal(i->end_ns, w->now_ns);
	assert_int_equal(i->start_ns, w->now_ns - WORLD_S);
	assert_int_equal(i->merged, 1);
	assert_int_equal(i->node.tier, TIER_T1);
	assert_near(i->node.rate_hz, 4);
	assert_int_equal(i->node.missed_ticks, 3);
	assert_int_equal(i->node.overflow, 2);
	assert_int_equal(i->node.pass_ns, 12345);
	assert_int_equal(i->node.agent_cpu_ns, 678);
	assert_int_equal(i->node.cpu_capacity_milli, WORLD_CPU_MILLI);
	assert_int_equal(i->node.mem_capacity_bytes, 8LL << 30);
	assert_int_equal(i->node.mem_available_bytes, 6LL << 30);
	assert_string_equal(i->node.boot_id, w->machine.boot_id);
	interval_free(i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_rest_of_the_machine),
		WORLD_TEST(test_rest_that_ends_is_taken_back),
		WORLD_TEST(test_rounding_of_proc_stat),
		WORLD_TEST(test_node_stays_within_capacity),
		WORLD_TEST(test_a_root_that_is_no_longer_read),
		WORLD_TEST(test_a_jump_of_proc_stat),
		WORLD_TEST(test_node_without_any_counter),
		WORLD_TEST(test_node_memory),
		WORLD_TEST(test_more_available_than_there_is),
		WORLD_TEST(test_cpu_split),
		WORLD_TEST(test_pressure_of_the_machine),
		cmocka_unit_test(test_pressure_that_is_not_known),
		WORLD_TEST(test_what_the_loop_knows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
