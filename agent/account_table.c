/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A track has its cgroup's index in the topology, so a tick searches nothing. After a change of the
 * topology, tracks move to their new index by serial, and workloads follow:
 *
 *	cgroup appears			new track; if it is listed, a new workload with the next ref
 *	cgroup vanishes or is removed	its workload is gone and keeps its samples
 *	its kind changes		its workload is gone, a new one has a new ref, counters stay
 *
 * The number of workloads is bounded: cgroups may come and go faster than intervals are published.
 * A cgroup beyond the bound is counted, stays in the totals of its parents, and is listed after the
 * next publish.
 *
 * Detached containers: a kubelet that manages cgroups through systemd and a runtime that writes
 * cgroupfs itself make two trees:
 *
 *	/kubepods.slice/../kubepods-burstable-podUID.slice			the pod, no process
 *	/system.slice/../kubepods-burstable-podUID.slice:cri-containerd:ID	its container
 *
 * The container's use counts for its ancestors up to the node, and once more for its pod:
 *
 *	each tick	after the roll-up, track_adopt() adds use and gauges to the pod's; the sum
 *			is one sample, so the pod's variance is that of the sum
 *	removal		the remainder waits for the pod's next tick (account_removal.c)
 *	limits		the limits of the pod's cgroup do not bind the container; the pod gets those
 *			of the nearest common ancestor
 *	pressure	stall times overlap and cannot be added: unknown for the pod
 *
 * When a node runs in a container, pods nest. A container belongs to a pod with the same nearest
 * workload above it; a name alone, which a container may choose for its cgroup, is not enough.
 *
 * Such use counts for no pod if the container came and went between two ticks (a removal has an id
 * but no path), and after its last tick where removals are not reported (v1, tier T3).
 */
#include "agent/account_table.h"

#include <stdlib.h>
#include <string.h>

#include "shared/arith.h"
#include "shared/array.h"
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
	free(table->detached);
}

/* --- tracks ----------------------------------------------------------------------------------- */

/*
 * A track per cgroup, at its index; moved_to[i] becomes the new index of the old track i, or stays
 * CGROUP_NONE.
 */
