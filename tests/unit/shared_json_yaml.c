/* SPDX-License-Identifier: Apache-2.0 */
/* JSON as YAML: how it looks, and that it reads back as what it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "shared/json_yaml.h"
#include "shared/yaml_json.h"

static void write_yaml(const char *json, bool marked, struct buf *out)
{
	cJSON *value = cJSON_Parse(json);

	assert_non_null(value);
	json_yaml_write(value, marked, out);
	cJSON_Delete(value);
}

static void looks_like_kubectl(void **state)
{
	struct buf out = BUF_INIT;

	(void)state;
	write_yaml("{\"kind\":\"NodeList\",\"items\":[{\"name\":\"n1\",\"cpu\":0.25,\"zone\":null,"
		   "\"labels\":{},\"taints\":[]}],\"sum\":1e+21,\"ok\":true}",
		   false, &out);
	assert_string_equal(out.data, "kind: NodeList\n"
				      "items:\n"
				      "- name: n1\n"
				      "  cpu: 0.25\n"
				      "  zone: null\n"
				      "  labels: {}\n"
				      "  taints: []\n"
				      "sum: 1e+21\n"
				      "ok: true\n");
	buf_clear(&out);
	write_yaml("{\"a\":1}", true, &out);
	write_yaml("[\"b\"]", true, &out);
	assert_string_equal(out.data, "---\na: 1\n---\n- b\n");
	buf_fini(&out);
}

/* Whatever a text looks like, it is that text. */
static void reads_back(void **state)
{
	static const char *const cases[] = {
		"{\"yes\":\"no\",\"n\":\"Null\",\"~\":\"~\",\"\":\"\"}",
		"[\"1\",\"-1\",\"1e3\",\"0x1f\",\"0o17\",\".5\",\".inf\",\"1:30\",\"2026-01-01\"]",
		"[\"- a\",\"a: b\",\"a "
		"#b\",\"#\",\"&a\",\"*a\",\"!x\",\"%x\",\"@\",\"`\",\"'\",\"|\"]",
		"[\"a\\nb\",\" lead\",\"trail \",\"tab\\t\",\"\\u0001\",\"\\u007f\",\"\\u0085x\"]",
		"[\"\\u2028\",\"\\ufeffbom\",\"\\ud83d\\ude00\",\"\\\\\\\"\",\"\\u00fcber\"]",
		"{\"deep\":[[[[{\"a\":[{\"b\":[]}]}]]]],\"number\":-0.001,\"big\":"
		"9007199254740991}",
		"{\"key with blanks: and more\":[],\"8080\":{},\"null\":null}",
	};
	static const struct yaml_json_limits limits = {.depth = 40, .bytes = 1 << 20};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct buf yaml = BUF_INIT, json = BUF_INIT;
		struct error error = {""};
		cJSON *want = cJSON_Parse(cases[i]), *got;
		size_t documents;

		write_yaml(cases[i], false, &yaml);
		if (yaml_json_convert("test", yaml.data, yaml.len, &limits, &json, &documents,
				      &error))
			fail_msg("%s:\n%s%s", cases[i], yaml.data, error.text);
		got = cJSON_Parse(json.data);
		if (!cJSON_Compare(got, want, true))
			fail_msg("%s:\n%s%s", cases[i], yaml.data, json.data);
		cJSON_Delete(want);
		cJSON_Delete(got);
		buf_fini(&yaml);
		buf_fini(&json);
	}
}

static void repairs_what_is_no_utf_8(void **state)
{
	struct buf out = BUF_INIT;

	(void)state;
	write_yaml("{\"a\xff\":\"b\xc3(\xfe\"}", false, &out);
	assert_string_equal(out.data, "\"a?\": \"b?(?\"\n");
	buf_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(looks_like_kubectl),
		cmocka_unit_test(reads_back),
		cmocka_unit_test(repairs_what_is_no_utf_8),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
