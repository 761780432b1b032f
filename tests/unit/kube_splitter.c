/* SPDX-License-Identifier: Apache-2.0 */
/* The splitter against lists and watches cut at every place, and against what is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/edge/kube/splitter.h"
#include "shared/buf.h"
#include "shared/mem.h"

/* What was found, each object followed by a bar. */
static void on_object(void *ctx, const char *json, size_t len)
{
	buf_add(ctx, json, len);
	buf_add_char(ctx, '|');
}

/* Feeds a copy of exactly that length, so that a sanitizer sees what is read beyond it. */
static int feed_copy(struct splitter *s, const char *data, size_t len, struct error *why)
{
	char *copy = mem_alloc(len ? len : 1);
	int rc;

	memcpy(copy, data, len);
	rc = splitter_feed(s, copy, len, why);
	free(copy);
	return rc;
}

struct outcome {
	struct buf found;
	struct splitter s;
	struct error why;
	int rc;
};

/* In chunks of `step` bytes, the first of `first`. */
static void split(struct outcome *o, enum splitter_form form, size_t most, const char *text,
		  size_t first, size_t step)
{
	size_t len = strlen(text), at = 0, part = first < len ? first : len;

	*o = (struct outcome){0};
	splitter_init(&o->s, form, on_object, &o->found);
	if (most)
		o->s.most = most;
	while (!o->rc && at < len) {
		o->rc = feed_copy(&o->s, text + at, part, &o->why);
		at += part;
		part = step < len - at ? step : len - at;
	}
	if (!o->rc)
		o->rc = splitter_end(&o->s, &o->why);
}

static void forget(struct outcome *o)
{
	splitter_fini(&o->s);
	buf_fini(&o->found);
}

static const char *found(const struct outcome *o)
{
	return o->found.data ? o->found.data : "";
}

static const char list[] =
	"{ \"kind\" : \"PodList\",\n\"unknown\":{\"items\":[1,\"]}\"]},\"n\":-1.5e3,"
	"\"metadata\":{\"resourceVersion\":\"10245\",\"continue\":\"eyJ2\\\"\",\"x\":[]},"
	"\"items\" : [{\"a\":\"}\\\"{[\",\"b\":[[],{}]} , {\"c\":\"\\\\\"}, \"text\\\\\\\"\" "
	",null,12,"
	"{\"d\":\"\\\\\\\\\",\"e\":{\"items\":[{}]}}\n],"
	"\"apiVersion\":\"v1\"}\n";
static const char list_found[] = "{\"a\":\"}\\\"{[\",\"b\":[[],{}]}|{\"c\":\"\\\\\"}|"
				 "\"text\\\\\\\"\"|null|12|"
				 "{\"d\":\"\\\\\\\\\",\"e\":{\"items\":[{}]}}|";

static void assert_list(const struct outcome *o)
{
	assert_int_equal(o->rc, 0);
	assert_string_equal(found(o), list_found);
	assert_string_equal(o->s.kind, "PodList");
	assert_string_equal(o->s.resource_version, "10245");
	assert_string_equal(o->s.continue_token, "eyJ2\"");
}

static void list_is_split_at_every_border(void **state)
{
	struct outcome o;

	(void)state;
	for (size_t first = 0; first <= sizeof(list); first++)
		for (size_t step = 1; step < sizeof(list); step = step < 4 ? step + 1 : step * 3) {
			split(&o, SPLITTER_LIST, 0, list, first, step);
			assert_list(&o);
			forget(&o);
		}
}

static void empty_lists_have_no_objects(void **state)
{
	static const char *const lists[] = {
		"{\"items\":[]}", "{\"items\":null}", "{\"items\": [ ] , \"metadata\":{}}",
		"{\"kind\":\"\",\"metadata\":{\"continue\":\"\"},\"items\":[]}"};
	struct outcome o;

	(void)state;
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		for (size_t step = 1; step < 4; step++) {
			split(&o, SPLITTER_LIST, 0, lists[i], step, step);
			assert_int_equal(o.rc, 0);
			assert_string_equal(found(&o), "");
			assert_null(o.s.continue_token);
			assert_null(o.s.kind);
			forget(&o);
		}
}

static void what_is_no_list_is_refused_with_its_place(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{"", "byte 1 of the list: the end, too early"},
		{"<html>", "byte 1 of the list: no object"},
		{"[1]", "byte 1 of the list: no object"},
		{"{}", "byte 3 of the list: it had no items"},
		{"{\"kind\":\"Status\"}", "byte 18 of the list: it had no items"},
		{"{\"items\":{}}", "byte 10 of the list: items are no array"},
		{"{\"items\":nothing}", NULL},
		{"{\"items\":[{},]}", "byte 14 of the list: no value"},
		{"{\"items\":[,{}]}", "byte 11 of the list: no value"},
		{"{\"items\":[{} {}]}",
		 "byte 14 of the list: neither a comma nor the end of the items"},
		{"{\"items\":[]]",
		 "byte 12 of the list: neither a comma nor the end of the object"},
		{"{\"items\":[],}", "byte 13 of the list: no name of a member"},
		{"{\"items\" []}", "byte 10 of the list: no colon"},
		{"{items:[]}", "byte 2 of the list: no name of a member"},
		{"{\"items\":[]} {", "byte 14 of the list: more behind the end"},
		{"{\"metadata\":{\"resourceVersion\":}", NULL},
		{"{\"items\":[{\"a\":1}", "byte 18 of the list: the end, too early"},
		{"{\"items\":[{\"a\":\"", "byte 17 of the list: the end, too early"},
		{"{\"a\":}", "byte 6 of the list: no value"},
		{"{\"a\":]}", "byte 6 of the list: no value"},
	};
	struct outcome o;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (size_t step = 1; step < 100; step *= 7) {
			split(&o, SPLITTER_LIST, 0, cases[i].text, step, step);
			assert_int_equal(o.rc, -EBADMSG);
			if (cases[i].why)
				assert_string_equal(o.why.text, cases[i].why);
			assert_int_equal(splitter_feed(&o.s, "{", 1, &o.why), -EBADMSG);
			forget(&o);
		}
}

