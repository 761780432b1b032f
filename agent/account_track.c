/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Roll-up, from the last cgroup to the first (children come after their parents):
 *
 *	CPU time	added where both sides count their own tasks only; a parent whose counter covers its subtree
 *			has it already. Deltas are added, never totals, so the use of a child stays with its pod when the
 *			child dies.
 *	inactive file	the same
 *	throttling	always added: the kernel counts it where the quota is. Below a pod, the containers' throttling
 *			is what the pod's PSI shows.
 *	OOM kills	the larger of the own delta and the sum below: v2 counts them in every ancestor, v1 only where
 *			the victim lived.
 *	memory		covers the subtree in every hierarchy
 *	PSI		covers the subtree
 */
#include "agent/account_track.h"

#include <string.h>

/*
 * A clock that went back by less than this stood still: cgroupfs shows whole microseconds of what BPF reads in
 * nanoseconds.
 */
#define TIME_SLACK_NS 1000000

static const struct {
	uint32_t have; /* enum reading_have that says it was read */
	uint64_t slack;
} counter_table[COUNTERS] = {
	[COUNTER_CPU] = {HAVE_CPU, TIME_SLACK_NS},
	[COUNTER_THROTTLED] = {HAVE_THROTTLE, TIME_SLACK_NS},
	[COUNTER_PERIODS] = {HAVE_THROTTLE, 0},
	[COUNTER_THROTTLED_PERIODS] = {HAVE_THROTTLE, 0},
	[COUNTER_OOM] = {HAVE_OOM, 0},
	[COUNTER_PSI_CPU] = {HAVE_PSI, TIME_SLACK_NS},
	[COUNTER_PSI_MEM] = {HAVE_PSI, TIME_SLACK_NS},
};

void track_init(struct track *tr, const struct cgroup *c, int64_t first_ns)
{
	*tr = (struct track){
		.serial = c->serial,
		.parent = c->parent,
		.at_start = c->at_start,
		.cpu_at_ns = first_ns,
		.own = {LIMIT_UNKNOWN, LIMIT_UNKNOWN},
		.effective = {LIMIT_UNKNOWN, LIMIT_UNKNOWN},
	};
}

/* The counter's use since its last reading. base: this is its first reading and counts nothing. */
static void advance(struct track *tr, enum counter c, uint64_t value, bool base)
{
	uint64_t last = tr->last[c];

	tr->based |= 1u << c;
	if (!base && value < last && last - value < counter_table[c].slack)
		value = last;
	tr->last[c] = value;
	if (base)
		return;
	tr->used[c] = value >= last ? value - last : value;
	tr->have |= counter_table[c].have;
}

static void read_cpu(struct track *tr, const struct reading *r)
{
	bool local = r->have & HAVE_CPU_LOCAL, known = tr->based & (1u << COUNTER_CPU);

	if (!(r->have & HAVE_CPU))
		return;
	advance(tr, COUNTER_CPU, r->cpu_ns, known ? local != tr->cpu_local : tr->at_start);
	tr->cpu_local = local;
	tr->cpu_whole = !local;
}

static void read_slow_counter(struct track *tr, enum counter c, const struct reading *r,
			      uint64_t value)
{
	bool known = tr->based & (1u << c);

	/* A counter that a later tier reads for the first time may be as old as its cgroup. */
	if (r->have & counter_table[c].have)
		advance(tr, c, value, !known && (tr->at_start || tr->slow_seen));
}

static void read_slow(struct track *tr, const struct reading *r)
{
	read_slow_counter(tr, COUNTER_THROTTLED, r, r->throttled_ns);
	read_slow_counter(tr, COUNTER_PERIODS, r, r->periods);
	read_slow_counter(tr, COUNTER_THROTTLED_PERIODS, r, r->throttled_periods);
	read_slow_counter(tr, COUNTER_OOM, r, r->oom_kills);
	read_slow_counter(tr, COUNTER_PSI_CPU, r, r->psi_cpu_ns);
	read_slow_counter(tr, COUNTER_PSI_MEM, r, r->psi_mem_ns);
	tr->slow_seen = true;
	if (r->have & (HAVE_WORKING_SET | HAVE_INACTIVE_SUBTREE)) {
		tr->have |= HAVE_WORKING_SET;
		tr->inactive_file_bytes = r->inactive_file_bytes;
		tr->inactive_whole = r->have & HAVE_INACTIVE_SUBTREE;
	}
}

