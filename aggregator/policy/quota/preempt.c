/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a search to a plan:
 *
 *     fits and admitted now ----------------------------------------> notNeeded
 *     must not preempt ---------------------------------------------> never
 *     fits and admitted when pods in deletion are gone -------------> wait
 *     victims on one node, else on several -------------------------> victims
 *     the same with PodDisruptionBudgets broken, if that is allowed
 *     ---------------------------------------------------------------> impossible
 *
 * Nothing can fail. The plan owns its lists and texts and borrows names and records from the view.
 */
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/quota/preempt_internal.h"
#include "shared/document.h"
#include "shared/mem.h"
#include "shared/units.h"

void preempt_options_default(struct preempt_options *o)
{
	*o = (struct preempt_options){.critical_priority = QUOTA_CRITICAL_PRIORITY,
				      .pdb_hard = true,
				      .idle_share = 0.10,
				      .effort = 200000};
}

/* --- candidates */

static void candidate_fini(struct preempt_candidate *c)
{
	for (size_t i = 0; i < c->victim_count; i++)
		free(c->victims[i].why);
	free(c->victims);
	*c = (struct preempt_candidate){0};
}

void preempt_victim_take(struct preempt_run *r, struct preempt_victim_candidate *p, bool violates,
			 struct preempt_victim *out)
{
	const struct preempt_pod *pod = preempt_run_pod(r, p);

	*out = (struct preempt_victim){.pod = pod->pod,
				       .node = r->nodes[pod->node].name,
				       .quota = r->quotas[pod->space].entry
							? pod->pod->object.namespace
							: "",
				       .priority = pod->pod->template->priority,
				       .started_ns = pod->pod->started_ns,
				       .violates_pdb = violates,
				       .falls = gangs_fallen(r->gangs, pod->pod) != NULL,
				       .use = p->use,
				       .use_share = p->share,
				       .why = preempt_tell_victim(r, p, violates)};
	preempt_run_take(r, p);
}

/* Each description says whether the victim's group falls with the whole set. */
static void mark_gone(struct preempt_run *r, const struct preempt_set *s, bool gone)
{
	for (uint32_t i = 0; i < s->count; i++) {
		const struct kube_pod *const *pod = &preempt_pod_of(r, s->of[i])->pod;
		const struct kube_pod **leave = NULL;

		if (gone)
			gangs_close(r->gangs, pod, 1, &leave);
		else
			gangs_release(r->gangs, pod, 1);
		free(leave);
	}
}

/* Takes the victims one by one, as each description has the effect on its quota; puts them back. */
static void candidate_of_set(struct preempt_run *r, const struct preempt_set *s,
			     struct preempt_candidate *out)
{
	place_mark m = place_fork(r->place);

	*out = (struct preempt_candidate){.node = r->nodes[s->at].name,
					  .loss = s->cost.loss,
					  .beyond = s->cost.beyond,
					  .victim_count = s->count};
	out->victims = mem_zalloc((size_t)s->count + 1, sizeof(*out->victims));
	mark_gone(r, s, true);
	for (uint32_t i = 0; i < s->count; i++) {
		struct preempt_victim_candidate *p = &r->candidates[s->of[i]];
		bool violates = preempt_run_exceeds(r, p, r->budget_left);

		preempt_victim_take(r, p, violates, &out->victims[i]);
		out->violations += violates;
	}
	for (uint32_t i = 0; i < s->count; i++)
		preempt_run_put(r, &r->candidates[s->of[i]]);
	mark_gone(r, s, false);
	place_revert(r->place, m);
}

/* --- preemptionPolicy */

bool preempt_says_never(const struct preempt_ask *ask)
{
	const struct pod_template *t = ask->pod->template;
	cJSON *spec;
	bool never;

	if (ask->never || !strstr(t->text + t->spec_at, "\"preemptionPolicy\""))
		return ask->never;
	spec = cJSON_ParseWithOpts(t->text + t->spec_at, NULL, 0);
	never = document_is(spec, "preemptionPolicy", "Never");
	cJSON_Delete(spec);
	return never;
}

/* --- the plan */

