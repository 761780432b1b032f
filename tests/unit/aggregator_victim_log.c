/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/state/victim_log.h"

#define SECOND 1000000000LL

static const struct victim one_node[] = {{"u1", "x", "a"}, {"u2", "y", "a"}};

/* Of a search that nobody disturbed. */
static int put(struct victim_log *l, const char *preemptor, const struct victim *of, size_t count,
	       int64_t now_ns)
{
	return victim_log_put(l, preemptor, of, count, victim_log_version(l), now_ns);
}

static size_t flight(struct victim_log *l, const char *besides, int64_t now_ns)
{
	const char *const *uids;
	size_t count = victim_log_told(l, besides, now_ns - VICTIM_LOG_FLIGHT_NS, now_ns, &uids);

	free((void *)uids);
	return count;
}

static size_t past(struct victim_log *l, int64_t since_ns)
{
	struct victim_past *of;
	size_t count = victim_log_past(l, since_ns, &of);

	for (size_t i = 1; i < count; i++)
		assert_true(of[i - 1].at_ns <= of[i].at_ns);
	free(of);
	return count;
}

static void test_keeps_what_was_told(void **state)
{
	struct victim_log *l = victim_log_new();
	struct victim_answer a;

	(void)state;
	assert_false(victim_log_find(l, "p", SECOND, &a));
	assert_int_equal(put(l, "p", one_node, 2, SECOND), 0);
	assert_true(victim_log_find(l, "p", 2 * SECOND, &a));
	assert_int_equal(a.count, 2);
	assert_int_equal(a.told_ns, SECOND);
	assert_string_equal(a.of[1].uid, "u2");
	assert_string_equal(a.of[1].namespace, "y");
	assert_string_equal(a.of[1].node, "a");
	free(a.of);
	assert_false(victim_log_find(l, "other", 2 * SECOND, &a));
	victim_log_free(l);
}

static void test_expires(void **state)
{
	struct victim_log *l = victim_log_new();
	struct victim_answer a;

	(void)state;
	put(l, "p", one_node, 2, SECOND);
	assert_true(victim_log_find(l, "p", SECOND + VICTIM_LOG_TTL_NS - 1, &a));
	free(a.of);
	assert_false(victim_log_find(l, "p", SECOND + VICTIM_LOG_TTL_NS, &a));
	victim_log_free(l);
}

/* The order in which they expire is that in which they were told or renewed. */
static void test_renewed_is_kept(void **state)
{
	struct victim_log *l = victim_log_new();
	struct victim_answer a;

	(void)state;
	put(l, "p", one_node, 2, SECOND);
	put(l, "q", one_node, 2, 2 * SECOND);
	victim_log_renew(l, "p", 400 * SECOND);
	victim_log_renew(l, "nobody", 400 * SECOND);
	assert_false(victim_log_find(l, "q", 399 * SECOND + VICTIM_LOG_TTL_NS, &a));
	assert_true(victim_log_find(l, "p", 399 * SECOND + VICTIM_LOG_TTL_NS, &a));
	assert_int_equal(a.told_ns, SECOND); /* in flight it is no longer */
	assert_int_equal(a.count, 2);
	free(a.of);
	assert_false(victim_log_find(l, "p", 400 * SECOND + VICTIM_LOG_TTL_NS, &a));
	assert_int_equal(past(l, 0), 4); /* two were told twice */
	victim_log_free(l);
}

/* Who was told is as good as evicted, for everybody but the one who was told. */
static void test_counts_at_the_answer(void **state)
{
	struct victim_log *l = victim_log_new();

	(void)state;
	put(l, "p", one_node, 2, SECOND);
	assert_int_equal(flight(l, NULL, SECOND), 2);
	assert_int_equal(flight(l, "q", SECOND), 2);
	assert_int_equal(flight(l, "p", SECOND), 0);
	assert_int_equal(flight(l, NULL, SECOND + VICTIM_LOG_FLIGHT_NS), 0);
	assert_int_equal(past(l, 0), 2);
	assert_int_equal(past(l, SECOND + 1), 0);
	victim_log_free(l);
}

