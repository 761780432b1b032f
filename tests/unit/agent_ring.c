/* SPDX-License-Identifier: Apache-2.0 */
/* What the ring keeps, merges and drops; every interval below is 5 s of a node with a few units. */
#include "agent/ring.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#define STEP_NS 5000000000LL
#define SPAN_NS (15 * 60 * 1000000000LL)

enum {
	ENTRIES = 20,
	SPAN_STEPS = 180,
	REFS = 5000, /* of all entities that a test makes */
	BESIDE = 100, /* bytes that the ring needs for an entity beside it, at most */
};

/* One run: the entities live through it, as the account's do. */
struct run {
	struct ring *ring;
	struct entity *entities[ENTRIES];
	uint64_t sequence;
	int64_t now_ns;
};

static struct run run_start(size_t max_bytes)
{
	struct run run = {.ring = ring_new(max_bytes, SPAN_NS), .now_ns = 1700000000000000000};

	for (uint32_t i = 0; i < ENTRIES; i++)
		run.entities[i] = entity_new(i + 1, ENTITY_UNIT, "system.slice/some.service");
	return run;
}

static void run_end(struct run *run)
{
	ring_free(run->ring);
	for (int i = 0; i < ENTRIES; i++) {
		assert_int_equal(run->entities[i]->users, 1);
		entity_drop(run->entities[i]);
	}
}

/* An odd rate, so that sums tell the intervals apart. */
static double milli_of(uint64_t sequence, uint32_t ref)
{
	return 100 + (double)(sequence * 37 % 101) * ref;
}

static struct usage make_usage(double milli)
{
	struct usage u = {.have = USAGE_CPU, .seconds = 5, .throttled_ns = 1};
	struct moments cpu = {0};

	moments_add(&cpu, milli, 5);
	u.cpu_milli = moments_pack(&cpu);
	return u;
}

static struct interval *make_interval(struct run *run)
{
	struct interval *i = interval_new(ENTRIES);

	i->sequence = ++run->sequence;
	i->start_ns = run->now_ns;
	i->end_ns = run->now_ns += STEP_NS;
	i->node.usage = make_usage(milli_of(i->sequence, 50));
	for (uint32_t n = 0; n < ENTRIES; n++) {
		i->entries[n].ref = n + 1;
		i->entries[n].entity = entity_hold(run->entities[n]);
		i->entries[n].usage = make_usage(milli_of(i->sequence, n));
	}
	return i;
}

static void push(struct run *run, int count)
{
	while (count--)
		ring_push(run->ring, make_interval(run));
}

struct sum {
	uint64_t published, parts; /* intervals they stand for, and that there are */
	uint64_t throttled_ns;
	double total; /* millicore seconds of node and entries */
	int64_t start_ns;
};

static double total_of(const struct usage *u)
{
	return (double)u->cpu_milli.mean * (double)u->cpu_milli.weight;
}

/*
 * All that a reader gets that asks from `sequence` on; every interval must follow the one before
 * without a gap.
 */
static struct sum read_all(const struct ring *r, uint64_t sequence)
{
	struct sum s = {0};
	int64_t end_ns = 0;

	for (const struct interval *i; (i = ring_find(r, sequence)); sequence = i->sequence + 1) {
		assert_true(i->sequence >= sequence);
		assert_true(!end_ns || i->start_ns == end_ns);
		end_ns = i->end_ns;
		if (!s.parts++)
			s.start_ns = i->start_ns;
		assert_int_equal(i->end_ns - i->start_ns, i->merged * STEP_NS);
		s.published += i->merged;
		s.total += total_of(&i->node.usage);
		for (size_t n = 0; n < i->entry_count; n++) {
			s.total += total_of(&i->entries[n].usage);
			s.throttled_ns += i->entries[n].usage.throttled_ns;
		}
	}
	return s;
}

static uint64_t oldest(const struct ring *r)
{
	const struct interval *i = ring_find(r, 0);

	return i ? i->sequence : 0;
}

/* Each interval, and each entity once that any of them names. */
static size_t bytes_of(const struct ring *r)
{
	bool counted[REFS + 1] = {false};
	size_t bytes = 0;

	for (const struct interval *i = ring_find(r, 0); i; i = ring_find(r, i->sequence + 1)) {
		bytes += interval_bytes(i);
		for (size_t n = 0; n < i->entry_count; n++) {
			const struct entry *e = &i->entries[n];

			if (!counted[e->ref])
				bytes += sizeof(*e->entity) + strlen(e->entity->name) + 1;
			counted[e->ref] = true;
		}
	}
	return bytes;
}

static double want_total(uint64_t first, uint64_t last)
{
	double total = 0;

	for (uint64_t s = first; s <= last; s++) {
		total += milli_of(s, 50) * 5;
		for (uint32_t n = 0; n < ENTRIES; n++)
			total += milli_of(s, n) * 5;
	}
	return total;
}

static void assert_total(const struct sum *s, uint64_t first, uint64_t last)
{
	double want = want_total(first, last);

	assert_true(fabs(s->total - want) <= 1e-6 * want);
	assert_int_equal(s->throttled_ns, (last - first + 1) * ENTRIES);
	assert_int_equal(s->published, last - first + 1);
}

