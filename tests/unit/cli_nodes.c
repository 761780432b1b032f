/* SPDX-License-Identifier: Apache-2.0 */
/* evenkeel nodes, from the API's document to the text and exit code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/cli/usage.h"
#include "tests/cli_fixture.h"

#define WINDOW(mean, stddev, p95, max)                                                             \
	"{\"start\":\"2026-01-31T11:55:00Z\",\"end\":\"2026-01-31T12:00:00Z\",\"samples\":3000,"   \
	"\"mean\":" mean ",\"stddev\":" stddev ",\"p50\":500,\"p95\":" p95                         \
	",\"p99\":2000,\"min\":10,\"max\":" max "}"

#define FRESH(more_source, more_usage, more_contention, more)                                        \
	"{\"name\":\"worker-1\",\"source\":{\"state\":\"fresh\",\"ageSeconds\":3.2,\"tier\":"        \
	"\"T1\","                                                                                    \
	"\"rateHz\":10,\"runId\":\"00\",\"missedTicks\":2," more_source                              \
	"\"agentCpuMillicores\":3.25},"                                                              \
	"\"capacity\":{\"cpuMillicores\":4000,\"memoryBytes\":16777216000},"                         \
	"\"usage\":{\"cpuMillicores\":{\"latest\":{\"value\":612.5,\"end\":"                         \
	"\"2026-01-31T12:00:00Z\"},\"windows\":{\"5m\":" WINDOW(                                     \
		"580.25", "120.5", "1250",                                                           \
		"2310.75") ",\"10m\":" WINDOW("560", "110", "1200",                                  \
					      "2400") ",\"15m\":" WINDOW("540", "100", "1150",       \
									 "2500") "}},"               \
										 "\"memoryBytes\""   \
										 ":{\"latest\":{"    \
										 "\"value\":"        \
										 "6710886400}},"     \
										 "\"workingSetByt"   \
										 "es\":{"            \
										 "\"latest\":{"      \
										 "\"value\":"        \
										 "5368709120}"       \
										 "}" more_usage      \
										 "},"                \
										 "\"contention\":"   \
										 "{\"cpu\":0.015,"   \
										 "\"memory\":"       \
										 "null,"             \
										 "\"throttledRati"   \
										 "o\":0.12,"         \
										 "\"throttledSeco"   \
										 "nds\":3.5,"        \
										 "\"oomKills\":"     \
										 "1" more_contention \
										 "}" more "}"

static const char fresh_node[] = FRESH("\"overflowCgroups\":0,", "", "", "");

/* All that an agent can tell. */
static const char telling_node[] = FRESH(
	"\"overflowCgroups\":12,\"passMicroseconds\":180.4,",
	",\"swapBytes\":{\"latest\":{\"value\":134217728}},\"pids\":{\"latest\":{\"value\":1321}}",
	",\"cpuStalledRatio\":0,\"memoryStalledRatio\":0.0625",
	",\"machine\":{\"cpuMillicores\":{\"user\":500,\"system\":100,\"iowait\":240.5,"
	"\"steal\":8},\"memoryAvailableBytes\":10066329600}");

static const char late_node[] =
	"{\"name\":\"worker-2\",\"source\":{\"state\":\"late\",\"ageSeconds\":42.1,\"tier\":\"T3\","
	"\"rateHz\":1},\"capacity\":{\"cpuMillicores\":2000},"
	"\"usage\":{\"cpuMillicores\":{\"latest\":{\"value\":1900}}}}";

static const char silent_node[] = "{\"name\":\"worker-3\",\"source\":{\"state\":\"none\"}}";

/* As the API knows them: of capacity 4 and 16 GiB, 3.9 and 15 GiB allocatable. */
#define KNOWN(name, ready, unschedulable, source, limits, usage)                                   \
	"{\"name\":\"" name "\",\"ready\":" ready ",\"unschedulable\":" unschedulable              \
	",\"source\":{" source                                                                     \
	"},\"capacity\":{\"cpuMillicores\":4000,\"memoryBytes\":17179869184},"                     \
	"\"allocatable\":{\"cpuMillicores\":3900,\"memoryBytes\":16106127360,\"pods\":110},"       \
	"\"requests\":{\"cpuMillicores\":1950,\"memoryBytes\":12884901888},"                       \
	"\"limits\":{\"cpuMillicores\":7800,\"memoryBytes\":16106127360}," limits ",\"pods\":12,"  \
	"\"usage\":{" usage "}}"

