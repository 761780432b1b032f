/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

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

static void test_exact_times_come_back(void **state)
{
	static const struct {
		int64_t unix_ns;
		const char *text;
	} cases[] = {
		{0, "1970-01-01T00:00:00Z"},
		{1, "1970-01-01T00:00:00.000000001Z"},
		{-1, "1969-12-31T23:59:59.999999999Z"},
		{1769860800 * SEC + 120 * 1000000, "2026-01-31T12:00:00.120Z"},
		{1769860800 * SEC + 120 * 1000, "2026-01-31T12:00:00.000120Z"},
		{1709164800 * SEC - 1, "2024-02-28T23:59:59.999999999Z"},
		{951782400 * SEC, "2000-02-29T00:00:00Z"},
	};
	char text[TIMEFMT_LEN];
	int64_t back;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		timefmt_rfc3339_exact(cases[i].unix_ns, text);
		assert_string_equal(text, cases[i].text);
		assert_int_equal(timefmt_read(text, &back), 0);
		assert_true(back == cases[i].unix_ns);
	}
	for (int64_t ns = -9000000000 * SEC; ns < 9000000000 * SEC; ns += 86399 * SEC * 7 + 12345) {
		timefmt_rfc3339_exact(ns, text);
		assert_int_equal(timefmt_read(text, &back), 0);
		assert_true(back == ns);
	}
}

static void test_reads_what_others_write(void **state)
{
	static const struct {
		const char *text;
		int64_t unix_ns;
	} good[] = {
		{"2026-01-31t12:00:00z", 1769860800 * SEC},
		{"2026-01-31T13:30:00+01:30", 1769860800 * SEC},
		{"2026-01-31T07:00:00.5-05:00", 1769860800 * SEC + SEC / 2},
		{"2026-01-31T11:59:60Z", 1769860800 * SEC},
		{"2026-01-31T12:00:00.1234567899Z", 1769860800 * SEC + 123456789},
	};
	static const char *const bad[] = {
		"",
		"2026-01-31",
		"2026-01-31T12:00:00",
		"2026-01-31T12:00:00.Z",
		"2026-01-31T12:00:00Z ",
		"2026-02-29T12:00:00Z",
		"2026-13-01T12:00:00Z",
		"2026-00-01T12:00:00Z",
		"2026-01-00T12:00:00Z",
		"2026-01-31T24:00:00Z",
		"2026-01-31T12:60:00Z",
		"2026-01-31T12:00:61Z",
		"2026-01-31T12:00:00+1:00",
		"2026-01-31T12:00:00+24:00",
		"2026-01-31 12:00:00Z",
		"1677-01-01T00:00:00Z",
		"2262-01-01T00:00:00Z",
		"2026\r01-31T12:00:00Z",
	};
	int64_t got = 7;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(timefmt_read(good[i].text, &got), 0);
		assert_true(got == good[i].unix_ns);
	}
	got = 7;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (timefmt_read(bad[i], &got) != -EINVAL || got != 7)
			fail_msg("\"%s\" is read", bad[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_times),
		cmocka_unit_test(test_exact_times_come_back),
		cmocka_unit_test(test_reads_what_others_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
