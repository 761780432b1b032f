/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stories told to the usage state by agents whose kernels and clocks are not to be trusted, and
 * what is known of a day.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/usage_story.h"

/*
 * Which values are impossible is for usage_check.h to say; here that the rest of the interval
 * counts.
 */
static void impossible_values_are_put_aside(void **state)
{
	struct usage_state *u = story_state();
	struct interval *i = story_interval(1, 0, 5, 2);
	const struct node_stats *p;
	struct usage_answer a;
	struct view *v;

	(void)state;
	story_name(&i->entries[0], ENTITY_UNIT, "a");
	story_name(&i->entries[1], ENTITY_UNIT, "b");
	story_use_cpu(&i->entries[0].usage, 4201);
	a = story_tell(u, "n", 'r', i, 5);
	assert_int_equal(a.verdict, USAGE_APPLIED);
	assert_int_equal(a.quarantine.total, 1);
	assert_int_equal(a.quarantine.count[QUARANTINE_aboveCapacity], 1);
	p = story_stats(u, &v);
	assert_false(p->pods[0].usage.latest.cpu_milli.known);
	assert_int_equal(p->pods[0].usage.cpu_milli[0].samples, 0);
	assert_true(p->pods[0].usage.latest.mem_bytes.known);
	assert_int_equal(p->pods[0].usage.mem_bytes[0].samples, 1);
	assert_true(p->pods[1].usage.latest.cpu_milli.value == 200);
	assert_int_equal(p->quarantine.count, 1);
	assert_int_equal(p->quarantine.reason, QUARANTINE_aboveCapacity);
	assert_int_equal(p->quarantine.last_ns, T0 + 5 * SEC);
	assert_string_equal(p->quarantine.message,
			    "a used 4201 millicores for 5.0 s, the node has 4000");
	assert_int_equal(p->aside_ns, 0); /* the node's own use is fine */
	view_drop(v);

	i = story_interval(2, 5, 10, 2);
	i->node.usage.mem_bytes.mean = NAN;
	a = story_tell(u, "n", 'r', i, 10);
	assert_int_equal(a.quarantine.total, 1);
	p = story_stats(u, &v);
	assert_int_equal(p->quarantine.count, 2);
	assert_string_equal(p->quarantine.message,
			    "the node used memory that is no number (mean nan, max 1.07374e+09, "
			    "last 1.07374e+09)");
	view_drop(v);
	story_tell_ok(u, 'r', story_interval(3, 10, 15, 2));
	assert_int_equal(story_stats(u, &v)->quarantine.count, 2);
	view_drop(v);

	/* A name is cut, and the text behind it is not. */
	i = story_interval(4, 15, 20, 2);
	i->full = true;
	story_name(&i->entries[0], ENTITY_UNIT,
		   "0123456789012345678901234567890123456789012345678901234567890123456789");
	story_use_cpu(&i->entries[0].usage, 4201);
	story_tell(u, "n", 'r', i, 20);
	assert_string_equal(story_stats(u, &v)->quarantine.message,
			    "012345678901234567890123456789012345678901234567890123456789012 "
			    "used 4201 millicores for 5.0 s, the node has 4000");
	view_drop(v);
	usage_free(u);
}

static void expect_latest(const struct latest *l, float value, unsigned int age)
{
	if (!l->known || l->value != value || l->age_seconds != age)
		fail_msg("known %d, %g, %u s old; not %g, %u s", l->known, (double)l->value,
			 l->age_seconds, (double)value, age);
}

/*
 * The last good value stays, with its age, for 5 minutes; the node is as old as what is known of
 * it.
 */
static void the_last_good_value_stays(void **state)
{
	struct usage_state *u = story_state();
	const struct node_stats *p;
	struct view *v;

	(void)state;
	for (int s = 1; s <= 62; s++) {
		struct interval *i = story_interval((uint64_t)s, s * 5 - 5, s * 5, 2);
		bool bad = s > 1;

		if (!bad) {
			story_name(&i->entries[0], ENTITY_POD, "p");
			story_name(&i->entries[1], ENTITY_CONTAINER, "p/c")->parent = 1;
		}
		i->entries[0].usage.mem_bytes.last = bad ? -1 : 7;
		story_use_cpu(&i->entries[1].usage, bad ? NAN : 9);
		story_use_cpu(&i->node.usage, bad ? 5000 : 11);
		i->node.usage.mem_bytes.last = (float)s;
		story_tell_ok(u, 'r', i);
		if (s % 2 == 0 && s < 60)
			continue; /* not every interval becomes stats */
		p = story_stats(u, &v);
		assert_true(p->usage.latest.mem_bytes.value == (float)s);
		assert_int_equal(p->usage.latest.mem_bytes.age_seconds, 0);
		assert_int_equal(node_stats_age_ns(p, T0 + s * 5 * SEC + 1), (s - 1) * 5 * SEC + 1);
		assert_int_equal(node_stats_freshness(p, T0 + s * 5 * SEC), s < 7    ? FRESH
									    : s < 62 ? LATE
										     : EXPIRED);
		if (s <= 61) {
			unsigned int age = (unsigned int)(s - 1) * 5;

			expect_latest(&p->usage.latest.cpu_milli, 11, age);
			expect_latest(&p->pods[0].usage.latest.mem_bytes, 7, age);
			expect_latest(&p->pods[0].containers[0].latest.cpu_milli, 9, age);
		} else {
			assert_false(p->usage.latest.cpu_milli.known);
			assert_false(p->pods[0].usage.latest.mem_bytes.known);
			assert_false(p->pods[0].containers[0].latest.cpu_milli.known);
		}
		view_drop(v);
	}
	usage_free(u);
}

