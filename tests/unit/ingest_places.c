/* SPDX-License-Identifier: Apache-2.0 */
/* Who may stay, by a clock that the test moves: strangers in crowds, and agents among them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "aggregator/edge/ingest_places.h"
#include "shared/clock.h"

enum { MOST = 64, OPEN = 48, NEAR = 24 }; /* of those OPEN may be strangers, of one address NEAR */

#define SECOND NS_PER_SEC

struct scene {
	struct ingest_places *places;
	struct ingest_place of[2 * MOST];
	size_t count;
	int64_t now_ns;
};

static int setup(void **state)
{
	static struct scene s;

	s = (struct scene){.places = ingest_places_new(MOST), .now_ns = 1000 * SECOND};
	*state = &s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;
	struct ingest_place *late;

	while ((late = ingest_places_late(s->places, INT64_MAX)))
		ingest_places_remove(s->places, late);
	ingest_places_free(s->places);
	return 0;
}

/* NULL: it is refused. Who has to leave for it does. */
static struct ingest_place *come(struct scene *s, uint64_t address)
{
	struct ingest_place *place = &s->of[s->count], *leaves;

	if (!ingest_places_admit(s->places, address, s->now_ns, &leaves)) {
		assert_null(leaves);
		return NULL;
	}
	if (leaves)
		ingest_places_remove(s->places, leaves);
	s->count++;
	assert_true(s->count <= sizeof(s->of) / sizeof(s->of[0]));
	ingest_places_add(s->places, place, address, s->now_ns);
	return place;
}

static struct ingest_place *come_known(struct scene *s, uint64_t address)
{
	struct ingest_place *place = come(s, address);

	assert_non_null(place);
	ingest_places_vouch(s->places, place, s->now_ns);
	return place;
}

static struct ingest_place *late(const struct scene *s)
{
	return ingest_places_late(s->places, s->now_ns);
}

static void strangers_have_ten_seconds(void **state)
{
	struct scene *s = *state;
	struct ingest_place *first = come(s, 1), *second;

	assert_true(ingest_places_due_ns(s->places) == s->now_ns + 10 * SECOND);
	s->now_ns += SECOND;
	second = come(s, 2);
	s->now_ns += 9 * SECOND - 1;
	assert_null(late(s));
	s->now_ns++;
	assert_ptr_equal(late(s), first);
	assert_true(ingest_places_defer(s->places, first, s->now_ns));
	assert_null(late(s));
	s->now_ns += SECOND;
	assert_ptr_equal(late(s), second);
	ingest_places_remove(s->places, second);
	s->now_ns += 9 * SECOND;
	assert_ptr_equal(late(s), first);
	assert_false(ingest_places_defer(s->places, first, s->now_ns));
}

static void news_renew(void **state)
{
	struct scene *s = *state;
	struct ingest_place *place = come_known(s, 1);

	for (int i = 0; i < 3; i++) {
		s->now_ns += 899 * SECOND;
		assert_null(late(s));
		ingest_places_vouch(s->places, place, s->now_ns);
	}
	for (int i = 0; i < 2; i++)
		assert_false(ingest_places_doubt(place));
	s->now_ns += 900 * SECOND;
	assert_ptr_equal(late(s), place);
	assert_false(ingest_places_defer(s->places, place, s->now_ns));
	assert_true(ingest_places_doubt(place));
}

/* Of its strangers the first leaves for the next one, but none in its first second. */
static void one_address_has_some(void **state)
{
	struct scene *s = *state;
	struct ingest_place *first = come(s, 1), *leaves;

	for (int i = 1; i < NEAR; i++)
		assert_non_null(come(s, 1));
	assert_null(come(s, 1));
	assert_non_null(come(s, 2));
	s->now_ns += SECOND - 1;
	assert_null(come(s, 1));
	s->now_ns++;
	assert_true(ingest_places_admit(s->places, 1, s->now_ns, &leaves));
	assert_ptr_equal(leaves, first);
}

/* Nor has it all, when frames of all its connections open. */
static void one_address_leaves_some(void **state)
{
	struct scene *s = *state;

	for (int i = 0; i < OPEN; i++)
		come_known(s, 1);
	s->now_ns += 800 * SECOND;
	assert_null(come(s, 1));
	assert_non_null(come(s, 2));
}

/* Strangers from everywhere, again and again; agents that were heard before come back. */
static void heard_addresses_have_places(void **state)
{
	struct scene *s = *state;

	ingest_places_remove(s->places, come_known(s, 1));
	for (uint64_t i = 0; i < OPEN; i++)
		assert_non_null(come(s, 100 + i));
	assert_null(come(s, 2));
	for (int i = 0; i < MOST - OPEN; i++)
		assert_non_null(come(s, 1));
	assert_null(come(s, 1)); /* these are all */
	/* Who comes new waits for a second at most. */
	s->now_ns += SECOND;
	assert_non_null(come(s, 2));
}

/* Nor does anybody wait for those who have more than it. */
static void crowds_of_an_address_leave_for_others(void **state)
{
	struct scene *s = *state;
	struct ingest_place *first = come(s, 1), *leaves;
	int count = 0;

	for (int i = 1; i < OPEN; i++)
		assert_non_null(come(s, (uint64_t)i % 3));
	assert_true(ingest_places_admit(s->places, 3, s->now_ns, &leaves));
	assert_ptr_equal(leaves, first);
	while (come(s, 3))
		count++;
	assert_in_range(count, OPEN / 4 - 1, OPEN / 4 + 1); /* as many as each of the others */
}

/* Known ones leave only for want of strangers, and if they were silent for long. */
static void known_ones_leave_last(void **state)
{
	struct scene *s = *state;
	struct ingest_place *first, *stranger;

	first = come_known(s, 1000);
	for (uint64_t i = 1; i < MOST - 1; i++)
		come_known(s, i);
	stranger = come(s, 2000);
	assert_null(come(s, 2001));
	s->now_ns += SECOND;
	assert_ptr_equal(ingest_places_leaver(s->places, s->now_ns), stranger);
	ingest_places_vouch(s->places, stranger, s->now_ns);
	assert_null(come(s, 2001));
	s->now_ns += 89 * SECOND;
	assert_ptr_equal(ingest_places_leaver(s->places, s->now_ns), first);
	assert_non_null(come(s, 2001));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(strangers_have_ten_seconds),  TEST(news_renew),
		TEST(one_address_has_some),	   TEST(one_address_leaves_some),
		TEST(heard_addresses_have_places), TEST(crowds_of_an_address_leave_for_others),
		TEST(known_ones_leave_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
