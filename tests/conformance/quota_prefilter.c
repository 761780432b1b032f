/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether pods are admitted, in upstream's variant; each is asked about by itself. What a correct
 * one answers, where a case says so.
 */
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"
#include "tests/conformance/quota_values.h"
#include "tests/quota_fixture.h"

struct pods {
	size_t count;
	struct quota_nominated *of;
	struct resources *requests;
};

static void free_pods(struct pods *p)
{
	for (size_t i = 0; i < p->count; i++)
		resources_fini(&p->requests[i]);
	free(p->of);
	free(p->requests);
}

static bool read_pod(const cJSON *c, struct quota_nominated *out, struct resources *requests,
		     struct error *why)
{
	static const char *const keys[] = {"pod",     "namespace", "uid",	    "priority",
					   "request", "expect",	   "expect_reason", "want_better",
					   "node",    NULL};
	const char *uid = cJSON_GetStringValue(values_get(c, "uid"));
	int64_t priority = 0;

	if (!quota_values_amounts(values_get(c, "request"), requests, why) ||
	    !values_only(c, keys, why) ||
	    (values_get(c, "priority") && !values_int(c, "priority", &priority, why)))
		return false;
	out->uid = uid ? uid : cJSON_GetStringValue(values_get(c, "pod"));
	out->namespace = cJSON_GetStringValue(values_get(c, "namespace"));
	out->priority = (int32_t)priority;
	out->requests = requests;
	if (!out->uid || !out->namespace)
		values_fail(why, "a pod must have a name and a namespace");
	return out->uid && out->namespace;
}

static bool read_pods(const cJSON *list, struct pods *p, struct error *why)
{
	size_t room = (size_t)(list ? cJSON_GetArraySize(list) : 0) + 1;

	p->count = 0;
	p->of = mem_zalloc(room, sizeof(*p->of));
	p->requests = mem_zalloc(room, sizeof(*p->requests));
	for (const cJSON *item = list ? list->child : NULL; item; item = item->next) {
		size_t at = p->count++;

		if (!read_pod(item, &p->of[at], &p->requests[at], why))
			return false;
	}
	return true;
}

static const char *reason_of(enum quota_admission reason)
{
	if (reason == QUOTA_OVER_SUM)
		return "over_sum_min";
	return reason == QUOTA_OVER_MAX || reason == QUOTA_NEVER ? "over_max" : NULL;
}

static bool same_verdict(const struct quota_verdict *v, const char *expect, const cJSON *reason,
			 const struct quota_nominated *pod, struct error *why)
{
	const char *got = v->admitted ? "Success" : "Unschedulable";
	const char *wanted = cJSON_GetStringValue(reason), *have = reason_of(v->reason);

	if (!expect || strcmp(expect, got) != 0) {
		values_fail(why, "%s: the answer is %s (%s)", pod->uid, got, v->error.text);
		return false;
	}
	if (wanted && (!have || strcmp(wanted, have) != 0)) {
		values_fail(why, "%s: it is refused for %s", pod->uid, have ? have : "nothing");
		return false;
	}
	return true;
}

static bool ask(const struct quota_book *b, const cJSON *c, const struct pods *pods,
		const struct pods *nominated, bool better, struct error *why)
{
	size_t at = 0;

	for (const cJSON *item = c->child; item; item = item->next, at++) {
		const struct quota_nominated *p = &pods->of[at];
		struct quota_ask a = {p->uid, p->namespace, p->priority,   p->requests,
				      NULL,   false,	    nominated->of, nominated->count};
		const cJSON *expect = values_get(item, better ? "want_better" : "expect");
		struct quota_verdict v;

		if (better && !expect)
			continue;
		quota_admit(b, &a, &v);
		if (!same_verdict(&v, cJSON_GetStringValue(expect),
				  better ? NULL : values_get(item, "expect_reason"), p, why))
			return false;
	}
	return true;
}

static bool run_variant(enum quota_variant variant, const cJSON *c, const struct quota *quotas,
			size_t count, const struct pods *pods, const struct pods *nominated,
			struct error *why)
{
	struct quota_options o;
	struct quota_book *b;
	bool same;

	quota_options_default(&o);
	o.variant = variant;
	b = quota_fixture_book(quotas, count, &o);
	same = ask(b, values_get(c, "pods"), pods, nominated, variant == QUOTA_CORRECTED, why);
	quota_book_free(b);
	return same;
}

enum outcome run_quota_prefilter(const cJSON *c, struct error *why)
{
	static const char *const keys[] = {"id",   "source",	     "upstream", "name",
					   "note", "quotas",	     "pods",	 "nominated",
					   "op",   "spec_nil_means", NULL};
	struct pods pods = {0}, nominated = {0};
	struct quota *quotas = NULL;
	size_t count = 0;
	bool passed = values_only(c, keys, why) && cJSON_IsArray(values_get(c, "pods")) &&
		      quota_values_quotas(values_get(c, "quotas"), &quotas, &count, why) &&
		      read_pods(values_get(c, "pods"), &pods, why) &&
		      read_pods(values_get(c, "nominated"), &nominated, why) &&
		      run_variant(QUOTA_UPSTREAM, c, quotas, count, &pods, &nominated, why) &&
		      run_variant(QUOTA_CORRECTED, c, quotas, count, &pods, &nominated, why);

	free_pods(&pods);
	free_pods(&nominated);
	quota_values_free_all(quotas, count);
	return passed ? PASSED : FAILED;
}
