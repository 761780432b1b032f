/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An interval is cut into ticks of a tenth of a second. Each pod's use in each tick goes into one
 * table:
 *
 *	        tick 0   1   2  ..
 *	system    .      .   .         a column whose sum is above the node's capacity shrinks to fit, as under the
 *	pod 0     .      .   .         kernel's fair scheduler, and what it shrank by was waited for
 *	pod 1     .      .   .
 *
 * Rows then become moments, column sums those of the node and its histogram. A container uses a
 * share of its pod, so its moments are its pod's, scaled. Memory needs no ticks: its mean, maximum
 * and last value are closed forms.
 */
#include "tests/fleet/machine_sim.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/clock.h"
#include "shared/mem.h"

#define TICK_NS (100 * NS_PER_MS)

/* A process that was held up for long makes longer ticks, not more of them. */
enum { TICKS_MAX = 600, HASH_BOOT = 501 };

#define EVERYTHING                                                                                 \
	(USAGE_CPU | USAGE_MEMORY | USAGE_WORKING_SET | USAGE_THROTTLE | USAGE_OOM |               \
	 USAGE_CONTENTION_CPU | USAGE_CONTENTION_MEMORY | USAGE_STALL_CPU | USAGE_STALL_MEMORY |   \
	 USAGE_SWAP | USAGE_PIDS)

struct seat {
	uint32_t life; /* of the pod that has it */
	bool fresh; /* not told yet */
};

struct machine_sim {
	const struct cluster *cluster; /* borrowed, as is the node */
	const struct cluster_node *node;
	size_t entity_count;
	struct entity **entities; /* each held; a pod, then its containers, for each seat in turn */
	struct seat *seats; /* owned; a pod each */
	uint32_t last_ref;
	uint64_t new_pods;
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
	free(m);
}

/* --- the table -------------------------------------------------------------------------------- */

struct table {
	int64_t start_ns, end_ns, tick_ns;
	size_t ticks, rows; /* row 0 is the system, the others are the pods */
	float *used; /* owned: millicores, row by row */
	float *sums; /* owned: by tick */
	float *kept; /* owned: by tick, the share of what was wanted that there was room for */
	double waited_ns; /* for CPU, by whoever wanted some */
};

static float *row_of(const struct table *t, size_t row)
{
	return t->used + row * t->ticks;
}

static void fit(struct table *t, double capacity_milli)
{
	for (size_t i = 0; i < t->ticks; i++) {
		double wanted = (double)t->sums[i];

		t->kept[i] = 1;
		if (wanted <= capacity_milli)
			continue;
		t->kept[i] = (float)(capacity_milli / wanted);
		t->waited_ns += (1 - (double)t->kept[i]) * (double)t->tick_ns;
		t->sums[i] = (float)capacity_milli;
	}
	if (t->waited_ns <= 0)
		return;
	for (size_t row = 0; row < t->rows; row++) {
		for (size_t i = 0; i < t->ticks; i++)
			row_of(t, row)[i] *= t->kept[i];
	}
}

static void table_init(struct table *t, const struct machine_sim *m, int64_t start_ns,
		       int64_t end_ns)
{
	const struct cluster *c = m->cluster;
	int64_t ticks = (end_ns - start_ns + TICK_NS / 2) / TICK_NS;

	ticks = ticks < 1 ? 1 : ticks > TICKS_MAX ? TICKS_MAX : ticks;
	*t = (struct table){.start_ns = start_ns, .end_ns = end_ns, .ticks = (size_t)ticks};
	t->tick_ns = (end_ns - start_ns) / ticks;
	t->rows = 1 + m->node->pods;
	t->used = mem_alloc(t->rows * t->ticks * sizeof(float));
	t->sums = mem_zalloc(t->ticks, sizeof(float));
	t->kept = mem_alloc(t->ticks * sizeof(float));
	for (size_t row = 0; row < t->rows; row++) {
		const struct pattern *p =
			row ? &c->pods[c->by_node[m->node->first + row - 1]].pattern
			    : &m->node->system;
		float *used = row_of(t, row);

		pattern_fill_milli(p, start_ns, t->tick_ns, t->ticks, used);
		for (size_t i = 0; i < t->ticks; i++)
			t->sums[i] += used[i];
	}
	fit(t, (double)m->node->cpu_milli);
}

static void table_fini(struct table *t)
{
	free(t->used);
	free(t->sums);
	free(t->kept);
}

