/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/policy/drain/drain_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "shared/arith.h"

/* 0: empty, 1: only pods that end by themselves, 2: pods move. */
static int class_of(const struct drain_rank *r)
{
	return r->movable ? 2 : r->waiting > 0;
}

/* NaN costs the most. */
static int compare_costs(double a, double b)
{
	if (isnan(a) || isnan(b))
		return isnan(a) - isnan(b);
	return (a > b) - (a < b);
}

struct ranking {
	enum drain_variant variant;
	const struct drain_rank *of;
};

static int compare_ranks(const void *left, const void *right, void *ranking)
{
	const struct ranking *r = ranking;
	const size_t *i = left, *j = right;
	const struct drain_rank *a = &r->of[*i], *b = &r->of[*j];
	bool corrected = r->variant == DRAIN_CORRECTED;
	int order = class_of(a) - class_of(b);

	if (!corrected)
		return order ?: b->before - a->before ?: COMPARE(*i, *j);
	return order ?: a->bursting - b->bursting
		?: b->before - a->before
		?: COMPARE(a->movable, b->movable)
		?: compare_costs(a->cpu_milli, b->cpu_milli)
		?: compare_costs(a->working_set_bytes, b->working_set_bytes)
		?: (a->node ? strcmp(a->node, b->node) : 0)
		?: COMPARE(*i, *j);
}

void drain_order(enum drain_variant variant, const struct drain_rank *ranks, size_t count,
		 size_t *out)
{
	struct ranking r = {variant, ranks};

	for (size_t i = 0; i < count; i++)
		out[i] = i;
	qsort_r(out, count, sizeof(*out), compare_ranks, &r);
}

/* --- measurements of a node */

/* A pod bursts above mean + 3 sigma if that exceeds 1.5 * mean and mean + 100 millicores. */
static const double BURST_SIGMAS = 3, BURST_RATIO = 1.5, BURST_MILLI = 100;
/* Mean + 1.645 sigma is the 95th percentile of a normal distribution. */
static const double P95_SIGMAS = 1.645;

enum { TOLD_PODS = 3 };

bool drain_is_measured(const struct view_node *n, int64_t now_ns)
{
	enum freshness fresh = node_stats_freshness(n->stats, now_ns);

	return fresh == FRESH || fresh == LATE;
}

bool drain_is_unmeasured(const struct view_node *n, const struct kube_pod *const *pods,
			 size_t count, int64_t now_ns)
{
	if (drain_is_measured(n, now_ns))
		return false;
	for (size_t i = 0; i < count; i++)
		if (kube_pod_is_active(pods[i]) && !drain_is_daemon_pod(pods[i]))
			return true;
	return false;
}

bool drain_hides_pod(const struct cluster *cluster, const char *node, struct error *why)
{
	const struct unreadables *u = &cluster->sources[OBJECT_POD].unreadable;

	for (uint32_t i = 0; i < u->count; i++) {
		if (strcmp(u->of[i].node, node) != 0)
			continue;
		return error_fail(why, true, "its pod %.63s/%.253s cannot be read: %s",
				  u->of[i].namespace, u->of[i].name, u->of[i].why);
	}
	if (!u->more)
		return false;
	return error_fail(why, true, "more pods than are told cannot be read, and may be on it");
}

static double share_of(double part, int64_t whole)
{
	return whole > 0 ? part / (double)whole : 0;
}

bool drain_used_share(const struct view_node *n, int64_t now_ns, double *share)
{
	const struct window_set *set = window_longest(n->stats->usage.windows, NULL);
	const struct window_stats *mem;

	if (!drain_is_measured(n, now_ns) || !set || !set->cpu_milli.known)
		return false;
	mem = set->working_set_bytes.known ? &set->working_set_bytes : &set->mem_bytes;
	if (!mem->known)
		return false;
	*share = fmax(share_of(set->cpu_milli.mean, n->cpu_allocatable_milli),
		      share_of(mem->mean, n->mem_allocatable_bytes));
	return true;
}

static bool is_bursting(const struct pod_usage *u, const struct pod_window_stats *cpu)
{
	double now = u->latest.cpu_milli.known ? (double)u->latest.cpu_milli.value : 0;
	double mean = (double)cpu->mean;

	return now > mean + BURST_SIGMAS * (double)cpu->stddev && now > BURST_RATIO * mean &&
	       now - mean > BURST_MILLI;
}

/* Both lists have one order, so one walk finds each. */
void drain_rank_use(const struct view_node *n, const struct kube_pod *const *move, size_t count,
		    struct drain_rank *rank)
{
	size_t at = 0;

