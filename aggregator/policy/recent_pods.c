/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/policy/recent_pods.h"

#include "aggregator/policy/arith.h"
#include "aggregator/policy/expected_use.h"
#include "aggregator/policy/score/plugin.h"

#define NS_PER_S 1000000000LL

bool recent_pod_counts(int64_t placed_s, int64_t window_end_s)
{
	int64_t seconds;

	if (__builtin_sub_overflow(window_end_s, placed_s, &seconds))
		return window_end_s < placed_s;
	return seconds < RECENT_POD_SECONDS;
}

/* The use while it was measured; false: not measured yet. */
static bool read_measured(const struct pod_stats *use, struct expected_use *out)
{
	const struct pod_window_stats *cpu = use ? &use->usage.cpu_milli[WINDOW_5M] : NULL;

	if (!cpu || !cpu->samples)
		return false;
	*out = (struct expected_use){
		.cpu_milli = round_saturating((double)cpu->mean),
		.cpu_high_milli = round_saturating((double)cpu->mean),
		.mem_bytes = round_saturating((double)use->usage.working_set_bytes[WINDOW_5M].max),
	};
	return true;
}

static void add_share(int64_t *sum, int64_t amount, double share)
{
	*sum = add_saturating(*sum, round_saturating(share * (double)amount));
}

static void add_expected(struct recent_use *sum, const struct expected_use *of, double uncovered)
{
	double unseen = uncovered >= 1;

	add_share(&sum->cpu_milli, of->cpu_milli, uncovered);
	add_share(&sum->cpu_high_milli, of->cpu_high_milli, uncovered);
	add_share(&sum->mem_bytes, of->mem_bytes, uncovered);
	add_share(&sum->unseen_cpu_milli, of->cpu_milli, unseen);
	add_share(&sum->unseen_high_cpu_milli, of->cpu_high_milli, unseen);
	add_share(&sum->unseen_mem_bytes, of->mem_bytes, unseen);
}

struct recent_use recent_pods_expect(const struct view *v, const struct view_node *n,
				     const struct score_query *q)
{
	struct recent_use sum = {0};

	for (size_t i = 0; i < n->recent_count; i++) {
		const struct kube_pod *pod = n->recents[i].pod;
		struct expected_use expected;
		struct score_owner owner;

		if (q->variant == SCORE_UPSTREAM) {
			if (recent_pod_counts(pod->scheduled_ns / NS_PER_S,
					      n->stats->end_ns / NS_PER_S))
				sum.cpu_milli = add_saturating(
					sum.cpu_milli,
					target_load_packing_predict(&pod->template->spec, q->args));
			continue;
		}
		if (!read_measured(n->recents[i].use, &expected)) {
			owner = expected_use_of_pods_owner(v, pod);
			expected_use_read(&pod->template->spec, q->args, &owner, &expected);
		}
		add_expected(&sum, &expected, (double)n->recents[i].uncovered);
	}
	return sum;
}
