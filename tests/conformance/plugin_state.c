/* SPDX-License-Identifier: Apache-2.0 */
/* Cases about what surrounds a score: defaulting of arguments, the account of recent pods. */
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/recent_pods.h"
#include "aggregator/policy/score.h"
#include "shared/mem.h"
#include "tests/conformance/values.h"

/* Where the scheduler gets its metrics from is its own setting; here nothing corresponds to it. */
static bool is_connection(const char *key)
{
	return strcmp(key, "watcherAddress") == 0 || strncmp(key, "metricProvider.", 15) == 0;
}

static double *double_member(struct score_args *args, enum score_plugin_id plugin, const char *key)
{
	if (plugin == PLUGIN_TARGET_LOAD_PACKING && strcmp(key, "targetUtilization") == 0)
		return &args->target_utilization;
	if (plugin == PLUGIN_TARGET_LOAD_PACKING && strcmp(key, "defaultRequestsMultiplier") == 0)
		return &args->default_requests_multiplier;
	if (plugin == PLUGIN_LOAD_VARIATION_RISK_BALANCING &&
	    strcmp(key, "safeVarianceMargin") == 0)
		return &args->safe_variance_margin;
	if (plugin == PLUGIN_LOAD_VARIATION_RISK_BALANCING &&
	    strcmp(key, "safeVarianceSensitivity") == 0)
		return &args->safe_variance_sensitivity;
	return NULL;
}

static bool is_default_cpu(enum score_plugin_id plugin, const char *key)
{
	return plugin == PLUGIN_TARGET_LOAD_PACKING && strcmp(key, "defaultRequests.cpu_m") == 0;
}

static double number_of(const cJSON *item)
{
	return cJSON_IsString(item) ? strtod(item->valuestring, NULL) : item->valuedouble;
}

static bool set_args(struct score_args *args, enum score_plugin_id plugin, const cJSON *given,
		     struct reason *why)
{
	for (const cJSON *item = given ? given->child : NULL; item; item = item->next) {
		double *member = double_member(args, plugin, item->string);

		if (member) {
			*member = number_of(item);
		} else if (is_default_cpu(plugin, item->string)) {
			args->default_requests_cpu_milli = (int64_t)number_of(item);
		} else if (!is_connection(item->string)) {
			values_fail(why, "unknown argument \"%s\"", item->string);
			return false;
		}
	}
	return true;
}

/* How many of the keys were compared, or -1. */
static int check_args(struct score_args *args, enum score_plugin_id plugin, const cJSON *expect,
		      struct reason *why)
{
	int compared = 0;

	for (const cJSON *item = expect ? expect->child : NULL; item; item = item->next) {
		const double *member = double_member(args, plugin, item->string);
		double got = member ? *member : (double)args->default_requests_cpu_milli;

		if (is_connection(item->string))
			continue;
		if (!member && !is_default_cpu(plugin, item->string)) {
			values_fail(why, "unknown argument \"%s\"", item->string);
			return -1;
		}
		if (got != number_of(item)) {
			values_fail(why, "%s is %g, expected %g", item->string, got,
				    number_of(item));
			return -1;
		}
		compared++;
	}
	return compared;
}

enum outcome run_defaults(const cJSON *c, struct reason *why)
{
	const cJSON *input = values_get(c, "input");
	const char *name = cJSON_GetStringValue(values_get(input, "plugin"));
	enum score_plugin_id plugin;
	struct score_args args;
	const char *field;
	int compared;

	if (!name)
		return values_fail(why, "a case must name a plugin");
	if (score_plugin_find(name, &plugin)) {
		reason_set(why, "area not built yet");
		return SKIPPED;
	}
	score_args_default(&args);
	if (!set_args(&args, plugin, values_get(input, "args"), why))
		return FAILED;
	if (score_args_check(&args, plugin, SCORE_UPSTREAM, &field, why))
		return FAILED;
	compared = check_args(&args, plugin, values_get(c, "expect"), why);
	if (compared == 0) {
		reason_set(why, "area not built yet: the scheduler's connection to its metrics");
		return SKIPPED;
	}
	return compared > 0 ? PASSED : FAILED;
}

/* Ages become times before now = 0; the oldest stand first, pods assigned now last. */
static size_t read_placements(const cJSON *input, int64_t **out, struct reason *why)
{
	const cJSON *ages = values_get(input, "ages_s");
	int64_t assigned = 0;
	size_t count = 0;

	if (!cJSON_IsArray(ages) || !values_int(input, "assigned_now", &assigned, why) ||
	    assigned < 0 || assigned > 1000) {
		values_fail(why, "a case must have ages_s and assigned_now");
		return 0;
	}
	*out = mem_zalloc((size_t)cJSON_GetArraySize(ages) + (size_t)assigned + 1, sizeof(**out));
	for (const cJSON *age = ages->child; age; age = age->next)
		(*out)[count++] = cJSON_IsNull(age) ? INT64_MIN : -(int64_t)age->valuedouble;
	return count + (size_t)assigned;
}

enum outcome run_recent_cache_cleanup(const cJSON *c, struct reason *why)
{
	const cJSON *kept = values_get(values_get(c, "expect"), "kept");
	int64_t *placed = NULL;
	size_t count = read_placements(values_get(c, "input"), &placed, why), next, wanted;
	bool same;

	if (!placed)
		return FAILED;
	next = recent_pods_expired(placed, count, 0, true);
	free(placed);
	if (!cJSON_IsArray(kept))
		return values_fail(why, "a case must expect what is kept");
	wanted = (size_t)cJSON_GetArraySize(kept);
	same = wanted == count - next;
	for (const cJSON *item = kept->child; same && item; item = item->next)
		same = item->valuedouble == (double)next++;
	return same ? PASSED
		    : values_fail(why, "keeps the newest %zu, expected %zu", count - next, wanted);
}
