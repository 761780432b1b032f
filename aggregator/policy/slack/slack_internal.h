/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the slack engine share.
 *
 *   slack_target.c   the formulas                      slack_survey.c   what the nodes of a view give and leave free
 *   slack_wanted.c   annotated workloads               slack_record.c   a placeholder as a pod, and what it asks for
 *   slack_state.c    classes from step to step         slack_step.c     the step: count what is wanted, and tell
 *   slack_verify.c   what stands and may not           slack_place.c    placing, and making way
 *   slack_guard.c    whom a move would leave where     slack_order.c    which class, and which node, comes first
 *                    he may not stand                  slack_ready.c    slots, fragmentation, nodes to add
 *   slack_tell.c     the narration                     slack.c          options, the result, and what drains ask
 *   slack_balloon.c  placeholders that are pods        slack_yaml.c     the objects that make them
 *   slack_after.c    units after a drain
 */
#ifndef EVENKEEL_AGGREGATOR_POLICY_SLACK_SLACK_INTERNAL_H
#define EVENKEEL_AGGREGATOR_POLICY_SLACK_SLACK_INTERNAL_H

#include <cjson/cJSON.h>
#include <uthash.h>

#include "aggregator/policy/slack/slack.h"

/* --- slack.c: 0 or -EINVAL */
int slack_options_check(const struct slack_options *o, struct error *error);

/* --- slack_record.c */

enum { SLACK_KEYS_MAX = 8 };

/* What a placeholder of a class is. */
struct slack_pattern {
	struct kube_pod *record; /* held; NULL: not known */
	/* What it was made of, which tells whether it must be made anew. */
	struct pod_template *template; /* held */
	struct object *workload; /* held */
	struct slack_amount shape;
	char *signature; /* owned */
	/*
	 * Required affinity and anti-affinity to pods, spread that must hold, host ports: what
	 * depends on other pods.
	 */
	bool minds_others;
	/*
	 * Of these the first two, of which others make right or wrong by coming and going
	 * (slack_guard.c).
	 */
	bool is_company;
	bool has_claims;
	bool other_resources; /* asks for more than CPU and memory */
	/* of topology keys of those; more than SLACK_KEYS_MAX are not told apart */
	size_t key_count;
	char *keys[SLACK_KEYS_MAX]; /* owned */
};

void slack_pattern_fini(struct slack_pattern *p);
/*
 * Nothing is done where it is made of that already. -EINVAL: it cannot be read, and is what it was.
 */
int slack_pattern_of_pod(struct slack_pattern *p, const char *key, const struct kube_pod *pod,
			 struct error *error);
/* Of the template that the object of a workload holds. -ENOENT: it holds none. */
int slack_pattern_of_workload(struct slack_pattern *p, const char *key,
			      const struct object *workload, struct error *error);
void slack_pattern_of_shape(struct slack_pattern *p, const char *key,
			    const struct slack_amount *shape);

/* --- slack_state.c */

struct slack_standing {
	char *node; /* owned */
	uint32_t count;
};

