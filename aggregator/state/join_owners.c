/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An owner has the number of its measured pods and their sums, as integers (millionths of a core
 * and bytes): what a node added is taken away exactly, so that nothing drifts, and the sums do not
 * depend on the order in which nodes came.
 *
 * Owners are found by uid in a hash and kept sorted in an array beside it. New ones wait, and those
 * without pods stay, until the next table, which merges and sweeps them in one pass. A table is a
 * copy: 64 bytes for each owner, made only when some sum changed.
 *
 * What a workload's pods use is remembered by its name as well (workload_memory.h), for pods of
 * another owner, or another day.
 *
 * A pod counts once it was measured for a minute, by the longest window that it covers.
 */
#include "aggregator/state/join_owners.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "shared/array.h"
#include "shared/hash.h"
#include "shared/mem.h"
#include "shared/refs.h"

#define MILLI_MAX      1e12
#define BYTES_MAX      1e15
#define MICRO_OF_MILLI 1000.0
#define P95_SIGMAS     1.645 /* of a normal distribution */

struct owner {
	char uid[OWNER_UID_MAX + 1];
	char *workload; /* owned; its key, "" where it has none */
	uint32_t pods;
	int64_t cpu_micro, cpu_p95_micro, working_set_bytes; /* of all pods together */
	UT_hash_handle hh; /* by uid */
};

struct owners {
	struct owner *hash;
	struct owner **sorted; /* owned, as are its owners; may hold some without pods */
	size_t count;
	struct owner **fresh; /* owned; not in sorted yet, in no order */
	size_t fresh_count;
	size_t empty; /* owners without pods */
	bool changed;
	struct owner_table *table; /* held: the last; NULL: none */
	struct workload_memory *memory;
	struct workload_table *workloads; /* held: what it was at noted_ns; NULL: nothing */
	int64_t noted_ns; /* 0: never */
};

struct owners *owners_new(void)
{
	struct owners *o = mem_zalloc(1, sizeof(*o));

	o->memory = workload_memory_new();
	return o;
}

void owners_free(struct owners *o)
{
	struct owner *owner, *next;

	if (!o)
		return;
	HASH_RELEASE (o->hash, owner, next) {
		free(owner->workload);
		free(owner);
	}
	owner_table_drop(o->table);
	workload_table_drop(o->workloads);
	workload_memory_free(o->memory);
	free(o->sorted);
	free(o->fresh);
	free(o);
}

/* --- sums ------------------------------------------------------------------------------------- */

/* Measured long enough to speak for its workload: past its start, if not over a window. */
static bool has_settled(const struct pod_usage *u)
{
	enum { STEPS = 60 * 2000 }; /* of half a millisecond: a minute */

	return u->cpu_milli[WINDOW_5M].samples && u->working_set_bytes[WINDOW_5M].samples &&
	       u->cpu_milli[WINDOW_5M].end - u->cpu_milli[WINDOW_5M].start >= STEPS;
}

static int64_t micro(double milli)
{
	return llround(fmin(milli, MILLI_MAX) * MICRO_OF_MILLI);
}

/* Means are cut at what no machine has, so that sums cannot overflow. */
static void read_share(const struct pod_usage *u, int w, struct owner_share *share)
{
	double mean = (double)u->cpu_milli[w].mean, stddev = (double)u->cpu_milli[w].stddev;

	share->cpu_micro = micro(mean);
	share->cpu_p95_micro = micro(mean + P95_SIGMAS * stddev);
	share->working_set_bytes = llround(fmin((double)u->working_set_bytes[w].mean, BYTES_MAX));
}

/* False: it is not measured long enough. */
static bool measure(const struct pod_stats *use, struct owner_share *share)
{
	int w = WINDOW_15M;

	while (w >= WINDOW_5M && !pod_usage_covers(&use->usage, (enum window)w))
		w--;
	if (w < WINDOW_5M && !has_settled(&use->usage))
		return false;
	read_share(&use->usage, w < WINDOW_5M ? WINDOW_5M : w, share);
	return true;
}

static struct owner *find_or_add(struct owners *o, const struct kube_pod *pod, size_t len)
{
	const char *uid = pod->template->owner.uid;
	char key[WORKLOAD_KEY_MAX + 1];
	struct owner *owner;

	HASH_FIND(hh, o->hash, uid, len, owner);
	if (owner)
		return owner;
	owner = mem_zalloc(1, sizeof(*owner));
	memcpy(owner->uid, uid, len);
	workload_key_of(pod, key);
	owner->workload = mem_strdup(key);
	HASH_ADD_KEYPTR(hh, o->hash, owner->uid, len, owner);
	o->empty++;
	ARRAY_ADD(o->fresh, o->fresh_count) = owner;
	return owner;
}

/* The pod's owner, or NULL. */
static struct owner *owner_of(struct owners *o, const struct kube_pod *pod)
{
	const char *uid = pod->template->owner.uid;
	size_t len = strlen(uid);

	if (!len || len > OWNER_UID_MAX || !kube_pod_is_active(pod))
		return NULL;
	return find_or_add(o, pod, len);
}

static void put(struct owners *o, const struct owner_share *share)
{
	struct owner *owner = share->owner;

	o->empty -= owner->pods == 0;
	owner->pods++;
	owner->cpu_micro += share->cpu_micro;
	owner->cpu_p95_micro += share->cpu_p95_micro;
	owner->working_set_bytes += share->working_set_bytes;
	o->changed = true;
}

static void take(struct owners *o, const struct owner_share *share)
{
	struct owner *owner = share->owner;

	owner->pods--;
	owner->cpu_micro -= share->cpu_micro;
	owner->cpu_p95_micro -= share->cpu_p95_micro;
	owner->working_set_bytes -= share->working_set_bytes;
	o->empty += owner->pods == 0;
	o->changed = true;
}

