/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of load_watcher: requests against the state of the windows, and documents byte for byte. */
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/watcher_encode.h"
#include "shared/mem.h"
#include "tests/api_fixture.h"
#include "tests/conformance/values.h"
#include "tests/view_fixture.h"

static const char *const hosts[] = {"worker-1", "worker-2"};

enum { HOSTS = 2 };

struct state {
	bool windows[WINDOWS];
	bool healthy;
};

/* "15m and 10m empty, 5m present": what a clause says goes for the windows it names. */
static void read_clause(const char *clause, size_t len, struct state *s)
{
	bool present = memmem(clause, len, "present", 7) != NULL;

	for (int i = 0; i < WINDOWS; i++) {
		const char *at = memmem(clause, len, window_name[i], strlen(window_name[i]));

		/* "15m" contains "5m". */
		if (at && i == WINDOW_5M && at > clause && at[-1] == '1')
			at = memmem(at + 1, len - (size_t)(at + 1 - clause), "5m", 2);
		if (at)
			s->windows[i] = present;
	}
}

static bool read_state(const char *text, struct state *s)
{
	static const struct {
		const char *text;
		struct state state;
	} words[] = {
		{"any", {{true, true, true}, true}},
		{"no window ever filled", {{false, false, false}, false}},
		{"provider healthy", {{true, true, true}, true}},
		{"provider unhealthy", {{true, true, true}, false}},
	};

	*s = (struct state){{false, false, false}, true};
	if (!text)
		return false;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(words[i].text, text) == 0) {
			*s = words[i].state;
			return true;
		}
	}
	if (!strstr(text, "present") && !strstr(text, "empty"))
		return false;
	for (const char *clause = text; *clause;) {
		size_t len = strcspn(clause, ",");

		read_clause(clause, len, s);
		clause += len + (clause[len] == ',');
	}
	return true;
}

static struct view *view_of(const struct state *s)
{
	int64_t age_ns = s->healthy ? 1000000000LL : 2 * FRESH_NS;
	struct node_stats node_stats[HOSTS];
	bool any = false;

	for (int w = 0; w < WINDOWS; w++)
		any = any || s->windows[w];
	if (!any)
		return NULL;
	for (int i = 0; i < HOSTS; i++) {
		node_stats[i] =
			view_fixture_node(hosts[i], VIEW_FIXTURE_NOW_NS - age_ns, 3600, 1000, 100);
		for (int w = 0; w < WINDOWS; w++)
			if (!s->windows[w])
				memset(&node_stats[i].usage.windows[w], 0,
				       sizeof(node_stats[i].usage.windows[w]));
	}
	return view_fixture_of(node_stats, HOSTS);
}

/* A document is expected in words; what they mean follows from the request and the state. */
static bool is_document(const cJSON *json, const struct state *s, const char *target,
			struct error *error)
{
	const char *host = strstr(target, "host="), *duration;
	const cJSON *map = api_fixture_at(json, "data.NodeMetricsMap");
	int count = host && host[5] ? 1 : HOSTS;

	duration = cJSON_GetStringValue(api_fixture_at(json, "window.duration"));
	if (!duration || strcmp(duration, s->windows[WINDOW_15M] ? "15m" : "10m") != 0) {
		values_fail(error, "the window is %s", duration ? duration : "not given");
		return false;
	}
	if (!cJSON_IsObject(map) || cJSON_GetArraySize(map) != count ||
	    (count == 1 && strcmp(map->child->string, host + 5) != 0)) {
		values_fail(error, "the document has %d nodes, expected %d",
			    map ? cJSON_GetArraySize(map) : 0, count);
		return false;
	}
	for (const cJSON *node = map->child; node; node = node->next) {
		if (cJSON_GetArraySize(values_get(node, "metrics")) != 4) {
			values_fail(error, "%s has not 4 metrics", node->string);
			return false;
		}
	}
	return true;
}

static bool same_or_null(const cJSON *want, const char *got)
{
	const char *text = cJSON_GetStringValue(want);

	return text ? got && strcmp(text, got) == 0 : cJSON_IsNull(want) && !got;
}

static bool check_response(const struct api_fixture *f, const cJSON *expect, const struct state *s,
			   const char *target, struct error *error)
{
	static const char *const keys[] = {"status", "content_type", "body", NULL};
	const struct api_response *rs = &f->response;
	const cJSON *type = cJSON_GetObjectItemCaseSensitive(expect, "content_type");
	const char *body = cJSON_GetStringValue(values_get(expect, "body"));

	if (!cJSON_IsObject(expect) || !values_only(expect, keys, error) || !body || !type) {
		values_fail(error, "a case must expect status, content_type and body");
		return false;
	}
	if (!values_same_int(expect, "status", rs->status, error))
		return false;
	if (!same_or_null(type, rs->content_type)) {
		values_fail(error, "the content type is %s",
			    rs->content_type ? rs->content_type : "not set");
		return false;
	}
	if (rs->status == 200 && *body)
		return is_document(f->json, s, target, error);
	if (strcmp(rs->body.data ? rs->body.data : "", body) == 0)
		return true;
	values_fail(error, "the body is \"%.200s\"", rs->body.data ? rs->body.data : "");
	return false;
}

