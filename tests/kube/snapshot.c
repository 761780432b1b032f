/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an aggregator knows of a real cluster as one file: with it the command line must answer
 * offline, byte for byte, as the aggregator did, in whatever order the file lists its objects. And
 * what kubectl prints is a file of that kind, too, which knows nothing of use.
 *
 * Time passes between two answers, and with it the age of what was measured. So the time of an
 * answer and the ages in it are taken out of both before they are compared; and since views go on,
 * the aggregator is asked before and after its snapshot, until it said the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <curl/curl.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shared/mem.h"
#include "tests/kube_testbed.h"
#include "tests/kube_truth.h"
#include "tests/kube_usage.h"
#include "tests/kube_world.h"
#include "tests/process.h"
#include "tests/stack.h"

enum { OK = 0, STALE = 4 };

#define POD "tests/kube/pod.yaml"

static struct kube_testbed *bed;

/* What is asked: words of the command line, which end with NULL. */
static const char *const questions[][7] = {
	{"nodes", "-o", "json", NULL},
	{"pods", "-A", "-o", "json", NULL},
	{"scores", "--pod", POD, "--explain", "-o", "json", NULL},
};

enum { QUESTIONS = sizeof(questions) / sizeof(questions[0]) };

static char *in_folder(const char *name)
{
	return mem_printf("%s/%s", bed->folder, name);
}

static void write_file(const char *path, const char *data, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), len);
	close(fd);
}

/* evenkeel FROM WHERE question..; its exit status, stdout and stderr. */
static int ask(const char *from, const char *where, const char *const *question, struct buf *out,
	       struct buf *err)
{
	char *argv[12] = {mem_strdup(program_path("evenkeel"))};
	int n = 1, status;

	argv[n++] = (char *)from;
	argv[n++] = (char *)where;
	for (; *question; question++)
		argv[n++] = (char *)*question;
	buf_clear(out);
	buf_clear(err);
	status = process_run(argv, out, err);
	free(argv[0]);
	return status;
}

/* The same, which must succeed; the caller frees the answer. */
static char *answer(const char *from, const char *where, const char *const *question)
{
	struct buf out = BUF_INIT, err = BUF_INIT;
	int status = ask(from, where, question, &out, &err);

	if (status != OK)
		fail_msg("evenkeel %s %s: %d: %s", from, question[0], status,
			 err.data ? err.data : "no word");
	buf_fini(&err);
	return buf_take(&out, NULL);
}

/* Takes every value that follows this text out of JSON without blanks. */
static void blank(char *json, const char *before)
{
	char *to = json, *at;

	while ((at = strstr(json, before)) != NULL) {
		at += strlen(before);
		memmove(to, json, (size_t)(at - json));
		to += at - json;
		json = at + (*at == '"' ? strcspn(at + 1, "\"") + 2 : strcspn(at, ",}"));
	}
	memmove(to, json, strlen(json) + 1);
}

static char *timeless(char *json)
{
	blank(json, "\"time\":");
	blank(json, "\"ageSeconds\":");
	blank(json, "{\"name\":\"age\",\"unit\":\"seconds\",\"value\":");
	return json;
}

/* Fails at the first difference. */
static void expect_same(const char *what, const char *a, const char *b)
{
	size_t at = 0;

	while (a[at] && a[at] == b[at])
		at++;
	if (a[at] != b[at])
		fail_msg("%s differ at byte %zu: %.*s | %.*s", what, at, 120,
			 a + (at < 40 ? 0 : at - 40), 120, b + (at < 40 ? 0 : at - 40));
}

/* --- live and offline ------------------------------------------------------------------------ */

/* What the aggregator said around its snapshot. */
struct moment {
	char *url, *ingest, *file; /* of the aggregator, and where its snapshot is */
	struct kube_truth truth;
	struct kube_usage usage;
	char *answers[QUESTIONS];
};

static void forget(struct moment *m)
{
	for (int i = 0; i < QUESTIONS; i++)
		free(m->answers[i]);
}

/* The newest view has every agent. */
static bool is_heard(void *ctx)
{
	cJSON *status = kube_testbed_get(bed, 0, "/v1/status");
	const cJSON *fresh = json_at(status, "agents.fresh");
	bool all = fresh && fresh->valuedouble == WORLD_NODES;

	(void)ctx;
	cJSON_Delete(status);
	return all;
}

/*
 * True when the answers were the same before and after. Agents go on meanwhile: none may fall
 * silent.
 */
