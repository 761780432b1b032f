/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evenkeel quota over a dump, as a person runs it: what is printed, what is complained of, and the
 * exit status.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/buf.h"
#include "shared/mem.h"
#include "tests/process.h"
#include "tests/quota_fixture.h"

static char *folder, *dump, *bare, *pod;

static char *write_file(const char *name, const char *text)
{
	char *path = mem_printf("%s/%s", folder, name);
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	return path;
}

static void add_cluster(struct buf *text)
{
	static const char *const nodes[] = {"alpha", "alpha", "bravo", "bravo"};

	buf_add_str(text, "apiVersion: v1\nkind: List\nitems:\n");
	buf_add_str(text, quota_fixture_node("alpha", "cpu: 8, memory: 32Gi"));
	buf_add_str(text, quota_fixture_node("bravo", "cpu: 8, memory: 32Gi"));
	buf_add_str(text, quota_fixture_quota("research", "quota", "cpu: 4, memory: 8Gi",
					      "cpu: 12, memory: 48Gi"));
	buf_add_str(text, quota_fixture_quota("shop", "quota", "cpu: 8, memory: 24Gi",
					      "cpu: 12, memory: 32Gi"));
	buf_add_str(text, quota_fixture_quota("shop", "second", "cpu: 8", "cpu: 6"));
	for (int i = 0; i < 4; i++) {
		char name[16];

		snprintf(name, sizeof(name), "train-%d", i);
		buf_add_str(text, quota_fixture_pod("research", name, nodes[i], 10 - i,
						    "cpu: 2, memory: 4Gi"));
	}
	buf_add_str(text, quota_fixture_pod("shop", "web-0", "bravo", 0, "cpu: 3, memory: 8Gi"));
	buf_add_str(text, quota_fixture_pod("shop", "web-1", "", 0, "cpu: 3, memory: 8Gi"));
}

static int make_files(void **state)
{
	struct buf text = BUF_INIT;

	(void)state;
	folder = folder_make();
	add_cluster(&text);
	dump = write_file("dump.yaml", text.data);
	bare = write_file("bare.yaml", "apiVersion: v1\nkind: Node\nmetadata: {name: alpha}\n");
	pod = write_file("pod.yaml",
			 "apiVersion: v1\nkind: Pod\nmetadata: {name: web-1, namespace: shop}\n"
			 "spec: {containers: [{name: c, resources: {requests: {cpu: 3, memory: "
			 "8Gi}}}]}\n");
	buf_fini(&text);
	return 0;
}

static int remove_files(void **state)
{
	(void)state;
	free(dump);
	free(bare);
	free(pod);
	folder_remove(folder);
	return 0;
}

/* words: "quota lint -o json"; out and err are replaced. */
static int run(const char *words, const char *snapshot, struct buf *out, struct buf *err)
{
	char *copy = mem_strdup(words), *save, *argv[16] = {(char *)program_path("evenkeel")};
	size_t n = 1;
	int code;

	for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
		argv[n++] = strcmp(word, "POD") == 0 ? pod : word;
	argv[n++] = (char *)"--snapshot";
	argv[n++] = (char *)snapshot;
	buf_clear(out);
	buf_clear(err);
	code = process_run(argv, out, err);
	buf_add_str(out, "");
	buf_add_str(err, "");
	free(copy);
	return code;
}

