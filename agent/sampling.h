/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the timer to an interval: rescans, passes, the fall to a lower tier, the pace, the account.
 */
#ifndef EVENKEEL_AGENT_SAMPLING_H
#define EVENKEEL_AGENT_SAMPLING_H

#include <stddef.h>
#include <stdint.h>

#include "shared/interval.h"
#include "shared/reason.h"

struct sampling_config {
	const char *cgroup_root; /* where the host's hierarchies are mounted; borrowed */
	int rate_hz; /* fast passes per second, 1..20 */
	int tier; /* enum sampler_tier, or -1: the best that works */
	double cpu_budget_percent; /* of one core, for the whole process; > 0 */
};

struct sampling;

/* Opens files and sampler, and takes the first sample. config is borrowed. */
int sampling_open(struct sampling **s, const struct sampling_config *config, struct reason *reason);
void sampling_close(struct sampling *s);
/*
 * One tick, at the time it is called. missed: ticks that were due before it and never came. 0, or
 * -errno with the reason when no tier can go on. What fails for want of descriptors, and files that
 * cannot be read, are told and done without; a tick that samples nothing counts as missed.
 */
int sampling_tick(struct sampling *s, uint64_t missed, struct reason *reason);
/*
 * A pass whose readings nobody counts: 0 when the tier works, or -errno with the reason; the tier
 * stays.
 */
int sampling_try(struct sampling *s, struct reason *reason);
/*
 * The time between ticks: the rate that the CPU budget allows. It may have changed with the last
 * one.
 */
int64_t sampling_period_ns(const struct sampling *s);
/*
 * Everything sampled since the last call as an interval [start, end) (Unix time), which the caller
 * owns. NULL before two ticks were made.
 */
struct interval *sampling_take(struct sampling *s, uint64_t sequence, int64_t start_ns,
			       int64_t end_ns);
enum sampler_tier sampling_tier(const struct sampling *s);
size_t sampling_cgroups(const struct sampling *s); /* how many there are now */

#endif
