/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/conformance/values.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "shared/mem.h"

enum outcome values_fail(struct error *error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error->text, sizeof(error->text), format, args);
	va_end(args);
	return FAILED;
}

const cJSON *values_get(const cJSON *object, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

	return cJSON_IsNull(item) ? NULL : item;
}

bool values_only(const cJSON *object, const char *const *keys, struct error *error)
{
	for (const cJSON *item = object ? object->child : NULL; item; item = item->next) {
		size_t i = 0;

		while (keys[i] && strcmp(keys[i], item->string) != 0)
			i++;
		if (!keys[i]) {
			values_fail(error, "unknown member \"%s\"", item->string);
			return false;
		}
	}
	return true;
}

bool values_number(const cJSON *object, const char *key, double *out, struct error *error)
{
	const cJSON *item = values_get(object, key);

	if (!cJSON_IsNumber(item)) {
		values_fail(error, "\"%s\" must be a number", key);
		return false;
	}
	*out = item->valuedouble;
	return true;
}

bool values_int(const cJSON *object, const char *key, int64_t *out, struct error *error)
{
	double value;

	if (!values_number(object, key, &value, error))
		return false;
	if (value != trunc(value) || fabs(value) >= 0x1p63) {
		values_fail(error, "\"%s\" must be a whole number", key);
		return false;
	}
	*out = (int64_t)value;
	return true;
}

bool values_resources(const cJSON *res, struct resource_list *out, struct error *error)
{
	static const char *const keys[] = {"cpu_m", "mem_b", NULL};

	memset(out, 0, sizeof(*out));
	if (!values_only(res, keys, error))
		return false;
	out->has_cpu = values_get(res, "cpu_m") != NULL;
	out->has_mem = values_get(res, "mem_b") != NULL;
	return (!out->has_cpu || values_int(res, "cpu_m", &out->cpu_milli, error)) &&
	       (!out->has_mem || values_int(res, "mem_b", &out->mem_bytes, error));
}

static bool read_containers(const cJSON *list, struct container_spec **out, size_t *count,
			    struct error *error)
{
	static const char *const keys[] = {"req", "lim", NULL};

	if (!list)
		return true;
	*out = mem_zalloc((size_t)cJSON_GetArraySize(list) + 1, sizeof(**out));
	for (const cJSON *item = list->child; item; item = item->next) {
		struct container_spec *c = &(*out)[(*count)++];

		if (!values_only(item, keys, error) ||
		    !values_resources(values_get(item, "req"), &c->requests, error) ||
		    !values_resources(values_get(item, "lim"), &c->limits, error))
			return false;
	}
	return true;
}

bool values_pod(const cJSON *pod, struct pod_spec *out, struct error *error)
{
	static const char *const keys[] = {"containers", "init", "overhead", NULL};

	memset(out, 0, sizeof(*out));
	if (!cJSON_IsObject(pod)) {
		values_fail(error, "there is no pod");
		return false;
	}
	return values_only(pod, keys, error) &&
	       read_containers(values_get(pod, "containers"), &out->containers,
			       &out->container_count, error) &&
	       read_containers(values_get(pod, "init"), &out->init, &out->init_count, error) &&
	       values_resources(values_get(pod, "overhead"), &out->overhead, error);
}

bool values_metrics(const cJSON *list, struct metric_entry **out, size_t *count,
		    struct error *error)
{
	const cJSON *item = list ? list->child : NULL;

	*out = mem_zalloc((size_t)(list ? cJSON_GetArraySize(list) : 0) + 1, sizeof(**out));
	*count = 0;
	for (; item; item = item->next) {
		struct metric_entry *m = &(*out)[(*count)++];

		m->type = cJSON_GetStringValue(values_get(item, "type"));
		m->op = cJSON_GetStringValue(values_get(item, "operator"));
		if (!m->type || !m->op || !values_number(item, "value", &m->percent, error)) {
			values_fail(error, "a metric must have type, operator and value");
			return false;
		}
	}
	return true;
}

bool values_risk_args(const cJSON *args, struct score_args *out, struct error *error)
{
	static const char *const keys[] = {"cpu", "memory", NULL};
	const cJSON *weights = values_get(args, "risk_limit_weights");

	if (values_get(args, "smoothing_window_size") &&
	    !values_int(args, "smoothing_window_size", &out->smoothing_window_size, error))
		return false;
	if (!weights)
		return true;
	for (int i = 0; i < SCORE_RESOURCES; i++)
		if (values_get(weights, keys[i]) &&
		    !values_number(weights, keys[i], &out->risk_limit_weights[i], error))
			return false;
	return values_only(weights, keys, error);
}

bool values_same(const cJSON *expect, const char *key, double got, struct error *error)
{
	double want;

	if (!cJSON_GetObjectItemCaseSensitive(expect, key))
		return true;
	if (!values_number(expect, key, &want, error))
		return false;
	if (fabs(got - want) <= 1e-12 * fmax(fabs(want), fabs(got)))
		return true;
	values_fail(error, "%s is %.17g, expected %.17g", key, got, want);
	return false;
}

bool values_near(const cJSON *expect, const char *key, double got, double tolerance,
		 struct error *error)
{
	double want;

	if (!cJSON_GetObjectItemCaseSensitive(expect, key))
		return true;
	if (!values_number(expect, key, &want, error))
		return false;
	if (fabs(got - want) <= tolerance)
		return true;
	values_fail(error, "%s is %.17g, expected %.17g", key, got, want);
	return false;
}

bool values_same_int(const cJSON *expect, const char *key, int64_t got, struct error *error)
{
	int64_t want;

	if (!cJSON_GetObjectItemCaseSensitive(expect, key))
		return true;
	if (!values_int(expect, key, &want, error))
		return false;
	if (got == want)
		return true;
	values_fail(error, "%s is %lld, expected %lld", key, (long long)got, (long long)want);
	return false;
}
