/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the amounts, quotas and pods that cases about quotas are made of, and comparing what came
 * out.
 */
#pragma once

#include "aggregator/model/object.h"
#include "aggregator/policy/quota/quota.h"
#include "tests/conformance/values.h"

/*
 * {cpu in millicores, other: amount}; NULL and null are none. What was read before a failure is
 * there, too.
 */
bool quota_values_amounts(const cJSON *flat, struct resources *out, struct error *error);
/*
 * Whether all keys of `expect` have those amounts, and all other amounts are 0; extended: those
 * keys must be the same, too.
 */
bool quota_values_same(const struct resources *got, const cJSON *expect, bool extended,
		       const char *what, struct error *error);

/*
 * Of members min, max (null: not there), used, namespace, name; strings are borrowed from the case.
 */
bool quota_values_quota(const cJSON *c, const char *namespace, struct quota *out,
			struct error *error);
void quota_values_free(struct quota *q);
/*
 * Of a list of them; without a namespace they get one by their place. To be freed with
 * quota_values_free_all().
 */
bool quota_values_quotas(const cJSON *list, struct quota **out, size_t *count, struct error *error);
void quota_values_free_all(struct quota *quotas, size_t count);

/*
 * The record of a pod: namespace, pod, uid, node, phase, priority and either request or containers,
 * init_containers, overhead. NULL: it cannot be read.
 */
struct object *quota_values_pod(const cJSON *c, struct error *error);
/* The record of a quota: namespace, name, min, max. */
struct object *quota_values_object(const cJSON *c, struct error *error);
