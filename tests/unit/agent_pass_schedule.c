/* SPDX-License-Identifier: Apache-2.0 */
/* Which ticks make which pass, by intervals and rates. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "agent/schedule.h"
#include "shared/clock.h"

enum { TICKS_MAX = 64 };

struct scene {
	struct pass_schedule schedule;
	int64_t now_ns, period_ns;
	char passes[TICKS_MAX + 1];
};

static void begin(struct scene *s, int rate_hz)
{
	*s = (struct scene){.now_ns = 1000 * NS_PER_SEC, .period_ns = NS_PER_SEC / rate_hz};
}

static enum pass_kind tick(struct scene *s, bool scanned, int64_t late_ns)
{
	enum pass_kind kind =
		pass_schedule_choose(&s->schedule, s->now_ns + late_ns, s->period_ns, scanned);

	pass_schedule_note(&s->schedule, kind, s->now_ns + late_ns);
	s->now_ns += s->period_ns;
	return kind;
}

/* As many ticks as letters: f(ast), b(rief), W(hole). Some are a tenth of the period late. */
static void expect(struct scene *s, const char *passes)
{
	size_t count = strlen(passes);

	assert_true(count <= TICKS_MAX);
	for (size_t i = 0; i < count; i++) {
		int64_t late_ns = s->period_ns * (int64_t)(i * 7 % 5) / 40;

		s->passes[i] = "fWb"[tick(s, false, late_ns)];
	}
	s->passes[count] = '\0';
	assert_string_equal(s->passes, passes);
}

/* Two of a long interval's slow passes are whole at least, and as many as the kernel has news. */
static void test_intervals(void **state)
{
	static const struct {
		int64_t interval_ms;
		const char *at_1_hz, *at_2_hz;
	} cases[] = {
		{1000, "WWWWWWWW", "WfWfWfWf"}, {2000, "WWWWWWWW", "WfWfWfWf"},
		{3000, "WWWWWWWW", "WfWfWfWf"}, {3800, "WWWWWWWW", "WfWfWfWf"},
		{3950, "WbWbWbWb", "WfbfWfbf"}, {4000, "WbWbWbWb", "WfbfWfbf"},
		{5000, "WbWbWbWb", "WfbfWfbf"}, {15000, "WbWbWbWb", "WfbfWfbf"},
	};
	struct scene s;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin(&s, 1);
		pass_schedule_set_interval(&s.schedule, cases[i].interval_ms * NS_PER_MS);
		expect(&s, cases[i].at_1_hz);
		begin(&s, 2);
		pass_schedule_set_interval(&s.schedule, cases[i].interval_ms * NS_PER_MS);
		expect(&s, cases[i].at_2_hz);
	}
}

static void test_ten_a_second(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, 10);
	expect(&s, "WfffffffffWfffffffff");
	pass_schedule_set_interval(&s.schedule, 5 * NS_PER_SEC);
	expect(&s, "WfffffffffbfffffffffWfffffffffbfffffffff");
	/* From an interval that is ordered shorter on all are whole. */
	pass_schedule_set_interval(&s.schedule, NS_PER_SEC);
	expect(&s, "WfffffffffWfffffffffWfffffffff");
}

/* New cgroups turn a brief pass into a whole one, from which the next is counted; no fast one. */
static void test_scanned(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, 2);
	pass_schedule_set_interval(&s.schedule, 5 * NS_PER_SEC);
	expect(&s, "Wf");
	assert_int_equal(tick(&s, true, 0), PASS_SLOW);
	assert_int_equal(tick(&s, true, 0), PASS_FAST);
	expect(&s, "bfWfbfWf");
}

/* A pass that is not noted was none. */
static void test_failed(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, 1);
	pass_schedule_set_interval(&s.schedule, 5 * NS_PER_SEC);
	expect(&s, "Wb");
	for (int i = 0; i < 3; i++, s.now_ns += s.period_ns)
		assert_int_equal(pass_schedule_choose(&s.schedule, s.now_ns, s.period_ns, false),
				 PASS_SLOW);
	expect(&s, "WbWb");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_intervals),
		cmocka_unit_test(test_ten_a_second),
		cmocka_unit_test(test_scanned),
		cmocka_unit_test(test_failed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
