/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strangers who want all connections that an aggregator has for agents: they greet as agents do,
 * say little that is no frame, or repeat an agent's frame that they recorded, and come back whenever
 * they are closed. An agent that is new, and one that was heard before, get in all the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/process.h"
#include "tests/stack.h"
#include "tests/stranger.h"

enum {
	FILES = 1024,
	PLACES = FILES - 256, /* for agents */
	CROWD = PLACES + 64,
	ADDRESSES = 4,
	TIMEOUT_S = 60,
};

#define PAUSE_NS (2 * NS_PER_SEC)

static const char hello[] = "\0SP\0\0\x30\0\0";
static const char little[] = "\0\0\0\0\0\0\0\x04\x80\0\0\x01"; /* a request without a frame */

enum { HELLO_LEN = sizeof(hello) - 1, HEAD_LEN = 8 };

struct scene {
	struct stack *stack;
	int fds[CROWD]; /* 0: not connected */
	int first_address, addresses; /* that they come from: 127.0.0. this */
	bool patient, talk, gone; /* patient: they come back now and then, else at once */
	struct buf record; /* from the agent's connection; what of it is a frame is in .. */
	size_t frame_len; /* .. these bytes after the hello, with its head; 0: they have none */
	int tap[2]; /* the agent's connection and the aggregator's, where they record */
	double applied; /* before */
	int64_t last_ns; /* when they last came or talked */
	const char *metric;
	double wanted;
};

static int setup(void **state)
{
	const struct rlimit few = {FILES, FILES};
	struct scene *s = mem_zalloc(1, sizeof(*s));

	*state = s;
	if (setrlimit(RLIMIT_NOFILE, &few))
		return -1;
	s->stack = stack_new();
	stack_start_aggregator(s->stack, 0);
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	for (int i = 0; i < CROWD; i++)
		if (s->fds[i] > 0)
			close(s->fds[i]);
	stack_free(s->stack, 0);
	buf_fini(&s->record);
	free(s);
	return 0;
}

static void say(const struct scene *s, int fd)
{
	if (s->frame_len)
		stranger_say(fd, s->record.data + HELLO_LEN, s->frame_len);
	else
		stranger_say(fd, little, sizeof(little) - 1);
}

static void come(struct scene *s, int i)
{
	char from[16];

	snprintf(from, sizeof(from), "127.0.0.%d", s->first_address + i % s->addresses);
	s->fds[i] = stranger_connect(s->stack->aggregators[0].ingest_port, from);
	if (s->fds[i] > 0 && s->talk)
		stranger_say(s->fds[i], hello, HELLO_LEN);
	if (s->fds[i] > 0 && s->frame_len)
		say(s, s->fds[i]);
}

static bool is_cut(int fd)
{
	struct buf heard = BUF_INIT;
	bool cut = stranger_hear(fd, 0, &heard);

	buf_fini(&heard);
	return cut;
}

/* Who was closed comes again, and all say a little now and then. */
static void attack(struct scene *s)
{
	int64_t now_ns = clock_mono_ns();
	bool due = now_ns - s->last_ns >= PAUSE_NS;

	if (s->gone || (s->patient && !due))
		return;
	if (due)
		s->last_ns = now_ns;
	for (int i = 0; i < CROWD; i++) {
		if (s->fds[i] > 0 && !is_cut(s->fds[i])) {
			if (due && s->talk)
				say(s, s->fds[i]);
			continue;
		}
		if (s->fds[i] > 0)
			close(s->fds[i]);
		come(s, i);
	}
}

static bool is_reached(void *ctx)
{
	struct scene *s = ctx;

	attack(s);
	return stack_metric(s->stack, 0, s->metric) >= s->wanted;
}

/* While the attack goes on. */
static void await_metric(struct scene *s, const char *metric, double wanted)
{
	s->metric = metric;
	s->wanted = wanted;
	if (!await(is_reached, s, TIMEOUT_S))
		fail_msg("%s is %g, not %g", metric, stack_metric(s->stack, 0, metric), wanted);
}

static double applied(const struct scene *s)
{
	return stack_metric(s->stack, 0, "evenkeel_frames_total{result=\"applied\"}");
}

static void await_applied(struct scene *s)
{
	await_metric(s, "evenkeel_frames_total{result=\"applied\"}", applied(s) + 3);
}

