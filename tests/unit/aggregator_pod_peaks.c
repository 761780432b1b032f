/* SPDX-License-Identifier: Apache-2.0 */
/* The day's peaks of a pod against a plain computation from all of its buckets. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "aggregator/state/pod_peaks.h"
#include "shared/mem.h"
#include "tests/usage_fixture.h"

#define SEC	1000000000LL
#define HOUR	470000LL
#define BUCKETS (30 * PEAK_BUCKETS)

/* Whole and in order; -1: that was not measured. */
struct world {
	float cpu[BUCKETS], mem[BUCKETS];
	struct pod_hours hours;
	struct node_peaks *peaks;
};

static void add(struct world *w, int n)
{
	struct pod_bucket_use use = {
		.start_ns = (HOUR * PEAK_BUCKETS + n) * POD_BUCKET_SECONDS * SEC,
		.cpu_milli = w->cpu[n],
		.working_set_bytes = w->mem[n],
		.cpu_known = w->cpu[n] >= 0,
		.working_set_known = w->mem[n] >= 0,
	};

	pod_hours_add(&w->hours, &w->peaks, &use);
}

static int rising(const void *a, const void *b)
{
	float fa = *(const float *)a, fb = *(const float *)b;

	return (fa > fb) - (fa < fb);
}

/* Nearest rank over the buckets [first, end) that measured CPU. */
static float want_p95(const struct world *w, int first, int end)
{
	float sorted[PEAK_BUCKETS];
	size_t count = 0;

	for (int i = first; i < end; i++)
		if (w->cpu[i] >= 0)
			sorted[count++] = w->cpu[i];
	if (!count)
		return NAN;
	qsort(sorted, count, sizeof(sorted[0]), rising);
	return sorted[(size_t)ceil((double)count * 0.95) - 1];
}

static float want_max(const struct world *w, int first, int end)
{
	float most = NAN;

	for (int i = first; i < end; i++)
		if (w->mem[i] >= 0 && !(most >= w->mem[i]))
			most = w->mem[i];
	return most;
}

static void assert_same(const char *what, int hour, float got, float want)
{
	if (got != want && !(isnan(got) && isnan(want)))
		fail_msg("%s of hour %d: %g, not %g", what, hour, (double)got, (double)want);
}

/* After bucket `last` was told. */
static void check(const struct world *w, int last)
{
	const struct pod_peaks *p = pod_hours_peaks(&w->hours, w->peaks);
	int newest = last / PEAK_BUCKETS;

	assert_int_equal(p->newest, HOUR + newest);
	for (int hour = newest; hour > newest - PEAK_HOURS; hour--) {
		int first = hour * PEAK_BUCKETS, end = first + PEAK_BUCKETS;
		int place = (int)((HOUR + hour) % PEAK_HOURS);

		end = end > last ? last + 1 : end;
		if (first < 0)
			first = end = 0;
		assert_same("cpu", hour, p->cpu_milli[place], want_p95(w, first, end));
		assert_same("working set", hour, p->working_set_bytes[place],
			    want_max(w, first, end));
	}
}

static void peaks_equal_a_plain_computation(void **state)
{
	struct world *w = mem_zalloc(1, sizeof(*w));
	uint32_t seed = 5;
	int told = 0;

	(void)state;
	for (int n = 0; n < BUCKETS; n++) {
		int hour = n / PEAK_BUCKETS;
		/*
		 * Away in the fifth hour, hardly there in the seventh, nothing of CPU in the ninth.
		 */
		bool away = hour == 5 || (hour == 7 && n % PEAK_BUCKETS > 2);

		w->cpu[n] = hour == 9 || away ? -1 : (float)(int)(20 * fixture_random(&seed));
		w->mem[n] = away ? -1 : (float)(int)(1000 * fixture_random(&seed));
		add(w, n);
		if (away)
			continue;
		check(w, n);
		told++;
	}
	assert_int_equal(told, BUCKETS - PEAK_BUCKETS - (PEAK_BUCKETS - 3));
	node_peaks_drop(w->peaks);
	free(w);
}

/* Away for over a day: nothing of before is left. */
static void a_day_later_all_is_new(void **state)
{
	struct world *w = mem_zalloc(1, sizeof(*w));

	(void)state;
	for (int n = 0; n < BUCKETS; n++)
		w->cpu[n] = w->mem[n] = -1;
	w->cpu[0] = w->mem[0] = 7;
	w->cpu[BUCKETS - 1] = w->mem[BUCKETS - 1] = 3;
	add(w, 0);
	add(w, BUCKETS - 1);
	check(w, BUCKETS - 1);
	add(w, 0); /* out of order: ignored */
	check(w, BUCKETS - 1);
	pod_hours_leave(&w->hours, &w->peaks);
	assert_null(pod_hours_peaks(&w->hours, w->peaks));
	node_peaks_drop(w->peaks);
	free(w);
}

static void holders_keep_what_they_saw(void **state)
{
	struct world *w = mem_zalloc(1, sizeof(*w));
	struct node_peaks *held;

	(void)state;
	w->cpu[0] = 1;
	w->cpu[1] = 2;
	w->cpu[2] = 3;
	add(w, 0);
	held = node_peaks_hold(w->peaks);
	add(w, 1);
	assert_ptr_not_equal(held, w->peaks);
	assert_true(held->pods[0].cpu_milli[HOUR % PEAK_HOURS] == 1);
	node_peaks_drop(held);
	held = w->peaks;
	add(w, 2); /* nobody else: in place */
	assert_ptr_equal(held, w->peaks);
	assert_true(held->pods[0].cpu_milli[HOUR % PEAK_HOURS] == 3);
	node_peaks_drop(NULL);
	node_peaks_drop(w->peaks);
	free(w);
}

/*
 * A hundred come, every other leaves, fifty others come: each has its own numbers, and the room is
 * used again.
 */
static void places_are_used_again(void **state)
{
	enum { PODS = 100 };
	struct pod_hours pods[PODS] = {0};
	struct node_peaks *peaks = NULL, *held = NULL;

	(void)state;
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < PODS; i++) {
			struct pod_bucket_use use = {
				.start_ns = (HOUR + round) * PEAK_HOUR_SECONDS * SEC,
				.cpu_milli = (float)(1000 * round + i),
				.cpu_known = true,
			};

			if (round == 1 && i % 2)
				pod_hours_leave(&pods[i], &peaks);
			else
				pod_hours_add(&pods[i], &peaks, &use);
			node_peaks_drop(held);
			held = node_peaks_hold(peaks);
		}
		for (int i = 0; i < PODS; i++) {
			const struct pod_peaks *p = pod_hours_peaks(&pods[i], peaks);

			if (round == 1 && i % 2) {
				assert_null(p);
				continue;
			}
			assert_int_equal(p->newest, HOUR + round);
			assert_true(p->cpu_milli[(HOUR + round) % PEAK_HOURS] ==
				    (float)(1000 * round + i));
			if (round == 2) /* who left begins anew */
				assert_true(isnan(p->cpu_milli[(HOUR + 1) % PEAK_HOURS]) ==
					    (i % 2 == 1));
		}
		assert_int_equal(peaks->count, PODS);
	}
	node_peaks_drop(held);
	node_peaks_drop(peaks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(peaks_equal_a_plain_computation),
		cmocka_unit_test(a_day_later_all_is_new),
		cmocka_unit_test(holders_keep_what_they_saw),
		cmocka_unit_test(places_are_used_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
