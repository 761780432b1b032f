/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An interval is cut into ticks of a tenth of a second. Each pattern's use in each tick goes into one
 * table:
 *
 *	        tick 0   1   2  ..
 *	system    .      .   .         a column whose sum is above the node's capacity shrinks to fit, as under the
 *	pod 0     .      .   .         kernel's fair scheduler, and what it shrank by was waited for
 *	pod 1     .      .   .
 *
 * Rows then become moments, column sums those of the node and its histogram. A container uses a
 * share of its pod, so its moments and its demand are its pod's, scaled. Memory needs no ticks: its mean, maximum
 * and last value are closed forms.
 */
#include "tests/fleet/use_table.h"

#include <math.h>
#include <stdlib.h>

#include "shared/clock.h"
#include "shared/demand.h"
#include "shared/mem.h"

#define TICK_NS (100 * NS_PER_MS)

/* A process that was held up for long makes longer ticks, not more of them. */
enum { TICKS_MAX = 600 };

#define EVERYTHING                                                                                 \
	(USAGE_CPU | USAGE_MEMORY | USAGE_WORKING_SET | USAGE_THROTTLE | USAGE_OOM |               \
	 USAGE_CONTENTION_CPU | USAGE_CONTENTION_MEMORY | USAGE_STALL_CPU | USAGE_STALL_MEMORY |   \
	 USAGE_SWAP | USAGE_PIDS)

/* --- the table -------------------------------------------------------------------------------- */

static float *row_of(const struct use_table *t, size_t row)
{
	return t->used + row * t->ticks;
}

static void fit(struct use_table *t, double capacity_milli)
{
	for (size_t i = 0; i < t->ticks; i++) {
		double wanted = (double)t->sums[i], kept = capacity_milli / wanted;

		if (wanted <= capacity_milli)
			continue;
		for (size_t row = 0; row < t->machine.count; row++)
			row_of(t, row)[i] *= (float)kept;
		t->waited_ns += (1 - kept) * (double)t->tick_ns;
		t->sums[i] = (float)capacity_milli;
	}
}

void use_table_init(struct use_table *t, const struct use_machine *machine, int64_t start_ns,
		    int64_t end_ns)
{
	int64_t ticks = (end_ns - start_ns + TICK_NS / 2) / TICK_NS;

	ticks = ticks < 1 ? 1 : ticks > TICKS_MAX ? TICKS_MAX : ticks;
	*t = (struct use_table){.machine = *machine,
				.start_ns = start_ns,
				.end_ns = end_ns,
				.tick_ns = (end_ns - start_ns) / ticks,
				.ticks = (size_t)ticks};
	t->used = mem_alloc(machine->count * t->ticks * sizeof(float));
	t->sums = mem_zalloc(t->ticks, sizeof(float));
	for (size_t row = 0; row < machine->count; row++) {
		float *used = row_of(t, row);

		pattern_fill_milli(machine->patterns[row], start_ns, t->tick_ns, t->ticks, used);
		for (size_t i = 0; i < t->ticks; i++)
			t->sums[i] += used[i];
	}
	fit(t, (double)machine->cpu_milli);
}

void use_table_fini(struct use_table *t)
{
	free(t->used);
	free(t->sums);
}

/* All ticks last alike, so two plain passes do. */
static struct moments moments_of(const struct use_table *t, const float *values)
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

void use_table_make_usage(const struct use_table *t, size_t row, struct usage *u)
{
	const struct pattern *p = t->machine.patterns[row];
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

void use_table_make_part(const struct usage *pod, float share, bool first, struct usage *u)
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

void use_table_make_demand(const struct use_table *t, size_t row, float share, struct buf *out)
{
	struct pattern unlimited = *t->machine.patterns[row];
	bool throttled = unlimited.limit_milli > 0 &&
			 fmax(unlimited.low_milli, unlimited.high_milli) > unlimited.limit_milli;
	float wanted[TICKS_MAX];
	const float *values = throttled ? wanted : row_of(t, row);
	struct histogram demand = {0};
	unsigned int bucket = 0;

	unlimited.limit_milli = 0;
	if (throttled)
		pattern_fill_milli(&unlimited, t->start_ns, t->tick_ns, t->ticks, wanted);
	for (size_t i = 0; i < t->ticks; i++) {
		/* Most ticks are like the one before. */
		if (!i || values[i] != values[i - 1])
			bucket = histogram_bucket((double)(values[i] * share), HISTOGRAM_CPU_X0);
		demand.count[bucket]++;
	}
	demand_encode(&demand, out);
}

struct kernel_limits use_table_limits(int64_t cpu_milli, int64_t mem_bytes)
{
	return (struct kernel_limits){
		.cpu_milli = cpu_milli ? cpu_milli : LIMIT_NONE,
		.mem_bytes = mem_bytes ? mem_bytes : LIMIT_NONE,
		.mem_high_bytes = LIMIT_NONE,
		.swap_bytes = 0,
		.pids = LIMIT_NONE,
	};
}

static void add_memory(struct gauge *sum, const struct gauge *g)
{
	sum->mean += g->mean;
	sum->last += g->last;
}

/* Working sets at one time, which is what the machine cannot do without. */
static double needed_bytes(const struct use_machine *m, int64_t at_ns)
{
	double sum = 0;

	for (size_t i = 0; i < m->count; i++)
		sum += pattern_working_set(m->patterns[i], at_ns);
	return sum;
}

static void make_node_memory(const struct use_table *t, struct node_sample *n)
{
	const struct gauge *g = &n->usage.mem_bytes;
	float max = g->last > g->mean ? g->last : g->mean;

	/* Once a second, as /proc/meminfo is read. */
	for (int64_t at = t->end_ns; at > t->start_ns; at -= NS_PER_SEC) {
		double bytes = needed_bytes(&t->machine, at);

		histogram_add(&n->mem_hist, bytes, HISTOGRAM_MEMORY_X0);
		if ((float)bytes > max)
			max = (float)bytes;
	}
	n->usage.mem_bytes.max = max;
	n->usage.working_set_bytes = n->usage.mem_bytes;
	n->mem_capacity_bytes = t->machine.mem_bytes;
	n->mem_available_bytes = t->machine.mem_bytes - (int64_t)n->usage.mem_bytes.last;
}

static void make_node_cpu(const struct use_table *t, struct node_sample *n)
{
	struct moments cpu = moments_of(t, t->sums);
	double used_ns = cpu.mean * cpu.weight * 1e6;

	n->usage.cpu_milli = moments_pack(&cpu);
	for (size_t i = 0; i < t->ticks; i++)
		histogram_add(&n->cpu_hist, (double)t->sums[i], HISTOGRAM_CPU_X0);
	n->cpu_capacity_milli = t->machine.cpu_milli;
	n->cpu_split = (struct cpu_split){
		.user_ns = (uint64_t)(used_ns * 0.8),
		.system_ns = (uint64_t)(used_ns * 0.2),
		.iowait_ns = (uint64_t)(cpu.weight * 2e6),
	};
}

void use_table_make_node(const struct use_table *t, struct interval *interval)
{
	struct node_sample *n = &interval->node;
	struct usage *sum = &n->usage;

	use_table_make_usage(t, 0, sum);
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
	make_node_cpu(t, n);
	make_node_memory(t, n);
	n->tier = TIER_T1;
	n->rate_hz = 10;
	n->pass_ns = 40000 + 700 * interval->entry_count;
	n->agent_cpu_ns = n->pass_ns * t->ticks;
}
