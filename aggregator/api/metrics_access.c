/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics of the HTTP API's door: who was refused, what was asked about tokens, and when the
 * certificate ends.
 */
#include <stdio.h>

#include "aggregator/api/metrics.h"

static void write_one(struct buf *out, const char *name, const char *help,
		      const atomic_uint_least64_t *value)
{
	metrics_write_family(out, name, help);
	metrics_write_sample(out, name, NULL, (double)counter_get(value));
}

static void write_refusals(struct buf *out, const struct access_counters *c)
{
	static const char *const labels[ACCESS_REFUSALS] = {
#define X(name, label) [ACCESS_REFUSAL_##name] = "reason=\"" label "\"",
		ACCESS_REFUSALS_TABLE(X)
#undef X
	};
	static const char name[] = "evenkeel_http_refused_total";

	metrics_write_family(
		out, name,
		"Requests that were not let in, by why; \"slow\", \"tooManyConnections\" "
		"and \"noDescriptor\": connections that were cut.");
	for (int r = 0; r < ACCESS_REFUSALS; r++)
		metrics_write_sample(out, name, labels[r], (double)counter_get(&c->refused[r]));
}

void metrics_write_access(struct buf *out, const struct access_counters *c)
{
	uint64_t ways = counter_get(&c->ways);

	write_refusals(out, c);
	write_one(out, "evenkeel_http_connections", "Connections that are open.", &c->connections);
	if (ways & ACCESS_BY_REVIEW) {
		write_one(out, "evenkeel_http_token_reviews_total",
			  "Tokens that the Kubernetes API was asked about.", &c->reviews);
		write_one(out, "evenkeel_http_token_reviews_cached_total",
			  "Requests for which the last answer was still good.", &c->reviews_cached);
	}
	if (ways & ACCESS_OVER_TLS)
		write_one(out, "evenkeel_http_certificate_not_after_timestamp_seconds",
			  "When the server's certificate ends, Unix time.", &c->certificate_ends_s);
	if (ways & (ACCESS_OVER_TLS | ACCESS_BY_TOKEN)) {
		write_one(out, "evenkeel_http_reloads_total",
			  "Times that certificates or tokens were exchanged.", &c->reloads);
		write_one(out, "evenkeel_http_reload_failures_total",
			  "Times that they could not be read again, and the former ones stayed.",
			  &c->reload_failures);
	}
}
