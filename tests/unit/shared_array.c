/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "shared/array.h"

static void test_growth_keeps_elements(void **state)
{
	int64_t *of = NULL;

	(void)state;
	for (size_t i = 0; i < 1000; i++) {
		of = array_grow(of, i, sizeof(*of));
		of[i] = (int64_t)i;
	}
	/* Removed elements are added again. */
	for (size_t i = 16; i < 1000; i++) {
		of = array_grow(of, i, sizeof(*of));
		of[i] = (int64_t)i;
	}
	for (size_t i = 0; i < 1000; i++)
		assert_int_equal(of[i], i);
	free(of);
}

static void test_lower_bound(void **state)
{
	static const int64_t of[] = {2, 4, 4, 8};
	static const struct {
		int64_t key;
		size_t at;
	} cases[] = {{1, 0}, {2, 0}, {3, 1}, {4, 1}, {5, 3}, {8, 3}, {9, 4}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(array_lower_bound(&cases[i].key, of, 4, sizeof(of[0]),
						   array_compare_int64),
				 cases[i].at);
	assert_int_equal(array_lower_bound(&of[0], of, 0, sizeof(of[0]), array_compare_int64), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_growth_keeps_elements),
		cmocka_unit_test(test_lower_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
