/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The narration of a search for victims: the pod, the rule, candidates and refusals, and what
 * would help if no set was found.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/quota/preempt_internal.h"
#include "shared/units.h"

#define NS_PER_SECOND 1e9

const char *preempt_verdict_name(enum preempt_verdict v)
{
	static const char *const names[PREEMPT_VERDICTS] = {
		[PREEMPT_NOT_NEEDED] = "notNeeded", [PREEMPT_WAIT] = "wait",
		[PREEMPT_VICTIMS] = "victims",	    [PREEMPT_IMPOSSIBLE] = "impossible",
		[PREEMPT_NEVER] = "never",
	};

	return names[v];
}

/* PREEMPT_ISOLATED has two meanings: see text_of() and advice_of(). */
static const struct {
	const char *name, *text, *advice;
} refusals[PREEMPT_REFUSALS] = {
	[PREEMPT_ELIGIBLE] = {"mayPay", "that may be victims", NULL},
	[PREEMPT_TERMINATING] = {"going", "going already", NULL},
	[PREEMPT_STATIC] = {"static", "static", NULL},
	[PREEMPT_ISOLATED] = {"isolated", "without a quota",
			      "one for their namespaces would make them count"},
	[PREEMPT_OTHER_QUOTA] = {"otherQuota", "of other namespaces",
				 "a higher min of its quota would let it take what those borrow"},
	[PREEMPT_OWN_QUOTA] = {"ownQuota", "of its own quota",
			       "deleting some would free what it needs"},
	[PREEMPT_WITHIN_MIN] =
		{"withinMin", "of quotas within their min",
		 "they have what is guaranteed to them; a lower min would free some"},
	[PREEMPT_BELOW_MIN] = {"belowMin", "whose quota would be below its min",
			       "a lower min, or smaller pods there, would free some"},
	[PREEMPT_PRIORITY] = {"priority", "without a lower priority",
			      "a higher one of the pod would free some"},
	[PREEMPT_MIN_RUNTIME] = {"minRuntime", "short of the min runtime of its quota", NULL},
	[PREEMPT_MAX_EVICTIONS] = {"maxEvictions", "of quotas that had their evictions", NULL},
	[PREEMPT_PDB] = {"disruptionBudget", "kept by PodDisruptionBudgets",
			 "more replicas, or looser budgets, would free some"},
	[PREEMPT_GROUP] = {"podGroup",
			   "of groups that would fall below their minimum with pods that stay",
			   "more pods in their groups than the minimum would free some"},
};

const char *preempt_refusal_name(enum preempt_refusal r)
{
	return refusals[r].name;
}

const char *preempt_outcome_name(enum preempt_outcome o)
{
	static const char *const names[PREEMPT_OUTCOMES] = {
		[PREEMPT_NODE_NOT_ASKED] = "notAsked", [PREEMPT_NODE_SUFFICES] = "suffices",
		[PREEMPT_NODE_NO_VICTIM] = "noVictim", [PREEMPT_NODE_NO_ROOM] = "noRoom",
		[PREEMPT_NODE_QUOTA] = "quota",	       [PREEMPT_NODE_GUARDED] = "guarded",
		[PREEMPT_NODE_ERROR] = "error",
	};

	return names[o];
}

/* --- amounts */

static struct quota_text amount_text(const struct quota_row *row, quota_amount amount)
{
	return quota_amount_text(row->name, int_clamp(amount));
}

/* "cpu 1.0, memory 2Gi" */
static void add_requests(struct buf *out, const struct resources *r)
{
	const char *name, *comma = "";
	int64_t amount;

	for (size_t at = 0; resources_next(r, &at, &name, &amount);) {
		if (amount <= 0)
			continue;
		buf_printf(out, "%s%s %s", comma, name, quota_amount_text(name, amount).text);
		comma = ", ";
	}
	if (!*comma)
		buf_add_str(out, "nothing");
}

/* --- the question */

