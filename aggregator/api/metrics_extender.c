/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics of the requests of kube-schedulers and of the reservations that these made. About 30
 * series, whatever the cluster.
 */
#include "aggregator/api/metrics.h"
#include "aggregator/planner/plan_peer.h"
#include "aggregator/state/reservations.h"
#include "shared/clock.h"

static void write_reservations(struct buf *out, const struct reservations_counters *c)
{
	const struct metric samples[] = {
		{"evenkeel_ledger_reserved_total", NULL, "Reservations that were made.",
		 (double)c->reserved},
		{"evenkeel_ledger_charged_total", NULL, "Pods that were charged to a node.",
		 (double)c->charged},
		{"evenkeel_ledger_bound_total", NULL, "Reserved pods that got a node.",
		 (double)c->bound},
		{"evenkeel_ledger_moved_total", NULL,
		 "Of these, pods that got another node than they were charged to.",
		 (double)c->moved},
		{"evenkeel_ledger_refused_total", NULL,
		 "Reservations that were not made, since there were too many.", (double)c->refused},
		{"evenkeel_ledger_claimed_total", NULL,
		 "Claims of room that victims leave, made or renewed.", (double)c->claimed},
		{"evenkeel_ledger_gone_total", "why=\"settled\"",
		 "Reservations that ended, by why: a view shows the pod, it was deleted or "
		 "refused, the API calls it unschedulable, or time ran out.",
		 (double)c->settled},
		{"evenkeel_ledger_gone_total", "why=\"released\"", NULL, (double)c->released},
		{"evenkeel_ledger_gone_total", "why=\"unschedulable\"", NULL,
		 (double)c->unschedulable},
		{"evenkeel_ledger_gone_total", "why=\"expired\"", NULL, (double)c->expired},
	};

	METRICS_WRITE(out, samples);
	metrics_write_family(out, "evenkeel_ledger_entries",
			     "Pods that something is promised to and no view shows yet.");
	for (int s = 0; s < RESERVATIONS_STATES; s++)
		metrics_write_labelled(out, "evenkeel_ledger_entries", "state",
				       reservations_state_name((enum reservations_state)s),
				       (double)c->entries[s]);
}

static void write_plans(struct buf *out, struct plan_peer *peer)
{
	static const char family[] = "evenkeel_peer_plan";
	struct plan_peer_state s = plan_peer_look(peer, NULL, clock_mono_ns());
	const struct metric seconds = {
		"evenkeel_peer_plan_differs_seconds", NULL,
		"Time for which the plan of the other aggregator has been another one, or unknown.",
		(double)s.for_ns / NS_PER_SEC};

	metrics_write_family(out, family,
			     "1: the newest wave of the other aggregator, as compared with this "
			     "one's.");
	for (int a = 0; a < PLAN_ACCORDS; a++)
		metrics_write_labelled(out, family, "plan", plan_accord_name((enum plan_accord)a),
				       s.accord == (enum plan_accord)a);
	metrics_write_samples(out, &seconds, 1);
}

