/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading is strict, since the bytes come from outside: an edited file, a snapshot of a bug report.
 * Counts and sums of arrivals are bounded against overflow. All of it is taken over, or nothing.
 * Writing leaves out classes and arrivals beyond those bounds.
 *
 * Whole numbers are within 2^53, which every reader of JSON has exactly; times are text, to the
 * nanosecond.
 */
#include "aggregator/planner/slack_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "aggregator/model/object.h"
#include "aggregator/model/object_json.h"
#include "shared/arith.h"
#include "shared/jsonw.h"
#include "shared/array.h"
#include "shared/timefmt.h"
#include "shared/utf8.h"

enum { COUNT_MAX = 1000000 };

#define EXACT_MAX    9007199254740992.0 /* 2^53 */
#define ARRIVALS_SUM (INT64_MAX / 2)
#define SECOND	     1000000000LL

/* --- writing ---------------------------------------------------------------------------------- */

static bool has_shape(const struct slack_record *r)
{
	return (r->shape.cpu_milli || r->shape.mem_bytes) && r->shape.cpu_milli <= EXACT_MAX &&
	       r->shape.mem_bytes <= EXACT_MAX;
}

/* The class, and its nodes behind it. */
static void write_class(struct jsonw *w, const struct slack_record *of, size_t count)
{
	jsonw_object_open(w);
	jsonw_key_string(w, "class", of->class);
	jsonw_key_int(w, "wanted", of->count);
	if (of->lower_since_ns) {
		jsonw_key_time_exact(w, "lowerSince", of->lower_since_ns);
		jsonw_key_int(w, "lowerTarget", of->lower_target);
	}
	if (has_shape(of)) {
		jsonw_key_int(w, "cpuMillicores", of->shape.cpu_milli);
		jsonw_key_int(w, "memoryBytes", of->shape.mem_bytes);
		if (of->shape_since_ns)
			jsonw_key_time_exact(w, "shapeSince", of->shape_since_ns);
	}
	jsonw_key_array(w, "nodes");
	for (size_t i = 1; i < count; i++) {
		jsonw_object_open(w);
		jsonw_key_string(w, "node", of[i].node);
		jsonw_key_int(w, "count", of[i].count);
		jsonw_object_close(w);
	}
	jsonw_array_close(w);
	jsonw_object_close(w);
}

/* How many records the class at hand has. */
static size_t count_records(const struct slack_record *of, size_t count)
{
	size_t i = 1;

	while (i < count && *of[i].node)
		i++;
	return i;
}

/* Whether it can be read again behind what is in sum, to which it is added. */
static bool is_within(const struct slack_arrival *a, struct slack_amount *sum)
{
	struct slack_amount with = *sum;

	if (a->shape.cpu_milli < 0 || a->shape.cpu_milli > EXACT_MAX || a->shape.mem_bytes < 0 ||
	    a->shape.mem_bytes > EXACT_MAX)
		return false;
	slack_amount_add(&with, &a->shape, int_min(a->count, COUNT_MAX));
	if (with.cpu_milli > ARRIVALS_SUM || with.mem_bytes > ARRIVALS_SUM)
		return false;
	*sum = with;
	return true;
}

static void write_arrivals(struct jsonw *w, const struct slack_arrivals *a)
{
	struct slack_amount sum = {0, 0};

	jsonw_key_object(w, "arrivals");
	jsonw_key_int(w, "spanNanoseconds", a->span_ns);
	jsonw_key_int(w, "keepNanoseconds", a->keep_ns);
	jsonw_key_int(w, "firstSpan", a->first_span);
	jsonw_key_time_exact(w, "seen", a->seen_ns > 0 ? a->seen_ns : 0);
	jsonw_key_array(w, "items");
	for (size_t i = 0; i < a->count; i++) {
		if (!is_within(&a->of[i], &sum))
			continue;
		jsonw_object_open(w);
		jsonw_key_int(w, "span", a->of[i].span);
		jsonw_key_int(w, "cpuMillicores", a->of[i].shape.cpu_milli);
		jsonw_key_int(w, "memoryBytes", a->of[i].shape.mem_bytes);
		jsonw_key_int(w, "count", int_min(a->of[i].count, COUNT_MAX));
		jsonw_object_close(w);
	}
	jsonw_array_close(w);
	jsonw_object_close(w);
}

