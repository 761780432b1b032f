/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks of a candidate before any simulation; the first reason that applies is reported:
 *
 *   NoNodeInfo or UnexpectedError, RecentlyUnremovable, CurrentlyBeingDeleted,
 *   ScaleDownDisabledAnnotation, NotAutoscaled, UnexpectedError (no utilisation),
 *   ScaleDownUnreadyDisabled, NotUnderutilized (of ready nodes only)
 *
 *   upstream   a node is in deletion while its taint ToBeDeletedByClusterAutoscaler is younger than
 *              5 minutes
 *   corrected  - nodes with a deletionTimestamp, tainted by Karpenter, or annotated
 *                evenkeel.io/draining are in deletion, too, at any age of a taint
 *              - a recent failure keeps its reason (drain_timers.h), and is reported last
 *              - karpenter.sh/do-not-disrupt forbids a drain, as does every value of
 *                scale-down-disabled but "false"
 *              - a node with an unreadable pod is UnexpectedError
 *              - a node with a silent agent, where others report, is NotMeasured
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/model/object.h"
#include "aggregator/policy/drain/drain_options.h"
#include "aggregator/policy/drain/drain_timers.h"
#include "shared/error.h"

/* --- utilisation */

/*
 * The share of a node that its pods request: of CPU or memory, the larger; or of GPUs or devices.
 *
 *     share = (sum of requests - left out) / (allocatable - left out)
 *
 * Pods of DaemonSets and mirror pods are left out as the options say; overdue pods count in no sum.
 *
 *   upstream   ended pods count, too; a node with a GPU's label and without GPUs is idle; the
 *              denominator may become 0 or negative
 *   corrected  only active pods count; a node without GPUs is judged by CPU and memory; an empty
 *              denominator is an error
 */

/* Devices of dynamic resource allocation on a node, by pool. */
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
	const char *resource; /* by which; static, or borrowed from the devices */
	bool gpu; /* the threshold is that of GPUs */
};

/* devices may be NULL. -EINVAL, with the resource that cannot be divided: the node is not drained. */
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
	bool unmeasured; /* others are measured, and this one is not */
	const char *hidden; /* about an unreadable pod on it; NULL: none */
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

/* Whether only DaemonSet and mirror pods are active. */
bool drain_is_empty(const struct kube_pod *const *pods, size_t count);
/* Whether a drain is done: cordoned, only DaemonSet and mirror pods are left, no other actor. */
bool drain_is_drained(const struct kube_node *node, const struct kube_pod *const *pods,
		      size_t count);

/* Whether an actor removes the node already; the reason says by which mark. */
bool drain_is_in_deletion(enum drain_variant variant, const struct kube_node *node, int64_t now_ns,
			  struct error *error);
/* Whether an annotation forbids a drain. */
bool drain_is_disabled(const struct drain_options *o, const struct kube_node *node,
		       struct error *error);
/* Whether it has GPUs as an extended resource; upstream: or a label of a node with GPUs. */
bool drain_has_gpu(const struct kube_node *node, enum drain_variant variant);
/* A taint's value as Unix time; -ENOENT: no such taint, -EINVAL: no time. */
int drain_taint_time(const struct kube_node *node, const char *key, int64_t *out_ns);

#define DRAIN_TAINT_DELETION  "ToBeDeletedByClusterAutoscaler"
#define DRAIN_TAINT_CANDIDATE "DeletionCandidateOfClusterAutoscaler"
