/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks each quota object by itself, then beside the others of its namespace and its ResourceQuotas, and
 * all guarantees together against the capacity of the nodes. A quota that does not count (the second in
 * its namespace) is checked, too: it may be the intended one. Objects that object_read() refused are
 * known only by number and last error of the model's source.
 *
 * Severities: an error is a guarantee that cannot be kept, or an object that does not do what it says;
 * a warning does what it says, which is hardly what the author meant; an info explains the rules.
 */
#include "aggregator/policy/quota/lint.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/quota/quota_annotations.h"
#include "aggregator/policy/quota/quota_internal.h"
#include "shared/array.h"
#include "shared/document.h"
#include "shared/mem.h"

/* --- the table */

static const struct quota_lint_kind kinds[QUOTA_LINT_CODES] = {
#define X(name, text, level, told) {(text), (told), QUOTA_LINT_##level},
	QUOTA_LINTS(X)
#undef X
};

const struct quota_lint_kind *quota_lint_kind(enum quota_lint_code c)
{
	return &kinds[c];
}

const char *quota_severity_name(enum quota_severity s)
{
	static const char *const names[QUOTA_SEVERITIES] = {
		[QUOTA_LINT_ERROR] = "error",
		[QUOTA_LINT_WARNING] = "warning",
		[QUOTA_LINT_INFO] = "info",
	};

	return names[s];
}

/* --- findings */

struct lint {
	const struct view *view;
	const struct quota_book *book;
	bool upstream;
	struct resources capacity, ready; /* of all nodes; of ready and uncordoned nodes */
	struct resources guaranteed; /* by all quotas that count */
	struct quota_findings *out;
};

static const enum resource_id main_ids[] = {RESOURCE_CPU, RESOURCE_MEMORY};

enum { MAIN = sizeof(main_ids) / sizeof(main_ids[0]) };

/* The subject of a finding; all but kind may be NULL. */
struct about {
	const char *kind, *namespace, *name;
	const char *part, *resource; /* "spec.min", "cpu" */
	int64_t value, bound;
};

__attribute__((format(printf, 4, 5))) static void found(struct lint *l, enum quota_lint_code code,
							struct about a, const char *format, ...)
{
	struct quota_findings *out = l->out;
	struct quota_finding *f;
	char text[1024];

	out->by_severity[kinds[code].severity]++;
	if (out->count == QUOTA_FINDINGS_MAX) {
		out->dropped++;
		return;
	}
	out->of = array_grow(out->of, out->count, sizeof(*out->of));
	MEM_FORMAT(text, sizeof(text), format);
	f = &out->of[out->count++];
	*f = (struct quota_finding){
		.code = code,
		.kind = a.kind,
		.namespace = mem_strdup(a.namespace ? a.namespace : ""),
		.name = mem_strdup(a.name ? a.name : ""),
		.field = a.part && a.resource ? mem_printf("%s.%s", a.part, a.resource)
					      : mem_strdup(a.part ? a.part : ""),
		.resource = mem_strdup(a.resource ? a.resource : ""),
		.value = a.value,
		.bound = a.bound,
		.text = mem_strdup(text),
	};
}

static struct about about_quota(const struct kube_quota *q, const char *part, const char *resource,
				int64_t value, int64_t bound)
{
	return (struct about){
		"ElasticQuota", q->object.namespace, q->object.name, part, resource, value, bound};
}

/* --- one quota by itself */

/* Upstream counts no pods: no request has that key. */
static bool is_counted(const struct lint *l, const char *name)
{
	static const char *const prefixes[] = {"requests.", "limits.", "count/"};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return false;
	if (strcmp(name, "pods") == 0)
		return !l->upstream;
	return resource_is_limited(name);
}

/* Of min or max. */
static void check_name(struct lint *l, const struct kube_quota *q, const char *part,
		       const char *name, int64_t amount)
{
	const struct about a = about_quota(q, part, name, amount, 0);
	int64_t other;

	if (!is_counted(l, name))
		found(l, QUOTA_LINT_CODE_NOT_REQUESTED, a,
		      "no pod requests \"%.200s\", so it bounds and guarantees nothing%s", name,
		      strncmp(name, "requests.", 9) == 0
			      ? ": an ElasticQuota names what a ResourceQuota calls requests.cpu "
				"just cpu"
			      : "; a ResourceQuota can bound it");
	else if (amount > 0 && view_knows(l->view, OBJECT_NODE) &&
		 !resources_find(&l->capacity, name, &other))
		found(l, QUOTA_LINT_CODE_NO_SUCH_RESOURCE, a,
		      "no node of the cluster has any %.200s", name);
}

