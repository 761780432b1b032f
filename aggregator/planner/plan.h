/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans: the newest, which one thread makes and all may read; and the planner without its thread,
 * one step at a time.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "aggregator/state/shared_body.h"
#include "aggregator/policy/place/place.h"
#include "aggregator/policy/slack/slack.h"

/* --- plans: immutable, counted, and changed by the exchange of a pointer */

/* The parts of the memory between steps, each as JSON. */
enum plan_part { PLAN_SLACK, PLAN_DRAIN, PLAN_PARTS };

/* "slack", "drain": in the database, and in the state of a Snapshot. */
const char *plan_part_name(enum plan_part p);

struct drain_plan;

/* One step's. Nothing of it changes once it is published. */
struct plan_result {
	atomic_uint users;
	uint64_t run; /* of the slot; 0: of none */
	uint64_t version; /* of the slot: 1 is its first */
	int64_t time_ns; /* Unix time that it was made for */
	uint64_t id; /* of the wave: equal nodes and moves have equal ids; never 0 */
	int64_t every_ns; /* when the next is due, after it; 0: there is none */
	bool use_cap; /* real use had a say */
	struct place_cap cap; /* of drains' destinations */
	bool use_shared; /* likewise place_use_is_shared() */
	struct slack_options slack_options;
	/* its view has no pods; handles of pods are of a simulation that goes on without it */
	struct slack_result slack;
	uint64_t slack_moves[SLACK_CAUSES]; /* of all steps so far */
	/* Of drains; NULL: none was made. Owned, and freed by drain_free. */
	struct drain_plan *drain;
	void (*drain_free)(struct drain_plan *plan);
	uint64_t
		looks; /* of the drains' planner at the clock, until the time was up; 0: it sufficed */
	/* the memory for the next step; held; NULL: none; unchanged: the body of the plan before */
	struct shared_body *memory[PLAN_PARTS];
	/* for a record: the memory that this step began with; held; NULL: not asked for */
	struct shared_body *begun[PLAN_PARTS];
};

/* With one user. */
struct plan_result *plan_result_new(void);
/* Any thread; the last user frees it. NULL is allowed. */
void plan_result_drop(struct plan_result *r);

struct plan_slot;
struct plan_slot *plan_slot_new(void); /* empty */
/* Identifies this run of the aggregator: random, never 0. */
uint64_t plan_slot_run(const struct plan_slot *s);
void plan_slot_free(struct plan_slot *s); /* NULL is allowed */
/* Takes r over, and numbers it. Returns the Unix time from which on it is the newest. */
int64_t plan_slot_publish(struct plan_slot *s, struct plan_result *r);
/* The caller drops it; NULL: there is none yet. */
struct plan_result *plan_slot_take(struct plan_slot *s);

/* --- the planner's core: a placement core that lives on, and the policies that remember */

/* The inputs of a step. */
struct plan_input {
	struct view *view; /* borrowed; nodes and pods must be known (place_cache_can_answer()) */
	int64_t now_ns;
	/* The step must end now; NULL: never. */
	bool (*out_of_time)(void *ctx);
	void *ctx;
	bool recorded; /* the result has begun[] */
	uint64_t looks; /* of a plan that is made again; 0: none, or the time sufficed */
};

/* A part of the memory. */
struct plan_text {
	const char *data; /* borrowed */
	size_t len;
	int64_t now_ns; /* Unix time, for ages */
	bool foreign; /* another aggregator's, and newer than the state */
};

/* The planner of drains after slack, in the same core. */
struct plan_drain {
	struct place_options places; /* of the core; now_ns does not matter */
	void *state; /* the caller's; the core calls from one thread at a time */
	/*
	 * The text is what a step put into memory[PLAN_DRAIN], perhaps in another process. 0, or
	 * -EINVAL and the state is as it was.
	 */
	int (*restore)(void *state, const struct plan_text *text, struct error *error);
	/*
	 * One step. The place is as a new one of in->view, without placeholders (out->slack.placed
	 * has them), and what is changed needs not be undone. Sets out->drain and out->drain_free,
	 * out->id, and, as bodies of their own, out->memory[PLAN_DRAIN] and, if in->recorded,
	 * out->begun[PLAN_DRAIN].
	 */
	void (*step)(void *state, struct place *place, const struct plan_input *in,
		     struct plan_result *out);
	void (*free)(void *state);
};

struct plan_core;

/* drain: copied, and its state taken over; NULL: no drains are planned. */
struct plan_core *plan_core_new(const struct slack_options *slack, const struct plan_drain *drain);
void plan_core_free(struct plan_core *c); /* NULL is allowed */
/*
 * The next step goes on from the text. -EINVAL: the error says what is wrong, and the core is as it
 * was. A part without a planner is ignored.
 */
int plan_core_remember(struct plan_core *c, enum plan_part part, const struct plan_text *text,
		       struct error *error);
/* 0 and the caller's plan; -EINTR: reading the cluster or slack ran out of time, and the memory is unchanged. */
int plan_core_step(struct plan_core *c, const struct plan_input *in, struct plan_result **out,
		   struct error *error);

/* --- drain_runner.c: the planner of drains */

struct drain_counters;
struct drain_log;
struct drain_setup;
/*
 * Fills *out; its state is the core's to free. setup is borrowed for that long. counters and
 * decisions may be NULL. timed: a step simulates at most rules.simulation_ns of wall time; else to
 * its end, so that the same input gives the same plan.
 */
void drain_runner_open(struct plan_drain *out, const struct drain_setup *setup, bool timed,
		       struct drain_counters *counters, struct drain_log *decisions);

/* The memory at the moment of a snapshot, by part, owned; NULL: none. */
struct plan_memory {
	char *of[PLAN_PARTS];
};

void plan_memory_fini(struct plan_memory *m);

/* When a plan of a record was made, and of what. */
struct plan_moment {
	int64_t now_ns; /* Unix time; 0: there is none */
	int64_t every_ns;
	uint64_t version, run, looks;
	struct view *view; /* held */
};
