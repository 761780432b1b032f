/* SPDX-License-Identifier: Apache-2.0 */
/* The governor against agents whose costs are known, under a clock of their own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "agent/governor.h"

#define SEC 1000000000LL
#define MS  1000000LL

/* An agent: what one second costs it, and what was said of it. */
struct agent {
	struct governor governor;
	int64_t floor_ns; /* of CPU per second, whatever the rate */
	int64_t tick_ns; /* per fast tick */
	int64_t slow_ns; /* what a slow tick costs on top */
	int64_t spike_ns; /* once, with the next tick */
	int64_t now_ns, cpu_ns;
	int64_t slow_due_ns;
	unsigned int said;
	struct error last;
	char rates[64]; /* every rate it had, in order */
};

static void note_rate(struct agent *a)
{
	size_t len = strlen(a->rates);

	snprintf(a->rates + len, sizeof(a->rates) - len, "%s%d", len ? " " : "",
		 a->governor.rate_hz);
}

static void start(struct agent *a, double budget, int most_hz, int cpus)
{
	a->now_ns = 1000 * SEC;
	a->cpu_ns = 77 * SEC; /* spent before */
	a->slow_due_ns = 0;
	a->said = 0;
	a->rates[0] = '\0';
	governor_start(&a->governor, budget, most_hz, cpus, a->now_ns, a->cpu_ns);
	note_rate(a);
}

static void tick(struct agent *a)
{
	int64_t period = SEC / a->governor.rate_hz;
	struct governor_tick t;
	bool slow;
	int before = a->governor.rate_hz;

	a->now_ns += period;
	slow = a->now_ns + period / 2 >= a->slow_due_ns;
	if (slow)
		a->slow_due_ns = a->now_ns + SEC;
	t.mono_ns = a->now_ns;
	t.fast = !slow;
	t.tick_cpu_ns = a->tick_ns + (slow ? a->slow_ns : 0) + a->spike_ns;
	a->cpu_ns += t.tick_cpu_ns + a->floor_ns * period / SEC;
	a->spike_ns = 0;
	t.process_cpu_ns = a->cpu_ns;
	if (governor_tick(&a->governor, &t, &a->last))
		a->said++;
	if (a->governor.rate_hz != before)
		note_rate(a);
}

static void run(struct agent *a, int seconds)
{
	for (int64_t end = a->now_ns + seconds * SEC; a->now_ns < end;)
		tick(a);
}

