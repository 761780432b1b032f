/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Kubernetes API dies while plans are made and schedulers ask. Every question goes on being
 * answered from what was known, the answers that are plans say how old that is, readiness and
 * metrics tell, and when the API is back the news of it is in all answers without a word of
 * anybody.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"
#include "tests/kube_peer.h"
#include "tests/process.h"

enum { TIMEOUT_S = 60, OUTAGES = 3 };

#define NODES "/api/v1/nodes?"
#define NODE(name, version)                                                                        \
	"{\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"" version                      \
	"\"},\"status\":{\"allocatable\":{\"cpu\":\"4\",\"memory\":\"8Gi\",\"pods\":\"110\"},"     \
	"\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}"
#define POD                                                                                        \
	"{\"metadata\":{\"namespace\":\"default\",\"name\":\"web\",\"uid\":\"u\"},\"spec\":{"      \
	"\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"1\"}}}]}}"
#define ARGS "\"NodeNames\":[\"n1\",\"n2\"]}"

static struct {
	struct kube_peer *peer;
	char *folder, *log, *base;
	pid_t pid;
} s;

/* What is asked all the time; `body` NULL: GET. Their answers name every node there is. */
static const struct question {
	const char *path, *body;
	bool plans; /* the answer is a plan, and says when it is stale */
} questions[] = {
	{"/v1/nodes", NULL, false},
	{"/v1/drain", NULL, true},
	{"/v1/slack", NULL, true},
	{"/v1/scores", "{\"pod\":" POD "}", false},
	{"/v1/fit", "{\"pod\":" POD "}", false},
	{"/extender/filter", "{\"Pod\":" POD "," ARGS, false},
	{"/extender/prioritize", "{\"Pod\":" POD "," ARGS, false},
};

enum { QUESTIONS = sizeof(questions) / sizeof(questions[0]) };

static void start(void)
{
	char *program = mem_strdup(program_path("evenkeel-aggregator"));
	char *kubeconfig = mem_printf("%s/config", s.folder);
	char *listen = mem_printf("127.0.0.1:%d", free_port());
	char *ingest = mem_printf("ipc://%s/ingest", s.folder);
	char *argv[] = {program, (char *)"--listen",	 listen,     (char *)"--ingest",
			ingest,	 (char *)"--kubeconfig", kubeconfig, NULL};

	kube_peer_write_config(s.peer, kubeconfig);
	s.base = mem_printf("http://%s", listen);
	setenv("EVENKEEL_PLAN_INTERVAL", "1s", 1);
	s.pid = process_start(s.log, argv);
	unsetenv("EVENKEEL_PLAN_INTERVAL");
	assert_true(s.pid > 0);
	free(program);
	free(kubeconfig);
	free(listen);
	free(ingest);
}

static int setup(void **state)
{
	const struct peer_answer list = {
		.body = "{\"kind\":\"NodeList\",\"metadata\":{\"resourceVersion\":\"10\"},"
			"\"items\":[" NODE("n1", "3") "]}"};

	(void)state;
	s.peer = kube_peer_new();
	s.folder = folder_make();
	s.log = mem_printf("%s/log", s.folder);
	kube_peer_script(s.peer, "/api/v1/nodes?limit", &list);
	start();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	process_stop(s.pid, SIGKILL);
	kube_peer_free(s.peer);
	folder_remove(s.folder);
	free(s.log);
	free(s.base);
	return 0;
}

static long ask(const char *path, const char *json, struct buf *body)
{
	char *url = mem_printf("%s%s", s.base, path);
	long status = json ? http_post(url, json, body) : http_get(url, body);

	free(url);
	return status;
}

struct wish {
	const char *path, *json;
	const char *has, *lacks; /* parts of a good answer; NULL: whatever */
};

static bool is_granted(void *ctx)
{
	const struct wish *w = ctx;
	struct buf body = BUF_INIT;
	bool yes = ask(w->path, w->json, &body) == 200 && body.data &&
		   (!w->has || strstr(body.data, w->has)) &&
		   (!w->lacks || !strstr(body.data, w->lacks));

	buf_fini(&body);
	return yes;
}

