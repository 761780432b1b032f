/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a load watcher answers, as measurements. Three forms of one document are told apart by
 * themselves:
 *
 *                     ours             load-watcher's               KEP-61's
 *   nodes are in      data.NodeMetricsMap                           data
 *   mean, deviation   "operator":"AVG", "STD"                       "rollup":"AVG", "STD"
 *   type              "CPU", "Memory"                               "cpu", "memory"
 *   window            per node         "window":{"duration":"15m","start","end"} of all
 *   age               per node         its end                      its end
 *
 * As upstream's plugins do, the latest value counts as the mean where no mean is told, and no
 * deviation as 0. The example in the KEP closes a node's brackets early, so that "metadata" and
 * "tags" stand beside the nodes: they are passed over.
 *
 * "Now" is the answer's time. The example in the KEP has a window that ended 35 minutes before it:
 * where no age is told and the window is older than what counts as heard, now is the window's end.
 *
 * Values are percentages of a capacity that only the snapshot's Node objects know, so stats are
 * made when all is read.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "aggregator/api/snapshot_state.h"
#include "shared/array.h"
#include "shared/clock.h"
#include "shared/document.h"
#include "shared/mem.h"

#define SECONDS_MOST 9.2e9 /* 2261 */
#define PERCENT_MOST 1e9
#define SINCE_START  "sinceStart"

/* Common to all nodes of the answer. */
struct answer {
	struct snapshot *snapshot;
	const struct snapshot_text *text;
	int64_t time_ns, start_ns, end_ns;
	enum window window;
	size_t without_stddev;
	bool tells_ages;
};

static int fail(const struct answer *a, const char *field, const char *what)
{
	return snapshot_text_fail(a->text, "%s: %s", field, what);
}

/* Unix seconds as nanoseconds. */
static int read_seconds(const struct answer *a, const cJSON *doc, const char *field, int64_t *ns)
{
	double seconds = document_number(doc, field);

	if (!(seconds >= 0 && seconds < SECONDS_MOST))
		return fail(a, field, "must be a time in Unix seconds");
	*ns = (int64_t)(seconds * NS_PER_SEC);
	return 0;
}

static int find_window(const char *name, enum window *window)
{
	for (int w = 0; w < WINDOWS; w++)
		if (strcmp(window_name[w], name) == 0) {
			*window = (enum window)w;
			return 0;
		}
	return -ENOENT;
}

static int read_head(struct answer *a, const cJSON *doc)
{
	const char *duration = document_text(doc, "window.duration");

	if (read_seconds(a, doc, "timestamp", &a->time_ns) ||
	    read_seconds(a, doc, "window.start", &a->start_ns) ||
	    read_seconds(a, doc, "window.end", &a->end_ns))
		return -EINVAL;
	if (!duration || find_window(duration, &a->window))
		return fail(a, "window.duration", "must be 5m, 10m or 15m");
	if (a->start_ns >= a->end_ns)
		return fail(a, "window.end", "must be after window.start");
	return 0;
}

/* --- metrics ---------------------------------------------------------------------------------- */

static void set_value(struct watcher_resource *r, const char *what, double value)
{
	if (strcmp(what, "AVG") == 0)
		r->mean = value;
	else if (strcmp(what, "STD") == 0)
		r->stddev = value;
	else if (strcmp(what, "Latest") == 0 || !*what)
		r->latest = value;
}

/*
 * What is measured is "operator", or "rollup" as the KEP has it; what it is measured of is "type".
 */
static int read_metric(const struct answer *a, const cJSON *item, struct watcher_use *use,
		       size_t index)
{
	static const char *const operators[] = {"AVG", "STD", "Latest", NULL};
	const char *type = document_text(item, "type");
	const char *what = document_text(item, "operator");
	const char *rollup = document_text(item, "rollup");
	double value = document_number(item, "value");
	char field[320];

	snprintf(field, sizeof(field), "data of \"%.253s\": metrics[%zu]", use->node, index);
	if (!type)
		return fail(a, field, "has no type");
	if (!what && rollup && array_has_text(operators, rollup))
		what = rollup;
	if (!(value >= 0 && value <= PERCENT_MOST))
		return fail(a, field, "the value must be a percentage, 0 or more");
	if (strcasecmp(type, "CPU") == 0)
		set_value(&use->cpu, what ? what : "", value);
	else if (strcasecmp(type, "Memory") == 0)
		set_value(&use->mem, what ? what : "", value);
	return 0;
}

