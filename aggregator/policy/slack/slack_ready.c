/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many pods of a class could start now, and which nodes would hold the unplaced ones.
 *
 *   slots          sum over nodes that count and admit it of min over resources of floor(free /
 *                  shape); free is room beside real pods, which preempt balloons
 *   slots by use   of these, as many as fit in the headroom of real use, each with the use of its
 *                  workload's pods (else its requests)
 *   fragmentation  1 - slots * shape / free; 0 for a shape without requests
 *
 * Classes with constraints on other pods, or with requests beyond CPU and memory, are tried pod by pod,
 * up to twice what is wanted and at least SLOTS_TRIED; their fragmentation is that of their size, since
 * rules do not fragment free room. A node that is 40 % requested and 97 % used has slots by requests
 * only.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/arith.h"
#include "aggregator/policy/expected_use.h"
#include "aggregator/policy/slack/slack_internal.h"
#include "shared/array.h"
#include "shared/mem.h"

enum { SLOTS_TRIED = 16 };

#define INSTANCE_TYPE "node.kubernetes.io/instance-type"

/* How many the node could hold when empty, by requests beside CPU and memory. */
static int64_t fit_by_others(const struct slack_run *r, const struct slack_pattern *p, size_t n)
{
	const struct resources *gives = &r->view->nodes[n]->model->node->allocatable;
	int64_t fit = INT64_MAX, amount;
	const char *name;
	size_t at = 0;

	while (p->other_resources &&
	       resources_next(kube_pod_requests(p->record), &at, &name, &amount)) {
		int64_t there = 0;

		if (amount <= 0 || strcmp(name, resource_name(RESOURCE_CPU)) == 0 ||
		    strcmp(name, resource_name(RESOURCE_MEMORY)) == 0)
			continue;
		resources_find(gives, name, &there);
		fit = int_min(fit, there / amount);
	}
	return fit;
}

bool slack_fits_some_node(const struct slack_run *r, const struct slack_entry *e)
{
	for (size_t n = 0; n < r->survey.count; n++)
		if (r->survey.counts[n] &&
		    slack_amount_fits(&e->pattern.shape, &r->survey.nodes[n].gives) &&
		    place_admits(r->place, e->probe, (place_node)n) &&
		    fit_by_others(r, &e->pattern, n) > 0)
			return true;
	return false;
}

/* --- slots */

struct slots {
	int64_t by_requests, by_use;
	bool more;
	struct slack_amount free; /* on nodes that admit it */
};

/* The key of an entry is that of its workload (workload_key()). */
static struct slack_amount expected_use(const struct slack_run *r, const struct slack_entry *e)
{
	struct score_owner use;

	if (e->kind != SLACK_WORKLOAD)
		return e->pattern.shape;
	use = expected_use_of_owner(r->view, e->owner_uid, e->key);
	if (!use.known)
		return e->pattern.shape;
	return (struct slack_amount){(int64_t)ceil(int_max((int64_t)use.cpu_milli, 0)),
				     int_max((int64_t)use.working_set_bytes, 0)};
}

static int64_t waste_ppm(int64_t slots, int64_t shape, int64_t free)
{
	__int128 used = (__int128)slots * shape;

	if (free <= 0 || shape == 0 || used >= free)
		return 0;
	return (int64_t)((free - used) * SLACK_PPM / free);
}

/* Of the resource of which the shape takes the larger share. */
static int64_t fragmentation(const struct slots *s, const struct slack_amount *shape)
{
	bool by_cpu = (__int128)shape->cpu_milli * s->free.mem_bytes >=
		      (__int128)shape->mem_bytes * s->free.cpu_milli;

	return by_cpu ? waste_ppm(s->by_requests, shape->cpu_milli, s->free.cpu_milli)
		      : waste_ppm(s->by_requests, shape->mem_bytes, s->free.mem_bytes);
}

/* As many of `here` pods as the node has headroom for. */
static int64_t slots_by_use(const struct slack_run *r, size_t n, const struct slack_amount *use,
			    int64_t here)
{
	const struct slack_node *node = &r->survey.nodes[n];

	return node->measured ? int_min(here, slack_slots(&node->headroom, use)) : 0;
}

