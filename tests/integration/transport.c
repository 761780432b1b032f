/* SPDX-License-Identifier: Apache-2.0 */
/* Senders and ingests over real sockets, both ends driven from one thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <arpa/inet.h>
#include <errno.h>
#include <nanomsg/nn.h>
#include <nanomsg/reqrep.h>
#include <netinet/in.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/sender.h"
#include "agent/sender_socket.h"
#include "aggregator/edge/ingest.h"
#include "shared/body.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/ingest_admits.h"
#include "tests/interval.h"
#include "tests/process.h"

#define TIMEOUT_NS (30 * NS_PER_SEC)
#define REPLY_NS   (300 * NS_PER_MS)
#define LOOK_NS	   (10 * NS_PER_MS) /* between looks at what has no descriptor */

enum { INTERVALS = 200, RECEIVERS = 2 };

/* --- the ring: all intervals, for ever -------------------------------------------------------- */

struct ring {
	struct interval *items[INTERVALS];
	uint64_t count;
};

const struct interval *ring_find(const struct ring *r, uint64_t sequence)
{
	return sequence <= r->count ? r->items[sequence - 1] : NULL;
}

uint64_t ring_newest(const struct ring *r)
{
	return r->count;
}

/* --- an aggregator in short ------------------------------------------------------------------- */

struct receiver {
	struct ingest *ingest;
	struct counters counters;
	bool fresh; /* orders everything from the start, once */
	uint64_t applied;
	uint64_t entries; /* of the last interval */
	bool out_of_order;
	bool holds; /* another agent of the node is alive */
};

static bool on_admit(void *ctx, const struct frame_header *header, uint64_t connection,
		     int64_t now_ns, struct ack *ack, enum frame_result *result)
{
	struct receiver *r = ctx;

	(void)header;
	(void)now_ns;
	assert_true(connection > 0);
	if (!r->holds)
		return true;
	ack->status = ACK_NEED_FULL;
	ack->wait_ms = 20;
	memcpy(ack->reason, "held", sizeof("held"));
	*result = FRAME_RESULT_rival;
	return false;
}

static enum frame_result on_interval(void *ctx, const struct ingest_interval *i, struct ack *ack)
{
	const struct interval *interval = i->decoded;
	struct receiver *r = ctx;

	assert_true(ack->server_time_ns == i->now_ns);
	if (r->fresh) {
		r->fresh = false;
		ack->status = ACK_NEED_FULL;
		ack->resend_from = 1;
		return FRAME_RESULT_need_full;
	}
	ack->status = ACK_APPLIED;
	ack->applied = r->applied;
	if (interval->sequence <= r->applied)
		return FRAME_RESULT_duplicate;
	if (interval->sequence != r->applied + 1)
		r->out_of_order = true;
	r->applied = ack->applied = interval->sequence;
	r->entries = interval->entry_count;
	return FRAME_RESULT_applied;
}

static uint64_t counted(const struct receiver *r, enum frame_result result)
{
	return counter_get(&r->counters.frames[result]);
}

/* --- the scene -------------------------------------------------------------------------------- */

struct scene {
	char dir[64];
	int port;
	char url[80];
	struct keyring keys;
	struct ring ring;
	int64_t wanted_ns; /* a sender wants to be stepped then */
	struct sender *senders[RECEIVERS];
	struct receiver receivers[RECEIVERS];
};

static void push(struct scene *s, uint64_t count)
{
	struct ring *r = &s->ring;

	for (uint64_t i = 0; i < count; i++, r->count++)
		r->items[r->count] = interval_make(r->count + 1, 3, 2);
	s->wanted_ns = 0;
}

static int listen_at(int port)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				      .sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 10), 0);
	return fd;
}

static void make_key(struct keyring *ring, uint8_t fill)
{
	memset(&ring->keys[ring->count++], fill, sizeof(ring->keys[0]));
}