/* Budget for that many intervals of a run, and not for one more. */
static size_t room_for(size_t intervals)
{
	struct run run = run_start(SIZE_MAX);
	size_t one, entities;

	push(&run, 1);
	one = interval_bytes(ring_find(run.ring, 0));
	entities = bytes_of(run.ring) - one + (size_t)ENTRIES * BESIDE;
	assert_true(one > (size_t)ENTRIES * BESIDE);
	run_end(&run);
	return intervals * one + entities;
}

/* --- tests ------------------------------------------------------------------------------------ */

static void test_empty(void **state)
{
	struct ring *r = ring_new(1000, SPAN_NS);

	(void)state;
	assert_null(ring_find(r, 0));
	assert_null(ring_find(r, 5));
	assert_int_equal(ring_newest(r), 0);
	ring_free(r);
	ring_free(NULL);
}

static void test_find(void **state)
{
	struct run run = run_start(SIZE_MAX);

	(void)state;
	run.sequence = 10;
	push(&run, 3);
	assert_int_equal(ring_find(run.ring, 0)->sequence, 11);
	assert_int_equal(ring_find(run.ring, 11)->sequence, 11);
	assert_int_equal(ring_find(run.ring, 12)->sequence, 12);
	assert_int_equal(ring_find(run.ring, 13)->sequence, 13);
	assert_null(ring_find(run.ring, 14));
	assert_int_equal(oldest(run.ring), 11);
	assert_int_equal(ring_newest(run.ring), 13);
	run_end(&run);
}

static void test_age(void **state)
{
	struct run run = run_start(SIZE_MAX);

	(void)state;
	push(&run, SPAN_STEPS + 1); /* the oldest ended exactly the span before the newest */
	assert_int_equal(oldest(run.ring), 1);
	push(&run, 3);
	assert_int_equal(oldest(run.ring), 4);
	assert_int_equal(read_all(run.ring, 0).parts, SPAN_STEPS + 1);
	run.now_ns += 10 * SPAN_NS;
	push(&run, 1);
	assert_int_equal(oldest(run.ring), SPAN_STEPS + 5);
	assert_int_equal(read_all(run.ring, 0).published, 1);
	run_end(&run);
}

static void test_the_span_stays_covered(void **state)
{
	static const size_t budgets[] = {170, 60, 12, 9};

	(void)state;
	for (size_t n = 0; n < sizeof(budgets) / sizeof(budgets[0]); n++) {
		size_t max = room_for(budgets[n]);
		struct run run = run_start(max);
		struct sum s;

		for (int i = 0; i < 3 * SPAN_STEPS; i++) {
			push(&run, 1);
			assert_true(bytes_of(run.ring) <= max);
			s = read_all(run.ring, 0);
			/* Everything of the last 15 minutes, or since the start. */
			assert_true(run.now_ns - s.start_ns >=
				    (i < SPAN_STEPS ? (i + 1) * STEP_NS : SPAN_NS));
			assert_total(&s, run.sequence - s.published + 1, run.sequence);
			assert_int_equal(ring_newest(run.ring), run.sequence);
			assert_int_equal(ring_find(run.ring, run.sequence)->merged, 1);
		}
		/* The budget is used, and coarser where it is smaller. */
		assert_true(s.parts <= budgets[n] && s.parts >= budgets[n] / 2);
		assert_true(s.parts < s.published);
		run_end(&run);
	}
}

/* Room for eight: each digit is an interval and how many it stands for, the oldest first. */
static void test_order_of_merging(void **state)
{
	static const char *const after[] = {
		"1",	    "11",	"111",	    "1111",	"11111",    "111111",	"1111111",
		"11111111", "21111111", "22111111", "22211111", "22221111", "22222111", "22222211",
		"22222221", "22222231", "42222311", "42222321", "42222331", "44223311",
	};
	struct run run = run_start(room_for(8));

	(void)state;
	for (size_t pushed = 0; pushed < sizeof(after) / sizeof(after[0]); pushed++) {
		char got[16] = "";
		size_t n = 0;

		push(&run, 1);
		for (const struct interval *i = ring_find(run.ring, 0); i;
		     i = ring_find(run.ring, i->sequence + 1))
			got[n++] = (char)('0' + i->merged);
		assert_string_equal(got, after[pushed]);
	}
	run_end(&run);
}

/* A reader takes all there is; the last of them in flight for a while, if `late`. */
static void read_on(struct run *run, uint64_t *cursor, double *total, int late)
{
	const struct interval *i;

	while ((i = ring_find(run->ring, *cursor))) {
		uint64_t sequence = i->sequence;
		uint32_t merged = i->merged;

		*total += total_of(&i->node.usage);
		if (late) {
			/* Received, but the ack is under way: asked again it must be the same. */
			push(run, 2);
			assert_int_equal(ring_find(run->ring, *cursor)->sequence, sequence);
			assert_int_equal(ring_find(run->ring, *cursor)->merged, merged);
		}
		*cursor = sequence + 1;
		if (late)
			return;
	}
}

