/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A step of the planner from end to end, and its plan. All changes of the placement core lie between
 * two marks, and are reverted at the end.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/arith.h"
#include "aggregator/policy/drain/drain_internal.h"
#include "shared/array.h"
#include "shared/mem.h"

void drain_config_default(struct drain_config *c)
{
	*c = (struct drain_config){
		.cluster_min = {-1, -1, -1},
		.order = PLACE_FULLEST_FIRST,
		.robust_orders = 5,
		.robust_tries = 8,
		.headroom = 1.15,
	};
	drain_options_default(&c->rules);
}

void drain_config_upstream(struct drain_config *c)
{
	drain_config_default(c);
	drain_options_upstream(&c->rules);
	c->order = PLACE_CYCLIC;
	c->robust_orders = 0;
}

const char *drain_event_name(enum drain_event e)
{
	static const char *const names[DRAIN_EVENTS] = {
		[DRAIN_NEEDED] = "needed",	    [DRAIN_UNEXAMINED] = "notExamined",
		[DRAIN_UNNEEDED] = "unneeded",	    [DRAIN_SELECTED] = "drain",
		[DRAIN_IN_DELETION] = "inDeletion", [DRAIN_KEPT] = "kept",
		[DRAIN_DRAINED] = "drained",	    [DRAIN_EVENT_WAVE] = "wave",
		[DRAIN_EVENT_EVICTED] = "evicted",  [DRAIN_EVENT_GONE] = "gone",
	};

	return names[e];
}

const char *drain_verdict_name(enum drain_verdict v)
{
	return drain_event_name((enum drain_event)v);
}

/* --- reasons */

struct drain_why *drain_add_reason(struct drain_case *c, enum drain_reason code, const char *format,
				   ...)
{
	struct drain_plan_node *n = c->out;
	struct drain_why *w;
	char text[1024];

	MEM_FORMAT(text, sizeof(text), format);
	w = &ARRAY_ADD(n->reasons, n->reason_count);
	*w = (struct drain_why){.code = code,
				.text = mem_strdup(text),
				.unblock = drain_reason_unblock(code)};
	return w;
}

const char *const drain_number_names[] = {"usedShare",
					  "rightSizedShare",
					  "requestedShare",
					  "threshold",
					  "pods",
					  "predictedCpuMillicores",
					  "limitCpuMillicores",
					  "predictedMemoryBytes",
					  "limitMemoryBytes",
					  "placeholders",
					  "cpuMillicores",
					  "memoryBytes",
					  "used",
					  "limit",
					  "drainsUsed",
					  "drainsLimit",
					  NULL};

void drain_add_number(struct drain_why *w, const char *name, double value)
{
	assert(w->number_count < DRAIN_NUMBERS);
	w->numbers[w->number_count++] = (struct drain_number){name, value};
}

void drain_forget_reasons(struct drain_plan_node *n)
{
	for (size_t i = 0; i < n->reason_count; i++)
		free(n->reasons[i].text);
	free(n->reasons);
	n->reasons = NULL;
	n->reason_count = 0;
}

/* --- reading the view */

static void read_cases(struct drain_run *r)
{
	for (size_t i = 0; i < r->count; i++) {
		struct drain_case *c = &r->cases[i];
		const struct model_node *model;

		c->view = r->in->view->nodes[i];
		c->out = &r->plan->nodes[i];
		c->out->name = c->view->name;
		r->measured |= drain_is_measured(c->view, r->now_ns);
		model = c->view->model;
		if (!model)
			continue;
		c->node = model->node;
		c->pods = (const struct kube_pod *const *)model->pods;
		c->pod_count = model->pod_count;
		c->drained =
			r->corrected && c->node && drain_is_drained(c->node, c->pods, c->pod_count);
		c->in_deletion =
			c->node && !c->drained &&
			drain_is_in_deletion(r->config->rules.variant, c->node, r->now_ns, NULL);
	}
}

static const char *group_of(const struct drain_run *r, const struct drain_case *c)
{
	return c->node ? drain_group_name(c->node, r->config->group_labels,
					  r->config->group_label_count)
		       : NULL;
}

