/* SPDX-License-Identifier: Apache-2.0 */
/* What evenkeel slack prints of an answer, and its exit status. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "aggregator/cli/answer.h"
#include "shared/mem.h"

#define TARGET                                                                                     \
	"'target':{'nodes':10,'allocatable':{'cpuMillicores':40000,'memoryBytes':171798691840},"   \
	"'requested':{'cpuMillicores':24000,'memoryBytes':103079215104},'extra':{"                 \
	"'cpuMillicores':4000,'memoryBytes':17179869184},'from':'rate','rate':0.1,'base':"         \
	"'allocatable','unit':{'cpuMillicores':800,'memoryBytes':3435973836}}"
#define UNIT                                                                                       \
	"{'name':'unit','origin':'unit','verdict':'placed','shape':{'cpuMillicores':800,"          \
	"'memoryBytes':3435973836},'target':5,'wanted':5,'placed':5,'unplaced':0,'slots':{"        \
	"'byRequests':20,'byUse':12},'fragmentation':0.004,'nodes':[{'node':'n1','count':2},"      \
	"{'node':'n2','count':3}]}"
#define WEB                                                                                        \
	"{'name':'shop/Deployment/web','origin':'workload','verdict':'unplaced','reason':"         \
	"'1 NodeResourcesFit','shape':{'cpuMillicores':2000,'memoryBytes':1073741824},'target':2," \
	"'wanted':3,'placed':1,'unplaced':2,'slots':{'byRequests':1,'atLeast':true},"              \
	"'fragmentation':0.25,'nodes':[{'node':'n1','count':1}]}"
#define LIST(head, items, total, tail)                                                             \
	"{" head TARGET ",'total':{" total "},'items':[" items "]" tail "}"
#define GOOD LIST("'useCap':'on',", UNIT, "'wanted':5,'placed':5,'unplaced':0,'nodesToAdd':0", "")
#define MISSING                                                                                    \
	LIST("'useCap':'on',", WEB "," UNIT, "'wanted':8,'placed':6,'unplaced':2,'nodesToAdd':2",  \
	     ",'nodesToAdd':[{'like':'n1','instanceType':'m5.large','gives':{'cpuMillicores':"     \
	     "4000,'memoryBytes':17179869184},'count':2}],'notes':[{'about':'shop/Deployment/x',"  \
	     "'text':'is no count'}],'narration':['it was so','and so']")

#define HUGE                                                                                       \
	"{'name':'shop/Deployment/"                                                                \
	"huge','origin':'workload','verdict':'impossible','reason':'none "                         \
	"is so large','shape':{'cpuMillicores':90000,'memoryBytes':1073741824},'target':2,"        \
	"'wanted':2,'placed':0,'unplaced':2,'slots':{'byRequests':0},'fragmentation':1,"           \
	"'nodes':[]}"
/* What more nodes do not help, and a promise that is not yet one. */
#define HELPLESS                                                                                   \
	"{'useCap':'on','target':{'nodes':1,'allocatable':{'cpuMillicores':4000,'memoryBytes':"    \
	"17179869184},'requested':{'cpuMillicores':1000,'memoryBytes':1073741824},'extra':{"       \
	"'cpuMillicores':100,'memoryBytes':107374182},'from':'rate','rate':0.1,'base':'requested'" \
	","                                                                                        \
	"'arrivalSpans':7,'arrivalSpansNeeded':480,'unit':{'cpuMillicores':800,'memoryBytes':"     \
	"3435973836}},'total':{'wanted':5,'placed':1,'unplaced':4,'nodesToAdd':1},'items':[" HUGE  \
	"," WEB "],'notes':[{'about':'shop/Deployment/huge','text':'it is too large'}]}"

static const char words[] = "Slack shall be at least 4 CPU and 16.0Gi: 10% of the 40 CPU and "
			    "160.0Gi that nodes can give. "
			    "10\nnodes are ready, and can give pods 40 CPU and 160.0Gi.\n";

struct given {
	struct cli_options options;
	const char *json;
	int code;
	const char *out; /* NULL: the words do not matter */
	const char *reason;
};

static void check(const struct given *g)
{
	struct cli cli = {.options = &g->options};
	char *json = mem_strdup(g->json);

	if (g->options.output != OUTPUT_BALLOONS)
		for (char *c = json; *c; c++)
			*c = *c == '\'' ? '"' : *c;
	assert_int_equal(answer_show(&cli, &slack_answer, json, strlen(json)), g->code);
	assert_string_equal(cli.reason.text, g->reason);
	if (g->out)
		assert_string_equal(cli.out.data ? cli.out.data : "", g->out);
	buf_fini(&cli.out);
	free(json);
}

static void test_table(void **state)
{
	char *want =
		mem_printf("CLASS  CPU-REQ  MEM-REQ  WANTED  PLACED  UNPLACED  SLOTS  USABLE  "
			   "FRAGMENTED  STATE\n"
			   "unit      800m    3.2Gi       5       5         0     20      12      "
			   "   <1%%  placed\n"
			   "\n"
			   "%s",
			   words);

	(void)state;
	check(&(struct given){.json = GOOD, .code = CLI_OK, .out = want, .reason = ""});
	free(want);
}

