/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pressure comes from two readings. Of all pods the slow passes read it, and the kernel updates what
 * they read every two seconds: enough to choose whom to watch. Of the watched pods each tick reads
 * the file, which brings the kernel's counter up to date (account_watched()).
 */
#include "agent/account_culprit.h"

#include <stdlib.h>
#include <string.h>

#include "agent/cgroup_text.h"
#include "shared/mem.h"

#define NS_PER_S 1e9

/* The part of the newest second in the mean waiting. */
#define NEWEST 0.25F

static bool is_pod(const struct workload *w)
{
	const struct entity *e = w ? w->entity : NULL;

	return e && (e->kind == ENTITY_POD || e->kind == ENTITY_UNIT ||
		     (e->kind == ENTITY_CONTAINER && !e->parent));
}

/* --- CPUs ------------------------------------------------------------------------------------- */

/*
 * Visits the CPUs that the pod's cgroups without children are bound to. Without met, marks them in has;
 * with met, tells whether one of them is marked there. Cgroups with all CPUs of the machine do not
 * count, as in cpusets_share(). False: the pod is not bound.
 */
static bool read_cpus(const struct account_table *table, struct topology *t, size_t pod,
		      bool has[CPUS_MAX], bool *met)
{
	bool bound = false;

	for (size_t i = pod;
	     i < table->count && (i == pod || topology_at(t, i)->parent >= (int)pod); i++) {
		const struct cgroup *c = topology_at(t, i);
		const char *cpus = c->cpus;
		unsigned int first, last;

		if (c->children || table->tracks[i].cpus_milli < 0)
			continue;
		bound = true;
		while (cgroup_text_cpus(&cpus, &first, &last)) {
			if (met)
				*met |= memchr(&has[first], 1, last - first + 1) != NULL;
			else
				memset(&has[first], true, last - first + 1);
		}
	}
	return bound;
}

/* at: tracks of the slots. */
static void find_apart(struct account_culprit *a, const struct account_table *table,
		       struct topology *t, int slot, const int at[CULPRIT_PODS])
{
	bool *has = mem_zalloc(CPUS_MAX, sizeof(*has));

	a->pods[slot].apart = 0;
	if (read_cpus(table, t, (size_t)at[slot], has, NULL))
		for (int j = 0; j < CULPRIT_PODS; j++) {
			bool met = false;

			if (at[j] >= 0 && read_cpus(table, t, (size_t)at[j], has, &met) && !met)
				a->pods[slot].apart |= 1U << j;
		}
	free(has);
}

/* --- samples ---------------------------------------------------------------------------------- */

/* Use and waiting of the users of CPU in one tick. */
struct uses {
	int at[CULPRIT_PODS]; /* track of each slot; -1: none */
	double seconds[CULPRIT_USERS], some[CULPRIT_USERS], full[CULPRIT_PODS];
};

static double seconds_since(uint64_t *last, uint64_t now)
{
	double seconds = now > *last ? (double)(now - *last) / NS_PER_S : 0;

	*last = now;
	return seconds;
}

static void read_pressure(struct account_culprit *a, int slot, const struct reading *r,
			  struct uses *u)
{
	bool full = r->have & HAVE_PSI_CPU_FULL, based = a->pods[slot].based;
	double some, held_up;

	a->pods[slot].based = r->have & USAGE_CONTENTION_CPU;
	if (!a->pods[slot].based)
		return;
	some = seconds_since(&a->pods[slot].some_ns, r->psi_cpu_ns);
	held_up = seconds_since(&a->pods[slot].full_ns, full ? r->psi_cpu_full_ns : r->psi_cpu_ns);
	if (!based)
		return;
	u->some[slot] = some;
	u->full[slot] = held_up;
}

static void read_uses(struct account_culprit *a, const struct account_table *table,
		      struct topology *t, double node_used_ns, struct uses *u)
{
	double pods_ns = 0;

	memset(u->at, -1, sizeof(u->at));
	for (size_t i = 0; i < table->count; i++) {
		const struct track *tr = &table->tracks[i];
		double used_ns = (double)tr->used[TRACK_CPU];
		int slot;

		if (!is_pod(tr->workload))
			continue;
		pods_ns += used_ns;
		slot = culprit_slot(&a->culprit, tr->workload->entity->ref);
		u->seconds[slot < 0 ? CULPRIT_OTHERS : slot] += used_ns / NS_PER_S;
		if (slot < 0)
			continue;
		u->at[slot] = (int)i;
		if (a->culprit.pods[slot].sums)
			read_pressure(a, slot, &topology_at(t, i)->reading, u);
	}
	u->seconds[CULPRIT_SYSTEM] =
		node_used_ns > pods_ns ? (node_used_ns - pods_ns) / NS_PER_S : 0;
}

