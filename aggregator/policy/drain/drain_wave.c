/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selects the candidates that are drained now, together.
 *
 *   drain_select()       nodes that waited long enough; group and cluster stay large enough; atomic
 *                        groups are complete
 *   drain_budget_crop()  as many at once as parallelism and schedules allow
 *   trial                node after node: PodDisruptionBudgets, shares of owners, room on nodes that
 *                        are no candidates (by requests and real use), and extra capacity as large as
 *                        without the wave. A node that fails is left out with its atomic group, and
 *                        the crop is repeated until all of it fits. The common prefix of two crops is
 *                        not simulated again.
 *   robust               the kube-scheduler may choose other destinations, so drain_robust.c places
 *                        the wave in other orders. A node whose pod has no place then is exchanged;
 *                        after some tries it is left out, until the rest is robust. With not_robust
 *                        the first wave is kept instead, and not called robust.
 *
 * When time is up after some trials, the wave so far is kept, and no more waves are tried for a
 * robust one. A node with more pods than a budget allows at once joins only if no other node of the
 * wave takes from its budgets: the eviction API makes its pods wait for each other.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/arith.h"
#include "aggregator/policy/drain/drain_select.h"
#include "aggregator/policy/drain/drain_internal.h"
#include "shared/mem.h"

struct wave {
	struct drain_run *r;
	struct drain_removable *of; /* owned; the candidate set */
	struct drain_choice choice;
	struct drain_budget budget;
	int64_t empty_left, drain_left; /* by schedules; INT64_MAX: not limited */
	bool by_schedule; /* schedules are stricter than parallelism */
	struct error schedule;
	size_t held;
	size_t tries; /* nodes simulated */
	bool late; /* time was up */
};

static struct drain_case *case_of(const struct wave *w, size_t number)
{
	return &w->r->cases[w->r->set[number]];
}

/* --- budgets of the moment */

static void count_in_progress(struct wave *w)
{
	const struct drain_run *r = w->r;

	w->budget = (struct drain_budget){.max = r->config->rules.max_parallelism,
					  .max_drain = r->config->rules.max_drain_parallelism};
	for (size_t i = 0; i < r->count; i++) {
		const struct drain_case *c = &r->cases[i];

		if (!c->in_deletion)
			continue;
		if (drain_is_empty(c->pods, c->pod_count))
			w->budget.empty_in_progress++;
		else
			w->budget.drain_in_progress++;
	}
}

static int64_t left_by(struct wave *w, const char *why, int64_t nodes, int64_t away)
{
	const struct drain_config *c = w->r->config;
	size_t which;
	int32_t most = drain_windows_allow(c->windows, c->window_count, c->rules.variant, why,
					   nodes, w->r->now_ns / DRAIN_SECOND_NS, &which);

	if (most == DRAIN_UNLIMITED)
		return INT64_MAX;
	return error_fail(&w->schedule, most > away ? most - away : 0,
			  "budget %zu (nodes: %.20s) allows %d nodes away at once, and %" PRId64
			  " are",
			  which + 1, c->windows[which].nodes, most, away);
}

/* Nodes in deletion and unready nodes count as away. */
static void ask_schedules(struct wave *w)
{
	const struct drain_run *r = w->r;
	int64_t nodes = 0, away = 0, on_way, room;

	for (size_t i = 0; i < r->count; i++) {
		const struct drain_case *c = &r->cases[i];

		nodes += c->node != NULL;
		away += c->node && (c->in_deletion || !c->node->ready);
	}
	w->drain_left = left_by(w, "Underutilized", nodes, away);
	w->empty_left = left_by(w, "Empty", nodes, away);
	on_way = w->budget.empty_in_progress + w->budget.drain_in_progress;
	room = w->empty_left > w->drain_left ? w->empty_left : w->drain_left;
	w->by_schedule = room < w->budget.max - on_way ||
			 w->drain_left < w->budget.max_drain - w->budget.drain_in_progress;
	w->budget.max = int_min(w->budget.max, add_saturating(on_way, room));
	w->budget.max_drain = int_min(w->budget.max_drain,
				      add_saturating(w->budget.drain_in_progress, w->drain_left));
}

/* --- leaving out */

