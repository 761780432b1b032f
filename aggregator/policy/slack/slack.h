/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resource slack: room that is kept for pods to come. Placeholders stand for it: integers per class
 * and node, which stay where they are from step to step, make way for real pods, and are pods like
 * others for whoever plans a drain. Pure and deterministic.
 *
 *   classes   workload NS/KIND/NAME   a workload with the annotation evenkeel.io/slack: "2" or
 *                                     "10%" (of its replicas) is mirrored: its shape, its labels,
 *                                     and all that it asks of nodes and of other pods
 *             cover-N                 sizes that hold any pod of the workloads that say "shared"
 *                                     (slack_target.h)
 *             unit                    what is missing to the cluster's rate
 *
 * A step: verify what stands, count what is wanted, remove what is too much, place what is missing,
 * and say for each class what there is.
 */
#ifndef EVENKEEL_AGGREGATOR_POLICY_SLACK_SLACK_H
#define EVENKEEL_AGGREGATOR_POLICY_SLACK_SLACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/policy/place/place.h"
#include "aggregator/policy/slack/slack_arrivals.h"
#include "aggregator/policy/slack/slack_target.h"
#include "aggregator/state/view.h"
#include "shared/buf.h"
#include "shared/error.h"

#define SLACK_ANNOTATION "evenkeel.io/slack"
/* What all placeholders have as their controller, and where those of no workload are. */
#define SLACK_REPLICA_SET "evenkeel-slack"
#define SLACK_NAMESPACE	  "evenkeel"
/* What balloons (slack_yaml.h) have, with the name of their class's objects. */
#define SLACK_CLASS_LABEL "evenkeel.io/slack-class"

enum slack_base {
	SLACK_BASE_REQUESTED, /* what pods that are no DaemonSet's request */
	SLACK_BASE_ALLOCATABLE, /* what nodes that count can give to such pods */
};

struct slack_options {
	int64_t rate_ppm; /* 100000 (10 %); [0, 1000000) */
	enum slack_base base;
	uint32_t granularity; /* 5 */
	/* 10 min: a target is lowered only after it stayed lower for so long */
	int64_t unneeded_ns;
	/*
	 * The target is what arrives while a node starts (slack_arrivals.h), once watched for a
	 * day; until then the rate.
	 */
	bool from_arrivals;
	int64_t node_start_ns; /* 3 min */
	int64_t arrivals_keep_ns; /* 14 days */
	/* Slots by real use: what nodes may use of what they can give. */
	double cpu_share, mem_share; /* 0.85, 0.90 */
	/*
	 * Bounds of what outsiders can ask for: placeholders of one class and of all, and nodes
	 * that displacing tries in a step.
	 */
	uint32_t class_max, placeholders_max, displace_max; /* 5000, 50000, 20000 */
};

void slack_options_default(struct slack_options *o);

enum slack_kind { SLACK_WORKLOAD, SLACK_COVER, SLACK_UNIT };

/* Why a placeholder was moved. */
enum slack_cause {
	/* the node's pods left no room, or a rule forbids what stands there: see filter */
	SLACK_PUSHED_OUT,
	SLACK_NODE_LEFT, /* the node is gone, not ready, cordoned or in deletion */
	SLACK_SURPLUS, /* fewer are wanted */
	SLACK_CLASS_LEFT, /* nobody wants that class any more */
	SLACK_DISPLACED, /* made way for a class that has fewer choices: see by */
	SLACK_PLACED, /* was nowhere */
	SLACK_CAUSES
};

const char *slack_cause_name(enum slack_cause c); /* "PushedOut", .. */

/* One placeholder's. */
struct slack_move {
	const char *class; /* key; borrowed from the result */
	const char *from, *to; /* names of nodes, of the result; NULL: nowhere */
	enum slack_cause cause;
	enum place_filter filter; /* PUSHED_OUT */
	const char *by; /* DISPLACED: key of the class */
};

struct slack_class {
	const char *key; /* "shop/Deployment/web", "cover-1", "unit" */
	enum slack_kind kind;
	const struct kube_pod *record; /* what a placeholder is for the simulation; held */
	struct slack_amount shape;
	const char *signature; /* canonical JSON of what it asks of nodes and pods; "" nothing */
	uint32_t target; /* by today's numbers */
	uint32_t wanted; /* with what is not given up yet */
	int64_t lower_ns; /* when wanted comes down if the target stays; 0: it is the target */
	uint32_t placed, unplaced; /* = wanted */
	/*
	 * real pods that hold the room of so many of it (slack_balloon.c); the rest of placed are
	 * placeholders
	 */
	uint32_t balloons;
	/* no node there is could hold one, were it empty: more nodes do not help */
	bool fits_no_node;
	struct error why; /* of unplaced; "" none */
	struct place_counts refused; /* nodes by filter, where some are unplaced */
	/*
	 * How many pods like that could start now in what real pods leave free; placeholders are no
	 * obstacle.
	 */
	int64_t slots;
	bool slots_more; /* rules had to be tried one by one, and there are at least so many */
	/* of them, where the CPU and memory are really there; -1: no node is measured */
	int64_t slots_by_use;
	/*
	 * 1 - slots * shape / free, of the resource that is scarcer, in millionths; 0 where nothing
	 * is free.
	 */
	int64_t fragmentation_ppm;
};

