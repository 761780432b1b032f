/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From readings to intervals: rates between ticks, statistics per workload and node. Pure: time is
 * an argument.
 */
#ifndef EVENKEEL_AGENT_ACCOUNT_H
#define EVENKEEL_AGENT_ACCOUNT_H

#include <stddef.h>

#include "agent/machine.h"
#include "agent/sampler.h"
#include "agent/topology.h"
#include "shared/interval.h"

struct account;

struct account *account_new(void);
void account_free(struct account *a);

/*
 * One tick: the topology's readings and the machine's as of mono_ns. slow: the slow members are new
 * too. The first tick only sets the baselines; for a cgroup that was not there at start the
 * baseline is 0, so the use of its first moments counts. Every later tick adds one sample per
 * workload, weighted with the time since the tick before.
 */
void account_tick(struct account *a, struct topology *t, const struct machine *m, int64_t mono_ns,
		  int slow);

/*
 * Cgroups that were removed, in the order of removal: call it with all of them after a rescan and
 * before the next tick. What each used since its last reading is counted for its workload and for
 * what held it; a cgroup that never was in the topology counts from 0. What belongs to a parent
 * that is not known either waits for the next two ticks to know it, and goes to the root if they do
 * not. What cannot be placed is counted in the interval's overflow. Nothing is taken before the
 * first tick.
 */
void account_remove(struct account *a, const struct removal *removals, size_t count,
		    int64_t mono_ns);

/* What only the agent's loop knows of an interval. */
struct account_self {
	enum sampler_tier tier;
	uint32_t missed_ticks;
	uint32_t overflow;
	uint64_t pass_ns;
	uint64_t agent_cpu_ns;
};

/*
 * Closes the interval [start, end) (Unix time) and begins the next: everything sampled since the
 * last call. The caller owns the result. NULL before two ticks were made.
 */
struct interval *account_publish(struct account *a, uint64_t sequence, int64_t start_ns,
				 int64_t end_ns, const struct account_self *self);

#endif