static void check_min(struct lint *l, const struct kube_quota *q)
{
	const char *name;
	int64_t min, max;

	for (size_t at = 0; resources_next(&q->min, &at, &name, &min);) {
		bool bounded = resources_find(&q->max, name, &max);
		bool zero = l->upstream && !strchr(name, '/');

		check_name(l, q, "spec.min", name, min);
		if (bounded && min > max)
			found(l, QUOTA_LINT_CODE_MIN_OVER_MAX,
			      about_quota(q, "spec.min", name, min, max),
			      "%.200s: min %s is above max %s, and what is above max is never had",
			      name, quota_amount_text(name, min).text,
			      quota_amount_text(name, max).text);
		if (q->has_max && !bounded && min != 0 && !zero && is_counted(l, name))
			found(l, QUOTA_LINT_CODE_NOT_BOUNDED,
			      about_quota(q, "spec.max", name, min, 0),
			      "min guarantees %s of %.200s and max does not name it: any amount "
			      "more may be borrowed",
			      quota_amount_text(name, min).text, name);
	}
}

/* Pods that request a resource with a max of 0 are refused, which may be the intention. */
static void check_max(struct lint *l, const struct kube_quota *q)
{
	const char *name;
	int64_t max;

	for (size_t at = 0; resources_next(&q->max, &at, &name, &max);) {
		check_name(l, q, "spec.max", name, max);
		if (max == 0 && is_counted(l, name))
			found(l, QUOTA_LINT_CODE_ZERO_MAX, about_quota(q, "spec.max", name, 0, 0),
			      "max of %.200s is 0: no pod that requests any starts", name);
	}
}

/* Upstream counts these as 0 if a map does not name them. */
static void check_unnamed_is_zero(struct lint *l, const struct kube_quota *q)
{
	for (size_t i = 0; q->has_max && i < MAIN; i++) {
		const char *name = resource_name(main_ids[i]);

		if (!resources_has(&q->max, main_ids[i]))
			found(l, QUOTA_LINT_CODE_UNNAMED_IS_ZERO,
			      about_quota(q, "spec.max", name, 0, 0),
			      "max does not name %s, which upstream reads as 0: no pod that "
			      "requests any %s starts",
			      name, name);
	}
}

/* Resources that others are guaranteed; a max of 0 has its own finding. */
static void check_not_guaranteed(struct lint *l, const struct kube_quota *q)
{
	int64_t sum, min, max;
	const char *name;

	for (size_t at = 0; resources_next(&l->guaranteed, &at, &name, &sum);) {
		bool bounded = resources_find(&q->max, name, &max);

		if (!sum || !is_counted(l, name) || (bounded && !max) ||
		    (resources_find(&q->min, name, &min) && min))
			continue;
		found(l, QUOTA_LINT_CODE_NOT_GUARANTEED,
		      about_quota(q, "spec.min", name, 0, bounded ? max : sum),
		      bounded ? "min guarantees no %.200s: all of max %s is borrowed from those "
				"who have it guaranteed"
			      : "min guarantees no %.200s: all that its pods request is borrowed "
				"of the %s that others are guaranteed",
		      name, quota_amount_text(name, bounded ? max : sum).text);
	}
}

static void check_annotations(struct lint *l, const struct kube_quota *q)
{
	struct quota_annotation_notes notes;
	struct quota_annotations read;

	if (!quota_annotations_read(&q->annotations, &read, &notes))
		return;
	for (int i = 0; i < QUOTA_ANNOTATIONS; i++) {
		const char *key = quota_annotation_key((enum quota_annotation)i);
		char *field = mem_printf("metadata.annotations[%s]", key);

		if (notes.of[i].text[0])
			found(l, QUOTA_LINT_CODE_BAD_ANNOTATION, about_quota(q, field, NULL, 0, 0),
			      "%s: %s", key, notes.of[i].text);
		free(field);
	}
}

static bool is_empty(const struct resources *r)
{
	return !r->has && !r->extended_count;
}

