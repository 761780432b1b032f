/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cases about the arithmetic below LowRiskOverCommitment: one resource's risk, a probability, the
 * beta distribution.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/score/risk.h"
#include "tests/conformance/values.h"

#define TOLERANCE 1e-12
#define STEP	  1e-5

static const cJSON *expect_of(const cJSON *c, const char *const *keys, struct error *error)
{
	const cJSON *expect = values_get(c, "expect");

	if (!cJSON_IsObject(expect) || !expect->child) {
		values_fail(error, "nothing is expected");
		return NULL;
	}
	return values_only(expect, keys, error) ? expect : NULL;
}

/* expect {KEY, tol} */
static enum outcome check(const cJSON *c, const char *key, double got, struct error *error)
{
	const char *const keys[] = {key, "tol", NULL};
	const cJSON *expect = expect_of(c, keys, error);
	double tolerance = TOLERANCE;

	if (!expect || !values_get(expect, key))
		return expect ? values_fail(error, "no %s is expected", key) : FAILED;
	if (values_get(expect, "tol") && !values_number(expect, "tol", &tolerance, error))
		return FAILED;
	return values_near(expect, key, got, tolerance, error) ? PASSED : FAILED;
}

/* --- compute_risk ----------------------------------------------------------------------------- */

static bool read_sums(const cJSON *c, enum score_resource resource, struct commitment *out,
		      struct error *error)
{
	static const char *const keys[] = {"request",	      "limit",	  "request_minus_pod",
					   "limit_minus_pod", "capacity", NULL};
	double *const members[] = {&out->request, &out->limit, &out->request_minus_pod,
				   &out->limit_minus_pod, &out->allocatable};
	const cJSON *sums = values_get(c, "node_requests_limits");

	if (!cJSON_IsObject(sums) || !values_only(sums, keys, error)) {
		values_fail(error, "a case must have node_requests_limits");
		return false;
	}
	for (size_t i = 0; keys[i]; i++)
		if (!values_number(values_get(sums, keys[i]),
				   resource == SCORE_CPU ? "cpu_m" : "mem_b", members[i], error))
			return false;
	return true;
}

static bool read_load(const cJSON *c, enum score_resource resource, struct commitment *out,
		      struct error *error)
{
	const char *type = resource == SCORE_CPU ? "CPU" : "Memory";
	struct resource_list allocatable;
	struct resource_stats stats;
	struct metric_entry *metrics;
	struct score_metric metric;
	size_t count;
	bool ok = values_metrics(values_get(c, "metrics"), &metrics, &count, error) &&
		  values_resources(values_get(c, "allocatable"), &allocatable, error);

	if (ok) {
		metric = metric_select_mean_stddev(metrics, count, type);
		out->measured = metric.known;
		out->machine = (double)(resource == SCORE_CPU ? allocatable.cpu_milli
							      : allocatable.mem_bytes);
		resource_stats_init(&stats, &metric, out->machine, out->machine, 0);
		resource_stats_mu_sigma(&stats, &out->mu, &out->sigma);
	}
	free(metrics);
	return ok;
}

enum outcome run_low_risk_compute(const cJSON *c, struct error *error)
{
	const char *name = cJSON_GetStringValue(values_get(c, "resource"));
	struct commitment commitment = {0};
	struct commitment_risk risk;
	enum score_resource resource;
	struct score_args args;

	score_args_default(&args, SCORE_UPSTREAM);
	if (!name || (strcmp(name, "cpu") != 0 && strcmp(name, "memory") != 0))
		return values_fail(error, "resource must be cpu or memory");
	resource = strcmp(name, "cpu") == 0 ? SCORE_CPU : SCORE_MEMORY;
	if (!values_risk_args(values_get(c, "args"), &args, error) ||
	    !read_sums(c, resource, &commitment, error) ||
	    !read_load(c, resource, &commitment, error))
		return FAILED;
	commitment_risk(SCORE_UPSTREAM, args.risk_limit_weights[resource],
			args.smoothing_window_size, &commitment, &risk);
	return check(c, "risk", risk.total, error);
}

/* --- the distribution ------------------------------------------------------------------------- */

enum outcome run_low_risk_probability(const cJSON *c, struct error *error)
{
	const cJSON *input = values_get(c, "input");
	double mu, sigma, threshold;
	struct beta fit;
	bool fitted;

	if (!values_number(input, "mu", &mu, error) ||
	    !values_number(input, "sigma", &sigma, error) ||
	    !values_number(input, "threshold", &threshold, error))
		return FAILED;
	return check(c, "value",
		     commitment_probability(SCORE_UPSTREAM, mu, sigma, threshold, &fitted, &fit),
		     error);
}

