/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/policy/advice/advice.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "shared/histogram.h"
#include "shared/units.h"

#define HOUR_NS	 (3600 * 1000000000LL)
#define DAY_NS	 (24 * HOUR_NS)
#define TOO_MUCH 1.1 /* a request this much away from the proposal is wrong .. */
#define LITTLE_CPU                                                                                 \
	10.0 /* .. unless it is by no more than so many millicores, the least request .. */
#define LITTLE_MEM     (16.0 * 0x1p20) /* .. or bytes, likewise */
#define LEAST_SECONDS  10 /* of demand, for a proposal */
#define LONGEST_SAMPLE 0.25 /* seconds, for a limit: a quota has periods of 0.1 s */
#define PERIOD_MILLI   5 /* from so much use on every period counts, see advice.h */
#define OOM_GROWTH     1.2
#define UNDECLARED     1.0 /* urgency of a request that nobody declared */
#define STARVED	       1.0 /* of a measured lack, without the share that is missing */
#define KILLED	       2.0 /* share that counts as missing after an OOM kill */
#define SAME_LIMIT     1.001 /* the kernel rounds a limit down to pages */

static const struct policy_row {
	double percentile, margin;
	int days;
} policies[ADVICE_POLICIES] = {
	[ADVICE_BALANCED] = {0.90, 0.15, DEMAND_DAYS},
	[ADVICE_SAVING] = {0.80, 0.05, 2},
	[ADVICE_SAFE] = {0.99, 0.30, DEMAND_DAYS},
};

const char *const advice_policies[] = {"balanced", "saving", "safe", NULL};
const char *const advice_verdicts[] = {"unknown", "tooSmall", "tooLarge", "fits", "undeclared"};
const char *const advice_confidences[] = {"low", "medium", "high"};

bool advice_read_share(const char *text, double *share)
{
	char *end;
	double value = strtod(text, &end);
	bool percent = strcmp(end, "%") == 0;

	if (percent)
		value /= 100;
	if (end == text || (*end && !percent) || !(value > 0 && value < 1))
		return false;
	*share = value;
	return true;
}

/* --- demand ----------------------------------------------------------------------------------- */

static double sum_of(const struct demand_weights *w)
{
	double sum = 0;

	for (size_t i = 0; i < w->count; i++)
		sum += w->weight[i];
	return sum;
}

/* Where bucket i ends; the last one is open. */
static double border(unsigned int bucket)
{
	return HISTOGRAM_CPU_X0 * pow(HISTOGRAM_GROWTH, bucket);
}

/* NaN: there is nothing. */
static double percentile(const struct demand_weights *w, double q)
{
	double wanted = q * sum_of(w) * (1 - 1e-9), seen = 0;

	for (size_t i = 0; i < w->count; i++) {
		unsigned int bucket = demand_bucket(w, i);

		seen += w->weight[i];
		if (seen >= wanted)
			return bucket ? border(bucket) / sqrt(HISTOGRAM_GROWTH) : 0;
	}
	return NAN;
}

double advice_share_above(const struct demand_weights *w, double limit_milli)
{
	double above = 0, ran = 0;

	for (size_t i = 0; i < w->count; i++) {
		double most = border(demand_bucket(w, i)),
		       periods = w->weight[i] * fmin(1, most / PERIOD_MILLI);

		if (!demand_bucket(w, i))
			continue;
		ran += periods;
		above += most > limit_milli * (1 + 1e-9) ? periods : 0;
	}
	return ran > 0 ? above / ran : 0;
}

static double limit_for(const struct demand_weights *w, double throttled_below)
{
	double limit = border(0);

	for (size_t i = 0; i < w->count && advice_share_above(w, limit) > throttled_below; i++)
		limit = border(demand_bucket(w, i));
	return limit;
}

static double peak_of(const struct demand_record *r, int days, int64_t now_ns)
{
	double peak = NAN;

	for (int i = 0; i < DEMAND_DAYS; i++) {
		const struct demand_day *d = &r->days[i];

		if (d->day > now_ns / DAY_NS - days && d->peak_bytes > 0)
			peak = fmax(peak, (double)d->peak_bytes);
	}
	return peak;
}

