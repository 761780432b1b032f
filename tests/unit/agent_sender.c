/* SPDX-License-Identifier: Apache-2.0 */
/* The sender against a socket, a ring and a clock that the test holds in its hands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sender.h"
#include "agent/sender_socket.h"
#include "shared/body.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/interval.h"

/* --- the ring --------------------------------------------------------------------------------------------------- */

enum { RING_MAX = 200 };

struct ring {
	struct interval *items[RING_MAX];
	size_t count;
};

const struct interval *ring_find(const struct ring *r, uint64_t sequence)
{
	for (size_t i = 0; i < r->count; i++) {
		if (r->items[i]->sequence >= sequence)
			return r->items[i];
	}
	return NULL;
}

uint64_t ring_newest(const struct ring *r)
{
	return r->count ? r->items[r->count - 1]->sequence : 0;
}

static void push(struct ring *r, uint64_t first, uint64_t last)
{
	for (uint64_t i = first; i <= last; i++)
		r->items[r->count++] = interval_make(i, 1, 1);
}

/* The oldest `count` leave. */
static void forget(struct ring *r, size_t count)
{
	for (size_t i = 0; i < count; i++)
		interval_free(r->items[i]);
	r->count -= count;
	memmove(r->items, r->items + count, r->count * sizeof(struct interval *));
}

/* Item at and the next one become one. */
static void merge(struct ring *r, size_t at)
{
	struct interval *merged = interval_merge(r->items[at], r->items[at + 1]);

	interval_free(r->items[at]);
	interval_free(r->items[at + 1]);
	r->items[at] = merged;
	r->count--;
	memmove(r->items + at + 1, r->items + at + 2,
		(r->count - at - 1) * sizeof(struct interval *));
}

/* --- the socket ------------------------------------------------------------------------------------------------- */

struct sender_socket {
	bool ready;
	uint64_t connections;
	unsigned int reconnects;
	unsigned int sent;
	uint32_t id;
	struct buf frame; /* the last one sent */
	struct {
		uint32_t id;
		struct buf data;
	} inbox[4];
	size_t inbox_count;
};

static struct sender_socket *sock;

int sender_socket_open(struct sender_socket **s, const struct endpoint *endpoint,
		       struct reason *reason)
{
	(void)endpoint;
	(void)reason;
	*s = sock = mem_zalloc(1, sizeof(*sock));
	sock->ready = true;
	sock->connections = 1;
	return 0;
}

void sender_socket_close(struct sender_socket *s)
{
	buf_fini(&s->frame);
	for (size_t i = 0; i < s->inbox_count; i++)
		buf_fini(&s->inbox[i].data);
	free(s);
}

int sender_socket_fd(const struct sender_socket *s)
{
	(void)s;
	return 42;
}

bool sender_socket_ready(const struct sender_socket *s)
{
	return s->ready;
}

int sender_socket_send(struct sender_socket *s, uint32_t id, const void *data, size_t len)
{
	if (!s->connections)
		return -EAGAIN;
	s->sent++;
	s->id = id;
	buf_clear(&s->frame);
	buf_add(&s->frame, data, len);
	return 0;
}

int sender_socket_receive(struct sender_socket *s, uint32_t *id, struct buf *data)
{
	if (!s->inbox_count)
		return -EAGAIN;
	*id = s->inbox[0].id;
	buf_clear(data);
	buf_add(data, s->inbox[0].data.data, s->inbox[0].data.len);
	buf_fini(&s->inbox[0].data);
	memmove(s->inbox, s->inbox + 1, --s->inbox_count * sizeof(s->inbox[0]));
	return 0;
}

uint64_t sender_socket_connections(const struct sender_socket *s)
{
	return s->connections;
}

void sender_socket_reconnect(struct sender_socket *s)
{
	s->reconnects++;
}

/* --- the scene -------------------------------------------------------------------------------------------------- */

#define START_NS (1000 * NS_PER_SEC)

struct scene {
	struct keyring keys;
	struct ring ring;
	struct sender *sender;
	int64_t now_ns, wanted_ns;
	struct sender_stats stats;
	/* the last frame, opened */
	struct frame_header header;
	struct buf body;
};

