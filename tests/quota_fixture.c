/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/quota_fixture.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/snapshot.h"
#include "aggregator/policy/quota/quota_internal.h"
#include "shared/mem.h"

struct view *quota_fixture_view(const char *items)
{
	char *text = mem_printf("apiVersion: v1\nkind: List\nitems:\n%s", items);
	struct snapshot *s = snapshot_new();
	struct error error = {""};
	struct view *v = NULL;
	int64_t now_ns;

	if (snapshot_add(s, "fixture", text, strlen(text), &error) ||
	    snapshot_view(s, &v, &now_ns, &error)) {
		fprintf(stderr, "the fixture's objects are refused: %s\n%s\n", error.text, text);
		abort();
	}
	snapshot_free(s);
	free(text);
	return v;
}

static const char *line(const char *format, ...) __attribute__((format(printf, 1, 2)));

static const char *line(const char *format, ...)
{
	static char texts[16][1024];
	static unsigned int next;
	char *text = texts[next++ % 16];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(texts[0]), format, args);
	va_end(args);
	return text;
}

const char *quota_fixture_node(const char *name, const char *allocatable)
{
	return line(
		"- {apiVersion: v1, kind: Node, metadata: {name: %s}, status: {allocatable: {pods: "
		"\"110\", %s}, capacity: {pods: \"110\", %s}, conditions: [{type: Ready, status: "
		"\"True\"}]}}\n",
		name, allocatable, allocatable);
}

static const char *amounts(const char *name, const char *text)
{
	return text ? line("%s: {%s}, ", name, text) : "";
}

const char *quota_fixture_quota(const char *namespace, const char *name, const char *min,
				const char *max)
{
	return line("- {apiVersion: scheduling.x-k8s.io/v1alpha1, kind: ElasticQuota, metadata: "
		    "{namespace: %s, name: %s}, spec: {%s%s}}\n",
		    namespace, name, amounts("min", min), amounts("max", max));
}

const char *quota_fixture_pod(const char *namespace, const char *name, const char *node,
			      int priority, const char *requests)
{
	return line("- {apiVersion: v1, kind: Pod, metadata: {namespace: %s, name: %s, uid: "
		    "uid-%s-%s}, "
		    "spec: {%s%s%s priority: %d, containers: [{name: c, resources: {requests: "
		    "{%s}}}]}, status: {phase: %s}}\n",
		    namespace, name, namespace, name, *node ? "nodeName: " : "", node,
		    *node ? "," : "", priority, requests, *node ? "Running" : "Pending");
}

bool quota_fixture_remove(struct quota_book *b, const char *namespace)
{
	bool removed = quota_book_drop(b, namespace);

	quota_book_scale(b);
	return removed;
}

static bool has_own(const struct quota_book *b, const char *namespace)
{
	return quota_book_index(b, namespace) < quota_book_count(b);
}

struct quota_book *quota_fixture_book(const struct quota *quotas, size_t count,
				      const struct quota_options *o)
{
	struct quota_book *b = quota_book_alloc(o);

	for (size_t i = 0; i < count; i++)
		if (!has_own(b, quotas[i].namespace))
			quota_book_put(b, &quotas[i]);
	return b;
}

bool quota_fixture_insert(struct quota_book *b, const struct quota *q)
{
	if (has_own(b, q->namespace))
		return false;
	quota_book_put(b, q);
	quota_book_scale(b);
	return true;
}

/* Usage beyond INT64_MAX is kept exactly. */
bool quota_fixture_set_bounds(struct quota_book *b, const struct quota *q)
{
	struct quota_book *other;
	struct quota_entry *kept, *now;
	const struct quota_rows *rows;
	struct quota with;

	if (!has_own(b, q->namespace))
		return false;
	with = *quota_book_find(b, q->namespace);
	with.name = q->name;
	with.min = q->min;
	with.max = q->max;
	with.has_min = q->has_min;
	with.has_max = q->has_max;
	other = quota_book_alloc(&b->options);
	kept = quota_book_put(other, &with);
	rows = &quota_book_entry(b, q->namespace)->rows;
	for (size_t i = 0; i < rows->count; i++)
		if (rows->of[i].in_used)
			quota_rows_put(&kept->rows, rows->of[i].name)->used = rows->of[i].used;
	quota_book_drop(b, q->namespace);
	now = quota_book_put(b, &kept->quota);
	for (size_t i = 0; i < kept->rows.count; i++) {
		const struct quota_row *from = &kept->rows.of[i];
		struct quota_row *to = quota_rows_put(&now->rows, from->name);

		quota_rows_put(&b->sum, from->name)->used += from->used - to->used;
		to->used = from->used;
	}
	quota_book_free(other);
	quota_book_scale(b);
	return true;
}