void slack_memory_write(struct slack_state *s, struct buf *out)
{
	const struct slack_arrivals *arrivals = slack_state_arrivals(s);
	size_t count;
	struct slack_record *records = slack_state_records(s, &count);
	struct jsonw w;

	jsonw_begin(&w, out);
	jsonw_key_array(&w, "classes");
	for (size_t i = 0, len; i < count; i += len) {
		len = count_records(&records[i], count - i);
		if (strlen(records[i].class) <= SLACK_MEMORY_NAME_MAX)
			write_class(&w, &records[i], len);
	}
	jsonw_array_close(&w);
	if (arrivals->started)
		write_arrivals(&w, arrivals);
	jsonw_object_close(&w);
	free(records);
}

/* --- reading: the first failure stays --------------------------------------------------------- */

/* The parts that were read, until all of them are valid. */
struct memory {
	size_t count;
	struct slack_record *records; /* owned; its strings are the tree's */
	uint32_t placeholders;
	struct slack_arrivals arrivals; /* owned; not started: there are none */
	struct slack_amount arrived;
};

static int64_t read_number(const struct object_json *of, const char *name, double most)
{
	double value = cJSON_GetNumberValue(object_json_find(of->json, name));

	if (value >= 0 && value <= most && value == (double)(int64_t)value)
		return (int64_t)value;
	object_json_fail(of, name, "must be a whole number of 0 to %.0f", most);
	return 0;
}

static int64_t read_time(const struct object_json *of, const char *name)
{
	const char *text = cJSON_GetStringValue(object_json_find(of->json, name));
	int64_t ns;

	if (text && !timefmt_parse(text, &ns, NULL) && ns >= 0)
		return ns;
	object_json_fail(of, name, "must be a time such as 2026-01-31T12:00:00Z");
	return 0;
}

/* One that comes behind *last, which it becomes. */
static const char *read_name(const struct object_json *of, const char *name, const char **last)
{
	const char *text = object_json_text(of->json, name);

	if (!*text || strlen(text) > SLACK_MEMORY_NAME_MAX)
		object_json_fail(of, name, "must be a name");
	else if (strcmp(*last, text) >= 0)
		object_json_fail(of, name, "\"%.100s\" is out of order", text);
	else
		*last = text;
	return *last;
}

static struct object_json read_list(const struct object_json *of, const char *name)
{
	const struct object_json list = object_json_list(of, name);

	if (!list.json)
		object_json_fail(of, name, "must be a list");
	return list;
}

static void read_node(struct memory *m, const struct object_json *node, const char *class,
		      const char **last)
{
	struct slack_record r = {.class = class};

	r.node = read_name(node, "node", last);
	r.count = (uint32_t)read_number(node, "count",
					(double)SLACK_MEMORY_PLACEHOLDERS_MAX - m->placeholders);
	m->placeholders += r.count;
	ARRAY_ADD(m->records, m->count) = r;
}

static void read_class(struct memory *m, const struct object_json *class, const char **last)
{
	struct slack_record r = {.node = ""};
	struct object_json nodes;
	const char *last_node = "";

	if (class->index >= SLACK_MEMORY_CLASSES_MAX)
		object_json_fail(class, NULL, "there are more than %d", SLACK_MEMORY_CLASSES_MAX);
	r.class = read_name(class, "class", last);
	r.count = (uint32_t)read_number(class, "wanted", SLACK_MEMORY_PLACEHOLDERS_MAX);
	if (object_json_find(class->json, "lowerSince")) {
		r.lower_since_ns = read_time(class, "lowerSince");
		r.lower_target =
			(uint32_t)read_number(class, "lowerTarget", SLACK_MEMORY_PLACEHOLDERS_MAX);
	}
	nodes = read_list(class, "nodes");
	/* Older versions saved no shape. */
	if (object_json_find(class->json, "cpuMillicores")) {
		r.shape.cpu_milli = read_number(class, "cpuMillicores", EXACT_MAX);
		r.shape.mem_bytes = read_number(class, "memoryBytes", EXACT_MAX);
		if (object_json_find(class->json, "shapeSince"))
			r.shape_since_ns = read_time(class, "shapeSince");
	}
	ARRAY_ADD(m->records, m->count) = r;
	for (struct object_json node = object_json_begin(&nodes); node.json && !node.fault->found;
	     object_json_next(&node))
		read_node(m, &node, r.class, &last_node);
}

