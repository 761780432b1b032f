/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is used after a story of quotas and pods that come, change and go.
 *
 *   upstream   the plugin counts on: each event adds to or takes from a quota that is there, as its requests are then. The runner keeps what the plugin keeps
 *              beside the sums, the uids that count, and the objects that its lister would find; the sums are a book's.
 *   corrected  the same story is told to the cluster model, and the book is made of what is there at the end
 */
#include <stdlib.h>
#include <string.h>

#include "aggregator/state/join.h"
#include "shared/mem.h"
#include "tests/conformance/quota_values.h"
#include "tests/quota_fixture.h"

enum { UIDS_MAX = 64, QUOTAS_MAX = 16 };

/* --- upstream --------------------------------------------------------------------------------- */

struct cache {
	struct quota_book *book;
	size_t uids, quotas;
	struct {
		const char *namespace, *uid;
	} uid[UIDS_MAX];
	const cJSON *quota[QUOTAS_MAX]; /* the objects there are, oldest first */
};

static const char *text(const cJSON *c, const char *key)
{
	const char *value = cJSON_GetStringValue(values_get(c, key));

	return value ? value : "";
}

/* The place of the uid among those that count, or `uids`. */
static size_t find_uid(const struct cache *k, const cJSON *pod)
{
	size_t at = 0;

	while (at < k->uids && (strcmp(k->uid[at].uid, text(pod, "uid")) != 0 ||
				strcmp(k->uid[at].namespace, text(pod, "namespace")) != 0))
		at++;
	return at;
}

static void forget_uids(struct cache *k, const char *namespace)
{
	size_t kept = 0;

	for (size_t i = 0; i < k->uids; i++)
		if (strcmp(k->uid[i].namespace, namespace) != 0)
			k->uid[kept++] = k->uid[i];
	k->uids = kept;
}

static bool change_used(struct cache *k, const cJSON *pod, bool add, struct error *error)
{
	struct resources r;
	bool read = quota_values_amounts(values_get(pod, "request"), &r, error);

	if (read && add)
		quota_book_add(k->book, text(pod, "namespace"), &r);
	else if (read)
		quota_book_subtract(k->book, text(pod, "namespace"), &r);
	resources_fini(&r);
	return read;
}

static bool count_pod(struct cache *k, const cJSON *pod, struct error *error)
{
	size_t at = find_uid(k, pod);

	if (at < k->uids || !quota_book_find(k->book, text(pod, "namespace")))
		return true;
	if (k->uids == UIDS_MAX) {
		values_fail(error, "there are more pods than this runner holds");
		return false;
	}
	k->uid[at].namespace = text(pod, "namespace");
	k->uid[at].uid = text(pod, "uid");
	k->uids++;
	return change_used(k, pod, true, error);
}

static bool uncount_pod(struct cache *k, const cJSON *pod, struct error *error)
{
	size_t at = find_uid(k, pod);

	if (at == k->uids)
		return true;
	k->uid[at] = k->uid[--k->uids];
	return change_used(k, pod, false, error);
}

static bool put_quota(struct cache *k, const cJSON *c, bool update, struct error *error)
{
	struct quota q;
	bool read = quota_values_quota(c, "", &q, error);

	if (read && !quota_fixture_insert(k->book, &q) && update)
		quota_fixture_set_bounds(k->book, &q);
	quota_values_free(&q);
	return read;
}

/* A pod of a namespace that has no entry makes one of the first quota that is listed. */
static bool add_pod(struct cache *k, const cJSON *pod, struct error *error)
{
	if (!text(pod, "node")[0])
		return true;
	for (size_t i = 0; i < k->quotas; i++) {
		if (strcmp(text(k->quota[i], "namespace"), text(pod, "namespace")) != 0)
			continue;
		if (!put_quota(k, k->quota[i], false, error))
			return false;
		break;
	}
	return count_pod(k, pod, error);
}

static bool has_ended(const cJSON *pod)
{
	return strcmp(text(pod, "phase"), "Succeeded") == 0 ||
	       strcmp(text(pod, "phase"), "Failed") == 0;
}

static bool update_pod(struct cache *k, const cJSON *pair, struct error *error)
{
	const cJSON *old = cJSON_GetArrayItem(pair, 0), *now = cJSON_GetArrayItem(pair, 1);
	const char *phase = text(now, "phase");

	if (has_ended(old) || strcmp(phase, "Running") == 0 || strcmp(phase, "Pending") == 0)
		return true;
	return uncount_pod(k, now, error);
}

static void delete_quota(struct cache *k, const cJSON *c)
{
	for (size_t i = 0; i < k->quotas; i++) {
		if (strcmp(text(k->quota[i], "namespace"), text(c, "namespace")) != 0 ||
		    strcmp(text(k->quota[i], "name"), text(c, "name")) != 0)
			continue;
		memmove(&k->quota[i], &k->quota[i + 1], (--k->quotas - i) * sizeof(const cJSON *));
		break;
	}
	if (quota_fixture_remove(k->book, text(c, "namespace")))
		forget_uids(k, text(c, "namespace"));
}

