/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /extender/filter: which of the nodes that passed the kube-scheduler's own filters may have
 * the pod. Every node that is asked about is in the answer, passed or refused with a sentence: one
 * in neither would be out of the question for preemption, too. An "Error" is never answered, since
 * it would fail the pod as a whole.
 *
 * Refusals. First the gates, which look at the pod and not at nodes: one that refuses, refuses
 * every node. Then node by node the hard limits (node_limits.h), if there are any. Pods of
 * DaemonSets and those that the cluster cannot live without (priority of system-cluster-critical
 * and above) are not held to them: they have nowhere else to go.
 *
 * A node that we do not know. The scheduler and we follow the same API, it in its cache and we in
 * views that are up to a second old. While our list of nodes is complete and followed, such a node
 * has just been deleted, or is younger than the view: it is refused, and the event that its kubelet
 * reports ready, seconds after it came, brings the pod back. While we have no such list
 * (standalone, not listed yet, the watch broken) it is we who are behind: it passes, and no limit
 * is applied, as to any node of which nothing is measured.
 *
 * A pod with a nominated node waits for its victims to go: what was reserved for it when they were
 * chosen (extender_preempt.c) stays, although the filter refuses it meanwhile.
 *
 * The scheduler puts the number of nodes before a reason ("1 node(s) had taints .."), so no
 * sentence begins with a resource, or a number of nodes would be read as one of cores.
 *
 * What passes is reserved: quota, and where one node is left, for which the scheduler does not ask
 * to prioritize, that node. What passes nowhere is released. Questions that come at once must not
 * pass on what is there once: who reserves after others did since he looked has to look again. Each
 * time somebody else was served, so this ends; who loses more often than there can be threads is
 * refused, and loses nothing but time.
 */
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/extender_call.h"
#include "aggregator/api/extender_quota.h"
#include "shared/clock.h"
#include "shared/mem.h"

enum { CRITICAL_PRIORITY = 2000000000, TRIES_MAX = 256 };

/* Each looks at every pod; the first that refuses decides. */
static extender_gate *const gates[] = {
	extender_quota_gate,
	NULL,
};

/* The answer while it is made. */
struct sieve {
	const struct extender_call *call;
	struct extender_asked *passed; /* owned, as are */
	struct extender_refused *failed;
	size_t passed_count, failed_count;
	char **texts; /* each owned; what failed points into */
	size_t text_count;
};

static void pass(struct sieve *s, size_t i)
{
	s->passed[s->passed_count++] = s->call->args.nodes[i];
}

static void refuse(struct sieve *s, size_t i, const char *why)
{
	s->failed[s->failed_count++] = (struct extender_refused){s->call->args.nodes[i].name, why};
}

/* Takes the text over. */
static void refuse_with(struct sieve *s, size_t i, char *why)
{
	s->texts[s->text_count++] = why;
	refuse(s, i, why);
}

static void count_refusal(const struct sieve *s, enum extender_refusal why)
{
	counter_add(&s->call->ctx->counters->extender.refused[why], 1);
}

/* --- nodes that are not in the view ----------------------------------------------------------- */

static const struct model_source *nodes_source(const struct view *v)
{
	return v->cluster ? &v->cluster->sources[OBJECT_NODE] : NULL;
}

/* What we do not know does not exist, as of a moment ago. */
static bool knows_all_nodes(const struct view *v)
{
	const struct model_source *s = nodes_source(v);

	return s && (s->state == SOURCE_SYNCED || s->state == SOURCE_SNAPSHOT);
}

static void judge_unknown(struct sieve *s, size_t i)
{
	const struct extender_call *c = s->call;
	double age_s = (double)(c->now_ns - c->view->time_ns) / NS_PER_SEC;

	if (!knows_all_nodes(c->view)) {
		pass(s, i);
		return;
	}
	count_refusal(s, EXTENDER_UNKNOWN_NODE);
	refuse_with(s, i,
		    mem_printf("evenkeel knows no node \"%.253s\" as of %.1f s ago, and had all of "
			       "the API's then: it is gone, or so new that the next event of it "
			       "will do",
			       c->args.nodes[i].name, age_s > 0 ? age_s : 0));
}

/* --- limits of nodes -------------------------------------------------------------------------- */

static enum extender_refusal refusal_of(enum node_refusal r)
{
	static const enum extender_refusal of[NODE_REFUSALS] = {
		[NODE_OVER_USE_CAP_CPU] = EXTENDER_USE_CAP_CPU,
		[NODE_OVER_USE_CAP_MEMORY] = EXTENDER_USE_CAP_MEMORY,
		[NODE_OVER_LIMIT_RATIO_CPU] = EXTENDER_LIMIT_RATIO_CPU,
		[NODE_OVER_LIMIT_RATIO_MEMORY] = EXTENDER_LIMIT_RATIO_MEMORY,
	};

	return of[r];
}

static bool is_held_to_limits(const struct extender_call *c)
{
	const struct pod_template *t = c->pod->template;

	return c->ctx->extender && node_limits_any(&c->ctx->extender->limits) &&
	       t->priority < CRITICAL_PRIORITY && strcmp(t->owner.kind, "DaemonSet") != 0;
}

/* The inputs of each place of the view, where it was asked about. */
static const struct score_node **spread_nodes(const struct score_job *job, const bool *chosen)
{
	size_t count = job->ask->view->node_count, next = 0;
	const struct score_node **at = mem_zalloc(count + 1, sizeof(struct score_node *));

	for (size_t i = 0; i < count; i++)
		if (chosen[i])
			at[i] = &job->nodes[next++];
	return at;
}