static void read_classes(struct memory *m, const struct object_json *whole)
{
	const struct object_json list = read_list(whole, "classes");
	const char *last = "";

	for (struct object_json class = object_json_begin(&list); class.json && !class.fault->found;
	     object_json_next(&class))
		read_class(m, &class, &last);
}

static bool follows(const struct slack_arrival *before, const struct slack_arrival *a)
{
	return (COMPARE(before->span, a->span)
			?: COMPARE(before->shape.cpu_milli, a->shape.cpu_milli)
			?: COMPARE(before->shape.mem_bytes, a->shape.mem_bytes)) < 0;
}

static void read_arrival(struct memory *m, const struct object_json *item)
{
	struct slack_arrivals *a = &m->arrivals;
	struct slack_arrival one;

	one.span = read_number(item, "span", EXACT_MAX);
	one.shape.cpu_milli = read_number(item, "cpuMillicores", EXACT_MAX);
	one.shape.mem_bytes = read_number(item, "memoryBytes", EXACT_MAX);
	one.count = (uint32_t)read_number(item, "count", COUNT_MAX);
	slack_amount_add(&m->arrived, &one.shape, one.count);
	if (m->arrived.cpu_milli > ARRIVALS_SUM || m->arrived.mem_bytes > ARRIVALS_SUM)
		object_json_fail(item, NULL, "no cluster has that much");
	if (a->count && !follows(&a->of[a->count - 1], &one))
		object_json_fail(item, NULL, "is out of order");
	ARRAY_ADD(a->of, a->count) = one;
}

static void read_arrivals(struct memory *m, const struct object_json *whole)
{
	const struct object_json from = object_json_object(whole, "arrivals");
	struct slack_arrivals *a = &m->arrivals;
	struct object_json items;

	if (!from.json)
		return;
	a->span_ns = read_number(&from, "spanNanoseconds", 86400e9);
	a->keep_ns = read_number(&from, "keepNanoseconds", EXACT_MAX);
	a->first_span = read_number(&from, "firstSpan", EXACT_MAX);
	a->seen_ns = read_time(&from, "seen");
	if (a->span_ns < SECOND)
		object_json_fail(&from, "spanNanoseconds", "is less than a second");
	items = (struct object_json){object_json_find(from.json, "items"), from.fault, &from,
				     "items", 0};
	if (!cJSON_IsArray(items.json) || object_json_count(&items) > SLACK_ARRIVALS_MAX)
		object_json_fail(&items, NULL, "must be a list of %d at most", SLACK_ARRIVALS_MAX);
	for (struct object_json item = object_json_begin(&items); item.json && !item.fault->found;
	     object_json_next(&item))
		read_arrival(m, &item);
	a->started = true;
}

static void take_over(struct slack_state *s, struct memory *m)
{
	slack_state_restore(s, m->records, m->count);
	if (!m->arrivals.started)
		return;
	slack_arrivals_fini(slack_state_arrivals(s));
	*slack_state_arrivals(s) = m->arrivals;
	m->arrivals = (struct slack_arrivals){0};
}

int slack_memory_read(struct slack_state *s, const char *text, size_t len, struct error *error)
{
	char field[OBJECT_FIELD_MAX] = "";
	struct object_fault fault = {field, sizeof(field), error, false};
	struct memory m = {0};
	cJSON *tree = utf8_is_valid(text, len) ? cJSON_ParseWithLength(text, len) : NULL;
	const struct object_json whole = {tree, &fault, NULL, "", 0};

	if (!cJSON_IsObject(tree))
		object_json_fail(&whole, NULL, "must be an object of JSON in UTF-8");
	read_classes(&m, &whole);
	read_arrivals(&m, &whole);
	if (!fault.found)
		take_over(s, &m);
	else if (*field)
		error_prefix(error, "%s", field);
	slack_arrivals_fini(&m.arrivals);
	free(m.records);
	cJSON_Delete(tree);
	return fault.found ? -EINVAL : 0;
}