void preempt_plan_fini(struct preempt_plan *plan)
{
	candidate_fini(&plan->chosen);
	free(plan->nodes);
	buf_fini(&plan->narration);
	buf_fini(&plan->unblock);
	*plan = (struct preempt_plan){0};
}

/* A node where the pod fits now, or PLACE_NONE. */
static place_node find_room(struct preempt_run *r)
{
	place_node n;

	if (!preempt_run_quotas_allow(r))
		return PLACE_NONE;
	n = place_choose(r->place, r->pod, PLACE_FULLEST_FIRST, PLACE_NONE, r->ask->allowed, NULL);
	if (n == PLACE_NONE || preempt_run_fits(r, n) == PLACE_FITS)
		return n;
	for (n = 0; n < r->index->view->node_count; n++)
		if (preempt_run_allows(r, n) && preempt_run_fits(r, n) == PLACE_FITS)
			return n;
	return PLACE_NONE;
}

static bool decide(struct preempt_plan *plan, enum preempt_verdict v)
{
	plan->verdict = v;
	return true;
}

static bool finds_room(struct preempt_run *r, struct preempt_plan *plan, enum preempt_verdict v)
{
	place_node n = find_room(r);

	if (n == PLACE_NONE)
		return false;
	plan->chosen.node = r->nodes[n].name;
	if (v == PREEMPT_WAIT)
		buf_printf(&plan->narration,
			   "It fits on %s when %u pod%s that %s going %s gone: no victims.\n",
			   plan->chosen.node, r->terminating_count,
			   units_plural(r->terminating_count),
			   r->terminating_count == 1 ? "is" : "are",
			   r->terminating_count == 1 ? "is" : "are");
	else
		buf_printf(&plan->narration, "It fits on %s as it is: no victims.\n",
			   plan->chosen.node);
	return decide(plan, v);
}

/* Why some victims are not on the destination. */
static const char *tell_elsewhere(const struct preempt_candidate *c)
{
	bool there = false, falls = true;

	for (size_t i = 0; i < c->victim_count; i++)
		if (strcmp(c->victims[i].node, c->node) == 0)
			there = true;
		else
			falls &= c->victims[i].falls;
	if (!there)
		return "None of them is on that node.\n";
	return falls ? "Those on other nodes fall with their groups.\n"
		     : "No node had victims enough of its own.\n";
}

static void tell_chosen(struct preempt_plan *plan)
{
	const struct preempt_candidate *c = &plan->chosen;

	for (size_t i = 0; i < c->victim_count; i++) {
		plan->several |= strcmp(c->victims[i].node, c->node) != 0;
		buf_printf(&plan->narration, "Victim %s.\n", c->victims[i].why);
	}
	buf_printf(&plan->narration, "The pod then goes to %s.\n", c->node);
	if (plan->several)
		buf_add_str(&plan->narration, tell_elsewhere(c));
}

static bool finds_victims(struct preempt_run *r, struct preempt_plan *plan)
{
	struct preempt_set set;

	preempt_victims_collect(r);
	preempt_tell_candidates(r, &plan->narration);
	preempt_search(r, &set);
	if (set.at == PLACE_NONE)
		return false;
	candidate_of_set(r, &set, &plan->chosen);
	preempt_set_fini(&set);
	tell_chosen(plan);
	return decide(plan, PREEMPT_VICTIMS);
}

static void give_up(struct preempt_run *r, struct preempt_plan *plan)
{
	plan->verdict = PREEMPT_IMPOSSIBLE;
	plan->exhausted = !r->cut;
	r->retry_ns = preempt_victims_next_ns(r);
	buf_add_str(&plan->narration, r->cut ? "No set of victims was found.\n"
					     : "No set of victims that may go would help.\n");
	preempt_tell_unblock(r, &plan->admission, &plan->unblock);
}

static bool plan_corrected(struct preempt_run *r, struct preempt_plan *plan)
{
	preempt_run_leave(r);
	if (r->terminating_count && finds_room(r, plan, PREEMPT_WAIT))
		return true;
	if (plan->admission.reason == QUOTA_NEVER)
		return false; /* no victim can help */
	preempt_run_stay(r);
	preempt_tell_rule(r, &plan->narration);
	if (finds_victims(r, plan))
		return true;
	if (!preempt_run_may_break(r))
		return false;
	buf_add_str(&plan->narration,
		    "Nothing helps that keeps every PodDisruptionBudget: they may be broken.\n");
	r->soft = true;
	return finds_victims(r, plan);
}

