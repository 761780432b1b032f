/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of nanomsg's REQ sockets: what is taken, what waits for more, what ends a connection.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/edge/ingest_socket.h"

static void test_hello(void **state)
{
	static const char asker[] = "\0SP\0\0\x30\0\0";
	static const char answerer[] = "\0SP\0\0\x31\0\0";

	(void)state;
	for (size_t len = 0; len < WIRE_HELLO_LEN; len++) {
		assert_int_equal(wire_check_hello(asker, len), -EAGAIN);
		/* As soon as it is wrong. */
		if (len > 5)
			assert_int_equal(wire_check_hello(answerer, len), -EPROTO);
	}
	assert_int_equal(wire_check_hello(asker, WIRE_HELLO_LEN), 0);
	assert_int_equal(wire_check_hello("\0SP\0\0\x30\0\0more", 12), 0);
	assert_int_equal(wire_check_hello(answerer, WIRE_HELLO_LEN), -EPROTO);
	assert_int_equal(wire_check_hello("GET", 3), -EPROTO);
	assert_memory_equal(wire_hello, answerer, WIRE_HELLO_LEN);
}

static void test_head(void **state)
{
	static const struct {
		const char *bytes;
		size_t len, message_len;
		enum endpoint_kind kind;
		int rc;
	} cases[] = {
		{"\0\0\0\0\0\0\1\2", 8, 258, ENDPOINT_TCP, 0},
		{"\0\0\0\0\0\0\1\2", 7, 0, ENDPOINT_TCP, -EAGAIN},
		{"\0\0\0\0\0\x10\0\0", 8, WIRE_MESSAGE_MAX, ENDPOINT_TCP, 0},
		{"\0\0\0\0\0\x10\0\1", 8, 0, ENDPOINT_TCP, -EMSGSIZE},
		{"\x80\0\0\0\0\0\0\1", 8, 0, ENDPOINT_TCP, -EMSGSIZE},
		{"\xff\xff\xff\xff\xff\xff\xff\xff", 8, 0, ENDPOINT_TCP, -EMSGSIZE},
		{"\1\0\0\0\0\0\0\1\2", 9, 258, ENDPOINT_IPC, 0},
		{"\1\0\0\0\0\0\0\1\2", 8, 0, ENDPOINT_IPC, -EAGAIN},
		{"\2\0\0\0\0\0\0\1\2", 9, 0, ENDPOINT_IPC, -EPROTO},
		{"\0\0\0\0\0\0\0\1\2", 9, 0, ENDPOINT_IPC, -EPROTO},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t message_len = 0;
		uint8_t head[WIRE_HEAD_MAX];

		assert_int_equal(wire_get_head(cases[i].kind, cases[i].bytes, cases[i].len,
					       &message_len),
				 cases[i].rc);
		assert_int_equal(message_len, cases[i].message_len);
		if (cases[i].rc)
			continue;
		wire_put_head(cases[i].kind, message_len, head);
		assert_memory_equal(head, cases[i].bytes, wire_head_len(cases[i].kind));
	}
}

static void test_stack(void **state)
{
	static const char bottom[] = "\x80\0\0\1frame";
	static const char device[] = "\0\0\0\5\x80\0\0\1frame";
	uint8_t high[WIRE_STACK_MAX + 4] = {0};

	(void)state;
	assert_int_equal(wire_stack_len(bottom, sizeof(bottom)), 4);
	assert_int_equal(wire_stack_len(bottom, 4), 4);
	assert_int_equal(wire_stack_len(bottom, 3), 0);
	assert_int_equal(wire_stack_len(device, sizeof(device)), 8);
	assert_int_equal(wire_stack_len(device, 7), 0);
	assert_int_equal(wire_stack_len("\0\0\0\1\0\0\0\2", 8), 0);
	assert_int_equal(wire_stack_len(NULL, 0), 0);
	/* As high as may be, and one more. */
	high[WIRE_STACK_MAX - 4] = 0x80;
	assert_int_equal(wire_stack_len(high, sizeof(high)), WIRE_STACK_MAX);
	high[WIRE_STACK_MAX - 4] = 0;
	high[WIRE_STACK_MAX] = 0x80;
	assert_int_equal(wire_stack_len(high, sizeof(high)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hello),
		cmocka_unit_test(test_head),
		cmocka_unit_test(test_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