static void update_pod(struct owners *o, const struct view_pod *p, struct owner_share *share)
{
	struct owner_share now = {.owner = NULL};
	bool measured = p->use && measure(p->use, &now);

	if (measured)
		now.owner = share->owner ? share->owner : owner_of(o, p->pod);
	if (now.owner)
		put(o, &now);
	if (share->owner)
		take(o, share);
	*share = now;
}

void owners_update(struct owners *o, const struct view_node *n, struct owner_shares *shares)
{
	const struct view_pod *known = n->pods + (n->pod_count - shares->count);

	for (size_t i = 0; i < shares->count; i++)
		update_pod(o, &known[i], &shares->of[i]);
}

void owners_add(struct owners *o, const struct view_node *n, struct owner_shares *shares)
{
	*shares = (struct owner_shares){0, NULL};
	if (!n->model || !n->model->pod_count)
		return;
	shares->count = n->model->pod_count;
	shares->of = mem_zalloc(shares->count, sizeof(*shares->of));
	owners_update(o, n, shares);
}

void owners_subtract(struct owners *o, struct owner_shares *shares)
{
	for (size_t i = 0; i < shares->count; i++)
		if (shares->of[i].owner)
			take(o, &shares->of[i]);
	free(shares->of);
	*shares = (struct owner_shares){0, NULL};
}

/* --- tables ----------------------------------------------------------------------------------- */

static int compare_owners(const void *a, const void *b)
{
	return strcmp((*(struct owner *const *)a)->uid, (*(struct owner *const *)b)->uid);
}

/* Into *to where it has pods; else it is forgotten. */
static void keep_or_forget(struct owners *o, struct owner *owner, struct owner **to, size_t *count)
{
	if (owner->pods) {
		to[(*count)++] = owner;
		return;
	}
	/* It is in the hash, which so is not empty. */
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
	HASH_DEL(o->hash, owner);
	free(owner->workload);
	free(owner);
}

static void settle(struct owners *o)
{
	struct owner **all = mem_alloc((o->count + o->fresh_count + 1) * sizeof(struct owner *));
	size_t count = 0, at = 0;

	array_sort(o->fresh, o->fresh_count, sizeof(struct owner *), compare_owners);
	for (size_t i = 0; i < o->fresh_count; i++) {
		while (at < o->count && strcmp(o->sorted[at]->uid, o->fresh[i]->uid) < 0)
			keep_or_forget(o, o->sorted[at++], all, &count);
		keep_or_forget(o, o->fresh[i], all, &count);
	}
	while (at < o->count)
		keep_or_forget(o, o->sorted[at++], all, &count);
	free(o->sorted);
	o->sorted = all;
	o->count = count;
	o->fresh_count = o->empty = 0;
}

static void fill(struct owner_use *use, const struct owner *owner)
{
	double pods = owner->pods;

	memcpy(use->uid, owner->uid, sizeof(use->uid));
	use->pods = owner->pods;
	use->cpu_milli = (double)owner->cpu_micro / MICRO_OF_MILLI / pods;
	use->cpu_p95_milli = (double)owner->cpu_p95_micro / MICRO_OF_MILLI / pods;
	use->working_set_bytes = (double)owner->working_set_bytes / pods;
}

/* So that tables of workloads are made seldom, and small changes are no new ones. */
#define NOTE_NS (60 * 1000000000LL)

static void note_workloads(struct owners *o, int64_t now_ns)
{
	for (size_t i = 0; i < o->count; i++) {
		struct owner_use use;

		if (!o->sorted[i]->pods || !*o->sorted[i]->workload)
			continue;
		fill(&use, o->sorted[i]);
		workload_memory_note(
			o->memory, &(struct workload_use){o->sorted[i]->workload, use.cpu_milli,
							  use.cpu_p95_milli, use.working_set_bytes,
							  now_ns, use.pods});
	}
	workload_table_drop(o->workloads);
	o->workloads = workload_memory_table(o->memory, now_ns);
	/* Until an owner is measured, the next table is made at once. */
	if (o->count)
		o->noted_ns = now_ns;
	o->changed = true;
}

int owners_recall(struct owners *o, const char *text, size_t len, struct error *error)
{
	int rc = workload_memory_read(o->memory, text, len, error);

	workload_table_drop(o->workloads);
	o->workloads = NULL;
	return rc;
}

static struct owner_table *make_table(const struct owners *o)
{
	struct owner_table *t;

	if (!o->count && !(o->workloads && o->workloads->count))
		return NULL;
	t = mem_alloc(sizeof(*t) + o->count * sizeof(t->of[0]));
	atomic_init(&t->users, 1);
	t->workloads = workload_table_hold(o->workloads);
	t->count = o->count;
	for (size_t i = 0; i < o->count; i++)
		fill(&t->of[i], o->sorted[i]);
	return t;
}

struct owner_table *owners_table(struct owners *o, int64_t now_ns)
{
	if (o->fresh_count || o->empty)
		settle(o);
	if (!o->workloads ||
	    (o->count && (now_ns - o->noted_ns >= NOTE_NS || now_ns < o->noted_ns)))
		note_workloads(o, now_ns);
	if (o->changed) {
		owner_table_drop(o->table);
		o->table = make_table(o);
		o->changed = false;
	}
	if (o->table)
		refs_hold(&o->table->users);
	return o->table;
}

void owner_table_drop(struct owner_table *t)
{
	if (!t || !refs_drop(&t->users))
		return;
	workload_table_drop(t->workloads);
	free(t);
}
