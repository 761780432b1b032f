/* SPDX-License-Identifier: Apache-2.0 */
/* evenkeel pods, from the API's document to the text and exit code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/cli/usage.h"
#include "tests/cli_fixture.h"

/* The list is as of 12:00:03. */
#define NOW	"2026-01-31T12:00:00.5Z"
#define LATE	"2026-01-31T11:59:00Z"
#define EXPIRED "2026-01-31T11:50:00Z"

#define POD(namespace, name, kind, end, more)                                                      \
	"{\"namespace\":\"" namespace "\",\"name\":\"" name "\",\"node\":\"worker-1\","            \
				      "\"qosClass\":\"Burstable\",\"workload\":{\"kind\":\"" kind  \
				      "\"},\"usage\":{\"cpuMillicores\":{\"latest\":{\"value\":"   \
				      "120,\"end\":\"" end "\"},\"windows\":{\"5m\":{\"mean\":"    \
				      "100,\"stddev\":12.5,\"max\":180}}},"                        \
				      "\"memoryBytes\":{\"latest\":{\"value\":104857600,\"end\":"  \
				      "\"" end "\"}},"                                             \
				      "\"workingSetBytes\":{\"latest\":{\"value\":52428800,"       \
				      "\"end\":\"" end "\"}}}" more "}"

static const char web[] = POD("shop", "web-7d9", "Pod", NOW,
			      ",\"kernelLimits\":{\"cpuMillicores\":500,\"memoryBytes\":268435456},"
			      "\"contention\":{\"cpu\":0.2,"
			      "\"throttledRatio\":0.3,\"throttledSeconds\":9,\"oomKills\":0}");
static const char unlimited[] =
	POD("", "unlimited", "Unit", NOW,
	    ",\"kernelLimits\":{\"cpuMillicores\":null},\"contention\":{\"throttledRatio\":null,"
	    "\"throttledSeconds\":0}");
static const char stuck[] = POD(
	"", "stuck", "Unit", NOW,
	",\"kernelLimits\":{\"memoryBytes\":57671680},\"contention\":{\"throttledSeconds\":3.25}");
static const char idle[] = POD("", "system.slice/ssh.service", "Unit", NOW,
			       ",\"kernelLimits\":{\"cpuMillicores\":null,\"memoryBytes\":null},"
			       "\"contention\":{\"cpu\":null,"
			       "\"throttledRatio\":null,\"throttledSeconds\":null,\"oomKills\":2}");
static const char full[] = POD(
	"shop", "web-8e0", "Pod", NOW,
	",\"kernelLimits\":{\"cpuMillicores\":500,\"memoryBytes\":268435456,\"memoryHighBytes\":"
	"134217728,\"swapBytes\":null,\"pids\":100,\"cpuBurstMicroseconds\":2500},"
	"\"contention\":{\"cpu\":0.2,\"memory\":0,\"cpuStalledRatio\":0.5,"
	"\"memoryStalledRatio\":0.004,\"throttledRatio\":0,\"throttledSeconds\":0,"
	"\"oomKills\":0}");
static const char tasks[] =
	"{\"namespace\":\"shop\",\"name\":\"tasks\",\"node\":\"worker-1\",\"usage\":{"
	"\"cpuMillicores\":{\"latest\":{\"value\":1,\"end\":\"" NOW "\"}},"
	"\"swapBytes\":{\"latest\":{\"value\":1048576}},\"pids\":{\"latest\":{\"value\":95}}},"
	"\"kernelLimits\":{\"memoryHighBytes\":null,\"pids\":100,\"cpuBurstMicroseconds\":0}}";
static const char no_more[] =
	"{\"namespace\":\"shop\",\"name\":\"lean\",\"node\":\"worker-1\",\"usage\":{"
	"\"cpuMillicores\":{\"latest\":{\"value\":1,\"end\":\"" NOW "\"}},"
	"\"swapBytes\":{\"latest\":{\"value\":0}},\"pids\":{\"latest\":{\"value\":7}}},"
	"\"kernelLimits\":{\"memoryHighBytes\":null,\"pids\":null,\"cpuBurstMicroseconds\":0}}";
