/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All strings of a node lie in one block that its pages share. When an interval names something new, the block is
 * built again with whatever the references then are; pages made before keep the old one. The order by name is
 * found at the same time, so that building a page, which happens with every interval, reads no string at all.
 */
#include "aggregator/state/usage_node.h"

#include <stdlib.h>
#include <string.h>

static const char *add_text(char **at, const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = memcpy(*at, text, size);

	*at += size;
	return copy;
}

static void point_to_news(struct usage_ref *r)
{
	if (!r->news)
		return;
	r->name = r->news->name;
	r->uid = r->news->pod_uid;
	r->id = r->news->container_id;
}

static int compare_name(const void *a, const void *b)
{
	return strcmp((*(struct usage_ref *const *)a)->name, (*(struct usage_ref *const *)b)->name);
}

static void rank_names(struct usage_node *n)
{
	struct usage_ref **order = mem_alloc((n->ref_count + 1) * sizeof(struct usage_ref *));

	for (size_t i = 0; i < n->ref_count; i++)
		order[i] = &n->refs[i];
	qsort(order, n->ref_count, sizeof(struct usage_ref *), compare_name);
	for (size_t i = 0; i < n->ref_count; i++)
		order[i]->rank = i && strcmp(order[i - 1]->name, order[i]->name) == 0
					 ? order[i - 1]->rank
					 : (uint32_t)i;
	free(order);
}

void usage_node_rename(struct usage_node *n)
{
	size_t size = strlen(n->name) + 1;
	struct page_names *names;
	char *at;

	for (size_t i = 0; i < n->ref_count; i++) {
		struct usage_ref *r = &n->refs[i];

		point_to_news(r);
		size += strlen(r->name) + strlen(r->uid) + strlen(r->id) + 3;
	}
	names = page_names_new(size);
	at = names->text;
	add_text(&at, n->name);
	for (size_t i = 0; i < n->ref_count; i++) {
		struct usage_ref *r = &n->refs[i];

		r->name = add_text(&at, r->name);
		r->uid = add_text(&at, r->uid);
		r->id = add_text(&at, r->id);
		entity_drop(r->news);
		r->news = NULL;
	}
	page_names_drop(n->names);
	n->names = names;
	rank_names(n);
}
