/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pod's windows: 31 buckets, so 150,000 pods take 250 MiB. Counts are part of the shortest window
 * only, so the newest 11 buckets, of 64 bytes, keep counts and the older ones, of 48, do not. Most
 * pods of a cluster that runs jobs never live for 15 minutes, so the older ones lie in chunks of 4
 * that are made as the pod grows older, and stay until it goes. A chunk never moves: growing blocks
 * would leave holes of all sizes, which cost more than they spare. The small size has these costs:
 * gauges keep a mean and a maximum per bucket (their deviation and minimum are those of bucket
 * means), one weight, the time covered, stands for everything but CPU: a gauge that only some
 * intervals of a bucket measured counts for the whole bucket, and pressure is a share of that time
 * in 16 bits, rounded whenever an interval is added.
 *
 * Bucket i holds the intervals with i = end_ns / 30 s, and lies in a slot by its index in one of
 * two rings, by how far it is from the newest: no slot needs to say which bucket it holds.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/state/window_sums.h"
#include "shared/mem.h"

#define BUCKET_NS (POD_BUCKET_SECONDS * 1000000000LL)
#define END_NS	  1000000LL /* unit of end */
#define START_NS  62500000LL /* unit of start: 16 bits reach back over an hour */

#define PRESSURE_STEPS (UINT16_MAX - 1)

/* The part of a bucket that every window needs. */
struct pod_span {
	float cpu_weight, cpu_mean, cpu_m2, cpu_min, cpu_max;
	float mem_mean, mem_max;
	float working_set_mean, working_set_max;
	float seconds;
	uint16_t samples;
	uint16_t start; /* START_NS units before the bucket's end; 0: the bucket is empty */
	uint16_t end; /* END_NS units after its start */
	uint8_t have; /* without the bits of pressure */
	uint8_t oom_kills; /* a count, in the room that is left */
};

struct pod_bucket {
	struct pod_span span;
	float throttled_seconds;
	uint16_t pressure
		[PRESSURES]; /* share of seconds in PRESSURE_STEPS, plus 1; 0: not measured */
	uint16_t periods, throttled_periods;
};

static_assert(USAGE_OOM * 2 == USAGE_CONTENTION_CPU, "pressure's bits come last and fit nowhere");
static_assert(sizeof(struct pod_bucket) == 64, "150k pods are budgeted by this");
static_assert(sizeof(struct pod_span) == 48, "and by this");
static_assert((POD_BUCKETS - 1) * POD_BUCKET_SECONDS == 15 * 60, "15 minutes and a bucket");

enum { YOUNG = 11, OLD = POD_BUCKETS - YOUNG, CHUNK = 4, CHUNKS = OLD / CHUNK };

static_assert(OLD % CHUNK == 0, "chunks are whole");
static_assert((YOUNG - 1) * POD_BUCKET_SECONDS == 5 * 60, "the shortest window needs counts");

/* Malloc aligns so much to a line of the cache, so each young bucket is in one, and so is the rest. */
struct pod_windows {
	struct pod_bucket young[YOUNG];
	int64_t newest; /* index of the newest bucket; meaningless while all are empty */
	struct pod_span *old[CHUNKS]; /* each owned; NULL: all empty */
};

static_assert(sizeof(struct pod_windows) <= 768 &&
		      sizeof(struct pod_windows) + OLD * sizeof(struct pod_span) <= 1728,
	      "windows.h promises it");

struct pod_windows *pod_windows_new(void)
{
	return mem_zalloc(1, sizeof(struct pod_windows));
}

void pod_windows_free(struct pod_windows *w)
{
	if (!w)
		return;
	for (int i = 0; i < CHUNKS; i++)
		free(w->old[i]);
	free(w);
}

/* Of a bucket among the newest YOUNG; not negative. */
static struct pod_bucket *young_slot(const struct pod_windows *w, int64_t index)
{
	return (struct pod_bucket *)&w->young[index % YOUNG];
}

static bool is_young(const struct pod_windows *w, int64_t index)
{
	return index > w->newest - YOUNG;
}

/* Of one of those before; NULL: it is empty, and there is no room for it yet. */
static struct pod_span *find_old_slot(const struct pod_windows *w, int64_t index)
{
	unsigned int slot = (unsigned int)(index % OLD);
	struct pod_span *chunk = w->old[slot / CHUNK];

	return chunk ? &chunk[slot % CHUNK] : NULL;
}

static struct pod_span *take_old_slot(struct pod_windows *w, int64_t index)
{
	struct pod_span **chunk = &w->old[(unsigned int)(index % OLD) / CHUNK];

	if (!*chunk)
		*chunk = mem_zalloc(CHUNK, sizeof(**chunk));
	return find_old_slot(w, index);
}

/*
 * Member by member, as is unpack(): a struct built first and copied then makes a sweep take twice
 * as long.
 */
static void unpack_gauge(struct window_part *part, bool have, float seconds, float mean, float max)
{
	part->samples = have;
	part->weight = have ? (double)seconds : 0;
	part->mean = (double)mean;
	part->m2 = 0;
	part->min = (double)mean;
	part->max = (double)max;
}

