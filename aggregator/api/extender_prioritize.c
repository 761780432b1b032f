/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /extender/prioritize: the score of each node for the pod, 0 to 10, by the blend of /v1/scores
 * over the nodes of the request:
 *
 *     10 - floor(10 * (best - score) / max(best - worst, 10)) and at least 1
 *
 * The scheduler has eleven steps, so these lie between the worst node and the best. If all nodes are
 * within 10 points a step is one point, so that small differences do not outweigh the scheduler's
 * own plugins. The best node, the first by name among equals, has the highest step alone: the
 * scheduler chooses among equals at random, and would choose another node than the charged one. A
 * node without a measurement beside measured ones gets 0, as does a node that the view lacks; all
 * get 0 while an aggregator that has just started hears its agents.
 *
 * Candidates of a drain rank below the nodes that stay, since their pods would move twice. Each
 * group has steps of its own, the best of a group its highest:
 *
 *     6 .. 10  nodes that stay
 *      1 .. 5  candidates of a drain, and nodes whose use would be above the cap of drains with the
 *              pod
 *
 * If only one group has measured nodes, it has all ten steps.
 *
 * The best node is charged with the pod. The scheduler adds its own scores and may choose another
 * node, which the watch event tells later. Until then the next pods see the node fuller than it is
 * measured, so that a burst does not stack.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/extender_call.h"
#include "aggregator/planner/plan.h"
#include "aggregator/api/prefetcher.h"
#include "aggregator/policy/drain/drain.h"
#include "aggregator/policy/node_limits.h"
#include "shared/clock.h"
#include "shared/mem.h"

#define TEN_POINTS 10.0 /* a step is a tenth of at least so many */

/*
 * Agents report one by one to an aggregator that has just started: until all nodes have a window,
 * or this time is over, the nodes that were heard first are not better than others.
 */
#define SETTLE_NS (60 * NS_PER_SEC)
/* An older plan says nothing about candidates. */
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

/* A node of the question. */
struct ranked {
	double score; /* NAN: only estimated beside measured nodes */
	bool behind; /* in the lower group */
};

/* The scores of a group; no node: best is below worst. */
struct band {
	double best, worst;
};

static int64_t to_ten(double score, const struct band *b)
{
	double steps = floor(10 * (b->best - score) / fmax(b->best - b->worst, TEN_POINTS));

	return isnan(score) ? 0 : (int64_t)fmax(10 - steps, 1);
}

/*
 * Marks the nodes of the view that may be drained now or later; cap: the most use that drains leave
 * on their destinations. Both lists are sorted.
 */
static bool *find_candidates(const struct extender_call *c, struct node_limits *cap)
{
	struct plan_result *r = c->ctx->plans ? plan_slot_take(c->ctx->plans) : NULL;
	bool fresh = r && r->drain && c->now_ns - r->time_ns <= PLAN_AGE_NS;
	bool *found = mem_zalloc(c->view->node_count + 1, sizeof(*found));
	size_t at = 0;

	for (size_t i = 0; fresh && i < r->drain->node_count; i++) {
		const struct drain_plan_node *n = &r->drain->nodes[i];

		if (n->verdict != DRAIN_UNNEEDED && n->verdict != DRAIN_SELECTED)
			continue;
		while (at < c->view->node_count && strcmp(c->view->nodes[at]->name, n->name) < 0)
			at++;
		if (at < c->view->node_count && strcmp(c->view->nodes[at]->name, n->name) == 0)
			found[at] = true;
	}
	*cap = (struct node_limits){.z = 0};
	if (fresh && r->use_cap)
		*cap = (struct node_limits){
			.use_cap =
				{[SCORE_CPU] = r->cap.cpu_share, [SCORE_MEMORY] = r->cap.mem_share},
			.z = r->cap.z};
	plan_result_drop(r);
	return found;
}

