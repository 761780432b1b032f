/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All strings and limits of a node lie in one block that its pages share. When an interval tells
 * something new, the block is built again with whatever the references then are; pages made before
 * keep the old one. The order by name is found at the same time, so that building a page, which
 * happens with every interval, reads no string at all.
 *
 * To keep the block small a container's id, or a pod's UID, is the tail of its cgroup's path where
 * it ends that, and limits are there once for neighbours that have the same.
 */
#include "aggregator/state/usage_node.h"

#include <stdlib.h>
#include <string.h>

enum { LIMITS_SOUGHT = 16 }; /* how many of the newest are looked at for the same */

static const char *add_text(char **at, const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = memcpy(*at, text, size);

	*at += size;
	return copy;
}

/* Where tail begins in text, if text ends with it; else NULL. */
static const char *find_tail(const char *text, const char *tail)
{
	size_t len = strlen(text), tail_len = strlen(tail);

	if (tail_len > len || memcmp(text + len - tail_len, tail, tail_len) != 0)
		return NULL;
	return text + len - tail_len;
}

static size_t tail_size(const char *text, const char *tail)
{
	return find_tail(text, tail) ? 0 : strlen(tail) + 1;
}

static const char *add_tail(char **at, const char *text, const char *tail)
{
	const char *found = find_tail(text, tail);

	return found ? found : add_text(at, tail);
}

static void point_to_news(struct usage_ref *r)
{
	if (!r->news)
		return;
	r->limits = &r->news->limits;
	if (!r->news->entity)
		return;
	r->name = r->news->entity->name;
	r->uid = r->news->entity->pod_uid;
	r->id = r->news->entity->container_id;
}

void usage_ref_drop_news(struct usage_ref *r)
{
	if (r->news)
		entity_drop(r->news->entity);
	free(r->news);
	r->news = NULL;
}

/* Which of the first `count` distinct limits these are, or count; into places. */
static size_t place_limits(const struct usage_node *n, const struct kernel_limits **distinct,
			   uint32_t *places)
{
	size_t count = 0;

	for (size_t i = 0; i < n->ref_count; i++) {
		const struct kernel_limits *l = n->refs[i].limits;
		size_t at = count, least = count > LIMITS_SOUGHT ? count - LIMITS_SOUGHT : 0;

		while (at > least && memcmp(distinct[at - 1], l, sizeof(*l)) != 0)
			at--;
		if (at == least) {
			distinct[count++] = l;
			at = count;
		}
		places[i] = (uint32_t)(at - 1);
	}
	return count;
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

static size_t text_size(const struct usage_node *n)
{
	size_t size = strlen(n->name) + 1;

	for (size_t i = 0; i < n->ref_count; i++) {
		const struct usage_ref *r = &n->refs[i];

		size += strlen(r->name) + 1 + tail_size(r->name, r->uid) +
			tail_size(r->name, r->id);
	}
	return size;
}

static void fill_names(struct usage_node *n, struct page_names *names,
		       const struct kernel_limits **distinct, const uint32_t *places)
{
	char *at = names->text;

	for (size_t i = 0; i < names->limit_count; i++)
		names->limits[i] = *distinct[i];
	add_text(&at, n->name);
	for (size_t i = 0; i < n->ref_count; i++) {
		struct usage_ref *r = &n->refs[i];

		r->limits = &names->limits[places[i]];
		r->name = add_text(&at, r->name);
		r->uid = add_tail(&at, r->name, r->uid);
		r->id = add_tail(&at, r->name, r->id);
		usage_ref_drop_news(r);
	}
}

void usage_node_rename(struct usage_node *n)
{
	const struct kernel_limits **distinct =
		mem_alloc((n->ref_count + 1) * sizeof(const struct kernel_limits *));
	uint32_t *places = mem_alloc((n->ref_count + 1) * sizeof(*places));
	struct page_names *names;

	for (size_t i = 0; i < n->ref_count; i++)
		point_to_news(&n->refs[i]);
	names = page_names_new(place_limits(n, distinct, places), text_size(n));
	fill_names(n, names, distinct, places);
	free(distinct);
	free(places);
	page_names_drop(n->names);
	n->names = names;
	rank_names(n);
}
