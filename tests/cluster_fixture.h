/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small cluster as a Kubernetes API and its agents tell it, for tests of everything that joins
 * the two.
 */
#pragma once

#include "aggregator/state/view.h"

/*
 * As of VIEW_FIXTURE_NOW_NS. Nodes of the API have 4 CPUs and 8 GiB, allocatable 3.8 and 7 GiB, 110
 * pods:
 *
 *   alpha  zone=a, ready, 2 GPUs; its agent fresh, 2 s old.
 *   bravo  zone=b, not ready; its agent late, 60 s old, measures no pod.
 *   lima   zone=b, ready, cordoned; without an agent.
 *   stray  heard, but unknown to the API.
 *   ghost  only named by a pod.
 *
 *   batch/done       alpha  Succeeded; requests 1 CPU, which counts no more
 *   batch/tiny       alpha  Running; limits 125m and 100 MB, which the kernel keeps as 130m and whole pages
 *   db/pg-0          alpha  Running, Guaranteed 1 CPU and 2 GiB; the kernel enforces 2 CPUs. StatefulSet pg
 *   shop/web-1       alpha  Running; app 500m/512Mi with limits 1/1Gi, proxy 100m without any. Deployment web by ReplicaSet
 *   kube-system/dns  ghost  Running; 100m
 *   shop/web-2       bravo  Running, not measured; as web-1
 *   shop/wait        Pending without a node; requests 3 CPUs
 *   and a cgroup of a pod on alpha that the API does not know.
 *
 * Nodes and pods are in sync, PodDisruptionBudgets forbidden, ElasticQuotas absent, ReplicaSets
 * stale for 40 s with 3 relists, 2 watch errors and 1 object skipped; all else is in sync and
 * empty.
 */
struct view *cluster_fixture_new(void);
/* The same API, but nodes in that state. */
struct view *cluster_fixture_with(enum source_state nodes, const char *message);
/*
 * An API with so many nodes, of so many pods each ("ns-K/pod-NNNNN", two namespaces), and no
 * agents.
 */
struct view *cluster_fixture_large(size_t nodes, size_t pods);
