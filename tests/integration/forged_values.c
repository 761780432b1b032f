/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Somebody who has the key of agents seals intervals whose members contradict each other: the
 * aggregator as it is shipped puts the values aside and counts them, and keeps what can be.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

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

#define INCONSISTENT "evenkeel_quarantined_values_total{reason=\"inconsistent\"}"

struct scene {
	struct stack *stack;
	struct keyring keys;
	struct sender_socket *socket;
	uint8_t run[FRAME_RUN_LEN];
	uint64_t sequence;
	int64_t start_ns;
};

static int setup(void **state)
{
	struct scene *s = mem_zalloc(1, sizeof(*s));
	struct endpoint endpoint;
	char url[64];

	*state = s;
	if (sodium_init() < 0)
		return -1;
	s->stack = stack_new();
	stack_start_aggregator(s->stack, 0);
	snprintf(url, sizeof(url), "tcp://127.0.0.1:%d", s->stack->aggregators[0].ingest_port);
	randombytes_buf(s->run, sizeof(s->run));
	s->start_ns = clock_wall_ns() - 60 * NS_PER_SEC;
	return endpoint_parse(&endpoint, url, NULL) ||
	       sender_socket_open(&s->socket, &endpoint, NULL) ||
	       keys_load(&s->keys, s->stack->key_path, NULL);
}

static int teardown(void **state)
{
	struct scene *s = *state;

	sender_socket_close(s->socket);
	stack_free(s->stack, 0);
	free(s);
	return 0;
}

static bool is_ready(void *socket)
{
	return sender_socket_ready(socket);
}

static double applied(const struct scene *s)
{
	return stack_metric(s->stack, 0, "evenkeel_frames_total{result=\"applied\"}");
}

static bool is_applied(void *ctx)
{
	struct scene *s = ctx;

	return applied(s) == (double)s->sequence;
}

static void seal_and_send(struct scene *s, const struct interval *interval)
{
	struct buf parts[BODY_PARTS_MAX] = {BUF_INIT}, frame = BUF_INIT;
	struct frame_header header = {.type = FRAME_INTERVAL,
				      .sequence = interval->sequence,
				      .parts = 1,
				      .node = "test-node"};

	memcpy(header.run, s->run, FRAME_RUN_LEN);
	assert_int_equal(body_encode_interval(interval, 1, parts, NULL), 1);
	frame_seal(&frame, &header, keyring_sealing(&s->keys), NULL, parts[0].data, parts[0].len);
	assert_true(await(is_ready, s->socket, 20));
	sender_socket_send(s->socket, (uint32_t)interval->sequence, frame.data, frame.len);
	assert_true(await(is_applied, s, 20));
	buf_fini(&parts[0]);
	buf_fini(&frame);
}

static void change_cpu_buckets(struct node_sample *n)
{
	n->cpu_hist.count[HISTOGRAM_BUCKETS - 1] = 1000;
}

static void change_cpu_bucket_below(struct node_sample *n)
{
	n->usage.cpu_milli.min = 500;
	n->cpu_hist.count[0] = 1;
	n->cpu_hist.count[histogram_bucket(8000, HISTOGRAM_CPU_X0)] = 1;
}

static void change_cpu_count(struct node_sample *n)
{
	n->cpu_hist.count[histogram_bucket((double)n->usage.cpu_milli.max, HISTOGRAM_CPU_X0)] +=
		1000000;
}

static void change_memory_buckets(struct node_sample *n)
{
	n->mem_hist.count[HISTOGRAM_BUCKETS - 1] = 1;
}

static void change_least(struct node_sample *n)
{
	n->usage.cpu_milli.min = 1e30F;
}

static void change_nothing(struct node_sample *n)
{
	(void)n;
}

static void what_contradicts_itself_is_put_aside(void **state)
{
	static const struct {
		void (*change)(struct node_sample *n);
		double aside;
	} cases[] = {
		{change_nothing, 0},	    {change_cpu_buckets, 1},	  {change_cpu_count, 1},
		{change_memory_buckets, 1}, {change_cpu_bucket_below, 1}, {change_least, 1},
		{change_nothing, 0},
	};
	struct scene *s = *state;
	double aside = 0;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct interval *interval = interval_make(++s->sequence, 0, 0);

		interval->start_ns = s->start_ns;
		interval->end_ns = s->start_ns += 5 * NS_PER_SEC;
		cases[i].change(&interval->node);
		seal_and_send(s, interval);
		interval_free(interval);
		aside += cases[i].aside;
		if (stack_metric(s->stack, 0, INCONSISTENT) != aside)
			fail_msg("case %zu: %g put aside, not %g", i,
				 stack_metric(s->stack, 0, INCONSISTENT), aside);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_contradicts_itself_is_put_aside, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
