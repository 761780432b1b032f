/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reservation is in a hash by uid, in an array sorted for readers, and in one of two lists: those
 * that may expire, soonest first, and bound ones, by the generation that shows them. Readers see
 * records, which are immutable: a change puts a new one in place.
 *
 *     hash by uid --> reservation --> record <-- sorted --(copied)--> copy <-- readers
 *                          |             |
 *     expiring, bound  <---+             +--> life: the generation that has the pod on its node
 *
 * A copy is an array of held records, made when one is asked for and there is none as of the last
 * change. So readers wait at most for pointers being copied, and never for each other.
 *
 * A pod is neither lost nor counted twice. A reader takes a copy first and the view after it.
 * Meanwhile a pod may be bound and a view that shows it may be published. The copy has it, so it is
 * not lost. All records of a reservation share a life: the loop writes the generation into it
 * before it publishes that view, and a reader that took the view sees it and skips the reservation.
 *
 * A clock that is set back must not keep reservations for hours: an entry that seems to live longer
 * than twice the TTL has expired. (Once the TTL is not enough: threads may arrive in another order
 * than they read the clock.)
 *
 * Memory that a change replaces is freed after unlocking. Many expired reservations go in parts,
 * with the lock free in between. Only the bounds can fail.
 */
#include "aggregator/state/reservations.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/state/reservations_internal.h"
#include "shared/arith.h"
#include "shared/array.h"
#include "shared/mem.h"
#include "shared/refs.h"

#include <utlist.h>

/* How many go under one hold of the lock; the others wait for the next one. */
enum { GO_AT_ONCE = 1024 };

/* Memory that a change replaced, to be freed outside the lock. */
struct garbage {
	struct reservations_copy *copy;
	struct record *record;
	struct tracked_reservation *reservations; /* by next */
};

const char *reservations_state_name(enum reservations_state state)
{
	static const char *const names[RESERVATIONS_STATES] = {
		[RESERVATIONS_ASKED] = "asked",
		[RESERVATIONS_CHARGED] = "charged",
		[RESERVATIONS_BOUND] = "bound",
	};

	return names[state];
}

/* --- records and copies ----------------------------------------------------------------------- */

static struct life *life_new(const char *uid)
{
	size_t len = strlen(uid);
	struct life *life = mem_alloc(sizeof(*life) + len + 1);

	atomic_init(&life->users, 1);
	atomic_init(&life->generation, 0);
	memcpy(life->uid, uid, len + 1);
	return life;
}

/* Takes over one hold of the life. */
static struct record *record_new(const struct reservation *from, struct life *life)
{
	struct record *r = mem_alloc(sizeof(*r) + strlen(from->namespace) + strlen(from->name) +
				     strlen(from->node) + strlen(from->claim) + 4);
	char *room = (char *)(r + 1);

	r->entry = *from;
	r->entry.uid = life->uid;
	r->entry.namespace = mem_put_text(&room, from->namespace);
	r->entry.name = mem_put_text(&room, from->name);
	r->entry.node = mem_put_text(&room, from->node);
	r->entry.claim = mem_put_text(&room, from->claim);
	resources_copy(&r->entry.requests, &from->requests);
	atomic_init(&r->users, 1);
	r->life = life;
	return r;
}

static void record_drop(struct record *r)
{
	if (!r || !refs_drop(&r->users))
		return;
	resources_fini(&r->entry.requests);
	if (refs_drop(&r->life->users))
		free(r->life);
	free(r);
}

/* All entries there are were made by record_new(). */
static struct record *record_of(const struct reservation *e)
{
	return (struct record *)e; /* entry is its first member */
}

static struct reservations_copy *copy_make(struct reservations *set)
{
	struct copy *c = mem_alloc(sizeof(*c) + set->count * sizeof(struct reservation *));

	for (size_t i = 0; i < set->count; i++) {
		struct record *r = set->sorted[i]->record;

		refs_hold(&r->users);
		c->of[i] = &r->entry;
	}
	c->head = (struct reservations_copy){set->count, c->of, set->version};
	atomic_init(&c->users, 1);
	return &c->head;
}