static int setup(void **state)
{
	struct scene *s = mem_zalloc(1, sizeof(*s));
	struct sender_config config = {.node = "node-1",
				       .keys = &s->keys,
				       .reply_timeout_ns = 5 * NS_PER_SEC,
				       .full_every_ns = 60 * NS_PER_SEC};

	s->keys.count = 1;
	memset(&s->keys.keys[0], 1, sizeof(s->keys.keys[0]));
	memset(config.run, 7, sizeof(config.run));
	s->now_ns = START_NS;
	*state = s;
	return sender_open(&s->sender, "tcp://127.0.0.1:1", &config, NULL);
}

static int teardown(void **state)
{
	struct scene *s = *state;

	sender_close(s->sender);
	forget(&s->ring, s->ring.count);
	buf_fini(&s->body);
	free(s);
	return 0;
}

/* Lets time pass and steps; returns how many frames left. */
static unsigned int step(struct scene *s, int64_t ms)
{
	unsigned int before = sock->sent;

	s->now_ns += ms * NS_PER_MS;
	s->wanted_ns = sender_step(s->sender, &s->ring, s->now_ns);
	assert_true(s->wanted_ns >= s->now_ns);
	sender_get_stats(s->sender, &s->stats);
	return sock->sent - before;
}

static void open_frame(struct scene *s)
{
	assert_int_equal(frame_open(sock->frame.data, sock->frame.len, &s->keys, NULL, &s->header,
				    &s->body, NULL),
			 0);
	assert_int_equal(s->header.type, FRAME_INTERVAL);
	assert_string_equal(s->header.node, "node-1");
	assert_int_equal(s->header.run[15], 7);
}

/* One frame leaves, with this interval, in one part. */
static void expect_sent(struct scene *s, int64_t ms, uint64_t sequence, bool full)
{
	struct interval *i;

	assert_int_equal(step(s, ms), 1);
	open_frame(s);
	assert_int_equal(s->header.sequence, sequence);
	assert_int_equal(body_decode_interval(&s->body, 1, &i, NULL), 0);
	assert_int_equal(i->full, full);
	assert_int_equal(i->end_ns, ring_find(&s->ring, sequence)->end_ns);
	interval_free(i);
}

static void deliver(uint32_t id, const void *data, size_t len)
{
	sock->inbox[sock->inbox_count].id = id;
	sock->inbox[sock->inbox_count].data = (struct buf)BUF_INIT;
	buf_add(&sock->inbox[sock->inbox_count++].data, data, len);
}

/* Answers the last frame. */
static void answer(struct scene *s, const struct ack *ack)
{
	struct buf body = BUF_INIT, frame = BUF_INIT;
	struct frame_header header;

	open_frame(s);
	header = s->header;
	header.type = FRAME_ACK;
	body_encode_ack(ack, &body);
	frame_seal(&frame, &header, keyring_find(&s->keys, s->header.key_id), s->header.nonce,
		   body.data, body.len);
	deliver(sock->id, frame.data, frame.len);
	buf_fini(&body);
	buf_fini(&frame);
}

static void answer_applied(struct scene *s)
{
	answer(s, &(struct ack){.status = ACK_APPLIED});
}

/* The first interval is applied, so that identities are known. */
static void begin(struct scene *s)
{
	push(&s->ring, 1, 1);
	expect_sent(s, 0, 1, true);
	answer_applied(s);
	assert_int_equal(step(s, 0), 0);
	assert_true(sender_idle(s->sender, &s->ring));
}

/* --- stories ---------------------------------------------------------------------------------------------------- */

static void test_in_order(void **state)
{
	struct scene *s = *state;

	assert_int_equal(step(s, 0), 0);
	assert_true(sender_idle(s->sender, &s->ring));
	push(&s->ring, 1, 5);
	for (uint64_t i = 1; i <= 5; i++) {
		assert_false(sender_idle(s->sender, &s->ring));
		expect_sent(s, 1, i, i == 1);
		assert_int_equal(s->stats.cursor, i + 1);
		assert_int_equal(step(s, 1), 0);
		answer_applied(s);
	}
	assert_int_equal(step(s, 1), 0);
	assert_true(sender_idle(s->sender, &s->ring));
	assert_int_equal(s->stats.sent, 5);
	assert_int_equal(s->stats.acked, 5);
	assert_int_equal(s->stats.skipped, 0);
	assert_true(s->stats.last_ack_ns == s->now_ns);
	assert_string_equal(sender_url(s->sender), "tcp://127.0.0.1:1");
	assert_int_equal(sender_fd(s->sender), 42);
}

