/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removed cgroups: what each used after its last reading goes to its workload and to what held it,
 * once. Pure.
 */
#ifndef EVENKEEL_AGENT_ACCOUNT_DEPART_H
#define EVENKEEL_AGENT_ACCOUNT_DEPART_H

#include <stddef.h>
#include <stdint.h>

#include "agent/account_table.h"
#include "agent/sampler.h"

struct departures {
	struct orphan *orphans; /* owned; by the unknown parent's id */
	struct vanished *vanished; /* owned; by id, oldest first */
	struct unseen *unseen; /* owned; departed without a track, by id, until the next settle */
	uint32_t dropped; /* departures whose use could not be placed, since the last publish */
};

/* What a departure, and a cgroup that is missed, is measured by. */
struct depart_time {
	int64_t mono_ns; /* now */
	int64_t tick_ns; /* of the last tick */
	int64_t capacity_milli; /* of the machine; 0: not known */
};

void departures_fini(struct departures *d);
/* In the order of removal; the table is that of the last tick. */
void departures_take(struct departures *d, struct account_table *table,
		     const struct departure *list, size_t count, const struct depart_time *time);
/* After every sync of the table, before the tick: finds the places of what waited for it. */
void departures_settle(struct departures *d, struct account_table *table,
		       const struct depart_time *time);
/* With account_table_next(): the workloads that are gone are forgotten. */
void departures_next(struct departures *d);

#endif
