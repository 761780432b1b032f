/* SPDX-License-Identifier: Apache-2.0 */
/* Removed cgroups: whatever the order of scan, removal, telling and tick, all is counted and nothing twice. */
#include "agent/account.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/account_world.h"
#include "tests/near.h"

#define A "/a.slice"
#define B A "/b.slice"
#define C B "/c.service"

#define MS WORLD_MS

static const char *const chain[] = {C, NULL};

/* Millicore seconds (milliseconds of CPU time) since the start, by what was published. */
struct totals {
	double a, b, c, node;
	uint32_t overflow;
};

static void add_entries(double *total, const struct interval *i, const char *path)
{
	for (size_t n = 0; n < i->entry_count; n++)
		if (!strcmp(i->entries[n].entity->name, path + 1))
			*total += world_total(&i->entries[n].usage);
}

static void publish(struct world *w, struct totals *t)
{
	struct interval *i = world_publish(w);

	assert_non_null(i);
	add_entries(&t->a, i, A);
	add_entries(&t->b, i, B);
	add_entries(&t->c, i, C);
	t->node += world_total(&i->node.usage);
	t->overflow += i->node.overflow - 2; /* what the world's loop says */
	interval_free(i);
}

static void expect(const struct totals *t, double a, double b, double c, double node)
{
	if (fabs(t->a - a) > 1e-3 || fabs(t->b - b) > 1e-3 || fabs(t->c - c) > 1e-3 ||
	    fabs(t->node - node) > 1e-3)
		fail_msg("a %.6f (%.6f), b %.6f (%.6f), c %.6f (%.6f), node %.6f (%.6f)", t->a, a,
			 t->b, b, t->c, c, t->node, node);
}

/* The three of the chain are read as using nothing, then 10, 20 and 30 ms of their own. */
static void start_chain(struct world *w)
{
	world_start(w, chain);
	world_use_local(w, A, 5 * WORLD_S);
	world_use_local(w, B, 6 * WORLD_S);
	world_use_local(w, C, 7 * WORLD_S);
	world_tick(w, 0, true);
	world_use_local(w, A, 10 * MS);
	world_use_local(w, B, 20 * MS);
	world_use_local(w, C, 30 * MS);
	world_tick(w, 100 * MS, false);
}

static struct removal c_with(const struct world *w, uint64_t more_ms)
{
	return world_removal(w, C, 7 * WORLD_S + (30 + more_ms) * MS);
}

static struct removal b_with(const struct world *w, uint64_t more_ms)
{
	return world_removal(w, B, 6 * WORLD_S + (20 + more_ms) * MS);
}

/* --- one that was read ---------------------------------------------------------------------------------------- */

/* After the removal ticks and rescans go on for a while; none of it may count again. */
static void go_on(struct world *w, struct totals *t)
{
	for (int n = 0; n < 3; n++) {
		world_tick(w, 100 * MS, n == 1);
		publish(w, t);
		world_scan(w);
	}
}

static void test_removed_before_the_scan(void **state)
{
	struct world *w = *state;
	struct totals t = {0};
	struct removal d;

	start_chain(w);
	d = c_with(w, 4);
	world_rmdir(w, C);
	world_scan(w);
	world_remove(w, MS, &d, 1);
	go_on(w, &t);
	expect(&t, 64, 54, 34, 64);
}

/* The topology still has it: not met by the pass, met once more, or shown without anything. */
static void test_removed_after_the_scan(void **state)
{
	static const struct {
		const char *what;
		uint32_t have;
		uint64_t more_ns;
	} cases[] = {
		{"stale", HAVE_CPU | HAVE_CPU_LOCAL, 0},
		{"met", HAVE_CPU | HAVE_CPU_LOCAL, 4 * MS},
		{"met by a clock of microseconds", HAVE_CPU | HAVE_CPU_LOCAL, 4 * MS - 900},
		{"not read", 0, 0},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		struct world *w = world_new();
		struct totals t = {0};
		struct removal d;
		struct interval *i;

		start_chain(w);
		d = c_with(w, 4);
		world_scan(w);
		world_remove(w, MS, &d, 1);
		world_reading(w, C)->have = cases[n].have;
		world_reading(w, C)->cpu_ns += cases[n].more_ns;
		world_tick(w, 100 * MS, false);
		publish(w, &t);
		world_mkdir(w, A "/other.service"); /* what is listed again is not that one */
		world_scan(w);
		world_tick(w, 100 * MS, true);
		i = world_publish(w);
		assert_null(world_entry(i, C));
		interval_free(i);
		world_rmdir(w, C);
		world_scan(w);
		go_on(w, &t);
		expect(&t, 64, 54, 34, 64);
		world_free(w);
	}
}

