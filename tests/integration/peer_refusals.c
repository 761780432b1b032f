/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an aggregator refuses of another one: frames under other keys, recorded frames, bodies that
 * are none. Its reservations stay as they are, and the next valid frame counts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "aggregator/edge/ingest_socket.h"
#include "aggregator/state/reservations_message.h"
#include "shared/body.h"
#include "shared/file.h"
#include "shared/frame.h"
#include "shared/keyring.h"
#include "shared/mem.h"
#include "tests/process.h"
#include "tests/stack.h"

#define NOW_NS	 1700000000000000000
#define ENTRIES	 "evenkeel_ledger_entries{state=\"charged\"}"
#define REFUSED	 "evenkeel_peer_refused_total"
#define RECEIVED "evenkeel_peer_reservations_total{direction=\"received\"}"

enum { ID_LEN = 4, HEAD_LEN = 8 };

/* The other aggregator is this program. */
struct scene {
	struct stack *stack;
	char *peer;
	const char *options[3];
	struct keyring shared, keys; /* the agents', and those derived from them */
	uint8_t run[FRAME_RUN_LEN];
};

static struct scene s;

static void read_keys(void)
{
	static const char from[] = "evenkeel exchange";
	struct secret file = {0};
	struct error error;

	assert_int_equal(secret_read(&file, s.stack->key_path, KEY_LEN, true, &error), 0);
	s.shared.count = s.keys.count = 1;
	memcpy(s.shared.keys[0].secret, file.text, KEY_LEN);
	crypto_generichash(s.keys.keys[0].secret, KEY_LEN, (const uint8_t *)from, strlen(from),
			   s.shared.keys[0].secret, KEY_LEN);
	key_set_id(&s.shared.keys[0]);
	key_set_id(&s.keys.keys[0]);
	secret_free(&file);
}

static int setup(void **state)
{
	(void)state;
	if (sodium_init() < 0)
		return -1;
	s = (struct scene){.stack = stack_new()};
	/* Nobody is there. */
	s.peer = mem_printf("tcp://127.0.0.1:%d", free_port());
	s.options[0] = "--peer";
	s.options[1] = s.peer;
	s.stack->aggregators[0].more = s.options;
	stack_start_aggregator(s.stack, 0);
	read_keys();
	randombytes_buf(s.run, sizeof(s.run));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	stack_free(s.stack, 0);
	free(s.peer);
	return 0;
}

static double metric(const char *name)
{
	return stack_metric(s.stack, 0, name);
}

/* --- the wire --------------------------------------------------------------------------------- */

static int call(void)
{
	const struct timeval limit = {.tv_sec = 10};
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)s.stack->aggregators[0].ingest_port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	uint8_t hello[WIRE_HELLO_LEN];
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	assert_int_equal(send(fd, wire_asker_hello, sizeof(hello), 0), sizeof(hello));
	assert_int_equal(recv(fd, hello, sizeof(hello), MSG_WAITALL), sizeof(hello));
	return fd;
}

/* A whole message of that body; nonce: of its frame. */
static struct buf make(const struct keyring *keys, uint64_t sequence, const struct buf *body,
		       uint8_t nonce[FRAME_NONCE_LEN])
{
	static const uint8_t id[ID_LEN] = {0x80}, head[HEAD_LEN] = {0};
	struct frame_header header = {
		.type = FRAME_EXCHANGE, .sequence = sequence, .parts = 1, .node = "aggregator"};
	struct buf message = BUF_INIT;

	memcpy(header.run, s.run, sizeof(header.run));
	buf_add(&message, head, sizeof(head));
	buf_add(&message, id, sizeof(id));
	frame_seal(&message, &header, &keys->keys[0], NULL, body->data, body->len);
	wire_put_head(ENDPOINT_TCP, message.len - HEAD_LEN, (uint8_t *)message.data);
	memcpy(nonce, header.nonce, FRAME_NONCE_LEN);
	return message;
}

/* Sends it; false: the connection ends, or there is no answer. */
static bool ask(int fd, const struct buf *message, const uint8_t *nonce, struct ack *ack)
{
	uint8_t head[HEAD_LEN], answer[4096];
	struct buf plain = BUF_INIT;
	struct frame_header header;
	struct error error = {""};
	size_t len;

	if (send(fd, message->data, message->len, MSG_NOSIGNAL) != (ssize_t)message->len ||
	    recv(fd, head, sizeof(head), MSG_WAITALL) != sizeof(head))
		return false;
	assert_int_equal(wire_get_head(ENDPOINT_TCP, head, sizeof(head), &len), 0);
	assert_in_range(len, ID_LEN, sizeof(answer));
	assert_int_equal(recv(fd, answer, len, MSG_WAITALL), len);
	assert_int_equal(frame_open(answer + ID_LEN, len - ID_LEN, &s.keys, nonce, &header, &plain,
				    &error),
			 0);
	assert_int_equal(header.type, FRAME_ACK);
	assert_int_equal(body_decode_ack(plain.data, plain.len, ack, &error), 0);
	buf_fini(&plain);
	return true;
}

