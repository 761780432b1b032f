/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Real use of a node, and a prediction with one more pod. Sums are whole numbers, so that removing a
 * pod restores the exact sum in any order.
 *
 * A node uses more than its measured pods. Unmeasured pods share this rest (at least 0), each at least
 * its expected use and requests. A mean shows a young pod only in part, so the rest is scaled up for
 * it, within the node's capacity. Without such pods the rest belongs to the node: kubelet, kernel,
 * pods unknown to the API, and the covariance of pods.
 */
#include <math.h>
#include <string.h>

#include "aggregator/policy/arith.h"
#include "aggregator/policy/expected_use.h"
#include "aggregator/policy/place/place_internal.h"

#define MILLI_PARTS 1000.0
/* 35 million CPUs, or 32 TiB. 2^18 of these fit below INT64_MAX; 128-bit sums cost plans 50 %. */
#define AMOUNT_MAX 0x1p45
#define LIMIT_MAX  1e18

static int64_t whole(double value)
{
	return isnan(value) || value <= 0 ? 0 : llrint(fmin(value, AMOUNT_MAX));
}

static bool read_measured(const struct pod_stats *use, struct place_use *out)
{
	const struct pod_window_stats *cpu = pod_stats_longest(use->usage.cpu_milli);
	const struct pod_window_stats *mem = pod_stats_longest(use->usage.working_set_bytes);

	if (!mem)
		mem = pod_stats_longest(use->usage.mem_bytes);
	if (!cpu || !mem)
		return false;
	*out = (struct place_use){.cpu = whole((double)cpu->mean * MILLI_PARTS),
				  .variance = whole((double)cpu->stddev * (double)cpu->stddev *
						    MILLI_PARTS),
				  .mem = whole((double)mem->max),
				  .peaks = use->peaks,
				  .measured = true};
	return true;
}

/*
 * Exclusive CPUs and protected memory are no room for others while they are idle. Use does not vary
 * beyond the exclusive CPUs.
 */
static void hold(const struct pod_stats *use, struct place_use *out)
{
	const struct held held = pod_stats_held(use);

	out->held_cpu = whole((double)held.cpu_milli * MILLI_PARTS);
	out->held_mem = whole((double)held.mem_bytes);
	if (out->held_cpu >= out->cpu && out->held_cpu > 0)
		out->variance = 0;
	out->cpu = int_max(out->cpu, out->held_cpu);
	out->mem = int_max(out->mem, out->held_mem);
}

/* Without a request: the share of the average pod. Rounded up, so that shares cover the rest. */
static int64_t share_of(int64_t rest, int64_t request, place_sum requests, uint32_t askers,
			uint32_t pods)
{
	double part = request > 0 ? (double)askers * (double)request / (double)requests : 1;

	return (int64_t)ceil((double)rest * part / pods);
}

static void read_share(const struct place_rest *rest, const struct kube_pod *record,
		       struct place_use *out)
{
	const struct resources *asks = kube_pod_requests(record);

	*out = (struct place_use){
		.cpu = share_of(rest->cpu, asks->of[RESOURCE_CPU], rest->cpu_requests,
				rest->cpu_askers, rest->pods),
		.variance = share_of(rest->variance, asks->of[RESOURCE_CPU], rest->cpu_requests,
				     rest->cpu_askers, rest->pods),
		.mem = share_of(rest->mem, asks->of[RESOURCE_MEMORY], rest->mem_requests,
				rest->mem_askers, rest->pods),
	};
}

/* Share of the node's window that shows the pod; 0: it is new. Without a known time: 1. */
static double covered(const struct view_node *v, const struct kube_pod *pod)
{
	if (!pod->scheduled_ns && !pod->created_ns)
		return 1;
	for (size_t i = 0; i < v->recent_count; i++)
		if (v->recents[i].pod == pod)
			return 1 - (double)v->recents[i].uncovered;
	return 1;
}

void place_use_of_pod(const struct place *p, place_node home, const struct view_pod *vp,
		      const struct kube_pod *record, struct place_use *out)
{
	const struct resources *asks = kube_pod_requests(record);
	struct expected_use expected;
	struct score_owner owner;
	struct score_args args;

	if (vp && vp->use && read_measured(vp->use, out)) {
		hold(vp->use, out);
		return;
	}
	owner = expected_use_of_pods_owner(p->view, record);
	score_args_default(&args, SCORE_CORRECTED);
	expected_use_read(&record->template->spec, &args, &owner, &expected);
	/* A pod on a node counts at least its requests, even if others of its owner use less. */
	if (home != PLACE_NONE) {
		expected.cpu_milli = int_max(expected.cpu_milli, asks->of[RESOURCE_CPU]);
		expected.mem_bytes = int_max(expected.mem_bytes, asks->of[RESOURCE_MEMORY]);
	}
	*out = (struct place_use){0};
	if (home != PLACE_NONE && p->nodes[home].rest.pods &&
	    covered(p->nodes[home].view, record) > 0)
		read_share(&p->nodes[home].rest, record, out);
	out->cpu = int_max(out->cpu, whole((double)expected.cpu_milli * MILLI_PARTS));
	out->mem = int_max(out->mem, whole((double)expected.mem_bytes));
}