static bool is_caught(void *ctx)
{
	struct moment *m = ctx;
	char *url = mem_printf("%s/v1/snapshot", m->url);
	struct buf snapshot = BUF_INIT;
	bool same = true;

	forget(m);
	kube_usage_send(&m->usage, &m->truth, m->ingest, bed->key_path);
	assert_true(await(is_heard, NULL, 30));
	for (int i = 0; i < QUESTIONS; i++)
		m->answers[i] = timeless(answer("--server", m->url, questions[i]));
	assert_int_equal(http_get(url, &snapshot), 200);
	write_file(m->file, snapshot.data, snapshot.len);
	for (int i = 0; i < QUESTIONS; i++) {
		char *after = timeless(answer("--server", m->url, questions[i]));

		same = same && strcmp(after, m->answers[i]) == 0;
		free(after);
	}
	buf_fini(&snapshot);
	free(url);
	return same;
}

static void expect_offline(const struct moment *m)
{
	for (int i = 0; i < QUESTIONS; i++) {
		char *offline = timeless(answer("--snapshot", m->file, questions[i]));

		assert_true(strlen(offline) > 1000);
		expect_same(questions[i][0], m->answers[i], offline);
		print_message("          %zu bytes of %s are the same\n", strlen(offline),
			      questions[i][0]);
		free(offline);
	}
}

static void test_offline_answers_as_live(void **state)
{
	const struct kube_aggregator *a = &bed->aggregators[0];
	cJSON *list = control_plane_kubectl_get(bed->plane, "nodes,pods,replicasets,jobs");
	struct moment m = {
		.url = mem_printf("http://127.0.0.1:%d", a->http_port),
		.ingest = mem_printf("tcp://127.0.0.1:%d", a->ingest_port),
		.file = in_folder("snapshot.json"),
	};

	(void)state;
	kube_truth_read(&m.truth, list);
	assert_true(await(is_caught, &m, 90));
	expect_offline(&m);
	forget(&m);
	kube_truth_fini(&m.truth);
	cJSON_Delete(list);
	free(m.url);
	free(m.ingest);
	free(m.file);
}

/* --- completeness ---------------------------------------------------------------------------- */

static const char *text_at(const cJSON *json, const char *path)
{
	const char *text = cJSON_GetStringValue(json_at(json, path));

	return text ? text : "";
}

static bool is_same_object(const cJSON *a, const cJSON *b)
{
	static const char *const members[] = {"kind", "metadata.namespace", "metadata.name",
					      "metadata.uid"};

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		if (strcmp(text_at(a, members[i]), text_at(b, members[i])) != 0)
			return false;
	return true;
}

static const cJSON *find_same(const cJSON *items, const cJSON *object)
{
	const cJSON *item;

	cJSON_ArrayForEach (item, items) {
		if (is_same_object(item, object))
			return item;
	}
	return NULL;
}

/* Every object kubectl reports, and no other; quotas as they were written. */
static void test_snapshot_lists_all(void **state)
{
	cJSON *list = control_plane_kubectl_get(
		bed->plane, "nodes,namespaces,priorityclasses,replicasets,statefulsets,daemonsets,"
			    "jobs,replicationcontrollers,pdb,elasticquotas,pods");
	cJSON *snapshot = kube_testbed_get(bed, 0, "/v1/snapshot");
	const cJSON *items = json_at(snapshot, "list.items"), *object;
	int count = 0, quotas = 0;

	(void)state;
	cJSON_ArrayForEach (object, json_at(list, "items")) {
		const cJSON *item = find_same(items, object);

		if (strcmp(text_at(object, "status.phase"), "Succeeded") == 0)
			continue;
		if (!item)
			fail_msg("the snapshot lacks the %s %s", text_at(object, "kind"),
				 text_at(object, "metadata.name"));
		count++;
		if (strcmp(text_at(object, "kind"), "ElasticQuota") != 0)
			continue;
		assert_true(cJSON_Compare(json_at(item, "spec"), json_at(object, "spec"), true));
		quotas++;
	}
	assert_int_equal(cJSON_GetArraySize(items), count);
	assert_int_equal(quotas, 2);
	print_message("          %d objects are those of kubectl\n", count);
	cJSON_Delete(snapshot);
	cJSON_Delete(list);
}

/* --- order ----------------------------------------------------------------------------------- */

/* The end of the JSON value that begins here. */
static const char *skip_value(const char *at)
{
	bool quoted = false;
	int depth = 0;

	for (;; at++) {
		if (quoted) {
			quoted = *at != '"';
			at += *at == '\\';
			continue;
		}
		if (depth == 0 && strchr(",]}", *at))
			return at;
		quoted = *at == '"';
		depth += *at == '{' || *at == '[';
		depth -= *at == '}' || *at == ']';
	}
}

/*
 * A fixed pseudorandom order of the items of the array that follows the key; digits stay as they
 * are.
 */
