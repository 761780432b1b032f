/* SPDX-License-Identifier: Apache-2.0 */
/* Pods so recent on a node that its measurements lack them, or part of their use. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "aggregator/policy/score/score.h"

/* How long a pod needs to show up in the measurements, as Trimaran assumes. */
enum { RECENT_POD_SECONDS = 60 };

/* Trimaran's rule: placed after the window, or less than a minute before its end. Unix seconds. */
bool recent_pod_counts(int64_t placed_s, int64_t window_end_s);

/* Sums of struct expected_use over several pods. */
struct recent_use {
	int64_t cpu_milli, cpu_high_milli, mem_bytes;
	/* Of pods without any measurement. */
	int64_t unseen_cpu_milli, unseen_high_cpu_milli, unseen_mem_bytes;
};

/*
 * The use of the node's recent pods (struct view_recent) that its window lacks: their mean since they
 * are measured, else their expected use (expected_use.h), each times the share of the window
 * in which the pod was not measured. upstream: CPU only, of pods by recent_pod_counts(), in full.
 */
struct recent_use recent_pods_expect(const struct view *v, const struct view_node *n,
				     const struct score_query *q);