static const char slice[] = POD("", "system.slice", "Slice", NOW, "");
static const char late[] = POD("", "user-1.service", "Unit", LATE, "");
static const char expired[] = POD("", "user-2.service", "Unit", EXPIRED, "");
static const char bare[] = "{\"name\":\"bare\"}";

/* As a Kubernetes API knows them. */
#define KNOWN(name, phase, requests, limits, unlimited, more)                                      \
	"{\"namespace\":\"shop\",\"name\":\"" name "\",\"phase\":\"" phase                         \
	"\",\"qosClass\":\"Burstable\",\"workload\":{\"kind\":\"Deployment\",\"name\":\"web\"},"   \
	"\"requests\":{" requests "},\"limits\":{" limits "},\"unlimitedContainers\":{" unlimited  \
	"}" more "}"

#define MEASURED                                                                                   \
	",\"node\":\"worker-1\",\"kernelLimits\":{\"cpuMillicores\":500,\"memoryBytes\":"          \
	"268435456},"                                                                              \
	"\"usage\":{\"cpuMillicores\":{\"latest\":{\"value\":120,\"end\":\"" NOW                   \
	"\"},\"windows\":{"                                                                        \
	"\"5m\":{\"mean\":100,\"stddev\":12.5,\"max\":180}}},\"memoryBytes\":{\"latest\":{"        \
	"\"value\":"                                                                               \
	"104857600,\"end\":\"" NOW "\"}}},\"contention\":{\"throttledRatio\":0,\"oomKills\":0}"

static const char known[] =
	KNOWN("web-1", "Running", "\"cpuMillicores\":250,\"memoryBytes\":134217728",
	      "\"cpuMillicores\":500,\"memoryBytes\":268435456", "\"cpu\":0,\"memory\":0",
	      MEASURED);
static const char mismatched[] =
	KNOWN("web-2", "Running", "\"cpuMillicores\":250",
	      "\"cpuMillicores\":1000,\"memoryBytes\":268435456", "\"cpu\":1,\"memory\":0",
	      MEASURED ",\"limitMismatch\":{\"cpuMillicores\":{\"declared\":1000,\"kernel\":500},"
		       "\"memoryBytes\":{\"declared\":268435456,\"kernel\":null}}");
static const char unmeasured[] =
	KNOWN("web-3", "Running", "", "\"cpuMillicores\":null", "\"cpu\":1,\"memory\":1",
	      ",\"node\":\"worker-2\",\"usage\":{}");
static const char pending[] =
	KNOWN("web-4", "Pending", "\"cpuMillicores\":3000", "", "\"cpu\":1", ",\"usage\":{}");
static const char stranger[] =
	"{\"namespace\":\"\",\"name\":\"kubepods/"
	"podx\",\"node\":\"worker-1\",\"unknownToApi\":true,"
	"\"workload\":{\"kind\":\"Pod\"},\"usage\":{\"cpuMillicores\":{\"latest\":{\"value\":1,"
	"\"end\":\"" NOW "\"}}}}";

static const char many[] =
	KNOWN("web-9", "Running", "\"cpuMillicores\":250", "\"cpuMillicores\":500",
	      "\"cpu\":0,\"memory\":0",
	      MEASURED ",\"hourlyPeaks\":{\"cpuMillicores\":[null,40,70,null]},"
		       "\"containers\":[{\"name\":\"app\",\"id\":\"0123456789abcdef\",\"cgroup\":"
		       "\"kubepods/p/c\",\"kernelLimits\":{"
		       "\"cpuMillicores\":400},\"usage\":{\"cpuMillicores\":{\"latest\":{"
		       "\"value\":90,\"end\":\"" NOW "\"}},\"memoryBytes\":{\"latest\":{"
		       "\"value\":67108864}}}},{\"name\":\"sidecar\",\"kernelLimits\":{"
		       "\"cpuMillicores\":null,\"memoryBytes\":33554432},\"usage\":{"
		       "\"cpuMillicores\":{\"latest\":{\"value\":30,\"end\":\"" NOW "\"}}}}]");

