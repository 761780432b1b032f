/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever stands in the annotation of a controller (the first line) and of its pods' template (the
 * second): what is read is within its bounds, what cannot be read or contradicts is told with the
 * workload's name, and the workload beside it has what it asked for.
 */
#include <assert.h>
#include <cjson/cJSON.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/snapshot.h"
#include "aggregator/policy/slack/slack.h"
#include "aggregator/policy/slack/slack_target.h"
#include "shared/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NOW 1800000000000000000LL

static const char node[] =
	"{\"kind\":\"Node\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"n1\"},\"status\":{"
	"\"allocatable\":{\"cpu\":\"64\",\"memory\":\"64Gi\",\"pods\":\"500\"},\"conditions\":[{"
	"\"type\":\"Ready\",\"status\":\"True\"}]}}";

static const char template[] =
	"{\"metadata\":{},\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{"
	"\"cpu\":\"10m\",\"memory\":\"1Mi\"}}}]}}";

static void annotate(cJSON *object, const char *text)
{
	cJSON *metadata = cJSON_GetObjectItem(object, "metadata");

	cJSON_AddStringToObject(cJSON_AddObjectToObject(metadata, "annotations"), SLACK_ANNOTATION,
				text);
}

static cJSON *workload(const char *name, const char *of_controller, const char *of_template)
{
	cJSON *w = cJSON_CreateObject(), *metadata, *spec, *pods = cJSON_Parse(template);

	cJSON_AddStringToObject(w, "kind", "StatefulSet");
	cJSON_AddStringToObject(w, "apiVersion", "apps/v1");
	metadata = cJSON_AddObjectToObject(w, "metadata");
	cJSON_AddStringToObject(metadata, "name", name);
	cJSON_AddStringToObject(metadata, "namespace", "d");
	cJSON_AddStringToObject(metadata, "uid", name);
	annotate(w, of_controller);
	spec = cJSON_AddObjectToObject(w, "spec");
	cJSON_AddNumberToObject(spec, "replicas", 10);
	if (of_template)
		annotate(pods, of_template);
	cJSON_AddItemToObject(spec, "template", pods);
	return w;
}

static struct view *view_of(const char *of_controller, const char *of_template)
{
	cJSON *list = cJSON_CreateObject(), *items;
	struct snapshot *s = snapshot_new();
	int64_t now_ns = NOW;
	struct view *v;
	char *text;

	cJSON_AddStringToObject(list, "kind", "List");
	cJSON_AddStringToObject(list, "apiVersion", "v1");
	items = cJSON_AddArrayToObject(list, "items");
	cJSON_AddItemToArray(items, cJSON_Parse(node));
	cJSON_AddItemToArray(items, workload("asks", of_controller, of_template));
	cJSON_AddItemToArray(items, workload("other", "3", NULL));
	text = cJSON_PrintUnformatted(list);
	if (snapshot_add(s, "cluster", text, strlen(text), NULL) ||
	    snapshot_view(s, &v, &now_ns, NULL))
		abort();
	cJSON_free(text);
	cJSON_Delete(list);
	snapshot_free(s);
	return v;
}

/* One is none, or they are different counts. */
static bool is_to_be_told(const char *of_controller, const char *of_template)
{
	struct slack_ask one, other;

	if (!slack_ask_read(of_controller, &one) || !slack_ask_read(of_template, &other))
		return true;
	return one.what == SLACK_ASKS_COUNT && other.what == SLACK_ASKS_COUNT &&
	       one.amount != other.amount;
}

static bool is_told(const struct slack_result *r, const char *who)
{
	for (size_t i = 0; i < r->issue_count; i++)
		if (strcmp(r->issues[i].who, who) == 0)
			return true;
	return false;
}

static void check(const struct slack_result *r, const char *of_controller, const char *of_template)
{
	bool other = false;

	assert(!is_to_be_told(of_controller, of_template) || is_told(r, "d/StatefulSet/asks"));
	assert(!is_told(r, "d/StatefulSet/other"));
	for (size_t i = 0; i < r->class_count; i++) {
		assert(r->classes[i].wanted <= 5000);
		assert(r->classes[i].placed + r->classes[i].unplaced == r->classes[i].wanted);
		if (strcmp(r->classes[i].key, "d/StatefulSet/other") == 0)
			other = r->classes[i].target == 3;
	}
	assert(other);
}

static void check_bounds(const char *text)
{
	struct slack_ask ask = {SLACK_ASKS_NOTHING, -1};

	if (!slack_ask_read(text, &ask)) {
		assert(ask.what == SLACK_ASKS_NOTHING && ask.amount == -1);
		return;
	}
	assert(ask.what != SLACK_ASKS_NOTHING && ask.amount >= 0);
	assert(ask.amount <=
	       (ask.what == SLACK_ASKS_SHARE ? SLACK_ASK_SHARE_MAX : SLACK_ASK_COUNT_MAX));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *line = size ? memchr(data, '\n', size) : NULL;
	size_t first = line ? (size_t)(line - data) : size;
	char *of_controller = mem_strndup((const char *)data, first);
	char *of_template =
		line ? mem_strndup((const char *)line + 1, size - first - 1) : mem_strdup("");
	struct slack_state *s = slack_state_new();
	struct view *v = view_of(of_controller, of_template);
	struct slack_options o;
	struct place_options po;
	struct slack_result r;
	struct place *p;

	slack_options_default(&o);
	place_options_default(&po);
	po.now_ns = NOW;
	p = place_new(v, &po);
	check_bounds(of_controller);
	check_bounds(of_template);
	if (slack_step(s, p, v, NOW, &o, &r, NULL))
		abort();
	check(&r, of_controller, of_template);
	slack_result_fini(&r);
	place_free(p);
	slack_state_free(s);
	view_drop(v);
	free(of_controller);
	free(of_template);
	return 0;
}
