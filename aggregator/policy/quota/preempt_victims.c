/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The candidates of the corrected variant and their order. Facts about a pod alone are checked once,
 * when candidates are collected. Facts that depend on other victims (min, windows, budgets) are checked
 * again each time a candidate is taken. Pods only leave during a search, so a refusal stays valid.
 *
 * Contested are the resources that the pod lacks, on its destination or under the sum of min. A
 * borrower of them gives back until it is at its min of all of them. Other resources do not protect a
 * pod, and its namespace keeps its guarantee of them.
 *
 *     rule        other namespaces                                       own namespace
 *     BORROWED    with a quota that uses more than its min of a          none: its pods do not borrow
 *                 contested resource; any priority below critical        what the pod needs
 *     OWN         none                                                   lower priority
 *     FREE        without a quota: lower priority                        lower priority
 *     CRITICAL    lower priority                                         lower priority
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/quota/preempt_internal.h"
#include "shared/array.h"
#include "shared/mem.h"

/* --- what is contested */

/* Claims from the 64th on share one bit. */
static uint64_t bit_of(size_t claim)
{
	return 1ULL << (claim < 63 ? claim : 63);
}

static bool is_at_stake(const struct preempt_run *r, size_t claim)
{
	const struct quota_claim *c = &r->claims.of[claim];

	return c->asked > 0 && quota_is_guaranteed(quota_rows_find(&r->book->sum, c->name));
}

/* Thousands of nodes have few distinct values. */
static void add_contest(struct preempt_run *r, uint64_t value)
{
	for (uint32_t i = 0; i < r->contest_count; i++)
		if (r->contests[i] == value)
			return;
	ARRAY_ADD(r->contests, r->contest_count) = value;
	r->contested_anywhere |= value;
}

/* If the pod lacks no resource, a rule about neighbours refuses it: all are contested. */
static void find_contested(struct preempt_run *r)
{
	size_t nodes = r->index->view->node_count;
	uint64_t all = 0, by_quotas = 0;

	r->contested = mem_zalloc(nodes + 1, sizeof(*r->contested));
	for (size_t i = 0; i < r->claims.count; i++) {
		const struct quota_claim *c = &r->claims.of[i];
		const struct quota_row *sum = quota_rows_find(&r->book->sum, c->name);

		if (!is_at_stake(r, i))
			continue;
		all |= bit_of(i);
		if (sum->used + c->total > (sum->min > c->floor ? sum->min : c->floor))
			by_quotas |= bit_of(i);
		for (place_node n = 0; n < nodes; n++)
			if (place_lacks(r->place, r->pod, n, r->claims.of[i].name))
				r->contested[n] |= bit_of(i);
	}
	for (place_node n = 0; n < nodes; n++) {
		r->contested[n] |= by_quotas;
		r->contested[n] = r->contested[n] ? r->contested[n] : all;
		if (preempt_run_allows(r, n))
			add_contest(r, r->contested[n]);
	}
	r->contested_by_quotas = by_quotas ? by_quotas : all;
	add_contest(r, r->contested_by_quotas);
}

/*
 * Whether the pod uses a contested resource, and its quota keeps its min of each such resource
 * without the pod. taken: the book is without the pod.
 */
static bool may_free(const struct preempt_run *r, const struct preempt_pod *p, uint64_t contested,
		     bool taken)
{
	const struct quota_entry *e = r->quotas[p->space].entry;
	bool any = false;

	for (size_t i = 0; i < r->claims.count; i++) {
		const struct quota_claim *c = &r->claims.of[i];
		const struct quota_row *row;
		int64_t share;

		if (!(contested & bit_of(i)) || !is_at_stake(r, i))
			continue;
		share = quota_amount_of_pod(kube_pod_requests(p->pod), c->name);
		row = quota_rows_find(&e->rows, c->name);
		if (share <= 0)
			continue;
		if (!row || row->used - (taken ? 0 : share) < row->min)
			return false;
		any = true;
	}
	return any;
}

