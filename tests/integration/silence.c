/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A service that hears nothing goes on publishing views: what it knows ages, and the silent are
 * forgotten.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sodium.h>

#include "tests/process.h"
#include "tests/stack.h"

static bool has_published(void *stack)
{
	return stack_metric(stack, 0, "evenkeel_views_published_total") >= 1;
}

static void test_views_in_silence(void **state)
{
	struct stack *s;

	(void)state;
	assert_true(sodium_init() >= 0);
	s = stack_new();
	stack_start_aggregator(s, 0);
	assert_false(has_published(s));
	assert_true(await(has_published, s, 30));
	stack_free(s, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_views_in_silence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
