/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stats are one block of memory: struct node_stats, its pods, all their containers, then all limits
 * and strings unless those are shared. So a rebuild is one allocation, the last drop is one free,
 * and a reader's walk over a node touches neighbouring lines. Strings and limits would be half of the
 * block and change only when something starts or ends on the node: the usage state shares them,
 * which spares it their copies (120 MiB at 5000 nodes) and the cache misses.
 */
#include "aggregator/state/node_stats.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "shared/arith.h"
#include "shared/mem.h"
#include "shared/refs.h"

enum { STATS_STEP = 1024 };

/* Where the next container, limits and string go. */
struct cursor {
	struct container_stats *container;
	struct kernel_limits *limits;
	char *text; /* NULL: strings and limits are shared */
};

struct stats_names *stats_names_new(size_t limits, size_t text_size)
{
	struct stats_names *n = mem_alloc(sizeof(*n) + limits * sizeof(n->limits[0]) + text_size);

	atomic_init(&n->users, 1);
	n->limit_count = limits;
	n->text = (char *)&n->limits[limits];
	return n;
}

void stats_names_drop(struct stats_names *n)
{
	if (n && refs_drop(&n->users))
		free(n);
}

static size_t text_size(const char *text)
{
	return (text ? strlen(text) : 0) + 1;
}

static size_t strings_size(const struct node_stats *from)
{
	size_t size = text_size(from->name);

	for (size_t i = 0; i < from->pod_count; i++) {
		const struct pod_stats *pod = &from->pods[i];

		size += text_size(pod->name) + text_size(pod->uid);
		for (size_t c = 0; c < pod->container_count; c++)
			size += text_size(pod->containers[c].name) +
				text_size(pod->containers[c].id);
	}
	return size;
}

static size_t count_containers(const struct node_stats *from)
{
	size_t count = 0;

	for (size_t i = 0; i < from->pod_count; i++)
		count += from->pods[i].container_count;
	return count;
}

static const char *place_text(struct cursor *at, const char *text)
{
	size_t size;
	char *copy = at->text;

	if (!copy)
		return text;
	size = text_size(text);
	memcpy(copy, text ? text : "", size);
	at->text += size;
	return copy;
}

static const struct kernel_limits *place_limits(struct cursor *at,
						const struct kernel_limits *limits)
{
	if (!at->text)
		return limits;
	*at->limits = limits ? *limits : KERNEL_LIMITS_UNKNOWN;
	return at->limits++;
}

static void place_containers(struct cursor *at, struct pod_stats *pod)
{
	const struct container_stats *from = pod->containers;

	pod->containers = at->container;
	for (size_t i = 0; i < pod->container_count; i++) {
		struct container_stats *c = at->container++;

		*c = from[i];
		c->name = place_text(at, c->name);
		c->id = place_text(at, c->id);
		c->limits = place_limits(at, c->limits);
	}
}

static void place_pods(struct cursor *at, const struct node_stats *from, struct pod_stats *pods)
{
	for (size_t i = 0; i < from->pod_count; i++) {
		pods[i] = from->pods[i];
		pods[i].name = place_text(at, pods[i].name);
		pods[i].uid = place_text(at, pods[i].uid);
		pods[i].limits = place_limits(at, pods[i].limits);
		place_containers(at, &pods[i]);
		assert(from->names || i == 0 || strcmp(pods[i - 1].name, pods[i].name) <= 0);
	}
}

/*
 * Stats take the place of others that were dropped: of few sizes, one that fits is found at
 * once, and none is cut up.
 */
static size_t coarse(size_t size)
{
	return (size + STATS_STEP - 1) / STATS_STEP * STATS_STEP;
}

/* Snapshots may hold any number; 2^14 of these can be added. */
static int64_t whole(double amount)
{
	return (int64_t)fmin(fmax(amount, 0), 0x1p48);
}

struct held pod_stats_held(const struct pod_stats *p)
{
	const struct latest *used = &p->usage.latest.mem_bytes;
	const struct latest *spared = &p->usage.latest.mem_protected_bytes;

	if (p->kind != ENTITY_POD)
		return (struct held){0, 0};
	return (struct held){
		.cpu_milli = whole((double)p->limits->cpu_exclusive_milli),
		.mem_bytes = used->known && spared->known
				     ? whole(fmin((double)used->value, (double)spared->value))
				     : 0,
	};
}

static void add_unused(int64_t held, const struct latest *used,
		       const struct pod_window_stats windows[WINDOWS], int64_t *idle,
		       int64_t *unseen)
{
	double now = used->known ? (double)used->value : 0;

	*idle += whole((double)held - now);
	if (windows[WINDOW_5M].samples)
		now = fmax(now, (double)windows[WINDOW_5M].max);
	*unseen += whole((double)held - now);
}

static void sum_held(struct node_stats *stats)
{
	stats->exclusive_cpu_milli = 0;
	stats->idle = stats->unseen = (struct held){0, 0};
	for (size_t i = 0; i < stats->pod_count; i++) {
		const struct pod_stats *p = &stats->pods[i];
		struct held held = pod_stats_held(p);

		stats->exclusive_cpu_milli += held.cpu_milli;
		add_unused(held.cpu_milli, &p->usage.latest.cpu_milli, p->usage.cpu_milli,
			   &stats->idle.cpu_milli, &stats->unseen.cpu_milli);
		add_unused(held.mem_bytes, &p->usage.latest.working_set_bytes,
			   p->usage.working_set_bytes, &stats->idle.mem_bytes,
			   &stats->unseen.mem_bytes);
	}
}