/* All ticks last alike, so two plain passes do. */
static struct moments moments_of(const struct table *t, const float *values)
{
	double seconds = (double)(t->end_ns - t->start_ns) / (double)NS_PER_SEC;
	double sum = 0, squares = 0;
	float min = values[0], max = values[0];

	for (size_t i = 0; i < t->ticks; i++) {
		sum += (double)values[i];
		min = values[i] < min ? values[i] : min;
		max = values[i] > max ? values[i] : max;
	}
	sum /= (double)t->ticks;
	for (size_t i = 0; i < t->ticks; i++)
		squares += ((double)values[i] - sum) * ((double)values[i] - sum);
	return (struct moments){
		.samples = t->ticks,
		.weight = seconds,
		.mean = sum,
		.m2 = squares * seconds / (double)t->ticks,
		.min = (double)min,
		.max = (double)max,
		.last = (double)values[t->ticks - 1],
	};
}

/* --- from the table to usages ----------------------------------------------------------------- */

static struct gauge gauge_of(double mean, double max, double last)
{
	return (struct gauge){.mean = (float)mean, .max = (float)max, .last = (float)last};
}

static void make_usage(const struct table *t, size_t row, const struct pattern *p, struct usage *u)
{
	struct moments cpu = moments_of(t, row_of(t, row));
	struct pattern_cpu counted;
	struct pattern_memory memory;

	pattern_get_cpu(p, t->start_ns, t->end_ns, &counted);
	pattern_get_memory(p, t->start_ns, t->end_ns, &memory);
	/* Periods of its own and those of the clock round apart. */
	if (counted.throttled_periods > counted.periods)
		counted.throttled_periods = counted.periods;
	*u = (struct usage){
		.have = EVERYTHING,
		.oom_kills = memory.oom_kills,
		.seconds = (float)cpu.weight,
		.cpu_milli = moments_pack(&cpu),
		.mem_bytes = gauge_of(memory.set_mean + memory.cache_mean,
				      memory.set_max + memory.cache_max,
				      memory.set_last + memory.cache_last),
		.working_set_bytes = gauge_of(memory.set_mean, memory.set_max, memory.set_last),
		.throttled_ns = counted.throttled_ns,
		.throttled_periods = counted.throttled_periods,
		.periods = counted.periods,
		.contention_cpu_ns = (uint64_t)t->waited_ns,
		.stall_cpu_ns = counted.throttled_ns,
		.pids = 4 + (uint32_t)(p->high_milli / 100),
	};
}

static void scale_gauge(struct gauge *g, float share)
{
	g->mean *= share;
	g->max *= share;
	g->last *= share;
}

/* Throttling and kills are the pod's, and so are those of the container that uses most of it. */
static void make_part(const struct usage *pod, float share, bool first, struct usage *u)
{
	struct moments32 *m = &u->cpu_milli;

	*u = *pod;
	m->mean *= share;
	m->m2 *= share * share;
	m->min *= share;
	m->max *= share;
	m->last *= share;
	scale_gauge(&u->mem_bytes, share);
	scale_gauge(&u->working_set_bytes, share);
	if (!first)
		u->oom_kills = 0;
}

static struct kernel_limits limits_of(int64_t cpu_milli, int64_t mem_bytes)
{
	return (struct kernel_limits){
		.cpu_milli = cpu_milli ? cpu_milli : LIMIT_NONE,
		.mem_bytes = mem_bytes ? mem_bytes : LIMIT_NONE,
		.mem_high_bytes = LIMIT_NONE,
		.swap_bytes = 0,
		.pids = LIMIT_NONE,
	};
}

static void make_entry(const struct machine_sim *m, size_t at, bool fresh, struct entry *e)
{
	e->entity = entity_hold(m->entities[at]);
	e->ref = e->entity->ref;
	e->fresh = fresh;
}

/* A pod and its containers from entries[at] on; returns where the next pod begins. */
static size_t make_pod(const struct machine_sim *m, const struct table *t, size_t row, size_t at,
		       struct interval *interval)
{
	size_t pod = m->cluster->by_node[m->node->first + row - 1];
	const struct cluster_pod *p = &m->cluster->pods[pod];
	const struct workload *w = cluster_workload(m->cluster, p);
	bool fresh = m->seats[row - 1].fresh;
	struct entry *e = &interval->entries[at];

