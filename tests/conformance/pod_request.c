/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a pod asks for in all, by each of the three rules: a case's short form is made a Pod object
 * and read as one.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/model/object.h"
#include "aggregator/model/pod_sums.h"
#include "tests/conformance/values.h"

/* {cpu in millicores, other: amount} as a list of quantities. */
static bool add_list(cJSON *to, const char *key, const cJSON *flat, struct error *error)
{
	cJSON *list = cJSON_AddObjectToObject(to, key);

	for (const cJSON *item = flat ? flat->child : NULL; item; item = item->next) {
		char text[40];
		int64_t amount;

		if (!values_int(flat, item->string, &amount, error))
			return false;
		snprintf(text, sizeof(text), "%" PRId64 "%s", amount,
			 strcmp(item->string, "cpu") == 0 ? "m" : "");
		cJSON_AddStringToObject(list, item->string, text);
	}
	return true;
}

static bool add_containers(cJSON *spec, const cJSON *c, struct error *error)
{
	cJSON *list = cJSON_AddArrayToObject(spec, "containers");
	const cJSON *given = values_get(c, "containers");

	for (const cJSON *item = given ? given->child : NULL; item; item = item->next) {
		cJSON *container = cJSON_CreateObject();

		cJSON_AddItemToArray(list, container);
		if (!add_list(cJSON_AddObjectToObject(container, "resources"), "requests", item,
			      error))
			return false;
	}
	return true;
}

static bool add_init(cJSON *spec, const cJSON *c, struct error *error)
{
	static const char *const keys[] = {"request", "restart_policy", NULL};
	cJSON *list = cJSON_AddArrayToObject(spec, "initContainers");
	const cJSON *given = values_get(c, "init_containers");

	for (const cJSON *item = given ? given->child : NULL; item; item = item->next) {
		const char *policy = cJSON_GetStringValue(values_get(item, "restart_policy"));
		cJSON *container = cJSON_CreateObject();

		cJSON_AddItemToArray(list, container);
		if (policy)
			cJSON_AddStringToObject(container, "restartPolicy", policy);
		if (!values_only(item, keys, error) ||
		    !add_list(cJSON_AddObjectToObject(container, "resources"), "requests",
			      values_get(item, "request"), error))
			return false;
	}
	return true;
}

static bool make_spec(cJSON *spec, const cJSON *c, struct error *error)
{
	const cJSON *pod = values_get(c, "pod_resources");

	return add_containers(spec, c, error) && add_init(spec, c, error) &&
	       add_list(spec, "overhead", values_get(c, "overhead"), error) &&
	       (!pod ||
		add_list(cJSON_AddObjectToObject(spec, "resources"), "requests", pod, error));
}

static bool same_sums(const struct resources *got, const cJSON *expect, const char *rule,
		      struct error *error)
{
	struct resources wanted = RESOURCES_NONE;
	bool same = true;

	for (const cJSON *item = expect->child; same && item; item = item->next) {
		int64_t amount, have = -1;

		same = values_int(expect, item->string, &amount, error);
		if (!same)
			break;
		resources_set_named(&wanted, item->string, amount);
		same = resources_find(got, item->string, &have) && have == amount;
		if (!same)
			values_fail(error, "%s: %s is %" PRId64 ", and not %" PRId64, rule,
				    item->string, have, amount);
	}
	if (same && !resources_equal(&wanted, got)) {
		values_fail(error, "%s: there are more resources than expected", rule);
		same = false;
	}
	resources_fini(&wanted);
	return same;
}

static bool check_rule(const cJSON *spec, enum pod_sums_rule rule, const cJSON *expect,
		       const char *name, struct error *error)
{
	char field[OBJECT_FIELD_MAX];
	struct pod_sums sums;
	struct error refused = {""};
	bool same;

	if (!expect) {
		values_fail(error, "\"%s\" is missing", name);
		return false;
	}
	if (pod_sums_read(spec, NULL, rule, &sums, field, &refused)) {
		values_fail(error, "%s: %s", field, refused.text);
		return false;
	}
	same = same_sums(&sums.requests, expect, name, error);
	pod_sums_fini(&sums);
	return same;
}

enum outcome run_pod_request(const cJSON *c, struct error *error)
{
	static const char *const keys[] = {"id",
					   "source",
					   "upstream",
					   "containers",
					   "init_containers",
					   "overhead",
					   "pod_resources",
					   "expect_k8s",
					   "expect_upstream_quota",
					   "expect_upstream_status",
					   NULL};
	const cJSON *quota = values_get(c, "expect_upstream_quota");
	const cJSON *status = values_get(c, "expect_upstream_status");
	cJSON *spec = cJSON_CreateObject();
	bool passed;

	passed = values_only(c, keys, error) && make_spec(spec, c, error) &&
		 check_rule(spec, POD_SUMS_SCHEDULER, values_get(c, "expect_k8s"), "expect_k8s",
			    error) &&
		 check_rule(spec, POD_SUMS_QUOTA_UPSTREAM, quota, "expect_upstream_quota", error) &&
		 check_rule(spec, POD_SUMS_STATUS_UPSTREAM, status ? status : quota,
			    "expect_upstream_status", error);
	cJSON_Delete(spec);
	return passed ? PASSED : FAILED;
}
