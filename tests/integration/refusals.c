/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames that must not count, sent to a real aggregator: each is refused and counted, changes
 * nothing, and the next good frame works.
 */
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

#include "agent/sender_socket.h"
#include "shared/body.h"
#include "shared/clock.h"
#include "shared/frame.h"
#include "shared/mem.h"
#include "tests/keys.h"
#include "tests/process.h"
#include "tests/stack.h"

#define ACK_TIMEOUT_MS 5000

struct scene {
	struct stack *stack;
	struct keyring keys;
	uint8_t run[FRAME_RUN_LEN];
	int64_t start_ns; /* end of the last interval made */
	uint64_t kept; /* sequence of the last frame that kept the connection */
	struct sender_socket *socket;
	uint32_t request; /* id of the last one */
	const char *awaited; /* metric .. */
	double value; /* .. and what it must reach */
};

static int setup(void **state)
{
	struct scene *s = mem_zalloc(1, sizeof(*s));
	struct endpoint endpoint;
	char url[64];

	if (sodium_init() < 0)
		return -1;
	s->stack = stack_new();
	if (keys_load(&s->keys, s->stack->key_path, NULL))
		return -1;
	randombytes_buf(s->run, sizeof(s->run));
	s->start_ns = clock_wall_ns() - 60 * NS_PER_SEC;
	stack_start_aggregator(s->stack, 0);
	snprintf(url, sizeof(url), "tcp://127.0.0.1:%d", s->stack->aggregators[0].ingest_port);
	if (endpoint_parse(&endpoint, url, NULL) || sender_socket_open(&s->socket, &endpoint, NULL))
		return -1;
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	sender_socket_close(s->socket);
	stack_free(s->stack, 0);
	free(s);
	return 0;
}

static void make_header(const struct scene *s, const char *node, uint64_t sequence,
			struct frame_header *header)
{
	*header = (struct frame_header){.type = FRAME_INTERVAL, .sequence = sequence, .parts = 1};
	snprintf(header->node, sizeof(header->node), "%s", node);
	memcpy(header->run, s->run, sizeof(header->run));
}

/* A good frame: one second of a quiet two-core machine. */
static void make_frame_of(struct scene *s, const char *node, uint64_t sequence,
			  const struct key *key, struct buf *frame)
{
	struct interval *interval = interval_new(0);
	struct buf parts[BODY_PARTS_MAX] = {BUF_INIT};
	struct frame_header header;
	struct moments cpu = {0};

	moments_add(&cpu, 250, 1);
	interval->sequence = sequence;
	interval->full = true;
	interval->start_ns = s->start_ns;
	interval->end_ns = s->start_ns += NS_PER_SEC;
	interval->node.usage.have = USAGE_CPU;
	interval->node.usage.seconds = 1;
	interval->node.usage.cpu_milli = moments_pack(&cpu);
	interval->node.cpu_capacity_milli = 2000;
	interval->node.mem_capacity_bytes = 1 << 30;
	make_header(s, node, sequence, &header);
	assert_int_equal(body_encode_interval(interval, 1, parts, NULL), 1);
	frame_seal(frame, &header, key, NULL, parts[0].data, parts[0].len);
	buf_fini(&parts[0]);
	interval_free(interval);
}

static void make_frame(struct scene *s, uint64_t sequence, const struct key *key, struct buf *frame)
{
	make_frame_of(s, "test-node", sequence, key, frame);
}

static bool is_ready(void *ctx)
{
	const struct scene *s = ctx;

	return sender_socket_ready(s->socket);
}

static void send_frame(struct scene *s, const void *data, size_t len)
{
	assert_true(await(is_ready, s, 10));
	assert_int_equal(sender_socket_send(s->socket, ++s->request, data, len), 0);
}

static void expect_ack(struct scene *s)
{
	struct pollfd readable = {.fd = sender_socket_fd(s->socket), .events = POLLIN};
	struct buf ack = BUF_INIT;
	uint32_t request = 0;

	assert_int_equal(poll(&readable, 1, ACK_TIMEOUT_MS), 1);
	assert_int_equal(sender_socket_receive(s->socket, &request, &ack), 0);
	assert_int_equal(request, s->request);
	buf_fini(&ack);
}

static bool metric_reached(void *ctx)
{
	struct scene *s = ctx;

	return stack_metric(s->stack, 0, s->awaited) >= s->value;
}

static char *state_of(struct scene *s)
{
	cJSON *list = stack_get(s->stack, 0, "/v1/nodes");
	const cJSON *usage = json_at(json_item(list, "test-node"), "usage");
	char *text = usage ? cJSON_PrintUnformatted(usage) : mem_strdup("nothing");

	cJSON_Delete(list);
	return text;
}