static void test_the_last_sample_covers_the_time_until_then(void **state)
{
	struct world *w = *state;
	struct removal d;
	struct interval *i;
	const struct usage *u;

	start_chain(w);
	d = c_with(w, 2);
	world_remove(w, 20 * MS, &d, 1);
	world_tick(w, 100 * MS, false);
	i = world_publish(w);
	u = &world_entry(i, C)->usage;
	assert_int_equal(u->cpu_milli.samples, 2);
	assert_near(u->cpu_milli.last, 100);
	assert_near(u->cpu_milli.weight, 0.12);
	assert_near(u->seconds, 0.12);
	u = &world_entry(i, B)->usage;
	assert_int_equal(u->cpu_milli.samples, 2);
	assert_near(u->cpu_milli.last, 20);
	assert_near(u->seconds, 0.2);
	interval_free(i);
	world_tick(w, 100 * MS, false);
	i = world_publish(w);
	assert_null(world_entry(i, C));
	interval_free(i);
}

static void test_parent_and_child_at_once(void **state)
{
	struct world *w = *state;
	struct totals t = {0};
	struct removal d[2];

	start_chain(w);
	d[0] = c_with(w, 4);
	d[1] = b_with(w, 5);
	world_rmdir(w, B);
	world_scan(w);
	world_remove(w, MS, d, 2);
	go_on(w, &t);
	expect(&t, 69, 59, 34, 69);
}

/* The carry of the child moves on with its parent, one tick later or in the same pause. */
static void test_parent_after_child(void **state)
{
	(void)state;
	for (int tick_between = 0; tick_between < 2; tick_between++) {
		struct world *w = world_new();
		struct totals t = {0};
		struct removal d[2];

		start_chain(w);
		d[0] = c_with(w, 4);
		d[1] = b_with(w, 5);
		world_rmdir(w, C);
		world_scan(w);
		world_remove(w, MS, &d[0], 1);
		if (tick_between)
			world_tick(w, 100 * MS, false);
		world_rmdir(w, B);
		world_scan(w);
		world_remove(w, MS, &d[1], 1);
		go_on(w, &t);
		expect(&t, 69, 59, 34, 69);
		world_free(w);
	}
}

/* The kernel's buffer was full: the parent vanishes and nobody tells. What it carried is its own parent's. */
static void test_a_parent_that_vanishes_untold(void **state)
{
	struct world *w = *state;
	struct totals t = {0};
	struct removal d;

	start_chain(w);
	d = c_with(w, 4);
	world_remove(w, MS, &d, 1);
	world_rmdir(w, B);
	world_scan(w);
	go_on(w, &t);
	expect(&t, 64, 50, 34, 64);
}

/* Two at once: what the inner one carried has to climb over both. */
static void test_parents_that_vanish_untold(void **state)
{
	struct world *w = *state;
	struct totals t = {0};
	struct removal d;

	start_chain(w);
	world_mkdir(w, C "/x");
	d = world_removal(w, C "/x", 4 * MS);
	world_remove(w, MS, &d, 1);
	world_rmdir(w, B);
	world_scan(w);
	go_on(w, &t);
	expect(&t, 64, 50, 30, 64);
}