#define FRESH_SOURCE "\"state\":\"fresh\",\"ageSeconds\":3.2,\"tier\":\"T1\""
#define RATIOS                                                                                     \
	"\"unlimitedContainers\":{\"cpu\":3,\"memory\":1},\"limitRatio\":{\"declared\":{\"cpu\":"  \
	"2.5,"                                                                                     \
	"\"memory\":1},\"kernel\":{\"cpu\":1.25,\"memory\":0.5}}"
#define USE                                                                                        \
	"\"cpuMillicores\":{\"latest\":{\"value\":612.5},\"windows\":{\"5m\":" WINDOW(             \
		"580.25", "120.5", "1250",                                                         \
		"2310.75") "}},\"memoryBytes\":{\"latest\":{\"value\":6710886400}}"

static const char known_node[] = KNOWN("worker-1", "true", "false", FRESH_SOURCE, RATIOS, USE);
static const char cordoned_node[] =
	KNOWN("worker-2", "true", "true", "\"state\":\"none\"", RATIOS, "");
static const char broken_node[] =
	KNOWN("worker-3", "false", "false", "\"state\":\"none\"", RATIOS, "");
static const char stray_node[] =
	"{\"name\":\"worker-9\",\"unknownToApi\":true,\"source\":{" FRESH_SOURCE
	"},\"capacity\":{\"cpuMillicores\":2000},\"usage\":{}}";

/* Of worker-1 to worker-3, of which one is measured. */
static const char total[] =
	"{\"nodes\":3,\"knownToApi\":3,\"ready\":2,\"capacity\":{\"cpuMillicores\":12000,"
	"\"memoryBytes\":"
	"51539607552},"
	"\"allocatable\":{\"cpuMillicores\":11700,\"memoryBytes\":48318382080,\"pods\":330},"
	"\"requests\":{\"cpuMillicores\":5850,\"memoryBytes\":38654705664},"
	"\"limits\":{\"cpuMillicores\":23400,\"memoryBytes\":48318382080}," RATIOS ",\"pods\":36,"
	"\"measured\":{\"nodes\":1,\"capacity\":{\"cpuMillicores\":4000,\"memoryBytes\":"
	"17179869184}},"
	"\"usage\":{\"cpuMillicores\":{\"latest\":{\"value\":612.5},\"windows\":{\"5m\":{\"mean\":"
	"580.25}}},"
	"\"memoryBytes\":{\"latest\":{\"value\":6710886400}}}}";

static void check(const struct cli_fixture *f, int code, const char *text, const char *reason)
{
	cli_fixture_check(f, &nodes_kind, code, text, reason);
}

static void shows_the_table(void **state)
{
	struct cli_fixture g = {.items = {fresh_node, late_node, silent_node}};
	(void)state;

	check(&g, CLI_OK,
	      "NAME         CPU  CPU%  MEAN(5m)  SIGMA   P95  CPU-MAX      MEMORY  MEM%  WORKSET  "
	      "AGE       TIER\n"
	      "worker-1  612m/4   15%      580m   120m  1.25     2.31  6.2/15.6Gi   40%    5.0Gi  "
	      "3s        T1\n"
	      "worker-2  1.90/2   95%         -      -     -        -           -     -        -  "
	      "42s late  T3\n"
	      "worker-3       -     -         -      -     -        -           -     -        -  "
	      "never     -\n",
	      "");
}

static void shows_another_window(void **state)
{
	struct cli_fixture g = {.items = {fresh_node},
				.options = {.window = 2, .no_headers = true}};
	(void)state;

	check(&g, CLI_OK,
	      "worker-1  612m/4  15%  540m  100m  1.15  2.50  6.2/15.6Gi  40%  5.0Gi  3s  T1\n",
	      "");
}

