/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cjson/cJSON.h>
#include <stdlib.h>

#include "shared/mem.h"
#include "shared/utf8.h"

static void validity(void **state)
{
	static const struct {
		const char *text;
		bool good;
	} cases[] = {
		{"", true},
		{"plain", true},
		{"\xc2\x80 \xe0\xa0\x80 \xf4\x8f\xbf\xbf", true},
		{"\xc1\x80", false}, /* overlong */
		{"\xed\xa0\x80", false}, /* a surrogate */
		{"\xf4\x90\x80\x80", false}, /* above U+10FFFF */
		{"a\x80", false},
		{"a\xe2\x82", false}, /* cut */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_int_equal(utf8_is_valid(cases[i].text, strlen(cases[i].text)),
				 cases[i].good);
	/* What lies behind the end is not looked at. */
	assert_false(utf8_is_valid("\xe2\x82\xac", 2));
	assert_true(utf8_is_valid("a\xff", 1));
	assert_true(utf8_is_valid("a\0b", 3));
}

static const struct {
	const char *text, *clean, *json; /* json: of the text in quotes */
} cases[] = {
	{"plain, \xc3\xbc \xe4\xb8\x96 \xf0\x9f\x90\xa7", NULL, NULL},
	{"\033[2J", "?[2J", "\\u001b[2J"},
	{"a\nb\rc\td", "a?b?c?d", "a\\u000ab\\u000dc\\u0009d"},
	{"\x7f", "?", "\\u007f"},
	{"\xc2\x9b"
	 "31m",
	 "?31m", "\\u009b31m"},
	{"\x9b"
	 "31m",
	 "?31m", "\\ufffd31m"},
	{"\xe2\x80\xae\xe2\x81\xa6", "??", "\\u202e\\u2066"},
	{"\xe2\x80\x8b\xef\xbb\xbf\xc2\xad", "???", "\\u200b\\ufeff\\u00ad"},
	{"\xe2\x80\xa8\xe2\x80\xa9", "??", "\\u2028\\u2029"},
	{"\xf3\xa0\x81\x81", "?", "\\udb40\\udc41"}, /* a tag */
	{"a\xe2\x80", "a??", "a\\ufffd\\ufffd"}, /* cut */
	/* What lies beside them may be shown. */
	{"\xe2\x80\x8a\xe2\x80\xaf\xc2\xa0\xc2\xae\xe2\x80\xa6", NULL, NULL},
};

static void cleaned(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const char *want = cases[i].clean ? cases[i].clean : cases[i].text;
		char *text = mem_strdup(cases[i].text);

		assert_int_equal(utf8_is_clean(text), !cases[i].clean);
		utf8_clean(text);
		assert_string_equal(text, want);
		assert_true(utf8_is_clean(text));
		free(text);
	}
}

static void check_json(const char *json, const char *want)
{
	struct buf out = BUF_INIT;

	utf8_add_json(&out, json, strlen(json));
	assert_string_equal(out.data, want);
	buf_fini(&out);
}

static void escaped(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const char *in = cases[i].json ? cases[i].json : cases[i].text;
		char *json =
			mem_printf("{\"%s\\\"\":[\"%s\",\"\\\\\"]}", cases[i].text, cases[i].text);
		char *want = mem_printf("{\"%s\\\"\":[\"%s\",\"\\\\\"]}", in, in);
		cJSON *before = cJSON_Parse(json), *after = cJSON_Parse(want);

		check_json(json, want);
		if (utf8_is_valid(json, strlen(json)))
			assert_true(cJSON_Compare(before, after, true));
		cJSON_Delete(before);
		cJSON_Delete(after);
		free(json);
		free(want);
	}
	/* Between values a blank means as much. */
	check_json("{\n \"a\\nb\":\r\n1\033,\t\xe2\x80\xae\"c\n\":2}\n",
		   "{\n \"a\\nb\": \n1 ,  \"c\\u000a\":2}\n");
	check_json("\"cut\\", "\"cut\\");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(validity),
		cmocka_unit_test(cleaned),
		cmocka_unit_test(escaped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
