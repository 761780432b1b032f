/* SPDX-License-Identifier: Apache-2.0 */
/* evenkeel scores: the request it makes, and the answer as a table and as an explanation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdlib.h>

#include "aggregator/cli/answer.h"

static const char answer[] =
	"{\"kind\":\"ScoreList\",\"items\":["
	"{\"node\":\"a\",\"score\":50,\"plugins\":[{\"name\":\"TargetLoadPacking\",\"variant\":"
	"\"corrected\","
	"\"score\":40,\"rung\":\"late 42s\"},{\"name\":\"Other\",\"score\":60,\"rung\":\"late "
	"42s\"}],"
	"\"reason\":\"cpu 75% of 40%\"},"
	"{\"node\":\"b\",\"score\":88,\"plugins\":[{\"name\":\"TargetLoadPacking\",\"variant\":"
	"\"corrected\","
	"\"score\":76,\"rung\":\"window 15m\",\"reason\":\"CPU would be at 31.6 %, within the "
	"target of "
	"40.0 % (1200m measured + 0m expected of 3800m) and more\\n\",\"terms\":["
	"{\"name\":\"cpuMean\",\"unit\":\"millicores\",\"value\":1250.25},"
	"{\"name\":\"memCapacity\",\"unit\":\"bytes\",\"value\":16777216000},"
	"{\"name\":\"share\",\"unit\":\"fraction\",\"value\":0.3125},"
	"{\"name\":\"missing\",\"unit\":\"\",\"value\":null}]},"
	"{\"name\":\"Other\",\"variant\":\"corrected\",\"score\":100,\"rung\":\"window "
	"15m\",\"reason\":\"idle\",\"terms\":[]}],"
	"\"reason\":\"idle\"},"
	"{\"node\":\"c\",\"score\":88,\"plugins\":[{\"name\":\"TargetLoadPacking\",\"score\":0,"
	"\"rung\":\"none\"}]}]}";

struct given {
	struct cli_options options;
	char *names[3];
	size_t name_count;
};

static void check(const struct given *g, const char *json, int want_code, const char *want,
		  const char *want_reason)
{
	struct cli cli = {.options = &g->options,
			  .operands = g->names,
			  .operand_count = g->name_count};

	assert_int_equal(answer_show(&cli, &scores_answer, json, strlen(json)), want_code);
	buf_add_str(&cli.out, "");
	if (want)
		assert_string_equal(cli.out.data, want);
	assert_string_equal(cli.reason.text, want_reason);
	buf_fini(&cli.out);
}

static void shows_the_best_first(void **state)
{
	struct given g = {.options = {.sort = 0}};
	struct given by_name = {.options = {.sort = 1, .no_headers = true, .limit = 1}};
	(void)state;

	check(&g, answer, CLI_OK,
	      "NODE  SCORE  TLP  Other  RUNG\n"
	      "b        88   76    100  window 15m\n"
	      "c        88    0      -  none\n"
	      "a        50   40     60  late 42s\n",
	      "");
	check(&by_name, answer, CLI_OK, "a  50  40  60  late 42s\n", "");
}

static void wide_shows_reasons(void **state)
{
	struct given g = {.options = {.output = OUTPUT_WIDE, .no_headers = true}};
	(void)state;

	check(&g, answer, CLI_OK,
	      "b  88  76  100  window 15m  idle\n"
	      "c  88   0    -  none        -\n"
	      "a  50  40   60  late 42s    cpu 75% of 40%\n",
	      "");
}

static void explains_every_term(void **state)
{
	struct given g = {.options = {.explain = true, .limit = 2}};
	(void)state;

	check(&g, answer, CLI_OK,
	      "b  score 88\n"
	      "  TargetLoadPacking 76  (corrected, window 15m)\n"
	      "    CPU would be at 31.6 %, within the target of 40.0 % (1200m measured + 0m "
	      "expected "
	      "of 3800m) and\n"
	      "    more?\n"
	      "    cpuMean          1250.25  millicores\n"
	      "    memCapacity  16777216000  bytes (15.6Gi)\n"
	      "    share             0.3125  fraction\n"
	      "    missing                -\n"
	      "  Other 100  (corrected, window 15m)\n"
	      "    idle\n"
	      "\n"
	      "c  score 88\n"
	      "  TargetLoadPacking 0  (-, none)\n",
	      "");
}

static const char fitting[] =
	"{\"fits\":1,\"refused\":{\"NodeResourcesFit\":1,\"TaintToleration\":2},\"items\":["
	"{\"node\":\"a\",\"score\":50,\"plugins\":[{\"name\":\"Other\",\"score\":50,\"rung\":"
	"\"window 15m\"}],\"reason\":\"r\",\"fits\":true},"
	"{\"node\":\"b\",\"score\":40,\"plugins\":[{\"name\":\"Other\",\"score\":40,\"rung\":"
	"\"window 15m\"}],\"reason\":\"r\",\"fits\":false,\"filter\":\"NodeResourcesFit\","
	"\"fitReason\":\"NodeResourcesFit: cpu\"}]}";

static void tells_whether_the_pod_fits(void **state)
{
	struct given table = {.options = {.sort = 0}}, wide = {.options = {.output = OUTPUT_WIDE}};
	struct given explain = {.options = {.explain = true}};

	(void)state;
	check(&table, fitting, CLI_OK,
	      "NODE  SCORE  FITS  Other  RUNG\n"
	      "a        50  yes      50  window 15m\n"
	      "b        40  no       40  window 15m\n",
	      "");
	check(&wide, fitting, CLI_OK,
	      "NODE  SCORE  FITS  Other  RUNG        REASON  REFUSED BY\n"
	      "a        50  yes      50  window 15m  r       -\n"
	      "b        40  no       40  window 15m  r       NodeResourcesFit: cpu\n",
	      "");
	check(&explain, fitting, CLI_OK,
	      "The pod fits on 1 of 4 nodes; refused by NodeResourcesFit on 1, TaintToleration on "
	      "2.\n"
	      "\n"
	      "a  score 50\n"
	      "    fits\n"
	      "  Other 50  (-, window 15m)\n"
	      "\n"
	      "b  score 40\n"
	      "    does not fit: NodeResourcesFit: cpu\n"
	      "  Other 40  (-, window 15m)\n",
	      "");
}

static void prints_warnings(void **state)
{
	static const char json[] =
		"{\"kind\":\"ScoreList\",\"warnings\":[\"pod.spec.x: ignored\"],\"items\":["
		"{\"node\":\"a\",\"score\":50,\"plugins\":[{\"name\":\"Other\",\"score\":60,"
		"\"rung\":\"window 5m\"}]}]}";
	struct given table = {.options = {.no_headers = true}};
	(void)state;

	check(&table, json, CLI_OK, "a  50  60  window 5m\nWarning: pod.spec.x: ignored\n", "");
}

static void named_nodes_have_to_fit(void **state)
{
	struct given both = {.names = {"a", "b"}, .name_count = 2};
	struct given json = {.options = {.output = OUTPUT_JSON}, .names = {"b"}, .name_count = 1};

	(void)state;
	check(&both, fitting, CLI_REFUSED, NULL,
	      "the pod does not fit on node \"b\": NodeResourcesFit: cpu");
	check(&json, fitting, CLI_REFUSED, NULL,
	      "the pod does not fit on node \"b\": NodeResourcesFit: cpu");
}

static void json_is_untouched(void **state)
{
	struct given g = {.options = {.output = OUTPUT_JSON}};
	(void)state;

	check(&g,
	      "{\"items\": [ {\"node\":\"a\", \"score\":1.50,\"plugins\":[{\"rung\":\"window "
	      "5m\"}]} ]}",
	      CLI_OK,
	      "{\"items\": [ {\"node\":\"a\", \"score\":1.50,\"plugins\":[{\"rung\":\"window "
	      "5m\"}]} ]}\n",
	      "");
}

static void exit_code_tells_staleness(void **state)
{
	struct given named = {.names = {"a"}, .name_count = 1};
	struct given strict = {.options = {.strict = true}};
	struct given any = {.options = {.sort = 0}};
	(void)state;

	check(&named, answer, CLI_STALE, NULL, "the usage of node \"a\" is late");
	check(&strict, answer, CLI_STALE, NULL, "2 of 3 nodes are not fresh (--strict)");
	check(&any, "{\"items\":[]}", CLI_STALE, "NODE  SCORE  RUNG\n",
	      "no node is known: has an evenkeel-agent been started?");
	check(&any,
	      "{\"items\":[{\"node\":\"x\",\"score\":1,\"plugins\":[{\"rung\":\"since start\"}]}]}",
	      CLI_OK, NULL, "");
	check(&any, "{\"items\":[{\"node\":\"x\",\"plugins\":[{\"rung\":\"expired\"}]}]}",
	      CLI_STALE, NULL,
	      "no node is fresh: nothing was heard of the 1 known for 30s or more");
}

static void survives_odd_shapes(void **state)
{
	static const char *const odd[] = {
		"{\"items\":[null,{},{\"node\":3,\"plugins\":{}},{\"node\":\"a\",\"plugins\":[1,{"
		"\"name\":2,"
		"\"terms\":[{},{\"name\":\"t\",\"value\":1e300}]}],\"reason\":7}]}",
		"{\"items\":[{\"plugins\":null}]}",
	};
	static const char *const bad[] = {"", "{", "{}", "[1]", "{\"items\":3}"};
	struct given explain = {.options = {.explain = true}}, table = {.options = {.sort = 0}};
	(void)state;

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
		for (int e = 0; e < 2; e++) {
			const struct given *g = e ? &explain : &table;
			struct cli cli = {.options = &g->options};

			assert_int_equal(answer_show(&cli, &scores_answer, odd[i], strlen(odd[i])),
					 CLI_STALE);
			buf_fini(&cli.out);
		}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		check(&table, bad[i], CLI_ERROR, "",
		      "the answer is not a JSON list; is that an evenkeel-aggregator?");
}

/* All plugins fit in 80 columns, with room for names. */
static void six_plugins_fit(void **state)
{
	static const char six[] =
		"{\"items\":[{\"node\":\"ip-10-0-12-34.eu-central-1\",\"score\":100,\"plugins\":["
		"{\"name\":\"TargetLoadPacking\",\"score\":100,\"rung\":\"window 15m\"},"
		"{\"name\":\"LoadVariationRiskBalancing\",\"score\":100,\"rung\":\"window 15m\"},"
		"{\"name\":\"LowRiskOverCommitment\",\"score\":100,\"rung\":\"window 15m\"},"
		"{\"name\":\"Peaks\",\"score\":100,\"rung\":\"window 15m\"},"
		"{\"name\":\"NodeResourcesAllocatable\",\"score\":100,\"rung\":\"window 15m\"},"
		"{\"name\":\"LimitAware\",\"score\":100,\"rung\":\"window 15m\"}]}]}";
	struct cli_options o = {.output = OUTPUT_TABLE};
	struct cli cli = {.options = &o, .width = 80};
	(void)state;

	assert_int_equal(answer_show(&cli, &scores_answer, six, strlen(six)), CLI_OK);
	assert_string_equal(
		cli.out.data,
		"NODE                    SCORE  TLP  LVRB  LROC  PEAKS  ALLOC  LIMITS  RUNG\n"
		"ip-10-0-12-…-central-1    100  100   100   100    100    100     100  "
		"window 15m\n");
	buf_fini(&cli.out);
}