static void read_days(const struct demand_record *r, int64_t now_ns, struct advice *a)
{
	for (int i = 0; i < DEMAND_DAYS; i++) {
		const struct demand_day *d = &r->days[i];

		if (d->day <= now_ns / DAY_NS - DEMAND_DAYS)
			continue;
		a->oom_kills += d->oom_kills;
		if (d->oom_limit_bytes > 0)
			a->oom_limit_bytes = fmax(a->oom_limit_bytes, (double)d->oom_limit_bytes);
		if (d->start_milli > 0)
			a->start_milli = fmax(a->start_milli, (double)d->start_milli);
	}
}

/* --- proposals -------------------------------------------------------------------------------- */

static int64_t whole_milli(double milli)
{
	return (int64_t)ceil(fmax(milli, LITTLE_CPU) - 1e-6);
}

/* Whole MiB. */
static int64_t whole_bytes(double bytes)
{
	return (int64_t)ceil(fmax(bytes, LITTLE_MEM) / 0x1p20) << 20;
}

static void propose_cpu(const struct demand_record *r, const struct advice_options *o,
			struct advice *a)
{
	const struct policy_row *p = &policies[o->policy];
	double seconds = sum_of(&r->cpu), limit;

	if (seconds < LEAST_SECONDS * exp2((double)(r->seen_ns - r->epoch_ns) / (double)DAY_NS))
		return;
	a->p50_milli = percentile(&r->cpu, 0.5);
	a->p95_milli = percentile(&r->cpu, 0.95);
	a->p99_milli = percentile(&r->cpu, 0.99);
	a->requests.has_cpu = true;
	a->requests.cpu_milli = whole_milli(percentile(&r->cpu, p->percentile));
	if (seconds > LONGEST_SAMPLE * r->samples)
		return;
	limit = fmax(limit_for(&r->cpu, o->throttled_below), (double)a->requests.cpu_milli);
	a->limits.has_cpu = true;
	a->limits.cpu_milli = whole_milli(limit);
	a->throttled_at_limit = advice_share_above(&r->cpu, (double)a->limits.cpu_milli);
}

static void propose_memory(const struct demand_record *r, const struct advice_options *o,
			   int64_t now_ns, struct advice *a)
{
	const struct policy_row *p = &policies[o->policy];
	double basis;

	a->peak_bytes = basis = peak_of(r, p->days, now_ns);
	if (isnan(basis))
		return;
	basis = fmax(basis, a->oom_limit_bytes * OOM_GROWTH);
	a->requests.has_mem = a->limits.has_mem = true;
	a->requests.mem_bytes = whole_bytes(basis * (1 + p->margin));
	a->limits.mem_bytes = whole_bytes(basis * (1 + 2 * p->margin));
}

/* How much of the larger one is missing in the smaller, 0..1; 0 where that is little. */
static double excess(double larger, double smaller, double little)
{
	return larger > smaller * TOO_MUCH && larger - smaller > little ? 1 - smaller / larger : 0;
}

/* Whether kills still count: the limit is not above that of the kills, as far as it is known. */
static bool is_killed(const struct advice_now *now, const struct advice *a)
{
	return a->oom_kills && !(a->oom_limit_bytes > 0 &&
				 (!now->limits.has_mem ||
				  (double)now->limits.mem_bytes > a->oom_limit_bytes * SAME_LIMIT));
}

/* Of a resource, in its unit. */
struct need {
	bool known, declared;
	double now, needed, little;
	double starved; /* 0..1: what else shows that it is too small; above 1: kills */
};

static enum advice_verdict judge_resource(const struct need *n, double *urgency)
{
	double small = n->known ? excess(n->needed, n->now, n->little) : 0,
	       large = n->known ? excess(n->now, n->needed, n->little) : 0;

