/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node's windows: 61 buckets of 15 s in place, laid out as in window_pod.c, each with a sparse
 * histogram of its own. A machine visits few of the 360 histogram buckets in 15 s (about 12 for
 * CPU, 3 for memory), so a bucket keeps a sorted array of (which, count) that grows by steps of
 * eight: 13 KiB per node then, and at most 96 KiB for one whose use never stands still.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/state/window_node.h"
#include "aggregator/state/window_sums.h"
#include "shared/mem.h"

struct node_windows *node_windows_new(void)
{
	return mem_zalloc(1, sizeof(struct node_windows));
}

void node_windows_free(struct node_windows *w)
{
	if (!w)
		return;
	for (int i = 0; i < NODE_BUCKETS; i++)
		free(w->ring[i].bins);
	free(w);
}

static void unpack_part(struct window_part *part, const struct node_part *p)
{
	part->samples = p->samples;
	part->weight = (double)p->weight;
	part->mean = (double)p->mean;
	part->m2 = (double)p->m2;
	part->min = (double)p->min;
	part->max = (double)p->max;
}

static struct node_part pack_part(const struct window_part *p)
{
	return (struct node_part){
		.samples = p->samples < UINT32_MAX ? (uint32_t)p->samples : UINT32_MAX,
		.weight = window_float(p->weight),
		.mean = window_float(p->mean),
		.m2 = window_float(p->m2),
		.min = window_float(p->min),
		.max = window_float(p->max),
	};
}

static void unpack(const struct node_bucket *n, struct window_bucket *b)
{
	b->have = n->have;
	b->start_ns = n->start_ns;
	b->end_ns = n->end_ns;
	unpack_part(&b->cpu_milli, &n->cpu_milli);
	unpack_part(&b->mem_bytes, &n->mem_bytes);
	unpack_part(&b->working_set_bytes, &n->working_set_bytes);
	b->seconds = (double)n->seconds;
	b->throttled_seconds = (double)n->throttled_seconds;
	for (int p = 0; p < PRESSURES; p++)
		b->pressure_seconds[p] = (double)n->pressure_seconds[p];
	b->periods = n->periods;
	b->throttled_periods = n->throttled_periods;
	b->oom_kills = n->oom_kills;
}

/* Keeps the bins. Counters wrap after 4 billion in 15 s. */
static void pack(struct node_bucket *n, const struct window_bucket *b)
{
	n->have = (uint16_t)b->have;
	n->start_ns = b->start_ns;
	n->end_ns = b->end_ns;
	n->cpu_milli = pack_part(&b->cpu_milli);
	n->mem_bytes = pack_part(&b->mem_bytes);
	n->working_set_bytes = pack_part(&b->working_set_bytes);
	n->seconds = window_float(b->seconds);
	n->throttled_seconds = window_float(b->throttled_seconds);
	for (int p = 0; p < PRESSURES; p++)
		n->pressure_seconds[p] = window_float(b->pressure_seconds[p]);
	n->periods = (uint32_t)b->periods;
	n->throttled_periods = (uint32_t)b->throttled_periods;
	n->oom_kills = (uint32_t)b->oom_kills;
}

static void clear_bucket(struct node_bucket *n)
{
	free(n->bins);
	*n = (struct node_bucket){0};
}

/* Makes `index` part of the ring; false when it is older than that reaches. */
static bool advance(struct node_windows *w, int64_t index)
{
	if (index <= w->newest - NODE_BUCKETS)
		return false;
	if (index - w->newest > NODE_BUCKETS)
		w->newest = index - NODE_BUCKETS;
	while (w->newest < index)
		clear_bucket(&w->ring[++w->newest % NODE_BUCKETS]);
	return true;
}

/* Adds count to bin `which`, looking from position `at` on. Returns the position after it. */
static size_t add_bin(struct node_bucket *n, size_t at, uint16_t which, uint32_t count)
{
	uint32_t sum = count;

	while (at < n->bin_count && n->bins[at].which < which)
		at++;
	if (at < n->bin_count && n->bins[at].which == which) {
		sum = count > UINT16_MAX ? count : count + n->bins[at].count;
	} else {
		n->bins = mem_realloc(n->bins,
				      node_bin_room(n->bin_count + 1u) * sizeof(struct node_bin));
		memmove(&n->bins[at + 1], &n->bins[at],
			(n->bin_count - at) * sizeof(struct node_bin));
		n->bin_count++;
	}
	n->bins[at] = (struct node_bin){which, sum > UINT16_MAX ? UINT16_MAX : (uint16_t)sum};
	return at + 1;
}

static void add_histogram(struct node_bucket *n, const struct histogram *h, unsigned int first)
{
	size_t at = 0;

	for (unsigned int i = 0; i < HISTOGRAM_BUCKETS; i++)
		if (h->count[i])
			at = add_bin(n, at, (uint16_t)(first + i), h->count[i]);
}

void node_windows_add(struct node_windows *w, const struct node_sample *n, int64_t start_ns,
		      int64_t end_ns)
{
	int64_t index = end_ns / NODE_BUCKET_NS;
	struct window_bucket bucket;
	struct node_bucket *slot;

	if (end_ns <= 0 || !advance(w, index))
		return;
	slot = &w->ring[index % NODE_BUCKETS];
	unpack(slot, &bucket);
	window_bucket_add(&bucket, &n->usage, start_ns, end_ns);
	if (!bucket.have)
		return;
	pack(slot, &bucket);
	if (n->usage.have & USAGE_CPU)
		add_histogram(slot, &n->cpu_hist, 0);
	if (n->usage.have & USAGE_MEMORY)
		add_histogram(slot, &n->mem_hist, HISTOGRAM_BUCKETS);
}

