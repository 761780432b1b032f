/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Aggregators with a state directory, killed, stopped and started again: node windows are back at
 * once, and once the agent told again what it kept, all windows equal those of an aggregator that
 * was never disturbed. Then what an operator may meet in that directory: the service runs, and says
 * so.
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
#include <sys/stat.h>
#include <unistd.h>

#include "aggregator/edge/store/store.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/frame_account.h"
#include "tests/process.h"
#include "tests/stack.h"
#include "tests/undisturbed.h"
#include "tests/usage_fixture.h"

/*
 * Views are published once a second at most, so that two aggregators show the same for a second of
 * these two.
 */
static const char *const every_2s[] = {"--interval", "2s", NULL};

static int setup(void **state)
{
	static struct undisturbed scene;

	*state = &scene;
	return undisturbed_open(&scene);
}

static int teardown(void **state)
{
	undisturbed_close(*state);
	return 0;
}

/* --- what they share -------------------------------------------------------------------------- */

static char *state_dir(const struct undisturbed *u)
{
	return mem_printf("%s/state", u->stack->folder);
}

/* The variables an aggregator takes its options from, too. */
static void start_with_state(const struct undisturbed *u, int i, const char *save_interval)
{
	char *dir = state_dir(u);

	setenv("EVENKEEL_STATE_DIR", dir, 1);
	setenv("EVENKEEL_SAVE_INTERVAL", save_interval, 1);
	stack_start_aggregator(u->stack, i);
	unsetenv("EVENKEEL_STATE_DIR");
	unsetenv("EVENKEEL_SAVE_INTERVAL");
	free(dir);
}

static void stop_aggregator(const struct undisturbed *u, int i)
{
	assert_int_equal(process_stop(u->stack->aggregators[i].pid, SIGTERM), 0);
	u->stack->aggregators[i].pid = 0;
}

static double metric(const struct undisturbed *u, int i, const char *name)
{
	return stack_metric(u->stack, i, name);
}

struct wish {
	const struct undisturbed *u;
	int aggregator;
	const char *metric;
	double at_least, at_most;
};

static bool is_granted(void *ctx)
{
	const struct wish *w = ctx;
	double value = metric(w->u, w->aggregator, w->metric);

	return value >= w->at_least && value <= w->at_most;
}

static void await_metric(const struct undisturbed *u, int i, const char *name, double at_least,
			 double at_most)
{
	struct wish w = {u, i, name, at_least, at_most};

	if (!await(is_granted, &w, 60))
		fail_msg("%s is %g", name, metric(u, i, name));
}

static void await_save(const struct undisturbed *u)
{
	double saves = metric(u, DISTURBED, "evenkeel_store_saves_total");

	await_metric(u, DISTURBED, "evenkeel_store_saves_total", saves + 1, 1e9);
}

static double samples(const struct undisturbed *u, int i)
{
	cJSON *list = stack_get(u->stack, i, "/v1/nodes");
	double n = undisturbed_samples_of(list);

	cJSON_Delete(list);
	return n;
}

/*
 * As of an interval that is yet to come: node windows may stand at the newest while pods are still
 * being told of again.
 */
static void expect_equal(const struct undisturbed *u)
{
	assert_true(undisturbed_await_samples(u, samples(u, UNDISTURBED) + 1, 60));
	assert_true(undisturbed_equal(u, "/v1/nodes", 60));
	assert_true(undisturbed_equal(u, "/v1/pods", 60));
}

static int pods(const struct undisturbed *u, int i)
{
	cJSON *list = stack_get(u->stack, i, "/v1/pods");
	int n = cJSON_GetArraySize(json_at(list, "items"));

	cJSON_Delete(list);
	return n;
}

/* --- restarts --------------------------------------------------------------------------------- */

/*
 * What was saved is there before the agent says a word; after it did, all is as if nothing had
 * been.
 */
