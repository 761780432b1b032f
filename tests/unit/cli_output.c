/* SPDX-License-Identifier: Apache-2.0 */
/* JSON for people: only blanks change, whatever is in strings and numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/cli/commands.h"

static void indents_json(void **state)
{
	static const struct {
		const char *json, *want;
	} cases[] = {
		{"{}", "{}\n"},
		{" [ ] \n", "[]\n"},
		{"{\"a\":1.50,\"b\":[],\"c\":{}}\n",
		 "{\n  \"a\": 1.50,\n  \"b\": [],\n  \"c\": {}\n}\n"},
		{"[1e3,[{\"a\": null}],-0]",
		 "[\n  1e3,\n  [\n    {\n      \"a\": null\n    }\n  ],\n  -0\n]\n"},
		{"{\"a, [b]: {c\":\"\\\"}, \\\\\"}", "{\n  \"a, [b]: {c\": \"\\\"}, \\\\\"\n}\n"},
		{"[\"[\"]", "[\n  \"[\"\n]\n"},
		{"]]{\"cut", "\n]\n]{\n  \"cut\n"},
	};
	(void)state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct buf out = BUF_INIT;

		output_indent(cases[i].json, strlen(cases[i].json), &out);
		assert_string_equal(out.data, cases[i].want);
		buf_fini(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(indents_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
