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

static const char *place(char **at, const char *text)
{
	size_t size = strlen(text) + 1;
	const char *copy = memcpy(*at, text, size);

	*at += size;
	return copy;
}

/* Strings and limits in a block of their own, as the usage state keeps them. */
static struct page_names *name_all(struct node_page *page, struct page_pod *pods)
{
	size_t size = strlen(page->name) + 1;
	struct page_names *names;
	char *at;

	for (size_t i = 0; i < page->pod_count; i++)
		size += strlen(pods[i].name) + strlen(pods[i].uid) + 2;
	names = page_names_new(page->pod_count, size);
	at = names->text;
	page->name = place(&at, page->name);
	for (size_t i = 0; i < page->pod_count; i++) {
		pods[i].name = place(&at, pods[i].name);
		pods[i].uid = place(&at, pods[i].uid);
		names->limits[i] = pods[i].limits ? *pods[i].limits : KERNEL_LIMITS_UNKNOWN;
		pods[i].limits = &names->limits[i];
	}
	return names;
}

struct node_page *join_fixture_page(const char *node, int64_t end_ns, const struct page_pod *pods,
				    size_t count)
{
	struct node_page from = view_fixture_node(node, end_ns, 3600, 1000, 100), *page;
	struct page_pod *own = mem_zalloc(count + 1, sizeof(*own));
	static uint64_t layouts;

	for (size_t i = 0; i < count; i++)
		own[i] = pods[i];
	from.layout = ++layouts;
	from.pods = own;
	from.pod_count = count;
	from.names = name_all(&from, own);
	page = page_new(&from);
	page_names_drop(from.names);
	free(own);
	return page;
}

struct node_page *join_fixture_page_after(const struct node_page *before,
					  const struct page_pod *pods)
{
	struct node_page from = *before, *page;
	struct page_pod *own = mem_zalloc(before->pod_count + 1, sizeof(*own));

	for (size_t i = 0; i < before->pod_count; i++) {
		own[i] = before->pods[i];
		own[i].usage = pods[i].usage;
	}
	from.pods = own;
	page = page_new(&from);
	free(own);
	return page;
}