static int setup(void **state)
{
	struct scene *s = mem_zalloc(1, sizeof(*s));

	snprintf(s->dir, sizeof(s->dir), "/tmp/evenkeel-test-XXXXXX");
	make_key(&s->keys, 1);
	s->port = free_port();
	snprintf(s->url, sizeof(s->url), "tcp://127.0.0.1:%d", s->port);
	*state = s;
	return mkdtemp(s->dir) ? 0 : -1;
}

static int teardown(void **state)
{
	struct scene *s = *state;
	char *path = mem_printf("%s/socket", s->dir);

	for (int i = 0; i < RECEIVERS; i++) {
		sender_close(s->senders[i]);
		ingest_close(s->receivers[i].ingest);
	}
	for (uint64_t i = 0; i < s->ring.count; i++)
		interval_free(s->ring.items[i]);
	unlink(path);
	rmdir(s->dir);
	free(path);
	free(s);
	return 0;
}

static void use_ipc(struct scene *s)
{
	snprintf(s->url, sizeof(s->url), "ipc://%s/socket", s->dir);
}

static int try_ingest(struct scene *s, int which, struct error *error)
{
	struct receiver *r = &s->receivers[which];

	static const struct ingest_handler handler = {on_admit, on_interval, ingest_forgets};

	return ingest_open(&r->ingest, s->url, &s->keys, NULL, &r->counters, &handler, r, error);
}

static void open_ingest(struct scene *s, int which)
{
	struct error error;
	int rc = try_ingest(s, which, &error);

	if (rc)
		print_error("%s\n", error.text);
	assert_int_equal(rc, 0);
}

static void close_ingest(struct scene *s, int which)
{
	ingest_close(s->receivers[which].ingest);
	memset(&s->receivers[which], 0, sizeof(s->receivers[which]));
}

static void open_sender(struct scene *s, int which, const struct keyring *keys)
{
	struct sender_config config = {.node = "node-1",
				       .keys = keys,
				       .reply_timeout_ns = REPLY_NS};

	memset(config.run, 7, sizeof(config.run));
	assert_int_equal(sender_open(&s->senders[which], s->url, &config, NULL), 0);
	s->wanted_ns = 0;
}

/* Waits for what comes first: something to read, or a time. Then everybody does what it can. */
static void turn(struct scene *s, int64_t until_ns)
{
	struct pollfd fds[2 * RECEIVERS];
	nfds_t count = 0;
	int64_t now = clock_mono_ns();

	if (s->wanted_ns < until_ns)
		until_ns = s->wanted_ns;
	if (now + LOOK_NS < until_ns)
		until_ns = now + LOOK_NS;
	for (int i = 0; i < RECEIVERS; i++) {
		if (s->senders[i])
			fds[count++] = (struct pollfd){sender_fd(s->senders[i]), POLLIN, 0};
		if (s->receivers[i].ingest)
			fds[count++] =
				(struct pollfd){ingest_fd(s->receivers[i].ingest), POLLIN, 0};
	}
	poll(fds, count, until_ns <= now ? 0 : (int)((until_ns - now) / NS_PER_MS) + 1);
	now = clock_mono_ns();
	s->wanted_ns = INT64_MAX;
	for (int i = 0; i < RECEIVERS; i++) {
		int64_t wanted = INT64_MAX;

		if (s->receivers[i].ingest)
			ingest_step(s->receivers[i].ingest, 8, clock_wall_ns(), now);
		if (s->senders[i])
			wanted = sender_step(s->senders[i], &s->ring, now);
		if (wanted < s->wanted_ns)
			s->wanted_ns = wanted;
	}
}

/* Turns until the condition holds; fails when it takes too long. */
#define TURN_UNTIL(s, condition)                                                                   \
	do {                                                                                       \
		int64_t limit_ = clock_mono_ns() + TIMEOUT_NS;                                     \
		while (!(condition) && clock_mono_ns() < limit_)                                   \
			turn(s, limit_);                                                           \
		assert_true(condition);                                                            \
	} while (0)

static bool idle(const struct scene *s, int which)
{
	return sender_idle(s->senders[which], &s->ring);
}

static struct sender_stats stats_of(const struct scene *s, int which)
{
	struct sender_stats stats;

	sender_get_stats(s->senders[which], &stats);
	return stats;
}

