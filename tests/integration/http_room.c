/* SPDX-License-Identifier: Apache-2.0 */
/*
 * More clients than the HTTP server has connections or descriptors for, all together or one alone:
 * they wait, or are turned away and counted, and others are served meanwhile and afterwards.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/http_plain.h"
#include "tests/http_raw.h"

/* At its limit of connections the server serves those it has, and others when these end. */
static void test_connection_limit(void **state)
{
	enum { CLIENTS = 400, FILES = 400 };
	struct rlimit before, few;
	struct scene *s = *state;
	struct error error;
	struct buf got = BUF_INIT;
	int fds[CLIENTS];

	getrlimit(RLIMIT_NOFILE, &before);
	if (before.rlim_cur < 2 * CLIENTS + FILES) {
		print_message("SKIP: the limit of open files is too low\n");
		skip();
	}
	http_stop(s->server);
	few = (struct rlimit){FILES, before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(http_plain_start(&s->server, "127.0.0.1:0", &s->ctx, &error), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);

	for (int i = 0; i < CLIENTS; i++)
		fds[i] = raw_connect(s);
	assert_true(raw_say(fds[0], "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"));
	assert_true(raw_read(fds[0], "ok\n", &got));
	for (int i = 0; i < CLIENTS; i++)
		close(fds[i]);
	assert_alive(s);
	buf_fini(&got);
}

/* Takes every descriptor below that one; how many. */
static int take_descriptors(int below, int *taken)
{
	struct rlimit few;
	int count = 0;

	getrlimit(RLIMIT_NOFILE, &few);
	few.rlim_cur = (rlim_t)below;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	while ((taken[count] = fcntl(0, F_DUPFD_CLOEXEC, 0)) >= 0)
		count++;
	assert_int_equal(errno, EMFILE);
	return count;
}

static uint64_t refused_as(const struct scene *s, enum access_refusal why)
{
	return counter_get(&s->counters.access.refused[why]);
}

/*
 * While there is no descriptor for clients they are turned away, rather than left to hang; those
 * who are in go on, and who comes later is let in though none of them has left.
 */
static void test_no_descriptors(void **state)
{
	static const char ask[] = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
	struct scene *s = *state;
	struct buf got = BUF_INIT;
	int known = raw_connect(s), late = raw_socket(), taken[1024], count;
	struct rlimit before;

	getrlimit(RLIMIT_NOFILE, &before);
	assert_true(raw_say(known, ask) && raw_read(known, "ok\n", &got));
	assert_true(late < 1000);
	count = take_descriptors(late + 1, taken);
	raw_connect_from(late, s);
	assert_false(raw_read(late, NULL, &got));
	assert_int_equal(got.len, 0);
	assert_true(raw_say(known, ask) && raw_read(known, "ok\n", &got));
	while (count)
		close(taken[--count]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_alive(s);
	assert_int_equal(refused_as(s, ACCESS_REFUSAL_NO_DESCRIPTOR), 1);
	assert_true(raw_say(known, ask) && raw_read(known, "ok\n", &got));
	close(known);
	close(late);
	buf_fini(&got);
}

/* One client of another machine has a limit of connections; others still get in. */
static void test_client_limit(void **state)
{
	enum { MOST = 2048 };
	struct sockaddr_in other = {.sin_family = AF_INET};
	struct pollfd fds[MOST + 1];
	struct scene *s = *state;
	struct buf got = BUF_INIT;
	struct rlimit files;
	int fd;

	getrlimit(RLIMIT_NOFILE, &files);
	if (files.rlim_cur < 4 * MOST) {
		print_message("SKIP: the limit of open files is too low\n");
		skip();
	}
	http_stop(s->server);
	assert_int_equal(http_start_with(&s->server,
					 &(struct http_config){.listen = "0.0.0.0:0",
							       .ctx = &s->ctx,
							       .insecure_open = true},
					 NULL),
			 0);
	for (int i = 0; i <= MOST; i++)
		fds[i] = (struct pollfd){.fd = raw_connect(s), .events = POLLIN};
	assert_int_equal(poll(fds, MOST + 1, 30000), 1);
	assert_int_equal(refused_as(s, ACCESS_REFUSAL_CONNECTIONS), 1);
	/* A request that comes with the connection is not answered either. */
	fd = raw_connect(s);
	raw_say(fd, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
	assert_false(raw_read(fd, NULL, &got));
	assert_int_equal(got.len, 0);
	close(fd);
	fd = raw_socket();
	other.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&other, sizeof(other)), 0);
	raw_connect_from(fd, s);
	assert_true(raw_say(fd, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"));
	assert_true(raw_read(fd, "ok\n", &got));
	close(fd);
	for (int i = 0; i <= MOST; i++)
		close(fds[i].fd);
	/* What it left it may have again. */
	assert_alive(s);
	buf_fini(&got);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_connection_limit),
		TEST(test_no_descriptors),
		TEST(test_client_limit),
	};

	int rc;

	curl_global_init(CURL_GLOBAL_DEFAULT);
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	curl_global_cleanup();
	return rc;
}