/* A node whose CPU never could be is heard, and yet nothing is known of it. */
static void what_never_could_be_is_not_fresh(void **state)
{
	struct usage_state *u = story_state();
	struct interval *i = story_interval(1, 0, 5, 0);
	struct view *v;

	(void)state;
	i->node.usage.cpu_milli.mean = -5;
	story_tell_ok(u, 'r', i);
	assert_int_equal(node_stats_freshness(story_stats(u, &v), T0 + 5 * SEC), EXPIRED);
	view_drop(v);
	story_tell_ok(u, 'r', story_interval(2, 5, 10, 0));
	assert_int_equal(node_stats_freshness(story_stats(u, &v), T0 + 10 * SEC), FRESH);
	view_drop(v);
	usage_free(u);
}

/* Told by a clock that is `ahead`, age_s after it ended, to a service whose clock is right. */
static struct usage_answer tell_by(struct usage_state *u, uint64_t sequence, int end, int ahead,
				   int age_s)
{
	struct interval *i = story_interval(sequence, end - 5 + ahead, end + ahead, 0);

	i->age_ns = age_s * SEC + 1000000;
	return story_tell(u, "n", 'r', i, end + age_s);
}

static void expect_same_stats(const struct window_stats *a, const struct window_stats *b)
{
	assert_int_equal(a->known, b->known);
	assert_int_equal(a->percentiles, b->percentiles);
	assert_int_equal(a->start_ns, b->start_ns);
	assert_int_equal(a->end_ns, b->end_ns);
	assert_int_equal(a->samples, b->samples);
	assert_true(a->mean == b->mean && a->stddev == b->stddev);
	assert_true(a->min == b->min && a->max == b->max);
	assert_true(a->p50 == b->p50 && a->p95 == b->p95 && a->p99 == b->p99);
}

static void clocks_that_are_off_are_corrected(void **state)
{
	static const int ahead[] = {0, 7200, -7200, 86400, -61, 31, 29};
	struct usage_state *right = story_state();
	const struct node_stats *p, *of_right;
	struct view *v, *w;

	(void)state;
	for (uint64_t s = 1; s <= 20; s++)
		tell_by(right, s, (int)s * 5, 0, 0);
	of_right = story_stats(right, &w);
	for (size_t k = 0; k < sizeof(ahead) / sizeof(ahead[0]); k++) {
		struct usage_state *u = story_state();

		for (uint64_t s = 1; s <= 20; s++) { /* the first ten out of the ring */
			struct usage_answer a =
				tell_by(u, s, (int)s * 5, ahead[k], s <= 10 ? 100 : 0);

			assert_int_equal(a.verdict, USAGE_APPLIED);
			assert_int_equal(a.clock_flagged, s == 1 && abs(ahead[k]) > 30);
			if (a.clock_flagged)
				assert_true(fabs(a.clock_ahead_seconds - ahead[k]) < 0.01);
		}
		p = story_stats(u, &v);
		assert_true(p->clock_known);
		assert_true(llabs(p->clock_ahead_ns - ahead[k] * SEC) < SEC / 100);
		assert_int_equal(p->end_ns, of_right->end_ns);
		for (int i = 0; i < WINDOWS; i++) {
			expect_same_stats(&p->usage.windows[i].cpu_milli,
					  &of_right->usage.windows[i].cpu_milli);
			expect_same_stats(&p->usage.windows[i].mem_bytes,
					  &of_right->usage.windows[i].mem_bytes);
		}
		view_drop(v);
		usage_free(u);
	}
	view_drop(w);
	usage_free(right);
}

