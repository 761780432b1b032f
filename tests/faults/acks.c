/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers that must not count, to a real sender from a peer that the test plays: each is refused
 * and counted, and the next good one works.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <nanomsg/nn.h>
#include <nanomsg/reqrep.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sender.h"
#include "shared/body.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/interval.h"
#include "tests/process.h"

#define TIMEOUT_NS (30 * NS_PER_SEC)

enum { INTERVALS = 20, TURN_MS = 10 };

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

/* --- the peer --------------------------------------------------------------------------------- */

struct scene {
	struct keyring keys, others;
	struct ring ring;
	struct sender *sender;
	int nn, fd; /* the peer's socket, and its NN_RCVFD */
	int64_t now_ns; /* the sender's: it stands still while this program does */
	/* the last request */
	_Alignas(size_t) char route[64];
	size_t route_len;
	struct frame_header header;
	struct buf request;
	struct buf replayed; /* a good answer to the request before */
};

static int setup(void **state)
{
	struct scene *s = mem_zalloc(1, sizeof(*s));
	struct sender_config config = {.node = "node-1",
				       .keys = &s->keys,
				       .reply_timeout_ns = 2 * NS_PER_SEC};
	char url[64];
	size_t len = sizeof(s->fd);

	if (sodium_init() < 0)
		return -1;
	s->keys.count = s->others.count = 1;
	memset(&s->keys.keys[0], 1, sizeof(s->keys.keys[0]));
	memset(&s->others.keys[0], 2, sizeof(s->others.keys[0]));
	/* The same id: only the seal tells. */
	memcpy(s->others.keys[0].id, s->keys.keys[0].id, KEY_ID_LEN);
	snprintf(url, sizeof(url), "tcp://127.0.0.1:%d", free_port());
	s->nn = nn_socket(AF_SP_RAW, NN_REP);
	*state = s;
	return nn_bind(s->nn, url) < 0 ||
	       nn_getsockopt(s->nn, NN_SOL_SOCKET, NN_RCVFD, &s->fd, &len) ||
	       sender_open(&s->sender, url, &config, NULL);
}

static int teardown(void **state)
{
	struct scene *s = *state;

	sender_close(s->sender);
	nn_close(s->nn);
	for (uint64_t i = 0; i < s->ring.count; i++)
		interval_free(s->ring.items[i]);
	buf_fini(&s->request);
	buf_fini(&s->replayed);
	free(s);
	return 0;
}

static struct sender_stats stats_of(const struct scene *s)
{
	struct sender_stats stats;

	sender_get_stats(s->sender, &stats);
	return stats;
}

