/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/once.h"

#include <math.h>
#include <string.h>

#include "shared/arith.h"
#include "shared/array.h"
#include "shared/mem.h"

/* The pod by which an item is sorted, or itself. */
static const struct entry *leader(const struct interval *i, const struct entry *e)
{
	uint32_t ref = e->entity->parent;
	size_t at = array_lower_bound(&ref, i->entries, i->entry_count, sizeof(i->entries[0]),
				      array_compare_uint32);

	return ref && at < i->entry_count && i->entries[at].ref == ref ? &i->entries[at] : e;
}

static double cpu_milli(const struct entry *e)
{
	return e->usage.have & USAGE_CPU ? (double)e->usage.cpu_milli.mean : -1;
}

static int compare_entries(const struct entry *a, const struct entry *b)
{
	/* The last of two cgroups with one path. */
	return COMPARE(cpu_milli(b), cpu_milli(a))
		?: strcmp(a->entity->name, b->entity->name)
		?: COMPARE(a->ref, b->ref);
}

static int compare_items(const void *left, const void *right)
{
	const struct once_item *a = left, *b = right;

	if (a->leader != b->leader)
		return compare_entries(a->leader, b->leader);
	return COMPARE(b->entry == b->leader, a->entry == a->leader)
		       ?: compare_entries(a->entry, b->entry);
}

struct once_item *once_items(const struct interval *i, size_t *count)
{
	struct once_item *items = mem_zalloc(i->entry_count, sizeof(*items));

	for (size_t n = 0; n < i->entry_count; n++)
		items[n] = (struct once_item){&i->entries[n], leader(i, &i->entries[n])};
	array_sort(items, i->entry_count, sizeof(*items), compare_items);
	*count = i->entry_count;
	return items;
}

double once_throttled_ratio(const struct usage *u)
{
	if (!(u->have & USAGE_THROTTLE) || u->periods == 0)
		return NAN;
	return fmin((double)u->throttled_periods / u->periods, 1);
}

double once_share(const struct usage *u, enum usage_have bit, uint64_t ns)
{
	if (!(u->have & bit) || !(u->seconds > 0))
		return NAN;
	return fmin((double)ns / 1e9 / (double)u->seconds, 1);
}

double once_milli(uint64_t cpu_ns, double seconds)
{
	return seconds > 0 ? (double)cpu_ns / 1e6 / seconds : NAN;
}

double once_percentile(const struct node_sample *n, double share)
{
	struct moments cpu = moments_unpack(&n->usage.cpu_milli);
	double value = histogram_quantile(&n->cpu_hist, share, HISTOGRAM_CPU_X0, cpu.min, cpu.max);

	if (!(n->usage.have & USAGE_CPU))
		return (double)NAN;
	if (share >= 0.95)
		value = histogram_at_least_mean(value, cpu.mean, HISTOGRAM_CPU_X0);
	return fmin(value, cpu.max);
}
