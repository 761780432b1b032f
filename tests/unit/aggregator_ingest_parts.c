/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/edge/ingest.h"

struct scene {
	struct ingest_parts *parts;
	struct buf out[BODY_PARTS_MAX];
};

static int setup(void **state)
{
	static const struct ingest_parts_limits limits = {.nodes_max = 3, .bytes_max = 100};
	static struct scene scene;

	scene.parts = ingest_parts_new(&limits);
	*state = &scene;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	ingest_parts_free(s->parts);
	return 0;
}

/* One part of an interval of node; run is its first byte. */
struct arrival {
	const char *node;
	uint64_t run, sequence;
	uint32_t part, parts;
	const char *body;
	const char *complete; /* all bodies in order, or NULL while some are missing */
};

static void expect_arrival(struct scene *s, const struct arrival *a)
{
	struct frame_header header = {.sequence = a->sequence,
				      .part = (uint16_t)a->part,
				      .parts = (uint16_t)a->parts,
				      .run = {(uint8_t)a->run}};
	struct buf body = BUF_INIT, all = BUF_INIT;
	size_t count;

	snprintf(header.node, sizeof(header.node), "%s", a->node);
	buf_add_str(&body, a->body);
	count = ingest_parts_add(s->parts, &header, &body, s->out);
	assert_null(body.data);
	assert_int_equal(count, a->complete ? a->parts : 0);
	for (size_t i = 0; i < count; i++) {
		buf_add(&all, s->out[i].data, s->out[i].len);
		buf_fini(&s->out[i]);
	}
	if (a->complete)
		assert_string_equal(all.data, a->complete);
	buf_fini(&all);
}

static void play(struct scene *s, const struct arrival *arrivals, size_t count)
{
	for (size_t i = 0; i < count; i++)
		expect_arrival(s, &arrivals[i]);
}

#define PLAY(s, arrivals) play(s, arrivals, sizeof(arrivals) / sizeof((arrivals)[0]))

static void test_any_order(void **state)
{
	static const struct arrival arrivals[] = {
		{"a", 1, 1, 0, 3, "x", NULL},
		{"a", 1, 1, 1, 3, "y", NULL},
		{"a", 1, 1, 2, 3, "z", "xyz"},
		/* The same again, backwards, with a repeated and an empty part. */
		{"a", 1, 1, 2, 3, "z", NULL},
		{"a", 1, 1, 2, 3, "z", NULL},
		{"a", 1, 1, 1, 3, "", NULL},
		{"a", 1, 1, 1, 3, "", NULL},
		{"a", 1, 1, 0, 3, "x", "xz"},
	};

	PLAY(*state, arrivals);
}

static void test_nodes_apart(void **state)
{
	static const struct arrival arrivals[] = {
		{"a", 1, 1, 0, 2, "a", NULL},
		{"b", 1, 1, 0, 2, "b", NULL},
		{"a", 1, 1, 1, 2, "A", "aA"},
		{"b", 1, 1, 1, 2, "B", "bB"},
	};

	PLAY(*state, arrivals);
}

/* Another run, sequence, number of parts or content: what was there must not be mixed in. */
static void test_begun_anew(void **state)
{
	static const struct arrival arrivals[] = {
		{"a", 1, 1, 0, 2, "1", NULL}, {"a", 2, 1, 1, 2, "2", NULL},
		{"a", 2, 1, 0, 2, "3", "32"}, {"a", 2, 4, 0, 2, "4", NULL},
		{"a", 2, 5, 1, 2, "5", NULL}, {"a", 2, 5, 0, 2, "6", "65"},
		{"a", 2, 7, 0, 2, "7", NULL}, {"a", 2, 7, 1, 3, "8", NULL},
		{"a", 2, 7, 0, 3, "9", NULL}, {"a", 2, 7, 2, 3, "0", "980"},
		{"a", 2, 8, 0, 2, "a", NULL}, {"a", 2, 8, 0, 2, "b", NULL},
		{"a", 2, 8, 1, 2, "c", "bc"},
	};

	PLAY(*state, arrivals);
}

/* A fourth node pushes out the one that was begun first. */
static void test_node_limit(void **state)
{
	static const struct arrival arrivals[] = {
		{"a", 1, 1, 0, 2, "a", NULL}, {"b", 1, 1, 0, 2, "b", NULL},
		{"c", 1, 1, 0, 2, "c", NULL}, {"d", 1, 1, 0, 2, "d", NULL},
		{"a", 1, 1, 1, 2, "A", NULL}, /* pushes b out */
		{"c", 1, 1, 1, 2, "C", "cC"}, {"d", 1, 1, 1, 2, "D", "dD"},
		{"b", 1, 1, 1, 2, "B", NULL}, {"a", 1, 1, 0, 2, "a", "aA"},
		{"b", 1, 1, 0, 2, "b", "bB"},
	};

	PLAY(*state, arrivals);
}

#define FORTY "0123456789012345678901234567890123456789"

static void test_byte_limit(void **state)
{
	static const struct arrival arrivals[] = {
		{"a", 1, 1, 0, 3, FORTY, NULL}, {"b", 1, 1, 0, 3, FORTY, NULL},
		{"b", 1, 1, 1, 3, FORTY, NULL}, /* 120: a goes */
		{"a", 1, 1, 2, 3, "z", NULL},	{"b", 1, 1, 2, 3, "z", FORTY FORTY "z"},
		{"a", 1, 1, 0, 3, "x", NULL},	{"a", 1, 1, 1, 3, "y", "xyz"},
	};

	PLAY(*state, arrivals);
}

/* Neither complete intervals nor those begun anew count: else b would be pushed out. */
static void test_what_is_gone_takes_no_room(void **state)
{
	static const struct arrival begun[] = {{"b", 1, 1, 0, 2, "b", NULL}};
	static const struct arrival others[] = {
		{"a", 1, 1, 0, 2, FORTY, NULL},	   {"a", 1, 1, 1, 2, FORTY, FORTY FORTY},
		{"c", 1, 1, 0, 2, FORTY, NULL},	   {"c", 1, 2, 1, 2, FORTY, NULL},
		{"c", 1, 2, 0, 2, "c", "c" FORTY},
	};
	static const struct arrival ended[] = {{"b", 1, 1, 1, 2, "B", "bB"}};

	PLAY(*state, begun);
	for (int i = 0; i < 10; i++)
		PLAY(*state, others);
	PLAY(*state, ended);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_any_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nodes_apart, setup, teardown),
		cmocka_unit_test_setup_teardown(test_begun_anew, setup, teardown),
		cmocka_unit_test_setup_teardown(test_node_limit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_byte_limit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_is_gone_takes_no_room, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
