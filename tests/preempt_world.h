/* SPDX-License-Identifier: Apache-2.0 */
/* Small seeded clusters with quotas, in plain numbers, and what the product is told of them. */
#pragma once

#include "tests/preempt_fixture.h"

enum {
	NODES = 4,
	PODS = 10,
	SPACES = 5,
	BUDGETS = 3,
	CRITICAL = 2000000000,
	NOW_SECONDS = 3600,
};

enum amount { CPU, GPU, AMOUNTS };

extern const char *const preempt_world_amounts[]; /* by enum amount */
extern const char *const preempt_world_spaces[]; /* namespaces; the last is without a quota */

struct toy_pod {
	char name[16];
	int space, node, priority, start; /* start -1: not yet */
	int asks[AMOUNTS];
	bool db, going, gang; /* gang: of the group of its namespace */
};

struct toy_quota {
	bool there, names[AMOUNTS]; /* in min; max names the same */
	int min[AMOUNTS], max[AMOUNTS];
	int min_runtime, evictions, window; /* seconds; window 0: no bound */
};

struct world {
	int node_count, pod_count, past_count, rule;
	int room[NODES][AMOUNTS], pods_max[NODES];
	struct toy_quota quotas[SPACES];
	struct toy_pod pods[PODS], self;
	int budget_space[BUDGETS], budget_allowed[BUDGETS], budget_count;
	struct victim_past past[3];
	int gang_min[SPACES]; /* 0: there is no such group */
	bool soft;
};

void preempt_world_draw(struct world *w, uint64_t seed);
/* Without the pods of the mask; backwards: told in the opposite order. */
void preempt_world_build(struct preempt_fixture *f, const struct world *w, uint32_t without,
			 bool backwards);
/* The pod that asks; the caller drops it. */
struct kube_pod *preempt_world_record(const struct world *w);
