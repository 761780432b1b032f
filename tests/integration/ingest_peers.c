/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peers as they should not be: that ask in pieces, before they are answered, or without end, and
 * say nothing at all.
 */
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
#include "tests/ingest_admits.h"

#define TIMEOUT_MS 30000

static const char hello[] = "\0SP\0\0\x30\0\0";

enum { HELLO_LEN = sizeof(hello) - 1, HEAD_LEN = 9, ID_LEN = 4 };

struct scene {
	char dir[64];
	struct endpoint endpoint;
	struct ingest_peers *peers;
	struct ingest_counters counters;
	int64_t now_ns; /* time passes when a test says so; 0: by the clock */
};

static int setup(void **state)
{
	struct scene *s = mem_zalloc(1, sizeof(*s));
	char *url;
	int fd;

	s->now_ns = clock_mono_ns() + 3600 * NS_PER_SEC; /* no timer ends */
	snprintf(s->dir, sizeof(s->dir), "/tmp/evenkeel-test-XXXXXX");
	assert_non_null(mkdtemp(s->dir));
	url = mem_printf("ipc://%s/socket", s->dir);
	assert_int_equal(endpoint_parse(&s->endpoint, url, NULL), 0);
	free(url);
	assert_int_equal(ingest_socket_listen(&fd, &s->endpoint, NULL), 0);
	assert_int_equal(
		ingest_peers_open(&s->peers, fd, ENDPOINT_IPC, &s->counters, ingest_forgets, s), 0);
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

static int peer_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	return fd;
}

static void connect_at(const struct scene *s, int fd)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	memcpy(address.sun_path, s->endpoint.path, strlen(s->endpoint.path) + 1);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
}

static int connect_peer(const struct scene *s)
{
	int fd = peer_socket();

	connect_at(s, fd);
	return fd;
}

static int receive(const struct scene *s, struct ingest_message *m)
{
	return ingest_peers_receive(s->peers, m, s->now_ns ? s->now_ns : clock_mono_ns());
}

static void pass(struct scene *s, int64_t seconds)
{
	s->now_ns += seconds * NS_PER_SEC;
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

	while (receive(s, m))
		assert_int_equal(poll(&p, 1, TIMEOUT_MS), 1);
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
		assert_int_equal(receive(s, &m), -EAGAIN);
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
			while (!receive(s, &m)) {
				assert_int_equal(m.route.stack[3], next);
				assert_int_equal(m.len, 10);
				assert_int_equal(*(const char *)m.data, 'a' + next);
				next++;
			}
		}
		while (next <= 3)
			expect_message(s, &m, next, (char)('a' + next), 10), next++;
		close(fd);
		buf_fini(&all);
		receive(s, &m);
	}
	expect_nothing(s);
}

