/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_known_times)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
