/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Without a key anybody can connect, greet, send, and repeat the frames of others. So a place is a
 * stranger's for 10 s, and only an applied interval renews it; an interval is applied once.
 *
 *   stranger --applied--> known --applied--> known
 *      |                    |
 *      | 10 s               | 15 minutes
 *      v                    v
 *    closed               closed    either: after three unopened frames since the last applied one
 *
 *   all places      |<----------------- strangers: 3/4 ------------------>|<-- heard before: 1/4 -->|
 *   of one address  |<- strangers: 3/8 ->|    all: 3/4
 *
 * Over a bound of strangers the one that came first leaves for the next, but not in its first
 * second, unless its address has more of them than the next one's: agents that come back in
 * thousands send within a second, and would else drive each other out. An address that brought news
 * is heard; a stranger from there may have one of those places that are kept. Where all places are
 * taken, a stranger leaves, then the known one without news for longest, if that is 90 s.
 *
 * Heard addresses without a connection are remembered, as many as there are places.
 */
#include "aggregator/edge/ingest_places.h"

#include <stdlib.h>
#include <utlist.h>

#include "shared/clock.h"
#include "shared/mem.h"

#define uthash_malloc(size) mem_alloc(size)
#include <uthash.h>

#define FIRST_NS  (10 * NS_PER_SEC) /* until the first news */
#define STAY_NS	  NS_PER_SEC /* of it nobody has to leave */
#define SILENT_NS (900 * NS_PER_SEC) /* of a known one, between news */
#define ROOM_NS	  (90 * NS_PER_SEC) /* likewise, while others want its place */

enum { UNOPENED_MAX = 3 };

struct ingest_address {
	UT_hash_handle hh;
	uint64_t id;
	bool heard;
	size_t count, stranger_count;
	struct ingest_place *strangers;
	struct ingest_address *prev, *next; /* of those without a place */
};

struct ingest_places {
	size_t most, open; /* fixed; open: for strangers */
	size_t count, stranger_count;
	struct ingest_place *strangers, *known;
	struct ingest_address *addresses; /* owned: with a place, or heard */
	struct ingest_address *empty; /* of these without, who left first is first */
	size_t empty_count;
};

struct ingest_places *ingest_places_new(size_t most)
{
	struct ingest_places *p = mem_zalloc(1, sizeof(*p));

	p->most = most;
	p->open = most / 4 * 3;
	return p;
}

static void forget(struct ingest_places *p, struct ingest_address *a)
{
	HASH_DEL(p->addresses, a);
	free(a);
}

void ingest_places_free(struct ingest_places *p)
{
	struct ingest_address *a, *next;

	if (!p)
		return;
	HASH_ITER(hh, p->addresses, a, next)
	forget(p, a);
	free(p);
}

static struct ingest_address *find_address(const struct ingest_places *p, uint64_t id)
{
	struct ingest_address *a;

	HASH_FIND(hh, p->addresses, &id, sizeof(id), a);
	return a;
}

/* --- who leaves ------------------------------------------------------------------------------- */

static struct ingest_place *due_by(struct ingest_place *first, int64_t by_ns)
{
	return first && first->due_ns <= by_ns ? first : NULL;
}

static struct ingest_place *stranger_leaver(struct ingest_place *first, int64_t now_ns)
{
	return due_by(first, now_ns + FIRST_NS - STAY_NS);
}

struct ingest_place *ingest_places_leaver(const struct ingest_places *p, int64_t now_ns)
{
	struct ingest_place *stranger = stranger_leaver(p->strangers, now_ns);

	return stranger ? stranger : due_by(p->known, now_ns + SILENT_NS - ROOM_NS);
}

/* The stranger that came first, for one from an address that has so many of them. */
static struct ingest_place *first_stranger(const struct ingest_places *p, size_t has,
					   int64_t now_ns)
{
	struct ingest_place *first = p->strangers;

	if (first && first->address->stranger_count > has + 1)
		return first;
	return stranger_leaver(first, now_ns);
}

