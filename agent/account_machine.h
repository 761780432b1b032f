/* SPDX-License-Identifier: Apache-2.0 */
/* What the whole machine's own counters did from one reading to the next. Pure. */
#ifndef EVENKEEL_AGENT_ACCOUNT_MACHINE_H
#define EVENKEEL_AGENT_ACCOUNT_MACHINE_H

#include "agent/account_stats.h"
#include "agent/machine.h"

struct account_machine {
	struct machine last; /* reading; of a counter that went back a little the one before */
	struct cpu_split split; /* since the last take */
};

/* The first reading. */
void account_machine_start(struct account_machine *a, const struct machine *m);
/*
 * A slow tick's reading. Where the machine has pressure it becomes that of the use, which is
 * the root cgroup's otherwise. Contention for CPU needs the use's throttling to be known:
 *
 *	contention = PSI some of the machine - throttled time of all cgroups, at least 0
 *
 * Cgroups that are throttled at the same time count that time once each, the machine's pressure
 * counts it once. So on a machine with several throttled cgroups this is a lower bound.
 */
void account_machine_read(struct account_machine *a, const struct machine *m, struct slow_use *use);
/* The CPU time since the last call. */
struct cpu_split account_machine_take_split(struct account_machine *a);

#endif