/* Whether may_free() holds for some destination. */
static bool may_free_somewhere(const struct preempt_run *r, const struct preempt_pod *p)
{
	for (uint32_t i = 0; i < r->contest_count; i++)
		if (may_free(r, p, r->contests[i], false))
			return true;
	return false;
}

/* --- min */

/* Whether the quota would be below any guarantee. In the own namespace no other quota gains. */
static bool goes_below_min(const struct preempt_run *r, const struct preempt_pod *p)
{
	const struct preempt_quota *quota = &r->quotas[p->space];

	if (!quota->entry || quota->own)
		return false;
	for (size_t i = 0; i < quota->entry->rows.count; i++) {
		const struct quota_row *row = &quota->entry->rows.of[i];
		int64_t share =
			row->in_min ? quota_amount_of_pod(kube_pod_requests(p->pod), row->name) : 0;

		if (share > 0 && row->used - share < row->min)
			return true;
	}
	return false;
}

/* Whether its quota uses more than its min of a resource at stake that the pod requests. */
static bool is_borrower(const struct preempt_run *r, const struct preempt_pod *p)
{
	const struct quota_entry *e = r->quotas[p->space].entry;

	for (size_t i = 0; i < r->claims.count; i++) {
		const struct quota_row *row = quota_rows_find(&e->rows, r->claims.of[i].name);

		if (is_at_stake(r, i) &&
		    quota_amount_of_pod(kube_pod_requests(p->pod), r->claims.of[i].name) > 0 &&
		    row && row->used > row->min)
			return true;
	}
	return false;
}

bool preempt_victims_contest(const struct preempt_run *r, size_t claim)
{
	return r->contested_anywhere & bit_of(claim) && is_at_stake(r, claim);
}

/* --- one pod */

static enum preempt_refusal by_quota(const struct preempt_run *r, const struct preempt_pod *p)
{
	const struct preempt_quota *quota = &r->quotas[p->space];

	switch (r->rule) {
	case PREEMPT_FREE:
		return quota->entry ? PREEMPT_ISOLATED : PREEMPT_ELIGIBLE;
	case PREEMPT_OWN:
		return quota->own ? PREEMPT_ELIGIBLE : PREEMPT_OTHER_QUOTA;
	case PREEMPT_BORROWED:
		if (quota->own)
			return PREEMPT_OWN_QUOTA;
		if (!quota->entry)
			return PREEMPT_ISOLATED;
		return is_borrower(r, p) ? PREEMPT_ELIGIBLE : PREEMPT_WITHIN_MIN;
	case PREEMPT_CRITICAL:
		break;
	}
	return PREEMPT_ELIGIBLE;
}

static void earlier(int64_t *ns, int64_t at_ns)
{
	if (at_ns && (!*ns || at_ns < *ns))
		*ns = at_ns;
}

int64_t preempt_victims_next_ns(const struct preempt_run *r)
{
	int64_t next = r->retry_ns;

	earlier(&next, r->more_ns);
	return next;
}

static enum preempt_refusal by_time(struct preempt_run *r, const struct preempt_pod *p)
{
	const struct preempt_quota *quota = &r->quotas[p->space];
	int64_t started = p->pod->started_ns ? p->pod->started_ns : r->ask->now_ns;
	int64_t min_runtime;

	if (!quota->entry)
		return PREEMPT_ELIGIBLE;
	min_runtime = quota->entry->quota.min_runtime_ns;
	if (r->ask->now_ns - started < min_runtime) {
		earlier(&r->retry_ns, started + min_runtime);
		return PREEMPT_MIN_RUNTIME;
	}
	if (quota->bounded && !quota->evictions &&
	    !preempt_has_uid(r->ask->preferred, r->ask->preferred_count, p->pod->object.uid)) {
		earlier(&r->retry_ns, quota->window_ends_ns);
		return PREEMPT_MAX_EVICTIONS;
	}
	earlier(&r->more_ns, quota->window_ends_ns);
	return PREEMPT_ELIGIBLE;
}

static enum preempt_refusal judge(struct preempt_run *r, const struct preempt_pod *p)
{
	int32_t priority = p->pod->template->priority;
	enum preempt_refusal why;