static bool plan_upstream(struct preempt_run *r, struct preempt_plan *plan)
{
	struct preempt_answer all;
	size_t chosen;

	if (!preempt_upstream_is_eligible(r, false)) {
		buf_add_str(&plan->narration,
			    "A pod on its nominated node is going: no victims.\n");
		plan->chosen.node = r->record->nominated_node;
		return decide(plan, PREEMPT_WAIT);
	}
	preempt_tell_rule(r, &plan->narration);
	preempt_upstream_candidates(r, &all);
	chosen = preempt_choose(all.of, all.count, QUOTA_UPSTREAM);
	if (chosen < all.count) {
		plan->chosen = all.of[chosen];
		all.of[chosen] = (struct preempt_candidate){0};
		tell_chosen(plan);
		plan->verdict = PREEMPT_VICTIMS;
	}
	preempt_answer_fini(&all);
	return plan->verdict == PREEMPT_VICTIMS;
}

static void make_plan(struct preempt_run *r, struct preempt_plan *plan)
{
	plan->verdict = PREEMPT_IMPOSSIBLE;
	quota_admit(r->book, &r->question, &plan->admission);
	preempt_tell_ask(r, &plan->admission, &plan->narration);
	if (finds_room(r, plan, PREEMPT_NOT_NEEDED))
		return;
	if (preempt_says_never(r->ask)) {
		buf_add_str(&plan->narration, "Its preemptionPolicy is Never: no victims.\n");
		preempt_tell_unblock(r, &plan->admission, &plan->unblock);
		decide(plan, PREEMPT_NEVER);
		return;
	}
	if (!(r->options->variant == QUOTA_UPSTREAM ? plan_upstream : plan_corrected)(r, plan))
		give_up(r, plan);
}

void preempt_make_plan(const struct preempt *x, struct place *p, struct quota_book *b,
		       const struct preempt_options *o, const struct preempt_ask *ask,
		       struct preempt_plan *out)
{
	struct preempt_run r;

	*out = (struct preempt_plan){0};
	preempt_run_init(&r, x, p, b, o, ask);
	make_plan(&r, out);
	memcpy(out->refused, r.refused, sizeof(out->refused));
	out->retry_ns = r.retry_ns;
	out->node_count = x->view->node_count;
	out->nodes = r.nodes;
	r.nodes = mem_zalloc(out->node_count + 1, sizeof(*r.nodes));
	preempt_run_fini(&r);
}

/* --- the preempt verb of an extender */

/*
 * The kube-scheduler sends candidates that it found by priorities alone, and takes the answer: per
 * node at least one pod of that node, by descending priority. Each offered node is searched by our
 * rules; the offered pods are only compared with the result.
 */

void preempt_answer_fini(struct preempt_answer *a)
{
	for (size_t i = 0; i < a->count; i++)
		candidate_fini(&a->of[i]);
	free(a->of);
	buf_fini(&a->narration);
	*a = (struct preempt_answer){0};
}

static int by_priority(const void *left, const void *right)
{
	const struct preempt_victim *a = left, *b = right;

	return COMPARE(b->priority, a->priority)
		       ?: object_compare(&a->pod->object, &b->pod->object);
}

static bool is_same(const struct preempt_offer *o, const struct preempt_candidate *c)
{
	if (o->uid_count != c->victim_count)
		return false;
	for (size_t i = 0; i < c->victim_count; i++)
		if (!preempt_has_uid(o->uids, o->uid_count, c->victims[i].pod->object.uid))
			return false;
	return true;
}

static void tell_answer(const struct preempt_offer *o, const struct preempt_candidate *c,
			struct buf *out)
{
	buf_printf(out, "Node %s: %zu victim%s%s.\n", c->node, c->victim_count,
		   units_plural(c->victim_count),
		   is_same(o, c) ? ", as offered" : ", other than offered");
	for (size_t i = 0; i < c->victim_count; i++)
		buf_printf(out, "Victim %s.\n", c->victims[i].why);
}

