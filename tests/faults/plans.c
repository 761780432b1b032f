/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Aggregators that plan, stopped and killed: placeholders are where they were although a plan made
 * anew would have them elsewhere, and what cannot be read of them costs nothing else.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <sodium.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"
#include "tests/process.h"
#include "tests/small_disk.h"
#include "tests/stack.h"

static struct stack *stack;
static char *dump, *database;

/*
 * Two nodes of 4 CPUs, of which `fuller` has most requested: there a placeholder goes that is
 * nowhere.
 */
static void write_cluster(const char *fuller)
{
	FILE *f = fopen(dump, "w");

	assert_non_null(f);
	fputs("apiVersion: v1\nkind: List\nitems:\n", f);
	for (int i = 1; i <= 2; i++) {
		bool is_fuller = fuller[1] == '0' + i;

		fprintf(f,
			"- {apiVersion: v1, kind: Node, metadata: {name: n%d}, status: "
			"{allocatable: {cpu: '4', memory: 16Gi, pods: '110'}, conditions: "
			"[{type: Ready, status: 'True'}]}}\n"
			"- {apiVersion: v1, kind: Pod, metadata: {name: p%d, namespace: d, uid: "
			"u%d}, spec: {nodeName: n%d, containers: [{name: c, resources: "
			"{requests: {cpu: %s, memory: 1Gi}}}]}}\n",
			i, i, i, i, is_fuller ? "'3'" : "'1'");
	}
	assert_int_equal(fclose(f), 0);
}

static int setup(void **state)
{
	char *dir;

	(void)state;
	if (sodium_init() < 0)
		return -1;
	stack = stack_new();
	dump = mem_printf("%s/dump.yaml", stack->folder);
	dir = mem_printf("%s/state", stack->folder);
	database = mem_printf("%s/evenkeel.db", dir);
	stack->aggregators[0].snapshot_path = dump;
	setenv("EVENKEEL_STATE_DIR", dir, 1);
	setenv("EVENKEEL_SAVE_INTERVAL", "1s", 1);
	setenv("EVENKEEL_PLAN_INTERVAL", "1s", 1);
	free(dir);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	stack_free(stack, 0);
	free(dump);
	free(database);
	return 0;
}

struct wish {
	const char *metric;
	double at_least;
};

static bool is_granted(void *ctx)
{
	const struct wish *w = ctx;

	return stack_metric(stack, 0, w->metric) >= w->at_least;
}

static void await_metric(const char *metric, double at_least)
{
	struct wish w = {metric, at_least};

	if (!await(is_granted, &w, 60))
		fail_msg("%s is %g", metric, stack_metric(stack, 0, metric));
}

static void start(void)
{
	stack_start_aggregator(stack, 0);
	await_metric("evenkeel_planner_steps_total", 1);
}

static void stop(void)
{
	assert_int_equal(process_stop(stack->aggregators[0].pid, SIGTERM), 0);
	stack->aggregators[0].pid = 0;
}

/* Of the one placeholder. */
static void expect_on(const char *node)
{
	char *path = mem_printf("/v1/slack?node=%s", node);
	cJSON *list = stack_get(stack, 0, path);

	assert_non_null(list);
	if (!json_item(list, "unit"))
		fail_msg("it is not on %s", node);
	cJSON_Delete(list);
	free(path);
}

/* It stands on n1, and then n2 becomes the fuller. */
static void begin(void)
{
	write_cluster("n1");
	start();
	expect_on("n1");
	write_cluster("n2");
}

static void test_stopped(void **state)
{
	(void)state;
	begin();
	stop();
	start();
	expect_on("n1");
	stop();
	/* And again, from what was read. */
	start();
	expect_on("n1");
	stop();
}

static void test_killed(void **state)
{
	(void)state;
	begin();
	/* The second save from now began behind the plan. */
	await_metric("evenkeel_store_saves_total",
		     stack_metric(stack, 0, "evenkeel_store_saves_total") + 2);
	stack_kill_aggregator(stack, 0);
	start();
	expect_on("n1");
	stop();
}

static void sql(const char *statements)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(database, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, statements, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

static void test_spoilt(void **state)
{
	static const char *const spoils[] = {
		"UPDATE plan_state SET state = x'7b7b'",
		"UPDATE plan_state SET state = x''",
		"UPDATE plan_state SET state = CAST('{\"classes\":[{}]}' AS BLOB)",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(spoils) / sizeof(spoils[0]); i++) {
		begin();
		stop();
		sql(spoils[i]);
		/* Anew, and the file is in use as before. */
		start();
		expect_on("n2");
		assert_true(stack_metric(stack, 0, "evenkeel_store_set_aside") == 0);
		await_metric("evenkeel_store_saves_total", 2);
		stop();
		write_cluster("n1");
		start();
		expect_on("n2");
		stop();
		sql("DELETE FROM plan_state");
	}
}

/* The database is on it from now on. */
static void use_disk(struct small_disk *disk)
{
	small_disk_init(disk, stack->folder);
	small_disk_need(disk);
	setenv("EVENKEEL_STATE_DIR", disk->path, 1);
}

/*
 * A plan is made and served all the same, and saved when there is room; and what was saved before
 * is not lost.
 */
static void test_full_disk(void **state)
{
	struct small_disk disk;

	(void)state;
	use_disk(&disk);
	small_disk_fill(&disk);
	write_cluster("n1");
	start();
	expect_on("n1");
	assert_true(stack_metric(stack, 0, "evenkeel_store_alarm") == 1);
	small_disk_free_up(&disk);
	await_metric("evenkeel_store_saves_total", 2);
	assert_true(stack_metric(stack, 0, "evenkeel_store_alarm") == 0);
	stop();
	write_cluster("n2");
	start();
	expect_on("n1");
	small_disk_fill(&disk);
	await_metric("evenkeel_store_failures_total", 1);
	expect_on("n1");
	stop();
	/* It starts with a disk that is still full. */
	start();
	expect_on("n1");
	stop();
	small_disk_fini(&disk);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_stopped),
		TEST(test_killed),
		TEST(test_spoilt),
		TEST(test_full_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
