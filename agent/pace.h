/* SPDX-License-Identifier: Apache-2.0 */
/* Which kind of pass a tick takes. Pure. */
#ifndef EVENKEEL_AGENT_PACE_H
#define EVENKEEL_AGENT_PACE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/sampler.h"

/*
 * Limits, throttling and pressure are read by slow passes, one a second. The kernel brings pressure
 * up to date every two seconds only, so where an interval of twice that length or more is published,
 * what hierarchies without anything fast tell is left out of every other slow pass: two whole ones
 * fall into every interval even so. In shorter intervals, and before the first one ended, each slow
 * pass is whole.
 */
struct pace {
	int64_t slow_due_ns; /* the next slow pass, of either kind */
	int64_t whole_due_ns; /* the next one that is not brief .. */
	int64_t whole_ns; /* .. and how far these are apart */
};

void pace_start(struct pace *p);
/* What intervals are long, from now on. */
void pace_set_interval(struct pace *p, int64_t interval_ns);
/*
 * For the tick at mono_ns; ticks are period_ns apart, and half of that early is on time. scanned:
 * cgroups may have come, and what they were given is worth a whole pass.
 */
enum pass_kind pace_choose(const struct pace *p, int64_t mono_ns, int64_t period_ns, bool scanned);
/* That pass was made. One that failed is due again at the next tick. */
void pace_note(struct pace *p, enum pass_kind kind, int64_t mono_ns);

#endif