/* All but the counts. */
static void unpack_span(const struct pod_span *p, int64_t index, struct window_bucket *b)
{
	b->have = p->have;
	b->start_ns = (index + 1) * BUCKET_NS - p->start * START_NS;
	b->end_ns = index * BUCKET_NS + p->end * END_NS;
	b->cpu_milli.samples = p->samples;
	b->cpu_milli.weight = (double)p->cpu_weight;
	b->cpu_milli.mean = (double)p->cpu_mean;
	b->cpu_milli.m2 = (double)p->cpu_m2;
	b->cpu_milli.min = (double)p->cpu_min;
	b->cpu_milli.max = (double)p->cpu_max;
	unpack_gauge(&b->mem_bytes, p->have & USAGE_MEMORY, p->seconds, p->mem_mean, p->mem_max);
	unpack_gauge(&b->working_set_bytes, p->have & USAGE_WORKING_SET, p->seconds,
		     p->working_set_mean, p->working_set_max);
	b->seconds = (double)p->seconds;
}

static void unpack(const struct pod_bucket *p, int64_t index, struct window_bucket *b)
{
	double unit = (double)p->span.seconds / PRESSURE_STEPS;

	unpack_span(&p->span, index, b);
	b->throttled_seconds = (double)p->throttled_seconds;
	for (int i = 0; i < PRESSURES; i++) {
		double steps = p->pressure[i] ? p->pressure[i] - 1 : 0;

		b->have |= p->pressure[i] ? pressure_bit((enum pressure)i) : 0;
		b->pressure_seconds[i] = steps * unit;
	}
	b->periods = p->periods;
	b->throttled_periods = p->throttled_periods;
	b->oom_kills = p->span.oom_kills;
}

/* One that keeps no counts. Where nothing else was measured it is not empty for that. */
static void unpack_old(const struct pod_span *p, int64_t index, struct window_bucket *b)
{
	*b = (struct window_bucket){0};
	unpack_span(p, index, b);
	if (p->start && !b->have)
		b->have = PRESSURE_BITS;
}

static uint64_t at_most(uint64_t value, uint64_t most)
{
	return value < most ? value : most;
}

/* How many units ns is, rounded up: what is told never begins too late or ends too early. */
static uint16_t units(int64_t ns, int64_t unit)
{
	return ns > 0 ? (uint16_t)at_most((uint64_t)((ns - 1) / unit + 1), UINT16_MAX) : 0;
}

static uint16_t pack_pressure(const struct window_bucket *b, enum pressure p)
{
	if (!(b->have & pressure_bit(p)))
		return 0;
	return (uint16_t)(1.5 +
			  PRESSURE_STEPS * pressure_share(b->pressure_seconds[p], b->seconds));
}

static struct pod_span pack_span(const struct window_bucket *b, int64_t index)
{
	return (struct pod_span){
		.cpu_weight = window_float(b->cpu_milli.weight),
		.cpu_mean = window_float(b->cpu_milli.mean),
		.cpu_m2 = window_float(b->cpu_milli.m2),
		.cpu_min = window_float(b->cpu_milli.min),
		.cpu_max = window_float(b->cpu_milli.max),
		.mem_mean = window_float(b->mem_bytes.mean),
		.mem_max = window_float(b->mem_bytes.max),
		.working_set_mean = window_float(b->working_set_bytes.mean),
		.working_set_max = window_float(b->working_set_bytes.max),
		.seconds = window_float(b->seconds),
		.samples = (uint16_t)at_most(b->cpu_milli.samples, UINT16_MAX),
		.start = units((index + 1) * BUCKET_NS - b->start_ns, START_NS),
		.end = units(b->end_ns - index * BUCKET_NS, END_NS),
		.have = (uint8_t)(b->have & (USAGE_CONTENTION_CPU - 1)),
		.oom_kills = (uint8_t)at_most(b->oom_kills, UINT8_MAX),
	};
}

static struct pod_bucket pack(const struct window_bucket *b, int64_t index)
{
	uint64_t scale = b->periods / ((uint64_t)UINT16_MAX + 1) + 1; /* keeps the ratio */

	return (struct pod_bucket){
		.span = pack_span(b, index),
		.throttled_seconds = window_float(b->throttled_seconds),
		.pressure = {pack_pressure(b, CONTENTION_CPU), pack_pressure(b, CONTENTION_MEMORY),
			     pack_pressure(b, STALL_CPU), pack_pressure(b, STALL_MEMORY)},
		.periods = (uint16_t)(b->periods / scale),
		.throttled_periods = (uint16_t)at_most(b->throttled_periods / scale, UINT16_MAX),
	};
}

/* Gives the slot of the newest bucket to the next; the one that was in it grows old. */
static void step(struct pod_windows *w)
{
	int64_t leaving = ++w->newest - YOUNG;
	struct pod_bucket *slot = young_slot(w, w->newest);

	if (slot->span.start)
		*take_old_slot(w, leaving) = slot->span;
	else if (leaving >= 0 && find_old_slot(w, leaving))
		*find_old_slot(w, leaving) = (struct pod_span){0};
	*slot = (struct pod_bucket){0};
}

