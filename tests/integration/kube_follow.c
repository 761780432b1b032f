/* SPDX-License-Identifier: Apache-2.0 */
/* The aggregator as a process that follows a scripted API server: when it is ready, what it says of trouble, how
 * it ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/kube_peer.h"
#include "tests/process.h"

enum { AWAIT_SECONDS = 30 };

struct scene {
	struct kube_peer *peer;
	char *folder, *kubeconfig, *log, *ready_url, *nodes_url;
	pid_t pid;
};

static int setup(void **state)
{
	struct scene *s = mem_zalloc(1, sizeof(*s));
	FILE *file;

	s->peer = kube_peer_new();
	s->folder = folder_make();
	s->kubeconfig = mem_printf("%s/config", s->folder);
	s->log = mem_printf("%s/log", s->folder);
	file = fopen(s->kubeconfig, "w");
	fprintf(file,
		"apiVersion: v1\nkind: Config\ncurrent-context: c\n"
		"clusters: [{name: k, cluster: {server: \"%s\"}}]\n"
		"users: [{name: u, user: {}}]\n"
		"contexts: [{name: c, context: {cluster: k, user: u}}]\n",
		kube_peer_url(s->peer));
	fclose(file);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	if (s->pid > 0)
		process_stop(s->pid, SIGKILL);
	kube_peer_free(s->peer);
	folder_remove(s->folder);
	free(s->kubeconfig);
	free(s->log);
	free(s->ready_url);
	free(s->nodes_url);
	free(s);
	return 0;
}

static void start(struct scene *s)
{
	char *program = mem_strdup(program_path("evenkeel-aggregator"));
	int port = free_port();
	char *listen = mem_printf("127.0.0.1:%d", port);
	char *ingest = mem_printf("ipc://%s/ingest", s->folder);
	char *argv[] = {program, (char *)"--listen",	 listen,	(char *)"--ingest",
			ingest,	 (char *)"--kubeconfig", s->kubeconfig, NULL};

	s->ready_url = mem_printf("http://%s/readyz", listen);
	s->nodes_url = mem_printf("http://%s/v1/nodes", listen);
	s->pid = process_start(s->log, argv);
	assert_true(s->pid > 0);
	free(program);
	free(listen);
	free(ingest);
}

struct wanted {
	const char *url;
	long status;
	const char *part; /* of the body */
};

static bool answers(void *ctx)
{
	const struct wanted *w = ctx;
	struct buf body = BUF_INIT;
	long status = http_get(w->url, &body);
	bool yes = status == w->status && body.data && strstr(body.data, w->part);

	buf_fini(&body);
	return yes;
}

static void await_ready(struct scene *s, long status, const char *part)
{
	struct wanted w = {s->ready_url, status, part};

	if (!await(answers, &w, AWAIT_SECONDS)) {
		struct buf body = BUF_INIT;
		long got = http_get(s->ready_url, &body);

		fail_msg("%ld %s, wanted %ld %s", got, body.data, status, part);
	}
}

#define NODE_LIST                                                                                  \
	"{\"kind\":\"NodeList\",\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[{"            \
	"\"metadata\":{"                                                                           \
	"\"name\":\"n1\"},\"status\":{\"allocatable\":{\"cpu\":\"4\",\"memory\":\"8Gi\"}}}]}"

static void is_ready_once_everything_was_read(void **state)
{
	struct scene *s = *state;
	struct peer_answer held = {.body = "{\"kind\":\"NodeList\",\"items\":[", .then = PEER_HOLD};
	struct wanted nodes;

	kube_peer_script(s->peer, "/api/v1/nodes?limit", &held);
	start(s);
	await_ready(s, 503, "waiting for the Kubernetes API\nnodes: listing\n");
	kube_peer_send(
		s->peer, "/api/v1/nodes?limit",
		"{\"metadata\":{\"name\":\"n1\"},\"status\":{\"allocatable\":{\"cpu\":\"4\"}}}"
		"],\"metadata\":{\"resourceVersion\":\"10\"}}");
	kube_peer_end(s->peer, "/api/v1/nodes?limit");
	await_ready(s, 200, "ok\n");
	nodes = (struct wanted){s->nodes_url, 200, "\"n1\""};
	assert_true(await(answers, &nodes, AWAIT_SECONDS));
}

