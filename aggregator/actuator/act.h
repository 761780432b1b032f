/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decisions of the actuator: what a step writes to the cluster, from what was read of it, the
 * newest plan and its proof, and measured use. Pure. act_step.c: phases and rollbacks; act_evict.c:
 * proofs, evictions and their waits; act_reclaim.c, act_slack.c: the other plans.
 *
 * The annotation of a node (mark.h) is the only lasting state. struct act_state holds what a
 * successor can do without: proofs and waits. A drain without a proof is proven anew.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/actuator/mark.h"
#include "aggregator/verify/verify.h"
#include "shared/buf.h"
#include "shared/error.h"

/* --- the cluster, as read for this step; all texts are borrowed ------------------------------- */

/* A pod that a drain moves: of no DaemonSet, not static, and not ended. */
struct act_pod {
	const char *uid, *namespace, *name;
	const char *owner; /* uid of its controller, or "" */
	bool ending;
};

struct act_node {
	const char *name, *uid;
	struct mark mark;
	const char *foreign; /* why the node is another's; NULL: it is not */
	const char *zone; /* "" or NULL: none */
	bool selected; /* by --node-selector */
	bool wants_drain, wants_undo; /* by requests of people */
	bool cordoned, tainted; /* tainted: by MARK_TAINT */
	bool ending; /* a finalizer holds the deleted object */
	size_t pod_count; /* 0 of nodes without a mark or taint */
	const struct act_pod *pods;
};

struct act_owner {
	const char *uid;
	size_t ready; /* its pods that are Ready and do not end */
};

struct act_cluster {
	size_t node_count, owner_count;
	const struct act_node *nodes; /* at least those of drains and of the offer */
	const struct act_owner *owners; /* of the nodes' pods */
};

/* --- plans ------------------------------------------------------------------------------------ */

struct act_plan {
	const struct verify_plan *offer; /* the newest wave; NULL: not asked for */
	char id[MARK_PLAN_LEN]; /* of the offer */
	/* Moves of nodes being drained, agreed on by planner and checker; NULL: none. */
	const struct verify_plan *proof;
	bool any_order; /* of the proof: its nodes may be drained at once */
	const char *refusal; /* why there is no proof, or "" */
};

/* Real use of a destination, and the caps of the plan. */
struct act_use {
	const char *node;
	double cpu_milli, cpu_cap_milli, mem_bytes, mem_cap_bytes; /* NaN: not known */
	double contention, contention_cap; /* shares of time */
	int64_t end_ns; /* Unix, of the newest interval; 0: not known */
};

/* --- a step ----------------------------------------------------------------------------------- */

enum act_after { ACT_KEEP, ACT_UNCORDON, ACT_DELETE_NODE };

struct act_options {
	bool drain; /* waves without a request */
	enum act_after after;
	int64_t pod_wait_ns; /* for a pod's eviction, and again for its replacement */
	size_t in_flight_max; /* pods that were evicted and have no replacement yet */
	size_t hour_max; /* evictions in an hour; at most ACT_RATE_MOST */
	const char *const *namespaces; /* whose pods may move; NULL: all but kube-system */
	size_t namespace_count;
	const char *holder; /* for marks */
};

struct act_input {
	const struct act_cluster *cluster;
	const struct act_plan *plan;
	const struct act_use *uses;
	size_t use_count;
	bool paused;
	int64_t now_ns; /* monotonic */
	int64_t wall_ns; /* Unix, for marks */
};

enum act_kind {
	ACT_PATCH_NODE, /* its mark, taint and cordon at once */
	ACT_EVICT,
	ACT_REMOVE_NODE,
};

enum act_cordon { ACT_CORDON_STAYS, ACT_CORDON, ACT_CORDON_ENDS };

struct act_action {
	enum act_kind kind;
	const char *node, *uid; /* borrowed from the cluster */
	struct mark mark;
	bool tainted;
	enum act_cordon cordon;
	struct eviction *pod; /* of the state */
	struct error text; /* for the log and the Event of the node */
};

struct act_output {
	struct act_action *actions; /* owned; to be carried out in this order */
	size_t action_count;
	struct buf narration; /* lines */
};

void act_output_fini(struct act_output *out);

/* How the API answered. */
enum act_result {
	ACT_DONE,
	ACT_GONE, /* 404, or 409: another object of the name, or another version */
	ACT_NOT_YET, /* 429 */
	ACT_NEVER, /* two budgets, or the request is not allowed */
	ACT_UNKNOWN, /* no answer, or a failure of the server: it may have happened */
};

/* --- evictions -------------------------------------------------------------------------------- */

/* A pod that is to go; times are monotonic, 0: not. */
struct eviction {
	char *namespace, *name, *uid; /* owned */
	int64_t evicted_ns; /* accepted, or the pod ends by other means */
	int64_t refused_ns; /* the first that failed */
	int64_t retry_ns; /* not again before */
	unsigned int tries; /* refused by budgets */
	bool asked, gone; /* asked: an eviction was sent */
	struct error failure; /* why it cannot be evicted, or "" */
};

void eviction_init(struct eviction *v, const char *namespace, const char *name, const char *uid);
void eviction_fini(struct eviction *v);
/* The pod as the API has it now. It is evicted again if it stays for 15 s. */
void eviction_see(struct eviction *v, bool there, bool ends, int64_t now_ns);
bool eviction_is_due(const struct eviction *v, int64_t now_ns);
void eviction_ask(struct eviction *v, int64_t now_ns); /* it is sent now */
/* After a 429 it is due in 2 s, then in twice as long, up to a minute; without an answer in 15 s. */
void eviction_answer(struct eviction *v, enum act_result result, const char *answer,
		     int64_t now_ns);

