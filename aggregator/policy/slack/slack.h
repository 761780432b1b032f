/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resource slack: room that is kept for future pods. Placeholders stand for it: integers per class and
 * node that stay from step to step, give way to real pods, and are pods like others for drain plans.
 * Pure and deterministic.
 *
 *   classes   workload NS/KIND/NAME   a workload with the annotation evenkeel.io/slack: "2" or
 *                                     "10%" (of its replicas): its placeholders have its shape, its
 *                                     labels, and its constraints on nodes and other pods
 *             cover-N                 sizes that hold any pod of the workloads with "shared"
 *                                     (slack_target.h)
 *             unit                    the rest of the cluster's rate
 *
 * A step verifies the placeholders, counts targets, removes the surplus, places the rest and reports.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/policy/place/place.h"
#include "aggregator/policy/slack/slack_target.h"
#include "aggregator/state/view.h"
#include "shared/buf.h"
#include "shared/error.h"

/* --- arrivals of pods during the start time of a node (slack_arrivals.c) */

enum { SLACK_ARRIVALS_MAX = 65536 };

/* Pods of one shape that were created within one span of time. */
struct slack_arrival {
	int64_t span; /* creation time / length of a span */
	struct slack_amount shape;
	uint32_t count;
};

struct slack_arrivals {
	int64_t span_ns; /* how long a node needs to start */
	int64_t keep_ns;
	int64_t first_span; /* the first counted span; undefined until `started` */
	int64_t seen_ns; /* pods created until then are counted */
	bool started;
	int64_t until_ns; /* the same after the present look */
	size_t merged; /* count before it */
	size_t count;
	struct slack_arrival *of; /* owned; by span, then shape */
};

void slack_arrivals_init(struct slack_arrivals *a, int64_t span_ns, int64_t keep_ns);
void slack_arrivals_fini(struct slack_arrivals *a);
/*
 * One look at a cluster: begin, add every pod, end. Pods older than the first look are not
 * counted, nor the oldest spans beyond SLACK_ARRIVALS_MAX elements.
 */
void slack_arrivals_begin(struct slack_arrivals *a, int64_t now_ns);
void slack_arrivals_add(struct slack_arrivals *a, int64_t created_ns,
			const struct slack_amount *shape);
void slack_arrivals_end(struct slack_arrivals *a, int64_t now_ns);
/* Watched spans of that length that the percentile needs: those of a day. */
int64_t slack_arrivals_needed(int64_t span_ns);
/* Complete spans that were watched. */
int64_t slack_arrivals_spans(const struct slack_arrivals *a, int64_t now_ns);
/*
 * The 95th percentile (nearest rank) over those spans of what arrived in one, each resource by
 * itself; spans without arrivals count. False, and nothing is written: no span is complete yet.
 */
bool slack_arrivals_p95(const struct slack_arrivals *a, int64_t now_ns, struct slack_amount *out);

/* --- the step */

#define SLACK_ANNOTATION "evenkeel.io/slack"
/* The controller of all placeholders, and the namespace of those without a workload. */
#define SLACK_REPLICA_SET "evenkeel-slack"
#define SLACK_NAMESPACE	  "evenkeel"
/* The label of balloons (slack_yaml_write()); its value is the name of their class's objects. */
#define SLACK_CLASS_LABEL "evenkeel.io/slack-class"

enum slack_base {
	SLACK_BASE_REQUESTED, /* requests of pods, without DaemonSets */
	SLACK_BASE_ALLOCATABLE, /* room of nodes that count for such pods */
};

