/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The planner without its thread: a placement core that lives on, and the policies that remember,
 * one step at a time.
 */
#ifndef EVENKEEL_AGGREGATOR_API_PLAN_CORE_H
#define EVENKEEL_AGGREGATOR_API_PLAN_CORE_H

#include "aggregator/api/plan_slot.h"

/* What a step is given beside its state. */
struct plan_input {
	struct view *view; /* borrowed; nodes and pods must be known (fit_knows_cluster()) */
	int64_t now_ns;
	/* Whether it must come to an end now; NULL: never. Asked by whatever may take long. */
	bool (*out_of_time)(void *ctx);
	void *ctx;
};

/* What plans drains behind slack, in the same core. */
struct plan_drain {
	struct place_options places; /* of the core; now_ns does not matter */
	void *state; /* of whoever fills this; the core calls nothing at once from two threads */
	/*
	 * The text is what a step put into memory[PLAN_DRAIN], perhaps in another process. 0, or
	 * -EINVAL and the state is as it was.
	 */
	int (*restore)(void *state, const char *text, size_t len, struct reason *reason);
	/*
	 * One step. The place is as a new one of in->view, without placeholders (out->slack.placed
	 * has them), and what is changed needs not be undone. Sets out->drain and out->drain_free,
	 * and, as a body of its own, out->memory[PLAN_DRAIN].
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
 * Before the first step. -EINVAL: the reason says what is wrong with it, and the core begins
 * without it. A part that nobody plans is passed over.
 */
int plan_core_remember(struct plan_core *c, enum plan_part part, const char *text, size_t len,
		       struct reason *reason);
/*
 * 0 and the caller's plan; -EINVAL for an option out of range, named; -EINTR where reading the
 * cluster or slack ran out of time, and what is remembered is as it was.
 */
int plan_core_step(struct plan_core *c, const struct plan_input *in, struct plan_result **out,
		   struct reason *reason);

#endif
