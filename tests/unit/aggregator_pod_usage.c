/* SPDX-License-Identifier: Apache-2.0 */
/* Packed usage unpacks to the same usage. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/state/pod_usage.h"
#include "tests/usage_fixture.h"

#define SEC 1000000000LL
#define T0  (1700000000LL * SEC + 123456789)

static void assert_stats(const struct window_stats *got, const struct window_stats *want)
{
	assert_int_equal(got->known, want->known);
	assert_false(got->percentiles);
	assert_int_equal(got->start_ns, want->start_ns);
	assert_int_equal(got->end_ns, want->end_ns);
	assert_int_equal(got->samples, want->samples);
	assert_true(got->mean == (double)(float)want->mean);
	assert_true(got->stddev == (double)(float)want->stddev);
	assert_true(got->min == (double)(float)want->min);
	assert_true(got->max == (double)(float)want->max);
}

static void assert_same_number(double got, double want)
{
	assert_true(got == (double)(float)want || (isnan(got) && isnan(want)));
}

static void assert_counts(const struct window_counts *got, const struct window_counts *want)
{
	assert_same_number(got->seconds, want->seconds);
	assert_same_number(got->throttled_seconds, want->throttled_seconds);
	assert_same_number(got->throttled_ratio, want->throttled_ratio);
	for (int p = 0; p < PRESSURES; p++)
		assert_same_number(got->pressure[p], want->pressure[p]);
	assert_int_equal(got->oom_kills, want->oom_kills);
	assert_int_equal(got->throttle_known, want->throttle_known);
	assert_int_equal(got->oom_known, want->oom_known);
}

/* Of what a pod's windows really say: times included, to the nanosecond. */
static void windows_come_out_as_they_went_in(void **state)
{
	struct pod_windows *w = pod_windows_new();
	struct usage_summary in = {.latest.pids = {5, 7, true}}, out;
	struct pod_usage packed;

	(void)state;
	for (uint64_t s = 1; s <= 250; s++) {
		struct usage_fixture f = {
			.sequence = s,
			.end_ns = T0 + (int64_t)s * 5 * SEC + (int64_t)(s * s * 977),
			.seconds = 5,
			.pods = 1,
			.seed = (uint32_t)s,
		};
		struct interval *i = usage_fixture_new(&f);

		if (s >
		    180) /* of memory the longer windows end before the others, the shortest has none */
			i->entries[0].usage.have &= ~(uint32_t)(USAGE_MEMORY | USAGE_THROTTLE);
		pod_windows_add(w, &i->entries[0].usage, i->start_ns, i->end_ns);
		interval_free(i);
		pod_windows_read(w, f.end_ns, in.windows);
		pod_usage_pack(&in, f.end_ns, &packed);
		pod_usage_unpack(&packed, f.end_ns, &out);
		for (int k = 0; k < WINDOWS; k++) {
			assert_stats(&out.windows[k].cpu_milli, &in.windows[k].cpu_milli);
			assert_stats(&out.windows[k].mem_bytes, &in.windows[k].mem_bytes);
			assert_stats(&out.windows[k].working_set_bytes,
				     &in.windows[k].working_set_bytes);
		}
		assert_counts(&out.windows[WINDOW_5M].counts, &in.windows[WINDOW_5M].counts);
		assert_memory_equal(&out.latest, &in.latest, sizeof(out.latest));
	}
	assert_false(out.windows[WINDOW_5M].mem_bytes.known);
	assert_true(out.windows[WINDOW_15M].mem_bytes.known);
	assert_true(out.windows[WINDOW_15M].mem_bytes.end_ns < T0 + 931 * SEC);
	pod_windows_free(w);
}

/* Only what is asked about now is kept of counts: the longer windows say they do not know. */
static void longer_windows_have_no_counts(void **state)
{
	struct usage_summary in = {.windows[WINDOW_10M].counts = {.seconds = 600,
								  .oom_known = true}},
			     out;
	struct pod_usage packed;

	(void)state;
	pod_usage_pack(&in, T0, &packed);
	pod_usage_unpack(&packed, T0, &out);
	for (int k = WINDOW_10M; k < WINDOWS; k++) {
		assert_true(out.windows[k].counts.seconds == 0);
		assert_false(out.windows[k].counts.oom_known ||
			     out.windows[k].counts.throttle_known);
		for (enum pressure p = 0; p < PRESSURES; p++)
			assert_true(isnan(out.windows[k].counts.pressure[p]));
	}
}

/* Beyond what the packed form reaches: the nearest it can say. */
static void far_values_stay_in_range(void **state)
{
	struct usage_summary in = {.windows[0].cpu_milli = {.known = true,
							    .start_ns = 1,
							    .end_ns = INT64_MAX / 2,
							    .samples = UINT64_MAX,
							    .mean = 1e300}},
			     out;
	struct pod_usage packed;

	(void)state;
	pod_usage_pack(&in, T0, &packed);
	pod_usage_unpack(&packed, T0, &out);
	assert_int_equal(out.windows[0].cpu_milli.samples, UINT32_MAX);
	assert_true(isfinite(out.windows[0].cpu_milli.mean));
	assert_true(out.windows[0].cpu_milli.start_ns < T0 - 12 * 86400 * SEC);
	assert_true(out.windows[0].cpu_milli.end_ns > T0 + 12 * 86400 * SEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows_come_out_as_they_went_in),
		cmocka_unit_test(longer_windows_have_no_counts),
		cmocka_unit_test(far_values_stay_in_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
