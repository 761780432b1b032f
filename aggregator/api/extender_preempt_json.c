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
#include "aggregator/api/request_body.h"
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

/* An error names its place: MAP.NODE.Pods[I]. */
struct place {
	const char *map, *node;
	size_t i;
};

static int fail_at(const struct request_error *p, const struct place *at, const char *member,
		   const char *why)
{
	return request_fail(p, why, "%s.%.160s.Pods[%zu]%s", at->map, at->node, at->i, member);
}

static int read_victim(const struct request_error *p, const struct place *at, const cJSON *item,
		       bool whole, struct extender_victim *v)
{
	const cJSON *metadata = cJSON_GetObjectItemCaseSensitive(item, "metadata");
	const cJSON *uid =
		whole ? cJSON_GetObjectItemCaseSensitive(metadata, "uid") : find(item, "UID");
	const char *text = cJSON_GetStringValue(uid);

	if (!cJSON_IsObject(item))
		return fail_at(p, at, "", "must be an object");
	if (uid && !cJSON_IsNull(uid) && !text)
		return fail_at(p, at, whole ? ".metadata.uid" : ".UID", "must be a string");
	v->uid = text ? text : "";
	v->pod = whole ? item : NULL;
	return 0;
}

static int read_victims(const struct request_error *p, const char *map, const cJSON *node,
			bool whole, struct extender_victims *v)
{
	const cJSON *pods = find(node, "Pods"), *violations = find(node, "NumPDBViolations");
	struct place at = {map, node->string, 0};

	v->node = node->string;
	if (!cJSON_IsObject(node))
		return request_fail(p, "must be an object", "%s.%.200s", map, node->string);
	if (pods && !cJSON_IsArray(pods))
		return request_fail(p, "must be a list of pods", "%s.%.200s.Pods", map,
				    node->string);
	if (violations && !(cJSON_IsNumber(violations) && violations->valuedouble >= 0 &&
			    violations->valuedouble <= 1e9))
		return request_fail(p, "must be a count", "%s.%.200s.NumPDBViolations", map,
				    node->string);
	v->pdb_violations = violations ? (int64_t)violations->valuedouble : 0;
	v->pods = mem_zalloc((size_t)cJSON_GetArraySize(pods) + 1, sizeof(*v->pods));
	for (const cJSON *item = pods ? pods->child : NULL; item; item = item->next, at.i++)
		if (read_victim(p, &at, item, whole, &v->pods[v->count++]))
			return -EINVAL;
	return 0;
}

static int read_map(const struct request_error *p, const cJSON *tree, const char *name, bool whole,
		    struct extender_victims_map *map)
{
	const cJSON *object = find(tree, name);

	if (!object)
		return 0;
	if (!cJSON_IsObject(object))
		return request_fail(p, "must be an object of nodes", "%s", name);
	map->present = true;
	map->of = mem_zalloc((size_t)cJSON_GetArraySize(object) + 1, sizeof(*map->of));
	for (const cJSON *node = object->child; node; node = node->next)
		if (read_victims(p, name, node, whole, &map->of[map->count++]))
			return -EINVAL;
	return 0;
}

static int read_members(const struct request_error *p, struct extender_preemption *out)
{
	if (!cJSON_IsObject(out->tree))
		return request_fail(p, "the body must be a JSON object", "%s", "");
	out->pod = find(out->tree, "Pod");
	if (!out->pod)
		return request_fail(p, "is missing", "Pod");
	if (!cJSON_IsObject(out->pod))
		return request_fail(p, "must be an object", "Pod");
	if (read_map(p, out->tree, "NodeNameToVictims", true, &out->victims))
		return -EINVAL;
	return read_map(p, out->tree, "NodeNameToMetaVictims", false, &out->meta);
}

int extender_preemption_parse(const char *body, size_t len, struct extender_preemption *out,
			      char field[EXTENDER_FIELD_MAX], struct error *error)
{
	const struct request_error p = {field, EXTENDER_FIELD_MAX, error};
	int rc;

	*out = (struct extender_preemption){.tree = NULL};
	field[0] = '\0';
	if (strlen(body) == len)
		out->tree = cJSON_ParseWithLengthOpts(body, len + 1, NULL, true);
	rc = read_members(&p, out);
	if (rc)
		extender_preemption_fini(out);
	return rc;
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