static void write_exchange(struct buf *out, const struct api_context *ctx)
{
	const struct exchange_counters *c = &ctx->counters->exchange;
	static const char *const outcomes[EXCHANGE_OUTCOMES_COUNT] = {
#define X(name, label) [EXCHANGE_##name] = (label),
		EXCHANGE_OUTCOMES(X)
#undef X
	};
	const struct metric samples[] = {
		{"evenkeel_peer_connected", NULL,
		 "1: another aggregator (--peer) acknowledges reservations.", COUNT(c->together)},
		{"evenkeel_peer_wait_seconds_total", NULL,
		 "Time that answers to kube-schedulers waited for it.",
		 metrics_seconds(&c->wait_ns)},
		{"evenkeel_peer_reservations_total", "direction=\"sent\"",
		 "Reservations that were told to it, and that it told.", COUNT(c->sent)},
		{"evenkeel_peer_reservations_total", "direction=\"received\"", NULL,
		 COUNT(c->received)},
		{"evenkeel_peer_refused_total", NULL, "Frames of it that are not understood.",
		 COUNT(c->refused)},
		{"evenkeel_peer_copy_bytes_total", "direction=\"sent\"",
		 "Bytes of database copies sent to, and received from, the other aggregator.",
		 COUNT(c->copy_bytes[COPY_SENT])},
		{"evenkeel_peer_copy_bytes_total", "direction=\"received\"", NULL,
		 COUNT(c->copy_bytes[COPY_RECEIVED])},
		{"evenkeel_peer_copy_seconds_total", "direction=\"sent\"",
		 "Duration of these copies.", metrics_seconds(&c->copy_ns[COPY_SENT])},
		{"evenkeel_peer_copy_seconds_total", "direction=\"received\"", NULL,
		 metrics_seconds(&c->copy_ns[COPY_RECEIVED])},
	};

	if (!counter_get(&c->enabled))
		return;
	METRICS_WRITE(out, samples);
	metrics_write_counters(out, "evenkeel_peer_answers_total",
			       "Answers to kube-schedulers, by whether it had acknowledged what "
			       "they reserve before they went out.",
			       "result", outcomes, c->answers, EXCHANGE_OUTCOMES_COUNT);
	if (ctx->plan_peer)
		write_plans(out, ctx->plan_peer);
}

void metrics_write_extender(struct buf *out, const struct api_context *ctx)
{
	static const char *const refusals[EXTENDER_REFUSALS] = {
#define X(name, label, reason) [EXTENDER_##name] = (label),
		EXTENDER_REFUSALS_TABLE(X)
#undef X
	};
	static const char *const verbs[EXTENDER_VERBS] = {
		[EXTENDER_FILTER] = "filter",
		[EXTENDER_PRIORITIZE] = "prioritize",
		[EXTENDER_PREEMPT] = "preempt",
	};
	static const char seconds[] = "evenkeel_extender_seconds_total";
	const struct extender_counters *c = &ctx->counters->extender;
	const struct requeue_counters *q = &ctx->counters->requeue;
	const struct event_counters *e = &ctx->counters->events;
	const struct metric samples[] = {
		{"evenkeel_extender_malformed_total", NULL, "Questions that were none.",
		 COUNT(c->malformed)},
		{"evenkeel_extender_unreserved_total", NULL,
		 "Answers that the ledger does not know of: the pod had no uid, or a node already, "
		 "or there was no room.",
		 COUNT(c->unreserved)},
		{"evenkeel_refused_pods_waiting", NULL,
		 "Pods that filter refused on every node and that are still pending.",
		 COUNT(q->waiting)},
		{"evenkeel_nudges_total", "result=\"sent\"",
		 "Changes of --nudge-claim, so that kube-schedulers ask again.", COUNT(q->sent)},
		{"evenkeel_nudges_total", "result=\"failed\"", NULL, COUNT(q->failed)},
		{"evenkeel_events_total", "result=\"written\"",
		 "Events about nodes, quotas and refused pods (--events).", COUNT(e->written)},
		{"evenkeel_events_total", "result=\"limited\"", NULL, COUNT(e->limited)},
		{"evenkeel_events_total", "result=\"failed\"", NULL, COUNT(e->failed)},
	};

	struct reservations_counters reserved;

	if (!ctx->reservations)
		return;
	metrics_write_counters(out, "evenkeel_extender_requests_total",
			       "What kube-schedulers asked.", "verb", verbs, c->requests,
			       EXTENDER_VERBS);
	metrics_write_family(out, seconds, "Time that answering took.");
	for (int v = 0; v < EXTENDER_VERBS; v++)
		metrics_write_labelled(out, seconds, "verb", verbs[v],
				       metrics_seconds(&c->took_ns[v]));
	metrics_write_counters(out, "evenkeel_extender_refusals_total",
			       "Nodes that filter refused, by why; \"pod\": a pod, on every node.",
			       "reason", refusals, c->refused, EXTENDER_REFUSALS);
	METRICS_WRITE(out, samples);
	reservations_read_counters(ctx->reservations, &reserved);
	write_reservations(out, &reserved);
	write_exchange(out, ctx);
}
