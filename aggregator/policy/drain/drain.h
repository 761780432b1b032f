/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The drain planner: which nodes could go, which go now, where every pod of them would go, and why
 * the others stay.
 *
 *     struct drain_state *s = drain_state_new();
 *     plan = drain_step(s, &input, &config);      each time there is news
 *     drain_plan_free(plan);
 *
 * A step is pure: the same state, view and time give the same plan, byte for byte, whatever the
 * order of the input. What it does, in this order:
 *
 *   1. sees which pods were evicted since the view before, and forgets old evictions
 *      (drain_state.c); nodes with pods that cannot be read are neither candidates nor
 *      destinations, and those that are not ready are no destinations (corrected)
 *   2. reserves room: for pods of nodes in deletion, replicas that evictions left missing,
 *      nominated and pending pods by priority, placeholders of extra capacity; what they take is
 *      gone (drain_reserve.c)
 *   3. asks the candidates one after the other whether all of their pods fit elsewhere, and keeps
 *      each that can go beside those before it: the candidate set; runs their timers
 *      (drain_plan.c, drain_try.c)
 *   4. chooses the wave: those of the set that waited long enough, and that minima, budgets, shares
 *      of owners and schedules let go together now; checks them by themselves, and in other orders
 *      (drain_wave.c)
 *
 *   upstream   cluster-autoscaler's planner: destinations in cyclic order, pods may hop from
 *              candidate to candidate, budgets are used up by the candidate set, reserved pods
 *              that fit nowhere are only told, nodes that were not reached lose their timers
 *   corrected  destinations fullest first under the cap of real use, and none of them is drained in
 *              the same run; where a reserved pod fits nowhere no node is a candidate; budgets are
 *              used up by the wave alone, so that timers run for all that fit
 */
#ifndef EVENKEEL_AGGREGATOR_POLICY_DRAIN_DRAIN_H
#define EVENKEEL_AGGREGATOR_POLICY_DRAIN_DRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/policy/drain/drain_groups.h"
#include "aggregator/policy/drain/drain_options.h"
#include "aggregator/policy/drain/drain_window.h"
#include "aggregator/policy/place/place.h"
#include "shared/buf.h"
#include "shared/error.h"

/* --- what it is told */

