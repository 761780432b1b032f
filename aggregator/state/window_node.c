/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node's windows: 61 buckets of 15 s in place, laid out as in window_pod.c, each with a sparse
 * histogram of its own. A machine visits few of the 360 histogram buckets in 15 s (about 12 for
 * CPU, 3 for memory), so a bucket keeps a sorted array of (which, count) that grows by steps of
 * eight: 13 KiB per node then, and at most 96 KiB for one whose use never stands still.
 */
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/state/usage_pack.h"
#include "aggregator/state/window_sums.h"
#include "shared/mem.h"

#define NODE_BUCKET_NS (NODE_BUCKET_SECONDS * 1000000000LL)

struct node_part {
	uint32_t samples;
	float weight, mean, m2, min, max;
};

/* CPU's histogram buckets first, then memory's. */
struct node_bin {
	uint16_t which;
	uint16_t count; /* saturating */
};

enum { NODE_BIN_STEP = 8 };

struct node_bucket {
	int64_t start_ns, end_ns;
	struct node_part cpu_milli, mem_bytes, working_set_bytes;
	float seconds;
	float throttled_seconds, pressure_seconds[PRESSURES];
	uint32_t periods, throttled_periods;
	uint32_t oom_kills;
	uint16_t have; /* 0: empty */
	uint16_t bin_count;
	/* owned; sorted by which; room for bin_count rounded up to NODE_BIN_STEP */
	struct node_bin *bins;
};

static_assert(sizeof(struct node_bucket) <= 136, "61 of them and their bins fit in 16 KiB");
static_assert((NODE_BUCKETS - 1) * NODE_BUCKET_SECONDS == 15 * 60, "15 minutes and a bucket");

struct node_windows {
	int64_t newest; /* index of the newest bucket; meaningless while all are empty */
	struct node_bucket ring[NODE_BUCKETS];
};

static inline size_t node_bin_room(size_t count)
{
	return (count + NODE_BIN_STEP - 1) / NODE_BIN_STEP * NODE_BIN_STEP;
}

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

void node_windows_read(const struct node_windows *w, int64_t as_of_ns,
		       struct window_set out[WINDOWS])
{
	static const int last[WINDOWS] = {20, 40, 60}; /* buckets before that of as_of */

	int64_t index = as_of_ns / NODE_BUCKET_NS;
	struct window_sums sums = {0};
	struct bins bins = {0};
	int back = 0;

