/* SPDX-License-Identifier: Apache-2.0 */
/* One step of the planner, as its files share it. */
#ifndef EVENKEEL_AGGREGATOR_POLICY_DRAIN_DRAIN_INTERNAL_H
#define EVENKEEL_AGGREGATOR_POLICY_DRAIN_DRAIN_INTERNAL_H

#include "aggregator/policy/drain/drain.h"
#include "aggregator/policy/drain/drain_eligibility.h"
#include "aggregator/policy/drain/drain_owners.h"
#include "aggregator/policy/drain/drain_pdb.h"
#include "aggregator/policy/drain/drain_rules.h"
#include "aggregator/policy/drain/drain_simulate.h"
#include "aggregator/policy/drain/drain_state.h"
#include "aggregator/policy/gangs.h"

/* A node of the view while it is decided about. */
struct drain_case {
	const struct view_node *view;
	const struct kube_node *node; /* NULL: the API does not know it */
	const struct kube_pod **pods; /* of the run's one array; as the view has them */
	size_t pod_count;
	uint32_t group;
	bool in_deletion;
	bool drained; /* and not in deletion */
	bool asked; /* it is among those that are to be examined */
	bool examined;
	bool failed; /* simulated in vain: it is not asked again for a while */
	/* Of those that may be simulated. */
	struct drain_pods sorted; /* move: without pods that ended */
	/*
	 * Owned; those of `sorted` that did not leave with nodes before it, then pods of other nodes
	 * that fall with them; and what is said of their groups, "" where none falls.
	 */
	const struct kube_pod **leave;
	size_t leave_count, leave_own;
	struct buf falls;
	bool risky; /* its budgets do not allow all at once */
	size_t received; /* pods of candidates that came here */
	int64_t arrival_ns; /* when the last one came here that replaces an evicted one; 0: none did */
	/*
	 * Owned; where all went in the simulation: own pods, guests that have reserved room (no node
	 * has them yet), placeholders.
	 */
	struct drain_item *items;
	size_t item_count, own_count, real_count; /* real: own and guests */
	struct drain_plan_node *out; /* in the plan */
};

/* What is remembered of a simulation that failed, beside its sentence. */
struct drain_refusal {
	bool counted;
	const char *unblock; /* static */
	struct place_counts refused;
	uint32_t number_count;
	struct drain_number numbers[DRAIN_NUMBERS];
};

/* What a handle is, beyond pods of the view. */
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
	const struct kube_pod **pods; /* owned; slices are the cases' */
	struct drain_pdbs *pdbs;
	int64_t *allowed_by; /* owned; by budget, before any candidate was asked */
	struct drain_owners *owners; /* NULL until they are asked about */
	struct gangs *gangs; /* owned; NULL: not asked (upstream) */
	struct drain_groups groups;
	struct drain_context rules;
	struct drain_unremovable *failed; /* of the state */
	uint8_t *extra; /* owned; by handle, enum drain_extra; shorter than the highest handle */
	uint32_t *placeholder; /* owned; by handle, number of the input's placeholder */
	size_t extra_count;
	place_pod *slack; /* owned; handles, by number of the input's placeholder */
	size_t slack_asks; /* placeholders taken to see whether they are in the way */
	struct buf narration;
	size_t *set; /* owned; cases of the candidate set, in the order they were accepted */
	size_t set_count;
};

/* --- drain_plan.c: links of the chain */

/* Behind those that are there. Texts may be long, and are kept whole up to 1 KiB. */
struct drain_why *drain_add_reason(struct drain_case *c, enum drain_reason code, const char *format,
				   ...) __attribute__((format(printf, 3, 4)));
void drain_add_number(struct drain_why *w, const char *name, double value);
void drain_forget_reasons(struct drain_plan_node *n);

/* --- drain_gangs.c */

void drain_gangs_open(struct drain_run *r);

/*
 * Finds what leaves with the node beside those that left before, and counts it as gone until
 * drain_gangs_release(). False: a pod that would fall must stay, and the case has reasons.
 */
bool drain_gangs_close(struct drain_run *r, struct drain_case *c);
void drain_gangs_release(struct drain_run *r, struct drain_case *c);
/* Behind the other reasons, where a group falls. */
void drain_gangs_explain(struct drain_case *c);

/* --- drain_reserve.c */

