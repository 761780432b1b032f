/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "aggregator/model/labels.h"

#define TEN	    "abcdefghij"
#define FIFTY	    TEN TEN TEN TEN TEN
#define LONG_NAME   FIFTY TEN "abc" /* 63 characters */
#define LONG_PREFIX FIFTY FIFTY FIFTY FIFTY FIFTY "abc" /* 253 */

static cJSON *json(const char *text)
{
	cJSON *tree = cJSON_Parse(text);

	if (!tree)
		fail_msg("the test's own JSON is broken: %s", text);
	return tree;
}

static struct labels labels(const char *text)
{
	cJSON *tree = json(text);
	struct labels l;

	assert_int_equal(labels_read(tree, &l, NULL), 0);
	cJSON_Delete(tree);
	return l;
}

static void test_labels_are_sorted_and_found(void **state)
{
	struct labels l =
		labels("{\"b\":\"2\",\"a/x\":\"\",\"c\":null,\"a\":\"1\",\"b\":\"9\",\"c\":\"5\"}");

	(void)state;
	assert_int_equal(l.count, 3);
	assert_string_equal(l.of[0].key, "a");
	assert_string_equal(l.of[1].key, "a/x");
	assert_string_equal(labels_find(&l, "a"), "1");
	assert_string_equal(labels_find(&l, "a/x"), "");
	assert_string_equal(labels_find(&l, "b"), "2");
	assert_null(labels_find(&l, "c"));
	assert_null(labels_find(&l, ""));
	assert_null(labels_find(&l, "z"));
	labels_fini(&l);
	assert_int_equal(l.count, 0);
}

static void test_no_labels(void **state)
{
	struct labels l = labels("{}");

	(void)state;
	assert_null(labels_find(&l, "a"));
	labels_fini(&l);
	l = labels("null");
	assert_int_equal(l.count, 0);
	assert_int_equal(labels_read(NULL, &l, NULL), 0);
	assert_int_equal(l.count, 0);
}

static void test_labels_refused(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{"[]", "must be an object of strings"},
		{"5", "must be an object of strings"},
		{"{\"a\":\"b\",\"n\":5}", "\"n\" must be a string"},
		{"{\"o\":{}}", "\"o\" must be a string"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cJSON *tree = json(cases[i].text);
		struct labels l = {77, NULL};
		struct error error;

		assert_int_equal(labels_read(tree, &l, &error), -EINVAL);
		assert_int_equal(l.count, 77);
		assert_string_equal(error.text, cases[i].why);
		cJSON_Delete(tree);
	}
}

static bool starts_with_a(const char *key)
{
	return key[0] == 'a';
}

static void test_some_labels(void **state)
{
	cJSON *tree = json("{\"b\":5,\"a1\":\"x\",\"c\":\"y\",\"a0\":\"z\"}");
	struct labels l;

	(void)state;
	assert_int_equal(labels_read_some(tree, starts_with_a, &l, NULL), 0);
	assert_int_equal(l.count, 2);
	assert_string_equal(labels_find(&l, "a0"), "z");
	assert_null(labels_find(&l, "c"));
	labels_fini(&l);
	cJSON_Delete(tree);
}

/* Labels that selectors are tried on; a case is a word of y and n, one for each. */
static const char *const worlds[] = {
	"{}",
	"{\"app\":\"web\"}",
	"{\"app\":\"db\",\"tier\":\"\"}",
	"{\"app\":\"web\",\"x.io/env\":\"prod\",\"in\":\"notin\"}",
};

static void check_matches(const struct selector *s, const char *text, const char *expect)
{
	for (size_t i = 0; i < sizeof(worlds) / sizeof(worlds[0]); i++) {
		struct labels l = labels(worlds[i]);

		if (selector_matches(s, &l) != (expect[i] == 'y'))
			fail_msg("%s on %s: %c was expected", text, worlds[i], expect[i]);
		labels_fini(&l);
	}
}

