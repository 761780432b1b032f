/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mean and spread as an aggregator ends up with, against the truth: a seeded workload is sampled
 * with jitter and missed ticks, published as many intervals, sent as float32, merged; on the other
 * side are the same ticks in one pass of long doubles. Spreads below a thousandth of the mean are
 * not promised: float32 rounds the means of intervals.
 */
#include "agent/account.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "shared/body.h"
#include "tests/account_world.h"
#include "tests/interval.h"

enum { TICKS = 20000, MERGED = 7 };

static const struct series {
	const char *name;
	double base, spread; /* millicores */
	double busy; /* share of the ticks that have anything */
} series[] = {
	{"even", 1000, 8, 1}, {"noisy", 900, 800, 1},	      {"bursts", 0, 3900, 0.02},
	{"idle", 0.5, 1, 1},  {"near capacity", 3900, 99, 1}, {"half the time", 2000, 1900, 0.5},
};

/* Sums of the raw ticks. */
struct truth {
	long double weight, sum, squares;
	uint64_t samples;
};

static uint64_t next(uint64_t *random)
{
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	return *random;
}

static double unit(uint64_t *random)
{
	return (double)(next(random) >> 11) / 0x1p53;
}

static void add_truth(struct truth *t, uint64_t used_ns, int64_t dt_ns)
{
	long double seconds = (long double)dt_ns / 1e9L;
	long double milli = (long double)used_ns * 1e-6L / seconds;

	t->weight += seconds;
	t->sum += seconds * milli;
	t->squares += seconds * milli * milli;
	t->samples++;
}

/* 95 to 105 ms, and now and then some ticks are missed. */
static int64_t pick_dt(uint64_t *random)
{
	int64_t dt_ns = 95 * WORLD_MS + (int64_t)(unit(random) * 10 * WORLD_MS);

	return unit(random) < 0.03 ? dt_ns * (2 + (int64_t)(next(random) % 9)) : dt_ns;
}

static void tick(struct world *w, const struct series *s, uint64_t *random, struct truth *t)
{
	int64_t dt_ns = pick_dt(random);
	double milli = unit(random) < s->busy ? s->base + s->spread * unit(random) : 0;
	uint64_t used_ns = (uint64_t)(milli * (double)dt_ns / 1000);

	world_use_local(w, "/a.service", used_ns);
	add_truth(t, used_ns, dt_ns);
	world_tick(w, dt_ns, next(random) % 10 == 0);
}

static void check(const struct series *s, const char *way, const struct moments *m,
		  const struct truth *t)
{
	long double mean = t->sum / t->weight;
	long double stddev = sqrtl(t->squares / t->weight - mean * mean);
	double mean_off = fabs((double)((m->mean - mean) / mean));
	double stddev_off = fabs((double)((moments_stddev(m) - stddev) / stddev));

	print_message("%-14s %-7s mean %9.4Lf off by %.1e, stddev %9.4Lf off by %.1e\n", s->name,
		      way, mean, mean_off, stddev, stddev_off);
	assert_int_equal(m->samples, t->samples);
	assert_true(fabs((double)((m->weight - t->weight) / t->weight)) <= 1e-6);
	assert_true(mean_off <= 1e-6);
	assert_true(stddev_off <= 1e-6);
}

/* What is left of it on the other side of the wire. */
static struct moments send(const struct interval *i)
{
	struct buf parts[BODY_PARTS_MAX] = {BUF_INIT};
	struct moments m = {0};
	struct interval *back;
	struct error error;

	assert_int_equal(body_encode_interval(i, 1, parts, &error), 1);
	assert_int_equal(interval_decode(parts, 1, &back, &error), 0);
	if (back->entry_count)
		m = moments_unpack(&back->entries[0].usage.cpu_milli);
	interval_free(back);
	buf_fini(&parts[0]);
	return m;
}

/* kept: intervals that were merged in the ring, because an aggregator was away for long. */
static void keep(struct interval **kept, const struct interval *i, struct moments *merged)
{
	struct interval *both;
	struct moments m;

	if (!*kept) {
		static const struct interval nothing = {.merged = 1};

		*kept = interval_merge(&nothing, i);
	} else {
		both = interval_merge(*kept, i);
		interval_free(*kept);
		*kept = both;
	}
	if ((*kept)->merged <= MERGED)
		return;
	m = send(*kept);
	moments_merge(merged, &m);
	interval_free(*kept);
	*kept = NULL;
}

static void run(const struct series *s, uint64_t random)
{
	struct world *w = world_new();
	struct moments each = {0}, merged = {0}, m;
	struct interval *kept = NULL, *i;
	struct truth t = {0};

	world_start(w, (const char *const[]){"/a.service", NULL});
	world_use_local(w, "/a.service", 77 * WORLD_S);
	world_tick(w, 0, true);
	for (int n = 1; n <= TICKS; n++) {
		tick(w, s, &random, &t);
		if (next(&random) % 50 && n < TICKS)
			continue;
		i = world_publish(w);
		m = send(i);
		moments_merge(&each, &m);
		keep(&kept, i, &merged);
		interval_free(i);
	}
	if (kept) {
		m = send(kept);
		moments_merge(&merged, &m);
	}
	interval_free(kept);
	check(s, "each", &each, &t);
	check(s, "merged", &merged, &t);
	world_free(w);
}

static void test_moments(void **state)
{
	(void)state;
	for (size_t n = 0; n < sizeof(series) / sizeof(series[0]); n++)
		for (uint64_t seed = 1; seed <= 3; seed++)
			run(&series[n], seed * 104729 + n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
