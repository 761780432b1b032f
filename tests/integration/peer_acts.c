/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to the actuator with two real aggregators (--peer). The actuator's own mailbox reaches
 * one of them, as by an API server that keeps its connection, and people ask either one: the
 * actuator gets every request, and both aggregators have the outcome, also after SIGKILL of either.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <curl/curl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "aggregator/actuator/mailbox.h"
#include "aggregator/api/act_box.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/drain_scene.h"
#include "tests/process.h"
#include "tests/stack.h"

enum { TIMEOUT_S = 30 };

struct scene {
	struct stack *stack;
	char *dump, *enrolment, *peers[2];
	const char *options[2][7];
	/* The way of the actuator to each of both. */
	struct kube_config ways[2];
	struct edge edges[2];
	struct mailbox mailbox;
	int64_t now_ns; /* the actuator's */
	char id[ACT_ID_LEN];
	int at; /* the aggregator that an await looks at */
	const char *wanted; /* by an await: a state */
};

static void write_dump(const char *path)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(drain_scene_dump, file);
	assert_int_equal(fclose(file), 0);
}

static void open_way(struct scene *s, int i)
{
	static const atomic_bool stopping;
	struct error why = {""};

	s->ways[i].server = mem_printf("http://127.0.0.1:%d", s->stack->aggregators[i].http_port);
	if (edge_open(&s->edges[i], &s->ways[i], &stopping, &why))
		fail_msg("%s", why.text);
}

static int setup(void **state)
{
	static char *no_acts[] = {NULL};
	struct scene *s = mem_zalloc(1, sizeof(*s));

	if (sodium_init() < 0)
		return -1;
	s->stack = stack_new();
	s->dump = mem_printf("%s/dump.yaml", s->stack->folder);
	s->enrolment = mem_printf("%s/enrolment", s->stack->folder);
	write_dump(s->dump);
	for (int i = 0; i < 2; i++) {
		s->stack->aggregators[i].http_port = free_port();
		s->stack->aggregators[i].ingest_port = free_port();
		s->stack->aggregators[i].snapshot_path = s->dump;
	}
	for (int i = 0; i < 2; i++) {
		s->peers[i] =
			mem_printf("tcp://127.0.0.1:%d", s->stack->aggregators[1 - i].ingest_port);
		memcpy(s->options[i],
		       (const char *[]){"--peer", s->peers[i], "--enrolment-key", s->enrolment,
					"--allow-shared-key", "true", NULL},
		       sizeof(s->options[i]));
		s->stack->aggregators[i].more = s->options[i];
		open_way(s, i);
	}
	mailbox_init(&s->mailbox, "evenkeel", "evenkeel-actuator", no_acts, "actuator-1");
	s->now_ns = NS_PER_SEC;
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	mailbox_fini(&s->mailbox);
	stack_free(s->stack, 0);
	for (int i = 0; i < 2; i++) {
		edge_close(&s->edges[i]);
		kube_config_fini(&s->ways[i]);
		free(s->peers[i]);
	}
	free(s->dump);
	free(s->enrolment);
	free(s);
	return 0;
}

/* --- people and the actuator ------------------------------------------------------------------ */

/* Asks aggregator i to have bravo drained. */
static void ask(struct scene *s, int i)
{
	char *url = mem_printf("http://127.0.0.1:%d/v1/act/requests",
			       s->stack->aggregators[i].http_port);
	struct buf body = BUF_INIT;
	cJSON *answer;

	assert_int_equal(http_post(url, "{\"action\":\"drain\",\"nodes\":[\"bravo\"]}", &body),
			 202);
	answer = cJSON_ParseWithLength(body.data, body.len);
	snprintf(s->id, sizeof(s->id), "%s", json_at(answer, "id")->valuestring);
	cJSON_Delete(answer);
	buf_fini(&body);
	free(url);
}

/* A report to aggregator i. It has no node to work on, so it refuses a drain after a minute. */
static void report(struct scene *s, int i)
{
	const struct act_state idle = {.drain_count = 0};
	const struct reclaim_state reclaim = {0};

	mailbox_exchange(&s->mailbox, &s->edges[i], &idle, &reclaim, false, s->now_ns);
	assert_int_equal(s->edges[i].status, 200);
	edge_end_step(&s->edges[i]);
}

static bool has_state(void *ctx)
{
	const struct scene *s = ctx;
	cJSON *act = stack_get(s->stack, s->at, "/v1/act");
	const cJSON *r;
	bool found = false;

	cJSON_ArrayForEach (r, json_at(act, "requests"))
		found |= strcmp(json_at(r, "id")->valuestring, s->id) == 0 &&
			 strcmp(json_at(r, "state")->valuestring, s->wanted) == 0;
	cJSON_Delete(act);
	return found;
}

static void expect_state(struct scene *s, int i, const char *state)
{
	s->at = i;
	s->wanted = state;
	if (!await(has_state, s, TIMEOUT_S))
		fail_msg("aggregator %d does not have the request as %s", i, state);
}

static bool is_told_of_an_actuator(void *ctx)
{
	const struct scene *s = ctx;
	cJSON *act = stack_get(s->stack, s->at, "/v1/act");
	bool told = cJSON_IsObject(json_at(act, "actuator"));

	cJSON_Delete(act);
	return told;
}

