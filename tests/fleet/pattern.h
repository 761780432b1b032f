/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a simulated pod uses at any time, as counters in closed form, so that a test knows it
 * without a simulation. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pattern_kind {
	PATTERN_STEADY, /* a little above and below its mean */
	PATTERN_BURSTY, /* most of the time little, now and then much */
	PATTERN_HOT, /* wants more than its limit lets it have */
	PATTERN_LEAKING, /* steady CPU; memory grows up to the limit and is killed there */
	PATTERN_IDLE,
	PATTERN_DIURNAL, /* rises and falls once a day */
	PATTERN_DYING, /* works for a while, dies, and is started again only after a pause */
	PATTERNS
};

/*
 * CPU: wanted is high_milli in the first on_ns of each period and low_milli in the rest of it; used
 * is at most the limit. A smooth one goes from low_milli to high_milli, both within the limit, and
 * back in each period as a cosine does, and has no on_ns. Memory: mem_bytes, which one that dies
 * has only while it is high, and what grows evenly from 0 to grow_bytes in grow_ns and then falls
 * to 0 at once: by a leak it is part of the working set and the fall is an OOM kill, otherwise it
 * is page cache. Periods begin at multiples of themselves in Unix time, less the phase.
 */
struct pattern {
	double low_milli, high_milli;
	double limit_milli; /* 0: none */
	int64_t period_ns, on_ns, phase_ns; /* 0 <= on_ns <= period_ns, 0 <= phase_ns < period_ns */
	double mem_bytes, grow_bytes;
	int64_t grow_ns, grow_phase_ns;
	bool leaks, smooth, dies;
};

/* What the kernel's counters would have gone on by between two Unix times. */
struct pattern_cpu {
	double used_milli; /* mean */
	uint32_t periods, throttled_periods; /* of 100 ms; both 0 without a limit */
	uint64_t throttled_ns;
};

struct pattern_memory {
	double cache_mean, cache_max, cache_last; /* page cache, in bytes */
	double set_mean, set_max, set_last; /* working set */
	uint32_t oom_kills;
};

/* Mean use of CPU in [begin, end), begin < end. */
double pattern_used_milli(const struct pattern *p, int64_t begin_ns, int64_t end_ns);
/* The same of each of `count` spans of span_ns, one after the other. */
void pattern_fill_milli(const struct pattern *p, int64_t begin_ns, int64_t span_ns, size_t count,
			float *used);
void pattern_get_cpu(const struct pattern *p, int64_t begin_ns, int64_t end_ns,
		     struct pattern_cpu *out);
void pattern_get_memory(const struct pattern *p, int64_t begin_ns, int64_t end_ns,
			struct pattern_memory *out);
/* Working set at a time. */
double pattern_working_set(const struct pattern *p, int64_t at_ns);

/*
 * Deviation of the use in [begin, end): with a share d of it high, (high - low) * sqrt(d (1 - d));
 * of a smooth one by its integral.
 */
double pattern_stddev_milli(const struct pattern *p, int64_t begin_ns, int64_t end_ns);
/* The most it ever uses. */
double pattern_peak_milli(const struct pattern *p);
double pattern_peak_working_set(const struct pattern *p);

/* A share of it, as one of a pod's containers uses. */
struct pattern pattern_share(const struct pattern *p, double share);