	if (preempt_run_is_terminating(r, p->pod))
		return PREEMPT_TERMINATING;
	if (p->pod->template->mirror)
		return PREEMPT_STATIC;
	why = by_quota(r, p);
	if (why)
		return why;
	/* Priorities do not matter among borrowers, but critical pods are protected. */
	if (priority >= r->priority &&
	    (r->rule != PREEMPT_BORROWED || priority >= r->options->critical_priority))
		return PREEMPT_PRIORITY;
	if (r->rule == PREEMPT_BORROWED ? !may_free_somewhere(r, p) : goes_below_min(r, p))
		return PREEMPT_BELOW_MIN;
	return by_time(r, p);
}

/* --- their order */

static void measure(const struct preempt_run *r, struct preempt_victim_candidate *p)
{
	const struct preempt_pod *pod = preempt_run_pod(r, p);
	int64_t requested = kube_pod_requests(pod->pod)->of[RESOURCE_CPU];

	p->share = NAN;
	p->use = PREEMPT_UNKNOWN;
	for (int w = WINDOW_15M; pod->use && requested > 0 && w >= WINDOW_5M; w--) {
		const struct pod_window_stats *cpu = &pod->use->usage.cpu_milli[w];

		if (!cpu->samples)
			continue;
		p->share = (double)cpu->mean / (double)requested;
		break;
	}
	if (r->rule == PREEMPT_BORROWED && !isnan(p->share))
		p->use = p->share < r->options->idle_share ? PREEMPT_IDLE : PREEMPT_BUSY;
}

static void weigh(const struct preempt_run *r, struct preempt_victim_candidate *p)
{
	const struct kube_pod *pod = preempt_run_pod(r, p)->pod;
	const char *name;
	int64_t amount;

	p->waste = 0;
	for (size_t at = 0; resources_next(r->requests, &at, &name, &amount);) {
		int64_t freed = quota_amount_of_pod(kube_pod_requests(pod), name);

		if (amount > 0 && freed > amount)
			p->waste += (double)(freed - amount) / (double)amount;
	}
}

/* The first sort keys lie beside the candidate, since the pods lie all over the memory. */
struct ranked {
	int32_t priority;
	int64_t started_ns;
	struct preempt_victim_candidate candidate;
};

static int by_rank(const void *left, const void *right, void *run)
{
	const struct ranked *l = left, *k = right;
	const struct preempt_victim_candidate *a = &l->candidate, *b = &k->candidate;

	return COMPARE(a->over_budget, b->over_budget)
		?: COMPARE(b->preferred, a->preferred)
		?: COMPARE(a->loss, b->loss)
		?: COMPARE(b->over_share, a->over_share)
		?: COMPARE(l->priority, k->priority)
		?: COMPARE(a->use, b->use)
		?: COMPARE(a->fall, b->fall)
		?: COMPARE(k->started_ns, l->started_ns)
		?: COMPARE(a->waste, b->waste)
		?: object_compare(&preempt_run_pod(run, a)->pod->object,
				  &preempt_run_pod(run, b)->pod->object);
}

static void sort(struct preempt_run *r)
{
	struct ranked *all = mem_zalloc((size_t)r->candidate_count + 1, sizeof(*all));

	for (uint32_t i = 0; i < r->candidate_count; i++) {
		const struct kube_pod *pod = preempt_pod_of(r, i)->pod;

		all[i] = (struct ranked){pod->template->priority, preempt_started(pod),
					 r->candidates[i]};
	}
	qsort_r(all, r->candidate_count, sizeof(*all), by_rank, r);
	if (r->rule == PREEMPT_BORROWED) {
		double *due = r->due;
		size_t count = (size_t)r->index->space_count * r->claims.count;

		/* Each pod's excess depends on the pods of its quota before it. */
		r->due = mem_zalloc(count + 1, sizeof(*r->due));
		memcpy(r->due, due, count * sizeof(*due));
		for (uint32_t i = 0; i < r->candidate_count; i++)
			preempt_share_charge(r, &all[i].candidate);
		free(r->due);
		r->due = due;
		qsort_r(all, r->candidate_count, sizeof(*all), by_rank, r);
	}
	for (uint32_t i = 0; i < r->candidate_count; i++)
		r->candidates[i] = all[i].candidate;
	free(all);
}