static void check_quota(struct lint *l, const struct kube_quota *q)
{
	if (is_empty(&q->min) && is_empty(&q->max))
		found(l, QUOTA_LINT_CODE_NO_BOUNDS, about_quota(q, "spec", NULL, 0, 0),
		      "neither min nor max names a resource: nothing is guaranteed, and nothing "
		      "bounded");
	check_annotations(l, q);
	check_min(l, q);
	check_max(l, q);
	if (l->upstream)
		check_unnamed_is_zero(l, q);
}

/* --- beside others of its namespace */

/* All quotas of one namespace, of[0] to of[count - 1], of which `first` counts. */
static void check_duplicates(struct lint *l, struct object *const *of, size_t count,
			     const struct kube_quota *first)
{
	for (size_t i = 0; i < count; i++) {
		const struct kube_quota *q = (const struct kube_quota *)of[i];

		if (q != first)
			found(l, QUOTA_LINT_CODE_DUPLICATE, about_quota(q, NULL, NULL, 0, 0),
			      "does not count: %.63s/%.200s is there, too, and is %s",
			      q->object.namespace, first->object.name,
			      quota_is_older(first, q) ? "older"
						       : "the first by name of equally old ones");
	}
}

/* A ResourceQuota with scopes bounds only some pods. */
static bool has_scopes(const struct object *resource_quota)
{
	cJSON *json = cJSON_Parse(resource_quota->text);
	bool scoped = cJSON_GetArraySize(document_at(json, "spec.scopes")) > 0 ||
		      cJSON_IsObject(document_at(json, "spec.scopeSelector"));

	cJSON_Delete(json);
	return scoped;
}

static void compare_with_hard(struct lint *l, const struct kube_quota *q, const char *part,
			      enum quota_lint_code code, const struct resources *amounts,
			      const struct kube_quota *hard)
{
	int64_t amount, bound;
	const char *name;

	for (size_t at = 0; resources_next(amounts, &at, &name, &amount);)
		if (is_counted(l, name) && resources_find(&hard->max, name, &bound) &&
		    amount > bound)
			found(l, code, about_quota(q, part, name, amount, bound),
			      "%.200s: %s %s is above hard %s of ResourceQuota %.200s, which no "
			      "pod gets past",
			      name, part + strlen("spec."), quota_amount_text(name, amount).text,
			      quota_amount_text(name, bound).text, hard->object.name);
}

static void check_hard(struct lint *l, struct object *const *of, size_t count)
{
	const struct object_table *hards = l->view->cluster->tables[OBJECT_RESOURCE_QUOTA];
	const char *namespace = of[0]->namespace;

	for (size_t k = quota_view_find(hards, namespace); k < hards->count; k++) {
		const struct kube_quota *hard = (const struct kube_quota *)hards->of[k];

		if (strcmp(hards->of[k]->namespace, namespace) != 0)
			break;
		if (has_scopes(hards->of[k]))
			continue;
		for (size_t i = 0; i < count; i++) {
			const struct kube_quota *q = (const struct kube_quota *)of[i];

			compare_with_hard(l, q, "spec.min", QUOTA_LINT_CODE_MIN_OVER_HARD, &q->min,
					  hard);
			compare_with_hard(l, q, "spec.max", QUOTA_LINT_CODE_MAX_OVER_HARD, &q->max,
					  hard);
		}
	}
}

/* --- all together */

static void check_sum(struct lint *l, enum quota_lint_code code, const char *name, int64_t sum,
		      int64_t have, const char *whose)
{
	found(l, code,
	      (struct about){.kind = "Cluster", .resource = name, .value = sum, .bound = have},
	      "%.200s: %s is guaranteed by all quotas together and %s allocatable on %s: %s too "
	      "much",
	      name, quota_amount_text(name, sum).text, quota_amount_text(name, have).text, whose,
	      quota_amount_text(name, sum - have).text);
}

static void check_sums(struct lint *l)
{
	int64_t sum, have, ready;
	const char *name;

	if (!view_knows(l->view, OBJECT_NODE))
		return;
	for (size_t at = 0; resources_next(&l->guaranteed, &at, &name, &sum);) {
		if (!resources_find(&l->capacity, name, &have) || !is_counted(l, name))
			continue;
		ready = resources_amount(&l->ready, name);
		if (sum > have)
			check_sum(l, QUOTA_LINT_CODE_SUM_OVER_CAPACITY, name, sum, have,
				  "all nodes");
		else if (sum > ready)
			check_sum(l, QUOTA_LINT_CODE_SUM_OVER_READY, name, sum, ready,
				  "nodes that are ready and not cordoned");
	}
}