/* --- a stranger: sends what it likes ---------------------------------------------------------- */

struct stranger {
	struct sender_socket *socket;
	uint32_t request;
};

static struct stranger stranger_open(const struct scene *s)
{
	struct stranger st = {0};
	struct endpoint endpoint;

	assert_int_equal(endpoint_parse(&endpoint, s->url, NULL), 0);
	assert_int_equal(sender_socket_open(&st.socket, &endpoint, NULL), 0);
	return st;
}

static void stranger_send(struct scene *s, struct stranger *st, const void *data, size_t len)
{
	TURN_UNTIL(s, sender_socket_ready(st->socket));
	assert_int_equal(sender_socket_send(st->socket, ++st->request, data, len), 0);
}

static void seal_interval(uint64_t sequence, struct frame_header *header, const struct key *key,
			  struct buf *frame)
{
	struct interval *i = interval_make(sequence, 1, 1);
	struct buf parts[BODY_PARTS_MAX];

	*header = (struct frame_header){
		.type = FRAME_INTERVAL, .sequence = sequence, .parts = 1, .node = "stranger"};
	assert_int_equal(body_encode_interval(i, 1, parts, NULL), 1);
	buf_clear(frame);
	frame_seal(frame, header, key, NULL, parts[0].data, parts[0].len);
	buf_fini(&parts[0]);
	interval_free(i);
}

/* Sends; the receiver must count it so. */
static void expect_counted(struct scene *s, struct stranger *st, const void *data, size_t len,
			   enum frame_result result)
{
	uint64_t before = counted(&s->receivers[0], result);

	stranger_send(s, st, data, len);
	TURN_UNTIL(s, counted(&s->receivers[0], result) == before + 1);
}

/* The answer to the last one; answers to those before it are passed over. */
static void receive_answer(struct stranger *st, struct buf *data)
{
	struct pollfd p = {.fd = sender_socket_fd(st->socket), .events = POLLIN};
	uint32_t request = 0;

	while (request != st->request) {
		assert_int_equal(poll(&p, 1, (int)(TIMEOUT_NS / NS_PER_MS)), 1);
		sender_socket_receive(st->socket, &request, data);
	}
}

static void expect_ack(struct scene *s, struct stranger *st, const struct frame_header *request,
		       struct ack *ack)
{
	struct buf data = BUF_INIT, body = BUF_INIT;
	struct frame_header header;

	receive_answer(st, &data);
	assert_int_equal(
		frame_open(data.data, data.len, &s->keys, request->nonce, &header, &body, NULL), 0);
	assert_int_equal(header.type, FRAME_ACK);
	assert_int_equal(header.sequence, request->sequence);
	assert_string_equal(header.node, request->node);
	assert_int_equal(body_decode_ack(body.data, body.len, ack, NULL), 0);
	buf_fini(&body);
	buf_fini(&data);
}

/* --- delivery --------------------------------------------------------------------------------- */

static void expect_all_delivered(struct scene *s)
{
	open_ingest(s, 0);
	open_sender(s, 0, &s->keys);
	push(s, 1);
	TURN_UNTIL(s, idle(s, 0));
	push(s, INTERVALS - 1);
	TURN_UNTIL(s, idle(s, 0));
	assert_int_equal(s->receivers[0].applied, INTERVALS);
	assert_false(s->receivers[0].out_of_order);
	assert_int_equal(counted(&s->receivers[0], FRAME_RESULT_applied), INTERVALS);
	assert_int_equal(stats_of(s, 0).acked, INTERVALS);
	assert_int_equal(stats_of(s, 0).bad_acks, 0);
}

static void test_tcp(void **state)
{
	expect_all_delivered(*state);
}

static void test_ipc(void **state)
{
	struct scene *s = *state;

	use_ipc(s);
	expect_all_delivered(s);
}

/* On one machine without keys: in clear, and acks still belong to their requests. */
static void test_ipc_in_clear(void **state)
{
	struct scene *s = *state;

	use_ipc(s);
	s->keys.count = 0;
	expect_all_delivered(s);
}

