/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"
#include "shared/quantity.h"

#define MAX INT64_MAX

static const struct value_case {
	const char *text;
	int64_t milli, units;
} value_cases[] = {
	{"0", 0, 0},
	{"-0", 0, 0},
	{"+0.000Ki", 0, 0},
	{"1", 1000, 1},
	{"007", 7000, 7},
	{"+5", 5000, 5},
	{"-5", -5000, -5},
	{"500m", 500, 1},
	{"0.5", 500, 1},
	{".5", 500, 1},
	{"5.", 5000, 5},
	{"5.m", 5, 1},
	{"1.5", 1500, 2},
	{"-1.5", -1500, -2},
	{"100m", 100, 1},
	{"1000m", 1000, 1},
	{"1001m", 1001, 2},
	{"0.5m", 1, 1},
	{"-0.5m", -1, -1},
	{"1u", 1, 1},
	{"1000u", 1, 1},
	{"1001u", 2, 1},
	{"1n", 1, 1},
	{"1000000000n", 1000, 1},
	{"1000000001n", 1001, 2},
	{"1e-9", 1, 1},
	{"1e-300", 1, 1},
	{"-1e-300", -1, -1},
	{"0e99999999999999999999", 0, 0},
	{"1k", 1000000, 1000},
	{"1M", 1000000000, 1000000},
	{"2G", 2000000000000, 2000000000},
	{"3T", 3000000000000000, 3000000000000},
	{"4P", 4000000000000000000, 4000000000000000},
	{"5E", MAX, 5000000000000000000},
	{"1e3", 1000000, 1000},
	{"1E3", 1000000, 1000},
	{"1E", MAX, 1000000000000000000},
	{"1E6", 1000000000, 1000000},
	{"1e+6", 1000000000, 1000000},
	{"12e6", 12000000000, 12000000},
	{"1.25e1", 12500, 13},
	{"125E-1", 12500, 13},
	{"1Ki", 1024000, 1024},
	{"1.5Ki", 1536000, 1536},
	{"0.0001Ki", 103, 1}, /* 0.1024 */
	{"1Mi", 1048576000, 1048576},
	{"1.5Gi", 1610612736000, 1610612736},
	{"-1.5Gi", -1610612736000, -1610612736},
	{"1.0000000001Gi", 1073741824108, 1073741825},
	{"1Ti", 1099511627776000, 1099511627776},
	{"1Pi", 1125899906842624000, 1125899906842624},
	{"1Ei", MAX, 1152921504606846976},
	{"7.9999999999999999999Ei", MAX, MAX}, /* 2^63 - 0.92 rounds up to 2^63 */
	{"8Ei", MAX, MAX},
	{"10Ei", MAX, MAX},
	{"-10Ei", -MAX, -MAX},
	{"9223372036854775807", MAX, MAX},
	{"-9223372036854775807", -MAX, -MAX},
	{"9223372036854775806", MAX, MAX - 1},
	{"9223372036854775808", MAX, MAX},
	{"9223372036854775806.1", MAX, MAX},
	{"9223372036854775.807", MAX, 9223372036854776},
	{"9223372036854775.8061", MAX, 9223372036854776},
	{"9223372036854775.806", MAX - 1, 9223372036854776},
	{"99999999999999999999999999999999999999999999999999", MAX, MAX},
	{"1e19", MAX, MAX},
	{"1e999999999999999999999", MAX, MAX},
	{"-1e999999999999999999999", -MAX, -MAX},
	{"1e-999999999999999999999", 1, 1},
	{"100000000000000000000000000000000000000000000e-42", 100000, 100},
	{"0.00000000000000000000000000000000000000000000001e47", 1000, 1},
	{"3.0000000000000000000000000000000000000000000000000", 3000, 3},
	{"3.0000000000000000000000000000000000000000000000001", 3001, 4},
	/* 2^-60, so exactly one of 2^60 parts, and a hair more than it */
	{"0.000000000000000000867361737988403547205962240695953369140625Ei", 1000, 1},
	{"0.0000000000000000008673617379884035472059622406959533691406250001Ei", 1001, 2},
};

static void test_values(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(value_cases) / sizeof(value_cases[0]); i++) {
		const struct value_case *c = &value_cases[i];
		struct error error = {""};
		int64_t milli = -7, units = -7;

		if (quantity_parse_milli(c->text, &milli, &error) ||
		    quantity_parse_units(c->text, &units, &error))
			fail_msg("%s: %s", c->text, error.text);
		if (milli != c->milli || units != c->units)
			fail_msg("%s: %lld milli, %lld units", c->text, (long long)milli,
				 (long long)units);
	}
}

static void test_garbage(void **state)
{
	static const char *const cases[] = {
		"",	" ",	    "1 ",    " 1",     "+",	  "-",	   "+-1",  ".",	   "..",
		"Ki",	"m",	    "1.1.",  "1..1",   "1,5",	  "1e",	   "1e+",  "1e-",  "1e1.5",
		"1ee3", "1e3Ki",    "1E3m",  "1Ki3",   "1ki",	  "1K",	   "1mi",  "1MI",  "1KiB",
		"1B",	"0x10",	    "1i",    "1.5Eii", "NaN",	  "inf",   "five", "1 Gi", "1Gi\n",
		"1\n",	"\xc2\xb5", "1--1",  "-e1",    "1e 3",	  "1e+-3", "1mm",  "1nn",  "--1",
		"1+",	"1-",	    "1_000", "1e3e3",  "1.5.5Gi",
	};
	struct error error;
	int64_t value = 42;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		error.text[0] = '\0';
		if (quantity_parse_milli(cases[i], &value, &error) != -EINVAL)
			fail_msg("\"%s\" was taken", cases[i]);
		assert_int_equal(quantity_parse_units(cases[i], &value, NULL), -EINVAL);
		assert_non_null(strstr(error.text, cases[i]));
	}
	assert_int_equal(value, 42);
}

static void test_overlong(void **state)
{
	size_t len = 100000;
	char *text = mem_alloc(len + 3);
	int64_t value;

	(void)state;
	memset(text, '9', len);
	memcpy(text + len, "m", 2);
	assert_int_equal(quantity_parse_units(text, &value, NULL), 0);
	assert_true(value == MAX);
	memset(text, '0', len);
	text[1] = '.';
	text[len - 1] = '1';
	memcpy(text + len, "Ei", 3);
	assert_int_equal(quantity_parse_units(text, &value, NULL), 0);
	assert_true(value == 1);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_overlong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
