/* SPDX-License-Identifier: Apache-2.0 */
/* Stories of two runs that tell of one node: which of them may, by connection and time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/state/usage_node.h"
#include "aggregator/state/usage_pack.h"
#include "tests/usage_story.h"

static bool tell_of(struct usage_state *u, char run, int start, const struct frame_header *h,
		    int64_t now_ns)
{
	struct interval *i = story_interval(h->sequence, start, start + 5, 0);

	return story_tell(u, h->node, run, i, (int)((now_ns - T0) / SEC)).verdict == USAGE_APPLIED;
}

/* Whose frames of which connection are looked at; those that are applied are noted. */
static void the_run_that_is_alive_wins(void **state)
{
	static const struct {
		const char *why;
		char run;
		int start, now;
		enum usage_admission want;
		uint64_t sequence, connection; /* sequence 0: the connection is closed */
	} steps[] = {
		{"nobody was heard before", 'a', 0, 5, USAGE_ADMITTED, 1, 1},
		{"somebody with the key", 'x', 0, 6, USAGE_RIVAL, 1, 2},
		{"who says to be far", 'x', 0, 6, USAGE_RIVAL, 1 << 20, 2},
		{"and knows the run", 'a', 0, 6, USAGE_EARLY, 1 << 20, 2},
		{"a copy tells nothing", 'a', 0, 6, USAGE_ADMITTED, 1, 2},
		{"the next", 'a', 5, 10, USAGE_ADMITTED, 2, 1},
		{"silent for long", 'x', 5, 39, USAGE_RIVAL, 1, 2},
		{"it is back in time", 'a', 10, 39, USAGE_ADMITTED, 3, 1},
		{"silent for 30 s", 'x', 38, 69, USAGE_ADMITTED, 1, 2},
		{"then the node is the other's", 'a', 43, 70, USAGE_RIVAL, 4, 1},
		{"who goes", 'x', 0, 71, USAGE_ADMITTED, 0, 2},
		{"and may come back", 'a', 43, 75, USAGE_EARLY, 4, 1},
		{"as it does", 'x', 43, 75, USAGE_ADMITTED, 2, 3},
		{"its old connection is no matter", 'x', 0, 76, USAGE_ADMITTED, 0, 2},
		{"it is alive", 'a', 48, 83, USAGE_RIVAL, 4, 1},
		{"until it goes", 'x', 0, 83, USAGE_ADMITTED, 0, 3},
		{"and its next interval is late", 'a', 48, 83, USAGE_ADMITTED, 4, 1},
		{"a clock that was set back proves no life", 'y', 10, 20, USAGE_ADMITTED, 1, 4},
	};
	struct usage_state *u = story_state();

	(void)state;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		struct frame_header h = {.sequence = steps[i].sequence, .node = "n"};
		int64_t now_ns = T0 + steps[i].now * SEC;
		enum usage_admission got;

		if (!h.sequence) {
			usage_note_closed(u, "n", steps[i].connection);
			continue;
		}
		memcpy(h.run, story_run(steps[i].run), FRAME_RUN_LEN);
		got = usage_admit(u, &h, steps[i].connection, now_ns);
		if (got != steps[i].want)
			fail_msg("%s: %d", steps[i].why, got);
		if (got == USAGE_ADMITTED && tell_of(u, steps[i].run, steps[i].start, &h, now_ns))
			usage_note_connection(u, "n", steps[i].connection, 5 * SEC, now_ns);
	}
	usage_free(u);
}

/* The state of a new process, which has the node from the database. */
static struct usage_state *restarted(struct usage_state *u, int64_t now_ns)
{
	struct usage_state *after = story_state();
	struct usage_node *n = NULL;
	struct usage_row row;
	struct error why;

	usage_save_begin(u);
	assert_int_equal(usage_save_next(u, &row, 1), 1);
	usage_pack_seal(row.name, &row.packed);
	assert_int_equal(usage_node_unpack(row.name, row.packed.data, row.packed.len, &n, &why), 0);
	assert_int_equal(usage_restore(after, n, now_ns), 0);
	usage_row_fini(&row);
	usage_free(u);
	return after;
}

/* For some seconds the run that the database names may come back first. */
static void the_run_before_a_restart_may_come_back(void **state)
{
	struct frame_header same = {.sequence = 2, .node = "n"},
			    other = {.sequence = 1, .node = "n"};
	struct usage_state *u = story_state();
	int64_t now_ns = T0 + 10 * SEC;

	(void)state;
	memcpy(same.run, story_run('a'), FRAME_RUN_LEN);
	memcpy(other.run, story_run('x'), FRAME_RUN_LEN);
	story_tell_ok(u, 'a', story_interval(1, 0, 5, 0));
	u = restarted(u, now_ns);
	assert_int_equal(usage_admit(u, &same, 1, now_ns), USAGE_ADMITTED);
	assert_int_equal(usage_admit(u, &other, 2, now_ns), USAGE_EARLY);
	assert_int_equal(usage_admit(u, &other, 2, now_ns + 7 * SEC - 1), USAGE_EARLY);
	assert_int_equal(usage_admit(u, &other, 2, now_ns + 7 * SEC), USAGE_ADMITTED);
	usage_free(u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_run_that_is_alive_wins),
		cmocka_unit_test(the_run_before_a_restart_may_come_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