/* Leaves out the node and the rest of its atomic group. */
static void leave_out(struct wave *w, size_t number, enum drain_out how)
{
	uint32_t group = w->of[number].group;

	w->of[number].out = how;
	if (!drain_group_is_atomic(&w->r->plan->groups, group))
		return;
	for (size_t i = 0; i < w->r->set_count; i++) {
		if (w->of[i].group != group || w->of[i].out != DRAIN_STILL_IN ||
		    w->of[i].reason != DRAIN_NONE)
			continue;
		w->of[i].out = how;
		drain_add_reason(case_of(w, i), DRAIN_ATOMIC_FAILED,
				 "group \"%s\" goes as a whole, and node %s cannot go now",
				 w->r->plan->groups.of[group].name, case_of(w, number)->view->name);
	}
}

/* --- one node more */

/* Whether the wave took nothing from its budgets. */
static bool is_alone(struct wave *w, const struct drain_case *c)
{
	for (size_t i = 0; i < c->leave_count; i++) {
		const uint32_t *which;
		size_t count = drain_pdbs_match(w->r->pdbs, c->leave[i], &which);

		for (size_t j = 0; j < count; j++)
			if (drain_pdbs_remaining(w->r->pdbs, which[j]) !=
			    w->r->allowed_by[which[j]])
				return false;
	}
	return true;
}

static bool ask_budgets(struct wave *w, size_t number)
{
	struct drain_case *c = case_of(w, number);
	struct drain_pdb_verdict v;
	struct error why;

	drain_pdbs_ask(w->r->pdbs, c->leave, c->leave_count, &v);
	if (v.reason == DRAIN_NONE && (v.in_parallel || (!c->falls.len && is_alone(w, c))))
		return true;
	drain_pdb_tell(&v, &why);
	drain_add_reason(c, v.reason == DRAIN_NONE ? DRAIN_NOT_ENOUGH_PDB : v.reason,
			 "pod %s/%s: beside this wave, %s", v.pod->object.namespace,
			 v.pod->object.name, why.text)
		->pod = v.pod;
	return false;
}

static bool ask_owners(struct wave *w, size_t number)
{
	struct drain_case *c = case_of(w, number);
	const struct kube_pod *pod = NULL;
	struct error why;

	if (drain_owners_take(w->r->owners, c->leave, c->leave_count, &pod, &why) == DRAIN_NONE)
		return true;
	drain_add_reason(c, DRAIN_OWNER_SHARE, "%s", why.text)->pod = pod;
	return false;
}

static void give_back(struct wave *w, size_t number)
{
	struct drain_case *c = case_of(w, number);

	if (!w->r->corrected)
		return;
	drain_pdbs_give(w->r->pdbs, c->leave, c->leave_count);
	drain_owners_give(w->r->owners, c->leave, c->leave_count);
	drain_gangs_release(w->r, c);
}

/* Whether the node is a destination of pods that fell with earlier picks. */
static bool is_returned_to(struct wave *w, struct drain_case *c)
{
	size_t pods = 0;

	for (size_t i = 0; i < w->r->pick_count; i++)
		for (size_t j = 0; j < w->r->picks[i].placed.own_count; j++)
			pods += &w->r->cases[w->r->picks[i].placed.items[j].to] == c;
	if (pods)
		drain_add_reason(
			c, DRAIN_DESTINATION,
			"%zu %s of groups that fall with nodes that go would start again here",
			pods, drain_plural(pods, "pod", "pods"));
	return pods > 0;
}

/* upstream: budgets were checked for the candidate set, and owners have no share. */
static bool reserve(struct wave *w, size_t number)
{
	struct drain_case *c = case_of(w, number);

	if (!w->r->corrected)
		return true;
	if (is_returned_to(w, c))
		return false;
	if (!drain_gangs_close(w->r, c) || !ask_budgets(w, number) || !ask_owners(w, number)) {
		drain_gangs_release(w->r, c);
		return false;
	}
	drain_pdbs_take(w->r->pdbs, c->leave, c->leave_count);
	return true;
}

/*
 * No candidate is a destination. But pods that fall with the node's may start again on their own
 * node if they fit nowhere else; that node then stays.
 */
static void try_pick(struct wave *w, const struct drain_case *c, struct drain_trial *out)
{
	bool *allowed;

	drain_try_node(w->r, c, w->r->corrected ? w->r->stays : NULL, out);
	if (out->reason == DRAIN_NONE || c->leave_own == c->leave_count)
		return;
	free(out->placed.items);
	free(out->other);
	allowed = mem_zalloc(w->r->count + 1, sizeof(*allowed));
	memcpy(allowed, w->r->stays, w->r->count * sizeof(*allowed));
	for (size_t i = c->leave_own; i < c->leave_count; i++)
		allowed[place_find_node(w->r->place, c->leave[i]->node)] = true;
	drain_try_node(w->r, c, allowed, out);
	free(allowed);
}

