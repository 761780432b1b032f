/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast to sample: the fast rate is lowered while the agent costs more CPU than its budget.
 * Pure.
 */
#ifndef EVENKEEL_AGENT_GOVERNOR_H
#define EVENKEEL_AGENT_GOVERNOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/reason.h"

/* What was used up to a moment; a window is the difference of two. */
struct governor_point {
	int64_t mono_ns;
	int64_t cpu_ns; /* of the whole process */
	uint64_t fast_ticks, slow_ticks;
	int64_t fast_cpu_ns, slow_cpu_ns; /* what those ticks cost, of the above */
};

enum { GOVERNOR_POINTS = 24 };

struct governor {
	/* fixed after start */
	double budget_percent; /* of one core */
	int most_hz;

	int rate_hz; /* most_hz, halved and rounded down zero or more times; at least 1 */
	struct governor_point total; /* since the start */
	struct governor_point points[GOVERNOR_POINTS]; /* of the window, oldest first */
	size_t count;
	bool whole; /* the window is as long as it gets */
	int64_t calm_ns; /* since when the next rate up would fit; 0: it would not */
	int64_t hold_ns; /* how long it must fit before the rate goes up */
	int64_t raised_ns; /* when it last went up; 0: never */
	bool told; /* that not even the lowest rate fits */
};

/* A tick that was just made. */
struct governor_tick {
	int64_t mono_ns;
	int64_t process_cpu_ns; /* used since the process began */
	int64_t tick_cpu_ns; /* by the tick itself */
	bool fast; /* it did nothing but a fast pass */
};

/*
 * Begins at most_hz, with more than GOVERNOR_MANY_CPUS CPUs at the first rate that is not above
 * GOVERNOR_MANY_CPUS_HZ. process_cpu_ns as in a tick: what was used before is not counted.
 */
enum { GOVERNOR_MANY_CPUS = 64, GOVERNOR_MANY_CPUS_HZ = 5 };
void governor_start(struct governor *g, double budget_percent, int most_hz, int cpus,
		    int64_t mono_ns, int64_t process_cpu_ns);
/* True when there is something to say, in *said: the rate changed, or not even the lowest fits. */
bool governor_tick(struct governor *g, const struct governor_tick *tick, struct reason *said);

#endif
