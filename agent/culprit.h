/* SPDX-License-Identifier: Apache-2.0 */
/* Which neighbour a pod's waiting for CPU follows: an estimate from samples. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "shared/interval.h"

enum {
	CULPRIT_WATCHED = 8, /* pods at most, those that wait most */
	CULPRIT_PODS = 24, /* and with the neighbours that use most CPU */
	/* Users of CPU are these pods, by their slot, and: */
	CULPRIT_OTHERS = CULPRIT_PODS, /* all other pods */
	CULPRIT_SYSTEM, /* tasks in no pod */
	CULPRIT_USERS,
};

/* The waiting of a pod worth sampling. */
#define CULPRIT_LEAST_WATCHED 0.02

/* A pod, once a second. */
struct culprit_pod {
	uint32_t ref; /* of its entity */
	float use; /* cores, of the interval so far */
	float waiting; /* share of the last few seconds, less throttling; 0: unknown, too */
};

struct culprit_sums; /* of a watched pod */

struct culprit {
	struct {
		uint32_t ref; /* 0: the slot is free */
		float waiting; /* as chosen */
		struct culprit_sums *sums; /* owned; NULL: not watched */
	} pods[CULPRIT_PODS];
	size_t watched; /* pods with sums */
};

/* One tick of a watched pod. */
struct culprit_sample {
	double seconds; /* since the sample before */
	double full; /* PSI full of CPU in seconds; where the kernel has none: some */
	double some[CULPRIT_USERS]; /* PSI some of each watched pod, else 0 */
	double use[CULPRIT_USERS]; /* CPU seconds; 0: it cannot run on the pod's CPUs */
};

void culprit_fini(struct culprit *c);
/*
 * Once a second: chooses the pods to watch and their neighbours. A pod that stays keeps its slot,
 * and its sums while it is watched.
 */
void culprit_choose(struct culprit *c, const struct culprit_pod *pods, size_t count);
/* Its slot, or -1. */
int culprit_slot(const struct culprit *c, uint32_t ref);
void culprit_add(struct culprit *c, int slot, const struct culprit_sample *sample);
/*
 * After the samples of a second: its throttled time in seconds. While a pod is throttled, its samples count by
 * the second, since throttled time is read no more often.
 */
void culprit_end_second(struct culprit *c, int slot, double throttled);
/* Ref 0: the estimate names nobody. */
struct contention_cause culprit_find(const struct culprit *c, int slot);