	make_entry(m, at, fresh, e);
	e->limits = limits_of(w->cpu_limit_milli, w->mem_limit_bytes);
	make_usage(t, row, &p->pattern, &e->usage);
	for (uint32_t k = 0; k < w->containers; k++) {
		float share = (float)cluster_container_share(w, k);
		struct entry *part = e + 1 + k;

		make_entry(m, at + 1 + k, fresh, part);
		part->limits = limits_of(cluster_container_part(w, k, w->cpu_limit_milli),
					 cluster_container_part(w, k, w->mem_limit_bytes));
		make_part(&e->usage, share, k == 0, &part->usage);
	}
	return at + 1 + w->containers;
}

static void add_memory(struct gauge *sum, const struct gauge *g)
{
	sum->mean += g->mean;
	sum->last += g->last;
}

/* Working sets at one time, which is what the machine cannot do without. */
static double needed_bytes(const struct machine_sim *m, int64_t at_ns)
{
	const struct cluster *c = m->cluster;
	double sum = pattern_working_set(&m->node->system, at_ns);

	for (size_t i = 0; i < m->node->pods; i++)
		sum += pattern_working_set(&c->pods[c->by_node[m->node->first + i]].pattern, at_ns);
	return sum;
}

static void make_node_memory(const struct machine_sim *m, const struct table *t,
			     struct node_sample *n)
{
	float max = n->usage.mem_bytes.last;

	/* Once a second, as /proc/meminfo is read. */
	for (int64_t at = t->end_ns; at > t->start_ns; at -= NS_PER_SEC) {
		double bytes = needed_bytes(m, at);

		histogram_add(&n->mem_hist, bytes, HISTOGRAM_MEMORY_X0);
		if ((float)bytes > max)
			max = (float)bytes;
	}
	n->usage.mem_bytes.max = max;
	n->usage.working_set_bytes = n->usage.mem_bytes;
	n->mem_capacity_bytes = m->node->mem_bytes;
	n->mem_available_bytes = m->node->mem_bytes - (int64_t)n->usage.mem_bytes.last;
}

static void make_node_cpu(const struct machine_sim *m, const struct table *t, struct node_sample *n)
{
	struct moments cpu = moments_of(t, t->sums);
	double used_ns = cpu.mean * cpu.weight * 1e6;

	n->usage.cpu_milli = moments_pack(&cpu);
	for (size_t i = 0; i < t->ticks; i++)
		histogram_add(&n->cpu_hist, (double)t->sums[i], HISTOGRAM_CPU_X0);
	n->cpu_capacity_milli = m->node->cpu_milli;
	n->cpu_split = (struct cpu_split){
		.user_ns = (uint64_t)(used_ns * 0.8),
		.system_ns = (uint64_t)(used_ns * 0.2),
		.iowait_ns = (uint64_t)(cpu.weight * 2e6),
	};
}

/* After the entries: the node is the sum of its pods and the system. */
static void make_node(const struct machine_sim *m, const struct table *t, struct interval *interval)
{
	struct node_sample *n = &interval->node;
	struct usage *sum = &n->usage;

	make_usage(t, 0, &m->node->system, sum);
	for (size_t i = 0; i < interval->entry_count; i++) {
		const struct usage *u = &interval->entries[i].usage;

		if (interval->entries[i].entity->kind != ENTITY_POD)
			continue;
		add_memory(&sum->mem_bytes, &u->working_set_bytes);
		sum->throttled_ns += u->throttled_ns;
		sum->throttled_periods += u->throttled_periods;
		sum->periods += u->periods;
		sum->oom_kills += u->oom_kills;
		sum->pids += u->pids;
	}
	sum->stall_cpu_ns = 0;
	make_node_cpu(m, t, n);
	make_node_memory(m, t, n);
	n->tier = TIER_T1;
	n->rate_hz = 10;
	n->pass_ns = 40000 + 700 * interval->entry_count;
	n->agent_cpu_ns = n->pass_ns * t->ticks;
	memcpy(n->boot_id, m->boot_id, sizeof(n->boot_id));
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
	struct table table;
	size_t at = 0;

	interval->sequence = sequence;
	interval->start_ns = start_ns;
	interval->end_ns = end_ns;
	seat_pods(m, end_ns);
	table_init(&table, m, start_ns, end_ns);
	for (size_t row = 1; row < table.rows; row++)
		at = make_pod(m, &table, row, at, interval);
	make_node(m, &table, interval);
	/* As agents tell them; who came later has a greater one. */
	qsort(interval->entries, interval->entry_count, sizeof(*interval->entries), compare_refs);
	table_fini(&table);
	return interval;
}

uint64_t machine_sim_new_pods(const struct machine_sim *m)
{
	return m->new_pods;
}