enum { ACT_RATE_MOST = 10000 };

/* Times of evictions, oldest first; monotonic. */
struct act_rate {
	int64_t times_ns[ACT_RATE_MOST];
	size_t count;
};

/* How many more are allowed, if `most` (at most ACT_RATE_MOST) are in any window. */
size_t act_rate_left(struct act_rate *r, size_t most, int64_t window_ns, int64_t now_ns);
void act_rate_add(struct act_rate *r, int64_t now_ns);

/* --- the state -------------------------------------------------------------------------------- */

struct act_move {
	struct eviction pod;
	char *to; /* owned; NULL: none */
	char owner[64]; /* "" until the pod was seen */
	int64_t step; /* 0: none */
	size_t ready_before; /* Ready pods of the owner before the eviction */
	bool replaced;
};

struct act_drain {
	char *node, *uid, *zone; /* owned */
	struct mark mark; /* as last read */
	size_t order; /* in the proof */
	bool proven, any_order;
	int64_t proven_ns; /* monotonic */
	size_t move_count;
	struct act_move *moves; /* owned; not proven: of the last proof */
	int64_t since_ns; /* monotonic, of the phase, without pauses */
	int64_t left_ns; /* monotonic: all moves are done, and pods are left; 0: not */
	bool listed; /* in this step's cluster */
};

struct act_hot {
	char *node; /* owned */
	int64_t cool_ns; /* Unix: the end of the newest interval within the caps; 0: none was seen */
	bool listed; /* in this step's use */
};

/* A drain that ended. */
struct act_ended {
	char *node; /* owned */
	bool drained; /* else it was rolled back, or the node is gone */
	size_t moves, evictions;
	int64_t seconds; /* since the wave began */
};

/* A wave from its first claim to its last drain, for the report. */
struct act_wave {
	char plan[MARK_PLAN_LEN];
	int64_t begin_ns, end_ns; /* Unix; 0: not */
	size_t evictions, refused, drained, ended_count;
	struct act_ended *ended; /* owned */
	bool destination_hot; /* so it was stopped */
	struct error reason; /* of the first rollback, or "" */
};

/* A node of an offer that is not claimed. */
struct act_left {
	char *node; /* owned */
	struct error why;
};

struct act_state {
	struct act_drain *drains; /* owned */
	size_t drain_count;
	struct act_hot *hot; /* owned; by node */
	size_t hot_count;
	int64_t last_ns; /* of the last step; 0: none */
	int64_t paused_ns; /* since; 0: not paused */
	int64_t blind_ns; /* since real use of a destination is unknown; 0: it is known */
	struct error stop; /* why the wave stops, or "" */
	struct act_left *left; /* owned; of the last offer, in its order */
	size_t left_count;
	struct act_rate rate; /* of an hour */
	struct act_wave wave;
	bool wave_ended; /* by this step; its report is due */
};

/* Zeroes are a state at the beginning; fini leaves them. */
void act_state_fini(struct act_state *s);

/* The decisions of one step. *out is zeroed by the caller and ended with act_output_fini(). */
void act_step(struct act_state *s, const struct act_options *o, const struct act_input *in,
	      struct act_output *out);
/* The answer to an action, before the next step. */
void act_result(struct act_state *s, const struct act_action *a, enum act_result result,
		const char *answer, int64_t now_ns);
/* Whether steps have to do with the node: a drain is under way, or its taint is left. */
bool act_is_ours(const struct act_node *n);
/* Whether a drain waits for a proof. */
bool act_wants_proof(const struct act_state *s);
/* Whether an offer could be used. */
bool act_wants_offer(const struct act_state *s);
/*
 * Why the node of the last offer was not claimed, until the next step; NULL: it was, or not
 * offered.
 */
const char *act_why_left(const struct act_state *s, const char *node);
/* A node that a proof is for. */
bool act_is_unproven(const struct act_state *s, const char *node);

/* --- act_evict.c ------------------------------------------------------------------------------ */

/* Takes the moves of a proof, if it has the node. */
bool act_drain_prove(struct act_drain *d, const struct act_plan *plan, int64_t now_ns);
void act_drain_unprove(struct act_drain *d);
/* After a time without steps, which no wait counts: each proof is old, no destination was hot. */
void act_pass_gap(struct act_state *s, int64_t gap_ns);
/* Without a pod in flight, drains with an older proof become unproven together, in their order. */
void act_expire_proofs(struct act_state *s, int64_t now_ns);
/*
 * Follows the pods of a proven drain. True: all are gone and replaced. why: set where it is to be
 * rolled back.
 */
bool act_drain_follow(struct act_drain *d, const struct act_options *o, const struct act_input *in,
		      const struct act_node *node, struct error *why);
/* Whether pods of the namespace may move. */
bool act_may_move(const struct act_options *o, const char *namespace);
/* Evicts what may be evicted now, by a proof that is not older than 10 minutes. */
void act_drain_evict(struct act_state *s, struct act_drain *d, const struct act_options *o,
		     const struct act_input *in, const struct act_node *node,
		     struct act_output *out);
struct act_action *act_output_add(struct act_output *out, enum act_kind kind,
				  const struct act_node *node);
