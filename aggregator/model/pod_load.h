/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests and limits of pods, counted in each of the ways that scores need. Sums of CPU and memory
 * are kept per node, so the cost of a score does not grow with the pods of a node. Pure.
 */
#pragma once

#include "aggregator/model/object.h"

/* One resource over some pods: millicores, bytes or whole units. */
struct pod_load {
	int64_t requests; /* as the kube-scheduler counts */
	int64_t limits; /* of pods as Kubernetes counts: init containers, overhead */
	int64_t limits_running; /* of containers that have one, sidecars and overhead included */
	int64_t unlimited_requests; /* requests of containers without a limit */
	int64_t requests_trimaran,
		limits_trimaran; /* as Trimaran counts: limits at least requests */
	int64_t limits_containers; /* as KEP-217 counts: containers only */
	uint32_t unlimited; /* containers without a limit */
	/* containers whose limit could not be read: they may use the whole node */
	uint32_t unknown;
};

/* The bound on a pod's use of one resource. */
struct pod_bound {
	int64_t limit; /* as Kubernetes counts: init containers, overhead */
	int64_t limit_running; /* of containers that have one, sidecars and overhead included */
	int64_t unlimited_requests; /* of containers without one */
	uint32_t unlimited;
};

/*
 * While it runs containers and sidecars count; other init containers are gone when neighbours
 * compete. A limit of 0 is none, as for the kubelet, and a limit of the whole pod replaces those of
 * its containers.
 */
struct pod_bound pod_load_bound(const struct pod_spec *pod, enum resource_id resource);
/* The limit of a pod as Trimaran counts it. */
int64_t pod_load_limit_trimaran(const struct pod_spec *pod, enum resource_id resource);
/* One pod more. Sums saturate. */
void pod_load_add(struct pod_load *load, const struct pod_spec *pod, enum resource_id resource);
/*
 * The same of a record: a resize in place, which its spec does not know, counts as the
 * kube-scheduler counts it.
 */
void pod_load_add_record(struct pod_load *load, const struct kube_pod *pod,
			 enum resource_id resource);

/*
 * The same of a resource by its name, other than CPU and memory. Of these a container without a
 * limit uses ephemeral storage alone.
 */
struct pod_bound pod_load_bound_named(const struct pod_sums *sums, const char *resource);
void pod_load_add_named(struct pod_load *load, const struct pod_sums *sums, const char *resource);
