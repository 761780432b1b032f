/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of victims, in the corrected variant. A set suffices for a node if without it the quotas allow
 * the pod and it fits there.
 *
 *     greedy   takes candidates one by one by rank until the set suffices
 *     exact    if greedy fails though all candidates together would suffice (a min, a window or a budget
 *              protected one): the same with backtracking, within the effort
 *     walk     puts back what the set does not need, the most expensive first: the set is minimal
 *
 * A group (gangs.h) that falls with a victim is taken and put back together with it.
 *
 * First each node is searched among its own pods. If a node has room and only the quotas refuse,
 * candidates of all nodes are searched by rank. If no set suffices, victims are on several nodes: pods
 * of the destination until the pod fits; if a rule about neighbours refuses (affinity and spread count
 * pods of other nodes), pods of other nodes, too; then any borrowers, until the quotas allow the pod.
 * At the end the search removes those victims from the cheapest set that the pod does not need on
 * another node.
 *
 * More victims never make room or quotas worse, so the search skips a node that would not suffice
 * without all its candidates. Affinity and spread can become worse; there the exact search finds sets
 * that the greedy search misses.
 */
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/quota/preempt_internal.h"
#include "shared/array.h"
#include "shared/mem.h"

enum {
	EXACT_CANDIDATES = 24, /* of a node, or of all nodes: the first by rank */
	EXACT_STEPS = 4096, /* most pods taken for one node */
	FILTER_NODES =
		64, /* nodes tried with pods of other nodes if a rule about neighbours refuses */
	FILTER_CANDIDATES = 2048,
	SCANS = 2000000, /* most candidates examined for sets of several nodes */
};

/* Candidates to try, in order, and the taken ones. */
struct attempt {
	struct preempt_run *run;
	place_node at;
	uint32_t count, *of; /* borrowed */
	uint32_t taken_count, *taken; /* owned; in the order they were taken */
	uint32_t steps;
	uint64_t contested;
};

void preempt_set_fini(struct preempt_set *s)
{
	free(s->of);
	*s = (struct preempt_set){.at = PLACE_NONE};
}

/* Keeps the cheaper set in *best and empties the other. */
static void keep_cheaper(struct preempt_set *best, struct preempt_set *set)
{
	if (best->at == PLACE_NONE ||
	    preempt_cost_compare(&set->cost, &best->cost, QUOTA_CORRECTED) < 0) {
		struct preempt_set worse = *best;

		*best = *set;
		*set = worse;
	}
	preempt_set_fini(set);
}

/* Takes the candidate and the members that fall with it. */
static bool take(struct attempt *a, uint32_t candidate)
{
	return !a->run->candidates[candidate].taken &&
	       preempt_victims_take(a->run, candidate, a->contested, &a->taken, &a->taken_count);
}

static void put_all_but(struct attempt *a, uint32_t kept)
{
	while (a->taken_count > kept)
		preempt_victims_put(a->run, a->taken[--a->taken_count]);
}

static bool fits(const struct attempt *a)
{
	return preempt_run_fits(a->run, a->at) == PLACE_FITS;
}

static bool suffices(const struct attempt *a)
{
	return preempt_run_quotas_allow(a->run) && fits(a);
}

/* --- greedy */

static bool take_until(struct attempt *a, bool (*done)(const struct attempt *))
{
	if (done(a))
		return true;
	for (uint32_t i = 0; i < a->count; i++)
		if (take(a, a->of[i]) && done(a))
			return true;
	return false;
}

/* The outcome without all candidates, protected or not; *f is the filter that refuses. */
static enum preempt_outcome without_all(struct attempt *a, enum place_filter *f)
{
	uint32_t before = a->taken_count;
	struct preempt_run *r = a->run;
	bool allowed;

	for (uint32_t i = 0; i < a->count; i++) {
		struct preempt_victim_candidate *p = &r->candidates[a->of[i]];

		if (p->taken || !preempt_victims_is_there(r, p))
			continue;
		preempt_run_take(r, p);
		ARRAY_ADD(a->taken, a->taken_count) = a->of[i];
	}
	*f = preempt_run_fits(r, a->at);
	allowed = preempt_run_quotas_allow(r);
	while (a->taken_count > before)
		preempt_run_put(r, &r->candidates[a->taken[--a->taken_count]]);
	if (*f != PLACE_FITS)
		return PREEMPT_NODE_NO_ROOM;
	return allowed ? PREEMPT_NODE_SUFFICES : PREEMPT_NODE_QUOTA;
}

/* --- exact */