static bool know_quota(struct cache *k, const cJSON *c, struct error *error)
{
	size_t at = 0;

	while (at < k->quotas &&
	       (strcmp(text(k->quota[at], "name"), text(c, "name")) != 0 ||
		strcmp(text(k->quota[at], "namespace"), text(c, "namespace")) != 0))
		at++;
	if (at == QUOTAS_MAX) {
		values_fail(error, "there are more quotas than this runner holds");
		return false;
	}
	k->quotas += at == k->quotas;
	k->quota[at] = c;
	return true;
}

static bool upstream_event(struct cache *k, const cJSON *event, struct error *error)
{
	const char *what = event->string;

	if (strcmp(what, "eq_add") == 0)
		return know_quota(k, event, error) && put_quota(k, event, false, error);
	if (strcmp(what, "eq_update") == 0) {
		if (cJSON_IsArray(event))
			event = cJSON_GetArrayItem(event, 1);
		return know_quota(k, event, error) && put_quota(k, event, true, error);
	}
	if (strcmp(what, "eq_delete") == 0) {
		delete_quota(k, event);
		return true;
	}
	if (strcmp(what, "pod_add") == 0)
		return add_pod(k, event, error);
	if (strcmp(what, "pod_update") == 0)
		return update_pod(k, event, error);
	if (strcmp(what, "pod_delete") == 0)
		return uncount_pod(k, event, error);
	values_fail(error, "unknown event \"%s\"", what);
	return false;
}

/* --- corrected -------------------------------------------------------------------------------- */

static bool put_record(struct model *m, struct object *o)
{
	if (o)
		model_put(m, o);
	return o != NULL;
}

static bool model_event(struct model *m, const cJSON *event, struct error *error)
{
	const char *what = event->string;

	if (strcmp(what, "eq_add") == 0 || strcmp(what, "eq_update") == 0)
		return put_record(m, quota_values_object(cJSON_IsArray(event)
								 ? cJSON_GetArrayItem(event, 1)
								 : event,
							 error));
	if (strcmp(what, "pod_add") == 0)
		return put_record(m, quota_values_pod(event, error));
	if (strcmp(what, "pod_update") == 0)
		return put_record(m, quota_values_pod(cJSON_GetArrayItem(event, 1), error));
	if (strcmp(what, "pod_delete") == 0)
		model_remove(m, OBJECT_POD, text(event, "namespace"), text(event, "pod"));
	else if (strcmp(what, "eq_delete") == 0)
		model_remove(m, OBJECT_ELASTIC_QUOTA, text(event, "namespace"),
			     text(event, "name"));
	return true;
}

/*
 * The book of what is there after all events; NULL: one could not be read. A view in between must
 * make no difference.
 */
static struct quota_book *corrected_book(const cJSON *events, struct error *error)
{
	struct model *m = model_new();
	struct join *j = join_new();
	struct quota_options o;
	struct quota_book *b = NULL;
	bool read = true;

	quota_options_default(&o);
	for (const cJSON *e = events->child; read && e; e = e->next) {
		struct view *v;

		read = model_event(m, e->child, error);
		v = join_view(j, NULL, 0, model_cluster(m), 1);
		quota_book_free(b);
		b = quota_book_new(v, NULL, &o);
		view_drop(v);
	}
	join_free(j);
	model_free(m);
	if (!read) {
		quota_book_free(b);
		b = NULL;
	}
	return b;
}

/* --- what is expected ------------------------------------------------------------------------- */

static bool same_uids(const struct cache *k, const char *namespace, const cJSON *expect,
		      struct error *error)
{
	size_t count = 0;

	for (size_t i = 0; i < k->uids; i++)
		count += strcmp(k->uid[i].namespace, namespace) == 0;
	for (const cJSON *item = expect->child; item; item = item->next) {
		size_t i = 0;

		while (i < k->uids && (strcmp(k->uid[i].uid, item->valuestring) != 0 ||
				       strcmp(k->uid[i].namespace, namespace) != 0))
			i++;
		if (i == k->uids) {
			values_fail(error, "pod %s does not count", item->valuestring);
			return false;
		}
	}
	if (count == (size_t)cJSON_GetArraySize(expect))
		return true;
	values_fail(error, "%zu pods count", count);
	return false;
}

static bool same_bounds(const struct quota_book *b, const struct quota *q, const cJSON *expect,
			bool max, struct error *error)
{
	struct resources got;
	bool same;

	if (!expect)
		return true;
	resources_copy(&got, max ? &q->max : &q->min);
	for (unsigned int id = 0; id < RESOURCE_PODS; id++) {
		int64_t bounds[2];

		quota_bounds(b, q->namespace, resource_name((enum resource_id)id), &bounds[0],
			     &bounds[1]);
		resources_set(&got, (enum resource_id)id, bounds[max]);
	}
	same = quota_values_same(&got, expect, true, max ? "max" : "min", error);
	resources_fini(&got);
	return same;
}

/* k NULL: corrected, of which only what is used is compared, with absent and 0 as one. */
static bool same_quota(const struct quota_book *b, const struct cache *k, const cJSON *expect,
		       struct error *error)
{
	static const char *const keys[] = {"min", "max", "used", "pods", NULL};
	const struct quota *q = quota_book_find(b, expect->string);
	const cJSON *pods = values_get(expect, "pods"), *used = values_get(expect, "used");

