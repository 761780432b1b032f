/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan as a file (aggregator/verify/verify_plan.c): the members of the wave, and what it was
 * made from and under which limits. Without a wave it has no nodes.
 */
#include "shared/document.h"

/* Does nothing where the answer, of an older server, has none. */
static void copy(cJSON *to, const char *key, const cJSON *doc, const char *path)
{
	const cJSON *value = document_at(doc, path);

	if (value)
		cJSON_AddItemToObject(to, key, cJSON_Duplicate(value, true));
}

/* All nodes of a group of which the wave takes some. */
static void add_group(cJSON *groups, const cJSON *doc, const char *name)
{
	cJSON *group, *nodes;

	if (document_find(groups, "", "name", name))
		return;
	group = cJSON_CreateObject();
	cJSON_AddItemToArray(groups, group);
	cJSON_AddStringToObject(group, "name", name);
	nodes = cJSON_AddArrayToObject(group, "nodes");
	for (const cJSON *item = document_first(doc, "items"); item; item = item->next)
		if (document_is(item, "group", name) && !document_is(item, "verdict", "drained"))
			cJSON_AddItemToArray(nodes, cJSON_CreateString(
							    document_text_or(item, "name", "")));
}

cJSON *document_drain_plan(const cJSON *doc)
{
	cJSON *plan = cJSON_CreateObject(), *limits;
	const cJSON *wave = document_at(doc, "wave");
	cJSON *groups;
	const cJSON *node, *item;

	cJSON_AddStringToObject(plan, "apiVersion", "evenkeel.io/v1");
	cJSON_AddStringToObject(plan, "kind", "DrainWave");
	copy(plan, "planned", doc, "planned");
	copy(plan, "viewVersion", doc, "viewVersion");
	copy(plan, "variant", doc, "variant");
	copy(plan, "cap", doc, "cap");
	limits = cJSON_AddObjectToObject(plan, "limits");
	copy(limits, "nodes", doc, "throttled.nodes.limit");
	copy(limits, "drains", doc, "throttled.drains.limit");
	copy(limits, "ownerShare", doc, "ownerShare");
	groups = cJSON_AddArrayToObject(plan, "groups");
	node = document_first(doc, "wave.nodes");
	for (; node; node = node->next) {
		item = document_find(doc, "items", "name", document_text(node, "name"));
		if (document_is_true(item, "atomic"))
			add_group(groups, doc, document_text_or(item, "group", ""));
	}
	for (const cJSON *member = cJSON_IsObject(wave) ? wave->child : NULL; member;
	     member = member->next)
		cJSON_AddItemToObject(plan, member->string, cJSON_Duplicate(member, true));
	if (!document_at(plan, "nodes"))
		cJSON_AddArrayToObject(plan, "nodes");
	return plan;
}