/* Makes `index` part of the rings; false when it is older than they reach. */
static bool advance(struct pod_windows *w, int64_t index)
{
	if (index <= w->newest - POD_BUCKETS)
		return false;
	if (index - w->newest > POD_BUCKETS) {
		/* The buckets in there are too old for step(). */
		memset(w->young, 0, sizeof(w->young));
		w->newest = index - POD_BUCKETS;
	}
	while (w->newest < index)
		step(w);
	return true;
}

void pod_windows_add(struct pod_windows *w, const struct usage *u, int64_t start_ns, int64_t end_ns)
{
	int64_t index = end_ns / BUCKET_NS;
	struct window_bucket bucket;

	if (end_ns <= 0 || !advance(w, index))
		return;
	if (is_young(w, index)) {
		struct pod_bucket *slot = young_slot(w, index);

		unpack(slot, index, &bucket);
		window_bucket_add(&bucket, u, start_ns, end_ns);
		if (bucket.have)
			*slot = pack(&bucket, index);
	} else {
		static const struct pod_span empty;
		const struct pod_span *slot = find_old_slot(w, index);

		unpack_old(slot ? slot : &empty, index, &bucket);
		window_bucket_add(&bucket, u, start_ns, end_ns);
		if (bucket.have)
			*take_old_slot(w, index) = pack_span(&bucket, index);
	}
}

bool pod_windows_completes(const struct pod_windows *w, int64_t end_ns, struct pod_bucket_use *out)
{
	const struct pod_span *newest = &young_slot(w, w->newest)->span;

	if (end_ns / BUCKET_NS <= w->newest || w->newest == 0)
		return false;
	*out = (struct pod_bucket_use){
		.start_ns = w->newest * BUCKET_NS,
		.cpu_milli = newest->cpu_mean,
		.working_set_bytes = newest->working_set_max,
		.cpu_known = newest->have & USAGE_CPU,
		.working_set_known = newest->have & USAGE_WORKING_SET,
	};
	return true;
}

static const int last_bucket[WINDOWS] = {10, 20, 30}; /* of each window, before that of as_of */

static bool reaches(const struct pod_windows *w, int64_t index)
{
	return index >= 0 && index <= w->newest && index > w->newest - POD_BUCKETS;
}

/* Without counts: two of three windows need no more. */
static void add_spans(struct window_sums *sums, const struct pod_windows *w, int64_t index)
{
	struct window_bucket bucket; /* without counts */
	const struct pod_span *p;

	if (!reaches(w, index))
		return;
	p = is_young(w, index) ? &young_slot(w, index)->span : find_old_slot(w, index);
	if (!p || !p->start)
		return;
	unpack_span(p, index, &bucket);
	window_sums_add_spans(sums, &bucket);
}

/* Counts, too, as far as they are kept. */
static void add_bucket(struct window_sums *sums, const struct pod_windows *w, int64_t index)
{
	struct window_bucket bucket;

	if (!reaches(w, index) || !is_young(w, index)) {
		add_spans(sums, w, index);
		return;
	}
	unpack(young_slot(w, index), index, &bucket);
	if (bucket.have)
		window_sums_add(sums, &bucket);
}

void pod_windows_read(const struct pod_windows *w, int64_t as_of_ns, struct window_set out[WINDOWS])
{
	int64_t newest = as_of_ns / BUCKET_NS;
	struct window_sums sums = {0};
	int back;

	for (back = 0; back <= last_bucket[WINDOW_5M]; back++)
		add_bucket(&sums, w, newest - back);
	window_sums_read(&sums, &out[WINDOW_5M]);
	for (int window = WINDOW_10M; window < WINDOWS; window++) {
		for (; back <= last_bucket[window]; back++)
			add_spans(&sums, w, newest - back);
		window_sums_read_stats(&sums, &out[window]);
	}
}

void pod_windows_buckets(const struct pod_windows *w, struct window_buckets *out)
{
	enum { MEASURED = USAGE_CPU | USAGE_MEMORY | USAGE_WORKING_SET };

	out->seconds = POD_BUCKET_SECONDS;
	out->count = 0;
	for (int64_t i = w->newest - POD_BUCKETS + 1; i <= w->newest; i++) {
		struct window_bucket *b = &out->of[out->count];
		const struct pod_span *old;

		if (!reaches(w, i))
			continue;
		if (is_young(w, i)) {
			unpack(young_slot(w, i), i, b);
		} else {
			old = find_old_slot(w, i);
			if (!old)
				continue;
			unpack_old(old, i, b);
			b->have &= MEASURED;
		}
		out->count += b->have != 0;
	}
}

static void prefetch(const void *block, size_t size)
{
	for (size_t at = 0; at < size; at += 64)
		__builtin_prefetch((const char *)block + at);
}

void pod_windows_prefetch(const struct pod_windows *w)
{
	prefetch(w, sizeof(*w));
}

void pod_windows_prefetch_more(const struct pod_windows *w)
{
	for (int i = 0; i < CHUNKS; i++)
		if (w->old[i])
			prefetch(w->old[i], CHUNK * sizeof(*w->old[i]));
}
