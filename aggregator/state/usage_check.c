/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An agent reads counters of a kernel, and both have bugs: a counter that starts anew, a page
 * counter that went below 0, a tick that was read twice. One such value must not cost the interval
 * of a whole node, and must not be in any average. So every value is judged alone, by what the node
 * can have done in the time, and put aside for the first reason that holds.
 */
#include "aggregator/state/usage_check.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "aggregator/state/pressure.h"
#include "shared/mem.h"

#define CPU_MAX_FACTOR	 1000.0
#define MEMORY_TOLERANCE 1.000001 /* of a float32 */
#define JUDGED_SECONDS	 1.0
#define LEAST_MILLI	 (-1.0) /* rounding of a difference */
#define OOM_KILLS_MOST	 1000000u
#define PERIODS_SECOND	 1000.0 /* a period is at least 1 ms */
#define CGROUPS_MOST	 16384.0 /* whose throttling is added: all below a node, a pod or a unit */
#define READINGS_SECOND	 32.0 /* more than any agent makes */

/*
 * What is read once a second may be late at both ends; a clock that went on for longer than this
 * went backwards.
 */
#define SLOW_SECONDS   2.0
#define SLOW_TOLERANCE 2.0

const char *const quarantine_reason_name[QUARANTINE_REASON_COUNT] = {
#define X(name) [QUARANTINE_##name] = #name,
	QUARANTINE_REASONS(X)
#undef X
};

/* Whose values are judged, and by what. */
struct judge {
	const struct node_sample *node;
	struct quarantine *q;
	double clock_seconds; /* the most that a clock of the kernel can have gone on */
	uint32_t merged;
	uint32_t ref; /* 0: the node itself */
	struct usage *usage;
};

static void __attribute__((format(printf, 3, 4)))
note(const struct judge *j, enum quarantine_reason why, const char *format, ...)
{

	j->q->count[why]++;
	j->q->total++;
	j->q->last = why;
	j->q->ref = j->ref;
	MEM_FORMAT(j->q->text, sizeof(j->q->text), format);
}

/* note(), and the member is not there any more. */
#define PUT_ASIDE(j, bit, ...)                                                                     \
	do {                                                                                       \
		(j)->usage->have &= ~(uint32_t)(bit);                                              \
		(j)->usage->have |= (uint32_t)(bit) << USAGE_ASIDE_SHIFT;                          \
		note(j, __VA_ARGS__);                                                              \
	} while (0)

/* Float32s of one computation, rounded apart. */
static bool is_within(double value, double least, double most)
{
	double slack = 1e-3 * most + 1;

	return value >= least - slack && value <= most + slack;
}

static void judge_cpu(const struct judge *j)
{
	const struct moments32 *m = &j->usage->cpu_milli;
	double capacity = (double)j->node->cpu_capacity_milli;
	double mean = (double)m->mean, weight = (double)m->weight, max = (double)m->max;
	double seconds = weight > JUDGED_SECONDS ? weight : JUDGED_SECONDS;

	if (!(j->usage->have & USAGE_CPU))
		return;
	if (!isfinite(mean + weight + max + (double)m->m2 + (double)m->min + (double)m->last))
		PUT_ASIDE(j, USAGE_CPU, QUARANTINE_notANumber,
			  "used CPU that is no number (mean %g, m2 %g, min %g, max %g, weight %g)",
			  mean, (double)m->m2, (double)m->min, max, weight);
	else if (mean < 0 || (double)m->min < LEAST_MILLI || m->m2 < 0 || weight < 0)
		PUT_ASIDE(j, USAGE_CPU, QUARANTINE_negative,
			  "used %g millicores, least %g, m2 %g, weight %g", mean, (double)m->min,
			  (double)m->m2, weight);
	else if ((m->samples > 0) != (weight > 0))
		PUT_ASIDE(j, USAGE_CPU, QUARANTINE_inconsistent, "has %" PRIu32 " samples of %g s",
			  m->samples, weight);
	else if (weight > j->clock_seconds)
		PUT_ASIDE(j, USAGE_CPU, QUARANTINE_counterReset,
			  "used CPU for %.1f s, at most %.1f s passed", weight, j->clock_seconds);
	else if (mean * weight > capacity * USAGE_CPU_TOLERANCE * seconds)
		PUT_ASIDE(j, USAGE_CPU, QUARANTINE_aboveCapacity,
			  "used %.0f millicores for %.1f s, the node has %.0f", mean, weight,
			  capacity);
	else if (max > capacity * CPU_MAX_FACTOR)
		PUT_ASIDE(j, USAGE_CPU, QUARANTINE_aboveCapacity,
			  "used %g millicores at once, the node has %.0f", max, capacity);
	else if (m->samples && (m->min > m->max || !is_within(mean, (double)m->min, max) ||
				!is_within((double)m->last, (double)m->min, max)))
		PUT_ASIDE(j, USAGE_CPU, QUARANTINE_inconsistent,
			  "used %g to %g millicores, %g on average and %g at last", (double)m->min,
			  max, mean, (double)m->last);
	else if ((double)m->m2 > weight * fmax(max, mean) * fmax(max, mean) * MEMORY_TOLERANCE)
		PUT_ASIDE(j, USAGE_CPU, QUARANTINE_inconsistent,
			  "used at most %g millicores with a deviation of %g", max,
			  sqrt((double)m->m2 / weight));
}

