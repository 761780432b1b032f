/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prefers nodes whose power rises least with the pod, by a model of each node: P(x) = k0 + k1 *
 * exp(k2 * x) watts at x percent of its CPU.
 *
 *     x = 100 * used / C   p = 100 * (used + request) / C   raw = k1 * (exp(k2 * p) - exp(k2 * x))
 *     score = 100 * (highest - raw) / (highest - lowest)
 *
 * k0 cancels. C is the capacity, on which the model is measured.
 *
 * upstream counts raw in 1e-15 W as an integer; 0 also stands for no measurement, no model and more
 * than 100 %, and so is often the best; if all raws are 0 all scores are, if they are equal otherwise
 * all are 100; overhead counts only with a CPU request.
 *
 * corrected gives 0, without normalisation, to a node without a model, with a raw that is no number,
 * or without room in its allocatable; x contains new pods; equal nodes get 100.
 */
#include "aggregator/policy/arith.h"
#include "aggregator/policy/score/plugin.h"

#define UPSTREAM_UNITS 1e15 /* per watt */

/* Go's conversion truncates; what does not fit becomes the least integer, as on amd64. */
static double truncated(double x)
{
	return fabs(x) < 9223372036854775808.0 ? trunc(x) : -9223372036854775808.0;
}

static double jump(const struct power_model *m, double x, double p)
{
	return m->k1 * (exp(m->k2 * p) - exp(m->k2 * x));
}

static int64_t request_upstream(const struct pod_spec *pod)
{
	int64_t overhead = pod->overhead.has_cpu ? pod->overhead.cpu_milli : 0;
	int64_t request = pod_spec_need(pod, RESOURCE_CPU, false, false);

	return request == overhead ? 0 : request;
}

static void raw_upstream(const struct score_query *q, const struct score_node *node,
			 struct score_result *r)
{
	static const struct power_model none = {"", 0, 0, 0};
	const struct power_model *model = node->power ? node->power : &none;
	double capacity = (double)node->cpu_capacity_milli;
	double used = node->cpu.mean / 100 * capacity;
	int64_t request = request_upstream(q->pod);
	double p = 0;

	if (!node->cpu.known)
		return;
	if (capacity != 0)
		p = 100 * (used + (double)request) / capacity;
	score_term(r, "cpuMean", "percent", node->cpu.mean);
	score_term(r, "cpuCapacity", "millicores", capacity);
	score_term(r, "podCpu", "millicores", (double)request);
	score_term(r, "cpuExpected", "percent", p);
	score_term(r, "k1", "watts", model->k1);
	score_term(r, "k2", "", model->k2);
	if (p <= 100)
		r->raw = truncated(jump(model, node->cpu.mean, p) * UPSTREAM_UNITS);
	score_term(r, "raw", "1e-15 watts", r->raw);
	score_say(r, "raw %.3f W", r->raw / UPSTREAM_UNITS);
}

SCORE_ARITHMETIC void raw_corrected(const struct score_query *q, const struct score_node *node,
				    struct score_result *r)
{
	double capacity = (double)node->cpu_capacity_milli;
	double used = node->cpu.mean / 100 * capacity + (double)node->pending_cpu_milli;
	double request = (double)score_request(q, SCORE_CPU);
	double x = 100 * used / capacity, p = 100 * (used + request) / capacity;

	score_term(r, "cpuMean", "percent", node->cpu.mean);
	score_term(r, "cpuCapacity", "millicores", capacity);
	score_term(r, "pendingCpu", "millicores", (double)node->pending_cpu_milli);
	score_term(r, "cpuNow", "percent", x);
	score_term(r, "podCpu", "millicores", request);
	score_term(r, "cpuAllocatable", "millicores", (double)node->cpu_allocatable_milli);
	score_term(r, "cpuExpected", "percent", p);
	if (!node->power) {
		score_keep_out("there is no power model of this node", r);
		return;
	}
	score_term(r, "k1", "watts", node->power->k1);
	score_term(r, "k2", "", node->power->k2);
	r->raw = jump(node->power, x, p);
	score_term(r, "raw", "watts", r->raw);
	if (used + request > (double)node->cpu_allocatable_milli)
		score_keep_out("CPU would be used beyond what is allocatable", r);
	else if (!isfinite(r->raw))
		score_keep_out("the power model gives no number here", r);
	else
		score_say(r, "the pod would raise power by %.3f W, CPU from %.1f to %.1f %%",
			  r->raw, x, p);
}

SCORE_ARITHMETIC void judge(const struct score_query *q, const struct score_node *node,
			    struct score_result *r)
{
	if (q->variant == SCORE_UPSTREAM)
		raw_upstream(q, node, r);
	else
		raw_corrected(q, node, r);
}

SCORE_PLUGIN_FUNCTIONS(peaks, true)

static int64_t spread_upstream(double raw, const struct score_scale *scale)
{
	if (scale->lowest == 0 && scale->highest == 0)
		return 0;
	if (scale->lowest == scale->highest)
		return 100;
	return 100 - (int64_t)(100 * (raw - scale->lowest) / (scale->highest - scale->lowest));
}

void peaks_normalize(const struct score_query *q, const struct score_scale *scale,
		     struct score_result *r)
{
	const char *unit = q->variant == SCORE_UPSTREAM ? "1e-15 watts" : "watts";
	double watt = q->variant == SCORE_UPSTREAM ? UPSTREAM_UNITS : 1;
	struct score_scale mirrored = {.lowest = -scale->highest, .highest = -scale->lowest};

	score_term(r, "lowest", unit, scale->lowest);
	score_term(r, "highest", unit, scale->highest);
	r->score = q->variant == SCORE_UPSTREAM ? spread_upstream(r->raw, scale)
						: score_spread(-r->raw, &mirrored);
	score_say(r, "; these nodes from %.3f to %.3f W", scale->lowest / watt,
		  scale->highest / watt);
}