static bool add_pick(struct wave *w, size_t number)
{
	struct drain_pick *pick = &w->r->picks[w->r->pick_count];
	struct drain_case *c = case_of(w, number);
	struct error why = {""};
	struct drain_trial trial;

	if (!reserve(w, number))
		return false;
	pick->number = number;
	pick->node = (place_node)w->r->set[number];
	w->tries++;
	pick->mark = place_fork(w->r->place);
	try_pick(w, c, &trial);
	pick->placed = trial.placed;
	if (trial.reason != DRAIN_NONE) {
		drain_explain_trial(c, &trial);
		drain_gangs_explain(c);
	} else if (drain_slack_holds(w->r, w->r->pick_count + 1, &why)) {
		w->r->pick_count++;
		return true;
	} else {
		drain_add_reason(c, DRAIN_SLACK_DROPS, "%s", why.text);
		place_revert(w->r->place, pick->mark);
	}
	free(pick->placed.items);
	give_back(w, number);
	return false;
}

static void pop_picks(struct wave *w, size_t keep)
{
	if (w->r->pick_count <= keep)
		return;
	place_revert(w->r->place, w->r->picks[keep].mark);
	while (w->r->pick_count > keep) {
		struct drain_pick *pick = &w->r->picks[--w->r->pick_count];

		give_back(w, pick->number);
		free(pick->placed.items);
	}
}

/* --- choosing */

/* Leaves out the nodes of a list behind the first `most`. True: some were left out. */
static bool close_behind(struct wave *w, const size_t *numbers, size_t count, int64_t most)
{
	bool closed = false;

	for (size_t i = count; i > 0 && (int64_t)i > most; i--) {
		size_t number = numbers[i - 1];

		if (w->of[number].out != DRAIN_STILL_IN)
			continue;
		drain_add_reason(case_of(w, number), DRAIN_BUDGET_CLOSED, "%s", w->schedule.text);
		leave_out(w, number, DRAIN_NOT_NOW);
		closed = true;
	}
	return closed;
}

/* Nodes beyond the schedules, by kind. */
static bool close_by_schedule(struct wave *w, const struct drain_choice *crop)
{
	int64_t drains = w->drain_left;
	bool closed = close_behind(w, crop->empty, crop->empty_count, w->empty_left);

	if (drains != INT64_MAX)
		drains -= (int64_t)crop->empty_count;
	return close_behind(w, crop->drain, crop->drain_count, drains) || closed;
}

/* The crop of the nodes still in; the caller frees it. */
static size_t *crop(struct wave *w, size_t *count)
{
	const struct drain_run *r = w->r;
	struct drain_choice crop = {0};
	size_t *chosen;

	do {
		drain_choice_fini(&crop);
		w->held = drain_budget_crop(&w->budget, r->config->rules.variant, &r->plan->groups,
					    w->of, &w->choice, &crop);
	} while (close_by_schedule(w, &crop));
	*count = crop.empty_count + crop.drain_count;
	chosen = mem_zalloc(*count + 1, sizeof(*chosen));
	memcpy(chosen, crop.empty, crop.empty_count * sizeof(*chosen));
	memcpy(chosen + crop.empty_count, crop.drain, crop.drain_count * sizeof(*chosen));
	drain_choice_fini(&crop);
	return chosen;
}

static bool is_picked(const struct wave *w, size_t number)
{
	for (size_t i = 0; i < w->r->pick_count; i++)
		if (w->r->picks[i].number == number)
			return true;
	return false;
}

/* Leaves out all nodes that are not picked, with their atomic groups. */
static void end_for_time(struct wave *w)
{
	w->late = true;
	for (size_t i = 0; i < w->r->set_count; i++) {
		if (w->of[i].out != DRAIN_STILL_IN || w->of[i].reason != DRAIN_NONE ||
		    is_picked(w, i))
			continue;
		drain_add_reason(case_of(w, i), DRAIN_NOT_EXAMINED,
				 "time was up before it was tried beside the wave");
		leave_out(w, i, DRAIN_NOT_NOW);
	}
}

