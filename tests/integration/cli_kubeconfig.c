/* SPDX-License-Identifier: Apache-2.0 */
/* The command beside kubeconfigs, where no API server answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shared/mem.h"
#include "tests/process.h"

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static char *folder, *config; /* a kubeconfig in it */

static int open_folder(void **state)
{
	(void)state;
	folder = folder_make();
	config = mem_printf("%s/config", folder);
	return 0;
}

static int close_folder(void **state)
{
	(void)state;
	folder_remove(folder);
	free(config);
	return 0;
}

static void write_config(const char *text)
{
	FILE *file = fopen(config, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* By the kubeconfig as the default one. says: what one of the outputs holds. */
static void expect(const char *const *words, int code, const char *says)
{
	char *argv[8] = {(char *)program_path("evenkeel")};
	struct buf out = BUF_INIT, err = BUF_INIT;
	int got;

	for (size_t n = 1; *words; words++, n++)
		argv[n] = (char *)*words;
	setenv("KUBECONFIG", config, 1);
	got = process_run(argv, &out, &err);
	buf_add_str(&out, "");
	buf_add_str(&err, "");
	if (got != code || (!strstr(out.data, says) && !strstr(err.data, says)))
		fail_msg("%s: %d instead of %d: %s%s", argv[1], got, code, out.data, err.data);
	buf_fini(&out);
	buf_fini(&err);
}

/* A busy machine may take longer than the limit to start a shell. */
static bool starts(void *path)
{
	expect(WORDS("nodes", "--timeout=200ms"), 1, "did not end within 0.2s");
	return access(path, F_OK) == 0;
}

/* --timeout bounds an exec plugin; completion starts none. */
static void test_exec_plugins(void **state)
{
	char *started = mem_printf("%s/started", folder);
	char *text = mem_printf(
		"current-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\n"
		"clusters: [{name: c, cluster: {server: \"https://127.0.0.1:1\"}}]\n"
		"users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, "
		"interactiveMode: Never, command: sh, args: [\"-c\", \"touch %s; exec sleep "
		"100\"]}}}]\n",
		started);

	(void)state;
	write_config(text);
	expect(WORDS("__complete", "nodes", ""), 0, ":4\n");
	assert_int_not_equal(access(started, F_OK), 0);
	assert_true(await(starts, started, 20));
	free(text);
	free(started);
}

/* What is about the program itself works beside a kubeconfig that cannot be used. */
static void test_commands_without_a_cluster(void **state)
{
	static const char says[] = "without --server the cluster of the kubeconfig answers: ";

	(void)state;
	write_config("current-context: a\n");
	expect(WORDS("completion", "bash"), 0, "complete");
	expect(WORDS("glossary"), 0, "");
	expect(WORDS("options"), 0, "--timeout");
	expect(WORDS("version"), 0, says);
	expect(WORDS("version", "-o", "json"), 0, "{\"client\":\"" EVENKEEL_VERSION "\"}\n");
	expect(WORDS("nodes"), 2, says);
}

/* The reason says where the server's address comes from, and doctor's advice how to change it. */
static void test_unreachable(void **state)
{
	char *absent = mem_printf("(no kubeconfig: %s does not exist)\n", config);
	char *names = mem_printf("https://127.0.0.1:1: cannot be reached: Connection refused; the "
				 "kubeconfig %s names this server; --server http://127.0.0.1:2020 "
				 "asks a local aggregator\n",
				 config);

	(void)state;
	write_config("current-context: a\ncontexts: [{name: a, context: {cluster: c}}]\n"
		     "clusters: [{name: c, cluster: {server: \"https://127.0.0.1:1\"}}]\n");
	expect(WORDS("nodes"), 1, names);
	expect(WORDS("doctor"), 3, "      Name another cluster with --kubeconfig or --context");
	expect(WORDS("nodes", "--kubeconfig", config), 1, "refused\n");
	remove(config);
	expect(WORDS("nodes"), 1, absent);
	expect(WORDS("doctor"), 3, "      In a cluster, --kubeconfig or --context");
	expect(WORDS("nodes", "--context", "foo"), 2, "no kubeconfig to take the context foo from");
	free(absent);
	free(names);
}

/*
 * Files that name no cluster count as none: the aggregator of this machine is the server. Root tries
 * it on a network of its own, where none runs.
 */
static void test_no_cluster(void **state)
{
	static const char *const texts[] = {"", "current-context: \"\"\n"};

	(void)state;
	if (geteuid() == 0)
		assert_int_equal(unshare(CLONE_NEWNET), 0);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		write_config(texts[i]);
		expect(WORDS("nodes", "--timeout=5s"), 1, "http://127.0.0.1:2020");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exec_plugins),
		cmocka_unit_test(test_commands_without_a_cluster),
		cmocka_unit_test(test_unreachable),
		cmocka_unit_test(test_no_cluster),
	};

	return cmocka_run_group_tests(tests, open_folder, close_folder);
}
