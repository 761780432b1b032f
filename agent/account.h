/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From readings to intervals: rates between ticks, statistics per workload and for the node. Pure.
 */
#pragma once

#include <stddef.h>

#include "agent/culprit.h"
#include "agent/machine.h"
#include "agent/sampler.h"
#include "shared/interval.h"

struct account;

struct account *account_new(void);
void account_free(struct account *a);

/*
 * One tick at mono_ns. slow: the readings of slow values are new, too. The first tick sets the
 * baselines; a cgroup that appears later has the baseline 0. Each later tick adds one sample per
 * workload, weighted with the time since the tick before.
 */
void account_tick(struct account *a, struct topology *t, const struct machine *m, int64_t mono_ns,
		  int slow);

/*
 * Takes all cgroups removed since the last call, in the order of removal, after a rescan and before
 * the next tick. The use since the last reading counts for the workload and its ancestors; a cgroup
 * that never was in the topology counts from 0. If neither the removal nor its parent is known, the
 * use waits two ticks for the parent and then goes to the root. Use that cannot be placed counts as
 * overflow of the interval. Before the first tick removals are ignored.
 */
void account_remove(struct account *a, const struct removal *removals, size_t count,
		    int64_t mono_ns);

/*
 * The v2 ids of the pods whose PSI of CPU every tick needs: their readings in the topology are to be
 * renewed before each account_tick(). Returns their number.
 */
size_t account_watched(const struct account *a, uint64_t ids[CULPRIT_WATCHED]);

/* The loop's part of an interval. */
struct account_self {
	enum sampler_tier tier;
	uint32_t missed_ticks;
	uint32_t overflow;
	uint64_t pass_ns;
	uint64_t agent_cpu_ns;
};

/*
 * Closes the interval [start, end) (Unix time), with everything sampled since the last call, and
 * begins the next. The caller owns the result. NULL before the second tick.
 */
struct interval *account_publish(struct account *a, uint64_t sequence, int64_t start_ns,
				 int64_t end_ns, const struct account_self *self);
