/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fleet/machine_sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/demand.h"
#include "shared/mem.h"
#include "tests/fleet/use_table.h"

enum { HASH_BOOT = 501 };

struct seat {
	uint32_t life; /* of the pod that has it */
	bool fresh; /* not told yet */
	int64_t start_until_ns; /* Unix time at which its start is over */
};

struct machine_sim {
	const struct cluster *cluster; /* borrowed, as is the node */
	const struct cluster_node *node;
	size_t entity_count;
	struct entity **entities; /* each held; a pod, then its containers, for each seat in turn */
	struct seat *seats; /* owned; a pod each */
	uint32_t last_ref;
	uint64_t new_pods;
	const struct pattern **patterns; /* owned; the system's, then the pods' */
	char boot_id[BOOT_ID_LEN + 1];
};

/* --- identities ------------------------------------------------------------------------------- */

static const char *const qos_slices[] = {
	[QOS_GUARANTEED] = "kubepods-pod",
	[QOS_BURSTABLE] = "kubepods-burstable.slice/kubepods-burstable-pod",
	[QOS_BEST_EFFORT] = "kubepods-besteffort.slice/kubepods-besteffort-pod",
};

/* As the kubelet and containerd name cgroups with systemd: dashes of the UID would be slices. */
static void pod_path(enum qos_class qos, const char *uid, char path[ENTITY_NAME_MAX])
{
	char escaped[POD_UID_LEN + 1];

	for (int i = 0; i <= POD_UID_LEN; i++)
		escaped[i] = uid[i] == '-' ? '_' : uid[i];
	snprintf(path, ENTITY_NAME_MAX, "kubepods.slice/%s%s.slice", qos_slices[qos], escaped);
}

static struct entity *make_entity(struct machine_sim *m, size_t at, enum entity_kind kind,
				  const char *path, const char *uid, enum qos_class qos)
{
	struct entity *e = entity_new(++m->last_ref, kind, path);

	e->qos = qos;
	memcpy(e->pod_uid, uid, sizeof(e->pod_uid));
	m->entities[at] = e;
	return e;
}

/* One life of a pod, with its containers, from entities[at] on. */
static void make_entities(struct machine_sim *m, size_t pod, uint32_t life, size_t at)
{
	const struct workload *w = cluster_workload(m->cluster, &m->cluster->pods[pod]);
	char uid[POD_UID_LEN + 1], id[CONTAINER_ID_LEN + 1], path[ENTITY_NAME_MAX], *below;
	uint32_t parent = m->last_ref + 1;

	cluster_pod_uid(m->cluster, pod, life, uid);
	pod_path(cluster_qos(w), uid, path);
	make_entity(m, at, ENTITY_POD, path, uid, cluster_qos(w));
	for (uint32_t k = 0; k < w->containers; k++) {
		struct entity *e;

		cluster_container_id(m->cluster, pod, life, k, id);
		below = mem_printf("%s/cri-containerd-%s.scope", path, id);
		e = make_entity(m, at + 1 + k, ENTITY_CONTAINER, below, uid, cluster_qos(w));
		e->parent = parent;
		e->runtime = RUNTIME_CONTAINERD;
		memcpy(e->container_id, id, sizeof(e->container_id));
		free(below);
	}
}

struct machine_sim *machine_sim_new(const struct cluster *c, uint32_t node)
{
	struct machine_sim *m = mem_zalloc(1, sizeof(*m));
	const struct cluster_node *n = &c->nodes[node];

	m->cluster = c;
	m->node = n;
	for (size_t i = 0; i < n->pods; i++)
		m->entity_count +=
			1 + cluster_workload(c, &c->pods[c->by_node[n->first + i]])->containers;
	m->entities = mem_zalloc(m->entity_count + 1, sizeof(struct entity *));
	m->seats = mem_zalloc(n->pods + 1, sizeof(*m->seats));
	m->patterns = mem_alloc((n->pods + 1) * sizeof(const struct pattern *));
	m->patterns[0] = &n->system;
	for (size_t i = 0; i < n->pods; i++)
		m->patterns[1 + i] = &c->pods[c->by_node[n->first + i]].pattern;
	cluster_uid(c, HASH_BOOT, node, m->boot_id);
	return m;
}

