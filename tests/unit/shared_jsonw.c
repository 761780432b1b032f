/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/jsonw.h"

static struct buf out;
static struct jsonw writer;

static void start(void)
{
	buf_clear(&out);
	jsonw_init(&writer, &out);
}

static void test_commas(void **state)
{
	(void)state;
	start();
	jsonw_object_open(&writer);
	jsonw_key(&writer, "empty");
	jsonw_object_open(&writer);
	jsonw_object_close(&writer);
	jsonw_key(&writer, "list");
	jsonw_array_open(&writer);
	jsonw_int(&writer, 1);
	jsonw_array_open(&writer);
	jsonw_array_close(&writer);
	jsonw_object_open(&writer);
	jsonw_key_bool(&writer, "a", true);
	jsonw_key_null(&writer, "b");
	jsonw_object_close(&writer);
	jsonw_null(&writer);
	jsonw_array_close(&writer);
	jsonw_key_string(&writer, "s", "x");
	jsonw_key_int(&writer, "i", -5);
	jsonw_key_fixed(&writer, "f", 1.5, 3);
	jsonw_key_bool(&writer, "no", false);
	jsonw_object_close(&writer);
	assert_string_equal(out.data, "{\"empty\":{},\"list\":[1,[],{\"a\":true,\"b\":null},null],"
				      "\"s\":\"x\",\"i\":-5,\"f\":1.5,\"no\":false}");
}

static void test_strings(void **state)
{
	static const struct {
		const char *text;
		const char *json;
	} cases[] = {
		{NULL, "null"},
		{"", "\"\""},
		{"plain /~", "\"plain /~\""},
		{"a\"b\\c", "\"a\\\"b\\\\c\""},
		{"\x01\n\t\x1f\x7f", "\"\\u0001\\u000a\\u0009\\u001f\x7f\""},
		{"gr\xC3\xBC\xC3\x9F", "\"gr\xC3\xBC\xC3\x9F\""},
		{"\xE2\x82\xAC \xF0\x9F\x98\x80", "\"\xE2\x82\xAC \xF0\x9F\x98\x80\""},
		{"\xF4\x8F\xBF\xBF", "\"\xF4\x8F\xBF\xBF\""},
		{"a\x80z", "\"a\xEF\xBF\xBDz\""},
		{"\xC3", "\"\xEF\xBF\xBD\""},
		{"\xC0\x80", "\"\xEF\xBF\xBD\xEF\xBF\xBD\""},
		{"\xE2\x82", "\"\xEF\xBF\xBD\xEF\xBF\xBD\""},
		{"\xED\xA0\x80", "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""},
		{"\xE0\x9F\xBF", "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""},
		{"\xF4\x90\x80\x80", "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""},
		{"\xF5x", "\"\xEF\xBF\xBDx\""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		start();
		jsonw_string(&writer, cases[i].text);
		assert_string_equal(out.data, cases[i].json);
	}
	start();
	jsonw_object_open(&writer);
	jsonw_key_int(&writer, "k\"\n", 1);
	jsonw_object_close(&writer);
	assert_string_equal(out.data, "{\"k\\\"\\u000a\":1}");
}

/* What c, which is no part of a longer character, is written as. */
static int escape(unsigned char c, char *to, size_t size)
{
	if (c < 0x20)
		return snprintf(to, size, "\\u%04x", c);
	if (c >= 0x80)
		return snprintf(to, size, "\xEF\xBF\xBD");
	return snprintf(to, size, "%s%c", c == '"' || c == '\\' ? "\\" : "", c);
}

/*
 * Text is scanned in blocks that overlap: every character at every place of texts of all lengths up
 * to three of them, beside plain ones.
 */
static void test_every_character_everywhere(void **state)
{
	enum { LENGTHS = 50 };
	char plain[LENGTHS + 1], text[LENGTHS + 1], want[LENGTHS + 16];

	(void)state;
	for (size_t i = 0; i < LENGTHS; i++)
		plain[i] = (char)(' ' + 33 + i % 26);
	for (size_t len = 1; len < LENGTHS; len++) {
		for (size_t at = 0; at < len * 255; at++) {
			size_t place = at / 255, end;

			memcpy(text, plain, len);
			text[len] = '\0';
			text[place] = (char)(1 + at % 255);
			start();
			jsonw_string(&writer, text);
			want[0] = '"';
			memcpy(want + 1, plain, place);
			end = 1 + place;
			end += (size_t)escape((unsigned char)text[place], want + end, 8);
			snprintf(want + end, sizeof(want) - end, "%.*s\"", (int)(len - place - 1),
				 plain + place + 1);
			if (strcmp(out.data, want) != 0)
				fail_msg("%s, not %s", out.data, want);
		}
	}
}

static void test_integers(void **state)
{
	(void)state;
	start();
	jsonw_array_open(&writer);
	jsonw_int(&writer, 0);
	jsonw_int(&writer, INT64_MIN);
	jsonw_int(&writer, INT64_MAX);
	jsonw_uint(&writer, UINT64_MAX);
	jsonw_array_close(&writer);
	assert_string_equal(out.data,
			    "[0,-9223372036854775808,9223372036854775807,18446744073709551615]");
}

static void test_fixed(void **state)
{
	static const struct {
		double value;
		int decimals;
		const char *json;
	} cases[] = {
		{0, 6, "0"},
		{-0.0, 6, "0"},
		{1, 6, "1"},
		{100, 0, "100"},
		{12.5, 6, "12.5"},
		{-3.25, 6, "-3.25"},
		{0.1 + 0.2, 6, "0.3"},
		{93.12345678901234567, 6, "93.123457"},
		{0.0000004, 6, "0"},
		{-0.0000004, 6, "0"},
		{0.0000005, 6, "0.000001"},
		{0.000001, 6, "0.000001"},
		{0.0001, 6, "0.0001"},
		{9.9999999, 6, "10"},
		{1.005, 1, "1"},
		{2.5, 0, "3"},
		{-2.5, 0, "-3"},
		{1234567890123.0, 9, "1234567890123"},
		{123456789.987654321, 9, "123456789.9876543"},
		{1e15, 6, "1000000000000000"},
		{0x1p53, 0, "9007199254740992"},
		{1e22, 6, "10000000000000000000000"},
		{-1e22, 3, "-10000000000000000000000"},
		{NAN, 3, "null"},
		{INFINITY, 3, "null"},
		{-INFINITY, 0, "null"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		start();
		jsonw_fixed(&writer, cases[i].value, cases[i].decimals);
		assert_string_equal(out.data, cases[i].json);
	}
	start();
	jsonw_fixed(&writer, 1.7976931348623157e308, 9);
	assert_int_equal(out.len, 309);
}

static void test_exact(void **state)
{
	static const double values[] = {0.1, 1.0 / 3, 1e-300, 4.9e-324, 1.7976931348623157e308, 0};

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		start();
		jsonw_exact(&writer, values[i]);
		assert_true(strtod(out.data, NULL) == values[i]);
	}
	start();
	jsonw_array_open(&writer);
	jsonw_exact(&writer, NAN);
	jsonw_exact(&writer, INFINITY);
	jsonw_array_close(&writer);
	assert_string_equal(out.data, "[null,null]");
}

static int finish(void **state)
{
	(void)state;
	buf_fini(&out);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_commas),	 cmocka_unit_test(test_strings),
		cmocka_unit_test(test_integers), cmocka_unit_test(test_fixed),
		cmocka_unit_test(test_exact),	 cmocka_unit_test(test_every_character_everywhere),
	};

	return cmocka_run_group_tests(tests, NULL, finish);
}
