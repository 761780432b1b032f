/* SPDX-License-Identifier: Apache-2.0 */
/* The node's CPU use, CPU split and pressure from the counters in /proc. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/account_stats.h"
#include "agent/machine.h"

/*
 * CPU use of a machine whose root cgroup has no counter: the sum of the top-level cgroups, and the
 * rest of the busy time in /proc/stat. /proc/stat advances in steps of 10 ms and is read at 1 Hz,
 * the cgroups at 10 Hz, so
 *
 *	rest = busy time of the machine - sum of the top-level cgroups, at least 0
 *
 * is known only after each reading. The ticks that follow assume the same rate; the difference
 * between measured and assumed time is settled when the interval is published. A shortfall within
 * the resolution of /proc/stat is rounding and reduces the next rest; a larger one is dropped.
 */
struct account_node {
	bool started;
	uint64_t busy_ns; /* the last reading */
	int64_t busy_at_ns;
	uint64_t cgroups_ns; /* used by the top-level cgroups since */
	double shortfall_ns; /* <= 0 */
	double rate; /* rest assumed per ns of wall time */
	double assumed_ns; /* since the last reading */
	double unsettled_ns; /* measured less assumed, up to the last reading */
};

/* The first reading. */
void account_node_start(struct account_node *n, const struct machine *m, int64_t mono_ns);
/*
 * A tick that ends at mono_ns, dt_ns after the one before, in which the top-level cgroups used
 * cgroups_ns. slow: the machine was read. Returns the CPU time to count for it.
 */
double account_node_tick(struct account_node *n, uint64_t cgroups_ns, const struct machine *m,
			 int64_t mono_ns, int64_t dt_ns, bool slow);

/* The machine's own counters from one reading to the next. */
struct account_machine {
	/* the last reading; of a counter that went back a little, the one before */
	struct machine last;
	struct cpu_split split; /* of this interval so far */
};

/*
 * A slow tick's reading. The machine's pressure, if it has any, replaces that of the root cgroup in
 * *use. CPU contention also needs the throttled time in *use:
 *
 *	contention = PSI some of the machine - throttled time of all cgroups, at least 0
 *
 * This is a lower bound: cgroups that are throttled at the same time count that time once each, the
 * machine's pressure counts it once.
 */
void account_machine_read(struct account_machine *a, const struct machine *m, struct slow_use *use);
