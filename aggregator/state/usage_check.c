/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/state/usage_check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define CPU_TOLERANCE	 1.05
#define MEMORY_TOLERANCE 1.000001 /* of a float32 */
#define JUDGED_SECONDS	 1.0

/* ref 0: the node itself. */
static int check_usage(const struct usage *u, uint32_t ref, const struct node_sample *n,
		       char *reason, size_t reason_size)
{
	double weight = (double)u->cpu_milli.weight, cpu = (double)u->cpu_milli.mean;
	double seconds = weight > JUDGED_SECONDS ? weight : JUDGED_SECONDS;
	double mem = (double)u->mem_bytes.mean;
	char who[32] = "the node";

	if (ref)
		snprintf(who, sizeof(who), "entry %" PRIu32, ref);
	if ((u->have & USAGE_CPU) &&
	    cpu * weight > (double)n->cpu_capacity_milli * CPU_TOLERANCE * seconds) {
		snprintf(reason, reason_size,
			 "%s used %.0f millicores for %.1f s, the node has %" PRId64, who, cpu,
			 weight, n->cpu_capacity_milli);
		return -EINVAL;
	}
	if ((u->have & USAGE_MEMORY) && mem > (double)n->mem_capacity_bytes * MEMORY_TOLERANCE) {
		snprintf(reason, reason_size, "%s used %.0f bytes of memory, the node has %" PRId64,
			 who, mem, n->mem_capacity_bytes);
		return -EINVAL;
	}
	return 0;
}

int usage_check(const struct interval *interval, char *reason, size_t reason_size)
{
	const struct node_sample *n = &interval->node;
	int err;

	if (n->cpu_capacity_milli <= 0 || n->mem_capacity_bytes <= 0) {
		snprintf(reason, reason_size,
			 "the node has %" PRId64 " millicores and %" PRId64 " bytes of memory",
			 n->cpu_capacity_milli, n->mem_capacity_bytes);
		return -EINVAL;
	}
	err = check_usage(&n->usage, 0, n, reason, reason_size);
	for (size_t i = 0; i < interval->entry_count && !err; i++)
		err = check_usage(&interval->entries[i].usage, interval->entries[i].ref, n, reason,
				  reason_size);
	return err;
}
