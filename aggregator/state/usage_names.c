/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All strings and limits of a node lie in one block that its stats share. When an interval tells
 * something new, the block is built again with whatever the references then are; stats made before
 * keep the old one. The order by name is found at the same time, so that building stats, which
 * happens with every interval, reads no string at all.
 *
 * To keep the block small, a UID or an id that ends the name is the tail of it, a container's UID is
 * that of its pod, and neighbours share equal limits. The text is put together in a room that is
 * surely large enough, and then moved.
 */
#include "aggregator/state/usage_node.h"

#include <stdlib.h>
#include <string.h>

#include "shared/array.h"
#include "shared/mem.h"

enum { LIMITS_SOUGHT = 16 }; /* how many of the newest are looked at for the same */

/* A reference by its name. */
struct named {
	const char *name; /* in the old block, or in what is news */
	struct usage_ref *ref;
};

/* The new text in the making. */
struct text {
	char *start; /* owned */
	char *end;
};

void usage_ref_drop_news(struct usage_ref *r)
{
	if (r->news)
		entity_drop(r->news->entity);
	free(r->news);
	r->news = NULL;
}

/* --- names ------------------------------------------------------------------------------------ */

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

static void rank_names(struct usage_node *n)
{
	struct named *order = mem_alloc(n->ref_count * sizeof(*order));

	for (size_t i = 0; i < n->ref_count; i++)
		order[i] = (struct named){n->refs[i].name, &n->refs[i]};
	qsort(order, n->ref_count, sizeof(*order), array_compare_text);
	for (size_t i = 0; i < n->ref_count; i++)
		order[i].ref->rank = i && strcmp(order[i - 1].name, order[i].name) == 0
					     ? order[i - 1].ref->rank
					     : (uint32_t)i;
	free(order);
}

/* --- text ------------------------------------------------------------------------------------- */

/* Where it is in text, if text ends with it. */
static const char *add_tail(struct text *t, const char *text, const char *tail)
{
	size_t len = strlen(text), tail_len = strlen(tail);

	if (tail_len > len || memcmp(text + len - tail_len, tail, tail_len) != 0)
		return mem_put_text(&t->end, tail);
	return text + len - tail_len;
}

/* pod: of a container, its text is the new one already; NULL: none. */
static void add_names(struct text *t, struct usage_ref *r, const struct usage_ref *pod)
{
	r->name = mem_put_text(&t->end, r->name);
	r->uid = pod && pod->pod && strcmp(r->uid, pod->uid) == 0 ? pod->uid
								  : add_tail(t, r->name, r->uid);
	r->id = add_tail(t, r->name, r->id);
}

/* Of the node and its references as long as nothing is spared. */
static size_t most_text(const struct usage_node *n)
{
	size_t size = strlen(n->name) + 1;

	for (size_t i = 0; i < n->ref_count; i++) {
		const struct usage_ref *r = &n->refs[i];

		size += strlen(r->name) + strlen(r->uid) + strlen(r->id) + 3;
	}
	return size;
}

/* The node's name first. */
static struct text write_text(struct usage_node *n)
{
	struct text t = {.start = mem_alloc(most_text(n))};

	t.end = t.start;
	mem_put_text(&t.end, n->name);
	for (size_t i = 0; i < n->ref_count; i++)
		if (n->refs[i].pod)
			add_names(&t, &n->refs[i], NULL);
	for (size_t i = 0; i < n->ref_count; i++)
		if (!n->refs[i].pod)
			add_names(&t, &n->refs[i], usage_node_find_ref(n, n->refs[i].parent));
	return t;
}

/* --- the block -------------------------------------------------------------------------------- */

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

/* Moves all limits and the text to a new block. */
static struct stats_names *move_names(struct usage_node *n, const struct text *t)
{
	const struct kernel_limits **distinct =
		mem_alloc((n->ref_count + 1) * sizeof(const struct kernel_limits *));
	uint32_t *places = mem_alloc((n->ref_count + 1) * sizeof(*places));
	size_t size = (size_t)(t->end - t->start);
	struct stats_names *names = stats_names_new(place_limits(n, distinct, places), size);

	memcpy(names->text, t->start, size);
	for (size_t i = 0; i < names->limit_count; i++)
		names->limits[i] = *distinct[i];
	for (size_t i = 0; i < n->ref_count; i++) {
		struct usage_ref *r = &n->refs[i];

		r->name = names->text + (r->name - t->start);
		r->uid = names->text + (r->uid - t->start);
		r->id = names->text + (r->id - t->start);
		r->limits = &names->limits[places[i]];
	}
	free(distinct);
	free(places);
	return names;
}

void usage_node_rename(struct usage_node *n)
{
	struct stats_names *names;
	struct text text;

	for (size_t i = 0; i < n->ref_count; i++)
		point_to_news(&n->refs[i]);
	rank_names(n);
	text = write_text(n);
	names = move_names(n, &text);
	free(text.start);
	for (size_t i = 0; i < n->ref_count; i++)
		usage_ref_drop_news(&n->refs[i]);
	stats_names_drop(n->names);
	n->names = names;
}
