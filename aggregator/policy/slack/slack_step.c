/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One step:
 *
 *   survey     what nodes give, and what real pods leave free
 *   targets    workloads (slack_wanted.c), the cover of workloads that share, units for the rest of
 *              the rate (slack_target.c); targets rise at once and drop late (slack_state.c)
 *   verify     placeholders return to their nodes; each is checked as if it came now, the largest of a
 *              node first, and pushed out if the scheduler would refuse it: real pods always win
 *   surplus    placeholders that are no longer wanted go from the emptiest nodes, which helps drains
 *   missing    wanted - held placeholders are placed (slack_balloon.c, slack_place.c)
 *   report     slots, nodes to add, narration; the places of all are remembered
 *
 * Placements follow requests, as the kube-scheduler does. If the simulation has a cap on real use, new
 * placeholders keep to it. Placed ones are not moved by it: use changes with every measurement, and
 * slack that wanders would keep drains from finishing.
 *
 * Cost: pods, nodes times distinct shapes, placeholders; searches use the placement core's tree.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/slack/slack_internal.h"
#include "shared/mem.h"

#define SECOND 1000000000LL
#define DAY    (24 * 3600 * SECOND)

/* --- options and results */

void slack_options_default(struct slack_options *o)
{
	*o = (struct slack_options){
		.rate_ppm = SLACK_PPM / 10,
		.base = SLACK_BASE_REQUESTED,
		.granularity = 5,
		.unneeded_ns = 600 * SECOND,
		.node_start_ns = 180 * SECOND,
		.arrivals_keep_ns = 14 * DAY,
		.cpu_share = 0.85,
		.mem_share = 0.90,
		.class_max = 5000,
		.placeholders_max = 50000,
		.displace_max = 20000,
	};
}

const char *slack_cause_name(enum slack_cause c)
{
	static const char *const names[SLACK_CAUSES] = {
		[SLACK_PUSHED_OUT] = "PushedOut", [SLACK_NODE_LEFT] = "NodeLeft",
		[SLACK_SURPLUS] = "Surplus",	  [SLACK_CLASS_LEFT] = "ClassLeft",
		[SLACK_DISPLACED] = "Displaced",  [SLACK_PLACED] = "Placed",
	};

	return names[c];
}

void slack_result_fini(struct slack_result *r)
{
	for (size_t i = 0; i < r->class_count; i++)
		object_drop((struct object *)&r->classes[i].record->object);
	for (size_t i = 0; i < r->issue_count; i++) {
		free(r->issues[i].who);
		free(r->issues[i].text);
	}
	for (size_t i = 0; i < r->name_count; i++)
		free(r->names[i]);
	free(r->classes);
	free(r->moves);
	free(r->placed);
	free(r->demand);
	free(r->issues);
	free(r->names);
	slack_basis_free(r->basis);
	buf_fini(&r->narration);
	view_drop(r->view);
	*r = (struct slack_result){0};
}

/* --- targets */

static void find_extra(struct slack_run *r)
{
	const struct slack_options *o = r->options;
	struct slack_result *out = r->result;

	out->extra =
		slack_extra(o->base == SLACK_BASE_REQUESTED ? &out->requested : &out->allocatable,
			    o->rate_ppm);
	if (!o->from_arrivals)
		return;
	out->arrival_spans = slack_arrivals_spans(&r->state->arrivals, r->now_ns);
	out->by_arrivals = out->arrival_spans >= slack_arrivals_needed(o->node_start_ns) &&
			   slack_arrivals_p95(&r->state->arrivals, r->now_ns, &out->extra);
}

/* Nodes that admit a pod without tolerations and selectors, as covers and units are. */
static struct slack_amount *plain_nodes(struct slack_run *r, size_t *count,
					const place_node **which)
{
	place_pod probe = place_add_pod(r->place, r->state->plain.record);
	const struct slack_node_set *set = slack_node_set_of(r, probe);
	struct slack_amount *of = mem_zalloc((size_t)set->count + 1, sizeof(*of));

	*count = set->count;
	*which = set->nodes;
	for (uint32_t i = 0; i < set->count; i++)
		of[i] = r->survey.nodes[set->nodes[i]].gives;
	return of;
}

/* The part of the extra room that workloads hold by themselves, unless no node can hold them. */
static struct slack_amount reserve(struct slack_run *r)
{
	struct slack_amount sum = {0, 0};
	struct slack_entry *e;

	for (e = r->state->entries; e; e = e->hh.next) {
		if (!e->found || e->kind != SLACK_WORKLOAD)
			continue;
		e->probe = place_add_pod(r->place, e->pattern.record);
		e->fits_no_node = !slack_fits_some_node(r, e);
		if (!e->fits_no_node)
			slack_amount_add(&sum, &e->pattern.shape, e->target);
		else if (e->target)
			slack_add_issue(r->result, e->key,
					"no node that counts and admits it could hold one, were it "
					"empty");
	}
	return sum;
}

