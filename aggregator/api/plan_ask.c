/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An aggregator has a planner, whose plans go on from each other. Over a snapshot there is none,
 * and the same step is made of the snapshot's view and of what was remembered then: what stands
 * stays, so it tells what the aggregator's next step would have. Of a record it is made as the
 * aggregator made its newest one.
 */
#include "aggregator/api/plan_ask.h"

#include <string.h>

#include "aggregator/planner/drain_settings.h"
#include "aggregator/planner/place_cache.h"
#include "aggregator/planner/plan_peer.h"
#include "shared/clock.h"
#include "shared/hash.h"

#define GRACE_NS 30000000000LL

static struct plan_core *open_core(const struct api_context *ctx, const struct drain_setup *setup,
				   int64_t now_ns, struct api_response *rs)
{
	struct slack_options usual;
	struct error error = {""};
	struct plan_drain drain;
	struct plan_core *c;

	slack_options_default(&usual);
	drain_runner_open(&drain, setup, setup->timed, NULL, NULL);
	c = plan_core_new(ctx->slack ? ctx->slack : &usual, &drain);
	for (int p = 0; ctx->memory && p < PLAN_PARTS; p++) {
		const char *text = ctx->memory->of[p];

		if (!text ||
		    !plan_core_remember(c, (enum plan_part)p,
					&(struct plan_text){text, strlen(text), now_ns, false},
					&error))
			continue;
		api_fail(rs, FAIL_BAD_REQUEST, NULL, "state.%s: %s",
			 plan_part_name((enum plan_part)p), error.text);
		plan_core_free(c);
		return NULL;
	}
	return c;
}

static struct plan_result *make(const struct api_context *ctx, struct view *v,
				struct api_response *rs)
{
	const struct plan_moment *m = ctx->planned;
	struct plan_input in = {
		.view = m ? m->view : v,
		.now_ns = m ? m->now_ns : ctx->now_ns(),
		.looks = m ? m->looks : 0,
	};
	struct plan_result *r = NULL;
	struct error error = {""};
	struct drain_setup usual;
	struct plan_core *c;

	drain_setup_default(&usual);
	c = open_core(ctx, ctx->drain ? ctx->drain : &usual, in.now_ns, rs);
	if (c && plan_core_step(c, &in, &r, &error))
		api_fail(rs, FAIL_BAD_REQUEST, NULL, "%s", error.text);
	if (r) {
		r->version = m ? m->version : 1;
		r->run = m ? m->run : 0;
		r->every_ns = m ? m->every_ns : 0;
	}
	plan_core_free(c);
	drain_setup_fini(&usual);
	return r;
}

struct plan_result *plan_ask(const struct api_context *ctx, struct api_response *rs)
{
	struct plan_result *r = ctx->plans ? plan_slot_take(ctx->plans) : NULL;
	struct error error = {""};
	struct view *v;

	if (r)
		return r;
	v = view_slot_take(ctx->views);
	if (!place_cache_can_answer(v, &error))
		api_fail(rs, FAIL_NO_DATA, NULL, "%s", error.text);
	else if (ctx->plans)
		api_fail(rs, FAIL_NO_DATA, NULL, "the first plan is being made: ask again");
	else
		r = make(ctx, v, rs);
	view_drop(v);
	return r;
}

/* Why the plan may be stale; "": it is not. */
static void find_stale(const struct plan_result *r, int64_t now_ns, struct error *error)
{
	static const enum object_kind needed[] = {OBJECT_NODE, OBJECT_POD};
	const struct cluster *c = r->slack.view->cluster;
	int64_t age_ns = now_ns - r->time_ns;

	*error = (struct error){""};
	if (r->every_ns && age_ns > 2 * r->every_ns + GRACE_NS) {
		error_set(error, "the plan is %lld s old", (long long)(age_ns / 1000000000));
		return;
	}
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (c && c->sources[needed[i]].state == SOURCE_STALE)
			error_set(error, "the cluster's %s may have changed: %.300s",
				  object_kind_resource(needed[i]), c->sources[needed[i]].message);
}

uint64_t plan_ask_write_head(const struct plan_result *r, struct plan_peer *peer, int64_t now_ns,
			     struct jsonw *w)
{
	size_t begin = w->out->len;
	struct error stale;
	uint64_t hash;

	find_stale(r, now_ns, &stale);
	jsonw_key_text(w, "stale", stale.text);
	if (r->run)
		jsonw_key_hex(w, "aggregatorRun", r->run);
	jsonw_key_hex(w, "id", r->id);
	if (peer) {
		struct plan_peer_state other = plan_peer_look(peer, r, clock_mono_ns());

		jsonw_key_object(w, "peer");
		jsonw_key_string(w, "plan", plan_accord_name(other.accord));
		jsonw_key_int(w, "seconds", other.for_ns / NS_PER_SEC);
		if (other.id)
			jsonw_key_hex(w, "id", other.id);
		jsonw_object_close(w);
	}
	hash = hash_bytes((uint64_t)r->time_ns ^ r->version << 48, w->out->data + begin,
			  w->out->len - begin);
	return hash ? hash : 1;
}