/* The candidates of each node, in the order of rank. */
static void file_by_node(struct preempt_run *r)
{
	size_t nodes = r->index->view->node_count;
	uint32_t sum = 0;

	r->local = mem_zalloc((size_t)r->candidate_count + 1, sizeof(*r->local));
	r->local_first = mem_zalloc(nodes + 1, sizeof(*r->local_first));
	for (size_t n = 0; n < nodes; n++) {
		r->local_first[n] = sum;
		sum += r->nodes[n].eligible;
	}
	r->local_first[nodes] = sum;
	for (uint32_t i = 0; i < r->candidate_count; i++)
		r->local[r->local_first[preempt_pod_of(r, i)->node]++] = i;
	for (size_t n = nodes; n > 0; n--)
		r->local_first[n] = r->local_first[n - 1];
	r->local_first[0] = 0;
}

/* --- groups */

/* How many members would fall with it; 0 if the group has members to spare. */
static uint32_t count_fall(const struct preempt_run *r, const struct preempt_victim_candidate *p,
			   struct gang **gang)
{
	const struct kube_pod *pod = preempt_run_pod(r, p)->pod;

	if (!gangs_member(r->gangs, pod, gang) || gang_spare(*gang))
		return 0;
	return (*gang)->count - 1;
}

static bool has_all(const struct preempt_run *r, const struct gang *g)
{
	for (uint32_t i = 0; i < g->count; i++)
		if (g->members[i].number == UINT32_MAX ||
		    (r->one_node && strcmp(g->members[i].pod->node, g->members[0].pod->node) != 0))
			return false;
	return true;
}

static void number_members(struct preempt_run *r)
{
	for (size_t i = 0; i < r->gangs->member_count; i++)
		r->gangs->members[i].number = UINT32_MAX;
	for (uint32_t i = 0; i < r->candidate_count; i++) {
		struct gang *gang;
		struct gang_member *m = gangs_member(r->gangs, preempt_pod_of(r, i)->pod, &gang);

		if (m)
			m->number = i;
	}
}

/* A candidate whose group includes a protected pod is no candidate. */
static void refuse_groups(struct preempt_run *r)
{
	uint32_t kept = 0;

	number_members(r);
	for (uint32_t i = 0; i < r->candidate_count; i++) {
		struct preempt_victim_candidate *p = &r->candidates[i];
		struct gang *gang;

		p->fall = count_fall(r, p, &gang);
		if (!p->fall || has_all(r, gang)) {
			r->candidates[kept++] = *p;
			continue;
		}
		r->refused[PREEMPT_ELIGIBLE]--;
		r->refused[PREEMPT_GROUP]++;
		r->nodes[preempt_run_pod(r, p)->node].eligible--;
	}
	r->candidate_count = kept;
}

void preempt_victims_put(struct preempt_run *r, uint32_t candidate)
{
	preempt_run_put(r, &r->candidates[candidate]);
	gangs_release(r->gangs, &preempt_pod_of(r, candidate)->pod, 1);
}

bool preempt_victims_is_there(const struct preempt_run *r, struct preempt_victim_candidate *p)
{
	const struct preempt_pod *pod = preempt_run_pod(r, p);

	if (p->handle == PREEMPT_NOT_LOOKED_UP)
		p->handle =
			place_find_pod(r->place, pod->pod->object.namespace, pod->pod->object.name);
	return p->handle != PLACE_NONE && place_where(r->place, p->handle) == pod->node;
}

