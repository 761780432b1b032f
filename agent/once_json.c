/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include "agent/once.h"
#include "agent/sampler.h"
#include "shared/jsonw.h"
#include "shared/usage_json.h"

static void write_milli(struct jsonw *w, const char *key, double milli)
{
	if (!isnan(milli))
		jsonw_key_fixed(w, key, milli, CPU_DECIMALS);
}

/* node NULL: no percentiles. */
static void write_cpu(struct jsonw *w, const struct usage *u, const struct node_sample *node)
{
	static const struct {
		const char *key;
		double share;
	} percentiles[] = {{"p50", 0.5}, {"p95", 0.95}, {"p99", 0.99}};
	struct moments cpu = moments_unpack(&u->cpu_milli);

	if (!(u->have & USAGE_CPU))
		return;
	jsonw_key_object(w, "cpuMillicores");
	jsonw_key_int(w, "samples", (int64_t)cpu.samples);
	jsonw_key_fixed(w, "mean", cpu.mean, CPU_DECIMALS);
	jsonw_key_fixed(w, "stddev", moments_stddev(&cpu), CPU_DECIMALS);
	for (size_t i = 0; node && i < sizeof(percentiles) / sizeof(percentiles[0]); i++)
		jsonw_key_fixed(w, percentiles[i].key, once_percentile(node, percentiles[i].share),
				CPU_DECIMALS);
	jsonw_key_fixed(w, "min", cpu.min, CPU_DECIMALS);
	jsonw_key_fixed(w, "max", cpu.max, CPU_DECIMALS);
	jsonw_key_fixed(w, "last", cpu.last, CPU_DECIMALS);
	jsonw_object_close(w);
}

static void write_gauge(struct jsonw *w, const struct usage_latest_row *row, const struct usage *u,
			const struct gauge *g)
{
	if (!(u->have & row->have))
		return;
	jsonw_key_object(w, row->key);
	jsonw_key_fixed(w, "mean", (double)g->mean, row->decimals);
	jsonw_key_fixed(w, "max", (double)g->max, row->decimals);
	jsonw_key_fixed(w, "last", (double)g->last, row->decimals);
	jsonw_object_close(w);
}

/* A value of the newest reading only. */
static void write_last(struct jsonw *w, const struct usage_latest_row *row, const struct usage *u,
		       uint64_t value)
{
	if (!(u->have & row->have))
		return;
	jsonw_key_object(w, row->key);
	jsonw_key_uint(w, "last", value);
	jsonw_object_close(w);
}

static void write_usage(struct jsonw *w, const struct usage *u, const struct node_sample *node)
{
	jsonw_key_object(w, "usage");
	write_cpu(w, u, node);
	write_gauge(w, &usage_latest[LATEST_mem_bytes], u, &u->mem_bytes);
	write_gauge(w, &usage_latest[LATEST_working_set_bytes], u, &u->working_set_bytes);
	for (int i = USAGE_AVERAGED_COUNT, c = COUNTERS_COUNTED; c < COUNTERS; i++, c++)
		write_last(w, &usage_latest[i], u, u->counter[c]);
	jsonw_object_close(w);
}

static void write_contention(struct jsonw *w, const struct usage *u)
{
	double throttled = u->have & USAGE_THROTTLE ? (double)u->throttled_ns / 1e9 : NAN;

	jsonw_key_object(w, "contention");
	jsonw_key_fixed(w, "cpu", once_share(u, USAGE_CONTENTION_CPU, u->contention_cpu_ns),
			SHARE_DECIMALS);
	jsonw_key_fixed(w, "memory", once_share(u, USAGE_CONTENTION_MEMORY, u->contention_mem_ns),
			SHARE_DECIMALS);
	jsonw_key_fixed(w, "cpuStalledRatio", once_share(u, USAGE_STALL_CPU, u->stall_cpu_ns),
			SHARE_DECIMALS);
	jsonw_key_fixed(w, "memoryStalledRatio", once_share(u, USAGE_STALL_MEMORY, u->stall_mem_ns),
			SHARE_DECIMALS);
	jsonw_key_fixed(w, "throttledRatio", once_throttled_ratio(u), SHARE_DECIMALS);
	jsonw_key_fixed(w, "throttledSeconds", throttled, SECONDS_DECIMALS);
	if (u->have & USAGE_OOM)
		jsonw_key_int(w, "oomKills", u->oom_kills);
	else
		jsonw_key_null(w, "oomKills");
	jsonw_object_close(w);
}