static int64_t hour_cpu(const struct place_use *u, int hour)
{
	float peak = u->peaks ? u->peaks->cpu_milli[hour] : NAN;

	return isnan(peak) ? u->cpu : int_max(u->held_cpu, whole((double)peak * MILLI_PARTS));
}

static int64_t hour_mem(const struct place_use *u, int hour)
{
	float peak = u->peaks ? u->peaks->working_set_bytes[hour] : NAN;

	return isnan(peak) ? u->mem : int_max(u->held_mem, whole((double)peak));
}

void place_use_add(struct place_node_use *u, const struct place_use *pod, int by)
{
	u->cpu += by * pod->cpu;
	u->variance += by * pod->variance;
	u->mem += by * pod->mem;
	for (int h = 0; h < PLACE_HOURS; h++) {
		u->peak_cpu[h] += by * hour_cpu(pod, h);
		u->peak_mem[h] += by * hour_mem(pod, h);
	}
}

/* Sums over pods that share a rest, each by the share of the window that shows it. */
struct coverage {
	double cpu_requests, mem_requests; /* of those with a request */
	double cpu_others, mem_others;
};

static void add_sharer(const struct kube_pod *pod, double part, struct place_rest *rest,
		       struct coverage *shown)
{
	int64_t cpu = kube_pod_requests(pod)->of[RESOURCE_CPU];
	int64_t mem = kube_pod_requests(pod)->of[RESOURCE_MEMORY];

	rest->pods++;
	rest->cpu_askers += cpu > 0;
	rest->mem_askers += mem > 0;
	rest->cpu_requests += cpu;
	rest->mem_requests += mem;
	shown->cpu_requests += part * (double)cpu;
	shown->mem_requests += part * (double)mem;
	shown->cpu_others += cpu > 0 ? 0 : part;
	shown->mem_others += mem > 0 ? 0 : part;
}

/* The use of all pods, if a mean with `shown` of them is `used`; room bounds it. */
static int64_t grown(int64_t used, uint32_t pods, double shown, int64_t room)
{
	double all = (double)used * pods / shown;

	return int_max(used, whole(fmin(all, (double)room)));
}

static void grow(const struct view_node *v, const struct coverage *shown, bool mem_is_mean,
		 const struct place_use *measured, struct place_rest *rest)
{
	double cpu = shown->cpu_others, mem = shown->mem_others;

	if (!rest->pods)
		return;
	if (rest->cpu_askers)
		cpu += rest->cpu_askers * shown->cpu_requests / (double)rest->cpu_requests;
	if (rest->mem_askers)
		mem += rest->mem_askers * shown->mem_requests / (double)rest->mem_requests;
	rest->cpu = grown(rest->cpu, rest->pods, cpu,
			  whole((double)v->cpu_capacity_milli * MILLI_PARTS) - measured->cpu);
	if (mem_is_mean)
		rest->mem = grown(rest->mem, rest->pods, mem,
				  whole((double)v->mem_capacity_bytes) - measured->mem);
}

/* Subtracts the use of measured pods and counts the unmeasured ones. */
static void divide(const struct view_node *v, bool mem_is_mean, struct place_rest *rest)
{
	struct place_use sum = {0}, one;
	struct coverage shown = {0};
	double part;

	for (size_t i = 0; i < v->pod_count; i++) {
		const struct view_pod *vp = &v->pods[i];

		if (!vp->pod || !kube_pod_is_active(vp->pod))
			continue;
		if (vp->use && read_measured(vp->use, &one)) {
			sum.cpu += one.cpu;
			sum.variance += one.variance;
			sum.mem += one.mem;
		} else if ((part = covered(v, vp->pod)) > 0) {
			add_sharer(vp->pod, part, rest, &shown);
		}
	}
	rest->cpu = int_max(0, rest->cpu - sum.cpu);
	rest->variance = int_max(0, rest->variance - sum.variance);
	rest->mem = int_max(0, rest->mem - sum.mem);
	grow(v, &shown, mem_is_mean, &sum, rest);
}

static double worst_contention(const struct window_counts *c)
{
	double worst = 0;

	for (int i = CONTENTION_CPU; i <= CONTENTION_MEMORY; i++)
		if (!isnan(c->pressure[i]))
			worst = fmax(worst, c->pressure[i]);
	return worst;
}

static const struct window_stats *memory_of(const struct window_set *set)
{
	return set->working_set_bytes.known ? &set->working_set_bytes : &set->mem_bytes;
}

void place_use_age(struct place *p, place_node n)
{
	const struct node_stats *stats = p->nodes[n].view->stats;
	enum freshness fresh = node_stats_freshness(stats, p->options.now_ns);
	const struct window_set *set = window_longest(stats->usage.windows, NULL);

	p->nodes[n].use_unknown =
		fresh == EXPIRED || !set || !set->cpu_milli.known || !memory_of(set)->known;
}