static void want_shape(struct slack_run *r, const char *key, enum slack_kind kind,
		       const struct slack_amount *shape, int64_t count)
{
	struct slack_entry *e = slack_state_entry(r->state, key, kind);

	slack_pattern_of_shape(&e->pattern, key, shape);
	e->found = true;
	e->fits_no_node = false;
	e->probe = place_add_pod(r->place, e->pattern.record);
	e->target = (uint32_t)count;
}

/* Dropped shapes have the order of the shared ones. */
static void name_dropped(struct slack_run *r, const struct slack_shared *shared,
			 const struct slack_target *t)
{
	for (size_t i = 0, d = 0; d < t->dropped_count; i++) {
		if (memcmp(&shared->shapes[i], &t->dropped[d], sizeof(t->dropped[d])) != 0)
			continue;
		slack_add_issue(r->result, shared->who[i],
				"no node that counts could hold a pod of it, were it empty");
		d++;
	}
}

/* Units keep their shape as long as fewer would be kept. */
static void want_units(struct slack_run *r, const struct slack_target *t)
{
	struct slack_entry *e = slack_state_entry(r->state, "unit", SLACK_UNIT);
	struct slack_amount shape =
		slack_entry_follow_shape(e, t, r->now_ns, r->options->unneeded_ns);
	uint32_t units = e->target;

	if (units > r->options->placeholders_max) {
		slack_add_issue(r->result, "unit", "%u placeholders exceed the limit of %u", units,
				r->options->placeholders_max);
		units = r->options->placeholders_max;
	}
	want_shape(r, "unit", SLACK_UNIT, &shape, units);
	r->result->unit = shape;
}

static void want_default(struct slack_run *r, const struct slack_target *t)
{
	char key[32];

	for (size_t i = 0; i < t->cover_count; i++) {
		snprintf(key, sizeof(key), "cover-%zu", i + 1);
		want_shape(r, key, SLACK_COVER, &t->cover[i], 1);
	}
	if (t->unit.cpu_milli || t->unit.mem_bytes)
		want_units(r, t);
	else if (t->remaining.cpu_milli || t->remaining.mem_bytes)
		slack_add_issue(r->result, "unit", "there is no node to make units of");
}

static void find_targets(struct slack_run *r, struct slack_search *search)
{
	struct slack_shared shared;
	struct slack_target target;
	struct slack_target_input in = {.granularity = r->options->granularity};
	const place_node *which;
	struct slack_entry *unit;

	for (struct slack_entry *e = r->state->entries; e; e = e->hh.next) {
		e->found = false;
		e->target = 0;
	}
	slack_wanted_find(r, search, &shared);
	slack_state_sort(r->state);
	find_extra(r);
	in.nodes = plain_nodes(r, &in.node_count, &which);
	in.extra = r->result->extra;
	in.reserved = reserve(r);
	in.shapes = shared.shapes;
	in.shape_count = shared.count;
	in.largest_pod = r->survey.largest;
	HASH_FIND_STR(r->state->entries, "unit", unit);
	if (unit)
		in.held = unit->pattern.shape;
	slack_target_make(&in, &target);
	name_dropped(r, &shared, &target);
	want_default(r, &target);
	slack_target_fini(&target);
	r->result->basis = slack_basis_new(r, &in, which);
	free(shared.who);
	slack_state_sort(r->state);
}

/* --- classes of this step */

static void leave_classes(struct slack_run *r)
{
	struct slack_entry *e, *next;

	HASH_ITER(hh, r->state->entries, e, next)
	{
		const char *class;

		if (e->found)
			continue;
		class = slack_result_name(r->result, e->key);
		for (size_t i = 0; i < e->standing_count; i++)
			for (uint32_t k = 0; k < e->standing[i].count; k++)
				slack_add_move(r, SLACK_CLASS_LEFT, class,
					       slack_result_name(r->result, e->standing[i].node),
					       NULL);
		slack_state_remove(r->state, e);
	}
}

/* Limits the sum over all classes: later classes by name get less. */
static void follow_targets(struct slack_run *r)
{
	uint32_t room = r->options->placeholders_max;

	for (size_t c = 0; c < r->class_count; c++) {
		struct slack_entry *e = r->classes[c];

		slack_entry_follow(e, r->now_ns, r->options->unneeded_ns);
		if (e->wanted > room) {
			slack_add_issue(r->result, e->key,
					"%u placeholders exceed what is left of the limit of %u",
					e->wanted, r->options->placeholders_max);
			e->wanted = room;
		}
		room -= e->wanted;
	}
}