static bool state_is_known(void *ctx)
{
	char *text = state_of(ctx);
	bool known = strcmp(text, "nothing") != 0;

	free(text);
	return known;
}

/*
 * Of frames that do not open the third since the last applied one ends the connection, and what is
 * sent before nanomsg notices is lost. An applied frame of another node keeps it.
 */
static void stay(struct scene *s)
{
	struct buf frame = BUF_INIT;

	make_frame_of(s, "other-node", ++s->kept, keyring_sealing(&s->keys), &frame);
	send_frame(s, frame.data, frame.len);
	expect_ack(s);
	buf_fini(&frame);
}

/* Sends it; it must be counted under `result` and change nothing. */
static void expect_refused(struct scene *s, const char *result, const void *data, size_t len)
{
	char *metric = mem_printf("evenkeel_frames_total{result=\"%s\"}", result);
	char *before = state_of(s), *after;

	s->awaited = metric;
	s->value = stack_metric(s->stack, 0, metric) + 1;
	send_frame(s, data, len);
	if (!await(metric_reached, s, 10))
		print_error("a frame of %zu bytes was not counted as %s\n", len, result);
	assert_true(metric_reached(s));
	after = state_of(s);
	assert_string_equal(before, after);
	free(metric);
	free(before);
	free(after);
}

static void test_refused_frames(void **state)
{
	struct scene *s = *state;
	struct buf good = BUF_INIT, bad = BUF_INIT;
	struct key stranger;
	struct frame_header header;
	uint64_t sequence = 1;
	char *huge;

	make_frame(s, sequence++, keyring_sealing(&s->keys), &good);
	send_frame(s, good.data, good.len);
	expect_ack(s);
	assert_true(await(state_is_known, s, 10));

	/* Replayed: acknowledged as known, changes nothing. */
	expect_refused(s, "duplicate", good.data, good.len);
	expect_ack(s);

	/* Cut anywhere. */
	make_frame(s, sequence, keyring_sealing(&s->keys), &bad);
	expect_refused(s, "malformed", bad.data, 3);
	expect_refused(s, "malformed", bad.data, FRAME_HEADER_LEN - 1);
	stay(s);
	expect_refused(s, "malformed", bad.data, bad.len - 1);

	stay(s);
	/* Another body, another node, another sequence under the same seal. */
	bad.data[bad.len - 1] ^= 1;
	expect_refused(s, "forged", bad.data, bad.len);
	bad.data[bad.len - 1] ^= 1;
	bad.data[FRAME_HEADER_LEN] ^= 1;
	expect_refused(s, "forged", bad.data, bad.len);
	stay(s);
	bad.data[FRAME_HEADER_LEN] ^= 1;
	bad.data[32] ^= 4;
	expect_refused(s, "forged", bad.data, bad.len);

	/* Another version, another key, no key, noise. */
	buf_clear(&bad);
	make_frame(s, sequence, keyring_sealing(&s->keys), &bad);
	bad.data[4] = FRAME_VERSION + 1;
	expect_refused(s, "version", bad.data, bad.len);
	stay(s);
	randombytes_buf(&stranger, sizeof(stranger));
	buf_clear(&bad);
	make_frame(s, sequence, &stranger, &bad);
	expect_refused(s, "unknown_key", bad.data, bad.len);
	buf_clear(&bad);
	make_frame(s, sequence, NULL, &bad);
	expect_refused(s, "unknown_key", bad.data, bad.len);
	stay(s);
	expect_refused(s, "malformed", "GET / HTTP/1.1\r\n\r\n", 18);

	/* Between what an agent may send and what the socket takes: its sender is told. */
	huge = mem_zalloc(1, FRAME_LEN_MAX);
	buf_clear(&bad);
	make_header(s, "test-node", sequence, &header);
	frame_seal(&bad, &header, keyring_sealing(&s->keys), NULL, huge, FRAME_LEN_MAX);
	expect_refused(s, "oversized", bad.data, bad.len);
	expect_ack(s);
	free(huge);

	buf_clear(&good);
	make_frame(s, sequence, keyring_sealing(&s->keys), &good);
	send_frame(s, good.data, good.len);
	expect_ack(s);
	s->awaited = "evenkeel_frames_total{result=\"applied\"}";
	s->value = 2 + (double)s->kept;
	assert_true(await(metric_reached, s, 10));
	assert_int_equal(sender_socket_connections(s->socket), 1);
	buf_fini(&good);
	buf_fini(&bad);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_refused_frames, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
