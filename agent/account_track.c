/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deltas (advance()): a counter below its last value is of a new cgroup, and counts from 0; CPU
 * time may step back by TIME_SLACK_NS.
 *
 * Limits: the tightest of a cgroup's own and of all above it (track_read_limits()). CPU is limited
 * by the quota and by the number of CPUs.
 *
 * Roll-up, from the last cgroup to the first (children come after their parents):
 *
 *	CPU time	added if both counters have own tasks only; a parent's counter of the
 *			subtree has it already. Deltas are added, so the use of a dead child stays
 *			with its pod.
 *	inactive file	the same
 *	throttling	always added: the kernel counts it at the quota. Below a pod, the
 *			containers' throttling explains the pod's PSI.
 *	OOM kills	the larger of own delta and sum below: v2 counts a kill in every ancestor,
 *			v1 only in the victim's cgroup
 *	memory, swap, pids, PSI		cover the subtree in every hierarchy
 *
 * The remainders of removed cgroups (account_removal.c) join before the roll-up, like use of the
 * parents' own tasks. The use of detached containers (account_table.c) joins their pods after it.
 */
#include "agent/account_track.h"

#include <string.h>

/* A smaller step back is no step: cgroupfs shows whole microseconds, BPF reads nanoseconds. */
#define TIME_SLACK_NS 1000000

/* Its bit of enum reading_have. */
static uint32_t have_of(int c)
{
	return c == TRACK_CPU ? (uint32_t)HAVE_CPU : usage_counters[c - 1].have;
}

void track_init(struct track *tr, const struct cgroup *c, int64_t first_ns)
{
	*tr = (struct track){
		.serial = c->serial,
		.id = c->id[HIERARCHY_UNIFIED],
		.parent = c->parent,
		.at_start = c->at_start,
		.cpu_at_ns = first_ns,
		.cpus_milli = LIMIT_UNKNOWN,
		.own = KERNEL_LIMITS_UNKNOWN,
		.effective = KERNEL_LIMITS_UNKNOWN,
	};
}

/* Counts the use since the last reading; a smaller value counts whole. base: counts nothing. */
static void advance(struct track *tr, int c, uint64_t value, bool base)
{
	bool is_time = c == TRACK_CPU || usage_counters[c - 1].is_time;
	uint64_t last = tr->last[c];

	tr->based |= 1u << c;
	if (!base && is_time && value < last && last - value < TIME_SLACK_NS)
		value = last;
	tr->last[c] = value;
	if (base)
		return;
	tr->used[c] = value >= last ? value - last : value;
	tr->have |= have_of(c);
}

static void read_cpu(struct track *tr, const struct reading *r)
{
	bool local = r->have & HAVE_CPU_LOCAL, known = tr->based & (1u << TRACK_CPU);

	if (!(r->have & HAVE_CPU))
		return;
	advance(tr, TRACK_CPU, r->cpu_ns, known ? local != tr->cpu_local : tr->at_start);
	tr->cpu_local = local;
	tr->cpu_whole = !local;
}

static void read_slow(struct track *tr, const struct reading *r)
{
	/* A counter new with a later tier may be as old as its cgroup. */
	bool base = tr->at_start || tr->slow_seen;

	for (int c = TRACK_THROTTLED; c <= COUNTERS_COUNTED; c++)
		if (r->have & have_of(c))
			advance(tr, c, r->counter[c - 1], base && !(tr->based & (1u << c)));
	for (int c = COUNTERS_COUNTED + 1; c < TRACK_COUNTERS; c++)
		tr->used[c] = r->counter[c - 1];
	tr->slow_seen = true;
	tr->have |= r->have & USAGE_NEWEST_BITS;
	if (r->have & (HAVE_WORKING_SET | HAVE_INACTIVE_SUBTREE)) {
		tr->have |= HAVE_WORKING_SET;
		tr->inactive_file_bytes = r->inactive_file_bytes;
		tr->inactive_whole = r->have & HAVE_INACTIVE_SUBTREE;
	}
}

/*
 * The topology may still have a removed cgroup with its last reading, and some walks meet it once
 * more; both values lie between that reading and the counter at the removal. Any other value is of
 * a new cgroup with the old path and id, whose counters began at 0.
 */
static bool is_another_life(const struct track *tr, const struct reading *r)
{
	return (r->have & HAVE_CPU) &&
	       (r->cpu_ns < tr->stale_cpu_ns || r->cpu_ns > tr->last[TRACK_CPU]);
}

static void begin_life(struct track *tr)
{
	tr->removed = false;
	tr->at_start = false;
	tr->slow_seen = false;
	tr->based = 0;
	memset(tr->last, 0, sizeof(tr->last));
}

