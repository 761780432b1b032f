/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sentences say what printf() would, and in a text that is too short the beginning of it: whatever
 * the room is, no byte behind it is touched.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/policy/textbuf.h"

enum { ROOM = 96, GUARD = 0x5a };

/* One sentence that has everything, in a text of that size; how long it became. */
static size_t write_all(char *text, size_t size, int64_t number, double fraction, int decimals)
{
	size_t len = textbuf_add(text, size, 0, "a %" PRId64 " of ", number);

	return textbuf_add(text, size, len, "%.*f %%%s", decimals, fraction, ",");
}

static void check(int64_t number, double fraction, int decimals)
{
	char want[ROOM], text[ROOM + 1];
	int len = snprintf(want, sizeof(want), "a %" PRId64 " of %.*f %%,", number, decimals,
			   fraction);

	for (size_t size = 1; size <= ROOM; size++) {
		size_t most = (size_t)len < size ? (size_t)len : size - 1;

		memset(text, GUARD, sizeof(text));
		assert_int_equal(write_all(text, size, number, fraction, decimals), most);
		assert_int_equal(strlen(text), most);
		assert_memory_equal(text, want, most);
		for (size_t i = size; i < sizeof(text); i++)
			assert_int_equal(text[i], GUARD);
	}
}

static void numbers_of_all_lengths_in_texts_of_all_sizes(void **state)
{
	int64_t number = 1;

	(void)state;
	check(0, 0, 0);
	check(INT64_MIN, 999999999.9375, 4);
	check(INT64_MAX, 123456789012345678.0, 0);
	for (unsigned int digits = 1; digits <= 18; digits++, number *= 10) {
		check(number, 0.5, 1);
		check(-number, -0.25, 2);
		check(number - 1, (double)(number % 1000000) + 0.375, 3);
	}
	for (int decimals = 0; decimals <= 9; decimals++)
		check(7, 3.0 + 0x1p-30, decimals);
}

static void what_is_no_number_and_what_is_too_large(void **state)
{
	char text[ROOM];

	(void)state;
	/* halves go away from zero */
	textbuf_add(text, sizeof(text), 0, "%.1f%.1f%.1f %.1f %.9f", NAN, (double)-INFINITY, -0.04,
		    0.25, -1e300);
	assert_string_equal(text, "??0.0 0.3 -1000000000.000000000");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_of_all_lengths_in_texts_of_all_sizes),
		cmocka_unit_test(what_is_no_number_and_what_is_too_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