static struct track *make_tracks(const struct account_table *table, struct topology *t,
				 int64_t first_ns, int *moved_to)
{
	size_t count = topology_count(t);
	struct track *tracks = mem_zalloc(count, sizeof(*tracks));
	struct track_id *old = mem_zalloc(table->count, sizeof(*old));

	for (size_t i = 0; i < table->count; i++)
		old[i] = (struct track_id){table->tracks[i].serial, (int)i};
	qsort(old, table->count, sizeof(*old), array_compare_uint64);
	for (size_t i = 0; i < count; i++) {
		const struct cgroup *c = topology_at(t, i);
		const struct track_id *found =
			bsearch(&c->serial, old, table->count, sizeof(*old), array_compare_uint64);

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
 * Children come after their parents, so from the last to the first each has the carries below it.
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

/* Whether a removal counts from a reading, not from 0. */
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

static void index_ids(struct account_table *table)
{
	size_t n = 0;

	table->by_id = mem_alloc(table->count * sizeof(*table->by_id));
	for (size_t i = 0; i < table->count; i++)
		if (table->tracks[i].id)
			table->by_id[n++] = (struct track_id){table->tracks[i].id, (int)i};
	table->by_id_count = n;
	qsort(table->by_id, n, sizeof(*table->by_id), array_compare_uint64);
}

int account_table_find(struct account_table *table, uint64_t id)
{
	const struct track_id *found;

	if (!table->by_id)
		index_ids(table);
	found = bsearch(&id, table->by_id, table->by_id_count, sizeof(*found),
			array_compare_uint64);
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

/* --- pods of containers ----------------------------------------------------------------------- */

struct pod_place {
	const char *uid; /* borrowed from the topology */
	uint32_t ref;
	int index;
};

/* Finds the pods of containers in one listing. */
struct pod_finder {
	struct topology *topology; /* borrowed, as are the two below: one element per cgroup */
	const struct track *tracks;
	const int8_t *kinds; /* enum entity_kind, or NOT_LISTED */
	/* owned, sorted; made for the first container that is not below its pod */
	struct pod_place *places;
	size_t place_count;
};

/* By UID, the oldest first. */
static int compare_places(const void *a, const void *b)
{
	const struct pod_place *x = a, *y = b;

	return strcmp(x->uid, y->uid) ?: COMPARE(x->ref, y->ref);
}

static void make_places(struct pod_finder *f)
{
	size_t count = topology_count(f->topology);

	f->places = mem_alloc(count * sizeof(*f->places));
	for (size_t i = 0; i < count; i++) {
		if (f->kinds[i] != ENTITY_POD || !f->tracks[i].workload)
			continue;
		f->places[f->place_count++] = (struct pod_place){
			.uid = topology_at(f->topology, i)->identity.pod_uid,
			.ref = f->tracks[i].workload->entity->ref,
			.index = (int)i,
		};
	}
	qsort(f->places, f->place_count, sizeof(*f->places), compare_places);
}

static int listed_above(const struct pod_finder *f, int i)
{
	do
		i = f->tracks[i].parent;
	while (i != CGROUP_NONE && f->kinds[i] == NOT_LISTED);
	return i;
}

static int pod_above(const struct pod_finder *f, int i)
{
	do
		i = listed_above(f, i);
	while (i != CGROUP_NONE && f->kinds[i] != ENTITY_POD);
	return i;
}

static const char *uid_of(const struct pod_finder *f, int index)
{
	return topology_at(f->topology, (size_t)index)->identity.pod_uid;
}

static int find_elsewhere(struct pod_finder *f, int container)
{
	const char *uid = uid_of(f, container);
	int above = listed_above(f, container);

	if (!f->places)
		make_places(f);
	for (size_t i = array_lower_bound(&uid, f->places, f->place_count, sizeof(*f->places),
					  array_compare_text);
	     i < f->place_count; i++) {
		if (strcmp(f->places[i].uid, uid) != 0)
			break;
		if (listed_above(f, f->places[i].index) == above)
			return f->places[i].index;
	}
	return CGROUP_NONE;
}

/*
 * Index of the pod of a container whose path names one, or CGROUP_NONE; *detached: the container is
 * not below it.
 */
static int find_pod(struct pod_finder *f, int container, bool *detached)
{
	int above = pod_above(f, container), elsewhere;

	*detached = false;
	if (above != CGROUP_NONE && strcmp(uid_of(f, above), uid_of(f, container)) == 0)
		return above;
	elsewhere = find_elsewhere(f, container);
	*detached = elsewhere != CGROUP_NONE;
	return *detached ? elsewhere : above;
}

/* The nearest common ancestor, which may be one of them. */
static int common_ancestor(const struct track *tracks, int a, int b)
{
	/* Parents have the smaller indices. */
	while (a != b) {
		if (a > b)
			a = tracks[a].parent;
		else
			b = tracks[b].parent;
	}
	return a;
}

static int compare_detached(const void *a, const void *b)
{
	const struct detached *x = a, *y = b;

	return COMPARE(x->pod, y->pod) ?: COMPARE(x->container, y->container);
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
	w = workload_new(++table->last_ref, kind, parent, c);
	return ARRAY_ADD(table->workloads, table->workload_count) = w;
}

static void add_detached(struct account_table *table, int pod, int container)
{
	struct track *tracks = table->tracks;

	ARRAY_ADD(table->detached, table->detached_count) = (struct detached){pod, container};
	tracks[container].pod_id = tracks[pod].id;
	tracks[pod].holder = common_ancestor(tracks, tracks[pod].holder, container);
}

/* The ref of a container's pod, or 0. */
static uint32_t place_container(struct account_table *table, struct pod_finder *f, int index)
{
	bool detached;
	int pod = find_pod(f, index, &detached);

	if (pod == CGROUP_NONE || !table->tracks[pod].workload)
		return 0;
	if (detached && !table->tracks[index].removed)
		add_detached(table, pod, index);
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
		account_table_retire(table, index);
	}
	if (kind == NOT_LISTED || tr->removed)
		return;
	tr->workload = add_workload(table, (enum entity_kind)kind, parent, c);
	if (tr->workload)
		workload_set_limits(tr->workload, &tr->effective);
}

static void finish_detached(struct account_table *table)
{
	array_sort(table->detached, table->detached_count, sizeof(*table->detached),
		   compare_detached);
	for (size_t i = 0; i < table->detached_count; i++) {
		const struct track *pod = &table->tracks[table->detached[i].pod];

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
	table->detached_count = 0;
	for (int i = 0; i < count; i++)
		if (kinds[i] != ENTITY_CONTAINER)
			list_cgroup(table, i, &finder);
	for (int i = 0; i < count; i++)
		if (kinds[i] == ENTITY_CONTAINER)
			list_cgroup(table, i, &finder);
	finish_detached(table);
	free(finder.places);
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
