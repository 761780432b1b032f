/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics of what kube-schedulers ask and what was promised to them. About 30 series, whatever the
 * cluster.
 */
#include "aggregator/api/metrics.h"
#include "aggregator/state/reservations.h"
#include "shared/clock.h"

static void write_reservations(struct buf *out, struct reservations *l)
{
	struct reservations_counters c;

	reservations_read_counters(l, &c);
	metrics_write_family(out, "evenkeel_ledger_entries",
			     "Pods that something is promised to and no view shows yet.");
	for (int s = 0; s < RESERVATIONS_STATES; s++)
		metrics_write_labelled(out, "evenkeel_ledger_entries", "state",
				       reservations_state_name((enum reservations_state)s),
				       (double)c.entries[s]);
	metrics_write_one(out, "evenkeel_ledger_reserved_total", "Reservations that were made.",
			  (double)c.reserved);
	metrics_write_one(out, "evenkeel_ledger_charged_total", "Pods that were charged to a node.",
			  (double)c.charged);
	metrics_write_one(out, "evenkeel_ledger_bound_total", "Reserved pods that got a node.",
			  (double)c.bound);
	metrics_write_one(out, "evenkeel_ledger_moved_total",
			  "Of these, pods that got another node than they were charged to.",
			  (double)c.moved);
	metrics_write_one(out, "evenkeel_ledger_refused_total",
			  "Reservations that were not made, since there were too many.",
			  (double)c.refused);
	metrics_write_family(
		out, "evenkeel_ledger_gone_total",
		"Reservations that ended, by why: a view shows the pod, it was "
		"deleted or refused, the API calls it unschedulable, or time ran out.");
	metrics_write_labelled(out, "evenkeel_ledger_gone_total", "why", "settled",
			       (double)c.settled);
	metrics_write_labelled(out, "evenkeel_ledger_gone_total", "why", "released",
			       (double)c.released);
	metrics_write_labelled(out, "evenkeel_ledger_gone_total", "why", "unschedulable",
			       (double)c.unschedulable);
	metrics_write_labelled(out, "evenkeel_ledger_gone_total", "why", "expired",
			       (double)c.expired);
}

static void write_verbs(struct buf *out, const char *name, const char *help,
			const atomic_uint_least64_t of[EXTENDER_VERBS], double unit)
{
	static const char *const verbs[EXTENDER_VERBS] = {
		[EXTENDER_FILTER] = "filter",
		[EXTENDER_PRIORITIZE] = "prioritize",
		[EXTENDER_PREEMPT] = "preempt",
	};

	metrics_write_family(out, name, help);
	for (int v = 0; v < EXTENDER_VERBS; v++)
		metrics_write_labelled(out, name, "verb", verbs[v],
				       (double)counter_get(&of[v]) * unit);
}

static void write_waiting(struct buf *out, const struct requeue_counters *c)
{
	static const char nudges[] = "evenkeel_nudges_total",
			  events[] = "evenkeel_pod_events_total";

	metrics_write_counter(out, "evenkeel_refused_pods_waiting",
			      "Pods that filter refused on every node and that are still pending.",
			      &c->waiting);
	metrics_write_family(out, nudges,
			     "Changes of --nudge-claim, so that kube-schedulers ask again.");
	metrics_write_labelled(out, nudges, "result", "sent", (double)counter_get(&c->sent));
	metrics_write_labelled(out, nudges, "result", "failed", (double)counter_get(&c->failed));
	metrics_write_family(out, events, "Events of refused pods (--pod-events).");
	metrics_write_labelled(out, events, "result", "written",
			       (double)counter_get(&c->events_written));
	metrics_write_labelled(out, events, "result", "failed",
			       (double)counter_get(&c->events_failed));
}

void metrics_write_extender(struct buf *out, const struct api_context *ctx)
{
	static const char *const refusals[EXTENDER_REFUSALS] = {
#define X(name, label, reason) [EXTENDER_##name] = (label),
		EXTENDER_REFUSALS_TABLE(X)
#undef X
	};
	static const char refused[] = "evenkeel_extender_refusals_total";
	const struct extender_counters *c = &ctx->counters->extender;

	if (!ctx->reservations)
		return;
	write_verbs(out, "evenkeel_extender_requests_total", "What kube-schedulers asked.",
		    c->requests, 1);
	write_verbs(out, "evenkeel_extender_seconds_total", "Time that answering took.", c->took_ns,
		    1.0 / NS_PER_SEC);
	metrics_write_family(out, refused,
			     "Nodes that filter refused, by why; \"pod\": a pod, on every node.");
	for (int r = 0; r < EXTENDER_REFUSALS; r++)
		metrics_write_labelled(out, refused, "reason", refusals[r],
				       (double)counter_get(&c->refused[r]));
	metrics_write_counter(out, "evenkeel_extender_malformed_total", "Questions that were none.",
			      &c->malformed);
	metrics_write_counter(
		out, "evenkeel_extender_unreserved_total",
		"Answers that the ledger does not know of: the pod had no uid, or a node already, "
		"or there was no room.",
		&c->unreserved);
	write_waiting(out, &ctx->counters->requeue);
	write_reservations(out, ctx->reservations);
}
