/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a Trimaran plugin would get its metrics from. Here they come from the agents, whatever this
 * says: it is read so that a scheduler's own plugin arguments can be asked about as they are. Pure.
 */
#ifndef EVENKEEL_AGGREGATOR_POLICY_METRIC_PROVIDER_H
#define EVENKEEL_AGGREGATOR_POLICY_METRIC_PROVIDER_H

#include <stdbool.h>

struct metric_provider {
	const char *watcher_address; /* NULL: none, the plugin asks the provider itself */
	const char *type; /* NULL or "": not given */
	bool has_insecure_skip_verify, insecure_skip_verify;
};

/*
 * As upstream: KubernetesMetricsServer where neither is given, and Prometheus is not verified
 * unless asked for.
 */
void metric_provider_default(struct metric_provider *p);
/* Whether upstream has a client for it. */
bool metric_provider_is_known(const char *type);

#endif
