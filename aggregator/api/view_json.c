/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Precision: millicores with 3 decimals, bytes whole, seconds with 6, shares with 6. That is finer
 * than what is measured and keeps answers short. The unit stands in the name of the enclosing
 * member.
 * Ratios are numbers, 1 is all of the allocatable.
 */
#include "aggregator/api/view_json.h"

#include <math.h>

#include "shared/clock.h"

void view_json_write_amounts(struct jsonw *w, const char *key, int64_t cpu_milli, int64_t mem_bytes)
{
	jsonw_key_object(w, key);
	jsonw_key_int(w, "cpuMillicores", cpu_milli);
	jsonw_key_int(w, "memoryBytes", mem_bytes);
	jsonw_object_close(w);
}

void view_json_write_refused(struct jsonw *w, const struct place_counts *counts)
{
	jsonw_key_object(w, "refused");
	for (int f = PLACE_FITS + 1; f < PLACE_FILTERS; f++)
		if (counts->of[f])
			jsonw_key_int(w, place_filter_name((enum place_filter)f), counts->of[f]);
	jsonw_object_close(w);
}

/* --- what is measured */

static void write_latest(struct jsonw *w, const struct latest *l, int64_t end_ns, int decimals)
{
	if (!l->known)
		return;
	jsonw_key_object(w, "latest");
	jsonw_key_fixed(w, "value", (double)l->value, decimals);
	jsonw_key_time(w, "end", end_ns - l->age_seconds * NS_PER_SEC);
	jsonw_object_close(w);
}