struct slack_options {
	int64_t rate_ppm; /* 100000 (10 %); [0, 1000000) */
	enum slack_base base;
	uint32_t granularity; /* 5 */
	/* 10 min: a lower target applies only after so long */
	int64_t unneeded_ns;
	/*
	 * The target is the arrivals during the start of a node (slack_arrivals.c), after a day of
	 * watching; until then the rate.
	 */
	bool from_arrivals;
	int64_t node_start_ns; /* 3 min */
	int64_t arrivals_keep_ns; /* 14 days */
	/* Slots by real use: the share of allocatable that nodes may use. */
	double cpu_share, mem_share; /* 0.85, 0.90 */
	/*
	 * Bounds of requests from outside: placeholders of one class and of all, and nodes on
	 * which a step tries to displace placeholders.
	 */
	uint32_t class_max, placeholders_max, displace_max; /* 5000, 50000, 20000 */
};

void slack_options_default(struct slack_options *o);

enum slack_kind { SLACK_WORKLOAD, SLACK_COVER, SLACK_UNIT };

/* Why a placeholder was moved. */
enum slack_cause {
	/* the node's pods left no room, or a rule forbids the placeholder: see filter */
	SLACK_PUSHED_OUT,
	SLACK_NODE_LEFT, /* the node is gone, not ready, cordoned or in deletion */
	SLACK_SURPLUS, /* fewer are wanted */
	SLACK_CLASS_LEFT, /* the class is no longer wanted */
	SLACK_DISPLACED, /* gave way to a class with fewer choices: see by */
	SLACK_PLACED, /* had no node */
	SLACK_CAUSES
};

const char *slack_cause_name(enum slack_cause c); /* "PushedOut", .. */

/* A move of one placeholder. */
struct slack_move {
	const char *class; /* key; borrowed from the result */
	const char *from, *to; /* names of nodes, owned by the result; NULL: none */
	enum slack_cause cause;
	enum place_filter filter; /* PUSHED_OUT */
	const char *by; /* DISPLACED: key of the class */
};

struct slack_class {
	const char *key; /* "shop/Deployment/web", "cover-1", "unit" */
	enum slack_kind kind;
	const struct kube_pod *record; /* the pod that a placeholder is in the simulation; held */
	struct slack_amount shape;
	const char *signature; /* canonical JSON of its constraints on nodes and pods; "": none */
	uint32_t target; /* by the present numbers */
	uint32_t wanted; /* including placeholders that are not given up yet */
	int64_t lower_ns; /* when wanted drops if the target stays; 0: it is the target */
	uint32_t placed, unplaced; /* = wanted */
	/* placeholders as real pods (slack_balloon.c); the rest of placed are simulated */
	uint32_t balloons;
	/* no node could hold one even when empty: more such nodes do not help */
	bool fits_no_node;
	struct error why; /* of unplaced; "" none */
	struct place_counts refused; /* nodes by filter, if some are unplaced */
	/* How many such pods could start now beside real pods; placeholders are no obstacle. */
	int64_t slots;
	bool slots_more; /* found by trying pods one by one: at least so many */
	/* of them, as many as real use leaves room for; -1: no node is measured */
	int64_t slots_by_use;
	/* 1 - slots * shape / free of the scarcer resource, in millionths; nothing free: 0 */
	int64_t fragmentation_ppm;
};

/* A placeholder on its node; by node, then class. */
struct slack_placed {
	place_pod pod; /* in the simulation of the step, until it is updated or undone */
	uint32_t class; /* index in classes */
	place_node node;
};

/* Nodes that would hold the unplaced placeholders. */
struct slack_demand {
	const char *like; /* the first node, by name, of that size and instance type */
	const char *instance_type; /* its label, "" none */
	struct slack_amount gives; /* room for pods, without DaemonSets */
	uint32_t count;
};

/* Input that was left out, and its owner. */
struct slack_issue {
	char *who, *text; /* owned */
};

struct slack_basis;