	if (n->starved > 0 || (small > 0 && n->declared))
		*urgency = fmax(*urgency, STARVED + fmax(small, n->starved));
	else if (small > 0)
		*urgency = fmax(*urgency, UNDECLARED);
	else
		*urgency = fmax(*urgency, large);
	return n->starved > 0 || small > 0 ? ADVICE_TOO_SMALL
	       : !n->known		   ? ADVICE_UNKNOWN
	       : large > 0		   ? ADVICE_TOO_LARGE
					   : ADVICE_FITS;
}

/* Share of throttled periods, if it is too large and the limit is smaller than proposed; else 0. */
static double throttling(const struct advice_now *now, const struct advice_options *o,
			 const struct advice *a)
{
	return now->limits.has_cpu && a->limits.has_cpu &&
			       a->throttled_share > o->throttled_below &&
			       excess((double)a->limits.cpu_milli, (double)now->limits.cpu_milli,
				      LITTLE_CPU) > 0
		       ? a->throttled_share
		       : 0;
}

static void judge(const struct advice_now *now, const struct advice_options *o, struct advice *a)
{
	const struct need cpu = {a->requests.has_cpu,
				 now->requests.has_cpu,
				 (double)now->requests.cpu_milli,
				 (double)a->requests.cpu_milli,
				 LITTLE_CPU,
				 throttling(now, o, a)};
	const struct need mem = {a->requests.has_mem,
				 now->requests.has_mem,
				 (double)now->requests.mem_bytes,
				 (double)a->requests.mem_bytes,
				 LITTLE_MEM,
				 is_killed(now, a) ? KILLED : 0};
	double urgency = 0;

	a->urgency = -1;
	if (!cpu.known && !mem.known)
		return;
	if (!now->declared) {
		a->verdict = a->cpu = a->memory = ADVICE_UNDECLARED;
		a->urgency = 0;
		return;
	}
	a->cpu = judge_resource(&cpu, &urgency);
	a->memory = judge_resource(&mem, &urgency);
	a->verdict = a->cpu == ADVICE_TOO_SMALL || a->memory == ADVICE_TOO_SMALL ? ADVICE_TOO_SMALL
		     : a->cpu == ADVICE_TOO_LARGE || a->memory == ADVICE_TOO_LARGE
			     ? ADVICE_TOO_LARGE
			     : ADVICE_FITS;
	a->urgency = urgency;
}

/* --- words ------------------------------------------------------------------------------------ */

static void say_cpu(const struct demand_record *r, const struct advice_options *o,
		    const struct advice *a, struct buf *why)
{
	char request[UNITS_LEN], p50[UNITS_LEN], p99[UNITS_LEN], limit[UNITS_LEN], start[UNITS_LEN],
		measured[UNITS_LEN];

	units_cpu((double)a->requests.cpu_milli, request);
	units_cpu(a->p50_milli, p50);
	units_cpu(a->p99_milli, p99);
	units_age(a->hours * 3600, measured);
	buf_printf(why,
		   "CPU request %s: demand is at most that in %.0f%% of the samples of %s, p50 %s, "
		   "p99 %s.\n",
		   request, policies[o->policy].percentile * 100, measured, p50, p99);
	if (!isnan(a->throttled_share))
		buf_printf(why, "Its quota throttles it in %.1f%% of the periods.\n",
			   a->throttled_share * 100);
	if (!a->limits.has_cpu) {
		buf_printf(why,
			   "No CPU limit: a sample is %.1f s long on average, too long to tell "
			   "what a period of 0.1 s demands.\n",
			   sum_of(&r->cpu) / r->samples);
		return;
	}
	units_cpu((double)a->limits.cpu_milli, limit);
	buf_printf(why,
		   "CPU limit %s: %.1f%% of the samples in which it ran demand more and would be "
		   "throttled; at most %g%% may.\n",
		   limit, a->throttled_at_limit * 100, o->throttled_below * 100);
	if (a->start_milli > (double)a->limits.cpu_milli) {
		units_cpu(a->start_milli, start);
		buf_printf(why, "A start demands up to %s: with this limit it takes longer.\n",
			   start);
	}
}

