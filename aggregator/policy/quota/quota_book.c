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
 * of resources that a quota does not name. A min counts as much as quota_book_scale() leaves of it.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/quota/quota_internal.h"
#include "shared/array.h"

void quota_options_default(struct quota_options *o)
{
	*o = (struct quota_options){.critical_priority = QUOTA_CRITICAL_PRIORITY};
}

const char *quota_variant_name(enum quota_variant v)
{
	static const char *const names[] = {
		[QUOTA_CORRECTED] = "corrected", [QUOTA_UPSTREAM] = "upstream"};

	return names[v];
}

/* --- amounts ---------------------------------------------------------------------------------- */

int64_t quota_amount_of_pod(const struct resources *requests, const char *name)
{
	int64_t amount = strcmp(name, resource_name(RESOURCE_PODS)) == 0;

	resources_find(requests, name, &amount);
	return amount;
}

/* With at least one decimal, and no more than needed. */
static struct quota_text cores(int64_t milli)
{
	int decimals = milli % 100 == 0 ? 1 : milli % 10 == 0 ? 2 : 3;
	static const int64_t unit[] = {1000, 100, 10, 1};
	int64_t rest = milli % 1000 / unit[decimals];
	struct quota_text out;

	snprintf(out.text, sizeof(out.text), "%s%lld.%0*lld", milli < 0 ? "-" : "",
		 llabs((long long)(milli / 1000)), decimals, llabs((long long)rest));
	return out;
}

struct quota_text quota_amount_text(const char *resource, int64_t amount)
{
	static const char *const units[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
	struct quota_text out;
	unsigned int unit = 0;

	if (strcmp(resource, resource_name(RESOURCE_CPU)) == 0)
		return cores(amount);
	while (resource_is_bytes(resource) && amount && amount % 1024 == 0 &&
	       unit < sizeof(units) / sizeof(units[0]) - 1) {
		amount /= 1024;
		unit++;
	}
	snprintf(out.text, sizeof(out.text), "%lld%s", (long long)amount, units[unit]);
	return out;
}

/* --- rows ------------------------------------------------------------------------------------- */

static void rows_init(struct quota_rows *r)
{
	r->count = RESOURCE_STANDARD;
	r->of = mem_zalloc(r->count, sizeof(*r->of));
	for (unsigned int id = 0; id < RESOURCE_STANDARD; id++)
		r->of[id].name = resource_name((enum resource_id)id);
}

static void rows_fini(struct quota_rows *r)
{
	for (size_t i = RESOURCE_STANDARD; i < r->count; i++)
		free((char *)r->of[i].name);
	free(r->of);
	*r = (struct quota_rows){0, NULL};
}

/* Where the row is, or belongs. */
static size_t place_of(const struct quota_rows *r, const char *name, bool *found)
{
	const struct quota_row *others = r->of + RESOURCE_STANDARD;

	*found = true;
	for (size_t id = 0; id < RESOURCE_STANDARD; id++)
		if (r->of[id].name == name || strcmp(r->of[id].name, name) == 0)
			return id;
	return RESOURCE_STANDARD +
	       array_find_name(others, r->count - RESOURCE_STANDARD, sizeof(*others), name, found);
}

const struct quota_row *quota_rows_find(const struct quota_rows *r, const char *name)
{
	bool found;
	size_t at = place_of(r, name, &found);

	return found ? &r->of[at] : NULL;
}

struct quota_row *quota_rows_put(struct quota_rows *r, const char *name)
{
	bool found;
	size_t at = place_of(r, name, &found);

