/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cpu_demand.h"

#include <math.h>
#include <stdlib.h>

#include "shared/demand.h"

#define PERIOD_NS 100000000LL
#define SLIP	  0.05 /* of the readings of throttling */

static void count_all(struct demand *d)
{
	for (uint32_t i = 0; i < d->count; i++)
		histogram_add(&d->histogram, (double)d->milli[i], HISTOGRAM_CPU_X0);
	d->count = 0;
}

void demand_add(struct demand *d, double milli)
{
	/* Slow readings are late: these samples count without correction. */
	if (d->count == DEMAND_SAMPLES)
		count_all(d);
	d->milli[d->count++] = (float)milli;
}

static int falling(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x < y) - (x > y);
}

/* U + d W of U and W, in millicores. */
static double unthrottled(double use, double waiting)
{
	double cpus = fmax(ceil((use + waiting) / 1000 - SLIP), 1),
	       running = 1000 * cpus * (1 - SLIP) - waiting;

	return use + waiting * (use < running ? use / running : 1);
}

void demand_settle(struct demand *d, const struct demand_throttle *t, int64_t capacity_milli)
{
	double period_ns = (double)(t->period_ns > 0 ? t->period_ns : PERIOD_NS);
	double periods_ns = (double)t->throttled_periods * period_ns, each_ns, milli = 0;
	uint32_t n;

	if (d->count && t->throttled_ns && t->dt_ns > 0) {
		each_ns = (double)t->dt_ns / d->count;
		n = (uint32_t)fmin(fmax(ceil(periods_ns / each_ns), 1), d->count);
		qsort(d->milli, d->count, sizeof(d->milli[0]), falling);
		for (uint32_t i = 0; i < n; i++)
			milli += (double)d->milli[i] / n;
		milli = unthrottled(milli,
				    (double)t->throttled_ns * 1000 / fmax(n * each_ns, periods_ns));
		if (capacity_milli > 0)
			milli = fmin(milli, (double)capacity_milli);
		for (uint32_t i = 0; i < n; i++)
			d->milli[i] = (float)milli;
	}
	count_all(d);
}

void demand_publish(struct demand *d, struct buf *out)
{
	demand_encode(&d->histogram, out);
	d->histogram = (struct histogram){0};
}