/* Adding a group shifts numbers, so they are looked up afterwards. */
static void read_groups(struct drain_run *r)
{
	struct drain_floor sums = {0, 0, 0};

	drain_groups_init(&r->plan->groups, r->config->groups, r->config->group_count);
	for (size_t i = 0; i < r->count; i++)
		if (group_of(r, &r->cases[i]))
			drain_groups_add(&r->plan->groups, group_of(r, &r->cases[i]));
	for (size_t i = 0; i < r->count; i++) {
		struct drain_case *c = &r->cases[i];
		const char *name = group_of(r, c);

		c->group = name ? drain_groups_find(&r->plan->groups, name) : DRAIN_NO_GROUP;
		if (c->group != DRAIN_NO_GROUP) {
			drain_groups_count(&r->plan->groups, c->group,
					   c->in_deletion || c->drained);
			c->out->group = r->plan->groups.of[c->group].name;
			c->out->atomic = r->plan->groups.of[c->group].atomic;
		}
		if (!c->node || c->in_deletion || c->drained)
			continue;
		sums.nodes++;
		sums.cpu_milli = add_saturating(sums.cpu_milli, c->view->cpu_capacity_milli);
		sums.mem_bytes = add_saturating(sums.mem_bytes, c->view->mem_capacity_bytes);
	}
	drain_groups_set_floor(&r->plan->groups, &sums, &r->config->cluster_min);
}

static void read_rules(struct drain_run *r)
{
	const struct object_table *budgets = view_table(r->in->view, OBJECT_POD_DISRUPTION_BUDGET);

	r->budget_count = budgets->count;
	r->pdbs = drain_pdbs_new(r->config->rules.variant, budgets->of, r->budget_count);
	r->rules = (struct drain_context){
		.options = &r->config->rules,
		.now_ns = r->now_ns,
		.pdbs = r->pdbs,
		.cluster = r->in->view->cluster,
	};
	if (r->corrected)
		drain_gangs_open(r);
}

/* --- candidates */

/* corrected: only for failed simulations, as rules and budgets are cheap to check again. */
static void remember_failure(struct drain_run *r, struct drain_case *c)
{
	drain_unremovable_add(r->failed, c->view->name, &c->out->reasons[0],
			      r->now_ns + r->config->rules.recheck_ns);
}

/* Restores the numbers and counts of the earlier reason. */
static void recall_failure(const struct drain_run *r, const struct drain_case *c,
			   struct drain_why *w)
{
	const struct drain_failure *f = drain_unremovable_recent(r->failed, c->view->name);
	char *text = w->text;

	if (f->why.code != w->code)
		return;
	*w = f->why;
	w->text = text;
}

static void sort_pods(struct drain_run *r, struct drain_case *c)
{
	struct drain_pods *p = &c->sorted;
	size_t kept = 0;

	drain_pods_fini(p);
	drain_pods_sort(&r->rules, c->pods, c->pod_count, p);
	for (size_t i = 0; i < p->move_count; i++)
		if (!r->corrected || drain_must_move(r, p->move[i]))
			p->move[kept++] = p->move[i];
	p->move_count = kept;
}

/* Whether it may be simulated. */
static bool judge(struct drain_run *r, struct drain_case *c)
{
	struct error hidden = {""};
	bool hides = drain_hides_pod(r->in->view->cluster, c->view->name, &hidden);
	const struct drain_candidate candidate = {
		.node = c->node,
		.pods = c->pods,
		.pod_count = c->pod_count,
		.grouped = c->group != DRAIN_NO_GROUP,
		.hidden = hides ? hidden.text : NULL,
		.unmeasured = r->measured &&
			      drain_is_unmeasured(c->view, c->pods, c->pod_count, r->now_ns),
	};
	struct drain_eligible e;
	struct drain_why *w;

	if (c->drained && !hides) {
		c->out->verdict = DRAIN_DRAINED;
		drain_add_reason(c, DRAIN_CORDONED,
				 "the node is cordoned, and nothing is left on it");
		return false;
	}
	drain_eligibility(&r->config->rules, &candidate, r->failed, r->now_ns, &e);
	c->out->requested_known = e.measured;
	c->out->requested_share = e.utilization.share;
	if (e.reason == DRAIN_NONE)
		return true;
	c->out->verdict = e.reason == DRAIN_BEING_DELETED ? DRAIN_IN_DELETION : DRAIN_NEEDED;
	w = drain_add_reason(c, e.reason, "%s%s", e.recent ? "found a while ago: " : "",
			     e.error.text);
	if (e.recent)
		recall_failure(r, c, w);
	if (e.reason == DRAIN_NOT_UNDERUTILIZED) {
		drain_add_number(w, "requestedShare", e.utilization.share);
		drain_add_number(w, "threshold",
				 e.utilization.gpu ? r->config->rules.gpu_utilization
						   : r->config->rules.utilization);
		drain_explain_idle(r, c, &e.utilization);
	}
	return false;
}

