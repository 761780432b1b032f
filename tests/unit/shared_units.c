/* SPDX-License-Identifier: Apache-2.0 */
/* Quantities as text: where units change, how rounding carries over, and what is not known. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "shared/units.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct one {
	double value;
	const char *want;
};

static void check(const struct one *cases, size_t count, void format(double, char[UNITS_LEN]))
{
	for (size_t i = 0; i < count; i++) {
		char got[UNITS_LEN];

		format(cases[i].value, got);
		assert_string_equal(got, cases[i].want);
	}
}

static void cpu(void **state)
{
	static const struct one cases[] = {
		{0, "0m"},	    {0.04, "0m"},  {0.05, "0.1m"},  {4.25, "4.2m"},  {9.94, "9.9m"},
		{9.96, "10m"},	    {300, "300m"}, {999.4, "999m"}, {999.5, "1.00"}, {1250, "1.25"},
		{128000, "128.00"}, {NAN, "-"},	   {INFINITY, "-"},
	};
	(void)state;

	check(cases, COUNT(cases), units_cpu);
}

static void bytes(void **state)
{
	static const struct one cases[] = {
		{0, "0"},
		{1023, "1023"},
		{1024, "1.0Ki"},
		{1536, "1.5Ki"},
		{1048575, "1.0Mi"},
		{20971520, "20.0Mi"},
		{1073741824.0 * 15.6, "15.6Gi"},
		{1099511627776.0, "1.0Ti"},
		{9223372036854775807.0, "8.0Ei"},
		{NAN, "-"},
	};
	(void)state;

	check(cases, COUNT(cases), units_bytes);
}

static void percent(void **state)
{
	static const struct one cases[] = {
		{0, "0%"},   {0.001, "<1%"}, {0.005, "1%"}, {0.123, "12%"},
		{1, "100%"}, {1.5, "150%"},  {NAN, "-"},
	};
	(void)state;

	check(cases, COUNT(cases), units_percent);
}

static void age(void **state)
{
	static const struct one cases[] = {
		{-1, "0s"},	 {3.9, "3s"},	  {59, "59s"},	    {72, "1m12s"}, {3599, "59m59s"},
		{7500, "2h05m"}, {86400, "1d0h"}, {273600, "3d4h"}, {NAN, "-"},
	};
	(void)state;

	check(cases, COUNT(cases), units_age);
}

static void seconds(void **state)
{
	static const struct one cases[] = {
		{0, "0s"},	{0.01, "<0.1s"}, {0.4, "0.4s"},
		{9.94, "9.9s"}, {12.4, "12s"},	 {NAN, "-"},
	};
	(void)state;

	check(cases, COUNT(cases), units_seconds);
}

static void micros(void **state)
{
	static const struct one cases[] = {
		{-1, "0us"},	 {0.04, "0us"},	    {0.4, "0.4us"},   {9.94, "9.9us"},
		{9.96, "10us"},	 {181.4, "181us"},  {999.4, "999us"}, {999.6, "1.0ms"},
		{12400, "12ms"}, {999400, "999ms"}, {999600, "1.0s"}, {2.54e6, "2.5s"},
		{INFINITY, "-"}, {NAN, "-"},
	};
	(void)state;

	check(cases, COUNT(cases), units_micros);
}

#define GIBI 1073741824.0

static void parts_of_a_capacity(void **state)
{
	static const struct {
		double part, whole;
		const char *cpu, *bytes;
	} cases[] = {
		{300, 4000, "300m/4", "0.3/3.9Ki"},
		{1250, 1500, "1.25/1.50", "1.2/1.5Ki"},
		{NAN, 2000, "-/2", "-/2.0Ki"},
		{300, NAN, "300m/-", "300/-"},
		{NAN, NAN, "-", "-"},
		{512, 2048, "512m/2.05", "0.5/2Ki"},
		{0, 0, "0m/0", "0/0"},
		/* Of much, a small part keeps its digits. */
		{245 * GIBI, 1408 * GIBI, "263066746.88/1511828488.19", "245Gi/1.4Ti"},
		{51.2 * GIBI, 2048 * GIBI, "54975581.39/2199023255.55", "51.2Gi/2Ti"},
		{1500 * GIBI, 2048 * GIBI, "1610612736.00/2199023255.55", "1.5/2Ti"},
		{0, 2048 * GIBI, "0m/2199023255.55", "0.0/2Ti"},
		{32 * GIBI, 320 * GIBI, "34359738.37/343597383.68", "32.0/320Gi"},
	};
	(void)state;

	for (size_t i = 0; i < COUNT(cases); i++) {
		char got[UNITS_LEN];

		units_cpu_of(cases[i].part, cases[i].whole, got);
		assert_string_equal(got, cases[i].cpu);
		units_bytes_of(cases[i].part, cases[i].whole, got);
		assert_string_equal(got, cases[i].bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpu),
		cmocka_unit_test(bytes),
		cmocka_unit_test(percent),
		cmocka_unit_test(age),
		cmocka_unit_test(seconds),
		cmocka_unit_test(micros),
		cmocka_unit_test(parts_of_a_capacity),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
