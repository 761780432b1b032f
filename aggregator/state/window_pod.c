/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pod's windows: 31 buckets of 64 bytes, so 150,000 pods take about 300 MiB. Most pods of a
 * cluster that runs jobs never live for 15 minutes, so the first 8 buckets lie in place and the
 * others in chunks of 8 that are made as the pod grows older, and stay until it goes. A chunk never
 * moves: growing blocks would leave holes of all sizes, which cost more than they spare. What 64
 * bytes cost in detail: gauges keep a mean and a maximum per bucket (their deviation and minimum are
 * those of bucket means), one weight, the time covered, stands for everything but CPU: a gauge that
 * only some intervals of a bucket measured counts for the whole bucket, and pressure is a share of
 * that time in 16 bits, rounded whenever an interval is added.
 *
 * The newest bucket (i = end_ns / 30 s) lies in slot `at`, which goes round all 31 from the first
 * on, and the one n before it n slots before. Slots that `newest` jumps over are cleared, so no slot
 * needs to say which bucket it holds.
 */
#include <assert.h>
#include <stdlib.h>

#include "aggregator/state/window_sums.h"
#include "shared/mem.h"

#define BUCKET_NS (POD_BUCKET_SECONDS * 1000000000LL)
#define END_NS	  1000000LL /* unit of end */
#define START_NS  62500000LL /* unit of start: 16 bits reach back over an hour */

#define PRESSURE_STEPS (UINT16_MAX - 1)

struct pod_bucket {
	float cpu_weight, cpu_mean, cpu_m2, cpu_min, cpu_max;
	float mem_mean, mem_max;
	float working_set_mean, working_set_max;
	float seconds;
	float throttled_seconds;
	uint16_t pressure
		[PRESSURES]; /* share of seconds in PRESSURE_STEPS, plus 1; 0: not measured */
	uint16_t samples;
	uint16_t periods, throttled_periods;
	uint16_t start; /* START_NS units before the bucket's end */
	uint16_t end; /* END_NS units after its start */
	uint8_t oom_kills;
	uint8_t have; /* without the bits of pressure */
};

static_assert(USAGE_OOM * 2 == USAGE_CONTENTION_CPU, "pressure's bits come last and fit nowhere");
static_assert(sizeof(struct pod_bucket) == 64, "150k pods are budgeted by this");
static_assert((POD_BUCKETS - 1) * POD_BUCKET_SECONDS == 15 * 60, "15 minutes and a bucket");

enum { CHUNK = 8, CHUNKS = (POD_BUCKETS + CHUNK - 1) / CHUNK };

struct pod_windows {
	int64_t newest; /* index of the newest bucket; meaningless while all are empty */
	unsigned int at; /* slot of the newest bucket */
	struct pod_bucket *more[CHUNKS - 1]; /* owned; slots from CHUNK on; NULL: all empty */
	struct pod_bucket first[CHUNK]; /* the first slots */
};

static_assert(sizeof(struct pod_windows) + (POD_BUCKETS - CHUNK) * sizeof(struct pod_bucket) <=
		      2048,
	      "windows.h promises it");

struct pod_windows *pod_windows_new(void)
{
	return mem_zalloc(1, sizeof(struct pod_windows));
}

void pod_windows_free(struct pod_windows *w)
{
	if (!w)
		return;
	for (int i = 0; i < CHUNKS - 1; i++)
		free(w->more[i]);
	free(w);
}

/* Of chunk i: the last one is what is left of the ring. */
static size_t chunk_slots(int i)
{
	return i < CHUNKS - 1 ? CHUNK : POD_BUCKETS - (CHUNKS - 1) * CHUNK;
}

size_t pod_windows_bytes(const struct pod_windows *w)
{
	size_t bytes = sizeof(*w);

	for (int i = 1; i < CHUNKS; i++)
		bytes += w->more[i - 1] ? chunk_slots(i) * sizeof(struct pod_bucket) : 0;
	return bytes;
}