struct reservations_copy *reservations_copy_hold(struct reservations_copy *head)
{
	refs_hold(&((struct copy *)head)->users);
	return head;
}

void reservations_copy_drop(struct reservations_copy *head)
{
	struct copy *c = (struct copy *)head;

	if (!c || !refs_drop(&c->users))
		return;
	for (size_t i = 0; i < c->head.count; i++)
		record_drop(record_of(c->of[i]));
	free(c);
}

bool reservations_counts(const struct reservation *e, uint64_t generation)
{
	uint64_t shown =
		atomic_load_explicit(&record_of(e)->life->generation, memory_order_acquire);

	return shown == 0 || shown > generation;
}

/* By names; both are pointers to a pointer to a reservation. */
static int compare_names(const void *a, const void *b)
{
	const struct reservation *left = *(const struct reservation *const *)a;
	const struct reservation *right = *(const struct reservation *const *)b;

	return strcmp(left->namespace, right->namespace) ?: strcmp(left->name, right->name);
}

const struct reservation *reservations_copy_find(const struct reservations_copy *c,
						 const char *namespace, const char *name,
						 const char *uid, uint64_t generation)
{
	const struct reservation asked = {.namespace = namespace, .name = name}, *key = &asked;
	size_t at = array_lower_bound(&key, c->of, c->count, sizeof(void *), compare_names);

	for (; at < c->count && compare_names(&key, &c->of[at]) == 0; at++)
		if ((!*uid || strcmp(c->of[at]->uid, uid) == 0) &&
		    reservations_counts(c->of[at], generation))
			return c->of[at];
	return NULL;
}

/* --- the lock --------------------------------------------------------------------------------- */

/* Frees what is left over, too. */
static void unlock(struct reservations *set, struct garbage *g)
{
	struct tracked_reservation *r, *next;

	pthread_mutex_unlock(&set->lock);
	reservations_copy_drop(g->copy);
	record_drop(g->record);
	for (r = g->reservations; r; r = next) {
		next = r->next;
		record_drop(r->record);
		free(r);
	}
}

struct reservations *reservations_new(void)
{
	struct reservations *set = mem_zalloc(1, sizeof(*set));

	pthread_mutex_init(&set->lock, NULL);
	return set;
}

/* --- the array of readers: under lock --------------------------------------------------------- */

int reservations_compare(const struct reservation *a, const struct reservation *b)
{
	return strcmp(a->namespace, b->namespace) ?: strcmp(a->name, b->name) ?: strcmp(a->uid, b->uid);
}

static int compare_tracked(const void *entry, const void *tracked)
{
	return reservations_compare(
		entry, &(*(struct tracked_reservation *const *)tracked)->record->entry);
}

/* The place of the entry, or where it belongs. */
static size_t sorted_place(const struct reservations *set, const struct reservation *e)
{
	return array_lower_bound(e, set->sorted, set->count, sizeof(struct tracked_reservation *),
				 compare_tracked);
}

static void sorted_insert(struct reservations *set, struct tracked_reservation *r)
{
	size_t at = sorted_place(set, &r->record->entry);

	set->sorted = array_grow(set->sorted, set->count, sizeof(struct tracked_reservation *));
	memmove(&set->sorted[at + 1], &set->sorted[at],
		(set->count - at) * sizeof(struct tracked_reservation *));
	set->sorted[at] = r;
	set->count++;
}

static void sorted_remove(struct reservations *set, const struct tracked_reservation *r)
{
	size_t at = sorted_place(set, &r->record->entry);

	assert(at < set->count && set->sorted[at] == r);
	set->count--;
	memmove(&set->sorted[at], &set->sorted[at + 1],
		(set->count - at) * sizeof(struct tracked_reservation *));
}

/* All that are gone at once, or a thousand that go together would each move the rest. */
static void sorted_sweep(struct reservations *set)
{
	size_t kept = 0;

	for (size_t i = 0; i < set->count; i++)
		if (!set->sorted[i]->gone)
			set->sorted[kept++] = set->sorted[i];
	set->count = kept;
}

/* --- the lists of states: under lock ---------------------------------------------------------- */

