/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The node a pod would go to. Nodes of one order form a search tree (a treap, whose shape depends on
 * the order alone) with the most that is free, and that the real-use cap leaves, in each subtree. A
 * search skips subtrees without enough of either, so a pod that fits nowhere costs a look at the
 * root. A change of a node marks it stale; the next search moves all stale nodes, so thirty pods
 * taken off a node move it once.
 *
 * The result equals a check of each node in order. Skipped nodes lack CPU, memory or a pod's slot.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/arith.h"
#include "aggregator/policy/place/place_internal.h"
#include "shared/mem.h"

static double share_of(place_sum used, int64_t available)
{
	if (available > 0)
		return (double)used / (double)available;
	return used > 0 ? 1 : 0;
}

double place_share(const struct place *p, place_node n)
{
	size_t at = (size_t)n * p->dim_room;
	double cpu = share_of(p->used[at + RESOURCE_CPU], p->available[at + RESOURCE_CPU]);
	double mem = share_of(p->used[at + RESOURCE_MEMORY], p->available[at + RESOURCE_MEMORY]);

	return cpu > mem ? cpu : mem;
}

static double key_of(const struct place *p, enum place_order order, place_node n)
{
	if (order == PLACE_CYCLIC)
		return 0;
	return order == PLACE_FULLEST_FIRST ? -place_share(p, n) : place_share(p, n);
}

static bool is_before(const struct place_tree *t, place_node a, double share, place_node b)
{
	if (t->of[a].share < share)
		return true;
	return !(t->of[a].share > share) && a < b;
}

/* Updates the free amounts of the subtree. */
static void pull(const struct place *p, struct place_tree *t, place_node n)
{
	struct place_order_node *o = &t->of[n];
	bool gone = p->gone[n];

	o->cpu = gone ? -INT64_MAX : place_free_of(p, n, RESOURCE_CPU);
	o->mem = gone ? -INT64_MAX : place_free_of(p, n, RESOURCE_MEMORY);
	o->pods = gone ? -INT64_MAX : place_free_of(p, n, RESOURCE_PODS);
	o->use_cpu = gone ? -INT64_MAX : o->own_use_cpu;
	o->use_mem = gone ? -INT64_MAX : o->own_use_mem;
	for (int side = 0; side < 2; side++) {
		uint32_t child = side ? o->right : o->left;

		if (child == PLACE_NONE)
			continue;
		o->cpu = int_max(o->cpu, t->of[child].cpu);
		o->mem = int_max(o->mem, t->of[child].mem);
		o->pods = int_max(o->pods, t->of[child].pods);
		o->use_cpu = int_max(o->use_cpu, t->of[child].use_cpu);
		o->use_mem = int_max(o->use_mem, t->of[child].use_mem);
	}
}

/* Cached, as pull() runs far more often than use changes. */
static void read_use(const struct place *p, struct place_tree *t, place_node n)
{
	struct place_order_node *o = &t->of[n];

	o->own_use_cpu = o->own_use_mem = INT64_MAX;
	if (p->cap)
		place_use_room(p, n, &o->own_use_cpu, &o->own_use_mem);
}

/* Nodes before (share, n) go left. */
static void split(const struct place *p, struct place_tree *t, uint32_t root, double share,
		  place_node n, uint32_t *left, uint32_t *right)
{
	if (root == PLACE_NONE) {
		*left = *right = PLACE_NONE;
	} else if (is_before(t, root, share, n)) {
		*left = root;
		split(p, t, t->of[root].right, share, n, &t->of[root].right, right);
		pull(p, t, root);
	} else {
		*right = root;
		split(p, t, t->of[root].left, share, n, left, &t->of[root].left);
		pull(p, t, root);
	}
}

