/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages in a browser, and clients whose requests a proxy would read otherwise, attack the
 * aggregator as it is shipped.
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
#include <sys/stat.h>

#include "shared/mem.h"
#include "tests/process.h"
#include "tests/stack.h"
#include "tests/stranger.h"

static struct stack *stack;

static int setup(void **state)
{
	static const char *const more[] = {"--allowed-host", "evenkeel.example", NULL};

	(void)state;
	stack = stack_new();
	stack->aggregators[0].more = more;
	stack_start_aggregator(stack, 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	stack_free(stack, 0);
	return 0;
}

struct attack {
	const char *bytes;
	size_t len;
	long status;
};

#define ATTACK(text, status)                                                                       \
	{                                                                                          \
		text, sizeof(text) - 1, status                                                     \
	}

static void expect_of(int aggregator, const struct attack *attacks, size_t count)
{
	struct buf got = BUF_INIT;

	for (size_t i = 0; i < count; i++) {
		long status;
		int answers = stranger_ask(stack->aggregators[aggregator].http_port,
					   attacks[i].bytes, attacks[i].len, &status, &got);

		if (answers != 1 || status != attacks[i].status)
			fail_msg("%s: %d answers, %ld: %s", attacks[i].bytes, answers, status,
				 got.data);
	}
	buf_fini(&got);
}

#define GET(path)	"GET " path " HTTP/1.1\r\n"
#define OURS		"Host: 127.0.0.1\r\n"
#define JSON		"Content-Type: application/json\r\n"
#define POST		"POST /v1/quotas/admit HTTP/1.1\r\n"
#define EXPECT(attacks) expect_of(0, attacks, sizeof(attacks) / sizeof((attacks)[0]))

/* DNS rebinding: the browser calls the address by the attacker's name. */
static void test_foreign_names_are_refused(void **state)
{
	static const struct attack attacks[] = {
		ATTACK(GET("/v1/nodes") "Host: attacker.example:2020\r\n\r\n", 403),
		ATTACK(GET("/metrics") "Host: 127.0.0.1.attacker.example\r\n\r\n", 403),
		ATTACK(GET("/watcher") "Host: localhost.attacker.example\r\n\r\n", 403),
		ATTACK(GET("/v1/nodes") "Host: 10.0.0.1\r\n\r\n", 403),
		ATTACK(GET("/v1/nodes") "Host: localhost@attacker.example\r\n\r\n", 403),
		ATTACK(GET("/v1/nodes") "Host: \r\n\r\n", 403),
		ATTACK(GET("/v1/nodes") "Host: 127.0.0.1:x\r\n\r\n", 403),
		ATTACK(POST "Host: attacker.example\r\n" JSON "Content-Length: 2\r\n\r\n{}", 403),
		ATTACK(GET("/v1/nodes") "\r\n", 400),
		ATTACK("GET /v1/nodes HTTP/1.0\r\n\r\n", 400),
		ATTACK(GET("/v1/nodes") "Host: localhost\r\nHost: localhost\r\n\r\n", 400),
		/* Names of ours. */
		ATTACK(GET("/v1/nodes") "Host: LocalHost.:2020\r\n\r\n", 200),
		ATTACK(GET("/v1/nodes") "Host: 127.0.0.1:80\r\n\r\n", 200),
		ATTACK(GET("/v1/nodes") "Host: [::1]:2020\r\n\r\n", 200),
		ATTACK(GET("/v1/nodes") "Host: evenkeel.example:2020\r\n\r\n", 200),
		/* Whoever probes has no name of ours, and learns nothing. */
		ATTACK(GET("/healthz") "Host: 10.1.2.3:2020\r\n\r\n", 200),
	};

	(void)state;
	EXPECT(attacks);
}

static void expect_ready(int port, const char *host, const char *body)
{
	char *request = mem_printf("GET /readyz HTTP/1.1\r\nHost: %s\r\n\r\n", host);
	struct buf got = BUF_INIT;
	const char *at;
	long status;

	assert_int_equal(stranger_ask(port, request, strlen(request), &status, &got), 1);
	assert_int_equal(status, 503);
	at = strstr(got.data, "\r\n\r\n");
	if (!at || strncmp(at + 4, body, strlen(body)) != 0)
		fail_msg("%s: %s", host, got.data);
	buf_fini(&got);
	free(request);
}

static bool is_alive(void *url)
{
	struct buf body = BUF_INIT;
	long status = http_get(url, &body);

	buf_fini(&body);
	return status == 200;
}

/* Why an aggregator is not ready names servers and accounts: a foreign page learns that it is not. */
static void test_foreign_names_learn_the_status_alone(void **state)
{
	static const char config[] =
		"apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts:\n- name: c\n"
		"  context: {cluster: k, user: u}\nclusters:\n- name: k\n"
		"  cluster: {server: 'http://127.0.0.1:1'}\nusers:\n- name: u\n  user: {}\n";
	int port = free_port();
	char *path = mem_printf("%s/config", stack->folder),
	     *log = mem_printf("%s/waiting", stack->folder),
	     *ingest = mem_printf("ipc://%s/waiting-ingest", stack->folder),
	     *listen = mem_printf("127.0.0.1:%d", port),
	     *url = mem_printf("http://%s/healthz", listen),
	     *program = mem_strdup(program_path("evenkeel-aggregator"));
	char *argv[] = {program, (char *)"--kubeconfig", path,	 (char *)"--listen",
			listen,	 (char *)"--ingest",	 ingest, NULL};
	FILE *f = fopen(path, "w");
	pid_t pid;

	(void)state;
	assert_non_null(f);
	fputs(config, f);
	assert_int_equal(fclose(f), 0);
	pid = process_start(log, argv);
	assert_true(pid > 0);
	assert_true(await(is_alive, url, 20));
	expect_ready(port, "127.0.0.1", "waiting for the Kubernetes API\nnodes: ");
	expect_ready(port, "attacker.example", "not ready\n");
	expect_ready(port, "10.1.2.3:2020", "not ready\n");
	assert_int_equal(process_stop(pid, SIGTERM), 0);
	free(program);
	free(url);
	free(listen);
	free(ingest);
	free(log);
	free(path);
}

/* A path without credentials needs a name of ours, also beside guarded paths. */
static void test_an_open_watcher_has_its_names(void **state)
{
	static const struct attack attacks[] = {
		ATTACK(GET("/watcher") "Host: attacker.example:2020\r\n\r\n", 403),
		ATTACK(GET("/watcher/health") "Host: attacker.example:2020\r\n\r\n", 403),
		ATTACK(GET("/watcher/health") "Host: evenkeel.example\r\n\r\n", 503),
		ATTACK(GET("/watcher/health") "Host: 10.96.0.7:2020\r\n\r\n",
		       503), /* a Service's */
		ATTACK(GET("/watcher/health") OURS "\r\n", 503),
		/* (Nothing is measured yet.) There the token is what a page of another server lacks. */
		ATTACK(GET("/v1/nodes") "Host: attacker.example\r\n\r\n", 401),
		ATTACK(GET("/v1/nodes") "Host: attacker.example\r\nAuthorization: Bearer "
					"a-token-of-some-length-0123456789\r\n\r\n",
		       200),
	};
	char *tokens = mem_printf("%s/tokens", stack->folder);
	const char *const more[] = {"--allowed-host",
				    "evenkeel.example",
				    "--token-file",
				    tokens,
				    "--open-watcher",

				    NULL};
	FILE *f = fopen(tokens, "w");

	(void)state;
	assert_non_null(f);
	fputs("a-token-of-some-length-0123456789\n", f);
	assert_int_equal(fchmod(fileno(f), 0600), 0);
	assert_int_equal(fclose(f), 0);
	stack->aggregators[1].more = more;
	stack_start_aggregator(stack, 1);
	expect_of(1, attacks, sizeof(attacks) / sizeof(attacks[0]));
	stack_kill_aggregator(stack, 1);
	free(tokens);
}

static void test_foreign_pages_are_refused(void **state)
{
	static const struct attack attacks[] = {
		ATTACK(GET("/v1/nodes") OURS "Origin: http://attacker.example\r\n\r\n", 403),
		ATTACK(GET("/healthz") OURS "Origin: http://attacker.example\r\n\r\n", 403),
		ATTACK(GET("/v1/nodes") OURS "Origin: null\r\n\r\n", 403),
		ATTACK(GET("/v1/nodes") OURS "Origin: http://127.0.0.1:8080\r\n\r\n", 403),
		ATTACK(GET("/v1/nodes") OURS "Origin: http://127.0.0.1.attacker.example\r\n\r\n",
		       403),
		ATTACK(POST OURS JSON
		       "Origin: https://attacker.example\r\nContent-Length: 2\r\n\r\n{}",
		       403),
		ATTACK("OPTIONS /v1/fit HTTP/1.1\r\n" OURS
		       "Origin: http://attacker.example\r\n\r\n",
		       403),
		ATTACK(GET("/v1/nodes") OURS "Origin: http://127.0.0.1\r\n\r\n", 200),
		/* What a page may send without asking first. */
		ATTACK(POST OURS "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}", 415),
		ATTACK(POST OURS "Content-Type: application/x-www-form-urlencoded\r\n"
				 "Content-Length: 2\r\n\r\n{}",
		       415),
		ATTACK(POST OURS "Content-Type: text/plain; a=application/json\r\n"
				 "Content-Length: 2\r\n\r\n{}",
		       415),
		ATTACK(POST OURS "Content-Type: application/jsonx\r\nContent-Length: 2\r\n\r\n{}",
		       415),
		ATTACK(POST OURS "Content-Length: 2\r\n\r\n{}", 415),
		ATTACK("POST /extender/filter HTTP/1.1\r\n" OURS
		       "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}",
		       415),
		/* JSON, which lacks a pod. */
		ATTACK(POST OURS "Content-Type: Application/JSON ; charset=utf-8\r\n"
				 "Content-Length: 2\r\n\r\n{}",
		       400),
	};

	(void)state;
	EXPECT(attacks);
}

static void test_unclear_requests_are_refused(void **state)
{
	static const struct attack attacks[] = {
		ATTACK("POST /v1/fit HTTP/1.0\r\n" OURS JSON
		       "Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n"
		       "0\r\n\r\nGET /healthz HTTP/1.1\r\n" OURS "\r\n",
		       400),
		ATTACK(GET("/healthz") OURS "X: a\0b\r\n\r\n", 400),
		ATTACK(GET("/healthz") OURS "X: a\0\r\n\r\n", 400),
		ATTACK(GET("/healthz") OURS "X: \0\r\nY: b\r\n\r\n", 400),
		ATTACK(GET("/healthz") "Host: 127.0.0.1\0.attacker.example\r\n\r\n", 400),
		ATTACK(GET("/healthz\0x") OURS "\r\n", 400),
		ATTACK(GET("/healthz") OURS "X: a\r\n b\r\n\r\n", 400),
		ATTACK(GET("/healthz") OURS "X: a\nY: b\r\n\r\n", 400),
		ATTACK(GET("/healthz") OURS "X: a\rContent-Length: 5\r\n\r\n", 400),
		ATTACK(GET("/healthz") OURS "X: a\r\r\n\r\n", 400),
		ATTACK("GET /healthz HTTP/1.1\nHost: 127.0.0.1\n\n", 400),
		ATTACK("GET  /healthz HTTP/1.1\r\n" OURS "\r\n", 400),
		ATTACK(GET("/healthz\rx") OURS "\r\n", 400),
		ATTACK(GET("/healthz x") OURS "\r\n", 400),
		ATTACK("GE\rT /healthz HTTP/1.1\r\n" OURS "\r\n", 400),
		ATTACK(GET("/v1%2fnodes") OURS "\r\n", 404),
		ATTACK(GET("%2Fv1/nodes") OURS "\r\n", 404),
		ATTACK(GET("/v1/%2f/nodes") OURS "\r\n", 404),
		ATTACK(GET("/watcher%2Fhealth") OURS "\r\n", 404),
		/* A slash in a value of the query is one. */
		ATTACK(GET("/v1/pods?namespace=a%2fb") OURS "\r\n", 200),
		ATTACK(GET("/healthz") OURS "X:\r\nY: b \t\r\nZ:  c\r\n\r\n", 200),
	};

	(void)state;
	EXPECT(attacks);
}

/* An aggregator that all could ask starts only where that is said; how it ends, or 0. */
static int start_open(const char *open)
{
	char *program = mem_strdup(program_path("evenkeel-aggregator")),
	     *ingest = mem_printf("ipc://%s/ingest", stack->folder),
	     *log = mem_printf("%s/open", stack->folder);
	char *argv[] = {program,
			(char *)"--listen",
			(char *)"0.0.0.0:0",
			(char *)"--ingest",
			ingest,
			(char *)open,
			NULL};
	struct buf out = BUF_INIT, err = BUF_INIT;
	int status = 0;

	if (open)
		process_stop(process_start(log, argv), SIGTERM);
	else
		status = process_run(argv, &out, &err);
	if (!open)
		assert_non_null(strstr(err.data, "--insecure-open"));
	buf_fini(&out);
	buf_fini(&err);
	free(program);
	free(ingest);
	free(log);
	return status;
}

static void test_open_start_is_refused(void **state)
{
	(void)state;
	assert_int_equal(start_open(NULL), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_foreign_names_are_refused),
		cmocka_unit_test(test_foreign_names_learn_the_status_alone),
		cmocka_unit_test(test_an_open_watcher_has_its_names),
		cmocka_unit_test(test_foreign_pages_are_refused),
		cmocka_unit_test(test_unclear_requests_are_refused),
		cmocka_unit_test(test_open_start_is_refused),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