/* /proc/stat of all CPUs, as rates. */
static void write_machine(struct jsonw *w, const struct interval *i)
{
	const struct cpu_split *split = &i->node.cpu_split;
	double seconds = (double)i->node.usage.seconds;

	jsonw_key_object(w, "machine");
	jsonw_key_object(w, "cpuMillicores");
	write_milli(w, "user", once_milli(split->user_ns, seconds));
	write_milli(w, "system", once_milli(split->system_ns, seconds));
	write_milli(w, "iowait", once_milli(split->iowait_ns, seconds));
	write_milli(w, "steal", once_milli(split->steal_ns, seconds));
	jsonw_object_close(w);
	if (i->node.mem_available_bytes > 0)
		jsonw_key_int(w, "memoryAvailableBytes", i->node.mem_available_bytes);
	jsonw_object_close(w);
}

static void write_node(struct jsonw *w, const struct once_sample *sample)
{
	const struct interval *i = sample->interval;
	const struct node_sample *n;
	double seconds;

	jsonw_key_object(w, "node");
	jsonw_key_string(w, "name", sample->node);
	n = &i->node;
	seconds = (double)(i->end_ns - i->start_ns) / 1e9;
	jsonw_key_object(w, "source");
	jsonw_key_string(w, "tier", sampler_tier_name(n->tier));
	jsonw_key_fixed(w, "rateHz", (double)n->rate_hz, 3);
	jsonw_key_int(w, "missedTicks", n->missed_ticks);
	jsonw_key_int(w, "overflowCgroups", n->overflow);
	write_milli(w, "agentCpuMillicores", once_milli(n->agent_cpu_ns, seconds));
	jsonw_key_fixed(w, "passMicroseconds", (double)n->pass_ns / 1000, 3);
	jsonw_object_close(w);
	jsonw_key_int(w, "cgroups", (int64_t)sample->cgroups);
	jsonw_key_object(w, "capacity");
	jsonw_key_int(w, "cpuMillicores", i->node.cpu_capacity_milli);
	jsonw_key_int(w, "memoryBytes", i->node.mem_capacity_bytes);
	jsonw_object_close(w);
	write_machine(w, i);
	write_usage(w, &i->node.usage, &i->node);
	write_contention(w, &i->node.usage);
	jsonw_object_close(w);
}

static void write_item(struct jsonw *w, const struct once_item *item)
{
	const struct entity *e = item->entry->entity;
	const struct usage *u = &item->entry->usage;

	jsonw_object_open(w);
	jsonw_key_string(w, "kind", entity_kind_name[e->kind]);
	jsonw_key_string(w, "name", e->name);
	jsonw_key_text(w, "podUID", e->pod_uid);
	jsonw_key_text(w, "containerID", e->container_id);
	jsonw_key_text(w, "qosClass", qos_class_name[e->qos]);
	jsonw_key_text(w, "runtime", container_runtime_name[e->runtime]);
	if (item->leader != item->entry)
		jsonw_key_text(w, "pod", item->leader->entity->name);
	write_usage(w, u, NULL);
	usage_json_write_limits(w, &item->entry->limits);
	write_contention(w, u);
	jsonw_object_close(w);
}

void once_json_write(const struct once_sample *sample, struct buf *out)
{
	struct once_item *items;
	struct jsonw w;
	size_t count;

	items = once_items(sample->interval, &count);
	jsonw_begin(&w, out);
	jsonw_key_string(&w, "apiVersion", "evenkeel.io/v1");
	jsonw_key_string(&w, "kind", "NodeSample");
	jsonw_key_time(&w, "time", sample->interval->end_ns);
	jsonw_key_time(&w, "start", sample->interval->start_ns);
	jsonw_key_time(&w, "end", sample->interval->end_ns);
	write_node(&w, sample);
	jsonw_key_array(&w, "items");
	for (size_t i = 0; i < count; i++)
		write_item(&w, &items[i]);
	jsonw_array_close(&w);
	jsonw_object_close(&w);
	buf_add_char(out, '\n');
	free(items);
}
