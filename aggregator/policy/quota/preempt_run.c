/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of one search. Pods are taken from the simulation and from the book at once and put back
 * into both, so that fit and quotas always refer to the same state. preempt_run_fini() restores both:
 * the simulation by its own log, the book by adding again what was subtracted.
 *
 * Nominated pods with at least the pod's priority are on their nodes during the search: the room is
 * theirs. A pod must fit with and without them, since they may yet go elsewhere and then cannot satisfy
 * its affinity: nodes with nominated pods are checked twice.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/quota/preempt_internal.h"
#include "shared/array.h"
#include "shared/mem.h"

bool preempt_run_allows(const struct preempt_run *r, place_node n)
{
	return !r->ask->allowed || r->ask->allowed[n];
}

/* --- what is claimed */

static bool is_self(const struct preempt_run *r, const struct kube_pod *pod)
{
	return strcmp(pod->object.namespace, r->namespace) == 0 &&
	       strcmp(pod->object.name, r->record->object.name) == 0;
}

/* Prepares the question for admission, with the nominated pods that the book does not count. */
static void put_question(struct preempt_run *r)
{
	const struct preempt *x = r->index;
	const struct cluster *c = x->view->cluster;
	const struct reservations_copy *reservations = r->ask->reservations;

	r->nominated = mem_zalloc((size_t)x->nominee_count + 1, sizeof(*r->nominated));
	r->question = (struct quota_ask){.uid = r->record->object.uid,
					 .namespace = r->namespace,
					 .priority = r->priority,
					 .requests = r->requests,
					 .reserved = r->ask->reserved,
					 .promised = *r->record->nominated_node != '\0',
					 .nominated = r->nominated};
	for (uint32_t i = 0; i < x->nominee_count; i++) {
		const struct kube_pod *pod = x->nominees[i].pod;
		const struct object *o = &pod->object;

		if (is_self(r, pod) ||
		    (reservations && reservations_copy_find(reservations, o->namespace, o->name,
							    o->uid, c ? c->generation : 0)))
			continue;
		r->nominated[r->question.nominated_count++] =
			(struct quota_nominated){.uid = o->uid,
						 .namespace = o->namespace,
						 .priority = pod->template->priority,
						 .requests = kube_pod_requests(pod)};
	}
}

static void read_claims(struct preempt_run *r)
{
	quota_claims_read(r->book, quota_book_entry(r->book, r->namespace), &r->question,
			  &r->claims);
}

/* --- the rule */

static enum preempt_rule rule_of(const struct preempt_run *r)
{
	const struct quota_entry *e = quota_book_entry(r->book, r->namespace);
	struct quota_excess excess;

	if (r->options->variant == QUOTA_CORRECTED && r->priority >= r->options->critical_priority)
		return PREEMPT_CRITICAL;
	if (!e)
		return PREEMPT_FREE;
	if (r->options->variant == QUOTA_CORRECTED)
		return quota_claims_within_min(r->book, e, &r->claims) ? PREEMPT_BORROWED
								       : PREEMPT_OWN;
	return quota_find_excess(r->book, e, QUOTA_MIN, &r->claims, &excess) ? PREEMPT_OWN
									     : PREEMPT_BORROWED;
}

/*
 * Counts evictions in the window. *first: the eviction that must leave it before another pod may
 * go, or one more than now.
 */
static uint32_t past_of(const struct preempt_run *r, const struct quota *q, int64_t *first)
{
	int64_t *at = mem_alloc((r->ask->past_count + 1) * sizeof(*at));
	uint32_t count = 0;

	for (size_t i = 0; i < r->ask->past_count; i++) {
		const struct victim_past *past = &r->ask->past[i];

		if (past->at_ns > r->ask->now_ns - q->evictions_ns &&
		    strcmp(past->namespace, q->namespace) == 0)
			at[count++] = past->at_ns;
	}
	qsort(at, count, sizeof(*at), array_compare_int64);
	*first = 0;
	if (count && q->evictions_max)
		*first = at[count > q->evictions_max ? count - q->evictions_max : 0];
	free(at);
	return count;
}

static void read_quota(struct preempt_run *r, uint32_t space)
{
	struct preempt_quota *quota = &r->quotas[space];
	const char *name = r->index->spaces[space].name;
	const struct quota *q;
	int64_t first;
	uint32_t past;

	quota->entry = quota_book_entry(r->book, name);
	quota->own = strcmp(name, r->namespace) == 0;
	if (!quota->entry || !quota->entry->quota.evictions_ns)
		return;
	q = &quota->entry->quota;
	past = past_of(r, q, &first);
	quota->bounded = true;
	quota->evictions = past < q->evictions_max ? q->evictions_max - past : 0;
	if (first)
		quota->window_ends_ns = first + q->evictions_ns;
}

