/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an aggregator knows of a real cluster as one file: with it the command line must answer offline, byte for byte, as the
 * aggregator did, in whatever order the file lists its objects. And what kubectl prints is a file of that kind, too, which
 * knows nothing of use.
 *
 * Time passes between two answers, and with it the age of what was measured. So the time of an answer and the ages in it
 * are taken out of both before they are compared; and since views go on, the aggregator is asked before and after its
 * snapshot, until it said the same.
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
static const char *const questions[][6] = {
	{"nodes", "-o", "json", NULL},
	{"pods", "-A", "-o", "json", NULL},
	{"scores", "--pod", POD, "-o", "json", NULL},
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

/* Takes the values of a member out of a text of JSON, wherever it stands. */
static void blank(char *text, const char *member)
{
	char *key = mem_printf("\"%s\":", member), *to = text, *at;

	while ((at = strstr(text, key)) != NULL) {
		at += strlen(key);
		memmove(to, text, (size_t)(at - text));
		to += at - text;
		text = at + strspn(at, " ");
		text += *text == '"' ? strcspn(text + 1, "\"") + 2 : strcspn(text, ",}\n");
	}
	memmove(to, text, strlen(text) + 1);
	free(key);
}

static char *timeless(char *text)
{
	blank(text, "time");
	blank(text, "ageSeconds");
	return text;
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
	char *url, *file; /* of the aggregator, and where its snapshot is */
	char *answers[QUESTIONS];
};

static void forget(struct moment *m)
{
	for (int i = 0; i < QUESTIONS; i++)
		free(m->answers[i]);
}

/* True when the answers were the same before and after. */
static bool is_caught(void *ctx)
{
	struct moment *m = ctx;
	char *url = mem_printf("%s/v1/snapshot", m->url);
	struct buf snapshot = BUF_INIT;
	bool same = true;

	forget(m);
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

/* Nodes and pods with use, all of them. */
static void send_usage(void)
{
	cJSON *list = control_plane_kubectl_get(bed->plane, "nodes,pods,replicasets,jobs");
	char *url = mem_printf("tcp://127.0.0.1:%d", bed->aggregators[0].ingest_port);
	struct kube_truth truth;

	kube_truth_read(&truth, list);
	kube_usage_send(&truth, url, bed->key_path);
	kube_truth_fini(&truth);
	cJSON_Delete(list);
	free(url);
}

static void test_offline_answers_as_live(void **state)
{
	struct moment m = {mem_printf("http://127.0.0.1:%d", bed->aggregators[0].http_port),
			   in_folder("snapshot.json"),
			   {NULL}};

	(void)state;
	send_usage();
	assert_true(await(is_caught, &m, 60));
	for (int i = 0; i < QUESTIONS; i++) {
		char *offline = timeless(answer("--snapshot", m.file, questions[i]));

		assert_true(strlen(offline) > 1000);
		expect_same(questions[i][0], m.answers[i], offline);
		print_message("          %zu bytes of %s are the same\n", strlen(offline),
			      questions[i][0]);
		free(offline);
	}
	forget(&m);
	free(m.url);
	free(m.file);
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

/* A fixed pseudorandom order of the items of the array that follows the key; digits stay as they are. */
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

static void expect_item_count(const char *text, int count)
{
	cJSON *json = cJSON_Parse(text);

	assert_int_equal(cJSON_GetArraySize(json_at(json, "items")), count);
	cJSON_Delete(json);
}

/* The data is there as far as it goes, the status and a sentence tell what is missing. */
static void test_plain_dump(void **state)
{
	cJSON *list = control_plane_kubectl_get(
		bed->plane, "nodes,pods,replicasets,jobs,pdb,priorityclasses,namespaces");
	char *text = cJSON_PrintUnformatted(list), *file = in_folder("dump.json");
	const int counts[] = {WORLD_NODES, WORLD_PODS + 1};
	struct buf out = BUF_INIT, err = BUF_INIT;

	(void)state;
	write_file(file, text, strlen(text));
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ask("--snapshot", file, questions[i], &out, &err), STALE);
		print_message("          said: %s", err.data ? err.data : "nothing\n");
		assert_true(err.data && strstr(err.data, "usage"));
		expect_item_count(out.data, counts[i]);
	}
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