static bool is_tried(const struct slack_entry *e)
{
	return e->pattern.minds_others || e->pattern.other_resources;
}

/* Counts by use only of classes that are not tried. */
static struct slots count_slots(struct slack_run *r, uint32_t class)
{
	const struct slack_entry *e = r->classes[class];
	const struct slack_node_set *g = slack_node_set_of(r, e->probe);
	struct slack_amount use = expected_use(r, e);
	struct slots s = {.free = g->free};

	for (uint32_t i = 0; i < g->count; i++) {
		const struct slack_node *node = &r->survey.nodes[g->nodes[i]];
		int64_t here = int_min(slack_slots(&node->free, &e->pattern.shape),
				       int_max(node->free_pods, 0));

		s.by_requests = add_saturating(s.by_requests, here);
		if (here && !is_tried(e))
			s.by_use =
				add_saturating(s.by_use, slots_by_use(r, g->nodes[i], &use, here));
	}
	return s;
}

/* Places pods of the class one by one as the core admits them, then undoes it. */
static void try_slots(struct slack_run *r, uint32_t class, struct slots *s)
{
	const struct slack_entry *e = r->classes[class];
	int64_t most = (int64_t)e->wanted * 2 > SLOTS_TRIED ? (int64_t)e->wanted * 2 : SLOTS_TRIED;
	struct slack_amount use = expected_use(r, e);
	uint32_t *here = mem_zalloc(r->survey.count + 1, sizeof(*here));
	place_mark m = place_fork(r->place);
	place_node n = 0;

	slack_take_balloons(r);
	while (s->by_requests < most && n != PLACE_NONE && !slack_is_out_of_time(r)) {
		uint32_t h = slack_holder_new(r, class); /* may move the holders */
		place_pod pod = r->holders[h].pod;

		n = place_choose(r->place, pod, PLACE_EMPTIEST_FIRST, PLACE_NONE, r->survey.counts,
				 NULL);
		if (n == PLACE_NONE)
			break;
		place_put(r->place, pod, n);
		here[n]++;
		s->by_requests++;
	}
	place_revert(r->place, m);
	s->more = n != PLACE_NONE;
	for (size_t i = 0; i < r->survey.count; i++)
		if (here[i])
			s->by_use += slots_by_use(r, i, &use, here[i]);
	free(here);
}

/* Makes all tried holders spare again. */
static void spare_all(struct slack_run *r, uint32_t class)
{
	r->classes[class]->spare = UINT32_MAX;
	for (size_t h = r->holder_count; h-- > 0 && r->holders[h].class == class;) {
		r->holders[h].next = r->classes[class]->spare;
		r->classes[class]->spare = (uint32_t)h;
	}
}

void slack_ready_slots(struct slack_run *r)
{
	for (uint32_t c = 0; c < r->class_count && !slack_is_out_of_time(r); c++) {
		struct slack_class *report = &r->reports[c];
		struct slots s = count_slots(r, c);

		report->fragmentation_ppm = fragmentation(&s, &r->classes[c]->pattern.shape);
		if (is_tried(r->classes[c])) {
			s = (struct slots){0};
			try_slots(r, c, &s);
			spare_all(r, c);
		}
		report->slots = s.by_requests;
		report->slots_more = s.more;
		report->slots_by_use = r->survey.any_measured ? s.by_use : -1;
	}
}

/* --- nodes to add */

/* Nodes of one size and instance type. */
struct type {
	place_node like;
	const char *instance_type;
	struct slack_amount gives;
	int64_t pods;
	uint32_t count;
};

/*
 * A node to add. It takes one pod of a class with constraints on other pods, and one class at most
 * with requests beyond CPU and memory.
 */
struct bin {
	size_t type;
	struct slack_amount left;
	int64_t pods;
	bool others_taken;
};

struct packing {
	struct slack_run *run;
	size_t type_count, bin_count;
	struct type *types; /* by size */
	struct bin *bins;
};

static int compare_kinds(const struct type *a, const struct type *b)
{
	return COMPARE(a->gives.cpu_milli, b->gives.cpu_milli)
		?: COMPARE(a->gives.mem_bytes, b->gives.mem_bytes)
		?: strcmp(a->instance_type, b->instance_type);
}

