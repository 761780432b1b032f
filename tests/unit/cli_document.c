/* SPDX-License-Identifier: Apache-2.0 */
/* Members by path, times, and items as the bytes they arrived in. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/cli/pages.h"
#include "shared/mem.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void finds_members(void **state)
{
	cJSON *doc = cJSON_Parse("{\"a\":{\"5m\":{\"x\":1.5}},\"t\":\"y\",\"n\":null}");
	(void)state;

	assert_true(document_number(doc, "a.5m.x") == 1.5);
	assert_string_equal(document_text(doc, "t"), "y");
	assert_true(document_is_null(doc, "n"));
	assert_false(document_is_null(doc, "m"));
	assert_false(document_is_null(doc, "a"));
	assert_true(isnan(document_number(doc, "t")));
	assert_true(isnan(document_number(doc, "t.x")));
	assert_true(isnan(document_number(doc, "A.5m.x")));
	assert_null(document_text(doc, "a"));
	assert_null(document_text(NULL, "a"));
	cJSON_Delete(doc);
}

static void reads_times(void **state)
{
	static const struct {
		const char *text;
		double want;
	} cases[] = {
		{"1970-01-01T00:00:01Z", 1},
		{"2026-01-31T12:00:03Z", 1769860803},
		{"2026-01-31T12:00:03.25Z", 1769860803.25},
		{"2026-01-31T12:00:03+01:00", 1769857203},
		{"2026-01-31T12:00:03", NAN},
		{"2026-01-31", NAN},
		{"", NAN},
	};
	(void)state;

	for (size_t i = 0; i < COUNT(cases); i++) {
		cJSON *doc = cJSON_CreateObject();
		double got;

		cJSON_AddStringToObject(doc, "t", cases[i].text);
		got = document_time(doc, "t");
		assert_true(isnan(cases[i].want) ? isnan(got) : fabs(got - cases[i].want) < 1e-6);
		cJSON_Delete(doc);
	}
}

static void finds_items_as_they_came(void **state)
{
	static const struct {
		const char *text, *want; /* items separated by | ; NULL: there are none */
	} cases[] = {
		{"{\"items\":[]}", ""},
		{" { \"items\" : [ 1 , {\"a\":[2,3]} ] } ", "1|{\"a\":[2,3]}"},
		{"{\"a\":\"items\",\"b\":{\"items\":[9]},\"items\":[\"],\\\"\",[]],\"c\":1}",
		 "\"],\\\"\"|[]"},
		{"{\"x\":\"\\\\\",\"items\":[7]}", "7"},
		{"{\"items\":3}", NULL},
		{"{}", NULL},
		{"[]", NULL},
		{"", NULL},
		{"{\"items\":[", NULL},
		{"{\"items\"", NULL},
		{"{\"items", NULL},
		{"{\"a\":1 \"items\":[1]}", NULL},
	};
	(void)state;

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct buf got = BUF_INIT;
		struct span items, item;
		bool found;
		/*
		 * A copy of the exact length lets the address sanitizer see every byte read past
		 * it.
		 */
		size_t len = strlen(cases[i].text);
		char *text = mem_alloc(len);

		memcpy(text, cases[i].text, len);
		found = document_find_items(text, len, &items);
		assert_int_equal(found, cases[i].want != NULL);
		buf_add_str(&got, "");
		while (found && document_next_item(&items, &item)) {
			buf_printf(&got, "%s%.*s", got.len ? "|" : "", (int)item.len, item.start);
		}
		if (found)
			assert_string_equal(got.data, cases[i].want);
		buf_fini(&got);
		free(text);
	}
}

static bool keep_even(const struct list *l, const cJSON *item)
{
	(void)l;
	return (int)item->valuedouble % 2 == 0;
}

static void joins_pages_without_touching_items(void **state)
{
	static const char *const pages[] = {
		"{\"time\":\"1\",\"items\":[1,2.00,4],\"continue\":\"x\"}\n",
		"{\"time\":\"2\",\"items\":[]}",
		"{\"time\":\"3\", \"items\":[ 6 ]}\n",
	};
	struct buf out = BUF_INIT;
	struct error error;
	struct list list;
	(void)state;

	list_init(&list, keep_even, NULL);
	for (size_t i = 0; i < COUNT(pages); i++) {
		buf_clear(&list.page);
		buf_add_str(&list.page, pages[i]);
		assert_int_equal(list_read_page(&list, &error), 0);
		assert_int_equal(list.more != NULL, i == 0);
	}
	list_print_json(&list, &out);
	assert_string_equal(out.data, "{\"time\":\"3\", \"items\":[2.00,4,6]}\n");
	list_fini(&list);
	buf_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_members),
		cmocka_unit_test(reads_times),
		cmocka_unit_test(finds_items_as_they_came),
		cmocka_unit_test(joins_pages_without_touching_items),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