static void wide_shows_all_windows_and_the_agent(void **state)
{
	struct cli_fixture g = {.items = {fresh_node, late_node},
				.options = {.output = OUTPUT_WIDE}};
	(void)state;

	check(&g, CLI_OK,
	      "NAME         CPU  CPU%   P95  CPU-MAX  MEAN±SIGMA(5m)      (10m)      (15m)      "
	      "MEMORY  MEM%  WORKSET  THROTTLED  WAITING  OOM  AGE       TIER  HZ  PASS  MISSED  "
	      "AGENT-CPU\n"
	      "worker-1  612m/4   15%  1.25     2.31       580m±120m  560m±110m  540m±100m  "
	      "6.2/15.6Gi   40%    5.0Gi        12%     2%/-    1  3s        T1    10     -       "
	      "2       3.2m\n"
	      "worker-2  1.90/2   95%     -        -               -          -          -         "
	      "  -     -        -          -        -    -  42s late  T3     1     -       -       "
	      "   -\n",
	      "");
}

static void wide_shows_what_a_machine_tells(void **state)
{
	struct cli_fixture g = {.items = {telling_node, late_node},
				.options = {.output = OUTPUT_WIDE}};
	(void)state;

	check(&g, CLI_OK,
	      "NAME         CPU  CPU%   P95  CPU-MAX  MEAN±SIGMA(5m)      (10m)      (15m)      "
	      "MEMORY  MEM%  WORKSET     SWAP  PIDS  IOWAIT  STEAL  THROTTLED  WAITING  STALLED  "
	      "OOM  AGE       TIER  HZ   PASS  MISSED  OVERFLOW  AGENT-CPU\n"
	      "worker-1  612m/4   15%  1.25     2.31       580m±120m  560m±110m  540m±100m  "
	      "6.2/15.6Gi   40%    5.0Gi  128.0Mi  1321      6%    <1%        12%     2%/-    "
	      "0%/6%    1  3s        T1    10  180us       2        12       3.2m\n"
	      "worker-2  1.90/2   95%     -        -               -          -          -         "
	      "  -     -        -        -     -       -      -          -        -        -    -  "
	      "42s late  T3     1      -       -         -          -\n",
	      "");
}

static void shows_what_is_promised(void **state)
{
	struct cli_fixture g = {.items = {known_node}};
	(void)state;

	check(&g, CLI_OK,
	      "NAME            CPU  CPU%  CPU-REQ%  CPU-LIM%  MEAN(5m)  SIGMA   P95  CPU-MAX    "
	      "MEMORY  MEM%  MEM-REQ%  MEM-LIM%  WAITING  AGE  TIER\n"
	      "worker-1  612m/3.90   16%       50%      250%      580m   120m  1.25     2.31  "
	      "6.2/15Gi   42%       80%      100%        -  3s   T1\n",
	      "");
}

static void shows_what_is_not_ready(void **state)
{
	struct cli_fixture g = {.items = {known_node, cordoned_node, broken_node, stray_node},
				.total = total};
	(void)state;

	check(&g, CLI_OK,
	      "NAME      STATUS                 CPU  CPU%  CPU-REQ%  CPU-LIM%  MEAN(5m)  SIGMA   "
	      "P95  CPU-MAX    MEMORY  MEM%  MEM-REQ%  MEM-LIM%  WAITING  AGE    TIER\n"
	      "*         2/3 Ready       612m/11.70    5%       50%      250%      580m      -     "
	      "-        -  6.2/45Gi   14%       80%      100%        -  -      -\n"
	      "worker-1  Ready            612m/3.90   16%       50%      250%      580m   120m  "
	      "1.25     2.31  6.2/15Gi   42%       80%      100%        -  3s     T1\n"
	      "worker-2  Ready,cordoned      -/3.90     -       50%      250%         -      -     "
	      "-        -  -/15.0Gi     -       80%      100%        -  never  -\n"
	      "worker-3  NotReady            -/3.90     -       50%      250%         -      -     "
	      "-        -  -/15.0Gi     -       80%      100%        -  never  -\n"
	      "worker-9  unknown                -/2     -         -         -         -      -     "
	      "-        -         -     -         -         -        -  3s     T1\n",
	      "");
}

