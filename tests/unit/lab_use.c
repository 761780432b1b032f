/* SPDX-License-Identifier: Apache-2.0 */
/* What a pod of the lab uses: by its annotations, else by its requests, never above its limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>

#include "shared/clock.h"
#include "tests/lab_use.h"

#define NOW_NS	(1700000000LL * NS_PER_SEC)
#define LONG_NS (3600 * NS_PER_SEC)

static struct lab_use use_of(const char *annotations, const char *resources)
{
	char text[1024];
	struct lab_use use;
	cJSON *pod;

	snprintf(text, sizeof(text),
		 "{\"metadata\":{\"uid\":\"u\",\"annotations\":{%s}},\"spec\":{\"containers\":["
		 "{\"resources\":{%s}}]}}",
		 annotations, resources);
	pod = cJSON_Parse(text);
	assert_non_null(pod);
	use = lab_use_of(pod);
	cJSON_Delete(pod);
	return use;
}

static void test_annotations_decide(void **state)
{
	struct lab_use use = use_of("\"lab.evenkeel.io/cpu\":\"800m\",\"lab.evenkeel.io/memory\":"
				    "\"300Mi\",\"lab.evenkeel.io/cpu-sigma\":\"100m\","
				    "\"lab.evenkeel.io/pattern\":\"bursty\","
				    "\"lab.evenkeel.io/load-after\":\"30s\"",
				    "\"requests\":{\"cpu\":\"4\",\"memory\":\"8Gi\"}");

	(void)state;
	assert_true(use.cpu_milli == 800 && use.sigma_milli == 100);
	assert_true(use.mem_bytes == 300.0 * (1 << 20));
	assert_int_equal(use.pattern, LAB_BURSTY);
	assert_int_equal(use.load_after_ns, 30 * NS_PER_SEC);
	use = use_of("\"lab.evenkeel.io/cpu\":\"lots\",\"lab.evenkeel.io/pattern\":\"odd\"", "");
	assert_true(use.cpu_milli == 50);
	assert_int_equal(use.pattern, LAB_STEADY);
}

static void test_requests_without_annotations(void **state)
{
	struct lab_use use = use_of("", "\"requests\":{\"cpu\":\"2\",\"memory\":\"1Gi\"}");

	(void)state;
	assert_in_range((uint64_t)use.cpu_milli, 400, 1600);
	assert_in_range((uint64_t)use.mem_bytes, (1 << 30) / 5, 1 << 30);
	assert_int_equal(use.cpu_limit_milli, 0);
}

/* Mean and deviation come out as they were asked for. */
static void test_pattern(void **state)
{
	static const double sigmas[] = {0, 100, 800, 2000};

	(void)state;
	for (size_t i = 0; i < sizeof(sigmas) / sizeof(sigmas[0]); i++) {
		struct lab_use use = {.cpu_milli = 800,
				      .sigma_milli = sigmas[i],
				      .seed = 12345 + i};
		struct pattern p = lab_use_pattern(&use);
		double mean = pattern_used_milli(&p, NOW_NS, NOW_NS + LONG_NS);
		double sigma = pattern_stddev_milli(&p, NOW_NS, NOW_NS + LONG_NS);

		assert_true(fabs(mean - 800) < 8);
		assert_true(fabs(sigma - sigmas[i]) <= 0.01 * sigmas[i]);
	}
}

static void test_limit_bounds(void **state)
{
	struct lab_use use = use_of("\"lab.evenkeel.io/cpu\":\"3\"",
				    "\"limits\":{\"cpu\":\"1\",\"memory\":\"1Gi\"}");
	struct pattern p = lab_use_pattern(&use);

	(void)state;
	assert_int_equal(use.cpu_limit_milli, 1000);
	assert_true(use.mem_limit_bytes == 1LL << 30);
	assert_true(pattern_used_milli(&p, NOW_NS, NOW_NS + LONG_NS) <= 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_annotations_decide),
		cmocka_unit_test(test_requests_without_annotations),
		cmocka_unit_test(test_pattern),
		cmocka_unit_test(test_limit_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
