/* SPDX-License-Identifier: Apache-2.0 */
/* The sampling rate: lowered while the agent uses more CPU than its budget. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/error.h"

/* Totals up to a time; a window is the difference of two. */
struct governor_point {
	int64_t mono_ns;
	int64_t cpu_ns; /* of the whole process */
	uint64_t fast_ticks, slow_ticks;
	int64_t fast_cpu_ns, slow_cpu_ns; /* CPU time of those ticks */
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
	bool whole; /* the window has its full length */
	int64_t calm_ns; /* since when the next rate up fits; 0: it does not */
	int64_t hold_ns; /* how long it must fit before a raise */
	int64_t raised_ns; /* the last raise; 0: none */
	bool said_over; /* the lowest rate exceeds the budget, and that was said */
};

/* The tick just made. */
struct governor_tick {
	int64_t mono_ns;
	int64_t process_cpu_ns; /* since the start of the process */
	int64_t tick_cpu_ns; /* by the tick itself */
	bool fast; /* it was a fast pass and no rescan */
};

/*
 * Begins at most_hz; with more than GOVERNOR_MANY_CPUS CPUs at the first rate up to
 * GOVERNOR_MANY_CPUS_HZ. process_cpu_ns as in a tick: earlier use does not count.
 */
enum { GOVERNOR_MANY_CPUS = 64, GOVERNOR_MANY_CPUS_HZ = 5 };
void governor_start(struct governor *g, double budget_percent, int most_hz, int cpus,
		    int64_t mono_ns, int64_t process_cpu_ns);
/*
 * True with a message in *said when the rate changes, or when the lowest rate exceeds the budget.
 */
bool governor_tick(struct governor *g, const struct governor_tick *tick, struct error *said);
