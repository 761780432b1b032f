/* SPDX-License-Identifier: Apache-2.0 */
/* The sender: what leaves when, and what answers do. */
#include "agent/schedule.h"
#include "tests/sender_scene.h"

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
	assert_int_equal(sender_fd(s->sender), 42);
}

static void test_not_connected(void **state)
{
	struct scene *s = *state;
	uint64_t cursors[SENDER_CURSORS];

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

/*
 * By a clock that nobody sets, at least 1; anew on a new connection, and the same bytes on the old
 * one.
 */
static void test_age(void **state)
{
	struct scene *s = *state;

	push(&s->ring, 1, 1);
	s->ring.items[0]->end_boot_ns = fake_ns = 1;
	for (int i = 0; i < 3; i++, fake_ns += 7 * NS_PER_SEC + 1) {
		sock->connections += i == 2;
		expect_sent(s, 7000, 1, true);
		assert_int_equal(s->header.age_ms, i < 2 ? 1 : 14001);
	}
}

/* What is on its way goes out again after `ms`, or up to a quarter later; returns when. */
static int64_t expect_timeout(struct scene *s, int64_t ms)
{
	int64_t begin_ns = s->now_ns;

	assert_int_equal(step(s, ms - 1), 0);
	while (!step(s, 1))
		assert_true(s->now_ns - begin_ns <= ms * NS_PER_MS * 5 / 4);
	return (s->now_ns - begin_ns) / NS_PER_MS;
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
	for (unsigned int i = 1; i <= 9; i++) {
		expect_timeout(s, i <= 2 ? 5000 : i <= 4 ? 10000 : i <= 6 ? 20000 : 24000);
		assert_int_equal(s->stats.timeouts, i);
		/* A second one in a row: the connection is given up. */
		assert_int_equal(sock->reconnects, i / 2);
		assert_int_equal(sock->id, id + i);
		assert_int_equal(sock->frame.len, first.len);
		assert_memory_equal(sock->frame.data, first.data, first.len);
	}
	answer_applied(s);
	assert_int_equal(step(s, 1), 0);
	assert_true(sender_idle(s->sender, &s->ring));
	assert_int_equal(s->stats.acked, 1);
	assert_int_equal(s->stats.sent, 10);
	assert_int_equal(s->stats.sent_again, 9);
	/* An ack ends the row; what took long on a connection says nothing of the next. */
	push(&s->ring, 2, 2);
	sock->connections++;
	expect_sent(s, 0, 2, false);
	expect_timeout(s, 5000);
	assert_int_equal(sock->reconnects, 4);
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
	assert_int_equal(s->stats.sent_again, 1);
	answer_applied(s);
	step(s, 1);
	assert_true(sender_idle(s->sender, &s->ring));
}

/* The copy with this id is answered, and nothing is left to do. */
static void answer_copy(struct scene *s, uint32_t id)
{
	answer_applied(s);
	sock->inbox[sock->inbox_count - 1].id = id;
	assert_int_equal(step(s, 0), 0);
	assert_true(sender_idle(s->sender, &s->ring));
}

/* Sends the next interval of an idle sender; returns the id. */
static uint32_t send_next(struct scene *s)
{
	uint64_t sequence = ring_newest(&s->ring) + 1;

	push(&s->ring, sequence, sequence);
	assert_int_equal(step(s, 0), 1);
	return sock->id;
}

/* .. and has it answered so much later, whatever is sent meanwhile. */
static void answer_after(struct scene *s, int64_t ms)
{
	uint32_t id = send_next(s);

	for (int64_t waited_ms = 0; waited_ms < ms; waited_ms += 100)
		step(s, 100);
	answer_copy(s, id);
}

/*
 * Without work it tells its newest interval once more on a new connection; what that is worth, the
 * answer says.
 */
static void test_greeting(void **state)
{
	struct scene *s = *state;

	push(&s->ring, 1, 3);
	for (uint64_t i = 1; i <= 3; i++) {
		expect_sent(s, 1, i, i == 1);
		answer_applied(s);
	}
	assert_int_equal(step(s, 1), 0);
	assert_true(s->wanted_ns <= s->now_ns + NS_PER_SEC);
	/* It is known there. */
	sock->connections++;
	expect_sent(s, 1, 3, false);
	answer(s, &(struct ack){.status = ACK_APPLIED, .applied = 3});
	assert_int_equal(step(s, 1), 0);
	assert_true(sender_idle(s->sender, &s->ring));
	assert_int_equal(s->stats.acked, 3);
	/* Nobody is known there. */
	sock->connections++;
	sock->ready = false;
	assert_int_equal(step(s, 1), 0);
	sock->ready = true;
	expect_sent(s, 1, 3, false);
	answer(s, &(struct ack){.status = ACK_NEED_FULL, .resend_from = 1});
	for (uint64_t i = 1; i <= 3; i++) {
		expect_sent(s, 1, i, i == 1);
		answer_applied(s);
	}
	assert_int_equal(step(s, 1), 0);
	assert_int_equal(s->stats.acked, 6);
	/* What has become part of a larger one would not be known for what it is. */
	merge(&s->ring, 1);
	sock->connections++;
	assert_int_equal(step(s, 1), 0);
	assert_int_equal(s->stats.skipped, 0);
}

/* What was told before has its fate: a greeting that is under way or fails is not counted. */
static void test_greeting_is_not_counted(void **state)
{
	static const struct ack refused = {.status = ACK_REFUSED, .reason = "no"};
	struct scene *s = *state;

	answer_after(s, 0);
	answer_after(s, 0);
	sock->connections++;
	sock->ready = false;
	assert_int_equal(step(s, 0), 0);
	assert_false(sender_idle(s->sender, &s->ring));
	assert_int_equal(s->stats.settled, 2);
	/* Gone in the moment of sending. */
	sock->ready = true;
	sock->connections = 0;
	assert_int_equal(step(s, 0), 0);
	sock->connections = 3;
	expect_sent(s, 0, 2, false);
	assert_int_equal(s->stats.settled, 2);
	answer_copy(s, sock->id);
	assert_int_equal(s->stats.acked, 2);
	/* Refused, there is nothing that was not acknowledged. */
	sock->connections++;
	expect_sent(s, 0, 2, false);
	answer(s, &refused);
	assert_int_equal(step(s, 0), 0);
	assert_int_equal(s->stats.refused, 0);
	assert_true(sender_idle(s->sender, &s->ring));
	/* Another took its place before it was sent. */
	sock->connections++;
	sock->ready = false;
	assert_int_equal(step(s, 0), 0);
	push(&s->ring, 3, 4);
	forget(&s->ring, 3);
	sock->ready = true;
	expect_sent(s, 0, 4, true);
	assert_int_equal(s->stats.skipped, 1);
	assert_int_equal(s->stats.settled, 3);
	answer_copy(s, sock->id);
	assert_int_equal(s->stats.settled, 4);
	assert_int_equal(s->stats.acked, 3);
}

/* With work there is no need: the next interval is the greeting. */
static void test_no_greeting(void **state)
{
	struct scene *s = *state;

	begin(s);
	sock->connections++;
	push(&s->ring, 2, 2);
	expect_sent(s, 1, 2, false);
	answer_applied(s);
	assert_int_equal(step(s, 1), 0);
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
	assert_int_equal(s->stats.sent_again, 0);
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

/* Where answers take milliseconds a lost one delays its interval by about a second, and no other. */
static void test_lost_ack(void **state)
{
	struct scene *s = *state;
	int64_t begin_ns;
	uint32_t id;

	answer_after(s, 0);
	for (int i = 0; i < 5; i++) {
		send_next(s);
		assert_int_equal(step(s, 3), 0);
		answer_copy(s, sock->id);
		send_next(s);
		expect_timeout(s, 1000);
		assert_int_equal(step(s, 3), 0);
		answer_copy(s, sock->id);
	}
	assert_int_equal(s->stats.timeouts, 5);
	/* An answer to the first copy counts as well, and tells how long it took. */
	id = send_next(s);
	expect_timeout(s, 1000);
	answer_copy(s, id);
	send_next(s);
	expect_timeout(s, 5000);
	assert_int_equal(sock->reconnects, 0);
	answer_copy(s, sock->id);
	/* Silence: one more copy is all a connection gets in the time it always had. */
	sock->connections++;
	answer_after(s, 0);
	begin_ns = s->now_ns;
	send_next(s);
	expect_timeout(s, 1000);
	while (!step(s, 1))
		assert_int_equal(sock->reconnects, 0);
	assert_int_equal(sock->reconnects, 1);
	assert_in_range(s->now_ns - begin_ns, 10 * NS_PER_SEC, 10 * NS_PER_SEC * 5 / 4);
	/* Given up, it was quick no longer, also where there is no new one. */
	expect_timeout(s, 10000);
	assert_int_equal(sock->reconnects, 1);
	/* On a new one nothing is known. */
	sock->connections++;
	assert_int_equal(step(s, 0), 1);
	assert_int_equal(sock->reconnects, 1);
	expect_timeout(s, 10000);
	assert_int_equal(sock->reconnects, 2);
}

/*
 * Eight times as long as answers took lately on this connection, but between 1 s and 5 s, and twice
 * as long as they took where that is longer; 24 s at most; sooner again when they take less.
 */
static void test_timeouts_follow_answers(void **state)
{
	static const struct {
		int64_t answered_ms, timeout_ms;
	} cases[] = {{0, 1000},	  {100, 1000},	{200, 1600},  {600, 4800},
		     {700, 5000}, {2400, 5000}, {4900, 9800}, {9000, 18000}};
	struct scene *s = *state;
	int64_t waited_ms;
	uint32_t id;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		sock->connections++;
		answer_after(s, 0);
		answer_after(s, cases[i].answered_ms);
		send_next(s);
		expect_timeout(s, cases[i].timeout_ms);
		answer_copy(s, sock->id);
	}
	/* What took long on a connection says nothing of the next; nor does what was sent on it. */
	sock->connections++;
	id = send_next(s);
	step(s, 4000);
	sock->connections++;
	assert_int_equal(step(s, 0), 1);
	assert_int_equal(sock->id, ++id);
	waited_ms = expect_timeout(s, 5000);
	answer_copy(s, id);
	send_next(s);
	expect_timeout(s, 2 * waited_ms);
	answer_copy(s, sock->id);
	answer_after(s, 19000);
	send_next(s);
	expect_timeout(s, 24000);
	answer_copy(s, sock->id);
	for (int i = 0; i < 45; i++)
		answer_after(s, 0);
	send_next(s);
	expect_timeout(s, 1000);
}

static void expect_apart(const int64_t *ms, size_t count)
{
	size_t others = 0;

	for (size_t i = 1; i < count; i++)
		others += ms[i] != ms[0];
	assert_true(others > count / 2);
}

/* Nodes that lost an answer in one moment do not all ask again in another. */
static void test_spread(void **state)
{
	enum { NODES = 10 };
	int64_t first_ms[NODES], quick_ms[NODES];
	struct scene *s = *state;
	char node[16];

	for (int i = 0; i < NODES; i++) {
		sender_close(s->sender);
		forget(&s->ring, s->ring.count);
		snprintf(node, sizeof(node), "node-%d", i);
		assert_int_equal(open_as(s, node), 0);
		send_next(s);
		first_ms[i] = expect_timeout(s, 5000);
		answer_copy(s, sock->id);
		send_next(s);
		quick_ms[i] = expect_timeout(s, 1000);
	}
	expect_apart(first_ms, NODES);
	expect_apart(quick_ms, NODES);
	sender_close(s->sender);
	s->sender = NULL;
}

/* Back to the third, there with all identities; later ones have what they had. */
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
			expect_sent(s, 1, n, n == from);
			assert_int_equal(s->stats.resends_ordered, i + 1);
			answer_applied(s);
		}
		expect_sent(s, 1, newest, false);
		answer_applied(s);
		step(s, 1);
	}
	assert_int_equal(s->stats.skipped, 0);
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
	/* An order holds as long as acks repeat it. */
	push(&s->ring, 4, 5);
	expect_sent(s, 0, 4, false);
	answer(s, &(struct ack){.status = ACK_REFUSED, .interval_ms = 15000});
	expect_sent(s, 0, 5, true);
	assert_int_equal(s->stats.interval_ms, 15000);
	answer_applied(s);
	step(s, 0);
	assert_int_equal(s->stats.interval_ms, 0);
}

