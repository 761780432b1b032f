/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packs by measured CPU: nodes fill up to a target X in turn; beyond, the least loaded wins.
 *
 *     U = 100 * (used + pod + pending) / C        the use with the pod, in percent
 *     U <= X:        score = (100 - X) * U / X + X
 *     X < U <= 100:  score = X * (100 - U) / (100 - X)
 *     U > 100:       score = 0
 *
 * (KEP-61; pending: predictions for pods that the measurement does not show.) The variants differ in
 * the prediction (target_load_packing_predict(), expected_use.h) and in C: upstream the capacity,
 * corrected the allocatable.
 *
 * upstream scores X for a node without CPU (U = 0), above 100 for a target above 100, and wraps around
 * predictions beyond int64.
 */
#include "aggregator/policy/score/plugin.h"

#include "aggregator/policy/arith.h"

static int64_t predict_container(const struct container_spec *c, const struct score_args *args)
{
	if (c->limits.has_cpu)
		return c->limits.cpu_milli;
	if (!c->requests.has_cpu)
		return args->default_requests_cpu_milli;
	return round_away((double)c->requests.cpu_milli * args->default_requests_multiplier);
}

int64_t target_load_packing_predict(const struct pod_spec *pod, const struct score_args *args)
{
	int64_t sum = 0;

	for (size_t i = 0; i < pod->container_count; i++)
		sum = add_saturating(sum, predict_container(&pod->containers[i], args));
	return add_saturating(sum, pod->overhead.has_cpu ? pod->overhead.cpu_milli : 0);
}

SCORE_ARITHMETIC double unrounded(double u, double target)
{
	if (u > 100 && u > target)
		return 0;
	if (u > target)
		return target * (100 - u) / (100 - target);
	return (100 - target) * u / target + target;
}

static void tell(struct score_result *r, double u, double target, int64_t used, int64_t added,
		 int64_t of)
{
	score_write(r, "CPU would be at %.1f %%, ", u);
	if (u > 100)
		score_write(r, "more than there is");
	else
		score_write(r, "%s the target of %.1f %%", u > target ? "above" : "within", target);
	score_write(r, " (%" PRId64 "m measured + %" PRId64 "m expected of %" PRId64 "m)", used,
		    added, of);
}

SCORE_ARITHMETIC void judge(const struct score_query *q, const struct score_node *node,
			    struct score_result *r)
{
	const struct score_args *args = q->args;
	bool upstream = q->variant == SCORE_UPSTREAM;
	double capacity = (double)node->cpu_capacity_milli;
	int64_t of = upstream ? node->cpu_capacity_milli : node->cpu_allocatable_milli;
	double used = node->cpu.mean / 100 * capacity;
	struct expected_use expected = score_expected(q);
	double u = 0, score;

	if (of != 0)
		u = 100 * (used + (double)expected.cpu_milli + (double)node->pending_cpu_milli) /
		    (double)of;
	score = unrounded(u, args->target_utilization);
	if (!upstream && q->owner.known)
		score_term(r, "ownerCpuMean", "millicores", q->owner.cpu_milli);
	score_term(r, "cpuMean", "percent", node->cpu.mean);
	score_term(r, "cpuCapacity", "millicores", capacity);
	score_term(r, "cpuUsed", "millicores", used);
	score_term(r, "podCpu", "millicores", (double)expected.cpu_milli);
	score_term(r, "pendingCpu", "millicores", (double)node->pending_cpu_milli);
	if (!upstream)
		score_term(r, "cpuAllocatable", "millicores", (double)of);
	score_term(r, "cpuExpected", "percent", u);
	score_term(r, "targetUtilization", "percent", args->target_utilization);
	score_term(r, "unrounded", "", score);
	r->score = round_away(score);
	if (score_tells(r))
		tell(r, u, args->target_utilization, round_away(used),
		     add_saturating(expected.cpu_milli, node->pending_cpu_milli), of);
}

SCORE_PLUGIN_FUNCTIONS(target_load_packing, false)
