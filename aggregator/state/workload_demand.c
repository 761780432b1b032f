/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An interval has the demand of containers by reference. A reference finds its record by name: the
 * newest view knows the pod's workload, and which of its containers has that id. A container that
 * the API does not know, as sandboxes, is looked for seldom and counts nowhere. Without Kubernetes a
 * unit is its own workload, on whatever node.
 *
 * Records are shared with tables: one that a table holds is copied before it changes, so each is
 * copied once a minute at most.
 */
#include "aggregator/state/workload_demand.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/state/usage_check.h"
#include "aggregator/state/usage_node.h"
#include "aggregator/state/view.h"
#include "shared/array.h"
#include "shared/demand.h"
#include "shared/hash.h"
#include "shared/mem.h"
#include "shared/refs.h"
#include "shared/utf8.h"

#define SECOND_NS    1000000000LL
#define DAY_NS	     (86400 * SECOND_NS)
#define HALF_LIFE_NS ((double)DAY_NS)
#define TABLE_NS     (60 * SECOND_NS)
#define AMOUNT_MAX   1e15 /* exact in JSON */

enum {
	WEIGHTS_STEP = 8,
	HALF_LIVES_MOST = 500, /* a double holds twice as many */
	TRIES_OFTEN = 8, /* intervals with a search for the name; later one of .. */
	TRIES_SELDOM = 64,
	TEXT_MAX = WORKLOAD_KEY_MAX + CONTAINER_NAME_MAX + 2,
};

struct demand_entry {
	struct demand_record *record; /* held */
	uint32_t references; /* of nodes */
	int64_t after_ns; /* intervals that end before are in it already; it was restored */
	UT_hash_handle hh; /* by the record's text */
};

struct demand {
	struct demand_entry *hash;
	struct demand_entry **sorted; /* owned, as are its entries; the last `fresh` in no order */
	size_t count, fresh;
	struct view *view; /* held; NULL: none */
	struct demand_table *table; /* held; NULL: none */
	int64_t table_ns, first_ns; /* of the table; of the first one, 0: none */
};

/* --- records ---------------------------------------------------------------------------------- */

static size_t text_len(const struct demand_record *r)
{
	return strlen(r->key) + strlen(r->container) + 2;
}

static struct demand_record *record_new(const char *text, size_t len)
{
	struct demand_record *r = mem_zalloc(1, sizeof(*r) + len);

	atomic_init(&r->users, 1);
	memcpy(r->text, text, len);
	r->key = r->text;
	r->container = r->text + strlen(r->text) + 1;
	return r;
}

static void record_drop(struct demand_record *r)
{
	if (!r || !refs_drop(&r->users))
		return;
	free(r->cpu.weight);
	free(r);
}

static void copy_weights(struct demand_weights *to, const struct demand_weights *from)
{
	size_t size = from->room * (sizeof(double) + 1);

	*to = *from;
	if (!size)
		return;
	to->weight = mem_alloc(size);
	memcpy(to->weight, from->weight, size);
}

/* The entry's record, which nobody else holds then. */
static struct demand_record *writable(struct demand_entry *e)
{
	struct demand_record *old = e->record, *r;
	size_t len;

	if (atomic_load_explicit(&old->users, memory_order_acquire) == 1)
		return old;
	len = text_len(old);
	r = mem_alloc(sizeof(*r) + len);
	memcpy(r, old, sizeof(*r) + len);
	atomic_init(&r->users, 1);
	r->key = r->text;
	r->container = r->text + (old->container - old->text);
	copy_weights(&r->cpu, &old->cpu);
	e->hh.key = r->text;
	e->record = r;
	record_drop(old);
	return r;
}

static uint8_t *buckets_of(struct demand_weights *w)
{
	return (uint8_t *)(w->weight + w->room);
}

static void make_room(struct demand_weights *w)
{
	uint8_t old = w->room;

	if (w->count < old)
		return;
	w->room = (uint8_t)(old + WEIGHTS_STEP);
	w->weight = mem_realloc(w->weight, w->room * (sizeof(double) + 1));
	if (w->count)
		memmove(buckets_of(w), (uint8_t *)(w->weight + old), w->count);
}

