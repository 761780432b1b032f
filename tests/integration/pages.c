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

static void expect(const struct attack *attacks, size_t count)
{
	struct buf got = BUF_INIT;

	for (size_t i = 0; i < count; i++) {
		long status;
		int answers = stranger_ask(stack->aggregators[0].http_port, attacks[i].bytes,
					   attacks[i].len, &status, &got);

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
#define EXPECT(attacks) expect(attacks, sizeof(attacks) / sizeof((attacks)[0]))

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
		ATTACK("GET /healthz HTTP/1.1\nHost: 127.0.0.1\n\n", 400),
		ATTACK("GET  /healthz HTTP/1.1\r\n" OURS "\r\n", 400),
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
		cmocka_unit_test(test_foreign_pages_are_refused),
		cmocka_unit_test(test_unclear_requests_are_refused),
		cmocka_unit_test(test_open_start_is_refused),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
