/* SPDX-License-Identifier: Apache-2.0 */
/* When intervals begin and end, whatever the wall clock does. Pure. */
#ifndef EVENKEEL_AGENT_SCHEDULE_H
#define EVENKEEL_AGENT_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Intervals end where (Unix time - phase) is a multiple of the interval, phase = SipHash-2-4(node
 * name) mod interval, so that a fleet's frames are spread evenly. Length is measured on the
 * monotonic clock; the wall clock only names the end. A wall clock that was set is followed at the
 * next end, with neither gap nor overlap in length.
 */
struct schedule {
	uint64_t node_hash;
	int64_t interval_ns;
	int64_t begin_mono_ns; /* of the interval that is being measured */
	int64_t last_end_ns; /* Unix time the last interval ended, 0: none yet */
	int64_t due_mono_ns; /* when the interval ends */
};

/* SipHash-2-4 of the name: the same on every machine. */
uint64_t schedule_node_hash(const char *node);
void schedule_start(struct schedule *s, const char *node, int64_t interval_ns, int64_t mono_ns,
		    int64_t wall_ns);
/* Takes effect with the next end. */
void schedule_set_interval(struct schedule *s, int64_t interval_ns);
bool schedule_due(const struct schedule *s, int64_t mono_ns);
/* Ends the interval now: its Unix times, and the next begins. */
void schedule_end(struct schedule *s, int64_t mono_ns, int64_t wall_ns, int64_t *start_ns,
		  int64_t *end_ns);

#endif
