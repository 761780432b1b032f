/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Liveness and readiness for whoever starts the service. The threads that answer are the ones being
 * asked about, so an answer is the proof. Without an API to follow there are no caches to wait for:
 * ready means serving. With one, every kind was complete once before a first answer counts, but for
 * kinds that the API does not have or does not show; nodes and pods are always needed. A model that
 * became stale later and a database that fails are told of but take nobody out of service: another
 * replica would not be better off.
 */
#include "aggregator/api/api.h"
#include "aggregator/model/model.h"

static void answer_ok(struct api_response *rs)
{
	rs->content_type = "text/plain; charset=utf-8";
	buf_add_str(&rs->body, "ok\n");
}

void api_healthz(const struct api_context *ctx, const struct api_request *rq,
		 struct api_response *rs)
{
	(void)ctx;
	(void)rq;
	answer_ok(rs);
}

/* Whether nothing more is to be waited for. */
static bool is_settled(enum object_kind kind, enum source_state state)
{
	switch (state) {
	case SOURCE_SYNCED:
	case SOURCE_STALE:
	case SOURCE_SNAPSHOT:
		return true;
	case SOURCE_FORBIDDEN:
	case SOURCE_ABSENT:
		return kind != OBJECT_NODE && kind != OBJECT_POD;
	default:
		return false;
	}
}

/* Of what is not in a file nothing will come. */
static bool is_from_file(const struct cluster *c)
{
	for (int kind = 0; kind < OBJECT_KINDS; kind++)
		if (c->sources[kind].state == SOURCE_SNAPSHOT)
			return true;
	return false;
}

static bool is_ready(const struct cluster *c)
{
	if (!c || is_from_file(c))
		return true;
	for (int kind = 0; kind < OBJECT_KINDS; kind++)
		if (!is_settled((enum object_kind)kind, c->sources[kind].state))
			return false;
	return true;
}

/* A line for each kind that is not as it should be. */
static void tell_sources(const struct cluster *c, struct buf *out)
{
	for (int kind = 0; c && kind < OBJECT_KINDS; kind++) {
		const struct model_source *s = &c->sources[kind];

		if (s->state == SOURCE_SYNCED || s->state == SOURCE_ABSENT ||
		    s->state == SOURCE_SNAPSHOT)
			continue;
		buf_printf(out, "%s: %s%s%s\n", object_kind_resource((enum object_kind)kind),
			   source_state_name(s->state), s->message[0] ? ": " : "", s->message);
	}
}

void api_readyz(const struct api_context *ctx, const struct api_request *rq,
		struct api_response *rs)
{
	struct view *view = view_slot_take(ctx->views);

	if (is_ready(view->cluster)) {
		answer_ok(rs);
	} else {
		rs->status = 503;
		rs->content_type = "text/plain; charset=utf-8";
		buf_add_str(&rs->body,
			    rq->foreign ? "not ready\n" : "waiting for the Kubernetes API\n");
	}
	if (!rq->foreign)
		tell_sources(view->cluster, &rs->body);
	view_drop(view);
	if (!rq->foreign && counter_get(&ctx->counters->store.alarm))
		buf_add_str(&rs->body, "store: node windows are not being saved, see the log\n");
}
