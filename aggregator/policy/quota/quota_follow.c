/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Updates a book to another view and other reservations, at the cost of what changed. Namespaces whose
 * sums of requests or whose reservations changed get a new entry, made as quota_book_new() makes it.
 *
 * Tables and reservations are immutable and held by the book: an equal address means no change. If the
 * quotas themselves changed, or namespaces have a default quota, the caller makes a new book.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/quota/quota_internal.h"

/* The namespace may have no quota. */
static void mark_stale(struct quota_book *b, const char *namespace)
{
	struct quota_entry *e;

	HASH_FIND_STR(b->hash, namespace, e);
	if (e)
		e->stale = true;
}

static bool is_same_sum(const struct namespace_sums *a, const struct namespace_sums *b)
{
	return a->bound_pods == b->bound_pods && a->pending_pods == b->pending_pods &&
	       resources_equal(&a->bound, &b->bound) && resources_equal(&a->pending, &b->pending);
}

/* The book borrows `use` from the view, and so it changes with the view. */
static void compare_sums(struct quota_book *b, const struct view *v)
{
	if (b->view->namespaces == v->namespaces)
		return;
	for (size_t i = 0; i < b->count; i++) {
		struct quota *q = &b->sorted[i]->quota;
		const struct namespace_sums *was = view_namespace(b->view, q->namespace);
		const struct namespace_sums *is = view_namespace(v, q->namespace);

		q->use = is && is->use.pods ? &is->use : NULL;
		if (was && is ? !is_same_sum(was, is) : was != is)
			mark_stale(b, q->namespace);
	}
}

static int compare_entries(const struct reservation *a, const struct reservation *b)
{
	int order = strcmp(a->namespace, b->namespace);

	if (!order)
		order = strcmp(a->name, b->name);
	return order ? order : strcmp(a->uid, b->uid);
}

/* Whether its pod became pending or is no longer: another pod may have the same requests. */
static bool is_other(const struct quota_book *b, const struct view *v, const struct reservation *r)
{
	return b->view->cluster != v->cluster &&
	       quota_view_pending(b->view, r) != quota_view_pending(v, r);
}

/*
 * Both lists have the order of the reservations. A reservation is immutable and held: an equal
 * address means the same one.
 */
static void compare_reservations(struct quota_book *b, const struct view *v,
				 const struct quota_counted *now)
{
	size_t i = 0, k = 0;

	while (i < b->counted_count || k < now->count) {
		const struct reservation *was = i < b->counted_count ? b->counted[i] : NULL;
		const struct reservation *is = k < now->count ? now->of[k] : NULL;
		int order = !was ? 1 : !is ? -1 : was == is ? 0 : compare_entries(was, is);
		const struct reservation *first = order <= 0 ? was : is;

		assert(first);
		if (was != is || is_other(b, v, first))
			mark_stale(b, first->namespace);
		i += order <= 0;
		k += order >= 0;
	}
}

/* A new entry takes the place of the old one, which frees its name. */
static void renew_stale(struct quota_book *b)
{
	for (size_t i = 0; i < b->count; i++) {
		char *name;

		if (!b->sorted[i]->stale)
			continue;
		name = mem_strdup(b->sorted[i]->quota.namespace);
		quota_view_renew(b, name);
		free(name);
	}
}

bool quota_book_update(struct quota_book *b, struct view *v, struct reservations_copy *reservations)
{
	uint64_t generation = v->cluster ? v->cluster->generation : 0;
	struct view *was = b->view;
	struct reservations_copy *reservations_was = b->reservations;
	struct quota_counted now;

	if (b->fallback || !b->view ||
	    view_table(b->view, OBJECT_ELASTIC_QUOTA) != view_table(v, OBJECT_ELASTIC_QUOTA))
		return false;
	now = quota_view_counted(reservations, generation);
	compare_sums(b, v);
	compare_reservations(b, v, &now);
	b->view = view_hold(v);
	b->reservations = reservations ? reservations_copy_hold(reservations) : NULL;
	free(b->counted);
	b->counted = now.of;
	b->counted_count = now.count;
	renew_stale(b);
	if (was->cluster != v->cluster)
		quota_view_read_capacity(b);
	else
		quota_book_scale(b);
	view_drop(was);
	reservations_copy_drop(reservations_was);
	return true;
}