/* However the clock is set, every interval counts once, in the bucket of its true time. */
static void a_clock_that_is_set_loses_nothing(void **state)
{
	struct usage_state *u = story_state();
	const struct node_stats *p;
	struct view *v;

	(void)state;
	for (uint64_t s = 1; s <= 60; s++) {
		int ahead = s <= 20 ? 0 : s <= 40 ? 5000 : -400;

		assert_int_equal(tell_by(u, s, (int)s * 5, ahead, 0).verdict, USAGE_APPLIED);
		assert_int_equal(tell_by(u, s, (int)s * 5, ahead, 0).verdict, USAGE_DUPLICATE);
	}
	p = story_stats(u, &v);
	assert_int_equal(p->end_ns, T0 + 300 * SEC);
	assert_int_equal(p->usage.windows[WINDOW_15M].cpu_milli.samples, 3000);
	assert_true(p->usage.windows[WINDOW_15M].counts.seconds == 300);
	assert_int_equal(p->usage.windows[WINDOW_15M].cpu_milli.start_ns, T0);
	view_drop(v);
	usage_free(u);
}

/* Both clocks go back by two hours: the windows are of what comes after it. */
static void windows_begin_anew_after_our_clock_is_set_back(void **state)
{
	struct usage_state *u = story_state();
	const struct node_stats *p;
	struct view *v;

	(void)state;
	for (uint64_t s = 1; s <= 60; s++) {
		int end = (int)s * 5 - (s <= 20 ? 0 : 7200);
		struct interval *i = story_interval(s, end - 5, end, 1);

		if (s == 1)
			story_name(&i->entries[0], ENTITY_UNIT, "a");
		story_tell_ok(u, 'r', i);
	}
	p = story_stats(u, &v);
	assert_int_equal(p->end_ns, T0 - 6900 * SEC);
	assert_int_equal(p->usage.windows[WINDOW_15M].cpu_milli.samples, 2000);
	assert_int_equal(p->pods[0].usage.cpu_milli[WINDOW_15M].samples, 2000);
	view_drop(v);
	usage_free(u);
}

/* By complete buckets, for a pod however often its containers come and go, and shared by stats. */
static void peaks_outlive_containers(void **state)
{
	struct usage_state *u = story_state();
	struct view *v, *before = NULL;
	const struct pod_peaks *peaks;
	int64_t hour = (T0 + 3600 * SEC) / (3600 * SEC);

	(void)state;
	for (uint64_t s = 1; s <= 150; s++) { /* 75 minutes, of which the last bucket is running */
		struct interval *i = story_interval(s, (int)s * 30 - 30, (int)s * 30, 1);
		char run = s < 60 ? 'a' : 'b';

		i->sequence = s < 60 ? s : s - 59;
		i->entries[0].ref = s < 60 ? 1 : 2;
		if (i->sequence == 1)
			snprintf(story_name(&i->entries[0], ENTITY_POD, "p")->pod_uid, 4, "uid");
		i->entries[0].usage.have |= USAGE_WORKING_SET;
		story_use_cpu(&i->entries[0].usage, (float)s);
		i->entries[0].usage.working_set_bytes = (struct gauge){1, (float)(1000 - s), 1};
		story_tell_ok(u, run, i);
		if (s == 1) {
			assert_null(story_stats(u, &v)->pods[0].peaks);
			view_drop(v);
		}
		if (s == 100)
			before = usage_view(u, T0);
	}
	peaks = story_stats(u, &v)->pods[0].peaks;
	assert_int_equal(peaks->newest, hour);
	/*
	 * T0 is 13 min 30 s into its hour, so 93 buckets end in that hour; the bucket of s = 93
	 * begins the next.
	 */
	assert_true(peaks->working_set_bytes[(hour - 1) % PEAK_HOURS] == 999);
	assert_true(isnan(peaks->cpu_milli[(hour + 1) % PEAK_HOURS]));
	assert_true(peaks->cpu_milli[hour % PEAK_HOURS] >
		    peaks->cpu_milli[(hour - 1) % PEAK_HOURS]);
	assert_non_null(before);
	/* Stats made before still say what they said. */
	assert_non_null(before);
	assert_true(before->nodes[0]->stats->pods[0].peaks->cpu_milli[hour % PEAK_HOURS] <
		    peaks->cpu_milli[hour % PEAK_HOURS]);
	view_drop(before);
	view_drop(v);
	usage_free(u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(impossible_values_are_put_aside),
		cmocka_unit_test(the_last_good_value_stays),
		cmocka_unit_test(what_never_could_be_is_not_fresh),
		cmocka_unit_test(clocks_that_are_off_are_corrected),
		cmocka_unit_test(a_clock_that_is_set_loses_nothing),
		cmocka_unit_test(windows_begin_anew_after_our_clock_is_set_back),
		cmocka_unit_test(peaks_outlive_containers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