static void add_weight(struct demand_weights *w, unsigned int bucket, double weight)
{
	uint8_t at = 0;

	while (at < w->count && demand_bucket(w, at) < bucket)
		at++;
	if (at < w->count && demand_bucket(w, at) == bucket) {
		w->weight[at] += weight;
		return;
	}
	make_room(w);
	memmove(w->weight + at + 1, w->weight + at, (w->count - at) * sizeof(double));
	memmove(buckets_of(w) + at + 1, buckets_of(w) + at, w->count - at);
	w->weight[at] = weight;
	buckets_of(w)[at] = (uint8_t)bucket;
	w->count++;
}

static double growth(const struct demand_record *r, int64_t at_ns)
{
	return exp2((double)(at_ns - r->epoch_ns) / HALF_LIFE_NS);
}

/* What a second at that time weighs. */
static double weight_at(struct demand_record *r, int64_t at_ns)
{
	double by;

	if ((double)(at_ns - r->epoch_ns) > HALF_LIVES_MOST * HALF_LIFE_NS) {
		by = 1 / growth(r, at_ns);
		for (uint8_t i = 0; i < r->cpu.count; i++)
			r->cpu.weight[i] *= by;
		r->samples *= by;
		r->periods *= by;
		r->throttled_periods *= by;
		r->epoch_ns = at_ns;
	}
	return growth(r, at_ns);
}

/* NULL: it is too old. */
static struct demand_day *day_of(struct demand_record *r, int64_t at_ns)
{
	int32_t day = (int32_t)(at_ns / DAY_NS);
	struct demand_day *d = &r->days[day % DEMAND_DAYS];

	if (d->day > day)
		return NULL;
	if (d->day != day)
		*d = (struct demand_day){.day = day};
	return d;
}

/* --- entries ---------------------------------------------------------------------------------- */

/* text: "KEY\0CONTAINER\0". NULL: there are too many. */
static struct demand_entry *find_or_add(struct demand *d, const char *text, size_t len,
					int64_t now_ns)
{
	struct demand_entry *e;

	HASH_FIND(hh, d->hash, text, len, e);
	if (e || d->count == DEMAND_RECORDS_MAX)
		return e;
	e = mem_zalloc(1, sizeof(*e));
	e->record = record_new(text, len);
	e->record->epoch_ns = now_ns;
	HASH_ADD_KEYPTR(hh, d->hash, e->record->text, len, e);
	ARRAY_ADD(d->sorted, d->count) = e;
	d->fresh++;
	return e;
}

static void forget(struct demand *d, struct demand_entry *e)
{
	/* It is in the hash, whose list uthash keeps. */
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference,clang-analyzer-unix.Malloc) */
	HASH_DEL(d->hash, e);
	record_drop(e->record);
	free(e);
}

void demand_release(struct demand_entry *e)
{
	if (e)
		e->references--;
}

struct demand *demand_new(void)
{
	return mem_zalloc(1, sizeof(struct demand));
}

void demand_free(struct demand *d)
{
	if (!d)
		return;
	HASH_CLEAR(hh, d->hash);
	for (size_t i = 0; i < d->count; i++) {
		record_drop(d->sorted[i]->record);
		free(d->sorted[i]);
	}
	free(d->sorted);
	demand_table_drop(d->table);
	view_drop(d->view);
	free(d);
}

void demand_see(struct demand *d, struct view *v)
{
	view_drop(d->view);
	d->view = view_hold(v);
}

/* --- intervals -------------------------------------------------------------------------------- */

static const struct kube_pod *find_pod(const struct view *v, const char *node, const char *uid)
{
	const struct view_node *n = v ? view_find(v, node) : NULL;

	for (size_t i = 0; n && i < n->pod_count; i++) {
		const struct view_pod *p = &n->pods[i];

		if (p->pod && strcmp(p->use ? p->use->uid : view_pod_uid(p), uid) == 0)
			return p->pod;
	}
	return NULL;
}