/* Of a bucket at most POD_BUCKETS - 1 before the newest. */
static unsigned int slot_of(const struct pod_windows *w, int64_t index)
{
	unsigned int slot = w->at + POD_BUCKETS - (unsigned int)(w->newest - index);

	return slot < POD_BUCKETS ? slot : slot - POD_BUCKETS;
}

/* NULL: there is no chunk for it yet. */
static struct pod_bucket *find_slot(const struct pod_windows *w, unsigned int slot)
{
	struct pod_bucket *chunk;

	if (slot < CHUNK)
		return (struct pod_bucket *)&w->first[slot];
	chunk = w->more[slot / CHUNK - 1];
	return chunk ? &chunk[slot % CHUNK] : NULL;
}

static struct pod_bucket *take_slot(struct pod_windows *w, unsigned int slot)
{
	struct pod_bucket **chunk;

	if (slot < CHUNK)
		return &w->first[slot];
	chunk = &w->more[slot / CHUNK - 1];
	if (!*chunk)
		*chunk = mem_zalloc(chunk_slots((int)(slot / CHUNK)), sizeof(**chunk));
	return &(*chunk)[slot % CHUNK];
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

static void unpack_pressure(const struct pod_bucket *p, struct window_bucket *b)
{
	for (int i = 0; i < PRESSURES; i++) {
		double steps = p->pressure[i] ? p->pressure[i] - 1 : 0;

		b->have |= p->pressure[i] ? pressure_bit((enum pressure)i) : 0;
		b->pressure_seconds[i] = steps * (double)p->seconds / PRESSURE_STEPS;
	}
}

static void unpack(const struct pod_bucket *p, int64_t index, struct window_bucket *b)
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
	b->throttled_seconds = (double)p->throttled_seconds;
	unpack_pressure(p, b);
	b->periods = p->periods;
	b->throttled_periods = p->throttled_periods;
	b->oom_kills = p->oom_kills;
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

static struct pod_bucket pack(const struct window_bucket *b, int64_t index)
{
	uint64_t scale = b->periods / ((uint64_t)UINT16_MAX + 1) + 1; /* keeps the ratio */

