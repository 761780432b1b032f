/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/policy/metric_provider.h"

#include <stddef.h>
#include <string.h>

bool metric_provider_is_known(const char *type)
{
	static const char *const types[] = {"KubernetesMetricsServer", "Prometheus", "SignalFx"};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(types[i], type) == 0)
			return true;
	return false;
}
