/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All strings and limits of a node lie in one block that its stats share. When an interval tells
 * something new, the block is built again with whatever the references then are; stats made before
 * keep the old one. The order by name is found at the same time, so that building stats, which
 * happens with every interval, reads no string at all.
 *
 * To keep the block small
 *
 *   - the name of a container in a pod is compressed (compressed_name.h), and what is left of it is there
 *     once for all of one runtime,
 *   - its pod's UID is that of the pod; else a UID or an id that ends the name is the tail of it,
 *   - limits are there once for neighbours that have the same.
 *
 * Compressed names are expanded first: names are ordered as a whole, and a pod may have become
 * another. The text is put together in a room that is surely large enough, and then moved.
 */
#include "aggregator/state/usage_node.h"

#include <stdlib.h>
#include <string.h>

#include "aggregator/state/compressed_name.h"

enum {
	LIMITS_SOUGHT = 16, /* how many of the newest are looked at for the same */
	COMPRESSED_SOUGHT = 8, /* likewise of compressed names */
};

/* A reference by its whole name. */
struct named {
	const char *name; /* in the old block, in what is news, or expanded */
	struct usage_ref *ref;
};

/* The new text in the making. */
struct text {
	char *start; /* owned */
	char *end;
	const char *compressed[COMPRESSED_SOUGHT]; /* in it; NULL: fewer */
	size_t next; /* which of them is the oldest */
};

void usage_ref_drop_news(struct usage_ref *r)
{
	if (r->news)
		entity_drop(r->news->entity);
	free(r->news);
	r->news = NULL;
}

/* --- whole names ------------------------------------------------------------------------------ */

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
	r->above = NULL;
}

/* Makes every name whole; those that were compressed lie in the result, which the caller frees. */
static char *expand_names(struct usage_node *n)
{
	size_t size = 0;
	char *room, *at;

	for (size_t i = 0; i < n->ref_count; i++) {
		struct usage_ref *r = &n->refs[i];

		point_to_news(r);
		if (r->above)
			size += compressed_name_len(r->name, r->above, r->id) + 1;
	}
	room = at = mem_alloc(size);
	for (size_t i = 0; i < n->ref_count; i++) {
		struct usage_ref *r = &n->refs[i];

		if (!r->above)
			continue;
		size = compressed_name_put(r->name, r->above, r->id, at) + 1;
		r->name = at;
		r->above = NULL;
		at += size;
	}
	return room;
}

static int compare_name(const void *a, const void *b)
{
	return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

/* By whole names. */
static void rank_names(struct usage_node *n)
{
	struct named *order = mem_alloc(n->ref_count * sizeof(*order));

	for (size_t i = 0; i < n->ref_count; i++)
		order[i] = (struct named){n->refs[i].name, &n->refs[i]};
	qsort(order, n->ref_count, sizeof(*order), compare_name);
	for (size_t i = 0; i < n->ref_count; i++)
		order[i].ref->rank = i && strcmp(order[i - 1].name, order[i].name) == 0
					     ? order[i - 1].ref->rank
					     : (uint32_t)i;
	free(order);
}

/* --- text ------------------------------------------------------------------------------------- */

static const char *add_text(struct text *t, const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = memcpy(t->end, text, size);

	t->end += size;
	return copy;
}

/* Where it is in text, if text ends with it. */
static const char *add_tail(struct text *t, const char *text, const char *tail)
{
	size_t len = strlen(text), tail_len = strlen(tail);

	if (tail_len > len || memcmp(text + len - tail_len, tail, tail_len) != 0)
		return add_text(t, tail);
	return text + len - tail_len;
}

/* The same one of those before, else what lies at the end of the text, which then is behind it. */
static const char *keep_compressed(struct text *t)
{
	const char *compressed = t->end;

	for (size_t i = 0; i < COMPRESSED_SOUGHT && t->compressed[i]; i++)
		if (strcmp(t->compressed[i], compressed) == 0)
			return t->compressed[i];
	t->compressed[t->next++ % COMPRESSED_SOUGHT] = compressed;
	t->end += strlen(compressed) + 1;
	return compressed;
}

static void add_whole(struct text *t, struct usage_ref *r)
{
	r->name = add_text(t, r->name);
	r->uid = add_tail(t, r->name, r->uid);
	r->id = add_tail(t, r->name, r->id);
}

/* pod: its text is the new one already; NULL: it is not there. */
static void add_container(struct text *t, struct usage_ref *r, const struct usage_ref *pod)
{
	if (!pod || !pod->pod || !compressed_name_make(r->name, pod->name, r->id, t->end)) {
		add_whole(t, r);
		return;
	}
	r->name = keep_compressed(t);
	r->above = pod->name;
	r->id = add_text(t, r->id);
	r->uid = strcmp(r->uid, pod->uid) == 0 ? pod->uid : add_text(t, r->uid);
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
	add_text(&t, n->name);
	for (size_t i = 0; i < n->ref_count; i++)
		if (n->refs[i].pod)
			add_whole(&t, &n->refs[i]);
	for (size_t i = 0; i < n->ref_count; i++)
		if (!n->refs[i].pod)
			add_container(&t, &n->refs[i], usage_node_find_ref(n, n->refs[i].parent));
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
		if (r->above)
			r->above = names->text + (r->above - t->start);
		r->limits = &names->limits[places[i]];
	}
	free(distinct);
	free(places);
	return names;
}

void usage_node_rename(struct usage_node *n)
{
	char *expanded = expand_names(n);
	struct stats_names *names;
	struct text text;

	rank_names(n);
	text = write_text(n);
	names = move_names(n, &text);
	free(text.start);
	free(expanded);
	for (size_t i = 0; i < n->ref_count; i++)
		usage_ref_drop_news(&n->refs[i]);
	stats_names_drop(n->names);
	n->names = names;
}
