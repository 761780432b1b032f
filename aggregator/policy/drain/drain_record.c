/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/policy/drain/drain_internal.h"

#include <stdlib.h>
#include <string.h>

#include "shared/arith.h"
#include "shared/array.h"
#include "shared/mem.h"

bool drain_is_deleted(const struct kube_pod *pod)
{
	return !*pod->template->owner.kind;
}

void drain_record_moves(struct drain_run *r, struct drain_case *c,
			const struct drain_placement *placed)
{
	struct drain_plan_node *n = c->out;

	free(n->moves);
	n->moves = mem_zalloc(placed->real_count + 1, sizeof(*n->moves));
	n->move_count = placed->own_count;
	n->guest_count = placed->real_count - placed->own_count;
	for (size_t i = 0; i < placed->real_count; i++)
		n->moves[i] = (struct drain_move){
			.pod = place_pod_record(r->place, placed->items[i].pod),
			.to = place_node_name(r->place, placed->items[i].to),
			.after = placed->items[i].after,
		};
}

/* --- destinations, by name */

static void record_destinations(struct drain_run *r)
{
	struct drain_wave *w = &r->plan->wave;
	size_t *pods = mem_zalloc(r->count + 1, sizeof(*pods));
	size_t at = 0;

	for (size_t i = 0; i < r->pick_count; i++)
		for (size_t j = 0; j < r->picks[i].placed.own_count; j++) {
			const struct drain_item *item = &r->picks[i].placed.items[j];

			if (drain_is_deleted(place_pod_record(r->place, item->pod))) {
				place_take(r->place, item->pod);
				continue;
			}
			w->destination_count += pods[item->to]++ == 0;
			w->pods++;
		}
	w->destinations = mem_zalloc(w->destination_count + 1, sizeof(*w->destinations));
	for (place_node n = 0; n < r->count; n++) {
		struct drain_destination *d = &w->destinations[at];

		if (!pods[n])
			continue;
		d->node = place_node_name(r->place, n);
		d->pods = pods[n];
		d->predicted = place_predict(r->place, n, PLACE_NONE, &d->after);
		at++;
	}
	if (r->pick_count)
		place_revert(r->place, r->picks[0].mark);
	at = 0;
	for (place_node n = 0; n < r->count; n++)
		if (pods[n])
			place_predict(r->place, n, PLACE_NONE, &w->destinations[at++].before);
	free(pods);
}

/* --- costs */

/* Disruptions of an owner. */
struct cost {
	UT_hash_handle hh;
	const char *uid; /* key */
	int64_t used; /* by pods that count: they are ready */
	struct drain_cost of;
};

static void count_for_owner(const struct kube_pod *pod, struct cost **owners)
{
	const struct owner_ref *ref = &pod->template->owner;
	struct cost *c;

	if (!*ref->uid)
		return;
	HASH_FIND_STR(*owners, ref->uid, c);
	if (!c)
		HASH_NEW(*owners, c, uid, ref->uid);
	c->used += pod->ready && pod->deletion_ns == 0;
	c->of = (struct drain_cost){
		.namespace = pod->object.namespace,
		.kind = ref->kind,
		.name = ref->name,
		.pods = c->of.pods + 1,
	};
}

static int compare_costs(const void *left, const void *right)
{
	const struct drain_cost *a = left, *b = right;

	return COMPARE(!a->budget, !b->budget)
		?: strcmp(a->namespace, b->namespace)
		?: strcmp(a->kind, b->kind)
		?: strcmp(a->name, b->name);
}

/*
 * The wave took its disruptions: pods that are not ready or in deletion use none. upstream counts
 * each pod, and all candidates took theirs.
 */
static struct drain_cost cost_of_budget(const struct drain_run *r, uint32_t which, size_t pods)
{
	const struct kube_pdb *budget = drain_pdbs_at(r->pdbs, which);
	int64_t allowed = r->allowed_by[which], used = (int64_t)pods;

	if (r->corrected)
		used = allowed - drain_pdbs_remaining(r->pdbs, which);
	return (struct drain_cost){
		.budget = budget,
		.namespace = budget->object.namespace,
		.kind = object_kind_name(OBJECT_POD_DISRUPTION_BUDGET),
		.name = budget->object.name,
		.pods = pods,
		.limited = true,
		.allowed = allowed,
		.left = used < allowed ? allowed - used : 0,
		.one_after_the_other = used > allowed,
	};
}

static void weigh_owner(const struct drain_run *r, struct cost *c)
{
	int64_t left;

	c->of.limited = r->owners && drain_owners_left(r->owners, c->uid, &left);
	if (!c->of.limited)
		return;
	c->of.left = left > 0 ? left : 0;
	c->of.allowed = left + c->used > 0 ? left + c->used : 0;
	c->of.one_after_the_other = c->used > c->of.allowed;
}

static void record_costs(struct drain_run *r)
{
	struct drain_wave *w = &r->plan->wave;
	size_t *pods = mem_zalloc(r->budget_count + 1, sizeof(*pods)), matches;
	struct cost *owners = NULL, *owner, *next;
	const uint32_t *which;

	for (size_t i = 0; i < r->pick_count; i++) {
		const struct drain_case *c = &r->cases[r->picks[i].node];

		for (size_t j = 0; j < c->leave_count; j++) {
			matches = drain_pdbs_match(r->pdbs, c->leave[j], &which);
			for (size_t k = 0; k < matches; k++)
				pods[which[k]]++;
			count_for_owner(c->leave[j], &owners);
		}
	}
	w->costs = mem_zalloc(r->budget_count + HASH_COUNT(owners) + 1, sizeof(*w->costs));
	for (uint32_t i = 0; i < r->budget_count; i++)
		if (pods[i])
			w->costs[w->cost_count++] = cost_of_budget(r, i, pods[i]);
	HASH_RELEASE (owners, owner, next) {
		weigh_owner(r, owner);
		w->costs[w->cost_count++] = owner->of;
		free(owner);
	}
	array_sort(w->costs, w->cost_count, sizeof(*w->costs), compare_costs);
	free(pods);
}

