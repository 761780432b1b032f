/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two real aggregators that exchange plans (--peer): the younger goes on from the timers of the elder,
 * both have the same wave, and timers outlive SIGKILL of either.
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

#include "shared/clock.h"
#include "shared/mem.h"
#include "shared/timefmt.h"
#include "tests/drain_scene.h"
#include "tests/process.h"
#include "tests/stack.h"

#define STEPS "evenkeel_planner_steps_total"
#define BRAVO "/v1/drain?node=bravo"

struct scene {
	struct stack *stack;
	char *dump, *peers[2];
	const char *options[2][7];
	char since[64]; /* of bravo */
	int at; /* the aggregator that an await looks at */
	double steps; /* of it */
};

static int setup(void **state)
{
	struct scene *s = mem_zalloc(1, sizeof(*s));
	FILE *file;

	if (sodium_init() < 0)
		return -1;
	s->stack = stack_new();
	s->dump = mem_printf("%s/dump.yaml", s->stack->folder);
	file = fopen(s->dump, "w");
	assert_non_null(file);
	fputs(drain_scene_dump, file);
	assert_int_equal(fclose(file), 0);
	for (int i = 0; i < 2; i++) {
		s->stack->aggregators[i].http_port = free_port();
		s->stack->aggregators[i].ingest_port = free_port();
		s->stack->aggregators[i].snapshot_path = s->dump;
	}
	for (int i = 0; i < 2; i++) {
		const char *const options[] = {
			"--peer", NULL, "--plan-interval", "1s", "--scale-down-unneeded-time",
			"1h",	  NULL};

		memcpy(s->options[i], options, sizeof(options));
		s->peers[i] =
			mem_printf("tcp://127.0.0.1:%d", s->stack->aggregators[1 - i].ingest_port);
		s->options[i][1] = s->peers[i];
		s->stack->aggregators[i].more = s->options[i];
	}
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	stack_free(s->stack, 0);
	free(s->dump);
	for (int i = 0; i < 2; i++)
		free(s->peers[i]);
	free(s);
	return 0;
}

/* --- what aggregators tell -------------------------------------------------------------------- */

/* Appends the text, or "-". */
static void add(struct buf *out, const cJSON *json, const char *path)
{
	const char *text = cJSON_GetStringValue(json_at(json, path));

	buf_printf(out, "%s%s", out->len ? " " : "", text ? text : "-");
}

/* Since when bravo is unneeded: "-": it is not, or there is no plan yet. */
static void read_since(const struct scene *s, int i, char since[64])
{
	cJSON *doc = stack_get(s->stack, i, BRAVO);
	struct buf out = BUF_INIT;

	add(&out, doc ? json_item(doc, "bravo") : NULL, "since");
	snprintf(since, 64, "%s", out.data);
	buf_fini(&out);
	cJSON_Delete(doc);
}

static bool has_since(void *ctx)
{
	struct scene *s = ctx;

	read_since(s, s->at, s->since);
	return strcmp(s->since, "-") != 0;
}

static bool is_since(void *ctx)
{
	const struct scene *s = ctx;
	char since[64];

	read_since(s, s->at, since);
	return strcmp(since, s->since) == 0;
}

static bool has_stepped(void *ctx)
{
	const struct scene *s = ctx;

	return stack_metric(s->stack, s->at, STEPS) >= s->steps;
}

/* A timer that begins from now on begins later. */
static bool is_past(void *ctx)
{
	const struct scene *s = ctx;
	int64_t since_ns;

	assert_int_equal(timefmt_parse(s->since, &since_ns, NULL), 0);
	return clock_wall_ns() > since_ns + 2 * NS_PER_SEC;
}

static bool is_agreed(void *ctx)
{
	const struct scene *s = ctx;

	return stack_metric(s->stack, s->at, "evenkeel_peer_plan{plan=\"same\"}") == 1;
}

/* The aggregator has made that many plans more, and bravo's timer is the same. */
static void expect_timer(struct scene *s, int i, int plans)
{
	s->at = i;
	assert_true(await(is_since, s, 20));
	s->steps = stack_metric(s->stack, i, STEPS) + plans;
	assert_true(await(has_stepped, s, 30));
	assert_true(is_since(s));
}

static void expect_elder(const struct scene *s, int i, bool elder)
{
	cJSON *status = stack_get(s->stack, i, "/v1/status");

	assert_non_null(status);
	assert_int_equal(cJSON_IsTrue(json_at(status, "peer.elder")), elder);
	cJSON_Delete(status);
}

/* Both tell of one wave. */
static void expect_one_wave(struct scene *s)
{
	struct buf told[2] = {BUF_INIT, BUF_INIT};

	for (s->at = 0; s->at < 2; s->at++)
		assert_true(await(is_agreed, s, 20));
	for (int i = 0; i < 2; i++) {
		cJSON *doc = stack_get(s->stack, i, "/v1/drain");

		assert_non_null(doc);
		add(&told[i], doc, "id");
		add(&told[i], doc, "peer.id");
		add(&told[i], doc, "peer.plan");
		cJSON_Delete(doc);
	}
	assert_string_equal(told[0].data, told[1].data);
	assert_int_equal(strlen(told[0].data), 16 + 1 + 16 + strlen(" same"));
	assert_memory_equal(told[0].data, told[0].data + 17, 16);
	for (int i = 0; i < 2; i++)
		buf_fini(&told[i]);
}

static bool knows_history(void *ctx)
{
	const struct scene *s = ctx;
	cJSON *doc = stack_get(s->stack, s->at, "/v1/drain/history?node=bravo&event=unneeded");
	int rows = doc ? cJSON_GetArraySize(json_at(doc, "items")) : 0;

	cJSON_Delete(doc);
	assert_in_range(rows, 0, 1);
	return rows == 1;
}

/* --- stories ---------------------------------------------------------------------------------- */

static void start_both(struct scene *s)
{
	stack_start_aggregator(s->stack, 0);
	s->at = 0;
	assert_true(await(has_since, s, 20));
	assert_true(await(is_past, s, 10));
	stack_start_aggregator(s->stack, 1);
	expect_timer(s, 1, 2);
}

static void timers_outlive_either(void **state)
{
	struct scene *s = *state;

	start_both(s);
	expect_elder(s, 0, true);
	expect_elder(s, 1, false);
	expect_one_wave(s);
	for (s->at = 0; s->at < 2; s->at++)
		assert_true(await(knows_history, s, 10));
	for (int killed = 0; killed < 2; killed++) {
		stack_kill_aggregator(s->stack, killed);
		expect_timer(s, 1 - killed, 3);
		stack_start_aggregator(s->stack, killed);
		expect_timer(s, killed, 2);
		expect_elder(s, killed, false);
		expect_elder(s, 1 - killed, true);
		expect_one_wave(s);
	}
}

static bool is_silent(void *ctx)
{
	const struct scene *s = ctx;
	cJSON *doc = stack_get(s->stack, s->at, "/v1/drain");
	bool silent = doc && strcmp(json_at(doc, "peer.plan")->valuestring, "unknown") == 0 &&
		      json_at(doc, "peer.seconds")->valuedouble >= 2;

	cJSON_Delete(doc);
	return silent;
}

static void a_silence_is_told(void **state)
{
	struct scene *s = *state;

	start_both(s);
	stack_kill_aggregator(s->stack, 0);
	s->at = 1;
	assert_true(await(is_silent, s, 20));
	assert_true(stack_metric(s->stack, 1, "evenkeel_peer_plan_differs_seconds") >= 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(timers_outlive_either),
		TEST(a_silence_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
