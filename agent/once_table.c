/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three tables with a blank line between them, with the column titles of `evenkeel nodes` and
 * `evenkeel pods`. The name of a pod is its UID, that of a container below it its id, indented by
 * two blanks; all others have their cgroup's path. Columns without any value are left out.
 */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/once.h"
#include "agent/sampler.h"
#include "shared/mem.h"
#include "shared/table.h"
#include "shared/units.h"

struct title {
	const char *text; /* NULL ends a list */
	enum table_form form;
	size_t spare; /* > 0: the order in which narrow terminals drop it */
};

static struct table *new_table(const struct title *titles)
{
	struct table *t = table_new();

	for (size_t i = 0; titles[i].text; i++) {
		table_column(t, titles[i].text, titles[i].form);
		table_spare(t, i, titles[i].spare);
	}
	return t;
}

static void hide(struct table *t, const struct title *titles, const char *text)
{
	size_t i = 0;

	while (titles[i].text && strcmp(titles[i].text, text) != 0)
		i++;
	assert(titles[i].text);
	table_hide(t, i);
}

static void print(struct table *t, size_t width, struct buf *out)
{
	struct table_style style = {.headers = true, .short_names = true, .width = width};

	table_print(t, &style, out);
	table_free(t);
}

static void add(struct table *t, const char *text)
{
	table_cell(t, PAINT_PLAIN, text ? text : "-");
}

static void add_value(struct table *t, double value, void (*write)(double, char[UNITS_LEN]))
{
	char text[UNITS_LEN];

	write(value, text);
	add(t, text);
}

static void add_count(struct table *t, bool known, unsigned long count)
{
	char text[UNITS_LEN];

	snprintf(text, sizeof(text), "%lu", count);
	add(t, known ? text : "-");
}

static double last_of(const struct usage *u, enum usage_have bit, const struct gauge *g)
{
	return u->have & bit ? (double)g->last : NAN;
}

/* NaN: CPU was not measured. */
struct cpu {
	double mean, stddev, min, max;
};

static struct cpu cpu_of(const struct usage *u)
{
	struct moments m = moments_unpack(&u->cpu_milli);

	if (!(u->have & USAGE_CPU))
		return (struct cpu){NAN, NAN, NAN, NAN};
	return (struct cpu){m.mean, moments_stddev(&m), m.min, m.max};
}

/* --- the node --------------------------------------------------------------------------------- */

static const struct title node_titles[] = {
	{"NODE", .form = FORM_NAME},
	{"CPU", .form = FORM_RIGHT},
	{"SIGMA", .form = FORM_RIGHT},
	{"CPU-MIN", .form = FORM_RIGHT, .spare = 2},
	{"P95", .form = FORM_RIGHT},
	{"CPU-MAX", .form = FORM_RIGHT, .spare = 5},
	{"USER", .form = FORM_RIGHT, .spare = 7},
	{"SYSTEM", .form = FORM_RIGHT, .spare = 6},
	{"IOWAIT", .form = FORM_RIGHT, .spare = 3},
	{"STEAL", .form = FORM_RIGHT, .spare = 4},
	{"WAITING", .form = FORM_RIGHT, .spare = 1},
	{"MEMORY", .form = FORM_RIGHT},
	{"WORKSET", .form = FORM_RIGHT},
	{.text = NULL},
};

static void add_node_cpu(struct table *t, const struct node_sample *n)
{
	struct cpu cpu = cpu_of(&n->usage);
	double seconds = (double)n->usage.seconds;
	char text[UNITS_LEN];

	units_cpu_of(cpu.mean, (double)n->cpu_capacity_milli, text);
	add(t, text);
	add_value(t, cpu.stddev, units_cpu);
	add_value(t, cpu.min, units_cpu);
	add_value(t, once_percentile(n, 0.95), units_cpu);
	add_value(t, cpu.max, units_cpu);
	add_value(t, once_milli(n->cpu_split.user_ns, seconds), units_cpu);
	add_value(t, once_milli(n->cpu_split.system_ns, seconds), units_cpu);
	add_value(t, once_milli(n->cpu_split.iowait_ns, seconds), units_cpu);
	add_value(t, once_milli(n->cpu_split.steal_ns, seconds), units_cpu);
	add_value(t, once_share(&n->usage, USAGE_CONTENTION_CPU, n->usage.contention_cpu_ns),
		  units_percent);
}

