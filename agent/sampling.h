/* SPDX-License-Identifier: Apache-2.0 */
/* From ticks to an interval: rescans, passes, the change to a lower tier, the rate, the account. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "shared/interval.h"
#include "shared/error.h"

struct sampling_config {
	const char *cgroup_root; /* mount of the host's hierarchies; borrowed */
	int rate_hz; /* fast passes per second, 1..20 */
	int tier; /* enum sampler_tier, or -1: the best that works */
	double cpu_budget_percent; /* of one core, for the whole process; > 0 */
};

struct sampling;

/* Opens files and sampler and takes the first sample. config is borrowed. */
int sampling_open(struct sampling **s, const struct sampling_config *config, struct error *error);
void sampling_close(struct sampling *s);
/*
 * One tick now. missed: earlier ticks that did not happen. 0, or -errno with the reason when no
 * tier is left. Unreadable files and a lack of descriptors are logged only; a tick that samples
 * nothing counts as missed.
 */
int sampling_tick(struct sampling *s, uint64_t missed, struct error *error);
/*
 * A pass without effect on the account: 0, or -errno with the reason; the tier stays. For confine().
 */
int sampling_try(void *sampling, struct error *error);
/* The time between ticks, by the CPU budget; may change with each tick. */
int64_t sampling_period_ns(const struct sampling *s);
/*
 * Everything sampled since the last call as an interval [start, end) (Unix time), which the caller
 * owns. NULL before the second tick.
 */
struct interval *sampling_take(struct sampling *s, uint64_t sequence, int64_t start_ns,
			       int64_t end_ns);
enum sampler_tier sampling_tier(const struct sampling *s);
size_t sampling_cgroups(const struct sampling *s); /* in the topology */