static bool step(struct attempt *a, uint32_t from)
{
	for (uint32_t i = from; i < a->count; i++) {
		uint32_t before = a->taken_count;

		if (!take(a, a->of[i]))
			continue;
		if (!a->steps || !a->run->effort) {
			put_all_but(a, before);
			a->run->cut = true;
			return false;
		}
		a->steps--;
		if (suffices(a) || step(a, i + 1))
			return true;
		put_all_but(a, before);
	}
	return false;
}

static bool exact(struct attempt *a)
{
	if (a->count > EXACT_CANDIDATES) {
		a->count = EXACT_CANDIDATES;
		a->run->cut = true;
	}
	a->steps = EXACT_STEPS;
	return step(a, 0);
}

/* --- minimal */

/*
 * Puts back the i-th, or if its group fell, all members but `kept` from the i-th on. Returns how
 * many before the i-th are still taken.
 */
static uint32_t put_unit(struct preempt_run *r, const uint32_t *of, uint32_t count, uint32_t i,
			 uint32_t kept)
{
	const struct gang *g = gangs_fallen(r->gangs, preempt_pod_of(r, of[i])->pod);
	uint32_t left = i;

	if (!g) {
		preempt_victims_put(r, of[i]);
		return left;
	}
	for (uint32_t k = 0; k < count; k++) {
		uint32_t at = (i + k) % count;
		struct gang *own;

		if (!gangs_member(r->gangs, preempt_pod_of(r, of[at])->pod, &own) || own != g)
			continue;
		if (kept) {
			kept--;
			continue;
		}
		preempt_victims_put(r, of[at]);
		left -= at < i;
	}
	return left;
}

static void take_again(struct preempt_run *r, const uint32_t *of, uint32_t count)
{
	const struct kube_pod **leave;

	for (uint32_t i = 0; i < count; i++) {
		if (r->candidates[of[i]].taken)
			continue;
		preempt_run_take(r, &r->candidates[of[i]]);
		gangs_close(r->gangs, &preempt_pod_of(r, of[i])->pod, 1, &leave);
		free(leave);
	}
}

static uint32_t forget_put(const struct preempt_run *r, uint32_t *of, uint32_t count)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < count; i++)
		if (r->candidates[of[i]].taken)
			of[kept++] = of[i];
	return kept;
}

/* Puts back the most expensive first. True: the set is smaller. */
static bool walk_back(struct attempt *a)
{
	bool any = false;

	for (uint32_t i = a->taken_count; i-- > 0;) {
		uint32_t left = put_unit(a->run, a->taken, a->taken_count, i, 0);

		if (!suffices(a)) {
			take_again(a->run, a->taken, a->taken_count);
			continue;
		}
		a->taken_count = forget_put(a->run, a->taken, a->taken_count);
		i = left;
		any = true;
	}
	return any;
}

/* Puts back members that a fallen group can spare, not the whole group. True: some were. */
static bool keep_spare(struct attempt *a)
{
	struct preempt_run *r = a->run;

	for (uint32_t i = 0; i < a->taken_count; i++) {
		const struct gang *g = gangs_fallen(r->gangs, preempt_pod_of(r, a->taken[i])->pod);

		if (!g || !gang_spare(g))
			continue;
		put_unit(r, a->taken, a->taken_count, i, gang_spare(g));
		if (suffices(a)) {
			a->taken_count = forget_put(r, a->taken, a->taken_count);
			return true;
		}
		take_again(r, a->taken, a->taken_count);
	}
	return false;
}

/* Makes the sufficient set that is taken minimal and copies it. */
static void settle(struct attempt *a, struct preempt_set *out)
{
	if (a->taken) {
		qsort(a->taken, a->taken_count, sizeof(*a->taken), array_compare_uint32);
		while (walk_back(a) || keep_spare(a))
			;
	}
	*out = (struct preempt_set){.at = a->at, .count = a->taken_count};
	out->of = mem_zalloc((size_t)a->taken_count + 1, sizeof(*out->of));
	if (a->taken)
		memcpy(out->of, a->taken, a->taken_count * sizeof(*out->of));
	preempt_set_reckon(a->run, out);
}

/* --- a node by its own pods */

static enum preempt_outcome try_own(struct attempt *a, enum place_filter *f)
{
	enum preempt_outcome outcome;