/* A class from step to step. */
struct slack_entry {
	UT_hash_handle hh;
	char *key; /* owned */
	enum slack_kind kind;
	struct slack_pattern pattern;
	char *owner_uid; /* owned; whose pods' use is expected of it; NULL: nobody's */
	uint32_t wanted;
	int64_t lower_since_ns;
	uint32_t lower_target;
	int64_t shape_since_ns; /* of units: since when today's is another; 0: it is not */
	size_t standing_count;
	struct slack_standing *standing; /* owned; sorted by node */
	/* in a step */
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

/*
 * What was read of a node's pods; as long as the model has the same record of it, it need not be
 * read again.
 */
struct slack_seen {
	struct model_node *model; /* held; NULL: the API does not know it */
	const char *name; /* of the record, or NULL */
	struct slack_amount of_node, of_others, of_balloons;
	struct slack_amount largest; /* of the others, by resource */
	int64_t pods;
	int64_t newest_ns; /* creation of the youngest */
	size_t asking_count;
	const struct kube_pod **asking; /* owned array: pods of workloads that ask for slack */
	size_t balloon_count;
	const struct kube_pod **balloons; /* owned array */
};

struct slack_state {
	struct slack_entry *entries;
	size_t seen_count;
	struct slack_seen *seen; /* owned; by name */
	uint64_t seen_controllers; /* fingerprint of those by whom pods were found to ask */
	struct slack_arrivals arrivals;
	struct slack_pattern plain; /* asks for nothing: tells where a plain pod may go */
	bool (*out_of_time)(void *ctx); /* NULL: never */
	void *out_of_time_ctx;
};

/* Made where it is not there yet. */
struct slack_entry *slack_state_entry(struct slack_state *s, const char *key, enum slack_kind kind);
void slack_state_remove(struct slack_state *s, struct slack_entry *e);
void slack_entry_stand(struct slack_entry *e, const char *node, uint32_t count);
void slack_entry_forget_standing(struct slack_entry *e);
/* Raised at once; lowered to the most that was wanted while it was lower, once that lasted. */
void slack_entry_follow(struct slack_entry *e, int64_t now_ns, int64_t unneeded_ns);
/*
 * Of units: the shape that they have by now, and in e->target how many of that shape the target
 * comes to. Another shape replaces the held one when it has been another for unneeded_ns; what is
 * wanted is converted with it, so that it is the same room.
 */
struct slack_amount slack_entry_follow_shape(struct slack_entry *e, const struct slack_target *t,
					     int64_t now_ns, int64_t unneeded_ns);

/* --- slack_survey.c */

struct slack_node {
	struct slack_amount whole; /* allocatable */
	struct slack_amount gives; /* without what DaemonSets and static pods take */
	/* that real pods leave, balloons not among them; may be negative */
	struct slack_amount free;
	struct slack_amount left; /* free without placeholders' and balloons' */
	int64_t free_pods;
	struct slack_amount headroom; /* by real use; valid where measured */
	bool measured;
	uint32_t first_holder; /* UINT32_MAX: none */
};

struct slack_survey {
	size_t count;
	bool *counts; /* by node: ready, not cordoned, not in deletion */
	struct slack_node *nodes;
	bool any_measured;
	uint32_t counting;
	struct slack_amount requested, allocatable;
	struct slack_amount largest; /* of pods that are no node's own, pending ones too */
};

/* After slack_seen_follow(). */
void slack_survey_init(struct slack_survey *s, const struct slack_state *state, struct place *place,
		       const struct view *v, int64_t now_ns, const struct slack_options *o);
void slack_survey_fini(struct slack_survey *s);

typedef bool (*slack_asks)(void *context, const struct kube_pod *pod);
/*
 * Reads the pods of nodes that changed, and of all where `controllers` differs from the last time.
 * Afterwards state->seen is as the view's nodes.
 */
void slack_seen_follow(struct slack_state *s, const struct view *v, uint64_t controllers,
		       slack_asks asks, void *context);
void slack_seen_fini(struct slack_state *s);
/* A pod that belongs to its node (of a DaemonSet, static), and is no demand. */
bool slack_is_of_node(const struct kube_pod *pod);

/* --- slack_balloon.c */

enum { SLACK_NAME_LEN = 64 };

/* The name of a class's objects, a DNS label. */
void slack_balloon_name(const char *key, char name[SLACK_NAME_LEN]);
struct slack_run;
/* By class, of those on nodes that count. */
void slack_count_balloons(struct slack_run *r);
/* How many are wanted and held by neither placeholders nor balloons, .. */
uint32_t slack_missing(const struct slack_run *r, uint32_t class);
/* .. and how many placeholders are too many. Balloons go when whoever applied them says so. */
uint32_t slack_surplus(const struct slack_run *r, uint32_t class);
/* Takes them from their nodes, until that is undone. */
void slack_take_balloons(struct slack_run *r);

/* --- the step */

struct slack_holder {
	place_pod pod;
	uint32_t class; /* of classes */
	place_node node; /* PLACE_NONE: nowhere */
	uint32_t next; /* on the same node, or spare of its class; UINT32_MAX: none */
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
	struct slack_ground *grounds; /* by what pods ask of nodes */
	struct slack_ground *own_ground; /* of the last that was asked for by a pod alone */
	size_t class_count;
	struct slack_entry **classes; /* by key */
	uint32_t *order; /* classes, the one with the fewest choices first */
	/*
	 * Classes that mind a class: from minders[minders_from[class]] to where those of the next
	 * one begin.
	 */
	uint32_t *minders, *minders_from;
	uint32_t asks; /* of placeholders that stand, which the guard may still make */
	size_t holder_count;
	struct slack_holder *holders;
	uint32_t tries; /* nodes that displacing may still try */
	bool out_of_tries;
	struct slack_class *reports; /* by class */
};

/*
 * slack_wanted.c: first who asks, and what the view's pods are by that; then entries of annotated
 * workloads get their target; shapes of those that share are collected.
 */
struct slack_shared {
	size_t count;
	struct slack_amount *shapes; /* owned */
	char **who; /* owned, with the strings */
};

struct slack_search;
struct slack_search *slack_search_new(struct slack_state *state, const struct view *v);
/* Frees the search. */
void slack_wanted_find(struct slack_run *r, struct slack_search *search,
		       struct slack_shared *shared);
void slack_shared_fini(struct slack_shared *s);

/*
 * Between placeholders, as thousands may be tried on thousands of nodes: what was begun then comes
 * to nothing (slack_step.c).
 */
static inline bool slack_is_out_of_time(const struct slack_run *r)
{
	const struct slack_state *s = r->state;

	return s->out_of_time && s->out_of_time(s->out_of_time_ctx);
}

/* slack_survey.c */

/* The nodes that count and admit pods which ask the same of nodes. */
struct slack_ground {
	UT_hash_handle hh;
	const void *admission; /* key: place_admission(); NULL: of one pod alone */
	uint32_t count;
	place_node *nodes; /* owned */
	struct slack_amount free; /* that real pods leave there */
};

/*
 * After the survey. Valid until the step ends, and where the pod is alone in what it asks until the
 * next call.
 */
const struct slack_ground *slack_ground_of(struct slack_run *r, place_pod probe);
void slack_grounds_fini(struct slack_run *r);

/* slack_order.c */
void slack_order_classes(struct slack_run *r);
/* Whether node a is fuller than b, by what is requested with placeholders. */
int slack_compare_share(const struct slack_run *r, place_node a, place_node b);
/* The larger share of an average node, for "largest first". */
int slack_compare_size(const struct slack_run *r, uint32_t a, uint32_t b);

/* slack_place.c */
uint32_t slack_holder_new(struct slack_run *r, uint32_t class);
void slack_holder_put(struct slack_run *r, uint32_t holder, place_node n);
void slack_holder_take(struct slack_run *r, uint32_t holder);
/* What is missing of all classes. */
void slack_place_missing(struct slack_run *r);
/* slack_verify.c: stands, pushes out, and gives up. */
void slack_verify(struct slack_run *r);

/* slack_guard.c */
void slack_guard_init(struct slack_run *r);
/*
 * Whether, as things are in the simulation, a placeholder stands where it may not, of those that
 * mind the class; of its own class too where `own`. *who (may be NULL) is that one's class. Where
 * all asks are spent: true, and r->out_of_tries.
 */
bool slack_guard_breaks(struct slack_run *r, uint32_t class, bool own, uint32_t *who);
/* What it says of a placeholder that stands, as if it came last. */
enum place_filter slack_guard_ask(struct slack_run *r, uint32_t holder);

/* --- slack_after.c */

/* What the target was made of, as far as drains change it. */
struct slack_basis {
	struct slack_target_input in; /* nodes and shapes are owned */
	place_node *which; /* owned; by node of in */
	int64_t rate_ppm; /* of what nodes give; 0: extra does not depend on them */
	struct slack_amount of_balloons; /* of units, what they hold */
	uint32_t class; /* of units; UINT32_MAX: there are none */
};

/* Takes over the array `nodes` of the input; shapes are copied. */
struct slack_basis *slack_basis_new(const struct slack_run *r, const struct slack_target_input *in,
				    struct slack_amount *nodes, const place_node *which);
void slack_basis_free(struct slack_basis *b);

/* slack_ready.c: before any placeholder is on a node, and after all are. */
void slack_ready_slots(struct slack_run *r);
void slack_ready_demand(struct slack_run *r);
/* Some node could hold one, were it empty. */
bool slack_fits_some_node(const struct slack_run *r, const struct slack_entry *e);

/* slack_tell.c */
void slack_tell(struct slack_run *r);
__attribute__((format(printf, 3, 4))) void slack_add_issue(struct slack_result *r, const char *who,
							   const char *format, ...);
/* A copy that lives as long as the result. */
const char *slack_result_name(struct slack_result *r, const char *name);
void slack_add_move(struct slack_run *r, const struct slack_move *move);
/* "500m and 64 MiB" */
void slack_write_amount(struct buf *out, const struct slack_amount *a);

#endif