/* The first resource with more usage than guarantees. */
static void tell_forgiven(const struct preempt_run *r, struct buf *out)
{
	for (size_t i = 0; i < r->claims.count; i++) {
		const struct quota_claim *c = &r->claims.of[i];
		const struct quota_row *sum = quota_rows_find(&r->book->sum, c->name);

		if (c->asked <= 0 || !sum || sum->min <= 0 || sum->used <= sum->min)
			continue;
		buf_printf(out,
			   "%s: all quotas together use %s more than their min without it: that is "
			   "not its to give back, and it starts as soon as it has a node "
			   "nominated.\n",
			   c->name, amount_text(sum, sum->used - sum->min).text);
		return;
	}
}

void preempt_tell_rule(const struct preempt_run *r, struct buf *out)
{
	switch (r->rule) {
	case PREEMPT_BORROWED:
		buf_printf(out,
			   "Quota %s stays within its min with it: quotas over their min may have "
			   "to pay.\n",
			   r->namespace);
		if (r->options->variant == QUOTA_CORRECTED)
			tell_forgiven(r, out);
		break;
	case PREEMPT_OWN:
		buf_printf(out,
			   "Quota %s would borrow for it: only pods of its own namespace "
			   "with a priority below %d may have to pay.\n",
			   r->namespace, r->priority);
		break;
	case PREEMPT_FREE:
		buf_printf(out,
			   "Namespace %s has no quota: only pods of such namespaces with a "
			   "priority below %d may have to pay.\n",
			   r->namespace, r->priority);
		break;
	case PREEMPT_CRITICAL:
		buf_printf(out,
			   "Priority %d is critical: any pod with a lower one may have to pay, as "
			   "long as its quota keeps its min.\n",
			   r->priority);
		break;
	}
}

void preempt_tell_ask(const struct preempt_run *r, const struct quota_verdict *admission,
		      struct buf *out)
{
	buf_printf(out, "Pod %s/%s with priority %d asks for ", r->namespace,
		   r->record->object.name, r->priority);
	add_requests(out, r->requests);
	buf_add_str(out, ".\n");
	buf_printf(out, "Quotas %s it: %s.\n", admission->admitted ? "admit" : "refuse",
		   admission->error.text);
}

static const char *text_of(const struct preempt_run *r, int why)
{
	return why == PREEMPT_ISOLATED && !r->has_quota ? "with a quota" : refusals[why].text;
}

void preempt_tell_candidates(const struct preempt_run *r, struct buf *out)
{
	const char *separator = "; not: ";
	uint32_t all = 0;

	for (int i = 0; i < PREEMPT_REFUSALS; i++)
		all += r->refused[i];
	buf_printf(out, "Of %u bound pod%s %u may be victims", all, units_plural(all),
		   r->refused[PREEMPT_ELIGIBLE]);
	for (int i = PREEMPT_ELIGIBLE + 1; i < PREEMPT_REFUSALS; i++) {
		if (!r->refused[i])
			continue;
		buf_printf(out, "%s%u %s", separator, r->refused[i], text_of(r, i));
		separator = ", ";
	}
	buf_add_str(out, ".\n");
}

/* --- a victim */

static void tell_use(const struct preempt_run *r, const struct preempt_victim_candidate *p,
		     struct buf *out)
{
	char share[UNITS_LEN], age[UNITS_LEN];
	const struct kube_pod *pod = preempt_run_pod(r, p)->pod;

	if (!isnan(p->share)) {
		units_percent(p->share, share);
		buf_printf(out, ", uses %s of its CPU request", share);
	}
	if (pod->started_ns && pod->started_ns <= r->ask->now_ns) {
		units_age((double)(r->ask->now_ns - pod->started_ns) / NS_PER_SECOND, age);
		buf_printf(out, ", runs for %s", age);
	}
}

