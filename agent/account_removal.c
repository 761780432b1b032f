/* SPDX-License-Identifier: Apache-2.0 */
/*
 * On v2 a cgroup's CPU counter has the cgroup's own tasks only and ends with it. The use between
 * the last reading and the removal is known from the removal alone. The order around one tick is
 *
 *	scan --> removals --> pass --> sync of the table, settle --> readings, roll-up
 *
 * so at the removals the table is that of the tick before. A removed cgroup is in one of these
 * states:
 *
 *	in the table	The remainder (counter at the removal less last reading) goes to the
 *			workload, which ends, and is carried by the nearest living ancestor to its
 *			next tick. If the topology still has the cgroup, its track is `removed`, and
 *			its readings do not count again.
 *	not yet in it	Born after the last scan, or found by the scan of this tick. Its parent
 *			carries the whole counter. If the next sync makes a track for it, settle
 *			marks that as removed.
 *	vanished	The kernel takes the directory away a moment before it reports the removal,
 *			and a scan in between finds no directory. The track is kept for VANISHED_NS,
 *			so the removal counts from its last reading. The workload ends with the sync
 *			and exists until the next publish; a remainder reported later counts for the
 *			ancestors alone.
 *
 * An unknown parent is younger than the last scan. The remainders of its children wait under its
 * id: for its own removal, which comes after theirs, or for a sync that knows it. The next scan
 * finds any parent that still exists, so at the second sync a waiting remainder goes to the root.
 *
 * The remainder of a detached container is also adopted by its pod, for the pod's next tick or
 * removal: the kernel removes the container first.
 *
 * A cgroup without a track is no older than the last tick and one scan. If it used more than the
 * machine can do in that time, it is older and the tables had no room for it; its use from before
 * the agent's start is unknown, so the removal is dropped and counted. So are removals beyond the
 * bounds.
 */
#include "agent/account_removal.h"

#include <stdlib.h>

#include "shared/hash.h"
#include "shared/mem.h"

enum { ORPHANS_MAX = 1024, VANISHED_MAX = 1024, UNSEEN_MAX = CGROUPS_MAX };

/* The kernel removes and reports under one lock; seconds in between are a stalled machine. */
#define VANISHED_NS 30000000000LL
/* The duration of a scan, and of a birth just before the last tick. */
#define BIRTH_SLACK_NS 1000000000LL

struct orphan {
	uint64_t parent_id;
	struct remainder rest;
	int syncs; /* so far without the parent */
	UT_hash_handle hh;
};

struct vanished {
	uint64_t id;
	struct track track; /* its workload: NULL once published */
	struct removal_time missed; /* the first tick without it, and the one before */
	UT_hash_handle hh;
};

struct unseen {
	uint64_t id;
	uint64_t cpu_ns;
	UT_hash_handle hh;
};

static void drop_orphan(struct removals *d, struct orphan *o)
{
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the list is kept by uthash */
	HASH_DEL(d->orphans, o);
	free(o);
}

static void drop_vanished(struct removals *d, struct vanished *v)
{
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the list is kept by uthash */
	HASH_DEL(d->vanished, v);
	free(v);
}

void removals_fini(struct removals *d)
{
	struct orphan *o, *next_o;
	struct vanished *v, *next_v;
	struct unseen *u, *next_u;

	HASH_RELEASE (d->orphans, o, next_o)
		free(o);
	HASH_RELEASE (d->vanished, v, next_v)
		free(v);
	HASH_RELEASE (d->unseen, u, next_u)
		free(u);
}

/* --- orphans ---------------------------------------------------------------------------------- */

static void add_orphan(struct removals *d, uint64_t parent_id, const struct remainder *rest)
{
	struct orphan *o;

	if (!rest->have)
		return;
	HASH_FIND(hh, d->orphans, &parent_id, sizeof(parent_id), o);
	if (!o) {
		if (HASH_COUNT(d->orphans) == ORPHANS_MAX) {
			d->dropped++;
			return;
		}
		o = mem_zalloc(1, sizeof(*o));
		o->parent_id = parent_id;
		HASH_ADD(hh, d->orphans, parent_id, sizeof(o->parent_id), o);
	}
	remainder_add(&o->rest, rest);
}