static void print_node(const struct once_sample *sample, size_t width, struct buf *out)
{
	const struct node_sample *n = &sample->interval->node;
	struct table *t = new_table(node_titles);
	char text[UNITS_LEN];

	if (!(n->usage.have & USAGE_CONTENTION_CPU))
		hide(t, node_titles, "WAITING");
	table_row(t, sample->node);
	add(t, sample->node);
	add_node_cpu(t, n);
	units_bytes_of(last_of(&n->usage, USAGE_MEMORY, &n->usage.mem_bytes),
		       (double)n->mem_capacity_bytes, text);
	add(t, text);
	add_value(t, last_of(&n->usage, USAGE_WORKING_SET, &n->usage.working_set_bytes),
		  units_bytes);
	print(t, width, out);
}

/* --- how it was sampled ----------------------------------------------------------------------- */

static void print_source(const struct once_sample *sample, size_t width, struct buf *out)
{
	static const struct title titles[] = {
		{"TIER", FORM_LEFT, 0},
		{"RATE", FORM_RIGHT, 0},
		{"SAMPLES", FORM_RIGHT, 0},
		{"PASS", FORM_RIGHT, 0},
		{"MISSED", FORM_RIGHT, 0},
		{"CGROUPS", FORM_RIGHT, 0},
		{"OVERFLOW", FORM_RIGHT, 0},
		{"AGENT-CPU", FORM_RIGHT, 0},
		{.text = NULL},
	};
	const struct interval *i = sample->interval;
	const struct node_sample *n = &i->node;
	struct table *t = new_table(titles);
	char text[UNITS_LEN];

	table_row(t, "");
	add(t, sampler_tier_name(n->tier));
	snprintf(text, sizeof(text), "%.3gHz", (double)n->rate_hz);
	add(t, text);
	add_count(t, true, n->usage.cpu_milli.samples);
	units_micros((double)n->pass_ns / 1000, text);
	add(t, text);
	add_count(t, true, n->missed_ticks);
	add_count(t, true, sample->cgroups);
	add_count(t, true, n->overflow);
	add_value(t, once_milli(n->agent_cpu_ns, (double)(i->end_ns - i->start_ns) / 1e9),
		  units_cpu);
	print(t, width, out);
}

/* --- workloads -------------------------------------------------------------------------------- */

static const struct title titles[] = {
	{"NAME", .form = FORM_NAME},
	{"KIND", .form = FORM_LEFT, .spare = 6},
	{"QOS", .form = FORM_LEFT, .spare = 1},
	{"CPU", .form = FORM_RIGHT},
	{"SIGMA", .form = FORM_RIGHT, .spare = 8},
	{"CPU-MAX", .form = FORM_RIGHT, .spare = 7},
	{"CPU-LIM", .form = FORM_RIGHT, .spare = 11},
	{"THROTTLED", .form = FORM_RIGHT},
	{"WAITING", .form = FORM_RIGHT, .spare = 3},
	{"MEMORY", .form = FORM_RIGHT},
	{"MEM-LIM", .form = FORM_RIGHT, .spare = 10},
	{"WORKSET", .form = FORM_RIGHT, .spare = 5},
	{"SWAP", .form = FORM_RIGHT, .spare = 2},
	{"PIDS", .form = FORM_RIGHT, .spare = 4},
	{"OOM", .form = FORM_RIGHT, .spare = 9},
	{.text = NULL},
};