static void judge_gauge(const struct judge *j, uint32_t bit, const struct gauge *g,
			const char *what)
{
	double capacity = (double)j->node->mem_capacity_bytes * MEMORY_TOLERANCE;
	double mean = (double)g->mean, max = (double)g->max, last = (double)g->last;
	double most = fmax(mean, fmax(max, last));

	if (!(j->usage->have & bit))
		return;
	if (!isfinite(mean + max + last))
		PUT_ASIDE(j, bit, QUARANTINE_notANumber,
			  "used %s that is no number (mean %g, max %g, last %g)", what, mean, max,
			  last);
	else if (mean < 0 || max < 0 || last < 0)
		PUT_ASIDE(j, bit, QUARANTINE_negative, "used %.0f bytes of %s",
			  fmin(mean, fmin(max, last)), what);
	else if (most > capacity)
		PUT_ASIDE(j, bit, QUARANTINE_aboveCapacity,
			  "used %.0f bytes of %s, the node has %" PRId64, most, what,
			  j->node->mem_capacity_bytes);
	else if (!is_within(mean, 0, max) || !is_within(last, 0, max))
		PUT_ASIDE(j, bit, QUARANTINE_inconsistent,
			  "used at most %.0f bytes of %s, %.0f on average and %.0f at last", max,
			  what, mean, last);
	else if ((double)j->usage->seconds > j->clock_seconds)
		PUT_ASIDE(j, bit, QUARANTINE_counterReset,
			  "used %s for %.1f s, at most %.1f s passed", what,
			  (double)j->usage->seconds, j->clock_seconds);
}

static bool lies_within(const struct histogram *h, double x0, double min, double max)
{
	double slack = 1e-3 * max + 1; /* as is_within() */
	unsigned int first = histogram_bucket(min - slack, x0);
	unsigned int last = histogram_bucket(max + slack, x0);

	for (unsigned int i = 0; i < HISTOGRAM_BUCKETS; i++)
		if ((i < first || i > last) && h->count[i])
			return false;
	return true;
}

static void judge_histogram(const struct judge *j, uint32_t bit, const struct histogram *h,
			    double x0, double min, double max, double most)
{
	const char *what = bit == USAGE_CPU ? "CPU" : "memory";
	uint64_t total = histogram_total(h);

	if (!(j->usage->have & bit))
		return;
	if ((double)total > most)
		PUT_ASIDE(j, bit, QUARANTINE_inconsistent,
			  "has %" PRIu64 " samples of %s in its histogram, at most %.0f were taken",
			  total, what, most);
	else if (!lies_within(h, x0, min, max))
		PUT_ASIDE(j, bit, QUARANTINE_inconsistent,
			  "has samples of %s in its histogram outside %g to %g", what, min, max);
}

/* An interval that was merged has the sums of both counts; its own may be one apart in each. */
static void judge_histograms(const struct judge *j, const struct node_sample *n)
{
	const struct moments32 *m = &n->usage.cpu_milli;

	judge_histogram(j, USAGE_CPU, &n->cpu_hist, HISTOGRAM_CPU_X0, (double)m->min,
			(double)m->max, (double)m->samples + j->merged);
	judge_histogram(j, USAGE_MEMORY, &n->mem_hist, HISTOGRAM_MEMORY_X0, 0,
			(double)n->usage.mem_bytes.max, j->clock_seconds * READINGS_SECOND);
}

static void judge_throttling(const struct judge *j)
{
	const struct usage *u = j->usage;
	double throttled = (double)u->throttled_ns / 1e9;
	double seconds = j->clock_seconds * CGROUPS_MOST;
	double most = seconds * fmax(1, (double)j->node->cpu_capacity_milli / 1e3);

	if (!(u->have & USAGE_THROTTLE))
		return;
	if (throttled > most)
		PUT_ASIDE(j, USAGE_THROTTLE, QUARANTINE_counterReset,
			  "was throttled for %.1f s, at most %.0f s can be", throttled, most);
	else if ((double)u->periods > seconds * PERIODS_SECOND)
		PUT_ASIDE(j, USAGE_THROTTLE, QUARANTINE_counterReset,
			  "had %" PRIu64 " periods, at most %.0f can be", u->periods,
			  seconds * PERIODS_SECOND);
	else if (u->throttled_periods > u->periods + j->merged + 1)
		/* Both are read without a lock, once per interval. */
		PUT_ASIDE(j, USAGE_THROTTLE, QUARANTINE_inconsistent,
			  "was throttled in %" PRIu64 " of %" PRIu64 " periods",
			  u->throttled_periods, u->periods);
}

