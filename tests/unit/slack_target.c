/* SPDX-License-Identifier: Apache-2.0 */
/* Rates as they are written, and what holds of every target: on tables, and on random clusters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/policy/slack/slack_target.h"

#define GIB (1024LL * 1024 * 1024)

static void rates_are_read_exactly(void **state)
{
	static const struct {
		const char *text;
		int64_t ppm; /* -1: refused */
	} cases[] = {
		{"0", 0},
		{"0.1", 100000},
		{".05", 50000},
		{"10%", 100000},
		{"12.5 %", 125000},
		{" 0.25 ", 250000},
		{"0.999999", 999999},
		{"99.9999%", 999999},
		{"0.000001", 1},
		{"0.1000000", 100000},
		{"0.0000001", -1},
		{"0.00001%", -1},
		{"1", -1},
		{"100%", -1},
		{"1.5", -1},
		{"-0.1", -1},
		{"", -1},
		{".", -1},
		{"%", -1},
		{"0.1x", -1},
		{"0.1.2", -1},
		{"1e-1", -1},
		{"nan", -1},
		{"99999999999999999999", -1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct error error = {""};
		int64_t ppm = -1;
		int err = slack_rate_parse(cases[i].text, &ppm, &error);

		if (ppm != cases[i].ppm || (err == 0) != (cases[i].ppm >= 0) ||
		    (err && !strstr(error.text, "\"")))
			fail_msg("\"%s\": %d, %lld: %s", cases[i].text, err, (long long)ppm,
				 error.text);
	}
}

static void a_share_is_rounded_up_and_never_beyond(void **state)
{
	static const struct {
		int64_t base, ppm, want;
	} cases[] = {
		{40000, 100000, 4000}, {40001, 100000, 4001},
		{0, 999999, 0},	       {1, 1, 1},
		{3, 333333, 1},	       {INT64_MAX, 999999, 9223362813482738953},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct slack_amount base = {cases[i].base, cases[i].base};
		struct slack_amount extra = slack_extra(&base, cases[i].ppm);

		assert_int_equal(extra.cpu_milli, cases[i].want);
		assert_int_equal(extra.mem_bytes, cases[i].want);
	}
}

static void without_nodes_there_is_no_unit(void **state)
{
	struct slack_target_input in = {.granularity = 5, .extra = {1000, GIB}};
	struct slack_target t;

	(void)state;
	slack_target_make(&in, &t);
	assert_int_equal(t.unit.cpu_milli, 0);
	assert_int_equal(t.unit_count, 0);
	assert_int_equal(t.remaining.cpu_milli, 1000);
	slack_target_fini(&t);
}

static void shapes_that_fit_nowhere_are_named(void **state)
{
	const struct slack_amount node = {4000, 16 * GIB};
	const struct slack_amount shapes[] = {{5000, GIB}, {1000, GIB}, {100, 17 * GIB}};
	struct slack_target_input in = {.nodes = &node,
					.node_count = 1,
					.granularity = 5,
					.shapes = shapes,
					.shape_count = 3};
	struct slack_target t;

	(void)state;
	slack_target_make(&in, &t);
	assert_int_equal(t.dropped_count, 2);
	assert_memory_equal(&t.dropped[0], &shapes[0], sizeof(shapes[0]));
	assert_memory_equal(&t.dropped[1], &shapes[2], sizeof(shapes[0]));
	assert_int_equal(t.cover_count, 1);
	assert_memory_equal(&t.cover[0], &shapes[1], sizeof(shapes[0]));
	slack_target_fini(&t);
}

/*
 * 16 GiB in five parts are 3435973836.8 bytes each: a byte more, and a node would hold four of
 * them.
 */
