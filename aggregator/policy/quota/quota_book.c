/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A book has an entry for each namespace with a quota, in a hash and in a sorted array, and the sums over
 * all entries. Adding or subtracting a pod changes the rows of its quota and the sums, so admission
 * never iterates over quotas or pods.
 *
 * Sums are kept in 128 bits: no number of pods overflows them, and subtracting undoes adding exactly.
 * Answers and comparisons are cut at INT64_MAX.
 *
 * The sums over all have used and min of every quota and every resource, in the corrected variant also
 * of resources that a quota does not name. A min counts as much as quota_scale.c leaves of it.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/quota/quota_internal.h"
#include "shared/array.h"

void quota_options_default(struct quota_options *o)
{
	*o = (struct quota_options){.critical_priority = 2000000000};
}

const char *quota_variant_name(enum quota_variant v)
{
	static const char *const names[] = {
		[QUOTA_CORRECTED] = "corrected", [QUOTA_UPSTREAM] = "upstream"};

	return names[v];
}

/* --- entries ---------------------------------------------------------------------------------- */

static void fill_rows(struct quota_entry *e)
{
	const struct quota *q = &e->quota;
	const char *name;
	int64_t amount;
	struct quota_row *row;

	quota_rows_init(&e->rows);
	for (size_t at = 0; resources_next(&q->min, &at, &name, &amount);) {
		row = quota_rows_put(&e->rows, name);
		row->in_min = true;
		row->named = row->min = amount;
	}
	for (size_t at = 0; resources_next(&q->max, &at, &name, &amount);) {
		row = quota_rows_put(&e->rows, name);
		row->in_max = true;
		row->max = amount;
	}
	for (size_t at = 0; resources_next(&q->used, &at, &name, &amount);) {
		row = quota_rows_put(&e->rows, name);
		row->in_used = true;
		row->used = amount;
	}
}

/*
 * Every pod is one of `pods`: without that key the number of pods counts. Answers have it only if
 * the quota names it.
 */
static void count_pods(struct quota_entry *e, enum quota_variant v)
{
	struct quota_row *row = &e->rows.of[RESOURCE_PODS];

	if (v != QUOTA_CORRECTED)
		return;
	if (!row->in_used)
		row->used = e->quota.used_pods;
	row->in_used = true;
	if (!quota_names_row(row))
		return;
	if (!resources_has(&e->quota.pending, RESOURCE_PODS))
		resources_set(&e->quota.pending, RESOURCE_PODS, e->quota.pending_pods);
	resources_set(&e->quota.used, RESOURCE_PODS, quota_clamp(row->used));
}

static struct quota_entry *entry_new(const struct quota *q, enum quota_variant v)
{
	struct quota_entry *e = mem_zalloc(1, sizeof(*e));

	e->quota = *q;
	e->quota.namespace = mem_strdup(q->namespace);
	e->quota.name = mem_strdup(q->name ? q->name : "");
	resources_copy(&e->quota.min, &q->min);
	resources_copy(&e->quota.max, &q->max);
	resources_copy(&e->quota.used, &q->used);
	resources_copy(&e->quota.pending, &q->pending);
	fill_rows(e);
	count_pods(e, v);
	return e;
}

static void entry_free(struct quota_entry *e)
{
	if (!e)
		return;
	free((char *)e->quota.namespace);
	free((char *)e->quota.name);
	resources_fini(&e->quota.min);
	resources_fini(&e->quota.max);
	resources_fini(&e->quota.used);
	resources_fini(&e->quota.pending);
	quota_rows_fini(&e->rows);
	free(e);
}

/* --- the book --------------------------------------------------------------------------------- */

/* The default quota has min and max, and weight 1. */
static struct quota default_quota(const struct quota_options *o, const char *namespace)
{
	return (struct quota){
		.namespace = namespace,
		.name = "",
		.min = o->default_min,
		.max = o->default_max,
		.has_min = true,
		.has_max = true,
		.weight = 1,
	};
}

