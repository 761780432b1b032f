/* SPDX-License-Identifier: Apache-2.0 */
/* The closed forms of simulated use, against sums over small steps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "shared/clock.h"
#include "tests/fleet/pattern.h"
#include "tests/near.h"

#define NOW_NS	(1700000000LL * NS_PER_SEC + 123456789)
#define STEP_NS NS_PER_MS

static const struct pattern bursty = {
	.low_milli = 100,
	.high_milli = 900,
	.limit_milli = 600,
	.period_ns = 10 * NS_PER_SEC,
	.on_ns = 3 * NS_PER_SEC,
	.phase_ns = 4321 * NS_PER_MS,
	.mem_bytes = 1e8,
	.grow_bytes = 5e7,
	.grow_ns = 7 * NS_PER_SEC,
	.grow_phase_ns = 1234 * NS_PER_MS,
};

/* The first 3 s of each period are high. */
static double wanted_at(const struct pattern *p, int64_t at_ns)
{
	return (at_ns + p->phase_ns) % p->period_ns < p->on_ns ? p->high_milli : p->low_milli;
}

static void test_use_is_what_steps_add_up_to(void **state)
{
	double sum = 0, squares = 0, mean;
	int64_t end = NOW_NS + 23 * NS_PER_SEC, steps = (end - NOW_NS) / STEP_NS;

	(void)state;
	for (int64_t at = NOW_NS; at < end; at += STEP_NS) {
		double used = fmin(wanted_at(&bursty, at + STEP_NS / 2), 600);

		sum += used;
		squares += used * used;
	}
	mean = sum / (double)steps;
	assert_true(fabs(pattern_used_milli(&bursty, NOW_NS, end) - mean) < 0.1);
	assert_true(fabs(pattern_stddev_milli(&bursty, NOW_NS, end) -
			 sqrt(squares / (double)steps - mean * mean)) < 0.1);
	/* Over whole periods: 100 + 500 * 0.3 and 500 * sqrt(0.3 * 0.7). */
	assert_near(pattern_used_milli(&bursty, NOW_NS, NOW_NS + 20 * NS_PER_SEC), 250);
	assert_near(pattern_stddev_milli(&bursty, NOW_NS, NOW_NS + 20 * NS_PER_SEC),
		    500 * sqrt(0.21));
	assert_near(pattern_peak_milli(&bursty), 600);
}

static void test_readings_add_up_however_they_are_cut(void **state)
{
	int64_t end = NOW_NS + 20 * NS_PER_SEC, at = NOW_NS;
	struct pattern_cpu whole, part;
	double used = 0;
	uint64_t throttled_ns = 0;
	uint32_t periods = 0, throttled = 0;
	float spans[200];

	(void)state;
	for (int64_t step = 1; at < end; step = step * 3 % 1000003) {
		int64_t next = at + step * 1000 < end ? at + step * 1000 : end;

		pattern_get_cpu(&bursty, at, next, &part);
		used += part.used_milli * (double)(next - at);
		throttled_ns += part.throttled_ns;
		periods += part.periods;
		throttled += part.throttled_periods;
		at = next;
	}
	pattern_get_cpu(&bursty, NOW_NS, end, &whole);
	assert_near(used / (double)(end - NOW_NS), whole.used_milli);
	assert_int_equal(periods, whole.periods);
	assert_int_equal(throttled, whole.throttled_periods);
	assert_true(llabs((long long)throttled_ns - (long long)whole.throttled_ns) < 100000);
	pattern_fill_milli(&bursty, NOW_NS, 100 * NS_PER_MS, 200, spans);
	for (int i = 0; i < 200; i++)
		assert_true(fabs((double)spans[i] -
				 pattern_used_milli(&bursty, NOW_NS + i * 100 * NS_PER_MS,
						    NOW_NS + (i + 1) * 100 * NS_PER_MS)) < 1e-3);
}

/* High for 6 s of 20 at 900 of 600 allowed: it waits for a third of that. */
static void test_what_is_wanted_above_the_limit_is_throttled(void **state)
{
	struct pattern free_pattern = bursty;
	struct pattern_cpu cpu;

	(void)state;
	pattern_get_cpu(&bursty, NOW_NS, NOW_NS + 20 * NS_PER_SEC, &cpu);
	assert_int_equal(cpu.periods, 200);
	assert_int_equal(cpu.throttled_periods, 60);
	assert_true(fabs((double)cpu.throttled_ns - 2e9) < 1e3);
	free_pattern.limit_milli = 0;
	pattern_get_cpu(&free_pattern, NOW_NS, NOW_NS + 20 * NS_PER_SEC, &cpu);
	assert_int_equal(cpu.periods + cpu.throttled_periods, 0);
	assert_near(cpu.used_milli, 100 + 800 * 0.3);
}