/* Which the kernel does not do. */
static void test_told_in_the_wrong_order(void **state)
{
	struct world *w = *state;
	struct totals t = {0};
	struct removal d[2];

	start_chain(w);
	d[0] = b_with(w, 5);
	d[1] = c_with(w, 4);
	world_rmdir(w, B);
	world_scan(w);
	world_remove(w, MS, d, 2);
	go_on(w, &t);
	expect(&t, 69, 55, 34, 69);
}

/* A directory that runtimes made in another hierarchy first. */
static void test_a_v2_directory_that_came_later(void **state)
{
	struct world *w = *state;
	struct removal d = {.id = 77, .parent_id = 1, .have = HAVE_CPU, .cpu_ns = 9 * MS};
	struct interval *i;

	for (int round = 0; round < 2; round++) {
		topology_begin(w->topology);
		topology_add(w->topology, HIERARCHY_UNIFIED, "/", 1);
		topology_add(w->topology, HIERARCHY_MEMORY, "/x", 5);
		if (round)
			topology_add(w->topology, HIERARCHY_UNIFIED, "/x", 77);
		topology_commit(w->topology);
		world_tick(w, 100 * MS, true);
	}
	world_use_local(w, "/x", 2 * MS);
	world_tick(w, 100 * MS, true);
	world_use_local(w, "/x", 3 * MS);
	world_tick(w, 100 * MS, true);
	world_remove(w, MS, &d, 1);
	world_tick(w, 100 * MS, true);
	i = world_publish(w);
	/* Its first reading was the baseline. */
	assert_near(world_total(&world_entry(i, "/x")->usage), 7);
	interval_free(i);
}

/* The directory is gone a moment before the kernel tells: the scan and the tick come first. */
static void test_told_after_it_vanished(void **state)
{
	struct world *w = *state;
	struct totals t = {0};
	struct removal d;

	start_chain(w);
	d = c_with(w, 4);
	world_rmdir(w, C);
	world_scan(w);
	world_tick(w, 100 * MS, false);
	world_tick(w, 100 * MS, false);
	publish(w, &t);
	world_remove(w, MS, &d, 1);
	go_on(w, &t);
	/* Its own workload was published for the last time by then. */
	expect(&t, 64, 54, 30, 64);
	assert_int_equal(t.overflow, 0);
	/* Once only. */
	world_remove(w, MS, &d, 1);
	go_on(w, &t);
	expect(&t, 64, 54, 30, 64);
	assert_int_equal(t.overflow, 1);
}

/* Not published yet, so it has the last of its use and of what was below, up to the tick that missed it. */
static void test_told_before_it_was_published(void **state)
{
	struct world *w = *state;
	struct removal d[2];
	struct interval *i;

	start_chain(w);
	d[0] = (struct removal){900, world_id(w, C), HAVE_CPU, 3 * MS, 0, 0, 0};
	d[1] = c_with(w, 4);
	world_rmdir(w, C);
	world_scan(w);
	world_tick(w, 200 * MS, false);
	world_remove(w, MS, d, 2);
	i = world_publish(w);
	assert_near(world_entry(i, C)->usage.cpu_milli.last, 35);
	assert_near(world_entry(i, C)->usage.seconds, 0.3);
	interval_free(i);
}

static void test_what_vanished_is_remembered_for_a_while(void **state)
{
	struct world *w = *state;
	struct totals t = {0};
	struct removal d;

	start_chain(w);
	d = c_with(w, 4);
	world_rmdir(w, C);
	world_scan(w);
	for (int n = 0; n < 32; n++)
		world_tick(w, WORLD_S, false);
	world_remove(w, MS, &d, 1);
	go_on(w, &t);
	/* By now it looks like one that was never seen, and far too old for that. */
	expect(&t, 60, 50, 30, 60);
	assert_int_equal(t.overflow, 1);
}

/* --- baselines ------------------------------------------------------------------------------------------------ */

