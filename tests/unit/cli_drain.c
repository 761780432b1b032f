/* SPDX-License-Identifier: Apache-2.0 */
/* What evenkeel drain prints of an answer: the commands, and what stops all drains. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "aggregator/cli/answer.h"
#include "shared/mem.h"

#define HEAD(owed, wave)                                                                           \
	"{'planned':'2026-01-01T12:00:00Z','useCap':'on','verdicts':{'drain':2},'throttled':{"     \
	"'state':false},'owed':{" owed "},'wave':" wave ",'items':[{'name':'a','verdict':'drain'," \
	"'reasons':[]},{'name':'b','verdict':'drain','reasons':[]}]}"
#define MOVE(name, kind, of, more)                                                                 \
	"{'namespace':'shop','name':'" name "','uid':'u-" name                                     \
	"','to':'c','workload':{'kind':'" kind "','name':'" of "'" more "}"
#define WAVE(any, first)                                                                           \
	"{'pods':4,'robust':true,'evictions':'policy/v1beta1','anyOrder':" any                     \
	",'nodes':[{'name':'a','moves':[" first                                                    \
	"]},{'name':'b','unmanaged':true,'moves':[{'namespace':'shop','name':'bare','deleted':"    \
	"true}]}],'destinations':[],'disruptions':[]}"
#define TWO MOVE("web-1", "Deployment", "web", "}") "," MOVE("db-0", "StatefulSet", "db", "}")
#define STEPS                                                                                      \
	MOVE("web-1", "Deployment", "web", "},'step':1")                                           \
	"," MOVE("rs-1", "ReplicaSet", "rs", ",'replicas':3},'step':1") "," MOVE(                  \
		"web-2", "Deployment", "web", "},'step':1") "," MOVE("web-3", "Deployment", "web", \
								     "},'step':2")

static char *print(int output, const char *quoted)
{
	struct cli_options options = {.output = output};
	struct cli cli = {.options = &options};
	char *json = mem_strdup(quoted), *out;

	for (char *c = json; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	assert_int_equal(answer_show(&cli, &drain_answer, json, strlen(json)), 0);
	out = mem_strdup(cli.out.data ? cli.out.data : "");
	buf_fini(&cli.out);
	buf_fini(&cli.rows);
	free(json);
	return out;
}

/* Behind the functions, if there are any. */
static void expect_commands(const char *wave, bool functions, const char *expected)
{
	char *out = print(OUTPUT_COMMANDS, wave), *cordon = strstr(out, "kubectl cordon");

	assert_non_null(cordon);
	assert_true(functions == (cordon != out));
	assert_string_equal(cordon, expected);
	free(out);
}

static void test_nodes_go_at_once_where_any_order_holds(void **state)
{
	(void)state;
	expect_commands(HEAD("", WAVE("true", TWO)), false,
			"kubectl cordon a b\n"
			"kubectl drain a --ignore-daemonsets\n"
			"kubectl drain b --ignore-daemonsets --force\n");
}

static void test_each_goes_after_the_one_before_where_not(void **state)
{
	(void)state;
	expect_commands(HEAD("", WAVE("false", TWO)), true,
			"kubectl cordon a b\n"
			"remember web-1 shop deployment/web\n"
			"remember db-0 shop statefulset/db\n"
			"kubectl drain a --ignore-daemonsets\n"
			"settle\n"
			"kubectl drain b --ignore-daemonsets --force\n");
}

static void test_steps_are_evicted_and_waited_for(void **state)
{
	(void)state;
	expect_commands(HEAD("", WAVE("true", STEPS)), true,
			"kubectl cordon a b\n"
			"remember web-1 shop deployment/web\n"
			"remember rs-1 shop replicaset/rs\n"
			"evict web-1 shop u-web-1\n"
			"evict rs-1 shop u-rs-1\n"
			"evict web-2 shop u-web-2\n"
			"settle\n"
			"kubectl drain a --ignore-daemonsets\n"
			"kubectl drain b --ignore-daemonsets --force\n");
}

/*
 * Before the last step: a placeholder, names that the API has not, and a number of steps that no
 * node has. Of other workloads nothing is remembered.
 */