static void await_answer(const char *path, const char *json, const char *has, const char *lacks)
{
	struct wish w = {path, json, has, lacks};

	if (!await(is_granted, &w, TIMEOUT_S)) {
		struct buf body = BUF_INIT;
		long status = ask(path, json, &body);

		fail_msg("%s: %ld %s", path, status, body.data ? body.data : "");
	}
}

/* Every question is answered at once, with what was known. */
static void expect_answers(const char *node)
{
	for (int i = 0; i < QUESTIONS; i++) {
		const struct question *q = &questions[i];
		struct buf body = BUF_INIT;
		long status = ask(q->path, q->body, &body);

		if (status != 200 || (!q->plans && !strstr(body.data, node)))
			fail_msg("%s: %ld %s", q->path, status, body.data ? body.data : "");
		buf_fini(&body);
	}
}

static void expect_stale(void)
{
	await_answer("/readyz", NULL, "ok\nnodes: stale: ", NULL);
	await_answer("/metrics", NULL,
		     "evenkeel_kube_state{resource=\"nodes\",state=\"stale\"} 1\n", NULL);
	for (int i = 0; i < QUESTIONS; i++)
		if (questions[i].plans)
			await_answer(questions[i].path, NULL, "\"stale\":\"", NULL);
}

static void expect_well(void)
{
	await_answer("/readyz", NULL, "ok\n", "stale");
	await_answer("/metrics", NULL,
		     "evenkeel_kube_state{resource=\"nodes\",state=\"synced\"} 1\n", NULL);
	for (int i = 0; i < QUESTIONS; i++)
		await_answer(questions[i].path, questions[i].body, NULL, "\"stale\":\"");
}

static void test_dies_and_comes_back(void **state)
{
	(void)state;
	expect_well();
	for (int outage = 0; outage < OUTAGES; outage++) {
		assert_true(kube_peer_await_held(s.peer, NODES));
		kube_peer_refuse(s.peer, true);
		for (int i = 0; i < 10; i++)
			expect_answers("n1");
		expect_stale();
		expect_answers("n1");
		kube_peer_refuse(s.peer, false);
		expect_well();
	}
	assert_true(kube_peer_await_held(s.peer, NODES));
	kube_peer_send(s.peer, NODES, "{\"type\":\"ADDED\",\"object\":" NODE("n2", "11") "}\n");
	await_answer("/v1/nodes", NULL, "\"n2\"", NULL);
	for (int i = 0; i < QUESTIONS; i++)
		if (!questions[i].plans)
			await_answer(questions[i].path, questions[i].body, "n2", NULL);
	await_answer("/v1/drain?node=n2", NULL, "\"n2\"", NULL);
	assert_int_equal(process_stop(s.pid, SIGTERM), 0);
}

/* Its history is gone as well (410), and meanwhile a node came and another went. */
static void test_comes_back_without_its_history(void **state)
{
	const struct peer_answer gone = {.status = 410,
					 .body = "{\"kind\":\"Status\",\"code\":410,\"reason\":"
						 "\"Expired\",\"message\":\"too old\"}"};
	const struct peer_answer list = {
		.body = "{\"kind\":\"NodeList\",\"metadata\":{\"resourceVersion\":\"50\"},"
			"\"items\":[" NODE("n2", "40") "]}"};

	(void)state;
	expect_well();
	assert_true(kube_peer_await_held(s.peer, NODES));
	kube_peer_refuse(s.peer, true);
	expect_stale();
	expect_answers("n1");
	kube_peer_script(s.peer, NODES, &gone);
	kube_peer_script(s.peer, NODES, &list);
	kube_peer_refuse(s.peer, false);
	expect_well();
	await_answer("/v1/nodes", NULL, "\"n2\"", "\"n1\"");
	await_answer("/v1/fit", questions[4].body, "\"n2\"", "\"n1\"");
	await_answer("/v1/drain", NULL, NULL, "\"n1\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_dies_and_comes_back, setup, teardown),
		cmocka_unit_test_setup_teardown(test_comes_back_without_its_history, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
