/* SPDX-License-Identifier: Apache-2.0 */
/*
 *	view --> place_update --> slack_step --> place_update --> drain --> result
 *	                           state                          state
 *
 * The core is updated twice, since slack leaves its placeholders on it, and drains put them there as
 * pods that move. If the second update is ended there is no plan of drains.
 *
 * A plan and the idle core keep the view without pods only: a whole view would hold a second set of
 * all measurements until the next plan.
 *
 * The memory of a step is written out and compared as text: an unchanged part keeps its body, so
 * that the saver knows by a pointer whether there is anything to save.
 */
#include "aggregator/planner/plan.h"

#include <errno.h>
#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/planner/slack_memory.h"
#include "shared/clock.h"
#include "shared/hash.h"
#include "shared/mem.h"
#include "shared/refs.h"

/*
 * --- the slot
 *
 * One mutex, held for a pointer and a count. The last reader frees an old plan, without the lock.
 */

struct plan_slot {
	uint64_t run; /* fixed after start */
	pthread_mutex_t lock;
	/* under lock */
	struct plan_result *newest; /* held; NULL: none yet */
	uint64_t version;
};

const char *plan_part_name(enum plan_part p)
{
	static const char *const names[PLAN_PARTS] = {
		[PLAN_SLACK] = "slack", [PLAN_DRAIN] = "drain"};

	return names[p];
}

struct plan_result *plan_result_new(void)
{
	struct plan_result *r = mem_zalloc(1, sizeof(*r));

	atomic_init(&r->users, 1);
	return r;
}

void plan_result_drop(struct plan_result *r)
{
	if (!r || !refs_drop(&r->users))
		return;
	if (r->drain)
		r->drain_free(r->drain); /* before the view, of which it has names */
	slack_result_fini(&r->slack);
	for (int p = 0; p < PLAN_PARTS; p++) {
		shared_body_drop(r->memory[p]);
		shared_body_drop(r->begun[p]);
	}
	free(r);
}

struct plan_slot *plan_slot_new(void)
{
	struct plan_slot *s = mem_zalloc(1, sizeof(*s));

	pthread_mutex_init(&s->lock, NULL);
	randombytes_buf(&s->run, sizeof(s->run));
	s->run |= 1;
	return s;
}

uint64_t plan_slot_run(const struct plan_slot *s)
{
	return s->run;
}