/* An unknown mean is the newest value, an unknown deviation 0. False: only the mean is known. */
static bool settle(struct watcher_resource *r)
{
	bool told = !isnan(r->stddev);

	if (isnan(r->mean))
		r->mean = r->latest;
	if (!told)
		r->stddev = 0;
	return told || isnan(r->mean);
}

/* Our members behind the known ones say more of a node. */
static int read_extra(struct answer *a, const cJSON *item, struct watcher_use *use)
{
	const char *window = document_text(item, "window");
	double age = document_number(item, "ageSeconds");
	double seconds = document_number(item, "windowSeconds");
	double samples = document_number(item, "samples");

	a->tells_ages |= !isnan(age);
	use->window = a->window;
	use->start_ns = a->start_ns;
	use->end_ns = a->end_ns;
	if (window && strcmp(window, SINCE_START) == 0)
		use->window = WINDOW_5M;
	else if (window && find_window(window, &use->window))
		return fail(a, use->node, "\"window\" must be 5m, 10m, 15m or sinceStart");
	if (age >= 0 && age <= (double)a->time_ns / NS_PER_SEC)
		use->end_ns = a->time_ns - (int64_t)(age * NS_PER_SEC);
	if (use->start_ns >= use->end_ns)
		use->start_ns = use->end_ns - (a->end_ns - a->start_ns);
	if (seconds > 0 && seconds <= (double)use->end_ns / NS_PER_SEC)
		use->start_ns = use->end_ns - (int64_t)(seconds * NS_PER_SEC);
	use->start_ns = use->start_ns < 0 ? 0 : use->start_ns;
	if (samples >= 0 && samples < 1e15)
		use->samples = (uint64_t)samples;
	return 0;
}

static int read_node(struct answer *a, const cJSON *item)
{
	static const struct watcher_resource none = {NAN, NAN, NAN};
	const cJSON *metrics = document_at(item, "metrics"), *metric;
	struct watcher_use *use;
	size_t index = 0;
	bool told;

	if (strlen(item->string) > NODE_NAME_MAX || !item->string[0])
		return fail(a, "data", "the name of a node must have 1 to 253 bytes");
	if (metrics && !cJSON_IsArray(metrics) && !cJSON_IsNull(metrics))
		return fail(a, item->string, "\"metrics\" must be a list");
	use = &ARRAY_ADD(a->snapshot->uses, a->snapshot->use_count);
	*use = (struct watcher_use){.node = mem_strdup(item->string), .cpu = none, .mem = none};
	cJSON_ArrayForEach (metric, metrics) {
		if (read_metric(a, metric, use, index++))
			return -EINVAL;
	}
	told = settle(&use->cpu);
	a->without_stddev += !settle(&use->mem) || !told;
	return read_extra(a, item, use);
}

static int read_nodes(struct answer *a, const cJSON *nodes, bool kep)
{
	const cJSON *item;

	cJSON_ArrayForEach (item, nodes) {
		if (kep && !document_at(item, "metrics") &&
		    (strcmp(item->string, "metadata") == 0 || strcmp(item->string, "tags") == 0))
			continue;
		if (!cJSON_IsObject(item) || (kep && !document_at(item, "metrics")))
			return snapshot_text_fail(
				a->text,
				"data.%.100s: is no node with \"metrics\": neither load-watcher's "
				"form (data.NodeMetricsMap.NODE.metrics) nor that of KEP-61 "
				"(data.NODE.metrics)",
				item->string);
		if (read_node(a, item))
			return -EINVAL;
	}
	return 0;
}

static int check_uses(const struct answer *a)
{
	struct snapshot *s = a->snapshot;

	array_sort(s->uses, s->use_count, sizeof(*s->uses), array_compare_text);
	for (size_t i = 1; i < s->use_count; i++)
		if (strcmp(s->uses[i - 1].node, s->uses[i].node) == 0)
			return fail(a, s->uses[i].node, "this node stands twice");
	return s->use_count ? 0 : fail(a, "data", "there is no node in it");
}

