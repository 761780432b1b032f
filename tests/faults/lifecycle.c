/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's ends and beginnings: told to stop, killed, given another key; seen from a real
 * aggregator.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/cgroup_fixture.h"
#include "tests/frame_account.h"
#include "tests/process.h"
#include "tests/stack.h"

#define TIMEOUT_S 30

struct scene {
	struct stack *stack;
	struct cgroup_fixture *cgroups;
	cJSON *nodes; /* the last answer, owned */
	const char *metric; /* awaited .. */
	double value; /* .. to reach this; or until when it is shown */
	const char *text; /* awaited in the agent's log */
};

static int setup(void **state)
{
	struct scene *s = mem_zalloc(1, sizeof(*s));

	if (sodium_init() < 0)
		return -1;
	s->stack = stack_new();
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	stack_free(s->stack, 0);
	cgroup_fixture_free(s->cgroups);
	cJSON_Delete(s->nodes);
	free(s);
	return 0;
}

static bool metric_reached(void *ctx)
{
	struct scene *s = ctx;

	return stack_metric(s->stack, 0, s->metric) >= s->value;
}

static double frames(const struct scene *s, const char *result)
{
	char *metric = mem_printf("evenkeel_frames_total{result=\"%s\"}", result);
	double value = stack_metric(s->stack, 0, metric);

	free(metric);
	return value;
}

static void await_applied(struct scene *s, double count)
{
	s->metric = "evenkeel_frames_total{result=\"applied\"}";
	s->value = count;
	assert_true(await(metric_reached, s, TIMEOUT_S));
}

static bool in_log(void *ctx)
{
	struct scene *s = ctx;
	char *path = mem_printf("%s/agent-0.log", s->stack->folder), text[8192] = "";
	FILE *log = fopen(path, "re");

	if (log) {
		text[fread(text, 1, sizeof(text) - 1, log)] = '\0';
		fclose(log);
	}
	free(path);
	return strstr(text, s->text) != NULL;
}

static void await_log(struct scene *s, const char *text)
{
	s->text = text;
	assert_true(await(in_log, s, TIMEOUT_S));
}

/* A number of the node; NaN where there is none. */
static double node_number(struct scene *s, const char *path)
{
	cJSON_Delete(s->nodes);
	s->nodes = stack_get(s->stack, 0, "/v1/nodes");
	return cJSON_GetNumberValue(json_at(json_item(s->nodes, "test-node"), path));
}

static const char *node_text(struct scene *s, const char *path)
{
	cJSON_Delete(s->nodes);
	s->nodes = stack_get(s->stack, 0, "/v1/nodes");
	return cJSON_GetStringValue(json_at(json_item(s->nodes, "test-node"), path));
}

/* "2026-01-31T01:02:03.456Z" as Unix seconds. */
static double unix_seconds(const char *text)
{
	struct tm tm = {0};
	const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);

	assert_non_null(rest);
	return (double)timegm(&tm) + strtod(rest, NULL);
}

/*
 * The end of the newest interval that is shown; 0: none is yet. A view may come a second after its
 * frame.
 */
static double shown_until(struct scene *s)
{
	const char *end = node_text(s, "usage.cpuMillicores.latest.end");

	return end ? unix_seconds(end) : 0;
}

static bool is_shown(void *ctx)
{
	struct scene *s = ctx;

	return shown_until(s) >= s->value;
}

static void await_shown(struct scene *s, double until)
{
	s->value = until;
	assert_true(await(is_shown, s, TIMEOUT_S));
}

static double now_s(void)
{
	return (double)clock_wall_ns() / NS_PER_SEC;
}

static void let_pass(double seconds)
{
	poll(NULL, 0, (int)(seconds * 1000));
}

/* --- SIGTERM ---------------------------------------------------------------------------------- */

/* The interval that had just begun is published and acknowledged before the agent ends. */
static void test_last_words(void **state)
{
	static const char *const options[] = {"--interval", "15s", NULL};
	struct scene *s = *state;
	double signalled, ended, before, samples;

	stack_start_aggregator(s->stack, 0);
	stack_start_agent(s->stack, 1, options);
	await_applied(s, 1);
	await_shown(s, 1);
	samples = node_number(s, "usage.cpuMillicores.windows.5m.samples");
	before = shown_until(s);
	let_pass(1.5);
	assert_true(frames(s, "applied") == 1);
	signalled = now_s();
	assert_int_equal(stack_stop_agent(s->stack, SIGTERM), 0);
	ended = now_s();
	assert_true(ended - signalled < 2);
	assert_true(frames(s, "applied") == 2);
	/* It reaches to the signal, and holds what was sampled since the one before. */
	await_shown(s, signalled - 0.002);
	assert_true(shown_until(s) <= ended + 0.002);
	samples = node_number(s, "usage.cpuMillicores.windows.5m.samples") - samples;
	assert_true(samples + node_number(s, "source.missedTicks") >=
		    (signalled - before) * 10 * 0.5);
	assert_true(samples <= (signalled - before) * 10 + 2);
}

