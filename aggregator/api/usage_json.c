/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Precision: millicores with 3 decimals, bytes whole, seconds with 6, shares with 6. That is finer
 * than what is measured and keeps answers short. The unit stands in the name of the enclosing
 * member.
 */
#include "aggregator/api/usage_json.h"

#include <math.h>

#include "shared/clock.h"
#include "shared/timefmt.h"

enum { CPU_DECIMALS = 3, BYTES_DECIMALS = 0, SHARE_DECIMALS = 6, SECONDS_DECIMALS = 6 };

void usage_json_write_time(struct jsonw *w, const char *key, int64_t unix_ns)
{
	char text[TIMEFMT_LEN];

	timefmt_rfc3339(unix_ns, text);
	jsonw_key_string(w, key, text);
}

static void write_latest(struct jsonw *w, const struct latest *l, int64_t end_ns, int decimals)
{
	if (!l->known)
		return;
	jsonw_key(w, "latest");
	jsonw_object_open(w);
	jsonw_key_fixed(w, "value", (double)l->value, decimals);
	usage_json_write_time(w, "end", end_ns - l->age_seconds * NS_PER_SEC);
	jsonw_object_close(w);
}

static void write_window(struct jsonw *w, const char *key, const struct window_stats *s,
			 int decimals)
{
	if (!s->known)
		return;
	jsonw_key(w, key);
	jsonw_object_open(w);
	usage_json_write_time(w, "start", s->start_ns);
	usage_json_write_time(w, "end", s->end_ns);
	if (s->samples) {
		jsonw_key(w, "samples");
		jsonw_uint(w, s->samples);
	}
	jsonw_key_fixed(w, "mean", s->mean, decimals);
	jsonw_key_fixed(w, "stddev", s->stddev, decimals);
	if (s->percentiles) {
		jsonw_key_fixed(w, "p50", s->p50, decimals);
		jsonw_key_fixed(w, "p95", s->p95, decimals);
		jsonw_key_fixed(w, "p99", s->p99, decimals);
	}
	if (!isnan(s->min))
		jsonw_key_fixed(w, "min", s->min, decimals);
	if (!isnan(s->max))
		jsonw_key_fixed(w, "max", s->max, decimals);
	jsonw_object_close(w);
}

/*
 * One of the three measured things of a page: where it is in struct page_usage and in struct
 * window_set.
 */
struct resource {
	const char *key;
	int decimals;
	const struct latest *latest;
	const struct window_stats *windows[WINDOWS];
};

static bool is_known(const struct resource *r)
{
	bool known = r->latest->known;

	for (int i = 0; i < WINDOWS; i++)
		known |= r->windows[i]->known;
	return known;
}

static void write_resource(struct jsonw *w, const struct resource *r, int64_t end_ns)
{
	if (!is_known(r))
		return;
	jsonw_key(w, r->key);
	jsonw_object_open(w);
	write_latest(w, r->latest, end_ns, r->decimals);
	jsonw_key(w, "windows");
	jsonw_object_open(w);
	for (int i = 0; i < WINDOWS; i++)
		write_window(w, window_name[i], r->windows[i], r->decimals);
	jsonw_object_close(w);
	jsonw_object_close(w);
}

static void write_latest_only(struct jsonw *w, const char *key, const struct latest *l,
			      int64_t end_ns, int decimals)
{
	if (!l->known)
		return;
	jsonw_key(w, key);
	jsonw_object_open(w);
	write_latest(w, l, end_ns, decimals);
	jsonw_object_close(w);
}

/* What has no windows. */
static void write_counted(struct jsonw *w, const struct page_latest *l, int64_t end_ns)
{
	write_latest_only(w, "swapBytes", &l->swap_bytes, end_ns, BYTES_DECIMALS);
	write_latest_only(w, "pids", &l->pids, end_ns, 0);
}

void usage_json_write(struct jsonw *w, const struct page_usage *u, int64_t end_ns)
{
	struct resource resources[] = {
		{.key = "cpuMillicores", .decimals = CPU_DECIMALS, .latest = &u->latest.cpu_milli},
		{.key = "memoryBytes", .decimals = BYTES_DECIMALS, .latest = &u->latest.mem_bytes},
		{.key = "workingSetBytes",
		 .decimals = BYTES_DECIMALS,
		 .latest = &u->latest.working_set_bytes},
	};

	for (int i = 0; i < WINDOWS; i++) {
		resources[0].windows[i] = &u->windows[i].cpu_milli;
		resources[1].windows[i] = &u->windows[i].mem_bytes;
		resources[2].windows[i] = &u->windows[i].working_set_bytes;
	}
	jsonw_key(w, "usage");
	jsonw_object_open(w);
	for (size_t i = 0; i < sizeof(resources) / sizeof(resources[0]); i++)
		write_resource(w, &resources[i], end_ns);
	write_counted(w, &u->latest, end_ns);
	jsonw_object_close(w);
}