/* --- pods on their nodes */

static void seat_nominees(struct preempt_run *r)
{
	const struct preempt *x = r->index;

	for (uint32_t i = 0; i < x->nominee_count; i++) {
		const struct preempt_nominee *n = &x->nominees[i];
		place_pod pod;

		r->nominees[i] = PLACE_NONE;
		if (n->node == PLACE_NONE || is_self(r, n->pod) ||
		    n->pod->template->priority < r->priority)
			continue;
		pod = place_find_pod(r->place, n->pod->object.namespace, n->pod->object.name);
		if (pod == PLACE_NONE || place_where(r->place, pod) != PLACE_NONE)
			continue;
		place_put(r->place, pod, n->node);
		r->nominees[i] = pod;
		r->nominees_on[n->node]++;
	}
}

static place_pod find_self(struct preempt_run *r)
{
	const struct kube_pod *pod = r->record;
	place_pod known = place_find_pod(r->place, pod->object.namespace, pod->object.name);

	if (known != PLACE_NONE && place_pod_record(r->place, known) == pod)
		return known;
	return place_add_pod(r->place, pod);
}

bool preempt_has_uid(const char *const *uids, size_t count, const char *uid)
{
	return array_find_text(uids, count, sizeof(*uids), uid);
}

bool preempt_run_is_terminating(const void *run, const struct kube_pod *pod)
{
	const struct preempt_ask *ask = ((const struct preempt_run *)run)->ask;

	return pod->deletion_ns ||
	       preempt_has_uid(ask->in_flight, ask->in_flight_count, pod->object.uid);
}

/*
 * Excess of all quotas over the sum of min before this pod is not reclaimed for it: the pod stays
 * within its min, and the sum must not grow. Admission lets the pod pass when it has a nominated
 * node (quota.h, promised).
 */
static void forgive(struct preempt_run *r)
{
	for (size_t i = 0; i < r->claims.count; i++) {
		struct quota_claim *c = &r->claims.of[i];
		const struct quota_row *sum = quota_rows_find(&r->book->sum, c->name);
		quota_amount before = sum ? sum->used + c->total - c->asked : 0;

		if (before > c->floor)
			c->floor = before;
	}
}

/* The rule and the nominated pods that count depend on what the quotas use. */
static void read_again(struct preempt_run *r)
{
	quota_claims_fini(&r->claims);
	read_claims(r);
	r->rule = rule_of(r);
	if (r->rule == PREEMPT_BORROWED)
		forgive(r);
}

void preempt_run_leave(struct preempt_run *r)
{
	const struct preempt *x = r->index;

	for (uint32_t i = 0; i < x->pod_count; i++) {
		const struct kube_pod *pod = x->pods[i].pod;
		place_pod handle;

		if (!preempt_run_is_terminating(r, pod))
			continue;
		handle = place_find_pod(r->place, pod->object.namespace, pod->object.name);
		if (handle == PLACE_NONE || place_where(r->place, handle) == PLACE_NONE)
			continue;
		place_take(r->place, handle);
		quota_book_subtract(r->book, pod->object.namespace, kube_pod_requests(pod));
		ARRAY_ADD(r->terminating, r->terminating_count) =
			(struct preempt_terminating){i, false};
	}
	read_again(r);
}

void preempt_run_stay(struct preempt_run *r)
{
	const struct preempt_ask *ask = r->ask;

	for (uint32_t i = 0; r->has_quota && i < r->terminating_count; i++) {
		const struct kube_pod *pod = r->index->pods[r->terminating[i].pod].pod;
		const char *uid = pod->object.uid;

		/* A victim of an earlier answer is counted by its preemptor. */
		if (strcmp(pod->object.namespace, r->namespace) != 0 ||
		    preempt_has_uid(ask->preferred, ask->preferred_count, uid) ||
		    preempt_has_uid(ask->in_flight, ask->in_flight_count, uid) ||
		    preempt_has_uid(ask->exchanged, ask->exchanged_count, uid))
			continue;
		quota_book_add(r->book, r->namespace, kube_pod_requests(pod));
		r->terminating[i].counted = true;
	}
	read_again(r);
}

/* --- life */