static void test_what_was_used_before_us_does_not_count(void **state)
{
	struct world *w = *state;
	struct totals t = {0};
	struct removal d[2];

	world_start(w, chain);
	world_mkdir(w, A "/gone.service");
	world_scan(w);
	d[0] = world_removal(w, A "/gone.service", 100 * WORLD_S);
	d[1] = world_removal(w, C, 100 * WORLD_S);
	world_remove(w, MS, &d[0], 1); /* before the baselines are set */
	world_use_local(w, A, WORLD_S);
	world_use_local(w, B, WORLD_S);
	world_tick(w, 0, true); /* and this one's counter is never read */
	world_remove(w, MS, &d[1], 1);
	world_rmdir(w, C);
	world_scan(w);
	go_on(w, &t);
	expect(&t, 0, 0, 0, 0);
	assert_int_equal(t.overflow, 0);
}

static void test_found_but_never_read(void **state)
{
	struct world *w = *state;
	struct totals t = {0};
	struct removal d;

	world_start(w, (const char *const[]){B, NULL});
	world_use_local(w, A, WORLD_S);
	world_use_local(w, B, WORLD_S);
	world_tick(w, 0, true);
	world_mkdir(w, C);
	world_scan(w);
	world_tick(w, 100 * MS, false);
	d = world_removal(w, C, 40 * MS);
	world_remove(w, MS, &d, 1);
	world_rmdir(w, C);
	world_scan(w);
	go_on(w, &t);
	expect(&t, 40, 40, 40, 40);
}

static void test_a_counter_that_went_back(void **state)
{
	struct world *w = *state;
	struct totals t = {0};
	struct removal d;

	start_chain(w);
	d = world_removal(w, C, 3 * WORLD_S);
	world_rmdir(w, C);
	world_scan(w);
	world_remove(w, MS, &d, 1);
	go_on(w, &t);
	expect(&t, 60, 50, 30, 60);
}

/* v1, and files: every counter above has what is below, also when that is gone. */
static void test_counters_of_subtrees(void **state)
{
	struct world *w = *state;
	struct totals t = {0};
	struct removal d[2];

	world_start(w, chain);
	for (size_t n = 0; n < topology_count(w->topology); n++)
		world_use(w, topology_at(w->topology, n)->path, 100 * WORLD_S);
	world_tick(w, 0, true);
	d[0] = world_removal(w, C, 99 * WORLD_S);
	d[1] = (struct removal){
		.id = 999, .parent_id = world_id(w, B), .have = HAVE_CPU, .cpu_ns = 50 * MS};
	world_remove(w, MS, d, 2);
	world_use(w, "/", 50 * MS);
	world_use(w, A, 40 * MS);
	world_use(w, B, 30 * MS);
	world_use(w, C, 20 * MS); /* its v1 directory goes on */
	go_on(w, &t);
	expect(&t, 40, 30, 20, 50);
}

/* --- never seen ----------------------------------------------------------------------------------------------- */

#define NEW B "/new.slice"

/* Whether the scan of this tick has the directory that is gone, and what the pass makes of it. */
static void test_born_and_gone_between_two_ticks(void **state)
{
	static const struct {
		bool scanned;
		uint64_t met_ns;
	} cases[] = {{false, 0}, {true, 0}, {true, 40 * MS}};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		struct world *w = world_new();
		struct totals t = {0};
		struct removal d;
		struct interval *i;

		start_chain(w);
		world_mkdir(w, NEW);
		d = world_removal(w, NEW, 40 * MS);
		if (!cases[n].scanned)
			world_rmdir(w, NEW);
		world_scan(w);
		world_remove(w, MS, &d, 1);
		if (cases[n].met_ns)
			world_use_local(w, NEW, cases[n].met_ns);
		world_tick(w, 100 * MS, true);
		i = world_publish(w);
		assert_null(world_entry(i, NEW));
		assert_near(world_total(&world_entry(i, B)->usage), 90);
		interval_free(i);
		if (cases[n].scanned)
			world_rmdir(w, NEW);
		world_scan(w);
		go_on(w, &t);
		expect(&t, 0, 0, 0, 0);
		world_free(w);
	}
}

enum parent_fate { IN_THIS_SCAN, IN_THE_NEXT_SCAN, NEVER, REMOVED_TOO, REMOVED_LATER };