/* Of two who searched at once one must search again. */
static void test_refuses_what_is_late(void **state)
{
	struct victim_log *l = victim_log_new();
	uint64_t version = victim_log_version(l);
	struct victim_answer a;

	(void)state;
	assert_int_equal(victim_log_put(l, "p", one_node, 2, version, SECOND), 0);
	assert_int_equal(victim_log_put(l, "q", one_node, 2, version, SECOND), -EAGAIN);
	assert_int_equal(past(l, 0), 2);
	assert_false(victim_log_find(l, "q", SECOND, &a));
	version = victim_log_version(l);
	assert_int_equal(victim_log_put(l, "q", one_node, 2, version, SECOND), 0);
	assert_true(victim_log_find(l, "q", SECOND, &a));
	free(a.of);
	victim_log_free(l);
}

/* Told again is not evicted again. */
static void test_repeated_answers_count_once(void **state)
{
	const struct victim more[] = {{"u1", "x", "a"}, {"u9", "z", "a"}};
	struct victim_log *l = victim_log_new();

	(void)state;
	put(l, "p", one_node, 2, SECOND);
	put(l, "p", one_node, 2, 2 * SECOND);
	assert_int_equal(past(l, 0), 2);
	put(l, "p", more, 2, 3 * SECOND);
	assert_int_equal(past(l, 0), 3);
	victim_log_free(l);
}

static void test_refuses(void **state)
{
	struct victim many[VICTIM_LOG_VICTIMS_MAX + 1];
	struct victim_log *l = victim_log_new();
	struct victim_answer a;

	(void)state;
	for (size_t i = 0; i <= VICTIM_LOG_VICTIMS_MAX; i++)
		many[i] = one_node[0];
	assert_int_equal(put(l, "", one_node, 2, SECOND), -EINVAL);
	assert_int_equal(put(l, "p", one_node, 0, SECOND), -EINVAL);
	assert_int_equal(put(l, "p", many, VICTIM_LOG_VICTIMS_MAX + 1, SECOND), -EINVAL);
	assert_false(victim_log_find(l, "p", SECOND, &a));
	assert_int_equal(put(l, "p", many, VICTIM_LOG_VICTIMS_MAX, SECOND), 0);
	victim_log_free(l);
}

/* The oldest make room. */
static void test_bounded(void **state)
{
	struct victim_log *l = victim_log_new();
	struct victim_answer a;
	char name[32];

	(void)state;
	for (int i = 0; i < VICTIM_LOG_PREEMPTORS_MAX + 3; i++) {
		snprintf(name, sizeof(name), "p%d", i);
		put(l, name, one_node, 2, SECOND + i);
	}
	assert_false(victim_log_find(l, "p2", 2 * SECOND, &a));
	assert_true(victim_log_find(l, "p3", 2 * SECOND, &a));
	free(a.of);
	for (int i = 0; i < VICTIM_LOG_PAST_MAX; i++) {
		snprintf(name, sizeof(name), "r%d", i);
		put(l, name, one_node, 1, 2 * SECOND + i);
	}
	assert_int_equal(past(l, 0), VICTIM_LOG_PAST_MAX);
	assert_int_equal(past(l, 2 * SECOND + 5), VICTIM_LOG_PAST_MAX - 5);
	victim_log_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keeps_what_was_told),
		cmocka_unit_test(test_expires),
		cmocka_unit_test(test_renewed_is_kept),
		cmocka_unit_test(test_counts_at_the_answer),
		cmocka_unit_test(test_refuses_what_is_late),
		cmocka_unit_test(test_repeated_answers_count_once),
		cmocka_unit_test(test_refuses),
		cmocka_unit_test(test_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
