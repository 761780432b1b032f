/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One function for each part of node stats names its members once, for both directions (json_io.h).
 * Writers pass a copy of the part, since the functions take it as an output.
 *
 * A pod's packed times count from the end of its node's stats. Every pod item has that end, so that
 * it may come before its node's item.
 */
#include "aggregator/state/stats_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/state/stats_json_parts.h"
#include "aggregator/state/usage_check.h"

#define HOUR_NS (PEAK_HOUR_SECONDS * 1000000000LL)

static void choose(struct json_io *io, const char *key, uint8_t *value, const char *const *names,
		   size_t count)
{
	int at = *value;

	if (json_io_has(io, key, names[at] != NULL))
		json_io_choice(io, key, &at, names, count);
	*value = (uint8_t)at;
}

static void text_if_any(struct json_io *io, const char *key, const char **value, size_t most)
{
	if (json_io_has(io, key, *value && **value))
		json_io_text(io, key, value, most);
}

/* --- nodes ------------------------------------------------------------------------------------ */

static void do_quarantine(struct json_io *io, struct node_quarantine *q)
{
	struct json_io_level level;
	const char *message = q->message;
	int reason = q->reason;

	if (!json_io_enter(io, "quarantine", q->count > 0, &level))
		return;
	json_io_u64(io, "count", &q->count, UINT64_MAX);
	json_io_choice(io, "lastReason", &reason, quarantine_reason_name, QUARANTINE_REASON_COUNT);
	text_if_any(io, "lastMessage", &message, sizeof(q->message) - 1);
	json_io_time(io, "lastTime", &q->last_ns);
	json_io_leave(io, &level);
	q->reason = (uint8_t)reason;
	if (message != q->message)
		memcpy(q->message, message, strlen(message) + 1);
}

static void do_source(struct json_io *io, struct node_stats *p)
{
	const int64_t clock_most = JSON_IO_WHOLE_MAX * 1000;
	struct json_io_level level;
	int tier = (int)p->tier;

	p->foreign = !json_io_enter(io, "source", !p->foreign, &level);
	if (p->foreign)
		return;
	json_io_choice(io, "tier", &tier, sampler_tiers, TIERS);
	p->tier = (enum sampler_tier)tier;
	json_io_float(io, "rateHz", &p->rate_hz);
	json_io_hex(io, "runId", p->run, sizeof(p->run));
	json_io_u32(io, "missedTicks", &p->missed_ticks, UINT32_MAX);
	json_io_u32(io, "overflowCgroups", &p->overflow, UINT32_MAX);
	json_io_u64(io, "passNanoseconds", &p->pass_ns, UINT64_MAX);
	json_io_double(io, "agentCpuMillicores", &p->agent_cpu_milli);
	p->clock_known = json_io_has(io, "clockAheadNanoseconds", p->clock_known);
	if (p->clock_known)
		json_io_i64(io, "clockAheadNanoseconds", &p->clock_ahead_ns, -clock_most,
			    clock_most);
	json_io_i64(io, "asideNanoseconds", &p->aside_ns, 0, JSON_IO_WHOLE_MAX);
	do_quarantine(io, &p->quarantine);
	json_io_leave(io, &level);
}

static void do_resources(struct json_io *io, const char *key, int64_t *cpu_milli,
			 int64_t *mem_bytes)
{
	struct json_io_level level;

	if (!json_io_enter(io, key, *cpu_milli || *mem_bytes, &level))
		return;
	json_io_i64(io, "cpuMillicores", cpu_milli, 0, JSON_IO_WHOLE_MAX);
	json_io_i64(io, "memoryBytes", mem_bytes, 0, JSON_IO_WHOLE_MAX);
	json_io_leave(io, &level);
}

static void do_machine(struct json_io *io, struct machine_stats *m)
{
	struct json_io_level level, inner;

	m->known = json_io_enter(io, "machine", m->known, &level);
	if (!m->known)
		return;
	if (json_io_into(io, "cpuMillicores", &inner)) {
		json_io_double(io, "user", &m->user_milli);
		json_io_double(io, "system", &m->system_milli);
		json_io_double(io, "iowait", &m->iowait_milli);
		json_io_double(io, "steal", &m->steal_milli);
		json_io_leave(io, &inner);
	}
	json_io_i64(io, "memoryAvailableBytes", &m->mem_available_bytes, 0, JSON_IO_WHOLE_MAX);
	json_io_leave(io, &level);
}