static void test_not_connected(void **state)
{
	struct scene *s = *state;
	uint64_t cursors[2];

	push(&s->ring, 1, 3);
	sock->ready = false;
	assert_int_equal(step(s, 0), 0);
	assert_true(s->wanted_ns <= s->now_ns + 250 * NS_PER_MS);
	/* What never left may still be merged. */
	assert_int_equal(sender_get_cursors(s->sender, cursors), 1);
	assert_int_equal(cursors[0], 1);
	assert_int_equal(step(s, 9999), 0);
	assert_int_equal(sock->reconnects, 0);
	assert_int_equal(step(s, 1), 0);
	assert_int_equal(sock->reconnects, 1);
	assert_int_equal(step(s, 9999), 0);
	assert_int_equal(sock->reconnects, 1);
	assert_int_equal(s->stats.timeouts, 0);
	/* Ready, but gone in the moment of sending. */
	sock->ready = true;
	sock->connections = 0;
	assert_int_equal(step(s, 0), 0);
	assert_int_equal(sender_get_cursors(s->sender, cursors), 1);
	merge(&s->ring, 0);
	sock->connections = 1;
	expect_sent(s, 0, 2, true);
}

static void test_timeout(void **state)
{
	struct scene *s = *state;
	struct buf first = BUF_INIT;
	uint32_t id;

	push(&s->ring, 1, 1);
	expect_sent(s, 0, 1, true);
	id = sock->id;
	buf_add(&first, sock->frame.data, sock->frame.len);
	assert_int_equal(step(s, 4999), 0);
	assert_true(s->wanted_ns <= s->now_ns + NS_PER_MS);
	for (unsigned int i = 1; i <= 5; i++) {
		assert_int_equal(step(s, i == 1 ? 1 : 5000), 1);
		assert_int_equal(s->stats.timeouts, i);
		/* A second one in a row: the connection is given up. */
		assert_int_equal(sock->reconnects, i / 2);
		assert_int_equal(sock->id, id);
		assert_int_equal(sock->frame.len, first.len);
		assert_memory_equal(sock->frame.data, first.data, first.len);
	}
	answer_applied(s);
	assert_int_equal(step(s, 1), 0);
	assert_true(sender_idle(s->sender, &s->ring));
	assert_int_equal(s->stats.acked, 1);
	assert_int_equal(s->stats.sent, 6);
	/* An ack ends the row. */
	push(&s->ring, 2, 2);
	expect_sent(s, 0, 2, false);
	assert_int_equal(step(s, 5000), 1);
	assert_int_equal(sock->reconnects, 2);
	buf_fini(&first);
}

static void test_connection_replaced(void **state)
{
	struct scene *s = *state;

	push(&s->ring, 1, 1);
	expect_sent(s, 0, 1, true);
	sock->ready = false;
	sock->connections++;
	assert_int_equal(step(s, 1), 0);
	sock->ready = true;
	assert_int_equal(step(s, 1), 1);
	assert_int_equal(step(s, 1), 0);
	assert_int_equal(s->stats.timeouts, 0);
	answer_applied(s);
	step(s, 1);
	assert_true(sender_idle(s->sender, &s->ring));
}