/* Two levels that no table knows; the outer one comes to light in different ways, or not at all. */
static void test_a_parent_first_known_later(void **state)
{
	static const struct {
		enum parent_fate fate;
		double new_ms, a_ms; /* what the outer one has, and A */
	} cases[] = {
		{IN_THIS_SCAN, 17, 77}, {IN_THE_NEXT_SCAN, 17, 77}, {NEVER, 0, 60},
		{REMOVED_TOO, 0, 82},	{REMOVED_LATER, 0, 82},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		struct world *w = world_new();
		enum parent_fate fate = cases[n].fate;
		struct totals t = {0};
		struct removal d[3];
		double new_ms = 0;

		start_chain(w);
		if (fate == IN_THIS_SCAN)
			world_mkdir(w, NEW);
		world_scan(w);
		world_mkdir(w, NEW "/x/y");
		d[0] = world_removal(w, NEW "/x/y", 13 * MS);
		d[1] = world_removal(w, NEW "/x", 4 * MS);
		d[2] = world_removal(w, NEW, 5 * MS);
		world_rmdir(w, NEW "/x");
		world_remove(w, MS, d, fate == REMOVED_TOO ? 3 : 2);
		world_tick(w, 100 * MS, true);
		if (fate == REMOVED_LATER)
			world_remove(w, MS, &d[2], 1);
		if (fate >= NEVER)
			world_rmdir(w, NEW);
		world_scan(w);
		for (int k = 0; k < 3; k++) {
			struct interval *i;

			world_tick(w, 100 * MS, false);
			i = world_publish(w);
			add_entries(&new_ms, i, NEW);
			add_entries(&t.a, i, A);
			t.node += world_total(&i->node.usage);
			interval_free(i);
			/* At the second tick all has its place, and keeps it. */
			assert_near(t.node, fate >= REMOVED_TOO ? 82 : 77);
		}
		assert_near(new_ms, cases[n].new_ms);
		assert_near(t.a, cases[n].a_ms);
		world_free(w);
	}
}

/* Ids of the kernel are not used twice on 64 bits, but who knows. */
static void test_an_id_that_is_used_again(void **state)
{
	struct world *w = *state;
	struct totals t = {0};
	struct removal d[4];

	start_chain(w);
	d[0] = c_with(w, 4);
	d[1] = world_removal(w, C, 12 * MS); /* born and gone meanwhile, somewhere else */
	d[1].parent_id = world_id(w, A);
	d[2] = (struct removal){.id = 900,
				.parent_id = world_id(w, C),
				.have = HAVE_CPU,
				.cpu_ns = 3 * MS}; /* its child, not that of the first */
	d[3] = world_removal(w, C, 2 * MS);
	d[3].parent_id = world_id(w, A);
	world_remove(w, MS, d, 4);
	/* And a last life, in the old place: first it looks like the old counter, then it cannot be. */
	world_reading(w, C)->cpu_ns = 7 * WORLD_S + 32 * MS;
	world_tick(w, 100 * MS, false);
	publish(w, &t);
	expect(&t, 64 + 17, 54, 34, 64 + 17);
	world_reading(w, C)->cpu_ns = 50 * MS;
	world_tick(w, 100 * MS, false);
	world_use_local(w, C, 3 * MS);
	world_tick(w, 100 * MS, false);
	publish(w, &t);
	expect(&t, 81 + 53, 54 + 53, 34 + 3, 81 + 53);
}

static void test_an_id_that_is_used_again_elsewhere(void **state)
{
	struct world *w = *state;
	struct totals t = {0};
	struct removal d;
	uint64_t id;
	double other_ms = 0;

	start_chain(w);
	d = c_with(w, 4);
	id = world_id(w, C);
	world_rmdir(w, C);
	world_mkdir(w, A "/other.service");
	w->paths[w->path_count - 1].id = id;
	world_scan(w);
	world_remove(w, MS, &d, 1);
	/* The topology cannot know that it is new, so its first reading is a baseline. */
	world_use_local(w, A "/other.service", 9 * MS);
	world_tick(w, 100 * MS, false);
	world_use_local(w, A "/other.service", 8 * MS);
	world_tick(w, 100 * MS, false);
	{
		struct interval *i = world_publish(w);

		add_entries(&other_ms, i, A "/other.service");
		add_entries(&t.c, i, C);
		add_entries(&t.b, i, B);
		add_entries(&t.a, i, A);
		t.node = world_total(&i->node.usage);
		interval_free(i);
	}
	expect(&t, 72, 54, 34, 72);
	assert_near(other_ms, 8);
}

