/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /extender/prioritize: what each node is worth for the pod, 0 to 10, as /v1/scores blends it.
 * A node that the view does not have gets 0.
 *
 * The node with the highest score, of equals the first by name, is charged with the pod: the
 * scheduler adds its own scores and may choose another one, which the watch event tells then.
 * Meanwhile the next pods see the node fuller than it is measured, so that a burst does not stack.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/extender_call.h"
#include "aggregator/api/warmer.h"
#include "shared/mem.h"

/* R(score/10), halves up. */
static int64_t to_ten(int64_t score)
{
	return (score + 5) / 10;
}

/* By place in the view; those not asked about, and the place behind the last, have 0. */
static int64_t *score_places(const struct extender_call *c)
{
	int64_t *scores = mem_zalloc(c->view->node_count + 1, sizeof(*scores));
	bool *chosen = extender_call_chosen(c);
	int64_t each[SCORE_PLUGINS];
	struct score_job job;
	size_t next = 0;

	warmer_asked(c->ctx->warmer, c->now_ns);
	score_job_init(&job, &c->ask, chosen);
	for (size_t i = 0; i < c->view->node_count; i++)
		if (chosen[i])
			scores[i] = to_ten(score_job_score(&job, next++, each));
	score_job_fini(&job);
	free(chosen);
	return scores;
}

static const struct extender_priority *find_first(const struct extender_priority *of, size_t count)
{
	const struct extender_priority *first = of;

	for (size_t i = 1; i < count; i++)
		if (of[i].score > first->score ||
		    (of[i].score == first->score && strcmp(of[i].host, first->host) < 0))
			first = &of[i];
	return first;
}

/* Where filter was not asked, nothing is reserved yet. */
static void charge(const struct extender_call *c, const char *node)
{
	if (!extender_call_may_reserve(c) ||
	    ledger_charge(c->ctx->ledger, c->pod->object.uid, node, c->now_ns) == -ENOENT)
		extender_call_reserve(c, node);
}

static void answer(const struct extender_call *c, struct api_response *rs)
{
	struct extender_priority *of = mem_alloc((c->args.count + 1) * sizeof(*of));
	int64_t *scores = score_places(c);

	for (size_t i = 0; i < c->args.count; i++)
		of[i] = (struct extender_priority){c->args.nodes[i].name, scores[c->places[i]]};
	if (c->args.count)
		charge(c, find_first(of, c->args.count)->host);
	rs->content_type = "application/json";
	extender_write_priorities(&rs->body, of, c->args.count);
	free(scores);
	free(of);
}

void api_extender_prioritize(const struct api_context *ctx, const struct api_request *rq,
			     struct api_response *rs)
{
	struct extender_call call;

	if (!extender_call_open(&call, EXTENDER_PRIORITIZE, ctx, rq, rs))
		return;
	answer(&call, rs);
	extender_call_close(&call);
}
