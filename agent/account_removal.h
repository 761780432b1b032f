/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The use of removed cgroups after their last reading, counted once for workload and ancestors.
 * Pure.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "agent/account_table.h"
#include "agent/sampler.h"

struct removals {
	struct orphan *orphans; /* owned; by the unknown parent's id */
	struct vanished *vanished; /* owned; by id, oldest first */
	struct unseen *unseen; /* owned; removed without a track, by id, until the next settle */
	uint32_t dropped; /* removals without a place for their use, since the last publish */
};

/* The times that bound the use of a removed or vanished cgroup. */
struct removal_time {
	int64_t mono_ns; /* now */
	int64_t tick_ns; /* of the last tick */
	int64_t capacity_milli; /* of the machine; 0: unknown */
};

void removals_fini(struct removals *d);
/* The list is in the order of removal, the table that of the last tick. */
void removals_take(struct removals *d, struct account_table *table, const struct removal *list,
		   size_t count, const struct removal_time *time);
/* After every sync of the table, before the tick: places what waited for a track. */
void removals_settle(struct removals *d, struct account_table *table,
		     const struct removal_time *time);
/* With account_table_next(): forgets the ended workloads. */
void removals_next(struct removals *d);
