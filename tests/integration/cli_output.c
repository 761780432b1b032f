/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The forms of -o for every command that lists, over one dump: YAML is the JSON, CSV and names are
 * the rows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"
#include "shared/yaml_json.h"
#include "tests/process.h"

static char *folder, *dump;

static const char cluster[] =
	"apiVersion: v1\nkind: List\nitems:\n"
	"- {apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: '4', "
	"memory: 16Gi, pods: '110'}, conditions: [{type: Ready, status: 'True'}]}}\n"
	"- {apiVersion: v1, kind: Node, metadata: {name: n2}, status: {allocatable: {cpu: '4', "
	"memory: 16Gi, pods: '110'}, conditions: [{type: Ready, status: 'True'}]}}\n"
	"- {apiVersion: v1, kind: Pod, metadata: {name: web-1, namespace: shop, uid: u1, "
	"labels: {'yes': '1e3'}}, spec: {nodeName: n1, containers: [{name: c, resources: "
	"{requests: {cpu: 1500m, memory: 6Gi}}}]}}\n"
	"- {apiVersion: scheduling.x-k8s.io/v1alpha1, kind: ElasticQuota, metadata: {name: q, "
	"namespace: shop}, spec: {min: {cpu: 2, memory: 8Gi}, max: {cpu: 4, memory: 16Gi}}}\n";

static int make_files(void **state)
{
	FILE *f;

	(void)state;
	unsetenv("EVENKEEL_SERVER");
	unsetenv("EVENKEEL_OUTPUT");
	folder = folder_make();
	dump = mem_printf("%s/dump.yaml", folder);
	f = fopen(dump, "w");
	assert_non_null(f);
	fputs(cluster, f);
	assert_int_equal(fclose(f), 0);
	return 0;
}

static int remove_files(void **state)
{
	(void)state;
	folder_remove(folder);
	free(dump);
	return 0;
}

/* words: "nodes -o json". */
static int run(const char *words, struct buf *out, struct buf *err)
{
	char *copy = mem_strdup(words), *save, *argv[16] = {(char *)program_path("evenkeel")};
	size_t n = 1;
	int code;

	for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
		argv[n++] = word;
	argv[n++] = (char *)"--snapshot";
	argv[n++] = dump;
	buf_clear(out);
	buf_clear(err);
	code = process_run(argv, out, err);
	buf_add_str(out, "");
	buf_add_str(err, "");
	free(copy);
	return code;
}

static void expect_same(const char *command, const struct buf *json, const struct buf *yaml)
{
	static const struct yaml_json_limits limits = {.depth = 100, .bytes = 1 << 20};
	struct buf back = BUF_INIT;
	struct reason why = {""};
	size_t documents;
	cJSON *want = cJSON_Parse(json->data), *got;

	assert_non_null(want);
	if (yaml_json_convert("yaml", yaml->data, yaml->len, &limits, &back, &documents, &why))
		fail_msg("%s: %s\n%s", command, why.text, yaml->data);
	assert_int_equal(documents, 1);
	got = cJSON_Parse(back.data);
	if (!cJSON_Compare(want, got, true))
		fail_msg("%s:\n%s%s", command, json->data, yaml->data);
	cJSON_Delete(want);
	cJSON_Delete(got);
	buf_fini(&back);
}

static void yaml_is_the_json(void **state)
{
	static const char *const commands[] = {"nodes",	     "pods",  "scores", "quota",
					       "quota shop", "slack", "drain",	"quota lint"};
	struct buf json = BUF_INIT, yaml = BUF_INIT, err = BUF_INIT;

	(void)state;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		char *as_json = mem_printf("%s -o json", commands[i]);
		char *as_yaml = mem_printf("%s -o yaml", commands[i]);
		int code = run(as_json, &json, &err);

		assert_int_equal(run(as_yaml, &yaml, &err), code);
		assert_int_equal(strncmp(yaml.data, "apiVersion: evenkeel.io/v1\n", 27), 0);
		expect_same(commands[i], &json, &yaml);
		free(as_json);
		free(as_yaml);
	}
	buf_fini(&json);
	buf_fini(&yaml);
	buf_fini(&err);
}

static void rows_and_names(void **state)
{
	static const struct {
		const char *words;
		int code;
		const char *out; /* it begins so; a name's is all of it */
	} cases[] = {
		{"nodes -o name", 4, "node/n1\nnode/n2\n"},
		{"nodes n2 -o name", 4, "node/n2\n"},
		{"nodes -o name --limit 1", 4, "node/n1\n"},
		{"pods -o name", 4, "pod/shop/web-1\n"},
		{"scores -o name --sort-by name", 4, "node/n1\nnode/n2\n"},
		{"quota -o name", 0, "elasticquota/shop\n"},
		{"slack -o name", 4, "slack/unit\n"},
		{"drain -o name --assume-unneeded-for 15m --extra-capacity-min-rate 0", 4,
		 "node/n2\n"},
		{"nodes -o csv", 4, "NAME,STATUS,CPU,CPU%,ALLOC,REQUESTS,REQ%,"},
		{"nodes -o csv --no-headers", 4, "n1,Ready,"},
		{"pods -o csv --no-headers", 4, "shop,web-1,n1,"},
		{"scores -o csv", 4, "NODE,"},
		{"quota -o csv --no-headers", 0, "shop,"},
		{"slack -o csv", 4,
		 "CLASS,KIND,CPU,MEMORY,TARGET,WANTED,PLACED,BALLOONS,UNPLACED,SLOTS,USABLE,"
		 "FRAGMENTED,STATE,NODES\r\nunit,unit,800m,3.2Gi,1,1,1,,0,"},
		{"drain -o csv", 4, "NODE,VERDICT,"},
	};
	struct buf out = BUF_INIT, err = BUF_INIT;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool csv = strstr(cases[i].words, "csv");
		int code = run(cases[i].words, &out, &err);

		if (code != cases[i].code ||
		    (csv ? strncmp(out.data, cases[i].out, strlen(cases[i].out))
			 : strcmp(out.data, cases[i].out)) != 0)
			fail_msg("%s: exit %d\n%s%s", cases[i].words, code, out.data, err.data);
		assert_null(strstr(out.data, "\n*"));
		assert_null(strstr(out.data, "\033"));
		assert_true(!csv || strcmp(out.data + out.len - 2, "\r\n") == 0);
	}
	buf_fini(&out);
	buf_fini(&err);
}

static void says_what_does_not_go(void **state)
{
	static const struct {
		const char *words, *err;
	} cases[] = {
		{"nodes -o balloons",
		 "evenkeel: -o balloons and -o capacitybuffers go with slack\n"},
		{"version -o csv",
		 "evenkeel: -o csv and -o name go with lists; take -o json or yaml here\n"},
		{"scores -o name --explain",
		 "evenkeel: --explain has no rows: it goes with -o table, wide, json and yaml\n"},
		{"nodes -o xml", "evenkeel: --output: \"xml\" is not known; it is table, wide, "
				 "json, yaml, csv, name, commands, balloons or capacitybuffers\n"},
	};
	struct buf out = BUF_INIT, err = BUF_INIT;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(run(cases[i].words, &out, &err), 2);
		assert_string_equal(out.data, "");
		assert_string_equal(err.data, cases[i].err);
	}
	buf_fini(&out);
	buf_fini(&err);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(yaml_is_the_json),
		cmocka_unit_test(rows_and_names),
		cmocka_unit_test(says_what_does_not_go),
	};

	return cmocka_run_group_tests(tests, make_files, remove_files);
}
