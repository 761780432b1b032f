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
	"- {apiVersion: v1, kind: Node, metadata: {name: n1}, status: {capacity: {cpu: '4', "
	"memory: 16Gi}, allocatable: {cpu: '4', memory: 16Gi, pods: '110'}, conditions: [{type: "
	"Ready, status: 'True'}]}}\n"
	"- {apiVersion: v1, kind: Node, metadata: {name: n2}, status: {allocatable: {cpu: '4', "
	"memory: 16Gi, pods: '110'}, conditions: [{type: Ready, status: 'True'}]}}\n"
	"- {apiVersion: v1, kind: Pod, metadata: {name: web-1, namespace: shop, uid: u1, "
	"labels: {'yes': '1e3'}}, spec: {nodeName: n1, containers: [{name: c, resources: "
	"{requests: {cpu: 1500m, memory: 6Gi}}}]}}\n"
	"- {apiVersion: scheduling.x-k8s.io/v1alpha1, kind: ElasticQuota, metadata: {name: q, "
	"namespace: shop}, spec: {min: {cpu: 2, memory: 8Gi}, max: {cpu: 4, memory: 16Gi}}}\n";

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static int make_files(void **state)
{
	(void)state;
	unsetenv("EVENKEEL_SERVER");
	unsetenv("EVENKEEL_OUTPUT");
	folder = folder_make();
	dump = mem_printf("%s/dump.yaml", folder);
	write_file(dump, cluster);
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
	struct error error = {""};
	size_t documents;
	cJSON *want = cJSON_Parse(json->data), *got;

	assert_non_null(want);
	if (yaml_json_convert("yaml", yaml->data, yaml->len, &limits, &back, &documents, &error))
		fail_msg("%s: %s\n%s", command, error.text, yaml->data);
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
		{"nodes -o csv", 4,
		 "name,ready,unschedulable,cpu_millicores,cpu_capacity_millicores,"},
		{"nodes -o csv --no-headers", 4, "n1,true,false,,4000,4000,1500,"},
		{"pods -o csv --no-headers", 4, "shop,web-1,n1,"},
		{"scores -o csv", 4,
		 "node,score,fits,reason,refused_by,LoadVariationRiskBalancing_score,"},
		{"quota -o csv --no-headers", 0, "shop,"},
		{"slack -o csv", 4,
		 "class,origin,cpu_request_millicores,memory_request_bytes,target,wanted,placed,"
		 "balloons,unplaced,slots_by_requests,slots_by_use,slots_at_least,fragmented_ratio,"
		 "state\r\nunit,unit,800,3435973836,1,1,1,,0,"},
		{"drain -o csv", 4, "node,verdict,"},
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

/* --- csv */

enum { CSV_COLUMNS = 80 };

/* Cuts the next record, of unquoted and quoted cells, off *text; how many. */
static size_t cut_record(char **text, char *cells[CSV_COLUMNS])
{
	char *at = *text, *to;
	size_t count = 0;

	for (bool more = true; more; count++) {
		bool quoted = *at == '"';

		assert_true(count < CSV_COLUMNS);
		at += quoted;
		cells[count] = to = at;
		for (; *at && (quoted || (*at != ',' && *at != '\r')); at++) {
			if (quoted && *at == '"' && *++at != '"')
				break;
			*to++ = *at;
		}
		more = *at == ',';
		at += more ? 1 : 2;
		*to = '\0';
	}
	*text = at;
	return count;
}

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

static bool is_of_numbers(const char *title)
{
	static const char *const units[] = {"_millicores", "_bytes",   "_ratio",
					    "_seconds",	   "_hertz",   "_microseconds",
					    "_containers", "_cgroups", "pods",
					    "_score",	   "wanted",   "placed",
					    "asked"};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (ends_with(title, units[i]))
			return true;
	return false;
}

static bool is_number(const char *cell)
{
	char *end;

	strtod(cell, &end);
	return !*end && strspn(cell, "0123456789.e+-") == strlen(cell);
}

static void check_csv(const char *words, char *text)
{
	char *titles[CSV_COLUMNS], *cells[CSV_COLUMNS];
	size_t count = cut_record(&text, titles), records = 0, numbers = 0;

	for (size_t i = 0; i < count; i++) {
		if (strpbrk(titles[i], "% ±()") || !titles[i][0])
			fail_msg("%s: \"%s\" is a title", words, titles[i]);
		for (size_t k = 0; k < i; k++)
			if (strcmp(titles[i], titles[k]) == 0)
				fail_msg("%s: two columns are %s", words, titles[i]);
	}
	for (; *text; records++) {
		assert_int_equal(cut_record(&text, cells), count);
		for (size_t i = 0; i < count; i++) {
			if (is_of_numbers(titles[i]) && !is_number(cells[i]))
				fail_msg("%s: %s is \"%s\"", words, titles[i], cells[i]);
			numbers += is_of_numbers(titles[i]) && cells[i][0];
		}
	}
	if (!records || !numbers)
		fail_msg("%s: %zu records with %zu numbers", words, records, numbers);
}

/* One value a cell, raw, with the unit in the title. */
static void csv_is_data(void **state)
{
	static const char *const commands[] = {
		"nodes",      "pods",	  "scores",
		"quota",      "slack",	  "drain",
		"quota shop", "nodes n1", "quota admit --pod tests/kube/pod.yaml"};
	struct buf out = BUF_INIT, err = BUF_INIT;

	(void)state;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		char *words = mem_printf("%s -o csv", commands[i]);

		run(words, &out, &err);
		if (out.len)
			check_csv(words, out.data);
		else if (strncmp(words, "quota admit", 11) != 0)
			fail_msg("%s: %s", words, err.data);
		free(words);
	}
	buf_fini(&out);
	buf_fini(&err);
}

