/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A step of drains after one of slack: the placeholders of slack become pods that move with their
 * nodes.
 *
 * Timers of a saved text that is older than --node-deletion-candidate-ttl are void.
 *
 * Behind the memory of another aggregator, its records of decisions are logged here, and not those of
 * the own step, which that one makes as well. The first step without it logs what is left over.
 *
 * A node that was being drained and is gone counts as scaled down, empty or underutilized, as it was
 * last seen.
 */
#include "aggregator/planner/plan.h"

#include <stdlib.h>
#include <string.h>

#include "aggregator/planner/drain_log.h"
#include "aggregator/planner/drain_settings.h"
#include "aggregator/policy/drain/drain_eligibility.h"
#include "aggregator/state/counters.h"
#include "shared/clock.h"
#include "shared/hash.h"
#include "shared/mem.h"

/* A node that is being deleted, or was selected. */
struct leaver {
	char *name; /* owned */
	bool empty, gpu;
};

struct drain_runner {
	const struct drain_setup *setup; /* borrowed */
	struct drain_counters *counters; /* borrowed; NULL: nobody counts */
	struct drain_log *decisions; /* borrowed; NULL: nobody keeps them */
	bool timed;
	struct drain_state *state; /* owned */
	bool follows; /* the next step goes on from another aggregator's memory */
	int64_t logged_ns; /* time of the newest record that is logged; Unix */
	size_t leaver_count;
	struct leaver *leavers; /* owned; of the last step, by name */
	/* of the step at hand */
	const struct plan_input *in;
	int64_t deadline_ns; /* monotonic */
	uint64_t looks; /* at the clock */
	bool late;
};

/* --- what was saved */

/* Logs records of the state that are newer than the last logged one. */
static void log_history(struct drain_runner *r)
{
	size_t count, at = 0;
	const struct drain_record *of = drain_state_history(r->state, &count);

	while (at < count && of[at].time_ns <= r->logged_ns)
		at++;
	if (at == count)
		return;
	if (r->decisions)
		drain_log_add(r->decisions, of + at, count - at);
	r->logged_ns = of[count - 1].time_ns;
}

static int restore(void *state, const struct plan_text *text, struct error *error)
{
	struct drain_runner *r = state;
	size_t count;
	int rc = drain_state_read(r->state, text->data, text->len, r->setup->candidate_ttl_ns,
				  text->now_ns, error);

	if (rc)
		return rc;
	r->follows = text->foreign;
	if (r->follows) {
		log_history(r);
	} else {
		/* The log has a database of its own. */
		const struct drain_record *of = drain_state_history(r->state, &count);

		r->logged_ns = count ? of[count - 1].time_ns : text->now_ns;
	}
	return 0;
}

/* --- nodes that were being drained */

static void forget_leavers(struct drain_runner *r)
{
	for (size_t i = 0; i < r->leaver_count; i++)
		free(r->leavers[i].name);
	free(r->leavers);
	r->leavers = NULL;
	r->leaver_count = 0;
}

/* The API knows it, and not just pods that name it. */
static const struct kube_node *find_object(const struct view *v, const char *name)
{
	const struct view_node *n = view_find(v, name);

	return n && n->model ? n->model->node : NULL;
}

static void keep_leavers(struct drain_runner *r, const struct drain_plan *p)
{
	forget_leavers(r);
	r->leavers = mem_zalloc(p->node_count + 1, sizeof(*r->leavers));
	for (size_t i = 0; i < p->node_count; i++) {
		const struct drain_plan_node *n = &p->nodes[i];
		const struct view_node *known = view_find(p->view, n->name);
		const struct kube_node *object = find_object(p->view, n->name);

		if ((n->verdict != DRAIN_IN_DELETION && n->verdict != DRAIN_SELECTED &&
		     n->verdict != DRAIN_DRAINED) ||
		    !object)
			continue;
		r->leavers[r->leaver_count++] = (struct leaver){
			.name = mem_strdup(n->name),
			.empty = known->sums.pods <= known->sums.daemon_pods,
			.gpu = drain_has_gpu(object, DRAIN_UPSTREAM),
		};
	}
}

static void count_gone(struct drain_runner *r, const struct view *v)
{
	struct drain_counters *c = r->counters;

	for (size_t i = 0; i < r->leaver_count && c; i++) {
		const struct leaver *l = &r->leavers[i];

		if (find_object(v, l->name))
			continue;
		counter_add(l->empty ? &c->scaled_down_empty : &c->scaled_down_underutilized, 1);
		counter_add(&c->scaled_down_gpu, l->gpu);
	}
}