/* Nobody is there to acknowledge them. */
static void expect_end_in_two_seconds(struct scene *s, const char *url)
{
	const char *const options[] = {"--interval", "1s", "--aggregator", url, NULL};
	double signalled;

	stack_start_agent(s->stack, 0, options);
	await_log(s, "an interval every");
	let_pass(1.5);
	signalled = now_s();
	assert_int_equal(stack_stop_agent(s->stack, SIGTERM), 0);
	assert_true(now_s() - signalled >= 1.9);
	assert_true(now_s() - signalled < 4.5); /* no reply timeout, on a busy machine */
}

static void test_last_words_to_nobody(void **state)
{
	struct scene *s = *state;
	char *url = mem_printf("tcp://127.0.0.1:%d", free_port());

	expect_end_in_two_seconds(s, url);
	free(url);
}

/* The name has no address, so there is not even anybody to send to. */
static void test_last_words_to_an_unknown_name(void **state)
{
	expect_end_in_two_seconds(*state, "tcp://a..b:2021");
}

/* --- SIGHUP ----------------------------------------------------------------------------------- */

static void write_key(const char *folder, const char *name, uint8_t fill)
{
	char *path = mem_printf("%s/%s", folder, name);
	uint8_t key[KEY_LEN];
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	memset(key, fill, sizeof(key));
	assert_true(fd >= 0 && write(fd, key, sizeof(key)) == sizeof(key));
	close(fd);
	free(path);
}

static void remove_key(const char *folder, const char *name)
{
	char *path = mem_printf("%s/%s", folder, name);

	assert_int_equal(unlink(path), 0);
	free(path);
}

/*
 * The aggregator takes both keys, the agent changes over, the aggregator forgets the old one:
 * nothing is lost on the way.
 */
static void test_key_rotation(void **state)
{
	struct scene *s = *state;
	char *of_aggregator = mem_printf("%s/aggregator-keys", s->stack->folder);
	char *of_agent = mem_printf("%s/agent-keys", s->stack->folder);
	const char *const options[] = {"--interval", "1s", "--key-file", of_agent, NULL};
	double samples, seconds;

	assert_int_equal(mkdir(of_aggregator, 0700), 0);
	assert_int_equal(mkdir(of_agent, 0700), 0);
	write_key(of_aggregator, "2026-01", 1);
	write_key(of_aggregator, "2026-02", 2);
	write_key(of_agent, "2026-01", 1);
	s->stack->aggregators[0].key_path = of_aggregator;
	stack_start_aggregator(s->stack, 0);
	stack_start_agent(s->stack, 1, options);
	await_applied(s, 3);
	write_key(of_agent, "2026-02", 2);
	kill(s->stack->agent, SIGHUP);
	await_log(s, "read the keys again");
	await_applied(s, frames(s, "applied") + 2);
	remove_key(of_aggregator, "2026-01");
	kill(s->stack->aggregators[0].pid, SIGHUP);
	await_applied(s, frames(s, "applied") + 3);
	/* A key that cannot be read changes nothing. */
	remove_key(of_agent, "2026-01");
	remove_key(of_agent, "2026-02");
	kill(s->stack->agent, SIGHUP);
	await_log(s, "keeping the old keys");
	await_applied(s, frames(s, "applied") + 2);
	frame_account_expect_whole(s->stack, 0);
	seconds = unix_seconds(node_text(s, "usage.cpuMillicores.windows.5m.end")) -
		  unix_seconds(node_text(s, "usage.cpuMillicores.windows.5m.start"));
	samples = node_number(s, "usage.cpuMillicores.windows.5m.samples") +
		  stack_metric(s->stack, 0,
			       "evenkeel_node_sampler_missed_ticks_total{node=\"test-node\"}");
	assert_true(samples >= seconds * 10 * 0.8);
	assert_int_equal(stack_stop_agent(s->stack, SIGTERM), 0);
	free(of_aggregator);
	free(of_agent);
}

/* --- killed ----------------------------------------------------------------------------------- */

