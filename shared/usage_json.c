/* SPDX-License-Identifier: Apache-2.0 */
#include "shared/usage_json.h"

void usage_json_write_limit(struct jsonw *w, const char *key, int64_t limit)
{
	if (limit == LIMIT_NONE)
		jsonw_key_null(w, key);
	else if (limit >= 0)
		jsonw_key_int(w, key, limit);
}

void usage_json_write_limits(struct jsonw *w, const struct kernel_limits *limits)
{
	if (!kernel_limits_known(limits))
		return;
	jsonw_key_object(w, "kernelLimits");
	for (int i = 0; i < LIMIT_cpu_burst_ns; i++)
		usage_json_write_limit(w, kernel_limit_key[i], *kernel_limit_at(limits, i));
	if (limits->cpu_burst_ns >= 0)
		jsonw_key_fixed(w, kernel_limit_key[LIMIT_cpu_burst_ns],
				(double)limits->cpu_burst_ns / 1e3, 3);
	if (limits->cpu_exclusive_milli > 0)
		jsonw_key_int(w, kernel_limit_key[LIMIT_cpu_exclusive_milli],
			      limits->cpu_exclusive_milli);
	jsonw_object_close(w);
}
