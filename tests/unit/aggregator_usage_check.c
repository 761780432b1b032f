/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which values of an interval can be: one member changed at a time, what is put aside for it, and
 * that the rest stays.
 */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/state/pressure.h"
#include "aggregator/state/usage_check.h"

#define SEC 1000000000LL
#define GIB (1LL << 30)

#define MEASURED                                                                                   \
	(USAGE_CPU | USAGE_MEMORY | USAGE_WORKING_SET | USAGE_THROTTLE | USAGE_OOM |               \
	 PRESSURE_BITS | USAGE_SWAP | USAGE_PIDS)

/* 5 s of a machine with 4 CPUs and 8 GiB, and of one entry; all of it can be. */
static struct interval *new_interval(void)
{
	struct interval *i = interval_new(1);
	struct usage *u = &i->node.usage;

	i->start_ns = SEC;
	i->end_ns = 6 * SEC;
	i->node.cpu_capacity_milli = 4000;
	i->node.mem_capacity_bytes = 8 * GIB;
	u->have = MEASURED;
	u->seconds = 5;
	u->cpu_milli = (struct moments32){50, 5, 1000, 100, 900, 1100, 1000};
	u->mem_bytes = u->working_set_bytes =
		(struct gauge){(float)GIB, (float)(2 * GIB), (float)GIB};
	i->entries[0].ref = 7;
	i->entries[0].usage = *u;
	histogram_add(&i->node.cpu_hist, 1000, HISTOGRAM_CPU_X0);
	histogram_add(&i->node.mem_hist, 1e9, HISTOGRAM_MEMORY_X0);
	return i;
}

#define CGROUPS 16384ULL /* throttling is a sum over so many at most */

