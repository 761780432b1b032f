/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order among borrowers. The sum that all quotas borrow of a contested resource must shrink by the
 * requests of the pod. The rest is shared by evenkeel.io/weight, and no quota gets more than it borrows
 * now. The rest of what it borrows is its excess:
 *
 *     due_i        borrowed_i - share_i of (sum of borrowed - asked), in multiples of asked
 *     over_share   of a pod: the due of its quota, less what its pods before it in the order free; of
 *                  several resources the largest. The largest goes first
 *     beyond       of a set: how much each quota gives beyond its due
 *
 * With equal weights the quota that borrows the most gives until it borrows as much as the next.
 */
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/quota/preempt_internal.h"
#include "aggregator/policy/quota/quota_share.h"
#include "shared/mem.h"

static double *due_of(const struct preempt_run *r, uint32_t space)
{
	return r->due + (size_t)space * r->claims.count;
}

static int64_t borrowed_of(const struct quota_entry *e, const char *name)
{
	const struct quota_row *row = quota_rows_find(&e->rows, name);

	return row && row->used > row->min ? quota_clamp(row->used - row->min) : 0;
}

/* Spaces and quotas are both sorted by name. */
static void read_claim(struct preempt_run *r, size_t claim)
{
	const struct quota_claim *c = &r->claims.of[claim];
	const struct quota_book *b = r->book;
	struct quota_claimant *claimants = mem_zalloc(b->count + 1, sizeof(*claimants));
	quota_amount all = 0;
	uint32_t space = 0;

	for (size_t i = 0; i < b->count; i++) {
		claimants[i].weight = b->sorted[i]->quota.weight;
		claimants[i].need = borrowed_of(b->sorted[i], c->name);
		all += claimants[i].need;
	}
	quota_share_out(all > c->asked ? quota_clamp(all - c->asked) : 0, claimants, b->count);
	for (size_t i = 0; i < b->count; i++) {
		while (space < r->index->space_count && r->quotas[space].entry != b->sorted[i] &&
		       strcmp(r->index->spaces[space].name, b->sorted[i]->quota.namespace) < 0)
			space++;
		if (space < r->index->space_count && r->quotas[space].entry == b->sorted[i])
			due_of(r, space)[claim] =
				(double)(claimants[i].need - claimants[i].share) / (double)c->asked;
	}
	free(claimants);
}

void preempt_share_read(struct preempt_run *r)
{
	free(r->due);
	r->due = mem_zalloc((size_t)r->index->space_count * r->claims.count + 1, sizeof(*r->due));
	for (size_t i = 0; r->rule == PREEMPT_BORROWED && i < r->claims.count; i++)
		if (preempt_victims_contest(r, i))
			read_claim(r, i);
}

/* How much of the claim the pod frees; 0 if the claim is not contested. */
static double freed_by(const struct preempt_run *r, const struct preempt_pod *p, size_t claim)
{
	const struct quota_claim *c = &r->claims.of[claim];

	if (!preempt_victims_contest(r, claim))
		return 0;
	return (double)quota_amount_of_pod(kube_pod_requests(p->pod), c->name) / (double)c->asked;
}

void preempt_share_charge(struct preempt_run *r, struct preempt_victim_candidate *p)
{
	const struct preempt_pod *pod = preempt_run_pod(r, p);
	double *due = due_of(r, pod->space);
	bool any = false;

	p->over_share = 0;
	for (size_t i = 0; i < r->claims.count; i++) {
		double freed = freed_by(r, pod, i);

		if (freed > 0 && (!any || due[i] > p->over_share)) {
			p->over_share = due[i];
			any = true;
		}
		due[i] -= freed;
	}
}

/* The least of all contested resources, since the largest due decides the order. */
static double beyond_of_space(const struct preempt_run *r, const uint32_t *set, uint32_t count,
			      uint32_t space)
{
	double beyond = 0;
	bool any = false;

	for (size_t i = 0; i < r->claims.count; i++) {
		double freed = 0;

		for (uint32_t k = 0; k < count; k++) {
			const struct preempt_pod *p = preempt_run_pod(r, &r->candidates[set[k]]);

			freed += p->space == space ? freed_by(r, p, i) : 0;
		}
		if (freed > 0 && (!any || freed - due_of(r, space)[i] < beyond)) {
			beyond = freed - due_of(r, space)[i];
			any = true;
		}
	}
	return beyond > 0 ? beyond : 0;
}

double preempt_share_beyond(const struct preempt_run *r, const uint32_t *set, uint32_t count)
{
	double beyond = 0;

	for (uint32_t i = 0; r->rule == PREEMPT_BORROWED && i < count; i++)
		if (preempt_victims_is_first(r, set, i))
			beyond +=
				beyond_of_space(r, set, count,
						preempt_run_pod(r, &r->candidates[set[i]])->space);
	return beyond;
}