static void check_request(const struct cli *cli, const char *pod, const char *want)
{
	struct error reason = {""};
	cJSON *request = scores_request(cli, pod, &reason);
	char *got = cJSON_PrintUnformatted(request);

	assert_string_equal(got, want);
	free(got);
	cJSON_Delete(request);
}

static void writes_the_request(void **state)
{
	char *plugins[] = {"TargetLoadPacking", "a\"b"};
	char blend[] = "LimitAware=0.5,\"=10";
	struct given all = {
		.options = {.variant = "kep",
			    .blend = blend,
			    .explain = true,
			    .plugins = {plugins, 2}},
		.names = {"n1"},
		.name_count = 1,
	};
	struct cli cli = {.options = &all.options, .operands = all.names, .operand_count = 1};
	struct cli_options none = {.variant = NULL};
	(void)state;

	check_request(&cli, "{\"spec\":1}",
		      "{\"pod\":{\"spec\":1},\"nodes\":[\"n1\"],\"plugins\":"
		      "[\"TargetLoadPacking\",\"a\\\"b\"],"
		      "\"blend\":{\"LimitAware\":0.5,\"\\\"\":10},"
		      "\"variant\":\"kep\",\"explain\":true}");
	cli = (struct cli){.options = &none};
	check_request(&cli, "{}", "{\"pod\":{}}");
	none.pod = "pod.yaml";
	check_request(&cli, "{}", "{\"pod\":{},\"fits\":true}");
}

