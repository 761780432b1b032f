/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/policy/recent_pods.h"

#include "aggregator/policy/arith.h"
#include "aggregator/policy/target_load_packing.h"

#define NS_PER_S 1000000000LL

/* b - a, for times that may be as far apart as they like. */
static int64_t seconds_between(int64_t a, int64_t b)
{
	int64_t d;

	if (__builtin_sub_overflow(b, a, &d))
		return a < b ? INT64_MAX : INT64_MIN;
	return d;
}

bool recent_pod_counts(int64_t placed_s, int64_t window_end_s)
{
	return seconds_between(placed_s, window_end_s) < RECENT_POD_SECONDS;
}

size_t recent_pods_expired(const int64_t *placed_s, size_t count, int64_t now_s, bool upstream)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (seconds_between(placed_s[middle], now_s) < RECENT_POD_SECONDS)
			high = middle;
		else
			low = middle + 1;
	}
	return upstream && low == count ? 0 : low;
}

static int64_t expect_upstream(const struct kube_pod *pod, const struct score_args *args,
			       int64_t window_end_s)
{
	if (!recent_pod_counts(pod->scheduled_ns / NS_PER_S, window_end_s))
		return 0;
	return target_load_packing_predict(&pod->template->spec, args, true);
}

static double expect_cpu(const struct view *v, const struct kube_pod *pod,
			 const struct score_args *args)
{
	const struct owner_use *owner = view_owner(v, pod->template->owner.uid);

	return owner ? owner->cpu_milli
		     : (double)target_load_packing_predict(&pod->template->spec, args, false);
}

void recent_pods_expect(const struct view *v, const struct view_node *n,
			const struct score_query *q, int64_t *cpu_milli, int64_t *mem_bytes)
{
	int64_t cpu_sum = 0, mem_sum = 0;

	for (size_t i = 0; i < n->recent_count; i++) {
		const struct kube_pod *pod = n->recents[i].pod;
		double share = (double)n->recents[i].uncovered;
		double mem = (double)kube_pod_requests(pod)->of[RESOURCE_MEMORY];

		if (q->variant == SCORE_UPSTREAM) {
			cpu_sum = add_saturating(
				cpu_sum, expect_upstream(pod, q->args, n->page->end_ns / NS_PER_S));
			continue;
		}
		cpu_sum = add_saturating(cpu_sum,
					 round_saturating(share * expect_cpu(v, pod, q->args)));
		mem_sum = add_saturating(mem_sum, round_saturating(share * mem));
	}
	*cpu_milli = cpu_sum;
	*mem_bytes = mem_sum;
}