/*
 * What was read along with another message is not forgotten when the kernel has nothing more to
 * tell.
 */
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
		assert_int_equal(poll(&p, 1, TIMEOUT_MS), 1);
		while (!receive(s, &m)) {
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

static uint64_t closed_as(const struct scene *s, enum ingest_closing why)
{
	return counter_get(&s->counters.closed[why]);
}

/* When all that is there was looked at, of which nothing is a message. */
static bool is_closed(const struct scene *s, int fd)
{
	struct ingest_message m;
	char back[64];
	ssize_t n;

	assert_int_equal(receive(s, &m), -EAGAIN);
	do
		n = recv(fd, back, sizeof(back), 0);
	while (n > 0);
	return n == 0 || errno != EAGAIN;
}

/* A message that is a frame, by what its reader says. */
static void say_frame(const struct scene *s, int fd, uint8_t id, bool news)
{
	struct buf message = BUF_INIT;
	struct ingest_message m;

	add_message(&message, id, 'x', 10);
	tell(fd, message.data, message.len);
	expect_message(s, &m, id, 'x', 10);
	ingest_peers_judge(s->peers, &m.route, "node", news);
	buf_fini(&message);
}

static void ask(const struct scene *s, int fd, uint8_t id)
{
	say_frame(s, fd, id, true);
}

/* A frame that was heard before. */
static void repeat(const struct scene *s, int fd)
{
	say_frame(s, fd, 1, false);
}

/* Nothing of what it says is a frame; true: it is closed for this. */
static bool annoy(const struct scene *s, int fd)
{
	struct buf message = BUF_INIT;
	struct ingest_message m;

	add_message(&message, 1, 'x', 10);
	tell(fd, message.data, message.len);
	expect_message(s, &m, 1, 'x', 10);
	ingest_peers_judge(s->peers, &m.route, NULL, false);
	buf_fini(&message);
	return is_closed(s, fd);
}

/* Who never ends a message is closed, whatever comes of it meanwhile. */
static void test_slow_peers(void **state)
{
	struct scene *s = *state;
	int known = connect_peer(s), endless = connect_peer(s);
	struct buf message = BUF_INIT;

	tell(known, hello, HELLO_LEN);
	tell(endless, hello, HELLO_LEN);
	ask(s, known, 1);
	ask(s, endless, 1);
	add_message(&message, 1, 'x', 1000 * 1000);
	tell(endless, message.data, HEAD_LEN + 100);
	for (int i = 0; i < 29; i++) {
		expect_nothing(s);
		pass(s, 1);
		tell(endless, "x", 1);
	}
	expect_nothing(s);
	assert_int_equal(counter_get(&s->counters.connections), 2);
	pass(s, 2);
	assert_true(is_closed(s, endless));
	assert_false(is_closed(s, known));
	assert_int_equal(closed_as(s, INGEST_CLOSING_SLOW), 1);
	close(endless);
	close(known);
	buf_fini(&message);
}

/* Whatever strangers say, but for a frame that opens, they have 10 s. */
static void test_strangers_go(void **state)
{
	struct scene *s = *state;
	struct buf message = BUF_INIT;
	struct ingest_message m;
	int fds[4]; /* silent, polite, with half a message, and one of whom nothing opens */

	for (int i = 0; i < 4; i++) {
		fds[i] = connect_peer(s);
		if (i)
			tell(fds[i], hello, HELLO_LEN);
	}
	add_message(&message, 1, 'x', 100);
	tell(fds[2], message.data, HEAD_LEN + 50);
	expect_nothing(s);
	pass(s, 9);
	assert_false(annoy(s, fds[3]));
	assert_int_equal(counter_get(&s->counters.connections), 4);
	/* What is there and was not looked at counts: its frame is on its way. */
	tell(fds[2], message.data + HEAD_LEN + 50, message.len - HEAD_LEN - 50);
	pass(s, 2);
	expect_message(s, &m, 1, 'x', 100);
	ingest_peers_judge(s->peers, &m.route, "node", true);
	expect_nothing(s);
	assert_int_equal(counter_get(&s->counters.connections), 1);
	assert_int_equal(closed_as(s, INGEST_CLOSING_NO_HELLO), 1);
	assert_int_equal(closed_as(s, INGEST_CLOSING_NO_FRAME), 2);
	ask(s, fds[2], 1);
	for (int i = 0; i < 4; i++)
		close(fds[i]);
	buf_fini(&message);
}

/* A frame that opens and is no news gives its stranger 10 s more, once, and renews no known place. */
static void test_repeated_frames(void **state)
{
	struct scene *s = *state;
	int fd = connect_peer(s), known = connect_peer(s);

	tell(fd, hello, HELLO_LEN);
	tell(known, hello, HELLO_LEN);
	ask(s, known, 1);
	for (int i = 0; i < 19; i++) {
		repeat(s, fd);
		repeat(s, known);
		pass(s, 1);
	}
	assert_int_equal(counter_get(&s->counters.connections), 2);
	pass(s, 2);
	assert_true(is_closed(s, fd));
	assert_int_equal(closed_as(s, INGEST_CLOSING_NO_FRAME), 1);
	pass(s, 900 - 19);
	assert_true(is_closed(s, known));
	assert_int_equal(closed_as(s, INGEST_CLOSING_SILENT), 1);
	close(fd);
	close(known);
}

/* The third frame without news that does not open is the last, also of one that was known. */
static void test_unopened_frames(void **state)
{
	struct scene *s = *state;
	int fd = connect_peer(s), other = connect_peer(s);

	tell(fd, hello, HELLO_LEN);
	tell(other, hello, HELLO_LEN);
	for (int i = 0; i < 3; i++) {
		assert_false(annoy(s, fd));
		assert_false(annoy(s, fd));
		ask(s, fd, 1);
	}
	assert_false(annoy(s, fd));
	assert_false(annoy(s, other));
	assert_false(annoy(s, fd));
	assert_true(annoy(s, fd));
	assert_false(annoy(s, other));
	assert_true(annoy(s, other));
	assert_int_equal(closed_as(s, INGEST_CLOSING_UNOPENED), 2);
	close(fd);
	close(other);
}

/* Thousands of small messages at once, and then the beginning of another: each once, in order. */
static void test_many_at_once(void **state)
{
	enum { MANY = 4000 };
	struct scene *s = *state;
	struct buf all = BUF_INIT;
	int fd = connect_peer(s);
	struct ingest_message m;
	size_t end;

	buf_add(&all, hello, HELLO_LEN);
	for (int i = 0; i < MANY; i++)
		add_message(&all, (uint8_t)i, (char)('a' + i % 26), 3);
	end = all.len + HEAD_LEN + 1;
	add_message(&all, 77, 'z', 50);
	tell(fd, all.data, end);
	for (int i = 0; i < MANY; i++)
		expect_message(s, &m, (uint8_t)i, (char)('a' + i % 26), 3);
	expect_nothing(s);
	tell(fd, all.data + end, all.len - end);
	expect_message(s, &m, 77, 'z', 50);
	close(fd);
	buf_fini(&all);
}

/* A message that is handed out outlives its peer, which more was read of. */
static void test_gone_while_handed_out(void **state)
{
	struct scene *s = *state;
	struct buf all = BUF_INIT;
	struct ingest_message m;
	int fd = connect_peer(s);

	buf_add(&all, hello, HELLO_LEN);
	for (uint8_t id = 1; id <= 3; id++)
		add_message(&all, id, 'x', 100);
	tell(fd, all.data, all.len);
	expect_message(s, &m, 1, 'x', 100);
	expect_message(s, &m, 2, 'x', 100);
	close(fd);
	ingest_peers_reply(s->peers, &m.route, "nobody", 6);
	for (size_t i = 0; i < m.len; i++)
		assert_int_equal(((const char *)m.data)[i], 'x');
	/* With it went the third, and an answer finds nobody. */
	ingest_peers_reply(s->peers, &m.route, "nobody", 6);
	expect_nothing(s);
	buf_fini(&all);
}

/*
 * Nor does the one go who asks, when those who began before and never end hold all the memory there
 * is for them.
 */
static void test_more_than_all_parts(void **state)
{
	enum { HOARDERS = 300, LEN = WIRE_MESSAGE_MAX - ID_LEN };
	struct scene *s = *state;
	struct buf large = BUF_INIT;
	struct ingest_message m;
	int fds[HOARDERS], honest;

	add_message(&large, 9, 'H', LEN);
	for (int i = 0; i < HOARDERS; i++) {
		size_t at = 0;

		fds[i] = connect_peer(s);
		tell(fds[i], hello, HELLO_LEN);
		while (at < large.len - 1) {
			ssize_t n = send(fds[i], large.data + at, large.len - 1 - at, MSG_NOSIGNAL);

			assert_true(n > 0 || errno == EAGAIN);
			at += n > 0 ? (size_t)n : 0;
			while (!receive(s, &m))
				fail_msg("a message that did not end");
		}
		expect_nothing(s);
	}
	assert_true(is_closed(s, fds[0]));
	assert_true(closed_as(s, INGEST_CLOSING_MEMORY) > 0);
	assert_false(is_closed(s, fds[HOARDERS - 1]));
	honest = connect_peer(s);
	tell(honest, hello, HELLO_LEN);
	tell(honest, large.data, 100);
	expect_nothing(s);
	tell(fds[HOARDERS - 1], large.data + large.len - 1, 1);
	expect_message(s, &m, 9, 'H', LEN);
	assert_false(is_closed(s, honest));
	for (int i = 0; i < HOARDERS; i++)
		close(fds[i]);
	close(honest);
	buf_fini(&large);
}

/*
 * Nobody asks for more often than the loop can afford when there is not even a descriptor to refuse
 * with.
 */
static void test_nothing_to_refuse_with(void **state)
{
	enum { NONE = 3, WAKES_MOST = 30 };
	struct scene *s = *state;
	struct pollfd p = {.fd = ingest_peers_fd(s->peers), .events = POLLIN};
	int64_t until_ns = clock_mono_ns() + NS_PER_SEC;
	struct buf message = BUF_INIT;
	int fd = connect_peer(s), wakes = 0;
	struct rlimit before, none;
	struct ingest_message m;

	s->now_ns = 0;
	buf_add(&message, hello, HELLO_LEN);
	add_message(&message, 1, 'x', 10);
	tell(fd, message.data, message.len);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = NONE;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	do {
		wakes += poll(&p, 1, 1000);
		assert_int_equal(receive(s, &m), -EAGAIN);
	} while (clock_mono_ns() < until_ns && wakes <= WAKES_MOST);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_in_range(wakes, 1, WAKES_MOST);
	expect_message(s, &m, 1, 'x', 10);
	close(fd);
	buf_fini(&message);
}

enum { TAKEN_MAX = 1024 };

struct shortage {
	struct rlimit before;
	int taken[TAKEN_MAX], count;
};

/* Takes every descriptor up to that one; none above it can be had either. */
static void begin_shortage(struct shortage *h, int upto)
{
	struct rlimit tight;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &h->before), 0);
	assert_true(upto < TAKEN_MAX);
	tight = h->before;
	tight.rlim_cur = (rlim_t)upto + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
	for (h->count = 0; h->count < TAKEN_MAX; h->count++) {
		h->taken[h->count] = fcntl(0, F_DUPFD_CLOEXEC, 0);
		if (h->taken[h->count] < 0)
			break;
	}
	assert_int_equal(errno, EMFILE);
}

