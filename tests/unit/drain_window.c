/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules and budgets of disruption. Times are taken from calendars, not from the code. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/policy/drain/drain_window.h"
#include "shared/timefmt.h"

static int64_t at(const char *text)
{
	struct error error;
	int64_t ns;

	assert_int_equal(timefmt_parse(text, &ns, &error), 0);
	return ns / 1000000000;
}

static void test_schedules(void **state)
{
	static const struct {
		const char *schedule, *now;
		int64_t duration;
		bool hit;
	} cases[] = {
		{"0 9 * * mon-fri", "2026-02-02T09:00:00Z", 1, true}, /* a Monday */
		{"0 9 * * mon-fri", "2026-02-02T08:59:59Z", 3600, false},
		{"0 9 * * mon-fri", "2026-02-02T16:59:59Z", 28800, true},
		{"0 9 * * mon-fri", "2026-02-02T17:00:00Z", 28800, false},
		{"0 9 * * mon-fri", "2026-02-01T10:00:00Z", 28800, false}, /* a Sunday */
		{"0 9 * * MON-FRI", "2026-02-06T10:00:00Z", 28800, true},
		{"*/15 * * * *", "2026-02-02T00:14:59Z", 900, true},
		{"*/15 * * * *", "2026-02-02T00:14:59Z", 899, false},
		{"5/20 * * * *", "2026-02-02T00:45:00Z", 1, true},
		/* Of the day before, and of the hour before. */
		{"30 23 * * *", "2026-02-02T00:10:00Z", 2401, true},
		{"30 23 * * *", "2026-02-02T00:10:00Z", 2400, false},
		{"30 8 * * *", "2026-02-02T09:10:00Z", 2401, true},
		{"30 8 * * *", "2026-02-02T08:29:59Z", 86400, true},
		{"30 8 * * *", "2026-02-02T08:29:59Z", 86399, false},
		{"5/20 * * * *", "2026-02-02T00:46:00Z", 60, false},
		{"0 0 29 2 *", "2026-02-02T00:00:00Z", 86400 * 703, false}, /* 2024-02-29, 704 d */
		{"0 0 29 2 *", "2026-02-02T00:00:00Z", 86400 * 704 + 1, true},
		{"0 0 29 2 *", "2104-02-28T00:00:00Z", 86400 * 3000LL, true}, /* 2100 has none */
		{"0 0 31 2 *", "2026-02-02T00:00:00Z", INT64_MAX, false},
		/*
		 * Both days are restricted: either will do. Friday the 13th is no meeting of them.
		 */
		{"0 0 13 * fri", "2026-02-06T00:00:00Z", 60, true},
		{"0 0 13 * fri", "2026-01-13T00:00:00Z", 60, true},
		{"0 0 13 * *", "2026-02-06T00:00:00Z", 60, false},
		{"0 0 ? * fri", "2026-02-06T00:00:00Z", 60, true},
		{"0 0 ? * fri", "2026-02-05T00:00:00Z", 60, false},
		/* A star with a step restricts. */
		{"0 0 */2 * fri", "2026-02-03T00:00:00Z", 60, true},
		{"@hourly", "2026-02-02T07:00:30Z", 31, true},
		{"@hourly", "2026-02-02T07:00:30Z", 30, false},
		{"@daily", "2026-02-02T23:59:59Z", 86400, true},
		{"@weekly", "2026-02-01T00:00:00Z", 1, true},
		{"@monthly", "2026-02-02T00:00:00Z", 86400, false},
		{"@monthly", "2026-02-02T00:00:00Z", 86401, true},
		{"@yearly", "1969-12-31T23:00:00Z", 86400, false},
		{"@yearly", "1969-01-01T23:00:00Z", 86400, true},
		{"0,30 8-10/2 1 jan,dec 0-6", "2026-01-01T10:30:00Z", 1, true},
		{"0,30 8-10/2 1 jan,dec 0-6", "2026-01-01T09:30:00Z", 3600, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct drain_cron c;
		struct error error;

		if (drain_cron_parse(cases[i].schedule, &c, &error))
			fail_msg("%s: %s", cases[i].schedule, error.text);
		if (drain_cron_hit(&c, at(cases[i].now), cases[i].duration) != cases[i].hit)
			fail_msg("case %zu: %s at %s", i, cases[i].schedule, cases[i].now);
	}
}

static void test_schedules_that_cannot_be_read(void **state)
{
	static const char *const texts[] = {
		"",
		"* * * *",
		"* * * * * *",
		"60 * * * *",
		"* 24 * * *",
		"* * 0 * *",
		"* * 32 * *",
		"* * * 13 *",
		"* * * * 7",
		"* * * * tue-mon",
		"5-1 * * * *",
		"*/0 * * * *",
		"* * * foo *",
		"* * * january *",
		"1, * * * *",
		"a * * * *",
		"1-2-3 * * * *",
		"1/2/3 * * * *",
		"-1 * * * *",
		"99999999999999999999 * * * *",
		"@every 5m",
		"@noon",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct drain_cron c;
		struct error error = {""};

		if (drain_cron_parse(texts[i], &c, &error) != -EINVAL || !*error.text)
			fail_msg("\"%s\" is read", texts[i]);
	}
}

static void test_reasons_of_schedules(void **state)
{
	struct drain_cron c;
	struct error error;

	(void)state;
	drain_cron_parse("0 25 * * *", &c, &error);
	assert_string_equal(error.text, "\"0 25 * * *\": \"25\" is no hour (0 to 23)");
	drain_cron_parse("0 0", &c, &error);
	assert_string_equal(error.text, "\"0 0\" must be five fields, or a word like @daily");
}

/* Minute by minute over two months, the calendar of this code has every day once, in order. */
static void test_the_calendar_goes_on(void **state)
{
	struct drain_cron c;
	struct error error;
	int64_t hits = 0;

	(void)state;
	assert_int_equal(drain_cron_parse("0 0 1 3 *", &c, &error), 0);
	/* 1600-03-01 to 2400-03-01 are 800 years, and 801 first days of March. */
	for (int64_t day = -135080; day <= 157114; day++)
		hits += drain_cron_hit(&c, day * 86400, 1);
	assert_int_equal(hits, 801);
}

static struct drain_window window(const char *nodes, const char *schedule, int64_t duration_sec)
{
	return (struct drain_window){.nodes = nodes,
				     .schedule = schedule,
				     .duration_sec = duration_sec};
}

static void test_budgets(void **state)
{
	static const struct {
		const char *nodes, *schedule;
		int64_t duration, of;
		int32_t upstream, corrected; /* -1: cannot be read, and so 0 */
	} cases[] = {
		{"10", NULL, -1, 100, 10, 10},
		{"10%", NULL, -1, 95, 10, 10}, /* rounded up */
		{"10%", NULL, -1, 90, 9, 9},
		{"1%", NULL, -1, 1, 1, 1},
		{"0%", NULL, -1, 100, 0, 0},
		{"100%", NULL, -1, 7, 7, 7},
		{"150%", NULL, -1, 10, 15, -1},
		{"0", NULL, -1, 10, 0, 0},
		{"", NULL, -1, 10, -1, -1},
		{NULL, NULL, -1, 10, -1, -1},
		{"-5", NULL, -1, 10, -1, -1},
		{"5 ", NULL, -1, 10, -1, -1},
		{"5%%", NULL, -1, 10, -1, -1},
		{"%", NULL, -1, 10, -1, -1},
		{"99999999999", NULL, -1, 10, -1, -1},
		{"5", "@daily", 3600, 10, DRAIN_UNLIMITED, DRAIN_UNLIMITED},
		{"5", "@daily", 86400, 10, 5, 5},
		{"5", "@daily", -1, 10, DRAIN_UNLIMITED, -1}, /* a limit that would never hold */
		{"5", NULL, 3600, 10, -1, -1},
		{"5", "bad", 3600, 10, -1, -1},
	};
	int64_t now = at("2026-02-02T12:00:00Z");

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const int32_t want[] = {cases[i].corrected, cases[i].upstream};
		struct drain_window w =
			window(cases[i].nodes, cases[i].schedule, cases[i].duration);

		for (int v = DRAIN_CORRECTED; v <= DRAIN_UPSTREAM; v++) {
			struct error error = {""};
			int32_t got;
			int err = drain_window_allows(&w, (enum drain_variant)v, cases[i].of, now,
						      &got, &error);

			if ((err != 0) != (want[v] < 0) || got != (err ? 0 : want[v]) ||
			    (err && !*error.text))
				fail_msg("case %zu, variant %d: %d", i, v, got);
		}
	}
}