/* A thousand children of one parent, known or not, told in pieces as the sampler gives them. */
static void test_a_thousand(void **state)
{
	enum { COUNT = 1000, PIECE = 64 };

	(void)state;
	for (int known = 0; known < 2; known++) {
		struct world *w = world_new();
		struct removal d[COUNT];
		struct totals t = {0};

		start_chain(w);
		for (int n = 0; n < COUNT; n++) {
			char path[64];

			snprintf(path, sizeof(path), B "/%d.service", n);
			world_mkdir(w, path);
			if (known && n == COUNT - 1) {
				world_scan(w);
				world_tick(w, 100 * MS, false);
			}
			d[n] = world_removal(w, path, 100000ULL + (uint64_t)n * 1000);
		}
		for (int n = 0; n < COUNT; n++) {
			char path[64];

			snprintf(path, sizeof(path), B "/%d.service", n);
			world_rmdir(w, path);
		}
		world_scan(w);
		for (size_t n = 0; n < COUNT; n += PIECE)
			world_remove(w, MS, d + n, COUNT - n < PIECE ? COUNT - n : PIECE);
		go_on(w, &t);
		expect(&t, 60 + 599.5, 50 + 599.5, 30, 60 + 599.5);
		assert_int_equal(t.overflow, 0);
		world_free(w);
	}
}

/* --- bounds --------------------------------------------------------------------------------------------------- */

static void test_unknown_parents_are_bounded(void **state)
{
	enum { COUNT = 3000, KEPT = 1024 };

	struct world *w = *state;
	struct totals t = {0};

	start_chain(w);
	for (uint64_t n = 0; n < COUNT; n++) {
		const struct removal d = {.id = 1000000 + n,
					  .parent_id = 2000000 + n,
					  .have = HAVE_CPU,
					  .cpu_ns = 1000};

		world_remove(w, MS, &d, 1);
	}
	go_on(w, &t);
	expect(&t, 60, 50, 30, 60 + KEPT * 1e-3);
	assert_int_equal(t.overflow, COUNT - KEPT);
}

/* Four CPUs, 1 ms since the tick and a second of slack: 4.004 s are possible. */
static void test_what_is_too_old_is_dropped(void **state)
{
	struct world *w = *state;
	struct totals t = {0};
	struct removal d[2] = {
		{.id = 900, .have = HAVE_CPU, .cpu_ns = 4004 * MS},
		{.id = 901, .have = HAVE_CPU, .cpu_ns = 4004 * MS + 1},
	};

	start_chain(w);
	d[0].parent_id = d[1].parent_id = world_id(w, B);
	world_remove(w, MS, d, 2);
	for (int n = 0; n < 20; n++)
		go_on(w, &t);
	expect(&t, 60 + 4004, 50 + 4004, 30, 60 + 4004);
	assert_int_equal(t.overflow, 1);
}

/* --- throttling ----------------------------------------------------------------------------------------------- */

static void set_throttle(struct removal *d, uint64_t throttled_ms, uint64_t periods)
{
	d->have |= HAVE_THROTTLE;
	d->throttled_ns = throttled_ms * MS;
	d->periods = periods;
	d->throttled_periods = periods / 2;
}

