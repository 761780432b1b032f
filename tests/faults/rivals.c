/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Somebody who has the key of all agents, and speaks for a node: while that node's agent is alive
 * nothing of it counts, it is told, and the agent loses nothing. An agent that finds another in its
 * place loses nothing either, and one that is killed and started again is heard at once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sender_socket.h"
#include "shared/body.h"
#include "shared/clock.h"
#include "shared/frame.h"
#include "shared/mem.h"
#include "tests/interval.h"
#include "tests/keys.h"
#include "tests/process.h"
#include "tests/stack.h"

#define TIMEOUT_S 60
#define APPLIED	  "evenkeel_frames_total{result=\"applied\"}"
#define RIVAL	  "evenkeel_frames_total{result=\"rival\"}"

struct scene {
	struct stack *stack;
	struct keyring keys;
	struct sender_socket *forger; /* NULL: nobody forges */
	uint32_t request;
	uint8_t run[FRAME_RUN_LEN]; /* of the forger .. */
	uint64_t sequence;
	int64_t start_ns; /* .. which says that its next interval starts then */
	const char *metric;
	double wanted;
};

static int setup(void **state)
{
	struct scene *s = mem_zalloc(1, sizeof(*s));

	*state = s;
	if (sodium_init() < 0)
		return -1;
	s->stack = stack_new();
	stack_start_aggregator(s->stack, 0);
	return keys_load(&s->keys, s->stack->key_path, NULL);
}

static void stop_forger(struct scene *s)
{
	sender_socket_close(s->forger);
	s->forger = NULL;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	stop_forger(s);
	stack_free(s->stack, 0);
	free(s);
	return 0;
}

static void start_agent(struct scene *s)
{
	static const char *const options[] = {"--interval", "1s", NULL};

	stack_start_agent(s->stack, 1, options);
}

/* --- the forger ------------------------------------------------------------------------------- */

static void start_forger(struct scene *s)
{
	struct endpoint endpoint;
	char url[64];

	snprintf(url, sizeof(url), "tcp://127.0.0.1:%d", s->stack->aggregators[0].ingest_port);
	assert_int_equal(endpoint_parse(&endpoint, url, NULL), 0);
	assert_int_equal(sender_socket_open(&s->forger, &endpoint, NULL), 0);
	randombytes_buf(s->run, sizeof(s->run));
	s->sequence = 1;
	s->start_ns = clock_wall_ns() - NS_PER_SEC;
}

/* A millisecond of a machine that there is not, as that node's own. */
static void forge(struct scene *s, const uint8_t run[FRAME_RUN_LEN], uint64_t sequence)
{
	struct interval *interval = interval_make(sequence, 1, 1);
	struct buf parts[BODY_PARTS_MAX] = {BUF_INIT}, frame = BUF_INIT;
	struct frame_header header = {
		.type = FRAME_INTERVAL, .sequence = sequence, .parts = 1, .node = "test-node"};

	memcpy(header.run, run, FRAME_RUN_LEN);
	interval->start_ns = s->start_ns;
	interval->end_ns = s->start_ns + NS_PER_MS;
	assert_int_equal(body_encode_interval(interval, 1, parts, NULL), 1);
	frame_seal(&frame, &header, keyring_sealing(&s->keys), NULL, parts[0].data, parts[0].len);
	sender_socket_send(s->forger, ++s->request, frame.data, frame.len);
	buf_fini(&parts[0]);
	buf_fini(&frame);
	interval_free(interval);
}

/* What the last answers say; an interval that was applied is followed by the next one. */
static void obey(struct scene *s)
{
	struct buf data = BUF_INIT;
	uint32_t request;

	while (!sender_socket_receive(s->forger, &request, &data))
		;
	buf_fini(&data);
	s->sequence++;
	s->start_ns += NS_PER_MS;
}

/* The run of the node's agent, which everybody can ask for. */
static void learn_run(const struct scene *s, uint8_t run[FRAME_RUN_LEN])
{
	cJSON *nodes = stack_get(s->stack, 0, "/v1/nodes");
	const char *hex =
		cJSON_GetStringValue(json_at(json_item(nodes, "test-node"), "source.runId"));
	size_t len = 0;

	assert_non_null(hex);
	assert_int_equal(sodium_hex2bin(run, FRAME_RUN_LEN, hex, strlen(hex), NULL, &len, NULL), 0);
	assert_int_equal(len, FRAME_RUN_LEN);
	cJSON_Delete(nodes);
}

/* --- awaiting --------------------------------------------------------------------------------- */

