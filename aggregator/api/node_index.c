/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A search by halves compares a name with a dozen others, each somewhere else in memory. Here a name is compared with
 * the one that has its hash, after all have been looked at once, with their memory asked for ahead.
 */
#include "aggregator/api/node_index.h"

#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"

enum { AHEAD = 16, QUESTIONS_LEAST = 64 };

/* FNV-1a: names are short. */
static uint32_t hash_name(const char *name)
{
	uint32_t hash = 0x811c9dc5;

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 0x01000193;
	return hash ^ hash >> 15;
}

static void add(struct node_index *x, size_t place)
{
	uint32_t hash = hash_name(x->view->nodes[place]->name);
	size_t at = hash & x->mask;

	while (x->slots[at].place)
		at = (at + 1) & x->mask;
	x->slots[at] = (struct node_slot){hash, (uint32_t)place + 1};
}

void node_index_init(struct node_index *x, const struct view *v, size_t questions)
{
	size_t size = 64;

	*x = (struct node_index){.view = v};
	if (questions < QUESTIONS_LEAST)
		return;
	while (size < 2 * v->node_count)
		size *= 2;
	x->mask = size - 1;
	x->slots = mem_zalloc(size, sizeof(*x->slots));
	for (size_t i = 0; i < v->node_count; i++) {
		if (i + 2 * AHEAD < v->node_count)
			__builtin_prefetch(&v->nodes[i + 2 * AHEAD]->name);
		if (i + AHEAD < v->node_count)
			__builtin_prefetch(v->nodes[i + AHEAD]->name);
		add(x, i);
	}
}

void node_index_fini(struct node_index *x)
{
	free(x->slots);
	x->slots = NULL;
}

size_t node_index_find(const struct node_index *x, const char *name)
{
	const struct view *v = x->view;
	uint32_t hash;
	size_t at;

	if (!x->slots)
		return view_index(v, name);
	hash = hash_name(name);
	for (at = hash & x->mask; x->slots[at].place; at = (at + 1) & x->mask)
		if (x->slots[at].hash == hash &&
		    strcmp(v->nodes[x->slots[at].place - 1]->name, name) == 0)
			return x->slots[at].place - 1;
	return v->node_count;
}
