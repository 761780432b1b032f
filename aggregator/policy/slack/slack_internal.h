/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of slack.
 *
 *   slack_target.c   the formulas, rates, annotations   slack_survey.c   the room of nodes
 *   slack_wanted.c   annotated workloads                slack_record.c   a placeholder as a pod
 *   slack_state.c    classes from step to step          slack_step.c     the step: targets, report
 *   slack_verify.c   pushes placeholders out            slack_place.c    places, and displaces
 *   slack_ready.c    slots, fragmentation               slack_order.c    which class, node first
 *   slack_tell.c     the narration                      slack_after.c    units after a drain
 *   slack_balloon.c  placeholders that are real pods, and the objects that make them
 */
#pragma once

#include <cjson/cJSON.h>

#include "aggregator/policy/slack/slack.h"
#include "shared/arith.h"
#include "shared/hash.h"

static inline struct slack_amount slack_amount_of(const struct resources *r)
{
	return (struct slack_amount){r->of[RESOURCE_CPU], r->of[RESOURCE_MEMORY]};
}

/* --- slack_record.c */

enum { SLACK_KEYS_MAX = 8 };

/* The pod of a class. */
struct slack_pattern {
	struct kube_pod *record; /* held; NULL: not known */
	/* The sources, which tell whether it must be made anew. */
	struct pod_template *template; /* held */
	struct object *workload; /* held */
	struct slack_amount shape;
	char *signature; /* owned */
	/* Depends on other pods: required (anti-)affinity, required spread, host ports. */
	bool minds_others;
	/* Has required affinity or spread, which other pods can violate later (slack_verify.c). */
	bool is_company;
	bool has_claims;
	bool other_resources; /* requests more than CPU and memory */
	/* topology keys of its constraints; at most SLACK_KEYS_MAX are told apart */
	size_t key_count;
	char *keys[SLACK_KEYS_MAX]; /* owned */
};

void slack_pattern_fini(struct slack_pattern *p);
/* No change if it is made of that pod already. -EINVAL: unreadable pod, pattern unchanged. */
int slack_pattern_of_pod(struct slack_pattern *p, const char *key, const struct kube_pod *pod,
			 struct error *error);
/* Of the template in the object of a workload. -ENOENT: it has none. */
int slack_pattern_of_workload(struct slack_pattern *p, const char *key,
			      const struct object *workload, struct error *error);
void slack_pattern_of_shape(struct slack_pattern *p, const char *key,
			    const struct slack_amount *shape);

/* --- slack_state.c */

struct slack_place {
	char *node; /* owned */
	uint32_t count;
};

/* A class from step to step. */
struct slack_entry {
	UT_hash_handle hh, by_objects;
	char *key; /* owned */
	char *objects; /* owned: "shop/evenkeel-slack-deployment-web"; NULL: not made yet */
	enum slack_kind kind;
	struct slack_pattern pattern;
	uint32_t wanted;
	int64_t lower_since_ns;
	uint32_t lower_target;
	int64_t shape_since_ns; /* of units: since when today's is another; 0: it is not */
	size_t standing_count;
	struct slack_place *standing; /* owned; sorted by node */
	/* in a step */
	const char *owner_uid; /* of a workload: borrowed; the owner whose pods' use is expected */
	bool found;
	bool fits_no_node;
	uint32_t target, index;
	uint32_t rank; /* place in the run's order */
	uint32_t placed; /* placeholders on nodes */
	uint32_t balloons; /* placeholders whose room balloons hold */
	uint32_t first_holder; /* UINT32_MAX: none */
	uint32_t spare; /* the first holder that is nowhere; UINT32_MAX: none */
	place_pod probe; /* nowhere */
};

struct slack_state {
	struct slack_entry *entries;
	struct slack_arrivals arrivals;
	struct slack_pattern
		plain; /* without constraints and requests: tells which nodes admit a plain pod */
	bool (*out_of_time)(void *ctx); /* NULL: never */
	void *out_of_time_ctx;
};

