/* SPDX-License-Identifier: Apache-2.0 */
/* What the ledger is made of, for ledger.c and what checks it. */
#ifndef EVENKEEL_AGGREGATOR_STATE_LEDGER_INTERNAL_H
#define EVENKEEL_AGGREGATOR_STATE_LEDGER_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "aggregator/state/ledger.h"
#include "aggregator/state/uid_set.h"
#include "shared/mem.h"

#define uthash_malloc(size) mem_alloc(size)
/* What a full ledger needs from the start: to grow would be to move all of it under the lock. */
#define HASH_INITIAL_NUM_BUCKETS      4096U
#define HASH_INITIAL_NUM_BUCKETS_LOG2 12U
#include <uthash.h>

/* What all records of one reservation share. */
struct life {
	atomic_uint users;
	atomic_uint_least64_t generation; /* 0: not bound */
	char uid[];
};

struct record {
	struct ledger_entry entry; /* first: readers have its address */
	atomic_uint users;
	struct life *life; /* held */
};

struct copy {
	struct ledger_copy head; /* first */
	atomic_uint users;
	const struct ledger_entry *of[]; /* each record held */
};

struct reservation {
	struct record *record; /* held */
	struct reservation *prev, *next; /* in the list of its state */
	bool gone; /* taken out, but still in the array */
	UT_hash_handle hh; /* by the life's uid */
};

struct ledger {
	pthread_mutex_t lock;

	/* under lock */
	struct reservation *by_uid; /* hash */
	struct reservation *expiring, *bound; /* lists */
	struct reservation **sorted; /* owned; by compare_entries() */
	size_t count, room;
	struct ledger_copy *copy; /* held; NULL: something has changed since */
	uint64_t version; /* of the reservations; not of what becomes of them */
	struct uid_set placed; /* pods that have a node */
	struct ledger_counters counters;
};

/*
 * Both under the lock. By namespace, name and uid; and NULL where nothing is reserved for the uid.
 */
int ledger_compare(const struct ledger_entry *a, const struct ledger_entry *b);
struct reservation *ledger_find(const struct ledger *l, const char *uid);

#endif
