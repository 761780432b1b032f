/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/interval.h"

#include <stdio.h>
#include <string.h>

#include "shared/clock.h"

#define START_NS (1700000000LL * NS_PER_SEC)

enum { SECONDS = 5, SAMPLES = 50 };

/* xorshift64*: the same values everywhere. */
static double next_unit(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return (double)((*state * 2685821657736338717ULL) >> 11) / (double)(1ULL << 53);
}

static struct gauge make_gauge(uint64_t *state, double size)
{
	float mean = (float)(size * next_unit(state));

	return (struct gauge){.mean = mean, .max = mean * 1.1F, .last = mean * 0.9F};
}

static void make_usage(struct usage *u, uint64_t *state, double cpu_milli, double bytes)
{
	struct moments cpu = {0};

	for (int i = 0; i < SAMPLES; i++)
		moments_add(&cpu, cpu_milli * next_unit(state), (double)SECONDS / SAMPLES);
	u->have = USAGE_CPU | USAGE_MEMORY | USAGE_WORKING_SET | USAGE_THROTTLE | USAGE_OOM |
		  USAGE_CONTENTION_CPU | USAGE_CONTENTION_MEMORY | USAGE_STALL_CPU |
		  USAGE_STALL_MEMORY | USAGE_SWAP | USAGE_PIDS;
	u->seconds = SECONDS;
	u->cpu_milli = moments_pack(&cpu);
	u->mem_bytes = make_gauge(state, bytes);
	u->working_set_bytes = make_gauge(state, bytes);
	u->periods = SECONDS * 10;
	if (next_unit(state) < 0.3) {
		u->throttled_ns = (uint64_t)(next_unit(state) * 1e8);
		u->throttled_periods = 3;
	}
	u->contention_cpu_ns = (uint64_t)(next_unit(state) * 1e8);
	if (next_unit(state) < 0.1)
		u->contention_mem_ns = (uint64_t)(next_unit(state) * 1e6);
	u->stall_cpu_ns = (uint64_t)(next_unit(state) * 5e7);
	u->stall_mem_ns = u->contention_mem_ns / 2;
	u->pids = 1 + (uint32_t)(next_unit(state) * 200);
	if (next_unit(state) < 0.1)
		u->swap_bytes = (uint64_t)(next_unit(state) * 50e6);
}

static void make_hex(char *to, size_t len, uint64_t *state)
{
	for (size_t i = 0; i < len; i++)
		to[i] = "0123456789abcdef"[(int)(next_unit(state) * 16)];
	to[len] = '\0';
}

static void make_entry(struct entry *e, uint32_t ref, uint32_t parent, uint64_t sequence)
{
	char uid[POD_UID_LEN + 1], id[CONTAINER_ID_LEN + 1], name[ENTITY_NAME_MAX];
	uint64_t who = ref, what = ref * 1000003ULL + sequence;
	uint64_t pod = parent ? parent : ref;

	make_hex(uid, POD_UID_LEN, &pod);
	uid[8] = uid[13] = uid[18] = uid[23] = '-';
	make_hex(id, CONTAINER_ID_LEN, &who);
	snprintf(name, sizeof(name),
		 "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod%s.slice%s%s%s",
		 uid, parent ? "/cri-containerd-" : "", parent ? id : "", parent ? ".scope" : "");
	e->ref = ref;
	e->fresh = sequence == 1;
	e->entity = entity_new(ref, parent ? ENTITY_CONTAINER : ENTITY_POD, name);
	e->entity->parent = parent;
	e->entity->qos = QOS_BURSTABLE;
	e->entity->runtime = parent ? RUNTIME_CONTAINERD : RUNTIME_UNKNOWN;
	memcpy(e->entity->pod_uid, uid, sizeof(uid));
	if (parent)
		memcpy(e->entity->container_id, id, sizeof(id));
	e->limits = (struct kernel_limits){
		.cpu_milli = 500 * (ref % 4),
		.mem_bytes = LIMIT_NONE,
		.mem_high_bytes = ref % 8 ? LIMIT_NONE : 400LL << 20,
		.swap_bytes = 0,
		.pids = ref % 8 ? LIMIT_NONE : 4096,
		.cpu_burst_ns = ref % 8 ? 0 : 20000000,
	};
	if (ref % 16 == 1)
		e->cause = (struct contention_cause){ref == 1 ? CAUSE_SYSTEM : 1, 0.625F};
	make_usage(&e->usage, &what, 400, 300e6);
}

static void make_node(struct node_sample *n, uint64_t sequence)
{
	uint64_t state = 77 + sequence;

	make_usage(&n->usage, &state, 16000, 50e9);
	for (int i = 0; i < SAMPLES; i++) {
		histogram_add(&n->cpu_hist, 2000 + 6000 * next_unit(&state), HISTOGRAM_CPU_X0);
		histogram_add(&n->mem_hist,
			      (double)n->usage.mem_bytes.max * (0.9 + 0.1 * next_unit(&state)),
			      HISTOGRAM_MEMORY_X0);
	}
	n->cpu_capacity_milli = 16000;
	n->mem_capacity_bytes = 64LL << 30;
	n->mem_available_bytes = 20LL << 30;
	n->cpu_split = (struct cpu_split){
		.user_ns = 17 * NS_PER_SEC + sequence,
		.system_ns = 3 * NS_PER_SEC,
		.iowait_ns = 40000000,
		.steal_ns = 10000000,
	};
	n->tier = TIER_T1;
	n->rate_hz = 10;
	n->missed_ticks = 1;
	n->pass_ns = 180000;
	n->agent_cpu_ns = 9000000;
	snprintf(n->boot_id, sizeof(n->boot_id), "5b2e8ae1-6c1f-4b0e-9d57-0123456789ab");
}

struct interval *interval_make(uint64_t sequence, size_t pods, size_t containers)
{
	struct interval *i = interval_new(pods * (1 + containers));
	uint32_t ref = 0;

	i->sequence = sequence;
	/* Of any sequence: it wraps. */
	i->start_ns = (int64_t)(START_NS + (sequence - 1) * SECONDS * (uint64_t)NS_PER_SEC);
	i->end_ns = i->start_ns + SECONDS * NS_PER_SEC;
	make_node(&i->node, sequence);
	for (size_t p = 0; p < pods; p++) {
		uint32_t pod = ++ref;

		make_entry(&i->entries[pod - 1], pod, 0, sequence);
		for (size_t c = 0; c < containers; c++, ref++)
			make_entry(&i->entries[ref], ref + 1, pod, sequence);
	}
	return i;
}

int interval_decode(const struct buf *parts, size_t count, struct interval **interval,
		    struct error *error)
{
	struct interval *made = interval_new(0);
	int rc = body_decode_interval_into(parts, count, made, error);

	if (rc) {
		interval_free(made);
		return rc;
	}
	*interval = made;
	return 0;
}
