/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evenkeel slack over a dump, over a server, and over that server's snapshot, as a person runs it.
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

#include "shared/buf.h"
#include "shared/mem.h"
#include "tests/process.h"
#include "tests/stack.h"

static struct stack *stack;
static char *dump;

/* Ten nodes of 4 CPUs and 16Gi, with 2400m and 6Gi requested on each. */
static void write_cluster(const char *path, const char *more)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs("apiVersion: v1\nkind: List\nitems:\n", f);
	for (int i = 0; i < 10; i++)
		fprintf(f,
			"- {apiVersion: v1, kind: Node, metadata: {name: node-%d}, status: "
			"{allocatable: {cpu: '4', memory: 16Gi, pods: '110'}, conditions: "
			"[{type: Ready, status: 'True'}]}}\n"
			"- {apiVersion: v1, kind: Pod, metadata: {name: app-%d, namespace: "
			"shop, uid: u%d}, spec: {nodeName: node-%d, containers: [{name: c, "
			"resources: {requests: {cpu: 2400m, memory: 6Gi}}}]}}\n",
			i, i, i, i);
	fputs(more, f);
	assert_int_equal(fclose(f), 0);
}

static int make_files(void **state)
{
	(void)state;
	if (sodium_init() < 0)
		return -1;
	unsetenv("EVENKEEL_SERVER");
	stack = stack_new();
	dump = mem_printf("%s/dump.yaml", stack->folder);
	write_cluster(dump, "");
	return 0;
}

static int remove_files(void **state)
{
	(void)state;
	stack_free(stack, 0);
	free(dump);
	return 0;
}

/* words: "slack -o json"; "DUMP" stands for --snapshot and the file. out and err are replaced. */
static int run(const char *words, struct buf *out, struct buf *err)
{
	char *copy = mem_strdup(words), *save, *argv[16] = {(char *)program_path("evenkeel")};
	size_t n = 1;
	int code;

	for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		if (strcmp(word, "DUMP") == 0) {
			argv[n++] = (char *)"--snapshot";
			argv[n++] = dump;
		} else {
			argv[n++] = word;
		}
	}
	buf_clear(out);
	buf_clear(err);
	code = process_run(argv, out, err);
	buf_add_str(out, "");
	buf_add_str(err, "");
	free(copy);
	return code;
}

#define NO_USAGE "evenkeel: no usage is in the snapshot: give measurements with --usage\n"

static void test_dump(void **state)
{
	static const struct {
		const char *words;
		int code;
		const char *out, *err; /* out NULL: does not matter */
	} cases[] = {
		{"slack DUMP --extra-capacity-base allocatable", 4,
		 "CLASS  CPU-REQ  MEM-REQ  WANTED  PLACED  UNPLACED  SLOTS  FRAGMENTED  STATE\n"
		 "unit      800m    3.2Gi       5       5         0     20          0%  placed\n"
		 "\n"
		 "Slack shall be at least 4 CPU and 16.0Gi: 10% of the 40 CPU and 160.0Gi that "
		 "nodes can give. 10\n"
		 "nodes are ready, and can give pods 40 CPU and 160.0Gi.\n",
		 NO_USAGE},
		{"slack DUMP --no-headers", 4,
		 "unit  800m  3.2Gi  3  3  0  20  0%  placed\n"
		 "\n"
		 "Slack shall be at least 2.40 CPU and 6.0Gi: 10% of the 24 CPU and 60.0Gi that "
		 "pods request. 10 nodes\n"
		 "are ready, and can give pods 40 CPU and 160.0Gi.\n",
		 NO_USAGE},
		{"slack DUMP --extra-capacity-min-rate 90% --extra-capacity-base allocatable "
		 "--slack-granularity 4",
		 3, NULL, "evenkeel: 26 placeholders find no place; 7 more nodes would help\n"},
		{"slack DUMP unit --node node-0 --slack-granularity 10", 4, NULL, NO_USAGE},
		{"slack DUMP -o balloons", 0, NULL, ""},
		{"slack DUMP -o yaml --format capacitybuffer", 0, NULL, ""},
		{"slack DUMP --extra-capacity-min-rate 1", 2, "",
		 "evenkeel: --extra-capacity-min-rate: \"1\" is not in [0, 1)\n"},
		{"slack DUMP --extra-capacity-base free", 2, "",
		 "evenkeel: --extra-capacity-base: \"free\" is neither requested nor "
		 "allocatable\n"},
		{"slack DUMP a b", 2, "",
		 "evenkeel: slack takes one class, and not \"b\" as well\n"},
		{"slack DUMP unit -o balloons", 2, "",
		 "evenkeel: objects for kubectl are of all classes: give no class and no "
		 "--node\n"},
		{"slack --slack-granularity 3", 2, "",
		 "evenkeel: --slack-granularity goes with --snapshot; a server has its own\n"},
	};
	struct buf out = BUF_INIT, err = BUF_INIT;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int code = run(cases[i].words, &out, &err);

		if (code != cases[i].code)
			fail_msg("%s: exit %d\n%s%s", cases[i].words, code, out.data, err.data);
		if (cases[i].out)
			assert_string_equal(out.data, cases[i].out);
		assert_string_equal(err.data, cases[i].err);
	}
	buf_fini(&out);
	buf_fini(&err);
}

