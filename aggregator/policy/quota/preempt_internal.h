/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of preemption share.
 *
 *   preempt_index.c     the pods of a view by node, budgets, nominations
 *   preempt_run.c       one question: what is asked, what is counted beside the pod, taking pods
 *                       and putting them back
 *   preempt_payers.c    who may be a victim, and in which order (corrected)
 *   preempt_search.c    sets of victims (corrected)
 *   preempt_upstream.c  upstream's search
 *   preempt_choose.c    the cheapest of several
 *   preempt_tell.c      sentences
 *   preempt.c           the plan; preempt_extender.c the extender's verb
 */
#ifndef EVENKEEL_AGGREGATOR_POLICY_QUOTA_PREEMPT_INTERNAL_H
#define EVENKEEL_AGGREGATOR_POLICY_QUOTA_PREEMPT_INTERNAL_H

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
};

/* A namespace that has bound pods, and the budgets in it. */
struct preempt_space {
	const char *name;
	uint32_t first_budget, budget_count;
	uint32_t first_pod, pod_count; /* in by_space */
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
	struct view_cached cached; /* first; of preempt_of() */
	const struct view *view; /* the one it is kept with */
	uint32_t pod_count, space_count, budget_count, nominee_count;
	struct preempt_pod *pods; /* by node, then as in the view: by namespace and name */
	uint32_t *first; /* by node: its first pod; one more at the end */
	uint32_t *by_space; /* pods, those of a namespace together */
	struct preempt_space *spaces; /* sorted by name */
	struct preempt_budget *budgets; /* sorted by namespace */
	struct preempt_nominee *nominees; /* sorted by namespace and name */
};

/* Whether the pod is among those of which an eviction was granted. */
bool preempt_is_disrupted(const struct preempt_budget *b, const struct kube_pod *pod);

/* --- preempt_run.c */

enum preempt_rule {
	PREEMPT_BORROWED, /* others' quotas pay what they borrow */
	PREEMPT_OWN, /* the own namespace pays, by priority */
	PREEMPT_FREE, /* pods without a quota, by priority */
	PREEMPT_CRITICAL, /* everybody, by priority */
};

#define PREEMPT_NOT_LOOKED_UP (PLACE_NONE - 1)

/* A pod that can be taken. */
struct preempt_payer {
	uint32_t pod; /* of the index */
	place_pod handle;
	uint32_t first_match, match_count; /* budgets that it counts for */
	bool over_budget; /* alone it would break one */
	bool preferred; /* told for the pod before */
	bool taken;
	uint32_t fall; /* pods that would fall with it alone */
	enum preempt_use use;
	double share; /* NaN: not known */
	double waste; /* what it frees beyond what is asked, in pods asked for */
	double loss; /* what its quota loses of its guarantees by it alone, in mins */
	double turn; /* how far its quota is over its weighted share (preempt_share.c) */
};

/* By namespace of the index. */
struct preempt_purse {
	const struct quota_entry *entry; /* NULL: no quota */
	bool own; /* it is the pod's namespace */
	bool borrows; /* it uses more than its min of something that is asked for */
	uint32_t evictions; /* left in the window */
	bool bounded; /* there is a window */
	int64_t window_ends_ns; /* when enough of it is forgotten for one more; 0: never */
};

struct preempt_going {
	uint32_t pod; /* of the index */
	bool counted; /* its quota uses it until it is gone */
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
	struct quota_ask question; /* what admission is asked */
	struct quota_nominated *nominated; /* owned; the question's */
	/* The pod's requests, and those of nominated pods that count before it. */
	struct quota_claims claims;
	place_pod pod;

	struct preempt_purse *purses; /* by space */
	/*
	 * By budget: disruptions left, now and without any victim; the latter INT32_MIN until a
	 * payer matches.
	 */
	int32_t *budget_left, *budget_most;
	bool soft; /* budgets may be broken */