static void killed(const struct undisturbed *u, bool just_saved)
{
	double before;

	await_save(u);
	if (!just_saved)
		assert_true(undisturbed_await_samples(u, samples(u, UNDISTURBED) + 25, 60));
	before = samples(u, DISTURBED);
	stack_kill_aggregator(u->stack, DISTURBED);
	assert_int_equal(kill(u->stack->agent, SIGSTOP), 0);
	start_with_state(u, DISTURBED, just_saved ? "1s" : "4s");
	assert_true(metric(u, DISTURBED, "evenkeel_store_loaded_nodes") == 1);
	/* The last save may be newer than the last view before the kill. */
	assert_true(samples(u, DISTURBED) > 0);
	assert_true(undisturbed_await_samples(u, samples(u, DISTURBED), 60));
	assert_int_equal(pods(u, DISTURBED), 0);
	assert_int_equal(kill(u->stack->agent, SIGCONT), 0);
	assert_true(undisturbed_await_samples(u, before + 20, 60));
	expect_equal(u);
	assert_true(pods(u, DISTURBED) > 0);
	assert_true(metric(u, DISTURBED, "evenkeel_frames_total{result=\"need_full\"}") == 1);
	frame_account_expect_whole(u->stack, DISTURBED);
}

static void test_killed(void **state)
{
	const struct undisturbed *u = *state;

	start_with_state(u, DISTURBED, "1s");
	stack_start_aggregator(u->stack, UNDISTURBED);
	stack_start_agent(u->stack, 2, every_2s);
	assert_true(undisturbed_await_samples(u, 40, 60));
	killed(u, true);
	killed(u, false);
	assert_int_equal(stack_stop_agent(u->stack, SIGTERM), 0);
}

/* Again and again, at whatever moment, in the middle of catching up as well. */
static void test_killed_often(void **state)
{
	const struct undisturbed *u = *state;

	start_with_state(u, DISTURBED, "1s");
	stack_start_aggregator(u->stack, UNDISTURBED);
	stack_start_agent(u->stack, 2, every_2s);
	assert_true(undisturbed_await_samples(u, 10, 60));
	for (int i = 0; i < 8; i++) {
		assert_true(undisturbed_await_samples(
			u, samples(u, UNDISTURBED) + 3 + randombytes_uniform(40), 60));
		stack_kill_aggregator(u->stack, DISTURBED);
		start_with_state(u, DISTURBED, "1s");
	}
	expect_equal(u);
	frame_account_expect_whole(u->stack, DISTURBED);
	assert_int_equal(stack_stop_agent(u->stack, SIGTERM), 0);
}

/*
 * Everything is stopped in order and started again: the node's windows go on, its new run included.
 */
static void test_agent_restarted_as_well(void **state)
{
	const struct undisturbed *u = *state;
	double before;

	start_with_state(u, DISTURBED, "1h");
	stack_start_aggregator(u->stack, UNDISTURBED);
	stack_start_agent(u->stack, 2, every_2s);
	assert_true(undisturbed_await_samples(u, 40, 60));
	assert_int_equal(stack_stop_agent(u->stack, SIGTERM), 0);
	stop_aggregator(u, DISTURBED);
	start_with_state(u, DISTURBED, "1h");
	/* The last words, too, which the one that goes on may show a moment later. */
	assert_true(undisturbed_equal(u, "/v1/nodes", 10));
	before = samples(u, DISTURBED);
	stack_start_agent(u->stack, 2, every_2s);
	assert_true(undisturbed_await_samples(u, before + 30, 60));
	assert_true(undisturbed_equal(u, "/v1/nodes", 60));
	frame_account_expect_whole(u->stack, DISTURBED);
	assert_int_equal(stack_stop_agent(u->stack, SIGTERM), 0);
}

/* --- 5000 nodes ------------------------------------------------------------------------------- */

enum { NODES = 5000 };

static void wake(void *ctx)
{
	(void)ctx;
}

static void await_event(struct store *store, enum store_event_kind kind)
{
	struct store_event *e = store_take(store, 60 * NS_PER_SEC);

	assert_non_null(e);
	assert_int_equal(e->kind, kind);
	store_event_free(e);
}

