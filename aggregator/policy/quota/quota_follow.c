/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A book brought up to another view and another copy of the reservations, at the cost of what
 * changed. Namespaces whose pods ask for something else than before, and those whose reservations
 * are others, get their entry made anew, by the way all are made, so that nothing can be in it that
 * would not be in a new book.
 *
 * What did not change is known by its address: tables and reservations are immutable, and the book
 * holds those it was made of. Where the quotas themselves are others, or namespaces without one get
 * a default, it is not worth the trouble, and a new book is made.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/quota/quota_internal.h"

/* Namespaces whose entries are made anew; borrowed, and told more than once perhaps. */
struct names {
	size_t count, room;
	const char **of;
};

static void add_name(struct names *n, const char *name)
{
	if (n->count && strcmp(n->of[n->count - 1], name) == 0)
		return;
	if (n->count == n->room) {
		n->room = n->room ? 2 * n->room : 16;
		n->of = mem_realloc(n->of, n->room * sizeof(*n->of));
	}
	n->of[n->count++] = name;
}

static const struct object_table *table_of(const struct view *v, enum object_kind kind)
{
	return v->cluster ? v->cluster->tables[kind] : NULL;
}

static bool are_quotas_same(const struct quota_book *b, const struct view *v)
{
	return b->view &&
	       table_of(b->view, OBJECT_ELASTIC_QUOTA) == table_of(v, OBJECT_ELASTIC_QUOTA);
}

static bool is_same_sum(const struct namespace_sums *a, const struct namespace_sums *b)
{
	return a->bound_pods == b->bound_pods && a->pending_pods == b->pending_pods &&
	       resources_equal(&a->bound, &b->bound) && resources_equal(&a->pending, &b->pending);
}

/* Uses are borrowed from the view, and so change with it. */
static void compare_sums(struct quota_book *b, const struct view *v, struct names *changed)
{
	if (b->view->namespaces == v->namespaces)
		return;
	for (size_t i = 0; i < b->count; i++) {
		struct quota *q = &b->sorted[i]->quota;
		const struct namespace_sums *was = view_namespace(b->view, q->namespace);
		const struct namespace_sums *is = view_namespace(v, q->namespace);

		q->use = is && is->use.pods ? &is->use : NULL;
		if (was && is ? !is_same_sum(was, is) : was != is)
			add_name(changed, q->namespace);
	}
}

static int compare_entries(const struct reservation *a, const struct reservation *b)
{
	int order = strcmp(a->namespace, b->namespace);

	if (!order)
		order = strcmp(a->name, b->name);
	return order ? order : strcmp(a->uid, b->uid);
}

/* Its pod is no longer pending, or is now: another may have the same requests. */
static bool is_other(const struct quota_book *b, const struct view *v, const struct reservation *r)
{
	return b->view->cluster != v->cluster &&
	       quota_view_pending(b->view, r) != quota_view_pending(v, r);
}

/*
 * Both lists are in the order of reservations. An entry is never changed, and the copies hold
 * theirs: the same address is the same entry.
 */
static void compare_reservations(const struct quota_book *b, const struct view *v,
				 const struct quota_counted *now, struct names *changed)
{
	size_t i = 0, k = 0;

	while (i < b->counted_count || k < now->count) {
		const struct reservation *was = i < b->counted_count ? b->counted[i] : NULL;
		const struct reservation *is = k < now->count ? now->of[k] : NULL;
		int order = !was ? 1 : !is ? -1 : was == is ? 0 : compare_entries(was, is);
		const struct reservation *first = order <= 0 ? was : is;

		assert(first);
		if (was != is || is_other(b, v, first))
			add_name(changed, first->namespace);
		i += order <= 0;
		k += order >= 0;
	}
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void renew_all(struct quota_book *b, struct names *changed)
{
	char *last = NULL;

	if (changed->count)
		qsort(changed->of, changed->count, sizeof(*changed->of), by_name);
	for (size_t i = 0; i < changed->count; i++) {
		/* The entry's own name goes with it. */
		char *name = mem_strdup(changed->of[i]);

		if (!last || strcmp(name, last) != 0)
			quota_view_renew(b, name);
		free(last);
		last = name;
	}
	free(last);
}

bool quota_book_update(struct quota_book *b, struct view *v, struct reservations_copy *reservations)
{
	uint64_t generation = v->cluster ? v->cluster->generation : 0;
	struct view *was = b->view;
	struct reservations_copy *reservations_was = b->reservations;
	struct quota_counted now;
	struct names changed = {0};

	if (b->fallback || !are_quotas_same(b, v))
		return false;
	now = quota_view_counted(reservations, generation);
	compare_sums(b, v, &changed);
	compare_reservations(b, v, &now, &changed);
	b->view = view_hold(v);
	b->reservations = reservations ? reservations_copy_hold(reservations) : NULL;
	free(b->counted);
	b->counted = now.of;
	b->counted_count = now.count;
	renew_all(b, &changed);
	free(changed.of);
	if (was->cluster != v->cluster)
		quota_view_read_capacity(b);
	else
		quota_book_scale(b);
	view_drop(was);
	reservations_copy_drop(reservations_was);
	return true;
}
