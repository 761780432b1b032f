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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "aggregator/policy/arith.h"
#include "shared/jsonw.h"
#include "shared/array.h"
#include "shared/mem.h"
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
	struct error *error;
	bool bad;
	size_t count;
	struct slack_record *records; /* owned; its strings are the tree's */
	uint32_t placeholders;
	struct slack_arrivals arrivals; /* owned; not started: there are none */
	struct slack_amount arrived;
};

__attribute__((format(printf, 2, 3))) static void fail(struct memory *m, const char *format, ...)
{
	char text[256];

	MEM_FORMAT(text, sizeof(text), format);
	if (!m->bad)
		error_set(m->error, "%s", text);
	m->bad = true;
}

static const cJSON *member(const cJSON *object, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(object, name);
}

/* A whole number of the object at path. */
static int64_t read_number(struct memory *m, const cJSON *object, const char *path,
			   const char *name, double most)
{
	const cJSON *item = member(object, name);
	double value = cJSON_IsNumber(item) ? item->valuedouble : -1;

	if (value >= 0 && value <= most && value == (double)(int64_t)value)
		return (int64_t)value;
	fail(m, "%s.%s: must be a whole number of 0 to %.0f", path, name, most);
	return 0;
}

static int64_t read_time(struct memory *m, const cJSON *object, const char *path, const char *name)
{
	const char *text = cJSON_GetStringValue(member(object, name));
	int64_t ns;

	if (text && !timefmt_parse(text, &ns, NULL) && ns >= 0)
		return ns;
	fail(m, "%s.%s: must be a time such as 2026-01-31T12:00:00Z", path, name);
	return 0;
}

/* One that comes behind *last, which it becomes. */
static const char *read_name(struct memory *m, const cJSON *object, const char *path,
			     const char *name, const char **last)
{
	const char *text = cJSON_GetStringValue(member(object, name));

	if (!text || !*text || strlen(text) > SLACK_MEMORY_NAME_MAX)
		fail(m, "%s.%s: must be a name", path, name);
	else if (strcmp(*last, text) >= 0)
		fail(m, "%s.%s: \"%.100s\" is out of order", path, name, text);
	else
		*last = text;
	return *last;
}

static void read_node(struct memory *m, const cJSON *item, const char *of, size_t index,
		      const char *class, const char **last)
{
	struct slack_record r = {.class = class};
	char path[64];

	snprintf(path, sizeof(path), "%s.nodes[%zu]", of, index);
	r.node = read_name(m, item, path, "node", last);
	r.count = (uint32_t)read_number(m, item, path, "count",
					(double)SLACK_MEMORY_PLACEHOLDERS_MAX - m->placeholders);
	m->placeholders += r.count;
	ARRAY_ADD(m->records, m->count) = r;
}

static void read_class(struct memory *m, const cJSON *item, size_t index, const char **last)
{
	const cJSON *nodes = member(item, "nodes");
	struct slack_record r = {.node = ""};
	const char *last_node = "";
	size_t at = 0;
	char path[32];

	snprintf(path, sizeof(path), "classes[%zu]", index);
	if (index >= SLACK_MEMORY_CLASSES_MAX)
		fail(m, "%s: there are more than %d", path, SLACK_MEMORY_CLASSES_MAX);
	r.class = read_name(m, item, path, "class", last);
	r.count = (uint32_t)read_number(m, item, path, "wanted", SLACK_MEMORY_PLACEHOLDERS_MAX);
	if (member(item, "lowerSince")) {
		r.lower_since_ns = read_time(m, item, path, "lowerSince");
		r.lower_target = (uint32_t)read_number(m, item, path, "lowerTarget",
						       SLACK_MEMORY_PLACEHOLDERS_MAX);
	}
	if (!cJSON_IsArray(nodes))
		fail(m, "%s.nodes: must be a list", path);
	/* Older versions saved no shape. */
	if (member(item, "cpuMillicores")) {
		r.shape.cpu_milli = read_number(m, item, path, "cpuMillicores", EXACT_MAX);
		r.shape.mem_bytes = read_number(m, item, path, "memoryBytes", EXACT_MAX);
		if (member(item, "shapeSince"))
			r.shape_since_ns = read_time(m, item, path, "shapeSince");
	}
	ARRAY_ADD(m->records, m->count) = r;
	for (const cJSON *node = m->bad ? NULL : nodes->child; node && !m->bad; node = node->next)
		read_node(m, node, path, at++, r.class, &last_node);
}