	struct gangs *gangs; /* owned; members' numbers are payers'; NULL: not asked (upstream) */
	bool one_node; /* whoever falls must be on the same node (the extender) */
	struct preempt_payer *payers; /* corrected: by rank */
	uint32_t payer_count, payer_room;
	uint32_t *local, *local_first; /* payers by node, in the order of rank */
	uint32_t *matches; /* budgets of payers */
	uint32_t match_count, match_room;
	/*
	 * Which claims are contested (preempt_payers.c), as bits: by destination, and where only
	 * the quotas refuse.
	 */
	uint64_t *contested, contested_by_quotas; /* the first owned; by place_node */
	uint64_t *contests; /* owned; those that differ */
	uint32_t contest_count;
	double *due; /* owned; by space and claim (preempt_share.c) */
	uint32_t refused[PREEMPT_REFUSALS];
	int64_t retry_ns, more_ns; /* also when more may go of a quota of which some may now */
	struct preempt_node *nodes; /* by place_node */

	/* Pods in deletion, out of the simulation while the run lasts. */
	struct preempt_going *going; /* owned */
	uint32_t going_count, going_room;
	uint32_t *nominees_on; /* by node: how many nominated pods are put on it */
	place_pod *nominees; /* by nominee; PLACE_NONE: it is not put anywhere */

	uint32_t effort; /* left */
	bool cut; /* something was not tried for want of it */
	place_mark mark;
};

void preempt_run_init(struct preempt_run *r, const struct preempt *x, struct place *p,
		      struct quota_book *b, const struct preempt_options *o,
		      const struct preempt_ask *ask);
/* All is put back. */
void preempt_run_fini(struct preempt_run *r);
/* Pods in deletion leave, the simulation and the book. */
void preempt_run_leave(struct preempt_run *r);
/*
 * Those of the own namespace count for its quota again, but victims told for a pod: what is not
 * gone yet is not borrowed room to claim.
 */
void preempt_run_stay(struct preempt_run *r);
bool preempt_run_is_going(const struct preempt_run *r, const struct kube_pod *pod);
/* The quotas allow it now. */
bool preempt_run_gates(const struct preempt_run *r);
/* What the quotas say, in words and numbers. */
void preempt_run_admit(const struct preempt_run *r, struct quota_verdict *v);
/* Also beside, and also without, the nominated pods there. */
enum place_filter preempt_run_fits(struct preempt_run *r, place_node n);
bool preempt_run_allows(const struct preempt_run *r, place_node n);
const struct preempt_pod *preempt_run_pod(const struct preempt_run *r,
					  const struct preempt_payer *p);
/* From its node and its quota, and back. Budgets and windows count it. */
void preempt_run_take(struct preempt_run *r, struct preempt_payer *p);
void preempt_run_put(struct preempt_run *r, struct preempt_payer *p);
/* Finds the budgets that count the pod; by the variant's rule. */
void preempt_run_match(struct preempt_run *r, struct preempt_payer *p);
/* Corrected: budgets kept somebody, alone or together with others, and may be broken. */
bool preempt_run_may_break(const struct preempt_run *r);
void *preempt_grow(void *array, uint32_t count, uint32_t *room, size_t size);

static inline int64_t preempt_started(const struct kube_pod *pod)
{
	return pod->started_ns ? pod->started_ns : INT64_MAX; /* not yet: now */
}

/* --- preempt_payers.c */

/* Fills payers, local, refused and each node's counts; what was there before is forgotten. */
void preempt_payers_collect(struct preempt_run *r);
void preempt_payers_forget(struct preempt_run *r);
/* The earlier of retry_ns and more_ns; 0: no time holds victims back. */
int64_t preempt_payers_next_ns(const struct preempt_run *r);
/* Whether it may be one more victim where that is contested, as things are now. */
bool preempt_payers_may_take(const struct preempt_run *r, struct preempt_payer *p,
			     uint64_t contested);
/* How much the pod has of what is claimed; each is one pod. */
int64_t preempt_payers_amount(const struct kube_pod *pod, const char *name);
/* Whether it is contested for some destination. */
bool preempt_payers_contest(const struct preempt_run *r, size_t claim);
/* Whether a set that is taken may be, in turn or all at once, for that destination. */
bool preempt_payers_serve(const struct preempt_run *r, const uint32_t *set, uint32_t count,
			  place_node n);