static void check(const struct cli_fixture *f, int code, const char *text, const char *reason)
{
	cli_fixture_check(f, &pods_kind, code, text, reason);
}

static void shows_likely_causes(void **state)
{
	static const char held_up[] =
		POD("shop", "a", "Pod", NOW,
		    ",\"contention\":{\"cpu\":0.21,\"throttledRatio\":0,\"cause\":{\"namespace\":"
		    "\"batch\",\"name\":\"hog\",\"share\":0.875}}");
	static const char by_system[] = POD("shop", "b", "Pod", NOW,
					    ",\"contention\":{\"cpu\":0.1,\"throttledRatio\":0,"
					    "\"cause\":{\"share\":0.5}}");
	static const char by_nobody[] = POD("shop", "c", "Pod", NOW,
					    ",\"contention\":{\"cpu\":0.1,\"throttledRatio\":0.9,"
					    "\"cause\":null}");
	struct cli_fixture g = {.items = {held_up, by_system, by_nobody},
				.options = {.contention = true}};
	(void)state;

	cli_fixture_check(
		&g, &pods_kind, CLI_OK,
		"NAMESPACE  NAME  NODE       CPU  THROTTLED  CPU-WAITING  LIKELY-CAUSE  SHARE\n"
		"shop       a     worker-1  120m         0%          21%  batch/hog       88%\n"
		"shop       b     worker-1  120m         0%          10%  (system)        50%\n"
		"shop       c     worker-1  120m        90%          10%  -                 -\n",
		"");
}

static void leaves_namespaces_out_where_there_are_none(void **state)
{
	struct cli_fixture g = {.items = {slice, idle}};
	(void)state;

	check(&g, CLI_OK,
	      "NAME                      NODE       CPU  SIGMA  CPU-LIM  THROTTLED   MEMORY  "
	      "MEM-LIM  WORKSET  OOM\n"
	      "system.slice/ssh.service  worker-1  120m    12m     none          -  100.0Mi     "
	      "none   50.0Mi    2\n",
	      "");
}

static void shows_namespaces_and_limits(void **state)
{
	struct cli_fixture g = {.items = {web, idle}, .options = {.no_headers = true}};
	(void)state;

	check(&g, CLI_OK,
	      "-     system.slice/ssh.service  worker-1  120m  12m  none    -  100.0Mi     none  "
	      "50.0Mi  2\n"
	      "shop  web-7d9                   worker-1  120m  12m  500m  30%  100.0Mi  256.0Mi  "
	      "50.0Mi  0\n",
	      "");
}

static void marks_slices_when_asked_for(void **state)
{
	struct cli_fixture all = {.items = {slice}, .options = {.no_headers = true, .all = true}};
	struct cli_fixture named = {.items = {slice},
				    .options = {.no_headers = true},
				    .names = {"system.slice"},
				    .name_count = 1};
	const char *want = "system.slice/  worker-1  120m  12m  -  -  100.0Mi  -  50.0Mi  -\n";
	(void)state;

	check(&all, CLI_OK, want, "");
	check(&named, CLI_OK, want, "");
}

static void shows_age_where_something_is_stale(void **state)
{
	struct cli_fixture g = {.items = {idle, late, expired, bare}};
	(void)state;

	check(&g, CLI_OK,
	      "NAME                      NODE       CPU  SIGMA  CPU-LIM  THROTTLED   MEMORY  "
	      "MEM-LIM  WORKSET  OOM  AGE\n"
	      "bare                      -            -      -        -          -        -        "
	      "-        -    -  never\n"
	      "system.slice/ssh.service  worker-1  120m    12m     none          -  100.0Mi     "
	      "none   50.0Mi    2  2s\n"
	      "user-1.service            worker-1  120m    12m        -          -  100.0Mi        "
	      "-   50.0Mi    -  1m03s late\n"
	      "user-2.service            worker-1  120m    12m        -          -  100.0Mi        "
	      "-   50.0Mi    -  10m03s expired\n",
	      "");
}