static void read_rest(const struct view_node *v, struct place_rest *out)
{
	const struct window_set *set = window_longest(v->stats->usage.windows, NULL);
	const struct window_stats *mem = set ? memory_of(set) : NULL;

	*out = (struct place_rest){0};
	if (!set || !set->cpu_milli.known || !mem->known)
		return;
	out->cpu = whole(set->cpu_milli.mean * MILLI_PARTS);
	out->variance = whole(set->cpu_milli.stddev * set->cpu_milli.stddev * MILLI_PARTS);
	out->mem = whole(fmax(mem->max, mem->mean)); /* a load-watcher tells no maximum */
	divide(v, !(mem->max >= mem->mean), out);
}

void place_use_base(const struct place *p, place_node n, struct place_node_use *out)
{
	const struct place_rest *rest = &p->nodes[n].rest;

	memset(out, 0, sizeof(*out));
	if (rest->pods)
		return;
	out->cpu = rest->cpu;
	out->variance = rest->variance;
	out->mem = rest->mem;
	for (int h = 0; h < PLACE_HOURS; h++) {
		out->peak_cpu[h] = out->cpu;
		out->peak_mem[h] = out->mem;
	}
}

void place_use_of_node(struct place *p, place_node n)
{
	const struct node_stats *stats = p->nodes[n].view->stats;

	place_use_age(p, n);
	p->nodes[n].contention = worst_contention(&stats->usage.windows[WINDOW_5M].counts);
	read_rest(p->nodes[n].view, &p->nodes[n].rest);
	place_use_base(p, n, &p->use[n]);
}

bool place_use_fits(const struct place *p, place_node n, const struct place_use *pod,
		    struct place_use_limits *told)
{
	const struct place_node_use *u = &p->use[n];
	const struct view_node *v = p->nodes[n].view;
	const struct place_cap *cap = &p->options.cap;
	double variance = (double)(u->variance + pod->variance) / MILLI_PARTS;
	struct place_use_limits l = {.cpu = (double)(u->cpu + pod->cpu) / MILLI_PARTS +
					    cap->z * sqrt(variance),
				     .cpu_limit = cap->cpu_share * (double)v->cpu_allocatable_milli,
				     .mem = (double)(u->mem + pod->mem),
				     .mem_limit = cap->mem_share * (double)v->mem_allocatable_bytes,
				     .hour = -1};

	for (int h = 0; l.cpu <= l.cpu_limit && l.mem <= l.mem_limit && h < PLACE_HOURS; h++) {
		l.cpu = (double)(u->peak_cpu[h] + hour_cpu(pod, h)) / MILLI_PARTS;
		l.mem = (double)(u->peak_mem[h] + hour_mem(pod, h));
		l.hour = h;
	}
	if (told)
		*told = l;
	return l.cpu <= l.cpu_limit && l.mem <= l.mem_limit;
}

/* Far from INT64_MAX, so subtracting a sum of use cannot overflow. */
static int64_t whole_limit(double limit)
{
	return (int64_t)clamp(ceil(limit), 0, LIMIT_MAX);
}

void place_use_room(const struct place *p, place_node n, int64_t *cpu, int64_t *mem)
{
	const struct place_node_use *u = &p->use[n];
	const struct view_node *v = p->nodes[n].view;
	const struct place_cap *cap = &p->options.cap;
	double sigma = sqrt((double)u->variance / MILLI_PARTS);

	/* Plus one for rounding. */
	*cpu = whole_limit((cap->cpu_share * (double)v->cpu_allocatable_milli - cap->z * sigma) *
			   MILLI_PARTS) -
	       u->cpu + 1;
	*mem = whole_limit(cap->mem_share * (double)v->mem_allocatable_bytes) - u->mem + 1;
}

bool place_predict(const struct place *p, place_node n, place_pod pod, struct place_prediction *out)
{
	const struct view_node *v = p->nodes[n].view;
	const struct place_cap *cap = &p->options.cap;
	struct place_node_use u = p->use[n];

	if (!p->cap || p->nodes[n].use_unknown)
		return false;
	if (pod != PLACE_NONE)
		place_use_add(&u, &place_slot(p, pod)->use, 1);
	out->cpu_limit_milli = cap->cpu_share * (double)v->cpu_allocatable_milli;
	out->mem_limit_bytes = cap->mem_share * (double)v->mem_allocatable_bytes;
	out->cpu_milli =
		(double)u.cpu / MILLI_PARTS + cap->z * sqrt((double)u.variance / MILLI_PARTS);
	out->mem_bytes = (double)u.mem;
	for (int h = 0; h < PLACE_HOURS; h++) {
		out->cpu_milli = fmax(out->cpu_milli, (double)u.peak_cpu[h] / MILLI_PARTS);
		out->mem_bytes = fmax(out->mem_bytes, (double)u.peak_mem[h]);
	}
	return true;
}

bool place_use_is_shared(const struct place *p)
{
	for (place_node n = 0; p->cap && n < p->node_count; n++)
		if (p->nodes[n].rest.pods && !p->nodes[n].use_unknown)
			return true;
	return false;
}
