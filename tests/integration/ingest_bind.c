/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where an ingest listens: what it sets on its sockets, what it does with the file of an ipc
 * socket, what it refuses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/sender_socket.h"
#include "aggregator/edge/ingest.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/ingest_admits.h"
#include "tests/process.h"

#define TIMEOUT_NS (30 * NS_PER_SEC)

struct scene {
	char dir[64];
	int port;
	char url[80];
	struct keyring keys;
	struct counters counters;
	struct ingest *ingests[2];
};

static int setup(void **state)
{
	struct scene *s = mem_zalloc(1, sizeof(*s));

	snprintf(s->dir, sizeof(s->dir), "/tmp/evenkeel-test-XXXXXX");
	s->keys.count = 1;
	s->port = free_port();
	snprintf(s->url, sizeof(s->url), "tcp://127.0.0.1:%d", s->port);
	*state = s;
	return mkdtemp(s->dir) ? 0 : -1;
}

static int teardown(void **state)
{
	struct scene *s = *state;
	char *path = mem_printf("%s/socket", s->dir);

	ingest_close(s->ingests[0]);
	ingest_close(s->ingests[1]);
	unlink(path);
	rmdir(s->dir);
	free(path);
	free(s);
	return 0;
}

/* No frame arrives here. */
static enum frame_result on_interval(void *ctx, const struct ingest_interval *i, struct ack *ack)
{
	(void)ctx;
	(void)i;
	(void)ack;
	fail();
	return FRAME_RESULT_refused;
}

static int try_ingest(struct scene *s, int which, struct error *error)
{
	static const struct ingest_handler handler = {ingest_admits, on_interval, ingest_forgets};

	return ingest_open(&s->ingests[which], s->url, &s->keys, NULL, &s->counters, &handler, NULL,
			   error);
}

static void open_ingest(struct scene *s, int which)
{
	struct error error;
	int rc = try_ingest(s, which, &error);

	if (rc)
		print_error("%s\n", error.text);
	assert_int_equal(rc, 0);
}

static void use_ipc(struct scene *s)
{
	snprintf(s->url, sizeof(s->url), "ipc://%s/socket", s->dir);
}

/* A connection, once it is established. */
static struct sender_socket *connect_to(const struct scene *s)
{
	int64_t until = clock_mono_ns() + TIMEOUT_NS;
	struct sender_socket *socket;
	struct endpoint endpoint;

	assert_int_equal(endpoint_parse(&endpoint, s->url, NULL), 0);
	assert_int_equal(sender_socket_open(&socket, &endpoint, NULL), 0);
	while (!sender_socket_ready(socket) && clock_mono_ns() < until) {
		ingest_step(s->ingests[0], 1, 0, clock_mono_ns());
		poll(NULL, 0, 1);
	}
	assert_true(sender_socket_ready(socket));
	return socket;
}

static int option(int fd, int level, int name)
{
	int value = -1;
	socklen_t len = sizeof(value);

	return getsockopt(fd, level, name, &value, &len) ? -1 : value;
}

static int local_port(int fd)
{
	struct sockaddr_in address = {0};
	socklen_t len = sizeof(address);

	return getsockname(fd, (struct sockaddr *)&address, &len) || address.sin_family != AF_INET
		       ? -1
		       : ntohs(address.sin_port);
}

static int somaxconn(void)
{
	FILE *f = fopen("/proc/sys/net/core/somaxconn", "r");
	int value = 0;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%d", &value), 1);
	fclose(f);
	return value;
}

/* Of this process's sockets on our port, listening and accepted, how many are as they should be. */
static int count_tuned(const struct scene *s, bool listening)
{
	int wanted = somaxconn() < 4096 ? somaxconn() : 4096, count = 0;
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *entry;

	while ((entry = readdir(dir))) {
		int fd = (int)strtol(entry->d_name, NULL, 10);
		struct tcp_info info;
		socklen_t len = sizeof(info);

		if (local_port(fd) != s->port || option(fd, SOL_SOCKET, SO_ACCEPTCONN) != listening)
			continue;
		assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len), 0);
		/* For a listener the kernel puts the longest backlog there. */
		if (listening)
			assert_int_equal(info.tcpi_sacked, wanted);
		assert_int_equal(option(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
		assert_int_equal(option(fd, IPPROTO_TCP, TCP_KEEPIDLE), 10);
		assert_int_equal(option(fd, IPPROTO_TCP, TCP_KEEPINTVL), 5);
		assert_int_equal(option(fd, IPPROTO_TCP, TCP_KEEPCNT), 3);
		assert_int_equal(option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 20000);
		count++;
	}
	closedir(dir);
	return count;
}

static void test_listener_is_tuned(void **state)
{
	struct scene *s = *state;
	struct sender_socket *peer;

	open_ingest(s, 0);
	assert_int_equal(count_tuned(s, true), 1);
	peer = connect_to(s);
	assert_int_equal(count_tuned(s, false), 1);
	sender_socket_close(peer);
}

static void test_bind_refusals(void **state)
{
	struct scene *s = *state;
	struct error error;

	open_ingest(s, 0);
	assert_int_equal(try_ingest(s, 1, &error), -EADDRINUSE);
	assert_non_null(strstr(error.text, "another process listens"));
	snprintf(s->url, sizeof(s->url), "tcp://localhost:%d", s->port);
	assert_int_equal(try_ingest(s, 1, &error), -ENODEV);
	assert_non_null(strstr(error.text, "IP address of this machine"));
	snprintf(s->url, sizeof(s->url), "tcp://192.0.2.1:%d", s->port);
	assert_int_equal(try_ingest(s, 1, &error), -EADDRNOTAVAIL);
	assert_non_null(strstr(error.text, "does not have that address"));
	s->keys.count = 0;
	assert_int_equal(try_ingest(s, 1, &error), -EINVAL);
	assert_non_null(strstr(error.text, "needs a key"));
	snprintf(s->url, sizeof(s->url), "ipc://%s/no/socket", s->dir);
	assert_int_equal(try_ingest(s, 1, &error), -ENOENT);
	/* The first one is none the worse for it. */
	assert_int_equal(count_tuned(s, true), 1);
}

/* Leaves a socket file behind, as a killed process does. */
static void leave_stale_socket(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	memcpy(address.sun_path, path, strlen(path) + 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
}

static void test_ipc_file(void **state)
{
	struct scene *s = *state;
	char *path = mem_printf("%s/socket", s->dir);
	struct error error;
	struct stat st;
	mode_t mask = umask(0);
	FILE *f;

	umask(mask);
	use_ipc(s);
	leave_stale_socket(path);
	open_ingest(s, 0);
	assert_int_equal(stat(path, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(umask(mask), mask);
	/* In use: neither taken over nor removed. */
	assert_int_equal(try_ingest(s, 1, &error), -EADDRINUSE);
	assert_non_null(strstr(error.text, "another process listens"));
	assert_int_equal(stat(path, &st), 0);
	ingest_close(s->ingests[0]);
	s->ingests[0] = NULL;
	assert_int_equal(stat(path, &st), -1);
	/* Somebody's file is left alone. */
	f = fopen(path, "w");
	assert_non_null(f);
	fclose(f);
	assert_int_equal(try_ingest(s, 0, &error), -EEXIST);
	assert_non_null(strstr(error.text, "not a socket"));
	assert_int_equal(stat(path, &st), 0);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_listener_is_tuned, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bind_refusals, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ipc_file, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
