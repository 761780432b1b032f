/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ticks find a cgroup's track at the cgroup's own index, so nothing is searched while the topology
 * stays as it is. When it changed, tracks move to their new places by serial, and workloads are
 * made and retired:
 *
 * cgroup appeared                                 new track; new workload with the next ref if it
 * is listed
 *	cgroup removed (account_removal), or vanished	its workload is gone, with the samples it has
 *	other kind (first child, first pod on the node)	its workload is gone, a new one has a new ref; counters go on
 *
 * The number of workloads is bounded also while cgroups come and go faster than intervals are
 * published: what finds no room is counted, stays in the totals of its parents, and is listed after
 * the next publish.
 */
#include "agent/account_table.h"

#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"

enum { WORKLOADS_MAX = CGROUPS_MAX };

void account_table_fini(struct account_table *table)
{
	for (size_t i = 0; i < table->workload_count; i++)
		workload_free(table->workloads[i]);
	free(table->workloads);
	free(table->tracks);
	free(table->by_id);
	free(table->vanished);
	free(table->apart);
}

/* --- tracks ----------------------------------------------------------------------------------- */

struct by_serial {
	uint64_t serial;
	size_t index;
};

static int compare_serials(const void *a, const void *b)
{
	const struct by_serial *x = a, *y = b;

	return x->serial < y->serial ? -1 : x->serial > y->serial;
}

/*
 * A track for every cgroup, at its index; moved_to[i] becomes where the old track i now is, or
 * stays CGROUP_NONE.
 */
static struct track *make_tracks(const struct account_table *table, struct topology *t,
				 int64_t first_ns, int *moved_to)
{
	size_t count = topology_count(t);
	struct track *tracks = mem_zalloc(count, sizeof(*tracks));
	struct by_serial *old = mem_zalloc(table->count, sizeof(*old));

	for (size_t i = 0; i < table->count; i++)
		old[i] = (struct by_serial){table->tracks[i].serial, i};
	qsort(old, table->count, sizeof(*old), compare_serials);
	for (size_t i = 0; i < count; i++) {
		const struct cgroup *c = topology_at(t, i);
		struct by_serial key = {c->serial, 0}, *found;

		found = bsearch(&key, old, table->count, sizeof(*old), compare_serials);
		if (found) {
			tracks[i] = table->tracks[found->index];
			tracks[i].id = c->id[HIERARCHY_UNIFIED];
			tracks[i].parent = c->parent;
			moved_to[found->index] = (int)i;
		} else {
			track_init(&tracks[i], c, first_ns);
		}
		tracks[i].holder = (int)i;
	}
	free(old);
	return tracks;
}

/*
 * Children come after their parents, so from the last to the first each has all that was below it.
 */
static void pass_on_carries(struct account_table *table, struct track *old, size_t count,
			    const int *moved_to)
{
	for (size_t i = count; i-- > 0;) {
		int parent = old[i].parent;

		if (moved_to[i] != CGROUP_NONE || !old[i].carry.have)
			continue;
		if (parent == CGROUP_NONE)
			account_table_carry(table, 0, &old[i].carry);
		else if (moved_to[parent] == CGROUP_NONE)
			remainder_add(&old[parent].carry, &old[i].carry);
		else
			account_table_carry(table, moved_to[parent], &old[i].carry);
	}
}

/* Whether a removal would not count from 0. */
static bool may_still_be_removed(const struct track *tr)
{
	return !tr->removed && tr->id && !track_cpu_is_whole(tr) &&
	       (tr->at_start || (tr->based & (1u << TRACK_CPU)));
}

static void collect_vanished(struct account_table *table, const struct track *old, size_t count,
			     const int *moved_to)
{
	free(table->vanished);
	table->vanished = NULL;
	table->vanished_count = 0;
	for (size_t i = 0; i < count; i++) {
		if (moved_to[i] != CGROUP_NONE)
			continue;
		if (old[i].workload)
			old[i].workload->gone = true;
		if (!may_still_be_removed(&old[i]))
			continue;
		if (!table->vanished)
			table->vanished = mem_alloc((count - i) * sizeof(*old));
		table->vanished[table->vanished_count++] = old[i];
	}
}

static void move_tracks(struct account_table *table, struct topology *t, int64_t first_ns)
{
	struct track *old = table->tracks;
	size_t old_count = table->count;
	int *moved_to = mem_alloc(old_count * sizeof(*moved_to));

	for (size_t i = 0; i < old_count; i++)
		moved_to[i] = CGROUP_NONE;
	table->tracks = make_tracks(table, t, first_ns, moved_to);
	table->count = topology_count(t);
	free(table->by_id);
	table->by_id = NULL;
	pass_on_carries(table, old, old_count, moved_to);
	collect_vanished(table, old, old_count, moved_to);
	free(moved_to);
	free(old);
}