static void judge_by_limits(struct sieve *s, const struct score_job *job, size_t i,
			    const struct score_node *node)
{
	char text[NODE_REFUSAL_TEXT];
	enum node_refusal why =
		node_limits_check(&s->call->ctx->extender->limits, &job->query, node, text);

	if (why == NODE_PASSES) {
		pass(s, i);
		return;
	}
	count_refusal(s, refusal_of(why));
	refuse_with(s, i, mem_printf("evenkeel: %s", text));
}

static void sieve_by_limits(struct sieve *s)
{
	const struct extender_call *c = s->call;
	const struct score_mix none = {.variant = SCORE_CORRECTED}; /* only inputs are needed */
	struct score_ask ask = c->ask;
	bool *chosen = extender_call_chosen(c);
	const struct score_node **nodes;
	struct score_job job;

	ask.mix = &none;
	score_job_init(&job, &ask, chosen);
	nodes = spread_nodes(&job, chosen);
	for (size_t i = 0; i < c->args.count; i++) {
		size_t place = c->places[i];

		if (place == c->view->node_count)
			judge_unknown(s, i);
		else
			judge_by_limits(s, &job, i, nodes[place]);
	}
	free(nodes);
	score_job_fini(&job);
	free(chosen);
}

static void sieve_by_name(struct sieve *s)
{
	const struct extender_call *c = s->call;

	for (size_t i = 0; i < c->args.count; i++) {
		if (c->places[i] == c->view->node_count)
			judge_unknown(s, i);
		else
			pass(s, i);
	}
}

/* --- the pod as a whole ----------------------------------------------------------------------- */

static void refuse_all(struct sieve *s, const char *why)
{
	s->texts[s->text_count++] = mem_strdup(why);
	for (size_t i = 0; i < s->call->args.count; i++)
		refuse(s, i, s->texts[0]);
	count_refusal(s, EXTENDER_GATE);
}

/* True: a gate refuses the pod. *unresolvable: no preemption can help. */
static bool is_refused(struct sieve *s, bool *unresolvable)
{
	char why[EXTENDER_GATE_TEXT];

	for (extender_gate *const *gate = gates; *gate; gate++) {
		if ((*gate)(s->call, why, unresolvable))
			continue;
		refuse_all(s, why);
		return true;
	}
	return false;
}

/* False: it has to be decided again. */
static bool settle_with_ledger(const struct sieve *s)
{
	const struct extender_call *c = s->call;

	if (s->passed_count)
		return extender_call_reserve_seen(c, s->passed_count == 1 ? s->passed[0].name : "");
	if (extender_call_may_reserve(c) && !*c->pod->nominated_node)
		ledger_release(c->ctx->ledger, c->pod->object.uid);
	return true;
}

/* Empty, for a question of that many nodes. */
static void sieve_init(struct sieve *s, const struct extender_call *c)
{
	size_t room = c->args.count + 1;

	*s = (struct sieve){
		.call = c,
		.passed = mem_alloc(room * sizeof(*s->passed)),
		.failed = mem_alloc(room * sizeof(*s->failed)),
		.texts = mem_alloc(room * sizeof(char *)),
	};
}

static void sieve_fini(struct sieve *s)
{
	for (size_t i = 0; i < s->text_count; i++)
		free(s->texts[i]);
	free(s->texts);
	free(s->failed);
	free(s->passed);
}

/* False: it has to be done again, with another sieve. */
static bool sieve_once(struct sieve *s, bool *unresolvable)
{
	*unresolvable = false;
	if (!is_refused(s, unresolvable)) {
		if (is_held_to_limits(s->call))
			sieve_by_limits(s);
		else
			sieve_by_name(s);
	}
	return settle_with_ledger(s);
}

static void sieve_until_sure(struct sieve *s, struct extender_call *c, bool *unresolvable)
{
	sieve_init(s, c);
	for (int tries = TRIES_MAX; !sieve_once(s, unresolvable); tries--) {
		sieve_fini(s);
		extender_call_renew(c);
		sieve_init(s, c);
		if (tries > 0)
			continue;
		refuse_all(s, "evenkeel is asked about so many pods at once that it could not "
			      "decide about this one");
		return;
	}
}

static void answer(struct extender_call *c, struct api_response *rs)
{
	struct extender_filter_result result;
	bool unresolvable;
	struct sieve s;

	sieve_until_sure(&s, c, &unresolvable);
	result = (struct extender_filter_result){
		.full = c->args.full,
		.passed_count = s.passed_count,
		.passed = s.passed,
		/*
		 * Unresolvable wins where a node is in both; schedulers before 1.22 know
		 * FailedNodes only.
		 */
		.failed_count = s.failed_count,
		.failed = s.failed,
		.unresolvable_count = unresolvable ? s.failed_count : 0,
		.unresolvable = s.failed,
		.error = "",
	};
	rs->content_type = "application/json";
	extender_write_filter_result(&rs->body, &result);
	sieve_fini(&s);
}

void api_extender_filter(const struct api_context *ctx, const struct api_request *rq,
			 struct api_response *rs)
{
	struct extender_call call;

	if (!extender_call_open(&call, EXTENDER_FILTER, ctx, rq, rs))
		return;
	answer(&call, rs);
	extender_call_close(&call);
}