static void test_bad_acks(void **state)
{
	struct scene *s = *state;
	struct buf good = BUF_INIT;

	push(&s->ring, 1, 2);
	expect_sent(s, 0, 1, true);
	answer_applied(s);
	buf_add(&good, sock->inbox[0].data.data, sock->inbox[0].data.len);
	sock->inbox[0].data.data[good.len - 1] ^= 1;
	deliver(sock->id, "noise", 5);
	/* The request itself comes back. */
	deliver(sock->id, sock->frame.data, sock->frame.len);
	/* Another request's. */
	deliver(sock->id + 1, good.data, good.len);
	assert_int_equal(step(s, 1), 0);
	assert_int_equal(s->stats.bad_acks, 3);
	assert_int_equal(s->stats.acked, 0);
	assert_true(s->stats.last_reason[0] != '\0');
	assert_int_equal(s->stats.last_ack_ns, 0);
	/* The right one still counts .. */
	deliver(sock->id, good.data, good.len);
	assert_int_equal(step(s, 1), 1);
	assert_int_equal(s->stats.acked, 1);
	/* .. but once, and never for another request. */
	deliver(sock->id, good.data, good.len);
	assert_int_equal(step(s, 1), 0);
	assert_int_equal(s->stats.bad_acks, 4);
	assert_int_equal(s->stats.acked, 1);
	/* Late, of a frame that was sent twice: no news. */
	deliver(sock->id - 1, good.data, good.len);
	assert_int_equal(step(s, 1), 0);
	assert_int_equal(s->stats.bad_acks, 4);
	buf_fini(&good);
}

/* An interval of many parts, of which the other side forgot one. */
static void test_parts(void **state)
{
	struct scene *s = *state;

	s->ring.items[s->ring.count++] = interval_make(1, 1500, 3);
	for (int part = 0; part < 11; part++) {
		assert_int_equal(step(s, 1), 1);
		open_frame(s);
		assert_int_equal(s->header.part, part);
		assert_int_equal(s->header.parts, 11);
		answer(s, &(struct ack){.status = ACK_PART_STORED});
	}
	/* The last one was merely stored: from the first again, after a pause. */
	assert_int_equal(step(s, 1), 0);
	assert_true(s->wanted_ns == s->now_ns + NS_PER_SEC);
	assert_int_equal(step(s, 1000), 1);
	open_frame(s);
	assert_int_equal(s->header.part, 0);
	/* Any part may complete it. */
	answer_applied(s);
	assert_int_equal(step(s, 1), 0);
	assert_true(sender_idle(s->sender, &s->ring));
	assert_int_equal(s->stats.acked, 1);
	assert_int_equal(s->stats.sent, 12);
}

static void test_dropped(void **state)
{
	static const struct {
		struct ack ack;
		const char *reason;
	} cases[] = {
		{{.status = ACK_REFUSED, .reason = "too many pods"}, "too many pods"},
		{{.status = ACK_TOO_OLD}, "too old"},
	};
	struct scene *s = *state;

	begin(s);
	push(&s->ring, 2, 5);
	for (uint64_t i = 0; i < 2; i++) {
		expect_sent(s, 1, 2 + 2 * i, false);
		answer(s, &cases[i].ack);
		/* Never again; the next carries the identities that were lost with it. */
		expect_sent(s, 1, 3 + 2 * i, true);
		assert_int_equal(s->stats.refused, i + 1);
		assert_string_equal(s->stats.last_reason, cases[i].reason);
		answer_applied(s);
	}
	assert_int_equal(step(s, 60000), 0);
	assert_int_equal(s->stats.acked, 3);
}

static void test_need_full(void **state)
{
	struct scene *s = *state;

	begin(s);
	push(&s->ring, 2, 3);
	expect_sent(s, 1, 2, false);
	answer(s, &(struct ack){.status = ACK_NEED_FULL});
	expect_sent(s, 1, 2, true);
	assert_int_equal(s->stats.resends_ordered, 1);
	answer_applied(s);
	expect_sent(s, 1, 3, false);
}

/* Back to the third, with identities up to what had been sent before. */
static void test_resend(void **state)
{
	static const enum ack_status statuses[] = {ACK_NEED_FULL, ACK_APPLIED, ACK_TOO_OLD};
	struct scene *s = *state;
	uint64_t newest = 1;

	begin(s);
	for (size_t i = 0; i < 3; i++) {
		uint64_t first = newest + 1, from = newest + 2;

		newest += 6;
		push(&s->ring, first, newest);
		for (uint64_t n = first; n < newest; n++) {
			expect_sent(s, 1, n, false);
			if (n < newest - 1)
				answer_applied(s);
		}
		answer(s, &(struct ack){.status = statuses[i], .resend_from = from});
		for (uint64_t n = from; n < newest; n++) {
			expect_sent(s, 1, n, true);
			assert_int_equal(s->stats.resends_ordered, i + 1);
			answer_applied(s);
		}
		expect_sent(s, 1, newest, false);
		answer_applied(s);
		step(s, 1);
	}
	assert_int_equal(s->stats.skipped, 0);
}