static void add_name(struct table *t, const struct once_item *item)
{
	const struct entity *e = item->entry->entity;
	bool inside = item->leader != item->entry && e->container_id[0];
	char *indented = inside ? mem_printf("  %s", e->container_id) : NULL;

	if (indented)
		add(t, indented);
	else
		add(t, e->kind == ENTITY_POD && e->pod_uid[0] ? e->pod_uid : e->name);
	free(indented);
}

static void add_limit(struct table *t, int64_t limit, void (*write)(double, char[UNITS_LEN]))
{
	char text[UNITS_LEN] = "none";

	if (limit != LIMIT_NONE)
		write(limit == LIMIT_UNKNOWN ? NAN : (double)limit, text);
	add(t, text);
}

static void add_item_cpu(struct table *t, const struct once_item *item)
{
	const struct usage *u = &item->entry->usage;
	struct cpu cpu = cpu_of(u);
	double ratio;
	char text[UNITS_LEN];

	add_value(t, cpu.mean, units_cpu);
	add_value(t, cpu.stddev, units_cpu);
	add_value(t, cpu.max, units_cpu);
	add_limit(t, item->entry->limits.cpu_milli, units_cpu);
	/* Without a quota there are no periods; throttled time is then shown in seconds. */
	ratio = once_throttled_ratio(u);
	if (isnan(ratio) && u->throttled_ns > 0)
		units_seconds((double)u->throttled_ns / 1e9, text);
	else
		units_percent(isnan(ratio) ? 0 : ratio, text);
	add(t, u->have & USAGE_THROTTLE ? text : "-");
	add_value(t, once_share(u, USAGE_CONTENTION_CPU, u->contention_cpu_ns), units_percent);
}

static void add_item(struct table *t, const struct once_item *item)
{
	const struct entity *e = item->entry->entity;
	const struct usage *u = &item->entry->usage;

	table_row(t, e->name);
	add_name(t, item);
	add(t, entity_kind_name[e->kind]);
	add(t, qos_class_name[e->qos]);
	add_item_cpu(t, item);
	add_value(t, last_of(u, USAGE_MEMORY, &u->mem_bytes), units_bytes);
	add_limit(t, item->entry->limits.mem_bytes, units_bytes);
	add_value(t, last_of(u, USAGE_WORKING_SET, &u->working_set_bytes), units_bytes);
	add_value(t, u->have & USAGE_SWAP ? (double)u->swap_bytes : NAN, units_bytes);
	add_count(t, u->have & USAGE_PIDS, u->pids);
	add_count(t, u->have & USAGE_OOM, u->oom_kills);
}

/* Hides columns without any value. */
static void hide_empty(struct table *t, const struct interval *i)
{
	bool qos = false, swap = false;
	uint32_t have = 0;

	for (size_t n = 0; n < i->entry_count; n++) {
		const struct usage *u = &i->entries[n].usage;

		have |= u->have;
		qos |= i->entries[n].entity->qos != QOS_UNKNOWN;
		swap |= (u->have & USAGE_SWAP) && u->swap_bytes > 0;
	}
	if (!qos)
		hide(t, titles, "QOS");
	if (!swap)
		hide(t, titles, "SWAP");
	if (!(have & USAGE_CONTENTION_CPU))
		hide(t, titles, "WAITING");
	if (!(have & USAGE_PIDS))
		hide(t, titles, "PIDS");
}

void once_table_write(const struct once_sample *sample, size_t width, struct buf *out)
{
	struct table *t;
	struct once_item *items;
	size_t count;

	print_node(sample, width, out);
	buf_add_char(out, '\n');
	print_source(sample, width, out);
	buf_add_char(out, '\n');
	t = new_table(titles);
	items = once_items(sample->interval, &count);
	hide_empty(t, sample->interval);
	for (size_t n = 0; n < count; n++)
		add_item(t, &items[n]);
	print(t, width, out);
	free(items);
}
