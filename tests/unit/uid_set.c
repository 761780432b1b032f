/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "aggregator/state/uid_set.h"
#include "tests/usage_fixture.h"

enum { UIDS = 700, STEPS = 60000 };

static void a_set_has_what_was_added_and_not_removed(void **state)
{
	static bool there[UIDS];
	struct uid_set s = {0};
	uint32_t seed = 1;
	size_t count = 0;

	(void)state;
	for (int i = 0; i < STEPS; i++) {
		int n = (int)(fixture_random(&seed) * UIDS);
		/* It fills, and empties again. */
		bool add = fixture_random(&seed) < (i / 10000 % 2 ? 0.1 : 0.9);
		char uid[40];

		snprintf(uid, sizeof(uid), "%08d-aaaa-4bbb-8ccc-dddddddddddd", n);
		assert_int_equal(uid_set_has(&s, uid), there[n]);
		if (add)
			assert_int_equal(uid_set_add(&s, uid), !there[n]);
		else
			assert_int_equal(uid_set_remove(&s, uid), there[n]);
		count += (size_t)add - (size_t)there[n];
		there[n] = add;
		assert_int_equal(s.count, count);
		assert_true(s.size <= 64 || s.size <= 8 * (s.count + 1));
	}
	uid_set_fini(&s);
	assert_false(uid_set_has(&s, "a"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_set_has_what_was_added_and_not_removed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
