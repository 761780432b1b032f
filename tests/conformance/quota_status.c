/* SPDX-License-Identifier: Apache-2.0 */
/* What status.used is to be: upstream's controller out of the pods one by one, and the corrected one both so and out of a view. */
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/quota/quota_status.h"
#include "aggregator/state/join.h"
#include "tests/conformance/quota_values.h"

static bool same_as(const struct resources *got, const cJSON *expect, const char *what,
		    struct reason *why)
{
	if (quota_values_same(got, expect, true, what, why))
		return true;
	reason_prefix(why, "%s", expect->string);
	return false;
}

/* The first quota of the namespace, as upstream's controller takes it. */
static const cJSON *quota_of(const cJSON *quotas, const char *namespace)
{
	for (const cJSON *q = quotas ? quotas->child : NULL; q; q = q->next) {
		const char *name = cJSON_GetStringValue(values_get(q, "namespace"));

		if (name && strcmp(name, namespace) == 0)
			return q;
	}
	return NULL;
}

static bool add_pods(const cJSON *pods, const char *namespace, enum quota_variant v,
		     struct resources *used, struct reason *why)
{
	for (const cJSON *p = pods ? pods->child : NULL; p; p = p->next) {
		const char *name = cJSON_GetStringValue(values_get(p, "namespace"));
		struct object *o;

		if (!name || strcmp(name, namespace) != 0)
			continue;
		o = quota_values_pod(p, why);
		if (!o)
			return false;
		quota_status_add(v, (const struct kube_pod *)o, used);
		object_drop(o);
	}
	return true;
}

static bool check_one(const cJSON *c, const cJSON *pods, const cJSON *expect, enum quota_variant v,
		      struct reason *why)
{
	const cJSON *given = quota_of(values_get(c, "quotas"), expect->string);
	struct quota q;
	struct resources used;
	bool same;

	if (!given) {
		values_fail(why, "%s has no quota", expect->string);
		return false;
	}
	if (!quota_values_quota(given, "", &q, why)) {
		quota_values_free(&q);
		return false;
	}
	quota_status_begin(&q, &used);
	same = add_pods(pods, expect->string, v, &used, why) &&
	       same_as(&used, expect, quota_variant_name(v), why);
	resources_fini(&used);
	quota_values_free(&q);
	return same;
}

/* --- the whole way ------------------------------------------------------------------------------------------------ */

static bool fill_model(struct model *m, const cJSON *quotas, const cJSON *pods, struct reason *why)
{
	for (const cJSON *q = quotas ? quotas->child : NULL; q; q = q->next) {
		struct object *o = quota_values_object(q, why);

		if (!o)
			return false;
		model_put(m, o);
	}
	for (const cJSON *p = pods ? pods->child : NULL; p; p = p->next) {
		struct object *o = quota_values_pod(p, why);

		if (!o)
			return false;
		model_put(m, o);
	}
	return true;
}

static bool check_view(const cJSON *c, const cJSON *pods, const cJSON *expect, struct reason *why)
{
	struct model *m = model_new();
	struct join *j = join_new();
	struct quota_options o;
	struct quota_book *b = NULL;
	struct view *v = NULL;
	bool same = fill_model(m, values_get(c, "quotas"), pods, why);

	quota_options_default(&o);
	if (same) {
		v = join_view(j, NULL, 0, model_cluster(m), 1);
		b = quota_book_new(v, NULL, &o);
	}
	for (const cJSON *item = expect->child; same && item; item = item->next) {
		const struct quota *q = quota_book_find(b, item->string);

		same = q && quota_values_same(&q->used, item, false, "of the view", why);
	}
	quota_book_free(b);
	view_drop(v);
	join_free(j);
	model_free(m);
	return same;
}

enum outcome run_quota_status(const cJSON *c, struct reason *why)
{
	static const char *const keys[] = {
		"id",	"source",      "upstream",    "name",		"note",		  "quotas",
		"pods", "expect_used", "want_better", "effective_pods", "upstream_quirk", NULL};
	const cJSON *expect = values_get(c, "expect_used"), *better = values_get(c, "want_better");
	const cJSON *pods = values_get(c, "effective_pods");

	pods = pods ? pods : values_get(c, "pods");
	if (!values_only(c, keys, why) || !cJSON_IsObject(expect)) {
		if (!expect)
			values_fail(why, "nothing is expected");
		return FAILED;
	}
	for (const cJSON *item = expect->child; item; item = item->next)
		if (!check_one(c, pods, item, QUOTA_UPSTREAM, why))
			return FAILED;
	for (const cJSON *item = better ? better->child : NULL; item; item = item->next)
		if (!check_one(c, pods, item, QUOTA_CORRECTED, why))
			return FAILED;
	return !better || check_view(c, pods, better, why) ? PASSED : FAILED;
}