void plan_slot_free(struct plan_slot *s)
{
	if (!s)
		return;
	plan_result_drop(s->newest);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

int64_t plan_slot_publish(struct plan_slot *s, struct plan_result *r)
{
	struct plan_result *before;
	int64_t now_ns;

	pthread_mutex_lock(&s->lock);
	before = s->newest;
	r->run = s->run;
	r->version = ++s->version;
	s->newest = r;
	now_ns = clock_wall_ns();
	pthread_mutex_unlock(&s->lock);
	plan_result_drop(before);
	return now_ns;
}

struct plan_result *plan_slot_take(struct plan_slot *s)
{
	struct plan_result *r;

	pthread_mutex_lock(&s->lock);
	r = s->newest;
	if (r)
		refs_hold(&r->users);
	pthread_mutex_unlock(&s->lock);
	return r;
}

/* --- the core */

struct plan_core {
	struct slack_options options;
	struct plan_drain drain; /* step NULL: none */
	struct slack_state *slack; /* owned */
	struct place *place; /* owned; NULL before the first step */
	struct shared_body *memory[PLAN_PARTS]; /* held; of the step before */
	uint64_t moves[SLACK_CAUSES]; /* of placeholders, in all steps */
};

struct plan_core *plan_core_new(const struct slack_options *slack, const struct plan_drain *drain)
{
	struct plan_core *c = mem_zalloc(1, sizeof(*c));

	c->options = *slack;
	if (drain)
		c->drain = *drain;
	c->slack = slack_state_new();
	return c;
}

void plan_core_free(struct plan_core *c)
{
	if (!c)
		return;
	if (c->drain.step)
		c->drain.free(c->drain.state);
	for (int p = 0; p < PLAN_PARTS; p++)
		shared_body_drop(c->memory[p]);
	slack_state_free(c->slack);
	place_free(c->place);
	free(c);
}

int plan_core_remember(struct plan_core *c, enum plan_part part, const struct plan_text *text,
		       struct error *error)
{
	struct slack_state *slack;
	int rc;

	if (part == PLAN_DRAIN)
		return c->drain.step ? c->drain.restore(c->drain.state, text, error) : 0;
	slack = slack_state_new();
	rc = slack_memory_read(slack, text->data, text->len, error);
	if (!rc) {
		slack_state_free(c->slack);
		c->slack = slack;
	} else {
		slack_state_free(slack);
	}
	return rc;
}

/* False: out of time; there is no core, and the next step builds it. */
static bool follow(struct plan_core *c, const struct plan_input *in)
{
	struct place_options o;

	if (c->place) {
		place_set_limit(c->place, in->out_of_time, in->ctx);
		if (place_update(c->place, in->view, in->now_ns))
			return true;
		place_free(c->place);
		c->place = NULL;
		return false;
	}
	place_options_default(&o);
	if (c->drain.step)
		o = c->drain.places;
	o.plans = true;
	o.now_ns = in->now_ns;
	o.out_of_time = in->out_of_time;
	o.ctx = in->ctx;
	c->place = place_new(in->view, &o);
	return c->place;
}

/* An unchanged part keeps the body of the step before. */
static void keep_memory(struct plan_core *c, struct plan_result *r)
{
	for (int p = 0; p < PLAN_PARTS; p++) {
		const struct shared_body *a = c->memory[p], *b = r->memory[p];

		if (a && b && a->len == b->len && memcmp(a->data, b->data, a->len) == 0) {
			shared_body_drop(r->memory[p]);
			r->memory[p] = shared_body_hold(c->memory[p]);
		} else if (r->memory[p]) {
			shared_body_drop(c->memory[p]);
			c->memory[p] = shared_body_hold(r->memory[p]);
		}
	}
}

int plan_core_step(struct plan_core *c, const struct plan_input *in, struct plan_result **out,
		   struct error *error)
{
	struct buf memory = BUF_INIT;
	struct plan_result *r;
	int rc;

	if (!follow(c, in))
		return error_fail(error, -EINTR, "the step was ended before the cluster was read");
	r = plan_result_new();
	r->time_ns = in->now_ns;
	r->id = HASH_BEGIN;
	r->slack_options = c->options;
	r->use_cap = place_cap_applies(c->place);
	r->cap = c->drain.places.cap;
	r->use_shared = place_use_is_shared(c->place);
	if (in->recorded) {
		slack_memory_write(c->slack, &memory);
		r->begun[PLAN_SLACK] = shared_body_new(&memory);
	}
	slack_state_set_limit(c->slack, in->out_of_time, in->ctx);
	rc = slack_step(c->slack, c->place, in->view, in->now_ns, &c->options, &r->slack, error);
	if (rc) {
		plan_result_drop(r);
		return rc;
	}
	for (size_t i = 0; i < r->slack.move_count; i++)
		c->moves[r->slack.moves[i].cause]++;
	memcpy(r->slack_moves, c->moves, sizeof(c->moves));
	slack_memory_write(c->slack, &memory);
	r->memory[PLAN_SLACK] = shared_body_new(&memory);
	view_drop(r->slack.view);
	r->slack.view = view_without_pods(in->view);
	if (c->drain.step && follow(c, in))
		c->drain.step(c->drain.state, c->place, in, r);
	keep_memory(c, r);
	if (c->place)
		place_rest(c->place, r->slack.view);
	*out = r;
	return 0;
}

void plan_memory_fini(struct plan_memory *m)
{
	for (int p = 0; p < PLAN_PARTS; p++)
		free(m->of[p]);
	*m = (struct plan_memory){0};
}