enum outcome run_watcher_http(const cJSON *c, struct error *error)
{
	const cJSON *input = values_get(c, "input");
	const char *method = cJSON_GetStringValue(values_get(input, "method"));
	const char *target = cJSON_GetStringValue(values_get(input, "target"));
	struct api_fixture f;
	struct state s;
	bool ok;

	if (!method || !target || !read_state(cJSON_GetStringValue(values_get(input, "state")), &s))
		return values_fail(error, "a case must have a method, a target and a known state");
	if (strncmp(target, "//", 2) == 0) {
		error_set(error, "redirects of Go's request multiplexer: answered directly here");
		return SKIPPED;
	}
	api_fixture_open(&f, view_of(&s));
	f.ctx.watcher_upstream = true;
	api_fixture_send(&f, method, target, "");
	ok = check_response(&f, values_get(c, "expect"), &s, target, error);
	api_fixture_close(&f);
	return ok ? PASSED : FAILED;
}

static const char *text_at(const cJSON *list, int index)
{
	const char *text = cJSON_GetStringValue(cJSON_GetArrayItem(list, index));

	return text ? text : "";
}

static const char *text_member(const cJSON *object, const char *key)
{
	const char *text = cJSON_GetStringValue(values_get(object, key));

	return text ? text : "";
}

/* [type, operator, value], [name, type, operator, rollup, value], or an object of these. */
static bool read_metric(const cJSON *item, struct watcher_metric *m)
{
	int size = cJSON_GetArraySize(item), first = size == 5 ? 1 : 0;
	const cJSON *value = cJSON_IsArray(item) ? cJSON_GetArrayItem(item, size - 1)
						 : values_get(item, "value");

	if (!cJSON_IsNumber(value) || (cJSON_IsArray(item) && size != 3 && size != 5))
		return false;
	if (cJSON_IsArray(item))
		*m = (struct watcher_metric){first ? text_at(item, 0) : "", text_at(item, first),
					     text_at(item, first + 1),
					     first ? text_at(item, 3) : "", value->valuedouble};
	else
		*m = (struct watcher_metric){text_member(item, "name"), text_member(item, "type"),
					     text_member(item, "operator"),
					     text_member(item, "rollup"), value->valuedouble};
	return true;
}

static bool read_watcher_node(const cJSON *list, struct watcher_node *node,
			      struct watcher_metric **metrics)
{
	size_t count = 0;

	*metrics = mem_zalloc((size_t)cJSON_GetArraySize(list) + 1, sizeof(**metrics));
	node->name = list->string;
	node->metrics = *metrics;
	if (!cJSON_IsArray(list))
		return false;
	for (const cJSON *item = list->child; item; item = item->next)
		if (!read_metric(item, &(*metrics)[count++]))
			return false;
	node->metric_count = count;
	return true;
}

static bool encode(const cJSON *input, const cJSON *nodes, struct watcher_answer *a,
		   struct buf *out)
{
	size_t count = (size_t)cJSON_GetArraySize(nodes), done = 0;
	struct watcher_node *list = mem_zalloc(count + 1, sizeof(*list));
	struct watcher_metric **metrics = mem_zalloc(count + 1, sizeof(struct watcher_metric *));
	bool ok = true;

	for (const cJSON *node = nodes->child; ok && node; node = node->next, done++)
		ok = read_watcher_node(node, &list[done], &metrics[done]);
	a->source = text_member(input, "source");
	a->nodes = list;
	a->node_count = count;
	if (ok)
		watcher_encode(a, out);
	for (size_t i = 0; i < done; i++)
		free(metrics[i]);
	free(metrics);
	free(list);
	return ok;
}

enum outcome run_watcher_encode(const cJSON *c, struct error *error)
{
	const cJSON *input = values_get(c, "input"), *window = values_get(input, "window");
	const cJSON *nodes = values_get(input, "nodes");
	const char *want = cJSON_GetStringValue(values_get(values_get(c, "expect"), "bytes"));
	const cJSON *start = cJSON_GetArrayItem(window, 1), *end = cJSON_GetArrayItem(window, 2);
	struct watcher_answer a = {.duration = text_at(window, 0)};
	struct buf out = BUF_INIT;
	bool ok;

	if (!want || !cJSON_IsNumber(start) || !cJSON_IsNumber(end) || !cJSON_IsObject(nodes) ||
	    !values_int(input, "timestamp", &a.timestamp, error))
		return values_fail(
			error, "a case must have a timestamp, a window, nodes and expect bytes");
	a.start = (int64_t)start->valuedouble;
	a.end = (int64_t)end->valuedouble;
	ok = encode(input, nodes, &a, &out);
	if (!ok)
		values_fail(error, "a metric cannot be read");
	else if (strcmp(out.data, want) != 0)
		ok = values_fail(error, "got %.400s", out.data) == PASSED;
	buf_fini(&out);
	return ok ? PASSED : FAILED;
}