void demand_key_of(const struct kube_pod *pod, char key[WORKLOAD_KEY_MAX + 1])
{
	workload_key_of(pod, key);
	if (!*key)
		snprintf(key, WORKLOAD_KEY_MAX + 1, "%s/Pod/%s", pod->object.namespace,
			 pod->object.name);
}

/* "KEY\0CONTAINER\0" of a container in a pod; its length, 0: not known. */
static size_t name_container(const struct view *v, const char *node, const struct usage_ref *r,
			     char text[TEXT_MAX])
{
	const struct kube_pod *pod = find_pod(v, node, r->uid);
	char container[CONTAINER_NAME_MAX + 1];
	size_t len;

	if (!pod || !kube_pod_find_container(pod, r->id, container))
		return 0;
	demand_key_of(pod, text);
	len = strlen(text) + 1;
	memcpy(text + len, container, strlen(container) + 1);
	return len + strlen(container) + 1;
}

static_assert(ENTITY_NAME_MAX + 16 <= WORKLOAD_KEY_MAX,
	      "a unit's key has its kind and its whole name");

static size_t name_unit(const struct usage_ref *r, char text[TEXT_MAX])
{
	int len =
		snprintf(text, WORKLOAD_KEY_MAX + 1, "/%s/%s", entity_kind_name[r->kind], r->name);

	text[len + 1] = '\0';
	return (size_t)len + 2;
}

static struct demand_entry *find_entry(struct demand *d, const struct usage_node *n,
				       struct usage_ref *r, int64_t now_ns)
{
	char text[TEXT_MAX];
	size_t len;

	if (r->demand || (r->demand_tries >= TRIES_OFTEN && r->demand_tries++ % TRIES_SELDOM))
		return r->demand;
	r->demand_tries = r->demand_tries < TRIES_OFTEN ? r->demand_tries + 1 : TRIES_OFTEN;
	len = r->parent ? name_container(d->view, n->name, r, text) : name_unit(r, text);
	r->demand = len ? find_or_add(d, text, len, now_ns) : NULL;
	if (r->demand)
		r->demand->references++;
	return r->demand;
}

/* most: the bucket of the machine's whole capacity. */
static void count_cpu(struct demand_record *r, const struct interval *i, const struct entry *e,
		      unsigned int most, double weight)
{
	struct demand_reader reader = demand_read(interval_demand(i, e), e->demand_len);
	double samples = 0, each;

	while (demand_next(&reader))
		samples += reader.count;
	each = weight * (double)e->usage.seconds / samples;
	reader = demand_read(interval_demand(i, e), e->demand_len);
	while (demand_next(&reader))
		add_weight(&r->cpu, reader.index < most ? reader.index : most, each * reader.count);
	r->samples += samples * weight;
}

static void count_start(struct demand_day *day, const struct interval *i, const struct entry *e)
{
	struct demand_reader reader = demand_read(interval_demand(i, e), e->demand_len);
	double milli = 0;

	while (demand_next(&reader))
		;
	if (reader.index)
		milli = fmin(HISTOGRAM_CPU_X0 * pow(HISTOGRAM_GROWTH, reader.index - 0.5),
			     (double)i->node.cpu_capacity_milli);
	day->start_milli = fmaxf(day->start_milli, (float)milli);
}

static void count_memory(struct demand_day *day, const struct usage *u, int64_t limit_bytes)
{
	float peak = u->have & USAGE_WORKING_SET ? u->working_set_bytes.max
		     : u->have & USAGE_MEMORY	 ? u->mem_bytes.max
						 : 0;

	day->peak_bytes = fmaxf(day->peak_bytes, peak);
	if (!(u->have & USAGE_OOM) || !u->oom_kills)
		return;
	day->oom_kills += (uint32_t)u->oom_kills;
	/* Negative: none, or not known. */
	day->oom_limit_bytes = fmaxf(day->oom_limit_bytes, (float)limit_bytes);
}

