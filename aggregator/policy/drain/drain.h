/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The drain planner: nodes that could be removed, nodes that are drained now, the destination of
 * every pod of them, and the reasons why the others stay.
 *
 *     struct drain_state *s = drain_state_new();
 *     plan = drain_step(s, &input, &config);      on every change of the cluster
 *     drain_plan_free(plan);
 *
 * A step is pure: equal state, view and time give the same bytes, in any order of the input.
 *
 *   1. drain_state.c finds pods that were evicted since the last view. Nodes with an unreadable pod
 *      are neither candidates nor destinations; unready nodes are no destinations (corrected)
 *   2. drain_reserve.c reserves room: for pods of nodes in deletion, replicas that evictions left
 *      missing, nominated and pending pods by priority, placeholders of extra capacity
 *   3. drain_plan.c and drain_try.c simulate candidate after candidate. A node whose pods all fit
 *      elsewhere joins the candidate set, and its timer runs
 *   4. drain_wave.c selects the wave: nodes of the set that waited long enough and that minima,
 *      budgets, owners' shares and schedules allow together; it simulates them alone and in other
 *      orders
 *
 *   upstream   cluster-autoscaler's planner: destinations in cyclic order; pods may move to a
 *              candidate; the candidate set uses up budgets; reserved pods without a node stop
 *              nothing; nodes that were not examined lose their timers
 *   corrected  destinations fullest first, under the cap of real use; a destination is not drained
 *              in the same run; a reserved pod without a node stops all candidates; only the wave
 *              uses up budgets
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/policy/drain/drain_groups.h"
#include "aggregator/policy/drain/drain_options.h"
#include "aggregator/policy/drain/drain_window.h"
#include "aggregator/policy/place/place.h"
#include "shared/buf.h"
#include "shared/error.h"

/* All borrowed. */
struct drain_config {
	struct drain_options rules;
	const struct drain_group_rule *groups; /* drain.groups; drain_groups_check() them before */
	size_t group_count;
	const char *const *group_labels; /* drain.groupLabels: a node's first names its group */
	size_t group_label_count;
	struct drain_floor cluster_min; /* drain.clusterMin; -1: no limit */
	const struct drain_window *windows; /* budgets with schedules, over the whole cluster */
	size_t window_count;
	enum place_order order; /* of destinations */
	bool by_name; /* candidates in the order of their names, and not as drain_order.c has it */
	uint32_t robust_orders; /* 5 other orders to test a wave in; 0: no wave is robust */
	uint32_t robust_tries; /* 8 waves at most, until one is robust */
	bool not_robust; /* false: a wave must be robust */
	int64_t assume_unneeded_ns; /* age of a new timer: a dump has no past */
	double headroom; /* 1.15: right-sized requests / 95th percentile of use */
};

void drain_config_default(struct drain_config *c);
void drain_config_upstream(struct drain_config *c);

/*
 * A pod that keeps room free on a node (slack); it moves with the node, and uses no drain budget.
 */
struct drain_placeholder {
	const struct kube_pod *pod; /* held by the place while it is asked about */
	const char *node;
	const char *class_name;
};

struct slack_result;

struct drain_input {
	/* As new of the view. The step reverts it, but leaves evicted pods and placeholders in it,
	 * on no node. */
	struct place *place;
	struct view *view;
	int64_t now_ns;
	const struct drain_placeholder *slack;
	size_t slack_count;
	/*
	 * Whether the extra capacity wanted without those nodes has room in the simulation
	 * (slack_holds_without()); pods are the placeholders. NULL: not checked.
	 */
	bool (*slack_holds)(const struct slack_result *result, struct place *p,
			    const place_pod *pods, const place_node *gone, size_t count,
			    struct error *error);
	const struct slack_result *slack_result;
	/* Whether the time for simulation is up; NULL: never. Called before each candidate. */
	bool (*out_of_time)(void *context);
	void *context;
	/*
	 * Gets the memory that the step begins with (drain_state_write()), together with the evictions
	 * since the step before: another state that reads it needs no cluster of that step. NULL: not
	 * wanted.
	 */
	struct buf *begun;
};

/* --- the plan */

struct drain_number {
	const char *name; /* of drain_number_names */
	double value;
};

extern const char *const drain_number_names[]; /* in camelCase with their units, up to NULL */

enum { DRAIN_NUMBERS = 4 };

