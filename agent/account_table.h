/* SPDX-License-Identifier: Apache-2.0 */
/* The tracks of all cgroups, in the topology's order, and the workloads among them. Pure. */
#ifndef EVENKEEL_AGENT_ACCOUNT_TABLE_H
#define EVENKEEL_AGENT_ACCOUNT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/account_track.h"
#include "agent/topology.h"
#include "agent/workload.h"

struct account_table {
	struct track *tracks; /* owned; [i] is cgroup i of the topology of the last sync */
	size_t count;
	struct workload **workloads; /* owned; by ref, also those gone since the last publish */
	size_t workload_count, workload_cap;
	uint32_t last_ref;
	uint32_t unlisted; /* cgroups that found no room in `workloads` since the last publish */
	bool stale; /* room has come for what is unlisted */
};

void account_table_fini(struct account_table *table);
/*
 * Follows the topology; cheap when nothing changed. A cgroup keeps its track as long as its serial, and its workload as
 * long as its kind too. What is new is sampled from first_ns on.
 */
void account_table_sync(struct account_table *table, struct topology *t, int64_t first_ns);
/* Forgets the workloads that are gone and begins the next interval of the others. */
void account_table_next(struct account_table *table);

#endif
