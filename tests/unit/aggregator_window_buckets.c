/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The packed forms in which the buckets of windows are kept: how large they are, and what they keep
 * of the largest numbers, of sparse histograms and of what grows old.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/state/windows.h"
#include "tests/heap.h"

#define SEC 1000000000LL
#define MIB 1048576.0
#define T0  (1700000010LL * SEC) /* a border of 15 s and of 30 s buckets */

/* Of a bucket that is old only what longer windows tell is kept, and when it began. */
static void what_was_counted_keeps_its_time(void **state)
{
	const struct usage counted = {.have = USAGE_STALL_MEMORY, .seconds = 5};
	const struct usage measured = {.have = USAGE_MEMORY,
				       .seconds = 5,
				       .mem_bytes = {1000, 1100, 1050}};
	struct pod_windows *p = pod_windows_new();
	struct window_set out[WINDOWS];

	(void)state;
	pod_windows_add(p, &counted, T0, T0 + 5 * SEC);
	pod_windows_add(p, &measured, T0 + 595 * SEC, T0 + 600 * SEC);
	pod_windows_add(p, &measured, T0 + 10 * SEC, T0 + 15 * SEC);
	pod_windows_read(p, T0 + 600 * SEC, out);
	assert_true(isnan(out[WINDOW_5M].counts.pressure[STALL_MEMORY]));
	assert_int_equal(out[WINDOW_5M].mem_bytes.start_ns, T0 + 595 * SEC);
	assert_int_equal(out[WINDOW_10M].mem_bytes.start_ns, T0);
	assert_int_equal(out[WINDOW_10M].mem_bytes.samples, 2);
	pod_windows_read(p, T0 + 15 * SEC, out); /* as it was then, but for the counts */
	assert_int_equal(out[WINDOW_5M].mem_bytes.samples, 1);
	assert_true(out[WINDOW_5M].counts.seconds == 0);
	pod_windows_free(p);
}

/* The largest numbers a frame can carry must not become infinite or NaN. */
static void extreme_values_stay_finite(void **state)
{
	float most = 3.4e38f;
	struct node_sample s = {
		.usage = {.have = 0x7ff,
			  .seconds = most,
			  .oom_kills = UINT32_MAX,
			  .periods = UINT32_MAX,
			  .throttled_periods = UINT32_MAX,
			  .throttled_ns = UINT64_MAX,
			  .contention_cpu_ns = UINT64_MAX,
			  .stall_mem_ns = UINT64_MAX,
			  .mem_bytes = {most, most, most},
			  .cpu_milli = {UINT32_MAX, most, most, most, most, most, most}},
	};
	struct pod_windows *p = pod_windows_new();
	struct node_windows *n = node_windows_new();
	struct window_set out[WINDOWS];

	(void)state;
	for (int i = 0; i < 4; i++) {
		s.usage.cpu_milli.mean = i % 2 ? 0 : most;
		pod_windows_add(p, &s.usage, 1, T0 + i * 10 * SEC);
		node_windows_add(n, &s, 1, T0 + i * 10 * SEC);
	}
	pod_windows_read(p, T0 + 60 * SEC, out);
	assert_in_range(out[0].counts.pressure[STALL_MEMORY] * 1e6, 0, 1000000);
	assert_true(isfinite(out[0].cpu_milli.mean) && isfinite(out[0].cpu_milli.stddev));
	assert_true(isfinite(out[0].mem_bytes.mean) && isfinite(out[0].counts.throttled_seconds));
	assert_true(out[0].counts.throttled_ratio == 1);
	assert_in_range(out[0].counts.oom_kills, 255, 2 * 255);
	node_windows_read(n, T0 + 60 * SEC, out);
	assert_true(isfinite(out[0].cpu_milli.mean) && isfinite(out[0].cpu_milli.stddev));
	pod_windows_free(p);
	node_windows_free(n);
}

/* distinct: CPU buckets of the histogram that one 15 s bucket visits. */
static void fill_node(struct node_windows *w, unsigned int distinct)
{
	for (int64_t i = 0; i < 2 * NODE_BUCKETS * 3; i++) {
		struct node_sample s = {
			.usage = {.have = USAGE_CPU | USAGE_MEMORY,
				  .seconds = 5,
				  .cpu_milli = {.samples = 50, .weight = 5, .mean = 1}},
		};

		for (unsigned int b = 0; b < distinct; b++)
			s.cpu_hist.count[(90 + b + (unsigned int)i / 3) % HISTOGRAM_BUCKETS] = 4;
		s.mem_hist.count[100] = s.mem_hist.count[101] = s.mem_hist.count[102] = 16;
		node_windows_add(w, &s, T0 + (i - 1) * 5 * SEC, T0 + i * 5 * SEC);
	}
}

static size_t bytes_of_node(unsigned int distinct)
{
	enum { MANY = 200 };
	struct node_windows *w[MANY];
	size_t bytes = heap_bytes();

	for (int i = 0; i < MANY; i++)
		fill_node(w[i] = node_windows_new(), distinct);
	bytes = (heap_bytes() - bytes) / MANY;
	for (int i = 0; i < MANY; i++)
		node_windows_free(w[i]);
	return bytes;
}