static uint32_t merge(const struct place *p, struct place_tree *t, uint32_t a, uint32_t b)
{
	if (a == PLACE_NONE || b == PLACE_NONE)
		return a == PLACE_NONE ? b : a;
	if (t->of[a].priority > t->of[b].priority) {
		t->of[a].right = merge(p, t, t->of[a].right, b);
		pull(p, t, a);
		return a;
	}
	t->of[b].left = merge(p, t, a, t->of[b].left);
	pull(p, t, b);
	return b;
}

static uint32_t insert(const struct place *p, struct place_tree *t, uint32_t root, place_node n)
{
	struct place_order_node *o = &t->of[n];

	if (root == PLACE_NONE || o->priority > t->of[root].priority) {
		split(p, t, root, o->share, n, &o->left, &o->right);
		root = n;
	} else if (is_before(t, n, t->of[root].share, root)) {
		t->of[root].left = insert(p, t, t->of[root].left, n);
	} else {
		t->of[root].right = insert(p, t, t->of[root].right, n);
	}
	pull(p, t, root);
	return root;
}

static uint32_t erase(const struct place *p, struct place_tree *t, uint32_t root, place_node n)
{
	assert(root != PLACE_NONE); /* it is in the tree */
	if (root == n)
		return merge(p, t, t->of[n].left, t->of[n].right);
	if (is_before(t, n, t->of[root].share, root))
		t->of[root].left = erase(p, t, t->of[root].left, n);
	else
		t->of[root].right = erase(p, t, t->of[root].right, n);
	pull(p, t, root);
	return root;
}

/* The free amounts of a node changed, but not its position. */
static void refresh(const struct place *p, struct place_tree *t, uint32_t root, place_node n)
{
	if (root != n) {
		bool left = is_before(t, n, t->of[root].share, root);

		refresh(p, t, left ? t->of[root].left : t->of[root].right, n);
	}
	pull(p, t, root);
}

/* Spreads the bits of a number: a fixed permutation, so that equal nodes make equal trees. */
static uint32_t priority_of(place_node n)
{
	uint32_t x = n + 0x9E3779B9U;

	x = (x ^ (x >> 16)) * 0x85EBCA6BU;
	x = (x ^ (x >> 13)) * 0xC2B2AE35U;
	return x ^ (x >> 16);
}

static void build(const struct place *p, enum place_order order, struct place_tree *t)
{
	t->of = mem_zalloc((size_t)p->node_count + 1, sizeof(*t->of));
	t->stale = mem_zalloc((size_t)p->node_count + 1, sizeof(*t->stale));
	t->root = PLACE_NONE;
	for (place_node n = 0; n < p->node_count; n++) {
		t->of[n] = (struct place_order_node){.share = key_of(p, order, n),
						     .left = PLACE_NONE,
						     .right = PLACE_NONE,
						     .priority = priority_of(n)};
		read_use(p, t, n);
		t->root = insert(p, t, t->root, n);
	}
	t->ready = true;
}

static void catch_up(const struct place *p, enum place_order order, struct place_tree *t)
{
	for (uint32_t i = 0; i < t->stales.count; i++) {
		place_node n = t->stales.of[i];
		double key = key_of(p, order, n);

		t->stale[n] = false;
		read_use(p, t, n);
		if (!(key < t->of[n].share) && !(key > t->of[n].share)) {
			refresh(p, t, t->root, n);
			continue;
		}
		t->root = erase(p, t, t->root, n);
		t->of[n].share = key;
		t->of[n].left = t->of[n].right = PLACE_NONE;
		t->root = insert(p, t, t->root, n);
	}
	t->stales.count = 0;
}

void place_trees_touch(struct place *p, place_node n)
{
	for (int order = 0; order < PLACE_ORDERS; order++) {
		struct place_tree *t = &p->trees[order];

		if (!t->ready || t->stale[n])
			continue;
		t->stale[n] = true;
		PLACE_LIST_ADD(&t->stales, n);
	}
}

void place_trees_free(struct place *p)
{
	for (int order = 0; order < PLACE_ORDERS; order++) {
		struct place_tree *t = &p->trees[order];

		free(t->of);
		free(t->stale);
		free(t->stales.of);
		*t = (struct place_tree){.ready = false};
	}
}