static void add_sample(struct account_culprit *a, int slot, const struct uses *u, double seconds)
{
	struct culprit_sample sample = {.seconds = seconds, .full = u->full[slot]};

	for (int j = 0; j < CULPRIT_USERS; j++) {
		if (j < CULPRIT_PODS && (a->pods[slot].apart & 1U << j))
			continue;
		sample.use[j] = u->seconds[j];
		sample.some[j] = u->some[j];
	}
	culprit_add(&a->culprit, slot, &sample);
}

static void add_samples(struct account_culprit *a, const struct account_table *table,
			struct topology *t, const struct culprit_tick *k)
{
	struct uses u = {.at = {0}};

	read_uses(a, table, t, k->node_used_ns, &u);
	for (int slot = 0; slot < CULPRIT_PODS; slot++) {
		if (!a->culprit.pods[slot].sums || u.at[slot] < 0)
			continue;
		if (a->pods[slot].based)
			add_sample(a, slot, &u, (double)k->dt_ns / NS_PER_S);
		if (!k->slow)
			continue;
		culprit_end_second(&a->culprit, slot,
				   (double)table->tracks[u.at[slot]].used[TRACK_THROTTLED] /
					   NS_PER_S);
		find_apart(a, table, t, slot, u.at);
	}
}

/* --- the choice, once a second ---------------------------------------------------------------- */

static float pod_waiting(const struct track *tr, double seconds)
{
	uint64_t waited = tr->used[TRACKED(contention_cpu_ns)];
	uint64_t throttled = tr->used[TRACK_THROTTLED];

	if (!(tr->have & USAGE_CONTENTION_CPU) || !(tr->have & HAVE_THROTTLE) || waited < throttled)
		return 0;
	return (float)((double)(waited - throttled) / NS_PER_S / seconds);
}

/* Whether any pod waits or is watched. */
static bool note_waiting(const struct account_culprit *a, const struct account_table *table,
			 double seconds)
{
	bool any = a->culprit.watched > 0;

	for (size_t i = 0; i < table->count; i++) {
		const struct track *tr = &table->tracks[i];
		struct workload *w = tr->workload;

		if (!is_pod(w))
			continue;
		w->waiting += NEWEST * (pod_waiting(tr, seconds) - w->waiting);
		any |= (double)w->waiting >= CULPRIT_LEAST_WATCHED;
	}
	return any;
}

static void choose(struct account_culprit *a, const struct account_table *table)
{
	struct culprit_pod *pods = mem_alloc(table->count * sizeof(*pods));
	uint64_t *ids = mem_alloc(table->count * sizeof(*ids));
	size_t count = 0;

	for (size_t i = 0; i < table->count; i++) {
		const struct workload *w = table->tracks[i].workload;

		if (!is_pod(w))
			continue;
		ids[count] = table->tracks[i].id;
		pods[count++] =
			(struct culprit_pod){w->entity->ref,
					     (float)(w->stats.cpu_milli.mean / 1000), w->waiting};
	}
	culprit_choose(&a->culprit, pods, count);
	for (int slot = 0; slot < CULPRIT_PODS; slot++)
		if (!a->culprit.pods[slot].sums)
			memset(&a->pods[slot], 0, sizeof(a->pods[slot]));
	for (size_t i = 0; i < count; i++) {
		int slot = culprit_slot(&a->culprit, pods[i].ref);

		if (slot < 0 || !a->culprit.pods[slot].sums || a->pods[slot].id == ids[i])
			continue;
		memset(&a->pods[slot], 0, sizeof(a->pods[slot]));
		a->pods[slot].id = ids[i];
	}
	free(pods);
	free(ids);
}

void account_culprit_tick(struct account_culprit *a, const struct account_table *table,
			  struct topology *t, const struct culprit_tick *k)
{
	if (a->culprit.watched)
		add_samples(a, table, t, k);
	if (k->slow && note_waiting(a, table, (double)k->slow_dt_ns / NS_PER_S))
		choose(a, table);
}

struct contention_cause account_culprit_of(const struct account_culprit *a,
					   const struct workload *w)
{
	int slot = is_pod(w) ? culprit_slot(&a->culprit, w->entity->ref) : -1;

	if (slot < 0 || !a->culprit.pods[slot].sums)
		return (struct contention_cause){.ref = 0};
	return culprit_find(&a->culprit, slot);
}

size_t account_culprit_watched(const struct account_culprit *a, uint64_t ids[CULPRIT_WATCHED])
{
	size_t count = 0;

	for (int i = 0; i < CULPRIT_PODS && a->culprit.watched; i++)
		if (a->pods[i].id)
			ids[count++] = a->pods[i].id;
	return count;
}