/* --- what quotas do not cover */

/* Requests of bound pods of namespaces without a quota. */
static int64_t held_without_quota(const struct lint *l, const char *name)
{
	const struct namespace_table *t = l->view->namespaces;
	int64_t held = 0, amount;

	for (size_t i = 0; t && i < t->count; i++)
		if (resources_find(&t->of[i].bound, name, &amount) &&
		    !quota_book_find(l->book, t->of[i].name) &&
		    __builtin_add_overflow(held, amount, &held))
			held = INT64_MAX;
	return held;
}

static void tell_held(struct lint *l, const struct quota *q, const char *name, int64_t min,
		      int64_t held, int64_t have)
{
	found(l, QUOTA_LINT_CODE_HELD_WITHOUT_QUOTA,
	      (struct about){"ElasticQuota", q->namespace, q->name, "spec.min", name, held, have},
	      "%.200s: min %s of %.63s cannot be met: pods without a quota hold %s of %s, and "
	      "preemption does not take them",
	      name, quota_amount_text(name, min).text, q->namespace,
	      quota_amount_text(name, held).text, quota_amount_text(name, have).text);
}

/* Usage of others within their own min does not come back either. */
static void check_held_of(struct lint *l, const char *name, int64_t have)
{
	int64_t held = held_without_quota(l, name), kept = 0, min, max, used;
	size_t count = held ? quota_book_count(l->book) : 0;

	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < count; i++) {
			const struct quota *q = quota_book_at(l->book, i);
			int64_t within;

			quota_bounds(l->book, q->namespace, name, &min, &max);
			used = resources_amount(&q->used, name);
			within = used < min ? used : min;
			if (pass == 0 && __builtin_add_overflow(kept, within, &kept))
				return;
			if (pass == 1 && min > 0 &&
			    (__int128)min - within > (__int128)have - held - kept)
				tell_held(l, q, name, min, held, have);
		}
}

static void check_held(struct lint *l)
{
	const char *name;
	int64_t sum, have;

	if (!view_knows(l->view, OBJECT_NODE) || !view_knows(l->view, OBJECT_POD) || l->upstream)
		return;
	for (size_t at = 0; resources_next(&l->guaranteed, &at, &name, &sum);)
		if (sum && resources_find(&l->capacity, name, &have) &&
		    strcmp(name, resource_name(RESOURCE_PODS)) != 0)
			check_held_of(l, name, have);
}

static void check_guaranteed(struct lint *l)
{
	for (size_t i = 0; l->upstream && quota_book_count(l->book) && i < MAIN; i++) {
		const char *name = resource_name(main_ids[i]);

		if (l->guaranteed.of[main_ids[i]] == 0)
			found(l, QUOTA_LINT_CODE_NOTHING_GUARANTEED,
			      (struct about){.kind = "Cluster", .resource = name},
			      "%s: no quota guarantees any, so that upstream refuses every pod "
			      "with a quota that requests some",
			      name);
	}
}

/* The sources list unreadable objects, which the model does not have. */
static void check_unreadable(struct lint *l)
{
	static const enum object_kind read[] = {OBJECT_ELASTIC_QUOTA, OBJECT_RESOURCE_QUOTA};

	for (size_t k = 0; k < sizeof(read) / sizeof(read[0]); k++) {
		const struct unreadables *u = &l->view->cluster->sources[read[k]].unreadable;
		const char *kind = object_kind_name(read[k]);

		for (uint32_t i = 0; i < u->count; i++)
			found(l, QUOTA_LINT_CODE_UNREADABLE,
			      (struct about){.kind = kind,
					     .namespace = u->of[i].namespace,
					     .name = u->of[i].name},
			      "is left out: %s", u->of[i].why);
		if (u->more)
			found(l, QUOTA_LINT_CODE_UNREADABLE, (struct about){.kind = kind},
			      "more are left out than the %u that are named", u->count);
	}
}

/* --- pods that quotas do not see */

struct unseen {
	uint32_t pods, without[MAIN];
};