/* --- steps */

static bool costs(const struct drain_run *r, const struct drain_cost *c, const struct kube_pod *pod)
{
	const struct owner_ref *owner = &pod->template->owner;
	const uint32_t *which;
	size_t count;

	if (!pod->ready || pod->deletion_ns || strcmp(pod->object.namespace, c->namespace) != 0)
		return false;
	if (!c->budget)
		return strcmp(owner->kind, c->kind) == 0 && strcmp(owner->name, c->name) == 0;
	count = drain_pdbs_match(r->pdbs, pod, &which);
	for (size_t i = 0; i < count; i++)
		if (drain_pdbs_at(r->pdbs, which[i]) == c->budget)
			return true;
	return false;
}

/* The costs that a pod waits for; a group that falls leaves together. */
static size_t find_waits(const struct drain_run *r, const struct kube_pod *pod, size_t *waits)
{
	const struct drain_wave *w = &r->plan->wave;
	size_t count = 0;

	for (size_t i = 0; i < w->cost_count; i++)
		if (w->costs[i].one_after_the_other && costs(r, &w->costs[i], pod) &&
		    !gangs_fallen(r->gangs, pod))
			waits[count++] = i;
	return count;
}

/* used: disruptions of a step, by cost. */
static bool has_room(const struct drain_wave *w, const int64_t *used, const size_t *waits,
		     size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (used[waits[i]] >= int_max(w->costs[waits[i]].allowed, 1))
			return false;
	return true;
}

/* A pod gets the first step in which all of its costs allow it; 0: it waits for none. */
static void put_steps(const struct drain_run *r, struct drain_plan_node *n)
{
	const struct drain_wave *w = &r->plan->wave;
	int64_t *used = mem_zalloc((n->move_count + 1) * w->cost_count + 1, sizeof(*used));
	size_t *waits = mem_zalloc(w->cost_count + 1, sizeof(*waits));

	for (size_t i = 0; i < n->move_count; i++) {
		size_t count = find_waits(r, n->moves[i].pod, waits), step = count > 0;

		while (!has_room(w, used + step * w->cost_count, waits, count))
			step++;
		for (size_t k = 0; k < count; k++)
			used[step * w->cost_count + waits[k]]++;
		n->moves[i].step = (uint32_t)step;
	}
	free(waits);
	free(used);
}

/* The other pods of the node leave with the last step. */
static void record_steps(struct drain_run *r, struct drain_plan_node *n)
{
	uint32_t last = 0;

	put_steps(r, n);
	for (size_t i = 0; i < n->move_count; i++)
		last = n->moves[i].step > last ? n->moves[i].step : last;
	for (size_t i = 0; i < n->move_count; i++)
		if (last < 2)
			n->moves[i].step = 0;
		else if (!n->moves[i].step)
			n->moves[i].step = last;
}

void drain_record_wave(struct drain_run *r)
{
	struct drain_wave *w = &r->plan->wave;

	w->nodes = mem_zalloc(r->pick_count + 1, sizeof(struct drain_plan_node *));
	for (size_t i = 0; i < r->pick_count; i++) {
		struct drain_case *c = &r->cases[r->picks[i].node];

		drain_record_moves(r, c, &r->picks[i].placed);
		c->out->verdict = DRAIN_SELECTED;
		c->out->robust = w->robust;
		w->nodes[w->node_count++] = c->out;
		w->empty_count += c->out->move_count == 0;
	}
	record_destinations(r);
	record_costs(r);
	for (size_t i = 0; i < r->pick_count && r->corrected; i++)
		record_steps(r, r->cases[r->picks[i].node].out);
}

void drain_record_kept(struct drain_run *r)
{
	for (size_t i = 0; i < r->count; i++) {
		struct drain_plan_node *n = r->cases[i].out;

		if (n->verdict == DRAIN_NEEDED && n->reason_count &&
		    n->reasons[0].code == DRAIN_DESTINATION)
			n->verdict = r->plan->wave.node_count ? DRAIN_KEPT : DRAIN_UNEXAMINED;
	}
}

/* --- life of the plan */

void drain_plan_free(struct drain_plan *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->node_count; i++) {
		drain_forget_reasons(&p->nodes[i]);
		free(p->nodes[i].moves);
	}
	free(p->nodes);
	free(p->wave.nodes);
	free(p->wave.destinations);
	free(p->wave.costs);
	free(p->reserved.moves);
	for (size_t i = 0; i < p->held_count; i++)
		object_drop(&p->held[i]->object);
	free(p->held);
	for (size_t i = 0; i < p->record_count; i++)
		drain_record_fini(&p->records[i]);
	free(p->records);
	drain_groups_fini(&p->groups);
	free(p->narration);
	view_drop(p->view);
	free(p);
}

const struct drain_plan_node *drain_plan_find(const struct drain_plan *p, const char *node)
{
	return array_search_name(p->nodes, p->node_count, sizeof(*p->nodes), node);
}
