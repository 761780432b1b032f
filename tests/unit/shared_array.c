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

static void test_texts_are_found(void **state)
{
	const struct {
		const char *name;
		int value;
	} of[] = {{"b", 1}, {"a", 2}, {"b", 3}};
	const char *const texts[] = {"x", "y"};

	(void)state;
	assert_ptr_equal(array_find_text(of, 3, sizeof(of[0]), "a"), &of[1]);
	assert_ptr_equal(array_find_text(of, 3, sizeof(of[0]), "b"), &of[0]);
	assert_null(array_find_text(of, 3, sizeof(of[0]), "c"));
	assert_null(array_find_text(NULL, 0, sizeof(of[0]), "a"));
	assert_ptr_equal(array_find_text(texts, 2, sizeof(texts[0]), "y"), &texts[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_growth_keeps_elements),
		cmocka_unit_test(test_lower_bound),
		cmocka_unit_test(test_texts_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
