/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/join_fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "shared/clock.h"
#include "shared/mem.h"
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

struct pod_stats join_fixture_pod(const char *name, const char *uid, int64_t end_ns, double seconds,
				  double cpu_milli, double working_set_bytes)
{
	struct pod_stats pod = {.name = name, .uid = uid, .kind = ENTITY_POD};
	struct usage_summary u = {0};

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

static const char *place(char **at, const char *text)
{
	size_t size = strlen(text) + 1;
	const char *copy = memcpy(*at, text, size);

	*at += size;
	return copy;
}

/* Strings and limits in a block of their own, as the usage state keeps them. */
static struct stats_names *name_all(struct node_stats *stats, struct pod_stats *pods)
{
	size_t size = strlen(stats->name) + 1;
	struct stats_names *names;
	char *at;

	for (size_t i = 0; i < stats->pod_count; i++)
		size += strlen(pods[i].name) + strlen(pods[i].uid) + 2;
	names = stats_names_new(stats->pod_count, size);
	at = names->text;
	stats->name = place(&at, stats->name);
	for (size_t i = 0; i < stats->pod_count; i++) {
		pods[i].name = place(&at, pods[i].name);
		pods[i].uid = place(&at, pods[i].uid);
		names->limits[i] = pods[i].limits ? *pods[i].limits : KERNEL_LIMITS_UNKNOWN;
		pods[i].limits = &names->limits[i];
	}
	return names;
}

struct node_stats *join_fixture_stats(const char *node, int64_t end_ns,
				      const struct pod_stats *pods, size_t count)
{
	struct node_stats from = view_fixture_node(node, end_ns, 3600, 1000, 100), *stats;
	struct pod_stats *own = mem_zalloc(count + 1, sizeof(*own));
	static uint64_t layouts;

	for (size_t i = 0; i < count; i++)
		own[i] = pods[i];
	from.layout = ++layouts;
	from.pods = own;
	from.pod_count = count;
	from.names = name_all(&from, own);
	stats = node_stats_new(&from);
	stats_names_drop(from.names);
	free(own);
	return stats;
}

struct node_stats *join_fixture_stats_after(const struct node_stats *before,
					    const struct pod_stats *pods)
{
	struct node_stats from = *before, *stats;
	struct pod_stats *own = mem_zalloc(before->pod_count + 1, sizeof(*own));

	for (size_t i = 0; i < before->pod_count; i++) {
		own[i] = before->pods[i];
		own[i].usage = pods[i].usage;
	}
	from.pods = own;
	stats = node_stats_new(&from);
	free(own);
	return stats;
}