static size_t shuffle(char *text, const char *key)
{
	char *array = strstr(text, key), *copy;
	const char *at, *items[8192];
	size_t lengths[8192], count = 0;
	uint64_t random = 88172645463325252ULL;

	assert_non_null(array);
	array += strlen(key);
	copy = mem_strdup(array);
	for (at = copy; *at != ']'; at += *at == ',') {
		assert_true(count < sizeof(items) / sizeof(items[0]));
		items[count] = at;
		at = skip_value(at);
		lengths[count] = (size_t)(at - items[count]);
		count++;
	}
	for (size_t left = count; left > 0; left--) {
		size_t pick;

		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		pick = (size_t)(random % left);
		memcpy(array, items[pick], lengths[pick]);
		array += lengths[pick];
		*array++ = left > 1 ? ',' : ']';
		items[pick] = items[left - 1];
		lengths[pick] = lengths[left - 1];
	}
	free(copy);
	return count;
}

static char *read_file(const char *path)
{
	struct buf text = BUF_INIT;
	char chunk[65536];
	FILE *f = fopen(path, "r");
	size_t got;

	assert_non_null(f);
	while ((got = fread(chunk, 1, sizeof(chunk), f)) > 0)
		buf_add(&text, chunk, got);
	fclose(f);
	return buf_take(&text, NULL);
}

static void test_order_does_not_matter(void **state)
{
	char *file = in_folder("snapshot.json"), *other = in_folder("shuffled.json");
	char *text = read_file(file);

	(void)state;
	assert_true(shuffle(text, "\"items\":[") > 500);
	assert_int_equal(shuffle(text, "\"nodes\":["), WORLD_NODES);
	assert_true(shuffle(text, "\"pods\":[") > 300);
	write_file(other, text, strlen(text));
	for (int i = 0; i < QUESTIONS; i++) {
		char *a = answer("--snapshot", file, questions[i]);
		char *b = answer("--snapshot", other, questions[i]);

		expect_same(questions[i][0], a, b);
		free(a);
		free(b);
	}
	free(text);
	free(file);
	free(other);
}

/* --- without use ----------------------------------------------------------------------------- */

/* A dump has pods that ended, too; an aggregator is not told of them. */
static void remove_ended(cJSON *items)
{
	cJSON *item, *next;

	for (item = items->child; item; item = next) {
		const char *phase = cJSON_GetStringValue(json_at(item, "phase"));

		next = item->next;
		if (phase && strcmp(phase, "Succeeded") == 0)
			cJSON_Delete(cJSON_DetachItemViaPointer(items, item));
	}
}

static void expect_truth(const cJSON *truth, const char *text)
{
	cJSON *json = cJSON_Parse(text);
	cJSON *items = cJSON_GetObjectItemCaseSensitive(json, "items");
	struct buf why = BUF_INIT;

	assert_non_null(items);
	remove_ended(items);
	if (kube_truth_compare(truth, items, &why))
		fail_msg("%s", why.data);
	print_message("          %d items are told as kubectl reports them\n",
		      cJSON_GetArraySize(items));
	buf_fini(&why);
	cJSON_Delete(json);
}

/* What it knows is told in full; the status and a sentence tell what is missing. */
static void test_plain_dump(void **state)
{
	cJSON *list = control_plane_kubectl_get(
		bed->plane, "nodes,pods,replicasets,jobs,pdb,priorityclasses,namespaces");
	char *text = cJSON_PrintUnformatted(list), *file = in_folder("dump.json");
	struct buf out = BUF_INIT, err = BUF_INIT;
	struct kube_truth truth;

	(void)state;
	kube_truth_read(&truth, list);
	write_file(file, text, strlen(text));
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ask("--snapshot", file, questions[i], &out, &err), STALE);
		print_message("          said: %s", err.data ? err.data : "nothing\n");
		assert_true(err.data && strstr(err.data, "no usage"));
		expect_truth(i ? truth.pods : truth.nodes, out.data);
	}
	kube_truth_fini(&truth);
	buf_fini(&out);
	buf_fini(&err);
	cJSON_Delete(list);
	free(text);
	free(file);
}

static void test_cluster_is_made(void **state)
{
	(void)state;
	kube_world_make(bed->plane);
	kube_world_make_quotas(bed->plane);
	kube_testbed_start_aggregator(bed, 0, bed->plane->admin);
	kube_testbed_expect(bed, 0, WORLD_PODS + 1);
	kube_world_run_pods(bed->plane);
	kube_testbed_expect(bed, 0, WORLD_PODS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cluster_is_made),
		cmocka_unit_test(test_offline_answers_as_live),
		cmocka_unit_test(test_snapshot_lists_all),
		cmocka_unit_test(test_order_does_not_matter),
		cmocka_unit_test(test_plain_dump),
	};
	int failed;

	if (sodium_init() < 0 || curl_global_init(CURL_GLOBAL_DEFAULT))
		return 1;
	bed = kube_testbed_new();
	if (!bed)
		return 0;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	kube_testbed_free(bed, failed != 0);
	return failed != 0;
}
