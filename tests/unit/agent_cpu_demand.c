/* SPDX-License-Identifier: Apache-2.0 */
/* The formula of agent/cpu_demand.h by cases, and its bytes. */
#include "agent/cpu_demand.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "shared/demand.h"

#define MS 1000000LL

static const struct {
	const char *what;
	float milli[10]; /* a second of samples */
	uint64_t throttled_ms, periods;
	int64_t period_ms, capacity_milli;
	double want[10]; /* in any order */
} cases[] = {
	{"no throttling", {100, 200, 300}, 0, 0, 100, 0, {100, 200, 300}},
	{"one thread that always runs, of which half is cut off",
	 {500, 500, 500, 500, 500, 500, 500, 500, 500, 500},
	 500,
	 10,
	 100,
	 0,
	 {1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000}},
	{"48 % of each 10 ms, of which an eighth is cut off",
	 {426, 426, 426, 426, 426, 426, 426, 426, 426, 426},
	 120,
	 10,
	 100,
	 0,
	 {480, 480, 480, 480, 480, 480, 480, 480, 480, 480}},
	{"always runs, and throttled time is read 5 % too short",
	 {100, 100, 100, 100, 100, 100, 100, 100, 100, 100},
	 855,
	 10,
	 100,
	 0,
	 {955, 955, 955, 955, 955, 955, 955, 955, 955, 955}},
	{"four threads with a quota of half a core: each run queue waits 87.5 ms of 100",
	 {500, 500, 500, 500, 500, 500, 500, 500, 500, 500},
	 3500,
	 10,
	 100,
	 0,
	 {4000, 4000, 4000, 4000, 4000, 4000, 4000, 4000, 4000, 4000}},
	{"throttled in two periods: the highest rates are meant",
	 {0, 0, 500, 0, 0, 500, 0, 0, 10, 0},
	 100,
	 2,
	 100,
	 0,
	 {1000, 1000, 10}},
	{"a period of half a second is five samples",
	 {100, 100, 100, 100, 100, 0, 0, 0, 0, 0},
	 450,
	 1,
	 500,
	 0,
	 {1000, 1000, 1000, 1000, 1000}},
	{"an unknown period is 100 ms", {500}, 50, 1, 0, 0, {1000}},
	{"no more samples than there are",
	 {900},
	 100,
	 30,
	 100,
	 0,
	 {94, 94, 94, 94, 94, 94, 94, 94, 94, 94}},
	{"a period that the reading before had not counted yet",
	 {100, 100, 100, 100, 100, 100, 100, 100, 100, 100},
	 990,
	 11,
	 100,
	 0,
	 {1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000}},
	{"at least one", {900}, 100, 0, 100, 0, {1900}},
	{"no more than the machine", {1900, 1900}, 5000, 2, 100, 2000, {2000, 2000}},
};

static void test_formula(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct demand_throttle t = {cases[i].throttled_ms * MS, cases[i].periods,
					    cases[i].period_ms * MS, 1000 * MS};
		struct histogram want = {0};
		struct demand d = {0};

		for (int k = 0; k < 10; k++) {
			demand_add(&d, (double)cases[i].milli[k]);
			histogram_add(&want, cases[i].want[k], HISTOGRAM_CPU_X0);
		}
		demand_settle(&d, &t, cases[i].capacity_milli);
		if (memcmp(&d.histogram, &want, sizeof(want)) != 0)
			fail_msg("%s", cases[i].what);
	}
}

/* Slow readings that are late cost their correction, and no sample. */
static void test_too_many_samples(void **state)
{
	struct demand d = {0};

	(void)state;
	for (int i = 0; i < DEMAND_SAMPLES + 1; i++)
		demand_add(&d, 100);
	demand_settle(&d, &(struct demand_throttle){0}, 0);
	assert_int_equal(histogram_total(&d.histogram), DEMAND_SAMPLES + 1);
}

static void test_bytes(void **state)
{
	struct histogram back = {0};
	struct demand d = {0};
	struct buf out = BUF_INIT;

	(void)state;
	for (int i = 0; i < 50; i++) {
		demand_add(&d, i % 2 ? 98 : 102);
		if (i % 10 == 9)
			demand_settle(&d, &(struct demand_throttle){0}, 0);
	}
	demand_publish(&d, &out);
	assert_int_equal(histogram_total(&d.histogram), 0);
	/* With tag and length an interval of a steady container costs six bytes. */
	assert_true(out.len <= 4);
	assert_true(demand_is_valid(out.data, out.len));
	demand_decode(out.data, out.len, &back);
	assert_int_equal(histogram_total(&back), 50);
	buf_fini(&out);
}

static void test_bytes_that_cannot_be(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		bool valid;
	} bad[] = {
		{"", 0, true},
		{"\x05\x01", 2, true},
		{"\x00\x01", 2, true},
		{"\x05", 1, false}, /* no count */
		{"\x05\x00", 2, false}, /* no samples */
		{"\x05\x01\x00\x01", 4, false}, /* the same bucket again */
		{"\xb3\x01\x01", 3, true}, /* the last bucket, 179 */
		{"\xb4\x01\x01", 3, false},
		{"\xb3\x01\x01\x01\x01", 5, false},
		{"\x05\xff\xff\xff\xff\x0f", 6, true},
		{"\x05\xff\xff\xff\xff\x1f", 6, false}, /* beyond 32 bits */
		{"\x05\xff\xff\xff\xff\xff\x01", 7, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (demand_is_valid(bad[i].bytes, bad[i].len) != bad[i].valid)
			fail_msg("case %zu", i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_formula),
		cmocka_unit_test(test_too_many_samples),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_bytes_that_cannot_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