/* Finds the entry, or makes it. */
struct slack_entry *slack_state_entry(struct slack_state *s, const char *key, enum slack_kind kind);
void slack_state_remove(struct slack_state *s, struct slack_entry *e);
void slack_state_sort(struct slack_state *s); /* by key */
void slack_entry_stand(struct slack_entry *e, const char *node, uint32_t count);
void slack_entry_forget_standing(struct slack_entry *e);
/* Raises wanted at once; lowers it after unneeded_ns to the largest target since. */
void slack_entry_follow(struct slack_entry *e, int64_t now_ns, int64_t unneeded_ns);
/*
 * The present shape of units; sets e->target to the target in that shape. A new shape replaces the
 * held one after unneeded_ns; wanted is converted with it to the same room.
 */
struct slack_amount slack_entry_follow_shape(struct slack_entry *e, const struct slack_target *t,
					     int64_t now_ns, int64_t unneeded_ns);

/* --- slack_survey.c */

struct slack_node {
	struct slack_amount whole; /* allocatable */
	struct slack_amount gives; /* without what DaemonSets and static pods take */
	/* room beside real pods, balloons not among them; may be negative */
	struct slack_amount free;
	struct slack_amount left; /* room beside placeholders and balloons, too */
	int64_t free_pods;
	struct slack_amount headroom; /* by real use; valid where measured */
	bool measured;
	uint32_t first_holder; /* UINT32_MAX: none */
};

struct slack_balloon {
	const struct kube_pod *pod;
	place_node node;
};

struct slack_survey {
	size_t count, balloon_count;
	bool *counts; /* by node: ready, not cordoned, not in deletion */
	struct slack_node *nodes;
	struct slack_balloon *balloons;
	bool any_measured;
	struct slack_amount
		largest; /* requests, pending pods included, without DaemonSets and static pods */
};

struct slack_run;
struct slack_search;
/* Reads all pods: counts arrivals, sums requests, and shows active pods to the search. */
void slack_survey_init(struct slack_run *r, struct slack_search *search);
void slack_survey_fini(struct slack_survey *s);
/* A pod of a DaemonSet or a static pod: part of its node, and no demand. */
bool slack_is_of_node(const struct kube_pod *pod);

/* --- slack_balloon.c */

/* Counts balloons by class, on nodes that count. */
void slack_count_balloons(struct slack_run *r);
/* Wanted placeholders that neither placeholders nor balloons hold. */
uint32_t slack_missing(const struct slack_run *r, uint32_t class);
/* Placeholders beyond wanted. Balloons are removed by their owner, not here. */
uint32_t slack_surplus(const struct slack_run *r, uint32_t class);
/* Takes balloons from their nodes, until the caller reverts. */
void slack_take_balloons(struct slack_run *r);

/* --- the step */

struct slack_holder {
	place_pod pod;
	uint32_t class; /* of classes */
	place_node node; /* PLACE_NONE: nowhere */
	uint32_t next; /* on the same node, or the next spare of its class; UINT32_MAX: none */
	uint32_t next_of_class;
};

struct slack_run {
	struct slack_state *state;
	struct place *place;
	struct view *view;
	int64_t now_ns;
	const struct slack_options *options;
	struct slack_result *result;
	struct slack_survey survey;
	struct slack_node_set *node_sets; /* by node constraints */
	struct slack_node_set *own_node_set; /* of the last pod without a shared admission */
	size_t class_count;
	struct slack_entry **classes; /* by key */
	uint32_t *order; /* classes, the one with the fewest choices first */
	/*
	 * Classes whose constraints count pods of a class: from
	 * constraining[constraining_from[class]] to the start of the next class.
	 */
	uint32_t *constraining, *constraining_from;
	uint32_t asks; /* checks that the guard may still make */
	size_t holder_count;
	struct slack_holder *holders;
	uint32_t tries; /* nodes on which displacing may still be tried */
	bool out_of_tries;
	struct slack_class *reports; /* by class; those of the result */
};

/*
 * slack_wanted.c: slack_search_new() finds the annotated workloads, slack_search_meet() reads a pod of
 * them. slack_wanted_find() sets the targets of the workloads' entries, and collects the shapes of
 * workloads that share.
 */
