/* SPDX-License-Identifier: Apache-2.0 */
/*
 *	view --> place_update --> slack_step --> place_update --> drain --> result
 *	                           state                          state
 *
 * The core is brought up to date twice: slack leaves its placeholders on it, and drains put them
 * there by themselves, as pods that move. The second costs what the placeholders do; where it is
 * ended there is no plan of drains. The same step makes the plan of the aggregator again and again,
 * and that of a snapshot once.
 *
 * A plan is read until the next one is there, and the core lies idle so long: both keep an outline
 * of the view. Measurements that everybody else has done with would be a second set of all there
 * are.
 *
 * What is remembered is written out with every step, and compared as text: so whoever saves it
 * knows by a pointer whether there is anything to save.
 */
#include "aggregator/api/plan_core.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/slack_memory.h"
#include "shared/mem.h"

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

int plan_core_remember(struct plan_core *c, enum plan_part part, const char *text, size_t len,
		       struct reason *reason)
{
	if (part == PLAN_SLACK)
		return slack_memory_read(c->slack, text, len, reason);
	if (part == PLAN_DRAIN && c->drain.step)
		return c->drain.restore(c->drain.state, text, len, reason);
	return 0;
}

/* Where its time is over there is no core, and the next step builds it. */
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
	o.now_ns = in->now_ns;
	o.out_of_time = in->out_of_time;
	o.ctx = in->ctx;
	c->place = place_new(in->view, &o);
	return c->place;
}

static bool same_text(const struct shared_body *a, const struct shared_body *b)
{
	return a && b && a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}

/* What did not change is told by the same body as before. */
static void keep_memory(struct plan_core *c, struct plan_result *r)
{
	for (int p = 0; p < PLAN_PARTS; p++) {
		if (same_text(c->memory[p], r->memory[p])) {
			shared_body_drop(r->memory[p]);
			r->memory[p] = shared_body_hold(c->memory[p]);
		} else if (r->memory[p]) {
			shared_body_drop(c->memory[p]);
			c->memory[p] = shared_body_hold(r->memory[p]);
		}
	}
}

int plan_core_step(struct plan_core *c, const struct plan_input *in, struct plan_result **out,
		   struct reason *reason)
{
	struct buf memory = BUF_INIT;
	struct plan_result *r;
	int rc;

	if (!follow(c, in)) {
		reason_set(reason, "the step was ended before the cluster was read");
		return -EINTR;
	}
	r = plan_result_new();
	r->time_ns = in->now_ns;
	r->slack_options = c->options;
	r->use_cap = place_cap_applies(c->place);
	r->cap = c->drain.places.cap;
	r->use_shared = place_use_is_shared(c->place);
	slack_state_set_limit(c->slack, in->out_of_time, in->ctx);
	rc = slack_step(c->slack, c->place, in->view, in->now_ns, &c->options, &r->slack, reason);
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
	r->slack.view = view_outline(in->view);
	if (c->drain.step && follow(c, in))
		c->drain.step(c->drain.state, c->place, in, r);
	keep_memory(c, r);
	if (c->place)
		place_rest(c->place, r->slack.view);
	*out = r;
	return 0;
}
