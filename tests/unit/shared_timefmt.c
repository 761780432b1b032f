/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "shared/timefmt.h"

#define SEC 1000000000LL

static void test_known_times(void **state)
{
	static const struct {
		int64_t unix_ns;
		const char *text;
	} cases[] = {
		{0, "1970-01-01T00:00:00Z"},
		{999999, "1970-01-01T00:00:00Z"},
		{1000000, "1970-01-01T00:00:00.001Z"},
		{-1, "1969-12-31T23:59:59.999Z"},
		{-SEC, "1969-12-31T23:59:59Z"},
		{951782399 * SEC, "2000-02-28T23:59:59Z"},
		{951782400 * SEC, "2000-02-29T00:00:00Z"},
		{951868800 * SEC, "2000-03-01T00:00:00Z"},
		{1709164800 * SEC, "2024-02-29T00:00:00Z"},
		{1735689599 * SEC + 999999999, "2024-12-31T23:59:59.999Z"},
		{1735689600 * SEC, "2025-01-01T00:00:00Z"},
		{1769860800 * SEC + 120 * 1000000, "2026-01-31T12:00:00.120Z"},
		{4107542400 * SEC, "2100-03-01T00:00:00Z"},
		{4107456000 * SEC, "2100-02-28T00:00:00Z"},
		{INT64_MAX, "2262-04-11T23:47:16.854Z"},
		{INT64_MIN, "1677-09-21T00:12:43.145Z"},
	};
	char text[TIMEFMT_LEN];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		timefmt_rfc3339(cases[i].unix_ns, text);
		assert_string_equal(text, cases[i].text);
	}
}

static void test_exact_reads_back(void **state)
{
	static const int64_t times[] = {0,
					1,
					-1,
					999999999,
					SEC,
					-SEC,
					-SEC - 1,
					INT64_MAX,
					INT64_MIN,
					1735689600 * SEC + 1,
					4107456000 * SEC};
	char text[TIMEFMT_LEN];
	int64_t back;

	(void)state;
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		timefmt_rfc3339_exact(times[i], text);
		assert_int_equal(timefmt_parse(text, &back, NULL), 0);
		assert_true(back == times[i]);
	}
	/* Every day of four centuries. */
	for (int64_t day = -106000; day < 106000; day++) {
		timefmt_rfc3339_exact(day * 86400 * SEC + 5, text);
		assert_int_equal(timefmt_parse(text, &back, NULL), 0);
		assert_true(back == day * 86400 * SEC + 5);
	}
	timefmt_rfc3339_exact(1000, text);
	assert_string_equal(text, "1970-01-01T00:00:00.000001000Z");
	timefmt_rfc3339_exact(SEC, text);
	assert_string_equal(text, "1970-01-01T00:00:01Z");
}

static void test_forms_that_are_read(void **state)
{
	static const struct {
		const char *text;
		int64_t unix_ns;
	} cases[] = {
		{"1970-01-01T00:00:00Z", 0},
		{"1970-01-01t00:00:00z", 0},
		{"1970-01-01 00:00:00Z", 0},
		{"1970-01-01T01:00:00+01:00", 0},
		{"1969-12-31T18:30:00-05:30", 0},
		{"1970-01-01T00:00:00.5Z", SEC / 2},
		{"1970-01-01T00:00:00.0000000019Z", 1},
		{"2016-12-31T23:59:60Z", 1483228800 * SEC},
		{"2024-02-29T00:00:00.123456Z", 1709164800 * SEC + 123456000},
		{"2000-02-29T00:00:00Z", 951782400 * SEC},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t got = -1;

		assert_int_equal(timefmt_parse(cases[i].text, &got, NULL), 0);
		assert_true(got == cases[i].unix_ns);
	}
}

static void test_forms_that_are_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"now",
		"1970-01-01",
		"1970-01-01T00:00:00",
		"1970-01-01T00:00:00Z ",
		"1970-01-01T00:00:00.Z",
		"1970-1-01T00:00:00Z",
		"1970-00-01T00:00:00Z",
		"1970-13-01T00:00:00Z",
		"1970-01-00T00:00:00Z",
		"2023-02-29T00:00:00Z",
		"1900-02-29T00:00:00Z",
		"1970-04-31T00:00:00Z",
		"1970-01-01T24:00:00Z",
		"1970-01-01T00:60:00Z",
		"1970-01-01T00:00:61Z",
		"1970-01-01T00:00:00+1:00",
		"1970-01-01T00:00:00+24:00",
		"1970-01-01T00:00:00+01:00x",
		"-970-01-01T00:00:00Z",
		"0001-01-01T00:00:00Z",
		"2300-01-01T00:00:00Z",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct error error = {""};
		int64_t got = 77;

		assert_int_equal(timefmt_parse(texts[i], &got, &error), -EINVAL);
		assert_true(got == 77 && strstr(error.text, texts[i]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_times),
		cmocka_unit_test(test_exact_reads_back),
		cmocka_unit_test(test_forms_that_are_read),
		cmocka_unit_test(test_forms_that_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