/* Whether it may be one more victim for these contested resources, in the present state. */
static bool may_take(const struct preempt_run *r, struct preempt_victim_candidate *p,
		     uint64_t contested)
{
	const struct preempt_pod *pod = preempt_run_pod(r, p);
	const struct preempt_quota *quota = &r->quotas[pod->space];

	if (quota->bounded && !quota->evictions && !p->preferred)
		return false;
	if (!r->soft && preempt_run_exceeds(r, p, r->budget_left))
		return false;
	if (r->rule == PREEMPT_BORROWED ? !may_free(r, pod, contested, false)
					: goes_below_min(r, pod))
		return false;
	return preempt_victims_is_there(r, p);
}

static bool may_fall(struct preempt_run *r, const struct kube_pod *pod, place_node with,
		     uint64_t contested, uint32_t *candidate)
{
	struct gang *gang;

	*candidate = gangs_member(r->gangs, pod, &gang)->number;
	if (*candidate == UINT32_MAX)
		return false;
	if (r->one_node && preempt_pod_of(r, *candidate)->node != with)
		return false;
	return may_take(r, &r->candidates[*candidate], contested);
}

bool preempt_victims_take(struct preempt_run *r, uint32_t candidate, uint64_t contested,
			  uint32_t **of, uint32_t *count)
{
	const struct preempt_pod *pod = preempt_pod_of(r, candidate);
	uint32_t before = *count, next = candidate;
	const struct kube_pod **leave;
	size_t all, i = 0;

	if (!may_take(r, &r->candidates[candidate], contested))
		return false;
	all = gangs_close(r->gangs, &pod->pod, 1, &leave);
	do {
		preempt_run_take(r, &r->candidates[next]);
		ARRAY_ADD(*of, *count) = next;
	} while (++i < all && may_fall(r, leave[i], pod->node, contested, &next));
	if (i < all) {
		while (*count > before)
			preempt_run_put(r, &r->candidates[(*of)[--*count]]);
		gangs_release(r->gangs, leave, all);
	}
	free(leave);
	return i == all;
}

/* --- all of them */

void preempt_victims_forget(struct preempt_run *r)
{
	free(r->local);
	free(r->local_first);
	free(r->contested);
	free(r->contests);
	r->contested = r->contests = NULL;
	r->local = r->local_first = NULL;
	r->candidate_count = r->match_count = r->contest_count = 0;
	r->contested_anywhere = 0;
	memset(r->refused, 0, sizeof(r->refused));
	for (size_t n = 0; n < r->index->view->node_count; n++)
		r->nodes[n].eligible = 0;
}

static void collect(struct preempt_run *r, uint32_t i)
{
	const struct preempt_pod *pod = &r->index->pods[i];
	struct preempt_victim_candidate p = {.pod = i, .handle = PREEMPT_NOT_LOOKED_UP};
	uint32_t at = (uint32_t)r->candidate_count;
	enum preempt_refusal why = judge(r, pod);

	if (!why) {
		preempt_run_match(r, &p);
		if (p.over_budget && !r->soft) {
			why = PREEMPT_PDB;
			r->match_count = p.first_match;
		}
	}
	r->refused[why]++;
	if (why)
		return;
	measure(r, &p);
	weigh(r, &p);
	p.preferred =
		preempt_has_uid(r->ask->preferred, r->ask->preferred_count, pod->pod->object.uid);
	ARRAY_ADD(r->candidates, r->candidate_count) = p;
	r->candidates[at].loss = preempt_loss(r, &at, 1);
	r->nodes[pod->node].eligible++;
}

void preempt_victims_collect(struct preempt_run *r)
{
	preempt_victims_forget(r);
	find_contested(r);
	preempt_share_read(r);
	for (uint32_t i = 0; i < r->index->pod_count; i++)
		collect(r, i);
	refuse_groups(r);
	sort(r);
	number_members(r);
	file_by_node(r);
}

bool preempt_victims_serve(const struct preempt_run *r, const uint32_t *set, uint32_t count,
			   place_node n)
{
	for (uint32_t i = 0; r->rule == PREEMPT_BORROWED && i < count; i++) {
		const struct preempt_victim_candidate *p = &r->candidates[set[i]];

		if (!may_free(r, preempt_run_pod(r, p), r->contested[n], p->taken))
			return false;
	}
	return true;
}
