/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every agent is a descriptor of the aggregator: it takes as many as it may, and says when those
 * are few.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "shared/file.h"
#include "shared/mem.h"
#include "tests/process.h"
#include "tests/stack.h"

enum { FEW = 300 };

static bool log_says(const struct stack *s, const char *what)
{
	char *path = mem_printf("%s/aggregator-0.log", s->folder);
	struct buf text = BUF_INIT;
	struct error error;
	bool found = file_read(path, 1 << 20, &text, &error) == 0 && text.data &&
		     strstr(text.data, what) != NULL;

	buf_fini(&text);
	free(path);
	return found;
}

/* Starts one that inherits the limits, and gives back what it made of them. */
static struct rlimit limit_of_aggregator(const char *what, bool *said)
{
	struct stack *s = stack_new();
	struct rlimit limit;

	stack_start_aggregator(s, 0);
	assert_int_equal(prlimit(s->aggregators[0].pid, RLIMIT_NOFILE, NULL, &limit), 0);
	*said = log_says(s, what);
	stack_free(s, 0);
	return limit;
}

static void test_the_soft_limit_is_raised(void **state)
{
	struct rlimit mine, low, its;
	bool said;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &mine), 0);
	low = (struct rlimit){.rlim_cur = FEW, .rlim_max = mine.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	its = limit_of_aggregator("open files", &said);
	assert_int_equal(its.rlim_cur, mine.rlim_max);
	assert_int_equal(said, mine.rlim_max < 8192);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &mine), 0);
}

/* The last one: nobody but root could take it back. */
static void test_a_low_hard_limit_is_told(void **state)
{
	const struct rlimit low = {.rlim_cur = FEW, .rlim_max = FEW};
	struct rlimit its;
	bool said;

	(void)state;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	its = limit_of_aggregator("at most 300 open files, of which every agent needs one", &said);
	assert_int_equal(its.rlim_cur, FEW);
	assert_true(said);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_soft_limit_is_raised),
		cmocka_unit_test(test_a_low_hard_limit_is_told),
	};

	if (sodium_init() < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