static void check_memory(const struct pattern *p, int64_t begin, int64_t end)
{
	struct pattern_memory memory;
	double sum = 0, max = 0, grown;
	uint32_t falls = 0;

	for (int64_t at = begin; at < end; at += STEP_NS) {
		int64_t into = (at + p->grow_phase_ns) % p->grow_ns;

		grown = p->grow_bytes * (double)into / (double)p->grow_ns;
		sum += grown;
		max = fmax(max, grown);
		falls += into + STEP_NS >= p->grow_ns;
	}
	sum *= (double)STEP_NS / (double)(end - begin);
	pattern_get_memory(p, begin, end, &memory);
	grown = p->grow_bytes * 0.001;
	if (p->leaks) {
		assert_true(fabs(memory.set_mean - p->mem_bytes - sum) < grown);
		assert_true(fabs(memory.set_max - p->mem_bytes - max) < grown);
		assert_int_equal(memory.oom_kills, falls);
		assert_near(memory.set_last, pattern_working_set(p, end));
		assert_true(memory.cache_max == 0);
	} else {
		assert_true(fabs(memory.cache_mean - sum) < grown);
		assert_true(fabs(memory.cache_max - max) < grown);
		assert_int_equal(memory.oom_kills, 0);
		assert_near(memory.set_max, p->mem_bytes);
	}
}

static void test_memory_is_what_steps_add_up_to(void **state)
{
	struct pattern leaking = bursty;

	(void)state;
	leaking.leaks = true;
	for (int64_t seconds = 1; seconds <= 23; seconds++) {
		check_memory(&bursty, NOW_NS, NOW_NS + seconds * NS_PER_SEC);
		check_memory(&leaking, NOW_NS, NOW_NS + seconds * NS_PER_SEC);
	}
	assert_near(pattern_peak_working_set(&leaking), 1.5e8);
	assert_near(pattern_peak_working_set(&bursty), 1e8);
}

/* A wave of 20 s between 100 and 900, against sums over small steps of it. */
static void test_a_smooth_pattern_is_a_cosine(void **state)
{
	struct pattern wave = bursty;

	(void)state;
	wave.smooth = true;
	wave.limit_milli = 0;
	wave.period_ns = 20 * NS_PER_SEC;
	for (int64_t seconds = 1; seconds <= 45; seconds += 4) {
		int64_t end = NOW_NS + seconds * NS_PER_SEC;
		double sum = 0, squares = 0, steps = (double)(seconds * 1000), mean;

		for (int64_t at = NOW_NS + STEP_NS / 2; at < end; at += STEP_NS) {
			double angle = 2 * M_PI * (double)((at + wave.phase_ns) % wave.period_ns) /
				       (double)wave.period_ns;
			double used = 100 + 800 * (1 - cos(angle)) / 2;

			sum += used;
			squares += used * used;
		}
		mean = sum / steps;
		assert_true(fabs(pattern_used_milli(&wave, NOW_NS, end) - mean) < 1e-3);
		assert_true(fabs(pattern_stddev_milli(&wave, NOW_NS, end) -
				 sqrt(squares / steps - mean * mean)) < 1e-2);
	}
	assert_near(pattern_peak_milli(&wave), 900);
}

static void test_what_is_dead_has_no_memory(void **state)
{
	struct pattern dying = bursty;
	struct pattern_memory memory;
	int64_t birth = NOW_NS - (NOW_NS + bursty.phase_ns) % bursty.period_ns;

	(void)state;
	dying.dies = true;
	assert_near(pattern_working_set(&dying, birth + NS_PER_SEC), 1e8);
	assert_true(pattern_working_set(&dying, birth + 4 * NS_PER_SEC) == 0);
	pattern_get_memory(&dying, birth, birth + 10 * NS_PER_SEC, &memory);
	assert_near(memory.set_mean, 3e7);
	assert_near(memory.set_max, 1e8);
	assert_true(memory.set_last == 0 && memory.oom_kills == 0);
	pattern_get_memory(&dying, birth + 4 * NS_PER_SEC, birth + 9 * NS_PER_SEC, &memory);
	assert_true(memory.set_max == 0 && memory.set_mean == 0);
}

static void test_a_pattern_without_periods_is_constant(void **state)
{
	const struct pattern constant = {.low_milli = 70, .high_milli = 500, .mem_bytes = 3e6};
	struct pattern_memory memory;

	(void)state;
	assert_near(pattern_used_milli(&constant, NOW_NS, NOW_NS + NS_PER_SEC), 70);
	pattern_get_memory(&constant, NOW_NS, NOW_NS + NS_PER_SEC, &memory);
	assert_near(memory.set_mean, 3e6);
	assert_near(memory.cache_last, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_use_is_what_steps_add_up_to),
		cmocka_unit_test(test_readings_add_up_however_they_are_cut),
		cmocka_unit_test(test_what_is_wanted_above_the_limit_is_throttled),
		cmocka_unit_test(test_memory_is_what_steps_add_up_to),
		cmocka_unit_test(test_a_smooth_pattern_is_a_cosine),
		cmocka_unit_test(test_what_is_dead_has_no_memory),
		cmocka_unit_test(test_a_pattern_without_periods_is_constant),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
