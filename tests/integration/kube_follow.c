/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The aggregator as a process that follows a scripted API server: when it is ready, what it says of
 * trouble, what becomes of what it promised to pods, how it ends.
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

#include "aggregator/api/extender_call.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/kube_peer.h"
#include "tests/process.h"

enum { AWAIT_SECONDS = 30, NEWCOMERS = 50 };

struct scene {
	struct kube_peer *peer;
	char *folder, *kubeconfig, *log, *url, *ready_url, *nodes_url;
	pid_t pid;
};

static int setup(void **state)
{
	struct scene *s = mem_zalloc(1, sizeof(*s));

	s->peer = kube_peer_new();
	s->folder = folder_make();
	s->kubeconfig = mem_printf("%s/config", s->folder);
	s->log = mem_printf("%s/log", s->folder);
	kube_peer_write_config(s->peer, s->kubeconfig);
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
	free(s->url);
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

	s->url = mem_printf("http://%s", listen);
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
	assert_true(kube_peer_await_held(s->peer, "/api/v1/nodes?limit"));
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

/* --- what is promised to pods, and what the API tells of them --------------------------------- */

#define PODS  "/api/v1/pods?"
#define NODES "/api/v1/nodes?"
#define SPEC  "\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"1\"}}}]"
#define POD(version, spec, status)                                                                 \
	"{\"metadata\":{\"namespace\":\"default\",\"name\":\"web\",\"uid\":\"u-web\","             \
	"\"resourceVersion\":\"" version "\"},\"spec\":{" spec SPEC "},\"status\":{" status "}}"
#define EVENT(type, pod) "{\"type\":\"" type "\",\"object\":" pod "}\n"
#define NEWS(version)	 POD(version, "", "")
#define FAILED(version, since, more)                                                               \
	POD(version, "",                                                                           \
	    more "\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\","                \
		 "\"lastTransitionTime\":\"" since "\"}]")
#define OLD   "2026-01-31T12:00:00Z"
#define LATER "2026-01-31T12:00:01Z"

static void start_with_a_node(struct scene *s)
{
	struct peer_answer list = {.body = NODE_LIST};

	kube_peer_script(s->peer, "/api/v1/nodes?limit", &list);
	start(s);
	await_ready(s, 200, "ok\n");
	assert_true(kube_peer_await_held(s->peer, PODS));
}

static void ask(struct scene *s, const char *verb)
{
	char *url = mem_printf("%s/extender/%s", s->url, verb);
	struct buf body = BUF_INIT;

	assert_int_equal(http_post(url, "{\"Pod\":" NEWS("1") ",\"NodeNames\":[\"n1\"]}", &body),
			 200);
	assert_non_null(strstr(body.data, "n1"));
	buf_fini(&body);
	free(url);
}

static void await_metric(struct scene *s, const char *line)
{
	char *url = mem_printf("%s/metrics", s->url);
	char *part = mem_printf("\n%s\n", line);
	struct wanted w = {url, 200, part};

	if (!await(answers, &w, AWAIT_SECONDS))
		fail_msg("no %s", line);
	free(part);
	free(url);
}

/* Then the loop has heard of all that the API told before. */
static void await_pods(struct scene *s, const char *part)
{
	char *url = mem_printf("%s/v1/pods", s->url);
	struct wanted w = {url, 200, part};

	assert_true(await(answers, &w, AWAIT_SECONDS));
	free(url);
}

static void tell(struct scene *s, const char *event)
{
	assert_true(kube_peer_send(s->peer, PODS, event) > 0);
}

static void what_is_promised_is_bound_and_settled(void **state)
{
	struct scene *s = *state;

	start_with_a_node(s);
	tell(s, EVENT("ADDED", NEWS("101")));
	ask(s, "filter");
	ask(s, "prioritize");
	await_metric(s, "evenkeel_ledger_entries{state=\"charged\"} 1");
	tell(s, EVENT("MODIFIED", POD("102", "\"nodeName\":\"n1\",", "")));
	await_metric(s, "evenkeel_ledger_bound_total 1");
	await_metric(s, "evenkeel_ledger_gone_total{why=\"settled\"} 1");
	await_metric(s, "evenkeel_ledger_gone_total{why=\"expired\"} 0");
	await_metric(s, "evenkeel_ledger_entries{state=\"bound\"} 0");
}

/* By events that come within the second of the question, and tell of the year before. */
static void what_is_promised_to_a_pod_that_is_given_up_is_released(void **state)
{
	struct scene *s = *state;

	start_with_a_node(s);
	tell(s, EVENT("ADDED", NEWS("101")));
	ask(s, "prioritize");
	tell(s, EVENT("MODIFIED", FAILED("102", OLD, "")));
	await_metric(s, "evenkeel_ledger_gone_total{why=\"unschedulable\"} 1");
	/* The next round: that it was given up before is no news, whatever else is. */
	ask(s, "prioritize");
	tell(s, EVENT("MODIFIED", FAILED("103", OLD, "\"qosClass\":\"Burstable\",")));
	/* It waits for its victims; then no more. */
	tell(s, EVENT("MODIFIED", FAILED("104", LATER, "\"nominatedNodeName\":\"n1\",")));
	tell(s, EVENT("MODIFIED",
		      "{\"metadata\":{\"namespace\":\"default\",\"name\":\"last\",\"uid\":\"u\","
		      "\"resourceVersion\":\"105\"},\"spec\":{" SPEC ",\"nodeName\":\"n1\"}}"));
	await_pods(s, "\"last\"");
	await_metric(s, "evenkeel_ledger_entries{state=\"charged\"} 1");
	tell(s, EVENT("MODIFIED", FAILED("106", LATER, "")));
	await_metric(s, "evenkeel_ledger_gone_total{why=\"unschedulable\"} 2");
	await_metric(s, "evenkeel_ledger_gone_total{why=\"expired\"} 0");
}

static void what_is_promised_to_a_pod_that_goes_is_released(void **state)
{
	struct scene *s = *state;

	start_with_a_node(s);
	tell(s, EVENT("ADDED", NEWS("101")));
	ask(s, "filter");
	tell(s, EVENT("DELETED", NEWS("102")));
	await_metric(s, "evenkeel_ledger_gone_total{why=\"released\"} 1");
}

/* The scheduler may have seen the node before us, and a view is made ten times a second at most. */
static void no_pod_is_refused_for_what_has_arrived(void **state)
{
	struct scene *s = *state;
	int64_t longest_ns = 0;
	char *url, *refused;
	int late = 0;

	start_with_a_node(s);
	assert_true(kube_peer_await_held(s->peer, NODES));
	url = mem_printf("%s/extender/filter", s->url);
	for (int i = 0; i < NEWCOMERS; i++) {
		char *event = mem_printf("{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":"
					 "\"new-%d\",\"resourceVersion\":\"%d\"}}}\n",
					 i, 100 + i);
		char *question =
			mem_printf("{\"Pod\":" NEWS("1") ",\"NodeNames\":[\"new-%d\"]}", i);
		char *passed = mem_printf("{\"NodeNames\":[\"new-%d\"]}", i);
		struct buf body = BUF_INIT;
		int64_t began_ns, took_ns;

		assert_true(kube_peer_send(s->peer, NODES, event) > 0);
		began_ns = clock_mono_ns();
		assert_int_equal(http_post(url, question, &body), 200);
		took_ns = clock_mono_ns() - began_ns;
		longest_ns = took_ns > longest_ns ? took_ns : longest_ns;
		/* A scheduler does not wait for longer, whatever a busy machine does meanwhile. */
		if (took_ns >= EXTENDER_REFRESH_NS && strcmp(body.data, passed) != 0)
			late++;
		else
			assert_string_equal(body.data, passed);
		buf_fini(&body);
		free(passed);
		free(question);
		free(event);
	}
	free(url);
	print_message("          longest answer %.1f ms\n", (double)longest_ns / NS_PER_MS);
	refused = mem_printf("evenkeel_extender_refusals_total{reason=\"unknownNode\"} %d", late);
	await_metric(s, refused);
	free(refused);
	assert_true(late < NEWCOMERS / 2);
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

#define ENROLS "--enrolment-key=x"

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
		{"--snapshot=x", "--standalone", 2, "--snapshot stands in for an API"},
		{"--nudge-claim=a/b", "--standalone", 2, "--nudge-claim is of the Kubernetes API"},
		{"--nudge-claim=a", NULL, 2, "--nudge-claim: \"a\" is no NAMESPACE/NAME"},
		{"--events=nodes", "--snapshot=x", 2, "--events are of the Kubernetes API"},
		{"--events=odd", NULL, 2, "--events: "},
		{"--own-secrets=a", "--standalone", 2, "--own-secrets needs the Kubernetes API"},
		{"--own-secrets=a", NULL, 2, "--own-secrets needs --enrolment-key"},
		{"--join-token-file=x", NULL, 2, "--join-token-file: agents need --enrolment-key"},
		{"--enrol-service-account=a/b", NULL, 2, "agents need --enrolment-key"},
		{ENROLS, "--enrol-service-account=a/b --standalone", 2, "asks the Kubernetes API"},
		{ENROLS, "--enrol-service-account=b", 2, "\"b\" is no NAMESPACE/NAME"},
		{"--enrolment-key=", NULL, 2, "--enrolment-key: \"\" is no path"},
		{ENROLS, NULL, 2, "--enrolment-key: no agent could report"},
		{"--allow-shared-key=false", NULL, 2, "without --enrolment-key no agent could"},
		{"--allow-shared-key=true", NULL, 2, "no --key-file has a shared key"},
		{"--watcher-stddev=smoothed:1001", NULL, 2, "neither raw nor smoothed:N"},
		{"--watcher-stddev=smooth", NULL, 2, "neither raw nor smoothed:N"},
		{"--default-pod-cpu=x", NULL, 2, "--default-pod-cpu: "},
		{"--default-pod-cpu=-1", NULL, 2, "--default-pod-cpu: \"-1\" is below 0"},
		{"--extender-blend=x", NULL, 2, "--extender-blend: "},
		{"--record-size=x", NULL, 2, "--record-size: "},
		{"--record-size=1", NULL, 2, "--record-size: \"1\" is below 1Mi"},
		{"--enrolment-key=/nowhere/x", "--standalone --join-token-file=x", 1,
		 "--enrolment-key: /nowhere/x: cannot be written"},
		{"--record=/nowhere/at/all", "--standalone", 1, "--record /nowhere"},
	};
	struct scene *s = *state;
	char *ingest = mem_printf("--ingest=ipc://%s/ingest", s->folder);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *words = mem_strdup(cases[i].b ? cases[i].b : ""), *save;
		char *argv[8] = {(char *)program_path("evenkeel-aggregator"), ingest,
				 (char *)cases[i].a};
		struct buf out = BUF_INIT, err = BUF_INIT;
		int n = 3, status;

		for (char *w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save))
			argv[n++] = w;
		status = process_run(argv, &out, &err);
		if (status != cases[i].status || !strstr(err.data, cases[i].why))
			fail_msg("%s %s: %d, %s", cases[i].a, words, status, err.data);
		free(words);
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
		SCENE(what_is_promised_is_bound_and_settled),
		SCENE(what_is_promised_to_a_pod_that_is_given_up_is_released),
		SCENE(what_is_promised_to_a_pod_that_goes_is_released),
		SCENE(no_pod_is_refused_for_what_has_arrived),
		SCENE(stops_while_it_waits_for_the_api),
		SCENE(wrong_options_stop_the_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
