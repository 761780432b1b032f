/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/enrol_client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/clock.h"
#include "shared/file.h"
#include "shared/mem.h"
#include "tests/process.h"

static bool is_ready(void *socket)
{
	return sender_socket_ready(socket);
}

struct sender_socket *enrol_client_dial(int ingest_port)
{
	char *url = mem_printf("tcp://127.0.0.1:%d", ingest_port);
	struct sender_socket *socket;
	struct endpoint endpoint;

	assert_int_equal(endpoint_parse(&endpoint, url, NULL), 0);
	assert_int_equal(sender_socket_open(&socket, &endpoint, NULL), 0);
	assert_true(await(is_ready, socket, 10));
	free(url);
	return socket;
}

void enrol_client_ask(struct sender_socket *socket, const char *public_path, const char *node,
		      enum credential_kind kind, const char *credential, struct enrolment_answer *a)
{
	struct enrolment ask = {.kind = kind,
				.credential = {(const uint8_t *)credential, strlen(credential)},
				.stamp_ns = (uint64_t)clock_wall_ns()};
	struct pollfd readable = {.fd = sender_socket_fd(socket), .events = POLLIN};
	struct buf frame = BUF_INIT, answer = BUF_INIT, text = BUF_INIT;
	uint8_t public_key[ENROLMENT_PUBLIC_LEN], secret[KEY_LEN];
	struct frame_header header;
	uint32_t id;

	assert_int_equal(file_read(public_path, 4096, &text, NULL), 0);
	assert_int_equal(enrolment_public_read(public_key, text.data, strlen(text.data), NULL), 0);
	snprintf(ask.node, sizeof(ask.node), "%s", node);
	crypto_box_keypair(ask.reply_key, secret);
	enrolment_seal(&frame, &header, public_key, &ask);
	assert_int_equal(sender_socket_send(socket, 1, frame.data, frame.len), 0);
	/* Answers to earlier frames come first. */
	do
		assert_int_equal(poll(&readable, 1, 10000), 1);
	while (sender_socket_receive(socket, &id, &answer) || id != 1);
	assert_int_equal(enrolment_answer_open(answer.data, answer.len, &header, public_key, secret,
					       a, NULL),
			 0);
	buf_fini(&frame);
	buf_fini(&answer);
	buf_fini(&text);
}

void enrol_client_send(struct sender_socket *socket, const char *node, const struct key *key)
{
	struct frame_header header = {.type = FRAME_INTERVAL, .sequence = 1, .parts = 1};
	struct buf frame = BUF_INIT;

	snprintf(header.node, sizeof(header.node), "%s", node);
	frame_seal(&frame, &header, key, NULL, "", 0);
	assert_int_equal(sender_socket_send(socket, 2, frame.data, frame.len), 0);
	buf_fini(&frame);
}