/* Seats the pods that are there at a Unix time, in place of those that were before. */
static void seat_pods(struct machine_sim *m, int64_t at_ns)
{
	size_t at = 0;

	for (size_t i = 0; i < m->node->pods; i++) {
		size_t pod = m->cluster->by_node[m->node->first + i], entities;
		uint32_t life = cluster_pod_life(m->cluster, pod, at_ns);
		bool first = !m->entities[at];

		entities = 1 + cluster_workload(m->cluster, &m->cluster->pods[pod])->containers;
		m->seats[i].fresh = first || life != m->seats[i].life;
		if (m->seats[i].fresh) {
			for (size_t k = 0; k < entities && !first; k++)
				entity_drop(m->entities[at + k]);
			make_entities(m, pod, life, at);
			m->seats[i].life = life;
			m->seats[i].start_until_ns = first ? 0 : at_ns + DEMAND_STARTING_NS;
			m->new_pods += !first;
		}
		at += entities;
	}
}

void machine_sim_free(struct machine_sim *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->entity_count; i++) {
		if (m->entities[i])
			entity_drop(m->entities[i]);
	}
	free(m->entities);
	free(m->seats);
	free(m->patterns);
	free(m);
}

/* --- the interval ----------------------------------------------------------------------------- */

static void make_entry(const struct machine_sim *m, size_t at, bool fresh, struct entry *e)
{
	e->entity = entity_hold(m->entities[at]);
	e->ref = e->entity->ref;
	e->fresh = fresh;
}

/* A pod and its containers from entries[at] on; returns where the next pod begins. */
static size_t make_pod(const struct machine_sim *m, const struct use_table *t, size_t row,
		       size_t at, struct interval *interval)
{
	size_t pod = m->cluster->by_node[m->node->first + row - 1];
	const struct cluster_pod *p = &m->cluster->pods[pod];
	const struct workload *w = cluster_workload(m->cluster, p);
	bool fresh = m->seats[row - 1].fresh;
	struct entry *e = &interval->entries[at];

	make_entry(m, at, fresh, e);
	e->limits = use_table_limits(w->cpu_limit_milli, w->mem_limit_bytes);
	use_table_make_usage(t, row, &e->usage);
	for (uint32_t k = 0; k < w->containers; k++) {
		float share = (float)cluster_container_share(w, k);
		struct entry *part = e + 1 + k;

		make_entry(m, at + 1 + k, fresh, part);
		part->limits = use_table_limits(cluster_container_part(w, k, w->cpu_limit_milli),
						cluster_container_part(w, k, w->mem_limit_bytes));
		use_table_make_part(&e->usage, share, k == 0, &part->usage);
		part->demand_at = (uint32_t)interval->demand.len;
		use_table_make_demand(t, row, share, &interval->demand);
		part->demand_len = (uint16_t)(interval->demand.len - part->demand_at);
		part->starting = interval->end_ns < m->seats[row - 1].start_until_ns;
	}
	return at + 1 + w->containers;
}

static int compare_refs(const void *a, const void *b)
{
	uint32_t x = ((const struct entry *)a)->ref, y = ((const struct entry *)b)->ref;

	return (x > y) - (x < y);
}

struct interval *machine_sim_take(struct machine_sim *m, uint64_t sequence, int64_t start_ns,
				  int64_t end_ns)
{
	struct interval *interval = interval_new(m->entity_count);
	struct use_machine machine = {m->patterns, 1 + m->node->pods, m->node->cpu_milli,
				      m->node->mem_bytes};
	struct use_table table;
	size_t at = 0;

	interval->sequence = sequence;
	interval->start_ns = start_ns;
	interval->end_ns = end_ns;
	seat_pods(m, end_ns);
	use_table_init(&table, &machine, start_ns, end_ns);
	for (size_t row = 1; row < machine.count; row++)
		at = make_pod(m, &table, row, at, interval);
	use_table_make_node(&table, interval);
	memcpy(interval->node.boot_id, m->boot_id, sizeof(interval->node.boot_id));
	/* As agents tell them; who came later has a greater one. */
	qsort(interval->entries, interval->entry_count, sizeof(*interval->entries), compare_refs);
	use_table_fini(&table);
	return interval;
}

uint64_t machine_sim_new_pods(const struct machine_sim *m)
{
	return m->new_pods;
}
