/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/preempt_fixture.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"
#include "shared/timefmt.h"
#include "tests/model_fixture.h"
#include "tests/view_fixture.h"
#include "tests/quota_fixture.h"

void preempt_fixture_init(struct preempt_fixture *f, enum quota_variant variant)
{
	*f = (struct preempt_fixture){0};
	place_fixture_init(&f->cluster);
	preempt_options_default(&f->options);
	f->options.variant = variant;
}

static void forget(struct preempt_fixture *f)
{
	quota_book_free(f->book);
	place_free(f->place);
	view_drop(f->view);
}

void preempt_fixture_fini(struct preempt_fixture *f)
{
	forget(f);
	for (size_t i = 0; i < f->quota_count; i++) {
		resources_fini(&f->quotas[i].min);
		resources_fini(&f->quotas[i].max);
		resources_fini(&f->quotas[i].used);
	}
	place_fixture_fini(&f->cluster);
}

void preempt_fixture_put(struct preempt_fixture *f, enum object_kind kind, const cJSON *json)
{
	char *text = cJSON_PrintUnformatted(json);

	model_put(f->cluster.model, model_fixture_object(kind, text));
	free(text);
}

void preempt_fixture_resources(struct resources *to, const cJSON *flat)
{
	for (const cJSON *item = flat ? flat->child : NULL; item; item = item->next)
		resources_set_named(to, item->string, (int64_t)item->valuedouble);
}

cJSON *preempt_fixture_parse(const char *text)
{
	char *json = mem_strdup(text);
	cJSON *tree;

	for (char *at = json; *at; at++)
		if (*at == '\'')
			*at = '"';
	tree = cJSON_Parse(json);
	if (!tree)
		abort();
	free(json);
	return tree;
}

static void read_text(struct resources *to, const char *text)
{
	cJSON *flat = text ? preempt_fixture_parse(text) : NULL;

	preempt_fixture_resources(to, flat);
	cJSON_Delete(flat);
}

struct quota *preempt_fixture_quota(struct preempt_fixture *f, const char *namespace,
				    const char *min, const char *max)
{
	struct quota *q = &f->quotas[f->quota_count++];

	if (f->quota_count > PREEMPT_FIXTURE_QUOTAS)
		abort();
	*q = (struct quota){.namespace = namespace,
			    .name = "q",
			    .has_min = min != NULL,
			    .has_max = max != NULL,
			    .weight = 1};
	read_text(&q->min, min);
	read_text(&q->max, max);
	return q;
}

static void sum_used(struct preempt_fixture *f)
{
	for (size_t n = 0; n < f->view->node_count; n++) {
		const struct view_node *node = f->view->nodes[n];

		for (size_t i = 0; i < node->pod_count; i++)
			quota_book_add(f->book, node->pods[i].pod->object.namespace,
				       kube_pod_requests(node->pods[i].pod));
	}
}

void preempt_fixture_build(struct preempt_fixture *f, bool used)
{
	struct place_options place;
	struct quota_options quota;

	forget(f);
	place_options_default(&place);
	place.now_ns = VIEW_FIXTURE_NOW_NS;
	quota_options_default(&quota);
	quota.variant = f->options.variant;
	f->view = place_fixture_view(&f->cluster, NULL, 0);
	f->place = place_new(f->view, &place);
	f->index = preempt_of(f->view);
	f->book = quota_fixture_book(f->quotas, f->quota_count, &quota);
	if (used)
		sum_used(f);
}

/* --- pods */

cJSON *preempt_fixture_amounts(const cJSON *flat)
{
	cJSON *list = cJSON_CreateObject();

	for (const cJSON *item = flat ? flat->child : NULL; item; item = item->next) {
		char text[40];

		snprintf(text, sizeof(text), "%" PRId64 "%s", (int64_t)item->valuedouble,
			 strcmp(item->string, "cpu") == 0 ? "m" : "");
		cJSON_AddStringToObject(list, item->string, text);
	}
	return list;
}

