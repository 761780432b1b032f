/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/conformance/quota_world.h"

#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"
#include "tests/view_fixture.h"

const char *quota_world_text(const cJSON *object, const char *key)
{
	const char *text = cJSON_GetStringValue(values_get(object, key));

	return text ? text : "";
}

static cJSON *object_named(const char *namespace, const char *name)
{
	cJSON *o = cJSON_CreateObject(), *metadata = cJSON_AddObjectToObject(o, "metadata");

	cJSON_AddStringToObject(metadata, "name", name);
	if (namespace)
		cJSON_AddStringToObject(metadata, "namespace", namespace);
	return o;
}

static void put_node(struct preempt_fixture *f, const cJSON *node)
{
	cJSON *o = object_named(NULL, quota_world_text(node, "name"));
	cJSON *labels = cJSON_AddObjectToObject(cJSON_GetObjectItem(o, "metadata"), "labels");
	cJSON *offers = preempt_fixture_amounts(values_get(node, "allocatable"));

	cJSON_AddStringToObject(labels, "kubernetes.io/hostname", quota_world_text(node, "name"));
	if (*quota_world_text(node, "zone"))
		cJSON_AddStringToObject(labels, "zone", quota_world_text(node, "zone"));
	if (!cJSON_GetObjectItem(offers, "pods"))
		cJSON_AddStringToObject(offers, "pods", "110");
	cJSON_AddItemToObject(cJSON_AddObjectToObject(o, "status"), "allocatable", offers);
	preempt_fixture_put(f, OBJECT_NODE, o);
	cJSON_Delete(o);
}

static void put_pod(struct preempt_fixture *f, const cJSON *flat)
{
	cJSON *o = preempt_fixture_pod(flat);

	preempt_fixture_put(f, OBJECT_POD, o);
	cJSON_Delete(o);
}

/*
 * Where the case names no node, it is one that nobody has: it counts for quotas, and takes no room.
 */
static void put_nominated(struct preempt_fixture *f, const cJSON *flat)
{
	cJSON *pod = cJSON_Duplicate(flat, true);
	const char *node = quota_world_text(flat, "node");

	if (!*quota_world_text(flat, "nominated_node"))
		cJSON_AddStringToObject(pod, "nominated_node", *node ? node : "elsewhere");
	cJSON_DeleteItemFromObject(pod, "node");
	if (!*quota_world_text(flat, "uid"))
		cJSON_AddStringToObject(pod, "uid", quota_world_text(flat, "pod"));
	put_pod(f, pod);
	cJSON_Delete(pod);
}

static void put_budget(struct preempt_fixture *f, const cJSON *pdb, int number)
{
	char *name = mem_printf("budget-%d", number);
	cJSON *o = object_named(quota_world_text(pdb, "namespace"), name);
	cJSON *selector = cJSON_AddObjectToObject(cJSON_AddObjectToObject(o, "spec"), "selector");
	cJSON *status = cJSON_AddObjectToObject(o, "status");
	const cJSON *allowed = values_get(pdb, "disruptions_allowed");
	const cJSON *disrupted = values_get(pdb, "disrupted_pods");

	cJSON_AddItemToObject(selector, "matchLabels",
			      cJSON_Duplicate(values_get(pdb, "selector"), true));
	cJSON_AddNumberToObject(status, "disruptionsAllowed", allowed ? allowed->valuedouble : 0);
	if (cJSON_IsArray(disrupted)) {
		cJSON *map = cJSON_AddObjectToObject(status, "disruptedPods");

		for (const cJSON *d = disrupted->child; d; d = d->next)
			cJSON_AddStringToObject(map, d->valuestring, "2026-01-31T11:00:00Z");
	}
	preempt_fixture_put(f, OBJECT_POD_DISRUPTION_BUDGET, o);
	cJSON_Delete(o);
	free(name);
}

static void put_quota(struct preempt_fixture *f, const cJSON *quota, bool used)
{
	const cJSON *min = values_get(quota, "min"), *max = values_get(quota, "max");
	struct quota *q =
		preempt_fixture_quota(f, quota_world_text(quota, "namespace"), NULL, NULL);

	q->has_min = min != NULL;
	q->has_max = max != NULL;
	preempt_fixture_resources(&q->min, min);
	preempt_fixture_resources(&q->max, max);
	if (!used)
		preempt_fixture_resources(&q->used, values_get(quota, "used"));
}

static const cJSON *first(const cJSON *c, const char *key)
{
	const cJSON *list = values_get(c, key);

	return list ? list->child : NULL;
}

void quota_world_init(struct preempt_fixture *f, const cJSON *c, const cJSON *pods,
		      enum quota_variant variant, bool used)
{
	int budgets = 0;

	preempt_fixture_init(f, variant);
	f->options.pdb_hard = false;
	for (const cJSON *node = first(c, "nodes"); node; node = node->next)
		put_node(f, node);
	for (const cJSON *pod = pods ? pods->child : first(c, "pods"); pod; pod = pod->next)
		put_pod(f, pod);
	for (const cJSON *pod = first(c, "nominated"); pod; pod = pod->next)
		put_nominated(f, pod);
	for (const cJSON *pdb = first(c, "pdbs"); pdb; pdb = pdb->next)
		put_budget(f, pdb, budgets++);
	for (const cJSON *quota = first(c, "quotas"); quota; quota = quota->next)
		put_quota(f, quota, used);
	preempt_fixture_build(f, used);
}

/* --- comparing */

static bool has_text(const cJSON *list, const char *text)
{
	for (const cJSON *item = list ? list->child : NULL; item; item = item->next)
		if (item->valuestring && strcmp(item->valuestring, text) == 0)
			return true;
	return false;
}

bool quota_world_same(const cJSON *expected, const cJSON *got, const char *what,
		      struct error *error)
{
	bool same = cJSON_GetArraySize(expected) == cJSON_GetArraySize(got);
	char *a, *b;

	for (const cJSON *item = expected ? expected->child : NULL; same && item; item = item->next)
		same = has_text(got, item->valuestring);
	if (same)
		return true;
	a = expected ? cJSON_PrintUnformatted(expected) : mem_strdup("[]");
	b = got ? cJSON_PrintUnformatted(got) : mem_strdup("[]");
	values_fail(error, "%s: %s, and not %s", what, b, a);
	free(a);
	free(b);
	return false;
}

cJSON *quota_world_victims(const struct preempt_candidate *c)
{
	cJSON *list = cJSON_CreateArray();

	for (size_t i = 0; i < c->victim_count; i++)
		cJSON_AddItemToArray(list, cJSON_CreateString(c->victims[i].pod->object.name));
	return list;
}
