/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /extender/prioritize: what each node is worth for the pod, 0 to 10, by the blend of
 * /v1/scores over the nodes that are asked about:
 *
 *     10 - floor(10 * (best - score) / max(best - worst, 10)) and at least 1
 *
 * The scheduler has eleven steps for all nodes, and nodes that differ by less than one share a
 * step; so the steps lie between the worst node and the best. Of equals the first by name is the
 * best, which has the highest step alone: the scheduler chooses among equals at random, and would
 * choose another one than is charged. Where
 * all are within 10 points a step is one point, so that little differences do not outweigh the
 * scheduler's own plugins. A node without a measurement beside measured ones gets 0, and so does
 * one that the view does not have; all get 0 while an aggregator that has just started hears its
 * agents. A node that could be drained, or is to go now, has half the steps: else its pods, and
 * those that come there, would move twice.
 *
 * The best node is charged with the pod: the
 * scheduler adds its own scores and may choose another one, which the watch event tells then.
 * Meanwhile the next pods see the node fuller than it is measured, so that a burst does not stack.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/extender_call.h"
#include "aggregator/api/plan_slot.h"
#include "aggregator/api/warmer.h"
#include "aggregator/policy/drain/drain.h"
#include "shared/clock.h"
#include "shared/mem.h"

#define TEN_POINTS 10.0 /* a step is a tenth of at least so many */

/*
 * An aggregator that has just started hears its agents one by one, each with what it kept: until
 * all nodes have a window, or this is over, those that were heard first are not better than others.
 */
#define SETTLE_NS (60 * NS_PER_SEC)
/* What an older plan said of candidates says nothing of today's. */
#define PLAN_AGE_NS (300 * NS_PER_SEC)

static bool is_settling(const struct extender_call *c, const struct score_job *job)
{
	bool measured = false, missing = false;

	if (!c->ctx->started_ns || c->now_ns - c->ctx->started_ns > SETTLE_NS)
		return false;
	for (size_t i = 0; i < job->node_count; i++) {
		const struct score_node *n = &job->nodes[i];

		measured |= n->measured;
		missing |= !n->measured || !*n->window; /* that covers its time */
	}
	return measured && missing;
}

/* The blended scores of a job's nodes; NAN where a node is only estimated beside measured ones. */
static double *blend_scores(const struct score_job *job, double *best, double *worst)
{
	double *scores = mem_alloc((job->node_count + 1) * sizeof(*scores));
	int64_t each[SCORE_PLUGINS];

	*best = -INFINITY;
	*worst = INFINITY;
	for (size_t i = 0; i < job->node_count; i++) {
		const struct score_node *n = &job->nodes[i];

		scores[i] = score_job_score(job, i, each);
		if (!n->measured && n->rung != RUNG_ALLOCATION) {
			scores[i] = NAN;
			continue;
		}
		*best = fmax(*best, scores[i]);
		*worst = fmin(*worst, scores[i]);
	}
	return scores;
}

static int64_t to_ten(double score, double best, double worst)
{
	double steps = floor(10 * (best - score) / fmax(best - worst, TEN_POINTS));

	return isnan(score) ? 0 : (int64_t)fmax(10 - steps, 1);
}

/* Both are sorted by name. */
static void halve_candidates(const struct extender_call *c, int64_t *places)
{
	struct plan_result *r = c->ctx->plans ? plan_slot_take(c->ctx->plans) : NULL;
	bool fresh = r && r->drain && c->now_ns - r->time_ns <= PLAN_AGE_NS;
	size_t at = 0;

	for (size_t i = 0; fresh && i < r->drain->node_count; i++) {
		const struct drain_plan_node *n = &r->drain->nodes[i];

		if (n->verdict != DRAIN_UNNEEDED && n->verdict != DRAIN_GOES)
			continue;
		while (at < c->view->node_count && strcmp(c->view->nodes[at]->name, n->name) < 0)
			at++;
		if (at < c->view->node_count && strcmp(c->view->nodes[at]->name, n->name) == 0)
			places[at] = (places[at] + 1) / 2;
	}
	plan_result_drop(r);
}

/* Of those that have the highest step the first keeps it; the view has them by name. */
static void single_out(int64_t *places, size_t count)
{
	bool found = false;

	for (size_t i = 0; i < count; i++) {
		places[i] -= places[i] == 10 && found;
		found |= places[i] == 10;
	}
}

/* By place in the view; those not asked about, and the place behind the last, have 0. */
static int64_t *score_places(const struct extender_call *c)
{
	int64_t *places = mem_zalloc(c->view->node_count + 1, sizeof(*places));
	bool *chosen = extender_call_chosen(c);
	double *scores, best, worst;
	struct score_job job;
	bool settling;
	size_t next = 0;

	warmer_asked(c->ctx->warmer, c->now_ns);
	score_job_init(&job, &c->ask, chosen);
	settling = is_settling(c, &job);
	scores = blend_scores(&job, &best, &worst);
	for (size_t i = 0; !settling && i < c->view->node_count; i++)
		if (chosen[i])
			places[i] = to_ten(scores[next++], best, worst);
	halve_candidates(c, places);
	single_out(places, c->view->node_count);
	score_job_fini(&job);
	free(scores);
	free(chosen);
	return places;
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