/* By offer, for the caller to free: whether the pod fits without pods in deletion. Corrected. */
static bool *find_rooms(struct preempt_run *r, const struct preempt_offer *offers, size_t count)
{
	bool *needs_none = mem_zalloc(count + 1, sizeof(*needs_none));
	bool allowed;

	if (r->options->variant == QUOTA_UPSTREAM)
		return needs_none;
	preempt_run_leave(r);
	allowed = preempt_run_quotas_allow(r);
	for (size_t i = 0; allowed && i < count; i++) {
		size_t n = view_index(r->index->view, offers[i].node);

		needs_none[i] = n < r->index->view->node_count &&
				preempt_run_fits(r, (place_node)n) == PLACE_FITS;
	}
	preempt_run_stay(r);
	return needs_none;
}

/* By the node's own pods. */
static bool find_victims_on(struct preempt_run *r, place_node n, struct preempt_candidate *out)
{
	struct preempt_set set;

	if (r->options->variant == QUOTA_CORRECTED) {
		if (!preempt_search_node(r, n, &set))
			return false;
		candidate_of_set(r, &set, out);
		preempt_set_fini(&set);
		return true;
	}
	if (!preempt_upstream_node(r, n, out))
		return false;
	if (!out->error && out->victim_count)
		return true;
	candidate_fini(out);
	return false;
}

static void tell_none(const struct preempt_run *r, const char *node, size_t n, bool needs_none,
		      struct buf *out)
{
	enum place_filter f;

	if (r->options->variant == QUOTA_UPSTREAM) {
		buf_printf(out, "Node %s: no victims.\n", node);
	} else if (n == r->index->view->node_count) {
		buf_printf(out, "Node %s is not known.\n", node);
	} else if (needs_none) {
		buf_printf(out, "Node %s needs no victim%s.\n", node,
			   r->terminating_count ? " besides those that are going" : "");
	} else {
		f = r->nodes[n].filter;
		buf_printf(out, "Node %s: %s%s%s.\n", node,
			   preempt_outcome_name(r->nodes[n].outcome), f ? " " : "",
			   f ? place_filter_name(f) : "");
	}
}

/* False: the narration says why. */
static bool search_offer(struct preempt_run *r, const struct preempt_offer *o, bool needs_none,
			 struct preempt_candidate *out, struct buf *narration)
{
	size_t n = view_index(r->index->view, o->node);

	if (n == r->index->view->node_count || needs_none ||
	    !find_victims_on(r, (place_node)n, out)) {
		tell_none(r, o->node, n, needs_none, narration);
		return false;
	}
	qsort(out->victims, out->victim_count, sizeof(*out->victims), by_priority);
	tell_answer(o, out, narration);
	return true;
}

static void answer(struct preempt_run *r, const struct preempt_offer *offers, size_t count,
		   const bool *needs_none, struct preempt_answer *out)
{
	if (r->options->variant == QUOTA_CORRECTED)
		preempt_victims_collect(r);
	for (size_t i = 0; i < count; i++) {
		out->room |= needs_none[i];
		out->count += search_offer(r, &offers[i], needs_none[i], &out->of[out->count],
					   &out->narration);
	}
}

void preempt_for_extender(const struct preempt *x, struct place *p, struct quota_book *b,
			  const struct preempt_options *o, const struct preempt_ask *ask,
			  const struct preempt_offer *offers, size_t offer_count,
			  struct preempt_answer *out)
{
	struct preempt_run r;
	bool *needs_none;

	*out = (struct preempt_answer){0};
	out->of = mem_zalloc(offer_count + 1, sizeof(*out->of));
	preempt_run_init(&r, x, p, b, o, ask);
	r.one_node = true;
	if (preempt_says_never(ask)) {
		buf_add_str(&out->narration, "Its preemptionPolicy is Never: no victims.\n");
	} else {
		needs_none = find_rooms(&r, offers, offer_count);
		answer(&r, offers, offer_count, needs_none, out);
		if (!out->count && preempt_run_may_break(&r)) {
			r.soft = true;
			answer(&r, offers, offer_count, needs_none, out);
		}
		free(needs_none);
	}
	out->retry_ns = preempt_victims_next_ns(&r);
	preempt_run_fini(&r);
}
