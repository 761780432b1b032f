/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of the drain planner's rules, and the reasons of its decisions.
 *
 * One engine has two variants; each module states at its top where they differ:
 *   upstream   cluster-autoscaler's behaviour, including its quirks
 *   corrected  without its defects; missing or contradictory input refuses
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DRAIN_SECOND_NS INT64_C(1000000000)

enum drain_variant { DRAIN_CORRECTED, DRAIN_UPSTREAM };

struct drain_options {
	enum drain_variant variant;

	/* eligibility */
	double utilization, gpu_utilization; /* 0.5: above it a ready node is needed */
	bool drain_unready; /* true: nodes that are not ready may go, too */
	bool ignore_daemon_sets, ignore_mirror; /* false: their requests count */

	/* pods */
	bool skip_system, skip_local_storage, skip_custom_controllers; /* true: such pods stay */
	int64_t system_timeout_ns; /* 1 h: older pods of kube-system may go without a budget */
	int64_t min_replicas; /* 0 */

	/* time */
	int64_t unneeded_ns, unready_ns; /* 10 min, 20 min */
	int64_t recheck_ns; /* 5 min: for so long a failed simulation is remembered */
	int64_t eviction_ttl_ns; /* 3 min: for so long an eviction is recent */
	int64_t simulation_ns; /* 1 s of the planner's time */
	uint32_t simulation_min_nodes; /* 10: so many are examined however long it takes */

	/* how much at once */
	int64_t max_parallelism; /* 10 nodes, empty and drained */
	int64_t max_drain_parallelism; /* 10 of them drained; upstream 1 */
	double owner_share; /* 0.25 of an owner's pods in a wave, at least one */
};

void drain_options_default(struct drain_options *o);
/* As cluster-autoscaler comes: the other variant, and one drain at a time. */
void drain_options_upstream(struct drain_options *o);

/* --- reasons */

/*
 * Why a node or a pod stays: a code, its name in answers, and what would change it. Names up to
 * NoNodeInfo, and those of pods, are cluster-autoscaler's.
 */