void track_read(struct track *tr, const struct reading *r, bool slow)
{
	tr->have = 0;
	memset(tr->used, 0, sizeof(tr->used));
	tr->oom_below = 0;
	tr->inactive_file_bytes = 0;
	tr->inactive_whole = false;
	tr->cpu_whole = false;
	read_cpu(tr, r);
	if (r->have & HAVE_MEMORY) {
		tr->have |= HAVE_MEMORY;
		tr->mem_bytes = r->mem_bytes;
	}
	if (slow)
		read_slow(tr, r);
}

void track_roll_up(const struct track *tr, struct track *parent)
{
	if ((tr->have & HAVE_CPU) && !tr->cpu_whole && !parent->cpu_whole) {
		parent->used[COUNTER_CPU] += tr->used[COUNTER_CPU];
		parent->have |= HAVE_CPU;
	}
	for (int c = COUNTER_THROTTLED; c <= COUNTER_THROTTLED_PERIODS; c++)
		parent->used[c] += tr->used[c];
	parent->oom_below += tr->used[COUNTER_OOM];
	parent->have |= tr->have & (HAVE_THROTTLE | HAVE_OOM);
	if (!parent->inactive_whole)
		parent->inactive_file_bytes += tr->inactive_file_bytes;
}

void track_finish(struct track *tr)
{
	if (tr->oom_below > tr->used[COUNTER_OOM])
		tr->used[COUNTER_OOM] = tr->oom_below;
}

bool track_cpu_is_whole(const struct track *tr)
{
	return (tr->based & (1u << COUNTER_CPU)) && !tr->cpu_local;
}

bool track_working_set(const struct track *tr, uint64_t *bytes)
{
	if (!(tr->have & HAVE_MEMORY) || !(tr->have & HAVE_WORKING_SET))
		return false;
	*bytes = tr->mem_bytes > tr->inactive_file_bytes ? tr->mem_bytes - tr->inactive_file_bytes
							 : 0;
	return true;
}

/* quota / period in millicores, rounded to nearest; what cannot be is unknown. */
static int64_t cpu_limit(const struct reading *r)
{
	double milli;

	if (r->cpu_quota_ns == LIMIT_NONE)
		return LIMIT_NONE;
	if (r->cpu_quota_ns < 0 || r->cpu_period_ns <= 0)
		return LIMIT_UNKNOWN;
	milli = (double)r->cpu_quota_ns * 1000 / (double)r->cpu_period_ns + 0.5;
	return milli < 1e15 ? (int64_t)milli : LIMIT_NONE;
}

/* The tighter of two; one that is known says more than one that is not. */
static int64_t tighter(int64_t a, int64_t b)
{
	if (a >= 0 && b >= 0)
		return a < b ? a : b;
	if (a >= 0 || b >= 0)
		return a > b ? a : b;
	return a == LIMIT_NONE || b == LIMIT_NONE ? LIMIT_NONE : LIMIT_UNKNOWN;
}

void track_read_limits(struct track *tr, const struct reading *r, const struct track *parent)
{
	if (r->have & HAVE_CPU_LIMIT)
		tr->own.cpu_milli = cpu_limit(r);
	if (r->have & HAVE_MEMORY_LIMIT)
		tr->own.mem_bytes = r->mem_limit_bytes < 0 ? LIMIT_NONE : r->mem_limit_bytes;
	tr->effective = tr->own;
	if (!parent)
		return;
	tr->effective.cpu_milli = tighter(tr->own.cpu_milli, parent->effective.cpu_milli);
	tr->effective.mem_bytes = tighter(tr->own.mem_bytes, parent->effective.mem_bytes);
}
