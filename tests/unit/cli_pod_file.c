/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pods as people keep them: which YAML scalar becomes which JSON value, and what is refused by
 * line.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/api/pod_file.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define TEMPLATE "{metadata: {labels: {app: web}}, spec: {containers: [{name: c}]}}"
#define MAKER(kind)                                                                                \
	"kind: " kind "\nmetadata: {namespace: shop, name: web, uid: u}\n"                         \
	"spec: {replicas: 3, template: " TEMPLATE "}"
#define MADE_BY(kind)                                                                              \
	"{\"metadata\":{\"labels\":{\"app\":\"web\"},\"namespace\":\"shop\",\"ownerReferences\":[" \
	"{"                                                                                        \
	"\"kind\":\"" kind "\",\"name\":\"web\",\"uid\":\"u\",\"controller\":true}]},"             \
	"\"spec\":{\"containers\":[{\"name\":\"c\"}]}}"

static void converts(void **state)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{"a: b", "{\"a\":\"b\"}"},
		{"a: 1\nb: -2\nc: +3\nd: 0", "{\"a\":1,\"b\":-2,\"c\":3,\"d\":0}"},
		{"a: 500m\nb: 1Gi\nc: 1e3", "{\"a\":\"500m\",\"b\":\"1Gi\",\"c\":1000}"},
		{"a: 0.5\nb: .5\nc: 2.", "{\"a\":0.5,\"b\":0.5,\"c\":2}"},
		{"a: 0644\nb: 0x1F\nc: 0o17\nd: 089", "{\"a\":420,\"b\":31,\"c\":15,\"d\":89}"},
		{"a: '1'\nb: \"true\"\nc: |\n  2\n",
		 "{\"a\":\"1\",\"b\":\"true\",\"c\":\"2\\u000a\"}"},
		{"a: true\nb: FALSE\nc: yes\nd: On",
		 "{\"a\":true,\"b\":false,\"c\":\"yes\",\"d\":\"On\"}"},
		{"a:\nb: ~\nc: null\nd: ''", "{\"a\":null,\"b\":null,\"c\":null,\"d\":\"\"}"},
		{"a: 1.2.3\nb: 1-2\nc: 10.0.0.1\nd: 1_000\ne: -", NULL},
		{"a: 1.2.3\nb: 1-2\nc: 10.0.0.1\nd: 1_000\ne: e5",
		 "{\"a\":\"1.2.3\",\"b\":\"1-2\",\"c\":\"10.0.0.1\",\"d\":\"1_000\",\"e\":\"e5\"}"},
		{"a: [1, {b: c}]\nd: []\ne: {}", "{\"a\":[1,{\"b\":\"c\"}],\"d\":[],\"e\":{}}"},
		{"a: &x {b: 1}\nc: *x", "{\"a\":{\"b\":1},\"c\":{\"b\":1}}"},
		{"a: !!int \"3\"\nb: !!str 5\nc: ! 5", "{\"a\":3,\"b\":\"5\",\"c\":\"5\"}"},
		{"a: &x 1\nb: [*x, &x 2, *x]", "{\"a\":1,\"b\":[1,2,2]}"},
		{"---\n---\na: 1\n---\n", "{\"a\":1}"},
		{"a: 99999999999999999999", "{\"a\":1e+20}"},
		{"true: 1\n5: 2", "{\"true\":1,\"5\":2}"},
		{"---\na: 1\n...\n", "{\"a\":1}"},
		{" {\"a\": 1.50, \"b\":\"x\"} \n", " {\"a\": 1.50, \"b\":\"x\"}"},
		{"{a: 1}", "{\"a\":1}"},
		{"{\"kind\": \"Pod\", \"spec\": {}}", "{\"kind\": \"Pod\", \"spec\": {}}"},
		{MAKER("Deployment"), MADE_BY("Deployment")},
		{MAKER("StatefulSet"), MADE_BY("StatefulSet")},
		{MAKER("DaemonSet"), MADE_BY("DaemonSet")},
		{MAKER("Job"), MADE_BY("Job")},
		{MAKER("ReplicaSet"), MADE_BY("ReplicaSet")},
		{"kind: CronJob\nmetadata: {namespace: shop, name: web, uid: u}\n"
		 "spec: {jobTemplate: {spec: {template: " TEMPLATE "}}}",
		 MADE_BY("CronJob")},
		/* The namespace of a template, if it has one, is its own. */
		{"kind: Job\nmetadata: {namespace: shop}\n"
		 "spec: {template: {metadata: {namespace: its-own}, spec: {}}}",
		 "{\"metadata\":{\"namespace\":\"its-own\",\"ownerReferences\":[{\"kind\":\"Job\","
		 "\"name\":\"\",\"uid\":\"\",\"controller\":true}]},\"spec\":{}}"},
		{"{\"kind\": \"Job\", \"spec\": {\"template\": {\"metadata\": null}}}",
		 "{\"metadata\":{\"ownerReferences\":[{\"kind\":\"Job\",\"name\":\"\",\"uid\":\"\","
		 "\"controller\":true}]}}"},
	};
	(void)state;

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct buf got = BUF_INIT;
		struct error error = {""};
		int rc = pod_file_convert("pod.yaml", cases[i].text, strlen(cases[i].text), &got,
					  &error);

		assert_int_equal(rc, cases[i].want ? 0 : -EINVAL);
		if (cases[i].want)
			assert_string_equal(got.data, cases[i].want);
		buf_fini(&got);
	}
}