static void end_shortage(struct shortage *h)
{
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &h->before), 0);
	while (h->count)
		close(h->taken[--h->count]);
}

/*
 * Out of descriptors nobody waits in the backlog, nor drives out somebody who asked lately; the
 * next one after that is served.
 */
static void test_out_of_descriptors(void **state)
{
	struct scene *s = *state;
	int known = connect_peer(s), fd = peer_socket();
	struct shortage shortage;

	tell(known, hello, HELLO_LEN);
	ask(s, known, 1);
	begin_shortage(&shortage, fd);
	connect_at(s, fd);
	while (!is_closed(s, fd))
		;
	end_shortage(&shortage);
	assert_int_equal(counter_get(&s->counters.refused), 1);
	expect_nothing(s);
	ask(s, known, 2);
	close(fd);
	fd = connect_peer(s);
	tell(fd, hello, HELLO_LEN);
	ask(s, fd, 1);
	assert_int_equal(counter_get(&s->counters.connections), 2);
	close(fd);
	close(known);
}

/* Who was silent for longest makes room for who comes: not who asked since, nor who came later. */
static void test_silent_peer_makes_room(void **state)
{
	struct scene *s = *state;
	int fds[3], late;
	struct shortage shortage;

	for (int i = 0; i < 3; i++) {
		fds[i] = connect_peer(s);
		tell(fds[i], hello, HELLO_LEN);
		ask(s, fds[i], 1);
	}
	pass(s, 91);
	ask(s, fds[0], 1);
	late = peer_socket();
	begin_shortage(&shortage, late);
	connect_at(s, late);
	tell(late, hello, HELLO_LEN);
	ask(s, late, 2);
	end_shortage(&shortage);
	assert_true(is_closed(s, fds[1]));
	assert_int_equal(closed_as(s, INGEST_CLOSING_ROOM), 1);
	assert_int_equal(counter_get(&s->counters.refused), 0);
	assert_int_equal(counter_get(&s->counters.connections), 3);
	ask(s, fds[0], 3);
	ask(s, fds[2], 4);
	for (int i = 0; i < 3; i++)
		close(fds[i]);
	close(late);
}