static int compare_types(const void *left, const void *right)
{
	const struct type *a = left, *b = right;

	return compare_kinds(a, b) ?: COMPARE(a->like, b->like);
}

/* Every node that counts, by size; equal ones may differ in labels and taints. */
static void find_types(struct packing *p)
{
	const struct slack_run *r = p->run;

	p->types = mem_zalloc(r->survey.count + 1, sizeof(*p->types));
	for (place_node n = 0; n < r->survey.count; n++) {
		const struct kube_node *node;
		const char *instance;

		if (!r->survey.counts[n])
			continue;
		node = r->view->nodes[n]->model->node;
		instance = labels_find(&node->labels, INSTANCE_TYPE);
		p->types[p->type_count++] = (struct type){
			.like = n,
			.instance_type = instance ? instance : "",
			.gives = r->survey.nodes[n].gives,
			.pods = node->allocatable.of[RESOURCE_PODS],
		};
	}
	qsort(p->types, p->type_count, sizeof(*p->types), compare_types);
}

static int64_t fits_in(const struct slack_entry *e, const struct slack_amount *left, int64_t pods)
{
	int64_t fit = int_min(slack_slots(left, &e->pattern.shape), int_max(pods, 0));

	return e->pattern.minds_others ? int_min(fit, 1) : fit;
}

static int64_t fits_in_bin(const struct packing *p, const struct slack_entry *e,
			   const struct bin *b)
{
	if (b->others_taken && e->pattern.other_resources)
		return 0;
	return int_min(fits_in(e, &b->left, b->pods),
		       fit_by_others(p->run, &e->pattern, p->types[b->type].like));
}

/* Of the smallest type that takes a pod of the class. False: none does. */
static bool add_bin(struct packing *p, const struct slack_entry *e)
{
	for (size_t t = 0; t < p->type_count; t++) {
		struct type *type = &p->types[t];

		if (fits_in(e, &type->gives, type->pods) <= 0 ||
		    fit_by_others(p->run, &e->pattern, type->like) <= 0 ||
		    !place_admits(p->run->place, e->probe, type->like))
			continue;
		ARRAY_ADD(p->bins, p->bin_count) = (struct bin){t, type->gives, type->pods, false};
		type->count++;
		return true;
	}
	return false;
}

static void pack(struct packing *p, const struct slack_entry *e, int64_t count)
{
	for (size_t b = 0; count > 0 && (b < p->bin_count || add_bin(p, e)); b++) {
		struct bin *bin = &p->bins[b];
		int64_t some = int_min(count, fits_in_bin(p, e, bin));

		if (some <= 0 || !place_admits(p->run->place, e->probe, p->types[bin->type].like))
			continue;
		slack_amount_add(&bin->left, &e->pattern.shape, -some);
		bin->pods -= some;
		bin->others_taken |= e->pattern.other_resources;
		count -= some;
	}
}

static void report_types(const struct packing *p)
{
	struct slack_result *out = p->run->result;
	const struct type *last = NULL;

	out->demand = mem_zalloc(p->type_count + 1, sizeof(*out->demand));
	for (size_t t = 0; t < p->type_count; t++) {
		const struct type *type = &p->types[t];

		if (!type->count)
			continue;
		if (!last || compare_kinds(last, type) != 0)
			out->demand[out->demand_count++] = (struct slack_demand){
				.like = place_node_name(p->run->place, type->like),
				.instance_type = type->instance_type,
				.gives = type->gives,
			};
		out->demand[out->demand_count - 1].count += type->count;
		last = type;
	}
}

void slack_ready_demand(struct slack_run *r)
{
	struct packing p = {.run = r};

	find_types(&p);
	for (size_t i = 0; i < r->class_count && !slack_is_out_of_time(r); i++) {
		const struct slack_class *report = &r->reports[r->order[i]];

		if (report->unplaced && !report->fits_no_node)
			pack(&p, r->classes[r->order[i]], report->unplaced);
	}
	report_types(&p);
	free(p.types);
	free(p.bins);
}