static void test_ipv6(void **state)
{
	struct scene *s = *state;
	int fd = socket(AF_INET6, SOCK_STREAM, 0);
	struct sockaddr_in6 loopback = {.sin6_family = AF_INET6,
					.sin6_addr = IN6ADDR_LOOPBACK_INIT};
	bool there = fd >= 0 && !bind(fd, (struct sockaddr *)&loopback, sizeof(loopback));

	if (fd >= 0)
		close(fd);
	if (!there) {
		print_message("SKIP: no IPv6 loopback here\n");
		skip();
	}
	snprintf(s->url, sizeof(s->url), "tcp://[::1]:%d", s->port);
	expect_all_delivered(s);
}

/*
 * The aggregator dies half-way and comes back without memory: all is there again, in order, nothing
 * twice.
 */
static void test_restart(void **state)
{
	struct scene *s = *state;

	open_ingest(s, 0);
	open_sender(s, 0, &s->keys);
	push(s, INTERVALS / 2);
	TURN_UNTIL(s, s->receivers[0].applied >= INTERVALS / 4);
	close_ingest(s, 0);
	push(s, INTERVALS / 2);
	turn(s, clock_mono_ns() + REPLY_NS);
	turn(s, clock_mono_ns() + REPLY_NS);
	s->receivers[0].fresh = true;
	open_ingest(s, 0);
	TURN_UNTIL(s, idle(s, 0));
	assert_int_equal(s->receivers[0].applied, INTERVALS);
	assert_false(s->receivers[0].out_of_order);
	assert_int_equal(counted(&s->receivers[0], FRAME_RESULT_applied), INTERVALS);
	assert_int_equal(stats_of(s, 0).resends_ordered, 1);
	assert_int_equal(stats_of(s, 0).skipped, 0);
}

static void test_two_aggregators(void **state)
{
	struct scene *s = *state;
	char first[sizeof(s->url)];

	memcpy(first, s->url, sizeof(first));
	open_ingest(s, 0);
	open_sender(s, 0, &s->keys);
	push(s, 20);
	TURN_UNTIL(s, idle(s, 0));
	/* The second one is not there yet, and then catches up by itself. */
	use_ipc(s);
	open_sender(s, 1, &s->keys);
	push(s, 20);
	TURN_UNTIL(s, idle(s, 0));
	assert_false(idle(s, 1));
	open_ingest(s, 1);
	TURN_UNTIL(s, idle(s, 1));
	for (int i = 0; i < 2; i++) {
		assert_int_equal(s->receivers[i].applied, 40);
		assert_int_equal(counted(&s->receivers[i], FRAME_RESULT_applied), 40);
	}
}

static void test_many_parts(void **state)
{
	struct scene *s = *state;

	open_ingest(s, 0);
	open_sender(s, 0, &s->keys);
	push(s, 1);
	s->ring.items[s->ring.count++] = interval_make(2, 2000, 3);
	push(s, 1);
	TURN_UNTIL(s, s->receivers[0].applied == 2);
	assert_int_equal(s->receivers[0].entries, 8000);
	TURN_UNTIL(s, idle(s, 0));
	assert_int_equal(counted(&s->receivers[0], FRAME_RESULT_part),
			 stats_of(s, 0).sent - stats_of(s, 0).acked);
	assert_true(counted(&s->receivers[0], FRAME_RESULT_part) >= 3);
	assert_int_equal(counted(&s->receivers[0], FRAME_RESULT_applied), 3);
}

/*
 * Who is held keeps what it has, in one part or in several, and sends it again once it is let in:
 * nothing is refused, nothing left out.
 */
