/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plans of two aggregators (--peer). Each tells the other the id of its newest plan. The elder,
 * which has been running for longer, also tells its memory between steps, and the other one plans from
 * that: so timers and placeholders outlive either of both.
 *
 * Any thread; one mutex, held for copies. Times are monotonic where nothing else is said.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "aggregator/planner/plan.h"
#include "aggregator/state/counters.h"
#include "shared/buf.h"
#include "shared/error.h"

/* The other aggregator counts as silent after this time without the id of a plan. */
#define PLAN_PEER_SILENT_NS 1000000000LL

enum {
	PLAN_PEER_MEMORY_MAX = 128 << 20, /* bytes; a larger memory is refused */
	PLAN_PEER_PIECE = 32 * 1024, /* bytes of it in a frame: reservations wait for one piece */
};

/* At the start of this aggregator, whose run is `run`. The slot and the counters are borrowed. */
struct plan_peer *plan_peer_new(struct plan_slot *plans, struct exchange_counters *counters,
				uint64_t run, int64_t now_ns);
void plan_peer_free(struct plan_peer *p); /* NULL is allowed */

/* --- bodies of the exchange: fields of Exchange in shared/body.proto */

/* The memory as far as one connection was told of it; zeroes: nothing. */
struct plan_telling {
	uint64_t version; /* of the plan whose memory it is */
	struct buf memory; /* owned; the rest from `at` on is not told yet */
	size_t at;
};

/* Appends the fields to a body. True: a further piece of the memory is due. */
bool plan_peer_tell(struct plan_peer *p, struct plan_telling *t, struct buf *body, int64_t now_ns);

/* The part of a memory that one connection has told so far; zeroes: nothing. */
struct plan_hearing {
	struct buf memory; /* owned */
	uint64_t size; /* of the whole */
};

/*
 * Reads the fields of a body. -EBADMSG with the reason, and a count: they are no such fields, or the
 * memory is too large, in disorder or none. Its newest complete memory stays.
 */
int plan_peer_hear(struct plan_peer *p, struct plan_hearing *h, const struct buf *body,
		   int64_t now_ns, struct error *error);

/* --- the planner's thread */

/*
 * Before a step: the core goes on from the newest memory of the elder, once; nothing for the elder
 * itself. wall_ns: Unix time. -EINVAL with the reason, and a count: this part of the memory, and
 * those behind it, are left out. p NULL: there is no other aggregator.
 */
int plan_peer_lead(struct plan_peer *p, struct plan_core *c, int64_t wall_ns, struct error *error);

/* --- answers */

enum plan_accord {
	PLAN_SAME, /* both have the same wave */
	PLAN_OTHER,
	PLAN_UNKNOWN, /* it is silent, has no plan yet, or is of an older version */
	PLAN_ACCORDS,
};

const char *plan_accord_name(enum plan_accord a); /* "same", .. */

struct plan_peer_state {
	enum plan_accord accord;
	uint64_t id; /* of the other one's newest plan, as last told; 0: never */
	int64_t for_ns; /* how long plans have differed, or it has been silent; 0 of PLAN_SAME */
	bool elder; /* this aggregator is it */
};

/* Answers begin now: until then the silence of the other one does not count. NULL is allowed. */
void plan_peer_begin(struct plan_peer *p, int64_t now_ns);
/* plan: the one that is compared; NULL: the newest. */
struct plan_peer_state plan_peer_look(struct plan_peer *p, const struct plan_result *plan,
				      int64_t now_ns);