/* Node n was heard last (n % 10) minutes before `now`, with a minute of windows. */
static struct usage_state *make_nodes(int64_t now_ns)
{
	static const uint8_t run[FRAME_RUN_LEN] = {1};
	struct usage_limits limits = {.nodes_max = NODES, .pods_per_node_max = 1};
	struct usage_state *state = usage_new(&limits);

	for (int64_t minutes = 0; minutes < 10; minutes++) {
		for (uint64_t k = 1; k <= 12; k++) {
			int64_t end_ns = now_ns - minutes * 60 * NS_PER_SEC -
					 (int64_t)(12 - k) * 5 * NS_PER_SEC;
			struct usage_fixture f = {.sequence = k, .end_ns = end_ns, .seconds = 5};
			struct interval *i = usage_fixture_new(&f);

			for (int n = (int)minutes; n < NODES; n += 10) {
				struct usage_answer answer;
				char name[32];

				snprintf(name, sizeof(name), "node-%04d", n);
				usage_apply(state, name, run, NULL, i, end_ns, &answer);
				assert_int_equal(answer.verdict, USAGE_APPLIED);
			}
			interval_free(i);
		}
	}
	return state;
}

static void fill_database(const char *dir, int64_t now_ns)
{
	struct store_config config = {
		.dir = dir, .nodes_max = NODES, .retry_ns = NS_PER_SEC, .wake = wake};
	struct usage_state *state = make_nodes(now_ns);
	struct store_batch *b;
	struct store *store;
	bool last = false;
	uint64_t id;

	assert_int_equal(store_start(&store, &config, NULL), 0);
	await_event(store, STORE_OPENED);
	for (id = usage_save_begin(state); !last;) {
		b = store_batch_new(id);
		b->count = usage_save_next(state, b->rows, STORE_BATCH_ROWS);
		b->last = last = b->count < STORE_BATCH_ROWS;
		store_put(store, b);
		await_event(store, last ? STORE_SAVED : STORE_WRITTEN);
	}
	store_stop(store);
	usage_free(state);
}

static double since_s(int64_t unix_ns)
{
	return (double)(clock_wall_ns() - unix_ns) / NS_PER_SEC;
}

/* Heard so many minutes before. */
static void expect_age(const struct undisturbed *u, const char *name, double minutes,
		       const char *source, int64_t before_ns)
{
	char *path = mem_printf("/v1/nodes/%s", name);
	cJSON *node = stack_get(u->stack, DISTURBED, path);
	double age = cJSON_GetNumberValue(json_at(node, "source.ageSeconds"));

	assert_string_equal(cJSON_GetStringValue(json_at(node, "source.state")), source);
	assert_true(age >= minutes * 60 && age <= minutes * 60 + since_s(before_ns) + 1);
	assert_true(cJSON_GetNumberValue(json_at(node, "usage.cpuMillicores.windows.5m.samples")) ==
		    12 * 50);
	cJSON_Delete(node);
	free(path);
}

static void test_five_thousand_nodes(void **state)
{
	const struct undisturbed *u = *state;
	char *dir = state_dir(u);
	int64_t now_ns = clock_wall_ns(), start_ns;
	double took;

	fill_database(dir, now_ns);
	start_ns = clock_mono_ns();
	start_with_state(u, DISTURBED, "1h");
	took = (double)(clock_mono_ns() - start_ns) / NS_PER_SEC;
	print_message("ready after %.2f s, the database took %.2f s\n", took,
		      metric(u, DISTURBED, "evenkeel_store_load_seconds"));
	assert_true(metric(u, DISTURBED, "evenkeel_store_loaded_nodes") == NODES);
	/* Beyond its waits for a CPU, of which other programs are the cause. */
	assert_true(metric(u, DISTURBED, "evenkeel_store_load_seconds") <=
		    1 + process_cpu(u->stack->aggregators[DISTURBED].pid).waited_s);
	assert_true(since_s(now_ns) < 20);
	expect_age(u, "node-0000", 0, "fresh", now_ns);
	expect_age(u, "node-4991", 1, "late", now_ns);
	expect_age(u, "node-0014", 4, "late", now_ns);
	expect_age(u, "node-2506", 6, "expired", now_ns);
	expect_age(u, "node-4999", 9, "expired", now_ns);
	stop_aggregator(u, DISTURBED);
	free(dir);
}