/* A placeholder on its node; by node, then class. */
struct slack_placed {
	place_pod pod; /* in the simulation given to the step, until that is updated or undone */
	uint32_t class; /* place in classes */
	place_node node;
};

/* Nodes that would hold what is unplaced. */
struct slack_demand {
	const char *like; /* the first node, by name, of that size and instance type */
	const char *instance_type; /* its label, "" none */
	struct slack_amount gives; /* to pods of no DaemonSet */
	uint32_t count;
};

/* Input that was left out, and whose. */
struct slack_issue {
	char *who, *text; /* owned */
};

struct slack_basis;

struct slack_result {
	uint32_t nodes; /* that count: ready, not cordoned, not in deletion */
	struct slack_amount requested, allocatable; /* sums, without DaemonSets */
	struct slack_amount extra; /* E */
	bool by_arrivals; /* E is what arrives while a node starts */
	int64_t arrival_spans; /* of that length that were watched */
	struct slack_amount unit;
	size_t class_count, move_count, placed_count, demand_count, issue_count;
	struct slack_class *classes; /* owned; by key */
	struct slack_move *moves; /* owned; in the order in which they were made */
	struct slack_placed *placed; /* owned */
	struct slack_demand *demand; /* owned; by size */
	struct slack_issue *issues; /* owned; by who */
	struct buf narration; /* owned; a sentence a line */
	struct slack_basis *basis; /* owned; of slack_holds_without() */
	struct view *view; /* held: names of nodes are its */
	char **names; /* owned: of nodes that are in it no more */
	size_t name_count;
};

void slack_result_fini(struct slack_result *r);

struct slack_state;

struct slack_state *slack_state_new(void);
void slack_state_free(struct slack_state *s);
/*
 * Asked again and again by steps, from then on: true ends one early, and must stay so until then.
 * NULL: never.
 */
void slack_state_set_limit(struct slack_state *s, bool (*out_of_time)(void *ctx), void *ctx);
/*
 * One step. The simulation is of this view (place_new() or place_update()), with nobody added;
 * afterwards all placeholders are on it, as changes that place_update() or a place_revert() to
 * before undoes. 0 and a result for slack_result_fini(); or -EINVAL for an option out of range,
 * named, and nothing is changed; or -EINTR where its time was over: placeholders stand where they
 * stood, and the next step begins anew.
 */
int slack_step(struct slack_state *s, struct place *p, struct view *v, int64_t now_ns,
	       const struct slack_options *o, struct slack_result *out, struct error *error);

/* --- for who plans drains */

/* A placeholder that is a pod (slack_balloon.c). */
bool slack_is_balloon(const struct kube_pod *pod);

/*
 * Whether the units of the cluster without those nodes, which may be of another size and number,
 * find a place in the simulation, where pods of those nodes are elsewhere by now. pods[i] is the
 * handle of placed[i] there; the simulation is left as it was. The reason says how many would not.
 */
bool slack_holds_without(const struct slack_result *r, struct place *p, const place_pod *pods,
			 const place_node *gone, size_t count, struct error *why);

/* --- to outlive a restart */

/* Of a class and a node, or where node is "" of a class alone. Strings are borrowed. */
struct slack_record {
	const char *class, *node;
	uint32_t count; /* placeholders there; of a class alone: how many are wanted */
	int64_t lower_since_ns; /* of a class alone: since when the target is lower; 0: it is not */
	uint32_t lower_target; /* the most it was since then */
	struct slack_amount shape; /* of "unit" alone; 0, 0: not known */
	int64_t shape_since_ns; /* since when today's is another; 0: it is not */
};

/* Valid until the next step. The caller frees the array. */
struct slack_record *slack_state_records(const struct slack_state *s, size_t *count);
/*
 * Into a state that has made no step yet. What cannot be (a negative time, a count over class_max)
 * is corrected by the next step.
 */
void slack_state_restore(struct slack_state *s, const struct slack_record *records, size_t count);
/* Borrowed; what was counted so far, to be kept and put back likewise. */
struct slack_arrivals *slack_state_arrivals(struct slack_state *s);

#endif