static void shows_what_is_about_to_change(void **state)
{
	static const char node[] =
		KNOWN("worker-1", "true", "true,\"lifecycle\":[\"DrainInProgress\",\"Drained\"]",
		      FRESH_SOURCE, RATIOS, USE);
	struct cli_fixture g = {.items = {node}, .options = {.no_headers = true}};
	(void)state;

	check(&g, CLI_OK,
	      "worker-1  Ready,cordoned,DrainInProgress,Drained  612m/3.90  16%  50%  250%  580m  "
	      "120m  1.25  2.31  6.2/15Gi  42%  80%  100%  -  3s  T1\n",
	      "");
}

static void wide_shows_amounts(void **state)
{
	struct cli_fixture g = {.items = {known_node, cordoned_node},
				.total = total,
				.options = {.output = OUTPUT_WIDE}};
	(void)state;

	check(&g, CLI_OK,
	      "NAME      STATUS                 CPU  CPU%  CPU-ALLOC  CPU-REQ  CPU-REQ%  CPU-LIM  "
	      "CPU-LIM%  CPU-KERNEL%   P95  CPU-MAX  MEAN±SIGMA(5m)  (10m)  (15m)    MEMORY  MEM%  "
	      "MEM-ALLOC  MEM-REQ  MEM-REQ%  MEM-LIM  MEM-LIM%  MEM-KERNEL%  NO-LIMIT    PODS  "
	      "WORKSET  WAITING  OOM  AGE    TIER  HZ  PASS  MISSED  AGENT-CPU\n"
	      "*         2/3 Ready       612m/11.70    5%      11.70     5.85       50%    23.40   "
	      "   250%         125%     -        -            580m      -      -  6.2/45Gi   14%   "
	      "  45.0Gi   36.0Gi       80%   45.0Gi      100%          50%       3/1  36/330       "
	      " -        -    -  -      -      -     -       -          -\n"
	      "worker-1  Ready            612m/3.90   16%       3.90     1.95       50%     7.80   "
	      "   250%         125%  1.25     2.31       580m±120m      -      -  6.2/15Gi   42%   "
	      "  15.0Gi   12.0Gi       80%   15.0Gi      100%          50%       3/1  12/110       "
	      " -        -    -  3s     T1     -     -       -          -\n"
	      "worker-2  Ready,cordoned      -/3.90     -       3.90     1.95       50%     7.80   "
	      "   250%         125%     -        -               -      -      -  -/15.0Gi     -   "
	      "  15.0Gi   12.0Gi       80%   15.0Gi      100%          50%       3/1  12/110       "
	      " -        -    -  never  -      -     -       -          -\n",
	      "");
}

#define TOTAL(measured, usage)                                                                     \
	"{\"nodes\":2,\"capacity\":{\"cpuMillicores\":352000,\"memoryBytes\":1511828488192},"      \
	"\"measured\":{" measured "},\"usage\":{" usage "}}"

/* What the row of all nodes begins with, and that it has this of memory. */
static void check_total(const char *all, const char *cpu, const char *memory)
{
	struct cli_fixture g = {.items = {silent_node},
				.total = all,
				.options = {.no_headers = true}};
	struct error reason;
	struct buf out;

	assert_int_equal(cli_fixture_render(&g, &nodes_kind, &out, &reason), CLI_STALE);
	*strchr(out.data, '\n') = '\0';
	assert_int_equal(out.data[0], '*');
	if (!strstr(out.data, cpu) || !strstr(out.data, memory))
		fail_msg("%s", out.data);
	buf_fini(&out);
}

