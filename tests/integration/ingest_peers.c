/* SPDX-License-Identifier: Apache-2.0 */
/* Peers as they should not be: that ask in pieces, before they are answered, or without end, and say nothing at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "aggregator/edge/ingest_peers.h"
#include "aggregator/edge/ingest_socket.h"
#include "shared/buf.h"
#include "shared/clock.h"
#include "shared/mem.h"

#define PATIENCE_MS 30000

static const char hello[] = "\0SP\0\0\x30\0\0";

enum { HELLO_LEN = sizeof(hello) - 1, HEAD_LEN = 9, ID_LEN = 4 };

struct scene {
	char dir[64];
	struct endpoint endpoint;
	struct ingest_peers *peers;
};

static int setup(void **state)
{
	struct scene *s = mem_zalloc(1, sizeof(*s));
	char *url;
	int fd;

	snprintf(s->dir, sizeof(s->dir), "/tmp/evenkeel-test-XXXXXX");
	assert_non_null(mkdtemp(s->dir));
	url = mem_printf("ipc://%s/socket", s->dir);
	assert_int_equal(endpoint_parse(&s->endpoint, url, NULL), 0);
	free(url);
	assert_int_equal(ingest_socket_listen(&fd, &s->endpoint, NULL), 0);
	assert_int_equal(ingest_peers_open(&s->peers, fd, ENDPOINT_IPC), 0);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	ingest_socket_remove(&s->endpoint);
	ingest_peers_close(s->peers);
	rmdir(s->dir);
	free(s);
	return 0;
}

static int connect_peer(const struct scene *s)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	memcpy(address.sun_path, s->endpoint.path, strlen(s->endpoint.path) + 1);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static void tell(int fd, const void *data, size_t len)
{
	assert_int_equal(send(fd, data, len, MSG_NOSIGNAL), (int)len);
}

/* A message of len bytes of c under the id. */
static void add_message(struct buf *out, uint8_t id, char c, size_t len)
{
	uint8_t head[HEAD_LEN], ids[ID_LEN] = {0x80, 0, 0, id};

	wire_put_head(ENDPOINT_IPC, ID_LEN + len, head);
	buf_add(out, head, sizeof(head));
	buf_add(out, ids, sizeof(ids));
	for (size_t i = 0; i < len; i++)
		buf_add_char(out, c);
}

/* Waits until the descriptor says there is something, as the loop does. */
static void expect_message(const struct scene *s, struct ingest_message *m, uint8_t id, char c,
			   size_t len)
{
	struct pollfd p = {.fd = ingest_peers_fd(s->peers), .events = POLLIN};

	while (ingest_peers_receive(s->peers, m))
		assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
	assert_int_equal(m->len, len);
	for (size_t i = 0; i < len; i++)
		assert_int_equal(((const char *)m->data)[i], c);
	assert_int_equal(m->route.len, ID_LEN);
	assert_int_equal(m->route.stack[3], id);
}

static void expect_nothing(const struct scene *s)
{
	struct pollfd p = {.fd = ingest_peers_fd(s->peers), .events = POLLIN};
	struct ingest_message m;

	for (int i = 0; i < 3; i++)
		assert_int_equal(ingest_peers_receive(s->peers, &m), -EAGAIN);
	assert_int_equal(poll(&p, 1, 0), 0);
}

static void expect_answer(int fd, uint8_t id, const char *text)
{
	char got[128];
	struct buf want = BUF_INIT;
	size_t at = HEAD_LEN + ID_LEN, len = at + strlen(text);

	add_message(&want, id, 'x', strlen(text));
	assert_int_equal(recv(fd, got, len, 0), (int)len);
	assert_memory_equal(got, want.data, at);
	assert_memory_equal(got + at, text, len - at);
	buf_fini(&want);
}

static void expect_hello(int fd)
{
	char got[HELLO_LEN];

	assert_int_equal(recv(fd, got, sizeof(got), 0), HELLO_LEN);
	assert_memory_equal(got, wire_hello, sizeof(got));
}

/* Byte for byte, and as pieces that begin in one message and end in another. */
static void test_pieces(void **state)
{
	static const size_t steps[] = {1, 5, 13, 21, 40};
	struct scene *s = *state;
	struct ingest_message m;

	for (size_t k = 0; k < sizeof(steps) / sizeof(steps[0]); k++) {
		struct buf all = BUF_INIT;
		int fd = connect_peer(s);
		uint8_t next = 1;

		buf_add(&all, hello, HELLO_LEN);
		for (uint8_t id = 1; id <= 3; id++)
			add_message(&all, id, (char)('a' + id), 10);
		for (size_t at = 0; at < all.len; at += steps[k]) {
			size_t left = all.len - at;

			tell(fd, all.data + at, left < steps[k] ? left : steps[k]);
			while (!ingest_peers_receive(s->peers, &m)) {
				assert_int_equal(m.route.stack[3], next);
				assert_int_equal(m.len, 10);
				assert_int_equal(*(const char *)m.data, 'a' + next);
				next++;
			}
			while (!ingest_peers_receive(s->peers, &m))
				next++;
		}
		while (next <= 3)
			expect_message(s, &m, next, (char)('a' + next), 10), next++;
		close(fd);
		buf_fini(&all);
		ingest_peers_receive(s->peers, &m);
	}
	expect_nothing(s);
}