struct quota_book *quota_book_alloc(const struct quota_options *o)
{
	struct quota_book *b = mem_zalloc(1, sizeof(*b));
	struct quota fallback;

	b->options = *o;
	resources_copy(&b->options.default_min, &o->default_min);
	resources_copy(&b->options.default_max, &o->default_max);
	quota_rows_init(&b->sum);
	if (o->has_default) {
		fallback = default_quota(&b->options, "");
		b->fallback = entry_new(&fallback, o->variant);
	}
	return b;
}

void quota_book_free(struct quota_book *b)
{
	if (!b)
		return;
	HASH_CLEAR(hh, b->hash);
	for (size_t i = 0; i < b->count; i++)
		entry_free(b->sorted[i]);
	free(b->sorted);
	entry_free(b->fallback);
	quota_rows_fini(&b->sum);
	resources_fini(&b->options.default_min);
	resources_fini(&b->options.default_max);
	resources_fini(&b->capacity);
	view_drop(b->view);
	reservations_copy_drop(b->reservations);
	free(b->counted);
	free(b);
}

/* sign -1 subtracts them; names stay. */
static void add_to_sums(struct quota_book *b, const struct quota_rows *rows, int sign)
{
	for (size_t i = 0; i < rows->count; i++) {
		const struct quota_row *row = &rows->of[i];
		struct quota_row *sum = quota_rows_put(&b->sum, row->name);

		sum->in_min |= row->in_min;
		sum->in_used |= row->in_used;
		sum->named += row->named * sign;
		sum->min += row->min * sign;
		sum->used += row->used * sign;
	}
}

static int compare_entry(const void *namespace, const void *entry)
{
	return strcmp(namespace, (*(struct quota_entry *const *)entry)->quota.namespace);
}

/* Where the namespace's entry is, or belongs. */
static size_t find_place(const struct quota_book *b, const char *namespace)
{
	return array_lower_bound(namespace, b->sorted, b->count, sizeof(struct quota_entry *),
				 compare_entry);
}

size_t quota_book_index(const struct quota_book *b, const char *namespace)
{
	size_t at = find_place(b, namespace);

	return at < b->count && compare_entry(namespace, &b->sorted[at]) == 0 ? at : b->count;
}

static void link_entry(struct quota_book *b, struct quota_entry *e)
{
	size_t at = find_place(b, e->quota.namespace);

	assert(at == b->count || compare_entry(e->quota.namespace, &b->sorted[at]) != 0);
	b->sorted = array_grow(b->sorted, b->count, sizeof(struct quota_entry *));
	memmove(b->sorted + at + 1, b->sorted + at, (b->count - at) * sizeof(struct quota_entry *));
	b->sorted[at] = e;
	b->count++;
	HASH_ADD_KEYPTR(hh, b->hash, e->quota.namespace, strlen(e->quota.namespace), e);
	add_to_sums(b, &e->rows, 1);
}

struct quota_entry *quota_book_put(struct quota_book *b, const struct quota *q)
{
	struct quota_entry *e = entry_new(q, b->options.variant);

	link_entry(b, e);
	return e;
}

struct quota_book *quota_book_of(const struct quota *quotas, size_t count,
				 const struct quota_options *o)
{
	struct quota_book *b = quota_book_alloc(o);
	struct quota_entry *have;

	for (size_t i = 0; i < count; i++) {
		HASH_FIND_STR(b->hash, quotas[i].namespace, have);
		if (!have)
			quota_book_put(b, &quotas[i]);
	}
	return b;
}

bool quota_book_insert(struct quota_book *b, const struct quota *q)
{
	struct quota_entry *have;

	HASH_FIND_STR(b->hash, q->namespace, have);
	if (have)
		return false;
	quota_book_put(b, q);
	quota_book_scale(b);
	return true;
}

bool quota_book_drop(struct quota_book *b, const char *namespace)
{
	struct quota_entry *e;
	size_t at;

	HASH_FIND_STR(b->hash, namespace, e);
	if (!e)
		return false;
	at = find_place(b, namespace);
	memmove(b->sorted + at, b->sorted + at + 1,
		(b->count - at - 1) * sizeof(struct quota_entry *));
	b->count--;
	HASH_DEL(b->hash, e);
	add_to_sums(b, &e->rows, -1);
	entry_free(e);
	return true;
}