static void wide_shows_everything(void **state)
{
	struct cli_fixture g = {.items = {slice, web}, .options = {.output = OUTPUT_WIDE}};
	(void)state;

	check(&g, CLI_OK,
	      "NAMESPACE  NAME           NODE       CPU  MEAN(5m)  SIGMA  CPU-MAX  CPU-LIM  "
	      "THROTTLED   MEMORY  MEM-LIM  WORKSET  OOM  WAITING  AGE  QOS\n"
	      "-          system.slice/  worker-1  120m      100m    12m     180m        -         "
	      " -  100.0Mi        -   50.0Mi    -        -  2s   Burstable\n"
	      "shop       web-7d9        worker-1  120m      100m    12m     180m     500m        "
	      "30%  100.0Mi  256.0Mi   50.0Mi    0    20%/-  2s   Burstable\n",
	      "");
}

static void wide_shows_what_any_row_has(void **state)
{
	struct cli_fixture g = {.items = {full, tasks}, .options = {.output = OUTPUT_WIDE}};
	(void)state;

	check(&g, CLI_OK,
	      "NAMESPACE  NAME     NODE       CPU  MEAN(5m)  SIGMA  CPU-MAX  CPU-LIM  BURST  "
	      "THROTTLED   MEMORY  MEM-LIM     HIGH  WORKSET   SWAP    PIDS  OOM  WAITING  STALLED "
	      " AGE  QOS\n"
	      "shop       tasks    worker-1  1.0m         -      -        -        -      0        "
	      "  -        -        -     none        -  1.0Mi  95/100    -        -        -  2s   "
	      "-\n"
	      "shop       web-8e0  worker-1  120m      100m    12m     180m     500m  2.5ms        "
	      " 0%  100.0Mi  256.0Mi  128.0Mi   50.0Mi      -       -    0   20%/0%  50%/<1%  2s   "
	      "Burstable\n",
	      "");
}

/* No limit, nothing swapped and no burst are no reason for a column; tasks without a limit are. */
static void shows_resizes(void **state)
{
	static const char resized[] =
		KNOWN("web-1", "Running", "\"cpuMillicores\":250,\"memoryBytes\":134217728",
		      "\"cpuMillicores\":500,\"memoryBytes\":268435456", "\"cpu\":0,\"memory\":0",
		      ",\"resize\":\"Deferred\"" MEASURED);
	struct cli_fixture g = {.items = {resized}, .options = {.no_headers = true}};
	(void)state;

	check(&g, CLI_OK,
	      "shop  web-1  worker-1  Deferred  120m  12m  250m  500m  0%  100.0Mi  128.0Mi  "
	      "256.0Mi  -  0\n",
	      "");
}

static void wide_leaves_out_what_no_row_has(void **state)
{
	struct cli_fixture g = {.items = {no_more}, .options = {.output = OUTPUT_WIDE}};
	(void)state;

	check(&g, CLI_OK,
	      "NAMESPACE  NAME  NODE       CPU  MEAN(5m)  SIGMA  CPU-MAX  CPU-LIM  THROTTLED  "
	      "MEMORY  MEM-LIM  WORKSET  PIDS  OOM  WAITING  AGE  QOS\n"
	      "shop       lean  worker-1  1.0m         -      -        -        -          -       "
	      "-        -        -     7    -        -  2s   -\n",
	      "");
}

static void paints_tasks_near_their_limit(void **state)
{
	struct cli_fixture g = {.items = {tasks},
				.options = {.output = OUTPUT_WIDE},
				.color = true};
	struct error reason;
	struct buf out;
	(void)state;

	assert_int_equal(cli_fixture_render(&g, &pods_kind, &out, &reason), CLI_OK);
	assert_non_null(strstr(out.data, "\033[31m95/100\033[0m"));
	buf_fini(&out);
}

