/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shape is checked before there is a view, the names against the one that the answer is made
 * of.
 */
#include "aggregator/api/asked_nodes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "shared/mem.h"

int asked_nodes_check(const cJSON *list, char field[ASKED_NODES_FIELD_MAX], struct reason *reason)
{
	size_t i = 0;

	if (!cJSON_IsArray(list)) {
		snprintf(field, ASKED_NODES_FIELD_MAX, "nodes");
		reason_set(reason, "must be a list of node names");
		return -EINVAL;
	}
	for (const cJSON *item = list->child; item; item = item->next, i++) {
		if (cJSON_IsString(item))
			continue;
		snprintf(field, ASKED_NODES_FIELD_MAX, "nodes[%zu]", i);
		reason_set(reason, "must be the name of a node");
		return -EINVAL;
	}
	return 0;
}

int asked_nodes_choose(const cJSON *list, const struct view *v, bool **chosen,
		       char field[ASKED_NODES_FIELD_MAX], struct reason *reason)
{
	bool *marks;
	size_t i = 0;

	if (!list) {
		*chosen = NULL;
		return 0;
	}
	marks = mem_zalloc(v->node_count + 1, sizeof(*marks));
	for (const cJSON *item = list->child; item; item = item->next, i++) {
		size_t place = view_index(v, item->valuestring);

		if (place < v->node_count) {
			marks[place] = true;
			continue;
		}
		snprintf(field, ASKED_NODES_FIELD_MAX, "nodes[%zu]", i);
		reason_set(reason, "there is no node \"%.253s\"", item->valuestring);
		free(marks);
		return -EINVAL;
	}
	*chosen = marks;
	return 0;
}
