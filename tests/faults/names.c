/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A name behind which aggregators come and go: real aggregators on addresses of the loopback
 * network, a publisher whose lookups answer what the test says, and a clock that the test may put
 * forward to the next lookup.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/publisher.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/frame_account.h"
#include "tests/process.h"
#include "tests/stack.h"

#define TIMEOUT_NS (30 * NS_PER_SEC)

/* What lookups answer: "127.0.0.2 127.0.0.3"; "" fails. */
struct script {
	pthread_mutex_t lock;
	char text[2048];
	unsigned int lookups; /* that were answered */
};

struct scene {
	struct stack *stack;
	struct script script;
	struct option_list urls;
	char *url_items[1];
	struct publisher_config config;
	struct publisher *publisher;
	int64_t ahead_ns; /* of the real monotonic clock */
	int64_t end_ns; /* of the newest interval */
	uint64_t pushed;
	FILE *log; /* NULL: not kept */
	int stderr_fd; /* where it goes else */
};

static void lookup(void *ctx, const char *host, struct resolver_answer *answer)
{
	struct script *s = ctx;
	char *word, *rest;

	assert_string_equal(host, "aggregators.example");
	pthread_mutex_lock(&s->lock);
	rest = mem_strdup(s->text);
	s->lookups++;
	pthread_mutex_unlock(&s->lock);
	for (char *copy = rest; (word = strsep(&copy, " "));) {
		struct address *a = &answer->addresses[answer->count];

		if (*word) {
			snprintf(a->text, sizeof(a->text), "%s", word);
			answer->count++;
		}
	}
	free(rest);
	answer->failed = !answer->count;
	if (answer->failed)
		error_set(&answer->why, "%s: no such name", host);
}

static void answer(struct scene *s, const char *text)
{
	pthread_mutex_lock(&s->script.lock);
	snprintf(s->script.text, sizeof(s->script.text), "%s", text);
	pthread_mutex_unlock(&s->script.lock);
}

static unsigned int lookups(struct scene *s)
{
	unsigned int count;

	pthread_mutex_lock(&s->script.lock);
	count = s->script.lookups;
	pthread_mutex_unlock(&s->script.lock);
	return count;
}

static int setup(void **state)
{
	struct scene *s = mem_zalloc(1, sizeof(*s));
	int port;

	if (sodium_init() < 0)
		return -1;
	s->stack = stack_new();
	port = free_port();
	s->stack->aggregators[0].ingest_host = "127.0.0.2";
	s->stack->aggregators[1].ingest_host = "127.0.0.3";
	for (int i = 0; i < STACK_AGGREGATORS_MAX; i++)
		s->stack->aggregators[i].ingest_port = port;
	pthread_mutex_init(&s->script.lock, NULL);
	s->url_items[0] = mem_printf("tcp://aggregators.example:%d", port);
	s->urls = (struct option_list){.items = s->url_items, .count = 1};
	s->end_ns = clock_wall_ns() - 200 * NS_PER_SEC;
	s->config = (struct publisher_config){.aggregators = &s->urls,
					      .node = "test-node",
					      .key_path = s->stack->key_path,
					      .interval_ns = NS_PER_SEC,
					      .lookup = lookup,
					      .lookup_ctx = &s->script};
	assert_int_equal(publisher_open(&s->publisher, &s->config, NULL), 0);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	publisher_close(s->publisher);
	if (s->log) {
		dup2(s->stderr_fd, STDERR_FILENO);
		close(s->stderr_fd);
		fclose(s->log);
	}
	stack_free(s->stack, 0);
	free(s->url_items[0]);
	free(s);
	return 0;
}

/* Intervals of one second of a machine with two CPUs. */
static void push(struct scene *s, int count)
{
	while (count--) {
		struct interval *i = interval_new(0);
		struct moments cpu = {0};

		moments_add(&cpu, 250, 1);
		i->sequence = ++s->pushed;
		i->merged = 1;
		i->full = true;
		i->start_ns = s->end_ns;
		i->end_ns = s->end_ns += NS_PER_SEC;
		i->node.usage.have = USAGE_CPU;
		i->node.usage.seconds = 1;
		i->node.usage.cpu_milli = moments_pack(&cpu);
		i->node.cpu_capacity_milli = 2000;
		i->node.mem_capacity_bytes = 1 << 30;
		publisher_push(s->publisher, i);
	}
}