/* A restarted aggregator wants everything; the ring has less. */
static void test_resend_beyond_ring(void **state)
{
	struct scene *s = *state;

	push(&s->ring, 1, 9);
	for (uint64_t i = 1; i <= 9; i++) {
		expect_sent(s, 1, i, i == 1);
		if (i < 9)
			answer_applied(s);
	}
	forget(&s->ring, 4);
	answer(s, &(struct ack){.status = ACK_NEED_FULL, .resend_from = 1});
	expect_sent(s, 1, 5, true);
	assert_int_equal(s->stats.skipped, 4);
	answer_applied(s);
	expect_sent(s, 1, 6, true);
}

/* Orders that never end in an applied interval are not a busy loop. */
static void test_orders_are_paced(void **state)
{
	struct scene *s = *state;

	push(&s->ring, 1, 1);
	for (int i = 0; i < 5; i++) {
		expect_sent(s, i < 2 ? 0 : 1000, 1, true);
		answer(s, &(struct ack){.status = ACK_NEED_FULL, .resend_from = i % 2});
		if (i > 0) {
			assert_int_equal(step(s, 0), 0);
			assert_true(s->wanted_ns == s->now_ns + NS_PER_SEC);
		}
	}
	assert_int_equal(s->stats.resends_ordered, 5);
}

static void test_orders(void **state)
{
	struct scene *s = *state;

	begin(s);
	push(&s->ring, 2, 3);
	expect_sent(s, 0, 2, false);
	answer(s, &(struct ack){.status = ACK_APPLIED, .wait_ms = 3000, .interval_ms = 2000});
	assert_int_equal(step(s, 0), 0);
	assert_int_equal(s->stats.interval_ms, 2000);
	assert_true(s->wanted_ns == s->now_ns + 3 * NS_PER_SEC);
	assert_int_equal(step(s, 2999), 0);
	expect_sent(s, 1, 3, false);
	answer(s, &(struct ack){.status = ACK_APPLIED, .interval_ms = 100});
	step(s, 0);
	assert_int_equal(s->stats.interval_ms, 1000);
}

static void test_full_every_minute(void **state)
{
	struct scene *s = *state;

	begin(s);
	for (uint64_t i = 2; i <= 30; i++) {
		push(&s->ring, i, i);
		expect_sent(s, 5000, i, i == 13 || i == 25);
		answer_applied(s);
		step(s, 0);
	}
}

static void test_applied_further(void **state)
{
	struct scene *s = *state;

	begin(s);
	push(&s->ring, 2, 9);
	expect_sent(s, 0, 2, false);
	answer(s, &(struct ack){.status = ACK_APPLIED, .applied = 6});
	expect_sent(s, 0, 7, false);
	/* It cannot have what there is not. */
	answer(s, &(struct ack){.status = ACK_APPLIED, .applied = UINT64_MAX});
	step(s, 0);
	assert_true(sender_idle(s->sender, &s->ring));
	push(&s->ring, 10, 10);
	expect_sent(s, 0, 10, false);
	assert_int_equal(s->stats.skipped, 0);
}