static void too_large_object_is_skipped_and_counted(void **state)
{
	static const char text[] =
		"{\"items\":[{\"a\":1},{\"a\":\"0123456789\"},{\"b\":2},{\"c\":45678}]}";
	struct outcome o;

	(void)state;
	for (size_t step = 1; step < sizeof(text); step++) {
		split(&o, SPLITTER_LIST, 11, text, step, step);
		assert_int_equal(o.rc, 0);
		assert_string_equal(found(&o), "{\"a\":1}|{\"b\":2}|");
		assert_int_equal(o.s.too_large, 2);
		forget(&o);
	}
	split(&o, SPLITTER_LIST, 12, text, 3, 3);
	assert_string_equal(found(&o), "{\"a\":1}|{\"b\":2}|{\"c\":45678}|");
	assert_int_equal(o.s.too_large, 1);
	forget(&o);
}

static void object_of_eight_mebibytes_is_refused_without_keeping_it(void **state)
{
	struct splitter s;
	struct buf found_all = BUF_INIT;
	struct error why;
	char *chunk = mem_alloc(1 << 20);

	(void)state;
	memset(chunk, 'x', 1 << 20);
	splitter_init(&s, SPLITTER_LIST, on_object, &found_all);
	assert_int_equal(splitter_feed(&s, "{\"items\":[{\"a\":\"", 16, &why), 0);
	for (int i = 0; i < 8; i++)
		assert_int_equal(splitter_feed(&s, chunk, 1 << 20, &why), 0);
	assert_int_equal(s.held.cap, 0);
	assert_int_equal(splitter_feed(&s, "\"},{}]}", 7, &why), 0);
	assert_int_equal(splitter_end(&s, &why), 0);
	assert_string_equal(found_all.data, "{}|");
	assert_int_equal(s.too_large, 1);
	splitter_fini(&s);
	buf_fini(&found_all);
	free(chunk);
}

static void long_member_of_the_list_is_refused(void **state)
{
	char *text = mem_alloc(70000);
	struct outcome o;

	(void)state;
	memset(text, 'a', 70000);
	memcpy(text, "{\"metadata\":\"", 13);
	text[69999] = '\0';
	text[69998] = '"';
	for (size_t step = 100; step < 100000; step *= 10) {
		split(&o, SPLITTER_LIST, 0, text, step, step);
		assert_int_equal(o.rc, -EBADMSG);
		assert_non_null(strstr(o.why.text, "too long"));
		assert_true(o.s.held.cap < 150000);
		forget(&o);
	}
	/* One that nobody asks for may be long. */
	memcpy(text, "{\"xetadata\":\"", 13);
	split(&o, SPLITTER_LIST, 0, text, 100, 100);
	assert_non_null(strstr(o.why.text, "too early"));
	assert_true(o.s.held.cap < 1000);
	forget(&o);
	free(text);
}

/* A quote that is far away must not be looked for once for each of many escapes. */
static void many_escapes_take_linear_time(void **state)
{
	enum { LEN = 16 << 20 };
	char *text = mem_alloc(LEN);
	struct splitter s;
	struct error why;

	(void)state;
	memset(text, '\\', LEN);
	splitter_init(&s, SPLITTER_LIST, on_object, NULL);
	assert_int_equal(splitter_feed(&s, "{\"a\":\"", 6, &why), 0);
	assert_int_equal(splitter_feed(&s, text, LEN, &why), 0);
	assert_int_equal(splitter_feed(&s, "\",\"items\":[]}", 13, &why), 0);
	assert_int_equal(splitter_end(&s, &why), 0);
	splitter_fini(&s);
	free(text);
}

static void lines_are_split_at_every_border(void **state)
{
	static const char text[] =
		"{\"a\":1}\n\n{\"b\":\"\\n\"}\n{\"long\":\"0123456789\"}\n{}\n{\"half";
	struct outcome o;

	(void)state;
	for (size_t first = 0; first < sizeof(text); first++)
		for (size_t step = 1; step < sizeof(text); step++) {
			split(&o, SPLITTER_LINES, 12, text, first, step);
			assert_int_equal(o.rc, 0);
			assert_string_equal(found(&o), "{\"a\":1}|{\"b\":\"\\n\"}|{}|");
			assert_int_equal(o.s.too_large, 1);
			forget(&o);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(list_is_split_at_every_border),
		cmocka_unit_test(empty_lists_have_no_objects),
		cmocka_unit_test(what_is_no_list_is_refused_with_its_place),
		cmocka_unit_test(too_large_object_is_skipped_and_counted),
		cmocka_unit_test(object_of_eight_mebibytes_is_refused_without_keeping_it),
		cmocka_unit_test(long_member_of_the_list_is_refused),
		cmocka_unit_test(many_escapes_take_linear_time),
		cmocka_unit_test(lines_are_split_at_every_border),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
