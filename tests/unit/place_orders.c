/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the nodes that would do is chosen, and what is told where none does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/place_fixture.h"
#include "tests/place_scan.h"

static struct place_fixture f;

#define ASK(cpu, memory)                                                                           \
	"'containers':[{'name':'c','resources':{'requests':{'cpu':'" cpu "','memory':'" memory     \
	"'}}}]"

/* Shares: a 1/4 by CPU, b 1/2 by memory, c 1/2 by CPU, d nothing. */
static int setup(void **state)
{
	(void)state;
	place_fixture_init(&f);
	place_fixture_node(&f, "d", "", "");
	place_fixture_node(&f, "b", "", "");
	place_fixture_node(&f, "a", "", "");
	place_fixture_node(&f, "c", "", "");
	place_fixture_pod(&f, "on-c", "c", "", ASK("2", "1Gi"));
	place_fixture_pod(&f, "on-a", "a", "", ASK("1", "1Gi"));
	place_fixture_pod(&f, "on-b", "b", "", ASK("1", "4Gi"));
	place_fixture_pod(&f, "asked", "", "", ASK("500m", "1Gi"));
	place_fixture_pod(&f, "huge", "", "", ASK("3500m", "1Gi"));
	place_fixture_pod(&f, "giant", "", "", ASK("5", "1Gi"));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	place_fixture_fini(&f);
	return 0;
}

static const char *choose(const char *pod, enum place_order order, place_node hint,
			  const bool *allowed)
{
	place_node n = place_choose(f.place, place_find_pod(f.place, "default", pod), order, hint,
				    allowed, NULL);

	return n == PLACE_NONE ? "-" : place_node_name(f.place, n);
}

static void nodes_are_tried_in_their_order(void **state)
{
	static const bool no_b[] = {true, false, true, true};

	(void)state;
	place_fixture_build(&f);
	assert_string_equal(choose("asked", PLACE_FULLEST_FIRST, PLACE_NONE, NULL), "b");
	assert_string_equal(choose("asked", PLACE_FULLEST_FIRST, PLACE_NONE, no_b), "c");
	assert_string_equal(choose("asked", PLACE_EMPTIEST_FIRST, PLACE_NONE, NULL), "d");
	assert_string_equal(choose("huge", PLACE_FULLEST_FIRST, PLACE_NONE, NULL), "d");
	assert_string_equal(choose("giant", PLACE_FULLEST_FIRST, PLACE_NONE, NULL), "-");
}

static void ties_go_by_name_in_both_directions(void **state)
{
	(void)state;
	place_fixture_build(&f);
	/* Without them a and d are empty: a is the first of both orders' ties. */
	place_take(f.place, place_find_pod(f.place, "default", "on-a"));
	assert_string_equal(choose("asked", PLACE_EMPTIEST_FIRST, PLACE_NONE, NULL), "a");
	place_remove_node(f.place, 0);
	assert_string_equal(choose("asked", PLACE_EMPTIEST_FIRST, PLACE_NONE, NULL), "d");
	place_revert(f.place, 0);
	assert_string_equal(choose("asked", PLACE_EMPTIEST_FIRST, PLACE_NONE, NULL), "d");
}

static void the_order_follows_what_is_put(void **state)
{
	(void)state;
	place_fixture_build(&f);
	assert_string_equal(choose("asked", PLACE_FULLEST_FIRST, PLACE_NONE, NULL), "b");
	place_put(f.place, place_find_pod(f.place, "default", "huge"), 3);
	assert_string_equal(choose("asked", PLACE_FULLEST_FIRST, PLACE_NONE, NULL), "d");
	place_revert(f.place, 0);
	assert_string_equal(choose("asked", PLACE_FULLEST_FIRST, PLACE_NONE, NULL), "b");
}

static void the_circle_goes_on_behind_the_last(void **state)
{
	static const char *const want[] = {"a", "b", "c", "d", "a", "b"};

	(void)state;
	place_fixture_build(&f);
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		assert_string_equal(choose("asked", PLACE_CYCLIC, PLACE_NONE, NULL), want[i]);
	assert_string_equal(choose("huge", PLACE_CYCLIC, PLACE_NONE, NULL), "d");
	assert_string_equal(choose("asked", PLACE_CYCLIC, PLACE_NONE, NULL), "a");
}

static void the_hint_comes_first_where_it_fits(void **state)
{
	static const bool no_a[] = {false, true, true, true};

	(void)state;
	place_fixture_build(&f);
	assert_string_equal(choose("asked", PLACE_FULLEST_FIRST, 0, NULL), "a");
	assert_string_equal(choose("asked", PLACE_FULLEST_FIRST, 0, no_a), "b");
	assert_string_equal(choose("huge", PLACE_FULLEST_FIRST, 0, NULL), "d");
}

static void every_refusal_is_counted_once(void **state)
{
	static const bool no_b[] = {true, false, true, true};
	struct place_counts tree, scan;
	place_pod huge;

	(void)state;
	place_fixture_remove(&f, OBJECT_NODE, "", "d");
	place_fixture_node(&f, "d", "", "'unschedulable':true");
	place_fixture_build(&f);
	huge = place_find_pod(f.place, "default", "huge");
	place_remove_node(f.place, 0);
	assert_int_equal(place_choose(f.place, huge, PLACE_FULLEST_FIRST, 2, NULL, &tree),
			 PLACE_NONE);
	assert_int_equal(tree.of[PLACE_GONE], 1);
	assert_int_equal(tree.of[PLACE_FIT], 2);
	assert_int_equal(tree.of[PLACE_UNSCHEDULABLE], 1);
	place_choose(f.place, huge, PLACE_CYCLIC, PLACE_NONE, no_b, &tree);
	assert_int_equal(tree.of[PLACE_FIT], 1);
	place_scan(f.place, huge, PLACE_CYCLIC, PLACE_NONE, no_b, &scan);
	assert_memory_equal(tree.of, scan.of, sizeof(tree.of));
}

/* What is known came in another order, and changes nothing. */
static void the_order_of_the_input_does_not_matter(void **state)
{
	(void)state;
	place_fixture_remove(&f, OBJECT_NODE, "", "a");
	place_fixture_remove(&f, OBJECT_POD, "default", "on-c");
	place_fixture_node(&f, "a", "", "");
	place_fixture_pod(&f, "on-c", "c", "", ASK("2", "1Gi"));
	nodes_are_tried_in_their_order(state);
}

#define test(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(nodes_are_tried_in_their_order),
		test(ties_go_by_name_in_both_directions),
		test(the_order_follows_what_is_put),
		test(the_circle_goes_on_behind_the_last),
		test(the_hint_comes_first_where_it_fits),
		test(every_refusal_is_counted_once),
		test(the_order_of_the_input_does_not_matter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
