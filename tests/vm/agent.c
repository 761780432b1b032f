/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent as a program on cgroup v2 with its controllers: what it prints when asked once, and how
 * it and an aggregator go on when somebody sets the wall clock.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cjson/cJSON.h>
#include <math.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/cgroup_fixture.h"
#include "tests/process.h"
#include "tests/stack.h"
#include "tests/tier_world.h"
#include "tests/vm/machine.h"

static double number(const cJSON *json, const char *path)
{
	const cJSON *value = json_at(json, path);

	return cJSON_IsNumber(value) ? value->valuedouble : NAN;
}

/* --- once ------------------------------------------------------------------------------------ */

static cJSON *sample_once(void)
{
	char *program = mem_strdup(program_path("evenkeel-agent"));
	char *argv[] = {program, "--once", "-o", "json", "--interval", "1s", NULL};
	struct buf out = BUF_INIT, err = BUF_INIT;
	cJSON *json;

	if (process_run(argv, &out, &err))
		fail_msg("%s", err.data ? err.data : "no word");
	json = cJSON_Parse(out.data);
	assert_non_null(json);
	buf_fini(&out);
	buf_fini(&err);
	free(program);
	return json;
}

/* Stopped, so that what the object says can be compared to the last digit. */
static void test_once(void **state)
{
	const char *tiers = getenv("EVENKEEL_TIERS");
	struct tier_world *w = tier_world_need(state);
	struct tier_facts facts;
	const cJSON *child;
	cJSON *json;

	if (!has_controllers(&w->fs)) {
		print_message("SKIP: no cgroup v2 with its controllers here\n");
		skip();
	}
	tier_world_make_stopped(w, "child");
	json = sample_once();
	facts = tier_world_files(w, "child");
	if (tiers)
		assert_memory_equal(json_at(json, "node.source.tier")->valuestring, tiers, 2);
	child = json_item(json, cgroup_fixture_path(w->fixture, "child") + 1);
	assert_non_null(child);
	assert_true(number(child, "usage.cpuMillicores.mean") == 0);
	assert_true(number(child, "usage.memoryBytes.last") == (double)facts.of[FACT_MEMORY]);
	assert_true(number(child, "kernelLimits.cpuMillicores") == 200);
	assert_true(number(child, "kernelLimits.memoryBytes") == (double)facts.of[FACT_LIMIT]);
	assert_true(number(child, "kernelLimits.memoryHighBytes") == (double)facts.of[FACT_HIGH]);
	assert_true(number(child, "kernelLimits.pids") == (double)facts.of[FACT_PIDS_LIMIT]);
	assert_true(number(child, "usage.pids.last") == (double)facts.of[FACT_PIDS]);
	cJSON_Delete(json);
}

/* --- rights ---------------------------------------------------------------------------------- */

enum { CAP_OF_PERFMON = 38, CAP_OF_BPF = 39, CAPS = 64 };

/* Root with no more than the manifest's DaemonSet has. */
static int sample_with_two_rights(const char *tier)
{
	cJSON *json;
	bool same;

	for (int cap = 0; cap < CAPS; cap++)
		if (cap != CAP_OF_PERFMON && cap != CAP_OF_BPF)
			prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
	json = sample_once();
	same = strncmp(json_at(json, "node.source.tier")->valuestring, tier, 2) == 0;
	cJSON_Delete(json);
	return same ? 0 : 1;
}

/* By cgroups, that is; the iterator over tasks of kernels before 6.1 takes the right to lock memory. */
static void test_two_rights_are_enough(void **state)
{
	const char *tiers = getenv("EVENKEEL_TIERS");
	int status = -1;
	pid_t child;

	(void)state;
	if (!in_virtual_machine() || !tiers || *tiers != 'T' || tiers[1] > '1') {
		print_message("SKIP: in a virtual machine with cgroup iterators only\n");
		skip();
	}
	child = fork();
	if (child == 0)
		_exit(sample_with_two_rights(tiers));
	assert_true(child > 0 && waitpid(child, &status, 0) == child);
	assert_int_equal(status, 0);
}

/* --- clocks ---------------------------------------------------------------------------------- */

static void shift_wall(int64_t seconds)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec += seconds;
	assert_int_equal(clock_settime(CLOCK_REALTIME, &t), 0);
}

struct chain {
	struct stack *stack;
	double samples; /* in the window of five minutes, to be exceeded */
};

/* Unix time; -1 when it is none. */
static int64_t unix_time(const cJSON *text)
{
	struct tm tm = {0};

	if (!cJSON_IsString(text) || !strptime(text->valuestring, "%Y-%m-%dT%H:%M:%S", &tm))
		return -1;
	return timegm(&tm);
}

/*
 * The node is fresh, by an interval that ended now as the wall clock has it, in a window that has
 * grown.
 */
static bool has_news(void *ctx)
{
	static const char samples[] = "usage.cpuMillicores.windows.5m.samples";
	const struct chain *c = ctx;
	cJSON *nodes = stack_get(c->stack, 0, "/v1/nodes");
	const cJSON *node = json_item(nodes, "test-node");
	const cJSON *fresh = json_at(node, "source.state");
	int64_t end = unix_time(json_at(node, "usage.cpuMillicores.latest.end"));
	bool news = cJSON_IsString(fresh) && strcmp(fresh->valuestring, "fresh") == 0 &&
		    llabs(end - clock_wall_ns() / NS_PER_SEC) <= 3 &&
		    number(node, samples) > c->samples;

	cJSON_Delete(nodes);
	return news;
}

static double samples_now(const struct chain *c)
{
	cJSON *nodes = stack_get(c->stack, 0, "/v1/nodes");
	double samples =
		number(json_item(nodes, "test-node"), "usage.cpuMillicores.windows.5m.samples");

	cJSON_Delete(nodes);
	return samples;
}

/*
 * Forward, then back by less than the windows reach, as a corrected clock is, and forward again:
 * news go on.
 */
static void test_chain_follows_the_clock(void **state)
{
	static const int64_t shifts[] = {3600, -600, 60};
	static const char *const options[] = {"--interval", "1s", NULL};
	struct chain c = {0};

	(void)state;
	if (!in_virtual_machine()) {
		print_message("SKIP: sets the clock: in a virtual machine only\n");
		skip();
	}
	c.stack = stack_new();
	stack_start_aggregator(c.stack, 0);
	stack_start_agent(c.stack, 1, options);
	assert_true(await(has_news, &c, 30));
	for (size_t i = 0; i < sizeof(shifts) / sizeof(shifts[0]); i++) {
		shift_wall(shifts[i]);
		/* An interval that was under way, and one that began after it. */
		c.samples = samples_now(&c) + 15;
		assert_true(await(has_news, &c, 30));
	}
	assert_int_equal(stack_stop_agent(c.stack, SIGTERM), 0);
	stack_free(c.stack, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate_setup_teardown(test_once, tier_world_setup,
							 tier_world_teardown,
							 &tier_world_tiers[TIER_T3]),
		cmocka_unit_test(test_two_rights_are_enough),
		cmocka_unit_test(test_chain_follows_the_clock),
	};

	if (sodium_init() < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
