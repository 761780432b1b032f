/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Victims: which pods must go so that a pending pod can start within the quotas, and on which node it
 * then starts. Pure: the search changes the placement core and the quota book, and restores both.
 *
 * Candidates, in both variants (scheduler-plugins' CapacityScheduling, PostFilter; the rule:
 * rule_of() in preempt_run.c; the pods: judge() in preempt_victims.c, or is_candidate() in
 * preempt_upstream.c):
 *   the pod's quota stays within its min   others borrow from it: pods of quotas over their min, with any priority
 *   the pod's quota would exceed its min   it borrows itself: pods of its own namespace with a lower priority
 *   its namespace has no quota             pods of other namespaces without a quota, with a lower priority
 *
 * Variant upstream is scheduler-plugins' search, with its faults. Variant corrected:
 *   - Only resources that the pod lacks are contested: on the node, or under the sum of min. The
 *     quota of a victim uses more than its min of a contested resource that the victim requests, and
 *     stays at or above its min of all contested resources. Its other resources do not protect it,
 *     and its namespace keeps its guarantee of them. Of the sets that suffice, the search chooses the
 *     set that takes the least of what is guaranteed. No quota borrows a resource without guarantees.
 *   - If usage already exceeds the sum of all min, preemption frees only what the new pod requests:
 *     the sum after it is no more than all mins, or than it was.
 *   - A set is minimal: if any of its victims stayed, the pod could start on no node.
 *   - If no node has room, the victims are on one node if one suffices, else on several: pods that
 *     free room on the destination, and borrowers on other nodes until the quotas allow the pod. If a
 *     node has room and only the quotas refuse, the cheapest victims of all nodes are chosen.
 *   - PodDisruptionBudgets count each victim once. They are kept (pdb_hard), or broken only if nothing
 *     else helps. Victims of earlier answers and pods in deletion count before the status of the
 *     budget shows them.
 *   - Pods in deletion are no victims: their room is coming free, and if it suffices the pod waits.
 *     Until they are gone the quota of the pod's namespace counts their requests, except for
 *     victims of an earlier answer. Other quotas are counted without them, since those keep their
 *     min afterwards.
 *   - Pods that do no work without a victim (gangs.h) are victims, too, on any node. A pod that may be
 *     no victim protects its whole group. For the extender all of a group must be on the node, since
 *     the answer cannot name pods of other nodes.
 *   - evenkeel.io/min-runtime and evenkeel.io/max-evictions of the victim's quota are kept.
 *   - Critical pods (by priority) may displace any pod with a lower priority, with or without a quota,
 *     as long as its quota keeps its min. They are victims of higher priorities only.
 *   - Order of candidates (by_rank() in preempt_victims.c): pods that exceed no
 *     PodDisruptionBudget; victims of an earlier answer; the least loss of guarantees; among borrowers
 *     the quota that is the most over its share by evenkeel.io/weight (preempt_cost.c); the lowest
 *     priority; among borrowers measured idle pods, then pods with unknown use, then busy pods; the
 *     fewest members of a group that fall with the pod; the youngest; the pod that frees the least in
 *     vain; the name.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/policy/place/place.h"
#include "aggregator/policy/quota/quota.h"
#include "aggregator/state/victim_log.h"
#include "aggregator/state/view.h"
#include "shared/buf.h"

struct preempt_options {
	enum quota_variant variant; /* that of the book, too */
	int32_t critical_priority; /* as quota_options */
	/* true; false: budgets are broken where nothing else helps, as upstream does */
	bool pdb_hard;
	double idle_share; /* 0.10: below it of what it requests of CPU a pod is idle */
	/* 200000: most pods taken and put back in search of sets that greedy search misses */
	uint32_t effort;
};

void preempt_options_default(struct preempt_options *o);