void track_read(struct track *tr, const struct reading *r, bool slow)
{
	tr->have = 0;
	memset(tr->used, 0, sizeof(tr->used));
	tr->oom_below = 0;
	tr->inactive_file_bytes = 0;
	tr->inactive_whole = false;
	tr->cpu_whole = false;
	if (tr->removed && is_another_life(tr, r))
		begin_life(tr);
	if (tr->removed)
		return;
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
		parent->used[TRACK_CPU] += tr->used[TRACK_CPU];
		parent->have |= HAVE_CPU;
	}
	for (int c = TRACK_THROTTLED; c < TRACK_AT_REMOVAL; c++)
		parent->used[c] += tr->used[c];
	parent->oom_below += tr->used[TRACK_OOM];
	parent->have |= tr->have & (HAVE_THROTTLE | HAVE_OOM);
	if (!parent->inactive_whole)
		parent->inactive_file_bytes += tr->inactive_file_bytes;
}

void track_finish(struct track *tr)
{
	if (tr->oom_below > tr->used[TRACK_OOM])
		tr->used[TRACK_OOM] = tr->oom_below;
}

bool track_cpu_is_whole(const struct track *tr)
{
	return (tr->based & (1u << TRACK_CPU)) && !tr->cpu_local;
}

bool track_working_set(const struct track *tr, uint64_t *bytes)
{
	if (!(tr->have & HAVE_MEMORY) || !(tr->have & HAVE_WORKING_SET))
		return false;
	*bytes = tr->mem_bytes > tr->inactive_file_bytes ? tr->mem_bytes - tr->inactive_file_bytes
							 : 0;
	return true;
}

/* --- removals ------------------------------------------------------------------------------- */

static uint64_t value_at_removal(const struct removal *d, int c)
{
	switch (c) {
	case TRACK_CPU:
		return d->cpu_ns;
	case TRACK_THROTTLED:
		return d->throttled_ns;
	case TRACKED(periods):
		return d->periods;
	default:
		return d->throttled_periods;
	}
}

struct remainder remainder_of_life(const struct removal *d)
{
	struct remainder rest = {.have = d->have & (HAVE_CPU | HAVE_THROTTLE)};

	for (int c = 0; c < TRACK_AT_REMOVAL; c++)
		if (rest.have & have_of(c))
			rest.used[c] = value_at_removal(d, c);
	return rest;
}

void remainder_add(struct remainder *to, const struct remainder *rest)
{
	to->have |= rest->have;
	for (int c = 0; c < TRACK_AT_REMOVAL; c++)
		to->used[c] += rest->used[c];
}

/* Whether the last value is known; before the first reading it is 0 for a new cgroup. */
static bool has_base(const struct track *tr, int c)
{
	if (tr->based & (1u << c))
		return true;
	return !tr->at_start && (c == TRACK_CPU || !tr->slow_seen);
}

bool track_remove(struct track *tr, const struct removal *d, struct remainder *rest)
{
	if (track_cpu_is_whole(tr))
		return false;
	*rest = (struct remainder){0};
	tr->stale_cpu_ns = tr->last[TRACK_CPU];
	for (int c = 0; c < TRACK_AT_REMOVAL; c++) {
		uint64_t value = value_at_removal(d, c), last = tr->last[c];

		if (!(d->have & have_of(c)) || !has_base(tr, c))
			continue;
		rest->have |= have_of(c);
		rest->used[c] = value > last ? value - last : 0;
	}
	if ((d->have & HAVE_CPU) && d->cpu_ns > tr->last[TRACK_CPU])
		tr->last[TRACK_CPU] = d->cpu_ns;
	tr->removed = true;
	return true;
}

static void forget_cpu(struct remainder *rest)
{
	rest->have &= ~(uint32_t)HAVE_CPU;
	rest->used[TRACK_CPU] = 0;
}

/* Moves CPU time, and in a slow tick throttling, into this tick. */
static void join(struct track *tr, struct remainder *rest, bool slow)
{
	tr->used[TRACK_CPU] += rest->used[TRACK_CPU];
	tr->have |= rest->have & HAVE_CPU;
	forget_cpu(rest);
	if (!slow || !(rest->have & HAVE_THROTTLE))
		return;
	for (int c = TRACK_THROTTLED; c < TRACK_AT_REMOVAL; c++)
		tr->used[c] += rest->used[c];
	tr->have |= HAVE_THROTTLE;
	*rest = (struct remainder){0};
}

uint64_t track_join_carry(struct track *tr, bool slow)
{
	uint64_t cpu_ns;

	if (track_cpu_is_whole(tr))
		forget_cpu(&tr->carry);
	cpu_ns = tr->carry.used[TRACK_CPU];
	join(tr, &tr->carry, slow);
	return cpu_ns;
}

/* --- detached containers ------------------------------------------------------------------------- */

#define GAUGES	 ((uint32_t)(HAVE_MEMORY | HAVE_WORKING_SET | USAGE_NEWEST_BITS))
#define PRESSURE ((uint32_t)(HAVE_PSI | HAVE_PSI_CPU_FULL | HAVE_PSI_MEMORY_FULL))