/* clang-format off */
/* X(constant, name, what would unblock it) */
#define DRAIN_REASON_TABLE(X)                                                                                                       \
	/* of nodes, upstream's */                                                                                                  \
	X(NONE, "NoReason", "")                                                                                                     \
	X(DISABLED_ANNOTATION, "ScaleDownDisabledAnnotation", "remove the annotation from the node")                                  \
	X(UNREADY_DISABLED, "ScaleDownUnreadyDisabled", "the node becomes ready, or unready nodes may be drained")                  \
	X(NOT_AUTOSCALED, "NotAutoscaled", "put the node into a group")                                                             \
	X(NOT_UNNEEDED_LONG_ENOUGH, "NotUnneededLongEnough", "wait until it was unneeded for --scale-down-unneeded-time")                   \
	X(NOT_UNREADY_LONG_ENOUGH, "NotUnreadyLongEnough", "wait until it was unneeded for --scale-down-unready-time")                      \
	X(GROUP_MIN_SIZE, "NodeGroupMinSizeReached", "lower the group's min, or add a node to the group")                           \
	X(GROUP_MAX_DELETIONS, "NodeGroupMaxDeletionCountReached", "wait for deletions in the group to end")                        \
	X(ATOMIC_FAILED, "AtomicScaleDownFailed", "all nodes of the group must be removable at once")                               \
	X(MINIMAL_LIMIT, "MinimalResourceLimitExceeded", "lower --drain-cluster-min, or add capacity elsewhere")                       \
	X(BEING_DELETED, "CurrentlyBeingDeleted", "wait until the node is deleted")                                                               \
	X(NOT_UNDERUTILIZED, "NotUnderutilized", "requests on it fall below --scale-down-utilization-threshold")                                     \
	X(NOT_UNNEEDED_OTHER, "NotUnneededOtherReason", "")                                                                         \
	X(RECENTLY_UNREMOVABLE, "RecentlyUnremovable", "wait for --unremovable-node-recheck-timeout: it is examined again then")                                 \
	X(NO_PLACE, "NoPlaceToMovePods", "free room on other nodes for the pods that fit nowhere")                                  \
	X(BLOCKED_BY_POD, "BlockedByPod", "see the reasons of its pods") \
	X(ON_COMPLETION, "BlockedByOnCompletionPod", "pods that are safe to evict on completion end")                               \
	X(UNEXPECTED, "UnexpectedError", "make the named field readable")                                                           \
	X(NO_NODE_INFO, "NoNodeInfo", "the Kubernetes API knows the node")                                                          \
	/* of pods, upstream's */                                                                                                   \
	X(CONTROLLER_NOT_FOUND, "ControllerNotFound", "delete the pod by hand: its owner is gone and will not replace it")   \
	X(MIN_REPLICAS, "MinReplicasReached", "give the owner more replicas")                                                       \
	X(NOT_REPLICATED, "NotReplicated", "delete the pod by hand, or annotate it cluster-autoscaler.kubernetes.io/safe-to-evict=true") \
	X(LOCAL_STORAGE, "LocalStorageRequested", "name the volumes in the pod's annotation cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes") \
	X(NOT_SAFE_TO_EVICT, "NotSafeToEvictAnnotation", "remove that annotation from the pod") \
	X(KUBE_SYSTEM_POD, "UnmovableKubeSystemPod", "give the pod a PodDisruptionBudget")                                          \
	X(NOT_ENOUGH_PDB, "NotEnoughPdb", "its PodDisruptionBudget allows disruptions: more pods become ready, or minAvailable falls") \
	/* ours */                                                                                                                  \
	X(SEVERAL_PDBS, "SeveralPdbs", "leave one PodDisruptionBudget for the pod: the API evicts no pod that has more")            \
	X(PDBS_UNKNOWN, "PdbsNotKnown", "the aggregator may list PodDisruptionBudgets, and can read them")                                    \
	X(OWNER_SHARE, "OwnerShareReached", "wait until the owner's other pods are ready again elsewhere; or raise --drain-owner-share") \
	X(THROTTLED, "ScaleDownThrottled", "wait until nodes in deletion are gone")                                                 \
	X(PARALLELISM, "ParallelismLimitReached", "wait until nodes in deletion are gone, or raise --max-drain-parallelism")         \
	X(BUDGET_CLOSED, "DisruptionBudgetReached", "wait until the schedule of the budget ends, or nodes in deletion are gone")    \
	X(SLACK_DROPS, "SlackWouldDrop", "lower the extra capacity, or add a node")                                                 \
	X(NOT_EXAMINED, "NotExamined", "time for the simulation was up; the next run examines it")                               \
	X(NOT_MEASURED, "NotMeasured", "its agent reports again")                                                                   \
	X(DESTINATION, "DestinationInWave", "it is examined again when nodes whose pods would come here are gone, or are needed")              \
	X(DELETIONS_UNPLACED, "DeletionsUnplaced", "free room for pods of nodes that are being drained already, and for those that replace evicted ones")                    \
	X(CONTROL_PLANE, "ControlPlaneNode", "drain it by hand; or remove the label, if it is no node of the control plane")                    \
	X(CORDONED, "Cordoned", "remove the node, or uncordon it")                                                                        \
	X(NOT_ROBUST, "NotRobust", "free room, so that its pods fit wherever the scheduler puts the others; or give --drain-not-robust") \
	X(GROUP_FALLS, "PodGroupBelowMinimum", "all pods of the group may leave and fit elsewhere; or it has more than its minimum")
/* clang-format on */

enum drain_reason {
#define X(name, text, unblock) DRAIN_##name,
	DRAIN_REASON_TABLE(X)
#undef X
		DRAIN_REASONS
};

const char *drain_reason_name(enum drain_reason r); /* "NotUnderutilized" */
const char *drain_reason_unblock(enum drain_reason r); /* "" where nothing would */

/* Of pods that fit on no other node, by what refuses them. */
enum drain_remedy {
	DRAIN_ADD_LARGE_NODE,
	DRAIN_LET_ADMIT,
	DRAIN_ASK_LATER,
	DRAIN_LABEL_NODE,
	DRAIN_TOLERATE,
	DRAIN_UNCORDON,
	DRAIN_REMEDIES,
};

extern const char *const drain_remedies[DRAIN_REMEDIES];

/* The word for the count: "1 pod", "0 pods". */
static inline const char *drain_plural(uint64_t count, const char *one, const char *more)
{
	return count == 1 ? one : more;
}