struct preempt_ask {
	const struct kube_pod *pod; /* pending; need not be in the view */
	/* preemptionPolicy Never by the PriorityClass, which the pod spec may not state */
	bool never;
	/* what the book already counts for this pod (quota_ask); NULL: nothing */
	const struct resources *reserved;
	/* Reservations in the book, and in the placement core if they have a node; NULL: none. */
	const struct reservations_copy *reservations;
	int64_t now_ns;
	/* for evenkeel.io/max-evictions, in any order; includes the preferred pods */
	const struct victim_past *past;
	size_t past_count;
	/*
	 * Victims of earlier answers that the API does not show in deletion yet; they count as if
	 * it did.
	 */
	const char *const *in_flight; /* uids */
	size_t in_flight_count;
	/* Victims of earlier answers for other pods; the requests of those pods count instead. */
	const char *const *exchanged; /* uids */
	size_t exchanged_count;
	/*
	 * Victims of earlier answers for this pod: chosen first if they still may be and help.
	 * Corrected only.
	 */
	const char *const *preferred; /* uids */
	size_t preferred_count;
	const bool *allowed; /* by place_node; NULL: every node */
};

enum preempt_verdict {
	PREEMPT_NOT_NEEDED, /* it fits, and the quotas allow it */
	PREEMPT_WAIT, /* it will fit when pods in deletion are gone */
	PREEMPT_VICTIMS,
	PREEMPT_IMPOSSIBLE,
	PREEMPT_NEVER, /* the pod must not preempt, and cannot start as it is */
	PREEMPT_VERDICTS
};

const char *preempt_verdict_name(enum preempt_verdict v); /* "notNeeded", .. */

/* Why a pod is no victim. */
enum preempt_refusal {
	PREEMPT_ELIGIBLE, /* it may be one */
	PREEMPT_TERMINATING, /* in deletion, or a victim of an earlier answer */
	PREEMPT_STATIC, /* a static pod: deleting its image stops nothing */
	/* one of the two namespaces has a quota, the other has none */
	PREEMPT_ISOLATED,
	PREEMPT_OTHER_QUOTA, /* victims may only be in the own namespace */
	PREEMPT_OWN_QUOTA, /* victims may only be borrowers, in other namespaces */
	PREEMPT_WITHIN_MIN, /* its quota uses no more than its min of the requested resources */
	PREEMPT_BELOW_MIN, /* without the pod its quota would be below its min */
	PREEMPT_PRIORITY, /* not lower */
	PREEMPT_MIN_RUNTIME,
	PREEMPT_MAX_EVICTIONS,
	PREEMPT_PDB,
	PREEMPT_GROUP, /* its group would fall below its minimum (gangs.h), and a member must stay */
	PREEMPT_REFUSALS
};

const char *preempt_refusal_name(enum preempt_refusal r); /* "withinMin", .. */

enum preempt_use { PREEMPT_IDLE, PREEMPT_UNKNOWN, PREEMPT_BUSY };

/* Pointers are borrowed from the view. */
struct preempt_victim {
	const struct kube_pod *pod;
	const char *node;
	const char *quota; /* the namespace whose quota counts it; "" */
	int32_t priority;
	int64_t started_ns; /* 0: not yet */
	bool violates_pdb;
	bool falls; /* a member of a group that falls below its minimum */
	enum preempt_use use;
	double use_share; /* of the CPU it requests; NaN: not known */
	char *why; /* owned; a description with the numbers */
};

/* A node with the victims that the pod needs there. */
struct preempt_candidate {
	const char *node; /* where the pod goes */
	/* upstream drops the node (it removed a victim twice); there are no victims then */
	bool error;
	uint32_t violations; /* PodDisruptionBudgets broken */
	double loss; /* how much quotas lose of their guarantees, in mins; corrected only */
	/* how much quotas give beyond their weighted excess; corrected only */
	double beyond;
	size_t victim_count;
	struct preempt_victim *victims; /* owned */
};

/* The result of the search on one node, among its own pods. */
enum preempt_outcome {
	PREEMPT_NODE_NOT_ASKED, /* excluded, or an answer was found before */
	PREEMPT_NODE_SUFFICES,
	PREEMPT_NODE_NO_VICTIM, /* no pod there may be a victim */
	PREEMPT_NODE_NO_ROOM, /* the pod would not fit without all of them; `filter` says why */
	PREEMPT_NODE_QUOTA, /* it would fit, but the quotas would still refuse it */
	PREEMPT_NODE_GUARDED, /* all together would suffice, but no allowed set does */
	PREEMPT_NODE_ERROR, /* upstream's */
	PREEMPT_OUTCOMES
};