static void turn(struct scene *s)
{
	struct pollfd p = {.fd = publisher_fd(s->publisher), .events = POLLIN};

	publisher_step(s->publisher, clock_mono_ns() + s->ahead_ns);
	poll(&p, 1, 20);
}

#define TURN_UNTIL(s, condition)                                                                   \
	do {                                                                                       \
		int64_t limit_ = clock_mono_ns() + TIMEOUT_NS;                                     \
		while (!(condition) && clock_mono_ns() < limit_)                                   \
			turn(s);                                                                   \
		assert_true(condition);                                                            \
	} while (0)

static void keep_log(struct scene *s)
{
	s->log = tmpfile();
	assert_non_null(s->log);
	s->stderr_fd = dup(STDERR_FILENO);
	assert_int_equal(dup2(fileno(s->log), STDERR_FILENO), STDERR_FILENO);
}

/* How often the publisher has said so. */
static int log_count(const struct scene *s, const char *part)
{
	static char text[65536];
	ssize_t len = pread(fileno(s->log), text, sizeof(text) - 1, 0);
	int count = 0;

	assert_in_range(len, 0, sizeof(text) - 1);
	text[len] = '\0';
	for (const char *at = text; (at = strstr(at, part)); at++)
		count++;
	return count;
}

static double applied(const struct scene *s, int which)
{
	return stack_metric(s->stack, which, "evenkeel_frames_total{result=\"applied\"}");
}

/* The next regular lookup, answered and taken. */
static void next_lookup(struct scene *s)
{
	struct pollfd p = {.fd = publisher_fd(s->publisher), .events = POLLIN};
	unsigned int before = lookups(s);

	/* All is quiet, so nothing else is due. */
	TURN_UNTIL(s, publisher_idle(s->publisher));
	turn(s);
	assert_int_equal(lookups(s), before);
	s->ahead_ns += 31 * NS_PER_SEC;
	turn(s);
	assert_int_equal(poll(&p, 1, TIMEOUT_NS / NS_PER_MS), 1);
	turn(s);
	assert_int_equal(lookups(s), before + 1);
}

/* So many more, after which each aggregator has applied so many. */
static void publish(struct scene *s, int count, double applied_0, double applied_1)
{
	push(s, count);
	TURN_UNTIL(s, publisher_idle(s->publisher));
	assert_true(applied(s, 0) == applied_0);
	assert_true(applied(s, 1) == applied_1);
}

static void test_addresses_come_and_go(void **state)
{
	struct scene *s = *state;

	stack_start_aggregator(s->stack, 0);
	stack_start_aggregator(s->stack, 1);
	answer(s, "127.0.0.2");
	assert_int_equal(publisher_start(s->publisher, NULL), 0);
	push(s, 20);
	/* Nobody was found yet, so nobody has it. */
	assert_false(publisher_idle(s->publisher));
	TURN_UNTIL(s, publisher_idle(s->publisher));
	assert_true(applied(s, 0) == 20);
	assert_true(applied(s, 1) == 0);

	/* One added later gets the whole ring. */
	answer(s, "127.0.0.2 127.0.0.3");
	next_lookup(s);
	TURN_UNTIL(s, applied(s, 1) == 20);
	publish(s, 5, 25, 25);

	/* A failed lookup removes nothing; an address that is gone twice is. */
	answer(s, "");
	next_lookup(s);
	publish(s, 1, 26, 26);
	answer(s, "127.0.0.3");
	next_lookup(s);
	publish(s, 1, 27, 27);
	next_lookup(s);
	publish(s, 5, 27, 32);

	/* The whole service moves at once: what the new one has not heard, it hears. */
	stack_kill_aggregator(s->stack, 0);
	answer(s, "127.0.0.2");
	stack_start_aggregator(s->stack, 0);
	next_lookup(s);
	next_lookup(s);
	publish(s, 1, 33, 32);
	for (int i = 0; i < STACK_AGGREGATORS_MAX; i++)
		frame_account_expect_whole(s->stack, i);
}