/* All borrowed. */
struct drain_config {
	struct drain_options rules;
	const struct drain_group_rule *groups; /* drain.groups; drain_groups_check() them before */
	size_t group_count;
	const char *const
		*group_labels; /* drain.groupLabels: the first that a node has names its group */
	size_t group_label_count;
	struct drain_floor cluster_min; /* drain.clusterMin; -1: no limit */
	const struct drain_window *windows; /* budgets with schedules, over the whole cluster */
	size_t window_count;
	enum place_order order; /* of destinations */
	bool by_name; /* candidates in the order of their names, and not as drain_order.h has it */
	/*
	 * 5: in so many other orders a wave is tried, and with each owner's pods last; 0: none is
	 * called robust
	 */
	uint32_t robust_orders;
	uint32_t robust_tries; /* 8: so many waves are tried for one that is robust */
	bool not_robust; /* false; a wave goes also where none of them is */
	/* A node that is found unneeded counts as being so for that long: dumps have no past. */
	int64_t assume_unneeded_ns;
	/* 1.15: what right-sized requests would be, of the 95th percentile of use */
	double headroom;
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

struct drain_input {
	/* As a new one of the view. After the step it is as before, but for evicted pods and
	 * placeholders, which it has then, and nowhere. */
	struct place *place;
	struct view *view;
	int64_t now_ns;
	const struct drain_placeholder *slack;
	size_t slack_count;
	/*
	 * Whether extra capacity, which may be of another size without those nodes, has its places
	 * in the simulation as it is then (slack_holds_without()); pods are the placeholders'. NULL:
	 * not asked.
	 */
	bool (*slack_holds)(const void *context, struct place *p, const place_pod *pods,
			    const place_node *gone, size_t count, struct error *error);
	const void *slack_context;
	/* Names to be examined; NULL: all. The others are not examined, and keep their timers. */
	const char *const *candidates;
	size_t candidate_count;
	/* Whether the time for simulation is up; NULL: never. Asked before each candidate. */
	bool (*out_of_time)(void *context);
	void *context;
};

/* --- the plan */

struct drain_number {
	const char *name; /* static, in camelCase with its unit */
	double value;
};

enum { DRAIN_NUMBERS = 4 };

/* A link of the chain: what it is, then what of it. */
struct drain_why {
	enum drain_reason code; /* drain_reason_name() */
	char *text; /* owned; a sentence with the numbers */
	const char *unblock; /* what would change it; "" nothing would */
	const struct kube_pod *pod; /* of the plan's view; NULL: none */
	bool counted; /* refused is set: by how many nodes, and which filter of each */
	struct place_counts refused;
	uint32_t number_count;
	struct drain_number numbers[DRAIN_NUMBERS];
};

enum drain_verdict {
	DRAIN_NEEDED, /* it stays; the reasons say why */
	/* not examined in this run; its timer, if it has one, runs on (corrected) */
	DRAIN_NOT_ASKED,
	DRAIN_UNNEEDED, /* it could go; the reasons say why it does not yet */
	DRAIN_SELECTED, /* it is in the wave */
	DRAIN_IN_DELETION, /* in deletion */
	DRAIN_KEPT, /* it stays, as pods of nodes that go would come to it */
	DRAIN_DRAINED, /* cordoned and empty: done, and uses up no limit (corrected) */
	DRAIN_VERDICTS
};

const char *drain_verdict_name(
	enum drain_verdict
		/* "needed", "notExamined", "unneeded", "drain", "inDeletion", "kept", "drained" */
		v);

/* It has no controller that would make it anew: a drain deletes it, and it moves nowhere. */
bool drain_is_deleted(const struct kube_pod *pod);

/* A pod that moves, or is deleted. */
struct drain_move {
	const struct kube_pod *pod; /* of the plan's view, or a reserved pod or a placeholder */
	const char *to; /* node of the plan's view; NULL: nowhere, or it needs none (it ended) */
	/*
	 * 1 and up, of nodes that go in steps: it leaves when the replacements of those of the step
	 * before are ready. 0: all leave at once.
	 */
	uint32_t step;
};

struct drain_plan_node {
	const char *name; /* of the view; or as it was asked for */
	enum drain_verdict verdict;
	int64_t since_ns; /* unneeded since; 0: it is not */
	int64_t due_ns; /* it may go after that; 0: it is not unneeded */
	const char *group; /* owned by the plan; NULL: none */
	bool requested_known, used_known;
	double requested_share; /* what its utilisation is by requests */
	double used_share; /* the larger of CPU and working set in use, of allocatable */
	/* Requested, were requests the 95th percentile of use, and headroom; 0: not known. */
	double right_sized_share;
	bool idle_in_fact; /* by requests it is needed, and would not be if they were right-sized */
	bool robust; /* of nodes that go: the wave is */
	size_t move_count; /* where its pods went in the simulation, or go in the wave */
	struct drain_move *moves; /* owned */
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

/* What the wave costs a budget or an owner. */
struct drain_cost {
	const struct kube_pdb *budget; /* NULL: of an owner */
	const char *namespace;
	const char *kind, *name; /* of the owner; "" */
	size_t pods; /* that leave */
	bool limited; /* allowed and left are set: of budgets, and of owners by their share */
	int64_t allowed, left; /* how many may leave at once, before the wave and after it */
	/* Uses more than is allowed at once, all of one node: the eviction API makes them wait. */
	bool one_after_the_other;
};

struct drain_wave {
	size_t node_count, empty_count; /* the empty ones come first */
	/* owned array of the plan's nodes, in the order they should go */
	const struct drain_plan_node **nodes;
	size_t destination_count;
	struct drain_destination *destinations; /* owned; by name */
	size_t cost_count;
	struct drain_cost *costs; /* owned; budgets by namespace and name, then owners likewise */
	size_t pods; /* that move */
	bool robust; /* it is also feasible in other orders, emptiest node first */
	struct error not_robust; /* why not; "" */
	bool any_order; /* proven: wherever the others go, each pod has a place */
};

/* How much of what may be on its way at once is used. */
struct drain_throttle {
	bool throttled; /* ScaleDownThrottled: nodes are held, and no more of any kind may go */
	int64_t used, limit; /* nodes: in deletion, and of this wave */
	int64_t drains_used, drains_limit; /* of them, those with pods to move */
	size_t held; /* nodes that may go and must wait for others */
};

/* What was placed before the candidates were asked. */
struct drain_reserved {
	size_t of_deletions, of_evictions, pending, placeholders; /* pods */
	size_t placed;
	/* of those of deletions and evictions: no node is a candidate then (corrected) */
	size_t unplaced;
	/*
	 * Pods that replace those of nodes that leave, and that the scheduler has had no node for:
	 * no node is a candidate then, either. Balloons do not count.
	 */
	size_t waiting;
	struct error error; /* of one of both; "" neither */
};

/* Immutable; holds the view. */
struct drain_plan {
	struct view *view; /* held */
	int64_t time_ns;
	enum drain_variant variant;
	bool capped; /* real use was asked for */
	bool shared; /* and of some pods it is a share of their node's (place_use_is_shared()) */
	bool complete; /* every candidate was examined */
	size_t node_count;
	struct drain_plan_node *nodes; /* owned; sorted by name */
	struct drain_wave wave;
	struct drain_throttle throttle;
	struct drain_reserved reserved;
	size_t examined, unneeded,
		evictions; /* nodes simulated; in the candidate set; recent evictions */
	char *narration; /* owned; lines, each ended */
	/* Owned; what this step decided otherwise than the one before, or found gone. */
	struct drain_record *records;
	size_t record_count;
	struct kube_pod **held; /* owned: pods of moves that are not of the view */
	size_t held_count;
	char **names; /* owned: of groups */
	size_t name_count;
};

struct drain_state;

/* Never fails; the caller owns the plan. */
struct drain_plan *drain_step(struct drain_state *s, const struct drain_input *in,
			      const struct drain_config *c);
void drain_plan_free(struct drain_plan *p); /* NULL is allowed */
/* NULL: no such node. */
const struct drain_plan_node *drain_plan_find(const struct drain_plan *p, const char *node);

/* --- what is remembered from step to step */

enum drain_event {
	/* The verdict about a node, or its first reason, is another one. */
	DRAIN_EVENT_NEEDED,
	DRAIN_EVENT_UNNEEDED,
	DRAIN_EVENT_SELECTED,
	DRAIN_EVENT_IN_DELETION,
	DRAIN_EVENT_KEPT,
	DRAIN_EVENT_DRAINED,
	DRAIN_EVENT_WAVE, /* other nodes go together, or none do; about no node */
	DRAIN_EVENT_EVICTED, /* a pod left */
	DRAIN_EVENT_GONE, /* the node left */
	DRAIN_EVENTS
};

/* As the verdict's, then "wave", "evicted", "gone". */
const char *drain_event_name(enum drain_event e);

/* A decision, or what became of it. */
struct drain_record {
	int64_t time_ns;
	enum drain_event event;
	enum drain_reason reason; /* DRAIN_NONE: there is none */
	char *node; /* owned; "" of a wave */
	char *text; /* owned; a sentence */
};

void drain_record_fini(struct drain_record *r);

/*
 * Bounds, so that a state cannot grow without end; what is over them is dropped, the oldest first.
 */
enum {
	DRAIN_HISTORY_MAX = 1024,
	DRAIN_RECORDS_MAX = 10000, /* of one step */
	DRAIN_EVICTIONS_MAX = 10000,
	DRAIN_HINTS_MAX = 1000000,
};

struct drain_state *drain_state_new(void);
void drain_state_free(struct drain_state *s); /* NULL is allowed */
/*
 * One more recent eviction, as drain_step() finds them by comparing views; an older one of the pod
 * is forgotten. leaving: its node was cordoned or in deletion.
 */
void drain_state_add_eviction(struct drain_state *s, struct kube_pod *pod, int64_t when_ns,
			      bool leaving);
/* The newest last; valid until the next step. */
const struct drain_record *drain_state_history(const struct drain_state *s, size_t *count);

/*
 * {"apiVersion":"evenkeel.io/v1","kind":"DrainState","time":..,
 *  "timers":[{"node","since","kind":"unneeded|unready"}],
 *  "unremovable":[{"node","reason","why","until"}],
 *  "evictions":[{"time"[,"leaving":true],"pod":{a Pod as a snapshot has it}}],
 *  "hints":{"pod uid":"node"},
 *  "verdicts":[{"node","verdict","reason"}],"wave":"..",  the newest that were told
 *  "history":[{"time","event","node"[,"reason"],"text"}]}
 * times in RFC 3339, exact to the nanosecond
 */
void drain_state_write(const struct drain_state *s, int64_t now_ns, struct buf *out);
/*
 * In place of all that is in *s. -EINVAL, and nothing changes: the reason names the member that
 * cannot be read. What was saved longer than ttl_ns ago says nothing about today: timers are then
 * dropped, as are evictions and failures whose own time is up.
 */
int drain_state_read(struct drain_state *s, const char *text, size_t len, int64_t ttl_ns,
		     int64_t now_ns, struct error *reason);

#endif