static void exit_code_tells_staleness(void **state)
{
	static const struct cli_fixture_exit cases[] = {
		{{.items = {NULL}},
		 CLI_STALE,
		 "no pod is known: has an evenkeel-agent been started?"},
		{{.items = {NULL}, .options = {.namespace = "shop"}},
		 CLI_OK,
		 "no pod is known in namespace shop"},
		{{.items = {NULL}, .options = {.namespace = "shop", .output = OUTPUT_JSON}},
		 CLI_OK,
		 "no pod is known in namespace shop"},
		{{.items = {NULL}, .options = {.selector = "app=foo"}},
		 CLI_OK,
		 "no pod has labels app=foo"},
		{{.items = {NULL}, .options = {.selector = "app=foo", .namespace = "shop"}},
		 CLI_OK,
		 "no pod with labels app=foo in namespace shop"},
		{{.items = {late, expired}},
		 CLI_STALE,
		 "no pod is fresh: nothing was heard of the 2 known for 30s or more"},
		{{.items = {web, late}}, CLI_OK, ""},
		{{.items = {web, late}, .options = {.strict = true}},
		 CLI_STALE,
		 "1 of 2 pods are not fresh (--strict)"},
		{{.items = {web, late}, .names = {"user-1.service"}, .name_count = 1},
		 CLI_STALE,
		 "the usage of pod \"user-1.service\" is late: 1m03s old"},
		{{.items = {web}, .names = {"web-7d9", "gone"}, .name_count = 2},
		 CLI_STALE,
		 "pod \"gone\" is not known"},
	};
	(void)state;

	cli_fixture_check_exits(cases, sizeof(cases) / sizeof(cases[0]), &pods_kind);
}

static void tells_unthrottled_from_unknown(void **state)
{
	struct cli_fixture g = {.items = {unlimited, stuck}, .options = {.no_headers = true}};
	(void)state;

	check(&g, CLI_OK,
	      "stuck      worker-1  120m  12m     -  3.2s  100.0Mi  55.0Mi  50.0Mi  -\n"
	      "unlimited  worker-1  120m  12m  none    0%  100.0Mi       -  50.0Mi  -\n",
	      "");
}

static void paints_what_is_near_its_limit(void **state)
{
	struct cli_fixture g = {.items = {stuck}, .options = {.no_headers = true}, .color = true};
	struct error reason;
	struct buf out;
	(void)state;

	assert_int_equal(cli_fixture_render(&g, &pods_kind, &out, &reason), CLI_OK);
	assert_non_null(strstr(out.data, "\033[33m3.2s\033[0m"));
	assert_non_null(strstr(out.data, "\033[31m50.0Mi\033[0m"));
	buf_fini(&out);
}

static void shows_requests_and_limits(void **state)
{
	struct cli_fixture g = {.items = {known}};
	(void)state;

	check(&g, CLI_OK,
	      "NAMESPACE  NAME   NODE       CPU  SIGMA  CPU-REQ  CPU-LIM  THROTTLED   MEMORY  "
	      "MEM-REQ  MEM-LIM  WORKSET  OOM\n"
	      "shop       web-1  worker-1  120m    12m     250m     500m         0%  100.0Mi  "
	      "128.0Mi  256.0Mi        -    0\n",
	      "");
}

/*
 * Where the kernel enforces something else, where some containers have no limit, what is not
 * running or not known.
 */
static void shows_what_differs(void **state)
{
	struct cli_fixture g = {.items = {known, mismatched, unmeasured, pending, stranger}};
	(void)state;

	check(&g, CLI_OK,
	      "NAMESPACE  NAME           NODE      STATUS    CPU  SIGMA  CPU-REQ  CPU-LIM  "
	      "CPU-KERNEL  THROTTLED   MEMORY  MEM-REQ  MEM-LIM  MEM-KERNEL  WORKSET  OOM  AGE\n"
	      "-          kubepods/podx  worker-1  unknown  1.0m      -        -        -          "
	      " -          -        -        -        -           -        -    -  2s\n"
	      "shop       web-1          worker-1  Running  120m    12m     250m     500m          "
	      " -         0%  100.0Mi  128.0Mi  256.0Mi           -        -    0  2s\n"
	      "shop       web-2          worker-1  Running  120m    12m     250m    1.00+        "
	      "500m         0%  100.0Mi        -  256.0Mi        none        -    0  2s\n"
	      "shop       web-3          worker-2  Running     -      -        -     none          "
	      " -          -        -        -        -           -        -    -  never\n"
	      "shop       web-4          -         Pending     -      -     3.00        -          "
	      " -          -        -        -        -           -        -    -  -\n",
	      "");
}