/* Parts that are merely stored say nothing about the interval's length. */
static void test_orders_between_parts(void **state)
{
	struct scene *s = *state;

	begin(s);
	push(&s->ring, 2, 2);
	expect_sent(s, 0, 2, false);
	answer(s, &(struct ack){.status = ACK_APPLIED, .interval_ms = 2000});
	step(s, 0);
	s->ring.items[s->ring.count++] = interval_make(3, 1500, 3);
	assert_int_equal(step(s, 0), 1);
	answer(s, &(struct ack){.status = ACK_PART_STORED});
	assert_int_equal(step(s, 0), 1);
	assert_int_equal(s->stats.interval_ms, 2000);
	answer(s, &(struct ack){.status = ACK_PART_STORED, .interval_ms = 3000});
	assert_int_equal(step(s, 0), 1);
	assert_int_equal(s->stats.interval_ms, 3000);
}

/*
 * After the first one at a moment of the node's own within the minute, so that a fleet's do not
 * come together.
 */
static void test_full_every_minute(void **state)
{
	struct scene *s = *state;
	uint64_t wait_ns = schedule_node_hash("node-1") % (60 * NS_PER_SEC);
	uint64_t due = 1 + (wait_ns + 5 * NS_PER_SEC - 1) / (5 * NS_PER_SEC);

	begin(s);
	for (uint64_t i = 2; i <= 30; i++) {
		push(&s->ring, i, i);
		expect_sent(s, 5000, i, i >= due && (i - due) % 12 == 0);
		answer_applied(s);
		step(s, 0);
	}
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
	expect_sent(s, 7000, 1, true);
	assert_memory_not_equal(nonce, s->header.nonce, sizeof(nonce));
	assert_int_equal(s->header.key_id[0], 2);
	answer_applied(s);
	step(s, 0);
	assert_int_equal(s->stats.acked, 1);
}

