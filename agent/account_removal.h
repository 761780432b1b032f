/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removed cgroups: what each used after its last reading goes to its workload and to what held it,
 * once. Pure.
 */
#ifndef EVENKEEL_AGENT_ACCOUNT_REMOVAL_H
#define EVENKEEL_AGENT_ACCOUNT_REMOVAL_H

#include <stddef.h>
#include <stdint.h>

#include "agent/account_table.h"
#include "agent/sampler.h"

struct removals {
	struct orphan *orphans; /* owned; by the unknown parent's id */
	struct vanished *vanished; /* owned; by id, oldest first */
	struct unseen *unseen; /* owned; removed without a track, by id, until the next settle */
	uint32_t dropped; /* removals whose use could not be placed, since the last publish */
};

/* What a removal, and a cgroup that is missed, is measured by. */
struct removal_time {
	int64_t mono_ns; /* now */
	int64_t tick_ns; /* of the last tick */
	int64_t capacity_milli; /* of the machine; 0: not known */
};

void removals_fini(struct removals *d);
/* In the order of removal; the table is that of the last tick. */
void removals_take(struct removals *d, struct account_table *table, const struct removal *list,
		   size_t count, const struct removal_time *time);
/* After every sync of the table, before the tick: finds the places of what waited for it. */
void removals_settle(struct removals *d, struct account_table *table,
		     const struct removal_time *time);
/* With account_table_next(): the workloads that are gone are forgotten. */
void removals_next(struct removals *d);

#endif