static void count_interval(struct demand_entry *to, const struct interval *i, const struct entry *e,
			   const struct kernel_limits *limits, unsigned int most)
{
	const struct usage *u = &e->usage;
	struct demand_record *r;
	struct demand_day *day;
	double weight;

	if (i->end_ns <= to->after_ns || usage_aside(u, USAGE_CPU) || !(u->seconds > 0))
		return;
	r = writable(to);
	weight = weight_at(r, i->end_ns);
	day = day_of(r, i->end_ns);
	if (!e->starting)
		count_cpu(r, i, e, most, weight);
	else if (day)
		count_start(day, i, e);
	if (day)
		count_memory(day, u, limits->mem_bytes);
	if (u->have & USAGE_THROTTLE) {
		r->periods += (double)u->periods * weight;
		r->throttled_periods += (double)u->throttled_periods * weight;
	}
	/* Pods beside each other are measured in the same time. */
	if (i->end_ns > r->seen_ns) {
		r->measured_ns += i->end_ns - (i->start_ns > r->seen_ns ? i->start_ns : r->seen_ns);
		r->seen_ns = i->end_ns;
	}
}

void demand_apply(struct demand *d, struct usage_node *n, const struct interval *interval)
{
	unsigned int most =
		histogram_bucket((double)interval->node.cpu_capacity_milli * USAGE_CPU_TOLERANCE,
				 HISTOGRAM_CPU_X0);

	for (size_t i = 0; i < n->ref_count; i++) {
		struct usage_ref *r = &n->refs[i];
		const struct entry *e = &interval->entries[r->use];
		struct demand_entry *to;

		if (!r->current || !e->demand_len)
			continue;
		to = find_entry(d, n, r, interval->end_ns);
		if (to)
			count_interval(to, interval, e, r->limits, most);
	}
}

/* --- tables ----------------------------------------------------------------------------------- */

static int compare_entries(const void *left, const void *right)
{
	const struct demand_record *a = (*(struct demand_entry *const *)left)->record;
	const struct demand_record *b = (*(struct demand_entry *const *)right)->record;

	return strcmp(a->key, b->key) ?: strcmp(a->container, b->container);
}

static struct demand_table *make_table(struct demand *d, int64_t now_ns)
{
	struct demand_table *t;
	size_t count = 0;

	if (d->fresh)
		qsort(d->sorted, d->count, sizeof(struct demand_entry *), compare_entries);
	d->fresh = 0;
	for (size_t i = 0; i < d->count; i++) {
		struct demand_entry *e = d->sorted[i];

		if (!e->references && now_ns - e->record->seen_ns > DEMAND_KEEP_DAYS * DAY_NS)
			forget(d, e);
		else
			d->sorted[count++] = e;
	}
	d->count = count;
	if (!count)
		return NULL;
	t = mem_alloc(sizeof(*t) + count * sizeof(struct demand_record *));
	atomic_init(&t->users, 1);
	t->count = count;
	for (size_t i = 0; i < count; i++) {
		t->of[i] = d->sorted[i]->record;
		refs_hold(&t->of[i]->users);
	}
	return t;
}

struct demand_table *demand_table(struct demand *d, int64_t now_ns)
{
	int64_t age_ns = now_ns - d->table_ns, keep_ns = (now_ns - d->first_ns) / 4;

	/* Of a young aggregator most containers come after the first ones. */
	if (!d->table || age_ns >= (keep_ns < TABLE_NS ? keep_ns : TABLE_NS) || age_ns < 0) {
		demand_table_drop(d->table);
		d->table = make_table(d, now_ns);
		d->table_ns = now_ns;
		if (!d->first_ns && d->table)
			d->first_ns = now_ns;
	}
	if (d->table)
		refs_hold(&d->table->users);
	return d->table;
}

void demand_table_drop(struct demand_table *t)
{
	if (!t || !refs_drop(&t->users))
		return;
	for (size_t i = 0; i < t->count; i++)
		record_drop(t->of[i]);
	free(t);
}

/* --- as JSON ---------------------------------------------------------------------------------- */