static void test_what_is_missing(void **state)
{
	char *want = mem_printf(
		"CLASS                ORIGIN    CPU-REQ  MEM-REQ  TARGET  WANTED  "
		"PLACED  UNPLACED  SLOTS  USABLE  FRAGMENTED  STATE     NODES\n"
		"shop/Deployment/web  workload        2    1.0Gi       2       3       1    "
		"     2     1+       -         25%%  unplaced  n1\n"
		"unit                 unit         800m    3.2Gi       5       5       5    "
		"     0     20      12         <1%%  placed    n1 (2), n2 (3)\n"
		"\n"
		"%sshop/Deployment/web: 2 find no place: 1 NodeResourcesFit\n"
		"2 more nodes like n1 of type m5.large (4 CPU and 16.0Gi for pods) "
		"would hold what finds no place.\n"
		"shop/Deployment/x: is no count\n",
		words);

	(void)state;
	check(&(struct given){
		.options = {.output = OUTPUT_WIDE},
		.json = MISSING,
		.code = CLI_REFUSED,
		.out = want,
		.reason = "2 placeholders find no place; 2 more nodes would help",
	});
	free(want);
}

/* Nobody is told of nodes to add where none of them would help. */
static void test_nothing_would_help(void **state)
{
	static const char json[] =
		"{'useCap':'on','target':{'nodes':0,'allocatable':{'cpuMillicores':0,"
		"'memoryBytes':0},'requested':{'cpuMillicores':0,'memoryBytes':0},'extra':{"
		"'cpuMillicores':0,'memoryBytes':0},'from':'rate','rate':0,'base':'requested'},"
		"'total':{'wanted':2,'placed':0,'unplaced':2,'nodesToAdd':0},'items':[" HUGE "]}";

	(void)state;
	check(&(struct given){
		.json = json,
		.code = CLI_REFUSED,
		.reason = "2 placeholders find no place: no node is large enough",
	});
}

static void test_explain_and_namespace(void **state)
{
	(void)state;
	check(&(struct given){
		.options = {.explain = true, .namespace = (char *)"shop", .no_headers = true},
		.json = MISSING,
		.code = CLI_REFUSED,
		.out = "shop/Deployment/web  2  1.0Gi  3  1  2  1+  25%  unplaced\n\nit was "
		       "so\nand so\n",
		.reason = "2 placeholders find no place; 2 more nodes would help",
	});
}

static void test_exits(void **state)
{
	static const struct given cases[] = {
		{{0},
		 LIST("'useCap':'on','stale':'the plan is 51 s old',", UNIT,
		      "'unplaced':0,'nodesToAdd':0", ""),
		 CLI_STALE,
		 NULL,
		 "the plan is 51 s old"},
		{{0},
		 LIST("'useCap':'off: no usage data',", "", "'unplaced':0,'nodesToAdd':0", ""),
		 CLI_STALE,
		 NULL,
		 "no node is measured: slots are by requests alone"},
		{{0},
		 LIST("'useCap':'on','stale':'x',", "", "'unplaced':1,'nodesToAdd':1", ""),
		 CLI_REFUSED,
		 NULL,
		 "1 placeholder finds no place; 1 more node would help"},
		{{0},
		 "{'kind':'QuotaList','items':[]}",
		 CLI_ERROR,
		 "",
		 "the answer is not one about slack; is that an evenkeel-aggregator of this "
		 "version?"},
		{{0},
		 "garbage",
		 CLI_ERROR,
		 "",
		 "the answer is not one about slack; is that an evenkeel-aggregator of this "
		 "version?"},
		{{.output = OUTPUT_BALLOONS},
		 "---\nkind: Namespace\n",
		 CLI_OK,
		 "---\nkind: Namespace\n",
		 ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		check(&cases[i]);
}

/* What a server says reaches no terminal as it is. */
static void test_control_characters(void **state)
{
	(void)state;
	check(&(struct given){
		.options = {.explain = true},
		.json = LIST("'useCap':'on',", "", "'unplaced':0,'nodesToAdd':0",
			     ",'narration':['a\\u001b[2Jb']"),
		.code = CLI_OK,
		.out = "a?[2Jb\n",
		.reason = "",
	});
}

static void test_what_more_nodes_do_not_help(void **state)
{
	(void)state;
	check(&(struct given){
		.json = HELPLESS,
		.code = CLI_REFUSED,
		.out = "CLASS                 CPU-REQ  MEM-REQ  WANTED  PLACED  UNPLACED  SLOTS  "
		       "FRAGMENTED  STATE\n"
		       "shop/Deployment/huge       90    1.0Gi       2       0         2      0    "
		       "    100%  impossible\n"
		       "shop/Deployment/web         2    1.0Gi       3       1         2     1+    "
		       "     25%  unplaced\n"
		       "\n"
		       "Slack shall be at least 100m CPU and 102.4Mi: 10% of the 1 CPU and 1.0Gi "
		       "that pods request. What\n"
		       "arrives while a node starts was watched for 7 of the 480 such times that "
		       "are needed; until then the\n"
		       "rate counts. 1 node is ready, and can give pods 4 CPU and 16.0Gi.\n"
		       "shop/Deployment/web: 2 find no place: 1 NodeResourcesFit\n"
		       "shop/Deployment/huge: it is too large\n",
		.reason = "4 placeholders find no place; 1 more node would help, but not 2 that no "
			  "node could hold"});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_what_more_nodes_do_not_help),
		cmocka_unit_test(test_what_is_missing),
		cmocka_unit_test(test_nothing_would_help),
		cmocka_unit_test(test_explain_and_namespace),
		cmocka_unit_test(test_exits),
		cmocka_unit_test(test_control_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