/* Where a steady cost ends, and which way it went; the budget is 2 %, 20 ms a second. */
static void test_steady_costs(void **state)
{
	static const struct {
		int64_t floor_ns, tick_ns, slow_ns;
		int most_hz, cpus;
		const char *rates;
	} cases[] = {
		{1 * MS, 1 * MS, 1 * MS, 10, 4, "10"},
		/* Just on the budget is not above it. */
		{10 * MS, 1 * MS, 0, 10, 4, "10"},
		/* Proportional: 4 % at 10 Hz, 2 % at 5. */
		{0, 4 * MS, 0, 10, 4, "10 5"},
		{0, 5 * MS, 0, 10, 4, "10 5 2"},
		{0, 15 * MS, 0, 10, 4, "10 5 2 1"},
		{0, 15 * MS, 0, 20, 4, "20 10 5 2 1"},
		{0, 15 * MS, 0, 7, 4, "7 3 1"},
		{0, 15 * MS, 0, 1, 4, "1"},
		/* Mostly a floor: the rate still has to give what it can. */
		{17 * MS, 1 * MS, 0, 10, 4, "10 5 2"},
		/* Many CPUs: from 5 Hz up, if that is cheap. */
		{1 * MS, 1 * MS, 1 * MS, 10, 65, "5 10"},
		{1 * MS, 3 * MS, 1 * MS, 10, 65, "5"},
		{1 * MS, 1 * MS, 1 * MS, 10, 64, "10"},
		{1 * MS, 1 * MS, 1 * MS, 4, 128, "4"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct agent a = {.floor_ns = cases[i].floor_ns,
				  .tick_ns = cases[i].tick_ns,
				  .slow_ns = cases[i].slow_ns};

		start(&a, 2, cases[i].most_hz, cases[i].cpus);
		run(&a, 3600);
		assert_string_equal(a.rates, cases[i].rates);
	}
}

/* 10 s a step, not sooner and not much later. */
static void test_how_soon(void **state)
{
	struct agent a = {.tick_ns = 15 * MS};
	int64_t begin;

	(void)state;
	start(&a, 2, 10, 4);
	begin = a.now_ns;
	run(&a, 9);
	assert_string_equal(a.rates, "10");
	run(&a, 2);
	assert_string_equal(a.rates, "10 5");
	assert_string_equal(a.last.text, "the agent uses 15 % of a core, its budget is 2 %: "
					 "sampling at 5 Hz instead of 10");
	run(&a, 8);
	assert_string_equal(a.rates, "10 5");
	while (a.governor.rate_hz > 1)
		tick(&a);
	assert_true(a.now_ns - begin <= 33 * SEC);
	assert_int_equal(a.said, 3);
}

/* A load that is gone: back up one step after the other, each after 30 s of calm and a window. */
static void test_back_up(void **state)
{
	struct agent a = {.tick_ns = 15 * MS, .floor_ns = 2 * MS};
	int64_t begin;

	(void)state;
	start(&a, 2, 10, 4);
	run(&a, 60);
	assert_string_equal(a.rates, "10 5 2 1");
	a.tick_ns = MS;
	begin = a.now_ns;
	run(&a, 31);
	assert_string_equal(a.rates, "10 5 2 1");
	run(&a, 9);
	assert_string_equal(a.rates, "10 5 2 1 2");
	assert_string_equal(a.last.text,
			    "the agent uses 0.3 % of a core and would use 0.4 % at 2 Hz, its "
			    "budget is 2 %: sampling at 2 Hz instead of 1");
	run(&a, 100);
	assert_string_equal(a.rates, "10 5 2 1 2 5 10");
	assert_true(a.now_ns - begin < 145 * SEC);
	run(&a, 3600);
	assert_string_equal(a.rates, "10 5 2 1 2 5 10");
}

/*
 * Whatever the parts of the cost, a rate that is not raised would not have been clearly below, and
 * one that is stays.
 */
static void test_no_flapping(void **state)
{
	(void)state;
	for (int64_t floor = 0; floor <= 20; floor += 2) {
		for (int64_t tick_us = 100; tick_us < 30000; tick_us = tick_us * 5 / 4) {
			struct agent a = {.floor_ns = floor * MS,
					  .tick_ns = tick_us * 1000,
					  .slow_ns = tick_us * 1500};
			double at_next;

			start(&a, 2, 10, 100);
			run(&a, 600);
			a.rates[0] = '\0';
			run(&a, 3600);
			assert_string_equal(a.rates, "");
			if (a.governor.rate_hz != 5)
				continue;
			at_next = 1e-7 * (double)(a.floor_ns + a.slow_ns + 10 * a.tick_ns);
			assert_true(at_next >= 1.499);
		}
	}
}

/*
 * A rescan now and then that costs as much as seven seconds' budget; with twice that there is no
 * affording it.
 */
static void test_spikes(void **state)
{
	struct agent a = {.tick_ns = 500000};

	(void)state;
	start(&a, 2, 10, 4);
	for (int i = 0; i < 100; i++) {
		a.spike_ns = 140 * MS;
		run(&a, 10);
	}
	assert_string_equal(a.rates, "10");
	a.spike_ns = 280 * MS;
	run(&a, 10);
	assert_string_equal(a.rates, "10 5");
	run(&a, 60);
	assert_string_equal(a.rates, "10 5 10");
}

static void test_budget_too_small(void **state)
{
	struct agent a = {.tick_ns = 15 * MS, .floor_ns = 10 * MS};

	(void)state;
	start(&a, 2, 10, 4);
	run(&a, 3600);
	assert_string_equal(a.rates, "10 5 2 1");
	assert_int_equal(a.said, 4);
	assert_string_equal(a.last.text, "the agent uses 2.5 % of a core at 1 Hz, the lowest rate; "
					 "the budget of 2 % is not kept");
	/* In and out of the budget without room for a higher rate: nothing new to say .. */
	for (int i = 0; i < 50; i++) {
		a.tick_ns = i % 2 ? 9 * MS : 15 * MS;
		run(&a, 60);
	}
	assert_int_equal(a.said, 4);
	/* .. but after better times there is. */
	a.tick_ns = MS;
	a.floor_ns = MS;
	run(&a, 300);
	assert_int_equal(a.governor.rate_hz, 10);
	assert_int_equal(a.said, 7);
	a.tick_ns = 30 * MS;
	run(&a, 300);
	assert_int_equal(a.said, 11);
}

/* A cost that only shows at the higher rate: tried ever more rarely. */
static void test_mistakes_are_rarer(void **state)
{
	struct agent a = {.tick_ns = 1 * MS};
	unsigned int changes = 0;
	int64_t gaps[32] = {0}, last = 0;

	(void)state;
	start(&a, 2, 10, 4);
	for (int i = 0; i < 4 * 3600 * 5; i++) {
		int before = a.governor.rate_hz;

		a.floor_ns = before == 10 ? 25 * MS : 1 * MS;
		tick(&a);
		if (a.governor.rate_hz < before && changes < 32) {
			gaps[changes++] = a.now_ns - last;
			last = a.now_ns;
		}
	}
	assert_in_range(changes, 12, 24);
	for (unsigned int i = 3; i < 6; i++)
		assert_true(gaps[i] > gaps[i - 1] * 3 / 2);
	for (unsigned int i = 0; i < changes; i++)
		assert_true(i == 0 || gaps[i] <= (16 * 60 + 30) * SEC);
}

/* The process was stopped for minutes: one long window, nothing strange. */
static void test_a_gap(void **state)
{
	struct agent a = {.tick_ns = MS};

	(void)state;
	start(&a, 2, 10, 4);
	run(&a, 20);
	a.now_ns += 300 * SEC;
	run(&a, 60);
	assert_string_equal(a.rates, "10");
	assert_int_equal(a.said, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steady_costs),
		cmocka_unit_test(test_how_soon),
		cmocka_unit_test(test_back_up),
		cmocka_unit_test(test_no_flapping),
		cmocka_unit_test(test_spikes),
		cmocka_unit_test(test_budget_too_small),
		cmocka_unit_test(test_mistakes_are_rarer),
		cmocka_unit_test(test_a_gap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