void preempt_run_init(struct preempt_run *r, const struct preempt *x, struct place *p,
		      struct quota_book *b, const struct preempt_options *o,
		      const struct preempt_ask *ask)
{
	*r = (struct preempt_run){.index = x,
				  .place = p,
				  .book = b,
				  .options = o,
				  .ask = ask,
				  .record = ask->pod,
				  .namespace = ask->pod->object.namespace,
				  .requests = kube_pod_requests(ask->pod),
				  .priority = ask->pod->template->priority,
				  .effort = o->effort};
	assert(b->options.variant == o->variant);
	r->pod = find_self(r);
	r->mark = place_fork(p);
	r->has_quota = quota_book_entry(b, r->namespace) != NULL;
	put_question(r);
	read_claims(r);
	r->rule = rule_of(r);
	r->quotas = mem_zalloc((size_t)x->space_count + 1, sizeof(*r->quotas));
	for (uint32_t s = 0; s < x->space_count; s++)
		read_quota(r, s);
	r->budget_left = mem_zalloc((size_t)x->budget_count + 1, sizeof(*r->budget_left));
	r->budget_most = mem_zalloc((size_t)x->budget_count + 1, sizeof(*r->budget_most));
	for (uint32_t i = 0; i < x->budget_count; i++)
		r->budget_most[i] = INT32_MIN;
	r->nodes = mem_zalloc(x->view->node_count + 1, sizeof(*r->nodes));
	for (place_node n = 0; n < x->view->node_count; n++) {
		r->nodes[n].name = x->view->nodes[n]->name;
		r->nodes[n].pods = x->first[n + 1] - x->first[n];
	}
	r->nominees_on = mem_zalloc(x->view->node_count + 1, sizeof(*r->nominees_on));
	r->nominees = mem_zalloc((size_t)x->nominee_count + 1, sizeof(*r->nominees));
	if (o->variant == QUOTA_CORRECTED)
		r->gangs = gangs_new(x->view, preempt_run_is_terminating, r);
	seat_nominees(r);
}

void preempt_run_fini(struct preempt_run *r)
{
	for (uint32_t i = 0; i < r->candidate_count; i++)
		assert(!r->candidates[i].taken);
	place_revert(r->place, r->mark);
	for (uint32_t i = 0; i < r->terminating_count; i++) {
		const struct kube_pod *pod = r->index->pods[r->terminating[i].pod].pod;

		if (!r->terminating[i].counted)
			quota_book_add(r->book, pod->object.namespace, kube_pod_requests(pod));
	}
	preempt_victims_forget(r);
	quota_claims_fini(&r->claims);
	free(r->candidates);
	free(r->matches);
	free(r->quotas);
	free(r->due);
	free(r->budget_left);
	free(r->budget_most);
	free(r->nodes);
	free(r->terminating);
	free(r->nominated);
	free(r->nominees_on);
	free(r->nominees);
	gangs_free(r->gangs);
}

/* --- questions */

bool preempt_run_quotas_allow(const struct preempt_run *r)
{
	const struct quota_entry *e = quota_book_entry(r->book, r->namespace);
	struct quota_excess excess;

	if (!e || r->rule == PREEMPT_CRITICAL)
		return true;
	return !quota_find_excess(r->book, e, QUOTA_MAX, &r->claims, &excess) &&
	       !quota_find_excess(r->book, e, QUOTA_SUM_OF_MIN, &r->claims, &excess);
}

enum place_filter preempt_run_fits(struct preempt_run *r, place_node n)
{
	enum place_filter f = place_check(r->place, r->pod, n);
	place_mark m;

	if (f != PLACE_FITS || !r->nominees_on[n])
		return f;
	m = place_fork(r->place);
	for (uint32_t i = 0; i < r->index->nominee_count; i++)
		if (r->nominees[i] != PLACE_NONE && r->index->nominees[i].node == n)
			place_take(r->place, r->nominees[i]);
	f = place_check(r->place, r->pod, n);
	place_revert(r->place, m);
	return f;
}

/* --- taking and putting back */

void preempt_run_take(struct preempt_run *r, struct preempt_victim_candidate *p)
{
	const struct preempt_pod *pod = preempt_run_pod(r, p);
	struct preempt_quota *quota = &r->quotas[pod->space];

	assert(!p->taken);
	p->taken = true;
	r->effort -= r->effort > 0;
	place_take(r->place, p->handle);
	quota_book_subtract(r->book, pod->pod->object.namespace, kube_pod_requests(pod->pod));
	if (quota->entry && quota->entry == r->book->fallback)
		quota->entry = quota_book_entry(r->book, pod->pod->object.namespace);
	quota->evictions -= quota->bounded && !p->preferred;
	preempt_run_count(r, p, r->budget_left, -1);
}

