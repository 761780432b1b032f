/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ingest's end of the wire against libnanomsg in every role: REQ, raw REQ, a device between a
 * REQ and the ingest, and each protocol that is no REQ. The library's REP as the peer of an agent is
 * in integration/transport and faults/acks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <nanomsg/bus.h>
#include <nanomsg/nn.h>
#include <nanomsg/pair.h>
#include <nanomsg/pipeline.h>
#include <nanomsg/pubsub.h>
#include <nanomsg/reqrep.h>
#include <nanomsg/survey.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "aggregator/edge/ingest_peers.h"
#include "aggregator/edge/ingest_socket.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/ingest_admits.h"
#include "tests/process.h"

enum { STEP_MS = 10, STEPS_MOST = 3000 };

static const char question[] = "a question", answer[] = "an answer";

struct scene {
	char dir[64];
	char *urls[2], *front; /* of the ingest by each transport, and of a device */
	struct endpoint endpoint;
	struct ingest_peers *peers; /* NULL: not open */
	struct ingest_counters counters;
};

static int setup(void **state)
{
	struct scene *s = mem_zalloc(1, sizeof(*s));

	snprintf(s->dir, sizeof(s->dir), "/tmp/evenkeel-test-XXXXXX");
	assert_non_null(mkdtemp(s->dir));
	s->urls[0] = mem_printf("ipc://%s/ingest", s->dir);
	s->urls[1] = mem_printf("tcp://127.0.0.1:%d", free_port());
	s->front = mem_printf("ipc://%s/front", s->dir);
	*state = s;
	return 0;
}

static void open_ingest(struct scene *s, const char *url)
{
	int fd;

	assert_int_equal(endpoint_parse(&s->endpoint, url, NULL), 0);
	assert_int_equal(ingest_socket_listen(&fd, &s->endpoint, NULL), 0);
	assert_int_equal(ingest_peers_open(&s->peers, fd, s->endpoint.kind, &s->counters,
					   ingest_forgets, s),
			 0);
}

static void close_ingest(struct scene *s)
{
	if (s->peers)
		ingest_socket_remove(&s->endpoint);
	ingest_peers_close(s->peers);
	s->peers = NULL;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	close_ingest(s);
	for (int i = 0; i < 2; i++)
		free(s->urls[i]);
	free(s->front);
	rmdir(s->dir);
	free(s);
	return 0;
}

/* Answers what has come. True: a question came by a route of that many ids. */
static bool serve(struct scene *s, size_t ids)
{
	struct ingest_message m;

	if (ingest_peers_receive(s->peers, &m, clock_mono_ns()))
		return false;
	assert_int_equal(m.len, sizeof(question));
	assert_memory_equal(m.data, question, sizeof(question));
	assert_int_equal(m.route.len, 4 * ids);
	ingest_peers_reply(s->peers, &m.route, answer, sizeof(answer));
	return true;
}

static int connect_as(int domain, int protocol, const char *url)
{
	int nn = nn_socket(domain, protocol);

	assert_true(nn >= 0);
	assert_true(nn_connect(nn, url) >= 0);
	return nn;
}

/* A message with its route from one raw socket to another, as nn_device() does. */
static bool forward(int from, int to)
{
	void *body = NULL, *route = NULL;
	struct nn_iovec iov = {&body, NN_MSG};
	struct nn_msghdr m = {&iov, 1, &route, NN_MSG};

	if (nn_recvmsg(from, &m, NN_DONTWAIT) < 0)
		return false;
	assert_true(nn_sendmsg(to, &m, 0) >= 0);
	return true;
}

/* The answer reaches a REQ; device: two raw sockets between them, or NULL. */
static void expect_answer(struct scene *s, int nn, const int *device)
{
	char got[64];
	int len = -1;

	assert_int_equal(nn_send(nn, question, sizeof(question), 0), (int)sizeof(question));
	for (int i = 0; len < 0 && i < STEPS_MOST; i++) {
		serve(s, device ? 2 : 1);
		if (device && !forward(device[0], device[1]))
			forward(device[1], device[0]);
		len = nn_recv(nn, got, sizeof(got), NN_DONTWAIT);
		if (len < 0)
			poll(NULL, 0, STEP_MS);
	}
	assert_int_equal(len, sizeof(answer));
	assert_memory_equal(got, answer, sizeof(answer));
}

static void test_req(void **state)
{
	struct scene *s = *state;

	for (int i = 0; i < 2; i++) {
		int nn;

		open_ingest(s, s->urls[i]);
		nn = connect_as(AF_SP, NN_REQ, s->urls[i]);
		for (int again = 0; again < 3; again++)
			expect_answer(s, nn, NULL);
		nn_close(nn);
		close_ingest(s);
	}
}

/* A device's raw REQ adds an id to the route of a request. */
static void test_raw_req_of_a_device(void **state)
{
	struct scene *s = *state;
	int device[2], nn;

	open_ingest(s, s->urls[0]);
	device[0] = nn_socket(AF_SP_RAW, NN_REP);
	assert_true(nn_bind(device[0], s->front) >= 0);
	device[1] = connect_as(AF_SP_RAW, NN_REQ, s->urls[0]);
	nn = connect_as(AF_SP, NN_REQ, s->front);
	for (int again = 0; again < 3; again++)
		expect_answer(s, nn, device);
	nn_close(nn);
	nn_close(device[0]);
	nn_close(device[1]);
}

static void test_other_protocols(void **state)
{
	static const int protocols[] = {NN_REP,	 NN_PAIR, NN_PUB,      NN_SUB,	     NN_PUSH,
					NN_PULL, NN_BUS,  NN_SURVEYOR, NN_RESPONDENT};
	struct scene *s = *state;

	open_ingest(s, s->urls[0]);
	for (size_t i = 0; i < sizeof(protocols) / sizeof(protocols[0]); i++) {
		uint64_t before = counter_get(&s->counters.closed[INGEST_CLOSING_PROTOCOL]);
		int nn = connect_as(AF_SP, protocols[i], s->urls[0]);

		for (int step = 0; step < STEPS_MOST; step++) {
			assert_false(serve(s, 1));
			if (counter_get(&s->counters.closed[INGEST_CLOSING_PROTOCOL]) > before)
				break;
			poll(NULL, 0, STEP_MS);
		}
		if (counter_get(&s->counters.closed[INGEST_CLOSING_PROTOCOL]) == before)
			fail_msg("protocol %d is not refused", protocols[i]);
		nn_close(nn);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_req, setup, teardown),
		cmocka_unit_test_setup_teardown(test_raw_req_of_a_device, setup, teardown),
		cmocka_unit_test_setup_teardown(test_other_protocols, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