static void as_many_units_fit_on_a_node_as_it_was_cut_into(void **state)
{
	static const struct {
		struct slack_amount node, extra, unit;
		int64_t count;
	} cases[] = {
		{{4000, 16 * GIB}, {4000, 16 * GIB}, {800, 3435973836}, 5},
		{{4000, 16 * GIB}, {4000, 16 * GIB + 1}, {800, 3435973836}, 5},
		{{4000, 16 * GIB}, {4000, 16 * GIB + 2}, {800, 3435973836}, 6},
		{{4000, 16 * GIB}, {4001, 16 * GIB}, {800, 3435973836}, 6},
		{{4001, 16 * GIB}, {4001, GIB}, {800, 3435973836}, 5},
		{{4004, 15 * GIB}, {8008, GIB}, {800, 3 * GIB}, 10},
		{{3, 5}, {3, 5}, {1, 1}, 5},
		/* A node gives both, or one of them. */
		{{4000, 0}, {4000, 0}, {800, 0}, 5},
		{{0, 15 * GIB}, {0, 15 * GIB}, {0, 3 * GIB}, 5},
		{{0, 0}, {0, 0}, {0, 0}, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct slack_target_input in = {.nodes = &cases[i].node,
						.node_count = 1,
						.granularity = 5,
						.extra = cases[i].extra};
		struct slack_target t;

		slack_target_make(&in, &t);
		assert_memory_equal(&t.unit, &cases[i].unit, sizeof(t.unit));
		assert_int_equal(t.unit_count, cases[i].count);
		slack_target_fini(&t);
	}
}

/* What a shape caps is no fraction of anything. */
static void a_unit_as_large_as_a_shape_is_counted_up(void **state)
{
	const struct slack_amount node = {4001, 16 * GIB}, shape = {500, GIB};
	struct slack_target_input in = {.nodes = &node,
					.node_count = 1,
					.granularity = 5,
					.extra = {5001, 3 * GIB},
					.shapes = &shape,
					.shape_count = 1};
	struct slack_target t;

	(void)state;
	slack_target_make(&in, &t);
	assert_int_equal(t.unit.cpu_milli, 500);
	assert_int_equal(t.remaining.cpu_milli, 4501);
	assert_int_equal(t.unit_count, 10);
	slack_target_fini(&t);
}

/* --- random clusters */

enum { ROUNDS = 3000, NODES = 12, SHAPES = 10 };

static uint64_t seed;

static int64_t draw(int64_t below)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (int64_t)((seed >> 20) % (uint64_t)below);
}

struct cluster {
	struct slack_amount nodes[NODES], shapes[SHAPES];
	struct slack_target_input in;
};

static void make_cluster(struct cluster *c)
{
	struct slack_amount types[4];

	for (size_t i = 0; i < 4; i++)
		types[i] = (struct slack_amount){500 + draw(32000), GIB / 3 + draw(64 * GIB)};
	c->in = (struct slack_target_input){.nodes = c->nodes, .shapes = c->shapes};
	c->in.node_count = (size_t)draw(NODES + 1);
	for (size_t i = 0; i < c->in.node_count; i++)
		c->nodes[i] = types[draw(4)];
	c->in.shape_count = (size_t)draw(SHAPES + 1);
	for (size_t i = 0; i < c->in.shape_count; i++)
		c->shapes[i] = (struct slack_amount){draw(16000), draw(40 * GIB)};
	c->in.extra = (struct slack_amount){draw(20000), draw(50 * GIB)};
	c->in.reserved = (struct slack_amount){draw(2) * draw(9000), draw(2) * draw(9 * GIB)};
	c->in.granularity = 1 + (uint32_t)draw(8);
}

static bool some_holds(const struct slack_amount *of, size_t count, const struct slack_amount *a)
{
	for (size_t i = 0; i < count; i++)
		if (slack_amount_fits(a, &of[i]))
			return true;
	return false;
}

static struct slack_amount largest(const struct cluster *c)
{
	struct slack_amount max = {0, 0};

	for (size_t i = 0; i < c->in.shape_count; i++) {
		if (c->shapes[i].cpu_milli > max.cpu_milli)
			max.cpu_milli = c->shapes[i].cpu_milli;
		if (c->shapes[i].mem_bytes > max.mem_bytes)
			max.mem_bytes = c->shapes[i].mem_bytes;
	}
	return max;
}

