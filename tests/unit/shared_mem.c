/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that grow, and the release of hash tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "shared/hash.h"
#include "shared/mem.h"

static void an_array_grows_by_doubling(void **state)
{
	size_t room = 0, growths = 0;
	int *array = NULL;

	(void)state;
	for (size_t i = 0; i < 1000; i++) {
		size_t before = room;

		array = mem_grow(array, i, &room, sizeof(*array));
		assert_true(room > i);
		growths += room != before;
		array[i] = (int)i;
	}
	for (size_t i = 0; i < 1000; i++)
		assert_int_equal(array[i], i);
	assert_true(growths <= 8);
	free(array);
}

struct element {
	int key;
	UT_hash_handle hh;
};

static void a_table_is_released_once_per_element(void **state)
{
	struct element *head = NULL, *e, *next;
	int sum = 0;

	(void)state;
	HASH_RELEASE (head, e, next)
		fail();
	for (int i = 1; i <= 100; i++) {
		e = mem_zalloc(1, sizeof(*e));
		e->key = i;
		HASH_ADD_INT(head, key, e);
	}
	HASH_RELEASE (head, e, next) {
		sum += e->key;
		free(e);
	}
	assert_null(head);
	assert_int_equal(sum, 5050);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_array_grows_by_doubling),
		cmocka_unit_test(a_table_is_released_once_per_element),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