/* A reason; those of a node form a chain, from the decision to its details. */
struct drain_why {
	enum drain_reason code; /* drain_reason_name() */
	char *text; /* owned; a sentence with the numbers */
	const char *unblock; /* what would change it; "" nothing */
	const struct kube_pod *pod; /* of the plan's view; NULL: none */
	bool counted; /* refused is set: nodes by the filter that refused */
	struct place_counts refused;
	uint32_t number_count;
	struct drain_number numbers[DRAIN_NUMBERS];
};

/* The members "numbers" and "refused" of an object, as far as the reason has them. */
void drain_why_write(const struct drain_why *why, struct jsonw *w);

enum drain_verdict {
	DRAIN_NEEDED, /* it stays; the reasons say why */
	DRAIN_UNEXAMINED, /* not examined in this run; its timer runs on (corrected) */
	DRAIN_UNNEEDED, /* a candidate; the reasons say why it is not in the wave */
	DRAIN_SELECTED, /* in the wave */
	DRAIN_IN_DELETION,
	DRAIN_KEPT, /* a destination of the wave */
	DRAIN_DRAINED, /* cordoned and empty: it uses up no limit (corrected) */
	DRAIN_VERDICTS
};

/* "needed", "notExamined", "unneeded", "drain", "inDeletion", "kept", "drained" */
const char *drain_verdict_name(enum drain_verdict v);

/* Whether the pod has no controller: a drain deletes it without a replacement. */
bool drain_is_deleted(const struct kube_pod *pod);

/* A pod that moves, or is deleted. */
struct drain_move {
	const struct kube_pod *pod; /* of the plan's view, or a reserved pod or a placeholder */
	const char *to; /* node of the plan's view; NULL: nowhere, or it needs none (it ended) */
	uint32_t after; /* of a guest: moves of the node that are placed before it */
	uint32_t step; /* it leaves when the replacements of step - 1 are ready; 0: no steps */
};

struct drain_plan_node {
	const char *name; /* of the view */
	enum drain_verdict verdict;
	int64_t since_ns; /* unneeded since; 0: it is not */
	int64_t due_ns; /* end of its waiting time; 0: it is not unneeded */
	const char *group; /* owned by the plan; NULL: none */
	bool atomic; /* the nodes of its group go all at once, or none */
	bool requested_known, used_known;
	double requested_share; /* utilisation by requests */
	double used_share; /* the larger of CPU and working set in use, of allocatable */
	double right_sized_share; /* requested_share with right-sized requests; 0: not known */
	bool idle_in_fact; /* needed by its requests, unneeded by right-sized ones */
	bool robust; /* selected, and the wave is robust */
	size_t move_count; /* in the wave, else in the simulation */
	size_t guest_count; /* pods with reserved room on the node, which moves with it */
	struct drain_move *moves; /* owned; those of the node's pods, then of guests */
	size_t reason_count;
	struct drain_why *reasons; /* owned */
};

/* A node that takes pods of the wave. */
struct drain_destination {
	const char *node;
	size_t pods; /* of the wave */
	bool predicted; /* before and after are set: the cap applies */
	struct place_prediction before, after;
};

/* Disruptions of a budget or an owner by the wave. */
struct drain_cost {
	const struct kube_pdb *budget; /* NULL: of an owner */
	const char *namespace;
	const char *kind, *name;
	size_t pods; /* that leave */
	bool limited; /* allowed and left are set */
	int64_t allowed, left; /* disruptions before and after the wave */
	bool one_after_the_other; /* it exceeds allowed: the eviction API makes pods wait */
};

struct drain_wave {
	size_t node_count, empty_count; /* the empty ones come first */
	const struct drain_plan_node **nodes; /* owned array of the plan's nodes, in order */
	size_t destination_count;
	struct drain_destination *destinations; /* owned; by name */
	size_t cost_count;
	struct drain_cost *costs; /* owned; budgets by namespace and name, then owners likewise */
	size_t pods; /* that move */
	bool robust; /* also feasible in other orders (drain_robust.c) */
	struct error not_robust; /* why not; "" */
	bool any_order; /* proven for every order */
};

/* Use of the limits of parallel drains. */
struct drain_throttle {
	bool throttled; /* ScaleDownThrottled: nodes wait, and the limit is reached */
	int64_t used, limit; /* nodes in deletion and in this wave */
	int64_t drains_used, drains_limit; /* of them, nodes with pods to move */
	size_t held; /* nodes that wait for the limit alone */
};

/* Pods that got room before candidates were simulated (drain_reserve.c). */
struct drain_reserved {
	size_t of_deletions, of_evictions, pending, placeholders; /* pods */
	size_t placed;
	size_t move_count;
	struct drain_move *moves; /* owned; the placed ones without placeholders, in order */
	size_t unplaced; /* of deletions and evictions; above 0: no candidates (corrected) */
	size_t waiting; /* unschedulable replacements of drained pods; above 0: no candidates */
	struct error error; /* about unplaced or waiting; "" both are 0 */
};