/* A title stands once in a table, since it means one thing. */
static void titles_are_unique(void **state)
{
	static const char *const commands[] = {"nodes", "pods",	 "scores",
					       "quota", "slack", "drain"};
	struct buf out = BUF_INIT, err = BUF_INIT;

	(void)state;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		char *words = mem_printf("%s -o wide", commands[i]), *line, *end, *save;
		char *seen[CSV_COLUMNS];
		size_t count = 0;

		run(words, &out, &err);
		line = out.data;
		if (strcmp(commands[i], "drain") == 0)
			line = strstr(line, "\nNODE ") + 1;
		end = strchr(line, '\n');
		assert_non_null(end);
		*end = '\0';
		for (char *w = strtok_r(line, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
			for (size_t k = 0; k < count; k++)
				if (strcmp(seen[k], w) == 0)
					fail_msg("%s: two columns are %s", words, w);
			seen[count++] = w;
		}
		assert_true(count > 3);
		free(words);
	}
	buf_fini(&out);
	buf_fini(&err);
}

/* Its newest value is not its mean. */
static const char n1_use[] =
	"{\"timestamp\":1767268800,\"window\":{\"duration\":\"15m\",\"start\":1767267900,\"end\":"
	"1767268800},\"source\":\"test\",\"data\":{\"NodeMetricsMap\":{\"n1\":{\"metrics\":["
	"{\"type\":\"CPU\",\"operator\":\"AVG\",\"value\":20},{\"type\":\"CPU\",\"operator\":"
	"\"Latest\",\"value\":50},{\"type\":\"Memory\",\"operator\":\"AVG\",\"value\":30},"
	"{\"type\":\"Memory\",\"operator\":\"Latest\",\"value\":60}]}}}}";

struct record {
	struct buf text; /* cut up */
	char *titles[CSV_COLUMNS], *cells[CSV_COLUMNS];
	size_t count;
};

static void read_record(const char *command, const char *usage, struct record *r)
{
	char *words = mem_printf("%s n1 -o csv --usage %s", command, usage), *at;
	struct buf err = BUF_INIT;

	r->text = (struct buf)BUF_INIT;
	run(words, &r->text, &err);
	at = r->text.data;
	r->count = cut_record(&at, r->titles);
	assert_int_equal(cut_record(&at, r->cells), r->count);
	buf_fini(&err);
	free(words);
}