static bool read_shapes(const cJSON *c, struct beta *d, struct error *error)
{
	const cJSON *input = values_get(c, "input");

	return values_number(input, "alpha", &d->a, error) &&
	       values_number(input, "beta", &d->b, error);
}

static bool same_moments(const cJSON *expect, bool valid, const double *moments,
			 struct error *error)
{
	const cJSON *want = cJSON_GetObjectItemCaseSensitive(expect, "moments");
	int count = cJSON_GetArraySize(want);

	if (!want)
		return true;
	if (cJSON_IsNull(want) != !valid || (valid && (!cJSON_IsArray(want) || count > 3))) {
		values_fail(error, "the parameters are %s", valid ? "valid" : "rejected");
		return false;
	}
	for (int i = 0; valid && i < count; i++) {
		double value = cJSON_GetArrayItem(want, i)->valuedouble;

		if (fabs(value - moments[i]) > TOLERANCE) {
			values_fail(error, "moment %d is %.17g, expected %.17g", i + 1, moments[i],
				    value);
			return false;
		}
	}
	return true;
}

static bool beta_moments(struct beta d, double moments[3])
{
	if (!(d.a > 0 && d.b > 0))
		return false;
	moments[0] = d.a / (d.a + d.b);
	moments[1] = moments[0] * (d.a + 1) / (d.a + d.b + 1);
	moments[2] = moments[1] * (d.a + 2) / (d.a + d.b + 2);
	return true;
}

/* Moments, and where asked for the mean and the variance that follow from them. */
enum outcome run_beta_moments(const cJSON *c, struct error *error)
{
	static const char *const keys[] = {"moments", "mean", "variance", "var", "tol", NULL};
	const cJSON *expect = expect_of(c, keys, error);
	double m[3] = {0, 0, 0}, tolerance = TOLERANCE;
	struct beta d;
	bool valid;

	if (!expect || !read_shapes(c, &d, error))
		return FAILED;
	if (values_get(expect, "tol") && !values_number(expect, "tol", &tolerance, error))
		return FAILED;
	valid = beta_moments(d, m);
	return same_moments(expect, valid, m, error) &&
			       values_near(expect, "mean", m[0], tolerance, error) &&
			       values_near(expect, "variance", m[1] - m[0] * m[0], tolerance,
					   error) &&
			       values_near(expect, "var", m[1] - m[0] * m[0], tolerance, error)
		       ? PASSED
		       : FAILED;
}

enum outcome run_beta_match(const cJSON *c, struct error *error)
{
	static const char *const keys[] = {"ok", "alpha", "beta", "tol", NULL};
	const cJSON *expect = expect_of(c, keys, error), *input = values_get(c, "input");
	struct beta fit = {0, 0};
	double m1, m2;
	bool ok;

	if (!expect || !values_number(input, "m1", &m1, error) ||
	    !values_number(input, "m2", &m2, error))
		return FAILED;
	ok = beta_match(m1, m2 - m1 * m1, &fit);
	if (!cJSON_IsBool(values_get(expect, "ok")) || cJSON_IsTrue(values_get(expect, "ok")) != ok)
		return values_fail(error, "ok is %s", ok ? "true" : "false");
	return values_near(expect, "alpha", fit.a, 1e-9, error) &&
			       values_near(expect, "beta", fit.b, 1e-9, error)
		       ? PASSED
		       : FAILED;
}

enum outcome run_beta_density(const cJSON *c, struct error *error)
{
	struct beta d;
	double x;

	if (!read_shapes(c, &d, error) || !values_number(values_get(c, "input"), "x", &x, error))
		return FAILED;
	/* The slope of the distribution function. */
	return check(c, "value",
		     (beta_distribution(d, x + STEP) - beta_distribution(d, x - STEP)) / (2 * STEP),
		     error);
}

enum outcome run_beta_distribution(const cJSON *c, struct error *error)
{
	struct beta d;
	double x;

	if (!read_shapes(c, &d, error) || !values_number(values_get(c, "input"), "x", &x, error))
		return FAILED;
	return check(c, "value", beta_distribution(d, x), error);
}

enum outcome run_beta_variance_max(const cJSON *c, struct error *error)
{
	double mean;

	if (!values_number(values_get(c, "input"), "m1", &mean, error))
		return FAILED;
	return check(c, "value", beta_variance_max(mean), error);
}
