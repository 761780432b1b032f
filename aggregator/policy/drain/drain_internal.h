/* SPDX-License-Identifier: Apache-2.0 */
/* One step of the planner, shared by its files. */
#pragma once

#include "aggregator/policy/drain/drain.h"
#include "aggregator/policy/drain/drain_eligibility.h"
#include "aggregator/policy/drain/drain_owners.h"
#include "aggregator/policy/drain/drain_pdb.h"
#include "aggregator/policy/drain/drain_rules.h"
#include "aggregator/policy/drain/drain_timers.h"
#include "aggregator/policy/gangs.h"
#include "shared/hash.h"

/* --- drain_state.c: what is remembered */

struct drain_eviction {
	struct kube_pod *pod; /* held; its node is where it was */
	int64_t when_ns;
	bool leaving; /* a drain evicted it; else preemption or a person did */
};

/* The destination of a pod in the last simulation, in one block. */
struct drain_hint {
	UT_hash_handle hh;
	const char *node; /* in the block */
	char uid[]; /* key */
};

/* The last recorded verdict of a node. */
struct drain_recorded {
	char *node; /* owned */
	enum drain_event event;
	enum drain_reason reason;
	bool seen; /* in the step at hand */
};

struct drain_state {
	struct drain_timers timers;
	struct drain_unremovable failed;
	struct drain_eviction *evictions; /* owned; the oldest first */
	size_t eviction_count;
	struct drain_hint *hints;
	struct drain_record *history; /* owned; the oldest first */
	size_t history_count;
	struct drain_record *fresh; /* owned; of the step at hand */
	size_t fresh_count;
	struct drain_recorded *recorded; /* owned; sorted by node */
	size_t recorded_count;
	char *wave; /* owned; the last recorded wave; NULL: none */
	struct cluster *seen; /* held; of the last step; NULL: none yet */
	int64_t last_ns; /* of the last step; 0: none yet */
	int64_t loop_ns; /* the shortest time between two steps; 0: not known */
	bool freed; /* room may have become free since the last step */
	/* Requests of the last step's placeholders; RESOURCE_PODS is their number. */
	double slack[RESOURCE_STANDARD];
};

/* A step begins: finds evictions since the last one, and drops old ones. */
void drain_state_see(struct drain_state *s, const struct drain_input *in,
		     const struct drain_options *o);
/* NULL: none. */
const char *drain_state_hint(const struct drain_state *s, const char *uid);
/* Replaces an older hint; adds none beyond DRAIN_HINTS_MAX. */
void drain_state_set_hint(struct drain_state *s, const char *uid, const char *node);
/* The record with name and uid of the pod in a list in the order of a view; NULL: none. */
const struct kube_pod *drain_find_pod(const struct kube_pod *const *list, size_t count,
				      const struct kube_pod *pod);
void drain_hints_free(struct drain_hint **hints);

/* Adds a record to the history, within its bound. */
void drain_history_add(struct drain_state *s, const struct drain_record *record);
/* Adds a record to the history and the step, within their bounds. */
void drain_state_note(struct drain_state *s, const struct drain_record *record);
/* Replaces the last verdict of the node. */
struct drain_recorded *drain_state_set_recorded(struct drain_state *s, const char *node,
						enum drain_event event, enum drain_reason reason);
void drain_history_clear(struct drain_state *s);

/*
 * --- drain_simulate.c
 *
 * Places several pods together: by priority, the highest first; within a priority first the pods
 * whose hint still fits, then the others in the given order. Each placement counts for the next.
 */

struct drain_item {
	place_pod pod; /* nowhere */
	place_node hint; /* PLACE_NONE: none */
	place_node to; /* out; PLACE_NONE: nowhere */
	uint32_t after; /* of a guest: pods of the node itself that are placed before it */
};

struct drain_schedule {
	struct place *place;
	enum place_order order;
	const bool *allowed; /* by node; NULL: all */
	bool all_or_none; /* ends at the first pod that fits nowhere; the caller reverts */
	bool (*out_of_time)(void *context); /* called before each pod; NULL: never */
	void *context;
};

/*
 * Sorts the items by the order of placement and returns how many are placed. *failed is the first
 * that fits nowhere, or NULL, and *counts its refusals; both may be NULL.
 */
size_t drain_schedule_pods(const struct drain_schedule *s, struct drain_item *items, size_t count,
			   const struct drain_item **failed, struct place_counts *counts);

/* --- a step */

/* Where the pods of a node go: its own, guests (pods with reserved room), then placeholders. */
struct drain_placement {
	struct drain_item *items; /* owned */
	size_t count, own_count, real_count; /* real: own and guests */
};