static struct drain_rank rank_of(const struct drain_run *r, const struct drain_case *c)
{
	struct drain_rank rank = {
		.node = c->view->name,
		.movable = c->sorted.move_count + c->sorted.blocking_count,
		.waiting = c->sorted.wait_count,
		.before = drain_timers_find(&r->state->timers, c->view->name) != NULL,
	};

	drain_rank_use(c->view, c->sorted.move, c->sorted.move_count, &rank);
	return rank;
}

/* Eligible cases in the order of simulation; the caller frees them. */
static size_t *order_candidates(struct drain_run *r, size_t *count)
{
	size_t *eligible = mem_zalloc(r->count + 1, sizeof(*eligible));
	size_t *order = mem_zalloc(r->count + 1, sizeof(*order));
	struct drain_rank *ranks = mem_zalloc(r->count + 1, sizeof(*ranks));

	*count = 0;
	for (size_t i = 0; i < r->count; i++) {
		if (!judge(r, &r->cases[i]))
			continue;
		sort_pods(r, &r->cases[i]);
		ranks[*count] = rank_of(r, &r->cases[i]);
		eligible[(*count)++] = i;
	}
	drain_order(r->config->rules.variant, ranks, *count, order);
	for (size_t i = 0; i < *count; i++)
		order[i] = eligible[r->config->by_name ? i : order[i]];
	free(eligible);
	free(ranks);
	return order;
}

/* --- simulation */

static void explain_pod(struct drain_case *c, const struct kube_pod *pod, size_t others)
{
	char more[64] = "";

	if (others)
		snprintf(more, sizeof(more), ", and so must %zu %s of the node", others,
			 drain_plural(others, "other", "others"));
	drain_add_reason(c, DRAIN_BLOCKED_BY_POD, "pod %s/%s must stay%s", pod->object.namespace,
			 pod->object.name, more)
		->pod = pod;
}

void drain_explain_stay(struct drain_case *c, const struct kube_pod *pod, enum drain_reason code,
			const char *why)
{
	drain_add_reason(c, code, "%s", *why ? why : drain_reason_name(code))->pod = pod;
}

static void explain_blocked(struct drain_case *c)
{
	const struct drain_pods *p = &c->sorted;

	explain_pod(c, p->blocking[0].pod, p->blocking_count - 1);
	if (p->blocking_count > 1)
		drain_add_number(&c->out->reasons[0], "pods", (double)p->blocking_count);
	for (size_t i = 0; i < p->blocking_count; i++)
		drain_explain_stay(c, p->blocking[i].pod, p->blocking[i].status.reason,
				   p->blocking[i].why);
}

/* Budgets of the node alone, beside reserved disruptions. */
static bool ask_budgets(struct drain_run *r, struct drain_case *c)
{
	struct drain_pdb_verdict v;
	struct error why;

	drain_pdbs_ask(r->pdbs, c->leave, c->leave_count, &v);
	c->risky = !v.in_parallel;
	/* Pods of a group that falls cannot wait for each other's replacements. */
	if (v.reason == DRAIN_NONE && (v.in_parallel || !c->falls.len))
		return true;
	v.reason = v.reason == DRAIN_NONE ? DRAIN_NOT_ENOUGH_PDB : v.reason;
	drain_pdb_tell(&v, &why);
	explain_pod(c, v.pod, 0);
	drain_explain_stay(c, v.pod, v.reason, why.text);
	drain_gangs_explain(c);
	return false;
}

static void accept(struct drain_run *r, struct drain_case *c, const struct drain_placement *placed)
{
	c->placed = *placed;
	for (size_t i = 0; i < placed->own_count; i++)
		if (strcmp(place_pod_record(r->place, placed->items[i].pod)->node,
			   place_node_name(r->place, placed->items[i].to)) != 0)
			r->cases[placed->items[i].to].received++;
	drain_record_moves(r, c, placed);
	if (!r->corrected)
		drain_pdbs_take(r->pdbs, c->sorted.move, c->sorted.move_count);
	c->out->verdict = DRAIN_UNNEEDED;
	r->set[r->set_count++] = (size_t)(c - r->cases);
}

static void simulate(struct drain_run *r, struct drain_case *c)
{
	struct drain_trial t;
	bool all_leave;

	r->plan->examined++;
	c->out->verdict = DRAIN_NEEDED;
	if (!r->corrected)
		sort_pods(r, c); /* budgets were used up meanwhile */
	if (c->sorted.blocking) {
		explain_blocked(c);
		if (!r->corrected)
			remember_failure(r, c);
		return;
	}
	all_leave = drain_gangs_close(r, c);
	drain_gangs_release(r, c);
	if (!all_leave)
		return;
	if (!ask_budgets(r, c)) {
		if (!r->corrected)
			remember_failure(r, c);
		return;
	}
	drain_try_node(r, c, NULL, &t);
	if (t.reason == DRAIN_NONE) {
		accept(r, c, &t.placed);
		return;
	}
	drain_explain_trial(c, &t);
	drain_gangs_explain(c);
	remember_failure(r, c);
	free(t.placed.items);
}

