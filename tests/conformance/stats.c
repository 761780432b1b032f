/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cases about the arithmetic below the scores: resource statistics, pod sums, one resource's risk.
 */
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/arith.h"
#include "aggregator/policy/score/risk.h"
#include "aggregator/policy/score/score_load.h"
#include "tests/conformance/values.h"
#include "tests/score_fixture.h"

#define MIB 1048576.0

static bool read_stats(const cJSON *stats, struct resource_stats *out, struct error *error)
{
	static const char *const keys[] = {"capacity", "req", "used_avg", "used_stdev", NULL};

	return values_only(stats, keys, error) &&
	       values_number(stats, "capacity", &out->capacity, error) &&
	       values_number(stats, "req", &out->request, error) &&
	       values_number(stats, "used_avg", &out->used_mean, error) &&
	       values_number(stats, "used_stdev", &out->used_stddev, error);
}

/* expect must be there and have no other keys. */
static const cJSON *get_expect(const cJSON *c, const char *const *keys, struct error *error)
{
	const cJSON *expect = values_get(c, "expect");

	if (!cJSON_IsObject(expect) || !expect->child) {
		values_fail(error, "nothing is expected");
		return NULL;
	}
	return values_only(expect, keys, error) ? expect : NULL;
}

enum outcome run_load_variation_compute(const cJSON *c, struct error *error)
{
	static const char *const keys[] = {"score", NULL};
	static const char *const arg_keys[] = {"margin", "sensitivity", NULL};
	const cJSON *expect = get_expect(c, keys, error), *given = values_get(c, "args");
	struct resource_stats stats;
	struct variation_risk risk;
	struct score_args args;

	score_args_default(&args, SCORE_UPSTREAM);
	if (!expect || !read_stats(values_get(c, "stats"), &stats, error) ||
	    !values_only(given, arg_keys, error) ||
	    !values_number(given, "margin", &args.safe_variance_margin, error) ||
	    !values_number(given, "sensitivity", &args.safe_variance_sensitivity, error))
		return FAILED;
	variation_risk(SCORE_UPSTREAM, &args, &stats, &risk);
	return values_same_int(expect, "score", round_away(risk.score), error) ? PASSED : FAILED;
}

enum outcome run_mu_sigma(const cJSON *c, struct error *error)
{
	static const char *const keys[] = {"mu", "sigma", NULL};
	const cJSON *expect = get_expect(c, keys, error);
	struct resource_stats stats;
	double mu, sigma;

	if (!expect || !read_stats(values_get(c, "stats"), &stats, error))
		return FAILED;
	resource_stats_mu_sigma(&stats, &mu, &sigma);
	return values_same(expect, "mu", mu, error) && values_same(expect, "sigma", sigma, error)
		       ? PASSED
		       : FAILED;
}

static bool check_stats(const cJSON *expect, const struct score_metric *metric, double capacity,
			double request, double unit, struct error *error)
{
	const cJSON *valid = values_get(expect, "valid");
	struct resource_stats stats;

	if (valid && cJSON_IsTrue(valid) != metric->known) {
		values_fail(error, "valid is %s", metric->known ? "true" : "false");
		return false;
	}
	if (!metric->known)
		return true;
	resource_stats_init(&stats, metric, capacity, capacity, request);
	return values_same(expect, "capacity", stats.capacity / unit, error) &&
	       values_same(expect, "req", stats.request / unit, error) &&
	       values_same(expect, "used_avg", stats.used_mean / unit, error) &&
	       values_same(expect, "used_stdev", stats.used_stddev / unit, error);
}

/* Memory is expected in MiB; the product counts bytes. */
enum outcome run_create_stats(const cJSON *c, struct error *error)
{
	static const char *const keys[] = {"valid",    "capacity",   "req",
					   "used_avg", "used_stdev", NULL};
	const cJSON *expect = get_expect(c, keys, error);
	const char *resource = cJSON_GetStringValue(values_get(c, "resource"));
	struct resource_list allocatable, request;
	struct metric_entry *metrics;
	struct score_metric metric;
	size_t count;
	bool ok;