	if (found)
		return &r->of[at];
	r->of = mem_realloc(r->of, (r->count + 1) * sizeof(*r->of));
	memmove(r->of + at + 1, r->of + at, (r->count - at) * sizeof(*r->of));
	r->count++;
	r->of[at] = (struct quota_row){.name = mem_strdup(name)};
	return &r->of[at];
}

/* --- entries ---------------------------------------------------------------------------------- */

static void fill_rows(struct quota_entry *e)
{
	const struct quota *q = &e->quota;
	const char *name;
	int64_t amount;
	struct quota_row *row;

	rows_init(&e->rows);
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

/* Every pod is one of `pods`, also without that key. Answers have it if the quota names it. */
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
	resources_set(&e->quota.used, RESOURCE_PODS, int_clamp(row->used));
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
	rows_fini(&e->rows);
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
	rows_init(&b->sum);
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
	rows_fini(&b->sum);
	resources_fini(&b->options.default_min);
	resources_fini(&b->options.default_max);
	resources_fini(&b->capacity);
	view_drop(b->view);
	reservations_copy_drop(b->reservations);
	free(b->counted.of);
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

/* --- effective mins --------------------------------------------------------------------------- */

/*
 * If all mins together exceed what the nodes have of a resource, no order of pods could keep the
 * guarantees. Each min then counts as its proportional part of the capacity:
 *
 *     guaranteed_i = min_i * capacity / sum of min       whole units, by the largest remainder
 *
 * Admission, borrowing and the protection of victims use this effective min. Corrected variant only,
 * since upstream has no capacity. Resources that no node has are left alone: a misspelt name, or nodes
 * that are still to come.
 */
static struct quota_row *find_row(struct quota_rows *r, const char *name)
{
	return (struct quota_row *)quota_rows_find(r, name);
}

static void count_as_named(struct quota_rows *r)
{
	for (size_t i = 0; i < r->count; i++)
		r->of[i].min = r->of[i].named;
}

static void scale_row(struct quota_book *b, struct quota_row *sum, int64_t capacity)
{
	struct quota_slice *slices = mem_zalloc(b->count + 1, sizeof(*slices));
	size_t count = 0;

	for (size_t i = 0; i < b->count; i++) {
		const struct quota_row *row = find_row(&b->sorted[i]->rows, sum->name);

		if (row && row->named > 0)
			slices[count++] =
				(struct quota_slice){.weight = int_clamp(row->named), .at = i};
	}
	quota_apportion(capacity, slices, count);
	for (size_t i = 0; i < count; i++)
		find_row(&b->sorted[slices[i].at]->rows, sum->name)->min = slices[i].give;
	sum->min = capacity;
	free(slices);
}

/* The capacity, where more than that is promised; else -1. */
static int64_t short_of(const struct quota_book *b, const struct quota_row *sum)
{
	int64_t capacity;

	if (resources_find(&b->capacity, sum->name, &capacity) && sum->named > capacity)
		return capacity;
	return -1;
}

void quota_book_scale(struct quota_book *b)
{
	bool was = b->scaled;

	if (b->options.variant == QUOTA_UPSTREAM)
		return;
	b->scaled = false;
	for (size_t i = 0; i < b->sum.count; i++)
		b->scaled |= short_of(b, &b->sum.of[i]) >= 0;
	if (!was && !b->scaled)
		return;
	for (size_t i = 0; i < b->count; i++)
		count_as_named(&b->sorted[i]->rows);
	count_as_named(&b->sum);
	for (size_t i = 0; i < b->sum.count; i++)
		if (short_of(b, &b->sum.of[i]) >= 0)
			scale_row(b, &b->sum.of[i], short_of(b, &b->sum.of[i]));
}

void quota_book_set_capacity(struct quota_book *b, const struct resources *capacity)
{
	resources_fini(&b->capacity);
	resources_copy(&b->capacity, capacity);
	quota_book_scale(b);
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
		resources_set_named(&e->quota.used, name, int_clamp(row->used));
	sum = quota_rows_put(&b->sum, name);
	sum->in_used = true;
	sum->used += change;
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

static void change_by(struct quota_book *b, const char *namespace, const struct resources *requests,
		      int sign)
{
	struct quota_entry *e = own_entry(b, namespace);
	const char *name;
	int64_t amount;

	if (!e)
		return;
	e->quota.used_pods += (uint32_t)sign; /* below 0 it wraps, and adding restores it */
	for (size_t at = 0; resources_next(requests, &at, &name, &amount);)
		change_amount(b, e, name, (quota_amount)amount * sign);
	if (b->options.variant == QUOTA_CORRECTED && !resources_has(requests, RESOURCE_PODS))
		change_amount(b, e, resource_name(RESOURCE_PODS), sign);
}

void quota_book_add(struct quota_book *b, const char *namespace, const struct resources *requests)
{
	change_by(b, namespace, requests, 1);
}

void quota_book_subtract(struct quota_book *b, const char *namespace,
			 const struct resources *requests)
{
	change_by(b, namespace, requests, -1);
}