static void test_held(void **state)
{
	struct scene *s = *state;
	struct receiver *r = &s->receivers[0];
	struct sender_stats stats;

	open_ingest(s, 0);
	open_sender(s, 0, &s->keys);
	push(s, 1);
	s->ring.items[s->ring.count++] = interval_make(2, 2000, 3);
	for (uint64_t i = 0; i < 2; i++) {
		r->holds = true;
		TURN_UNTIL(s, stats_of(s, 0).held >= 3 * (i + 1));
		assert_true(r->applied <= i);
		r->holds = false;
		TURN_UNTIL(s, r->applied > i);
	}
	TURN_UNTIL(s, idle(s, 0));
	stats = stats_of(s, 0);
	assert_int_equal(stats.acked - stats.refused - stats.skipped - stats.bad_acks, 2);
	assert_string_equal(stats.last_reason, "held");
	assert_int_equal(counted(r, FRAME_RESULT_rival), stats.held);
}

/* --- what must not count ---------------------------------------------------------------------- */

static void expect_good(struct scene *s, struct stranger *st, uint64_t sequence)
{
	struct buf frame = BUF_INIT;
	struct frame_header header;
	struct ack ack;

	seal_interval(sequence, &header, &s->keys.keys[0], &frame);
	expect_counted(s, st, frame.data, frame.len, FRAME_RESULT_applied);
	expect_ack(s, st, &header, &ack);
	assert_int_equal(ack.status, ACK_APPLIED);
	assert_int_equal(ack.applied, sequence);
	buf_fini(&frame);
}

static void test_strange_frames(void **state)
{
	struct scene *s = *state;
	struct keyring others = {0};
	struct buf frame = BUF_INIT;
	struct frame_header header;
	struct stranger st;
	struct ack ack;

	make_key(&others, 2);
	open_ingest(s, 0);
	st = stranger_open(s);
	expect_good(s, &st, 1);
	seal_interval(2, &header, &others.keys[0], &frame);
	expect_counted(s, &st, frame.data, frame.len, FRAME_RESULT_unknown_key);
	memcpy(others.keys[0].id, s->keys.keys[0].id, KEY_ID_LEN);
	seal_interval(2, &header, &others.keys[0], &frame);
	expect_counted(s, &st, frame.data, frame.len, FRAME_RESULT_forged);
	expect_good(s, &st, 2);
	seal_interval(3, &header, NULL, &frame);
	expect_counted(s, &st, frame.data, frame.len, FRAME_RESULT_unknown_key);
	expect_counted(s, &st, frame.data, 50, FRAME_RESULT_malformed);
	expect_good(s, &st, 3);
	expect_counted(s, &st, "", 0, FRAME_RESULT_malformed);
	/* An ack is nothing to send here. */
	header.type = FRAME_ACK;
	buf_clear(&frame);
	frame_seal(&frame, &header, &s->keys.keys[0], NULL, "", 0);
	expect_counted(s, &st, frame.data, frame.len, FRAME_RESULT_malformed);
	assert_int_equal(s->receivers[0].applied, 3);

	/* Replayed: known, nothing changes. */
	expect_good(s, &st, 4);
	seal_interval(5, &header, &s->keys.keys[0], &frame);
	expect_counted(s, &st, frame.data, frame.len, FRAME_RESULT_applied);
	expect_counted(s, &st, frame.data, frame.len, FRAME_RESULT_duplicate);
	expect_ack(s, &st, &header, &ack);
	assert_int_equal(ack.applied, 5);

	/* Sealed by a friend, but nothing that can be read: refused with the reason. */
	header.type = FRAME_INTERVAL;
	buf_clear(&frame);
	frame_seal(&frame, &header, &s->keys.keys[0], NULL, "nonsense", 8);
	expect_counted(s, &st, frame.data, frame.len, FRAME_RESULT_refused);
	expect_ack(s, &st, &header, &ack);
	assert_int_equal(ack.status, ACK_REFUSED);
	assert_non_null(strstr(ack.reason, "not such a body"));
	expect_good(s, &st, 6);

	/* The third in a row that does not open is the end; the library comes back. */
	for (int i = 0; i < 3; i++)
		expect_counted(s, &st, "", 0, FRAME_RESULT_malformed);
	TURN_UNTIL(s, sender_socket_connections(st.socket) == 2);
	expect_good(s, &st, 7);
	sender_socket_close(st.socket);
	buf_fini(&frame);
}

/*
 * Up to 1 MiB it is refused by name, if its seal is right; beyond, the connection is closed, and
 * the next one works.
 */