	if (!expect || !values_resources(values_get(c, "allocatable"), &allocatable, error) ||
	    !values_resources(values_get(c, "pod_request"), &request, error))
		return FAILED;
	if (!resource || (strcmp(resource, "cpu") != 0 && strcmp(resource, "memory") != 0))
		return values_fail(error, "resource must be cpu or memory");
	ok = values_metrics(values_get(c, "metrics"), &metrics, &count, error);
	if (ok && strcmp(resource, "cpu") == 0) {
		metric = metric_select_mean_stddev(metrics, count, "CPU");
		ok = check_stats(expect, &metric, (double)allocatable.cpu_milli,
				 (double)request.cpu_milli, 1, error);
	} else if (ok) {
		metric = metric_select_mean_stddev(metrics, count, "Memory");
		ok = check_stats(expect, &metric, (double)allocatable.mem_bytes,
				 (double)request.mem_bytes, MIB, error);
	}
	free(metrics);
	return ok ? PASSED : FAILED;
}

static enum outcome run_effective(const cJSON *c, bool limits, struct error *error)
{
	static const char *const keys[] = {"cpu_m", "mem_b", NULL};
	const cJSON *expect = get_expect(c, keys, error);
	struct pod_spec pod;
	bool ok = expect && values_pod(values_get(c, "pod"), &pod, error);

	if (!expect)
		return FAILED;
	ok = ok &&
	     values_same_int(expect, "cpu_m", pod_spec_need(&pod, RESOURCE_CPU, limits, true),
			     error) &&
	     values_same_int(expect, "mem_b", pod_spec_need(&pod, RESOURCE_MEMORY, limits, true),
			     error);
	pod_spec_free_members(&pod);
	return ok ? PASSED : FAILED;
}

enum outcome run_effective_request(const cJSON *c, struct error *error)
{
	return run_effective(c, false, error);
}

enum outcome run_effective_limit(const cJSON *c, struct error *error)
{
	return run_effective(c, true, error);
}

static bool same_sum(const cJSON *expect, const char *key, int64_t cpu_milli, int64_t mem_bytes,
		     struct error *error)
{
	static const char *const keys[] = {"cpu_m", "mem_b", NULL};
	const cJSON *want = values_get(expect, key);
	bool same = values_only(want, keys, error) &&
		    values_same_int(want, "cpu_m", cpu_milli, error) &&
		    values_same_int(want, "mem_b", mem_bytes, error);

	if (!same)
		error_prefix(error, "%s", key);
	return same;
}

static bool check_sums(const cJSON *c, const struct score_load *load, const struct pod_spec *pod,
		       struct error *error)
{
	static const char *const keys[] = {"request",	      "limit",	  "request_minus_pod",
					   "limit_minus_pod", "capacity", NULL};
	const cJSON *expect = get_expect(c, keys, error);
	struct resource_list allocatable;
	struct node_sums cpu, mem;

	if (!expect || !values_resources(values_get(c, "allocatable"), &allocatable, error))
		return false;
	cpu = score_sums_with_pod(&load->of[SCORE_CPU], pod, SCORE_CPU, allocatable.cpu_milli);
	mem = score_sums_with_pod(&load->of[SCORE_MEMORY], pod, SCORE_MEMORY,
				  allocatable.mem_bytes);
	return same_sum(expect, "request", cpu.request, mem.request, error) &&
	       same_sum(expect, "limit", cpu.limit, mem.limit, error) &&
	       same_sum(expect, "request_minus_pod", cpu.request_minus_pod, mem.request_minus_pod,
			error) &&
	       same_sum(expect, "limit_minus_pod", cpu.limit_minus_pod, mem.limit_minus_pod,
			error) &&
	       same_sum(expect, "capacity", allocatable.cpu_milli, allocatable.mem_bytes, error);
}

enum outcome run_node_requests_limits(const cJSON *c, struct error *error)
{
	const cJSON *list = values_get(c, "pods");
	struct score_load load = {.of = {{0}}};
	struct pod_spec pod;
	bool ok = true;

	for (const cJSON *item = list ? list->child : NULL; ok && item; item = item->next) {
		ok = values_pod(item, &pod, error);
		if (ok)
			score_fixture_add_pod(&load, &pod);
		pod_spec_free_members(&pod);
	}
	if (!ok)
		return FAILED;
	ok = values_pod(values_get(c, "pod"), &pod, error) && check_sums(c, &load, &pod, error);
	pod_spec_free_members(&pod);
	return ok ? PASSED : FAILED;
}
