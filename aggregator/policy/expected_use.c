/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why two numbers for CPU: a burst is placed before any of its pods is measured, and requests of
 * one workload are all wrong by the same factor. With nodes that use b each and pods that use u and
 * are guessed as g, filling the least used node first ends at most (u/g - 1) * (mean b - least b)
 * above the best there is where g < u, which has no bound, and at most (most b - mean b) above it
 * where g > u. So a guess that spreads pods is rather too large (cpu_high_milli), and one that
 * refuses nodes or plans is the most likely value (cpu_milli).
 */
#include "aggregator/policy/expected_use.h"

#include "aggregator/policy/arith.h"
#include "aggregator/policy/score/score_load.h"

const char *expected_use_source_name(enum use_source source)
{
	static const char *const names[] = {
		[USE_OF_WORKLOAD] = "workload",
		[USE_OF_LIMITS] = "limits",
		[USE_OF_REQUESTS] = "requests",
		[USE_OF_DEFAULT] = "default",
	};

	return names[source];
}

struct score_owner expected_use_of_owner(const struct view *v, const char *owner_uid,
					 const char *workload)
{
	const struct owner_use *owner = *owner_uid ? view_owner(v, owner_uid) : NULL;
	const struct workload_use *before;

	if (owner && owner->pods)
		return (struct score_owner){true, owner->cpu_milli, owner->cpu_p95_milli,
					    owner->working_set_bytes};
	before = view_workload(v, workload);
	if (!before)
		return (struct score_owner){.known = false};
	return (struct score_owner){true, before->cpu_milli, before->cpu_p95_milli,
				    before->working_set_bytes};
}

struct score_owner expected_use_of_pods_owner(const struct view *v, const struct kube_pod *pod)
{
	char workload[WORKLOAD_KEY_MAX + 1];

	workload_key_of(pod, workload);
	return expected_use_of_owner(v, pod->template->owner.uid, workload);
}

/* A limit without a request is the request. */
static void add_container(const struct container_spec *c, int64_t *requests, int64_t *limits)
{
	if (c->requests.has_cpu)
		*requests = add_saturating(*requests, c->requests.cpu_milli);
	else if (c->limits.has_cpu)
		*limits = add_saturating(*limits, c->limits.cpu_milli);
}

/* The request of the running pod; 0: none. */
static int64_t running_request(const struct pod_spec *pod, bool *by_limits)
{
	int64_t overhead = pod->overhead.has_cpu ? pod->overhead.cpu_milli : 0;
	int64_t requests = 0, limits = 0;

	*by_limits = false;
	if (pod->has_pod_resources && pod->pod_requests.has_cpu)
		return add_saturating(overhead, pod->pod_requests.cpu_milli);
	for (size_t i = 0; i < pod->container_count; i++)
		add_container(&pod->containers[i], &requests, &limits);
	for (size_t i = 0; i < pod->init_count; i++)
		if (pod->init[i].sidecar)
			add_container(&pod->init[i], &requests, &limits);
	*by_limits = requests <= 0 && limits > 0;
	return add_saturating(overhead, add_saturating(requests, limits));
}

static void guess_cpu(const struct pod_spec *pod, const struct score_args *args,
		      struct expected_use *out)
{
	struct pod_bound bound = pod_load_bound(pod, RESOURCE_CPU);
	bool by_limits;
	int64_t request = running_request(pod, &by_limits), limit = INT64_MAX, high;

	if (!bound.unlimited && bound.limit_running > 0)
		limit = bound.limit_running;

	out->source = USE_OF_DEFAULT;
	out->cpu_milli = args->default_requests_cpu_milli;
	if (args->use_limits && limit < INT64_MAX) {
		out->source = USE_OF_LIMITS;
		out->cpu_milli = limit;
	} else if (request > 0) {
		out->source = by_limits ? USE_OF_LIMITS : USE_OF_REQUESTS;
		out->cpu_milli =
			round_saturating((double)request * args->default_requests_multiplier);
	}
	high = out->cpu_milli > args->guess_cpu_milli ? out->cpu_milli : args->guess_cpu_milli;
	out->cpu_milli = out->cpu_milli < limit ? out->cpu_milli : limit;
	out->cpu_high_milli = high < limit ? high : limit;
}

void expected_use_read(const struct pod_spec *pod, const struct score_args *args,
		       const struct score_owner *owner, struct expected_use *out)
{
	*out = (struct expected_use){.mem_bytes =
					     pod_spec_need(pod, RESOURCE_MEMORY, false, false)};
	if (!owner->known) {
		if (pod->container_count) /* else nodes are asked about, and no pod */
			guess_cpu(pod, args, out);
		return;
	}
	out->source = USE_OF_WORKLOAD;
	out->cpu_milli = round_saturating(owner->cpu_milli);
	out->cpu_high_milli = round_saturating(at_least(owner->cpu_milli, owner->cpu_p95_milli));
	out->mem_bytes = round_saturating(owner->working_set_bytes);
}

struct reservation expected_use_reservation(const struct view *v, const struct kube_pod *pod,
					    const char *node)
{
	const struct score_owner owner = expected_use_of_pods_owner(v, pod);
	struct expected_use expected;
	struct score_args usual;

	score_args_default(&usual, SCORE_CORRECTED);
	expected_use_read(&pod->template->spec, &usual, &owner, &expected);
	return (struct reservation){
		.uid = pod->object.uid,
		.namespace = pod->object.namespace,
		.name = pod->object.name,
		.node = node,
		.requests = *kube_pod_requests(pod),
		.expected_cpu_milli = expected.cpu_milli,
		.expected_high_cpu_milli = expected.cpu_high_milli,
		.expected_mem_bytes = expected.mem_bytes,
		.priority = pod->template->priority,
	};
}