static void refuses(void **state)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{"", "pod.yaml: holds no pod"},
		{"just text", "pod.yaml: holds no pod"},
		{"- a", "pod.yaml: holds no pod"},
		{"a: 1\n---\nb: 2", "pod.yaml: holds several documents; give one pod"},
		{"x: 1\na: 1\na: 2", "pod.yaml:1: the key \"a\" stands twice in this mapping"},
		{"x: &y {b: 1}\nz:\n  <<: *y", "pod.yaml:3: merge keys (<<) are not supported"},
		{"a: 1\n[b]: 2", "pod.yaml:1: a key that is not plain text"},
		{"a: .inf", "pod.yaml:1: JSON has no infinite numbers"},
		{"a: 1e999", "pod.yaml:1: the number is too large"},
		{"a: 0xffffffffffffffff", "pod.yaml:1: the number does not fit in 64 bits"},
		{"a: 1\nb: \"x\\0y\"", "pod.yaml:2: a zero byte in a value"},
		{"a: &x [*x]", "pod.yaml:1: an alias of what it stands in"},
		{"a: *x", "pod.yaml:1: an alias of what has no anchor"},
		{"a: &x 1\nb:\n  *x : 2", "pod.yaml:3: a key that is not plain text"},
		{"a: 'x", "pod.yaml:1: found unexpected end of stream"},
		{"kind: Service\nspec: {}",
		 "pod.yaml: a Service makes no pods; give a Pod, or what has its template"},
		{"kind: Deployment\nspec: {template: []}",
		 "pod.yaml: the Deployment has no spec.template"},
		{"kind: CronJob\nspec: {template: {}}",
		 "pod.yaml: the CronJob has no spec.jobTemplate.spec.template"},
		{"{\"a\": 1} {", "pod.yaml:1: did not find expected <document start>"},
	};
	(void)state;

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct buf got = BUF_INIT;
		struct error error = {""};

		assert_int_equal(pod_file_convert("pod.yaml", cases[i].text, strlen(cases[i].text),
						  &got, &error),
				 -EINVAL);
		assert_string_equal(error.text, cases[i].want);
		assert_int_equal(got.len, 0);
		buf_fini(&got);
	}
}

/* Nine levels of nine references each would be 9^9 copies. */
static void bounds_what_aliases_blow_up_to(void **state)
{
	struct buf text = BUF_INIT, got = BUF_INIT;
	struct error error = {""};
	(void)state;

	buf_add_str(&text, "l0: &l0 [x,x,x,x,x,x,x,x,x]\n");
	for (int i = 1; i < 10; i++) {
		buf_printf(&text, "l%d: &l%d [", i, i);
		for (int k = 0; k < 9; k++)
			buf_printf(&text, "%s*l%d", k ? "," : "", i - 1);
		buf_add_str(&text, "]\n");
	}
	assert_int_equal(pod_file_convert("pod.yaml", text.data, text.len, &got, &error), -EINVAL);
	assert_non_null(strstr(error.text, "becomes larger than 4 MiB"));
	buf_fini(&text);
	buf_fini(&got);
}

/* Each alias looks for its anchor, so their product is bounded. */
static void bounds_anchors(void **state)
{
	struct buf text = BUF_INIT, got = BUF_INIT;
	struct error error = {""};
	(void)state;

	for (int i = 0; i < 100; i++)
		buf_printf(&text, "k%d: &a%d x\n", i, i);
	assert_int_equal(pod_file_convert("pod.yaml", text.data, text.len, &got, &error), 0);
	for (int i = 0; i < 2; i++) {
		struct buf more = BUF_INIT;

		buf_clear(&got);
		buf_printf(&more, "%sk: &b %s\n", text.data, i ? "x" : "[x]");
		assert_int_equal(pod_file_convert("pod.yaml", more.data, more.len, &got, &error),
				 -EINVAL);
		assert_string_equal(error.text, "pod.yaml:101: more than 100 anchors");
		buf_fini(&more);
	}
	buf_fini(&text);
	buf_fini(&got);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(converts),
		cmocka_unit_test(refuses),
		cmocka_unit_test(bounds_what_aliases_blow_up_to),
		cmocka_unit_test(bounds_anchors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