static void explain_destination(struct drain_case *c)
{
	struct drain_why *w;

	c->out->verdict = DRAIN_NEEDED;
	w = drain_add_reason(c, DRAIN_DESTINATION, "%zu %s of nodes that could go would come here",
			     c->received, drain_plural(c->received, "pod", "pods"));
	drain_add_number(w, "pods", (double)c->received);
}

bool drain_is_late(const struct drain_run *r, size_t simulated)
{
	return r->in->out_of_time && simulated >= r->config->rules.simulation_min_nodes &&
	       r->in->out_of_time(r->in->context);
}

static void simulate_all(struct drain_run *r, const size_t *order, size_t count)
{
	const struct drain_options *o = &r->config->rules;
	int64_t loop_ns = r->state->loop_ns ? r->state->loop_ns : 10 * DRAIN_SECOND_NS;
	int64_t limit = drain_unneeded_limit(o->variant, (int64_t)r->state->timers.count,
					     o->max_parallelism, o->unneeded_ns, loop_ns);
	int64_t found = 0;
	bool over = false;

	for (size_t i = 0; i < count; i++) {
		struct drain_case *c = &r->cases[order[i]];
		size_t before = r->set_count;

		over = over || found >= limit || drain_is_late(r, r->plan->examined);
		if (over) {
			c->out->verdict = DRAIN_UNEXAMINED;
			drain_add_reason(c, DRAIN_NOT_EXAMINED, "time was up after %zu %s",
					 r->plan->examined,
					 drain_plural(r->plan->examined, "node", "nodes"));
			r->plan->complete = false;
			continue;
		}
		if (r->corrected && c->received && !c->sorted.blocking) {
			explain_destination(c);
			continue;
		}
		simulate(r, c);
		found +=
			r->set_count > before && !drain_group_is_atomic(&r->plan->groups, c->group);
	}
}

/* A reserved pod has no node, so free room is unknown. */
static void refuse_all(struct drain_run *r, const size_t *order, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct drain_case *c = &r->cases[order[i]];

		c->out->verdict = DRAIN_UNEXAMINED;
		drain_add_reason(c, DRAIN_DELETIONS_UNPLACED, "%s", r->plan->reserved.error.text);
	}
}

/* --- timers, hints */

static enum drain_seen seen_of(const struct drain_case *c)
{
	if (c->out->verdict == DRAIN_UNEXAMINED || c->in_deletion)
		return DRAIN_NO_VERDICT;
	return c->out->verdict == DRAIN_UNNEEDED ? DRAIN_SEEN_UNNEEDED : DRAIN_SEEN_NEEDED;
}

static void run_timers(struct drain_run *r)
{
	struct drain_timers *timers = &r->state->timers;
	struct drain_result *results = mem_zalloc(r->count + 1, sizeof(*results));
	size_t count = 0;

	for (size_t i = 0; i < r->count; i++) {
		const struct drain_case *c = &r->cases[i];

		if (c->node)
			results[count++] =
				(struct drain_result){c->view->name, seen_of(c), c->node->ready};
	}
	drain_timers_update(timers, r->config->rules.variant, results, count, r->now_ns);
	for (size_t i = 0; i < timers->count; i++) {
		struct drain_timer *t = &timers->of[i];
		int64_t arrival_ns = r->cases[place_find_node(r->place, t->node)].arrival_ns;

		if (t->since_ns == r->now_ns)
			t->since_ns -= r->config->assume_unneeded_ns;
		else if (t->since_ns < arrival_ns)
			t->since_ns = arrival_ns < r->now_ns ? arrival_ns : r->now_ns;
	}
	for (size_t i = 0; i < r->count; i++) {
		const struct drain_timer *t = drain_timers_find(timers, r->cases[i].view->name);

		r->cases[i].out->since_ns = t ? t->since_ns : 0;
		r->cases[i].out->due_ns = t ? drain_timer_due_ns(t, &r->config->rules) : 0;
	}
	free(results);
}