static void tell_amount(const struct quota_row *row, int64_t amount, const char *comma,
			struct buf *out)
{
	buf_printf(out, "%s%s from %s to %s", comma, row->name, amount_text(row, row->used).text,
		   amount_text(row, row->used - amount).text);
	if (!row->in_min && row->in_max)
		return;
	if (row->min < row->named)
		buf_printf(out, " (guaranteed %s of min %s)", amount_text(row, row->min).text,
			   amount_text(row, row->named).text);
	else
		buf_printf(out, " (min %s)", amount_text(row, row->min).text);
}

/* Whether the quota names the resource, or some quota guarantees it. */
static bool is_told(const struct preempt_run *r, const struct quota_row *row)
{
	return quota_names_row(row) ||
	       (row && quota_is_guaranteed(quota_rows_find(&r->book->sum, row->name)));
}

static void tell_quota(const struct preempt_run *r, const struct preempt_pod *pod, struct buf *out)
{
	const struct quota_entry *e = r->quotas[pod->space].entry;
	const char *name, *comma = ": its quota goes ";
	int64_t amount;

	if (!e)
		return;
	for (size_t at = 0; resources_next(kube_pod_requests(pod->pod), &at, &name, &amount);) {
		const struct quota_row *row = quota_rows_find(&e->rows, name);

		if (amount <= 0 || !is_told(r, row))
			continue;
		tell_amount(row, amount, comma, out);
		comma = ", ";
	}
	if (is_told(r, &e->rows.of[RESOURCE_PODS]) &&
	    !resources_has(kube_pod_requests(pod->pod), RESOURCE_PODS))
		tell_amount(&e->rows.of[RESOURCE_PODS], 1, comma, out);
}

char *preempt_tell_victim(const struct preempt_run *r, const struct preempt_victim_candidate *p,
			  bool violates)
{
	const struct preempt_pod *pod = preempt_run_pod(r, p);
	const struct gang *gang = gangs_fallen(r->gangs, pod->pod);
	struct buf b = BUF_INIT;

	buf_printf(&b, "%s/%s on %s (", pod->pod->object.namespace, pod->pod->object.name,
		   r->nodes[pod->node].name);
	add_requests(&b, kube_pod_requests(pod->pod));
	buf_printf(&b, "; priority %d", pod->pod->template->priority);
	tell_use(r, p, &b);
	buf_add_char(&b, ')');
	tell_quota(r, pod, &b);
	if (violates)
		buf_add_str(&b, "; breaks a PodDisruptionBudget");
	if (gang) {
		buf_add_str(&b, "; falls with its group: ");
		gang_tell(gang, gang->min - 1, &b);
	}
	return buf_take(&b, NULL);
}

/* --- what would help */

/* The filter that refuses the node without all its candidates; PLACE_FITS: none. */
static enum place_filter filter_of(const struct preempt_run *r, place_node n)
{
	if (r->nodes[n].outcome == PREEMPT_NODE_NO_ROOM)
		return r->nodes[n].filter;
	if (r->nodes[n].outcome == PREEMPT_NODE_NO_VICTIM)
		return place_check(r->place, r->pod, n);
	return PLACE_FITS;
}

/* with: nodes that have candidates; else the others. */
static void tell_filters(const struct preempt_run *r, bool with, struct buf *out)
{
	uint32_t of[PLACE_FILTERS] = {0}, all = 0;
	const char *separator = ": ";

	for (place_node n = 0; n < r->index->view->node_count; n++) {
		enum place_filter f = PLACE_FITS;

		if (preempt_run_allows(r, n) && (r->nodes[n].eligible > 0) == with)
			f = filter_of(r, n);
		of[f]++;
		all += f != PLACE_FITS;
	}
	if (!all)
		return;
	buf_printf(out, "%u node%s ", all, units_plural(all));
	if (with)
		buf_printf(out, "would refuse it even without all of %s pods that may go",
			   all == 1 ? "its" : "their");
	else
		buf_printf(out, "%s it, and none of %s pods may go",
			   all == 1 ? "refuses" : "refuse", all == 1 ? "its" : "their");
	for (int f = PLACE_FITS + 1; f < PLACE_FILTERS; f++) {
		if (!of[f])
			continue;
		buf_printf(out, "%s%s %u", separator, place_filter_name((enum place_filter)f),
			   of[f]);
		separator = ", ";
	}
	buf_add_str(out, ".\n");
}