/* Two tables show the same of a node under one title. */
static void titles_mean_one_thing(void **state)
{
	char *usage = mem_printf("%s/use.json", folder);
	struct record nodes, drain;
	size_t same = 0;

	(void)state;
	write_file(usage, n1_use);
	read_record("nodes", usage, &nodes);
	read_record("drain", usage, &drain);
	for (size_t i = 0; i < nodes.count; i++)
		for (size_t k = 0; k < drain.count; k++) {
			if (strcmp(nodes.titles[i], drain.titles[k]) != 0)
				continue;
			if (strcmp(nodes.cells[i], drain.cells[k]) != 0)
				fail_msg("%s: %s and %s", nodes.titles[i], nodes.cells[i],
					 drain.cells[k]);
			same++;
		}
	assert_true(same > 4);
	buf_fini(&nodes.text);
	buf_fini(&drain.text);
	free(usage);
}

/* nodes shows the newest value, drain the mean. */
static void shares_of_a_mean_say_so(void **state)
{
	char *usage = mem_printf("%s/use.json", folder), *words;
	struct buf out = BUF_INIT, err = BUF_INIT;

	(void)state;
	write_file(usage, n1_use);
	words = mem_printf("nodes n1 --usage %s", usage);
	run(words, &out, &err);
	assert_non_null(strstr(out.data, "CPU%"));
	assert_non_null(strstr(out.data, " 50% "));
	free(words);
	words = mem_printf("drain n1 --usage %s", usage);
	run(words, &out, &err);
	assert_non_null(strstr(out.data, "CPU-MEAN%"));
	assert_non_null(strstr(out.data, " 20% "));
	free(words);
	buf_fini(&out);
	buf_fini(&err);
	free(usage);
}

/* KEP-61's window ended 35 minutes before the answer's time, and tells no memory: the CPU scores. */
static void the_kep_s_example_scores(void **state)
{
	static const char node[] =
		"apiVersion: v1\nkind: List\nitems:\n"
		"- {apiVersion: v1, kind: Node, metadata: {name: node-1}, status: {capacity: {cpu: "
		"'4', memory: 16Gi}, allocatable: {cpu: '4', memory: 16Gi}}}\n";
	struct buf out = BUF_INIT, err = BUF_INIT;
	char *usual = dump;

	(void)state;
	dump = mem_printf("%s/node.yaml", folder);
	write_file(dump, node);
	assert_int_equal(run("scores -p TargetLoadPacking -p LoadVariationRiskBalancing --usage "
			     "tests/fuzz/corpus/usage_file/kep",
			     &out, &err),
			 0);
	assert_string_equal(out.data, "NODE    SCORE  TLP  LVRB  RUNG\n"
				      "node-1     75   70    80  window 15m\n");
	free(dump);
	dump = usual;
	buf_fini(&out);
	buf_fini(&err);
}

static void says_what_does_not_go(void **state)
{
	static const struct {
		const char *words, *err;
	} cases[] = {
		{"nodes -o balloons", "evenkeel: -o balloons goes with slack\n"},
		{"nodes -o vpa", "evenkeel: -o vpa goes with advise\n"},
		{"version -o csv",
		 "evenkeel: -o csv and -o name go with lists; take -o json or yaml here\n"},
		{"scores -o name --explain",
		 "evenkeel: --explain has no rows: it goes with -o table, wide, json and yaml\n"},
		{"nodes -o xml", "evenkeel: --output: \"xml\" is not known; it is table, wide, "
				 "json, yaml, csv, name, commands, soft-taints, plan, patch, vpa, "
				 "scenario, snapshot, balloons or capacitybuffers\n"},
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
		cmocka_unit_test(csv_is_data),
		cmocka_unit_test(titles_are_unique),
		cmocka_unit_test(titles_mean_one_thing),
		cmocka_unit_test(shares_of_a_mean_say_so),
		cmocka_unit_test(the_kep_s_example_scores),
		cmocka_unit_test(says_what_does_not_go),
	};

	return cmocka_run_group_tests(tests, make_files, remove_files);
}