/* Where the use is not known, it is of all there is. */
static void total_of_large_nodes(void **state)
{
	(void)state;
	check_total(TOTAL("\"nodes\":0,\"capacity\":{}", ""), " -/352  ", " -/1.4Ti  ");
	check_total(TOTAL("\"nodes\":0,\"capacity\":{\"cpuMillicores\":0,\"memoryBytes\":0}", ""),
		    " -/352  ", " -/1.4Ti  ");
	check_total(TOTAL("\"nodes\":2,\"capacity\":{}",
			  "\"cpuMillicores\":{\"windows\":{\"5m\":{\"mean\":900}}}"),
		    " -/352  -  900m ", " -/1.4Ti  ");
	check_total(TOTAL("\"nodes\":2,\"capacity\":{\"memoryBytes\":1511828488192}",
			  "\"memoryBytes\":{\"latest\":{\"value\":263066746880}}"),
		    " -/352  ", " 245Gi/1.4Ti  17%  ");
}

/*
 * The total stands first by whatever is sorted, and is not there where single nodes were asked for.
 */
static void total_stands_first(void **state)
{
	struct cli_fixture sorted = {.items = {cordoned_node, known_node},
				     .total = total,
				     .options = {.sort = 8}};
	struct cli_fixture named = {.items = {known_node},
				    .total = total,
				    .names = {"worker-1"},
				    .name_count = 1,
				    .options = {.no_headers = true}};
	struct cli_fixture one = {.items = {known_node},
				  .total = "{\"nodes\":1,\"usage\":{}}",
				  .options = {.no_headers = true}};
	struct error reason;
	struct buf out;
	const char *first;
	(void)state;

	assert_int_equal(cli_fixture_render(&sorted, &nodes_kind, &out, &reason), CLI_OK);
	first = strchr(out.data, '\n');
	assert_memory_equal(first, "\n*  ", 4);
	buf_fini(&out);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(cli_fixture_render(i ? &one : &named, &nodes_kind, &out, &reason),
				 CLI_OK);
		assert_memory_equal(out.data, "worker-1", 8);
		buf_fini(&out);
	}
}

static void paints_over_subscribed_limits(void **state)
{
	struct cli_fixture g = {.items = {known_node}, .color = true};
	struct error reason;
	struct buf out;
	(void)state;

	assert_int_equal(cli_fixture_render(&g, &nodes_kind, &out, &reason), CLI_OK);
	assert_non_null(strstr(out.data, "\033[31m250%\033[0m"));
	assert_non_null(strstr(out.data, "  100%"));
	buf_fini(&out);
}

static void sorts_and_limits(void **state)
{
	struct cli_fixture g = {.items = {silent_node, fresh_node, late_node},
				.options = {.sort = 1, .limit = 2, .no_headers = true}};
	(void)state;

	check(&g, CLI_OK,
	      "worker-2  1.90/2  95%     -     -     -     -           -    -      -  42s late  "
	      "T3\n"
	      "worker-1  612m/4  15%  580m  120m  1.25  2.31  6.2/15.6Gi  40%  5.0Gi  3s        "
	      "T1\n",
	      "");
}

static void paints_states_and_pressure(void **state)
{
	struct cli_fixture g = {.items = {late_node},
				.options = {.no_headers = true},
				.color = true};
	struct error reason;
	struct buf out;
	(void)state;

	assert_int_equal(cli_fixture_render(&g, &nodes_kind, &out, &reason), CLI_STALE);
	assert_non_null(strstr(out.data, "\033[31m95%\033[0m"));
	assert_non_null(strstr(out.data, "\033[33m42s late\033[0m"));
	buf_fini(&out);
}