/* What was read along with another message is not forgotten when the kernel has nothing more to tell. */
static void test_asks_before_it_is_answered(void **state)
{
	struct scene *s = *state;
	struct buf all = BUF_INIT;
	struct ingest_message m[3];
	int fd = connect_peer(s);

	buf_add(&all, hello, HELLO_LEN);
	for (uint8_t id = 1; id <= 3; id++)
		add_message(&all, id, 'x', id * 100u);
	tell(fd, all.data, all.len);
	for (uint8_t id = 1; id <= 3; id++)
		expect_message(s, &m[id - 1], id, 'x', id * 100u);
	expect_nothing(s);
	expect_hello(fd);
	ingest_peers_reply(s->peers, &m[1].route, "second", 6);
	ingest_peers_reply(s->peers, &m[0].route, "first", 5);
	expect_answer(fd, 2, "second");
	expect_answer(fd, 1, "first");
	/* Gone: its answer is lost, and nobody else gets it. */
	close(fd);
	expect_nothing(s);
	fd = connect_peer(s);
	expect_nothing(s);
	ingest_peers_reply(s->peers, &m[2].route, "third", 5);
	expect_hello(fd);
	assert_int_equal(recv(fd, all.data, 1, 0), -1);
	assert_int_equal(errno, EAGAIN);
	close(fd);
	buf_fini(&all);
}

/* One that would fill no buffer at once, among small ones of another peer. */
static void test_long_message(void **state)
{
	struct scene *s = *state;
	struct buf large = BUF_INIT, small = BUF_INIT;
	struct pollfd p = {.fd = ingest_peers_fd(s->peers), .events = POLLIN};
	int fds[] = {connect_peer(s), connect_peer(s)};
	size_t at = 0, smalls = 0, len = WIRE_MESSAGE_MAX - ID_LEN;
	struct ingest_message m;
	bool done = false;

	buf_add(&large, hello, HELLO_LEN);
	add_message(&large, 7, 'L', len);
	tell(fds[1], hello, HELLO_LEN);
	add_message(&small, 8, 's', 20);
	while (!done) {
		ssize_t n = at < large.len
				    ? send(fds[0], large.data + at, large.len - at, MSG_NOSIGNAL)
				    : 0;

		at += n > 0 ? (size_t)n : 0;
		tell(fds[1], small.data, small.len);
		assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
		while (!ingest_peers_receive(s->peers, &m)) {
			if (m.route.stack[3] == 8) {
				assert_int_equal(m.len, 20);
				smalls++;
				continue;
			}
			assert_int_equal(m.len, len);
			assert_int_equal(((const char *)m.data)[len - 1], 'L');
			done = true;
		}
	}
	assert_true(smalls > 0);
	close(fds[0]);
	close(fds[1]);
	buf_fini(&large);
	buf_fini(&small);
}

static bool is_closed(const struct scene *s, int fd)
{
	struct pollfd p = {.fd = ingest_peers_fd(s->peers), .events = POLLIN};
	struct ingest_message m;
	char back[64];
	ssize_t n;

	if (poll(&p, 1, PATIENCE_MS) == 1)
		assert_int_equal(ingest_peers_receive(s->peers, &m), -EAGAIN);
	do
		n = recv(fd, back, sizeof(back), 0);
	while (n > 0);
	return n == 0 || errno != EAGAIN;
}

/* Who does not say hello is closed by the timer, whatever others do; who did stays. */
static void test_silent_stranger(void **state)
{
	struct scene *s = *state;
	int known = connect_peer(s), silent;
	char back[8];

	tell(known, hello, HELLO_LEN);
	expect_nothing(s);
	silent = connect_peer(s);
	while (!is_closed(s, silent))
		;
	expect_hello(known);
	assert_int_equal(recv(known, back, sizeof(back), 0), -1);
	assert_int_equal(errno, EAGAIN);
	close(silent);
	close(known);
}

/* Out of descriptors nobody waits in the backlog, and the next one after that is served. */
static void test_out_of_descriptors(void **state)
{
	struct scene *s = *state;
	struct buf message = BUF_INIT;
	struct rlimit before, tight;
	struct ingest_message m;
	int fd = connect_peer(s);

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	tight = before;
	tight.rlim_cur = (rlim_t)fd + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
	while (!is_closed(s, fd))
		;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	expect_nothing(s);
	close(fd);
	fd = connect_peer(s);
	buf_add(&message, hello, HELLO_LEN);
	add_message(&message, 1, 'x', 10);
	tell(fd, message.data, message.len);
	expect_message(s, &m, 1, 'x', 10);
	close(fd);
	buf_fini(&message);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_pieces, setup, teardown),
		cmocka_unit_test_setup_teardown(test_asks_before_it_is_answered, setup, teardown),
		cmocka_unit_test_setup_teardown(test_long_message, setup, teardown),
		cmocka_unit_test_setup_teardown(test_silent_stranger, setup, teardown),
		cmocka_unit_test_setup_teardown(test_out_of_descriptors, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
