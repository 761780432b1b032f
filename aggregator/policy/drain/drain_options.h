/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the drain planner's rules can be told; one struct for all of them.
 *
 * Two variants of one engine, and each module says at its top where they differ:
 *   upstream   cluster-autoscaler's, quirk for quirk
 *   corrected  without its defects, and what is missing or contradicts itself refuses
 */
#ifndef EVENKEEL_AGGREGATOR_POLICY_DRAIN_DRAIN_OPTIONS_H
#define EVENKEEL_AGGREGATOR_POLICY_DRAIN_DRAIN_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum drain_variant { DRAIN_CORRECTED, DRAIN_UPSTREAM };

struct drain_options {
	enum drain_variant variant;

	/* eligibility */
	double utilization,
		gpu_utilization; /* 0.5: above it a ready node is needed; equal passes */
	bool drain_unready; /* true: nodes that are not ready may go, too */
	bool ignore_daemon_sets, ignore_mirror; /* false: their requests count */
	const char *const *gpu_labels; /* borrowed; labels that tell a node with GPUs */
	size_t gpu_label_count;
	const char *gpu_resource; /* "nvidia.com/gpu" */

	/* pods */
	bool skip_system, skip_local_storage, skip_custom_controllers; /* true: such pods stay */
	int64_t system_timeout_ns; /* 1 h: older pods of kube-system may go without a budget */
	int32_t min_replicas; /* 0 */

	/* time */
	int64_t unneeded_ns, unready_ns; /* 10 min, 20 min */
	int64_t recheck_ns; /* 5 min: for so long a failed simulation is remembered */
	int64_t eviction_ttl_ns; /* 3 min: for so long an eviction is recent */
	int64_t simulation_ns; /* 1 s of the planner's time */
	uint32_t simulation_min_nodes; /* 10: so many are examined however long it takes */

	/* how much at once */
	uint32_t max_parallelism; /* 10 nodes, empty and drained */
	uint32_t max_drain_parallelism; /* 10 of them drained; upstream 1 */
	double owner_share; /* 0.25 of an owner's pods in a wave, at least one */
};

void drain_options_default(struct drain_options *o);
/* As cluster-autoscaler comes: the other variant, and one drain at a time. */
void drain_options_upstream(struct drain_options *o);

#endif