static void write_weights(struct jsonw *w, const char *key, const struct demand_weights *of,
			  double by)
{
	if (!of->count)
		return;
	jsonw_key_array(w, key);
	for (uint8_t i = 0; i < of->count; i++) {
		jsonw_uint(w, demand_bucket(of, i));
		jsonw_fixed(w, of->weight[i] * by, 3);
	}
	jsonw_array_close(w);
}

static void write_oom_limits(struct jsonw *w, const struct demand_record *r)
{
	bool opened = false;

	for (int i = 0; i < DEMAND_DAYS; i++) {
		if (!(r->days[i].oom_limit_bytes > 0))
			continue;
		if (!opened)
			jsonw_key_array(w, "oomLimits");
		opened = true;
		jsonw_int(w, r->days[i].day);
		jsonw_fixed(w, (double)r->days[i].oom_limit_bytes, 0);
	}
	if (opened)
		jsonw_array_close(w);
}

static void write_record(struct jsonw *w, const struct demand_record *r)
{
	double by = 1 / growth(r, r->seen_ns);

	jsonw_object_open(w);
	jsonw_key_string(w, "key", r->key);
	jsonw_key_string(w, "container", r->container);
	jsonw_key_int(w, "seen", r->seen_ns / SECOND_NS);
	jsonw_key_int(w, "measuredSeconds", r->measured_ns / SECOND_NS);
	jsonw_key_fixed(w, "samples", r->samples * by, 3);
	jsonw_key_fixed(w, "periods", r->periods * by, 3);
	jsonw_key_fixed(w, "throttledPeriods", r->throttled_periods * by, 3);
	write_weights(w, "cpu", &r->cpu, by);
	jsonw_key_array(w, "days");
	for (int i = 0; i < DEMAND_DAYS; i++) {
		if (!r->days[i].day)
			continue;
		jsonw_int(w, r->days[i].day);
		jsonw_fixed(w, (double)r->days[i].peak_bytes, 0);
		jsonw_uint(w, r->days[i].oom_kills);
		jsonw_fixed(w, (double)r->days[i].start_milli, 0);
	}
	jsonw_array_close(w);
	write_oom_limits(w, r);
	jsonw_object_close(w);
}

void demand_write(const struct demand_table *t, int shard, struct jsonw *w)
{
	jsonw_array_open(w);
	for (size_t i = 0; t && i < t->count; i++) {
		const struct demand_record *r = t->of[i];
		uint64_t hash = hash_bytes(HASH_BEGIN, r->key, strlen(r->key));

		if (shard < 0 || hash % DEMAND_SHARDS == (unsigned int)shard)
			write_record(w, r);
	}
	jsonw_array_close(w);
}

static bool read_number(const cJSON *number, double most, double *out)
{
	if (!cJSON_IsNumber(number) || !(number->valuedouble >= 0 && number->valuedouble <= most))
		return false;
	*out = number->valuedouble;
	return true;
}

static bool read_amount(const cJSON *item, const char *name, double *out)
{
	return read_number(cJSON_GetObjectItemCaseSensitive(item, name), AMOUNT_MAX, out);
}

static const char *read_text(const cJSON *item, const char *name, size_t most)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, name));
	size_t len = text ? strlen(text) : 0;

	return text && len <= most && utf8_is_valid(text, len) ? text : NULL;
}

static bool read_weights(const cJSON *list, struct demand_weights *to)
{
	int last = -1;

	for (const cJSON *at = list ? list->child : NULL; at; at = at->next->next) {
		double bucket, weight;

		if (!at->next || !read_number(at, HISTOGRAM_BUCKETS - 1, &bucket) ||
		    !read_number(at->next, AMOUNT_MAX, &weight) || bucket != floor(bucket) ||
		    (int)bucket <= last)
			return false;
		last = (int)bucket;
		if (weight > 0)
			add_weight(to, (unsigned int)bucket, weight);
	}
	return true;
}

