/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Victims: which pods have to go so that a pod may start within the quotas, and on which node it
 * starts then. Pure: the placement core and the quota book are changed to try things and are
 * afterwards what they were.
 *
 * Who may have to pay, in both variants (scheduler-plugins' CapacityScheduling, PostFilter;
 * the rule: rule_of() in preempt_run.c, the pods: judge() in preempt_victims.c):
 *   the pod's quota stays within its min   others borrow what it is owed: pods of quotas over their min, whatever their priority
 *   it would be over its min               it borrows itself: pods of its own namespace with a lower priority
 *   its namespace has no quota             pods of other namespaces without one, with a lower priority
 *
 * Variant upstream is scheduler-plugins' search, with its faults. Variant corrected:
 *   - Only resources that the pod lacks are contested: on the node, or under the sum of min. The
 *     quota of a victim uses more than its min of one of them that the victim has some of, and
 *     stays at or above its min in all of them. Its other resources do not protect it, and its
 *     namespace keeps the right to them; of the sets that serve the one that takes the least of
 *     what was guaranteed is chosen. A resource nobody is guaranteed makes nobody a borrower.
 *   - A pod within its min does not pay off what others use beyond all mins together since before:
 *     without its victims, and with it, the sum is no more than all
 *     mins, or than it was.
 *   - A set is minimal: if any of its victims stayed, the pod could start on no node.
 *   - Where no node has room, one node pays if one suffices, else several: those that free room
 *     where the pod goes, and borrowers elsewhere until the quotas allow
 *     it. Where one has room as it is and just the quotas refuse, whoever is the cheapest.
 *   - PodDisruptionBudgets are counted once per victim, and kept (pdb_hard), or broken only where
 *     nothing else helps. Victims that were told, and pods in deletion, are counted before the
 *     budget's status tells of them.
 *   - Pods that are being deleted are no victims again: what they hold is coming free, and if that
 *     suffices the pod waits. Until they are gone the quota of the pod's namespace uses what its
 *     own of them request, but that of victims told for a pod. The quotas of others are counted
 *     without them, as those keep their min when they are gone.
 *   - Pods that do no work without a victim (gangs.h) are victims, too, wherever they are, and count
 *     as such; one that may be none keeps all of its group. For the extender all must be of the
 *     node, as no answer could name others.
 *   - evenkeel.io/min-runtime and evenkeel.io/max-evictions of the victim's quota are kept.
 *   - Critical pods (by priority) may take the place of any pod with a lower priority, with or
 *     without a quota, but of no guarantee; they are
 *     victims of higher priorities only.
 *   - Whose place is taken first: where others borrow, pods of the quota that is the most over its
 *     share by evenkeel.io/weight (preempt_share.c); then the lowest priority; where others borrow,
 *     measured idle pods, then pods whose use is not known, then busy ones; then the youngest, the
 *     one that frees the least in vain, by name. In the own namespace use does not matter.
 */
#ifndef EVENKEEL_AGGREGATOR_POLICY_QUOTA_PREEMPT_H
#define EVENKEEL_AGGREGATOR_POLICY_QUOTA_PREEMPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/policy/place/place.h"
#include "aggregator/policy/quota/quota.h"
#include "aggregator/state/view.h"
#include "shared/buf.h"

struct preempt_options {
	enum quota_variant variant; /* that of the book, too */
	int32_t critical_priority; /* as quota_options */
	/* true; false: budgets are broken where nothing else helps, as upstream does */
	bool pdb_hard;
	double idle_share; /* 0.10: below it of what it requests of CPU a pod is idle */
	/*
	 * 200000: pods taken and put back, at most, in search of sets that the first way of trying
	 * misses
	 */
	uint32_t effort;
};

void preempt_options_default(struct preempt_options *o);

/* A victim of the past, for evenkeel.io/max-evictions. */
struct preempt_past {
	const char *namespace;
	int64_t at_ns;
};