/* --- a step */

static struct drain_placeholder *read_placeholders(const struct slack_result *slack,
						   const struct place *place)
{
	struct drain_placeholder *of = mem_zalloc(slack->placed_count + 1, sizeof(*of));

	for (size_t i = 0; i < slack->placed_count; i++) {
		const struct slack_class *class = &slack->classes[slack->placed[i].class];

		of[i] = (struct drain_placeholder){
			.pod = class->record,
			.node = place_node_name(place, slack->placed[i].node),
			.class_name = class->key,
		};
	}
	return of;
}

static uint64_t id_of(const struct drain_wave *w, const struct view *v)
{
	uint64_t hash = HASH_BEGIN;

	for (size_t i = 0; i < w->node_count; i++) {
		const struct drain_plan_node *n = w->nodes[i];
		const char *uid = find_object(v, n->name)->object.uid;

		hash = hash_bytes(hash, uid, strlen(uid) + 1);
		for (size_t k = 0; k < n->move_count; k++) {
			uid = n->moves[k].pod->object.uid; /* "": a placeholder */
			hash = hash_bytes(hash, uid, *uid ? strlen(uid) + 1 : 0);
		}
	}
	return hash ? hash : 1;
}

static bool is_out_of_time(void *context)
{
	struct drain_runner *r = context;

	if (r->late)
		return true;
	r->looks++;
	if (r->in->looks)
		r->late = r->looks == r->in->looks;
	else
		r->late = (r->timed && clock_mono_ns() > r->deadline_ns) ||
			  (r->in->out_of_time && r->in->out_of_time(r->in->ctx));
	return r->late;
}

static void step(void *state, struct place *place, const struct plan_input *in,
		 struct plan_result *out)
{
	struct drain_runner *r = state;
	struct buf memory = BUF_INIT, begun = BUF_INIT;
	struct drain_placeholder *slack = read_placeholders(&out->slack, place);
	struct drain_input input = {
		.place = place,
		.view = in->view,
		.now_ns = in->now_ns,
		.slack = slack,
		.slack_count = out->slack.placed_count,
		.slack_holds = slack_holds_without,
		.slack_result = &out->slack,
		.out_of_time = is_out_of_time,
		.context = r,
		.begun = in->recorded ? &begun : NULL,
	};
	int64_t start_ns = clock_mono_ns();

	if (!r->follows)
		log_history(r);
	r->in = in;
	r->deadline_ns = start_ns + r->setup->config.rules.simulation_ns;
	r->looks = 0;
	r->late = false;
	out->drain = drain_step(r->state, &input, &r->setup->config);
	out->drain_free = drain_plan_free;
	out->looks = r->late ? r->looks : 0;
	if (r->counters) {
		counter_add(&r->counters->steps, 1);
		counter_add(&r->counters->took_ns, (uint64_t)(clock_mono_ns() - start_ns));
	}
	out->id = id_of(&out->drain->wave, in->view);
	if (!r->follows) {
		if (r->decisions)
			drain_log_add(r->decisions, out->drain->records, out->drain->record_count);
		r->logged_ns = in->now_ns;
	}
	r->follows = false;
	count_gone(r, in->view);
	keep_leavers(r, out->drain);
	view_drop(out->drain->view);
	out->drain->view = view_hold(out->slack.view);
	drain_state_write(r->state, in->now_ns, &memory);
	out->memory[PLAN_DRAIN] = shared_body_new(&memory);
	if (in->recorded)
		out->begun[PLAN_DRAIN] = shared_body_new(&begun);
	free(slack);
}

static void free_runner(void *state)
{
	struct drain_runner *r = state;

	forget_leavers(r);
	drain_state_free(r->state);
	free(r);
}

void drain_runner_open(struct plan_drain *out, const struct drain_setup *setup, bool timed,
		       struct drain_counters *counters, struct drain_log *decisions)
{
	struct drain_runner *r = mem_zalloc(1, sizeof(*r));

	r->setup = setup;
	r->timed = timed;
	r->counters = counters;
	r->decisions = decisions;
	r->state = drain_state_new();
	*out = (struct plan_drain){
		.places = setup->places,
		.state = r,
		.restore = restore,
		.step = step,
		.free = free_runner,
	};
}
