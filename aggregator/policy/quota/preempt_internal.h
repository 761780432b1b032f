/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of preemption.
 *
 *   preempt_index.c     the pods of a view by node, budgets, nominations
 *   preempt_run.c       the state of one search: claims, pods counted beside the pod, taking pods and
 *                       putting them back
 *   preempt_victims.c   victim candidates and their order (corrected)
 *   preempt_search.c    sets of victims (corrected)
 *   preempt_upstream.c  upstream's search
 *   preempt_cost.c      the cost of a set: guarantees, weighted excess; the cheapest of several
 *   preempt_tell.c      the narration
 *   preempt.c           the plan; the extender's verb
 */
#pragma once

#include <cjson/cJSON.h>

#include "aggregator/policy/gangs.h"
#include "aggregator/policy/quota/preempt.h"
#include "aggregator/policy/quota/quota_internal.h"
#include "aggregator/state/view_cache.h"

/* --- preempt_index.c */

/* A bound, active pod. */
struct preempt_pod {
	const struct kube_pod *pod;
	const struct pod_stats *use; /* NULL: not measured */
	place_node node;
	uint32_t space;
	uint32_t next_of_space; /* UINT32_MAX: none */
};

/* A namespace that has pods, and the budgets in it. */
struct preempt_space {
	const char *name;
	uint32_t first_budget, budget_count;
	uint32_t first_pod; /* UINT32_MAX: none; see next_of_space */
};

struct preempt_budget {
	const struct kube_pdb *pdb;
	cJSON *disrupted; /* owned; evictions that the API server has granted; NULL: none */
};

struct preempt_nominee {
	const struct kube_pod *pod;
	place_node node; /* PLACE_NONE: the view has no such node */
};

struct preempt {
	struct view_cached cached; /* cached by preempt_of() */
	const struct view *view; /* the view that caches it */
	uint32_t pod_count, space_count, budget_count, nominee_count;
	struct preempt_pod *pods; /* by node, then as in the view: by namespace and name */
	uint32_t *first; /* by node: its first pod; one more at the end */
	struct preempt_space *spaces; /* sorted by name */
	struct preempt_budget *budgets; /* sorted by namespace */
	struct preempt_nominee *nominees; /* sorted by namespace and name */
};

/* Whether the API server has granted an eviction of the pod. */
bool preempt_is_disrupted(const struct preempt_budget *b, const struct kube_pod *pod);

/* --- preempt_run.c */

enum preempt_rule {
	PREEMPT_BORROWED, /* victims are borrowers of other namespaces */
	PREEMPT_OWN, /* victims are in the own namespace, by priority */
	PREEMPT_FREE, /* victims have no quota, by priority */
	PREEMPT_CRITICAL, /* victims are any pods, by priority */
};

#define PREEMPT_NOT_LOOKED_UP (PLACE_NONE - 1)

/* A pod that may be a victim. A taken pod is out of the simulation and of the book. */
struct preempt_victim_candidate {
	uint32_t pod; /* of the index */
	place_pod handle;
	uint32_t first_match, match_count; /* budgets that select it */
	bool over_budget; /* it exceeds a budget: alone; upstream: with more important ones */
	bool preferred; /* a victim of an earlier answer for the pod */
	bool taken;
	uint32_t fall; /* members of its group that fall with it */
	enum preempt_use use;
	double share; /* NaN: not known */
	double waste; /* what it frees beyond the requests of the pod, in multiples of them */
	double loss; /* what its quota loses of its guarantees without it, in mins */
	double over_share; /* how far its quota is over its weighted share (preempt_cost.c) */
};

/* A namespace's quota during one search. */
struct preempt_quota {
	const struct quota_entry *entry; /* NULL: no quota */
	bool own; /* it is the pod's namespace */
	uint32_t evictions; /* left in the window */
	bool bounded; /* there is a window */
	int64_t window_ends_ns; /* when the window allows one more; 0: never */
};

struct preempt_terminating {
	uint32_t pod; /* of the index */
	bool counted; /* its quota counts it until it is gone */
};

struct preempt_run {
	const struct preempt *index;
	struct place *place;
	struct quota_book *book;
	const struct preempt_options *options;
	const struct preempt_ask *ask;

	const struct kube_pod *record;
	const char *namespace;
	const struct resources *requests;
	int32_t priority;
	bool has_quota;
	enum preempt_rule rule;
	struct quota_ask question; /* the question for admission */
	struct quota_nominated *nominated; /* owned; the question's */
	/* Requests of the pod, and of nominated pods that count before it. */
	struct quota_claims claims;
	place_pod pod;