static double unit_number(struct scene *s, const char *path)
{
	cJSON *pods = stack_get(s->stack, 0, "/v1/pods?limit=5000");
	const char *name = cgroup_fixture_path(s->cgroups, "work") + 1;
	double value = cJSON_GetNumberValue(json_at(json_item(pods, name), path));

	cJSON_Delete(pods);
	return value;
}

static bool is_silent_for_3_s(void *ctx)
{
	return node_number(ctx, "source.ageSeconds") > 3;
}

static bool is_heard_again(void *ctx)
{
	return node_number(ctx, "source.ageSeconds") < 3;
}

/* Where there are pods, plain cgroups are no workloads. */
static bool has_pods(struct scene *s)
{
	cJSON *pods = stack_get(s->stack, 0, "/v1/pods?limit=5000");
	const cJSON *pod;
	bool found = false;

	cJSON_ArrayForEach (pod, json_at(pods, "items")) {
		const char *uid = cJSON_GetStringValue(json_at(pod, "uid"));

		found |= uid && *uid;
	}
	cJSON_Delete(pods);
	return found;
}

static bool is_measured(void *ctx)
{
	return unit_number(ctx, "usage.cpuMillicores.windows.5m.samples") >= 20;
}

/*
 * A workload of one busy task, and an agent that is killed and started again. Its second run finds
 * counters that stand at some seconds: were they taken for the use of one tick, or counted twice,
 * the workload would exceed the one CPU it has: a tick many times, the mean by any of them.
 */
static void test_killed_and_restarted(void **state)
{
	static const char *const options[] = {"--interval", "1s", NULL};
	const struct cgroup_child busy = {.spin = true};
	struct scene *s = *state;
	struct error error;
	char run[64];
	double samples, begin = now_s();

	s->cgroups = cgroup_fixture_new("lifecycle", &error);
	if (!s->cgroups) {
		print_message("SKIP: %s\n", error.text);
		skip();
	}
	cgroup_fixture_make(s->cgroups, cgroup_fixture_all(s->cgroups), "work");
	cgroup_fixture_spawn(s->cgroups, "work", &busy);
	stack_start_aggregator(s->stack, 0);
	stack_start_agent(s->stack, 1, options);
	if (!await(is_measured, s, TIMEOUT_S) && has_pods(s)) {
		print_message("SKIP: there are pods, so plain cgroups do not count\n");
		skip();
	}
	assert_true(is_measured(s));
	snprintf(run, sizeof(run), "%s", node_text(s, "source.runId"));
	assert_int_equal(stack_stop_agent(s->stack, SIGKILL), 128 + SIGKILL);
	/* Meanwhile its last values stay, with their age. */
	assert_true(await(is_silent_for_3_s, s, TIMEOUT_S));
	samples = node_number(s, "usage.cpuMillicores.windows.5m.samples");
	assert_true(samples > 0);

	stack_start_agent(s->stack, 1, options);
	await_applied(s, frames(s, "applied") + 4);
	assert_true(await(is_heard_again, s, TIMEOUT_S));
	assert_string_not_equal(node_text(s, "source.runId"), run);
	assert_true(node_number(s, "usage.cpuMillicores.windows.5m.samples") > samples);
	assert_true(node_number(s, "usage.cpuMillicores.windows.5m.samples") <=
		    (now_s() - begin) * 10 + 2);
	assert_true(node_number(s, "usage.cpuMillicores.windows.5m.min") >= 0);
	assert_true(node_number(s, "usage.cpuMillicores.windows.5m.max") <=
		    node_number(s, "capacity.cpuMillicores"));
	assert_true(unit_number(s, "usage.cpuMillicores.windows.5m.min") >= 0);
	/* A reading that the scheduler delays shows the use of two or three ticks in one. */
	assert_true(unit_number(s, "usage.cpuMillicores.windows.5m.max") <= 5000);
	assert_true(unit_number(s, "usage.cpuMillicores.windows.5m.mean") <= 1010);
	assert_true(unit_number(s, "usage.cpuMillicores.windows.5m.mean") > 100);
	frame_account_expect_whole(s->stack, 0);
	assert_int_equal(stack_stop_agent(s->stack, SIGTERM), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_last_words, setup, teardown),
		cmocka_unit_test_setup_teardown(test_last_words_to_nobody, setup, teardown),
		cmocka_unit_test_setup_teardown(test_last_words_to_an_unknown_name, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_key_rotation, setup, teardown),
		cmocka_unit_test_setup_teardown(test_killed_and_restarted, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