/* Whether all of them are in the wave. */
static bool pick_all(struct wave *w, const size_t *chosen, size_t count)
{
	size_t same = 0;
	bool all = true;

	while (same < count && same < w->r->pick_count && w->r->picks[same].number == chosen[same])
		same++;
	pop_picks(w, same);
	for (size_t i = same; i < count; i++) {
		if (!w->late && drain_is_late(w->r, w->tries)) {
			end_for_time(w);
			return false;
		}
		if (w->of[chosen[i]].out != DRAIN_STILL_IN || add_pick(w, chosen[i]))
			continue;
		leave_out(w, chosen[i], DRAIN_NOT_NOW);
		all = false;
	}
	return all;
}

static void choose(struct wave *w)
{
	bool done;

	do {
		size_t count, *chosen = crop(w, &count);

		done = pick_all(w, chosen, count);
		free(chosen);
	} while (!done);
}

/* --- robust */

static void replay(struct wave *w)
{
	for (size_t i = 0; i < w->r->pick_count; i++) {
		struct drain_pick *pick = &w->r->picks[i];

		pick->mark = place_fork(w->r->place);
		place_drain_node(w->r->place, pick->node);
		for (size_t j = 0; j < pick->placed.count; j++)
			place_take(w->r->place, pick->placed.items[j].pod);
		for (size_t j = 0; j < pick->placed.count; j++)
			place_put(w->r->place, pick->placed.items[j].pod, pick->placed.items[j].to);
	}
}

/* A removable that makes the wave fragile; SIZE_MAX: none. */
static size_t find_fragile(struct wave *w, struct error *why)
{
	size_t victim;

	if (w->r->pick_count)
		place_revert(w->r->place, w->r->picks[0].mark);
	victim = drain_find_fragile(w->r, why);
	w->r->plan->wave.any_order = victim == SIZE_MAX && drain_holds_in_any_order(w->r);
	replay(w);
	return victim == SIZE_MAX ? SIZE_MAX : w->r->picks[victim].number;
}

static bool has_drains(const struct wave *w)
{
	for (size_t i = 0; i < w->r->pick_count; i++)
		if (w->r->picks[i].placed.own_count)
			return true;
	return false;
}

/* Takes nodes back that were left out for robustness. */
static void readmit(struct wave *w)
{
	for (size_t i = 0; i < w->r->set_count; i++) {
		if (w->of[i].out != DRAIN_NOT_ROBUST_NOW)
			continue;
		w->of[i].out = DRAIN_STILL_IN;
		drain_forget_reasons(case_of(w, i)->out);
	}
}

/* Chooses again without the victim; returns the next one. */
static size_t exchange(struct wave *w, size_t victim, struct error *why)
{
	drain_add_reason(case_of(w, victim), DRAIN_NOT_ROBUST,
			 "with it the wave would depend on where the kube-scheduler puts pods: %s",
			 why->text);
	leave_out(w, victim, DRAIN_NOT_ROBUST_NOW);
	choose(w);
	return find_fragile(w, why);
}

static void choose_robust(struct wave *w)
{
	bool must = !w->r->config->not_robust;
	struct drain_wave *out = &w->r->plan->wave;
	struct error why = {""};
	size_t victim = find_fragile(w, &why);

	out->not_robust = why;
	for (uint32_t i = 0;
	     victim != SIZE_MAX && i < w->r->config->robust_tries && !drain_is_late(w->r, w->tries);
	     i++)
		victim = exchange(w, victim, &why);
	/* Without replacements then. */
	for (size_t i = 0; must && victim != SIZE_MAX && i < w->r->set_count; i++)
		if (w->of[i].out == DRAIN_STILL_IN && !is_picked(w, i))
			w->of[i].out = DRAIN_NOT_ROBUST_NOW;
	while (must && victim != SIZE_MAX)
		victim = exchange(w, victim, &why);
	out->robust = must || (victim == SIZE_MAX && (has_drains(w) || !*out->not_robust.text));
	out->any_order &= out->robust;
	if (out->robust) {
		error_set(&out->not_robust, "%s", "");
		return;
	}
	readmit(w);
	choose(w);
}

/* --- telling */

static void explain_held(struct wave *w, size_t number)
{
	const struct drain_throttle *t = &w->r->plan->throttle;
	struct drain_case *c = case_of(w, number);
	struct drain_why *why;

	if (c->out->reason_count)
		return;
	if (w->of[number].out == DRAIN_NOT_ROBUST_NOW) {
		drain_add_reason(c, DRAIN_NOT_ROBUST,
				 "no more waves were tried for one that is robust");
		return;
	}
	if (w->by_schedule) {
		drain_add_reason(c, DRAIN_BUDGET_CLOSED, "%s", w->schedule.text);
		return;
	}
	why = drain_add_reason(c, t->throttled ? DRAIN_THROTTLED : DRAIN_PARALLELISM,
			       "%" PRId64 " of at most %" PRId64
			       " nodes are being removed, %" PRId64 " of at most %" PRId64
			       " with pods to move",
			       t->used, t->limit, t->drains_used, t->drains_limit);
	drain_add_number(why, "used", (double)t->used);
	drain_add_number(why, "limit", (double)t->limit);
	drain_add_number(why, "drainsUsed", (double)t->drains_used);
	drain_add_number(why, "drainsLimit", (double)t->drains_limit);
}