	struct preempt_quota *quotas; /* by space */
	/*
	 * By budget: disruptions left, now and without any victim; the latter is INT32_MIN until a
	 * candidate matches.
	 */
	int32_t *budget_left, *budget_most;
	bool soft; /* budgets may be broken */

	/* Owned; members' numbers are candidates'; NULL: upstream knows no groups. */
	struct gangs *gangs;
	bool one_node; /* a whole group must be on the node (the extender) */
	struct preempt_victim_candidate *candidates; /* corrected: by rank */
	uint32_t candidate_count;
	uint32_t *local, *local_first; /* candidates by node, in the order of rank */
	uint32_t *matches; /* budgets of candidates */
	uint32_t match_count;
	/* Contested claims (preempt_victims.c) as bits: by destination; if only quotas refuse. */
	uint64_t *contested, contested_by_quotas; /* the first owned; by place_node */
	uint64_t *contests; /* owned; the distinct values */
	uint64_t contested_anywhere; /* all of them together */
	uint32_t contest_count;
	double *due; /* owned; by space and claim (preempt_cost.c) */
	uint32_t refused[PREEMPT_REFUSALS];
	int64_t retry_ns, more_ns; /* the second: when a quota with an open window allows more */
	struct preempt_node *nodes; /* by place_node */

	/* Pods in deletion, out of the simulation during the run. */
	struct preempt_terminating *terminating; /* owned */
	uint32_t terminating_count;
	uint32_t *nominees_on; /* by node: nominated pods that the run put on it */
	place_pod *nominees; /* by nominee; PLACE_NONE: it is not put anywhere */

	uint32_t effort; /* left */
	bool cut; /* a set was not tried for want of effort */
	place_mark mark;
};

void preempt_run_init(struct preempt_run *r, const struct preempt *x, struct place *p,
		      struct quota_book *b, const struct preempt_options *o,
		      const struct preempt_ask *ask);
/* Puts all pods back. */
void preempt_run_fini(struct preempt_run *r);
/* Takes pods in deletion out of the simulation and the book. */
void preempt_run_leave(struct preempt_run *r);
/*
 * Counts pods in deletion of the own namespace for its quota again, except for victims of earlier
 * answers: a quota cannot borrow room that is not free yet.
 */
void preempt_run_stay(struct preempt_run *r);
/* Whether the uid is among them. */
bool preempt_has_uid(const char *const *uids, size_t count, const char *uid);
/* Of a struct preempt_run. */
bool preempt_run_is_terminating(const void *run, const struct kube_pod *pod);
/* Whether the quotas allow the pod in the present state of the run. */
bool preempt_run_quotas_allow(const struct preempt_run *r);
/* Whether the pod fits with and without the nominated pods there. */
enum place_filter preempt_run_fits(struct preempt_run *r, place_node n);
bool preempt_run_allows(const struct preempt_run *r, place_node n);
static inline const struct preempt_pod *preempt_run_pod(const struct preempt_run *r,
							const struct preempt_victim_candidate *p)
{
	return &r->index->pods[p->pod];
}

static inline const struct preempt_pod *preempt_pod_of(const struct preempt_run *r,
						       uint32_t candidate)
{
	return preempt_run_pod(r, &r->candidates[candidate]);
}

/* Takes the pod from its node and its quota, and back. Budgets and windows count it. */
void preempt_run_take(struct preempt_run *r, struct preempt_victim_candidate *p);
void preempt_run_put(struct preempt_run *r, struct preempt_victim_candidate *p);
/* Finds the budgets that select the pod, by the variant's rule, and sets over_budget. */
void preempt_run_match(struct preempt_run *r, struct preempt_victim_candidate *p);
/*
 * Whether the pod's eviction exceeds a budget that selects it; `left` is by budget, without the pod.
 * corrected: the API server evicts no pod that two budgets select.
 */
bool preempt_run_exceeds(const struct preempt_run *r, const struct preempt_victim_candidate *p,
			 const int32_t *left);
/* Adds `by` to what its budgets have left. */
void preempt_run_count(const struct preempt_run *r, const struct preempt_victim_candidate *p,
		       int32_t *left, int32_t by);
/* Corrected: budgets protected a pod, alone or with others, and may be broken. */
bool preempt_run_may_break(const struct preempt_run *r);

static inline int64_t preempt_started(const struct kube_pod *pod)
{
	return pod->started_ns ? pod->started_ns : INT64_MAX; /* not yet: now */
}