/* X(change of the usage u, bits put aside, why, text or NULL for none). The first ones can be. */
#define CASES(X)                                                                                   \
	X((void)u, 0, 0, NULL)                                                                     \
	X(u->cpu_milli.mean = u->cpu_milli.max = 4199, 0, 0, NULL)                                 \
	X(u->cpu_milli.max = 3999999, 0, 0, NULL) /* one tick read late */                         \
	X((u->cpu_milli.weight = 0.1F, u->cpu_milli.mean = u->cpu_milli.max = 4800), 0, 0, NULL)   \
	X((memset(&u->cpu_milli, 0, sizeof(u->cpu_milli)),                                         \
	   memset(&i->node.cpu_hist, 0, sizeof(i->node.cpu_hist))),                                \
	  0, 0, NULL)                                                                              \
	X(u->cpu_milli.min = -0.5F, 0, 0, NULL)                                                    \
	X(u->mem_bytes.max = (float)(8 * GIB), 0, 0, NULL)                                         \
	X(u->throttled_ns = CGROUPS * 48 * SEC, 0, 0, NULL)                                        \
	X((u->periods = CGROUPS * 12000, u->throttled_periods = CGROUPS * 12000 + 2), 0, 0, NULL)  \
	X(u->stall_cpu_ns = 12 * SEC, 0, 0, NULL)                                                  \
	X(u->pids = 1 << 22, 0, 0, NULL)                                                           \
	X(u->swap_bytes = 1ULL << 50, 0, 0, NULL)                                                  \
	X(u->oom_kills = 1000000, 0, 0, NULL)                                                      \
	X(u->cpu_milli.mean = NAN, USAGE_CPU, notANumber, "used CPU that is no number (mean nan,") \
	X(u->cpu_milli.weight = INFINITY, USAGE_CPU, notANumber, NULL)                             \
	X(u->cpu_milli.m2 = -NAN, USAGE_CPU, notANumber, NULL)                                     \
	X(u->cpu_milli.min = -INFINITY, USAGE_CPU, notANumber, NULL)                               \
	X(u->cpu_milli.max = INFINITY, USAGE_CPU, notANumber, NULL)                                \
	X(u->cpu_milli.last = NAN, USAGE_CPU, notANumber, NULL)                                    \
	X(u->cpu_milli.mean = -1, USAGE_CPU, negative, "used -1 millicores, least 900, m2 100,")   \
	X(u->cpu_milli.min = -1.5F, USAGE_CPU, negative, NULL)                                     \
	X(u->cpu_milli.m2 = -1, USAGE_CPU, negative, NULL)                                         \
	X(u->cpu_milli.weight = -5, USAGE_CPU, negative, NULL)                                     \
	X(u->cpu_milli.samples = 0, USAGE_CPU, inconsistent, "has 0 samples of 5 s")               \
	X(u->cpu_milli.weight = 0, USAGE_CPU, inconsistent, "has 50 samples of 0 s")               \
	X((u->cpu_milli.weight = 12.5F), USAGE_CPU, counterReset,                                  \
	  "used CPU for 12.5 s, at most 12.0 s passed")                                            \
	X(u->cpu_milli.mean = 4201, USAGE_CPU, aboveCapacity,                                      \
	  "used 4201 millicores for 5.0 s, the node has 4000")                                     \
	X((u->cpu_milli.weight = 0.1F, u->cpu_milli.mean = 50000), USAGE_CPU, aboveCapacity, NULL) \
	X(u->cpu_milli.max = 4000001, USAGE_CPU, aboveCapacity,                                    \
	  "used 4e+06 millicores at once, the node has 4000")                                      \
	X(u->cpu_milli.m2 = 6050100, USAGE_CPU, inconsistent,                                      \
	  "used at most 1100 millicores with a deviation of 1100")                                 \
	X(u->cpu_milli.min = 1101, USAGE_CPU, inconsistent,                                        \
	  "used 1101 to 1100 millicores, 1000 on average and 1000 at last")                        \
	X(u->cpu_milli.min = 1e30F, USAGE_CPU, inconsistent, NULL)                                 \
	X(u->cpu_milli.mean = 897, USAGE_CPU, inconsistent, NULL)                                  \
	X(u->cpu_milli.mean = 1103, USAGE_CPU, inconsistent, NULL)                                 \
	X(u->cpu_milli.last = 1e30F, USAGE_CPU, inconsistent, NULL)                                \
	X(u->cpu_milli.last = 897, USAGE_CPU, inconsistent, NULL)                                  \
	X(u->mem_bytes.max = (float)GIB / 2, USAGE_MEMORY, inconsistent, NULL)                     \
	X((u->mem_bytes.mean = (float)GIB / 2, u->mem_bytes.last = (float)(3 * GIB)),              \
	  USAGE_MEMORY, inconsistent, NULL)                                                        \
	X(u->mem_bytes.mean = NAN, USAGE_MEMORY, notANumber,                                       \
	  "used memory that is no number (mean nan, max 2.14748e+09, last 1.07374e+09)")           \
	X(u->mem_bytes.last = -1, USAGE_MEMORY, negative, "used -1 bytes of memory")               \
	X(u->mem_bytes.mean = 9e9F, USAGE_MEMORY, aboveCapacity,                                   \
	  "used 8999999488 bytes of memory, the node has 8589934592")                              \
	X(u->mem_bytes.max = 9e9F, USAGE_MEMORY, aboveCapacity, NULL)                              \
	X(u->working_set_bytes.max = INFINITY, USAGE_WORKING_SET, notANumber, NULL)                \
	X(u->working_set_bytes.last = 9e9F, USAGE_WORKING_SET, aboveCapacity,                      \
	  "used 8999999488 bytes of working set, the node has 8589934592")                         \
	X(u->seconds = 12.5F, USAGE_MEMORY | USAGE_WORKING_SET, counterReset,                      \
	  "used working set for 12.5 s, at most 12.0 s passed")                                    \
	X(u->throttled_ns = UINT64_MAX, USAGE_THROTTLE, counterReset,                              \
	  "was throttled for 18446744073.7 s, at most 786432 s can be")                            \
	X(u->periods = CGROUPS * 12000 + 1, USAGE_THROTTLE, counterReset,                          \
	  "had 196608001 periods, at most 196608000 can be")                                       \
	X((u->periods = 10, u->throttled_periods = 13), USAGE_THROTTLE, inconsistent,              \
	  "was throttled in 13 of 10 periods")                                                     \
	X(u->oom_kills = UINT32_MAX, USAGE_OOM, counterReset, "had 4294967295 OOM kills")          \
	X(u->swap_bytes = UINT64_MAX, USAGE_SWAP, notANumber,                                      \
	  "has 18446744073709551615 bytes swapped, at most 1125899906842624 can be")               \
	X(u->pids = (1 << 22) + 1, USAGE_PIDS, aboveKernelLimit,                                   \
	  "has 4194305 tasks, at most 4194304 can be")                                             \
	X(u->contention_cpu_ns = 125 * SEC / 10, USAGE_CONTENTION_CPU, counterReset,               \
	  "waited for CPU for 12.5 s, at most 12.0 s passed")                                      \
	X(u->contention_mem_ns = UINT64_MAX, USAGE_CONTENTION_MEMORY, counterReset,                \
	  "waited for memory for 18446744073.7 s, at most 12.0 s passed")                          \
	X(u->stall_cpu_ns = 125 * SEC / 10, USAGE_STALL_CPU, counterReset,                         \
	  "stalled for CPU for 12.5 s, at most 12.0 s passed")                                     \
	X(u->stall_mem_ns = 125 * SEC / 10, USAGE_STALL_MEMORY, counterReset,                      \
	  "stalled for memory for 12.5 s, at most 12.0 s passed")