static const struct {
	const char *words;
	int code;
	const char *out, *err;
} outputs[] = {
	{"quota", 0,
	 "NAMESPACE  RESOURCE    USED     MIN     MAX  BORROWED   LENT  PENDING  PODS  "
	 "STATE\n"
	 "*          cpu           11      12       -         4      4        3     -  -\n"
	 "*          memory    24.0Gi  32.0Gi       -     8.0Gi  8.0Gi    8.0Gi     -  -\n"
	 "research   cpu            8       4      12         4      0        0     4  "
	 "borrowing\n"
	 "research   memory    16.0Gi   8.0Gi  48.0Gi     8.0Gi      0        0     4  "
	 "borrowing\n"
	 "shop       cpu            3       8      12         0      4        3   1+1  "
	 "starved\n"
	 "shop       memory     8.0Gi  24.0Gi  32.0Gi         0  8.0Gi    8.0Gi   1+1  "
	 "lending\n",
	 "evenkeel: 2 findings, 2 of severity error: evenkeel quota lint\n"},
	{"quota shop", 0,
	 "NAMESPACE  RESOURCE   USED     MIN     MAX  BORROWED   LENT  PENDING  PODS  "
	 "STATE\n"
	 "shop       cpu           3       8      12         0      4        3   1+1  "
	 "starved\n"
	 "shop       memory    8.0Gi  24.0Gi  32.0Gi         0  8.0Gi    8.0Gi   1+1  "
	 "lending\n"
	 "\n"
	 "cpu: pending pods ask for 3.0, and only 3.0 is used of the guaranteed 8.0: "
	 "evenkeel "
	 "quota preempt\nsays which pods could give way\n"
	 "memory: 8Gi is used of the guaranteed 24Gi, and others have 8Gi of the rest\n"
	 "error minOverMax: cpu: min 8.0 is above max 6.0, and what is above max is never "
	 "had\n"
	 "error duplicate: does not count: shop/quota is there, too, and is the first by "
	 "name "
	 "of equally old\n    ones\n",
	 ""},
	{"quota -n shop --no-headers", 0, NULL, ""},
	{"quota nope", 4, "", "evenkeel: namespace \"nope\" has no quota\n"},
	{"quota lint", 3,
	 "error    shop/second  minOverMax: cpu: min 8.0 is above max 6.0, and what is "
	 "above "
	 "max is never had\n"
	 "error    shop/second  duplicate: does not count: shop/quota is there, too, and "
	 "is the "
	 "first by name\n    of equally old ones\n",
	 ""},
	{"quota lint -n research", 0, "nothing to find fault with\n", ""},
	{"quota admit --pod POD", 3,
	 "shop/web-1 refused: cpu: 11.0 used by all quotas + 3.0 asked is over 12.0, the "
	 "sum of "
	 "their min:\n"
	 "    wait for 2.0 to be freed, by itself or by preempting those who borrow, as "
	 "quota "
	 "shop/quota is\n"
	 "    within its min\n\n"
	 "RESOURCE  ASKED   USED     MIN     MAX\n"
	 "cpu           3      3       8      12\n"
	 "memory    8.0Gi  8.0Gi  24.0Gi  32.0Gi\n",
	 ""},
	{"quota admit --pod POD --quota-critical-priority 1 --variant upstream", 3, NULL, ""},
	{"quota preempt --pod POD --node alpha", 0, NULL, ""},
	{"quota preempt --pod POD --node none", 4, "",
	 "evenkeel: nominatedNode: there is no node \"none\"\n"},
	{"quota preempt", 2, "", "evenkeel: --pod: give the pod, a file of YAML or JSON\n"},
	{"quota research shop", 2, "",
	 "evenkeel: quota takes one namespace, or one of admit, preempt and lint, and not "
	 "\"shop\" as well\n"},
	{"quota research -n shop", 2, "",
	 "evenkeel: \"research\" and -n shop: give one namespace\n"},
	{"quota admit --pod POD -n research", 2, "",
	 "evenkeel: namespace: \"research\" is not the pod's, which is \"shop\"\n"},
	{"quota --variant kep", 2, "",
	 "evenkeel: variant: there is no variant \"kep\"; there are corrected, upstream\n"},
	{"quota --quota-default-max cpu", 2, "",
	 "evenkeel: --quota-default-max: \"cpu\" is not of the form RESOURCE=QUANTITY\n"},
	{"quota --quota-default-max cpu=-1", 2, "",
	 "evenkeel: --quota-default-max: cpu must not be negative\n"},
	{"quota --quota-default-min cpu=1,cpu=2", 2, "",
	 "evenkeel: --quota-default-min: cpu is given twice\n"},
};

static void test_tables(void **state)
{
	struct buf out = BUF_INIT, err = BUF_INIT;

	(void)state;
	for (size_t i = 0; i < sizeof(outputs) / sizeof(outputs[0]); i++) {
		int code = run(outputs[i].words, dump, &out, &err);

		if (code != outputs[i].code)
			fail_msg("%s: exit %d\n%s%s", outputs[i].words, code, out.data, err.data);
		if (outputs[i].out)
			assert_string_equal(out.data, outputs[i].out);
		assert_string_equal(err.data, outputs[i].err);
	}
	buf_fini(&out);
	buf_fini(&err);
}

/*
 * The one that matters least of those who borrow; and where it stands must be found in text, too.
 */
static void test_preempt(void **state)
{
	static const char *const words[] = {
		"shop/web-1 victims: it runs on node bravo when 1 pod is gone\n",
		"\nresearch/train-3  bravo         7        2    4.0Gi\n",
		"its quota goes cpu from 8.0 to\n  6.0 (min 4.0), memory from 16Gi to 12Gi (min",
	};
	struct buf out = BUF_INIT, err = BUF_INIT;

	(void)state;
	assert_int_equal(run("quota preempt --pod POD", dump, &out, &err), 0);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strstr(out.data, words[i]))
			fail_msg("%s is not in:\n%s", words[i], out.data);
	buf_fini(&out);
	buf_fini(&err);
}