static void test_ring_moves_on(void **state)
{
	struct scene *s = *state;
	uint64_t cursors[2];

	begin(s);
	push(&s->ring, 2, 10);
	expect_sent(s, 0, 2, false);
	assert_int_equal(sender_get_cursors(s->sender, cursors), 2);
	assert_int_equal(cursors[0], 2);
	assert_int_equal(cursors[1], 3);
	/* What is in flight stays what it is. */
	forget(&s->ring, 5);
	assert_int_equal(step(s, 5000), 1);
	open_frame(s);
	assert_int_equal(s->header.sequence, 2);
	answer_applied(s);
	expect_sent(s, 0, 6, true);
	assert_int_equal(s->stats.skipped, 3);
	/* A merged one stands for all it covers .. */
	answer_applied(s);
	expect_sent(s, 0, 7, false);
	merge(&s->ring, 2);
	answer_applied(s);
	expect_sent(s, 0, 9, false);
	assert_int_equal(s->stats.skipped, 3);
	answer_applied(s);
	expect_sent(s, 0, 10, false);
	/* .. but one that reaches back over what was applied cannot be sent. */
	push(&s->ring, 11, 11);
	merge(&s->ring, 2);
	answer(s, &(struct ack){.status = ACK_NEED_FULL});
	expect_sent(s, 0, 11, true);
	assert_int_equal(s->stats.skipped, 4);
}

static void test_too_big(void **state)
{
	struct scene *s = *state;

	s->ring.items[s->ring.count++] = interval_make(1, 4000, 3);
	push(&s->ring, 2, 2);
	expect_sent(s, 0, 2, true);
	assert_int_equal(s->stats.refused, 1);
	assert_non_null(strstr(s->stats.last_reason, "16000 entries"));
}

static void test_key_exchanged(void **state)
{
	struct scene *s = *state;
	uint8_t nonce[FRAME_NONCE_LEN];

	push(&s->ring, 1, 1);
	expect_sent(s, 0, 1, true);
	memcpy(nonce, s->header.nonce, sizeof(nonce));
	memset(&s->keys.keys[0], 2, sizeof(s->keys.keys[0]));
	expect_sent(s, 5000, 1, true);
	assert_memory_not_equal(nonce, s->header.nonce, sizeof(nonce));
	assert_int_equal(s->header.key_id[0], 2);
	answer_applied(s);
	step(s, 0);
	assert_int_equal(s->stats.acked, 1);
}

/* A quick peer does not keep the caller for ever. */
static void test_long_backlog(void **state)
{
	struct scene *s = *state;
	unsigned int steps = 0;

	push(&s->ring, 1, 100);
	while (!sender_idle(s->sender, &s->ring)) {
		if (step(s, 0))
			answer_applied(s);
		assert_true(++steps <= 101);
	}
	assert_int_equal(s->stats.acked, 100);
}

static void test_open_refusals(void **state)
{
	static const struct keyring none;
	static const struct {
		const char *url, *node, *reason;
	} cases[] = {
		{"udp://127.0.0.1:1", "n", "expected tcp://"},
		{"tcp://127.0.0.1:0", "n", "port"},
		{"tcp://127.0.0.1:1", "n", "needs a key"},
		{"ipc:///tmp/x", "n/1", "node name"},
		{"ipc:///tmp/x", "", "node name"},
	};
	struct sender_config config = {.keys = &none};
	struct sender *sender = NULL;
	struct reason why;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		config.node = cases[i].node;
		assert_int_equal(sender_open(&sender, cases[i].url, &config, &why), -EINVAL);
		assert_non_null(strstr(why.text, cases[i].reason));
		assert_null(sender);
	}
	config.node = "n";
	assert_int_equal(sender_open(&sender, "ipc:///tmp/x", &config, &why), 0);
	sender_close(sender);
	sender_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_in_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_connected, setup, teardown),
		cmocka_unit_test_setup_teardown(test_timeout, setup, teardown),
		cmocka_unit_test_setup_teardown(test_connection_replaced, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_acks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_parts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dropped, setup, teardown),
		cmocka_unit_test_setup_teardown(test_need_full, setup, teardown),
		cmocka_unit_test_setup_teardown(test_resend, setup, teardown),
		cmocka_unit_test_setup_teardown(test_resend_beyond_ring, setup, teardown),
		cmocka_unit_test_setup_teardown(test_orders_are_paced, setup, teardown),
		cmocka_unit_test_setup_teardown(test_orders, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full_every_minute, setup, teardown),
		cmocka_unit_test_setup_teardown(test_applied_further, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ring_moves_on, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_big, setup, teardown),
		cmocka_unit_test_setup_teardown(test_key_exchanged, setup, teardown),
		cmocka_unit_test_setup_teardown(test_long_backlog, setup, teardown),
		cmocka_unit_test(test_open_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