static void test_selectors_parsed(void **state)
{
	static const struct {
		const char *text, *expect;
	} cases[] = {
		{"", "yyyy"},
		{" \t\n ", "yyyy"},
		{"app=web", "nyny"},
		{"app==web", "nyny"},
		{" app  =  web ", "nyny"},
		{"app!=web", "ynyn"},
		{"app", "nyyy"},
		{"!app", "ynnn"},
		{"! app", "ynnn"},
		{"app in (web)", "nyny"},
		{"app in(web,db)", "nyyy"},
		{"app in ( db , cache )", "nnyn"},
		{"app notin (web)", "ynyn"},
		{"app notin(web,db)", "ynnn"},
		{"tier=", "nnyn"},
		{"tier!=", "yyny"},
		{"tier=,app", "nnyn"},
		{"tier in (,x)", "nnyn"},
		{"tier in (x,)", "nnyn"},
		{"app=web,x.io/env=prod", "nnny"},
		{"app=web,!x.io/env", "nynn"},
		{"app,app!=db", "nyny"},
		{"app=in", "nnnn"},
		{"app in (in,notin,web)", "nyny"},
		{"x.io/env!=dev,app", "nyyy"},
		{"AZaz09!=A.Z-a_z.0-9", "yyyy"},
		{"app=web,app=db", "nnnn"},
		{"app!=web,a-b.c.io/k!=v", "ynyn"},
		{LONG_PREFIX "/k!=v," LONG_NAME "!=v", "yyyy"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct error error = {""};
		struct selector *s;

		if (selector_parse(cases[i].text, &s, &error))
			fail_msg("%s: %s", cases[i].text, error.text);
		check_matches(s, cases[i].text, cases[i].expect);
		selector_free(s);
	}
}

static void test_selectors_not_parsed(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{",", "the key of a label is expected, and not \",\" at character 1"},
		{"a,", "the key of a label is expected at the end"},
		{"a,,b", "the key of a label is expected, and not \",\" at character 3"},
		{"=a", "the key of a label is expected, and not \"=\" at character 1"},
		{"a b", "one of = == != in notin is expected, and not \"b\" at character 3"},
		{"a=b c", "\",\" is expected, and not \"c\" at character 5"},
		{"a=b=c", "\",\" is expected, and not \"=\" at character 4"},
		{"!a=b", "\",\" is expected, and not \"=\" at character 3"},
		{"!!a", "the key of a label is expected, and not \"!\" at character 2"},
		{"in", "the key of a label is expected, and not \"in\" at character 1"},
		{"a in b", "\"(\" is expected, and not \"b\" at character 6"},
		{"a in (b", "\",\" or \")\" is expected at the end"},
		{"a in ()", "a value is expected, and not \")\" at character 7"},
		{"a in (b c)", "\",\" or \")\" is expected, and not \"c\" at character 9"},
		{"a in (b))", "\",\" is expected, and not \")\" at character 9"},
		{"a>5", "one of = == != in notin is expected, and not \">\" at character 2"},
		{"a=b/c", "a value (letters, digits, -, _ and .) is expected, and not \"b/c\" at "
			  "character 3"},
		{"-a", "the key of a label is expected, and not \"-a\" at character 1"},
		{"a/b/c", "the key of a label is expected, and not \"a/b/c\" at character 1"},
		{"/b", "the key of a label is expected, and not \"/b\" at character 1"},
		{"A.io/b", "the key of a label is expected, and not \"A.io/b\" at character 1"},
		{"a..b/c", "the key of a label is expected, and not \"a..b/c\" at character 1"},
		{"-a.b/c", "the key of a label is expected, and not \"-a.b/c\" at character 1"},
		{"a.b-/c", "the key of a label is expected, and not \"a.b-/c\" at character 1"},
		{".b/c", "the key of a label is expected, and not \".b/c\" at character 1"},
		{"a./c", "the key of a label is expected, and not \"a./c\" at character 1"},
		{"a_b/c", "the key of a label is expected, and not \"a_b/c\" at character 1"},
		{"a-", "the key of a label is expected, and not \"a-\" at character 1"},
		{LONG_PREFIX "x/k", "the key of a label is expected"},
		{LONG_NAME "x", "the key of a label is expected"},
		{"notin", "the key of a label is expected, and not \"notin\" at character 1"},
		{"a<5", "one of = == != in notin is expected, and not \"<\" at character 2"},
		{"a in (b/c)", "a value (letters, digits, -, _ and .) is expected"},
		{"a-.b/c", "the key of a label is expected, and not \"a-.b/c\" at character 1"},
		{"a.-b/c", "the key of a label is expected, and not \"a.-b/c\" at character 1"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct selector *s = NULL;
		struct error error = {""};

		assert_int_equal(selector_parse(cases[i].text, &s, &error), -EINVAL);
		assert_null(s);
		assert_ptr_equal(strstr(error.text, "selector \""), error.text);
		if (strlen(cases[i].text) < 64) /* longer ones are cut */
			assert_non_null(strstr(error.text, cases[i].text));
		if (!strstr(error.text, cases[i].why))
			fail_msg("%s", error.text);
	}
}

static void test_long_selector_is_cut_in_the_reason(void **state)
{
	char text[4000];
	struct selector *s;
	struct error error;

	(void)state;
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(selector_parse(text, &s, &error), -EINVAL);
	assert_non_null(strstr(error.text, "at character 1"));
	text[64] = '\0';
	assert_int_equal(selector_parse(text, &s, NULL), -EINVAL);
	text[63] = '\0';
	assert_int_equal(selector_parse(text, &s, &error), 0);
	selector_free(s);
}

static void test_selectors_read(void **state)
{
	static const struct {
		const char *text, *expect;
	} cases[] = {
		{"{}", "yyyy"},
		{"{\"matchLabels\":null,\"matchExpressions\":[]}", "yyyy"},
		{"{\"matchLabels\":{\"app\":\"web\"}}", "nyny"},
		{"{\"matchLabels\":{\"app\":\"web\",\"x.io/env\":\"prod\"}}", "nnny"},
		{"{\"matchExpressions\":[{\"key\":\"app\",\"operator\":\"In\",\"values\":[\"db\","
		 "\"web\"]}]}",
		 "nyyy"},
		{"{\"matchExpressions\":[{\"key\":\"app\",\"operator\":\"NotIn\",\"values\":["
		 "\"db\"]}]}",
		 "yyny"},
		{"{\"matchExpressions\":[{\"key\":\"tier\",\"operator\":\"Exists\"}]}", "nnyn"},
		{"{\"matchExpressions\":[{\"key\":\"tier\",\"operator\":\"DoesNotExist\","
		 "\"values\":[]}]}",
		 "yyny"},
		{"{\"matchLabels\":{\"app\":\"web\"},\"matchExpressions\":[{\"key\":\"in\","
		 "\"operator\":\"DoesNotExist\"}]}",
		 "nynn"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cJSON *tree = json(cases[i].text);
		struct selector *s;

		assert_int_equal(selector_read(tree, &s, NULL), 0);
		cJSON_Delete(tree);
		check_matches(s, cases[i].text, cases[i].expect);
		selector_free(s);
	}
}

static void test_selectors_not_read(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{"null", "must be an object"},
		{"[]", "must be an object"},
		{"{\"matchLabels\":[]}", "matchLabels: must be an object of strings"},
		{"{\"matchLabels\":{\"a\":1}}", "matchLabels: \"a\" must be a string"},
		{"{\"matchFields\":[]}", "\"matchFields\" is not known"},
		{"{\"matchExpressions\":{}}", "matchExpressions: must be a list"},
		{"{\"matchExpressions\":[5]}", "matchExpressions[0]: key must be"},
		{"{\"matchExpressions\":[{\"key\":\"a\"}]}", "operator must be In, NotIn"},
		{"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Exists\"},{\"key\":\"a\","
		 "\"operator\":\"Gt\",\"values\":[\"5\"]}]}",
		 "matchExpressions[1]: operator must be In, NotIn, Exists or DoesNotExist, and not "
		 "\"Gt\""},
		{"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\"}]}",
		 "values must be a list of some strings with operator In"},
		{"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\",\"values\":[]}]}",
		 "list of some strings"},
		{"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"a\",7]}]"
		 "}",
		 "values must be strings"},
		{"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Exists\",\"values\":[\"x\"]"
		 "}]}",
		 "list of no strings with operator Exists"},
		{"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Exists\",\"values\":7}]}",
		 "list of no strings"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cJSON *tree = json(cases[i].text);
		struct selector *s = NULL;
		struct error error = {""};

		assert_int_equal(selector_read(tree, &s, &error), -EINVAL);
		assert_null(s);
		if (!strstr(error.text, cases[i].why))
			fail_msg("%s: %s", cases[i].text, error.text);
		cJSON_Delete(tree);
	}
	selector_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_labels_are_sorted_and_found),
		cmocka_unit_test(test_no_labels),
		cmocka_unit_test(test_labels_refused),
		cmocka_unit_test(test_some_labels),
		cmocka_unit_test(test_selectors_parsed),
		cmocka_unit_test(test_selectors_not_parsed),
		cmocka_unit_test(test_long_selector_is_cut_in_the_reason),
		cmocka_unit_test(test_selectors_read),
		cmocka_unit_test(test_selectors_not_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