static void write_window(struct jsonw *w, const char *key, const struct window_stats *s,
			 int decimals)
{
	if (!s->known)
		return;
	jsonw_key_object(w, key);
	jsonw_key_time(w, "start", s->start_ns);
	jsonw_key_time(w, "end", s->end_ns);
	if (s->samples) {
		jsonw_key_uint(w, "samples", s->samples);
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

/* i: enum usage_latest. */
static void write_latest_only(struct jsonw *w, const struct latest_usage *l, int i, int64_t end_ns)
{
	if (!l->of[i].known)
		return;
	jsonw_key_object(w, usage_latest[i].key);
	write_latest(w, &l->of[i], end_ns, usage_latest[i].decimals);
	jsonw_object_close(w);
}

static void write_resource(struct jsonw *w, const struct usage_summary *u, int i, int64_t end_ns)
{
	const struct usage_latest_row *row = &usage_latest[i];
	bool known = u->latest.of[i].known;

	for (int n = 0; n < WINDOWS; n++)
		known |= u->windows[n].averaged[i].known;
	if (!known)
		return;
	jsonw_key_object(w, row->key);
	write_latest(w, &u->latest.of[i], end_ns, row->decimals);
	jsonw_key_object(w, "windows");
	for (int n = 0; n < WINDOWS; n++)
		write_window(w, window_name[n], &u->windows[n].averaged[i], row->decimals);
	jsonw_object_close(w);
	jsonw_object_close(w);
}

void view_json_write_usage(struct jsonw *w, const struct usage_summary *u, int64_t end_ns)
{
	jsonw_key_object(w, "usage");
	for (int i = 0; i < USAGE_AVERAGED_COUNT; i++)
		write_resource(w, u, i, end_ns);
	for (int i = USAGE_AVERAGED_COUNT; i < USAGE_LATEST_COUNT; i++)
		write_latest_only(w, &u->latest, i, end_ns);
	jsonw_object_close(w);
}

void view_json_write_latest(struct jsonw *w, const struct latest_usage *l, int64_t end_ns)
{
	jsonw_key_object(w, "usage");
	for (int i = 0; i < USAGE_LATEST_COUNT; i++)
		write_latest_only(w, l, i, end_ns);
	jsonw_object_close(w);
}

static const char *const pressure_keys[PRESSURES] = {
	[CONTENTION_CPU] = "cpu",
	[CONTENTION_MEMORY] = "memory",
	[STALL_CPU] = "cpuStalledRatio",
	[STALL_MEMORY] = "memoryStalledRatio",
};

void view_json_write_contention(struct jsonw *w, const struct window_counts *c)
{
	bool measured = c->seconds > 0;

	jsonw_key_object(w, "contention");
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

void view_json_write_pressure(struct jsonw *w, const struct container_stats *c)
{
	if (!c->pressure_have)
		return;
	jsonw_key_object(w, "contention");
	for (int p = 0; p < PRESSURES; p++) {
		bool measured = c->pressure_have & pressure_bit((enum pressure)p);

		jsonw_key_fixed(w, pressure_keys[p], measured ? (double)c->pressure[p] : NAN,
				SHARE_DECIMALS);
	}
	jsonw_object_close(w);
}

void view_json_write_capacity(struct jsonw *w, const char *key, int64_t cpu_milli,
			      int64_t mem_bytes)
{
	if (cpu_milli <= 0 && mem_bytes <= 0)
		return;
	jsonw_key_object(w, key);
	if (cpu_milli > 0)
		jsonw_key_int(w, "cpuMillicores", cpu_milli);
	if (mem_bytes > 0)
		jsonw_key_int(w, "memoryBytes", mem_bytes);
	jsonw_object_close(w);
}

/* --- what the Kubernetes API tells */

enum { RATIO_DECIMALS = 6 };

static const char *const amount_keys[RESOURCE_STANDARD] = {
	[RESOURCE_CPU] = "cpuMillicores",
	[RESOURCE_MEMORY] = "memoryBytes",
	[RESOURCE_EPHEMERAL_STORAGE] = "ephemeralStorageBytes",
	[RESOURCE_PODS] = "pods",
};

void view_json_write_labels(struct jsonw *w, const struct labels *labels)
{
	jsonw_key_object(w, "labels");
	for (size_t i = 0; i < labels->count; i++)
		jsonw_key_string(w, labels->of[i].key, labels->of[i].value);
	jsonw_object_close(w);
}

static void write_amount(struct jsonw *w, const struct resources *r, enum resource_id id,
			 enum cluster_absent absent)
{
	bool basic = id == RESOURCE_CPU || id == RESOURCE_MEMORY;

	if (resources_has(r, id))
		jsonw_key_int(w, amount_keys[id], r->of[id]);
	else if (basic && absent == ABSENT_ZERO)
		jsonw_key_int(w, amount_keys[id], 0);
	else if (basic && absent == ABSENT_NULL)
		jsonw_key_null(w, amount_keys[id]);
}

void view_json_write_resources(struct jsonw *w, const char *key, const struct resources *r,
			       enum cluster_absent absent)
{
	jsonw_key_object(w, key);
	for (int id = 0; id < RESOURCE_STANDARD; id++)
		write_amount(w, r, (enum resource_id)id, absent);
	for (uint32_t i = 0; i < r->extended_count; i++)
		jsonw_key_int(w, r->extended[i].name, r->extended[i].amount);
	jsonw_object_close(w);
}

void view_json_write_unlimited(struct jsonw *w, uint32_t cpu, uint32_t memory)
{
	jsonw_key_object(w, "unlimitedContainers");
	jsonw_key_int(w, "cpu", cpu);
	jsonw_key_int(w, "memory", memory);
	jsonw_object_close(w);
}

void view_json_write_limits(struct jsonw *w, const struct view_sums *sums)
{
	view_json_write_resources(w, "limits", &sums->limits, ABSENT_ZERO);
	view_json_write_unlimited(w, sums->unlimited_cpu, sums->unlimited_mem);
	jsonw_key_object(w, "kernelLimits");
	jsonw_key_int(w, "cpuMillicores", sums->kernel_cpu_milli);
	jsonw_key_int(w, "memoryBytes", sums->kernel_mem_bytes);
	view_json_write_unlimited(w, sums->kernel_unlimited_cpu, sums->kernel_unlimited_mem);
	jsonw_key_int(w, "unknownPods", sums->kernel_unknown);
	jsonw_object_close(w);
}

static void write_ratios(struct jsonw *w, const char *key, const struct limits_share *share)
{
	double cpu = limits_ratio(share, RESOURCE_CPU),
	       memory = limits_ratio(share, RESOURCE_MEMORY);

	if (isnan(cpu) && isnan(memory))
		return;
	jsonw_key_object(w, key);
	if (!isnan(cpu))
		jsonw_key_fixed(w, "cpu", cpu, RATIO_DECIMALS);
	if (!isnan(memory))
		jsonw_key_fixed(w, "memory", memory, RATIO_DECIMALS);
	jsonw_object_close(w);
}

void view_json_write_ratio(struct jsonw *w, const struct limits_shares *shares)
{
	jsonw_key_object(w, "limitRatio");
	write_ratios(w, "declared", &shares->declared);
	write_ratios(w, "kernel", &shares->kernel);
	jsonw_object_close(w);
}

void view_json_write_mismatch(struct jsonw *w, const struct view_node *n, const struct view_pod *p)
{
	bool opened = false;

	for (int r = 0; r < LIMITS_RESOURCES; r++) {
		struct limits_mismatch m;

		if (!limits_find_mismatch(n, p, (enum resource_id)r, &m))
			continue;
		if (!opened) {
			jsonw_key_object(w, "limitMismatch");
			opened = true;
		}
		jsonw_key_object(w, amount_keys[r]);
		usage_json_write_limit(w, "declared", m.declared);
		usage_json_write_limit(w, "kernel", m.kernel);
		jsonw_object_close(w);
	}
	if (opened)
		jsonw_object_close(w);
}