static void check_usage(const char *change, const struct usage *u, uint32_t aside)
{
	uint32_t want = (MEASURED & ~aside) | aside << USAGE_ASIDE_SHIFT;

	if (u->have != want)
		fail_msg("%s: have %#x, not %#x", change, u->have, want);
}

static void check(const char *change, struct interval *i, bool node, uint32_t aside,
		  enum quarantine_reason why, const char *text)
{
	uint32_t total = (uint32_t)__builtin_popcount(aside);
	struct quarantine q;

	for (int twice = 0; twice < 2; twice++) { /* the second time says the same */
		usage_quarantine(i, &q);
		check_usage(change, &i->node.usage, node ? aside : 0);
		check_usage(change, &i->entries[0].usage, node ? 0 : aside);
		if (q.total != total || (total && (q.count[why] != total || q.last != why)))
			fail_msg("%s: %u put aside, the last as %s", change, q.total,
				 quarantine_reason_name[q.last]);
		if (total && q.ref != (node ? 0 : 7))
			fail_msg("%s: told of reference %u", change, q.ref);
		if (text && strncmp(q.text, text, strlen(text)) != 0)
			fail_msg("%s: \"%s\"", change, q.text);
	}
	interval_free(i);
}

static void each_value_is_judged_alone(void **state)
{
	(void)state;
	for (int node = 0; node < 2; node++) {
#define X(change, aside, why, text)                                                                \
	{                                                                                          \
		struct interval *i = new_interval();                                               \
		struct usage *u = node ? &i->node.usage : &i->entries[0].usage;                    \
                                                                                                   \
		change;                                                                            \
		check(#change, i, node, aside, REASON(why), text);                                 \
	}
#define REASON(why)		REASON_##why
#define REASON_0		QUARANTINE_notANumber
#define REASON_notANumber	QUARANTINE_notANumber
#define REASON_negative		QUARANTINE_negative
#define REASON_aboveCapacity	QUARANTINE_aboveCapacity
#define REASON_counterReset	QUARANTINE_counterReset
#define REASON_inconsistent	QUARANTINE_inconsistent
#define REASON_aboveKernelLimit QUARANTINE_aboveKernelLimit
		CASES(X)
#undef X
	}
}

/* The samples of 5 s lie between 900 and 1100 millicores, and below 2 GiB. */
static void histograms_are_judged_with_their_values(void **state)
{
	static const struct {
		double milli, bytes; /* of one sample more */
		unsigned int count; /* so often */
		uint32_t merged;
		uint32_t aside;
		const char *text;
	} cases[] = {
		{1000, 0, 1, 1, 0, NULL},
		{900, 2. * GIB, 1, 1, 0, NULL},
		{1100, 1, 1, 1, 0, NULL},
		/* In the bucket of the least and of the greatest. */
		{890, 2.01 * GIB, 1, 1, 0, NULL},
		{750, 1e9, 1, 1, USAGE_CPU,
		 "has samples of CPU in its histogram outside 900 to 1100"},
		{1300, 1e9, 1, 1, USAGE_CPU, NULL},
		{0, 1e9, 1, 1, USAGE_CPU, NULL},
		{1e30, 1e9, 1, 1, USAGE_CPU, NULL},
		{1000, 3e9, 1, 1, USAGE_MEMORY,
		 "has samples of memory in its histogram outside 0 to 2.14748e+09"},
		{0, 1e30, 1, 1, USAGE_CPU | USAGE_MEMORY, NULL},
		{1000, 1e9, 50, 1, 0, NULL},
		{1000, 1e9, 51, 1, USAGE_CPU,
		 "has 52 samples of CPU in its histogram, at most 51 were taken"},
		{1000, 1e9, 58, 9, 0, NULL},
		{1000, 1e9, 59, 9, USAGE_CPU, NULL},
		{1000, 1e9, 400, 1000, USAGE_MEMORY,
		 "has 401 samples of memory in its histogram, at most 384 were taken"},
	};

	(void)state;
	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		struct interval *i = new_interval();

		i->merged = cases[k].merged;
		for (unsigned int n = 0; n < cases[k].count; n++) {
			histogram_add(&i->node.cpu_hist, cases[k].milli, HISTOGRAM_CPU_X0);
			histogram_add(&i->node.mem_hist, cases[k].bytes, HISTOGRAM_MEMORY_X0);
		}
		check("histogram", i, true, cases[k].aside, QUARANTINE_inconsistent, cases[k].text);
	}
}