static int compare_ids(const void *a, const void *b)
{
	const struct track_id *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static void index_ids(struct account_table *table)
{
	size_t n = 0;

	table->by_id = mem_alloc(table->count * sizeof(*table->by_id));
	for (size_t i = 0; i < table->count; i++)
		if (table->tracks[i].id)
			table->by_id[n++] = (struct track_id){table->tracks[i].id, (int)i};
	table->by_id_count = n;
	qsort(table->by_id, n, sizeof(*table->by_id), compare_ids);
}

int account_table_find(struct account_table *table, uint64_t id)
{
	struct track_id key = {id, 0}, *found;

	if (!table->by_id)
		index_ids(table);
	found = bsearch(&key, table->by_id, table->by_id_count, sizeof(key), compare_ids);
	return found ? found->index : CGROUP_NONE;
}

void account_table_carry(struct account_table *table, int index, const struct remainder *rest)
{
	if (table->count)
		remainder_add(&table->tracks[index].carry, rest);
}

void account_table_retire(struct account_table *table, int index)
{
	struct track *tr = &table->tracks[index];

	if (tr->workload)
		tr->workload->gone = true;
	tr->workload = NULL;
}

/* --- workloads -------------------------------------------------------------------------------- */

static struct workload *add_workload(struct account_table *table, enum entity_kind kind,
				     uint32_t parent, const struct cgroup *c)
{
	struct workload *w;

	if (table->workload_count == WORKLOADS_MAX) {
		table->unlisted++;
		return NULL;
	}
	if (table->workload_count == table->workload_cap) {
		table->workload_cap = table->workload_cap ? table->workload_cap * 2 : 64;
		table->workloads = mem_realloc(table->workloads,
					       table->workload_cap * sizeof(struct workload *));
	}
	w = workload_new(++table->last_ref, kind, parent, c);
	table->workloads[table->workload_count++] = w;
	return w;
}

static void add_apart(struct account_table *table, int pod, int container)
{
	struct track *tracks = table->tracks;

	if (table->apart_count == table->apart_cap) {
		table->apart_cap = table->apart_cap ? table->apart_cap * 2 : 16;
		table->apart = mem_realloc(table->apart, table->apart_cap * sizeof(*table->apart));
	}
	table->apart[table->apart_count++] = (struct apart){pod, container};
	tracks[container].pod_id = tracks[pod].id;
	tracks[pod].holder = apart_holder(tracks, tracks[pod].holder, container);
}

/* The ref of a container's pod, or 0 when there is none. */
static uint32_t place_container(struct account_table *table, struct pod_finder *f, int index)
{
	bool apart;
	int pod = pod_finder_find(f, index, &apart);

	if (pod == CGROUP_NONE || !table->tracks[pod].workload)
		return 0;
	if (apart && !table->tracks[index].removed)
		add_apart(table, pod, index);
	return table->tracks[pod].workload->entity->ref;
}

static void list_cgroup(struct account_table *table, int index, struct pod_finder *f)
{
	struct track *tr = &table->tracks[index];
	const struct cgroup *c = topology_at(f->topology, (size_t)index);
	int8_t kind = f->kinds[index];
	uint32_t parent = 0;

	if (kind == ENTITY_CONTAINER && c->identity.pod_uid[0])
		parent = place_container(table, f, index);
	if (tr->workload) {
		const struct entity *e = tr->workload->entity;

		if ((int)e->kind == kind && e->parent == parent)
			return;
		tr->workload->gone = true;
		tr->workload = NULL;
	}
	if (kind == NOT_LISTED || tr->removed)
		return;
	tr->workload = add_workload(table, (enum entity_kind)kind, parent, c);
	if (tr->workload)
		workload_set_limits(tr->workload, &tr->effective);
}

static void finish_aparts(struct account_table *table)
{
	apart_sort(table->apart, table->apart_count);
	for (size_t i = 0; i < table->apart_count; i++) {
		const struct track *pod = &table->tracks[table->apart[i].pod];

		workload_set_limits(pod->workload, &table->tracks[pod->holder].effective);
	}
}

/* Pods first: containers need their refs. */
static void list_workloads(struct account_table *table, struct topology *t)
{
	int8_t *kinds = mem_zalloc(table->count, sizeof(*kinds));
	struct pod_finder finder = {.topology = t, .tracks = table->tracks, .kinds = kinds};
	int count = (int)table->count;

	workload_classify(t, kinds);
	table->apart_count = 0;
	for (int i = 0; i < count; i++)
		if (kinds[i] != ENTITY_CONTAINER)
			list_cgroup(table, i, &finder);
	for (int i = 0; i < count; i++)
		if (kinds[i] == ENTITY_CONTAINER)
			list_cgroup(table, i, &finder);
	finish_aparts(table);
	pod_finder_fini(&finder);
	free(kinds);
}

void account_table_sync(struct account_table *table, struct topology *t, int64_t first_ns)
{
	if (!table->stale && table->generation == topology_generation(t))
		return;
	table->stale = false;
	table->generation = topology_generation(t);
	move_tracks(table, t, first_ns);
	list_workloads(table, t);
}

void account_table_next(struct account_table *table)
{
	size_t kept = 0;

	for (size_t i = 0; i < table->workload_count; i++) {
		struct workload *w = table->workloads[i];

		if (w->gone) {
			workload_free(w);
			continue;
		}
		w->fresh = false;
		stats_next(&w->stats);
		table->workloads[kept++] = w;
	}
	table->workload_count = kept;
	table->stale = table->unlisted > 0;
	table->unlisted = 0;
}