static size_t bytes_of_pod(int buckets)
{
	enum { MANY = 1000 };
	const struct usage u = {.have = USAGE_MEMORY, .seconds = 30};
	struct pod_windows *w[MANY];
	size_t bytes = heap_bytes();

	for (int n = 0; n < MANY; n++) {
		w[n] = pod_windows_new();
		for (int i = 0; i < buckets; i++)
			pod_windows_add(w[n], &u, T0 + (i - 1) * 30 * SEC, T0 + i * 30 * SEC);
	}
	bytes = (heap_bytes() - bytes) / MANY;
	for (int n = 0; n < MANY; n++)
		pod_windows_free(w[n]);
	return bytes;
}

static void windows_fit_their_budgets(void **state)
{
	(void)state;
	if (!heap_bytes())
		skip();
	assert_true(bytes_of_pod(1) <= 768);
	assert_true(bytes_of_pod(11) == bytes_of_pod(1));
	assert_true(bytes_of_pod(12) == bytes_of_pod(1) + 4 * 48 + HEAP_BLOCK);
	assert_true(bytes_of_pod(20) < bytes_of_pod(POD_BUCKETS));
	assert_true(bytes_of_pod(1000) == bytes_of_pod(POD_BUCKETS));
	assert_true(bytes_of_pod(1000) <= 1728 + 5 * HEAP_BLOCK);
	assert_true(bytes_of_node(12) <= 16 * 1024);
	assert_true(bytes_of_node(180) <= 96 * 1024);
}

/* Bins come in any order over a bucket's intervals; the sum must be the dense one. */
static void sparse_bins_add_up(void **state)
{
	static const unsigned int visits[][3] = {{179, 3, 0}, {3, 90, 91}, {0, 1, 2}, {91, 179, 4}};
	struct node_windows *w = node_windows_new();
	struct histogram all = {0};
	struct window_set out[WINDOWS];
	struct node_sample nothing = {0};
	struct node_sample s = {
		.usage = {.have = USAGE_CPU,
			  .seconds = 3,
			  .cpu_milli = {.samples = 3, .weight = 3, .mean = 1, .max = 1e9f}},
	};

	(void)state;
	nothing.cpu_hist.count[179] = 1000000; /* of an interval without a measure: not counted */
	node_windows_add(w, &nothing, T0, T0 + SEC);
	for (size_t i = 0; i < 4; i++) {
		memset(&s.cpu_hist, 0, sizeof(s.cpu_hist));
		for (size_t v = 0; v < 3; v++)
			s.cpu_hist.count[visits[i][v]] += i == 1 ? 70000 : 10;
		histogram_merge(&all, &s.cpu_hist);
		node_windows_add(w, &s, T0 + (int64_t)i * 3 * SEC, T0 + (int64_t)(i + 1) * 3 * SEC);
	}
	node_windows_read(w, T0 + 12 * SEC, out);
	/* Counts saturate, which moves a percentile within its bucket. */
	assert_int_equal(histogram_bucket(out[0].cpu_milli.p50, HISTOGRAM_CPU_X0),
			 histogram_bucket(histogram_quantile(&all, 0.50, HISTOGRAM_CPU_X0, 0, 1e9),
					  HISTOGRAM_CPU_X0));
	assert_int_equal(histogram_bucket(out[0].cpu_milli.p99, HISTOGRAM_CPU_X0),
			 histogram_bucket(histogram_quantile(&all, 0.99, HISTOGRAM_CPU_X0, 0, 1e9),
					  HISTOGRAM_CPU_X0));
	node_windows_free(w);
}

/* 15 seconds in which the node used so much CPU, and as many MiB, 10 samples a second. */
static void add_steady(struct node_windows *w, int bucket, double milli)
{
	float bytes = (float)(milli * MIB);
	struct node_sample s = {
		.usage = {.have = USAGE_CPU | USAGE_MEMORY,
			  .mem_bytes = {bytes, bytes, bytes},
			  .seconds = 15,
			  .cpu_milli = {.samples = 150,
					.weight = 15,
					.mean = (float)milli,
					.min = (float)milli,
					.max = (float)milli}},
	};

	s.cpu_hist.count[histogram_bucket(milli, HISTOGRAM_CPU_X0)] = 150;
	s.mem_hist.count[histogram_bucket((double)bytes, HISTOGRAM_MEMORY_X0)] = 150;
	node_windows_add(w, &s, T0 + 15 * bucket * SEC, T0 + 15 * (bucket + 1) * SEC - 1);
}