#define ODD                                                                                        \
	"{'namespace':'evenkeel','name':'slack-0','uid':'u','to':'c','placeholder':true,'step':1}" \
	",{'namespace':'shop','name':'a b','uid':'u','to':'c','step':1},{'namespace':'$x','name':" \
	"'a','uid':'u','to':'c','step':1},{'namespace':'shop','name':'a','uid':'','to':'c',"       \
	"'step':1},{'namespace':'shop','name':'a','uid':'u;v','to':'c','step':1}," MOVE(           \
		"w-1", "Widget", "w",                                                              \
		"},'step':1") "," MOVE("web-1", "Deployment", "`x`",                               \
				       "},'step':1") "," MOVE("gang-1", "Deployment", "gang",      \
							      "},'from':'d','step'"                \
							      ":2") "," MOVE("far-"                \
									     "1",                  \
									     "Depl"                \
									     "oyme"                \
									     "nt",                 \
									     "far",                \
									     "},'"                 \
									     "step"                \
									     "':"                  \
									     "1000"                \
									     "01")

static void test_evictions_are_of_pods_that_can_be_named(void **state)
{
	(void)state;
	expect_commands(HEAD("", WAVE("true", ODD)), true,
			"kubectl cordon a b\n"
			"evict w-1 shop u-w-1\n"
			"evict web-1 shop u-web-1\n"
			"settle\n"
			"evict gang-1 shop u-gang-1\n"
			"kubectl drain a --ignore-daemonsets\n"
			"kubectl drain b --ignore-daemonsets --force\n");
}

/* A name of a file may be anything: it stays one word of the shell, and moves no cursor. */
static void test_odd_names_are_quoted(void **state)
{
	(void)state;
	expect_commands(HEAD("", "{'pods':0,'anyOrder':true,'nodes':[{'name':'a;b','moves':[],"
				 "'emptyDir':true},{'name':'$c\\u0027\\u001bd','moves':[]}]}"),
			false,
			"kubectl cordon 'a;b' '$c'\\''?d'\n"
			"kubectl drain 'a;b' --ignore-daemonsets --delete-emptydir-data\n"
			"kubectl drain '$c'\\''?d' --ignore-daemonsets\n");
}

/* Of nodes that are named, only these. */
static void test_commands_are_for_what_was_named(void **state)
{
	static const char answer[] =
		"{\"verdicts\":{},\"wave\":{\"nodes\":[{\"name\":\"a\",\"moves\":[]},{\"name\":"
		"\"b\",\"moves\":[]},{\"name\":\"c\",\"moves\":[]}]},\"items\":[{\"name\":\"b\"}]}";
	static char *names[] = {(char *)"b"};
	struct cli_options options = {.output = OUTPUT_COMMANDS};
	struct cli cli = {.options = &options, .operands = names, .operand_count = 1};

	(void)state;
	answer_show(&cli, &drain_answer, answer, strlen(answer));
	assert_string_equal(cli.out.data, "kubectl cordon b\n"
					  "kubectl drain b --ignore-daemonsets\n");
	buf_fini(&cli.out);
	buf_fini(&cli.rows);
}

/* Kubernetes below 1.22 refuses policy/v1. */
static void test_evictions_are_of_the_api_that_was_found(void **state)
{
	char *out = print(OUTPUT_COMMANDS, HEAD("", WAVE("true", STEPS)));

	(void)state;
	assert_non_null(strstr(
		out, "  is_gone \"$@\" ||\n"
		     "    printf '{\"apiVersion\":\"policy/v1beta1\",\"kind\":\"Eviction\","
		     "\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\"},\"deleteOptions\":{"
		     "\"preconditions\":{\"uid\":\"%s\"}}}' \"$@\" |\n"
		     "    kubectl create --raw \"/api/v1/namespaces/$2/pods/$1/eviction\" -f - "
		     ">/dev/null\n"));
	free(out);
}

#define BARE                                                                                       \
	HEAD("", "{'pods':0,'emptyNodes':0,'robust':true,'anyOrder':true,'nodes':[{'name':'a',"    \
		 "'moves':[{'namespace':'shop','name':'bare','deleted':true}]}],'destinations':["  \
		 "],'disruptions':[]}")

