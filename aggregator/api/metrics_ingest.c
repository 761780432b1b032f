/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of the connections of agents: how many there are, and which were refused or ended. */
#include "aggregator/api/metrics.h"

static void write_one(struct buf *out, const char *name, const char *help,
		      const atomic_uint_least64_t *value)
{
	metrics_write_family(out, name, help);
	metrics_write_sample(out, name, NULL, (double)counter_get(value));
}

void metrics_write_ingest(struct buf *out, const struct ingest_counters *c)
{
	static const char *const labels[INGEST_CLOSINGS] = {
#define X(name, label) [INGEST_CLOSING_##name] = "reason=\"" label "\"",
		INGEST_CLOSINGS_TABLE(X)
#undef X
	};
	static const char closed[] = "evenkeel_ingest_closed_total";

	write_one(out, "evenkeel_ingest_connections", "Connections of agents that are open.",
		  &c->connections);
	write_one(out, "evenkeel_ingest_refused_total",
		  "Connections of agents that were turned away for want of room.", &c->refused);
	metrics_write_family(
		out, closed,
		"Connections of agents that this side ended, by why; \"room\": strange "
		"or silent ones that made room.");
	for (int i = 0; i < INGEST_CLOSINGS; i++)
		metrics_write_sample(out, closed, labels[i], (double)counter_get(&c->closed[i]));
}