	for (int window = 0; window < WINDOWS; window++) {
		for (; back <= last[window]; back++, index--) {
			const struct node_bucket *slot = find_bucket(w, index);
			struct window_bucket bucket;

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

/*
 * --- windows as bytes, for the database; part of the format in usage_pack.h. Little-endian:
 *
 *	i64	index of the newest bucket (Unix time of an end / 15 s)
 *	u8	number of buckets that follow, at most 61
 *	bucket, the newest first, empty ones left out:
 *		u8	how many buckets before the newest, 0..60, growing
 *		u16	have: what was measured (bits of enum usage_have up to USAGE_STALL_MEMORY), not 0
 *		i64	start of its first interval, Unix nanoseconds
 *		i64	end of its last one
 *		f32	seconds covered
 *		for CPU (millicores), memory and working set (bytes), each only with its bit:
 *			u32 samples, f32 weight, mean, m2, min, max
 *		with USAGE_THROTTLE:	f32 throttled seconds, u32 periods, u32 throttled periods
 *		with USAGE_OOM:		u32 kills
 *		f32 seconds lost, for each bit of USAGE_CONTENTION_CPU .. USAGE_STALL_MEMORY
 *		u16	number of bins, then for each, by growing `which`:
 *			u16 which: bucket of the CPU histogram, or 180 + bucket of the memory histogram
 *			u16 count, not 0
 *
 * Floats are kept bit for bit, so windows that come back go on as if they had never left. Reading
 * believes nothing: a number that adding and summing buckets could not have made is refused, since
 * it would spoil the arithmetic.
 */

#define HAVE_BITS ((uint16_t)USAGE_WINDOWED)

static void code_part(struct bytes *b, struct node_part *p)
{
	bytes_u32(b, &p->samples);
	bytes_f32(b, &p->weight);
	bytes_f32(b, &p->mean);
	bytes_f32(b, &p->m2);
	bytes_f32(b, &p->min);
	bytes_f32(b, &p->max);
}

/* All but the bins. */
static void code_bucket(struct bytes *b, struct node_bucket *n)
{
	bytes_u16(b, &n->have);
	bytes_i64(b, &n->start_ns);
	bytes_i64(b, &n->end_ns);
	bytes_f32(b, &n->seconds);
	if (n->have & USAGE_CPU)
		code_part(b, &n->cpu_milli);
	if (n->have & USAGE_MEMORY)
		code_part(b, &n->mem_bytes);
	if (n->have & USAGE_WORKING_SET)
		code_part(b, &n->working_set_bytes);
	if (n->have & USAGE_THROTTLE) {
		bytes_f32(b, &n->throttled_seconds);
		bytes_u32(b, &n->periods);
		bytes_u32(b, &n->throttled_periods);
	}
	if (n->have & USAGE_OOM)
		bytes_u32(b, &n->oom_kills);
	for (enum pressure p = 0; p < PRESSURES; p++)
		if (n->have & pressure_bit(p))
			bytes_f32(b, &n->pressure_seconds[p]);
	bytes_u16(b, &n->bin_count);
}

static void code_bin(struct bytes *b, struct node_bin *bin)
{
	bytes_u16(b, &bin->which);
	bytes_u16(b, &bin->count);
}

void node_windows_pack(const struct node_windows *w, struct bytes *b)
{
	int64_t newest = w->newest;
	uint8_t count = 0;

	for (int i = 0; i < NODE_BUCKETS; i++)
		count += w->ring[i].have != 0;
	bytes_i64(b, &newest);
	bytes_u8(b, &count);
	for (uint8_t back = 0; back < NODE_BUCKETS && back <= newest; back++) {
		const struct node_bucket *slot = &w->ring[(newest - back) % NODE_BUCKETS];
		struct node_bucket bucket = *slot;

		if (!slot->have)
			continue;
		bytes_u8(b, &back);
		code_bucket(b, &bucket);
		for (size_t i = 0; i < slot->bin_count; i++) {
			struct node_bin bin = slot->bins[i];

			code_bin(b, &bin);
		}
	}
}

static bool is_amount(float value)
{
	return isfinite(value) && value >= 0;
}

static bool part_can_be(const struct node_part *p, bool have)
{
	if (!have)
		return true;
	return p->samples > 0 && isfinite(p->weight) && p->weight > 0 && isfinite(p->mean) &&
	       is_amount(p->m2) && isfinite(p->min) && isfinite(p->max);
}

static bool bucket_can_be(const struct node_bucket *n, int64_t index)
{
	bool can = n->have && !(n->have & ~HAVE_BITS) && n->start_ns > 0 &&
		   n->end_ns > n->start_ns && n->end_ns / NODE_BUCKET_NS == index &&
		   is_amount(n->seconds) && is_amount(n->throttled_seconds);

	for (enum pressure p = 0; p < PRESSURES; p++)
		can = can && is_amount(n->pressure_seconds[p]);
	return can && part_can_be(&n->cpu_milli, n->have & USAGE_CPU) &&
	       part_can_be(&n->mem_bytes, n->have & USAGE_MEMORY) &&
	       part_can_be(&n->working_set_bytes, n->have & USAGE_WORKING_SET);
}

static int read_bins(struct bytes *b, struct node_bucket *n)
{
	size_t count = n->bin_count;

	/* Until they are there the bucket has none, for whoever frees it. */
	n->bin_count = 0;
	if (count > 2 * HISTOGRAM_BUCKETS)
		return -EINVAL;
	if (!count)
		return 0;
	n->bins = mem_alloc(node_bin_room(count) * sizeof(struct node_bin));
	for (size_t i = 0; i < count; i++) {
		struct node_bin *bin = &n->bins[i];

		code_bin(b, bin);
		if (b->bad || !bin->count || bin->which >= 2 * HISTOGRAM_BUCKETS ||
		    (i && bin->which <= bin[-1].which))
			return -EINVAL;
	}
	n->bin_count = (uint16_t)count;
	return 0;
}

/* *after: how far back the one before was, -1 for the first. */
static int read_bucket(struct bytes *b, struct node_windows *w, int *after)
{
	struct node_bucket *slot, bucket = {0};
	uint8_t back = 0;

	bytes_u8(b, &back);
	if (b->bad || back <= *after || back >= NODE_BUCKETS || back > w->newest)
		return -EINVAL;
	*after = back;
	code_bucket(b, &bucket);
	if (b->bad || !bucket_can_be(&bucket, w->newest - back))
		return -EINVAL;
	slot = &w->ring[(w->newest - back) % NODE_BUCKETS];
	*slot = bucket;
	return read_bins(b, slot);
}

int node_windows_unpack(struct bytes *b, struct node_windows **out)
{
	struct node_windows *w = node_windows_new();
	int after = -1, rc = 0;
	uint8_t count = 0;

	bytes_i64(b, &w->newest);
	bytes_u8(b, &count);
	if (b->bad || w->newest < 0 || w->newest > INT64_MAX / NODE_BUCKET_NS - NODE_BUCKETS)
		rc = -EINVAL;
	for (unsigned int i = 0; i < count && !rc; i++)
		rc = read_bucket(b, w, &after);
	if (rc) {
		node_windows_free(w);
		return rc;
	}
	*out = w;
	return 0;
}

int64_t node_windows_newest_ns(const struct node_windows *w)
{
	return w->newest * NODE_BUCKET_NS;
}