static void say_memory(const struct advice_options *o, const struct advice *a, struct buf *why)
{
	char request[UNITS_LEN], peak[UNITS_LEN], limit[UNITS_LEN], at_kill[UNITS_LEN];
	const struct policy_row *p = &policies[o->policy];
	bool kills = a->oom_limit_bytes > 0;

	units_bytes((double)a->requests.mem_bytes, request);
	units_bytes((double)a->limits.mem_bytes, limit);
	units_bytes(a->peak_bytes, peak);
	units_bytes(a->oom_limit_bytes, at_kill);
	buf_printf(why, "Memory request %s, limit %s: the peak of %d days is %s", request, limit,
		   p->days, peak);
	if ((double)a->requests.mem_bytes <= LITTLE_MEM)
		buf_add_str(why, ", and no request is below 16 MiB.\n");
	else
		buf_printf(why, "; the request is %.0f%% above %s, the limit %.0f%%.\n",
			   p->margin * 100, kills ? "what is needed" : "it", 2 * p->margin * 100);
	if (!a->oom_kills)
		return;
	buf_printf(why, "The kernel killed it %u time%s for memory", a->oom_kills,
		   units_plural(a->oom_kills));
	if (kills)
		buf_printf(why, " at a limit of %s: at least 120%% of that is needed", at_kill);
	buf_add_str(why, ".\n");
}

/* "CPU tooSmall: the request is 100m."; hurt: what else makes it too small, or NULL. */
static void say_verdict(const char *name, enum advice_verdict verdict, const char *hurt,
			bool declared, const char *request, struct buf *why)
{
	if (verdict != ADVICE_TOO_SMALL && verdict != ADVICE_TOO_LARGE)
		return;
	buf_printf(why, "%s %s: ", name, advice_verdicts[verdict]);
	if (hurt)
		buf_printf(why, "%s, and ", hurt);
	if (declared)
		buf_printf(why, "the request is %s.\n", request);
	else
		buf_add_str(why, "no request is declared.\n");
}

static void explain(const struct demand_record *r, const struct advice_now *now,
		    const struct advice_options *o, const struct advice *a, struct buf *why)
{
	char cpu[UNITS_LEN], memory[UNITS_LEN];

	units_cpu((double)now->requests.cpu_milli, cpu);
	units_bytes((double)now->requests.mem_bytes, memory);
	say_verdict("CPU", a->cpu, throttling(now, o, a) > 0 ? "the limit throttles it" : NULL,
		    now->requests.has_cpu, cpu, why);
	say_verdict("Memory", a->memory, is_killed(now, a) ? "it was killed" : NULL,
		    now->requests.has_mem, memory, why);
	if (a->requests.has_cpu)
		say_cpu(r, o, a, why);
	else
		buf_add_str(why, "No CPU request: less than ten seconds of demand are known, but "
				 "for starts.\n");
	if (a->requests.has_mem)
		say_memory(o, a, why);
}

void advice_make(const struct demand_record *r, const struct advice_now *now,
		 const struct advice_options *o, int64_t now_ns, struct advice *a, struct buf *why)
{
	*a = (struct advice){
		.hours = (double)r->measured_ns / HOUR_NS,
		.p50_milli = NAN,
		.p95_milli = NAN,
		.p99_milli = NAN,
		.throttled_at_limit = NAN,
		.throttled_share = r->periods > 0 ? r->throttled_periods / r->periods : NAN,
		.start_milli = NAN,
		.oom_limit_bytes = NAN,
	};
	a->confidence = a->hours < 1 ? ADVICE_LOW : a->hours < 24 ? ADVICE_MEDIUM : ADVICE_HIGH;
	read_days(r, now_ns, a);
	propose_cpu(r, o, a);
	propose_memory(r, o, now_ns, a);
	judge(now, o, a);
	if (why)
		explain(r, now, o, a, why);
}