struct preempt_ask {
	const struct kube_pod *pod; /* pending; need not be in the view */
	/*
	 * preemptionPolicy Never, where the caller knows more than the pod's spec says (its
	 * PriorityClass)
	 */
	bool never;
	/* what the book counts for this very pod already (quota_ask); NULL: nothing */
	const struct resources *reserved;
	/*
	 * What the book counts reservations of, and the placement core has where they have a node;
	 * NULL: nothing is reserved.
	 */
	const struct reservations_copy *reservations;
	int64_t now_ns;
	const struct preempt_past *past; /* in any order, the preferred ones, too */
	size_t past_count;
	/* Victims that were told before and are not seen in deletion yet: as if they were. */
	const char *const *in_flight; /* uids */
	size_t in_flight_count;
	/* Victims that were told for other pods, which are counted in their place. */
	const char *const *exchanged; /* uids */
	size_t exchanged_count;
	/*
	 * Victims that were told for this very pod before: taken first, where they still may be and
	 * help. Corrected only.
	 */
	const char *const *preferred; /* uids */
	size_t preferred_count;
	const bool *allowed; /* by place_node; NULL: every node */
};

enum preempt_verdict {
	PREEMPT_NOT_NEEDED, /* it fits, and the quotas allow it: as it is */
	PREEMPT_WAIT, /* it will when pods that are going are gone */
	PREEMPT_VICTIMS,
	PREEMPT_IMPOSSIBLE,
	PREEMPT_NEVER, /* the pod must not preempt, and cannot start as it is */
	PREEMPT_VERDICTS
};

const char *preempt_verdict_name(enum preempt_verdict v); /* "notNeeded", .. */

/* Why a pod is no victim; the first that applies is told. */
enum preempt_refusal {
	PREEMPT_ELIGIBLE, /* it may be one */
	PREEMPT_GOING, /* in deletion, or told before */
	PREEMPT_STATIC, /* a static pod: deleting its image stops nothing */
	/* its namespace has no quota, and the pod's has, or the other way round */
	PREEMPT_ISOLATED,
	PREEMPT_OTHER_QUOTA, /* only the own namespace may pay */
	PREEMPT_OWN_QUOTA, /* only borrowers may pay, and those are others */
	PREEMPT_WITHIN_MIN, /* its quota uses no more than its min of what is asked for */
	PREEMPT_BELOW_MIN, /* without it its quota would be below its min */
	PREEMPT_PRIORITY, /* not lower */
	PREEMPT_MIN_RUNTIME,
	PREEMPT_MAX_EVICTIONS,
	PREEMPT_PDB,
	PREEMPT_GROUP, /* its group would fall below its minimum (gangs.h), and some of it must stay */
	PREEMPT_REFUSALS
};

const char *preempt_refusal_name(enum preempt_refusal r); /* "withinMin", .. */

enum preempt_use { PREEMPT_IDLE, PREEMPT_UNKNOWN, PREEMPT_BUSY };

/* What it points to is borrowed from the view. */
struct preempt_victim {
	const struct kube_pod *pod;
	const char *node;
	const char *quota; /* the namespace whose quota it is counted in; "" */
	int32_t priority;
	int64_t started_ns; /* 0: not yet */
	bool violates_pdb;
	bool falls; /* with its group */
	enum preempt_use use;
	double use_share; /* of the CPU it requests; NaN: not known */
	char *why; /* owned; a sentence with the numbers */
};

/* What a node would cost. */
struct preempt_candidate {
	const char *node; /* where the pod goes */
	/* upstream lost the node (a victim was removed twice); there are no victims then */
	bool error;
	uint32_t violations; /* budgets broken */
	double loss; /* what quotas lose of their guarantees, in mins; corrected only */
	/* what quotas pay though others are more over their weighted share; corrected only */
	double beyond;
	size_t victim_count;
	struct preempt_victim *victims; /* owned */
};