/*
 * One keeps up, one falls behind and catches up, one gets every ack late; the ring has room for
 * twelve.
 */
static void test_nothing_is_counted_twice(void **state)
{
	struct run run = run_start(room_for(12));
	uint64_t cursors[3] = {1, 1, 1};
	double got[3] = {0};
	struct sum s;

	(void)state;
	for (int i = 0; i < 2000; i++) {
		push(&run, 1);
		ring_set_cursors(run.ring, cursors, 3);
		for (int k = 0; k < 3; k++) {
			if (k && i % (k == 1 ? 31 : 7))
				continue;
			read_on(&run, &cursors[k], &got[k], k == 2);
			ring_set_cursors(run.ring, cursors, 3);
		}
	}
	for (int k = 0; k < 3; k++) {
		double want = 0;

		for (uint64_t q = 1; q < cursors[k]; q++)
			want += milli_of(q, 50) * 5;
		assert_true(fabs(got[k] - want) <= 1e-6 * want);
		assert_true(cursors[k] > 1000);
	}
	s = read_all(run.ring, 0);
	assert_true(s.published > s.parts + 100);
	run_end(&run);
}

/* Readers stand everywhere: no two may be joined, so the oldest must go. */
static void test_no_room_and_nothing_to_merge(void **state)
{
	struct run run = run_start(room_for(6));
	uint64_t cursors[200];
	struct sum s;

	(void)state;
	for (uint64_t i = 0; i < 200; i++)
		cursors[i] = i + 1;
	ring_set_cursors(run.ring, cursors, 200);
	push(&run, 100);
	s = read_all(run.ring, 0);
	assert_int_equal(s.parts, 6);
	assert_total(&s, 95, 100);
	ring_set_cursors(run.ring, NULL, 0);
	push(&run, 10);
	s = read_all(run.ring, 0);
	assert_int_equal(s.parts, 6);
	assert_total(&s, 95, 110);
	run_end(&run);
}

static void test_one_interval_is_always_kept(void **state)
{
	struct run run = run_start(10);
	struct sum s;

	(void)state;
	push(&run, 1);
	assert_int_equal(oldest(run.ring), 1);
	push(&run, 4);
	s = read_all(run.ring, 0);
	assert_int_equal(s.parts, 1);
	assert_total(&s, 1, 5);
	/* It does not grow for ever. */
	push(&run, SPAN_STEPS / 4 - 4);
	s = read_all(run.ring, 0);
	assert_int_equal(s.parts, 1);
	assert_int_equal(s.published, 1);
	run_end(&run);
}

/* The clock was set back: an interval cannot end before it starts. */
static void test_a_clock_set_back_is_not_merged(void **state)
{
	struct run run = run_start(10);

	(void)state;
	push(&run, 1);
	run.now_ns -= 100 * STEP_NS;
	push(&run, 1);
	assert_int_equal(oldest(run.ring), 2);
	assert_int_equal(read_all(run.ring, 0).published, 1);
	run_end(&run);
}

/* A clock that is set forward makes no interval old; the time since the boot does. */
static void test_a_clock_set_forward_drops_nothing(void **state)
{
	struct run run = run_start(RING_BYTES_DEFAULT);

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct interval *interval = make_interval(&run);

		interval->end_boot_ns = (i + 1) * STEP_NS;
		if (i == 3)
			interval->end_boot_ns = 2 * STEP_NS + SPAN_NS;
		ring_push(run.ring, interval);
		assert_int_equal(oldest(run.ring), i < 3 ? 1 : 2);
		run.now_ns += SPAN_NS;
	}
	run_end(&run);
}

/*
 * Workloads come and go: what the ring holds of them goes with the last interval that names them.
 */
static void test_entities_leave_with_their_intervals(void **state)
{
	struct ring *r = ring_new(64 * 1024, SPAN_NS);
	struct run run = {.ring = r, .now_ns = 1};

	(void)state;
	for (uint32_t n = 1; n <= REFS; n++) {
		struct interval *i = interval_new(1);

		i->sequence = n;
		i->start_ns = run.now_ns;
		i->end_ns = run.now_ns += STEP_NS;
		i->entries[0].ref = n;
		i->entries[0].entity = entity_new(n, ENTITY_UNIT, "some/where.scope");
		i->entries[0].usage = make_usage(1);
		ring_push(r, i);
		assert_true(bytes_of(r) <= 64 * 1024);
	}
	assert_true(bytes_of(r) >= 32 * 1024);
	ring_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_age),
		cmocka_unit_test(test_the_span_stays_covered),
		cmocka_unit_test(test_order_of_merging),
		cmocka_unit_test(test_nothing_is_counted_twice),
		cmocka_unit_test(test_no_room_and_nothing_to_merge),
		cmocka_unit_test(test_one_interval_is_always_kept),
		cmocka_unit_test(test_a_clock_set_back_is_not_merged),
		cmocka_unit_test(test_a_clock_set_forward_drops_nothing),
		cmocka_unit_test(test_entities_leave_with_their_intervals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