void usage_json_write_latest(struct jsonw *w, const struct page_latest *l, int64_t end_ns)
{
	jsonw_key(w, "usage");
	jsonw_object_open(w);
	write_latest_only(w, "cpuMillicores", &l->cpu_milli, end_ns, CPU_DECIMALS);
	write_latest_only(w, "memoryBytes", &l->mem_bytes, end_ns, BYTES_DECIMALS);
	write_latest_only(w, "workingSetBytes", &l->working_set_bytes, end_ns, BYTES_DECIMALS);
	write_counted(w, l, end_ns);
	jsonw_object_close(w);
}

static const char *const pressure_keys[PRESSURES] = {
	[CONTENTION_CPU] = "cpu",
	[CONTENTION_MEMORY] = "memory",
	[STALL_CPU] = "cpuStalledRatio",
	[STALL_MEMORY] = "memoryStalledRatio",
};

void usage_json_write_contention(struct jsonw *w, const struct window_set windows[WINDOWS])
{
	const struct window_counts *c = &windows[WINDOW_5M].counts;
	bool measured = c->seconds > 0;

	jsonw_key(w, "contention");
	jsonw_object_open(w);
	for (int p = 0; p < PRESSURES; p++)
		jsonw_key_fixed(w, pressure_keys[p], measured ? c->pressure[p] : NAN,
				SHARE_DECIMALS);
	jsonw_key_fixed(w, "throttledRatio", c->throttle_known ? c->throttled_ratio : NAN,
			SHARE_DECIMALS);
	jsonw_key_fixed(w, "throttledSeconds", c->throttle_known ? c->throttled_seconds : NAN,
			SECONDS_DECIMALS);
	jsonw_key(w, "oomKills");
	if (c->oom_known)
		jsonw_uint(w, c->oom_kills);
	else
		jsonw_null(w);
	jsonw_object_close(w);
}

void usage_json_write_pressure(struct jsonw *w, const struct page_container *c)
{
	if (!c->pressure_have)
		return;
	jsonw_key(w, "contention");
	jsonw_object_open(w);
	for (int p = 0; p < PRESSURES; p++) {
		bool measured = c->pressure_have & pressure_bit((enum pressure)p);

		jsonw_key_fixed(w, pressure_keys[p], measured ? (double)c->pressure[p] : NAN,
				SHARE_DECIMALS);
	}
	jsonw_object_close(w);
}

static void write_limit(struct jsonw *w, const char *key, int64_t limit)
{
	if (limit == LIMIT_NONE)
		jsonw_key_null(w, key);
	else if (limit >= 0)
		jsonw_key_int(w, key, limit);
}

static bool is_limit_known(const struct kernel_limits *l)
{
	return l->cpu_milli != LIMIT_UNKNOWN || l->mem_bytes != LIMIT_UNKNOWN ||
	       l->mem_high_bytes != LIMIT_UNKNOWN || l->swap_bytes != LIMIT_UNKNOWN ||
	       l->pids != LIMIT_UNKNOWN || l->cpu_burst_ns != LIMIT_UNKNOWN;
}

void usage_json_write_limits(struct jsonw *w, const struct kernel_limits *limits)
{
	if (!is_limit_known(limits))
		return;
	jsonw_key(w, "kernelLimits");
	jsonw_object_open(w);
	write_limit(w, "cpuMillicores", limits->cpu_milli);
	write_limit(w, "memoryBytes", limits->mem_bytes);
	write_limit(w, "memoryHighBytes", limits->mem_high_bytes);
	write_limit(w, "swapBytes", limits->swap_bytes);
	write_limit(w, "pids", limits->pids);
	if (limits->cpu_burst_ns >= 0)
		jsonw_key_fixed(w, "cpuBurstMicroseconds", (double)limits->cpu_burst_ns / 1e3, 3);
	jsonw_object_close(w);
}

void usage_json_write_resources(struct jsonw *w, const char *key, int64_t cpu_milli,
				int64_t mem_bytes)
{
	if (cpu_milli <= 0 && mem_bytes <= 0)
		return;
	jsonw_key(w, key);
	jsonw_object_open(w);
	if (cpu_milli > 0)
		jsonw_key_int(w, "cpuMillicores", cpu_milli);
	if (mem_bytes > 0)
		jsonw_key_int(w, "memoryBytes", mem_bytes);
	jsonw_object_close(w);
}