/* The request as it was made, its reason, and the actuator that reported: each is a frame. */
static void expect_outcome(struct scene *s, int i)
{
	const cJSON *request;
	cJSON *act;

	expect_state(s, i, "refused");
	assert_true(await(is_told_of_an_actuator, s, TIMEOUT_S));
	act = stack_get(s->stack, i, "/v1/act");
	assert_int_equal(cJSON_GetArraySize(json_at(act, "requests")), 1);
	request = json_at(act, "requests")->child;
	assert_string_equal(json_at(request, "action")->valuestring, "drain");
	assert_string_equal(json_at(request, "nodes")->child->valuestring, "bravo");
	assert_string_equal(json_at(request, "reasons")->child->valuestring, "bravo: it is gone");
	assert_string_equal(json_at(act, "actuator.holder")->valuestring, "actuator-1");
	cJSON_Delete(act);
}

static void report_wave(const struct scene *s, int i)
{
	static const char wave[] =
		"{\"kind\":\"WaveReport\",\"plan\":\"w-1\",\"begin\":\"2026-01-31T12:00:00Z\","
		"\"end\":\"2026-01-31T12:02:05Z\",\"outcome\":\"stopped\"}";
	char *url = mem_printf("http://127.0.0.1:%d/v1/drain/history",
			       s->stack->aggregators[i].http_port);
	struct buf answer = BUF_INIT;

	assert_int_equal(http_post(url, wave, &answer), 200);
	buf_fini(&answer);
	free(url);
}

static bool has_wave(void *ctx)
{
	const struct scene *s = ctx;
	cJSON *history = stack_get(s->stack, s->at, "/v1/drain/history?event=waveReport");
	bool found = cJSON_GetArraySize(json_at(history, "items")) == 1;

	cJSON_Delete(history);
	return found;
}

/* --- stories ---------------------------------------------------------------------------------- */

static void the_actuator_reaches_one_of_both(void **state)
{
	struct scene *s = *state;

	stack_start_aggregator(s->stack, 0);
	stack_start_aggregator(s->stack, 1);
	ask(s, 0);
	expect_state(s, 1, "waiting");
	report(s, 1);
	assert_int_equal(s->mailbox.count, 1);
	expect_state(s, 0, "taken");
	s->at = 0;
	assert_true(await(is_told_of_an_actuator, s, TIMEOUT_S));
	s->now_ns += 61 * NS_PER_SEC;
	report(s, 1);
	expect_outcome(s, 1);
	expect_outcome(s, 0);
	/* No aggregator has it taken again. */
	report(s, 0);
	assert_int_equal(s->mailbox.count, 1);
	expect_outcome(s, 1);
	report_wave(s, 1);
	s->at = 0;
	assert_true(await(has_wave, s, TIMEOUT_S));
}

static void either_one_dies(void **state)
{
	struct scene *s = *state;

	stack_start_aggregator(s->stack, 0);
	stack_start_aggregator(s->stack, 1);
	ask(s, 0);
	expect_state(s, 1, "waiting");
	stack_kill_aggregator(s->stack, 0);
	report(s, 1);
	assert_int_equal(s->mailbox.count, 1);
	stack_start_aggregator(s->stack, 0);
	expect_state(s, 0, "taken");
	stack_kill_aggregator(s->stack, 1);
	s->now_ns += 61 * NS_PER_SEC;
	report(s, 0);
	expect_outcome(s, 0);
	stack_start_aggregator(s->stack, 1);
	expect_outcome(s, 1);
}

static bool is_asked(void *ctx)
{
	struct scene *s = ctx;
	cJSON *act = stack_get(s->stack, 1, "/v1/act");
	const cJSON *first = act ? json_at(act, "requests")->child : NULL;
	bool found = first;

	if (found)
		snprintf(s->id, sizeof(s->id), "%s", json_at(first, "id")->valuestring);
	cJSON_Delete(act);
	return found;
}

/* The command has written its first line. */
static bool has_told(void *log)
{
	struct stat info;

	return stat(log, &info) == 0 && info.st_size > 0;
}

/* The new aggregator does not know the request before the other one tells it. */
static void the_command_outlives_its_aggregator(void **state)
{
	struct scene *s = *state;
	char *url = mem_printf("http://127.0.0.1:%d", s->stack->aggregators[0].http_port);
	char *log = mem_printf("%s/command", s->stack->folder);
	char *argv[] = {mem_strdup(program_path("evenkeel")),
			(char *)"act",
			(char *)"drain",
			(char *)"bravo",
			(char *)"--yes",
			(char *)"--server",
			url,
			NULL};
	int status;
	pid_t pid;

	stack_start_aggregator(s->stack, 0);
	stack_start_aggregator(s->stack, 1);
	pid = process_start(log, argv);
	assert_true(await(is_asked, s, TIMEOUT_S));
	report(s, 1);
	/* It has the answer to its request by then. */
	assert_true(await(has_told, log, TIMEOUT_S));
	stack_kill_aggregator(s->stack, 0);
	stack_start_aggregator(s->stack, 0);
	expect_state(s, 0, "taken");
	s->now_ns += 61 * NS_PER_SEC;
	report(s, 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 3);
	free(argv[0]);
	free(log);
	free(url);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(the_actuator_reaches_one_of_both),
		TEST(either_one_dies),
		TEST(the_command_outlives_its_aggregator),
	};

	if (curl_global_init(CURL_GLOBAL_DEFAULT))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
