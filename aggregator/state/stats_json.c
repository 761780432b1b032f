/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One function for each part of node stats names its members once, for snapshots in both directions
 * (json_io.h) and for answers of the API.
 * Writers pass a copy of the part, since the functions take it as an output.
 *
 * A pod's packed times count from the end of its node's stats. Every pod item has that end, so that
 * it may come before its node's item.
 */
#include "aggregator/state/stats_json.h"

#include <stdlib.h>
#include <string.h>

#include "aggregator/state/node_clock.h"
#include "aggregator/state/stats_json_parts.h"
#include "aggregator/state/usage_check.h"
#include "shared/usage_json.h"

#define HOUR_NS	       (PEAK_HOUR_SECONDS * SECOND_NS)
#define MICROSECOND_NS 1000

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

/* Ahead is positive. What frames need on the way makes a clock seem behind by as much. */
static void do_clock(struct json_io *io, struct node_stats *p)
{
	p->clock_known = json_io_has(io, "clockSkewSeconds", p->clock_known);
	if (!p->clock_known)
		return;
	json_io_scaled(io, "clockSkewSeconds", &p->clock_ahead_ns, INT64_MIN, SECOND_NS, 3);
	if (io->answer)
		jsonw_key_bool(io->out, "clockSkewed",
			       llabs(p->clock_ahead_ns) > NODE_CLOCK_FLAGGED_NS);
}

void stats_json_do_source(struct json_io *io, struct node_stats *p)
{
	int64_t pass_ns = (int64_t)p->pass_ns;
	int tier = (int)p->tier;

	json_io_choice(io, "tier", &tier, sampler_tiers, TIERS);
	p->tier = (enum sampler_tier)tier;
	json_io_float(io, "rateHz", &p->rate_hz, 3);
	do_clock(io, p);
	json_io_hex(io, "runId", p->run, sizeof(p->run));
	json_io_u32(io, "missedTicks", &p->missed_ticks, UINT32_MAX);
	json_io_u32(io, "overflowCgroups", &p->overflow, UINT32_MAX);
	json_io_double(io, "agentCpuMillicores", &p->agent_cpu_milli, CPU_DECIMALS);
	json_io_scaled(io, "passMicroseconds", &pass_ns, 0, MICROSECOND_NS, 3);
	p->pass_ns = (uint64_t)pass_ns;
	do_quarantine(io, &p->quarantine);
	if (!io->answer)
		json_io_i64(io, "asideNanoseconds", &p->aside_ns, 0, JSON_IO_WHOLE_MAX);
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
		json_io_double(io, "user", &m->user_milli, CPU_DECIMALS);
		json_io_double(io, "system", &m->system_milli, CPU_DECIMALS);
		json_io_double(io, "iowait", &m->iowait_milli, CPU_DECIMALS);
		json_io_double(io, "steal", &m->steal_milli, CPU_DECIMALS);
		json_io_leave(io, &inner);
	}
	json_io_i64(io, "memoryAvailableBytes", &m->mem_available_bytes, 0, JSON_IO_WHOLE_MAX);
	json_io_leave(io, &level);
}

static const char *const pressure_keys[PRESSURES] = {
	[CONTENTION_CPU] = "cpu",
	[CONTENTION_MEMORY] = "memory",
	[STALL_CPU] = "cpuStalled",
	[STALL_MEMORY] = "memoryStalled",
};

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

			if (!json_io_has(io, pressure_keys[p], have))
				continue;
			json_io_u64(io, pressure_keys[p], &t->pressure_ns[p], UINT64_MAX);
			t->pressure_have |= pressure_bit(p);
		}
		json_io_leave(io, &inner);
	}
	json_io_leave(io, &level);
}

void stats_json_do_node_use(struct json_io *io, struct node_stats *p)
{
	do_machine(io, &p->machine);
	stats_json_do_usage(io, &p->usage.latest, p->usage.windows, p->end_ns);
	stats_json_do_contention(io, p->usage.windows, NULL);
}

void stats_json_do_node(struct json_io *io, struct node_stats *p)
{
	struct json_io_level level;

	json_io_text(io, "name", &p->name, NODE_NAME_MAX);
	if (json_io_has(io, "end", p->end_ns))
		json_io_time(io, "end", &p->end_ns);
	p->foreign = !json_io_enter(io, "source", !p->foreign, &level);
	if (!p->foreign) {
		stats_json_do_source(io, p);
		json_io_leave(io, &level);
	}
	do_resources(io, "capacity", &p->cpu_capacity_milli, &p->mem_capacity_bytes);
	do_resources(io, "allocatable", &p->cpu_allocatable_milli, &p->mem_allocatable_bytes);
	do_totals(io, &p->totals);
	stats_json_do_node_use(io, p);
	stats_json_do_recent(io, &p->recent);
}

/* --- pods ------------------------------------------------------------------------------------- */

