/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Anybody can connect, send a hello, and repeat recorded frames without a key. A connection is
 * unverified until the aggregator applies an interval from it; an interval is applied once.
 *
 *   unverified --applied--> verified --applied--> verified
 *      |                       |
 *      | 10 s                  | 15 minutes
 *      v                       v
 *    closed                  closed     also after three unopened frames since the last applied one
 *
 *   all slots       |<----------------- unverified: 3/4 ----------->|<- verified addresses: 1/4 ->|
 *   of one address  |<- unverified: 3/8 ->|    all: 3/4
 *
 * Over a bound of unverified connections the oldest of them is evicted, after its first second, or
 * at once if its address has more of them than the new one's: thousands of agents that reconnect
 * send within a second, and must not evict each other. The reserved quarter is for addresses from
 * which an interval was applied. If all slots are taken, an unverified connection is evicted, then
 * the verified one that is silent for longest, after 90 s.
 *
 * Verified addresses without a connection are remembered, as many as there are slots.
 */
#include "aggregator/edge/ingest_slots.h"

#include <stdlib.h>
#include <utlist.h>

#include "shared/clock.h"
#include "shared/hash.h"
#include "shared/mem.h"

#define FIRST_NS  (10 * NS_PER_SEC) /* until the first applied interval */
#define STAY_NS	  NS_PER_SEC /* of it without eviction */
#define SILENT_NS (900 * NS_PER_SEC) /* of a verified one, between applied intervals */
#define ROOM_NS	  (90 * NS_PER_SEC) /* likewise, while others need its slot */

enum { UNOPENED_MAX = 3 };

struct ingest_address {
	UT_hash_handle hh;
	uint64_t id;
	bool verified;
	size_t count, unverified_count;
	struct ingest_slot *unverified;
	struct ingest_address *prev, *next; /* of addresses without a slot */
};

struct ingest_slots {
	size_t most, open; /* fixed; open: for unverified connections */
	size_t count, unverified_count;
	struct ingest_slot *unverified, *verified;
	struct ingest_address *addresses; /* owned: with a slot, or verified */
	struct ingest_address *empty; /* of these without a slot, oldest first */
	size_t empty_count;
};

struct ingest_slots *ingest_slots_new(size_t most)
{
	struct ingest_slots *p = mem_zalloc(1, sizeof(*p));

	p->most = most;
	p->open = most / 4 * 3;
	return p;
}

static void forget(struct ingest_slots *p, struct ingest_address *a)
{
	HASH_DEL(p->addresses, a);
	free(a);
}

void ingest_slots_free(struct ingest_slots *p)
{
	struct ingest_address *a, *next;

	if (!p)
		return;
	HASH_ITER(hh, p->addresses, a, next)
	forget(p, a);
	free(p);
}

static struct ingest_address *find_address(const struct ingest_slots *p, uint64_t id)
{
	struct ingest_address *a;

	HASH_FIND(hh, p->addresses, &id, sizeof(id), a);
	return a;
}

/* --- eviction --------------------------------------------------------------------------------- */

static struct ingest_slot *due_by(struct ingest_slot *first, int64_t by_ns)
{
	return first && first->due_ns <= by_ns ? first : NULL;
}

static struct ingest_slot *unverified_victim(struct ingest_slot *first, int64_t now_ns)
{
	return due_by(first, now_ns + FIRST_NS - STAY_NS);
}

struct ingest_slot *ingest_slots_victim(const struct ingest_slots *p, int64_t now_ns)
{
	struct ingest_slot *unverified = unverified_victim(p->unverified, now_ns);

	return unverified ? unverified : due_by(p->verified, now_ns + SILENT_NS - ROOM_NS);
}

/* The oldest unverified connection, for a new one of an address that has `has` of them. */
static struct ingest_slot *first_unverified(const struct ingest_slots *p, size_t has,
					    int64_t now_ns)
{
	struct ingest_slot *first = p->unverified;

	if (first && first->address->unverified_count > has + 1)
		return first;
	return unverified_victim(first, now_ns);
}

bool ingest_slots_admit(const struct ingest_slots *p, uint64_t address, int64_t now_ns,
			struct ingest_slot **victim)
{
	const struct ingest_address *a = find_address(p, address);
	bool unverified_full = p->unverified_count >= p->open && !(a && a->verified);

	*victim = NULL;
	if (a && (a->unverified_count >= p->open / 2 || a->count >= p->open)) {
		*victim = unverified_victim(a->unverified, now_ns);
		return *victim;
	}
	if (p->count < p->most && !unverified_full)
		return true;
	*victim = first_unverified(p, a ? a->unverified_count : 0, now_ns);
	if (!*victim && !unverified_full)
		*victim = ingest_slots_victim(p, now_ns);
	return *victim;
}

struct ingest_slot *ingest_slots_expired(const struct ingest_slots *p, int64_t now_ns)
{
	struct ingest_slot *unverified = due_by(p->unverified, now_ns);

	return unverified ? unverified : due_by(p->verified, now_ns);
}

int64_t ingest_slots_due_ns(const struct ingest_slots *p)
{
	int64_t unverified_ns = p->unverified ? p->unverified->due_ns : 0;

	if (!p->verified || (unverified_ns && unverified_ns < p->verified->due_ns))
		return unverified_ns;
	return p->verified->due_ns;
}

/* --- slots ------------------------------------------------------------------------------------ */

static void enter_unverified(struct ingest_slots *p, struct ingest_slot *slot, int64_t now_ns)
{
	slot->due_ns = now_ns + FIRST_NS;
	p->unverified_count++;
	slot->address->unverified_count++;
	DL_APPEND(p->unverified, slot);
	DL_APPEND2(slot->address->unverified, slot, near_prev, near_next);
}

static void leave_lists(struct ingest_slots *p, struct ingest_slot *slot)
{
	if (slot->verified) {
		DL_DELETE(p->verified, slot);
		return;
	}
	p->unverified_count--;
	slot->address->unverified_count--;
	DL_DELETE(p->unverified, slot);
	DL_DELETE2(slot->address->unverified, slot, near_prev, near_next);
}

static struct ingest_address *take_address(struct ingest_slots *p, uint64_t id)
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

static void give_address(struct ingest_slots *p, struct ingest_address *a)
{
	struct ingest_address *first;

	if (--a->count)
		return;
	if (!a->verified) {
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

void ingest_slots_add(struct ingest_slots *p, struct ingest_slot *slot, uint64_t address,
		      int64_t now_ns)
{
	*slot = (struct ingest_slot){.address = take_address(p, address)};
	p->count++;
	enter_unverified(p, slot, now_ns);
}

void ingest_slots_remove(struct ingest_slots *p, struct ingest_slot *slot)
{
	leave_lists(p, slot);
	p->count--;
	give_address(p, slot->address);
}

void ingest_slots_verify(struct ingest_slots *p, struct ingest_slot *slot, int64_t now_ns)
{
	leave_lists(p, slot);
	slot->verified = true;
	slot->unopened = 0;
	slot->address->verified = true;
	slot->due_ns = now_ns + SILENT_NS;
	DL_APPEND(p->verified, slot);
}

bool ingest_slots_note_unopened(struct ingest_slot *slot)
{
	return ++slot->unopened >= UNOPENED_MAX;
}

bool ingest_slots_defer(struct ingest_slots *p, struct ingest_slot *slot, int64_t now_ns)
{
	if (slot->verified || slot->deferred)
		return false;
	slot->deferred = true;
	leave_lists(p, slot);
	enter_unverified(p, slot, now_ns);
	return true;
}