	if (!a->count)
		return PREEMPT_NODE_NO_VICTIM;
	if (take_until(a, suffices))
		return PREEMPT_NODE_SUFFICES;
	outcome = without_all(a, f);
	put_all_but(a, 0);
	/* These filters only pods on the node itself can change. */
	if (outcome == PREEMPT_NODE_QUOTA ||
	    (outcome == PREEMPT_NODE_NO_ROOM &&
	     (*f == PLACE_FIT || *f == PLACE_HOST_PORTS || *f == PLACE_VOLUME_LIMITS)))
		return outcome;
	if (exact(a))
		return PREEMPT_NODE_SUFFICES;
	return outcome == PREEMPT_NODE_SUFFICES ? PREEMPT_NODE_GUARDED : outcome;
}

struct several;
typedef bool try_node(struct several *s, struct attempt *a);

/* s is not read. */
static bool try_alone(struct several *s, struct attempt *a)
{
	struct preempt_node *node = &a->run->nodes[a->at];

	(void)s;
	node->filter = PLACE_FITS;
	node->outcome = try_own(a, &node->filter);
	return node->outcome == PREEMPT_NODE_SUFFICES;
}

/* A minimal set for the node, found by the attempt; all is put back. */
static bool visit(struct preempt_run *r, place_node n, try_node *attempt, struct several *s,
		  struct preempt_set *out)
{
	struct attempt a = {.run = r,
			    .at = n,
			    .count = r->local_first[n + 1] - r->local_first[n],
			    .of = r->local + r->local_first[n],
			    .contested = r->contested[n]};
	place_mark m = place_fork(r->place);
	bool found = attempt(s, &a);

	if (found)
		settle(&a, out);
	put_all_but(&a, 0);
	place_revert(r->place, m);
	free(a.taken);
	return found;
}

bool preempt_search_node(struct preempt_run *r, place_node n, struct preempt_set *out)
{
	return visit(r, n, try_alone, NULL, out);
}

/* --- a node with the help of others */

/* Filters that victims on other nodes can change. */
static bool is_of_others(enum place_filter f)
{
	return f == PLACE_ANTI_AFFINITY || f == PLACE_AFFINITY || f == PLACE_SPREAD ||
	       f == PLACE_VOLUMES;
}

static bool quotas_allow(const struct attempt *a)
{
	return preempt_run_quotas_allow(a->run);
}

/* Shared by a search over several nodes. */
struct several {
	struct preempt_run *run;
	uint32_t *all; /* owned; every candidate, by rank */
	uint32_t filter_nodes; /* left */
	uint64_t scans; /* left */
	bool quotas_can_allow; /* taking candidates by rank satisfies the quotas */
	struct preempt_set *best;
};

static void several_init(struct several *s, struct preempt_run *r, struct preempt_set *best)
{
	struct attempt a = {.run = r, .contested = r->contested_by_quotas};
	place_mark m = place_fork(r->place);

	*s = (struct several){.run = r, .filter_nodes = FILTER_NODES, .scans = SCANS, .best = best};
	s->all = mem_zalloc(r->candidate_count, sizeof(*s->all));
	for (uint32_t i = 0; i < r->candidate_count; i++)
		s->all[i] = i;
	a.of = s->all;
	a.count = r->candidate_count;
	s->quotas_can_allow = take_until(&a, quotas_allow);
	put_all_but(&a, 0);
	place_revert(r->place, m);
	free(a.taken);
}

/* With the node's own pods; with pods of other nodes only if a rule about neighbours refuses. */
static bool make_room(struct several *s, struct attempt *a)
{
	if (take_until(a, fits))
		return true;
	if (!is_of_others(preempt_run_fits(a->run, a->at)) || !s->filter_nodes)
		return false;
	s->filter_nodes--;
	a->of = s->all;
	a->count = a->run->candidate_count < FILTER_CANDIDATES ? a->run->candidate_count
							       : FILTER_CANDIDATES;
	return take_until(a, fits);
}

static bool try_several(struct several *s, struct attempt *a)
{
	if (!make_room(s, a))
		return false;
	a->of = s->all;
	a->count = a->run->candidate_count;
	for (uint32_t i = 0; i < a->count && !quotas_allow(a); i++) {
		s->scans -= s->scans > 0;
		take(a, i);
	}
	return suffices(a);
}

/* The node's own pods first, then others by rank. */
static bool try_exactly(struct several *s, struct attempt *a)
{
	uint32_t own = a->count, of[EXACT_CANDIDATES + 1];
	const uint32_t *local = a->of;
	enum place_filter f = PLACE_FITS;
	bool found;

	if (without_all(a, &f) == PREEMPT_NODE_NO_ROOM && !is_of_others(f))
		return false;
	a->count = 0;
	for (uint32_t i = 0; i < own && a->count <= EXACT_CANDIDATES; i++)
		of[a->count++] = local[i];
	for (uint32_t i = 0; i < a->run->candidate_count && a->count <= EXACT_CANDIDATES; i++)
		if (preempt_pod_of(a->run, i)->node != a->at)
			of[a->count++] = i;
	a->of = of;
	found = exact(a);
	a->of = s->all;
	return found;
}