static void check_cover(const struct cluster *c, const struct slack_target *t)
{
	struct slack_amount max = largest(c);
	size_t dropped = 0;

	for (size_t i = 0; i < c->in.shape_count; i++) {
		bool fits = some_holds(c->nodes, c->in.node_count, &c->shapes[i]);

		dropped += !fits;
		assert_true(!fits || some_holds(t->cover, t->cover_count, &c->shapes[i]));
	}
	assert_int_equal(t->dropped_count, dropped);
	for (size_t i = 0; i < t->cover_count; i++) {
		assert_true(some_holds(c->nodes, c->in.node_count, &t->cover[i]));
		assert_true(slack_amount_fits(&t->cover[i], &max));
	}
	/* No member is of no use. */
	for (size_t i = 0; i < t->cover_count; i++)
		for (size_t k = 0; k < t->cover_count; k++)
			assert_true(i == k || !slack_amount_fits(&t->cover[i], &t->cover[k]));
}

static void check_units(const struct cluster *c, const struct slack_target *t)
{
	struct slack_amount sum = c->in.reserved, max = largest(c);
	static const struct slack_amount one = {1, 1};

	if (!c->in.node_count) {
		assert_int_equal(t->unit_count, 0);
		return;
	}
	assert_true(some_holds(c->nodes, c->in.node_count, &t->unit));
	assert_true(!max.cpu_milli || t->unit.cpu_milli <= max.cpu_milli);
	assert_true(!max.mem_bytes || t->unit.mem_bytes <= max.mem_bytes);
	for (size_t i = 0; i < t->cover_count; i++)
		slack_amount_add(&sum, &t->cover[i], 1);
	slack_amount_add(&sum, &t->unit, t->unit_count);
	slack_amount_add(&sum, &one, t->unit_count);
	assert_true(slack_amount_fits(&c->in.extra, &sum));
	slack_amount_add(&sum, &one, -t->unit_count);
	/* One less would not do. */
	slack_amount_add(&sum, &t->unit, -1);
	assert_true(t->unit_count == 0 || !slack_amount_fits(&c->in.extra, &sum));
}

static void what_holds_of_every_target(void **state)
{
	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		struct slack_target t;
		struct cluster c;

		seed = (uint64_t)round * 1000003 + 1;
		make_cluster(&c);
		slack_target_make(&c.in, &t);
		check_cover(&c, &t);
		check_units(&c, &t);
		slack_target_fini(&t);
	}
}

static void slots_do_not_overflow(void **state)
{
	struct slack_amount left = {4000, 1 << 20};
	const struct slack_amount huge[] = {{INT64_MAX, INT64_MAX}, {INT64_MAX, INT64_MAX}};
	const struct slack_amount none = {0, 0}, small = {1, 1}, over = {-5, GIB};

	(void)state;
	assert_int_equal(slack_slots(huge, &small), INT64_MAX);
	assert_int_equal(slack_slots(huge, &none), INT64_MAX);
	/* What absurd requests leave of a node is not room. */
	slack_amount_add(&left, &huge[0], -1);
	slack_amount_add(&left, &huge[1], -1);
	assert_true(left.cpu_milli == -INT64_MAX && left.mem_bytes == -INT64_MAX);
	assert_int_equal(slack_slots(&over, &small), 0);
}

/* On both sides of a whole quotient, and of 2^53. */
static void slots_are_rounded_down(void **state)
{
	static const int64_t shapes[] = {1, 3, 250, 1000003, (INT64_C(1) << 40) + 1};
	static const int64_t most = INT64_C(1) << 55;

	(void)state;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
		for (int64_t slots = most / shapes[i]; slots; slots /= 2) {
			struct slack_amount shape = {0, shapes[i]}, whole = {0, slots * shapes[i]};
			struct slack_amount less = {0, whole.mem_bytes - 1};

			assert_int_equal(slack_slots(&whole, &shape), slots);
			assert_int_equal(slack_slots(&less, &shape), slots - 1);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rates_are_read_exactly),
		cmocka_unit_test(a_share_is_rounded_up_and_never_beyond),
		cmocka_unit_test(without_nodes_there_is_no_unit),
		cmocka_unit_test(shapes_that_fit_nowhere_are_named),
		cmocka_unit_test(as_many_units_fit_on_a_node_as_it_was_cut_into),
		cmocka_unit_test(a_unit_as_large_as_a_shape_is_counted_up),
		cmocka_unit_test(what_holds_of_every_target),
		cmocka_unit_test(slots_do_not_overflow),
		cmocka_unit_test(slots_are_rounded_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