static void do_totals(struct json_io *io, struct node_totals *t)
{
	struct json_io_level level, inner;

	if (!json_io_into(io, "totals", &level))
		return;
	json_io_u64(io, "missedTicks", &t->missed_ticks, UINT64_MAX);
	if (json_io_into(io, "cpuNanoseconds", &inner)) {
		json_io_u64(io, "user", &t->cpu.user_ns, UINT64_MAX);
		json_io_u64(io, "system", &t->cpu.system_ns, UINT64_MAX);
		json_io_u64(io, "iowait", &t->cpu.iowait_ns, UINT64_MAX);
		json_io_u64(io, "steal", &t->cpu.steal_ns, UINT64_MAX);
		json_io_leave(io, &inner);
	}
	if (json_io_enter(io, "pressureNanoseconds", t->pressure_have, &inner)) {
		for (enum pressure p = 0; p < PRESSURES; p++) {
			bool have = t->pressure_have & pressure_bit(p);

			if (!json_io_has(io, stats_json_pressures[p], have))
				continue;
			json_io_u64(io, stats_json_pressures[p], &t->pressure_ns[p], UINT64_MAX);
			t->pressure_have |= pressure_bit(p);
		}
		json_io_leave(io, &inner);
	}
	json_io_leave(io, &level);
}

void stats_json_do_node(struct json_io *io, struct node_stats *p)
{
	json_io_text(io, "name", &p->name, NODE_NAME_MAX);
	if (json_io_has(io, "end", p->end_ns))
		json_io_time(io, "end", &p->end_ns);
	do_source(io, p);
	do_resources(io, "capacity", &p->cpu_capacity_milli, &p->mem_capacity_bytes);
	do_resources(io, "allocatable", &p->cpu_allocatable_milli, &p->mem_allocatable_bytes);
	do_machine(io, &p->machine);
	do_totals(io, &p->totals);
	stats_json_do_usage(io, &p->usage);
	stats_json_do_recent(io, &p->recent);
}

/* --- pods ------------------------------------------------------------------------------------- */

static void do_limit(struct json_io *io, const char *key, int64_t *limit)
{
	if (!json_io_has(io, key, *limit != LIMIT_UNKNOWN))
		return;
	json_io_i64_or_null(io, key, limit, LIMIT_NONE);
}

static void do_limits(struct json_io *io, struct kernel_limits *l)
{
	struct json_io_level level;

	if (!json_io_enter(io, "kernelLimits", kernel_limits_known(l), &level))
		return;
	for (int i = 0; i < LIMITS; i++)
		do_limit(io, kernel_limit_key[i], kernel_limit_at(l, i));
	json_io_leave(io, &level);
}

static void do_contention(struct json_io *io, struct container_stats *c)
{
	struct json_io_level level;

	if (!json_io_enter(io, "contention", c->pressure_have, &level))
		return;
	for (enum pressure p = 0; p < PRESSURES; p++) {
		bool have = c->pressure_have & pressure_bit(p);

		if (!json_io_has(io, stats_json_pressures[p], have))
			continue;
		json_io_float(io, stats_json_pressures[p], &c->pressure[p]);
		c->pressure_have |= (uint16_t)pressure_bit(p);
	}
	json_io_leave(io, &level);
}

static void do_container(struct json_io *io, struct container_stats *c,
			 struct kernel_limits *limits)
{
	struct json_io_level level;

	json_io_text(io, "name", &c->name, ENTITY_NAME_MAX);
	text_if_any(io, "id", &c->id, CONTAINER_ID_LEN);
	choose(io, "runtime", &c->runtime, container_runtime_name, RUNTIMES);
	do_limits(io, limits);
	if (json_io_into(io, "usage", &level)) {
		stats_json_do_latest(io, &c->latest);
		json_io_leave(io, &level);
	}
	do_contention(io, c);
	c->throttle_known = json_io_has(io, "throttledSeconds", c->throttle_known);
	if (c->throttle_known)
		json_io_float(io, "throttledSeconds", &c->throttled_seconds);
}

