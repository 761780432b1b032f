/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a pod may leave its node: twelve rules, of which the first that has an opinion decides.
 *
 *   Mirror, LongTerminating                    nothing to do for it               SkipDrain
 *   ReplicaCount                               its owner is there, large enough   (BlockDrain)
 *   DaemonSet, SafeToEvict, Terminal           it goes, whatever rules below say  DrainOk
 *   OnCompletion                               the node waits until it ended      WaitForCompletion
 *   Replicated, System, NotSafeToEvict, LocalStorage, PDB                         BlockDrain
 *
 * No opinion of any (Undefined) means that the pod is moved. A verdict may carry overrides: it is
 * then parked, and returned where a later rule comes to an outcome that it overrides.
 *
 *   upstream   System lets an old pod go without a look at the rules below it
 *   corrected  - an old pod of kube-system is no longer held by System, only by rules below it
 *              - an owner of the same name with another uid is not the owner
 *              - a word in the annotation safe-to-evict that nobody knows holds the pod, and so
 *                does karpenter.sh/do-not-disrupt, also beside safe-to-evict=true
 *              - a pod of several budgets is held (SeveralPdbs); one that its budget does not count
 *                is not (drain_pdb.h)
 *              - where budgets could not be listed, or one of the namespace cannot be read, pods
 *                are held (PdbsNotKnown), also those that are safe to evict
 *
 * SafeToEvict also passes over the pod's budget, as upstream; the API would refuse nevertheless,
 * and so the wave is asked with drain_pdbs_ask() for every pod that moves.
 */
#ifndef EVENKEEL_AGGREGATOR_POLICY_DRAIN_DRAIN_RULES_H
#define EVENKEEL_AGGREGATOR_POLICY_DRAIN_DRAIN_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/model/model.h"
#include "aggregator/policy/drain/drain_options.h"
#include "aggregator/policy/drain/drain_pdb.h"
#include "shared/error.h"

enum drain_outcome {
	DRAIN_POD_UNDEFINED,
	DRAIN_POD_OK, /* goes; a DaemonSet's is not placed anew */
	DRAIN_POD_BLOCK,
	DRAIN_POD_SKIP,
	DRAIN_POD_WAIT,
	DRAIN_POD_OUTCOMES
};

struct drain_status {
	enum drain_outcome outcome;
	enum drain_reason reason; /* of a block, else DRAIN_NONE */
	uint32_t overrides; /* bits 1 << enum drain_outcome */
	const char *rule; /* static; NULL: none had an opinion */
};

struct drain_rule;

struct drain_context {
	const struct drain_options *options;
	int64_t now_ns;
	struct drain_pdbs *pdbs; /* NULL: there are none */
	/*
	 * Where owners are looked up; NULL, or a kind that is not known: it is not asked whether
	 * they are there.
	 */
	const struct cluster *cluster;
	const struct drain_rule *first; /* asked before the twelve */
	size_t first_count;
};

struct drain_rule {
	const char *name;
	bool (*is_on)(const struct drain_options *o); /* NULL: always */
	/*
	 * Sets outcome, reason and overrides of *out, which is Undefined; and why (may be NULL) of
	 * a block.
	 */
	void (*ask)(const struct drain_context *c, const struct kube_pod *pod,
		    struct drain_status *out, struct error *why);
};

/* The twelve, in their order. */
const struct drain_rule *drain_rules(size_t *count);

enum { DRAIN_PARKED_MAX = 16 };

/* Puts verdicts together, one rule after the other. All zero at first. */
struct drain_judge {
	struct drain_status parked[DRAIN_PARKED_MAX];
	size_t parked_count;
	struct drain_status verdict; /* Undefined until it is decided */
};

/*
 * True: decided, and no more is to be asked. More than DRAIN_PARKED_MAX verdicts with overrides are
 * an error of ours.
 */
bool drain_judge_step(struct drain_judge *j, const struct drain_status *status);

/* All rules that are on. */
void drain_pod_judge(const struct drain_context *c, const struct kube_pod *pod,
		     struct drain_status *out, struct error *why);

struct drain_blocking {
	const struct kube_pod *pod;
	struct drain_status status;
	char *why; /* one sentence */
};

/*
 * Pods of a node by what happens to them; arrays are owned, the pods borrowed, in the order they
 * were given.
 */
struct drain_pods {
	const struct kube_pod **move, **daemon, **wait;
	size_t move_count, daemon_count, wait_count;
	/* Those that stay, and why. Upstream looks no further than the first. */
	size_t blocking_count;
	struct drain_blocking *blocking; /* owned with its texts */
};

void drain_pods_sort(const struct drain_context *c, const struct kube_pod *const *pods,
		     size_t count, struct drain_pods *out);
void drain_pods_fini(struct drain_pods *p);

/* --- facts that several modules ask for */

/* Of a DaemonSet, or said to be like one by its annotation. */
bool drain_is_daemon_pod(const struct kube_pod *pod);
/*
 * Its end is overdue by more than 30 s: deletionTimestamp + grace period (30 s unless said) + 30 s.
 */
bool drain_is_long_terminating(const struct kube_pod *pod, int64_t now_ns);

#endif
