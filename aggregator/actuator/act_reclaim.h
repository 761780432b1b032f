/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Carries out plans of /v1/quotas/reclaim: evicts the victims of a pod whose quota is within its min,
 * and waits until the pod is bound. Pure.
 *
 *     plan -> claimed -> victims evicted -> pod bound
 *
 * The claim holds the room for the pod (aggregator/state/reservations.h) from before the first
 * eviction on, and is renewed until the pod is bound. No pod is evicted while a renewal is due. A
 * successor takes over the claims that the aggregator lists, and evicts no pod for them: the
 * aggregator makes a new plan when such a claim has ended.
 */
#ifndef EVENKEEL_AGGREGATOR_ACTUATOR_ACT_RECLAIM_H
#define EVENKEEL_AGGREGATOR_ACTUATOR_ACT_RECLAIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/actuator/act.h"
#include "shared/buf.h"
#include "shared/error.h"

enum { RECLAIM_EVICTIONS_MOST = 1000, RECLAIM_RESCUES_MOST = 32 };

/* --- what is read; all texts are borrowed ----------------------------------------------------- */

struct reclaim_pod {
	const char *namespace, *name, *uid;
	int64_t grace_ns; /* of a victim */
};

/* A plan, or a claim, which has no id and no victims; in the order of the list. */
struct reclaim_plan {
	const char *id, *node;
	struct reclaim_pod pod;
	size_t victim_count;
	const struct reclaim_pod *victims;
};

/* A pod of a rescue, as the API has it. */
struct reclaim_seen {
	const char *uid;
	bool gone; /* deleted or ended, or another pod has its name */
	bool ending;
	const char *node; /* "" while pending */
	const char *why; /* the scheduler's reason; "" */
};

struct reclaim_options {
	size_t evictions_max; /* in a minute; at most RECLAIM_EVICTIONS_MOST */
	int64_t wait_ns; /* for a budget, for a victim's end after its grace, for the binding */
	const struct act_options *act; /* borrowed: for act_may_move() */
	bool dry_run; /* evictions are only tried: nothing is waited for */
};

struct reclaim_input {
	const struct reclaim_plan *plans, *claims;
	size_t plan_count, claim_count;
	const struct reclaim_seen *seen; /* of the pods of rescues; others are as before */
	size_t seen_count;
	bool paused; /* nothing begins, and a plan that evicted nobody is dropped */
	int64_t now_ns; /* monotonic */
};

/* --- the state -------------------------------------------------------------------------------- */

struct reclaim_victim {
	char *namespace, *name, *uid; /* owned */
	int64_t grace_ns;
	int64_t evicted_ns, refused_ns, retry_ns; /* monotonic; 0: not */
	unsigned int tries; /* refused ones */
	bool gone;
};

/* A plan that is carried out: a pod, and the victims that make room for it. */
struct reclaim_rescue {
	char *plan; /* owned; "taken-over" once no victim is left to be evicted */
	char *namespace, *name, *uid; /* owned */
	size_t victim_count, evicted;
	struct reclaim_victim *victims; /* owned */
	int64_t since_ns; /* monotonic: of the last progress */
	int64_t claimed_ns; /* monotonic: the last claim; 0: none yet */
	char why[160]; /* the scheduler's reason; "" */
	struct error failure; /* why the pod is given up, or "" */
	bool outdated; /* the aggregator has another plan for the pod */
};

/* A pod that is left alone for a while. */
struct reclaim_left {
	char *uid; /* owned */
	int64_t until_ns;
};

struct reclaim_state {
	struct reclaim_rescue *rescues; /* owned; in the order of plans */
	size_t rescue_count, left_count, time_count;
	int64_t last_ns; /* of the last step; 0: none */
	struct reclaim_left *left; /* owned */
	/* Of evictions in the last minute, oldest first. */
	int64_t times_ns[RECLAIM_EVICTIONS_MOST];
};

void reclaim_state_fini(struct reclaim_state *s);

/* --- a step ----------------------------------------------------------------------------------- */

enum reclaim_kind { RECLAIM_CLAIM, RECLAIM_EVICT };

struct reclaim_action {
	enum reclaim_kind kind;
	size_t rescue, victim; /* of the state, until the next step */
};

struct reclaim_output {
	struct reclaim_action *actions; /* owned; to be carried out in this order */
	size_t action_count;
	struct buf narration; /* lines */
};

void reclaim_output_fini(struct reclaim_output *out);
/* *out is zeroed by the caller. */
void act_reclaim_step(struct reclaim_state *s, const struct reclaim_options *o,
		      const struct reclaim_input *in, struct reclaim_output *out);
/* The answer to an action, before the next step. ACT_GONE of a claim: the plan is out of date. */
void act_reclaim_result(struct reclaim_state *s, const struct reclaim_action *a,
			enum act_result result, const char *answer, int64_t now_ns);

#endif
