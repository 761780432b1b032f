/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/policy/metric_provider.h"

#include <stddef.h>
#include <string.h>

static const char *const types[] = {"KubernetesMetricsServer", "Prometheus", "SignalFx"};

void metric_provider_default(struct metric_provider *p)
{
	bool given = p->type && p->type[0];

	if (!p->watcher_address && !given)
		p->type = types[0];
	if (given && strcmp(p->type, "Prometheus") == 0 && !p->has_insecure_skip_verify)
		p->has_insecure_skip_verify = p->insecure_skip_verify = true;
}

bool metric_provider_is_known(const char *type)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(types[i], type) == 0)
			return true;
	return false;
}
