/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libmicrohttpd reports a connection when it gets it, or when it runs next (from version 1.0 on),
 * or never, if it has no memory for it. None of these uses up the limit of connections. This test
 * stands between the server and the library.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <assert.h>
#include <dlfcn.h>
#include <microhttpd.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/http_plain.h"
#include "tests/http_raw.h"

enum {
	FILES = 300, /* leaves the server the least limit of connections */
	LIMIT = 64,
	LATE_MOST = 64, /* between two runs of the library */
};

enum way {
	TOLD_AT_ONCE,
	TOLD_LATE,
	NOT_TAKEN, /* when it is given it */
	TOLD_NEVER, /* when it runs */
	LOST_BY_TURNS, /* every second one */
};

static atomic_int way;
static atomic_uint given;

struct late {
	struct sockaddr_storage from;
	socklen_t len;
	int fd;
};

/* Each loop is a thread with a library of its own. */
static _Thread_local struct late late[LATE_MOST];
static _Thread_local int late_count;

typedef enum MHD_Result add_function(struct MHD_Daemon *daemon, int fd, const struct sockaddr *from,
				     socklen_t len);
typedef enum MHD_Result run_function(struct MHD_Daemon *daemon);

static void *library(const char *name)
{
	void *function = dlsym(RTLD_NEXT, name);

	assert(function);
	return function;
}

enum MHD_Result MHD_add_connection(struct MHD_Daemon *daemon, int fd, const struct sockaddr *from,
				   socklen_t len)
{
	struct late *l = &late[late_count];

	switch (atomic_load(&way)) {
	case TOLD_AT_ONCE:
		return ((add_function *)library("MHD_add_connection"))(daemon, fd, from, len);
	case NOT_TAKEN:
		close(fd);
		return MHD_NO;
	default:
		assert(late_count < LATE_MOST);
		late_count++;
		*l = (struct late){.fd = fd, .len = len};
		memcpy(&l->from, from, len);
		return MHD_YES;
	}
}

static bool is_lost(void)
{
	int how = atomic_load(&way);

	return how == TOLD_NEVER || (how == LOST_BY_TURNS && atomic_fetch_add(&given, 1) % 2);
}

enum MHD_Result MHD_run(struct MHD_Daemon *daemon)
{
	add_function *add = (add_function *)library("MHD_add_connection");

	for (int i = 0; i < late_count; i++) {
		if (is_lost())
			close(late[i].fd);
		else
			add(daemon, late[i].fd, (struct sockaddr *)&late[i].from, late[i].len);
	}
	late_count = 0;
	return ((run_function *)library("MHD_run"))(daemon);
}

static const char ask[] = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";

static bool is_served(int fd)
{
	struct buf got = BUF_INIT;
	bool served = raw_say(fd, ask) && raw_read(fd, "ok\n", &got);

	buf_fini(&got);
	return served;
}

/* More than the limit, one after the other. */
static void expect_many(const struct scene *s, enum way how, bool served)
{
	atomic_store(&way, how);
	for (int i = 0; i < 2 * LIMIT; i++) {
		int fd = raw_connect(s);

		assert_int_equal(is_served(fd), served);
		close(fd);
	}
}

static int setup_few(void **state)
{
	struct rlimit before, few;
	struct scene *s;

	atomic_store(&way, TOLD_AT_ONCE);
	if (setup(state))
		return -1;
	s = *state;
	http_stop(s->server);
	getrlimit(RLIMIT_NOFILE, &before);
	few = (struct rlimit){FILES, before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(http_plain_start(&s->server, "127.0.0.1:0", &s->ctx, NULL), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	return 0;
}

static void test_told_at_once_or_late(void **state)
{
	expect_many(*state, TOLD_AT_ONCE, true);
	expect_many(*state, TOLD_LATE, true);
	expect_many(*state, TOLD_AT_ONCE, true);
}

static void test_never_told(void **state)
{
	expect_many(*state, NOT_TAKEN, false);
	expect_many(*state, TOLD_LATE, true);
	expect_many(*state, TOLD_NEVER, false);
	expect_many(*state, TOLD_AT_ONCE, true);
}

/* A lost connection takes no other connection with it. */
static void test_some_of_many(void **state)
{
	enum { CLIENTS = LIMIT / 2 };
	int fds[CLIENTS], served = 0;

	atomic_store(&way, LOST_BY_TURNS);
	for (int i = 0; i < CLIENTS; i++)
		fds[i] = raw_connect(*state);
	for (int i = 0; i < CLIENTS; i++)
		served += is_served(fds[i]);
	assert_int_equal(served, CLIENTS / 2);
	for (int i = 0; i < CLIENTS; i++)
		close(fds[i]);
	expect_many(*state, TOLD_LATE, true);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_few, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_told_at_once_or_late),
		TEST(test_never_told),
		TEST(test_some_of_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