static void list_enter(struct reservations *set, struct tracked_reservation *r)
{
	const struct reservation *e = &r->record->entry;
	struct tracked_reservation *after = set->expiring ? set->expiring->prev : NULL;

	set->counters.entries[e->state]++;
	if (e->state == RESERVATIONS_BOUND) {
		DL_APPEND(set->bound, r);
		return;
	}
	/* Nearly always the last one. */
	while (after && after->record->entry.expires_ns > e->expires_ns)
		after = after == set->expiring ? NULL : after->prev;
	if (after)
		DL_APPEND_ELEM(set->expiring, after, r);
	else
		DL_PREPEND(set->expiring, r);
}

static void list_leave(struct reservations *set, struct tracked_reservation *r)
{
	enum reservations_state state = r->record->entry.state;

	set->counters.entries[state]--;
	if (state == RESERVATIONS_BOUND)
		DL_DELETE(set->bound, r);
	else
		DL_DELETE(set->expiring, r);
}

/* --- reservations: under lock ----------------------------------------------------------------- */

struct tracked_reservation *reservations_find(const struct reservations *set, const char *uid)
{
	struct tracked_reservation *r;

	HASH_FIND(hh, set->by_uid, uid, strlen(uid), r);
	return r;
}

static void changed(struct reservations *set, struct garbage *g)
{
	if (!set->copy)
		return;
	assert(!g->copy);
	g->copy = set->copy;
	set->copy = NULL;
}

/* Out of all but the array. */
static void take_out(struct reservations *set, struct tracked_reservation *r, struct garbage *g)
{
	changed(set, g);
	list_leave(set, r);
	/* It is in the hash, which so is not empty. */
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
	HASH_DEL(set->by_uid, r);
	r->gone = true;
	r->next = g->reservations;
	g->reservations = r;
}

static void forget(struct reservations *set, struct tracked_reservation *r, struct garbage *g)
{
	sorted_remove(set, r);
	take_out(set, r, g);
}

/* Gives it another record, of the same life. */
static void replace(struct reservations *set, struct tracked_reservation *r,
		    const struct reservation *entry, struct garbage *g)
{
	struct record *record = record_new(entry, r->record->life);
	bool moves = reservations_compare(&r->record->entry, &record->entry) != 0;

	refs_hold(&r->record->life->users);
	assert(!g->record);
	changed(set, g);
	list_leave(set, r);
	if (moves)
		sorted_remove(set, r);
	g->record = r->record;
	r->record = record;
	if (moves)
		sorted_insert(set, r);
	list_enter(set, r);
}

static void add(struct reservations *set, const struct reservation *entry, struct garbage *g)
{
	struct tracked_reservation *r = mem_zalloc(1, sizeof(*r));
	struct life *life = life_new(entry->uid);

	changed(set, g);
	r->record = record_new(entry, life);
	HASH_ADD_KEYPTR(hh, set->by_uid, life->uid, strlen(life->uid), r);
	sorted_insert(set, r);
	list_enter(set, r);
	set->counters.reserved++;
}

static bool has_expired(const struct tracked_reservation *r, int64_t now_ns)
{
	int64_t left_ns;

	if (__builtin_sub_overflow(r->record->entry.expires_ns, now_ns, &left_ns))
		return true;
	return left_ns <= 0 || left_ns > 2 * RESERVATIONS_TTL_NS;
}

/* Soonest first; what a clock that was set back left far in the future is at the other end. */
static struct tracked_reservation *find_expired(const struct reservations *set, int64_t now_ns)
{
	if (set->expiring && has_expired(set->expiring, now_ns))
		return set->expiring;
	if (set->expiring && has_expired(set->expiring->prev, now_ns))
		return set->expiring->prev;
	return NULL;
}

/* False: more have expired than may go at once. */
static bool expire_some(struct reservations *set, int64_t now_ns, struct garbage *g)
{
	struct tracked_reservation *r;
	int gone = 0;

	while (gone < GO_AT_ONCE && (r = find_expired(set, now_ns)) != NULL) {
		take_out(set, r, g);
		gone++;
	}
	set->counters.expired += (uint64_t)gone;
	if (gone)
		sorted_sweep(set);
	return gone < GO_AT_ONCE;
}

