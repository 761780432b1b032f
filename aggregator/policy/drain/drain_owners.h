/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owners of pods: their replicas, and how many of them a wave may take away at once, with or without
 * a PodDisruptionBudget.
 *
 *     allowed = max(1, floor(share * wanted))
 *     taken + (wanted - ready) + 1 <= allowed      for each ready pod
 *
 * Missing replicas count; unready pods are free. An owner of unknown size wants its present pods.
 */
#pragma once

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
 * Present and wanted pods of a workload. A Job wants the lesser of its open completions and its
 * parallelism. -ENOENT for NULL; -ENOTSUP for a kind without replicas (DaemonSet).
 *
 *   upstream   a StatefulSet counts only pods of its current revision
 *   corrected  all pods; a target below 0 is 0
 */
int drain_replicas_of(const struct object *workload, enum drain_variant variant,
		      struct drain_replicas *out);

struct drain_owners;

/* Over the records of one view, which must outlive it. cluster may be NULL. */
struct drain_owners *drain_owners_new(double share, const struct cluster *cluster);
void drain_owners_free(struct drain_owners *o); /* NULL is allowed */
/* Once for every pod of the view, before other calls. */
void drain_owners_count(struct drain_owners *o, const struct kube_pod *pod);
/*
 * Takes the pods away, all or none: NONE, or OWNER_SHARE with the owner's numbers and the first pod
 * too many in *pod (may be NULL). More pods of one owner than allowed are taken if no others of it
 * are away: they go one after the other. Pods without an owner are free. The caller gives a pod
 * back before it takes it again.
 */
enum drain_reason drain_owners_take(struct drain_owners *o, const struct kube_pod *const *pods,
				    size_t count, const struct kube_pod **pod, struct error *error);
/* How many more of the owner's pods may go, or below 0. False: none of its pods was counted. */
bool drain_owners_left(const struct drain_owners *o, const char *uid, int64_t *left);
/* Whether the owner has all of its replicas, so a pod that ends is replaced already. */
bool drain_owners_is_whole(const struct drain_owners *o, const struct kube_pod *pod);
/* Undoes a take of the same pods. */
void drain_owners_give(struct drain_owners *o, const struct kube_pod *const *pods, size_t count);
