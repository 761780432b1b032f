/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel itself says of a pod on this node, remembered over time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NODE_TRUTH_SAMPLES = 8192 };

struct node_truth {
	char pod[160]; /* its cgroup below a hierarchy: "kubepods/burstable/podUID" */
	size_t count;
	struct {
		int64_t unix_ns;
		double cpu_ns; /* used since the pod began */
	} samples[NODE_TRUTH_SAMPLES];
};

/* Finds the cgroup of the pod; false while there is none. */
bool node_truth_find(struct node_truth *t, const char *uid);
/* Reads once. Samples beyond the room are not kept. */
void node_truth_sample(struct node_truth *t);
/*
 * Millicores from one time to another: what the samples within prove, and what those around allow.
 * NaN where that reaches beyond the samples.
 */
struct node_truth_range {
	double low, high;
};

struct node_truth_range node_truth_cpu_milli(const struct node_truth *t, int64_t start_ns,
					     int64_t end_ns);

/* What the kubelet has set on the pod's cgroup, read now. */
struct node_truth_bounds {
	double shares; /* of CPU: 1024 for each core that the pod requests; -1 with cgroups v2 */
	double weight; /* likewise, from 1 to 10000; -1 with cgroups v1 */
	double cpu_milli, mem_bytes; /* limits; NaN or -1: none */
};

struct node_truth_bounds node_truth_bounds(const struct node_truth *t);
/* What kubelet makes of shares with cgroups v2: 2 to 262144 become 1 to 10000, rounded down. */
double node_truth_weight(int shares);

/* Whether a cgroup of any pod is there, in any hierarchy that kubelet uses. */
bool node_truth_any_pod(void);