/* Adds the use that waits for this parent. */
static void take_orphan(struct removals *d, uint64_t parent_id, struct remainder *rest)
{
	struct orphan *o;

	HASH_FIND(hh, d->orphans, &parent_id, sizeof(parent_id), o);
	if (!o)
		return;
	remainder_add(rest, &o->rest);
	drop_orphan(d, o);
}

static void settle_orphans(struct removals *d, struct account_table *table)
{
	struct orphan *o, *next;

	HASH_ITER(hh, d->orphans, o, next)
	{
		int index = account_table_find(table, o->parent_id);

		if (index == CGROUP_NONE && ++o->syncs < 2)
			continue;
		account_table_carry(table, index == CGROUP_NONE ? 0 : index, &o->rest);
		drop_orphan(d, o);
	}
}

/* --- tracks that were there ------------------------------------------------------------------- */

static void sample_workload(struct workload *w, const struct track *tr,
			    const struct remainder *rest, const struct removal_time *time)
{
	int64_t dt_ns = time->mono_ns - tr->cpu_at_ns;

	if (time->mono_ns > time->tick_ns)
		w->stats.seconds += (double)(time->mono_ns - time->tick_ns) / 1e9;
	if ((rest->have & HAVE_CPU) && dt_ns > 0)
		stats_add_cpu(&w->stats, (double)rest->used[TRACK_CPU], dt_ns,
			      time->capacity_milli);
	if (rest->have & HAVE_THROTTLE)
		stats_add_throttle(&w->stats, rest->used[TRACK_THROTTLED],
				   rest->used[TRACKED(periods)],
				   rest->used[TRACKED(throttled_periods)]);
}

/* To the pod with that id, of a detached container. */
static void adopt(struct removals *d, struct account_table *table, uint64_t pod_id,
		  const struct remainder *rest)
{
	int index = account_table_find(table, pod_id);
	struct vanished *v;

	if (index != CGROUP_NONE) {
		remainder_add(&table->tracks[index].adopted, rest);
		return;
	}
	HASH_FIND(hh, d->vanished, &pod_id, sizeof(pod_id), v);
	if (v)
		remainder_add(&v->track.adopted, rest);
}

/* Ends a removed track, with the remainder of itself and of all below. */
static void end_track(struct removals *d, struct account_table *table, struct track *tr,
		      const struct remainder *rest, const struct removal_time *time)
{
	struct remainder all = *rest;

	remainder_add(&all, &tr->adopted);
	tr->adopted = (struct remainder){0};
	if (tr->workload)
		sample_workload(tr->workload, tr, &all, time);
	if (tr->pod_id)
		adopt(d, table, tr->pod_id, rest);
}

static void remove_track(struct removals *d, struct account_table *table, int index,
			 const struct removal *removal, const struct removal_time *time)
{
	struct track *tr = &table->tracks[index];
	struct remainder rest;

	if (!track_remove(tr, removal, &rest))
		return;
	remainder_add(&rest, &tr->carry);
	tr->carry = (struct remainder){0};
	end_track(d, table, tr, &rest, time);
	account_table_retire(table, index);
	tr->cpu_at_ns = time->mono_ns;
	account_table_carry(table, tr->parent == CGROUP_NONE ? 0 : tr->parent, &rest);
}

static void remember_vanished(struct removals *d, struct account_table *table,
			      const struct removal_time *time)
{
	struct vanished *v, *next;

	HASH_ITER(hh, d->vanished, v, next)
	{
		if (time->mono_ns - v->missed.mono_ns < VANISHED_NS)
			break;
		drop_vanished(d, v);
	}
	for (size_t i = 0; i < table->vanished_count; i++) {
		const struct track *tr = &table->vanished[i];

		HASH_FIND(hh, d->vanished, &tr->id, sizeof(tr->id), v);
		if (v || HASH_COUNT(d->vanished) == VANISHED_MAX)
			continue;
		v = mem_zalloc(1, sizeof(*v));
		v->id = tr->id;
		v->track = *tr;
		v->missed = *time;
		HASH_ADD(hh, d->vanished, id, sizeof(v->id), v);
	}
	table->vanished_count = 0;
}

