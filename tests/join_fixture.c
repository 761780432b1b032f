/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/join_fixture.h"

#include <math.h>

#include "shared/clock.h"
#include "tests/view_fixture.h"

static struct window_stats steady(int64_t end_ns, double seconds, double value)
{
	return (struct window_stats){
		.known = seconds > 0,
		.start_ns = end_ns - (int64_t)(seconds * NS_PER_SEC),
		.end_ns = end_ns,
		.samples = (uint64_t)(seconds * 10),
		.mean = value,
		.min = value,
		.max = value,
	};
}

struct page_pod join_fixture_pod(const char *name, const char *uid, int64_t end_ns, double seconds,
				 double cpu_milli, double working_set_bytes)
{
	struct page_pod pod = {.name = name, .uid = uid, .kind = ENTITY_POD};
	struct page_usage u = {0};

	for (int w = 0; w < WINDOWS; w++) {
		double covered = fmin(seconds, 300.0 * (w + 1));

		u.windows[w].cpu_milli = steady(end_ns, covered, cpu_milli);
		u.windows[w].mem_bytes = steady(end_ns, covered, 2 * working_set_bytes);
		u.windows[w].working_set_bytes = steady(end_ns, covered, working_set_bytes);
		u.windows[w].counts.seconds = covered;
	}
	pod_usage_pack(&u, end_ns, &pod.usage);
	return pod;
}

struct node_page *join_fixture_page(const char *node, int64_t end_ns, const struct page_pod *pods,
				    size_t count)
{
	struct node_page page = view_fixture_node(node, end_ns, 3600, 1000, 100);

	page.pods = pods;
	page.pod_count = count;
	return page_new(&page);
}