/* A node of the view during a step. */
struct drain_case {
	const struct view_node *view;
	const struct kube_node *node; /* NULL: the API does not know it */
	const struct kube_pod *const *pods; /* of the model; sorted */
	size_t pod_count;
	uint32_t group;
	bool in_deletion;
	bool drained; /* and not in deletion */
	/* Of eligible nodes: */
	struct drain_pods sorted; /* move: without pods that ended */
	/* Owned; pods of `sorted` that still run, then pods of other nodes that fall with them. */
	const struct kube_pod **leave;
	size_t leave_count, leave_own;
	struct buf falls; /* about their groups; "" none falls */
	bool risky; /* its budgets do not allow all at once */
	size_t received; /* pods of candidates placed here */
	int64_t arrival_ns; /* of the newest replacement of an evicted pod here; 0: none */
	struct drain_placement placed;
	struct drain_plan_node *out; /* in the plan */
};

/* Kinds of handles beside the pods of the view. */
enum drain_extra { DRAIN_EXTRA_NONE, DRAIN_EXTRA_EVICTED, DRAIN_EXTRA_PLACEHOLDER };

struct drain_run {
	const struct drain_config *config;
	const struct drain_input *in;
	struct drain_state *state;
	struct place *place;
	struct drain_plan *plan;
	int64_t now_ns;
	bool corrected;
	bool measured; /* some node's use is known */
	size_t count;
	struct drain_case *cases; /* owned; by place_node */
	struct drain_pdbs *pdbs;
	size_t budget_count;
	int64_t *allowed_by; /* owned; by budget, before the candidates */
	struct drain_owners *owners; /* owned; NULL until needed */
	struct gangs *gangs; /* owned; NULL: upstream */
	struct drain_context rules;
	struct drain_unremovable *failed; /* of the state */
	struct {
		enum drain_extra kind;
		uint32_t placeholder; /* number of the input */
	} * extra; /* owned; by handle below extra_count */
	size_t extra_count;
	place_pod *slack; /* owned; handles by number of the input's placeholder */
	size_t slack_asks; /* placeholders taken by note_slack() */
	struct buf narration;
	size_t *set; /* owned; cases of the candidate set, in the order they were accepted */
	size_t set_count;
	bool *stays; /* owned; by node: not in the set; NULL before it is complete */
	struct drain_pick *picks; /* owned; the wave so far */
	size_t pick_count;
};

/* A node of the wave. */
struct drain_pick {
	size_t number; /* in the candidate set */
	place_node node;
	place_mark mark; /* before it */
	struct drain_placement placed; /* its items are owned */
};

/* --- drain_plan.c */

/* Time is up, and enough nodes were simulated: even a slow step makes progress. */
bool drain_is_late(const struct drain_run *r, size_t simulated);

/* Appends a reason; its text is cut at 1 KiB. */
struct drain_why *drain_add_reason(struct drain_case *c, enum drain_reason code, const char *format,
				   ...) __attribute__((format(printf, 3, 4)));
void drain_add_number(struct drain_why *w, const char *name, double value);
void drain_forget_reasons(struct drain_plan_node *n);
/* Why a pod stays; without a sentence the name of the code. */
void drain_explain_stay(struct drain_case *c, const struct kube_pod *pod, enum drain_reason code,
			const char *why);

/* --- drain_gangs.c */

void drain_gangs_open(struct drain_run *r);

/*
 * Sets c->leave and counts it as gone until drain_gangs_release(). False: a pod that would fall must
 * stay, and the case has the reasons.
 */
bool drain_gangs_close(struct drain_run *r, struct drain_case *c);
void drain_gangs_release(struct drain_run *r, struct drain_case *c);
/* Appends the reason of a group that falls, if any. */
void drain_gangs_explain(struct drain_case *c);

/* --- drain_reserve.c */

/* Reserves room and budget before candidates are simulated. False: a pod fits nowhere. */
bool drain_reserve(struct drain_run *r);
enum drain_extra drain_extra_of(const struct drain_run *r, place_pod pod);
/* Whether extra capacity has room without the first picks; else the reason says what has none. */
bool drain_slack_holds(struct drain_run *r, size_t count, struct error *error);

/* --- drain_try.c */