struct slack_result {
	uint32_t nodes; /* nodes that count: ready, not cordoned, not in deletion */
	struct slack_amount requested, allocatable; /* sums, without DaemonSets */
	struct slack_amount extra; /* E */
	bool by_arrivals; /* E is the arrivals during the start of a node */
	int64_t arrival_spans; /* watched spans of that length */
	struct slack_amount unit;
	size_t class_count, move_count, placed_count, demand_count, issue_count;
	struct slack_class *classes; /* owned; by key */
	struct slack_move *moves; /* owned; in their order of time */
	struct slack_placed *placed; /* owned */
	struct slack_demand *demand; /* owned; by size */
	struct slack_issue *issues; /* owned; by who */
	struct buf narration; /* owned; one statement a line */
	struct slack_basis *basis; /* owned; for slack_holds_without() */
	struct view *view; /* held: owns names of nodes */
	char **names; /* owned: names of nodes that the view no longer has */
	size_t name_count;
};

void slack_result_fini(struct slack_result *r);

struct slack_state;

struct slack_state *slack_state_new(void);
void slack_state_free(struct slack_state *s);
/* Called by steps; true ends a step early, and must stay true until it ends. NULL: no limit. */
void slack_state_set_limit(struct slack_state *s, bool (*out_of_time)(void *ctx), void *ctx);
/*
 * One step. The simulation is of this view (place_new() or place_update()), without added pods;
 * afterwards all placeholders are on it, as changes that place_update() or a place_revert() to
 * before undoes. 0 and a result for slack_result_fini(); or -EINTR at the time limit: placeholders
 * stay where they were, and the next step starts anew.
 */
int slack_step(struct slack_state *s, struct place *p, struct view *v, int64_t now_ns,
	       const struct slack_options *o, struct slack_result *out, struct error *error);

/* --- for drain plans */

/* A placeholder that is a pod (slack_balloon.c). */
bool slack_is_balloon(const struct kube_pod *pod);

/*
 * Whether the units of the cluster without those nodes, which may differ in size and number, fit
 * in the simulation, after pods of those nodes moved elsewhere. pods[i] is the handle of placed[i]
 * there; the simulation is restored. The error says how many would not fit.
 */
bool slack_holds_without(const struct slack_result *r, struct place *p, const place_pod *pods,
			 const place_node *gone, size_t count, struct error *why);

/* --- the target as Kubernetes objects, for clusters whose autoscaler does not know evenkeel */

enum slack_yaml {
	/*
	 * Pods that do nothing, of a Deployment for each class, with a priority below all others:
	 * the scheduler preempts them, and they wait again, for which an autoscaler adds a node.
	 * For Kubernetes 1.20 and later.
	 */
	SLACK_YAML_BALLOONS,
	/*
	 * CapacityBuffers, for a cluster autoscaler that knows them (autoscaling.x-k8s.io/v1beta1).
	 */
	SLACK_YAML_BUFFERS,
};

struct slack_yaml_options {
	enum slack_yaml kind;
	const char *image; /* of balloons and templates; "registry.k8s.io/pause:3.9" */
	/* of balloons; -10: the least that still makes the cluster autoscaler add nodes */
	int32_t priority;
};

void slack_yaml_options_default(struct slack_yaml_options *o);
/* Appends a document for each object, by class; none for classes of which none is wanted. */
void slack_yaml_write(const struct slack_result *r, const struct slack_yaml_options *o,
		      struct buf *out);

/* --- persistence */

/* A class on a node, or if node is "" a class alone. Strings are borrowed. */
struct slack_record {
	const char *class, *node;
	uint32_t count; /* placeholders there; of a class alone: wanted */
	int64_t lower_since_ns; /* of a class alone: since when the target is lower; 0: it is not */
	uint32_t lower_target; /* the largest target since then */
	struct slack_amount shape; /* of "unit" alone; 0, 0: not known */
	int64_t shape_since_ns; /* since when today's is another; 0: it is not */
};

/* Valid until the next step. The caller frees the array. */
struct slack_record *slack_state_records(const struct slack_state *s, size_t *count);
/* Into a state without steps. The next step corrects impossible times and counts. */
void slack_state_restore(struct slack_state *s, const struct slack_record *records, size_t count);
/* The arrivals counted so far, borrowed, to be saved and restored. */
struct slack_arrivals *slack_state_arrivals(struct slack_state *s);