static void wide_shows_workloads(void **state)
{
	struct cli_fixture g = {.items = {known, stranger}, .options = {.output = OUTPUT_WIDE}};
	(void)state;

	check(&g, CLI_OK,
	      "NAMESPACE  NAME           NODE      STATUS    CPU  MEAN(5m)  SIGMA  CPU-MAX  "
	      "CPU-REQ  CPU-LIM  THROTTLED   MEMORY  MEM-REQ  MEM-LIM  WORKSET  OOM  WAITING  AGE  "
	      "QOS        WORKLOAD\n"
	      "-          kubepods/podx  worker-1  unknown  1.0m         -      -        -        "
	      "-        -          -        -        -        -        -    -        -  2s   -     "
	      "     -\n"
	      "shop       web-1          worker-1  Running  120m      100m    12m     180m     "
	      "250m     500m         0%  100.0Mi  128.0Mi  256.0Mi        -    0        -  2s   "
	      "Burstable  Deployment/web\n",
	      "");
}

/* What does not run cannot be measured: it is no more stale than it is fresh. */
static void pending_pods_are_not_stale(void **state)
{
	static const struct cli_fixture_exit cases[] = {
		{{.items = {pending}}, CLI_OK, ""},
		{{.items = {known, pending}, .options = {.strict = true}}, CLI_OK, ""},
		{{.items = {pending}, .names = {"web-4"}, .name_count = 1}, CLI_OK, ""},
		{{.items = {unmeasured, pending}},
		 CLI_STALE,
		 "no pod is fresh: nothing was heard of the 1 known for 30s or more"},
		{{.items = {known, unmeasured}, .options = {.strict = true}},
		 CLI_STALE,
		 "1 of 2 pods are not fresh (--strict)"},
	};
	(void)state;

	cli_fixture_check_exits(cases, sizeof(cases) / sizeof(cases[0]), &pods_kind);
}

static void containers_have_rows_of_their_own(void **state)
{
	struct cli_fixture g = {.items = {many, known}, .options = {.containers = true}};
	(void)state;

	check(&g, CLI_OK,
	      "NAMESPACE  NAME   CONTAINER  NODE       CPU  SIGMA  CPU-REQ  CPU-LIM  THROTTLED   "
	      "MEMORY  MEM-REQ  MEM-LIM  OOM\n"
	      "shop       web-1  -          worker-1  120m    12m     250m     500m         0%  "
	      "100.0Mi  128.0Mi  256.0Mi    0\n"
	      "shop       web-9  app        worker-1   90m      -        -     400m          -  "
	      " 64.0Mi        -        -    -\n"
	      "shop       web-9  sidecar    worker-1   30m      -        -     none          -     "
	      "   -        -   32.0Mi    -\n",
	      "");
}

/* Waiting, kills and the 95th percentile of the last hour, which has a column only then. */
static void sorts_by_what_hurts(void **state)
{
	enum { WAITING = 5, OOM, P95 };
	static const struct {
		int sort;
		bool reverse;
		const char *first;
	} cases[] = {
		{WAITING, false, "shop  web-7d9 "},
		{OOM, false, "-     system.slice/ssh.service "},
		{OOM, true, "shop  web-9 "},
		{P95, false, "shop  web-9 "},
	};
	struct error reason;
	struct buf out;
	(void)state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cli_fixture g = {.items = {known, many, web, idle},
					.options = {.sort = cases[i].sort,
						    .reverse = cases[i].reverse,
						    .no_headers = true}};

		assert_int_equal(cli_fixture_render(&g, &pods_kind, &out, &reason), CLI_OK);
		assert_memory_equal(out.data, cases[i].first, strlen(cases[i].first));
		assert_int_equal(strstr(out.data, "  70m  ") != NULL, cases[i].sort == P95);
		buf_fini(&out);
	}
}