/*
 * All of them moved while the old one is dead: found within seconds, not only with the regular
 * lookup.
 */
static void test_moved_while_dead(void **state)
{
	struct scene *s = *state;
	int64_t begin;

	stack_start_aggregator(s->stack, 0);
	answer(s, "127.0.0.2");
	assert_int_equal(publisher_start(s->publisher, NULL), 0);
	push(s, 5);
	TURN_UNTIL(s, publisher_idle(s->publisher));
	stack_kill_aggregator(s->stack, 0);
	stack_start_aggregator(s->stack, 1);
	answer(s, "127.0.0.3");
	push(s, 1);
	begin = clock_mono_ns();
	TURN_UNTIL(s, applied(s, 1) == 6);
	assert_true(clock_mono_ns() - begin < 15 * NS_PER_SEC);
}

/* A name that has no address for a while. */
static void test_lookups_fail_at_first(void **state)
{
	struct scene *s = *state;

	stack_start_aggregator(s->stack, 1);
	answer(s, "");
	assert_int_equal(publisher_start(s->publisher, NULL), 0);
	push(s, 3);
	TURN_UNTIL(s, lookups(s) == 3);
	assert_false(publisher_idle(s->publisher));
	answer(s, "127.0.0.3");
	TURN_UNTIL(s, applied(s, 1) == 3);
	TURN_UNTIL(s, publisher_idle(s->publisher));
}

/* More addresses than senders: the rest is counted, and takes the places that become free. */
static void test_too_many_addresses(void **state)
{
	struct scene *s = *state;
	char many[1024] = "";
	size_t len = 0;

	for (int i = 1; i <= 20; i++)
		len += (size_t)snprintf(many + len, sizeof(many) - len, "127.0.9.%d ", i);
	answer(s, many);
	keep_log(s);
	assert_int_equal(publisher_start(s->publisher, NULL), 0);
	TURN_UNTIL(s, log_count(s, "4 of its addresses are not sent to: 16 senders at most") == 1);
	stack_start_aggregator(s->stack, 0);
	answer(s, "127.0.0.2");
	next_lookup(s);
	assert_int_equal(log_count(s, "1 of its addresses are not sent to: 16 senders at most"), 1);
	assert_int_equal(log_count(s, "no longer sending to"), 0);
	next_lookup(s);
	assert_int_equal(log_count(s, "no longer sending to"), 16);
	push(s, 3);
	TURN_UNTIL(s, publisher_idle(s->publisher));
	assert_true(applied(s, 0) == 3);
}

/* The whole agent, and the system's own lookup of a name that every machine has. */
static void test_localhost(void **state)
{
	struct scene *s = *state;
	char *url;
	const char *options[] = {"--interval", "1s", "--aggregator", NULL, NULL};
	int64_t limit;

	s->stack->aggregators[0].ingest_host = "127.0.0.1";
	stack_start_aggregator(s->stack, 0);
	url = mem_printf("tcp://localhost:%d", s->stack->aggregators[0].ingest_port);
	options[3] = url;
	stack_start_agent(s->stack, 0, options);
	limit = clock_mono_ns() + TIMEOUT_NS;
	while (applied(s, 0) < 2 && clock_mono_ns() < limit)
		poll(NULL, 0, 100);
	assert_true(applied(s, 0) >= 2);
	assert_int_equal(stack_stop_agent(s->stack, SIGTERM), 0);
	free(url);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_addresses_come_and_go, setup, teardown),
		cmocka_unit_test_setup_teardown(test_moved_while_dead, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lookups_fail_at_first, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_many_addresses, setup, teardown),
		cmocka_unit_test_setup_teardown(test_localhost, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