static void test_removed_throttling_counts(void **state)
{
	struct world *w = *state;
	struct removal d[2];
	struct interval *i;
	const struct usage *u;

	world_start(w, chain);
	*world_reading(w, C) = (struct reading){.have = HAVE_THROTTLE,
						.throttled_ns = 500 * MS,
						.periods = 50,
						.throttled_periods = 5};
	world_reading(w, B)->have = HAVE_THROTTLE | HAVE_PSI;
	world_tick(w, 0, true);
	d[0] = world_removal(w, C, 0);
	set_throttle(&d[0], 530, 60); /* 30 ms and 10 periods, 25 of them throttled */
	d[1] = (struct removal){.id = 900, .parent_id = world_id(w, B)};
	set_throttle(&d[1], 8, 2);
	world_rmdir(w, C);
	world_scan(w);
	world_remove(w, MS, d, 2);
	world_tick(w, 100 * MS, false); /* only slow ticks have throttling */
	i = world_publish(w);
	u = &world_entry(i, C)->usage;
	assert_true(u->have & USAGE_THROTTLE);
	assert_int_equal(u->throttled_ns, 30 * MS);
	assert_int_equal(u->periods, 10);
	assert_int_equal(u->throttled_periods, 25);
	assert_int_equal(world_entry(i, B)->usage.throttled_ns, 0);
	interval_free(i);
	world_reading(w, B)->psi_cpu_ns += 45 * MS;
	world_tick(w, 100 * MS, true);
	world_tick(w, 100 * MS, true);
	i = world_publish(w);
	u = &world_entry(i, B)->usage;
	assert_int_equal(u->throttled_ns, 38 * MS);
	assert_int_equal(u->periods, 12);
	assert_int_equal(u->throttled_periods, 26);
	/* What the dead were throttled is no contention of the living. */
	assert_int_equal(u->contention_cpu_ns, 7 * MS);
	assert_int_equal(world_entry(i, A)->usage.throttled_ns, 38 * MS);
	assert_int_equal(i->node.usage.throttled_ns, 38 * MS);
	interval_free(i);
}

/* A counter that the slow ticks before did not have is as old as its cgroup. */
static void test_throttling_without_a_baseline(void **state)
{
	struct world *w = *state;
	struct removal d;
	struct interval *i;

	start_chain(w);
	world_tick(w, 100 * MS, true);
	d = c_with(w, 4);
	set_throttle(&d, 9000, 90);
	world_rmdir(w, C);
	world_scan(w);
	world_remove(w, MS, &d, 1);
	world_tick(w, 100 * MS, true);
	i = world_publish(w);
	assert_false(world_entry(i, C)->usage.have & USAGE_THROTTLE);
	assert_false(world_entry(i, B)->usage.have & USAGE_THROTTLE);
	interval_free(i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_removed_before_the_scan),
		cmocka_unit_test(test_removed_after_the_scan),
		WORLD_TEST(test_the_last_sample_covers_the_time_until_then),
		WORLD_TEST(test_parent_and_child_at_once),
		cmocka_unit_test(test_parent_after_child),
		WORLD_TEST(test_a_parent_that_vanishes_untold),
		WORLD_TEST(test_parents_that_vanish_untold),
		WORLD_TEST(test_told_in_the_wrong_order),
		WORLD_TEST(test_a_v2_directory_that_came_later),
		WORLD_TEST(test_told_after_it_vanished),
		WORLD_TEST(test_told_before_it_was_published),
		WORLD_TEST(test_what_vanished_is_remembered_for_a_while),
		WORLD_TEST(test_what_was_used_before_us_does_not_count),
		WORLD_TEST(test_found_but_never_read),
		WORLD_TEST(test_a_counter_that_went_back),
		WORLD_TEST(test_counters_of_subtrees),
		cmocka_unit_test(test_born_and_gone_between_two_ticks),
		cmocka_unit_test(test_a_parent_first_known_later),
		WORLD_TEST(test_an_id_that_is_used_again),
		WORLD_TEST(test_an_id_that_is_used_again_elsewhere),
		cmocka_unit_test(test_a_thousand),
		WORLD_TEST(test_unknown_parents_are_bounded),
		WORLD_TEST(test_what_is_too_old_is_dropped),
		WORLD_TEST(test_removed_throttling_counts),
		WORLD_TEST(test_throttling_without_a_baseline),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