/* Copies usage exactly, also beyond INT64_MAX. */
static void keep_used(struct quota_entry *to, const struct quota_entry *from)
{
	for (size_t i = 0; i < from->rows.count; i++)
		if (from->rows.of[i].in_used)
			quota_rows_put(&to->rows, from->rows.of[i].name)->used =
				from->rows.of[i].used;
}

bool quota_book_set_bounds(struct quota_book *b, const struct quota *q)
{
	struct quota_entry *e, *now;
	struct quota with;

	HASH_FIND_STR(b->hash, q->namespace, e);
	if (!e)
		return false;
	with = e->quota;
	with.name = q->name;
	with.min = q->min;
	with.max = q->max;
	with.has_min = q->has_min;
	with.has_max = q->has_max;
	now = entry_new(&with, b->options.variant);
	keep_used(now, e);
	quota_book_drop(b, q->namespace);
	link_entry(b, now);
	quota_book_scale(b);
	return true;
}

enum quota_variant quota_book_variant(const struct quota_book *b)
{
	return b->options.variant;
}

size_t quota_book_count(const struct quota_book *b)
{
	return b->count;
}

const struct quota *quota_book_at(const struct quota_book *b, size_t i)
{
	assert(i < b->count);
	return &b->sorted[i]->quota;
}

const struct quota_entry *quota_book_entry(const struct quota_book *b, const char *namespace)
{
	struct quota_entry *e;

	HASH_FIND_STR(b->hash, namespace, e);
	return e ? e : b->fallback;
}

const struct quota *quota_book_find(const struct quota_book *b, const char *namespace)
{
	const struct quota_entry *e = quota_book_entry(b, namespace);

	return e ? &e->quota : NULL;
}

/* --- pods ------------------------------------------------------------------------------------- */

static void change_amount(struct quota_book *b, struct quota_entry *e, const char *name,
			  quota_amount change)
{
	struct quota_row *row = quota_rows_put(&e->rows, name), *sum;

	row->in_used = true;
	row->used += change;
	if (row != &e->rows.of[RESOURCE_PODS] || quota_names_row(row) ||
	    b->options.variant == QUOTA_UPSTREAM)
		resources_set_named(&e->quota.used, name, quota_clamp(row->used));
	sum = quota_rows_put(&b->sum, name);
	sum->in_used = true;
	sum->used += change;
}

static void change_by(struct quota_book *b, struct quota_entry *e, const struct resources *requests,
		      int sign)
{
	const char *name;
	int64_t amount;

	for (size_t at = 0; resources_next(requests, &at, &name, &amount);)
		change_amount(b, e, name, (quota_amount)amount * sign);
	if (b->options.variant == QUOTA_CORRECTED && !resources_has(requests, RESOURCE_PODS))
		change_amount(b, e, resource_name(RESOURCE_PODS), sign);
}

/* The entry to change: a namespace with only the default quota gets its own entry. */
static struct quota_entry *own_entry(struct quota_book *b, const char *namespace)
{
	struct quota_entry *e;
	struct quota q;

	HASH_FIND_STR(b->hash, namespace, e);
	if (e || !b->fallback)
		return e;
	q = default_quota(&b->options, namespace);
	e = quota_book_put(b, &q);
	quota_book_scale(b);
	return e;
}

void quota_book_add(struct quota_book *b, const char *namespace, const struct resources *requests)
{
	struct quota_entry *e = own_entry(b, namespace);

	if (!e)
		return;
	e->quota.used_pods++;
	change_by(b, e, requests, 1);
}

void quota_book_subtract(struct quota_book *b, const char *namespace,
			 const struct resources *requests)
{
	struct quota_entry *e = own_entry(b, namespace);

	if (!e)
		return;
	e->quota.used_pods--; /* below 0 it wraps, and adding restores it */
	change_by(b, e, requests, -1);
}