struct node_stats *node_stats_new_bounded(const struct node_stats *from)
{
	size_t containers = count_containers(from);
	size_t limits = from->names ? 0 : from->pod_count + containers;
	size_t size = sizeof(*from) + from->pod_count * sizeof(*from->pods) +
		      containers * sizeof(struct container_stats) +
		      limits * sizeof(struct kernel_limits);
	struct node_stats *stats = mem_alloc(coarse(size + (from->names ? 0 : strings_size(from))));
	struct pod_stats *pods = (struct pod_stats *)(stats + 1);
	struct cursor at = {.container = (struct container_stats *)(pods + from->pod_count)};

	at.limits = (struct kernel_limits *)(at.container + containers);
	if (!from->names)
		at.text = (char *)(at.limits + limits);
	memcpy(stats, from, sizeof(*stats));
	atomic_init(&stats->users, 1);
	if (stats->names)
		refs_hold(&stats->names->users);
	stats->peaks = from->peaks ? node_peaks_hold(from->peaks) : NULL;
	stats->name = place_text(&at, from->name);
	stats->pods = pods;
	place_pods(&at, from, pods);
	sum_held(stats);
	return stats;
}

/* --- bounds ----------------------------------------------------------------------------------- */

static void add_limit(struct kernel_bound *b, int64_t limit, int64_t whole)
{
	if (limit == LIMIT_UNKNOWN)
		b->unknown++;
	else if (limit < 0 || (whole > 0 && limit >= whole))
		b->unlimited++;
	else
		b->limits = add_saturating(b->limits, limit);
}

/* Whether the pod's own bound is what counts, rather than those of its containers. */
static bool is_tighter(const struct kernel_bound *own, const struct kernel_bound *inside)
{
	if (own->unlimited || own->unknown)
		return false;
	return inside->unlimited || inside->unknown || own->limits < inside->limits;
}

static void add_pod(struct kernel_bound *sum, const struct pod_stats *p, int64_t whole,
		    int64_t (*of)(const struct kernel_limits *))
{
	struct kernel_bound own = {0, 0, 0}, inside = {0, 0, 0};
	const struct kernel_bound *pod = &inside;

	add_limit(&own, of(p->limits), whole);
	for (size_t i = 0; i < p->container_count; i++)
		add_limit(&inside, of(p->containers[i].limits), whole);
	if (!p->container_count || is_tighter(&own, &inside))
		pod = &own;
	sum->limits = add_saturating(sum->limits, pod->limits);
	sum->unlimited += pod->unlimited;
	sum->unknown += pod->unknown;
}

static int64_t cpu_of(const struct kernel_limits *limits)
{
	return limits->cpu_milli;
}

static int64_t mem_of(const struct kernel_limits *limits)
{
	return limits->mem_bytes;
}

int64_t node_stats_shared_cpu(const struct kernel_limits *pod, int64_t allocatable_milli,
			      int64_t exclusive_milli)
{
	return pod->cpu_exclusive_milli > 0 ? allocatable_milli
					    : allocatable_milli - exclusive_milli;
}

void kernel_bounds_sum(const struct pod_stats *pods, size_t count, int64_t whole_cpu_milli,
		       int64_t exclusive_milli, int64_t whole_mem_bytes,
		       struct kernel_bounds *bounds)
{
	*bounds = (struct kernel_bounds){{0, 0, 0}, {0, 0, 0}};
	for (size_t i = 0; i < count; i++) {
		if (pods[i].kind != ENTITY_POD && pods[i].kind != ENTITY_CONTAINER)
			continue;
		add_pod(&bounds->cpu, &pods[i],
			node_stats_shared_cpu(pods[i].limits, whole_cpu_milli, exclusive_milli),
			cpu_of);
		add_pod(&bounds->mem, &pods[i], whole_mem_bytes, mem_of);
	}
}

struct node_stats *node_stats_new(const struct node_stats *from)
{
	struct node_stats *stats = node_stats_new_bounded(from);

	kernel_bounds_sum(stats->pods, stats->pod_count, stats->cpu_allocatable_milli,
			  stats->exclusive_cpu_milli, stats->mem_allocatable_bytes, &stats->bounds);
	return stats;
}

struct node_stats *node_stats_hold(struct node_stats *p)
{
	refs_hold(&p->users);
	return p;
}

void node_stats_drop(struct node_stats *p)
{
	if (!p || !refs_drop(&p->users))
		return;
	node_peaks_drop(p->peaks);
	stats_names_drop(p->names);
	free(p);
}

void node_stats_pod_usage(const struct node_stats *p, const struct pod_stats *pod,
			  struct usage_summary *out)
{
	pod_usage_unpack(&pod->usage, p->end_ns, out);
}

int64_t stats_age_ns(int64_t end_ns, int64_t aside_ns, int64_t now_ns)
{
	int64_t age_ns = now_ns - end_ns;

	return (age_ns > 0 ? age_ns : 0) + aside_ns;
}

int64_t node_stats_age_ns(const struct node_stats *p, int64_t now_ns)
{
	return stats_age_ns(p->end_ns, p->aside_ns, now_ns);
}

enum freshness node_stats_freshness(const struct node_stats *p, int64_t now_ns)
{
	int64_t age_ns;

	if (!p || p->end_ns == 0)
		return NEVER;
	age_ns = node_stats_age_ns(p, now_ns);
	if (age_ns < FRESH_NS)
		return FRESH;
	return age_ns > EXPIRED_NS ? EXPIRED : LATE;
}

const char *freshness_name(enum freshness f)
{
	static const char *const name[] = {
		[FRESH] = "fresh",
		[LATE] = "late",
		[EXPIRED] = "expired",
		[NEVER] = "none",
	};

	return name[f];
}
