/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Agents that are not there: what they would have measured of a cluster's nodes and pods, told to
 * an aggregator.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tests/kube_truth.h"

/* Where the agents of all nodes stand; zeroed, they have not begun. */
struct kube_usage {
	uint64_t sequence;
	int64_t end_ns; /* of the last interval */
};

/*
 * For each node of the truth, which must stay the same, the time since the last call (at first the
 * last 15 seconds), with an entry for each of its pods, sealed and sent as an agent does, until it
 * is acknowledged. Values are those of interval_make(). The test fails where that takes too long.
 */
void kube_usage_send(struct kube_usage *u, const struct kube_truth *truth, const char *url,
		     const char *key_path);

/* What a node of 16 CPUs and 64 GiB uses, steadily or in bursts, by the one pod it has. */
struct kube_load {
	const char *node, *pod_uid;
	const char *container_id; /* of the pod's one container, which uses all of it; NULL: none */
	double cpu_milli, sigma_milli, mem_bytes;
};

/*
 * The same of nodes that use as said: at first for the last 15 minutes, so that every window is
 * covered. Intervals are 15 s at most. An aggregator that was restarted is told by a kube_usage of
 * its own.
 */
void kube_usage_send_loads(struct kube_usage *u, const struct kube_load *loads, size_t count,
			   const char *url, const char *key_path);