/* The table of --contention shows waiting for CPU alone. */
static void sorts_contention_by_cpu(void **state)
{
#define WAITS(name, cpu, memory)                                                                   \
	POD("shop", name, "Pod", NOW, ",\"contention\":{\"cpu\":" cpu ",\"memory\":" memory "}")
	static const char little[] = WAITS("a", "0.01", "0.9"), much[] = WAITS("b", "0.5", "0");
	struct cli_fixture g = {.items = {little, much},
				.options = {.sort = 5, .contention = true, .no_headers = true}};
	struct error reason;
	struct buf out;
	(void)state;

	assert_int_equal(cli_fixture_render(&g, &pods_kind, &out, &reason), CLI_OK);
	assert_true(strstr(out.data, "shop  b ") < strstr(out.data, "shop  a "));
	buf_fini(&out);
}

#define SHARES(name, cpu, cpu_requests, memory, memory_requests)                                   \
	"{\"name\":\"" name "\",\"usage\":{\"cpuMillicores\":{\"latest\":{\"value\":" cpu          \
	"}},\"workingSetBytes\":{\"latest\":{\"value\":" memory                                    \
	"}}},\"requests\":{\"cpuMillicores\":" cpu_requests ",\"memoryBytes\":" memory_requests    \
	"}}"

#define THROTTLED(name, member) "{\"name\":\"" name "\",\"usage\":{},\"contention\":{" member "}}"

/* The larger of two shares; without a share of throttled time, its seconds of 5 minutes. */
static void sorts_by_shares(void **state)
{
	enum { THROTTLING = 3, REQUESTS };
	static const struct {
		int sort;
		const char *items[3]; /* of "first", "second" and "third" */
	} cases[] = {
		{REQUESTS,
		 {SHARES("third", "900", "9000", "1000", "2000"),
		  SHARES("second", "10", "10", "5", "100"),
		  SHARES("first", "500", "1000", "300", "100")}},
		{THROTTLING,
		 {THROTTLED("third", "\"throttledSeconds\":30"),
		  THROTTLED("second", "\"throttledRatio\":0.3,\"throttledSeconds\":300"),
		  THROTTLED("first", "\"throttledSeconds\":150")}},
	};
	struct error reason;
	struct buf out;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *const *items = cases[i].items;
		struct cli_fixture g = {.items = {items[0], items[1], items[2]},
					.options = {.sort = cases[i].sort}};
		const char *second;

		cli_fixture_render(&g, &pods_kind, &out, &reason);
		second = strstr(out.data, "second");
		assert_non_null(second);
		assert_true(strstr(out.data, "first") < second &&
			    second < strstr(out.data, "third"));
		buf_fini(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leaves_namespaces_out_where_there_are_none),
		cmocka_unit_test(shows_likely_causes),
		cmocka_unit_test(shows_namespaces_and_limits),
		cmocka_unit_test(marks_slices_when_asked_for),
		cmocka_unit_test(containers_have_rows_of_their_own),
		cmocka_unit_test(sorts_by_what_hurts),
		cmocka_unit_test(sorts_contention_by_cpu),
		cmocka_unit_test(sorts_by_shares),
		cmocka_unit_test(shows_age_where_something_is_stale),
		cmocka_unit_test(tells_unthrottled_from_unknown),
		cmocka_unit_test(paints_what_is_near_its_limit),
		cmocka_unit_test(wide_shows_everything),
		cmocka_unit_test(shows_resizes),
		cmocka_unit_test(wide_shows_what_any_row_has),
		cmocka_unit_test(wide_leaves_out_what_no_row_has),
		cmocka_unit_test(paints_tasks_near_their_limit),
		cmocka_unit_test(shows_requests_and_limits),
		cmocka_unit_test(shows_what_differs),
		cmocka_unit_test(wide_shows_workloads),
		cmocka_unit_test(pending_pods_are_not_stale),
		cmocka_unit_test(exit_code_tells_staleness),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