static void test_the_most_restrictive_counts(void **state)
{
	static const char *const empty[] = {"Empty"};
	struct drain_window w[] = {
		window("10", NULL, -1),
		window("3", "@daily", 3600), /* not now */
		window("5", NULL, -1),
		window("bad", NULL, -1),
	};
	int64_t now = at("2026-02-02T12:00:00Z");
	size_t which;

	(void)state;
	w[2].reasons = w[3].reasons = empty;
	w[2].reason_count = w[3].reason_count = 1;
	assert_int_equal(drain_windows_allow(w, 3, DRAIN_CORRECTED, "Empty", 100, now, &which), 5);
	assert_int_equal(which, 2);
	assert_int_equal(drain_windows_allow(w, 3, DRAIN_CORRECTED, "Drifted", 100, now, &which),
			 10);
	assert_int_equal(which, 0);
	/* One that cannot be read closes what it is for, and only that. */
	assert_int_equal(drain_windows_allow(w, 4, DRAIN_CORRECTED, "Empty", 100, now, &which), 0);
	assert_int_equal(which, 3);
	assert_int_equal(drain_windows_allow(w, 4, DRAIN_CORRECTED, "Drifted", 100, now, NULL), 10);
	assert_int_equal(drain_windows_allow(w, 0, DRAIN_CORRECTED, "Empty", 100, now, &which),
			 DRAIN_UNLIMITED);
	assert_int_equal(which, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_schedules),
		cmocka_unit_test(test_schedules_that_cannot_be_read),
		cmocka_unit_test(test_reasons_of_schedules),
		cmocka_unit_test(test_the_calendar_goes_on),
		cmocka_unit_test(test_budgets),
		cmocka_unit_test(test_the_most_restrictive_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