/* What was found on a node, of its own pods alone. */
enum preempt_outcome {
	PREEMPT_NODE_NOT_ASKED, /* left out, or an answer was found before */
	PREEMPT_NODE_SUFFICES,
	PREEMPT_NODE_NO_VICTIM, /* nobody there may be one */
	PREEMPT_NODE_NO_ROOM, /* the pod would not fit without them all; `filter` says why */
	PREEMPT_NODE_QUOTA, /* it would, but the quotas would refuse it still */
	PREEMPT_NODE_GUARDED, /* all together would do, but no set that is allowed */
	PREEMPT_NODE_ERROR, /* upstream's */
	PREEMPT_OUTCOMES
};

const char *preempt_outcome_name(enum preempt_outcome o);

struct preempt_node {
	const char *name;
	enum preempt_outcome outcome;
	enum place_filter filter;
	uint32_t pods, eligible; /* bound there; of them, those that may be victims */
};

struct preempt_plan {
	enum preempt_verdict verdict;
	bool several; /* not all victims are on the destination */
	/*
	 * PREEMPT_IMPOSSIBLE: all sets were tried, or none can do; false: none was found within the
	 * effort
	 */
	bool exhausted;
	struct quota_verdict admission; /* what the quotas say without any victim */
	struct preempt_candidate chosen; /* node: the destination, NULL where there is none */
	size_t node_count;
	struct preempt_node *nodes; /* owned; by name */
	uint32_t refused[PREEMPT_REFUSALS]; /* pods of the nodes asked */
	/* when a min runtime or a window of evictions ends that holds victims back; 0: none does */
	int64_t retry_ns;
	struct buf narration; /* sentences, a line each */
	struct buf unblock; /* what would help, a line each; empty where there is nothing to say */
};

void preempt_plan_fini(struct preempt_plan *plan);
/* "quota b is within its min: 4 pods of a could give way; see evenkeel quota preempt" */
void preempt_tell_reclaim(const struct preempt_plan *plan, const char *namespace, struct buf *out);

/*
 * The pods of a view by node, their namespaces, budgets and nominations, for any number of
 * questions. Immutable. Made by the first who asks and kept with the view, from which it is
 * borrowed: it reads memory all over 150k pods. Any thread.
 */
struct preempt;
const struct preempt *preempt_of(const struct view *v);

/*
 * Place and book must be of the index's view. *out is overwritten; borrowed pointers in it live as
 * long as the view.
 */
void preempt_make_plan(const struct preempt *x, struct place *p, struct quota_book *b,
		       const struct preempt_options *o, const struct preempt_ask *ask,
		       struct preempt_plan *out);

/*
 * The cheapest, or count where there is none. Upstream: fewest budgets broken, lowest priority of
 * the top victim, lowest sum of priorities + 2^31, fewest victims, latest start of the earliest of
 * its top victims. Corrected: fewest budgets broken, least lost of guarantees, least paid by who is
 * not the most over its weighted share, lowest priority of the top victim, the least busy, then as
 * upstream. Ties: the first.
 */
size_t preempt_choose(const struct preempt_candidate *of, size_t count, enum quota_variant v);

/* --- the preempt verb of an extender */

/* A candidate of the kube-scheduler's. Its victims are by priority alone, and may be none. */
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
	bool room; /* some offered node needs no victims, or none but those that are going */
	int64_t retry_ns; /* as in a plan without victims */
	struct buf narration;
};

/*
 * Which of the offered nodes suffice with victims of their own, and which those are: by our rules,
 * not by the kube-scheduler's choice, which is told where it differs. Nodes that nobody knows, that
 * need no victim, or that need victims elsewhere are left out: no answer of the verb could say so.
 *
 * To be idempotent per preemptor, a caller keeps what it answered, for its uid, until the pod is
 * bound or gone, and passes those victims as ask->in_flight of the next call: while they are going
 * the answer is empty, and nobody else is evicted for the same pod.
 */
void preempt_for_extender(const struct preempt *x, struct place *p, struct quota_book *b,
			  const struct preempt_options *o, const struct preempt_ask *ask,
			  const struct preempt_offer *offers, size_t offer_count,
			  struct preempt_answer *out);
void preempt_answer_fini(struct preempt_answer *a);

#endif
