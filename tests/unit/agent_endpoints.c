/* SPDX-License-Identifier: Apache-2.0 */
/* Answers in, changes out: addresses are single letters, a capital X is a lookup that failed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "agent/endpoints.h"

#define SEC 1000000000LL

static struct resolver_answer answer_of(const char *letters)
{
	struct resolver_answer answer = {0};

	if (letters[0] == 'X') {
		answer.failed = true;
		return answer;
	}
	for (; *letters; letters++)
		answer.addresses[answer.count++].text[0] = *letters;
	return answer;
}

/* "+ab-c": what joined and what left, in order. */
static void take(struct endpoints *r, const char *letters, int64_t now, bool answering, size_t room,
		 char *changes)
{
	struct endpoints_change list[ENDPOINTS_CHANGES_MAX];
	struct resolver_answer answer = answer_of(letters);
	size_t count = endpoints_take(r, &answer, now, answering, room, list), len = 0;

	for (size_t i = 0; i < count; i++) {
		changes[len++] = list[i].added ? '+' : '-';
		changes[len++] = list[i].address.text[0];
	}
	changes[len] = '\0';
}

static void test_who_joins_and_leaves(void **state)
{
	static const struct {
		const char *answer, *changes;
	} story[] = {
		{"ab", "+a+b"},
		{"ab", ""},
		{"abc", "+c"},
		/* Once is not enough. */
		{"ac", ""},
		{"abc", ""},
		{"ac", ""},
		{"X", ""},
		{"X", ""},
		{"ac", "-b"},
		/* Everything moved: those before stay for a lookup. */
		{"de", "+d+e"},
		{"def", "-a-c+f"},
		{"X", ""},
		{"b", "+b"},
		{"b", "-d-e-f"},
		{"b", ""},
	};
	struct endpoints r;
	char changes[4 * ENDPOINTS_CHANGES_MAX];

	(void)state;
	endpoints_start(&r, 0);
	for (size_t i = 0; i < sizeof(story) / sizeof(story[0]); i++) {
		take(&r, story[i].answer, (int64_t)i * SEC, true, 10, changes);
		assert_string_equal(changes, story[i].changes);
		assert_int_equal(r.left_out, 0);
	}
	assert_int_equal(r.count, 1);
}

static void test_room(void **state)
{
	struct endpoints r;
	char changes[4 * ENDPOINTS_CHANGES_MAX];

	(void)state;
	endpoints_start(&r, 0);
	take(&r, "abcde", 0, true, 3, changes);
	assert_string_equal(changes, "+a+b+c");
	assert_int_equal(r.left_out, 2);
	take(&r, "acde", 0, true, 0, changes);
	assert_string_equal(changes, "");
	assert_int_equal(r.left_out, 2);
	/* A failed lookup tells nothing of it. */
	take(&r, "X", 0, true, 0, changes);
	assert_int_equal(r.left_out, 2);
	/* Who leaves makes room. */
	take(&r, "acde", 0, true, 0, changes);
	assert_string_equal(changes, "-b+d");
	assert_int_equal(r.left_out, 1);
	take(&r, "acd", 0, true, 0, changes);
	assert_string_equal(changes, "");
	assert_int_equal(r.left_out, 0);
	/* One that could not be sent to after all comes again. */
	endpoints_forget(&r, &(struct address){"d"});
	endpoints_forget(&r, &(struct address){"z"});
	take(&r, "acd", 0, true, 1, changes);
	assert_string_equal(changes, "+d");
	/* Never more than there is place in the endpoints, whatever room is promised. */
	take(&r, "abcdefghijklmnopqrstuvw", 0, true, 100, changes);
	assert_int_equal(r.count, ENDPOINTS_MAX);
	assert_int_equal(r.left_out, 23 - ENDPOINTS_MAX);
}

/*
 * One address: each line an answer, whether somebody answers by then, and the pause until the next
 * lookup.
 */
static void test_pauses(void **state)
{
	static const struct {
		const char *answer;
		bool answering;
		int pause_s;
	} story[] = {
		{"X", false, 1},
		{"X", false, 2},
		{"X", false, 4},
		{"X", false, 8},
		{"X", false, 16},
		{"X", false, 30},
		{"X", false, 30},
		/* A new address deserves a try before the next lookup. */
		{"a", false, 30},
		{"a", true, 30},
		{"a", true, 30},
		/* The name server is gone, the aggregator is not. */
		{"X", true, 1},
		{"X", true, 2},
		{"a", true, 30},
		/* The other way round. */
		{"a", false, 1},
		{"a", false, 2},
		{"a", false, 4},
		{"b", false, 30},
		{"b", true, 30},
	};
	struct endpoints r;
	char changes[4 * ENDPOINTS_CHANGES_MAX];
	int64_t now = 5 * SEC;

	(void)state;
	endpoints_start(&r, now);
	for (size_t i = 0; i < sizeof(story) / sizeof(story[0]); i++) {
		int64_t pause = story[i].pause_s * SEC;

		assert_true(endpoints_due(&r, now, true));
		/* Under way: not due however long it takes. */
		assert_false(endpoints_due(&r, now + 1000 * SEC, false));
		now += SEC / 10;
		take(&r, story[i].answer, now, story[i].answering, 10, changes);
		assert_false(endpoints_due(&r, now + pause - 1, true));
		now += pause;
	}
}

/* They stop to answer long before the next lookup is due: it comes soon, and then ever later. */
static void test_silence_brings_a_lookup(void **state)
{
	struct endpoints r;
	char changes[4 * ENDPOINTS_CHANGES_MAX];
	int64_t now = 0;

	(void)state;
	endpoints_start(&r, now);
	assert_true(endpoints_due(&r, now, false));
	take(&r, "a", now, true, 10, changes);
	now += 10 * SEC;
	assert_false(endpoints_due(&r, now, true));
	assert_false(endpoints_due(&r, now, false));
	assert_int_equal(r.due_ns, now + SEC);
	assert_false(endpoints_due(&r, now + SEC - 1, false));
	assert_true(endpoints_due(&r, now + SEC, false));
	now += SEC;
	take(&r, "a", now, false, 10, changes);
	assert_int_equal(r.due_ns, now + 2 * SEC);
	assert_false(endpoints_due(&r, now + 2 * SEC - 1, false));
	assert_true(endpoints_due(&r, now + 2 * SEC, false));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_joins_and_leaves),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_pauses),
		cmocka_unit_test(test_silence_brings_a_lookup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