static void do_limits(struct json_io *io, struct kernel_limits *l)
{
	struct json_io_level level;

	if (io->answer) {
		usage_json_write_limits(io->out, l);
		return;
	}
	if (!json_io_enter(io, "kernelLimits", kernel_limits_known(l), &level))
		return;
	for (int i = 0; i < LIMITS; i++) {
		int64_t *limit = kernel_limit_at(l, i);

		if (!json_io_has(io, kernel_limit_key[i], *limit != LIMIT_UNKNOWN))
			continue;
		if (i == LIMIT_cpu_burst_ns)
			json_io_scaled(io, kernel_limit_key[i], limit, 0, MICROSECOND_NS, 3);
		else
			json_io_i64_or_null(io, kernel_limit_key[i], limit, LIMIT_NONE);
	}
	json_io_leave(io, &level);
}

void stats_json_do_container(struct json_io *io, struct container_stats *c,
			     struct kernel_limits *limits, int64_t end_ns)
{
	text_if_any(io, "id", &c->id, CONTAINER_ID_LEN);
	choose(io, "runtime", &c->runtime, container_runtime_name, RUNTIMES);
	do_limits(io, limits);
	stats_json_do_usage(io, &c->latest, NULL, end_ns);
	stats_json_do_pressure(io, c);
	c->throttle_known = json_io_has(io, "throttledSeconds", c->throttle_known);
	if (c->throttle_known)
		json_io_float(io, "throttledSeconds", &c->throttled_seconds, SECONDS_DECIMALS);
}

/* Oldest hour first; the newest ends at "end" and may still be running. null: not measured. */
static void do_hours(struct json_io *io, const char *key, float hours[PEAK_HOURS], int64_t newest,
		     int decimals)
{
	float ordered[PEAK_HOURS];

	for (int i = 0; i < PEAK_HOURS; i++)
		ordered[i] = hours[(newest + 1 + i) % PEAK_HOURS];
	json_io_floats(io, key, ordered, PEAK_HOURS, decimals);
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
	do_hours(io, "cpuMillicores", peaks->cpu_milli, peaks->newest, CPU_DECIMALS);
	do_hours(io, "workingSetBytes", peaks->working_set_bytes, peaks->newest, BYTES_DECIMALS);
}

void stats_json_do_pod_use(struct json_io *io, struct stats_json_pod *p)
{
	struct json_io_level level;

	io->single = true;
	stats_json_do_usage(io, &p->usage.latest, p->usage.windows, p->end_ns);
	stats_json_do_contention(io, p->usage.windows, &p->cause);
	io->single = false;
	p->has_peaks = json_io_enter(io, "hourlyPeaks", p->has_peaks, &level);
	if (p->has_peaks) {
		do_peaks(io, &p->peaks);
		json_io_leave(io, &level);
	}
}

void stats_json_do_pod(struct json_io *io, struct stats_json_pod *p)
{
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
	stats_json_do_pod_use(io, p);
}

void stats_json_do_container_item(struct json_io *io, size_t index, struct container_stats *c,
				  struct kernel_limits *limits, int64_t end_ns)
{
	struct json_io_level level;

	json_io_item(io, index, &level);
	json_io_text(io, "name", &c->name, ENTITY_NAME_MAX);
	stats_json_do_container(io, c, limits, end_ns);
	json_io_leave(io, &level);
}

/* --- writing ---------------------------------------------------------------------------------- */

void stats_json_write_node(const struct node_stats *p, struct jsonw *w)
{
	struct node_stats copy;
	struct json_io io;

	memcpy(&copy, p, sizeof(copy));
	json_io_write(&io, w, false);
	jsonw_object_open(w);
	stats_json_do_node(&io, &copy);
	jsonw_object_close(w);
}

static void write_containers(struct json_io *io, const struct pod_stats *pod, int64_t end_ns)
{
	size_t count = pod->container_count;
	struct json_io_level level;

	if (!json_io_list(io, "containers", &count, STATS_JSON_CONTAINERS_MAX, &level))
		return;
	for (size_t i = 0; i < count; i++) {
		struct container_stats copy = pod->containers[i];
		struct kernel_limits limits = *copy.limits;

		stats_json_do_container_item(io, i, &copy, &limits, end_ns);
	}
	json_io_list_leave(io, &level);
}

struct stats_json_pod stats_json_pod_of(const struct node_stats *p, const struct pod_stats *pod)
{
	struct stats_json_pod copy = {.node = p->name, .end_ns = p->end_ns, .pod = *pod};

	copy.limits = *pod->limits;
	copy.cause.share = pod->cause.share;
	if (pod->cause.pod < p->pod_count)
		copy.cause.name = p->pods[pod->cause.pod].name;
	copy.has_peaks = pod->peaks != NULL;
	if (pod->peaks)
		copy.peaks = *pod->peaks;
	node_stats_pod_usage(p, pod, &copy.usage);
	return copy;
}

void stats_json_write_pod(const struct node_stats *p, const struct pod_stats *pod, struct jsonw *w)
{
	struct stats_json_pod copy = stats_json_pod_of(p, pod);
	struct json_io io;

	json_io_write(&io, w, false);
	jsonw_object_open(w);
	stats_json_do_pod(&io, &copy);
	write_containers(&io, pod, p->end_ns);
	jsonw_object_close(w);
}
