/* SPDX-License-Identifier: Apache-2.0 */
/* The sender's cursor in a ring that moves on under it. */
#include "tests/sender_scene.h"

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
	expect_sent(s, 1, 6, false);
}

/* One that joins late begins where the ring does, and has lost nothing. */
static void test_first(void **state)
{
	struct scene *s = *state;
	struct sender_config config = {.node = "node-1", .keys = &s->keys, .first = 7};

	memset(config.run, 7, sizeof(config.run));
	push(&s->ring, 7, 9);
	sender_close(s->sender);
	assert_int_equal(sender_open(&s->sender, "tcp://[::1]:1", &config, NULL), 0);
	expect_sent(s, 0, 7, true);
	answer_applied(s);
	expect_sent(s, 0, 8, false);
	assert_int_equal(s->stats.skipped, 0);
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

/*
 * What the other side has in its database stays a border until it says otherwise; parts and
 * refusals say nothing.
 */
static void test_durable_is_a_border(void **state)
{
	static const struct {
		struct ack ack;
		uint64_t border; /* 0: none */
	} cases[] = {
		{{.status = ACK_APPLIED}, 0},
		{{.status = ACK_APPLIED, .durable = 1}, 2},
		{{.status = ACK_REFUSED}, 2},
		{{.status = ACK_APPLIED, .durable = 3}, 4},
		{{.status = ACK_REFUSED, .durable = 4}, 5},
		{{.status = ACK_APPLIED}, 0},
	};
	struct scene *s = *state;
	uint64_t cursors[SENDER_CURSORS];

	begin(s);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ack ack = cases[i].ack;

		push(&s->ring, i + 2, i + 2);
		assert_int_equal(step(s, 0), 1);
		open_frame(s);
		ack.applied = i + 2;
		answer(s, &ack);
		step(s, 0);
		assert_int_equal(sender_get_cursors(s->sender, cursors), cases[i].border ? 2 : 1);
		assert_int_equal(cursors[0], i + 3);
		if (cases[i].border)
			assert_int_equal(cursors[1], cases[i].border);
	}
}

static void test_ring_moves_on(void **state)
{
	struct scene *s = *state;
	uint64_t cursors[SENDER_CURSORS];

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_resend_beyond_ring, setup, teardown),
		cmocka_unit_test_setup_teardown(test_first, setup, teardown),
		cmocka_unit_test_setup_teardown(test_applied_further, setup, teardown),
		cmocka_unit_test_setup_teardown(test_durable_is_a_border, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ring_moves_on, setup, teardown),
		cmocka_unit_test_setup_teardown(test_long_backlog, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
