/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows are sums in double precision, but what goes into them are float32 buckets, so a float32
 * loses nothing that was known. Times are kept from the start of the 30 s bucket the stats end in:
 * a pod's window starts and ends at whole steps from there (window_pod.c), so they come out of here
 * as they went in.
 */
#include "aggregator/state/pod_usage.h"

#include "aggregator/state/window_sums.h"
#include "shared/arith.h"

#define STEP_NS 500000LL

static int64_t base_of(int64_t end_ns)
{
	const int64_t bucket_ns = POD_BUCKET_SECONDS * 1000000000LL;

	return end_ns / bucket_ns * bucket_ns;
}

static int32_t held(int64_t steps)
{
	if (steps > INT32_MAX)
		return INT32_MAX;
	return steps < INT32_MIN ? INT32_MIN : (int32_t)steps;
}

static uint32_t count32(uint64_t count)
{
	return count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
}

static struct pod_window_stats pack(const struct window_stats *s, int64_t base_ns)
{
	if (!s->known)
		return (struct pod_window_stats){0};
	return (struct pod_window_stats){
		.start = held(floor_div(s->start_ns - base_ns, STEP_NS)),
		.end = held(-floor_div(base_ns - s->end_ns, STEP_NS)),
		.samples = count32(s->samples),
		.mean = window_float(s->mean),
		.stddev = window_float(s->stddev),
		.min = window_float(s->min),
		.max = window_float(s->max),
	};
}

void pod_window_stats_unpack(const struct pod_window_stats *s, int64_t end_ns,
			     struct window_stats *out)
{
	int64_t base_ns = base_of(end_ns);

	*out = (struct window_stats){0};
	if (!s->samples)
		return;
	out->known = true;
	out->start_ns = base_ns + s->start * STEP_NS;
	out->end_ns = base_ns + s->end * STEP_NS;
	out->samples = s->samples;
	out->mean = (double)s->mean;
	out->stddev = (double)s->stddev;
	out->min = (double)s->min;
	out->max = (double)s->max;
}

static struct pod_counts pack_counts(const struct window_counts *c)
{
	struct pod_counts out = {
		.seconds = window_float(c->seconds),
		.throttled_seconds = window_float(c->throttled_seconds),
		.throttled_ratio = (float)c->throttled_ratio,
		.oom_kills = count32(c->oom_kills),
	};

	for (int p = 0; p < PRESSURES; p++)
		out.pressure[p] = (float)c->pressure[p];
	return out;
}

void pod_usage_pack(const struct usage_summary *u, int64_t end_ns, struct pod_usage *out)
{
	int64_t base_ns = base_of(end_ns);

	out->latest = u->latest;
	for (int w = 0; w < WINDOWS; w++) {
		out->cpu_milli[w] = pack(&u->windows[w].cpu_milli, base_ns);
		out->mem_bytes[w] = pack(&u->windows[w].mem_bytes, base_ns);
		out->working_set_bytes[w] = pack(&u->windows[w].working_set_bytes, base_ns);
	}
	out->counts = pack_counts(&u->windows[WINDOW_5M].counts);
	out->throttle_known = u->windows[WINDOW_5M].counts.throttle_known;
	out->oom_known = u->windows[WINDOW_5M].counts.oom_known;
}

static void unpack_counts(const struct pod_usage *u, struct window_counts *out)
{
	const struct pod_counts *c = &u->counts;

	*out = (struct window_counts){
		.seconds = (double)c->seconds,
		.throttled_seconds = (double)c->throttled_seconds,
		.throttled_ratio = (double)c->throttled_ratio,
		.oom_kills = c->oom_kills,
		.throttle_known = u->throttle_known,
		.oom_known = u->oom_known,
	};
	for (int p = 0; p < PRESSURES; p++)
		out->pressure[p] = (double)c->pressure[p];
}

void pod_usage_unpack(const struct pod_usage *u, int64_t end_ns, struct usage_summary *out)
{
	out->latest = u->latest;
	for (int w = 0; w < WINDOWS; w++) {
		struct window_set *set = &out->windows[w];

		pod_window_stats_unpack(&u->cpu_milli[w], end_ns, &set->cpu_milli);
		pod_window_stats_unpack(&u->mem_bytes[w], end_ns, &set->mem_bytes);
		pod_window_stats_unpack(&u->working_set_bytes[w], end_ns, &set->working_set_bytes);
		if (w == WINDOW_5M)
			unpack_counts(u, &set->counts);
		else
			set->counts = window_counts_none;
	}
}

bool pod_usage_covers(const struct pod_usage *u, enum window window)
{
	static const int64_t seconds[WINDOWS] = {300, 600, 900};
	const struct pod_window_stats *s = &u->cpu_milli[window];
	int64_t reach_ns = ((int64_t)s->end - s->start) * STEP_NS;

	return s->samples && u->working_set_bytes[window].samples &&
	       reach_ns >= (seconds[window] - 2 * POD_BUCKET_SECONDS) * 1000000000LL;
}