static void count_pod(const struct lint *l, const struct kube_pod *p, struct unseen *counts)
{
	size_t at;

	if (!p || !kube_pod_is_active(p))
		return;
	at = quota_book_index(l->book, p->object.namespace);
	if (at == quota_book_count(l->book))
		return;
	counts[at].pods++;
	for (size_t i = 0; i < MAIN; i++)
		counts[at].without[i] += kube_pod_requests(p)->of[main_ids[i]] == 0;
}

static void count_pods(const struct lint *l, struct unseen *counts)
{
	const struct object_table *pending = l->view->cluster->tables[OBJECT_POD];
	const struct view *v = l->view;

	for (size_t i = 0; i < v->node_count; i++)
		for (size_t k = 0; k < v->nodes[i]->pod_count; k++)
			count_pod(l, v->nodes[i]->pods[k].pod, counts);
	for (size_t i = 0; i < pending->count; i++)
		count_pod(l, (const struct kube_pod *)pending->of[i], counts);
}

static void check_unseen(struct lint *l, const struct quota *q, const struct unseen *u)
{
	for (size_t i = 0; i < MAIN; i++) {
		const char *name = resource_name(main_ids[i]);

		if (u->without[i] &&
		    (resources_has(&q->min, main_ids[i]) || resources_has(&q->max, main_ids[i])))
			found(l, QUOTA_LINT_CODE_NO_REQUESTS,
			      (struct about){.kind = "ElasticQuota",
					     .namespace = q->namespace,
					     .name = q->name,
					     .resource = name,
					     .value = u->without[i],
					     .bound = u->pods},
			      "%u of %u pods request no %s: what they use of it is in no quota",
			      u->without[i], u->pods, name);
	}
}

static void check_pods(struct lint *l)
{
	size_t count = quota_book_count(l->book);
	struct unseen *counts;

	if (!count || !view_knows(l->view, OBJECT_POD))
		return;
	counts = mem_zalloc(count, sizeof(*counts));
	count_pods(l, counts);
	for (size_t i = 0; i < count; i++)
		check_unseen(l, quota_book_at(l->book, i), &counts[i]);
	free(counts);
}

/* --- everything */

static void check_namespaces(struct lint *l)
{
	const struct object_table *quotas = l->view->cluster->tables[OBJECT_ELASTIC_QUOTA];

	for (size_t at = 0, end = 0; at < quotas->count; at = end) {
		const struct kube_quota *first = quota_view_next(quotas, &end);

		for (size_t i = at; i < end; i++)
			check_quota(l, (const struct kube_quota *)quotas->of[i]);
		check_not_guaranteed(l, first);
		check_duplicates(l, quotas->of + at, end - at, first);
		check_hard(l, quotas->of + at, end - at);
	}
}

static int compare_findings(const void *one, const void *two)
{
	const struct quota_finding *a = one, *b = two;

	return strcmp(a->namespace, b->namespace)
		?: strcmp(a->name, b->name)
		?: COMPARE(kinds[a->code].severity, kinds[b->code].severity)
		?: COMPARE(a->code, b->code)
		?: strcmp(a->field, b->field)
		?: strcmp(a->kind, b->kind)
		?: strcmp(a->text, b->text);
}

void quota_lint(const struct view *v, const struct quota_book *b, const struct quota_options *o,
		struct quota_findings *out)
{
	struct lint l = {
		.view = v,
		.book = b,
		.upstream = o->variant == QUOTA_UPSTREAM,
		.out = out,
	};

	*out = (struct quota_findings){0};
	if (!v->cluster)
		return;
	quota_capacity_of(v, false, &l.capacity);
	quota_capacity_of(v, true, &l.ready);
	for (size_t i = 0; i < quota_book_count(b); i++)
		resources_add(&l.guaranteed, &quota_book_at(b, i)->min);
	check_unreadable(&l);
	check_sums(&l);
	check_guaranteed(&l);
	check_held(&l);
	check_namespaces(&l);
	check_pods(&l);
	array_sort(out->of, out->count, sizeof(*out->of), compare_findings);
	resources_fini(&l.capacity);
	resources_fini(&l.ready);
	resources_fini(&l.guaranteed);
}

void quota_findings_fini(struct quota_findings *f)
{
	for (size_t i = 0; i < f->count; i++) {
		free(f->of[i].namespace);
		free(f->of[i].name);
		free(f->of[i].field);
		free(f->of[i].resource);
		free(f->of[i].text);
	}
	free(f->of);
	*f = (struct quota_findings){0};
}
