/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which connections of agents stay, and which are evicted for others: unverified ones first. A
 * connection is verified when an interval from it is applied. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ingest_address;

/* Of one connection; the caller's storage. */
struct ingest_slot {
	struct ingest_address *address; /* borrowed */
	bool verified; /* an interval from it was applied */
	bool deferred;
	unsigned int unopened; /* frames since then that did not open */
	int64_t due_ns; /* closed then */
	struct ingest_slot *prev, *next; /* of unverified or verified ones, by due_ns */
	struct ingest_slot *near_prev, *near_next; /* of unverified ones of its address, likewise */
};

struct ingest_slots;

/* For `most` connections; three quarters may be of one address, or unverified. */
struct ingest_slots *ingest_slots_new(size_t most);
void ingest_slots_free(struct ingest_slots *p); /* NULL is allowed; all slots are removed */

/*
 * Whether a connection from the address (a hash of it) may have a slot; *victim is the slot to
 * remove first, or NULL.
 */
bool ingest_slots_admit(const struct ingest_slots *p, uint64_t address, int64_t now_ns,
			struct ingest_slot **victim);
/* The connection to evict if there is no descriptor for another, or NULL. */
struct ingest_slot *ingest_slots_victim(const struct ingest_slots *p, int64_t now_ns);
void ingest_slots_add(struct ingest_slots *p, struct ingest_slot *slot, uint64_t address,
		      int64_t now_ns);
void ingest_slots_remove(struct ingest_slots *p, struct ingest_slot *slot);

/* An interval was applied: the slot is verified, and its time starts anew. */
void ingest_slots_verify(struct ingest_slots *p, struct ingest_slot *slot, int64_t now_ns);
/* A frame did not open; true: one too many. */
bool ingest_slots_note_unopened(struct ingest_slot *slot);
/* Gives an unverified connection its time once more; false: it had that. */
bool ingest_slots_defer(struct ingest_slots *p, struct ingest_slot *slot, int64_t now_ns);

/* A slot whose time is over, or NULL. */
struct ingest_slot *ingest_slots_expired(const struct ingest_slots *p, int64_t now_ns);
/* When the next one's time is over; 0: none. */
int64_t ingest_slots_due_ns(const struct ingest_slots *p);