static void refuses_bad_blends(void **state)
{
	static char *const bad[] = {"A",    "A=",   "=1",    "A=0",	"A=-1",	   "A=1,",
				    ",A=1", "A=1x", "A=.5",  "A=1.",	"A=1e3",   "A=1,,B=2",
				    "A=01", "A= 1", "A=nan", "A=0.000", "A=1 ,B=1"};
	(void)state;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct cli_options o = {.blend = bad[i]};
		struct cli cli = {.options = &o};
		struct error reason = {""};

		if (scores_request(&cli, "{}", &reason))
			fail_msg("%s", bad[i]);
		assert_non_null(strstr(reason.text, "is not of the form PLUGIN=N"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shows_the_best_first),
		cmocka_unit_test(wide_shows_reasons),
		cmocka_unit_test(explains_every_term),
		cmocka_unit_test(prints_warnings),
		cmocka_unit_test(json_is_untouched),
		cmocka_unit_test(exit_code_tells_staleness),
		cmocka_unit_test(survives_odd_shapes),
		cmocka_unit_test(writes_the_request),
		cmocka_unit_test(six_plugins_fit),
		cmocka_unit_test(refuses_bad_blends),
		cmocka_unit_test(tells_whether_the_pod_fits),
		cmocka_unit_test(named_nodes_have_to_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
