/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An interval says when it ended by the node's wall clock, and its frame how long before it was
 * sealed that was, by a clock nobody sets. So
 *
 *     sample = now - age - end = (our clock - the node's) + (time on the way)
 *
 * whether the interval comes live or out of the ring an hour later, and an aggregator that is told
 * everything again learns of each interval what the one before it learned: the same interval lands
 * in the same bucket. Time on the way only makes a sample larger, so the least of the newest 8
 * counts.
 *
 * While that is within 2 s of the correction in use, the correction stays, and it begins as 0:
 * clocks that are kept (NTP, and most networks) leave every time as it was told, bit for bit, and a
 * clock that drifts moves things by whole seconds now and then. Beyond, it becomes the nearest
 * whole second, at once when the sample is too small for it or too large by more than a delay can
 * be (60 s: frames wait that long only in a network that was cut), else with the third sample that
 * says so.
 *
 * When thousands of agents come back at once, frames wait for seconds in our own queue. How long at
 * most, is known (interval.wait_ns), and by so much a sample may be too large without saying
 * anything about the node's clock.
 *
 * A clock that is set shows as a gap or an overlap between intervals that follow each other; the
 * samples before are forgotten then, but not the correction.
 */
#include "aggregator/state/node_clock.h"

#include <stdlib.h>

#define SECOND_NS   INT64_C(1000000000)
#define TOUCH_NS    (SECOND_NS / 2) /* the agent's own measure of a clock that was set (schedule.c) */
#define DELAY_NS    (60 * SECOND_NS)
#define FARTHEST_NS (INT64_MAX / 2)

enum { SURE = 3 };

static int64_t least(const int64_t *sample_ns, uint8_t count)
{
	int64_t value = sample_ns[0];

	for (int i = 1; i < count; i++)
		if (sample_ns[i] < value)
			value = sample_ns[i];
	return value;
}

static int64_t whole_seconds(int64_t ns)
{
	return (ns + (ns < 0 ? -SECOND_NS : SECOND_NS) / 2) / SECOND_NS * SECOND_NS;
}

static void correct(struct node_clock *c)
{
	int64_t least_ns = least(c->sample_ns, c->count);
	int64_t late_ns = least(c->sure_ns, c->count) - c->correction_ns;

	if (least_ns - c->correction_ns < -NODE_CLOCK_RIGHT_NS || late_ns > DELAY_NS ||
	    (late_ns > NODE_CLOCK_RIGHT_NS && c->count >= SURE))
		c->correction_ns = whole_seconds(least_ns);
}

void node_clock_hear(struct node_clock *c, const struct interval *i, bool follows, int64_t now_ns)
{
	bool set = !follows || llabs(i->start_ns - c->end_ns) > TOUCH_NS;

	if (set)
		c->count = c->next = 0;
	c->end_ns = i->end_ns;
	if (i->age_ns <= 0 || i->end_ns > FARTHEST_NS)
		return;
	c->sample_ns[c->next] = now_ns - i->age_ns - i->end_ns;
	c->sure_ns[c->next] = c->sample_ns[c->next] - i->wait_ns;
	c->next = (c->next + 1) % NODE_CLOCK_SAMPLES;
	if (c->count < NODE_CLOCK_SAMPLES)
		c->count++;
	correct(c);
}

bool node_clock_skew(const struct node_clock *c, int64_t *ahead_ns)
{
	if (!c->count)
		return false;
	*ahead_ns = -least(c->sample_ns, c->count);
	return true;
}