static void test_oversized(void **state)
{
	struct scene *s = *state;
	char *huge = mem_zalloc(1, 2 * 1024 * 1024);
	struct buf frame = BUF_INIT;
	struct frame_header header = {
		.type = FRAME_INTERVAL, .sequence = 1, .parts = 1, .node = "node-1"};
	struct stranger st;
	struct ack ack;

	open_ingest(s, 0);
	st = stranger_open(s);
	frame_seal(&frame, &header, &s->keys.keys[0], NULL, huge, FRAME_LEN_MAX);
	expect_counted(s, &st, frame.data, frame.len, FRAME_RESULT_oversized);
	expect_ack(s, &st, &header, &ack);
	assert_int_equal(ack.status, ACK_REFUSED);
	assert_non_null(strstr(ack.reason, "a frame may have 262144"));
	/* Without a key of ours nobody gets an answer. */
	frame.data[frame.len - 1] ^= 1;
	expect_counted(s, &st, frame.data, frame.len, FRAME_RESULT_forged);
	stranger_send(s, &st, huge, 2 * 1024 * 1024);
	TURN_UNTIL(s, sender_socket_connections(st.socket) == 2);
	expect_good(s, &st, 1);
	sender_socket_close(st.socket);
	buf_fini(&frame);
	free(huge);
}

static bool is_closed(int fd)
{
	char back[64];
	ssize_t n;

	do
		n = recv(fd, back, sizeof(back), MSG_DONTWAIT);
	while (n > 0);
	return n == 0 || errno != EAGAIN;
}

/* Sends bytes to the port and waits until the other side closes, if it does. */
static void send_raw(struct scene *s, const void *data, size_t len, bool expect_close)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				      .sin_port = htons((uint16_t)s->port)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(send(fd, data, len, MSG_NOSIGNAL), (int)len);
	if (expect_close)
		TURN_UNTIL(s, is_closed(fd));
	close(fd);
}

static void test_garbage_on_the_port(void **state)
{
	/*
	 * What a REQ peer says first; then a message of 2^63 bytes, one that never comes, one
	 * without request id.
	 */
	static const char hello[] = "\0SP\0\0\x30\0\0";
	static const char endless[] = "\0SP\0\0\x30\0\0\x80\0\0\0\0\0\0\0";
	static const char cut[] = "\0SP\0\0\x30\0\0\0\0\0\0\0\0\x10\0half";
	static const char no_id[] = "\0SP\0\0\x30\0\0\0\0\0\0\0\0\0\x08\0\0\0\x01\0\0\0\x02";
	static const char wrong_peer[] = "\0SP\0\0\x10\0\0";
	struct scene *s = *state;
	struct stranger st;
	uint8_t noise[4096];

	open_ingest(s, 0);
	st = stranger_open(s);
	expect_good(s, &st, 1);
	randombytes_buf(noise, sizeof(noise));
	noise[0] = 'N';
	for (int i = 0; i < 20; i++) {
		send_raw(s, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27, true);
		send_raw(s, noise, sizeof(noise), true);
		send_raw(s, hello, sizeof(hello) - 1, false);
		send_raw(s, endless, sizeof(endless) - 1, true);
		send_raw(s, cut, sizeof(cut) - 1, false);
		send_raw(s, no_id, sizeof(no_id) - 1, false);
		send_raw(s, wrong_peer, sizeof(wrong_peer) - 1, true);
		send_raw(s, "", 0, false);
		turn(s, clock_mono_ns());
	}
	expect_good(s, &st, 2);
	sender_socket_close(st.socket);
	/* And so for those who come after it. */
	push(s, 3);
	open_sender(s, 0, &s->keys);
	TURN_UNTIL(s, idle(s, 0));
	assert_int_equal(s->receivers[0].applied, 3);
}

/*
 * A peer that answers every request twice, the second time under another id, and with what is no
 * ack.
 */