/* Nodes where each candidate may go, but not all that are needed. */
static void tell_guarded(const struct preempt_run *r, struct buf *out)
{
	uint32_t guarded = 0;

	for (place_node n = 0; n < r->index->view->node_count; n++)
		guarded += r->nodes[n].outcome == PREEMPT_NODE_GUARDED;
	if (guarded)
		buf_printf(out,
			   "%u node%s would do without all of %s pods that may go, but together "
			   "they must not: a min, a PodDisruptionBudget or a window of evictions "
			   "keeps some.\n",
			   guarded, units_plural(guarded), guarded == 1 ? "its" : "their");
}

static void tell_retry(const struct preempt_run *r, struct buf *out)
{
	char wait[UNITS_LEN];

	if (!r->retry_ns)
		return;
	units_age((double)(r->retry_ns - r->ask->now_ns) / NS_PER_SECOND, wait);
	buf_printf(out, "In %s the first of those that a min runtime or a window keeps may go.\n",
		   wait);
}

static const char *advice_of(const struct preempt_run *r, int why)
{
	return why == PREEMPT_ISOLATED && !r->has_quota
		       ? "one for its namespace would let it take what is borrowed"
		       : refusals[why].advice;
}

/* The pod requests more than any empty node has. */
static bool tell_too_large(const struct preempt_run *r, struct buf *out)
{
	for (place_node n = 0; n < r->index->view->node_count; n++)
		if (preempt_run_allows(r, n) && place_could_hold(r->place, r->pod, n))
			return false;
	buf_add_str(out, "It asks for more than any node has, were it empty: add a larger node, or "
			 "ask for less.\n");
	return true;
}

void preempt_tell_unblock(struct preempt_run *r, const struct quota_verdict *admission,
			  struct buf *out)
{
	if (tell_too_large(r, out))
		return;
	if (!admission->admitted)
		buf_printf(out, "Without victims: %s.\n", admission->error.text);
	tell_filters(r, true, out);
	tell_filters(r, false, out);
	tell_guarded(r, out);
	for (int i = 0; i < PREEMPT_REFUSALS; i++) {
		const char *advice = advice_of(r, i);

		if (advice && r->refused[i])
			buf_printf(out, "%u pod%s %s: %s.\n", r->refused[i],
				   units_plural(r->refused[i]), text_of(r, i), advice);
	}
	tell_retry(r, out);
	if (r->cut)
		buf_add_str(out, "Not every set of victims was tried.\n");
}

/* --- what could be reclaimed */

static const char *quota_of(const struct preempt_candidate *c, size_t i)
{
	return c->victims[i].pod->object.namespace;
}

/* Whether it is the first victim of its namespace; *count: the victims of it. */
static bool is_first(const struct preempt_candidate *c, size_t at, uint32_t *count)
{
	*count = 0;
	for (size_t i = 0; i < c->victim_count; i++) {
		if (strcmp(quota_of(c, i), quota_of(c, at)) != 0)
			continue;
		if (i < at)
			return false;
		++*count;
	}
	return true;
}

void preempt_tell_reclaim(const struct preempt_plan *plan, const char *namespace, struct buf *out)
{
	const struct preempt_candidate *c = &plan->chosen;
	const char *separator = "";
	uint32_t count;

	buf_printf(out, "quota %s is within its min: ", namespace);
	for (size_t i = 0; i < c->victim_count; i++) {
		if (!is_first(c, i, &count))
			continue;
		buf_printf(out, "%s%u pod%s of %s", separator, count, units_plural(count),
			   quota_of(c, i));
		separator = ", ";
	}
	buf_add_str(out, " could give way; see evenkeel quota preempt");
}