static uint64_t inactive_bytes(const struct track *tr)
{
	return tr->inactive_file_bytes < tr->mem_bytes ? tr->inactive_file_bytes : tr->mem_bytes;
}

/* A sum is known if both sides are. */
static void adopt_gauges(struct track *pod, const struct track *container)
{
	pod->have &= container->have | ~GAUGES;
	pod->inactive_file_bytes = inactive_bytes(pod) + inactive_bytes(container);
	pod->mem_bytes += container->mem_bytes;
	for (int c = COUNTERS_COUNTED + 1; c < TRACK_COUNTERS; c++)
		pod->used[c] += container->used[c];
}

void track_adopt(struct track *pod, const struct track *container)
{
	for (int c = TRACK_CPU; c <= TRACK_OOM; c++)
		pod->used[c] += container->used[c];
	pod->have |= container->have & (HAVE_CPU | HAVE_THROTTLE | HAVE_OOM);
	pod->have &= ~PRESSURE;
	if (!container->removed)
		adopt_gauges(pod, container);
}

void track_join_adopted(struct track *tr, bool slow)
{
	if (slow && (tr->adopted.have & HAVE_THROTTLE))
		tr->have &= ~PRESSURE;
	join(tr, &tr->adopted, slow);
}

void track_bound_protection(struct track *tr, const struct track *parent)
{
	uint64_t *own = &tr->used[TRACKED(mem_protected_bytes)];
	uint64_t above = parent->used[TRACKED(mem_protected_bytes)];

	if ((parent->have & HAVE_PROTECTED) && above < *own)
		*own = above;
}

/* --- limits ----------------------------------------------------------------------------------- */

/* quota / period in millicores, rounded to nearest; invalid values are unknown. */
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

/* The tighter of two limits; a known one precedes an unknown one. */
static int64_t tighter(int64_t a, int64_t b)
{
	if (a >= 0 && b >= 0)
		return a < b ? a : b;
	if (a >= 0 || b >= 0)
		return a > b ? a : b;
	return a == LIMIT_NONE || b == LIMIT_NONE ? LIMIT_NONE : LIMIT_UNKNOWN;
}

static int64_t limit_of(int64_t value)
{
	return value < 0 ? LIMIT_NONE : value;
}

static void read_own_limits(struct kernel_limits *own, const struct reading *r)
{
	if (r->have & HAVE_CPU_LIMIT) {
		own->cpu_milli = cpu_limit(r);
		own->cpu_burst_ns = own->cpu_milli == LIMIT_UNKNOWN ? LIMIT_UNKNOWN : 0;
		if (own->cpu_milli >= 0 && r->cpu_burst_ns > 0)
			own->cpu_burst_ns = r->cpu_burst_ns;
	}
	if (r->have & HAVE_MEMORY_LIMIT)
		own->mem_bytes = limit_of(r->mem_limit_bytes);
	if (r->have & HAVE_MEMORY_HIGH)
		own->mem_high_bytes = limit_of(r->mem_high_bytes);
	if (r->have & HAVE_SWAP_LIMIT)
		own->swap_bytes = limit_of(r->swap_limit_bytes);
	if (r->have & HAVE_PIDS_LIMIT)
		own->pids = limit_of(r->pids_limit);
}

/* The burst of the quota that binds; of two equal quotas the smaller burst. */
static int64_t effective_burst(const struct kernel_limits *own, const struct kernel_limits *above)
{
	if (own->cpu_milli == above->cpu_milli)
		return tighter(own->cpu_burst_ns, above->cpu_burst_ns);
	return tighter(own->cpu_milli, above->cpu_milli) == own->cpu_milli ? own->cpu_burst_ns
									   : above->cpu_burst_ns;
}

void track_read_limits(struct track *tr, const struct reading *r, const struct track *parent)
{
	const struct kernel_limits *own = &tr->own, *above;

	read_own_limits(&tr->own, r);
	if (r->have & HAVE_CPU_LIMIT)
		tr->period_ns = r->cpu_period_ns;
	tr->effective = tr->own;
	if (!parent)
		return;
	above = &parent->effective;
	for (int i = 0; i < LIMITS; i++)
		*kernel_limit_at(&tr->effective, i) =
			tighter(*kernel_limit_at(own, i), *kernel_limit_at(above, i));
	tr->effective.cpu_burst_ns = effective_burst(own, above);
	tr->effective.cpu_exclusive_milli = tr->cpus_milli == LIMIT_UNKNOWN ? LIMIT_UNKNOWN : 0;
	if (tr->cpus_milli < 0 ||
	    (tr->effective.cpu_milli >= 0 && tr->effective.cpu_milli <= tr->cpus_milli))
		return;
	tr->effective.cpu_milli = tr->cpus_milli;
	tr->effective.cpu_burst_ns = 0;
}
