/* SPDX-License-Identifier: Apache-2.0 */
#include "shared/interval.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"

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
	i->entry_count = entries;
	i->entries = mem_zalloc(entries, sizeof(*i->entries));
	return i;
}

void interval_free(struct interval *i)
{
	if (!i)
		return;
	for (size_t n = 0; n < i->entry_count; n++)
		entity_drop(i->entries[n].entity);
	free(i->entries);
	free(i);
}

size_t interval_bytes(const struct interval *i)
{
	return sizeof(*i) + i->entry_count * sizeof(*i->entries);
}

/* The mean is weighted with the time each side covers; bit says whether a side measured it at all. */
static struct gauge merge_gauge(const struct usage *a, const struct gauge *ga,
				const struct usage *b, const struct gauge *gb, uint32_t bit)
{
	double weight = (double)a->seconds + (double)b->seconds;

	if (!(b->have & bit))
		return *ga;
	if (!(a->have & bit) || weight <= 0)
		return *gb;
	return (struct gauge){
		.mean = (float)(((double)ga->mean * (double)a->seconds +
				 (double)gb->mean * (double)b->seconds) /
				weight),
		.max = ga->max > gb->max ? ga->max : gb->max,
		.last = gb->last,
	};
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
	a->have |= b->have;
	a->seconds += b->seconds;
	a->oom_kills += b->oom_kills;
	a->throttled_ns += b->throttled_ns;
	a->throttled_periods += b->throttled_periods;
	a->periods += b->periods;
	a->contention_cpu_ns += b->contention_cpu_ns;
	a->contention_mem_ns += b->contention_mem_ns;
}

static void merge_node(struct node_sample *into, const struct node_sample *a,
		       const struct node_sample *b)
{
	double weight = (double)a->usage.seconds + (double)b->usage.seconds;

	*into = *b;
	into->usage = a->usage;
	usage_merge(&into->usage, &b->usage);
	into->cpu_hist = a->cpu_hist;
	histogram_merge(&into->cpu_hist, &b->cpu_hist);
	into->mem_hist = a->mem_hist;
	histogram_merge(&into->mem_hist, &b->mem_hist);
	if (weight > 0)
		into->rate_hz = (float)(((double)a->rate_hz * (double)a->usage.seconds +
					 (double)b->rate_hz * (double)b->usage.seconds) /
					weight);
	into->missed_ticks = a->missed_ticks + b->missed_ticks;
	into->overflow = a->overflow > b->overflow ? a->overflow : b->overflow;
	into->pass_ns = a->pass_ns / 2 + b->pass_ns / 2;
	into->agent_cpu_ns = a->agent_cpu_ns + b->agent_cpu_ns;
}

static void copy_entry(struct entry *into, const struct entry *from)
{
	*into = *from;
	if (into->entity)
		entity_hold(into->entity);
}

/* Both sides have the entry: the later one's limits, both's usage. */
static void merge_entry(struct entry *into, const struct entry *a, const struct entry *b)
{
	copy_entry(into, b);
	into->fresh = a->fresh || b->fresh;
	into->usage = a->usage;
	usage_merge(&into->usage, &b->usage);
}

struct interval *interval_merge(const struct interval *a, const struct interval *b)
{
	struct interval *m = interval_new(a->entry_count + b->entry_count);
	size_t i = 0, j = 0, n = 0;

	assert(a->sequence < b->sequence);
	m->sequence = b->sequence;
	m->start_ns = a->start_ns;
	m->end_ns = b->end_ns;
	m->merged = a->merged + b->merged;
	m->full = a->full && b->full;
	merge_node(&m->node, &a->node, &b->node);
	while (i < a->entry_count || j < b->entry_count) {
		const struct entry *ea = i < a->entry_count ? &a->entries[i] : NULL;
		const struct entry *eb = j < b->entry_count ? &b->entries[j] : NULL;

		if (ea && eb && ea->ref == eb->ref)
			merge_entry(&m->entries[n++], ea, eb), i++, j++;
		else if (!eb || (ea && ea->ref < eb->ref))
			copy_entry(&m->entries[n++], ea), i++;
		else
			copy_entry(&m->entries[n++], eb), j++;
	}
	m->entry_count = n;
	m->entries = mem_realloc(m->entries, n * sizeof(*m->entries));
	return m;
}