static double metric(const struct scene *s, const char *name)
{
	return stack_metric(s->stack, 0, name);
}

/* With a forgery between each two looks. */
static bool is_reached(void *ctx)
{
	struct scene *s = ctx;

	if (s->forger && sender_socket_ready(s->forger)) {
		forge(s, s->run, s->sequence);
		obey(s);
	}
	return metric(s, s->metric) >= s->wanted;
}

static void await_metric(struct scene *s, const char *name, double wanted)
{
	s->metric = name;
	s->wanted = wanted;
	if (!await(is_reached, s, TIMEOUT_S))
		fail_msg("%s is %g, not %g", name, metric(s, name), wanted);
}

static void await_applied(struct scene *s, double more)
{
	await_metric(s, APPLIED, metric(s, APPLIED) + more);
}

static void expect_nothing_lost(const struct scene *s)
{
	static const char *const lost[] = {"evenkeel_frames_total{result=\"refused\"}",
					   "evenkeel_frames_total{result=\"too_old\"}",
					   "evenkeel_intervals_missing_total",
					   "evenkeel_intervals_merged_total"};

	for (size_t i = 0; i < sizeof(lost) / sizeof(lost[0]); i++)
		if (metric(s, lost[i]) != 0)
			fail_msg("%s is %g", lost[i], metric(s, lost[i]));
}

static void expect_doctor_tells(const struct scene *s)
{
	char *program = mem_strdup(program_path("evenkeel"));
	char *url = mem_printf("http://127.0.0.1:%d", s->stack->aggregators[0].http_port);
	char *argv[] = {program, (char *)"doctor", (char *)"--server", url, NULL};
	struct buf out = BUF_INIT;

	process_run(argv, &out, NULL);
	buf_add_char(&out, '\0');
	assert_non_null(strstr(out.data, "of a second agent of a node whose first is alive"));
	buf_fini(&out);
	free(url);
	free(program);
}

/* --- stories ---------------------------------------------------------------------------------- */

static void test_a_live_agent_stays(void **state)
{
	uint8_t run[FRAME_RUN_LEN], after[FRAME_RUN_LEN];
	struct scene *s = *state;

	start_agent(s);
	await_applied(s, 3);
	await_metric(s, "evenkeel_nodes{state=\"fresh\"}", 1);
	learn_run(s, run);
	start_forger(s);
	await_metric(s, RIVAL, 5);
	await_applied(s, 3);
	/* With its own id, and numbers that it comes to in years. */
	memcpy(s->run, run, sizeof(run));
	s->sequence = 1ULL << 40;
	await_metric(s, "evenkeel_frames_total{result=\"need_full\"}", 5);
	await_applied(s, 3);
	learn_run(s, after);
	assert_memory_equal(run, after, sizeof(run));
	expect_nothing_lost(s);
	expect_doctor_tells(s);
	assert_int_equal(stack_stop_agent(s->stack, SIGTERM), 0);
	/* Frames whose acks take a second are sent again, but never all that were applied. */
	assert_true(4 * metric(s, "evenkeel_frames_total{result=\"duplicate\"}") <
		    metric(s, APPLIED));
}

/* The place is taken before the agent comes: it waits, and then tells all. */
static void test_the_held_lose_nothing(void **state)
{
	struct scene *s = *state;
	double applied;

	start_forger(s);
	await_applied(s, 3);
	start_agent(s);
	await_metric(s, RIVAL, 5);
	applied = metric(s, APPLIED);
	stop_forger(s);
	/* More than the five seconds it was held for at least. */
	await_metric(s, APPLIED, applied + 6);
	expect_nothing_lost(s);
	assert_int_equal(stack_stop_agent(s->stack, SIGTERM), 0);
}

/* The kernel closes the connection of the old one, and the new one is no rival. */
static void test_killed_and_started_again(void **state)
{
	struct scene *s = *state;
	int64_t begin_ns;

	start_agent(s);
	await_applied(s, 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(stack_stop_agent(s->stack, SIGKILL), 128 + SIGKILL);
		begin_ns = clock_mono_ns();
		start_agent(s);
		await_applied(s, 1);
		print_message("heard again after %.1f s\n",
			      (double)(clock_mono_ns() - begin_ns) / NS_PER_SEC);
	}
	assert_true(metric(s, RIVAL) == 0);
	expect_nothing_lost(s);
	assert_int_equal(stack_stop_agent(s->stack, SIGTERM), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_a_live_agent_stays),
		TEST(test_the_held_lose_nothing),
		TEST(test_killed_and_started_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
