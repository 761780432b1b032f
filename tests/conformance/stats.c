/* SPDX-License-Identifier: Apache-2.0 */
/* Cases about the arithmetic below the scores: resource statistics, pod sums, one resource's risk. */
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/arith.h"
#include "aggregator/policy/load_variation_risk_balancing.h"
#include "aggregator/policy/resource_stats.h"
#include "shared/mem.h"
#include "tests/conformance/values.h"

#define MIB 1048576.0

static bool read_stats(const cJSON *stats, struct resource_stats *out, struct reason *why)
{
	static const char *const keys[] = {"capacity", "req", "used_avg", "used_stdev", NULL};

	return values_only(stats, keys, why) &&
	       values_number(stats, "capacity", &out->capacity, why) &&
	       values_number(stats, "req", &out->request, why) &&
	       values_number(stats, "used_avg", &out->used_mean, why) &&
	       values_number(stats, "used_stdev", &out->used_stddev, why);
}

/* expect must be there and have no other keys. */
static const cJSON *get_expect(const cJSON *c, const char *const *keys, struct reason *why)
{
	const cJSON *expect = values_get(c, "expect");

	if (!cJSON_IsObject(expect) || !expect->child) {
		values_fail(why, "nothing is expected");
		return NULL;
	}
	return values_only(expect, keys, why) ? expect : NULL;
}

enum outcome run_load_variation_compute(const cJSON *c, struct reason *why)
{
	static const char *const keys[] = {"score", NULL};
	static const char *const arg_keys[] = {"margin", "sensitivity", NULL};
	const cJSON *expect = get_expect(c, keys, why), *given = values_get(c, "args");
	struct resource_stats stats;
	struct variation_risk risk;
	struct score_args args;

	score_args_default(&args);
	if (!expect || !read_stats(values_get(c, "stats"), &stats, why) ||
	    !values_only(given, arg_keys, why) ||
	    !values_number(given, "margin", &args.safe_variance_margin, why) ||
	    !values_number(given, "sensitivity", &args.safe_variance_sensitivity, why))
		return FAILED;
	variation_risk(SCORE_UPSTREAM, &args, &stats, &risk);
	return values_same_int(expect, "score", round_away(risk.score), why) ? PASSED : FAILED;
}

enum outcome run_mu_sigma(const cJSON *c, struct reason *why)
{
	static const char *const keys[] = {"mu", "sigma", NULL};
	const cJSON *expect = get_expect(c, keys, why);
	struct resource_stats stats;
	double mu, sigma;

	if (!expect || !read_stats(values_get(c, "stats"), &stats, why))
		return FAILED;
	resource_stats_mu_sigma(&stats, &mu, &sigma);
	return values_same(expect, "mu", mu, why) && values_same(expect, "sigma", sigma, why)
		       ? PASSED
		       : FAILED;
}

static bool check_stats(const cJSON *expect, const struct score_metric *metric, double capacity,
			double request, double unit, struct reason *why)
{
	const cJSON *valid = values_get(expect, "valid");
	struct resource_stats stats;

	if (valid && cJSON_IsTrue(valid) != metric->known) {
		values_fail(why, "valid is %s", metric->known ? "true" : "false");
		return false;
	}
	if (!metric->known)
		return true;
	resource_stats_init(&stats, metric, capacity, capacity, request);
	return values_same(expect, "capacity", stats.capacity / unit, why) &&
	       values_same(expect, "req", stats.request / unit, why) &&
	       values_same(expect, "used_avg", stats.used_mean / unit, why) &&
	       values_same(expect, "used_stdev", stats.used_stddev / unit, why);
}

/* Memory is expected in MiB; the product counts bytes. */
enum outcome run_create_stats(const cJSON *c, struct reason *why)
{
	static const char *const keys[] = {"valid",    "capacity",   "req",
					   "used_avg", "used_stdev", NULL};
	const cJSON *expect = get_expect(c, keys, why);
	const char *resource = cJSON_GetStringValue(values_get(c, "resource"));
	struct resource_list allocatable, request;
	struct metric_entry *metrics;
	struct score_metric metric;
	size_t count;
	bool ok;