/* --- preempt_victims.c */

/* Fills candidates, local, refused and each node's counts, which are reset before. */
void preempt_victims_collect(struct preempt_run *r);
void preempt_victims_forget(struct preempt_run *r);
/* The earlier of retry_ns and more_ns; 0: no time holds victims back. */
int64_t preempt_victims_next_ns(const struct preempt_run *r);
/* Whether the claim is contested for some destination. */
bool preempt_victims_contest(const struct preempt_run *r, size_t claim);
/* Whether each pod of the set frees contested resources of that destination. */
bool preempt_victims_serve(const struct preempt_run *r, const uint32_t *set, uint32_t count,
			   place_node n);
/*
 * Takes the pod and the members that fall with it, and appends them to `of` at *count. False: one
 * of them may not go, and none is taken.
 */
bool preempt_victims_take(struct preempt_run *r, uint32_t candidate, uint64_t contested,
			  uint32_t **of, uint32_t *count);
/* Puts it back, alone. */
void preempt_victims_put(struct preempt_run *r, uint32_t candidate);
/* Looks the pod up at its first use. False: the simulation does not have it on its node. */
bool preempt_victims_is_there(const struct preempt_run *r, struct preempt_victim_candidate *p);

/* --- preempt_cost.c */

struct preempt_cost {
	uint32_t violations;
	double loss; /* of guarantees, in mins */
	double beyond; /* how much quotas give beyond their weighted excess */
	int64_t top_priority;
	enum preempt_use use;
	int64_t priorities; /* sum of priority + 2^31 */
	uint32_t count;
	int64_t start; /* earliest start of the top-priority victims */
	double waste;
};

struct preempt_set {
	place_node at; /* PLACE_NONE: there is none */
	uint32_t count;
	uint32_t *of; /* owned; candidates, by rank */
	struct preempt_cost cost;
};

/* < 0: a is cheaper. */
int preempt_cost_compare(const struct preempt_cost *a, const struct preempt_cost *b,
			 enum quota_variant v);
/* Sets the cost of the set, of which some pods may be taken. Counts budgets by rank. */
void preempt_set_reckon(const struct preempt_run *r, struct preempt_set *s);
/* How much the quotas of the set's pods lose of their guarantees without the set, in mins. */
double preempt_loss(const struct preempt_run *r, const uint32_t *set, uint32_t count);
/* Reads the weighted excess of each quota, from the book without victims. */
void preempt_share_read(struct preempt_run *r);
/* For pods in their order: the excess of the quota shrinks by what each frees. */
void preempt_share_charge(struct preempt_run *r, struct preempt_victim_candidate *p);

/* --- preempt_search.c */

void preempt_set_fini(struct preempt_set *s);
/* Among the node's own pods. False: the node's outcome says why, and *out is undefined. */
bool preempt_search_node(struct preempt_run *r, place_node n, struct preempt_set *out);
/* The best set of all nodes by their own pods, else by pods of several nodes. */
void preempt_search(struct preempt_run *r, struct preempt_set *out);

/* --- preempt_upstream.c */

/* Sets the node's outcome, and *out if the node suffices or errs. */
bool preempt_upstream_node(struct preempt_run *r, place_node n, struct preempt_candidate *out);

/* The nodes that suffice or err, by name. */
void preempt_upstream_candidates(struct preempt_run *r, struct preempt_answer *out);
/* unresolvable: its nominated node is UnschedulableAndUnresolvable. */
bool preempt_upstream_is_eligible(const struct preempt_run *r, bool unresolvable);

/* --- preempt_tell.c */

void preempt_tell_ask(const struct preempt_run *r, const struct quota_verdict *admission,
		      struct buf *out);
void preempt_tell_rule(const struct preempt_run *r, struct buf *out);
void preempt_tell_candidates(const struct preempt_run *r, struct buf *out);
void preempt_tell_unblock(struct preempt_run *r, const struct quota_verdict *admission,
			  struct buf *out);
/* The description of a victim, for the caller to free. Called before the pod is taken. */
char *preempt_tell_victim(const struct preempt_run *r, const struct preempt_victim_candidate *p,
			  bool violates);

/* --- preempt.c */

/* preemptionPolicy */
bool preempt_says_never(const struct preempt_ask *ask);

/* Fills the victim with its description, and takes it. */
void preempt_victim_take(struct preempt_run *r, struct preempt_victim_candidate *p, bool violates,
			 struct preempt_victim *out);