static void explain_selected(struct wave *w, size_t number)
{
	const struct drain_removable *n = &w->of[number];
	struct drain_case *c = case_of(w, number);

	if (n->reason != DRAIN_NONE)
		drain_add_reason(c, n->reason, "%s", n->error.text);
	else if (c->out->verdict == DRAIN_UNNEEDED)
		explain_held(w, number);
	else {
		drain_forget_reasons(c->out); /* of failed tries */
		drain_gangs_explain(c);
	}
}

static void tell_throttle(struct wave *w)
{
	struct drain_throttle *t = &w->r->plan->throttle;

	t->limit = w->r->config->rules.max_parallelism;
	t->drains_limit = w->r->config->rules.max_drain_parallelism;
	t->drains_used = w->budget.drain_in_progress;
	t->used = t->drains_used + w->budget.empty_in_progress + (int64_t)w->r->pick_count;
	for (size_t i = 0; i < w->r->pick_count; i++)
		t->drains_used += w->r->picks[i].placed.own_count > 0;
	t->held = w->held;
	t->throttled = w->held > 0 && t->used >= t->limit;
}

/* --- the wave */

static void read_removables(struct wave *w)
{
	struct drain_run *r = w->r;

	w->of = mem_zalloc(r->set_count + 1, sizeof(*w->of));
	r->picks = mem_zalloc(r->set_count + 1, sizeof(*r->picks));
	r->stays = mem_zalloc(r->count + 1, sizeof(*r->stays));
	memset(r->stays, true, r->count * sizeof(*r->stays));
	for (size_t i = 0; i < r->set_count; i++) {
		const struct drain_case *c = case_of(w, i);

		w->of[i].node = c->node;
		w->of[i].timer = drain_timers_find(&r->state->timers, c->view->name);
		w->of[i].group = c->group;
		w->of[i].gives = (struct drain_floor){1, c->view->cpu_capacity_milli,
						      c->view->mem_capacity_bytes};
		w->of[i].movable = c->placed.own_count;
		w->of[i].waiting = c->sorted.wait_count;
		w->of[i].risky = c->risky;
		r->stays[r->set[i]] = false;
	}
}

/* Pods of nodes in deletion take their share first. */
static void count_owners(struct drain_run *r)
{
	if (r->owners)
		return;
	r->owners = drain_owners_new(r->config->rules.owner_share, r->in->view->cluster);
	for (size_t i = 0; i < r->count; i++)
		for (size_t j = 0; j < r->cases[i].pod_count; j++)
			drain_owners_count(r->owners, r->cases[i].pods[j]);
	for (size_t i = 0; i < r->count; i++)
		for (size_t j = 0; r->cases[i].in_deletion && j < r->cases[i].pod_count; j++)
			drain_owners_take(r->owners, &r->cases[i].pods[j], 1, NULL, NULL);
}

bool drain_must_move(struct drain_run *r, const struct kube_pod *pod)
{
	if (pod->deletion_ns)
		count_owners(r);
	return kube_pod_is_active(pod) &&
	       !(pod->deletion_ns && drain_owners_is_whole(r->owners, pod));
}

void drain_choose_wave(struct drain_run *r)
{
	struct wave w = {.r = r};

	count_in_progress(&w);
	ask_schedules(&w);
	read_removables(&w);
	drain_select(&r->config->rules, &r->plan->groups, w.of, r->set_count, r->now_ns, &w.choice);
	if (r->corrected && w.choice.drain_count)
		count_owners(r);
	choose(&w);
	if (has_drains(&w) && r->config->robust_orders)
		choose_robust(&w);
	else
		r->plan->wave.robust = r->pick_count && r->config->robust_orders;
	tell_throttle(&w);
	drain_record_wave(r);
	for (size_t i = 0; i < r->set_count; i++)
		explain_selected(&w, i);
	drain_choice_fini(&w.choice);
	free(w.of);
}
