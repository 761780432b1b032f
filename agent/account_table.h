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

struct track_id {
	uint64_t id;
	int index;
};

/* A container that is not below its pod: indices of both tracks. */
struct detached {
	int pod, container;
};

struct account_table {
	struct track *tracks; /* owned; [i] is cgroup i of the topology of the last sync */
	size_t count;
	uint64_t generation; /* of the topology at the last sync */
	struct track_id *by_id; /* owned, sorted; made by the first find after a sync */
	size_t by_id_count;
	/*
	 * Cgroups that vanished with the last sync and whose removal may still be told; owned.
	 * Their carry was passed on.
	 */
	struct track *vanished;
	size_t vanished_count;
	struct detached *detached; /* owned; by pod, then by container */
	size_t detached_count, detached_cap;

	struct workload **workloads; /* owned; by ref, also those gone since the last publish */
	size_t workload_count, workload_cap;
	uint32_t last_ref;
	uint32_t unlisted; /* cgroups that found no room in `workloads` since the last publish */
	bool stale; /* to be listed anew: room has come, or a new life began in an old place */
};

void account_table_fini(struct account_table *table);
/*
 * Follows the topology; nothing is done when its generation is that of the last sync and the table
 * is not stale. A cgroup keeps its track as long as its serial, and its workload as long as its
 * kind too. What is new is sampled from first_ns on. What a cgroup that vanished still carries goes
 * to the nearest one above that did not.
 */
void account_table_sync(struct account_table *table, struct topology *t, int64_t first_ns);
/* Index of the track with this v2 id at the last sync, or CGROUP_NONE. */
int account_table_find(struct account_table *table, uint64_t id);
/*
 * Leaves the remainder to track `index`, whose next tick has it, or to what holds it should it
 * vanish before.
 */
void account_table_carry(struct account_table *table, int index, const struct remainder *rest);
/*
 * A track that removed, or was gone before it was read, is no workload any more; what was sampled
 * stays.
 */
void account_table_retire(struct account_table *table, int index);
/* Forgets the workloads that are gone and begins the next interval of the others. */
void account_table_next(struct account_table *table);

#endif