static void read_classes(struct memory *m, const cJSON *list)
{
	const char *last = "";
	size_t index = 0;

	if (!cJSON_IsArray(list))
		fail(m, "classes: must be a list");
	for (const cJSON *item = m->bad ? NULL : list->child; item && !m->bad; item = item->next)
		read_class(m, item, index++, &last);
}

static bool follows(const struct slack_arrival *before, const struct slack_arrival *a)
{
	if (before->span != a->span)
		return before->span < a->span;
	if (before->shape.cpu_milli != a->shape.cpu_milli)
		return before->shape.cpu_milli < a->shape.cpu_milli;
	return before->shape.mem_bytes < a->shape.mem_bytes;
}

static void read_arrival(struct memory *m, const cJSON *item)
{
	struct slack_arrivals *a = &m->arrivals;
	struct slack_arrival one;
	char path[48];

	snprintf(path, sizeof(path), "arrivals.items[%zu]", a->count);
	one.span = read_number(m, item, path, "span", EXACT_MAX);
	one.shape.cpu_milli = read_number(m, item, path, "cpuMillicores", EXACT_MAX);
	one.shape.mem_bytes = read_number(m, item, path, "memoryBytes", EXACT_MAX);
	one.count = (uint32_t)read_number(m, item, path, "count", COUNT_MAX);
	slack_amount_add(&m->arrived, &one.shape, one.count);
	if (m->arrived.cpu_milli > ARRIVALS_SUM || m->arrived.mem_bytes > ARRIVALS_SUM)
		fail(m, "%s: no cluster has that much", path);
	if (a->count && !follows(&a->of[a->count - 1], &one))
		fail(m, "%s: is out of order", path);
	ARRAY_ADD(a->of, a->count) = one;
}

static void read_arrivals(struct memory *m, const cJSON *from)
{
	const cJSON *items = member(from, "items");
	struct slack_arrivals *a = &m->arrivals;
	static const char path[] = "arrivals";

	if (!from)
		return;
	a->span_ns = read_number(m, from, path, "spanNanoseconds", 86400e9);
	a->keep_ns = read_number(m, from, path, "keepNanoseconds", EXACT_MAX);
	a->first_span = read_number(m, from, path, "firstSpan", EXACT_MAX);
	a->seen_ns = read_time(m, from, path, "seen");
	if (a->span_ns < SECOND)
		fail(m, "arrivals.spanNanoseconds: is less than a second");
	if (!cJSON_IsArray(items) || cJSON_GetArraySize(items) > SLACK_ARRIVALS_MAX)
		fail(m, "arrivals.items: must be a list of %d at most", SLACK_ARRIVALS_MAX);
	for (const cJSON *item = m->bad ? NULL : items->child; item && !m->bad; item = item->next)
		read_arrival(m, item);
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
	struct memory m = {.error = error};
	cJSON *tree = utf8_is_valid(text, len) ? cJSON_ParseWithLength(text, len) : NULL;

	if (!cJSON_IsObject(tree))
		fail(&m, "must be an object of JSON in UTF-8");
	read_classes(&m, member(tree, "classes"));
	read_arrivals(&m, member(tree, "arrivals"));
	if (!m.bad)
		take_over(s, &m);
	slack_arrivals_fini(&m.arrivals);
	free(m.records);
	cJSON_Delete(tree);
	return m.bad ? -EINVAL : 0;
}