/* Both histograms of a window, dense, in the order of struct node_bin. */
struct bins {
	struct histogram cpu, mem;
};

/* Each sample counts `times`. */
static void sum_bins(struct bins *into, const struct node_bucket *n, uint32_t times)
{
	for (size_t i = 0; i < n->bin_count; i++) {
		const struct node_bin *b = &n->bins[i];

		if (b->which < HISTOGRAM_BUCKETS)
			into->cpu.count[b->which] += b->count * times;
		else
			into->mem.count[b->which - HISTOGRAM_BUCKETS] += b->count * times;
	}
}

static void read_percentiles(struct window_stats *s, const struct histogram *h, double x0)
{
	static const double shares[] = {0.50, 0.95, 0.99};
	double values[3];

	if (!s->known || !histogram_quantiles(h, shares, values, 3, x0, s->min, s->max))
		return;
	s->percentiles = true;
	s->p50 = values[0];
	s->p95 = fmin(histogram_at_least_mean(values[1], s->mean, x0), s->max);
	s->p99 = fmin(histogram_at_least_mean(values[2], s->mean, x0), s->max);
}

/* NULL: nothing was measured, or the ring does not reach there. */
static const struct node_bucket *find_bucket(const struct node_windows *w, int64_t index)
{
	const struct node_bucket *slot;

	if (index < 0 || index > w->newest || index <= w->newest - NODE_BUCKETS)
		return NULL;
	slot = &w->ring[index % NODE_BUCKETS];
	return slot->have ? slot : NULL;
}

/*
 * Each bucket's bins lie somewhere else: reading out of cold memory takes 6.6 us with the prefetch
 * and 8.7 us without. gcc drops the calls of a function that only prefetches, so the reader
 * prefetches itself.
 */
static const void *bins_of(const struct node_windows *w, int64_t index)
{
	const struct node_bucket *slot = find_bucket(w, index);

	return slot ? slot->bins : NULL;
}

void node_windows_read(const struct node_windows *w, int64_t as_of_ns,
		       struct window_set out[WINDOWS])
{
	static const int last[WINDOWS] = {20, 40, 60}; /* buckets before that of as_of */
	enum { AHEAD = 8 }; /* buckets: about as long as memory takes to answer */

	int64_t index = as_of_ns / NODE_BUCKET_NS;
	struct window_sums sums = {0};
	struct bins bins = {0};
	int back = 0;

	for (int i = 0; i < AHEAD; i++)
		__builtin_prefetch(bins_of(w, index - i));
	for (int window = 0; window < WINDOWS; window++) {
		for (; back <= last[window]; back++, index--) {
			const struct node_bucket *slot = find_bucket(w, index);
			struct window_bucket bucket;

			__builtin_prefetch(bins_of(w, index - AHEAD));
			if (!slot)
				continue;
			unpack(slot, &bucket);
			window_sums_add(&sums, &bucket);
			sum_bins(&bins, slot, 1);
		}
		window_sums_read(&sums, &out[window]);
		read_percentiles(&out[window].cpu_milli, &bins.cpu, HISTOGRAM_CPU_X0);
		read_percentiles(&out[window].mem_bytes, &bins.mem, HISTOGRAM_MEMORY_X0);
	}
}

void node_windows_buckets(const struct node_windows *w, struct window_buckets *out)
{
	out->seconds = NODE_BUCKET_SECONDS;
	out->count = 0;
	for (int back = NODE_BUCKETS - 1; back >= 0; back--) {
		const struct node_bucket *slot = find_bucket(w, w->newest - back);

		if (slot)
			unpack(slot, &out->of[out->count++]);
	}
}

static void fade(struct window_part *p, double share)
{
	p->weight *= share;
	p->m2 *= share;
}

void node_windows_read_recent(const struct node_windows *w, int64_t as_of_ns,
			      struct window_recent *out)
{
	enum { HALVINGS = 10 }; /* what is older counts for less than a thousandth */

	int64_t index = as_of_ns / NODE_BUCKET_NS;
	struct window_sums sums = {0};
	struct window_set set = {.cpu_milli = {0}};
	struct bins bins = {0};

	for (int back = 0; back <= HALVINGS; back++) {
		const struct node_bucket *slot = find_bucket(w, index - back);
		struct window_bucket bucket;

		if (!slot)
			continue;
		unpack(slot, &bucket);
		fade(&bucket.cpu_milli, ldexp(1, -back));
		fade(&bucket.mem_bytes, ldexp(1, -back));
		window_sums_add(&sums, &bucket);
		sum_bins(&bins, slot, 1u << (HALVINGS - back));
	}
	window_sums_read_stats(&sums, &set);
	read_percentiles(&set.cpu_milli, &bins.cpu, HISTOGRAM_CPU_X0);
	read_percentiles(&set.mem_bytes, &bins.mem, HISTOGRAM_MEMORY_X0);
	*out = (struct window_recent){set.cpu_milli, set.mem_bytes};
}