static const char *text_of(const cJSON *flat, const char *key)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(flat, key));

	return text ? text : "";
}

static void add_time(cJSON *to, const char *key, double seconds)
{
	char text[TIMEFMT_LEN];

	timefmt_rfc3339(PREEMPT_FIXTURE_EPOCH_NS + (int64_t)(seconds * 1e9), text);
	cJSON_AddStringToObject(to, key, text);
}

static void add_metadata(cJSON *pod, const cJSON *flat)
{
	const cJSON *labels = cJSON_GetObjectItemCaseSensitive(flat, "labels");
	cJSON *metadata = cJSON_AddObjectToObject(pod, "metadata");

	cJSON_AddStringToObject(metadata, "name", text_of(flat, "pod"));
	cJSON_AddStringToObject(metadata, "namespace", text_of(flat, "namespace"));
	cJSON_AddStringToObject(metadata, "uid", text_of(flat, "uid"));
	if (labels)
		cJSON_AddItemToObject(metadata, "labels", cJSON_Duplicate(labels, true));
	if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(flat, "terminating")))
		add_time(metadata, "deletionTimestamp", 0);
}

static void add_spec(cJSON *pod, const cJSON *flat)
{
	const cJSON *priority = cJSON_GetObjectItemCaseSensitive(flat, "priority");
	const cJSON *more = cJSON_GetObjectItemCaseSensitive(flat, "spec");
	cJSON *spec = more ? cJSON_Duplicate(more, true) : cJSON_CreateObject();
	cJSON *container = cJSON_CreateObject();

	cJSON_AddItemToObject(pod, "spec", spec);
	cJSON_AddStringToObject(spec, "nodeName", text_of(flat, "node"));
	cJSON_AddNumberToObject(spec, "priority", priority ? priority->valuedouble : 0);
	if (*text_of(flat, "preemption_policy"))
		cJSON_AddStringToObject(spec, "preemptionPolicy",
					text_of(flat, "preemption_policy"));
	cJSON_AddItemToArray(cJSON_AddArrayToObject(spec, "containers"), container);
	cJSON_AddStringToObject(container, "name", "c");
	cJSON_AddItemToObject(cJSON_AddObjectToObject(container, "resources"), "requests",
			      preempt_fixture_amounts(
				      cJSON_GetObjectItemCaseSensitive(flat, "request")));
}

static void add_status(cJSON *pod, const cJSON *flat)
{
	const cJSON *start = cJSON_GetObjectItemCaseSensitive(flat, "start");
	cJSON *status = cJSON_AddObjectToObject(pod, "status");
	cJSON *ready = cJSON_CreateObject();

	cJSON_AddStringToObject(status, "phase", *text_of(flat, "node") ? "Running" : "Pending");
	if (*text_of(flat, "nominated_node"))
		cJSON_AddStringToObject(status, "nominatedNodeName",
					text_of(flat, "nominated_node"));
	if (start)
		add_time(status, "startTime", start->valuedouble);
	cJSON_AddItemToArray(cJSON_AddArrayToObject(status, "conditions"), ready);
	cJSON_AddStringToObject(ready, "type", "Ready");
	cJSON_AddStringToObject(ready, "status", *text_of(flat, "node") ? "True" : "False");
}

cJSON *preempt_fixture_pod(const cJSON *flat)
{
	cJSON *pod = cJSON_CreateObject();

	add_metadata(pod, flat);
	add_spec(pod, flat);
	add_status(pod, flat);
	return pod;
}

struct kube_pod *preempt_fixture_record(const cJSON *flat)
{
	cJSON *pod = preempt_fixture_pod(flat);
	char *text = cJSON_PrintUnformatted(pod);
	struct object *o = model_fixture_object(OBJECT_POD, text);

	free(text);
	cJSON_Delete(pod);
	return (struct kube_pod *)o;
}