/* False: a view shows more of them than may go at once. */
static bool settle_some(struct reservations *set, uint64_t generation, struct garbage *g)
{
	int gone = 0;

	while (gone < GO_AT_ONCE && set->bound &&
	       set->bound->record->entry.generation <= generation) {
		take_out(set, set->bound, g);
		gone++;
	}
	set->counters.settled += (uint64_t)gone;
	if (gone)
		sorted_sweep(set);
	return gone < GO_AT_ONCE;
}

/* Others may have the lock in between, and what is left over is freed. */
static void relock(struct reservations *set, struct garbage *g)
{
	unlock(set, g);
	*g = (struct garbage){0};
	pthread_mutex_lock(&set->lock);
}

/* The lock, when nothing is there any more that has expired. */
static void lock_fresh(struct reservations *set, int64_t now_ns, struct garbage *g)
{
	pthread_mutex_lock(&set->lock);
	while (!expire_some(set, now_ns, g))
		relock(set, g);
}

/* --- what others call ------------------------------------------------------------------------- */

static bool is_bounded(const struct reservation *e)
{
	if (strlen(e->uid) > RESERVATIONS_TEXT_MAX ||
	    strlen(e->namespace) > RESERVATIONS_TEXT_MAX ||
	    strlen(e->name) > RESERVATIONS_TEXT_MAX || strlen(e->node) > RESERVATIONS_TEXT_MAX ||
	    e->requests.extended_count > RESERVATIONS_EXTENDED_MAX)
		return false;
	for (uint32_t i = 0; i < e->requests.extended_count; i++)
		if (strlen(e->requests.extended[i].name) > 2 * RESERVATIONS_TEXT_MAX)
			return false;
	return true;
}

/* A claim outlives what a scheduler asks; without another node the pod stays on that of the claim. */
static void keep_claim(struct reservation *own, const struct reservation *before)
{
	if (*own->claim || !*before->claim)
		return;
	own->claim = before->claim;
	own->claim_ns = before->claim_ns;
	if (!*own->node) {
		own->node = own->claim;
		own->state = RESERVATIONS_CHARGED;
	}
	if (own->expires_ns < own->claim_ns)
		own->expires_ns = own->claim_ns;
}

static int reserve(struct reservations *set, struct reservation *own, const uint64_t *seen,
		   struct garbage *g)
{
	struct tracked_reservation *r = reservations_find(set, own->uid);

	if (!r && uid_set_has(&set->placed, own->uid))
		return -EALREADY;
	if (r && r->record->entry.state == RESERVATIONS_BOUND)
		return *own->claim ? -EALREADY : 0;
	if (seen && *seen != set->version)
		return -EAGAIN;
	if (!r && set->count >= RESERVATIONS_PODS_MAX) {
		set->counters.refused++;
		return -ENOSPC;
	}
	set->version += !r || !resources_equal(&r->record->entry.requests, &own->requests) ||
			(*own->claim && strcmp(r->record->entry.claim, own->claim) != 0);
	set->counters.claimed += *own->claim != '\0';
	if (r) {
		keep_claim(own, &r->record->entry);
		replace(set, r, own, g);
	} else {
		add(set, own, g);
	}
	return 0;
}

/* Of the entry, the claim and its end are set. */
static int try_to_reserve(struct reservations *set, const struct reservation *entry,
			  const uint64_t *seen, int64_t now_ns)
{
	struct reservation own = *entry;
	struct garbage g = {0};
	int rc;

	if (!*entry->uid || !is_bounded(entry))
		return -EINVAL;
	own.state = *entry->node ? RESERVATIONS_CHARGED : RESERVATIONS_ASKED;
	own.made_ns = own.changed_ns = now_ns;
	own.expires_ns =
		*entry->claim ? entry->claim_ns : add_saturating(now_ns, RESERVATIONS_TTL_NS);
	own.generation = 0;
	lock_fresh(set, now_ns, &g);
	rc = reserve(set, &own, seen, &g);
	unlock(set, &g);
	return rc;
}

