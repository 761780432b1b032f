/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cluster for tests, made through a real API server: nodes of several shapes, and workloads that
 * ask in many ways.
 */
#pragma once

#include <stddef.h>

#include "tests/control_plane.h"

enum {
	WORLD_NODES = 100,
	/*
	 * Pods of all workloads, each of which fits; one more stays without a node, and one has
	 * ended.
	 */
	WORLD_PODS = 386,
};

/* All nodes and workloads; their controllers and the scheduler do the rest. */
void kube_world_make(struct control_plane *c);
/* Node number i, as a POST makes it. */
void kube_world_make_node(struct control_plane *c, size_t i);
/* Says what a kubelet would of every pod that has a node and no phase yet. */
void kube_world_run_pods(struct control_plane *c);

/* One running pod that the selector matches has succeeded. */
void kube_world_end_pod(struct control_plane *c, const char *namespace, const char *selector);
/* Deletes all pods of node i. */
void kube_world_empty_node(struct control_plane *c, size_t i);

/* The CRD of scheduling.x-k8s.io ElasticQuotas, and two of them as soon as it is served. */
void kube_world_make_quotas(struct control_plane *c);