static void judge_counts(const struct judge *j)
{
	const struct usage *u = j->usage;

	if ((u->have & USAGE_OOM) && u->oom_kills > OOM_KILLS_MOST)
		PUT_ASIDE(j, USAGE_OOM, QUARANTINE_counterReset, "had %" PRIu64 " OOM kills",
			  u->oom_kills);
#define X(member, bit, key, number, type, most, why, unit, help)                                   \
	if ((u->have & USAGE_##bit) && u->member > (most))                                         \
		PUT_ASIDE(j, USAGE_##bit, QUARANTINE_##why,                                        \
			  "has %" PRIu64 " " unit ", at most %" PRIu64 " can be", u->member,       \
			  (uint64_t)(most));
	USAGE_NEWEST(X)
#undef X
}

static void judge_pressure(const struct judge *j)
{
	static const char *const lost[PRESSURES] = {
		[CONTENTION_CPU] = "waited for CPU",
		[CONTENTION_MEMORY] = "waited for memory",
		[STALL_CPU] = "stalled for CPU",
		[STALL_MEMORY] = "stalled for memory",
	};

	for (enum pressure p = 0; p < PRESSURES; p++) {
		double seconds = (double)pressure_ns(j->usage, p) / 1e9;

		if (seconds > j->clock_seconds)
			PUT_ASIDE(j, pressure_bit(p), QUARANTINE_counterReset,
				  "%s for %.1f s, at most %.1f s passed", lost[p], seconds,
				  j->clock_seconds);
	}
}

static void judge_usage(struct judge *j, uint32_t ref, struct usage *u)
{
	j->ref = ref;
	j->usage = u;
	/* As it was told, should it have been judged before. */
	u->have = (u->have | u->have >> USAGE_ASIDE_SHIFT) & ((1u << USAGE_ASIDE_SHIFT) - 1);
	judge_cpu(j);
	judge_gauge(j, USAGE_MEMORY, &u->mem_bytes, "memory");
	judge_gauge(j, USAGE_WORKING_SET, &u->working_set_bytes, "working set");
	judge_throttling(j);
	judge_counts(j);
	judge_pressure(j);
}

static void judge_machine(struct judge *j, struct node_sample *n)
{
	const struct cpu_split *c = &n->cpu_split;
	double seconds = ((double)c->user_ns + (double)c->system_ns + (double)c->iowait_ns +
			  (double)c->steal_ns) /
			 1e9;
	double most = j->clock_seconds * (double)n->cpu_capacity_milli / 1e3;

	j->ref = 0;
	if (seconds > most)
		note(j, QUARANTINE_counterReset, "spent %.1f s of CPU time, at most %.1f s passed",
		     seconds, most);
	else if (n->mem_available_bytes < 0 ||
		 (double)n->mem_available_bytes > (double)n->mem_capacity_bytes * MEMORY_TOLERANCE)
		note(j, QUARANTINE_aboveCapacity,
		     "has %" PRId64 " bytes of memory available, of %" PRId64,
		     n->mem_available_bytes, n->mem_capacity_bytes);
	else
		return;
	n->cpu_split = (struct cpu_split){0};
	n->mem_available_bytes = 0;
}

int usage_check(const struct interval *interval, char *reason, size_t reason_size)
{
	const struct node_sample *n = &interval->node;

	if (n->cpu_capacity_milli > 0 && n->mem_capacity_bytes > 0)
		return 0;
	snprintf(reason, reason_size,
		 "the node has %" PRId64 " millicores and %" PRId64 " bytes of memory",
		 n->cpu_capacity_milli, n->mem_capacity_bytes);
	return -EINVAL;
}

void usage_quarantine(struct interval *interval, struct quarantine *q)
{
	struct node_sample *n = &interval->node;
	double seconds = (double)(interval->end_ns - interval->start_ns) / 1e9;
	struct judge j = {
		.node = n,
		.q = q,
		.clock_seconds = seconds * SLOW_TOLERANCE + SLOW_SECONDS,
		.merged = interval->merged,
	};

	*q = (struct quarantine){0};
	judge_usage(&j, 0, &n->usage);
	judge_histograms(&j, n);
	judge_machine(&j, n);
	for (size_t i = 0; i < interval->entry_count; i++)
		judge_usage(&j, interval->entries[i].ref, &interval->entries[i].usage);
}
