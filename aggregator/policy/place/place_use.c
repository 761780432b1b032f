/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Real use on a node, and what one more pod would make of it. Sums are whole numbers, so that
 * adding a pod and taking it away again leaves exactly what was there before, in whatever order.
 *
 * A node uses more than its measured pods. The rest, at least 0, is that of the pods which nobody
 * measured, though they were there: each has its share, and at least what is expected of it. Where
 * there are none it is the kubelet's, the kernel's and that of pods which the API does not know; it
 * stays on the node whoever moves, and of the variance it holds what the pods do together, too.
 */
#include <math.h>
#include <string.h>

#include "aggregator/policy/arith.h"
#include "aggregator/policy/expected_use.h"
#include "aggregator/policy/place/place_internal.h"

#define MILLI_PARTS 1000.0
/* Sums of thousands of these stay far below INT64_MAX. */
#define AMOUNT_MAX 1e15
#define LIMIT_MAX  1e18

static int64_t whole(double value)
{
	return isnan(value) || value <= 0 ? 0 : llrint(fmin(value, AMOUNT_MAX));
}

/* The longest window: it contains the others, and so is known if any is. */
static const struct pod_stats *known_stats(const struct pod_stats stats[WINDOWS])
{
	for (int w = WINDOW_15M; w >= WINDOW_5M; w--)
		if (stats[w].samples)
			return &stats[w];
	return NULL;
}

