/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the values that cases are made of, and comparing what came out. */
#pragma once

#include <cjson/cJSON.h>

#include "aggregator/policy/score/score.h"
#include "tests/conformance/conformance.h"
#include "tests/metric_select.h"

/* FAILED, with the reason. */
enum outcome values_fail(struct error *error, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* NULL where absent or null. */
const cJSON *values_get(const cJSON *object, const char *key);
/*
 * Whether the object has no other keys than these (NULL-terminated); why says which. NULL object:
 * true.
 */
bool values_only(const cJSON *object, const char *const *keys, struct error *error);
/* Members that must be there. */
bool values_number(const cJSON *object, const char *key, double *out, struct error *error);
bool values_int(const cJSON *object, const char *key, int64_t *out, struct error *error);

/* {cpu_m, mem_b}; an absent object is an empty list. */
bool values_resources(const cJSON *res, struct resource_list *out, struct error *error);
/* POD; also what was read before a failure is freed by pod_spec_free_members(). */
bool values_pod(const cJSON *pod, struct pod_spec *out, struct error *error);
/* [{type, operator, value}], null and absent are none; *out is to be freed. */
bool values_metrics(const cJSON *list, struct metric_entry **out, size_t *count,
		    struct error *error);

/* smoothing_window_size and risk_limit_weights {cpu, memory}, where they are given. */
bool values_risk_args(const cJSON *args, struct score_args *out, struct error *error);

/* True where expect has no such key, or the value equals it: numbers to 1e-12 relative. */
bool values_same(const cJSON *expect, const char *key, double got, struct error *error);
/* Absolute. */
bool values_near(const cJSON *expect, const char *key, double got, double tolerance,
		 struct error *error);
bool values_same_int(const cJSON *expect, const char *key, int64_t got, struct error *error);
