/* SPDX-License-Identifier: Apache-2.0 */
/* Many nodes as one: what they have, promised and use together. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "aggregator/api/limits.h"
#include "shared/jsonw.h"

/* Of the nodes that were heard lately. A sum without any addend is NaN. */
struct nodes_use {
	size_t nodes;
	/* where the newest use is known */
	double cpu_capacity_milli, mem_capacity_bytes;
	double cpu_allocatable_milli, mem_allocatable_bytes;
	/* by the rows of USAGE_AVERAGED */
	double latest[USAGE_AVERAGED_COUNT], mean[USAGE_AVERAGED_COUNT][WINDOWS];
};

struct nodes_total {
	enum limits_unlimited policy;
	bool api; /* one is followed */
	size_t nodes, states[NEVER + 1]; /* by enum freshness */
	size_t known, ready, unschedulable; /* as the API has it */
	uint64_t pods;
	struct resources capacity, allocatable; /* owned, as those in sums */
	struct view_sums sums;
	struct limits_shares shares;
	struct nodes_use use;
};

void nodes_total_init(struct nodes_total *t, enum limits_unlimited policy, bool api);
void nodes_total_fini(struct nodes_total *t);
void nodes_total_add(struct nodes_total *t, const struct view_node *n, int64_t now_ns);
/*
 * "total":{..}: members as a node's, but ready, unschedulable and source count nodes; see nodes.c.
 */
void nodes_total_write(struct jsonw *w, const struct nodes_total *t);

/* All that the API tells of it, borrowed; else CPU and memory as measured, in room. */
const struct resources *nodes_capacity(const struct view_node *n, struct resources *room);
const struct resources *nodes_allocatable(const struct view_node *n, struct resources *room);
/* key and its object; nothing where nothing is known. */
void nodes_write_resources(struct jsonw *w, const char *key, const struct resources *r);
