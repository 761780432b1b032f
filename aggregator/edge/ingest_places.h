/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which connections of agents may stay, and who leaves where there is no room: strangers first. A
 * stranger is a connection that has not brought news yet: an interval that was applied. Pure.
 */
#ifndef EVENKEEL_AGGREGATOR_EDGE_INGEST_PLACES_H
#define EVENKEEL_AGGREGATOR_EDGE_INGEST_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ingest_address;

/* Of one connection; the caller's room. */
struct ingest_place {
	struct ingest_address *address; /* borrowed */
	bool known; /* it has brought news */
	bool deferred;
	unsigned int unopened; /* frames since its last news that did not open */
	int64_t due_ns; /* it may stay until then */
	struct ingest_place *prev, *next; /* of strangers or of known ones, by due_ns */
	struct ingest_place *near_prev, *near_next; /* of strangers from its address, likewise */
};

struct ingest_places;

/* For `most` connections: three quarters of them may be from one address, or strangers. */
struct ingest_places *ingest_places_new(size_t most);
void ingest_places_free(struct ingest_places *p); /* NULL is allowed; all places are removed */

/*
 * Whether a connection from the address (a hash of it) may have a place; *leaves is the one that
 * has to be removed first, or NULL.
 */
bool ingest_places_admit(const struct ingest_places *p, uint64_t address, int64_t now_ns,
			 struct ingest_place **leaves);
/* The one that leaves first where there is no descriptor for another, or NULL. */
struct ingest_place *ingest_places_leaver(const struct ingest_places *p, int64_t now_ns);
void ingest_places_add(struct ingest_places *p, struct ingest_place *place, uint64_t address,
		       int64_t now_ns);
void ingest_places_remove(struct ingest_places *p, struct ingest_place *place);

/* It brought news: the place is known, and renewed. */
void ingest_places_vouch(struct ingest_places *p, struct ingest_place *place, int64_t now_ns);
/* A frame could not be opened; true: that was one too many. */
bool ingest_places_doubt(struct ingest_place *place);
/* Gives a stranger that is late its time once more; false: it had that. */
bool ingest_places_defer(struct ingest_places *p, struct ingest_place *place, int64_t now_ns);

/* One whose time is over, or NULL. */
struct ingest_place *ingest_places_late(const struct ingest_places *p, int64_t now_ns);
/* When the next one's is; 0: there is none. */
int64_t ingest_places_due_ns(const struct ingest_places *p);

#endif