/* Hints of nodes that were not examined stay. */
static void keep_hints(struct drain_run *r)
{
	struct drain_hint *old = r->state->hints, *h;

	r->state->hints = NULL;
	for (h = r->plan->complete ? NULL : old; h; h = h->hh.next)
		drain_state_set_hint(r->state, h->uid, h->node);
	drain_hints_free(&old);
	for (size_t i = 0; i < r->set_count; i++) {
		const struct drain_case *c = &r->cases[r->set[i]];

		for (size_t j = 0; j < c->placed.real_count; j++) {
			const struct drain_item *item = &c->placed.items[j];

			drain_state_set_hint(r->state,
					     place_pod_record(r->place, item->pod)->object.uid,
					     place_node_name(r->place, item->to));
		}
	}
}

/* --- the step */

static void open_run(struct drain_run *r, struct drain_state *s, const struct drain_input *in,
		     const struct drain_config *c)
{
	struct drain_plan *p = mem_zalloc(1, sizeof(*p));

	*r = (struct drain_run){
		.config = c,
		.in = in,
		.state = s,
		.place = in->place,
		.plan = p,
		.now_ns = in->now_ns,
		.corrected = c->rules.variant == DRAIN_CORRECTED,
		.count = in->view->node_count,
		.failed = &s->failed,
	};
	p->view = view_hold(in->view);
	p->time_ns = in->now_ns;
	p->variant = c->rules.variant;
	p->capped = place_cap_applies(in->place);
	p->owner_share = c->rules.owner_share;
	p->shared = place_use_is_shared(in->place);
	p->complete = true;
	p->node_count = r->count;
	p->nodes = mem_zalloc(r->count + 1, sizeof(*p->nodes));
	r->cases = mem_zalloc(r->count + 1, sizeof(*r->cases));
	r->set = mem_zalloc(r->count + 1, sizeof(*r->set));
	drain_state_see(s, in, &c->rules);
	if (in->begun)
		drain_state_write(s, in->now_ns, in->begun);
	p->evictions = s->eviction_count;
	read_cases(r);
	read_groups(r);
	read_rules(r);
	drain_unremovable_update(r->failed, &c->rules, p->nodes, p->node_count, r->now_ns);
}

static void close_run(struct drain_run *r)
{
	for (size_t i = 0; i < r->count; i++) {
		drain_pods_fini(&r->cases[i].sorted);
		free(r->cases[i].placed.items);
		free(r->cases[i].leave);
		buf_fini(&r->cases[i].falls);
	}
	free(r->cases);
	free(r->set);
	free(r->stays);
	for (size_t i = 0; i < r->pick_count; i++)
		free(r->picks[i].placed.items);
	free(r->picks);
	free(r->extra);
	free(r->slack);
	drain_pdbs_free(r->pdbs);
	free(r->allowed_by);
	drain_owners_free(r->owners);
	gangs_free(r->gangs);
}

/* Nodes that are not ready, or whose free room is unknown for an unreadable pod, take no pods. */
static void close_nodes(struct drain_run *r)
{
	struct error why;

	for (place_node n = 0; r->corrected && n < r->count; n++) {
		const struct drain_case *c = &r->cases[n];

		if (c->node && !c->in_deletion &&
		    (!c->node->ready || drain_hides_pod(r->in->view->cluster, c->view->name, &why)))
			place_remove_node(r->place, n);
	}
}

struct drain_plan *drain_step(struct drain_state *s, const struct drain_input *in,
			      const struct drain_config *c)
{
	struct drain_run r;
	place_mark start = place_fork(in->place), base;
	size_t *order, count;
	bool placed;

	open_run(&r, s, in, c);
	close_nodes(&r);
	placed = drain_reserve(&r);
	/* Budgets before the candidates; nodes in deletion have reserved theirs. */
	r.allowed_by = mem_zalloc(r.budget_count + 1, sizeof(*r.allowed_by));
	for (uint32_t i = 0; i < r.budget_count; i++)
		r.allowed_by[i] = drain_pdbs_remaining(r.pdbs, i);
	base = place_fork(in->place);
	order = order_candidates(&r, &count);
	if (placed || !r.corrected)
		simulate_all(&r, order, count);
	else
		refuse_all(&r, order, count);
	free(order);
	r.plan->unneeded = r.set_count;
	run_timers(&r);
	keep_hints(&r);
	place_revert(in->place, base);
	drain_choose_wave(&r);
	drain_record_kept(&r);
	for (size_t i = 0; i < r.count; i++)
		r.cases[i].out->used_known =
			drain_used_share(r.cases[i].view, r.now_ns, &r.cases[i].out->used_share);
	drain_note_plan(&r);
	drain_narrate(&r);
	place_revert(in->place, start);
	close_run(&r);
	return r.plan;
}