static void exit_code_tells_staleness(void **state)
{
	static const struct cli_fixture_exit cases[] = {
		{{.items = {NULL}},
		 CLI_STALE,
		 "no node is known: has an evenkeel-agent been started?"},
		{{.items = {NULL}, .options = {.selector = "zone=x"}},
		 CLI_OK,
		 "no node has labels zone=x"},
		{{.items = {NULL}, .options = {.selector = "a=b", .strict = true}},
		 CLI_OK,
		 "no node has labels a=b"},
		{{.items = {NULL},
		  .options = {.selector = "zone=x"},
		  .names = {"gone"},
		  .name_count = 1},
		 CLI_STALE,
		 "node \"gone\" is not known"},
		{{.items = {late_node, silent_node}},
		 CLI_STALE,
		 "no node is fresh: nothing was heard of the 2 known for 30s or more"},
		{{.items = {fresh_node, silent_node}}, CLI_OK, ""},
		{{.items = {fresh_node, late_node}, .options = {.strict = true}},
		 CLI_STALE,
		 "1 of 2 nodes are not fresh (--strict)"},
		{{.items = {fresh_node, late_node}, .names = {"worker-1"}, .name_count = 1},
		 CLI_OK,
		 ""},
		{{.items = {fresh_node, late_node},
		  .names = {"worker-1", "worker-2"},
		  .name_count = 2},
		 CLI_STALE,
		 "the usage of node \"worker-2\" is late: 42s old"},
		{{.items = {fresh_node}, .names = {"worker-1", "worker-1"}, .name_count = 2},
		 CLI_OK,
		 ""},
		{{.items = {fresh_node}, .names = {"worker-9"}, .name_count = 1},
		 CLI_STALE,
		 "node \"worker-9\" is not known"},
		{{.items = {silent_node}, .names = {"worker-3"}, .name_count = 1},
		 CLI_STALE,
		 "of node \"worker-3\" there is no usage"},
	};
	(void)state;

	cli_fixture_check_exits(cases, sizeof(cases) / sizeof(cases[0]), &nodes_kind);
}

static void survives_odd_shapes(void **state)
{
	static const char *const pages[] = {
		"{\"items\":[null,1,\"x\",[],{}]}",
		"{\"items\":[{\"name\":1}]}",
		"{\"items\":[{\"name\":\"a\",\"source\":3,\"usage\":[],\"capacity\":{"
		"\"cpuMillicores\":\"x\"}}]}",
		"{\"items\":[{\"name\":\"a\",\"capacity\":{\"cpuMillicores\":-1,\"memoryBytes\":0}}"
		"]}",
		"{\"items\":[{\"name\":\"a\",\"usage\":{\"cpuMillicores\":{\"latest\":{\"value\":"
		"1e308}},"
		"\"memoryBytes\":{\"latest\":{\"value\":1e308}}}}]}",
	};
	static const char *const bad[] = {"", "x", "[]", "{}", "{\"items\":{}}", "{\"items\":[}"};
	struct cli_options options = {.output = OUTPUT_WIDE};
	struct cli cli = {.options = &options};
	struct usage_table nodes;
	struct list list;
	(void)state;

	usage_table_init(&nodes, &nodes_kind, &cli);
	list_init(&list, nodes_kind.item, &nodes);
	for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
		buf_clear(&list.page);
		buf_add_str(&list.page, pages[i]);
		assert_int_equal(list_read_page(&list, &cli.reason), 0);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		buf_clear(&list.page);
		buf_add_str(&list.page, bad[i]);
		assert_int_not_equal(list_read_page(&list, &cli.reason), 0);
	}
	assert_int_equal(usage_table_finish(&nodes, list.total, &cli), CLI_STALE);
	assert_int_equal(nodes.tally.states[ROW_NONE], 3);
	list_fini(&list);
	usage_table_fini(&nodes);
	buf_fini(&cli.out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shows_the_table),
		cmocka_unit_test(shows_what_is_about_to_change),
		cmocka_unit_test(shows_another_window),
		cmocka_unit_test(wide_shows_all_windows_and_the_agent),
		cmocka_unit_test(wide_shows_what_a_machine_tells),
		cmocka_unit_test(shows_what_is_promised),
		cmocka_unit_test(shows_what_is_not_ready),
		cmocka_unit_test(wide_shows_amounts),
		cmocka_unit_test(total_of_large_nodes),
		cmocka_unit_test(total_stands_first),
		cmocka_unit_test(paints_over_subscribed_limits),
		cmocka_unit_test(sorts_and_limits),
		cmocka_unit_test(paints_states_and_pressure),
		cmocka_unit_test(exit_code_tells_staleness),
		cmocka_unit_test(survives_odd_shapes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
