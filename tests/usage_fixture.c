/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/usage_fixture.h"

#include <math.h>
#include <stdio.h>

#define GIB (1024.0 * 1024 * 1024)

double fixture_random(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return (double)(*seed >> 8) / (1 << 24);
}

static struct gauge random_gauge(uint32_t *seed, double base)
{
	double mean = base * (0.9 + 0.2 * fixture_random(seed));

	return (struct gauge){(float)mean, (float)(mean * 1.1), (float)(mean * 1.05)};
}

static struct usage random_usage(uint32_t *seed, double seconds, double cpu_milli, double mem_bytes)
{
	struct moments cpu = {0};
	unsigned int samples = (unsigned int)(seconds * 10);

	for (unsigned int i = 0; i < samples; i++)
		moments_add(&cpu, cpu_milli * 2 * fixture_random(seed), 0.1);
	return (struct usage){
		.have = USAGE_CPU | USAGE_MEMORY | USAGE_WORKING_SET | USAGE_THROTTLE | USAGE_OOM |
			USAGE_CONTENTION_CPU | USAGE_STALL_CPU | USAGE_STALL_MEMORY | USAGE_SWAP |
			USAGE_PIDS,
		.seconds = (float)seconds,
		.cpu_milli = moments_pack(&cpu),
		.mem_bytes = random_gauge(seed, mem_bytes),
		.working_set_bytes = random_gauge(seed, mem_bytes * 0.8),
		.throttled_ns = (uint64_t)(seconds * 1e7),
		.throttled_periods = samples / 10,
		.periods = samples,
		.contention_cpu_ns = (uint64_t)(seconds * 2e7),
		.stall_cpu_ns = (uint64_t)(seconds * 1e7),
		.stall_mem_ns = (uint64_t)(seconds * 5e6),
		.swap_bytes = (uint64_t)(mem_bytes / 16),
		.pids = 20 + (uint32_t)(10 * fixture_random(seed)),
	};
}

static void fill_node(struct node_sample *n, const struct usage_fixture *f, uint32_t *seed)
{
	n->cpu_capacity_milli = 16000;
	n->mem_capacity_bytes = (int64_t)(64 * GIB);
	n->usage = random_usage(seed, f->seconds, 6000, 20 * GIB);
	for (unsigned int i = 0; i < f->seconds * 10; i++) {
		const struct moments32 *m = &n->usage.cpu_milli;
		/* A node's use varies by a factor of three. */
		double least = fmax((double)m->min, (double)m->max / 3);
		double span = (double)m->max - least;

		histogram_add(&n->cpu_hist, least + span * fixture_random(seed), HISTOGRAM_CPU_X0);
		histogram_add(&n->mem_hist,
			      (double)n->usage.mem_bytes.max * (0.9 + 0.1 * fixture_random(seed)),
			      HISTOGRAM_MEMORY_X0);
	}
	n->rate_hz = 10;
	n->pass_ns = 400000;
	n->agent_cpu_ns = f->seconds * 4000000ull;
	n->mem_available_bytes = (int64_t)(44 * GIB);
	n->cpu_split = (struct cpu_split){
		.user_ns = f->seconds * 5000000000ull,
		.system_ns = f->seconds * 1000000000ull,
		.iowait_ns = f->seconds * 200000000ull,
		.steal_ns = f->seconds * 50000000ull,
	};
}

static struct entity *pod_entity(uint32_t ref, size_t pod)
{
	char uid[POD_UID_LEN + 1], name[128];
	struct entity *e;

	snprintf(uid, sizeof(uid), "%08x-1f2e-4d3c-8b4a-5960718293a4", (uint32_t)pod * 2654435761u);
	snprintf(name, sizeof(name), "kubepods/burstable/pod%s", uid);
	e = entity_new(ref, ENTITY_POD, name);
	e->qos = QOS_BURSTABLE;
	snprintf(e->pod_uid, sizeof(e->pod_uid), "%s", uid);
	return e;
}

static struct entity *container_entity(uint32_t ref, const struct entity *pod)
{
	char name[256];
	struct entity *e;

	snprintf(name, sizeof(name), "%s/%08x%056x", pod->name, ref * 2654435761u, 1u);
	e = entity_new(ref, ENTITY_CONTAINER, name);
	e->parent = pod->ref;
	e->runtime = RUNTIME_CONTAINERD;
	snprintf(e->container_id, sizeof(e->container_id), "%08x%056x", ref * 2654435761u, 1u);
	return e;
}

static void fill_entry(struct entry *e, uint32_t ref, const struct usage_fixture *f, uint32_t *seed)
{
	e->ref = ref;
	e->fresh = f->identities;
	e->limits = KERNEL_LIMITS_UNKNOWN;
	e->usage = random_usage(seed, f->seconds, 100, GIB / 4);
}

static void add_identity(struct entry *e, struct entity *entity)
{
	e->entity = entity;
	e->limits = (struct kernel_limits){
		.cpu_milli = 2000,
		.mem_bytes = LIMIT_NONE,
		.mem_high_bytes = LIMIT_NONE,
		.swap_bytes = 0,
		.pids = 1024,
		.cpu_burst_ns = 0,
	};
}

struct interval *usage_fixture_new(const struct usage_fixture *f)
{
	struct interval *i = interval_new(f->pods * (f->containers + 1));
	uint32_t seed = f->seed, ref = 0;
	struct entry *e = i->entries;

	i->sequence = f->sequence;
	i->end_ns = f->end_ns;
	i->start_ns = f->end_ns - f->seconds * 1000000000LL;
	i->full = f->identities;
	fill_node(&i->node, f, &seed);
	for (size_t p = 0; p < f->pods; p++) {
		struct entity *pod = pod_entity(++ref, p);

		fill_entry(e, ref, f, &seed);
		if (f->identities)
			add_identity(e, entity_hold(pod));
		e++;
		for (size_t c = 0; c < f->containers; c++, e++) {
			fill_entry(e, ++ref, f, &seed);
			if (f->identities)
				add_identity(e, container_entity(ref, pod));
		}
		entity_drop(pod);
	}
	return i;
}