const char *preempt_outcome_name(enum preempt_outcome o);

struct preempt_node {
	const char *name;
	enum preempt_outcome outcome;
	enum place_filter filter;
	uint32_t pods, eligible; /* pods bound there; victim candidates among them */
};

struct preempt_plan {
	enum preempt_verdict verdict;
	bool several; /* not all victims are on the destination */
	/* PREEMPT_IMPOSSIBLE: all sets were tried, or none can suffice; false: effort was spent */
	bool exhausted;
	struct quota_verdict admission; /* the answer of the quotas without any victim */
	struct preempt_candidate chosen; /* node: the destination, NULL where there is none */
	size_t node_count;
	struct preempt_node *nodes; /* owned; by name */
	uint32_t refused[PREEMPT_REFUSALS]; /* pods of the nodes asked */
	/* end of the first min runtime or eviction window that protects a candidate; 0: none */
	int64_t retry_ns;
	struct buf narration; /* one statement a line */
	struct buf unblock; /* what would help, one a line; empty if nothing would */
};

void preempt_plan_fini(struct preempt_plan *plan);
/* "quota b is within its min: 4 pods of a could give way; see evenkeel quota preempt" */
void preempt_tell_reclaim(const struct preempt_plan *plan, const char *namespace, struct buf *out);

/*
 * The pods of a view by node, their namespaces, budgets and nominations, for any number of
 * searches. Immutable. The first caller makes it, and it is kept with the view, from which it is
 * borrowed: building it takes 40 ms for 150,000 pods. Any thread.
 */
struct preempt;
const struct preempt *preempt_of(const struct view *v);

/* Place and book are of the index's view, from which *out borrows. *out is overwritten. */
void preempt_make_plan(const struct preempt *x, struct place *p, struct quota_book *b,
		       const struct preempt_options *o, const struct preempt_ask *ask,
		       struct preempt_plan *out);

/*
 * The cheapest candidate, or count if there is none. Upstream: fewest budgets broken, lowest
 * priority of the top victim, lowest sum of priorities + 2^31, fewest victims, latest start of the
 * earliest of its top victims. Corrected: fewest budgets broken, least loss of guarantees, least
 * given beyond the weighted excess, lowest priority of the top victim, least busy, then as
 * upstream. Ties: the first.
 */
size_t preempt_choose(const struct preempt_candidate *of, size_t count, enum quota_variant v);

/* --- the preempt verb of an extender */

/* A candidate of the kube-scheduler, with victims by priority alone; there may be none. */
struct preempt_offer {
	const char *node;
	const char *const *uids;
	size_t uid_count;
};

/* The answer for a node: its victims by descending priority. */
struct preempt_answer {
	size_t count;
	/* owned; in the order of offers, each with at least one victim */
	struct preempt_candidate *of;
	bool room; /* some offered node needs no victims beside pods in deletion */
	int64_t retry_ns; /* as in a plan without victims */
	struct buf narration;
};

/*
 * Which of the offered nodes suffice with victims of their own, and which victims these are: by our
 * rules, not by the kube-scheduler's choice; the narration says where they differ. Unknown nodes,
 * nodes that need no victim and nodes that need victims elsewhere are left out, since the answer of
 * the verb cannot express them.
 *
 * To be idempotent per preemptor, a caller keeps its answer for the pod's uid until the pod is bound
 * or gone, and passes these victims as ask->in_flight of the next call: while they are in deletion the
 * answer is empty, and no other pod is evicted for the same pod.
 */
void preempt_for_extender(const struct preempt *x, struct place *p, struct quota_book *b,
			  const struct preempt_options *o, const struct preempt_ask *ask,
			  const struct preempt_offer *offers, size_t offer_count,
			  struct preempt_answer *out);
void preempt_answer_fini(struct preempt_answer *a);