/* --- the directory ---------------------------------------------------------------------------- */

static void expect_readyz(const struct undisturbed *u, int i, const char *want)
{
	char *url = mem_printf("http://127.0.0.1:%d/readyz", u->stack->aggregators[i].http_port);
	struct buf body = BUF_INIT;

	assert_int_equal(http_get(url, &body), 200);
	assert_string_equal(body.data, want);
	buf_fini(&body);
	free(url);
}

static bool log_has(const struct undisturbed *u, int i, const char *text)
{
	char *path = mem_printf("%s/aggregator-%d.log", u->stack->folder, i), line[1024];
	FILE *log = fopen(path, "r");
	bool found = false;

	while (log && fgets(line, sizeof(line), log))
		found |= strstr(line, text) != NULL;
	if (log)
		fclose(log);
	free(path);
	return found;
}

static void test_damaged_database(void **state)
{
	const struct undisturbed *u = *state;
	char *dir = state_dir(u), *path = mem_printf("%s/evenkeel.db", dir);
	FILE *file;

	assert_int_equal(mkdir(dir, 0700), 0);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fputs("no database at all, but longer than nothing", file) >= 0);
	assert_int_equal(fclose(file), 0);
	start_with_state(u, DISTURBED, "1s");
	expect_readyz(u, DISTURBED, "ok\n");
	assert_true(log_has(u, DISTURBED, "is damaged (file is not a database); it was set aside"));
	assert_true(metric(u, DISTURBED, "evenkeel_store_set_aside") == 1);
	await_metric(u, DISTURBED, "evenkeel_store_saves_total", 1, 1e9);
	assert_true(metric(u, DISTURBED, "evenkeel_store_alarm") == 0);
	stop_aggregator(u, DISTURBED);
	free(path);
	free(dir);
}

/*
 * The second serves without a database, says whose fault it may be, and takes over when the first
 * is gone.
 */
static void test_two_on_one_directory(void **state)
{
	const struct undisturbed *u = *state;

	start_with_state(u, UNDISTURBED, "1s");
	start_with_state(u, DISTURBED, "1s");
	expect_readyz(u, DISTURBED, "ok\nstore: nothing is being saved, see the log\n");
	assert_true(metric(u, DISTURBED, "evenkeel_store_alarm") == 1);
	assert_true(metric(u, DISTURBED, "evenkeel_store_failures_total") >= 1);
	assert_true(log_has(u, DISTURBED, "another process has it"));
	assert_true(metric(u, UNDISTURBED, "evenkeel_store_alarm") == 0);
	await_metric(u, UNDISTURBED, "evenkeel_store_saves_total", 1, 1e9);
	stop_aggregator(u, UNDISTURBED);
	await_metric(u, DISTURBED, "evenkeel_store_alarm", 0, 0);
	expect_readyz(u, DISTURBED, "ok\n");
	await_save(u); /* the line comes between the end of the alarm and the next save */
	assert_true(log_has(u, DISTURBED, "is being saved again"));
	stop_aggregator(u, DISTURBED);
}

/* Without the option there is no database, nor a word of one. */
static void test_without(void **state)
{
	const struct undisturbed *u = *state;

	stack_start_aggregator(u->stack, DISTURBED);
	assert_true(metric(u, DISTURBED, "evenkeel_store_alarm") == -1);
	expect_readyz(u, DISTURBED, "ok\n");
	stop_aggregator(u, DISTURBED);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_killed),
		TEST(test_killed_often),
		TEST(test_agent_restarted_as_well),
		TEST(test_five_thousand_nodes),
		TEST(test_damaged_database),
		TEST(test_two_on_one_directory),
		TEST(test_without),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