/* Result of the simulation of one node. */
struct drain_trial {
	enum drain_reason reason; /* DRAIN_NONE: all of its pods fit elsewhere */
	const struct kube_pod *pod; /* the first that fits nowhere */
	struct place_counts counts; /* refusals without the node itself */
	size_t rivals; /* other candidates among the nodes that are gone */
	struct error terms[PLACE_FILTERS]; /* first refusal by the pod's own terms; "" none */
	bool admitted; /* its terms admit some node that stays, */
	bool room_refuses; /* and such a node lacks room */
	bool holds; /* an admitted node could hold the pod if it were empty */
	bool rival_admitted; /* its terms admit a candidate */
	size_t others; /* further pods that fit nowhere */
	const struct kube_pod **other; /* owned by drain_explain_trial() */
	const char *nearest; /* least over the cap of real use; NULL: the cap refuses nowhere */
	struct place_prediction predicted; /* of nearest, with the pod */
	const char *class_name; /* of placeholders that fit nowhere */
	size_t missing; /* their number, */
	int64_t missing_cpu_milli, missing_mem_bytes; /* and requests */
	const char *without_slack; /* a node with room but for placeholders; NULL: not known */
	struct drain_placement placed; /* the caller frees its items */
};

/*
 * Moves all pods that are on the node; a failure changes nothing. Hints are the destinations of
 * c->placed.items, else those of the state.
 */
void drain_try_node(struct drain_run *r, const struct drain_case *c, const bool *allowed,
		    struct drain_trial *out);
/* Adds the reasons of a failed trial, once. */
void drain_explain_trial(struct drain_case *c, struct drain_trial *t);

/* --- drain_wave.c */

void drain_choose_wave(struct drain_run *r);
/* Whether the pod needs another node: it neither ended nor ends with its replacement running. */
bool drain_must_move(struct drain_run *r, const struct kube_pod *pod);

/* --- drain_history.c */

/* The first reason, or that of the pod which blocks the node; NULL: none. */
const struct drain_why *drain_decisive(const struct drain_plan_node *n);
/* Records the changes since the last plan. */
void drain_note_plan(struct drain_run *r);

/* --- drain_narrate.c */

void drain_narrate(struct drain_run *r);

/* --- drain_robust.c */

/* Of a wave that is not in the simulation. */

/* The first pick with a pod that has no place in another order, and why; SIZE_MAX: none found. */
size_t drain_find_fragile(struct drain_run *r, struct error *error);
/* Whether every order is proven to have room. */
bool drain_holds_in_any_order(struct drain_run *r);

/* --- drain_record.c */

/* Records the node's own pods with their destinations in the plan. */
void drain_record_moves(struct drain_run *r, struct drain_case *c,
			const struct drain_placement *placed);
/* Records the wave in the plan. The simulation holds it, and is reverted to its start. */
void drain_record_wave(struct drain_run *r);

/* Sets the verdict of destinations, after drain_record_wave(). */
void drain_record_kept(struct drain_run *r);

/*
 * --- drain_order.c
 *
 * The order in which candidates are simulated.
 *
 *   upstream   empty nodes, then nodes that only wait for pods to end, then the others; candidates of
 *              the run before first; then the given order (upstream's sort is unstable)
 *   corrected  the same classes; then nodes without a bursting pod; then the run before, for stable
 *              waves; then the cheapest to move: fewer pods, less CPU, less memory in use; then by name
 */

/* A candidate in the order. */
struct drain_rank {
	const char *node;
	size_t movable; /* pods that move or block */
	size_t waiting; /* pods whose end is waited for */
	bool before; /* a candidate of the run before */
	bool bursting; /* some pod uses much more CPU than usual */
	double cpu_milli, working_set_bytes; /* used by pods that move; 0: not measured */
};

/* Numbers of `ranks` in their order into `out`. */
void drain_order(enum drain_variant variant, const struct drain_rank *ranks, size_t count,
		 size_t *out);

/* --- measurements of a node */

/* Fresh or late. */
bool drain_is_measured(const struct view_node *n, int64_t now_ns);
/* Not measured, with active pods that are not of DaemonSets. */
bool drain_is_unmeasured(const struct view_node *n, const struct kube_pod *const *pods,
			 size_t count, int64_t now_ns);
/* Whether a pod of the node is, or may be, unreadable; the reason names it. */
bool drain_hides_pod(const struct cluster *cluster, const char *node, struct error *error);
/* The larger share of CPU and working set (means of the longest window). False: not known. */
bool drain_used_share(const struct view_node *n, int64_t now_ns, double *share);
/* Sets use and bursting of the rank, for the pods that move. */
void drain_rank_use(const struct view_node *n, const struct kube_pod *const *move, size_t count,
		    struct drain_rank *rank);
/*
 * Adds a reason if right-sized requests would make the node unneeded, with the pods whose requests
 * are furthest from their use.
 */
void drain_explain_idle(const struct drain_run *r, struct drain_case *c,
			const struct drain_utilization *u);
