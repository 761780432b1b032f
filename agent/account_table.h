/* SPDX-License-Identifier: Apache-2.0 */
/* The tracks of all cgroups, in the order of the topology, and their workloads. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/account_track.h"
#include "agent/workload.h"

/* A cgroup by a number: its id, or its serial. */
struct track_id {
	uint64_t number;
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
	struct track_id *by_id; /* owned, sorted; made at the first find after a sync */
	size_t by_id_count;
	/*
	 * owned; cgroups that vanished with the last sync and whose removal may follow. Their carry
	 * is passed on.
	 */
	struct track *vanished;
	size_t vanished_count;
	struct detached *detached; /* owned; by pod, then by container */
	size_t detached_count;

	struct workload **workloads; /* owned; by ref, with those ended since the last publish */
	size_t workload_count;
	uint32_t last_ref;
	uint32_t unlisted; /* cgroups beyond the bound since the last publish */
	bool stale; /* to be listed again: there is room, or a new cgroup in an old place */
};

void account_table_fini(struct account_table *table);
/*
 * Follows the topology; does nothing if the generation is that of the last sync and the table is
 * not stale. A cgroup keeps its track as long as its serial, and its workload as long as its kind
 * too. New tracks are sampled from first_ns on. The carry of a vanished cgroup goes to its nearest
 * ancestor that exists.
 */
void account_table_sync(struct account_table *table, struct topology *t, int64_t first_ns);
/* Index of the track with this v2 id, or CGROUP_NONE. */
int account_table_find(struct account_table *table, uint64_t id);
/*
 * Adds the remainder to the next tick of track `index`, or of its ancestor if it vanishes before.
 */
void account_table_carry(struct account_table *table, int index, const struct remainder *rest);
/* Ends the workload of a removed track; its samples stay. */
void account_table_retire(struct account_table *table, int index);
/* Frees ended workloads and begins the next interval of the others. */
void account_table_next(struct account_table *table);