static int reserve_for_scheduler(struct reservations *set, const struct reservation *entry,
				 const uint64_t *seen, int64_t now_ns)
{
	struct reservation own = *entry;

	own.claim = "";
	own.claim_ns = 0;
	return try_to_reserve(set, &own, seen, now_ns);
}

int reservations_reserve(struct reservations *set, const struct reservation *entry, int64_t now_ns)
{
	return reserve_for_scheduler(set, entry, NULL, now_ns);
}

int reservations_reserve_seen(struct reservations *set, const struct reservation *entry,
			      const struct reservations_copy *seen, int64_t now_ns)
{
	return reserve_for_scheduler(set, entry, &seen->version, now_ns);
}

int reservations_claim(struct reservations *set, const struct reservation *entry,
		       const struct reservations_copy *seen, int64_t now_ns)
{
	struct reservation own = *entry;

	if (!*entry->node)
		return -EINVAL;
	own.claim = entry->node;
	own.claim_ns = add_saturating(now_ns, RESERVATIONS_CLAIM_NS);
	return try_to_reserve(set, &own, seen ? &seen->version : NULL, now_ns);
}

int reservations_charge(struct reservations *set, const char *uid, const char *node, int64_t now_ns)
{
	struct garbage g = {0};
	struct tracked_reservation *r;
	struct reservation own;
	int rc = -ENOENT;

	if (strlen(node) > RESERVATIONS_TEXT_MAX)
		return -ENOENT;
	lock_fresh(set, now_ns, &g);
	r = reservations_find(set, uid);
	if (r && r->record->entry.state != RESERVATIONS_BOUND) {
		own = r->record->entry;
		own.state = RESERVATIONS_CHARGED;
		own.node = node;
		own.changed_ns = now_ns;
		own.expires_ns = add_saturating(now_ns, RESERVATIONS_TTL_NS);
		if (own.expires_ns < own.claim_ns)
			own.expires_ns = own.claim_ns;
		replace(set, r, &own, &g);
		set->counters.charged++;
		rc = 0;
	}
	unlock(set, &g);
	return rc;
}

bool reservations_remember(struct reservations *set, const char *uid)
{
	bool added;

	pthread_mutex_lock(&set->lock);
	added = uid_set_add(&set->placed, uid);
	pthread_mutex_unlock(&set->lock);
	return added;
}

void reservations_forget(struct reservations *set, const char *uid)
{
	pthread_mutex_lock(&set->lock);
	uid_set_remove(&set->placed, uid);
	pthread_mutex_unlock(&set->lock);
}

bool reservations_remembers(struct reservations *set, const char *uid)
{
	bool has;

	pthread_mutex_lock(&set->lock);
	has = uid_set_has(&set->placed, uid);
	pthread_mutex_unlock(&set->lock);
	return has;
}

void reservations_bind(struct reservations *set, const char *uid, const char *node,
		       uint64_t generation)
{
	struct garbage g = {0};
	struct tracked_reservation *r;
	struct reservation own;

	pthread_mutex_lock(&set->lock);
	r = reservations_find(set, uid);
	if (r && r->record->entry.state != RESERVATIONS_BOUND) {
		own = r->record->entry;
		set->counters.moved +=
			own.state == RESERVATIONS_CHARGED && strcmp(own.node, node) != 0;
		set->counters.bound++;
		own.state = RESERVATIONS_BOUND;
		own.node = node;
		own.claim = "";
		own.generation = generation;
		replace(set, r, &own, &g);
		atomic_store_explicit(&r->record->life->generation, generation,
				      memory_order_release);
	}
	unlock(set, &g);
}

/* Whether what the other aggregator knows as of that time replaces the reservation. */
static bool is_superseded(const struct tracked_reservation *r, int64_t changed_ns)
{
	return r->record->entry.state != RESERVATIONS_BOUND &&
	       r->record->entry.changed_ns <= add_saturating(changed_ns, RESERVATIONS_ORDER_NS);
}