static bool improve(struct several *s, place_node n, try_node *attempt)
{
	struct preempt_set set;
	bool found = visit(s->run, n, attempt, s, &set);

	if (found)
		keep_cheaper(s->best, &set);
	return found;
}

/* All nodes with room need the same victims elsewhere: the first node suffices. */
static void search_room(struct several *s)
{
	bool found = false;

	for (place_node n = 0; !found && n < s->run->index->view->node_count; n++)
		found = preempt_run_allows(s->run, n) &&
			preempt_run_fits(s->run, n) == PLACE_FITS && improve(s, n, try_several);
}

static void search_several(struct several *s)
{
	struct preempt_run *r = s->run;
	size_t nodes = r->index->view->node_count;

	for (place_node n = 0; s->quotas_can_allow && n < nodes; n++) {
		if (!s->scans)
			r->cut = true;
		else if (preempt_run_allows(r, n))
			improve(s, n, try_several);
	}
	for (place_node n = 0; s->best->at == PLACE_NONE && n < nodes; n++)
		if (preempt_run_allows(r, n))
			improve(s, n, try_exactly);
}

/* --- the cheapest of all */

static bool starts(struct preempt_run *r, const struct preempt_set *s, place_node n)
{
	return preempt_run_allows(r, n) && preempt_run_fits(r, n) == PLACE_FITS &&
	       preempt_victims_serve(r, s->of, s->count, n);
}

/* A node where the pod could start now and that the set may serve; the node of the set first. */
static place_node find_start(struct preempt_run *r, const struct preempt_set *s)
{
	if (!preempt_run_quotas_allow(r))
		return PLACE_NONE;
	if (starts(r, s, s->at))
		return s->at;
	for (place_node n = 0; n < r->index->view->node_count; n++)
		if (starts(r, s, n))
			return n;
	return PLACE_NONE;
}

/* Puts back the most expensive victim that the pod does not need on some node. False: none. */
static bool spare_one(struct preempt_run *r, struct preempt_set *s)
{
	uint32_t count = s->count, *all = mem_zalloc((size_t)count + 1, sizeof(*all));
	place_node at = PLACE_NONE;

	memcpy(all, s->of, count * sizeof(*all));
	for (uint32_t i = count; i-- > 0 && at == PLACE_NONE;) {
		put_unit(r, all, count, i, 0);
		s->count = forget_put(r, s->of, count);
		at = find_start(r, s);
		if (at != PLACE_NONE)
			continue;
		take_again(r, all, count);
		memcpy(s->of, all, count * sizeof(*all));
		s->count = count;
	}
	free(all);
	s->at = at == PLACE_NONE ? s->at : at;
	return at != PLACE_NONE;
}

/* A set is minimal for its own node: with fewer victims the pod may start on another. */
static void spare(struct preempt_run *r, struct preempt_set *s)
{
	place_mark m = place_fork(r->place);

	take_again(r, s->of, s->count);
	while (s->count && spare_one(r, s))
		;
	for (uint32_t i = 0; i < s->count; i++)
		preempt_victims_put(r, s->of[i]);
	place_revert(r->place, m);
	preempt_set_reckon(r, s);
}

void preempt_search(struct preempt_run *r, struct preempt_set *out)
{
	struct several s;

	*out = (struct preempt_set){.at = PLACE_NONE};
	for (place_node n = 0; n < r->index->view->node_count; n++) {
		struct preempt_set set = {.at = PLACE_NONE};

		if (preempt_run_allows(r, n) && preempt_search_node(r, n, &set))
			keep_cheaper(out, &set);
	}
	if (r->candidate_count && (out->at == PLACE_NONE || !preempt_run_quotas_allow(r))) {
		several_init(&s, r, out);
		if (s.quotas_can_allow && !preempt_run_quotas_allow(r))
			search_room(&s);
		/* search_several() has all trials, however many search_room() used. */
		s.scans = SCANS;
		s.filter_nodes = FILTER_NODES;
		if (out->at == PLACE_NONE)
			search_several(&s);
		free(s.all);
	}
	if (out->at != PLACE_NONE)
		spare(r, out);
}
