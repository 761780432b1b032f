/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An aggregator is killed under load and comes back empty 20 s later. The agent kept its ring, so afterwards every
 * window equals that of a second aggregator that heard the same agent without a break.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shared/clock.h"
#include "tests/process.h"
#include "tests/stack.h"

#define OUTAGE_SAMPLES 200 /* of the undisturbed one at 10 Hz: 20 s */

enum { DISTURBED, UNDISTURBED };

struct scene {
	struct stack *stack;
	pid_t load;
	uint64_t samples_wanted;
};

/* Bursts of 0.3 s, so that the windows have a deviation to compare. */
static pid_t start_load(void)
{
	pid_t pid = fork();
	volatile uint64_t work = 0;

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		int64_t until = clock_mono_ns() + 300 * NS_PER_MS;

		while (clock_mono_ns() < until)
			work++;
		usleep(300000);
	}
}

static int setup(void **state)
{
	static struct scene scene;

	if (sodium_init() < 0)
		return -1;
	scene.stack = stack_new();
	scene.load = start_load();
	*state = &scene;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	process_stop(s->load, SIGKILL);
	stack_free(s->stack, 0);
	return 0;
}

static double samples_of(const cJSON *list)
{
	const cJSON *node = json_item(list, "test-node");

	return cJSON_GetNumberValue(json_at(node, "usage.cpuMillicores.windows.5m.samples"));
}

static bool has_samples(void *ctx)
{
	struct scene *s = ctx;
	cJSON *list = stack_get(s->stack, UNDISTURBED, "/v1/nodes");
	bool enough = samples_of(list) >= (double)s->samples_wanted;

	cJSON_Delete(list);
	return enough;
}

static void await_samples(struct scene *s, uint64_t samples, double seconds)
{
	s->samples_wanted = samples;
	assert_true(await(has_samples, s, seconds));
}

/* What must be equal: everything measured. Ages depend on when one asks. */
static bool same_usage(const cJSON *a, const cJSON *b)
{
	static const char *const parts[] = {"usage", "contention", "kernelLimits", "workload",
					    "uid"};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		const cJSON *of_a = json_at(a, parts[i]), *of_b = json_at(b, parts[i]);

		if (!of_a && !of_b)
			continue;
		if (!cJSON_Compare(of_a, of_b, true)) {
			char *text_a = cJSON_PrintUnformatted(of_a),
			     *text_b = cJSON_PrintUnformatted(of_b);

			print_error("%s differs:\n%s\n%s\n", parts[i], text_a, text_b);
			free(text_a);
			free(text_b);
			return false;
		}
	}
	return true;
}

static bool same_lists(const cJSON *a, const cJSON *b)
{
	const cJSON *item;

	if (cJSON_GetArraySize(json_at(a, "items")) != cJSON_GetArraySize(json_at(b, "items")))
		return false;
	cJSON_ArrayForEach(item, json_at(a, "items"))
	{
		const char *name = cJSON_GetStringValue(json_at(item, "name"));

		if (!same_usage(item, json_item(b, name)))
			return false;
	}
	return true;
}

struct comparison {
	struct scene *scene;
	const char *path;
	bool equal;
};

/* True once both answers stand at the same interval; whether they are equal is then decided for good. */
static bool compare_at_rest(void *ctx)
{
	struct comparison *c = ctx;
	cJSON *node_a = stack_get(c->scene->stack, DISTURBED, "/v1/nodes");
	cJSON *node_b = stack_get(c->scene->stack, UNDISTURBED, "/v1/nodes");
	cJSON *a = stack_get(c->scene->stack, DISTURBED, c->path);
	cJSON *b = stack_get(c->scene->stack, UNDISTURBED, c->path);
	cJSON *node_c = stack_get(c->scene->stack, UNDISTURBED, "/v1/nodes");
	double samples = samples_of(node_a);
	bool at_rest = samples > 0 && samples == samples_of(node_b) &&
		       samples == samples_of(node_c) && a && b;

	if (at_rest)
		c->equal = same_lists(a, b);
	cJSON_Delete(node_a);
	cJSON_Delete(node_b);
	cJSON_Delete(node_c);
	cJSON_Delete(a);
	cJSON_Delete(b);
	return at_rest;
}

static void test_windows_survive(void **state)
{
	static const char *const options[] = {"--interval", "1s", NULL};
	static const char *const paths[] = {"/v1/nodes", "/v1/pods"};
	struct scene *s = *state;

	stack_start_aggregator(s->stack, DISTURBED);
	stack_start_aggregator(s->stack, UNDISTURBED);
	stack_start_agent(s->stack, 2, options);
	await_samples(s, 50, 60);
	stack_kill_aggregator(s->stack, DISTURBED);
	await_samples(s, 50 + OUTAGE_SAMPLES, 300);
	stack_start_aggregator(s->stack, DISTURBED);
	for (int i = 0; i < 2; i++) {
		struct comparison c = {.scene = s, .path = paths[i]};

		assert_true(await(compare_at_rest, &c, 60));
		assert_true(c.equal);
	}
	/* It was asked for everything once, and nothing was refused or came to nothing. */
	assert_true(stack_metric(s->stack, DISTURBED,
				 "evenkeel_frames_total{result=\"need_full\"}") == 1);
	assert_true(stack_metric(s->stack, DISTURBED,
				 "evenkeel_frames_total{result=\"refused\"}") == 0);
	assert_true(stack_metric(s->stack, DISTURBED,
				 "evenkeel_frames_total{result=\"too_old\"}") == 0);
	assert_int_equal(stack_stop_agent(s->stack, SIGTERM), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_windows_survive, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
