/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owners of pods: how many replicas they want and have, and how many of them a wave may take away
 * at once, whether they have a PodDisruptionBudget or not.
 *
 *     allowed = max(1, floor(share * wanted))
 *     taken + (wanted - ready) + 1 <= allowed      for each ready pod
 *
 * so that what an owner lacks already counts, and pods that are not ready are free. Who wants
 * nothing known wants what there is.
 */
#ifndef EVENKEEL_AGGREGATOR_POLICY_DRAIN_DRAIN_OWNERS_H
#define EVENKEEL_AGGREGATOR_POLICY_DRAIN_DRAIN_OWNERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/model/model.h"
#include "aggregator/policy/drain/drain_options.h"
#include "shared/error.h"

struct drain_replicas {
	int32_t current, target;
};

/*
 * Of the workload that owns a pod: how many pods it has, and how many it will have. A Job's target
 * is what is left of its completions, if that is less than its parallelism. -ENOENT for NULL;
 * -ENOTSUP for what has no replicas (a DaemonSet).
 *
 *   upstream   of a StatefulSet only the pods of its current revision are counted, so that a
 *              rollout looks like a loss
 *   corrected  all pods; a target below 0 is 0
 */
int drain_replicas_of(const struct object *workload, enum drain_variant variant,
		      struct drain_replicas *out);

struct drain_owners;

/* Over the records of one view, which must outlive it. cluster may be NULL. */
struct drain_owners *drain_owners_new(double share, const struct cluster *cluster);
void drain_owners_free(struct drain_owners *o); /* NULL is allowed */
/* Every pod of the view, once, before anything is asked. */
void drain_owners_count(struct drain_owners *o, const struct kube_pod *pod);
/*
 * Takes the pods away, all or none: NONE, or OWNER_SHARE with the owner's numbers in why (may be
 * NULL) and the pod that was one too many in *pod (may be NULL). More of one owner than may be away
 * at once are taken where no others of it are: they go one after the other. Pods without an owner
 * are free, and a pod is taken once.
 */
enum drain_reason drain_owners_take(struct drain_owners *o, const struct kube_pod *const *pods,
				    size_t count, const struct kube_pod **pod, struct error *error);
/*
 * How many more of that owner's may go; below 0: it lacks more than may be away. False: no pod of
 * it was counted.
 */
bool drain_owners_left(const struct drain_owners *o, const char *uid, int64_t *left);
/* As many of its owner's pods run as it wants; one that ends is replaced already. */
bool drain_owners_is_whole(const struct drain_owners *o, const struct kube_pod *pod);
void drain_owners_give(struct drain_owners *o, const struct kube_pod *const *pods, size_t count);

#endif
