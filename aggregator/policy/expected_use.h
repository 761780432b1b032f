/* SPDX-License-Identifier: Apache-2.0 */
/* The expected use of a pod, for scores, the extender, reservations, drains and slots. Pure. */
#pragma once

#include "aggregator/policy/score/score.h"
#include "aggregator/state/reservations.h"

/*
 * The measured use of the pods of that owner, else the last one of the workload (workload_key());
 * known is false without any. Both may be "".
 */
struct score_owner expected_use_of_owner(const struct view *v, const char *owner_uid,
					 const char *workload);
struct score_owner expected_use_of_pods_owner(const struct view *v, const struct kube_pod *pod);
/*
 * By the first known source of CPU use:
 *
 *     workload   cpu_milli is the mean of its measured pods, cpu_high_milli their 95th percentile;
 *                now, or when some were measured last
 *     limits     if args->use_limits says so
 *     requests   times args->default_requests_multiplier; a container's limit replaces a missing request
 *     default    args->default_requests_cpu_milli, per pod
 *
 * For the last three, cpu_milli is the guess and cpu_high_milli the larger of it and
 * args->guess_cpu_milli; neither exceeds the pod's limit.
 * Memory: the workload's mean working set, else the pod's request. Containers, sidecars and overhead
 * count; other init containers end before a window shows them.
 */
void expected_use_read(const struct pod_spec *pod, const struct score_args *args,
		       const struct score_owner *owner, struct expected_use *out);
/* The pod's reservation on that node, by the usual arguments. Borrows from pod and name. */
struct reservation expected_use_reservation(const struct view *v, const struct kube_pod *pod,
					    const char *node);
const char *expected_use_source_name(enum use_source source); /* "workload", "requests", .. */
