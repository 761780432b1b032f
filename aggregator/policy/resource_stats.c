/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/policy/resource_stats.h"

#include "aggregator/policy/arith.h"

void resource_stats_init(struct resource_stats *s, const struct score_metric *metric,
			 double percent_of, double capacity, double request)
{
	s->capacity = capacity;
	s->request = request;
	s->used_mean = metric->mean * percent_of / 100;
	s->used_stddev = metric->stddev * percent_of / 100;
}

void resource_stats_mu_sigma(const struct resource_stats *s, double *mu, double *sigma)
{
	*mu = *sigma = 0;
	if (s->capacity <= 0)
		return;
	*mu = clamp((s->used_mean + s->request) / s->capacity, 0, 1);
	*sigma = clamp(s->used_stddev / s->capacity, 0, 1);
}

static struct resource_sums plus(struct resource_sums a, struct resource_sums b)
{
	return (struct resource_sums){
		add_saturating(a.cpu_milli, b.cpu_milli),
		add_saturating(a.mem_bytes, b.mem_bytes),
	};
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static struct resource_sums cut(struct resource_sums a, const struct resource_sums *at)
{
	return (struct resource_sums){least(a.cpu_milli, at->cpu_milli),
				      least(a.mem_bytes, at->mem_bytes)};
}

static void add_pod(const struct pod_spec *p, struct resource_sums *request,
		    struct resource_sums *limit)
{
	struct resource_sums own = {pod_spec_cpu_milli(p, false, true),
				    pod_spec_mem_bytes(p, false, true)};
	struct resource_sums bound = {
		most(own.cpu_milli, pod_spec_cpu_milli(p, true, true)),
		most(own.mem_bytes, pod_spec_mem_bytes(p, true, true)),
	};

	*request = plus(*request, own);
	*limit = plus(*limit, bound);
}

void node_sums_upstream(const struct pod_spec *pods, size_t count, const struct pod_spec *pod,
			const struct resource_sums *allocatable, struct node_sums *sums)
{
	struct resource_sums request = {0, 0}, limit = {0, 0};

	for (size_t i = 0; i < count; i++)
		add_pod(&pods[i], &request, &limit);
	sums->request_minus_pod = cut(request, allocatable);
	sums->limit_minus_pod = limit;
	add_pod(pod, &request, &limit);
	sums->request = cut(request, allocatable);
	sums->limit = limit;
}