static void is_ready_without_what_it_may_not_see(void **state)
{
	struct scene *s = *state;
	struct peer_answer no = {.status = 403, .body = "{\"kind\":\"Status\",\"message\":\"no\"}"};

	kube_peer_lack(s->peer, "scheduling.x-k8s.io");
	kube_peer_script(s->peer, "poddisruptionbudgets?", &no);
	start(s);
	await_ready(s, 200,
		    "ok\npoddisruptionbudgets: forbidden: the RBAC rule apiGroups: [\"policy\"], "
		    "resources: [\"poddisruptionbudgets\"]");
}

static void is_not_ready_without_pods(void **state)
{
	struct scene *s = *state;
	struct peer_answer no = {.status = 403};

	kube_peer_script(s->peer, "/api/v1/pods?", &no);
	start(s);
	await_ready(s, 503, "waiting for the Kubernetes API\npods: forbidden: ");
}

static void stays_ready_with_what_it_knows(void **state)
{
	struct scene *s = *state;
	struct peer_answer list = {.body = NODE_LIST};
	struct wanted nodes;

	kube_peer_script(s->peer, "/api/v1/nodes?limit", &list);
	start(s);
	await_ready(s, 200, "ok\n");
	kube_peer_refuse(s->peer, true);
	await_ready(s, 200, "ok\nnodes: stale: ");
	nodes = (struct wanted){s->nodes_url, 200, "\"n1\""};
	assert_true(answers(&nodes));
	kube_peer_refuse(s->peer, false);
}

static void stops_while_it_waits_for_the_api(void **state)
{
	struct scene *s = *state;
	int64_t begin_ns;

	kube_peer_refuse(s->peer, true);
	start(s);
	await_ready(s, 503, "cannot be reached");
	begin_ns = clock_mono_ns();
	assert_int_equal(process_stop(s->pid, SIGTERM), 0);
	assert_true(clock_mono_ns() - begin_ns < 10 * NS_PER_SEC);
	s->pid = 0;
	kube_peer_refuse(s->peer, false);
}

static void wrong_options_stop_the_start(void **state)
{
	static const struct {
		const char *a, *b;
		int status;
		const char *why;
	} cases[] = {
		{"--kubeconfig=/nowhere/config", "--listen=127.0.0.1:0", 1, "/nowhere/config"},
		{"--kubeconfig=/nowhere/config", "--standalone", 2, "--standalone asks no API"},
		{"--snapshot=/nowhere/dump", "--listen=127.0.0.1:0", 1, "/nowhere/dump"},
		{"--context=c", "--listen=127.0.0.1:0", 2, "there is no --kubeconfig"},
	};
	struct scene *s = *state;
	char *ingest = mem_printf("--ingest=ipc://%s/ingest", s->folder);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *argv[] = {(char *)program_path("evenkeel-aggregator"), (char *)cases[i].a,
				(char *)cases[i].b, ingest, NULL};
		struct buf out = BUF_INIT, err = BUF_INIT;

		assert_int_equal(process_run(argv, &out, &err), cases[i].status);
		assert_non_null(strstr(err.data, cases[i].why));
		buf_fini(&out);
		buf_fini(&err);
	}
	free(ingest);
}

#define SCENE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENE(is_ready_once_everything_was_read),
		SCENE(is_ready_without_what_it_may_not_see),
		SCENE(is_not_ready_without_pods),
		SCENE(stays_ready_with_what_it_knows),
		SCENE(stops_while_it_waits_for_the_api),
		SCENE(wrong_options_stop_the_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
