/* SPDX-License-Identifier: Apache-2.0 */
#include "shared/interval.h"

#include <stdlib.h>
#include <string.h>

#include "shared/arith.h"
#include "shared/demand.h"
#include "shared/mem.h"

const char *const entity_kind_name[ENTITY_KINDS] = {
	[ENTITY_POD] = "Pod",
	[ENTITY_CONTAINER] = "Container",
	[ENTITY_UNIT] = "Unit",
	[ENTITY_SLICE] = "Slice",
};

const char *const qos_class_name[QOS_CLASSES] = {
	[QOS_UNKNOWN] = NULL,
	[QOS_GUARANTEED] = "Guaranteed",
	[QOS_BURSTABLE] = "Burstable",
	[QOS_BEST_EFFORT] = "BestEffort",
};

const char *const container_runtime_name[RUNTIMES] = {
	[RUNTIME_UNKNOWN] = NULL,    [RUNTIME_CONTAINERD] = "containerd", [RUNTIME_CRIO] = "cri-o",
	[RUNTIME_DOCKER] = "docker", [RUNTIME_PODMAN] = "podman",
};

const char *const sampler_tiers[TIERS] = {
	[TIER_T0] = "T0",
	[TIER_T1] = "T1",
	[TIER_T2] = "T2",
	[TIER_T3] = "T3",
};

struct entity *entity_new(uint32_t ref, enum entity_kind kind, const char *name)
{
	size_t len = strlen(name) + 1;
	struct entity *e = mem_zalloc(1, sizeof(*e) + len);

	e->ref = ref;
	e->kind = kind;
	e->users = 1;
	memcpy(e->name, name, len);
	return e;
}

struct entity *entity_hold(struct entity *e)
{
	assert(e->users > 0);
	e->users++;
	return e;
}

void entity_drop(struct entity *e)
{
	if (!e)
		return;
	assert(e->users > 0);
	if (--e->users == 0)
		free(e);
}

struct interval *interval_new(size_t entries)
{
	struct interval *i = mem_zalloc(1, sizeof(*i));

	i->merged = 1;
	i->entry_count = i->entry_room = entries;
	i->entries = mem_zalloc(entries, sizeof(*i->entries));
	return i;
}

static void drop_entities(struct interval *i)
{
	for (size_t n = 0; n < i->entry_count; n++)
		entity_drop(i->entries[n].entity);
}

void interval_free(struct interval *i)
{
	if (!i)
		return;
	drop_entities(i);
	free(i->entries);
	buf_fini(&i->demand);
	free(i);
}

void interval_clear(struct interval *i)
{
	drop_entities(i);
	buf_clear(&i->demand);
	*i = (struct interval){
		.merged = 1,
		.entries = i->entries,
		.entry_room = i->entry_room,
		.demand = i->demand,
	};
}

void interval_reserve(struct interval *i, size_t entries)
{
	if (i->entry_room >= entries)
		return;
	i->entries = mem_realloc(i->entries, entries * sizeof(*i->entries));
	i->entry_room = entries;
}

size_t interval_bytes(const struct interval *i)
{
	return sizeof(*i) + i->entry_count * sizeof(*i->entries) + i->demand.cap;
}

/* b if neither has weight. */
static double weighted_mean(double a, double weight_a, double b, double weight_b)
{
	double weight = weight_a + weight_b;

	return weight > 0 ? (a * weight_a + b * weight_b) / weight : b;
}

/* The mean is weighted with the time of each side; bit: measured at all. */
static struct gauge merge_gauge(const struct usage *a, const struct gauge *ga,
				const struct usage *b, const struct gauge *gb, uint32_t bit)
{
	if (!(b->have & bit))
		return *ga;
	if (!(a->have & bit))
		return *gb;
	return (struct gauge){
		.mean = (float)weighted_mean((double)ga->mean, (double)a->seconds, (double)gb->mean,
					     (double)b->seconds),
		.max = ga->max > gb->max ? ga->max : gb->max,
		.last = gb->last,
	};
}

const struct usage_counter_row usage_counters[COUNTERS] = {
#define IS_TIME_U64			   true
#define IS_TIME_COUNT32			   false
#define X(member, bit, number, type, from) [COUNTER_##member] = {USAGE_##bit, IS_TIME_##type},
	USAGE_COUNTED(X)
#undef X
#define X(member, bit, key, number, type, ...) [COUNTER_##member] = {USAGE_##bit, IS_TIME_##type},
		USAGE_NEWEST(X)
#undef X
};

const struct usage_latest_row usage_latest[USAGE_LATEST_COUNT] = {
#define X(member, bit, key, decimals, ...) [LATEST_##member] = {key, USAGE_##bit, decimals},
	USAGE_AVERAGED(X)
#undef X
#define X(member, bit, key, ...) [LATEST_##member] = {key, USAGE_##bit, 0},
		USAGE_NEWEST(X)
#undef X
};

const char *const kernel_limit_key[LIMITS] = {
#define X(member, key, ...) [LIMIT_##member] = key,
	KERNEL_LIMITS(X)
#undef X
};

bool kernel_limits_known(const struct kernel_limits *l)
{
	return memcmp(l, &KERNEL_LIMITS_UNKNOWN, sizeof(*l)) != 0;
}

static void merge_counters(struct usage *a, const struct usage *b)
{
	for (int c = 0; c < COUNTERS_COUNTED; c++) {
		a->counter[c] += b->counter[c];
		if (!usage_counters[c].is_time && a->counter[c] > UINT32_MAX)
			a->counter[c] = UINT32_MAX;
	}
	for (int c = COUNTERS_COUNTED; c < COUNTERS; c++)
		if (b->have & usage_counters[c].have)
			a->counter[c] = b->counter[c];
}