/* In the order of the job. */
static struct ranked *read_ranked(const struct extender_call *c, const struct score_job *job,
				  const bool *chosen)
{
	struct ranked *ranked = mem_zalloc(job->node_count + 1, sizeof(*ranked));
	struct node_limits cap;
	bool *candidates = find_candidates(c, &cap), any = false;
	int64_t each[SCORE_PLUGINS];
	size_t next = 0;

	for (size_t i = 0; i < c->view->node_count; i++) {
		const struct score_node *n = &job->nodes[next];

		if (!chosen[i])
			continue;
		ranked[next] = (struct ranked){score_job_score(job, next, each), candidates[i]};
		if (!n->measured && n->fallback != FALLBACK_ALLOCATION)
			ranked[next].score = NAN;
		else
			any |= candidates[i];
		next++;
	}
	for (size_t i = 0; any && i < job->node_count; i++)
		ranked[i].behind |= job->nodes[i].measured &&
				    node_limits_over_cap(&cap, &job->query, &job->nodes[i]);
	free(candidates);
	return ranked;
}

/* The highest step stays with the nodes that had it. */
static int64_t to_half(int64_t ten, bool behind)
{
	int64_t five = ten > 1 ? ten / 2 : ten;

	return five && !behind ? five + 5 : five;
}

static void set_steps(const struct extender_call *c, const struct score_job *job,
		      const bool *chosen, int64_t *places)
{
	struct ranked *ranked = read_ranked(c, job, chosen);
	struct band bands[] = {{-INFINITY, INFINITY}, {-INFINITY, INFINITY}};
	bool both;
	size_t next = 0;

	for (size_t i = 0; i < job->node_count; i++) {
		struct band *b = &bands[ranked[i].behind];

		b->best = fmax(b->best, ranked[i].score);
		b->worst = fmin(b->worst, ranked[i].score);
	}
	both = bands[0].best >= bands[0].worst && bands[1].best >= bands[1].worst;
	for (size_t i = 0; i < c->view->node_count; i++) {
		const struct ranked *of = &ranked[next];

		if (!chosen[i])
			continue;
		next++;
		places[i] = to_ten(of->score, &bands[of->behind]);
		if (both)
			places[i] = to_half(places[i], of->behind);
	}
	free(ranked);
}

/* By place in the view; 0 for nodes that are not in the request, and behind the last. */
static int64_t *score_places(const struct extender_call *c)
{
	int64_t *places = mem_zalloc(c->view->node_count + 1, sizeof(*places));
	struct extender_nodes *asked = extender_call_nodes(c);
	struct score_job job;
	bool found = false;

	prefetcher_asked(c->ctx->prefetcher, c->now_ns);
	score_job_init(&job, &c->ask, asked->chosen);
	if (!is_settling(c, &job))
		set_steps(c, &job, asked->chosen, places);
	/* Of those that have the highest step the first keeps it; the view has them by name. */
	for (size_t i = 0; i < c->view->node_count; i++) {
		places[i] -= places[i] == 10 && found;
		found |= places[i] == 10;
	}
	score_job_fini(&job);
	free(asked);
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

/* Without a filter request before, nothing is reserved yet. */
static void charge(const struct extender_call *c, const char *node)
{
	if (!extender_call_may_reserve(c) ||
	    reservations_charge(c->ctx->reservations, c->pod->object.uid, node, c->now_ns) ==
		    -ENOENT)
		extender_call_reserve(c, node, NULL);
	extender_call_tell(c);
}

void api_extender_prioritize(const struct api_context *ctx, const struct api_request *rq,
			     struct api_response *rs)
{
	struct extender_call call;
	struct extender_priority *of;
	int64_t *scores;

	if (!extender_call_open(&call, EXTENDER_PRIORITIZE, ctx, rq, rs))
		return;
	of = mem_alloc((call.args.count + 1) * sizeof(*of));
	scores = score_places(&call);
	for (size_t i = 0; i < call.args.count; i++)
		of[i] = (struct extender_priority){call.args.nodes[i].name, scores[call.places[i]]};
	if (call.args.count)
		charge(&call, find_first(of, call.args.count)->host);
	rs->content_type = "application/json";
	extender_write_priorities(&rs->body, of, call.args.count);
	free(scores);
	free(of);
	extender_call_close(&call);
}
