/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "aggregator/api/watcher_encode.h"

#define TAIL "\"tags\":{},\"metadata\":{\"dataCenter\":\"\"}"

static void assert_encodes(const struct watcher_answer *a, const char *want)
{
	struct buf out = BUF_INIT;

	watcher_encode(a, &out);
	assert_string_equal(out.data, want);
	buf_fini(&out);
}

static void test_empty_documents(void **state)
{
	struct watcher_node node = {.name = "n"};
	struct watcher_answer a = {.duration = "", .source = ""};

	(void)state;
	assert_encodes(&a, "{\"timestamp\":0,\"window\":{\"duration\":\"\",\"start\":0,\"end\":0},"
			   "\"source\":\"\",\"data\":{\"NodeMetricsMap\":{}}}");
	a.nodes = &node;
	a.node_count = 1;
	assert_encodes(&a, "{\"timestamp\":0,\"window\":{\"duration\":\"\",\"start\":0,\"end\":0},"
			   "\"source\":\"\",\"data\":{\"NodeMetricsMap\":{"
			   "\"n\":{\"metrics\":[]," TAIL "}}}}");
}

static void test_full_document(void **state)
{
	const struct watcher_metric metrics[] = {
		{"host.cpu", "CPU", "AVG", "15m", 12.5},
		{"host.cpu", "CPU", "STD", "15m", 0.25},
	};
	const struct watcher_node nodes[] = {
		{.name = "a", .metrics = metrics, .metric_count = 2},
		{.name = "b\"",
		 .extra = true,
		 .window = "5m",
		 .window_seconds = 299.5004,
		 .state = "fresh",
		 .age_seconds = 2.2504,
		 .samples = 3000},
	};
	const struct watcher_answer a = {.timestamp = 100,
					 .duration = "15m",
					 .start = -800,
					 .end = 100,
					 .source = "Evenkeel",
					 .nodes = nodes,
					 .node_count = 2};

	(void)state;
	assert_encodes(&a,
		       "{\"timestamp\":100,\"window\":{\"duration\":\"15m\",\"start\":-800,"
		       "\"end\":100},\"source\":\"Evenkeel\",\"data\":{\"NodeMetricsMap\":{"
		       "\"a\":{\"metrics\":["
		       "{\"name\":\"host.cpu\",\"type\":\"CPU\",\"operator\":\"AVG\","
		       "\"rollup\":\"15m\",\"value\":12.5},"
		       "{\"name\":\"host.cpu\",\"type\":\"CPU\",\"operator\":\"STD\","
		       "\"rollup\":\"15m\",\"value\":0.25}]," TAIL "},"
		       "\"b\\\"\":{\"metrics\":[]," TAIL ",\"state\":\"fresh\",\"window\":\"5m\","
		       "\"windowSeconds\":299.5,\"ageSeconds\":2.25,\"samples\":3000}}}}");
}

/* Only number forms that the Go client's decoder reads back as they were meant. */
static void test_values(void **state)
{
	static const struct {
		double value;
		const char *text; /* NULL: the metric is left out */
	} cases[] = {
		{0, "0"},
		{-0.0, "0"},
		{-3.5, "0"},
		{1, "1"},
		{100, "100"},
		{0.00009999, "0"},
		{1e-300, "0"},
		{0.0001, "0.0001"},
		{93.12345678901234567, "93.123457"},
		{9.1234567890123456789, "9.123457"},
		{0.0012345678901234567, "0.001235"},
		{1e19, "1000000000"},
		{NAN, NULL},
		{INFINITY, NULL},
		{-INFINITY, NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct watcher_metric metric = {"", "", "", "", cases[i].value};
		const struct watcher_node node = {.name = "n",
						  .metrics = &metric,
						  .metric_count = 1};
		const struct watcher_answer a = {
			.duration = "", .source = "", .nodes = &node, .node_count = 1};
		struct buf want = BUF_INIT;

		buf_add_str(&want, "{\"timestamp\":0,\"window\":{\"duration\":\"\",\"start\":0,"
				   "\"end\":0},\"source\":\"\",\"data\":{\"NodeMetricsMap\":{"
				   "\"n\":{\"metrics\":[");
		if (cases[i].text)
			buf_printf(&want,
				   "{\"name\":\"\",\"type\":\"\",\"operator\":\"\","
				   "\"rollup\":\"\",\"value\":%s}",
				   cases[i].text);
		buf_add_str(&want, "]," TAIL "}}}}");
		assert_encodes(&a, want.data);
		buf_fini(&want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty_documents),
		cmocka_unit_test(test_full_document),
		cmocka_unit_test(test_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