	if (!expect || !values_resources(values_get(c, "allocatable"), &allocatable, why) ||
	    !values_resources(values_get(c, "pod_request"), &request, why))
		return FAILED;
	if (!resource || (strcmp(resource, "cpu") != 0 && strcmp(resource, "memory") != 0))
		return values_fail(why, "resource must be cpu or memory");
	ok = values_metrics(values_get(c, "metrics"), &metrics, &count, why);
	if (ok && strcmp(resource, "cpu") == 0) {
		metric = metric_select_mean_stddev(metrics, count, "CPU");
		ok = check_stats(expect, &metric, (double)allocatable.cpu_milli,
				 (double)request.cpu_milli, 1, why);
	} else if (ok) {
		metric = metric_select_mean_stddev(metrics, count, "Memory");
		ok = check_stats(expect, &metric, (double)allocatable.mem_bytes,
				 (double)request.mem_bytes, MIB, why);
	}
	free(metrics);
	return ok ? PASSED : FAILED;
}

static enum outcome run_effective(const cJSON *c, bool limits, struct reason *why)
{
	static const char *const keys[] = {"cpu_m", "mem_b", NULL};
	const cJSON *expect = get_expect(c, keys, why);
	struct pod_spec pod;
	bool ok = expect && values_pod(values_get(c, "pod"), &pod, why);

	if (!expect)
		return FAILED;
	ok = ok && values_same_int(expect, "cpu_m", pod_spec_cpu_milli(&pod, limits, true), why) &&
	     values_same_int(expect, "mem_b", pod_spec_mem_bytes(&pod, limits, true), why);
	pod_spec_free_members(&pod);
	return ok ? PASSED : FAILED;
}

enum outcome run_effective_request(const cJSON *c, struct reason *why)
{
	return run_effective(c, false, why);
}

enum outcome run_effective_limit(const cJSON *c, struct reason *why)
{
	return run_effective(c, true, why);
}

static bool same_sums(const cJSON *expect, const char *key, struct resource_sums got,
		      struct reason *why)
{
	static const char *const keys[] = {"cpu_m", "mem_b", NULL};
	const cJSON *want = values_get(expect, key);
	bool same = values_only(want, keys, why) &&
		    values_same_int(want, "cpu_m", got.cpu_milli, why) &&
		    values_same_int(want, "mem_b", got.mem_bytes, why);

	if (!same)
		reason_prefix(why, "%s", key);
	return same;
}

static bool check_sums(const cJSON *c, const struct pod_spec *pods, size_t count,
		       const struct pod_spec *pod, struct reason *why)
{
	static const char *const keys[] = {"request",	      "limit",	  "request_minus_pod",
					   "limit_minus_pod", "capacity", NULL};
	const cJSON *expect = get_expect(c, keys, why);
	struct resource_list allocatable;
	struct resource_sums capacity;
	struct node_sums sums;

	if (!expect || !values_resources(values_get(c, "allocatable"), &allocatable, why))
		return false;
	capacity = (struct resource_sums){allocatable.cpu_milli, allocatable.mem_bytes};
	node_sums_upstream(pods, count, pod, &capacity, &sums);
	return same_sums(expect, "request", sums.request, why) &&
	       same_sums(expect, "limit", sums.limit, why) &&
	       same_sums(expect, "request_minus_pod", sums.request_minus_pod, why) &&
	       same_sums(expect, "limit_minus_pod", sums.limit_minus_pod, why) &&
	       same_sums(expect, "capacity", capacity, why);
}

enum outcome run_node_requests_limits(const cJSON *c, struct reason *why)
{
	const cJSON *list = values_get(c, "pods");
	size_t count = 0, room = (size_t)(list ? cJSON_GetArraySize(list) : 0);
	struct pod_spec *pods = mem_zalloc(room + 1, sizeof(*pods));
	struct pod_spec pod;
	bool ok = values_pod(values_get(c, "pod"), &pod, why);

	for (const cJSON *item = list ? list->child : NULL; ok && item; item = item->next)
		ok = values_pod(item, &pods[count++], why);
	ok = ok && check_sums(c, pods, count, &pod, why);
	for (size_t i = 0; i < count; i++)
		pod_spec_free_members(&pods[i]);
	pod_spec_free_members(&pod);
	free(pods);
	return ok ? PASSED : FAILED;
}
