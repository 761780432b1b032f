/* SPDX-License-Identifier: Apache-2.0 */
/* From a tick's tracks and readings to the samples of culprit.h. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/account_table.h"
#include "agent/culprit.h"
#include "agent/topology.h"

/* The pods are those of Kubernetes, containers without one, and systemd units. */
struct account_culprit {
	struct culprit culprit;
	struct {
		uint64_t id; /* of the v2 cgroup; 0: none, or not watched */
		bool based; /* the counters below hold a reading */
		uint64_t some_ns, full_ns; /* PSI of CPU */
		uint32_t apart; /* bit per slot: that pod cannot run on this one's CPUs */
	} pods[CULPRIT_PODS];
};

static_assert(CULPRIT_PODS <= 32, "bits of apart");

/* The tick after it was sampled into the tracks. */
struct culprit_tick {
	int64_t dt_ns; /* since the tick before */
	int64_t slow_dt_ns; /* since the slow tick before */
	bool slow;
	double node_used_ns; /* CPU time of the whole machine */
};

void account_culprit_tick(struct account_culprit *a, const struct account_table *table,
			  struct topology *t, const struct culprit_tick *k);
/* Ref 0: the estimate names nobody, or the pod is not watched. */
struct contention_cause account_culprit_of(const struct account_culprit *a,
					   const struct workload *w);

/*
 * The v2 ids of the watched pods, whose PSI of CPU the next tick needs from the files; returns
 * their number.
 */
size_t account_culprit_watched(const struct account_culprit *a, uint64_t ids[CULPRIT_WATCHED]);