/* CPU is told in CPUs, whatever its key. */
static void test_misplaced_names(void **state)
{
	static const char text[] =
		"{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[{\"apiVersion\":"
		"\"scheduling.x-k8s.io/v1alpha1\",\"kind\":\"ElasticQuota\",\"metadata\":{"
		"\"namespace\":\"x\",\"name\":\"q\"},\"spec\":{\"min\":{\"requests.cpu\":8,"
		"\"limits.memory\":\"1Gi\"}}}]}";
	struct buf out = BUF_INIT, err = BUF_INIT;
	char *path = write_file("misplaced", text);

	(void)state;
	assert_int_equal(run("quota", path, &out, &err), 0);
	remove(path);
	free(path);
	assert_non_null(strstr(out.data, " 1.0Gi "));
	assert_non_null(strstr(out.data, " 8 "));
	assert_null(strstr(out.data, "8000"));
	buf_fini(&out);
	buf_fini(&err);
}

/* Where no quota is known there is no answer, and none that refuses a pod. */
static void test_no_quotas(void **state)
{
	static const char why[] = "evenkeel: the cluster's elasticquotas are not known: none: no "
				  "ElasticQuota is in the files\n";
	struct buf out = BUF_INIT, err = BUF_INIT;

	(void)state;
	assert_int_equal(run("quota", bare, &out, &err), 4);
	assert_string_equal(out.data, "");
	assert_string_equal(err.data, why);
	assert_int_equal(run("quota lint", bare, &out, &err), 4);
	assert_string_equal(err.data, why);
	assert_int_equal(run("quota admit --pod POD", bare, &out, &err), 0);
	assert_string_equal(out.data, "shop/web-1 admitted: namespace shop has no quota\n");
	assert_int_equal(run("quota --strict", bare, &out, &err), 4);
	buf_fini(&out);
	buf_fini(&err);
}

/* Namespaces without a quota get one, in a snapshot alone. */
static void test_cover_all(void **state)
{
	static const char row[] =
		"free       cpu          2    -  none         2     0     1  borrowing\n";
	struct buf out = BUF_INIT, err = BUF_INIT, text = BUF_INIT;
	char *path;

	(void)state;
	buf_add_str(&text, "apiVersion: v1\nkind: List\nitems:\n");
	buf_add_str(&text, quota_fixture_node("alpha", "cpu: 8"));
	buf_add_str(&text, quota_fixture_quota("shop", "quota", "cpu: 8", "cpu: 8"));
	buf_add_str(&text, quota_fixture_pod("free", "p", "alpha", 0, "cpu: 2"));
	path = write_file("free.yaml", text.data);
	assert_int_equal(run("quota", path, &out, &err), 0);
	assert_null(strstr(out.data, "free"));
	assert_int_equal(run("quota --quota-cover-all", path, &out, &err), 0);
	if (!strstr(out.data, row))
		fail_msg("%s is not in:\n%s%s", row, out.data, err.data);
	remove(path);
	free(path);
	buf_fini(&text);
	buf_fini(&out);
	buf_fini(&err);
}

static void test_json_is_the_answer(void **state)
{
	static const char *const words[] = {"quota -o json", "quota shop -o json",
					    "quota lint -o json", "quota admit --pod POD -o json",
					    "quota preempt --pod POD -o json"};
	static const char *const kinds[] = {"QuotaList", "Quota", "QuotaList", "QuotaAdmission",
					    "QuotaPreemption"};
	struct buf out = BUF_INIT, err = BUF_INIT;

	(void)state;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		cJSON *json;

		run(words[i], dump, &out, &err);
		json = cJSON_Parse(out.data);
		assert_non_null(json);
		assert_string_equal(cJSON_GetStringValue(
					    cJSON_GetObjectItemCaseSensitive(json, "kind")),
				    kinds[i]);
		cJSON_Delete(json);
	}
	buf_fini(&out);
	buf_fini(&err);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tables),	  cmocka_unit_test(test_preempt),
		cmocka_unit_test(test_no_quotas), cmocka_unit_test(test_misplaced_names),
		cmocka_unit_test(test_cover_all), cmocka_unit_test(test_json_is_the_answer),
	};

	return cmocka_run_group_tests(tests, make_files, remove_files);
}