struct slack_shared {
	size_t count;
	struct slack_amount *shapes; /* owned */
	const char **who; /* owned array; of the result */
};

struct slack_search *slack_search_new(const struct view *v);
void slack_search_meet(struct slack_search *s, const struct kube_pod *pod);
/* Frees the search. */
void slack_wanted_find(struct slack_run *r, struct slack_search *search,
		       struct slack_shared *shared);

/*
 * Checked between placeholders, since a step may try thousands on thousands of nodes. The step is
 * then discarded (slack_step.c).
 */
static inline bool slack_is_out_of_time(const struct slack_run *r)
{
	const struct slack_state *s = r->state;

	return s->out_of_time && s->out_of_time(s->out_of_time_ctx);
}

/* slack_survey.c */

/* The nodes that count and admit pods with the same node constraints. */
struct slack_node_set {
	UT_hash_handle hh;
	const void *admission; /* key: place_admission(); NULL: of one pod */
	uint32_t count;
	place_node *nodes; /* owned */
	struct slack_amount free; /* room beside real pods there */
};

/* After the survey. Valid until the step ends, or without shared admission until the next call. */
const struct slack_node_set *slack_node_set_of(struct slack_run *r, place_pod probe);
void slack_node_sets_fini(struct slack_run *r);

/* slack_order.c */
void slack_order_classes(struct slack_run *r);
/* > 0: node a is fuller than b, by requests with placeholders. */
int slack_compare_share(const struct slack_run *r, place_node a, place_node b);
/* Compares the larger share of what all nodes give, for "largest first". */
int slack_compare_size(const struct slack_run *r, uint32_t a, uint32_t b);

/* slack_place.c */
uint32_t slack_holder_new(struct slack_run *r, uint32_t class);
void slack_holder_put(struct slack_run *r, uint32_t holder, place_node n);
void slack_holder_take(struct slack_run *r, uint32_t holder);
/* Places the missing placeholders of all classes. */
void slack_place_missing(struct slack_run *r);

/* slack_verify.c */
/* Puts placeholders back, pushes out, and gives up the surplus. */
void slack_verify(struct slack_run *r);
void slack_verify_init(struct slack_run *r);
/*
 * Whether, in the present state of the simulation, constraints of a placeholder are violated, of
 * the classes that mind the class; of its own class too with `own`. *who (may be NULL) is the
 * class of that placeholder. When all checks are spent: true, and r->out_of_tries.
 */
bool slack_verify_breaks(struct slack_run *r, uint32_t class, bool own, uint32_t *who);

/* --- slack_after.c */

/* The inputs of the target that drains change. */
struct slack_basis {
	struct slack_target_input in; /* nodes and shapes are owned */
	place_node *which; /* owned; the nodes of `in` */
	int64_t rate_ppm; /* rate of what nodes give; 0: extra does not depend on nodes */
	struct slack_amount of_balloons; /* room that balloons of units hold */
	uint32_t class; /* the class of units; UINT32_MAX: none */
};

/* Takes ownership of the arrays of the input; copies which. */
struct slack_basis *slack_basis_new(const struct slack_run *r, const struct slack_target_input *in,
				    const place_node *which);
void slack_basis_free(struct slack_basis *b);

/* slack_ready.c: slots are counted before any placeholder is on a node, demand after all are. */
void slack_ready_slots(struct slack_run *r);
void slack_ready_demand(struct slack_run *r);
/* Whether some node could hold one when empty. */
bool slack_fits_some_node(const struct slack_run *r, const struct slack_entry *e);

/* slack_tell.c */
void slack_tell(struct slack_run *r);
__attribute__((format(printf, 3, 4))) void slack_add_issue(struct slack_result *r, const char *who,
							   const char *format, ...);
/* A copy that lives as long as the result. */
const char *slack_result_name(struct slack_result *r, const char *name);
/* Valid until the next: the caller may set `filter` and `by`. */
struct slack_move *slack_add_move(struct slack_run *r, enum slack_cause cause, const char *class,
				  const char *from, const char *to);
/* "500m and 64 MiB" */
void slack_write_amount(struct buf *out, const struct slack_amount *a);