/* Reserves room and budget before candidates are simulated. False: a pod fits nowhere. */
bool drain_reserve(struct drain_run *r);
enum drain_extra drain_extra_of(const struct drain_run *r, place_pod pod);
uint32_t drain_placeholder_of(const struct drain_run *r, place_pod pod);
/*
 * Whether extra capacity has its places without those nodes, whose pods are elsewhere in the
 * simulation; else *why says what has none.
 */
bool drain_slack_holds(struct drain_run *r, const place_node *gone, size_t count,
		       struct error *error);

/* --- drain_try.c */

/* What came of taking a node away. */
struct drain_trial {
	/* DRAIN_NONE: all of its pods are elsewhere, and it is no destination any more */
	enum drain_reason reason;
	const struct kube_pod *pod; /* that fits nowhere */
	struct place_counts counts; /* without the node itself */
	size_t rivals; /* of those that are gone: candidates, which could go as well */
	/* Of other nodes: what the pod's own terms say of them, and what refuses those they admit. */
	struct error terms[PLACE_FILTERS]; /* the first of each; "" none */
	bool admitted; /* some node that stays is admitted by them, .. */
	bool room_refuses; /* .. and refuses for want of room */
	bool holds; /* some that is admitted could hold the pod, were it empty */
	bool rival_admitted; /* some is that could go as well */
	size_t others; /* pods of the node that fit nowhere either */
	const struct kube_pod **other; /* owned by drain_explain_trial() */
	/* Where the real-use cap refuses: the node that comes nearest, with the pod on it. */
	const char *nearest; /* NULL: it refuses nowhere */
	struct place_prediction predicted;
	/* of placeholders; and how many fit nowhere, with what they ask for */
	const char *class_name;
	size_t missing;
	/* a node that had room but for placeholders; NULL: none is known */
	const char *without_slack;
	int64_t missing_cpu_milli, missing_mem_bytes;
	struct drain_item *items; /* the caller frees them; as in struct drain_case */
	size_t count, own_count, real_count;
};

/*
 * Its pods, and what else is on it by now, leave. Where that fails nothing is changed. Hints are
 * where they went before (c->items), else those of the state.
 */
void drain_try_node(struct drain_run *r, const struct drain_case *c, const bool *allowed,
		    struct drain_trial *out);
/*
 * The items of what must leave a node; *real of them first, then placeholders. The caller frees
 * them.
 */
struct drain_item *drain_leavers(const struct drain_run *r, const struct drain_case *c,
				 size_t *count, size_t *real);
/* Once. */
void drain_explain_trial(struct drain_case *c, struct drain_trial *t);

/* --- drain_wave.c */

void drain_choose_wave(struct drain_run *r);
/* Whether a drain waits for a place elsewhere for it: it neither ended, nor ends and is replaced. */
bool drain_must_move(struct drain_run *r, const struct kube_pod *pod);

/* --- drain_history.c */

/* What the plan says otherwise than the one before. */
void drain_note_plan(struct drain_run *r);

/* --- drain_narrate.c */

void drain_narrate(struct drain_run *r);

/* --- drain_robust.c */

/* Whether a wave has room as well where the kube-scheduler chooses other nodes. */

/* A node of the wave, which must not be in the simulation. */
struct drain_part {
	place_node node;
	const struct drain_item *items; /* borrowed */
	size_t real_count; /* of them that are no placeholders, and first */
};

/* The part one of whose pods has no place in another order, and why; SIZE_MAX: none was found. */
size_t drain_find_fragile(struct drain_run *r, const struct drain_part *of, size_t part_count,
			  struct error *error);
/* True: it is proven. */
bool drain_holds_in_any_order(struct drain_run *r, const struct drain_part *of, size_t part_count);

/* --- drain_record.c */

/*
 * Writes the wave that was chosen into the plan: nodes, moves, destinations with what they will
 * use, what it costs budgets and owners.
 */

struct drain_picked {
	struct drain_case *c;
	const struct drain_item *items; /* its own pods */
	size_t count;
};

/* The wave is in the simulation, which is taken back to `before`, its start. */
void drain_record_wave(struct drain_run *r, const struct drain_picked *picked, size_t count,
		       place_mark before);

/* Of nodes that stay as destinations, once the wave is recorded. */
void drain_record_kept(struct drain_run *r);

#endif