static bool read_measured(const struct page_pod *use, struct place_use *out)
{
	const struct pod_stats *cpu = known_stats(use->usage.cpu_milli);
	const struct pod_stats *mem = known_stats(use->usage.working_set_bytes);

	if (!mem)
		mem = known_stats(use->usage.mem_bytes);
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

/* As the average pod where it requests nothing. Rounded up: all shares are no less than the rest. */
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

static int64_t at_least_of(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Not in what the node uses, or not for long. One whose time is not told has been there. */
static bool is_recent(const struct view_node *v, const struct kube_pod *pod)
{
	if (!pod->scheduled_ns && !pod->created_ns)
		return false;
	for (size_t i = 0; i < v->recent_count; i++)
		if (v->recents[i].pod == pod)
			return v->recents[i].uncovered > 0;
	return false;
}

void place_use_of_pod(const struct place *p, place_node home, const struct view_pod *vp,
		      const struct kube_pod *record, struct place_use *out)
{
	struct expected_use expected;
	struct score_owner owner;
	struct score_args args;
	int64_t cpu, mem;

	if (vp && vp->use && read_measured(vp->use, out))
		return;
	owner = expected_use_of_pods_owner(p->view, record);
	score_args_default(&args, SCORE_CORRECTED);
	expected_use_read(&record->template->spec, &args, &owner, &expected);
	cpu = whole((double)expected.cpu_milli * MILLI_PARTS);
	mem = whole((double)expected.mem_bytes);
	*out = (struct place_use){0};
	if (home != PLACE_NONE && p->rest[home].pods && !is_recent(p->nodes[home].view, record))
		read_share(&p->rest[home], record, out);
	out->cpu = at_least_of(out->cpu, cpu);
	out->mem = at_least_of(out->mem, mem);
}

static int64_t hour_cpu(const struct place_use *u, int hour)
{
	float peak = u->peaks ? u->peaks->cpu_milli[hour] : NAN;

	return isnan(peak) ? u->cpu : whole((double)peak * MILLI_PARTS);
}

static int64_t hour_mem(const struct place_use *u, int hour)
{
	float peak = u->peaks ? u->peaks->working_set_bytes[hour] : NAN;

	return isnan(peak) ? u->mem : whole((double)peak);
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

static int64_t beyond(int64_t node, int64_t pods)
{
	return node > pods ? node - pods : 0;
}

/*
 * Takes off what its measured pods in the simulation use, and counts those that were there and are
 * not measured.
 */
static void divide(const struct view_node *v, struct place_rest *rest)
{
	struct place_use sum = {0}, one;

	for (size_t i = 0; i < v->pod_count; i++) {
		const struct view_pod *vp = &v->pods[i];
		const struct resources *asks;

		if (!vp->pod || !kube_pod_is_active(vp->pod))
			continue;
		if (vp->use && read_measured(vp->use, &one)) {
			sum.cpu += one.cpu;
			sum.variance += one.variance;
			sum.mem += one.mem;
			continue;
		}
		if (is_recent(v, vp->pod))
			continue;
		asks = kube_pod_requests(vp->pod);
		rest->pods++;
		rest->cpu_askers += asks->of[RESOURCE_CPU] > 0;
		rest->mem_askers += asks->of[RESOURCE_MEMORY] > 0;
		rest->cpu_requests += asks->of[RESOURCE_CPU];
		rest->mem_requests += asks->of[RESOURCE_MEMORY];
	}
	rest->cpu = beyond(rest->cpu, sum.cpu);
	rest->variance = beyond(rest->variance, sum.variance);
	rest->mem = beyond(rest->mem, sum.mem);
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
	const struct node_page *page = p->nodes[n].view->page;
	enum freshness fresh = page_freshness(page, p->options.now_ns);
	int window;
	const struct window_set *set = window_longest(page->usage.windows, &window);

	p->silent[n] = fresh == EXPIRED || fresh == NEVER || !set || !set->cpu_milli.known ||
		       !memory_of(set)->known;
}

static void read_rest(const struct view_node *v, struct place_rest *out)
{
	int window;
	const struct window_set *set = window_longest(v->page->usage.windows, &window);
	const struct window_stats *mem = set ? memory_of(set) : NULL;

	*out = (struct place_rest){0};
	if (!set || !set->cpu_milli.known || !mem->known)
		return;
	out->cpu = whole(set->cpu_milli.mean * MILLI_PARTS);
	out->variance = whole(set->cpu_milli.stddev * set->cpu_milli.stddev * MILLI_PARTS);
	out->mem = whole(fmax(mem->max, mem->mean)); /* a load-watcher tells no maximum */
	divide(v, out);
}

void place_use_base(const struct place *p, place_node n, struct place_node_use *out)
{
	const struct place_rest *rest = &p->rest[n];

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
	const struct node_page *page = p->nodes[n].view->page;

	place_use_age(p, n);
	p->contention[n] = worst_contention(&page->usage.windows[WINDOW_5M].counts);
	read_rest(p->nodes[n].view, &p->rest[n]);
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
	return (int64_t)clamp(ceil(limit), -LIMIT_MAX, LIMIT_MAX);
}

void place_use_room(const struct place *p, place_node n, int64_t *cpu, int64_t *mem)
{
	const struct place_node_use *u = &p->use[n];
	const struct view_node *v = p->nodes[n].view;
	const struct place_cap *cap = &p->options.cap;
	double sigma = sqrt((double)u->variance / MILLI_PARTS);

	/* One more than it is, for what is lost in rounding. */
	*cpu = whole_limit((cap->cpu_share * (double)v->cpu_allocatable_milli - cap->z * sigma) *
			   MILLI_PARTS) -
	       u->cpu + 1;
	*mem = whole_limit(cap->mem_share * (double)v->mem_allocatable_bytes) - u->mem + 1;
}

static void predict(const struct place *p, place_node n, const struct place_node_use *u,
		    struct place_prediction *out)
{
	const struct view_node *v = p->nodes[n].view;
	const struct place_cap *cap = &p->options.cap;

	out->cpu_limit_milli = cap->cpu_share * (double)v->cpu_allocatable_milli;
	out->mem_limit_bytes = cap->mem_share * (double)v->mem_allocatable_bytes;
	out->cpu_milli =
		(double)u->cpu / MILLI_PARTS + cap->z * sqrt((double)u->variance / MILLI_PARTS);
	out->mem_bytes = (double)u->mem;
	for (int h = 0; h < PLACE_HOURS; h++) {
		out->cpu_milli = fmax(out->cpu_milli, (double)u->peak_cpu[h] / MILLI_PARTS);
		out->mem_bytes = fmax(out->mem_bytes, (double)u->peak_mem[h]);
	}
}

bool place_predict(const struct place *p, place_node n, struct place_prediction *out)
{
	if (!p->cap || p->silent[n])
		return false;
	predict(p, n, &p->use[n], out);
	return true;
}

bool place_predict_with(const struct place *p, place_pod pod, place_node n,
			struct place_prediction *out)
{
	struct place_node_use with;

	if (!p->cap || p->silent[n])
		return false;
	with = p->use[n];
	place_use_add(&with, &place_slot(p, pod)->use, 1);
	predict(p, n, &with, out);
	return true;
}

bool place_use_is_shared(const struct place *p)
{
	for (place_node n = 0; p->cap && n < p->node_count; n++)
		if (p->rest[n].pods && !p->silent[n])
			return true;
	return false;
}