static void list_classes(struct slack_run *r)
{
	size_t count = HASH_COUNT(r->state->entries);

	r->classes = mem_zalloc(count + 1, sizeof(struct slack_entry *));
	for (struct slack_entry *e = r->state->entries; e; e = e->hh.next) {
		e->index = (uint32_t)r->class_count;
		e->placed = e->balloons = 0;
		e->spare = e->first_holder = UINT32_MAX;
		r->classes[r->class_count++] = e;
	}
	r->order = mem_zalloc(count + 1, sizeof(*r->order));
	r->reports = r->result->classes = mem_zalloc(count + 1, sizeof(*r->reports));
	for (uint32_t c = 0; c < r->class_count; c++)
		r->reports[c].key = slack_result_name(r->result, r->classes[c]->key);
}

/* --- the result */

static void report_class(struct slack_run *r, uint32_t class)
{
	const struct slack_entry *e = r->classes[class];
	struct slack_class *out = &r->reports[class];

	out->kind = e->kind;
	out->record = (const struct kube_pod *)object_hold(&e->pattern.record->object);
	out->shape = e->pattern.shape;
	out->signature = slack_result_name(r->result, e->pattern.signature);
	out->target = e->target;
	out->wanted = e->wanted;
	out->lower_ns = e->lower_since_ns ? e->lower_since_ns + r->options->unneeded_ns : 0;
	out->balloons = e->balloons;
	out->unplaced = slack_missing(r, class);
	out->placed = e->wanted - out->unplaced;
	out->fits_no_node = e->fits_no_node;
}

static int compare_placed(const void *left, const void *right)
{
	const struct slack_placed *a = left, *b = right;

	return COMPARE(a->node, b->node) ?: COMPARE(a->class, b->class) ?: COMPARE(a->pod, b->pod);
}

static void report_placed(struct slack_run *r)
{
	struct slack_result *out = r->result;

	out->placed = mem_zalloc(r->holder_count + 1, sizeof(*out->placed));
	for (size_t h = 0; h < r->holder_count; h++)
		if (r->holders[h].node != PLACE_NONE)
			out->placed[out->placed_count++] =
				(struct slack_placed){r->holders[h].pod, r->holders[h].class,
						      r->holders[h].node};
	qsort(out->placed, out->placed_count, sizeof(*out->placed), compare_placed);
}

static void remember(struct slack_run *r)
{
	const struct slack_result *out = r->result;

	for (size_t c = 0; c < r->class_count; c++)
		slack_entry_forget_standing(r->classes[c]);
	for (size_t i = 0; i < out->placed_count; i++)
		slack_entry_stand(r->classes[out->placed[i].class],
				  place_node_name(r->place, out->placed[i].node), 1);
}

static void run_fini(struct slack_run *r)
{
	slack_node_sets_fini(r);
	slack_survey_fini(&r->survey);
	free(r->classes);
	free(r->order);
	free(r->constraining);
	free(r->constraining_from);
	free(r->holders);
}

/* False: the time limit was reached, and the step leaves no trace. */
static bool run_step(struct slack_run *r)
{
	struct slack_search *search = slack_search_new(r->view);

	slack_survey_init(r, search);
	find_targets(r, search);
	leave_classes(r);
	list_classes(r);
	follow_targets(r);
	slack_count_balloons(r);
	slack_order_classes(r);
	slack_ready_slots(r);
	if (slack_is_out_of_time(r))
		return false;
	slack_verify_init(r);
	slack_verify(r);
	slack_place_missing(r);
	if (slack_is_out_of_time(r))
		return false;
	for (uint32_t c = 0; c < r->class_count; c++)
		report_class(r, c);
	r->result->class_count = r->class_count;
	for (uint32_t c = 0; c < r->class_count; c++)
		if (r->classes[c]->kind == SLACK_UNIT)
			r->result->basis->class = c;
	slack_ready_demand(r);
	if (slack_is_out_of_time(r))
		return false;
	report_placed(r);
	remember(r);
	slack_tell(r);
	return true;
}

int slack_step(struct slack_state *s, struct place *p, struct view *v, int64_t now_ns,
	       const struct slack_options *o, struct slack_result *out, struct error *error)
{
	struct slack_run r = {.state = s,
			      .place = p,
			      .view = v,
			      .now_ns = now_ns,
			      .options = o,
			      .result = out,
			      .tries = o->displace_max};
	bool whole;

	*out = (struct slack_result){.view = view_hold(v)};
	whole = run_step(&r);
	run_fini(&r);
	if (whole)
		return 0;
	slack_result_fini(out);
	return error_fail(error, -EINTR, "the step was ended before it was done");
}