bool ingest_places_admit(const struct ingest_places *p, uint64_t address, int64_t now_ns,
			 struct ingest_place **leaves)
{
	const struct ingest_address *a = find_address(p, address);
	bool strangers_full = p->stranger_count >= p->open && !(a && a->heard);

	*leaves = NULL;
	if (a && (a->stranger_count >= p->open / 2 || a->count >= p->open)) {
		*leaves = stranger_leaver(a->strangers, now_ns);
		return *leaves;
	}
	if (p->count < p->most && !strangers_full)
		return true;
	*leaves = first_stranger(p, a ? a->stranger_count : 0, now_ns);
	if (!*leaves && !strangers_full)
		*leaves = ingest_places_leaver(p, now_ns);
	return *leaves;
}

struct ingest_place *ingest_places_late(const struct ingest_places *p, int64_t now_ns)
{
	struct ingest_place *stranger = due_by(p->strangers, now_ns);

	return stranger ? stranger : due_by(p->known, now_ns);
}

int64_t ingest_places_due_ns(const struct ingest_places *p)
{
	int64_t stranger_ns = p->strangers ? p->strangers->due_ns : 0;

	if (!p->known || (stranger_ns && stranger_ns < p->known->due_ns))
		return stranger_ns;
	return p->known->due_ns;
}

/* --- coming and going ------------------------------------------------------------------------- */

static void enter_strangers(struct ingest_places *p, struct ingest_place *place, int64_t now_ns)
{
	place->due_ns = now_ns + FIRST_NS;
	p->stranger_count++;
	place->address->stranger_count++;
	DL_APPEND(p->strangers, place);
	DL_APPEND2(place->address->strangers, place, near_prev, near_next);
}

static void leave_lists(struct ingest_places *p, struct ingest_place *place)
{
	if (place->known) {
		DL_DELETE(p->known, place);
		return;
	}
	p->stranger_count--;
	place->address->stranger_count--;
	DL_DELETE(p->strangers, place);
	DL_DELETE2(place->address->strangers, place, near_prev, near_next);
}

static struct ingest_address *take_address(struct ingest_places *p, uint64_t id)
{
	struct ingest_address *a = find_address(p, id);

	if (!a) {
		a = mem_zalloc(1, sizeof(*a));
		a->id = id;
		HASH_ADD(hh, p->addresses, id, sizeof(id), a);
	} else if (!a->count) {
		DL_DELETE(p->empty, a);
		p->empty_count--;
	}
	a->count++;
	return a;
}

static void give_address(struct ingest_places *p, struct ingest_address *a)
{
	struct ingest_address *first;

	if (--a->count)
		return;
	if (!a->heard) {
		forget(p, a);
		return;
	}
	DL_APPEND(p->empty, a);
	if (++p->empty_count <= p->most)
		return;
	first = p->empty;
	DL_DELETE(p->empty, first);
	p->empty_count--;
	forget(p, first);
}

void ingest_places_add(struct ingest_places *p, struct ingest_place *place, uint64_t address,
		       int64_t now_ns)
{
	*place = (struct ingest_place){.address = take_address(p, address)};
	p->count++;
	enter_strangers(p, place, now_ns);
}

void ingest_places_remove(struct ingest_places *p, struct ingest_place *place)
{
	leave_lists(p, place);
	p->count--;
	give_address(p, place->address);
}

void ingest_places_vouch(struct ingest_places *p, struct ingest_place *place, int64_t now_ns)
{
	leave_lists(p, place);
	place->known = true;
	place->unopened = 0;
	place->address->heard = true;
	place->due_ns = now_ns + SILENT_NS;
	DL_APPEND(p->known, place);
}

bool ingest_places_doubt(struct ingest_place *place)
{
	return ++place->unopened >= UNOPENED_MAX;
}

bool ingest_places_defer(struct ingest_places *p, struct ingest_place *place, int64_t now_ns)
{
	if (place->known || place->deferred)
		return false;
	place->deferred = true;
	leave_lists(p, place);
	enter_strangers(p, place, now_ns);
	return true;
}