/* Immutable; holds the view. */
struct drain_plan {
	struct view *view; /* held */
	int64_t time_ns;
	enum drain_variant variant;
	bool capped; /* the cap of real use applied */
	double owner_share; /* of the options */
	bool shared; /* place_use_is_shared() */
	bool complete; /* every candidate was examined */
	size_t node_count;
	struct drain_plan_node *nodes; /* owned; sorted by name */
	struct drain_wave wave;
	struct drain_throttle throttle;
	struct drain_reserved reserved;
	size_t examined; /* nodes simulated */
	size_t unneeded; /* nodes of the candidate set */
	size_t evictions; /* recent ones */
	char *narration; /* owned; lines, each ended */
	struct drain_record *records; /* owned; changes since the last step */
	size_t record_count;
	struct kube_pod **held; /* owned: pods of moves that the view does not have */
	size_t held_count;
	struct drain_groups groups; /* owned */
};

struct drain_state;

/* Never fails; the caller owns the plan. */
struct drain_plan *drain_step(struct drain_state *s, const struct drain_input *in,
			      const struct drain_config *c);
void drain_plan_free(struct drain_plan *p); /* NULL is allowed */
/* NULL: no such node. */
const struct drain_plan_node *drain_plan_find(const struct drain_plan *p, const char *node);

/* --- memory from step to step */

enum drain_event {
	/* the verdict of a node (enum drain_verdict, but UNEXAMINED) or its first reason changed */
	DRAIN_EVENT_NEEDED = DRAIN_NEEDED,
	DRAIN_EVENT_UNNEEDED = DRAIN_UNNEEDED,
	DRAIN_EVENT_SELECTED = DRAIN_SELECTED,
	DRAIN_EVENT_IN_DELETION = DRAIN_IN_DELETION,
	DRAIN_EVENT_WAVE = DRAIN_VERDICTS, /* the wave changed; about no node */
	DRAIN_EVENT_EVICTED, /* a pod left */
	DRAIN_EVENT_GONE, /* the node left */
	DRAIN_EVENTS
};

/* As the verdict's, then "wave", "evicted", "gone". */
const char *drain_event_name(enum drain_event e);

struct drain_record {
	int64_t time_ns;
	enum drain_event event;
	enum drain_reason reason; /* DRAIN_NONE: there is none */
	bool verdict; /* of a node: it changed, and not its reason alone */
	char *node; /* owned; "" of a wave */
	char *text; /* owned; a sentence */
};

void drain_record_fini(struct drain_record *r);

/* Bounds of a state; beyond them the oldest is dropped. */
enum {
	DRAIN_HISTORY_MAX = 1024,
	DRAIN_RECORDS_MAX = 10000, /* of one step */
	DRAIN_EVICTIONS_MAX = 10000,
	DRAIN_HINTS_MAX = 1000000,
};

struct drain_state *drain_state_new(void);
void drain_state_free(struct drain_state *s); /* NULL is allowed */
/* Adds a recent eviction in place of an older one. leaving: its node was cordoned or in deletion. */
void drain_state_add_eviction(struct drain_state *s, struct kube_pod *pod, int64_t when_ns,
			      bool leaving);
/* The newest last; valid until the next step. */
const struct drain_record *drain_state_history(const struct drain_state *s, size_t *count);

/*
 * {"apiVersion":"evenkeel.io/v1","kind":"DrainState","time":..,
 *  "timers":[{"node","since","kind":"unneeded|unready"}],
 *  "unremovable":[{"node","reason","why"[,"numbers"][,"refused"][,"unblock"],"until"}],
 *  "evictions":[{"time"[,"leaving":true],"pod":{a Pod as a snapshot has it}}],
 *  "hints":{"pod uid":"node"},
 *  "verdicts":[{"node","verdict","reason"}],"wave":"..",  as last recorded
 *  "history":[{"time","event","node"[,"reason"],"text"}]}
 * times in RFC 3339, exact to the nanosecond
 */
void drain_state_write(const struct drain_state *s, int64_t now_ns, struct buf *out);
/*
 * Replaces what the text has; the cluster of the last step stays, so that the next one finds evictions
 * since then. -EINVAL, and nothing changes: the reason names the unreadable member. Timers older than
 * ttl_ns are dropped, as are evictions and failures past their time.
 */
int drain_state_read(struct drain_state *s, const char *text, size_t len, int64_t ttl_ns,
		     int64_t now_ns, struct error *reason);