/* What the quotas of the set's pods lose of their guarantees when all of them go, in mins. */
double preempt_payers_loss(const struct preempt_run *r, const uint32_t *set, uint32_t count);
/*
 * Takes it, and those that fall with it. False: it may not go, or one of them; nobody is taken.
 * Those taken are put into `of` from *count on.
 */
bool preempt_payers_take(struct preempt_run *r, uint32_t payer, uint64_t contested, uint32_t **of,
			 uint32_t *count, uint32_t *room);
/* Puts it back, alone. */
void preempt_payers_put(struct preempt_run *r, uint32_t payer);
/* Looks it up when it is first tried. False: the simulation does not have it on its node. */
bool preempt_payers_is_there(const struct preempt_run *r, struct preempt_payer *p);

/* --- preempt_share.c */

/* What each quota is due to pay: the book as it is without victims. */
void preempt_share_read(struct preempt_run *r);
/* In their order; what is due is less after each. */
void preempt_share_take_turn(struct preempt_run *r, struct preempt_payer *p);
double preempt_share_beyond(const struct preempt_run *r, const uint32_t *set, uint32_t count);

/* --- preempt_search.c */

struct preempt_cost {
	uint32_t violations;
	double loss; /* of guarantees, in mins */
	double beyond; /* what quotas pay beyond their turns */
	int64_t top_priority;
	enum preempt_use use;
	int64_t priorities; /* sum of priority + 2^31 */
	uint32_t count;
	int64_t start; /* of the top ones the earliest */
	double waste;
};

struct preempt_set {
	place_node at; /* PLACE_NONE: there is none */
	uint32_t count;
	uint32_t *of; /* owned; payers, by rank */
	struct preempt_cost cost;
};

void preempt_set_fini(struct preempt_set *s);
/* Of its own pods. False: the node's outcome says why. The set is then whatever it was. */
bool preempt_search_node(struct preempt_run *r, place_node n, struct preempt_set *out);
/* The best of all nodes by their own pods, and else by pods of several. */
void preempt_search(struct preempt_run *r, struct preempt_set *out);

/* --- preempt_choose.c */

/* < 0: a is cheaper. */
int preempt_cost_compare(const struct preempt_cost *a, const struct preempt_cost *b,
			 enum quota_variant v);
void preempt_cost_start(struct preempt_cost *c);
void preempt_cost_add(struct preempt_cost *c, int32_t priority, int64_t started_ns,
		      enum preempt_use use, bool violates, double waste);

/* --- preempt_upstream.c */

/* The node's outcome is set; where it suffices or errs, *out. */
bool preempt_upstream_node(struct preempt_run *r, place_node n, struct preempt_candidate *out);

/* What each node would cost on its own: those that suffice, and those that were lost; by name. */
struct preempt_candidates {
	size_t count;
	struct preempt_candidate *of; /* owned */
};

void preempt_upstream_candidates(struct preempt_run *r, struct preempt_candidates *out);
void preempt_candidates_fini(struct preempt_candidates *c);
/* unresolvable: its nominated node is UnschedulableAndUnresolvable. */
bool preempt_upstream_is_eligible(const struct preempt_run *r, bool unresolvable);

/* --- preempt_tell.c */

void preempt_tell_ask(const struct preempt_run *r, const struct quota_verdict *gate,
		      struct buf *out);
void preempt_tell_rule(const struct preempt_run *r, struct buf *out);
void preempt_tell_payers(const struct preempt_run *r, struct buf *out);
void preempt_tell_unblock(struct preempt_run *r, const struct quota_verdict *gate, struct buf *out);
/* The sentence of a victim; to be freed. In the moment before it is taken. */
char *preempt_tell_victim(const struct preempt_run *r, const struct preempt_payer *p,
			  bool violates);

/* --- preempt.c */

/* preemptionPolicy */
bool preempt_says_never(const struct preempt_ask *ask);

/*
 * Taken one after the other, so that each sentence tells what it does to its quota; then put back.
 */
void preempt_candidate_of_set(struct preempt_run *r, const struct preempt_set *s,
			      struct preempt_candidate *out);
void preempt_candidate_fini(struct preempt_candidate *c);
void preempt_victim_of(const struct preempt_run *r, const struct preempt_payer *p,
		       struct preempt_victim *out);

#endif
