/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first look at a candidate, before any simulation; the first reason that applies is told:
 *
 *   NoNodeInfo or UnexpectedError, RecentlyUnremovable, CurrentlyBeingDeleted,
 *   ScaleDownDisabledAnnotation, NotAutoscaled, UnexpectedError (no utilisation),
 *   ScaleDownUnreadyDisabled, NotUnderutilized (of ready nodes only)
 *
 *   upstream   a node is in deletion while its taint ToBeDeletedByClusterAutoscaler is younger than
 *              5 minutes
 *   corrected  - in deletion are also nodes with a deletionTimestamp, tainted by Karpenter, or
 *              annotated evenkeel.io/draining, whatever the age of a taint: somebody is at it, or
 *              left it behind
 *              - a node that failed lately is told with the reason of then (drain_timers.h),
 *                and only where nothing else is told now
 *              - karpenter.sh/do-not-disrupt forbids, too; and of scale-down-disabled any value but
 *                "false"
 *              - a node with a pod that cannot be read is UnexpectedError
 *              - a node whose agent is silent, where others report, is not known to be idle
 *                (NotMeasured)
 */
#ifndef EVENKEEL_AGGREGATOR_POLICY_DRAIN_DRAIN_ELIGIBILITY_H
#define EVENKEEL_AGGREGATOR_POLICY_DRAIN_DRAIN_ELIGIBILITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/model/object.h"
#include "aggregator/policy/drain/drain_options.h"
#include "aggregator/policy/drain/drain_timers.h"
#include "shared/error.h"

/* --- utilisation */

/*
 * How much of a node its pods request: the larger of the shares of CPU and memory, or that of its
 * GPUs or devices alone.
 *
 *     share = (sum of requests - those left out) / (allocatable - those left out)
 *
 * Left out of both are DaemonSets' and mirror pods, where the options say so; out of the sum only,
 * pods whose end is overdue.
 *
 *   upstream   pods that ended count, too; a node with a GPU's label and without GPUs is idle; the
 *              denominator may become 0 or negative
 *   corrected  only pods whose requests count (kube_pod_is_active()); without GPUs, CPU and memory
 *              decide; nothing left to divide by is an error
 */

/* Devices of dynamic resource allocation on one node, by pool. */
struct drain_device_pool {
	const char *name;
	int64_t devices, allocated;
};

struct drain_devices {
	const struct drain_device_pool *pools; /* of the node; none: it has no devices */
	size_t count;
	bool incomplete; /* not all slices of a pool are published */
};

enum drain_gpu {
	DRAIN_GPU_DETECT, /* by label, or by what is allocatable */
	DRAIN_GPU_NONE,
	DRAIN_GPU_EXTENDED, /* a node with GPUs as an extended resource */
};

struct drain_utilization {
	double cpu, memory; /* shares; 0 where GPUs or devices decide */
	double share; /* what decides */
	const char *resource; /* by which; borrowed from the options, the devices, or static */
	bool gpu; /* the threshold is that of GPUs */
};

/*
 * devices may be NULL. -EINVAL, the reason says what cannot be divided: such a node is never
 * drained.
 */
int drain_utilization(const struct drain_options *o, const struct kube_node *node,
		      const struct kube_pod *const *pods, size_t count,
		      const struct drain_devices *devices, enum drain_gpu gpu, int64_t now_ns,
		      struct drain_utilization *out, struct error *error);

/* --- eligibility */

struct drain_candidate {
	const struct kube_node *node; /* NULL: the API does not know it */
	const struct kube_pod *const *pods;
	size_t pod_count;
	bool grouped; /* it is in a group (drain_groups.h) */
	bool silent; /* others are measured, and this one is not */
	const char *hidden; /* what is known of a pod on it that cannot be read; NULL: all can be */
	const struct drain_devices *devices; /* NULL: none */
	enum drain_gpu gpu;
};

struct drain_eligible {
	enum drain_reason reason; /* DRAIN_NONE: it may be simulated */
	bool recent; /* the reason is that of an earlier simulation */
	bool measured; /* utilization is set */
	struct drain_utilization utilization;
	struct error error; /* one sentence */
};

/* failed may be NULL. */
void drain_eligibility(const struct drain_options *o, const struct drain_candidate *c,
		       const struct drain_unremovable *failed, int64_t now_ns,
		       struct drain_eligible *out);

/*
 * Whether a drain of the node is done: it is cordoned, none but its own pods are left, and nobody
 * else takes it away.
 */
bool drain_is_drained(const struct kube_node *node, const struct kube_pod *const *pods,
		      size_t count);

/* Whether somebody takes the node away already; why (may be NULL) says how one knows. */
bool drain_is_in_deletion(enum drain_variant variant, const struct kube_node *node, int64_t now_ns,
			  struct error *error);
/* Whether an annotation of the node forbids to drain it. */
bool drain_is_disabled(const struct drain_options *o, const struct kube_node *node,
		       struct error *error);
/*
 * The value of a taint of cluster-autoscaler's as Unix time; -ENOENT without it, -EINVAL for one
 * that is no time.
 */
int drain_taint_time(const struct kube_node *node, const char *key, int64_t *out_ns);

#define DRAIN_TAINT_DELETION  "ToBeDeletedByClusterAutoscaler"
#define DRAIN_TAINT_CANDIDATE "DeletionCandidateOfClusterAutoscaler"

#endif