static bool is_planned(void *ctx)
{
	return stack_metric(ctx, 0, "evenkeel_planner_steps_total") >= 1;
}

/* What the snapshot of a server says is what the server says, but for the time. */
static void test_server_and_its_snapshot(void **state)
{
	struct buf online = BUF_INIT, offline = BUF_INIT, err = BUF_INIT, body = BUF_INIT;
	char *words, *url, *path = mem_printf("%s/snapshot.json", stack->folder);
	FILE *f;

	(void)state;
	stack->aggregators[0].snapshot_path = dump;
	stack_start_aggregator(stack, 0);
	assert_true(await(is_planned, stack, 60));
	words = mem_printf("slack -o wide --server http://127.0.0.1:%d",
			   stack->aggregators[0].http_port);
	assert_int_equal(run(words, &online, &err), 4);
	assert_string_equal(err.data,
			    "evenkeel: no node is measured: slots are by requests alone\n");
	free(words);
	url = mem_printf("http://127.0.0.1:%d/v1/snapshot", stack->aggregators[0].http_port);
	assert_int_equal(http_get(url, &body), 200);
	free(url);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(body.data, 1, body.len, f), body.len);
	assert_int_equal(fclose(f), 0);
	words = mem_printf("slack -o wide --snapshot %s", path);
	assert_int_equal(run(words, &offline, &err), 4);
	assert_string_equal(offline.data, online.data);
	free(words);
	words = mem_printf("slack --explain --snapshot %s", path);
	run(words, &offline, &err);
	/* It found them where they stand. */
	assert_null(strstr(offline.data, "is placed"));
	free(words);
	assert_int_equal(process_stop(stack->aggregators[0].pid, SIGTERM), 0);
	stack->aggregators[0].pid = 0;
	buf_fini(&online);
	buf_fini(&offline);
	buf_fini(&err);
	buf_fini(&body);
	free(path);
}

/* Without a cluster there is nothing to plan for. */
static void test_no_cluster(void **state)
{
	struct buf out = BUF_INIT, err = BUF_INIT;
	char *words;

	(void)state;
	stack->aggregators[0].snapshot_path = NULL;
	stack_start_aggregator(stack, 0);
	words = mem_printf("slack --server http://127.0.0.1:%d", stack->aggregators[0].http_port);
	assert_int_equal(run(words, &out, &err), 4);
	assert_non_null(strstr(err.data, "nothing is known of the cluster's nodes and pods"));
	free(words);
	assert_int_equal(process_stop(stack->aggregators[0].pid, SIGTERM), 0);
	stack->aggregators[0].pid = 0;
	buf_fini(&out);
	buf_fini(&err);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dump),
		cmocka_unit_test(test_server_and_its_snapshot),
		cmocka_unit_test(test_no_cluster),
	};

	return cmocka_run_group_tests(tests, make_files, remove_files);
}
