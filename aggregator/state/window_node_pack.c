/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node's windows as bytes, for the database; part of the format in usage_pack.h. Little-endian:
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
 * u16 which: bucket of the CPU histogram, or 180 + bucket of the memory histogram u16 count, not 0
 *
 * Floats are kept bit for bit, so windows that come back go on as if they had never left. Reading
 * believes nothing: a number that adding and summing buckets could not have made is refused, since
 * it would spoil the arithmetic.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "aggregator/state/usage_pack.h"
#include "aggregator/state/window_node.h"
#include "shared/mem.h"

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