static void test_what_is_deleted_does_not_move(void **state)
{
	static char *names[] = {(char *)"a"};
	struct cli_options options = {.output = OUTPUT_TABLE};
	struct cli cli = {.options = &options, .operands = names, .operand_count = 1};
	char *out = print(OUTPUT_TABLE, BARE), *json = mem_strdup(BARE);

	(void)state;
	assert_non_null(strstr(out, "Now, in this order: a. 0 are empty, 0 pods move, 1 pod is "
				    "deleted.\n"));
	assert_non_null(strstr(out, "a     shop/bare  deleted, not moved"));
	assert_null(strstr(out, "There is room"));
	assert_null(strstr(out, "DESTINATION"));
	free(out);
	for (char *c = json; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	answer_show(&cli, &drain_answer, json, strlen(json));
	assert_non_null(strstr(cli.out.data, "it goes now, and 0 pods move, 1 pod is deleted."));
	assert_null(strstr(cli.out.data, "There is room"));
	buf_fini(&cli.out);
	buf_fini(&cli.rows);
	free(json);
}

static void test_the_line_says_what_is_proven(void **state)
{
	char *any = print(OUTPUT_TABLE, HEAD("", WAVE("true", TWO)));
	char *ordered = print(OUTPUT_TABLE, HEAD("", WAVE("false", TWO)));

	(void)state;
	assert_non_null(strstr(any, "There is room as well"));
	assert_null(strstr(any, "Drain them in this order"));
	assert_null(strstr(ordered, "There is room as well"));
	assert_non_null(strstr(ordered, "Drain them in this order"));
	assert_non_null(strstr(ordered, "deleted, not moved"));
	free(any);
	free(ordered);
}

/* Whether use is known matters for the plan, and not for a node that may go. */
/* Only where the pod may have moved lately. */
static void test_pods_that_came_lately_are_told(void **state)
{
	char *out = print(OUTPUT_TABLE, HEAD("", WAVE("true", MOVE("web-1", "Deployment", "web",
								   "},'ageSeconds':45"))));

	(void)state;
	assert_non_null(strstr(out, "1 of them is younger than 10 minutes (AGE)"));
	assert_non_null(strstr(out, " AGE\n"));
	assert_non_null(strstr(out, " 45s\n"));
	free(out);
	out = print(OUTPUT_TABLE, HEAD("", WAVE("true", TWO)));
	assert_null(strstr(out, "AGE"));
	free(out);
}

static void test_a_node_that_may_go_is_no_failure(void **state)
{
	static const char answer[] =
		"{\"useCap\":\"off: no usage data\",\"verdicts\":{},\"wave\":null,\"items\":[{"
		"\"name\":\"a\",\"verdict\":\"drain\"},{\"name\":\"b\",\"verdict\":\"drained\"}]}";
	static char *names[] = {(char *)"a", (char *)"b"};
	struct cli_options options = {.output = OUTPUT_JSON};
	struct cli cli = {.options = &options, .operands = names, .operand_count = 2};

	(void)state;
	assert_int_equal(answer_show(&cli, &drain_answer, answer, strlen(answer)), CLI_OK);
	options.strict = true;
	assert_int_equal(answer_show(&cli, &drain_answer, answer, strlen(answer)), CLI_STALE);
	options.strict = false;
	cli.operand_count = 0;
	assert_int_equal(answer_show(&cli, &drain_answer, answer, strlen(answer)), CLI_STALE);
	buf_fini(&cli.out);
}

static void test_soft_taints_follow_the_candidates(void **state)
{
	char *out = print(OUTPUT_SOFT_TAINTS,
			  "{'verdicts':{},'wave':null,'items':[{'name':'a','verdict':'drain'},"
			  "{'name':'b','verdict':'unneeded','softTainted':true},{'name':'c',"
			  "'verdict':'needed','softTainted':true},{'name':'d','verdict':'needed'},"
			  "{'name':'e','verdict':'notExamined','softTainted':true},{'name':'f',"
			  "'verdict':'unneeded'}]}");

	(void)state;
	assert_string_equal(
		out, "kubectl taint nodes a f evenkeel.io/drain-candidate=:PreferNoSchedule\n"
		     "kubectl taint nodes c evenkeel.io/drain-candidate:PreferNoSchedule-\n");
	free(out);
}

static void test_what_stops_all_is_first(void **state)
{
	char *out = print(OUTPUT_TABLE,
			  HEAD("'why':'pod shop/web-3, which replaces an evicted one, has been "
			       "unschedulable for 12 s'",
			       "null"));

	(void)state;
	assert_true(strncmp(out, "No more nodes are drained: pod shop/web-3,", 42) == 0);
	free(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nodes_go_at_once_where_any_order_holds),
		cmocka_unit_test(test_each_goes_after_the_one_before_where_not),
		cmocka_unit_test(test_steps_are_evicted_and_waited_for),
		cmocka_unit_test(test_evictions_are_of_pods_that_can_be_named),
		cmocka_unit_test(test_odd_names_are_quoted),
		cmocka_unit_test(test_commands_are_for_what_was_named),
		cmocka_unit_test(test_evictions_are_of_the_api_that_was_found),
		cmocka_unit_test(test_what_is_deleted_does_not_move),
		cmocka_unit_test(test_the_line_says_what_is_proven),
		cmocka_unit_test(test_what_stops_all_is_first),
		cmocka_unit_test(test_pods_that_came_lately_are_told),
		cmocka_unit_test(test_a_node_that_may_go_is_no_failure),
		cmocka_unit_test(test_soft_taints_follow_the_candidates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
