/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ticks find a cgroup's track at the cgroup's own index, so nothing is searched while the topology stays as it is.
 * When it changed, tracks move to their new places by serial, and workloads are made and retired:
 *
 *	cgroup appeared					new track; new workload with the next ref if it is listed
 *	cgroup vanished					its workload is gone, with the samples it has
 *	other kind (first child, first pod on the node)	its workload is gone, a new one has a new ref; counters go on
 *
 * The number of workloads is bounded also while cgroups come and go faster than intervals are published: what finds
 * no room is counted, stays in the totals of its parents, and is listed after the next publish.
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
}

static bool is_current(const struct account_table *table, struct topology *t)
{
	if (table->stale || table->count != topology_count(t))
		return false;
	for (size_t i = 0; i < table->count; i++)
		if (table->tracks[i].serial != topology_at(t, i)->serial)
			return false;
	return true;
}

struct by_serial {
	uint64_t serial;
	size_t index;
};

static int compare_serials(const void *a, const void *b)
{
	const struct by_serial *x = a, *y = b;

	return x->serial < y->serial ? -1 : x->serial > y->serial;
}

/* Moves every track to the index its cgroup now has; those left over lose their workloads. */
static void move_tracks(struct account_table *table, struct topology *t, int64_t first_ns)
{
	size_t count = topology_count(t);
	struct track *moved = mem_zalloc(count, sizeof(*moved));
	struct by_serial *old = mem_zalloc(table->count, sizeof(*old));

	for (size_t i = 0; i < table->count; i++)
		old[i] = (struct by_serial){table->tracks[i].serial, i};
	qsort(old, table->count, sizeof(*old), compare_serials);
	for (size_t i = 0; i < count; i++) {
		const struct cgroup *c = topology_at(t, i);
		struct by_serial key = {c->serial, 0}, *found;

		found = bsearch(&key, old, table->count, sizeof(*old), compare_serials);
		if (!found) {
			track_init(&moved[i], c, first_ns);
			continue;
		}
		moved[i] = table->tracks[found->index];
		moved[i].parent = c->parent;
		table->tracks[found->index].workload = NULL;
	}
	for (size_t i = 0; i < table->count; i++)
		if (table->tracks[i].workload)
			table->tracks[i].workload->gone = true;
	free(old);
	free(table->tracks);
	table->tracks = moved;
	table->count = count;
}

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

/*
 * The ref of a container's pod: the nearest ancestor that is one, else the pod of the same UID elsewhere in the tree
 * (runtime and kubelet disagree about the driver); 0 when there is none.
 */
static uint32_t find_pod(const struct account_table *table, const struct cgroup *c,
			 const int8_t *kinds)
{
	for (int i = c->parent; i != CGROUP_NONE; i = table->tracks[i].parent)
		if (kinds[i] == ENTITY_POD)
			return table->tracks[i].workload ? table->tracks[i].workload->entity->ref
							 : 0;
	for (size_t i = 0; i < table->workload_count; i++) {
		const struct workload *w = table->workloads[i];

		if (!w->gone && w->entity->kind == ENTITY_POD &&
		    !strcmp(w->entity->pod_uid, c->identity.pod_uid))
			return w->entity->ref;
	}
	return 0;
}

static void list_cgroup(struct account_table *table, size_t index, const struct cgroup *c,
			const int8_t *kinds)
{
	struct track *tr = &table->tracks[index];
	int8_t kind = kinds[index];
	uint32_t parent = 0;

	if (kind == ENTITY_CONTAINER && c->identity.pod_uid[0])
		parent = find_pod(table, c, kinds);
	if (tr->workload) {
		const struct entity *e = tr->workload->entity;

		if ((int)e->kind == kind && e->parent == parent)
			return;
		tr->workload->gone = true;
		tr->workload = NULL;
	}
	if (kind == NOT_LISTED)
		return;
	tr->workload = add_workload(table, (enum entity_kind)kind, parent, c);
	if (tr->workload)
		workload_set_limits(tr->workload, &tr->effective);
}

/* Pods first: containers need their refs. */
static void list_workloads(struct account_table *table, struct topology *t)
{
	int8_t *kinds = mem_zalloc(table->count, sizeof(*kinds));

	workload_classify(t, kinds);
	for (size_t i = 0; i < table->count; i++)
		if (kinds[i] != ENTITY_CONTAINER)
			list_cgroup(table, i, topology_at(t, i), kinds);
	for (size_t i = 0; i < table->count; i++)
		if (kinds[i] == ENTITY_CONTAINER)
			list_cgroup(table, i, topology_at(t, i), kinds);
	free(kinds);
}

void account_table_sync(struct account_table *table, struct topology *t, int64_t first_ns)
{
	if (is_current(table, t))
		return;
	table->stale = false;
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
