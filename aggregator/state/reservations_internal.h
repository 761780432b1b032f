/* SPDX-License-Identifier: Apache-2.0 */
/* The members of reservations, for reservations.c and its checks. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "aggregator/state/reservations.h"
#include "aggregator/state/uid_set.h"

/*
 * Room for the most reservations, allocated at the start: to grow would move all of it under the
 * lock.
 */
#define HASH_INITIAL_NUM_BUCKETS      4096U
#define HASH_INITIAL_NUM_BUCKETS_LOG2 12U
#include "shared/hash.h"

/* Shared by all records of one reservation. */
struct life {
	atomic_uint users;
	atomic_uint_least64_t generation; /* 0: not bound */
	char uid[];
};

struct record {
	struct reservation entry; /* first: readers have its address */
	atomic_uint users;
	struct life *life; /* held */
};

struct copy {
	struct reservations_copy head; /* first */
	atomic_uint users;
	const struct reservation *of[]; /* each record held */
};

struct tracked_reservation {
	struct record *record; /* held */
	struct tracked_reservation *prev, *next; /* in the list of its state */
	bool gone; /* taken out, but still in the array */
	UT_hash_handle hh; /* by the life's uid */
};

struct reservations {
	pthread_mutex_t lock;
	struct reservations_peer *peer; /* fixed after start; borrowed; NULL: none */

	/* under lock */
	struct tracked_reservation *by_uid; /* hash */
	struct tracked_reservation *expiring, *bound; /* lists */
	struct tracked_reservation **sorted; /* owned; by compare_entries() */
	size_t count;
	struct reservations_copy *copy; /* held; NULL: something has changed since */
	uint64_t version; /* of the reservations; not of what becomes of them */
	struct uid_set placed; /* pods that have a node */
	struct reservations_counters counters;
};

/* Under the lock. NULL: nothing is reserved for the uid. */
struct tracked_reservation *reservations_find(const struct reservations *set, const char *uid);