static void expect_agents_get_in(struct scene *s)
{
	static const char *const options[] = {"--interval", "1s", NULL};
	int64_t begin_ns;

	/* They were there first, have all they can, and have been sent away. */
	await_metric(s, "evenkeel_ingest_closed_total{reason=\"room\"}", CROWD);
	begin_ns = clock_mono_ns();
	stack_start_agent(s->stack, 1, options);
	await_applied(s);
	print_message("a new agent is heard after %.1f s\n",
		      (double)(clock_mono_ns() - begin_ns) / NS_PER_SEC);
	assert_int_equal(stack_stop_agent(s->stack, SIGKILL), 128 + SIGKILL);
	begin_ns = clock_mono_ns();
	stack_start_agent(s->stack, 1, options);
	await_applied(s);
	print_message("the next one from its address after %.1f s\n",
		      (double)(clock_mono_ns() - begin_ns) / NS_PER_SEC);
	assert_true(stack_metric(s->stack, 0, "evenkeel_ingest_connections") <= PLACES);
	s->gone = true;
	assert_true(stack_metric(s->stack, 0, "evenkeel_intervals_missing_total") == 0);
	assert_int_equal(stack_stop_agent(s->stack, SIGTERM), 0);
}

/* All from where the agent is, so that nothing tells them apart. */
static void test_one_address(void **state)
{
	struct scene *s = *state;

	s->first_address = s->addresses = 1;
	s->patient = s->talk = true;
	expect_agents_get_in(s);
}

static void test_many_addresses_that_talk(void **state)
{
	struct scene *s = *state;

	s->first_address = 2;
	s->addresses = ADDRESSES;
	s->talk = true;
	expect_agents_get_in(s);
}

static void test_many_addresses_that_are_silent(void **state)
{
	struct scene *s = *state;

	s->first_address = 2;
	s->addresses = ADDRESSES;
	expect_agents_get_in(s);
}

/* --- frames of others ------------------------------------------------------------------------- */

static int listen_on(int port)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 1), 0);
	return fd;
}

/* Passes on what one side says; the other side may be gone by the end. */
static void pass_on(int from, int to, struct buf *keep)
{
	struct buf heard = BUF_INIT;

	stranger_hear(from, 0, &heard);
	stranger_say(to, heard.data, heard.len);
	if (keep)
		buf_add(keep, heard.data, heard.len);
	buf_fini(&heard);
}

/* Until a frame was heard as a whole and applied. */
static bool is_recorded(void *ctx)
{
	struct scene *s = ctx;
	const uint8_t *head;

	pass_on(s->tap[0], s->tap[1], &s->record);
	pass_on(s->tap[1], s->tap[0], NULL);
	if (s->record.len < HELLO_LEN + HEAD_LEN)
		return false;
	head = (uint8_t *)s->record.data + HELLO_LEN;
	s->frame_len = HEAD_LEN + ((size_t)head[5] << 16 | (size_t)head[6] << 8 | head[7]);
	return s->record.len >= HELLO_LEN + s->frame_len && applied(s) > s->applied;
}

/* The agent's first interval, which applied() counts from now on. */
static void record_frame(struct scene *s)
{
	int port = free_port(), listener = listen_on(port);
	char *url = mem_printf("tcp://127.0.0.1:%d", port);
	const char *const options[] = {"--interval", "1s", "--aggregator", url, NULL};

	s->applied = applied(s);
	stack_start_agent(s->stack, 0, options);
	assert_int_equal(
		poll(&(struct pollfd){.fd = listener, .events = POLLIN}, 1, TIMEOUT_S * 1000), 1);
	s->tap[0] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	s->tap[1] = stranger_connect(s->stack->aggregators[0].ingest_port, NULL);
	assert_true(s->tap[0] >= 0 && s->tap[1] >= 0);
	assert_true(await(is_recorded, s, TIMEOUT_S));
	assert_int_equal(stack_stop_agent(s->stack, SIGKILL), 128 + SIGKILL);
	close(listener);
	close(s->tap[0]);
	close(s->tap[1]);
	free(url);
}

/* A replayed frame never renews a place: all of them repeat one, as often as any of them speaks. */
static void test_many_addresses_that_repeat_a_frame(void **state)
{
	struct scene *s = *state;

	record_frame(s);
	s->first_address = 2;
	s->addresses = ADDRESSES;
	s->talk = true;
	expect_agents_get_in(s);
	assert_true(stack_metric(s->stack, 0, "evenkeel_frames_total{result=\"duplicate\"}") >=
		    CROWD);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_one_address),
		TEST(test_many_addresses_that_talk),
		TEST(test_many_addresses_that_are_silent),
		TEST(test_many_addresses_that_repeat_a_frame),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
