/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A search by halves compares a name with a dozen others, each somewhere else in memory. Here a
 * name is compared with the one that has its hash, and all names lie behind each other in the order
 * of the view, which is nearly the order of most questions.
 */
#include "aggregator/api/node_index.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/state/view_kept.h"
#include "shared/mem.h"

struct slot {
	uint32_t hash;
	uint32_t place; /* + 1; 0: free */
	uint32_t name; /* where it begins in names */
};

/* An open hash table, at most half full. */
struct node_index {
	struct view_kept kept; /* first */
	uint64_t roster; /* of the view it was made of */
	size_t count, mask;
	char *names; /* in the same block */
	struct slot slots[];
};

/* FNV-1a: names are short. */
static uint32_t hash_name(const char *name)
{
	uint32_t hash = 0x811c9dc5;

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 0x01000193;
	return hash ^ hash >> 15;
}

static void add(struct node_index *x, size_t place, const char *name)
{
	uint32_t hash = hash_name(name);
	size_t at = hash & x->mask;

	while (x->slots[at].place)
		at = (at + 1) & x->mask;
	x->slots[at] = (struct slot){hash, (uint32_t)place + 1, (uint32_t)(name - x->names)};
}

static void free_index(struct view_kept *kept)
{
	free(kept);
}

static struct node_index *allocate(const struct view *v)
{
	size_t text = 0, size = 64;
	struct node_index *x;

	for (size_t i = 0; i < v->node_count; i++)
		text += strlen(v->nodes[i]->name) + 1;
	while (size < 2 * v->node_count)
		size *= 2;
	x = mem_zalloc(1, sizeof(*x) + size * sizeof(x->slots[0]) + text);
	view_kept_init(&x->kept, free_index);
	x->roster = v->roster;
	x->count = v->node_count;
	x->mask = size - 1;
	x->names = (char *)&x->slots[size];
	return x;
}

static struct view_kept *make_index(const struct view *v, const struct view_kept *before)
{
	const struct node_index *last = (const struct node_index *)before;
	struct node_index *x;
	char *name;

	if (last && v->roster && last->roster == v->roster)
		return view_kept_hold(before);
	x = allocate(v);
	name = x->names;
	for (size_t i = 0; i < v->node_count; i++) {
		size_t size = strlen(v->nodes[i]->name) + 1;

		memcpy(name, v->nodes[i]->name, size);
		add(x, i, name);
		name += size;
	}
	return &x->kept;
}

const struct node_index *node_index_of(const struct view *v)
{
	return (const struct node_index *)view_keep(v, VIEW_KEPT_NAMES, make_index);
}

size_t node_index_find(const struct node_index *x, const char *name)
{
	uint32_t hash = hash_name(name);

	for (size_t at = hash & x->mask; x->slots[at].place; at = (at + 1) & x->mask)
		if (x->slots[at].hash == hash && strcmp(x->names + x->slots[at].name, name) == 0)
			return x->slots[at].place - 1;
	return x->count;
}
