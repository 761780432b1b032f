/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The newest plan, which one thread makes and all may read: immutable, counted, and changed by the
 * exchange of a pointer.
 */
#ifndef EVENKEEL_AGGREGATOR_API_PLAN_SLOT_H
#define EVENKEEL_AGGREGATOR_API_PLAN_SLOT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "aggregator/api/shared_body.h"
#include "aggregator/policy/place/place.h"
#include "aggregator/policy/slack/slack.h"

/* What is remembered from step to step, each by itself and as JSON. */
enum plan_part { PLAN_SLACK, PLAN_DRAIN, PLAN_PARTS };

const char *plan_part_name(
	enum plan_part p); /* "slack", "drain": in the database, and in the state of a Snapshot */

struct drain_plan;

/* One step's. Nothing of it changes once it is published. */
struct plan_result {
	atomic_uint users;
	uint64_t version; /* of the slot: 1 is its first */
	int64_t time_ns; /* Unix time that it was made for */
	int64_t every_ns; /* when the next is due, after it; 0: there is none */
	bool use_cap; /* real use had a say */
	struct place_cap cap; /* of drains' destinations */
	bool use_shared; /* likewise place_use_is_shared() */
	struct slack_options slack_options;
	/*
	 * its view is that of the whole plan, in outline; handles of pods are of a simulation that
	 * goes on without it
	 */
	struct slack_result slack;
	uint64_t slack_moves[SLACK_CAUSES]; /* of all steps so far */
	/* Of drains; NULL: none was made. Owned, and freed by drain_free. */
	struct drain_plan *drain;
	void (*drain_free)(struct drain_plan *plan);
	/*
	 * What the next step starts from; held; NULL: nothing. Where it did not change it is the
	 * body of the plan before.
	 */
	struct shared_body *memory[PLAN_PARTS];
};

/* With one user. */
struct plan_result *plan_result_new(void);
struct plan_result *plan_result_hold(struct plan_result *r);
/* Any thread; the last user frees it. NULL is allowed. */
void plan_result_drop(struct plan_result *r);

struct plan_slot;
struct plan_slot *plan_slot_new(void); /* empty */
void plan_slot_free(struct plan_slot *s); /* NULL is allowed */
/* Takes r over, and numbers it. */
void plan_slot_publish(struct plan_slot *s, struct plan_result *r);
/* The caller drops it; NULL: there is none yet. */
struct plan_result *plan_slot_take(struct plan_slot *s);

#endif