/* A search for a pod, and the refusals on its way. */
struct search {
	struct place *p;
	const struct place_tree *t;
	place_pod pod;
	const struct place_slot *slot;
	const bool *allowed;
	place_node from, to; /* cyclic order only; else all nodes */
	struct place_counts counts;
};

static bool has_room_below(const struct search *s, const struct place_order_node *o)
{
	const struct place_shape *shape = place_slot_shape(s->slot);

	return o->pods >= 1 && (!shape->cpu || o->cpu >= shape->cpu) &&
	       (!shape->mem || o->mem >= shape->mem) && o->use_cpu >= s->slot->use.cpu &&
	       o->use_mem >= s->slot->use.mem;
}

/* Only the cap refused the node. */
static void note_excess(struct search *s, place_node n)
{
	struct place_counts *c = &s->counts;
	struct place_use_limits l;
	double excess;

	place_use_fits(s->p, n, &s->slot->use, &l);
	excess = fmax(l.cpu / l.cpu_limit, l.mem / l.mem_limit);
	if (c->of[PLACE_USE_CAP]++ && c->excess <= excess)
		return;
	c->nearest = n;
	c->excess = excess;
}

static bool check(struct search *s, place_node n)
{
	enum place_filter f;

	if (s->allowed && !s->allowed[n])
		return false;
	f = place_check(s->p, s->pod, n);
	if (f == PLACE_USE_CAP)
		note_excess(s, n);
	else
		s->counts.of[f]++;
	return f == PLACE_FITS;
}

static place_node search(struct search *s, uint32_t root)
{
	const struct place_order_node *o;
	place_node found;

	if (root == PLACE_NONE)
		return PLACE_NONE;
	o = &s->t->of[root];
	if (!has_room_below(s, o))
		return PLACE_NONE;
	if (root < s->from)
		return search(s, o->right);
	if (root >= s->to)
		return search(s, o->left);
	found = search(s, o->left);
	if (found != PLACE_NONE)
		return found;
	if (check(s, root))
		return root;
	return search(s, o->right);
}

static place_node search_tree(struct search *s, enum place_order order, place_node start)
{
	struct place_tree *t = &s->p->trees[order];
	place_node n;

	if (t->ready)
		catch_up(s->p, order, t);
	else
		build(s->p, order, t);
	s->t = t;
	s->from = start;
	s->to = PLACE_NONE;
	n = search(s, t->root);
	if (n != PLACE_NONE || !start)
		return n;
	s->from = 0;
	s->to = start;
	return search(s, t->root);
}

place_node place_choose(struct place *p, place_pod pod, enum place_order order, place_node hint,
			const bool *allowed, struct place_counts *counts)
{
	struct search s = {.p = p,
			   .pod = pod,
			   .slot = place_slot(p, pod),
			   .allowed = allowed,
			   .counts = {.nearest = PLACE_NONE}};
	place_node start = 0, n;

	if (counts)
		*counts = s.counts;
	if (hint != PLACE_NONE && (!allowed || allowed[hint]) &&
	    place_check(p, pod, hint) == PLACE_FITS)
		return hint;
	if (order == PLACE_CYCLIC && p->last_chosen != PLACE_NONE &&
	    p->last_chosen + 1 < p->node_count)
		start = p->last_chosen + 1;
	n = search_tree(&s, order, start);
	if (n != PLACE_NONE) {
		if (order == PLACE_CYCLIC)
			p->last_chosen = n;
		return n;
	}
	if (!counts)
		return PLACE_NONE;
	/* The tree skips nodes, so each is checked again. */
	s.counts = (struct place_counts){.nearest = PLACE_NONE};
	for (n = 0; n < p->node_count; n++)
		check(&s, n);
	*counts = s.counts;
	return PLACE_NONE;
}