/* What was not measured cannot be wrong. */
static void what_is_not_there_is_not_judged(void **state)
{
	struct interval *i = new_interval();
	struct quarantine q;

	(void)state;
	memset(&i->entries[0].usage, 0xff, sizeof(i->entries[0].usage));
	i->entries[0].usage.have = 0;
	usage_quarantine(i, &q);
	assert_int_equal(q.total, 0);
	assert_int_equal(i->entries[0].usage.have, 0);
	interval_free(i);
}

static void several_are_counted_by_reason(void **state)
{
	struct interval *i = new_interval();
	struct quarantine q;

	(void)state;
	i->node.usage.cpu_milli.mean = 9999;
	i->entries[0].usage.cpu_milli.mean = NAN;
	i->entries[0].usage.mem_bytes.mean = 9e9F;
	usage_quarantine(i, &q);
	assert_int_equal(q.total, 3);
	assert_int_equal(q.count[QUARANTINE_aboveCapacity], 2);
	assert_int_equal(q.count[QUARANTINE_notANumber], 1);
	assert_int_equal(q.ref, 7);
	interval_free(i);
}

/* Its CPU time and its available memory go together. */
static void the_machine_is_judged_too(void **state)
{
	static const struct {
		struct cpu_split split;
		int64_t available;
		const char *text;
	} cases[] = {
		{{12 * SEC, 12 * SEC, 12 * SEC, 12 * SEC}, 8 * GIB, NULL},
		{{12 * SEC, 12 * SEC, 12 * SEC, 124 * SEC / 10},
		 GIB,
		 "spent 48.4 s of CPU time, at most 48.0 s passed"},
		{{.iowait_ns = (uint64_t)-5},
		 GIB,
		 "spent 18446744073.7 s of CPU time, at most 48.0 s passed"},
		{{SEC, 0, 0, 0},
		 9 * GIB,
		 "has 9663676416 bytes of memory available, of 8589934592"},
		{{SEC, 0, 0, 0}, -1, "has -1 bytes of memory available, of 8589934592"},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		struct interval *i = new_interval();
		struct quarantine q;

		i->node.cpu_split = cases[n].split;
		i->node.mem_available_bytes = cases[n].available;
		usage_quarantine(i, &q);
		assert_int_equal(q.total, cases[n].text != NULL);
		assert_string_equal(q.text, cases[n].text ? cases[n].text : "");
		assert_int_equal(i->node.mem_available_bytes, q.total ? 0 : cases[n].available);
		assert_int_equal(i->node.cpu_split.user_ns, q.total ? 0 : cases[n].split.user_ns);
		assert_int_equal(i->node.usage.have, MEASURED);
		interval_free(i);
	}
}

static void a_machine_has_capacity(void **state)
{
	struct interval *i = new_interval();
	char reason[192] = "";

	(void)state;
	assert_int_equal(usage_check(i, reason, sizeof(reason)), 0);
	assert_string_equal(reason, "");
	i->node.mem_capacity_bytes = -1;
	assert_true(usage_check(i, reason, sizeof(reason)) < 0);
	assert_string_equal(reason, "the node has 4000 millicores and -1 bytes of memory");
	i->node.mem_capacity_bytes = GIB;
	i->node.cpu_capacity_milli = 0;
	assert_true(usage_check(i, reason, sizeof(reason)) < 0);
	interval_free(i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_value_is_judged_alone),
		cmocka_unit_test(histograms_are_judged_with_their_values),
		cmocka_unit_test(what_is_not_there_is_not_judged),
		cmocka_unit_test(several_are_counted_by_reason),
		cmocka_unit_test(the_machine_is_judged_too),
		cmocka_unit_test(a_machine_has_capacity),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