/* Oldest hour first, as in the API. */
static void do_hours(struct json_io *io, const char *key, float hours[PEAK_HOURS], int64_t newest)
{
	float ordered[PEAK_HOURS];

	for (int i = 0; i < PEAK_HOURS; i++)
		ordered[i] = hours[(newest + 1 + i) % PEAK_HOURS];
	json_io_floats(io, key, ordered, PEAK_HOURS);
	for (int i = 0; i < PEAK_HOURS; i++)
		hours[(newest + 1 + i) % PEAK_HOURS] = ordered[i];
}

static void do_peaks(struct json_io *io, struct pod_peaks *peaks)
{
	int64_t end_ns = (peaks->newest + 1) * HOUR_NS;

	json_io_time(io, "end", &end_ns);
	if (end_ns % HOUR_NS || end_ns < HOUR_NS)
		json_io_fail(io, "end", "is not the end of an hour");
	else
		peaks->newest = end_ns / HOUR_NS - 1;
	do_hours(io, "cpuMillicores", peaks->cpu_milli, peaks->newest);
	do_hours(io, "workingSetBytes", peaks->working_set_bytes, peaks->newest);
}

void stats_json_do_pod(struct json_io *io, struct stats_json_pod *p)
{
	struct json_io_level level;
	int kind = p->pod.kind;

	json_io_text(io, "node", &p->node, NODE_NAME_MAX);
	if (json_io_has(io, "end", p->end_ns))
		json_io_time(io, "end", &p->end_ns);
	json_io_text(io, "name", &p->pod.name, ENTITY_NAME_MAX);
	text_if_any(io, "uid", &p->pod.uid, POD_UID_LEN);
	json_io_choice(io, "kind", &kind, entity_kind_name, ENTITY_KINDS);
	p->pod.kind = (uint8_t)kind;
	choose(io, "qosClass", &p->pod.qos, qos_class_name, QOS_CLASSES);
	do_limits(io, &p->limits);
	io->single = true;
	stats_json_do_usage(io, &p->usage);
	io->single = false;
	p->has_peaks = json_io_enter(io, "hourlyPeaks", p->has_peaks, &level);
	if (p->has_peaks) {
		do_peaks(io, &p->peaks);
		json_io_leave(io, &level);
	}
}

/* Entered once for each of count containers. */
void stats_json_do_container(struct json_io *io, size_t index, struct container_stats *c,
			     struct kernel_limits *limits)
{
	struct json_io_level level;

	json_io_item(io, index, &level);
	do_container(io, c, limits);
	json_io_leave(io, &level);
}

/* --- writing ---------------------------------------------------------------------------------- */

void stats_json_write_node(const struct node_stats *p, struct jsonw *w)
{
	struct node_stats copy;
	struct json_io io;

	memcpy(&copy, p, sizeof(copy));
	json_io_write(&io, w);
	jsonw_object_open(w);
	stats_json_do_node(&io, &copy);
	jsonw_object_close(w);
}

static void write_containers(struct json_io *io, const struct pod_stats *pod)
{
	size_t count = pod->container_count;
	struct json_io_level level;

	if (!json_io_list(io, "containers", &count, STATS_JSON_CONTAINERS_MAX, &level))
		return;
	for (size_t i = 0; i < count; i++) {
		struct container_stats copy = pod->containers[i];
		struct kernel_limits limits = *copy.limits;

		stats_json_do_container(io, i, &copy, &limits);
	}
	json_io_list_leave(io, &level);
}

void stats_json_write_pod(const struct node_stats *p, const struct pod_stats *pod, struct jsonw *w)
{
	struct stats_json_pod copy = {.node = p->name, .end_ns = p->end_ns, .pod = *pod};
	struct json_io io;

	copy.limits = *pod->limits;
	copy.has_peaks = pod->peaks != NULL;
	if (pod->peaks)
		copy.peaks = *pod->peaks;
	node_stats_pod_usage(p, pod, &copy.usage);
	json_io_write(&io, w);
	jsonw_object_open(w);
	stats_json_do_pod(&io, &copy);
	write_containers(&io, pod);
	jsonw_object_close(w);
}