/* Nobody stays for ever of whom no frame opens; who asks now and then does. */
static void test_silent_peer_goes(void **state)
{
	enum { MINUTES = 15 };
	struct scene *s = *state;
	int silent = connect_peer(s), known = connect_peer(s);

	tell(silent, hello, HELLO_LEN);
	tell(known, hello, HELLO_LEN);
	ask(s, silent, 1);
	for (int minute = 0; minute < MINUTES; minute++) {
		ask(s, known, (uint8_t)minute);
		assert_false(is_closed(s, silent));
		pass(s, 60);
	}
	assert_true(is_closed(s, silent));
	ask(s, known, MINUTES);
	assert_int_equal(closed_as(s, INGEST_CLOSING_SILENT), 1);
	close(silent);
	close(known);
}

/* However many agents there are, they leave descriptors to others, and places to other addresses. */
static void test_peers_are_bounded(void **state)
{
	enum { FILES = 400, PEERS = (FILES - 256) / 4 * 3 };
	struct rlimit before, few;
	int fds[PEERS + 1];
	struct scene *s;
	void *bounded;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){FILES, before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	setup(&bounded);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	s = bounded;
	for (int i = 0; i < PEERS; i++) {
		fds[i] = connect_peer(s);
		tell(fds[i], hello, HELLO_LEN);
		ask(s, fds[i], 1);
	}
	fds[PEERS] = connect_peer(s);
	assert_true(is_closed(s, fds[PEERS]));
	assert_int_equal(counter_get(&s->counters.connections), PEERS);
	assert_int_equal(counter_get(&s->counters.refused), 1);
	ask(s, fds[0], 1);
	for (int i = 0; i <= PEERS; i++)
		close(fds[i]);
	teardown(&bounded);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_pieces, setup, teardown),
		cmocka_unit_test_setup_teardown(test_asks_before_it_is_answered, setup, teardown),
		cmocka_unit_test_setup_teardown(test_long_message, setup, teardown),
		cmocka_unit_test_setup_teardown(test_slow_peers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_strangers_go, setup, teardown),
		cmocka_unit_test_setup_teardown(test_repeated_frames, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unopened_frames, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gone_while_handed_out, setup, teardown),
		cmocka_unit_test_setup_teardown(test_more_than_all_parts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing_to_refuse_with, setup, teardown),
		cmocka_unit_test_setup_teardown(test_out_of_descriptors, setup, teardown),
		cmocka_unit_test_setup_teardown(test_silent_peer_makes_room, setup, teardown),
		cmocka_unit_test_setup_teardown(test_silent_peer_goes, setup, teardown),
		cmocka_unit_test(test_peers_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
