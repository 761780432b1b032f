/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Once it answers, every thread of the shipped aggregator is filtered, those that come later too,
 * and it goes on with its work; what the filter lets through is in integration/confine. A program
 * that a kubeconfig names for credentials still runs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shared/mem.h"
#include "tests/privileges.h"
#include "tests/process.h"
#include "tests/stack.h"

static struct stack *stack;

static int setup(void **state)
{
	(void)state;
	stack = stack_new();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	stack_free(stack, 0);
	return 0;
}

static bool is_filtered(const char *status)
{
	struct privileges p;

	return privileges_read(status, &p) && p.no_new_privs == 1 && p.seccomp == 2;
}

/* All threads of the process. */
static bool are_filtered(void *pid)
{
	char *path = mem_printf("/proc/%d/task", *(pid_t *)pid);
	DIR *tasks = opendir(path);
	bool all = tasks != NULL;
	struct dirent *task;

	while (all && (task = readdir(tasks))) {
		char *status = mem_printf("%s/%s/status", path, task->d_name);

		all = task->d_name[0] == '.' || is_filtered(status);
		free(status);
	}
	if (tasks)
		closedir(tasks);
	free(path);
	return all;
}

static bool has_node(void *unused)
{
	cJSON *nodes = stack_get(stack, 0, "/v1/nodes");
	const cJSON *node = json_item(nodes, "test-node");
	const char *source = cJSON_GetStringValue(json_at(node, "source.state"));
	bool fresh = source && strcmp(source, "fresh") == 0;

	(void)unused;
	cJSON_Delete(nodes);
	return fresh;
}

static bool has_saved(void *unused)
{
	cJSON *status = stack_get(stack, 0, "/v1/status");
	bool saved = cJSON_IsNumber(json_at(status, "database.lastSaveAgeSeconds")) &&
		     stack_metric(stack, 0, "evenkeel_record_bytes_total") > 0;

	(void)unused;
	cJSON_Delete(status);
	return saved;
}

static void life_goes_on(void **state)
{
	static const char *const fast[] = {"--interval", "1s", NULL};
	char *dir = mem_printf("%s/state", stack->folder);
	const char *const more[] = {"--state-dir", dir, "--save-interval", "1s", "--record",
				    dir,	   NULL};
	struct stack_aggregator *a = &stack->aggregators[0];

	(void)state;
	a->more = more;
	stack_start_aggregator(stack, 0);
	assert_true(await(are_filtered, &a->pid, 10));
	stack_start_agent(stack, 1, fast);
	assert_true(await(has_node, NULL, 30));
	assert_true(await(has_saved, NULL, 30));
	assert_int_equal(kill(a->pid, SIGHUP), 0);
	assert_true(are_filtered(&a->pid));
	assert_int_equal(stack_stop_agent(stack, SIGTERM), 0);
	assert_int_equal(process_stop(a->pid, SIGTERM), 0);
	a->pid = 0;
	stack_start_aggregator(stack, 0);
	assert_true(await(are_filtered, &a->pid, 10));
	free(dir);
}

static void write_file(const char *path, mode_t mode, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, mode), 0);
}

/* One of the runs is after the start. */
static bool has_run_twice(void *mark)
{
	struct stat st;

	return stat(mark, &st) == 0 && st.st_size >= 4;
}

static void a_program_for_credentials_runs(void **state)
{
	char *plugin = mem_printf("%s/plugin", stack->folder);
	char *mark = mem_printf("%s/ran", stack->folder);
	char *kubeconfig = mem_printf("%s/kubeconfig", stack->folder);
	char *script = mem_printf("#!/bin/sh\necho x >>%s\n", mark);
	char *config = mem_printf(
		"apiVersion: v1\nkind: Config\ncurrent-context: c\n"
		"clusters: [{name: c, cluster: {server: 'https://127.0.0.1:%d'}}]\n"
		"users: [{name: u, user: {exec: {apiVersion: "
		"client.authentication.k8s.io/v1, interactiveMode: Never, command: %s}}}]\n"
		"contexts: [{name: c, context: {cluster: c, user: u}}]\n",
		free_port(), plugin);
	char *log = mem_printf("%s/log", stack->folder);
	char *listen = mem_printf("127.0.0.1:%d", free_port());
	char *ingest = mem_printf("ipc://%s/ingest", stack->folder);
	char *argv[] = {(char *)program_path("evenkeel-aggregator"),
			(char *)"--kubeconfig",
			kubeconfig,
			(char *)"--listen",
			listen,
			(char *)"--ingest",
			ingest,
			NULL};

	(void)state;
	write_file(plugin, 0700, script);
	write_file(kubeconfig, 0600, config);
	stack->aggregators[1].pid = process_start(log, argv);
	assert_true(await(has_run_twice, mark, 30));
	free(plugin);
	free(mark);
	free(kubeconfig);
	free(script);
	free(config);
	free(log);
	free(listen);
	free(ingest);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(life_goes_on, setup, teardown),
		cmocka_unit_test_setup_teardown(a_program_for_credentials_runs, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
