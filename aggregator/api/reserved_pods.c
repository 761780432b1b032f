/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The view knows most of them, as pending; others came after it. Of those the ledger has sums and a
 * name, from which a record is made by the one way there is to make one: of an object's JSON.
 */
#include "aggregator/api/reserved_pods.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "aggregator/model/object.h"
#include "shared/mem.h"

static void add_amounts(cJSON *requests, const struct resources *r)
{
	const char *name;
	int64_t amount;

	for (size_t at = 0; resources_next(r, &at, &name, &amount);) {
		char text[32];

		if (strcmp(name, resource_name(RESOURCE_PODS)) == 0)
			continue; /* every pod is one */
		snprintf(text, sizeof(text), "%" PRId64 "%s", amount,
			 strcmp(name, resource_name(RESOURCE_CPU)) == 0 ? "m" : "");
		cJSON_AddStringToObject(requests, name, text);
	}
}

/* NULL: what was reserved is nothing that a pod could ask for. */
static struct kube_pod *make_record(const struct ledger_entry *e)
{
	cJSON *pod = cJSON_CreateObject(), *metadata, *spec, *container;
	char field[OBJECT_FIELD_MAX] = "";
	struct object *record = NULL;
	struct reason why = {""};

	metadata = cJSON_AddObjectToObject(pod, "metadata");
	cJSON_AddStringToObject(metadata, "namespace", e->namespace);
	cJSON_AddStringToObject(metadata, "name", e->name);
	cJSON_AddStringToObject(metadata, "uid", e->uid);
	spec = cJSON_AddObjectToObject(pod, "spec");
	cJSON_AddNumberToObject(spec, "priority", e->priority);
	container = cJSON_CreateObject();
	cJSON_AddStringToObject(container, "name", "reserved");
	add_amounts(cJSON_AddObjectToObject(cJSON_AddObjectToObject(container, "resources"),
					    "requests"),
		    &e->requests);
	cJSON_AddItemToArray(cJSON_AddArrayToObject(spec, "containers"), container);
	if (object_read(OBJECT_POD, pod, &record, field, &why))
		record = NULL;
	cJSON_Delete(pod);
	return (struct kube_pod *)record;
}

static place_pod find_or_add(struct place *p, const struct ledger_entry *e)
{
	place_pod known = place_find_pod(p, e->namespace, e->name);
	struct kube_pod *record;

	if (known != PLACE_NONE && strcmp(place_pod_record(p, known)->object.uid, e->uid) == 0)
		return known;
	record = make_record(e);
	if (!record)
		return PLACE_NONE;
	known = place_add_pod(p, record);
	object_drop(&record->object);
	return known;
}

size_t reserved_pods_put(struct place *p, const struct view *v, const struct ledger_copy *ledger,
			 const char *except_uid, place_mark *mark)
{
	uint64_t generation = v->cluster ? v->cluster->generation : 0;
	size_t bound = 0;

	*mark = place_fork(p);
	for (size_t i = 0; ledger && i < ledger->count; i++) {
		const struct ledger_entry *e = ledger->of[i];
		place_node node;
		place_pod pod;

		if (!*e->node || strcmp(e->uid, except_uid) == 0 || !ledger_counts(e, generation))
			continue;
		bound += e->state == LEDGER_BOUND;
		node = place_find_node(p, e->node);
		pod = node == PLACE_NONE ? PLACE_NONE : find_or_add(p, e);
		if (pod != PLACE_NONE && place_where(p, pod) == PLACE_NONE)
			place_put(p, pod, node);
	}
	return bound;
}