	if (!q || cJSON_IsNull(expect)) {
		if (!q && cJSON_IsNull(expect))
			return true;
		values_fail(error, "there is %s quota of %s", q ? "a" : "no", expect->string);
		return false;
	}
	if (!values_only(expect, keys, error) ||
	    (used && !quota_values_same(&q->used, used, k != NULL, "used", error)))
		return false;
	if (!k) {
		if (!pods || q->used_pods == (uint32_t)cJSON_GetArraySize(pods))
			return true;
		values_fail(error, "%u pods count", q->used_pods);
		return false;
	}
	return same_bounds(b, q, values_get(expect, "min"), false, error) &&
	       same_bounds(b, q, values_get(expect, "max"), true, error) &&
	       (!pods || same_uids(k, q->namespace, pods, error));
}

/* --- cases ------------------------------------------------------------------------------------ */

static bool same_all(const struct quota_book *b, const struct cache *k, const cJSON *expect,
		     struct error *error)
{
	for (const cJSON *item = expect ? expect->child : NULL; item; item = item->next)
		if (strcmp(item->string, "code") != 0 && !same_quota(b, k, item, error))
			return false;
	if (!expect)
		values_fail(error, "nothing is expected");
	return expect != NULL;
}

static bool run_events(const cJSON *c, struct cache *k, struct error *error)
{
	const cJSON *better = values_get(c, "want_better"), *events = values_get(c, "events");
	struct quota_book *b;
	bool same;

	if (!cJSON_IsArray(events)) {
		values_fail(error, "there are no events");
		return false;
	}
	for (const cJSON *e = events->child; e; e = e->next)
		if (!e->child || !upstream_event(k, e->child, error))
			return false;
	if (!same_all(k->book, k, values_get(c, "expect"), error))
		return false;
	/* Without a better answer a defect's is not known. */
	if (!better && strstr(text(c, "name"), "DEFECT"))
		return true;
	b = corrected_book(events, error);
	same = b && same_all(b, NULL, better ? better : values_get(c, "expect"), error);
	quota_book_free(b);
	return same;
}

/* The scheduler's own decisions, one after the other. Both always succeed. */
static bool run_sequence(const cJSON *c, struct cache *k, bool add, struct error *error)
{
	const cJSON *expect = values_get(c, "expect"), *pods = values_get(c, "pods");
	int at = 0;

	if (!cJSON_IsArray(pods) || cJSON_GetArraySize(pods) != cJSON_GetArraySize(expect)) {
		values_fail(error, "\"expect\" must have an answer for each of \"pods\"");
		return false;
	}
	for (const cJSON *pod = pods->child; pod; pod = pod->next, at++) {
		const cJSON *wanted = cJSON_GetArrayItem(expect, at);
		const char *code = text(wanted, "code");

		if (!(add ? count_pod(k, pod, error) : uncount_pod(k, pod, error)) ||
		    !same_all(k->book, k, wanted, error))
			return false;
		if (code[0] && strcmp(code, "Success") != 0) {
			values_fail(error, "pod %s is reserved", text(pod, "pod"));
			return false;
		}
	}
	return true;
}

/* The pods that count already, by their uids. */
static void know_pods(struct cache *k, const cJSON *quotas)
{
	for (const cJSON *q = quotas ? quotas->child : NULL; q; q = q->next) {
		const cJSON *pods = values_get(q, "pods");

		for (const cJSON *p = pods ? pods->child : NULL; p && k->uids < UIDS_MAX;
		     p = p->next) {
			k->uid[k->uids].namespace = text(q, "namespace");
			k->uid[k->uids++].uid = cJSON_GetStringValue(p) ? p->valuestring : "";
		}
	}
}

enum outcome run_quota_cache(const cJSON *c, struct error *error)
{
	static const char *const keys[] = {"id",     "source", "upstream",    "name",
					   "note",   "op",     "quotas",      "pods",
					   "events", "expect", "want_better", NULL};
	const char *op = text(c, "op");
	struct quota *quotas = NULL;
	struct quota_options o;
	struct cache k = {0};
	size_t count = 0;
	bool passed = values_only(c, keys, error) &&
		      quota_values_quotas(values_get(c, "quotas"), &quotas, &count, error);

	quota_options_default(&o);
	o.variant = QUOTA_UPSTREAM;
	k.book = quota_fixture_book(quotas, passed ? count : 0, &o);
	know_pods(&k, values_get(c, "quotas"));
	if (passed && strcmp(op, "events") == 0) {
		passed = run_events(c, &k, error);
	} else if (passed && (strcmp(op, "reserve_seq") == 0 || strcmp(op, "unreserve_seq") == 0)) {
		passed = run_sequence(c, &k, op[0] == 'r', error);
	} else if (passed) {
		values_fail(error, "unknown op \"%s\"", op);
		passed = false;
	}
	quota_book_free(k.book);
	quota_values_free_all(quotas, count);
	return passed ? PASSED : FAILED;
}