	for (size_t i = 0; i < n->pod_count && at < count; i++) {
		const struct pod_stats *use = n->pods[i].use;
		const struct pod_window_stats *cpu, *mem;

		if (n->pods[i].pod != move[at])
			continue;
		at++;
		cpu = use ? pod_stats_longest(use->usage.cpu_milli) : NULL;
		mem = use ? pod_stats_longest(use->usage.working_set_bytes) : NULL;
		if (cpu) {
			rank->cpu_milli += (double)cpu->mean;
			rank->bursting |= is_bursting(&use->usage, cpu);
		}
		rank->working_set_bytes += mem ? (double)mem->mean : 0;
	}
}

/* --- what right-sized requests would be */

struct pod_size {
	const struct kube_pod *pod;
	int64_t asked; /* of the resource that decides */
	double used; /* 95th percentile of CPU, largest working set */
};

static double largest_hour(const float hours[PEAK_HOURS])
{
	double largest = NAN;

	for (int h = 0; h < PEAK_HOURS; h++)
		largest = fmax(largest, (double)hours[h]);
	return largest;
}

/* NaN: not measured. */
static double used_of(const struct pod_stats *use, bool cpu)
{
	const struct pod_window_stats *w;
	double now = NAN;

	if (!use)
		return NAN;
	w = pod_stats_longest(cpu ? use->usage.cpu_milli : use->usage.working_set_bytes);
	if (w)
		now = cpu ? (double)w->mean + P95_SIGMAS * (double)w->stddev : (double)w->max;
	return use->peaks ? fmax(now, largest_hour(cpu ? use->peaks->cpu_milli
						       : use->peaks->working_set_bytes))
			  : now;
}

/* An unmeasured pod keeps its present requests. */
static double right_size(double used, double headroom, int64_t asked)
{
	return isnan(used) ? (double)asked : used * headroom;
}

/* Keeps those with the most to give, the most first. */
static void tell(struct pod_size told[TOLD_PODS], struct pod_size one)
{
	for (int i = 0; i < TOLD_PODS; i++) {
		struct pod_size other = told[i];

		if (other.pod && (double)other.asked - other.used >= (double)one.asked - one.used)
			continue;
		told[i] = one;
		if (!other.pod)
			return;
		one = other;
	}
}

static double right_sized_share(const struct view_node *n, double headroom, bool by_cpu,
				struct pod_size told[TOLD_PODS])
{
	double sums[] = {0, 0}; /* of memory, of CPU */

	for (size_t i = 0; i < n->pod_count; i++) {
		const struct view_pod *p = &n->pods[i];

		if (!p->pod || !kube_pod_is_active(p->pod))
			continue;
		for (int cpu = 0; cpu < 2; cpu++) {
			double used = used_of(p->use, cpu);
			int64_t asked =
				kube_pod_requests(p->pod)->of[cpu ? RESOURCE_CPU : RESOURCE_MEMORY];

			sums[cpu] += right_size(used, headroom, asked);
			if (cpu == by_cpu && !isnan(used))
				tell(told, (struct pod_size){p->pod, asked, used});
		}
	}
	return fmax(share_of(sums[1], n->cpu_allocatable_milli),
		    share_of(sums[0], n->mem_allocatable_bytes));
}

static void describe_told(const struct pod_size told[TOLD_PODS], bool by_cpu, struct buf *text)
{
	const double unit = by_cpu ? 1 : 1048576;

	for (int i = 0; i < TOLD_PODS && told[i].pod; i++)
		buf_printf(text, "%s%s/%s requests %.0f%s and uses %.0f", i ? ", " : "",
			   told[i].pod->object.namespace, told[i].pod->object.name,
			   (double)told[i].asked / unit, by_cpu ? "m" : "Mi", told[i].used / unit);
}

void drain_explain_idle(const struct drain_run *r, struct drain_case *c,
			const struct drain_utilization *u)
{
	struct pod_size told[TOLD_PODS] = {{0}};
	bool by_cpu = u->cpu >= u->memory;
	struct buf text = BUF_INIT;
	struct drain_why *w;
	double share, used;

	if (u->gpu || !drain_used_share(c->view, r->now_ns, &used))
		return;
	share = right_sized_share(c->view, r->config->headroom, by_cpu, told);
	c->out->right_sized_share = share;
	c->out->idle_in_fact = share <= r->config->rules.utilization;
	if (!c->out->idle_in_fact)
		return;
	describe_told(told, by_cpu, &text);
	w = drain_add_reason(c, DRAIN_NOT_UNDERUTILIZED,
			     "it uses %.1f%%: were requests what pods use at the 95th percentile, "
			     "times %.2f, they would be %.1f%%: %s",
			     used * 100, r->config->headroom, share * 100,
			     text.len ? text.data : "no pod is measured");
	w->unblock = "lower the requests of the named pods to what they use";
	drain_add_number(w, "usedShare", used);
	drain_add_number(w, "rightSizedShare", share);
	w->pod = told[0].pod;
	buf_fini(&text);
}
