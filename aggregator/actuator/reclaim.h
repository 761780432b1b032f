/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Carries out plans of /v1/quotas/reclaim: evicts the victims of a pod whose quota is within its min,
 * and waits until the pod is bound. act_reclaim.c has the decisions and is pure; reclaim.c reads plans
 * and pods, and carries the decisions out.
 *
 *     plan -> claimed -> victims evicted -> pod bound
 *
 * The claim holds the room for the pod (aggregator/state/reservations.h) from before the first
 * eviction on, and is renewed until the pod is bound. No pod is evicted while a renewal is due. A
 * successor takes over the claims that the aggregator lists, and evicts no pod for them: the
 * aggregator makes a new plan when such a claim has ended.
 */
#pragma once

#include "aggregator/actuator/edge.h"
#include "shared/jsonw.h"

enum { RECLAIM_RESCUES_MOST = 32 };

struct reclaim_victim {
	struct eviction pod;
	int64_t grace_ns;
};

/* A pod and the victims that make room for it: a plan of the list, then one that is carried out. */
struct reclaim_rescue {
	/* Owned. plan: RECLAIM_TAKEN_OVER once no victim is left to be evicted, and of claims. */
	char *uid, *plan, *node, *namespace, *name;
	size_t victim_count, evicted;
	struct reclaim_victim *victims; /* owned */
	int64_t since_ns; /* monotonic: of the last progress */
	int64_t claimed_ns; /* monotonic: the last claim; 0: none yet */
	char why[160]; /* the scheduler's reason; "" */
	struct error failure; /* why the pod is given up, or "" */
	bool outdated; /* the aggregator has another plan for the pod */
};

struct reclaim_rescues {
	struct reclaim_rescue *of; /* owned */
	size_t count;
};

/* The plan of a claim that needs no eviction. */
#define RECLAIM_TAKEN_OVER "taken-over"

void reclaim_rescue_fini(struct reclaim_rescue *r);
void reclaim_rescues_fini(struct reclaim_rescues *r);

/* A pod of a rescue, as the API has it. All texts are borrowed. */
struct reclaim_seen {
	const char *uid;
	bool gone; /* deleted or ended, or another pod has its name */
	bool ending;
	const char *node; /* "" while pending */
	const char *why; /* the scheduler's reason; "" */
};

struct reclaim_options {
	size_t evictions_max; /* in a minute; at most ACT_RATE_MOST */
	int64_t wait_ns; /* for a budget, for a victim's end after its grace, for the binding */
	const struct act_options *act; /* borrowed: for act_may_move() */
	bool dry_run; /* evictions are only tried: nothing is waited for */
};

struct reclaim_input {
	/* In the order of the list; those that begin are moved to the state. Claims have no victims. */
	struct reclaim_rescues *plans, *claims;
	const struct reclaim_seen *seen; /* of the pods of rescues; others are as before */
	size_t seen_count;
	bool paused; /* nothing begins, and a plan that evicted nobody is dropped */
	int64_t now_ns; /* monotonic */
};

/* A pod that is left alone for a while. */
struct reclaim_left {
	char *uid; /* owned */
	int64_t until_ns;
};

struct reclaim_state {
	struct reclaim_rescues rescues; /* in the order of plans */
	size_t left_count;
	struct reclaim_left *left; /* owned */
	int64_t last_ns; /* of the last step; 0: none */
	struct act_rate rate; /* of a minute */
};

/* Of the rescue of that number: a claim, or the eviction of a victim. */
struct reclaim_action {
	bool claims;
	size_t rescue, victim;
};

struct reclaim_output {
	struct reclaim_action *actions; /* owned; to be carried out in this order */
	size_t action_count;
	struct buf narration; /* lines */
};

/* --- act_reclaim.c ---------------------------------------------------------------------------- */

void reclaim_state_fini(struct reclaim_state *s);
/* *out is zeroed by the caller. */
void act_reclaim_step(struct reclaim_state *s, const struct reclaim_options *o,
		      const struct reclaim_input *in, struct reclaim_output *out);
/* The answer to an action, before the next step. ACT_GONE of a claim: the plan is out of date. */
void act_reclaim_result(struct reclaim_state *s, const struct reclaim_action *a,
			enum act_result result, const char *answer, int64_t now_ns);

/* --- reclaim.c -------------------------------------------------------------------------------- */

struct reclaim {
	struct reclaim_options options;
	struct reclaim_state state;
	int64_t listed_ns; /* monotonic: when plans were read last; 0: never */
	bool failing; /* logged: reading */
};

/* A step. True: it wrote. Logs what it decided and what failed. */
bool reclaim_run(struct reclaim *r, struct edge *e, bool paused, int64_t now_ns);
/* Forgets everything but the options; a successor takes over the claims. */
void reclaim_forget(struct reclaim *r);
/* "rescues" of a report, in the object that is open. */
void reclaim_write(const struct reclaim_state *s, struct jsonw *w);
/* The plans (key "items") that may be carried out, or the claims (key "claims"). */
struct reclaim_rescues reclaim_read_plans(const cJSON *list, const char *key);
