/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The preempt verb's question and answer. It is one tree: with nodeCacheCapable it has nothing but
 * names and uids.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "aggregator/api/extender_json.h"
#include "aggregator/model/object_json.h"
#include "shared/jsonw.h"
#include "shared/mem.h"

/* Whatever its case; the last one; NULL for null. */
static const cJSON *find(const cJSON *object, const char *name)
{
	const cJSON *found = NULL;

	for (const cJSON *item = object ? object->child : NULL; item; item = item->next)
		if (item->string && strcasecmp(item->string, name) == 0)
			found = item;
	return cJSON_IsNull(found) ? NULL : found;
}

/* A member that may be written in any case. */
static struct object_json member(const struct object_json *of, const char *name)
{
	return (struct object_json){find(of->json, name), of->fault, of, name, 0};
}

static void read_victim(const struct object_json *item, bool whole, struct extender_victim *v)
{
	const struct object_json metadata = member(item, "metadata"),
				 uid = whole ? member(&metadata, "uid") : member(item, "UID");
	const char *text = cJSON_GetStringValue(uid.json);

	if (!cJSON_IsObject(item->json))
		object_json_fail(item, NULL, "must be an object");
	if (uid.json && !text)
		object_json_fail(&uid, NULL, "must be a string");
	v->uid = text ? text : "";
	v->pod = whole ? item->json : NULL;
}

static void read_victims(const struct object_json *node, bool whole, struct extender_victims *v)
{
	const struct object_json pods = member(node, "Pods"),
				 violations = member(node, "NumPDBViolations");
	double count = violations.json ? cJSON_GetNumberValue(violations.json) : 0;

	v->node = node->key;
	if (!cJSON_IsObject(node->json))
		object_json_fail(node, NULL, "must be an object");
	if (pods.json && !cJSON_IsArray(pods.json))
		object_json_fail(&pods, NULL, "must be a list of pods");
	if (!(count >= 0 && count <= 1e9))
		object_json_fail(&violations, NULL, "must be a count");
	if (node->fault->found)
		return;
	v->pdb_violations = (int64_t)count;
	v->pods = mem_zalloc(object_json_count(&pods) + 1, sizeof(*v->pods));
	for (struct object_json item = object_json_begin(&pods); item.json; object_json_next(&item))
		read_victim(&item, whole, &v->pods[v->count++]);
}

static void read_map(const struct object_json *body, const char *name, bool whole,
		     struct extender_victims_map *map)
{
	const struct object_json nodes = member(body, name);

	if (!nodes.json)
		return;
	if (!cJSON_IsObject(nodes.json)) {
		object_json_fail(&nodes, NULL, "must be an object of nodes");
		return;
	}
	map->present = true;
	map->of = mem_zalloc(object_json_count(&nodes) + 1, sizeof(*map->of));
	for (struct object_json node = object_json_begin(&nodes); node.json;
	     object_json_next(&node))
		read_victims(&node, whole, &map->of[map->count++]);
}

int extender_preemption_parse(const char *body, size_t len, struct extender_preemption *out,
			      char field[EXTENDER_FIELD_MAX], struct error *error)
{
	struct object_fault fault = {field, EXTENDER_FIELD_MAX, error, false};
	struct object_json whole = {NULL, &fault, NULL, "", 0};

	*out = (struct extender_preemption){.tree = NULL};
	field[0] = '\0';
	if (strlen(body) == len)
		out->tree = cJSON_ParseWithLengthOpts(body, len + 1, NULL, true);
	whole.json = out->tree;
	if (!cJSON_IsObject(out->tree))
		object_json_fail(&whole, NULL, "the body must be a JSON object");
	out->pod = find(out->tree, "Pod");
	if (!cJSON_IsObject(out->pod))
		object_json_fail(&whole, "Pod", out->pod ? "must be an object" : "is missing");
	read_map(&whole, "NodeNameToVictims", true, &out->victims);
	read_map(&whole, "NodeNameToMetaVictims", false, &out->meta);
	if (fault.found)
		extender_preemption_fini(out);
	return fault.found ? -EINVAL : 0;
}

static void free_map(struct extender_victims_map *map)
{
	for (size_t i = 0; i < map->count; i++)
		free(map->of[i].pods);
	free(map->of);
}

void extender_preemption_fini(struct extender_preemption *p)
{
	free_map(&p->victims);
	free_map(&p->meta);
	cJSON_Delete(p->tree);
	*p = (struct extender_preemption){.tree = NULL};
}

void extender_write_preemption_result(struct buf *out, const struct extender_victims *of,
				      size_t count)
{
	struct jsonw w;

	jsonw_begin(&w, out);
	jsonw_key_object(&w, "NodeNameToMetaVictims");
	for (size_t i = 0; i < count; i++) {
		jsonw_key_object(&w, of[i].node);
		jsonw_key_array(&w, "Pods");
		for (size_t k = 0; k < of[i].count; k++) {
			jsonw_object_open(&w);
			jsonw_key_string(&w, "UID", of[i].pods[k].uid);
			jsonw_object_close(&w);
		}
		jsonw_array_close(&w);
		jsonw_key_int(&w, "NumPDBViolations", of[i].pdb_violations);
		jsonw_object_close(&w);
	}
	jsonw_object_close(&w);
	jsonw_object_close(&w);
}
