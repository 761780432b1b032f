/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/api/quota_search.h"

#include <stdlib.h>

#include "aggregator/api/place_pool.h"
#include "aggregator/api/reserved_pods.h"
#include "aggregator/state/victim_log.h"
#include "shared/mem.h"

/* The longest window of evictions that a quota may have (quota_annotations.h). */
#define PAST_NS (30 * 86400 * 1000000000LL)

static void read_log(struct quota_search *q)
{
	struct victim_log *l = q->ctx->victims;
	const char *uid = q->ask.pod->object.uid;

	if (!l)
		return;
	q->version = victim_log_version(l);
	q->ask.in_flight_count =
		victim_log_told(l, *uid ? uid : NULL, q->ask.now_ns - VICTIM_LOG_FLIGHT_NS,
				q->ask.now_ns, &q->in_flight);
	q->ask.in_flight = q->in_flight;
	q->ask.exchanged_count =
		victim_log_told(l, *uid ? uid : NULL, 0, q->ask.now_ns, &q->exchanged);
	q->ask.exchanged = q->exchanged;
	q->ask.past_count = victim_log_past(l, q->ask.now_ns - PAST_NS, &q->told);
	q->past = mem_alloc((q->ask.past_count + 1) * sizeof(*q->past));
	for (size_t i = 0; i < q->ask.past_count; i++)
		q->past[i] = (struct preempt_past){q->told[i].namespace, q->told[i].at_ns};
	q->ask.past = q->past;
}

void quota_search_open(struct quota_search *q, const struct api_context *ctx,
		       struct place_pool *pool, const struct quota_scene *s,
		       const struct kube_pod *pod, bool never)
{
	*q = (struct quota_search){.ctx = ctx, .pool = pool};
	if (ctx->preempt)
		q->options = *ctx->preempt;
	else
		preempt_options_default(&q->options);
	q->options.variant = s->options.variant;
	q->options.critical_priority = s->options.critical_priority;
	q->ask = (struct preempt_ask){.pod = pod,
				      .never = never,
				      .reserved = quota_scene_ask(s, pod, NULL).reserved,
				      .ledger = s->ledger,
				      .now_ns = ctx->now_ns()};
	read_log(q);
	q->place = place_pool_take(pool, s->view, q->ask.now_ns);
	q->unseen = reserved_pods_put(q->place, s->view, s->ledger, pod->object.uid, &q->mark);
	q->index = preempt_of(s->view);
}

void quota_search_close(struct quota_search *q)
{
	place_revert(q->place, q->mark);
	place_pool_give(q->pool, q->place);
	free(q->past);
	free(q->told);
	free((void *)q->in_flight);
	free((void *)q->exchanged);
}