void preempt_run_put(struct preempt_run *r, struct preempt_victim_candidate *p)
{
	const struct preempt_pod *pod = preempt_run_pod(r, p);
	struct preempt_quota *quota = &r->quotas[pod->space];

	assert(p->taken);
	p->taken = false;
	place_put(r->place, p->handle, pod->node);
	quota_book_add(r->book, pod->pod->object.namespace, kube_pod_requests(pod->pod));
	quota->evictions += quota->bounded && !p->preferred;
	preempt_run_count(r, p, r->budget_left, 1);
}

/* --- budgets */

/* Evicting an unready pod is not counted by the API server if enough other pods are healthy. */
static bool counts_for(const struct preempt_run *r, const struct preempt_budget *b,
		       const struct kube_pod *pod)
{
	const struct kube_pdb *pdb = b->pdb;

	if (!pdb->selector || !selector_matches(pdb->selector, &pod->template->labels) ||
	    preempt_is_disrupted(b, pod))
		return false;
	if (r->options->variant == QUOTA_UPSTREAM)
		return pod->template->labels.count && !selector_is_empty(pdb->selector);
	return pod->ready || pdb->desired_healthy <= 0 ||
	       pdb->current_healthy < pdb->desired_healthy;
}

/*
 * The status lags: it lacks victims of recent answers and pods whose deletion began since. So the
 * allowed disruptions shrink by the former, and the desired number of pods stays healthy.
 */
static void read_budget(struct preempt_run *r, uint32_t budget, const struct preempt_space *space)
{
	const struct preempt_budget *b = &r->index->budgets[budget];
	int32_t left = b->pdb->disruptions_allowed, healthy = 0;
	bool corrected = r->options->variant == QUOTA_CORRECTED;

	for (uint32_t i = corrected ? space->first_pod : UINT32_MAX; i != UINT32_MAX;
	     i = r->index->pods[i].next_of_space) {
		const struct kube_pod *pod = r->index->pods[i].pod;

		if (!pod->ready || pod->deletion_ns || preempt_is_disrupted(b, pod) ||
		    !selector_matches(b->pdb->selector, &pod->template->labels))
			continue;
		if (preempt_has_uid(r->ask->in_flight, r->ask->in_flight_count, pod->object.uid))
			left--;
		else
			healthy++;
	}
	if (corrected && b->pdb->desired_healthy > 0 && left > healthy - b->pdb->desired_healthy)
		left = healthy - b->pdb->desired_healthy;
	r->budget_left[budget] = r->budget_most[budget] = left;
}

void preempt_run_match(struct preempt_run *r, struct preempt_victim_candidate *p)
{
	const struct preempt_pod *pod = preempt_run_pod(r, p);
	const struct preempt_space *space = &r->index->spaces[pod->space];

	p->first_match = r->match_count;
	for (uint32_t i = 0; i < space->budget_count; i++) {
		uint32_t budget = space->first_budget + i;

		if (!counts_for(r, &r->index->budgets[budget], pod->pod))
			continue;
		ARRAY_ADD(r->matches, r->match_count) = budget;
		if (r->budget_most[budget] == INT32_MIN)
			read_budget(r, budget, space);
	}
	p->match_count = r->match_count - p->first_match;
	p->over_budget = preempt_run_exceeds(r, p, r->budget_left);
}

bool preempt_run_exceeds(const struct preempt_run *r, const struct preempt_victim_candidate *p,
			 const int32_t *left)
{
	bool over = r->options->variant == QUOTA_CORRECTED && p->match_count > 1;

	for (uint32_t i = 0; i < p->match_count; i++)
		over |= left[r->matches[p->first_match + i]] <= 0;
	return over;
}

void preempt_run_count(const struct preempt_run *r, const struct preempt_victim_candidate *p,
		       int32_t *left, int32_t by)
{
	for (uint32_t i = 0; i < p->match_count; i++)
		left[r->matches[p->first_match + i]] += by;
}

bool preempt_run_may_break(const struct preempt_run *r)
{
	return r->options->variant == QUOTA_CORRECTED && !r->options->pdb_hard && !r->soft &&
	       (r->match_count || r->refused[PREEMPT_PDB]);
}