int snapshot_read_watcher(struct snapshot *s, const struct snapshot_text *t, const cJSON *doc)
{
	struct answer a = {.snapshot = s, .text = t};
	const cJSON *data = document_at(doc, "data"), *map = document_at(data, "NodeMetricsMap");
	bool kep = !map;

	if (!cJSON_IsObject(data))
		return fail(&a, "data",
			    "must be an object: this is neither a Usage object nor an answer of "
			    "/watcher");
	if (map && !cJSON_IsObject(map) && !cJSON_IsNull(map))
		return fail(&a, "data.NodeMetricsMap", "must be an object");
	if (read_head(&a, doc) || read_nodes(&a, kep ? data : map, kep) || check_uses(&a))
		return -EINVAL;
	if (a.without_stddev)
		snapshot_note(s, false, "%s: of %zu nodes no deviation is told: taken as 0",
			      t->name, a.without_stddev);
	s->has_usage = true;
	if (a.tells_ages || a.time_ns - a.end_ns <= EXPIRED_NS)
		snapshot_saw_time(&s->usage_ns, a.time_ns);
	snapshot_saw_time(&s->usage_ns, a.end_ns);
	return 0;
}

/* --- stats ------------------------------------------------------------------------------------ */

static struct window_stats stats_of(const struct watcher_use *use, const struct watcher_resource *r,
				    int64_t capacity)
{
	if (isnan(r->mean) || capacity <= 0)
		return (struct window_stats){0};
	return (struct window_stats){
		.known = true,
		.start_ns = use->start_ns,
		.end_ns = use->end_ns,
		.samples = use->samples,
		.mean = r->mean / 100 * (double)capacity,
		.stddev = r->stddev / 100 * (double)capacity,
		.min = NAN,
		.max = NAN,
	};
}

static struct latest latest_of(const struct watcher_resource *r, int64_t capacity)
{
	if (isnan(r->latest) || capacity <= 0)
		return (struct latest){0};
	return (struct latest){.value = (float)(r->latest / 100 * (double)capacity), .known = true};
}

static int64_t amount(const struct resources *r, enum resource_id id)
{
	return r->of[id] > 0 ? r->of[id] : 0;
}

static void make_stats(const struct watcher_use *use, const struct kube_node *node,
		       struct node_stats *p)
{
	struct window_set *set = &p->usage.windows[use->window];

	*p = (struct node_stats){
		.generation = 1,
		.name = use->node,
		.foreign = true,
		.end_ns = use->end_ns,
		.cpu_capacity_milli = amount(&node->capacity, RESOURCE_CPU),
		.mem_capacity_bytes = amount(&node->capacity, RESOURCE_MEMORY),
		.cpu_allocatable_milli = amount(&node->allocatable, RESOURCE_CPU),
		.mem_allocatable_bytes = amount(&node->allocatable, RESOURCE_MEMORY),
	};
	p->usage.latest.cpu_milli = latest_of(&use->cpu, p->cpu_capacity_milli);
	p->usage.latest.mem_bytes = latest_of(&use->mem, p->mem_capacity_bytes);
	for (int w = 0; w < WINDOWS; w++)
		p->usage.windows[w].counts = window_counts_none;
	set->cpu_milli = stats_of(use, &use->cpu, p->cpu_capacity_milli);
	set->mem_bytes = stats_of(use, &use->mem, p->mem_capacity_bytes);
	set->counts.seconds = (double)(use->end_ns - use->start_ns) / NS_PER_SEC;
}

void snapshot_use_watcher(struct snapshot *s)
{
	for (size_t i = 0; i < s->use_count; i++) {
		const struct watcher_use *use = &s->uses[i];
		const struct object *node = model_find(s->model, OBJECT_NODE, "", use->node);
		struct node_stats stats = {.generation = 0};

		if (!node) {
			snapshot_note(s, true, "%s: skipped node %s: the snapshot has no such Node",
				      s->usage_name, use->node);
			continue;
		}
		make_stats(use, (const struct kube_node *)node, &stats);
		stats_json_add_stats(s->node_stats, &stats);
	}
}
