/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a pod may leave its node: the first of twelve rules with an opinion decides.
 *
 *   Mirror, LongTerminating                    nothing to do for the pod            SkipDrain
 *   ReplicaCount                               the owner exists and is large enough (BlockDrain)
 *   DaemonSet, SafeToEvict, Terminal           the pod goes, whatever rules below say  DrainOk
 *   OnCompletion                               the node waits until the pod ends    WaitForCompletion
 *   Replicated, System, NotSafeToEvict, LocalStorage, PDB                           BlockDrain
 *
 * Without an opinion (Undefined) the pod is moved. A verdict with overrides is parked, and returned
 * when a later rule comes to an outcome that it overrides.
 *
 *   upstream   System lets an old pod go without the rules below it
 *   corrected  - System holds no old pod of kube-system; the rules below it still may
 *              - an object with another uid is not the owner
 *              - an unknown value of safe-to-evict holds the pod, as does karpenter.sh/do-not-disrupt,
 *                even beside safe-to-evict=true
 *              - a pod of several budgets is held (SeveralPdbs); a pod that its budget does not count
 *                is not (drain_pdb.h)
 *              - unknown or unreadable budgets hold all pods they may select (PdbsNotKnown)
 *
 * SafeToEvict passes over the pod's budget, as upstream. The eviction API would refuse it, so the
 * wave calls drain_pdbs_ask() for every pod that moves.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/model/model.h"
#include "aggregator/policy/drain/drain_options.h"
#include "aggregator/policy/drain/drain_pdb.h"
#include "shared/error.h"

enum drain_outcome {
	DRAIN_POD_UNDEFINED,
	DRAIN_POD_OK, /* goes; a pod of a DaemonSet is not placed again */
	DRAIN_POD_BLOCK,
	DRAIN_POD_SKIP,
	DRAIN_POD_WAIT,
	DRAIN_POD_OUTCOMES
};

struct drain_status {
	enum drain_outcome outcome;
	enum drain_reason reason; /* of a block, else DRAIN_NONE */
	uint32_t overrides; /* bits 1 << enum drain_outcome */
};

struct drain_rule;

struct drain_context {
	const struct drain_options *options;
	int64_t now_ns;
	struct drain_pdbs *pdbs; /* NULL: there are none */
	const struct cluster *cluster; /* of owners; NULL: owners are not checked */
	const struct drain_rule *first; /* evaluated before the twelve */
	size_t first_count;
};

/* Of a rule, which sets outcome, reason and overrides of *out (Undefined); a block also sets why. */
struct drain_question {
	const struct drain_context *context;
	const struct kube_pod *pod;
	struct drain_status *out;
	struct error *why;
};

struct drain_rule {
	const char *name;
	size_t on; /* offset of the bool of struct drain_options that enables it; 0: always */
	void (*ask)(const struct drain_question *q);
};

/* The twelve, in their order. */
const struct drain_rule *drain_rules(size_t *count);

enum { DRAIN_PARKED_MAX = 16 };

/* Combines the verdicts of rules. All zero at first. */
struct drain_judge {
	struct drain_status parked[DRAIN_PARKED_MAX];
	size_t parked_count;
	struct drain_status verdict; /* Undefined until it is decided */
};

/* True: decided. At most DRAIN_PARKED_MAX verdicts may have overrides. */
bool drain_judge_step(struct drain_judge *j, const struct drain_status *status);

/* Evaluates all rules that are on. */
void drain_pod_judge(const struct drain_context *c, const struct kube_pod *pod,
		     struct drain_status *out, struct error *why);

struct drain_blocking {
	const struct kube_pod *pod;
	struct drain_status status;
	char *why; /* one sentence */
};

/* Pods of a node by outcome; arrays are owned, pods borrowed, in the given order. */
struct drain_pods {
	const struct kube_pod **move, **daemon, **wait;
	size_t move_count, daemon_count, wait_count;
	size_t blocking_count; /* upstream stops at the first */
	struct drain_blocking *blocking; /* owned with its texts */
};

void drain_pods_sort(const struct drain_context *c, const struct kube_pod *const *pods,
		     size_t count, struct drain_pods *out);
void drain_pods_fini(struct drain_pods *p);

/* Whether it is of a DaemonSet or annotated so. */
bool drain_is_daemon_pod(const struct kube_pod *pod);
/* Whether deletionTimestamp + grace period (default 30 s) + 30 s has passed. */
bool drain_is_long_terminating(const struct kube_pod *pod, int64_t now_ns);