static bool read_days(const cJSON *list, struct demand_record *r)
{
	static const double most[] = {INT32_MAX, AMOUNT_MAX, UINT32_MAX, AMOUNT_MAX};
	const cJSON *at = list ? list->child : NULL;
	struct demand_day *to;
	double number[4];

	while (at) {
		for (int i = 0; i < 4; i++, at = at->next)
			if (!at || !read_number(at, most[i], &number[i]))
				return false;
		to = &r->days[(int32_t)number[0] % DEMAND_DAYS];
		if (to->day < (int32_t)number[0])
			*to = (struct demand_day){(int32_t)number[0], (uint32_t)number[2],
						  (float)number[1], (float)number[3], 0};
	}
	return true;
}

/* Of the days that were read before. */
static bool read_oom_limits(const cJSON *list, struct demand_record *r)
{
	for (const cJSON *at = list ? list->child : NULL; at; at = at->next->next) {
		double day, bytes;
		struct demand_day *to;

		if (!at->next || !read_number(at, INT32_MAX, &day) ||
		    !read_number(at->next, AMOUNT_MAX, &bytes))
			return false;
		to = &r->days[(int32_t)day % DEMAND_DAYS];
		if (to->day == (int32_t)day)
			to->oom_limit_bytes = (float)bytes;
	}
	return true;
}

/* The caller drops it; NULL: it is none. */
static struct demand_record *read_record(const cJSON *item)
{
	const char *key = read_text(item, "key", WORKLOAD_KEY_MAX),
		   *container = read_text(item, "container", CONTAINER_NAME_MAX);
	double seen, measured;
	struct demand_record *r;
	char *text;

	if (!key || !*key || !container || !read_amount(item, "seen", &seen) || seen > 9e9 ||
	    !read_amount(item, "measuredSeconds", &measured) || measured > 9e9)
		return NULL;
	text = mem_printf("%s%c%s", key, '\n', container);
	text[strlen(key)] = '\0';
	r = record_new(text, strlen(key) + strlen(container) + 2);
	free(text);
	r->seen_ns = r->epoch_ns = (int64_t)seen * SECOND_NS;
	r->measured_ns = (int64_t)measured * SECOND_NS;
	if (read_amount(item, "samples", &r->samples) &&
	    read_amount(item, "periods", &r->periods) &&
	    read_amount(item, "throttledPeriods", &r->throttled_periods) &&
	    read_weights(cJSON_GetObjectItemCaseSensitive(item, "cpu"), &r->cpu) &&
	    read_days(cJSON_GetObjectItemCaseSensitive(item, "days"), r) &&
	    read_oom_limits(cJSON_GetObjectItemCaseSensitive(item, "oomLimits"), r))
		return r;
	record_drop(r);
	return NULL;
}

/* A record that is there has newer samples, which stay. */
static void take_record(struct demand *d, struct demand_record *r)
{
	size_t before = d->count;
	struct demand_entry *e = find_or_add(d, r->text, text_len(r), r->epoch_ns);

	if (!e || d->count == before) {
		record_drop(r);
		return;
	}
	record_drop(e->record);
	e->record = r;
	e->hh.key = r->text;
	e->after_ns = r->seen_ns;
}

int demand_read_records(struct demand *d, const cJSON *list, struct error *error)
{
	const cJSON *item;
	struct demand_record *r;
	size_t index = 0;
	bool good = cJSON_IsArray(list);

	if (!good)
		error_set(error, "demand: must be a list");
	for (item = good ? list->child : NULL; good && item; item = item->next, index++) {
		r = read_record(item);
		good = r;
		record_drop(r);
		if (!good)
			error_set(error,
				  "demand[%zu]: is no record with key, container, times, "
				  "amounts, rising buckets and days",
				  index);
	}
	for (item = good ? list->child : NULL; item; item = item->next)
		take_record(d, read_record(item));
	demand_table_drop(d->table);
	d->table = NULL;
	return good ? 0 : -EINVAL;
}

int demand_read_text(struct demand *d, const char *text, size_t len, struct error *error)
{
	cJSON *list = cJSON_ParseWithLength(text, len);
	int rc = demand_read_records(d, list, error);

	cJSON_Delete(list);
	return rc;
}