static bool request_came(struct scene *s)
{
	struct pollfd p = {.fd = s->fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

static void turn(struct scene *s)
{
	struct pollfd fds[] = {{sender_fd(s->sender), POLLIN, 0}, {s->fd, POLLIN, 0}};

	s->now_ns += TURN_MS * NS_PER_MS;
	sender_step(s->sender, &s->ring, s->now_ns);
	poll(fds, 2, TURN_MS);
}

#define TURN_UNTIL(s, condition)                                                                   \
	do {                                                                                       \
		int64_t limit_ = (s)->now_ns + TIMEOUT_NS;                                         \
		while (!(condition) && (s)->now_ns < limit_)                                       \
			turn(s);                                                                   \
		assert_true(condition);                                                            \
	} while (0)

static void take_request(struct scene *s)
{
	void *data = NULL;
	struct nn_iovec body = {&data, NN_MSG};
	struct nn_msghdr header = {&body, 1, s->route, sizeof(s->route)};
	struct buf plain = BUF_INIT;
	int len;

	TURN_UNTIL(s, request_came(s));
	len = nn_recvmsg(s->nn, &header, NN_DONTWAIT);
	assert_true(len > 0);
	s->route_len = ((struct nn_cmsghdr *)s->route)->cmsg_len;
	buf_clear(&s->request);
	buf_add(&s->request, data, (size_t)len);
	nn_freemsg(data);
	assert_int_equal(frame_open(s->request.data, s->request.len, &s->keys, NULL, &s->header,
				    &plain, NULL),
			 0);
	buf_fini(&plain);
}

static void reply(const struct scene *s, const void *data, size_t len)
{
	struct nn_iovec body = {(void *)data, len};
	struct nn_msghdr header = {&body, 1, (void *)s->route, s->route_len};

	assert_int_equal(nn_sendmsg(s->nn, &header, NN_DONTWAIT), (int)len);
}

/* An ack of the request, but for what the caller changed in the header. */
static void seal_ack(const struct scene *s, const struct frame_header *header,
		     const struct keyring *keys, struct buf *frame)
{
	struct frame_header of_ack = *header;
	struct buf body = BUF_INIT;

	body_encode_ack(&(struct ack){.status = ACK_APPLIED, .applied = header->sequence}, &body);
	of_ack.type = FRAME_ACK;
	buf_clear(frame);
	frame_seal(frame, &of_ack, &keys->keys[0], s->header.nonce, body.data, body.len);
	buf_fini(&body);
}

/* --- bad answers ------------------------------------------------------------------------------ */

static void garbage(const struct scene *s, struct buf *frame)
{
	(void)s;
	memset(buf_reserve(frame, 300), 'x', 300);
	frame->len = 300;
}

static void nothing(const struct scene *s, struct buf *frame)
{
	(void)s;
	(void)frame;
}

static void echo(const struct scene *s, struct buf *frame)
{
	buf_add(frame, s->request.data, s->request.len);
}

static void cut_in_body(const struct scene *s, struct buf *frame)
{
	seal_ack(s, &s->header, &s->keys, frame);
	frame->len--;
}

static void cut_in_header(const struct scene *s, struct buf *frame)
{
	seal_ack(s, &s->header, &s->keys, frame);
	frame->len = 20;
}

static void flipped(const struct scene *s, struct buf *frame)
{
	seal_ack(s, &s->header, &s->keys, frame);
	frame->data[frame->len - 3] ^= 4;
}

static void forged(const struct scene *s, struct buf *frame)
{
	seal_ack(s, &s->header, &s->others, frame);
}

static void replayed(const struct scene *s, struct buf *frame)
{
	buf_add(frame, s->replayed.data, s->replayed.len);
}

/* A replay that pretends to be of this request. */
static void relabelled(const struct scene *s, struct buf *frame)
{
	buf_add(frame, s->replayed.data, s->replayed.len);
	memcpy(frame->data, s->request.data, FRAME_HEADER_LEN);
}

static void of_another_sequence(const struct scene *s, struct buf *frame)
{
	struct frame_header header = s->header;

	header.sequence++;
	seal_ack(s, &header, &s->keys, frame);
}

static void of_another_node(const struct scene *s, struct buf *frame)
{
	struct frame_header header = s->header;

	header.node[0] = 'm';
	seal_ack(s, &header, &s->keys, frame);
}

/* The seal of a friend around what is no ack. */
static void nonsense(const struct scene *s, struct buf *frame)
{
	struct frame_header header = s->header;

	header.type = FRAME_ACK;
	frame_seal(frame, &header, &s->keys.keys[0], s->header.nonce, "\xff\xff\xff", 3);
}

static const struct {
	const char *name;
	void (*make)(const struct scene *s, struct buf *frame);
} bad_answers[] = {
	{"garbage", garbage},
	{"nothing", nothing},
	{"echo", echo},
	{"cut in the body", cut_in_body},
	{"cut in the header", cut_in_header},
	{"flipped", flipped},
	{"forged", forged},
	{"replayed", replayed},
	{"relabelled", relabelled},
	{"of another sequence", of_another_sequence},
	{"of another node", of_another_node},
	{"nonsense", nonsense},
};

static void push(struct scene *s)
{
	struct ring *r = &s->ring;

	r->items[r->count] = interval_make(r->count + 1, 3, 2);
	r->count++;
}

static void answer_well(struct scene *s)
{
	uint64_t acked = stats_of(s).acked;

	seal_ack(s, &s->header, &s->keys, &s->replayed);
	reply(s, s->replayed.data, s->replayed.len);
	TURN_UNTIL(s, stats_of(s).acked == acked + 1);
	TURN_UNTIL(s, sender_idle(s->sender, &s->ring));
}

static void test_bad_answers(void **state)
{
	struct scene *s = *state;
	struct buf frame = BUF_INIT;

	push(s);
	take_request(s);
	answer_well(s);
	for (size_t i = 0; i < sizeof(bad_answers) / sizeof(bad_answers[0]); i++) {
		struct sender_stats before = stats_of(s);

		push(s);
		take_request(s);
		assert_int_equal(s->header.sequence, s->ring.count);
		buf_clear(&frame);
		bad_answers[i].make(s, &frame);
		reply(s, frame.len ? frame.data : "", frame.len);
		TURN_UNTIL(s, stats_of(s).bad_acks == before.bad_acks + 1);
		if (stats_of(s).acked != before.acked || sender_idle(s->sender, &s->ring))
			print_error("%s: taken for an ack\n", bad_answers[i].name);
		assert_int_equal(stats_of(s).acked, before.acked);
		assert_false(sender_idle(s->sender, &s->ring));
		assert_int_equal(stats_of(s).last_ack_ns, before.last_ack_ns);
		answer_well(s);
	}
	buf_fini(&frame);
}

/*
 * Longer than an ack can be: nanomsg closes the connection, and takes what it has read of it for
 * the beginning of the next one, so that one fails too, and so on. The sender gets out of that by
 * an endpoint of its own, and sends the same again.
 */
static void test_oversized_answer(void **state)
{
	struct scene *s = *state;
	char *huge = mem_zalloc(1, 1024 * 1024);

	push(s);
	take_request(s);
	for (int i = 0; i < 3; i++) {
		reply(s, huge, 1024 * 1024);
		take_request(s);
		assert_int_equal(s->header.sequence, 1);
		assert_int_equal(stats_of(s).acked, 0);
	}
	answer_well(s);
	free(huge);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_bad_answers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_oversized_answer, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