static void test_open_refusals(void **state)
{
	static const struct keyring none, one = {.count = 1};
	static const struct {
		const char *url, *node, *reason;
	} cases[] = {
		{"udp://127.0.0.1:1", "n", "expected tcp://"},
		{"tcp://127.0.0.1:0", "n", "port"},
		{"tcp://127.0.0.1:1", "n", "needs a key"},
		{"tcp://*:1", "n", "nobody to send to"},
		{"ipc:///tmp/x", "n/1", "node name"},
		{"ipc:///tmp/x", "", "node name"},
	};
	struct sender_config config = {.keys = &none};
	struct sender *sender = NULL;
	struct endpoint endpoint;
	struct error error;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		config.node = cases[i].node;
		assert_int_equal(sender_open(&sender, cases[i].url, &config, &error), -EINVAL);
		assert_non_null(strstr(error.text, cases[i].reason));
		assert_null(sender);
	}
	config.node = "n";
	assert_int_equal(sender_open(&sender, "ipc:///tmp/x", &config, &error), 0);
	sender_close(sender);
	sender_close(NULL);
	/* A name may be configured, but who opens has looked it up. */
	config.keys = &one;
	assert_int_equal(sender_check(&endpoint, "tcp://name:1", &config, &error), 0);
	assert_int_equal(sender_open(&sender, "tcp://name:1", &config, &error), -EINVAL);
	assert_non_null(strstr(error.text, "not an address"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_in_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_connected, setup, teardown),
		cmocka_unit_test_setup_teardown(test_age, setup, teardown),
		cmocka_unit_test_setup_teardown(test_timeout, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lost_ack, setup, teardown),
		cmocka_unit_test_setup_teardown(test_timeouts_follow_answers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_spread, setup, teardown),
		cmocka_unit_test_setup_teardown(test_connection_replaced, setup, teardown),
		cmocka_unit_test_setup_teardown(test_greeting, setup, teardown),
		cmocka_unit_test_setup_teardown(test_greeting_is_not_counted, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_greeting, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_acks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_parts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dropped, setup, teardown),
		cmocka_unit_test_setup_teardown(test_need_full, setup, teardown),
		cmocka_unit_test_setup_teardown(test_resend, setup, teardown),
		cmocka_unit_test_setup_teardown(test_orders_are_paced, setup, teardown),
		cmocka_unit_test_setup_teardown(test_orders, setup, teardown),
		cmocka_unit_test_setup_teardown(test_orders_between_parts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full_every_minute, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_big, setup, teardown),
		cmocka_unit_test_setup_teardown(test_key_exchanged, setup, teardown),
		cmocka_unit_test(test_open_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
