/* SPDX-License-Identifier: Apache-2.0 */
/* What status.used is to be, out of a view, by upstream's controller and the corrected one. */
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/quota/quota_internal.h"
#include "aggregator/state/join.h"
#include "tests/conformance/quota_values.h"

static bool same_as(const struct resources *got, const cJSON *expect, const char *what,
		    struct error *error)
{
	if (quota_values_same(got, expect, true, what, error))
		return true;
	error_prefix(error, "%s", expect->string);
	return false;
}

static bool fill_model(struct model *m, const cJSON *quotas, const cJSON *pods, struct error *error)
{
	for (const cJSON *q = quotas ? quotas->child : NULL; q; q = q->next) {
		struct object *o = quota_values_object(q, error);

		if (!o)
			return false;
		model_put(m, o);
	}
	for (const cJSON *p = pods ? pods->child : NULL; p; p = p->next) {
		struct object *o = quota_values_pod(p, error);

		if (!o)
			return false;
		model_put(m, o);
	}
	return true;
}

static size_t place_of(const struct quota_book *b, const char *namespace)
{
	size_t at = 0;

	while (at < quota_book_count(b) && strcmp(quota_book_at(b, at)->namespace, namespace) != 0)
		at++;
	return at;
}

static bool same_status(const struct quota_book *b, const struct view *v, const cJSON *expect,
			struct error *error)
{
	struct resources *status = quota_status_new(b, v);
	bool same = true;

	for (const cJSON *item = expect->child; same && item; item = item->next) {
		size_t at = place_of(b, item->string);

		if (at == quota_book_count(b)) {
			values_fail(error, "%s has no quota", item->string);
			same = false;
			break;
		}
		same = same_as(&status[at], item, quota_variant_name(b->options.variant), error);
	}
	quota_status_free(b, status);
	return same;
}

static bool check(const cJSON *c, const cJSON *pods, const cJSON *expect,
		  enum quota_variant variant, struct error *error)
{
	struct model *m = model_new();
	struct join *j = join_new();
	struct quota_options o;
	bool same = fill_model(m, values_get(c, "quotas"), pods, error);

	quota_options_default(&o);
	o.variant = variant;
	if (same) {
		struct view *v = join_view(j, NULL, 0, model_cluster(m), 1);
		struct quota_book *b = quota_book_new(v, NULL, &o);

		same = same_status(b, v, expect, error);
		quota_book_free(b);
		view_drop(v);
	}
	join_free(j);
	model_free(m);
	return same;
}

enum outcome run_quota_status(const cJSON *c, struct error *error)
{
	static const char *const keys[] = {
		"id",	"source",      "upstream",    "name",		"note",		  "quotas",
		"pods", "expect_used", "want_better", "effective_pods", "upstream_quirk", NULL};
	const cJSON *expect = values_get(c, "expect_used"), *better = values_get(c, "want_better");
	const cJSON *pods = values_get(c, "effective_pods");

	pods = pods ? pods : values_get(c, "pods");
	if (!values_only(c, keys, error) || !cJSON_IsObject(expect)) {
		if (!expect)
			values_fail(error, "nothing is expected");
		return FAILED;
	}
	if (!check(c, pods, expect, QUOTA_UPSTREAM, error))
		return FAILED;
	return !better || check(c, pods, better, QUOTA_CORRECTED, error) ? PASSED : FAILED;
}
