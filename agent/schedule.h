/* SPDX-License-Identifier: Apache-2.0 */
/* When intervals end, and which kind of sampler pass a tick makes. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/sampler.h"

/*
 * Intervals end where (Unix time - phase) is a multiple of the interval, phase = SipHash-2-4(node
 * name) mod interval, so that a fleet's frames are spread evenly. The monotonic clock measures the
 * length, the wall clock names the end. After a step of the wall clock the next interval ends by the
 * new time; its length stays what the monotonic clock says.
 */
struct schedule {
	uint64_t node_hash;
	int64_t interval_ns;
	int64_t begin_mono_ns; /* of the current interval */
	int64_t last_end_ns; /* Unix time the last interval ended, 0: none yet */
	int64_t due_mono_ns; /* when the interval ends */
};

/* SipHash-2-4 of the name under a fixed key. */
uint64_t schedule_node_hash(const char *node);
void schedule_start(struct schedule *s, const char *node, int64_t interval_ns, int64_t mono_ns,
		    int64_t wall_ns);
/* Takes effect with the next interval. */
void schedule_set_interval(struct schedule *s, int64_t interval_ns);
bool schedule_due(const struct schedule *s, int64_t mono_ns);
/* Ends the interval, tells its Unix times and begins the next. */
void schedule_end(struct schedule *s, int64_t mono_ns, int64_t wall_ns, int64_t *start_ns,
		  int64_t *end_ns);

/*
 * One slow pass a second reads limits, throttling and pressure. The kernel updates pressure every
 * two seconds only. If intervals last four seconds or more, every other slow pass is brief: it
 * leaves out hierarchies without fast values, and each interval still has two full slow passes. In
 * shorter intervals, and before the end of the first one, every slow pass is full.
 */
struct pass_schedule {
	int64_t slow_due_ns; /* the next slow pass, full or brief */
	int64_t full_due_ns; /* the next full one */
	int64_t full_every_ns;
};

void pass_schedule_set_interval(struct pass_schedule *p, int64_t interval_ns);
/*
 * The pass of the tick at mono_ns. Ticks are period_ns apart, and half of that early is on time.
 * scanned: the tick rescanned, so limits of new cgroups are worth a full pass.
 */
enum pass_kind pass_schedule_choose(const struct pass_schedule *p, int64_t mono_ns,
				    int64_t period_ns, bool scanned);
/* After a pass that succeeded. One that failed is due again at the next tick. */
void pass_schedule_note(struct pass_schedule *p, enum pass_kind kind, int64_t mono_ns);