/* --- what has no track ------------------------------------------------------------------------ */

static bool is_young(const struct removal *removal, const struct removal_time *time)
{
	double span = (double)(time->mono_ns - time->tick_ns + BIRTH_SLACK_NS);

	return time->capacity_milli <= 0 || !(removal->have & HAVE_CPU) ||
	       (double)removal->cpu_ns <= span * (double)time->capacity_milli / 1000;
}

/* Its track may come with the next sync. */
static void remember_unseen(struct removals *d, const struct removal *removal)
{
	struct unseen *u;

	HASH_FIND(hh, d->unseen, &removal->id, sizeof(removal->id), u);
	if (!u) {
		if (HASH_COUNT(d->unseen) == UNSEEN_MAX)
			return;
		u = mem_zalloc(1, sizeof(*u));
		u->id = removal->id;
		HASH_ADD(hh, d->unseen, id, sizeof(u->id), u);
	}
	u->cpu_ns = removal->cpu_ns;
}

static void settle_unseen(struct removals *d, struct account_table *table)
{
	struct unseen *u, *next;

	HASH_RELEASE (d->unseen, u, next) {
		const struct removal removal = {.have = HAVE_CPU, .cpu_ns = u->cpu_ns};
		int index = account_table_find(table, u->id);
		struct remainder counted;

		if (index != CGROUP_NONE && !table->tracks[index].based &&
		    track_remove(&table->tracks[index], &removal, &counted))
			account_table_retire(table, index);
		free(u);
	}
}

/* The whole use of a cgroup without a reading. */
static struct remainder remove_unseen(struct removals *d, const struct removal *removal,
				      const struct removal_time *time)
{
	struct remainder rest = {0};

	remember_unseen(d, removal);
	if (is_young(removal, time))
		rest = remainder_of_life(removal);
	else
		d->dropped++;
	take_orphan(d, removal->id, &rest);
	return rest;
}

/*
 * The use since the last reading. The carried use is in the ancestors' samples already, but not in
 * the workload's.
 */
static struct remainder remove_vanished(struct removals *d, struct account_table *table,
					struct vanished *v, const struct removal *removal)
{
	struct remainder rest = {0}, last;

	track_remove(&v->track, removal, &rest);
	take_orphan(d, removal->id, &rest);
	last = rest;
	remainder_add(&last, &v->track.carry);
	end_track(d, table, &v->track, &last, &v->missed);
	drop_vanished(d, v);
	return rest;
}

static void remove_unknown(struct removals *d, struct account_table *table,
			   const struct removal *removal, const struct removal_time *time)
{
	int parent = account_table_find(table, removal->parent_id);
	struct remainder rest;
	struct vanished *v;

	HASH_FIND(hh, d->vanished, &removal->id, sizeof(removal->id), v);
	rest = v ? remove_vanished(d, table, v, removal) : remove_unseen(d, removal, time);
	/*
	 * A parent is removed after its children: a removed one had the same id before and is not
	 * theirs.
	 */
	if (parent != CGROUP_NONE && !table->tracks[parent].removed)
		account_table_carry(table, parent, &rest);
	else
		add_orphan(d, removal->parent_id, &rest);
}

void removals_take(struct removals *d, struct account_table *table, const struct removal *list,
		   size_t count, const struct removal_time *time)
{
	for (size_t i = 0; i < count; i++) {
		int index = account_table_find(table, list[i].id);

		/* A second removal is that of another cgroup with the same id. */
		if (index != CGROUP_NONE && !table->tracks[index].removed)
			remove_track(d, table, index, &list[i], time);
		else
			remove_unknown(d, table, &list[i], time);
	}
}

void removals_settle(struct removals *d, struct account_table *table,
		     const struct removal_time *time)
{
	if (d->vanished || table->vanished_count)
		remember_vanished(d, table, time);
	if (d->unseen)
		settle_unseen(d, table);
	if (d->orphans)
		settle_orphans(d, table);
}

void removals_next(struct removals *d)
{
	struct vanished *v, *next;

	HASH_ITER(hh, d->vanished, v, next)
	{
		v->track.workload = NULL;
	}
	d->dropped = 0;
}