static void test_hostile_aggregator(void **state)
{
	struct scene *s = *state;
	int nn = nn_socket(AF_SP_RAW, NN_REP), fd;
	size_t len = sizeof(fd);

	assert_true(nn_bind(nn, s->url) >= 0);
	assert_int_equal(nn_getsockopt(nn, NN_SOL_SOCKET, NN_RCVFD, &fd, &len), 0);
	open_sender(s, 0, &s->keys);
	push(s, 1);
	for (int i = 0; i < 5; i++) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		_Alignas(size_t) char route[64] = {0};
		char request[64], noise[200];
		struct nn_iovec in = {request, sizeof(request)}, out = {noise, sizeof(noise)};
		struct nn_msghdr header = {&in, 1, route, sizeof(route)};
		uint64_t bad = stats_of(s, 0).bad_acks;

		while (poll(&p, 1, 0) == 0)
			turn(s, clock_mono_ns() + 10 * NS_PER_MS);
		assert_true(nn_recvmsg(nn, &header, NN_DONTWAIT) > 0);
		memset(noise, 'x', sizeof(noise));
		header.msg_iov = &out;
		header.msg_controllen = ((struct nn_cmsghdr *)route)->cmsg_len;
		assert_int_equal(nn_sendmsg(nn, &header, NN_DONTWAIT), (int)sizeof(noise));
		route[header.msg_controllen - 5] ^= 1;
		nn_sendmsg(nn, &header, NN_DONTWAIT);
		TURN_UNTIL(s, stats_of(s, 0).bad_acks > bad);
	}
	nn_close(nn);
	open_ingest(s, 0);
	TURN_UNTIL(s, idle(s, 0));
	assert_int_equal(s->receivers[0].applied, 1);
	assert_int_equal(stats_of(s, 0).acked, 1);
}

static bool try_accept(int listener, int *fd)
{
	if (*fd < 0)
		*fd = accept(listener, NULL, NULL);
	return *fd >= 0;
}

/* It accepts and says nothing, like a machine that lost its power: the connection is given up. */
static void test_silent_aggregator(void **state)
{
	struct scene *s = *state;
	struct linger reset = {.l_onoff = 1};
	int accepted[3] = {-1, -1, -1};
	int listener = listen_at(s->port);

	open_sender(s, 0, &s->keys);
	push(s, 1);
	for (int i = 0; i < 3; i++)
		TURN_UNTIL(s, try_accept(listener, &accepted[i]));
	assert_int_equal(stats_of(s, 0).sent, 0);
	close(listener);
	for (int i = 0; i < 3; i++) {
		setsockopt(accepted[i], SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		close(accepted[i]);
	}
	open_ingest(s, 0);
	TURN_UNTIL(s, idle(s, 0));
	assert_int_equal(s->receivers[0].applied, 1);
}

/* It takes requests and never answers: the same again, over a new connection each second time. */
static void test_stuck_aggregator(void **state)
{
	struct scene *s = *state;
	int nn = nn_socket(AF_SP_RAW, NN_REP);

	assert_true(nn_bind(nn, s->url) >= 0);
	open_sender(s, 0, &s->keys);
	push(s, 1);
	TURN_UNTIL(s, nn_get_statistic(nn, NN_STAT_ACCEPTED_CONNECTIONS) == 3);
	assert_true(stats_of(s, 0).timeouts >= 4);
	nn_close(nn);
	open_ingest(s, 0);
	TURN_UNTIL(s, idle(s, 0));
	assert_int_equal(s->receivers[0].applied, 1);
	assert_int_equal(stats_of(s, 0).acked, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_tcp, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ipc, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ipc_in_clear, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ipv6, setup, teardown),
		cmocka_unit_test_setup_teardown(test_restart, setup, teardown),
		cmocka_unit_test_setup_teardown(test_two_aggregators, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_parts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_held, setup, teardown),
		cmocka_unit_test_setup_teardown(test_strange_frames, setup, teardown),
		cmocka_unit_test_setup_teardown(test_oversized, setup, teardown),
		cmocka_unit_test_setup_teardown(test_garbage_on_the_port, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hostile_aggregator, setup, teardown),
		cmocka_unit_test_setup_teardown(test_silent_aggregator, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stuck_aggregator, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