	return (struct pod_bucket){
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
		.throttled_seconds = window_float(b->throttled_seconds),
		.pressure = {pack_pressure(b, CONTENTION_CPU), pack_pressure(b, CONTENTION_MEMORY),
			     pack_pressure(b, STALL_CPU), pack_pressure(b, STALL_MEMORY)},
		.samples = (uint16_t)at_most(b->cpu_milli.samples, UINT16_MAX),
		.periods = (uint16_t)(b->periods / scale),
		.throttled_periods = (uint16_t)at_most(b->throttled_periods / scale, UINT16_MAX),
		.start = units((index + 1) * BUCKET_NS - b->start_ns, START_NS),
		.end = units(b->end_ns - index * BUCKET_NS, END_NS),
		.oom_kills = (uint8_t)at_most(b->oom_kills, UINT8_MAX),
		.have = (uint8_t)(b->have & (USAGE_CONTENTION_CPU - 1)),
	};
}

/* Makes `index` part of the ring; false when it is older than that reaches. */
static bool advance(struct pod_windows *w, int64_t index)
{
	if (index <= w->newest - POD_BUCKETS)
		return false;
	if (index - w->newest > POD_BUCKETS)
		w->newest = index - POD_BUCKETS;
	while (w->newest < index) {
		struct pod_bucket *slot;

		w->newest++;
		w->at = w->at + 1 < POD_BUCKETS ? w->at + 1 : 0;
		slot = find_slot(w, w->at);
		if (slot)
			*slot = (struct pod_bucket){0};
	}
	return true;
}

void pod_windows_add(struct pod_windows *w, const struct usage *u, int64_t start_ns, int64_t end_ns)
{
	int64_t index = end_ns / BUCKET_NS;
	struct window_bucket bucket;
	struct pod_bucket *slot;

	if (end_ns <= 0 || !advance(w, index))
		return;
	slot = take_slot(w, slot_of(w, index));
	unpack(slot, index, &bucket);
	window_bucket_add(&bucket, u, start_ns, end_ns);
	*slot = pack(&bucket, index);
}

bool pod_windows_completes(const struct pod_windows *w, int64_t end_ns, struct pod_bucket_use *out)
{
	const struct pod_bucket *newest = find_slot(w, w->at);

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

/* NULL: the ring does not reach there, or nothing was measured. */
static const struct pod_bucket *find_bucket(const struct pod_windows *w, int64_t index)
{
	const struct pod_bucket *p;

	if (index < 0 || index > w->newest || index <= w->newest - POD_BUCKETS)
		return NULL;
	p = find_slot(w, slot_of(w, index));
	/* Pressure is measured of some time. */
	return p && (p->have || p->seconds > 0) ? p : NULL;
}

static void add_bucket(struct window_sums *sums, const struct pod_bucket *p, int64_t index)
{
	struct window_bucket bucket;

	unpack(p, index, &bucket);
	if (bucket.have)
		window_sums_add(sums, &bucket);
}

/* What add_bucket() does, without counts: two of three windows need no more. */
static void add_spans(struct window_sums *sums, const struct pod_bucket *p, int64_t index)
{
	int64_t start_ns = (index + 1) * BUCKET_NS - p->start * START_NS;
	int64_t end_ns = index * BUCKET_NS + p->end * END_NS;
	struct window_part cpu = {
		.samples = p->samples,
		.weight = (double)p->cpu_weight,
		.mean = (double)p->cpu_mean,
		.m2 = (double)p->cpu_m2,
		.min = (double)p->cpu_min,
		.max = (double)p->cpu_max,
	};
	struct window_part mem, working_set;

	unpack_gauge(&mem, p->have & USAGE_MEMORY, p->seconds, p->mem_mean, p->mem_max);
	unpack_gauge(&working_set, p->have & USAGE_WORKING_SET, p->seconds, p->working_set_mean,
		     p->working_set_max);
	window_span_add(&sums->cpu_milli, &cpu, start_ns, end_ns);
	window_span_add(&sums->mem_bytes, &mem, start_ns, end_ns);
	window_span_add(&sums->working_set_bytes, &working_set, start_ns, end_ns);
}

void pod_windows_read(const struct pod_windows *w, int64_t as_of_ns, struct window_set out[WINDOWS])
{
	int64_t newest = as_of_ns / BUCKET_NS;
	struct window_sums sums = {0};
	int back = 0;

	for (int window = 0; window < WINDOWS; window++) {
		for (; back <= last_bucket[window]; back++) {
			const struct pod_bucket *p = find_bucket(w, newest - back);

			if (p)
				add_bucket(&sums, p, newest - back);
		}
		window_sums_read(&sums, &out[window]);
	}
}

void pod_windows_read_told(const struct pod_windows *w, int64_t as_of_ns,
			   struct window_set out[WINDOWS])
{
	int64_t newest = as_of_ns / BUCKET_NS;
	struct window_sums sums = {0};
	int back;

	for (back = 0; back <= last_bucket[WINDOW_5M]; back++) {
		const struct pod_bucket *p = find_bucket(w, newest - back);

		if (p)
			add_bucket(&sums, p, newest - back);
	}
	window_sums_read(&sums, &out[WINDOW_5M]);
	for (int window = WINDOW_10M; window < WINDOWS; window++) {
		for (; back <= last_bucket[window]; back++) {
			const struct pod_bucket *p = find_bucket(w, newest - back);

			if (p)
				add_spans(&sums, p, newest - back);
		}
		window_sums_read_stats(&sums, &out[window]);
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
	for (int i = 1; i < CHUNKS; i++)
		if (w->more[i - 1])
			prefetch(w->more[i - 1], chunk_slots(i) * sizeof(struct pod_bucket));
}