void usage_merge(struct usage *a, const struct usage *b)
{
	struct moments cpu = moments_unpack(&a->cpu_milli);
	struct moments later = moments_unpack(&b->cpu_milli);

	moments_merge(&cpu, &later);
	a->cpu_milli = moments_pack(&cpu);
	a->mem_bytes = merge_gauge(a, &a->mem_bytes, b, &b->mem_bytes, USAGE_MEMORY);
	a->working_set_bytes =
		merge_gauge(a, &a->working_set_bytes, b, &b->working_set_bytes, USAGE_WORKING_SET);
	merge_counters(a, b);
	a->have |= b->have;
	a->seconds += b->seconds;
}

/* A mean over passes; rate * seconds is their number. */
static uint64_t merge_pass_ns(const struct node_sample *a, const struct node_sample *b)
{
	double mean =
		weighted_mean((double)a->pass_ns, (double)a->rate_hz * (double)a->usage.seconds,
			      (double)b->pass_ns, (double)b->rate_hz * (double)b->usage.seconds);

	return mean < 0x1p63 ? (uint64_t)mean : UINT64_MAX;
}

static void merge_node(struct node_sample *into, const struct node_sample *a,
		       const struct node_sample *b)
{
	double seconds_a = (double)a->usage.seconds, seconds_b = (double)b->usage.seconds;

	*into = *b;
	into->usage = a->usage;
	usage_merge(&into->usage, &b->usage);
	into->cpu_split.user_ns += a->cpu_split.user_ns;
	into->cpu_split.system_ns += a->cpu_split.system_ns;
	into->cpu_split.iowait_ns += a->cpu_split.iowait_ns;
	into->cpu_split.steal_ns += a->cpu_split.steal_ns;
	into->cpu_hist = a->cpu_hist;
	histogram_merge(&into->cpu_hist, &b->cpu_hist);
	into->mem_hist = a->mem_hist;
	histogram_merge(&into->mem_hist, &b->mem_hist);
	into->rate_hz =
		(float)weighted_mean((double)a->rate_hz, seconds_a, (double)b->rate_hz, seconds_b);
	into->missed_ticks = add_saturating_u32(a->missed_ticks, b->missed_ticks);
	into->overflow = a->overflow > b->overflow ? a->overflow : b->overflow;
	into->pass_ns = merge_pass_ns(a, b);
	into->agent_cpu_ns = a->agent_cpu_ns + b->agent_cpu_ns;
}

static void put_demand(struct interval *m, struct entry *into, const void *bytes, size_t len)
{
	into->demand_at = (uint32_t)m->demand.len;
	into->demand_len = (uint16_t)len;
	buf_add(&m->demand, bytes, len);
}

static void copy_entry(struct interval *m, struct entry *into, const struct interval *of,
		       const struct entry *from)
{
	*into = *from;
	if (into->entity)
		entity_hold(into->entity);
	put_demand(m, into, from->demand_len ? interval_demand(of, from) : NULL, from->demand_len);
}

static void merge_demand(struct interval *m, struct entry *into, const struct interval *a,
			 const struct entry *ea, const struct interval *b, const struct entry *eb)
{
	struct histogram both = {0};
	struct buf bytes = BUF_INIT;

	if (ea->demand_len)
		demand_decode(interval_demand(a, ea), ea->demand_len, &both);
	if (eb->demand_len)
		demand_decode(interval_demand(b, eb), eb->demand_len, &both);
	demand_encode(&both, &bytes);
	put_demand(m, into, bytes.data, bytes.len);
	buf_fini(&bytes);
}

/* Merges usage and demand; identity and limits are of the later that has them, cause is b's. */
static void merge_entry(struct interval *m, struct entry *into, const struct interval *a,
			const struct entry *ea, const struct interval *b, const struct entry *eb)
{
	*into = eb->entity ? *eb : *ea;
	if (into->entity)
		entity_hold(into->entity);
	into->fresh = ea->fresh || eb->fresh;
	into->starting = ea->starting || eb->starting;
	into->cause = eb->cause;
	into->usage = ea->usage;
	usage_merge(&into->usage, &eb->usage);
	merge_demand(m, into, a, ea, b, eb);
}

struct interval *interval_merge(const struct interval *a, const struct interval *b)
{
	struct interval *m = interval_new(a->entry_count + b->entry_count);
	size_t i = 0, j = 0, n = 0;

	assert(a->sequence < b->sequence);
	m->sequence = b->sequence;
	m->start_ns = a->start_ns;
	m->end_ns = b->end_ns;
	m->end_boot_ns = b->end_boot_ns;
	m->merged = a->merged + b->merged;
	m->full = a->full && b->full;
	merge_node(&m->node, &a->node, &b->node);
	while (i < a->entry_count || j < b->entry_count) {
		const struct entry *ea = i < a->entry_count ? &a->entries[i] : NULL;
		const struct entry *eb = j < b->entry_count ? &b->entries[j] : NULL;

		assert(ea || eb);
		if (ea && eb && ea->ref == eb->ref)
			merge_entry(m, &m->entries[n++], a, ea, b, eb), i++, j++;
		else if (!eb || (ea && ea->ref < eb->ref))
			copy_entry(m, &m->entries[n++], a, ea), i++;
		else
			copy_entry(m, &m->entries[n++], b, eb), j++;
	}
	m->entry_count = n;
	m->entries = mem_realloc(m->entries, n * sizeof(*m->entries));
	m->entry_room = n;
	return m;
}