/* A body that reserves a node for the pod. */
static struct buf reserve(uint64_t session, const char *uid)
{
	const struct reservation e = {.uid = uid,
				      .namespace = "shop",
				      .name = uid,
				      .node = "n1",
				      .claim = "",
				      .state = RESERVATIONS_CHARGED,
				      .changed_ns = NOW_NS,
				      .expires_ns = NOW_NS + RESERVATIONS_TTL_NS};
	struct buf body = BUF_INIT;

	reservations_message_begin(&body, session);
	reservations_message_add(&body, uid, &e, NOW_NS);
	return body;
}

/* Sends a frame of that body and frees it. */
static bool tell(int fd, uint64_t sequence, struct buf body, struct ack *ack)
{
	uint8_t nonce[FRAME_NONCE_LEN];
	struct buf message = make(&s.keys, sequence, &body, nonce);
	bool answered = ask(fd, &message, nonce, ack);

	buf_fini(&message);
	buf_fini(&body);
	return answered;
}

static uint64_t greet(int fd)
{
	struct ack ack;

	assert_true(tell(fd, 1, (struct buf)BUF_INIT, &ack));
	assert_int_equal(ack.status, ACK_APPLIED);
	assert_true(ack.applied != 0);
	return ack.applied;
}

/* --- stories ---------------------------------------------------------------------------------- */

static void a_bad_body_is_refused_with_a_reason(void **state)
{
	int fd = call();
	uint64_t session = greet(fd);
	struct buf bad = BUF_INIT;
	struct ack ack;

	(void)state;
	buf_add_str(&bad, "nothing of the kind");
	assert_true(tell(fd, 2, bad, &ack));
	assert_int_equal(ack.status, ACK_REFUSED);
	assert_true(ack.reason[0] != '\0');
	assert_true(tell(fd, 3, reserve(session + 2, "a"), &ack));
	assert_int_equal(ack.status, ACK_REFUSED);
	assert_non_null(strstr(ack.reason, "session"));
	assert_true(metric(REFUSED) == 2);
	assert_true(metric(ENTRIES) == 0);
	assert_true(tell(fd, 4, reserve(session, "a"), &ack));
	assert_int_equal(ack.status, ACK_APPLIED);
	assert_true(metric(ENTRIES) == 1);
	assert_true(metric(RECEIVED) == 1);
	close(fd);
}

/* And a good one counts again. */
static void bad_plans_leave_reservations_alone(void **state)
{
	int fd = call();
	uint64_t session = greet(fd);
	struct buf body = reserve(session, "a");
	struct ack ack;

	(void)state;
	buf_add(&body, "\x40\x01\x20\x09\x28\x03", 6); /* a memory of 3 bytes, and no piece of it */
	assert_true(tell(fd, 2, body, &ack));
	assert_int_equal(ack.status, ACK_APPLIED);
	assert_true(metric(REFUSED) == 1);
	assert_true(metric(ENTRIES) == 1);
	body = reserve(session, "b");
	buf_add(&body, "\x40\x01\x20\x09", 4);
	assert_true(tell(fd, 3, body, &ack));
	assert_true(metric(REFUSED) == 1);
	assert_true(metric(ENTRIES) == 2);
	assert_true(metric("evenkeel_peer_plan{plan=\"unknown\"}") == 0);
	close(fd);
}

static void a_recorded_frame_changes_nothing(void **state)
{
	int fd = call();
	uint64_t session = greet(fd);
	struct buf body = reserve(session, "a"), gone = BUF_INIT, message;
	uint8_t nonce[FRAME_NONCE_LEN];
	struct ack ack;

	(void)state;
	message = make(&s.keys, 2, &body, nonce);
	assert_true(ask(fd, &message, nonce, &ack));
	assert_true(metric(ENTRIES) == 1);
	reservations_message_begin(&gone, session);
	reservations_message_add(&gone, "a", NULL, NOW_NS);
	assert_true(tell(fd, 3, gone, &ack));
	assert_true(metric(ENTRIES) == 0);
	/* On its own connection, and on one of its own. */
	assert_false(ask(fd, &message, nonce, &ack));
	close(fd);
	fd = call();
	greet(fd);
	assert_true(ask(fd, &message, nonce, &ack));
	assert_int_equal(ack.status, ACK_REFUSED);
	assert_true(metric(ENTRIES) == 0);
	close(fd);
	buf_fini(&message);
	buf_fini(&body);
}

/* Frames are counted after the connection ends. */
static bool are_counted(void *frames)
{
	return metric("evenkeel_frames_total{result=\"unknown_key\"}") >= *(double *)frames;
}

static void the_key_of_agents_opens_nothing(void **state)
{
	struct buf body = BUF_INIT, message;
	uint8_t nonce[FRAME_NONCE_LEN];
	double frames = 3;
	struct ack ack;
	int fd = call();

	(void)state;
	message = make(&s.shared, 1, &body, nonce);
	for (int i = 0; i < 3; i++)
		assert_int_equal(send(fd, message.data, message.len, MSG_NOSIGNAL), message.len);
	assert_false(ask(fd, &message, nonce, &ack));
	assert_true(await(are_counted, &frames, 20));
	assert_true(metric("evenkeel_frames_total{result=\"exchange\"}") == 0);
	close(fd);
	buf_fini(&message);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(a_bad_body_is_refused_with_a_reason),
		TEST(bad_plans_leave_reservations_alone),
		TEST(a_recorded_frame_changes_nothing),
		TEST(the_key_of_agents_opens_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
