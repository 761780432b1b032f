/* SPDX-License-Identifier: Apache-2.0 */
/* Which connections stay, under a clock of the test: crowds of unverified ones, and agents among them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "aggregator/edge/ingest_slots.h"
#include "shared/clock.h"

enum { MOST = 64, OPEN = 48, NEAR = 24 }; /* OPEN of them unverified, NEAR of one address */

#define SECOND NS_PER_SEC

struct scene {
	struct ingest_slots *slots;
	struct ingest_slot of[2 * MOST];
	size_t count;
	int64_t now_ns;
};

static int setup(void **state)
{
	static struct scene s;

	s = (struct scene){.slots = ingest_slots_new(MOST), .now_ns = 1000 * SECOND};
	*state = &s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;
	struct ingest_slot *late;

	while ((late = ingest_slots_expired(s->slots, INT64_MAX)))
		ingest_slots_remove(s->slots, late);
	ingest_slots_free(s->slots);
	return 0;
}

/* NULL: refused. The victim is removed. */
static struct ingest_slot *come(struct scene *s, uint64_t address)
{
	struct ingest_slot *slot = &s->of[s->count], *victim;

	if (!ingest_slots_admit(s->slots, address, s->now_ns, &victim)) {
		assert_null(victim);
		return NULL;
	}
	if (victim)
		ingest_slots_remove(s->slots, victim);
	s->count++;
	assert_true(s->count <= sizeof(s->of) / sizeof(s->of[0]));
	ingest_slots_add(s->slots, slot, address, s->now_ns);
	return slot;
}

static struct ingest_slot *come_verified(struct scene *s, uint64_t address)
{
	struct ingest_slot *slot = come(s, address);

	assert_non_null(slot);
	ingest_slots_verify(s->slots, slot, s->now_ns);
	return slot;
}

static struct ingest_slot *late(const struct scene *s)
{
	return ingest_slots_expired(s->slots, s->now_ns);
}

static void unverified_have_ten_seconds(void **state)
{
	struct scene *s = *state;
	struct ingest_slot *first = come(s, 1), *second;

	assert_true(ingest_slots_due_ns(s->slots) == s->now_ns + 10 * SECOND);
	s->now_ns += SECOND;
	second = come(s, 2);
	s->now_ns += 9 * SECOND - 1;
	assert_null(late(s));
	s->now_ns++;
	assert_ptr_equal(late(s), first);
	assert_true(ingest_slots_defer(s->slots, first, s->now_ns));
	assert_null(late(s));
	s->now_ns += SECOND;
	assert_ptr_equal(late(s), second);
	ingest_slots_remove(s->slots, second);
	s->now_ns += 9 * SECOND;
	assert_ptr_equal(late(s), first);
	assert_false(ingest_slots_defer(s->slots, first, s->now_ns));
}

static void news_renew(void **state)
{
	struct scene *s = *state;
	struct ingest_slot *slot = come_verified(s, 1);

	for (int i = 0; i < 3; i++) {
		s->now_ns += 899 * SECOND;
		assert_null(late(s));
		ingest_slots_verify(s->slots, slot, s->now_ns);
	}
	for (int i = 0; i < 2; i++)
		assert_false(ingest_slots_note_unopened(slot));
	s->now_ns += 900 * SECOND;
	assert_ptr_equal(late(s), slot);
	assert_false(ingest_slots_defer(s->slots, slot, s->now_ns));
	assert_true(ingest_slots_note_unopened(slot));
}

/* The oldest unverified connection of an address is evicted for the next, after its first second. */
static void one_address_has_some(void **state)
{
	struct scene *s = *state;
	struct ingest_slot *first = come(s, 1), *victim;

	for (int i = 1; i < NEAR; i++)
		assert_non_null(come(s, 1));
	assert_null(come(s, 1));
	assert_non_null(come(s, 2));
	s->now_ns += SECOND - 1;
	assert_null(come(s, 1));
	s->now_ns++;
	assert_true(ingest_slots_admit(s->slots, 1, s->now_ns, &victim));
	assert_ptr_equal(victim, first);
}

/* Nor has it all, when frames of all its connections open. */
static void one_address_leaves_some(void **state)
{
	struct scene *s = *state;

	for (int i = 0; i < OPEN; i++)
		come_verified(s, 1);
	s->now_ns += 800 * SECOND;
	assert_null(come(s, 1));
	assert_non_null(come(s, 2));
}

/* Unverified connections from many addresses; agents of verified addresses return. */
static void verified_addresses_have_slots(void **state)
{
	struct scene *s = *state;

	ingest_slots_remove(s->slots, come_verified(s, 1));
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
static void crowds_of_an_address_are_evicted_for_others(void **state)
{
	struct scene *s = *state;
	struct ingest_slot *first = come(s, 1), *victim;
	int count = 0;

	for (int i = 1; i < OPEN; i++)
		assert_non_null(come(s, (uint64_t)i % 3));
	assert_true(ingest_slots_admit(s->slots, 3, s->now_ns, &victim));
	assert_ptr_equal(victim, first);
	while (come(s, 3))
		count++;
	assert_in_range(count, OPEN / 4 - 1, OPEN / 4 + 1); /* as many as each of the others */
}

/* Verified connections are evicted if there is no unverified one, and if they are silent. */
static void verified_connections_are_evicted_last(void **state)
{
	struct scene *s = *state;
	struct ingest_slot *first, *unverified;

	first = come_verified(s, 1000);
	for (uint64_t i = 1; i < MOST - 1; i++)
		come_verified(s, i);
	unverified = come(s, 2000);
	assert_null(come(s, 2001));
	s->now_ns += SECOND;
	assert_ptr_equal(ingest_slots_victim(s->slots, s->now_ns), unverified);
	ingest_slots_verify(s->slots, unverified, s->now_ns);
	assert_null(come(s, 2001));
	s->now_ns += 89 * SECOND;
	assert_ptr_equal(ingest_slots_victim(s->slots, s->now_ns), first);
	assert_non_null(come(s, 2001));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(unverified_have_ten_seconds),
		TEST(news_renew),
		TEST(one_address_has_some),
		TEST(one_address_leaves_some),
		TEST(verified_addresses_have_slots),
		TEST(crowds_of_an_address_are_evicted_for_others),
		TEST(verified_connections_are_evicted_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
