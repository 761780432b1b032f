/* SPDX-License-Identifier: Apache-2.0 */
/* Ratios are numbers, 1 is all of the allocatable. */
#include "aggregator/api/view_json.h"

#include <math.h>

void view_json_write_amounts(struct jsonw *w, const char *key, int64_t cpu_milli, int64_t mem_bytes)
{
	jsonw_key_object(w, key);
	jsonw_key_int(w, "cpuMillicores", cpu_milli);
	jsonw_key_int(w, "memoryBytes", mem_bytes);
	jsonw_object_close(w);
}

void view_json_write_capacity(struct jsonw *w, const char *key, int64_t cpu_milli,
			      int64_t mem_bytes)
{
	if (cpu_milli <= 0 && mem_bytes <= 0)
		return;
	jsonw_key_object(w, key);
	if (cpu_milli > 0)
		jsonw_key_int(w, "cpuMillicores", cpu_milli);
	if (mem_bytes > 0)
		jsonw_key_int(w, "memoryBytes", mem_bytes);
	jsonw_object_close(w);
}

/* --- what the Kubernetes API tells */

enum { RATIO_DECIMALS = 6 };

static const char *const amount_keys[RESOURCE_STANDARD] = {
	[RESOURCE_CPU] = "cpuMillicores",
	[RESOURCE_MEMORY] = "memoryBytes",
	[RESOURCE_EPHEMERAL_STORAGE] = "ephemeralStorageBytes",
	[RESOURCE_PODS] = "pods",
};

void view_json_write_labels(struct jsonw *w, const struct labels *labels)
{
	jsonw_key_object(w, "labels");
	for (size_t i = 0; i < labels->count; i++)
		jsonw_key_string(w, labels->of[i].key, labels->of[i].value);
	jsonw_object_close(w);
}

static void write_amount(struct jsonw *w, const struct resources *r, enum resource_id id,
			 enum cluster_absent absent)
{
	bool basic = id == RESOURCE_CPU || id == RESOURCE_MEMORY;

	if (resources_has(r, id))
		jsonw_key_int(w, amount_keys[id], r->of[id]);
	else if (basic && absent == ABSENT_ZERO)
		jsonw_key_int(w, amount_keys[id], 0);
	else if (basic && absent == ABSENT_NULL)
		jsonw_key_null(w, amount_keys[id]);
}

void view_json_write_resources(struct jsonw *w, const char *key, const struct resources *r,
			       enum cluster_absent absent)
{
	jsonw_key_object(w, key);
	for (int id = 0; id < RESOURCE_STANDARD; id++)
		write_amount(w, r, (enum resource_id)id, absent);
	for (uint32_t i = 0; i < r->extended_count; i++)
		jsonw_key_int(w, r->extended[i].name, r->extended[i].amount);
	jsonw_object_close(w);
}

void view_json_write_unlimited(struct jsonw *w, uint32_t cpu, uint32_t memory)
{
	jsonw_key_object(w, "unlimitedContainers");
	jsonw_key_int(w, "cpu", cpu);
	jsonw_key_int(w, "memory", memory);
	jsonw_object_close(w);
}

void view_json_write_limits(struct jsonw *w, const struct view_sums *sums)
{
	view_json_write_resources(w, "limits", &sums->limits, ABSENT_ZERO);
	view_json_write_unlimited(w, sums->load[RESOURCE_CPU].unlimited,
				  sums->load[RESOURCE_MEMORY].unlimited);
	jsonw_key_object(w, "kernelLimits");
	jsonw_key_int(w, "cpuMillicores", sums->kernel[RESOURCE_CPU].limits);
	jsonw_key_int(w, "memoryBytes", sums->kernel[RESOURCE_MEMORY].limits);
	view_json_write_unlimited(w, sums->kernel[RESOURCE_CPU].unlimited,
				  sums->kernel[RESOURCE_MEMORY].unlimited);
	jsonw_key_int(w, "unknownPods", sums->kernel_unknown);
	jsonw_object_close(w);
}

static void write_ratios(struct jsonw *w, const char *key, const struct limits_share *share)
{
	double cpu = limits_ratio(share, RESOURCE_CPU),
	       memory = limits_ratio(share, RESOURCE_MEMORY);

	if (isnan(cpu) && isnan(memory))
		return;
	jsonw_key_object(w, key);
	jsonw_key_known(w, "cpu", cpu, RATIO_DECIMALS);
	jsonw_key_known(w, "memory", memory, RATIO_DECIMALS);
	jsonw_object_close(w);
}

void view_json_write_ratio(struct jsonw *w, const struct limits_shares *shares)
{
	jsonw_key_object(w, "limitRatio");
	write_ratios(w, "declared", &shares->declared);
	write_ratios(w, "kernel", &shares->kernel);
	jsonw_object_close(w);
}

void view_json_write_mismatch(struct jsonw *w, const struct view_node *n, const struct view_pod *p)
{
	bool opened = false;

	for (int r = 0; r < LIMITS_RESOURCES; r++) {
		struct limits_mismatch m;

		if (!limits_find_mismatch(n, p, (enum resource_id)r, &m))
			continue;
		if (!opened) {
			jsonw_key_object(w, "limitMismatch");
			opened = true;
		}
		jsonw_key_object(w, amount_keys[r]);
		usage_json_write_limit(w, "declared", m.declared);
		usage_json_write_limit(w, "kernel", m.kernel);
		jsonw_object_close(w);
	}
	if (opened)
		jsonw_object_close(w);
}