/* changed_ns NULL: whatever its state is. */
static void release(struct reservations *set, const char *uid, const int64_t *changed_ns)
{
	struct garbage g = {0};
	struct tracked_reservation *r;

	pthread_mutex_lock(&set->lock);
	r = reservations_find(set, uid);
	if (r && (!changed_ns || is_superseded(r, *changed_ns))) {
		forget(set, r, &g);
		set->counters.released++;
	}
	unlock(set, &g);
}

void reservations_release(struct reservations *set, const char *uid)
{
	release(set, uid, NULL);
}

void reservations_unschedulable(struct reservations *set, const char *uid)
{
	struct garbage g = {0};
	struct tracked_reservation *r;
	struct reservation own;

	pthread_mutex_lock(&set->lock);
	r = reservations_find(set, uid);
	if (r && *r->record->entry.claim) {
		own = r->record->entry;
		own.state = RESERVATIONS_CHARGED;
		own.node = own.claim;
		own.expires_ns = own.claim_ns;
		replace(set, r, &own, &g);
	} else if (r && r->record->entry.state != RESERVATIONS_BOUND) {
		forget(set, r, &g);
		set->counters.unschedulable++;
	}
	unlock(set, &g);
}

/* --- another aggregator ----------------------------------------------------------------------- */

const struct reservation *reservations_hold(struct reservations *set, const char *uid)
{
	const struct tracked_reservation *r;
	struct record *record = NULL;

	pthread_mutex_lock(&set->lock);
	r = reservations_find(set, uid);
	if (r) {
		record = r->record;
		refs_hold(&record->users);
	}
	pthread_mutex_unlock(&set->lock);
	return record ? &record->entry : NULL;
}

void reservation_drop(const struct reservation *e)
{
	if (e)
		record_drop(record_of(e));
}

int reservations_adopt(struct reservations *set, const struct reservation *entry, int64_t now_ns)
{
	struct reservation own = *entry;
	const struct tracked_reservation *r;
	struct garbage g = {0};
	int rc = 0;

	if (!*entry->uid || !is_bounded(entry))
		return -EINVAL;
	own.state = *entry->node ? RESERVATIONS_CHARGED : RESERVATIONS_ASKED;
	own.made_ns = now_ns;
	own.generation = 0;
	lock_fresh(set, now_ns, &g);
	r = reservations_find(set, own.uid);
	if (!r || is_superseded(r, own.changed_ns))
		rc = reserve(set, &own, NULL, &g);
	unlock(set, &g);
	return rc == -EALREADY ? 0 : rc;
}

void reservations_disown(struct reservations *set, const char *uid, int64_t changed_ns)
{
	release(set, uid, &changed_ns);
}

void reservations_set_peer(struct reservations *set, struct reservations_peer *peer)
{
	set->peer = peer;
}

void reservations_tell(struct reservations *set, const char *uid)
{
	if (set && set->peer)
		set->peer->tell(set->peer, uid);
}

/* --- views and readers ------------------------------------------------------------------------ */

void reservations_settle(struct reservations *set, uint64_t generation, int64_t now_ns)
{
	struct garbage g = {0};

	lock_fresh(set, now_ns, &g);
	while (!settle_some(set, generation, &g))
		relock(set, &g);
	unlock(set, &g);
}

struct reservations_copy *reservations_take(struct reservations *set, int64_t now_ns)
{
	struct garbage g = {0};
	struct reservations_copy *copy;

	if (!set)
		return NULL;
	lock_fresh(set, now_ns, &g);
	if (!set->copy)
		set->copy = copy_make(set);
	copy = set->copy;
	refs_hold(&((struct copy *)copy)->users);
	unlock(set, &g);
	return copy;
}

void reservations_read_counters(struct reservations *set, struct reservations_counters *out)
{
	pthread_mutex_lock(&set->lock);
	*out = set->counters;
	pthread_mutex_unlock(&set->lock);
}

void reservations_free(struct reservations *set)
{
	struct garbage g = {0};

	if (!set)
		return;
	pthread_mutex_lock(&set->lock);
	changed(set, &g);
	for (size_t i = 0; i < set->count; i++)
		take_out(set, set->sorted[i], &g);
	free(set->sorted);
	uid_set_fini(&set->placed);
	unlock(set, &g);
	pthread_mutex_destroy(&set->lock);
	free(set);
}