/* Each bucket counts half of the next newer one; what ended 7 buckets ago is no percentile. */
static void newer_buckets_count_for_more(void **state)
{
	struct node_windows *w = node_windows_new();
	struct window_recent recent;

	(void)state;
	node_windows_read_recent(w, T0, &recent);
	assert_false(recent.cpu_milli.known || recent.mem_bytes.known);
	for (int i = 0; i < 20; i++)
		add_steady(w, i, 8000);
	add_steady(w, 20, 1000);
	node_windows_read_recent(w, T0 + 21 * 15 * SEC - 1, &recent);
	/* 1000 counts 1, and all before together 1 - 2^-10 */
	assert_true(fabs(recent.cpu_milli.mean - 4500) < 10);
	assert_true(fabs(recent.mem_bytes.mean - 4500 * MIB) < 10 * MIB);
	assert_true(recent.cpu_milli.p50 < 1100 && recent.cpu_milli.p99 > 7500);
	assert_true(recent.mem_bytes.p50 < 1100 * MIB && recent.mem_bytes.p99 > 7500 * MIB);
	for (int i = 21; i < 26; i++)
		add_steady(w, i, 1000);
	node_windows_read_recent(w, T0 + 26 * 15 * SEC - 1, &recent);
	assert_true(recent.cpu_milli.p99 > 7500); /* 2^-6 is more than a hundredth */
	add_steady(w, 26, 1000);
	node_windows_read_recent(w, T0 + 27 * 15 * SEC - 1, &recent);
	assert_true(recent.cpu_milli.p99 < 1100 && recent.cpu_milli.p99 >= 1000);
	node_windows_free(w);
}

enum { SAMPLES = 150 };

static double random_share(uint64_t *random)
{
	*random = *random * 6364136223846793005ULL + 1442695040888963407ULL;
	return (double)(*random >> 40) / (1 << 24);
}

/* Steady to wild, in any range, idle for a part of the time, and some with a few peaks. */
static void draw(uint64_t *random, double values[SAMPLES])
{
	double level = pow(10, random_share(random) * 6 - 1), spread = random_share(random);
	double idle = fmax(0, random_share(random) * 2 - 1), peaks = random_share(random) * 0.1;

	spread *= spread * spread;
	for (int i = 0; i < SAMPLES; i++) {
		double value = level * pow(10, spread * (random_share(random) - 0.5));

		value = random_share(random) < peaks ? value * 10 : value;
		values[i] = random_share(random) < idle ? 0 : value;
	}
}

static int compare_values(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Sorts them. */
static void add_values(struct node_windows *w, double values[SAMPLES])
{
	struct node_sample s = {.usage = {.have = USAGE_CPU, .seconds = 15}};
	double sum = 0, m2 = 0;

	qsort(values, SAMPLES, sizeof(values[0]), compare_values);
	for (int i = 0; i < SAMPLES; i++) {
		sum += values[i];
		histogram_add(&s.cpu_hist, values[i], HISTOGRAM_CPU_X0);
	}
	for (int i = 0; i < SAMPLES; i++)
		m2 += (values[i] - sum / SAMPLES) * (values[i] - sum / SAMPLES);
	s.usage.cpu_milli = (struct moments32){.samples = SAMPLES,
					       .weight = 15,
					       .mean = (float)(sum / SAMPLES),
					       .m2 = (float)(m2 / SAMPLES * 15),
					       .min = (float)values[0],
					       .max = (float)values[SAMPLES - 1],
					       .last = (float)values[0]};
	node_windows_add(w, &s, T0, T0 + 15 * SEC - 1);
}

/*
 * Whatever the samples: in order, up to the maximum, in the bucket of the true one, and none from
 * the 95th on below the mean where the true one is not.
 */
static void percentiles_agree_with_the_mean(void **state)
{
	uint64_t random = 23;
	int allowed = 0;

	(void)state;
	for (int round = 0; round < 5000; round++) {
		struct node_windows *w = node_windows_new();
		struct window_set out[WINDOWS] = {0};
		const struct window_stats *cpu = &out[0].cpu_milli;
		double values[SAMPLES], true95, true99;

		draw(&random, values);
		add_values(w, values);
		node_windows_read(w, T0 + 15 * SEC, out);
		true95 = values[(int)ceil(0.95 * SAMPLES) - 1];
		true99 = values[(int)ceil(0.99 * SAMPLES) - 1];
		assert_true(cpu->p50 <= cpu->p95 && cpu->p95 <= cpu->p99 && cpu->p99 <= cpu->max);
		assert_true(cpu->p50 >= cpu->min);
		/* A float's rounding aside. */
		if (true95 >= cpu->mean && cpu->p95 < cpu->mean * (1 - 1e-6))
			fail_msg("%d: p95 %.9g, mean %.9g", round, cpu->p95, cpu->mean);
		if (true99 >= cpu->mean && cpu->p99 < cpu->mean * (1 - 1e-6))
			fail_msg("%d: p99 %.9g, mean %.9g", round, cpu->p99, cpu->mean);
		if (true95 >= 1 && fabs(cpu->p95 / true95 - 1) > 0.1 + 1e-6)
			fail_msg("%d: p95 %.9g, and really %.9g", round, cpu->p95, true95);
		allowed += true95 >= cpu->mean;
		node_windows_free(w);
	}
	assert_true(allowed > 4000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_counted_keeps_its_time),
		cmocka_unit_test(extreme_values_stay_finite),
		cmocka_unit_test(newer_buckets_count_for_more),
		cmocka_unit_test(windows_fit_their_budgets),
		cmocka_unit_test(sparse_bins_add_up),
		cmocka_unit_test(percentiles_agree_with_the_mean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
