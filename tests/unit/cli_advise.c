/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evenkeel advise over a snapshot: the table, what it makes for kubectl, which pages and filters the
 * API has, and what it refuses. Demand is written down by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "aggregator/api/snapshot.h"
#include "shared/buf.h"
#include "shared/mem.h"
#include "tests/api_fixture.h"
#include "tests/process.h"

/* clang-format off */
#define POD(name, owner, kind, labels, containers)                                                 \
	POD_WITH(name, owner, kind, labels, containers, "01", "Running")
#define POD_WITH(name, owner, kind, labels, containers, day, phase)                                \
	"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"" name "\","             \
	"\"namespace\":\"shop\",\"uid\":\"" name "\",\"labels\":{" labels "},"                     \
	"\"creationTimestamp\":\"2026-01-" day "T00:00:00Z\",\"ownerReferences\":[{"                    \
	"\"controller\":true,\"kind\":\"" kind "\",\"name\":\"" owner "\",\"uid\":\"o-" owner "\"}]}," \
	"\"spec\":{\"nodeName\":\"a\",\"containers\":[" containers "]},"                           \
	"\"status\":{\"phase\":\"" phase "\"}}"
#define CONTAINER(name, requests, limits)                                                          \
	"{\"name\":\"" name "\",\"resources\":{\"requests\":{" requests "},\"limits\":{" limits "}}}"
#define WEB_POD(name)                                                                              \
	POD("web-5d4f8c7b9-" name, "web-5d4f8c7b9", "ReplicaSet",                                  \
	    "\"app\":\"web\",\"pod-template-hash\":\"5d4f8c7b9\"",                                 \
	    CONTAINER("app", "\"cpu\":\"1\",\"memory\":\"1Gi\"", "\"memory\":\"2Gi\"") ","         \
	    CONTAINER("side", "\"cpu\":\"10m\",\"memory\":\"32Mi\"", ""))
/* Of Deployment "api", with a sidecar; "app" requests as many cores as the day of its creation. */
#define API_POD(name, hash, day, phase)                                                            \
	POD_WITH("api-" hash "-" name, "api-" hash, "ReplicaSet",                                  \
		 "\"app\":\"api\",\"pod-template-hash\":\"" hash "\"",                             \
		 CONTAINER("app", "\"cpu\":\"" day "\"", "") "],\"initContainers\":["              \
		 "{\"name\":\"first\"},{\"name\":\"mesh\",\"restartPolicy\":\"Always\"}", day, phase)
/* Of 2026-01-31, day 20484. */
#define DEMAND(key, container, cpu, peak)                                                          \
	"{\"key\":\"" key "\",\"container\":\"" container "\",\"seen\":1769860800,"                \
	"\"measuredSeconds\":90000,\"samples\":100000,\"periods\":100,\"throttledPeriods\":5,"     \
	"\"cpu\":[" cpu "],\"days\":[20484," peak ",0,0]}"

#define NODE_USE                                                                                   \
	"{\"name\":\"a\",\"end\":\"2026-01-31T11:59:58Z\",\"source\":{\"tier\":\"T1\",\"rateHz\":10," \
	"\"runId\":\"00112233445566778899aabbccddeeff\",\"missedTicks\":0,\"overflowCgroups\":0,"    \
	"\"agentCpuMillicores\":1,\"passMicroseconds\":1,\"asideNanoseconds\":0},"                 \
	"\"totals\":{\"missedTicks\":0,\"cpuNanoseconds\":{\"user\":0,\"system\":0,\"iowait\":0,"    \
	"\"steal\":0},\"pressureNanoseconds\":{}},\"usage\":{}}"

static const char snapshot[] =
	"{\"apiVersion\":\"evenkeel.io/v1\",\"kind\":\"Snapshot\",\"time\":\"2026-01-31T12:00:00Z\","
	"\"sources\":["
	"{\"kind\":\"Node\",\"state\":\"synced\",\"changed\":\"2026-01-31T12:00:00Z\"},"
	"{\"kind\":\"Pod\",\"state\":\"synced\",\"changed\":\"2026-01-31T12:00:00Z\"}],"
	"\"list\":{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":["
	"{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"a\",\"uid\":\"a\"},\"status\":{"
	"\"capacity\":{\"cpu\":\"8\",\"memory\":\"16Gi\",\"pods\":\"110\"},"
	"\"allocatable\":{\"cpu\":\"8\",\"memory\":\"16Gi\",\"pods\":\"110\"},"
	"\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}},"
	WEB_POD("a") "," WEB_POD("b") ","
	POD("db-0", "db", "StatefulSet", "\"app\":\"db\"",
	    CONTAINER("sql", "\"cpu\":\"100m\",\"memory\":\"115Mi\"", "\"cpu\":\"200m\"")) ","
	/* The newest template counts, wherever its pods stand; of a template all pods. */
	API_POD("a", "11", "02", "Running") "," API_POD("a", "22", "03", "Running") ","
	API_POD("b", "22", "04", "Running") "," API_POD("a", "33", "01", "Running") ","
	API_POD("c", "22", "05", "Succeeded")
	"]},"
	"\"usage\":{\"apiVersion\":\"evenkeel.io/v2\",\"kind\":\"Usage\","
	"\"time\":\"2026-01-31T12:00:00Z\",\"nodes\":[" NODE_USE "],\"pods\":["
	"{\"node\":\"a\",\"end\":\"2026-01-31T11:59:58Z\",\"name\":\"nginx.service\",\"kind\":\"Unit\","
	"\"kernelLimits\":{\"cpuMillicores\":500,\"memoryBytes\":null,\"pids\":null},\"usage\":{}},"
	"{\"node\":\"a\",\"end\":\"2026-01-31T11:59:58Z\",\"name\":\"kubepods/pod1\",\"uid\":\"stray\",\"kind\":\"Pod\",\"usage\":{}}]},"
	"\"state\":{\"demand\":["
	DEMAND("/Unit/nginx.service", "", "73,10000", "104857600") ","
	DEMAND("shop/Deployment/api", "app", "73,10000", "104857600") ","
	DEMAND("shop/Deployment/api", "first", "73,10000", "104857600") ","
	DEMAND("shop/Deployment/api", "mesh", "73,10000", "104857600") ","
	DEMAND("shop/Deployment/web", "app", "56,9900,73,100", "104857600") ","
	DEMAND("shop/Deployment/web", "side", "0,9999", "20971520") ","
	DEMAND("shop/StatefulSet/db", "sql", "73,10000", "104857600") ","
	DEMAND("shop/Deployment/gone", "app", "73,10000", "104857600")
	"]}}";
/* clang-format on */

static char *path;

static int setup(void **state)
{
	FILE *f;

	path = mem_strdup("/tmp/evenkeel-advise-XXXXXX");
	*state = path;
	close(mkstemp(path));
	f = fopen(path, "w");
	if (!f || fputs(snapshot, f) < 0 || fclose(f))
		return -1;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	remove(path);
	free(path);
	return 0;
}

static const struct given {
	const char *words;
	int code;
	const char *says[4]; /* in this order */
	const char *never;
} cases[] = {
	/* sql demands ten times its request; app a fifth of it. */
	{"advise --no-headers",
	 0,
	 {"StatefulSet/db      sql   tooSmall:cpu ",
	  "Deployment/api      app   tooSmall:mem      4.00",
	  "Deployment/web      app   tooLarge:cpu,mem",
	  "Unit/nginx.service  -     undeclared           -  1.00  500m"},
	 "gone"},
	{"advise web --explain", 0, {"app", "CPU request 199m", "Memory request 115.0Mi"}, "sql"},
	/* In the order of the table, and no more than it has. */
	{"advise --explain --limit 2",
	 0,
	 {"shop/StatefulSet/db sql:", "shop/Deployment/api app:"},
	 "web app:"},
	{"advise -l app=db", 0, {"sql"}, "Deployment"},
	{"advise -n other", 4, {"no measured container matches --namespace"}, "sql"},
	{"advise -l app=nope", 4, {"no measured container matches"}, "no demand"},
	{"advise -n other --nodes", 4, {"no measured container matches"}, "Nothing"},
	{"advise nothing --nodes", 4, {"no container of a workload \"nothing\""}, "Nothing"},
	{"advise nothing -o patch", 4, {"no container of a workload \"nothing\""}, NULL},
	{"advise --nodes -o patch", 2, {"take one of them"}, NULL},
	{"advise --nodes -o vpa", 2, {"take one of them"}, NULL},
	{"advise --nodes -o csv", 2, {"--nodes prints scenarios and no containers"}, NULL},
	{"advise Deployment/web -o csv", 0, {"shop,Deployment,web,app"}, "sql"},
	{"advise shop/deployment/web -o csv", 0, {"shop,Deployment,web,app"}, "sql"},
	{"advise shop/web -o csv", 0, {"shop,Deployment,web,app"}, "sql"},
	{"advise unit/nginx.service -o name", 0, {"Unit/nginx.service\n"}, "web"},
	{"advise statefulset/web", 4, {"no container of a workload"}, NULL},
	{"advise web -o name", 0, {"shop/Deployment/web/app\nshop/Deployment/web/side\n"}, "db"},
	{"advise nothing", 4, {"no container of a workload \"nothing\""}, NULL},
	{"advise a b", 2, {"advise takes one workload"}, NULL},
	{"advise --throttled-below 2",
	 2,
	 {"--throttled-below 2: must be a share above 0 and below 1"},
	 "throttledBelow"},
	{"advise --throttled-below 0", 2, {"must be a share"}, NULL},
	{"advise --throttled-below nan", 2, {"must be a share"}, NULL},
	{"advise --confidence high --no-headers", 0, {"StatefulSet/db"}, NULL},
	{"advise --policy brave", 2, {"brave"}, NULL},
	/* 1 % of the samples of app demand a whole core. */
	{"advise web -o json",
	 0,
	 {"\"throttledBelow\":0.01", "\"p50\":198.3", "\"throttledRatio\":0.01"},
	 "\"sql\""},
	{"advise web -o json --throttled-below 0.5%",
	 0,
	 {"\"throttledBelow\":0.005", "\"limits\":{\"cpuMillicores\":1052"},
	 NULL},
	{"advise -o patch",
	 0,
	 {"kubectl patch Deployment web --namespace shop --type strategic --patch "
	  "'{\"spec\":{\"template\":"
	  "{\"spec\":{\"containers\":[{\"name\":\"app\",\"resources\":{\"requests\":{\"cpu\":"
	  "\"199m\","
	  "\"memory\":\"115Mi\"},\"limits\":{\"memory\":\"130Mi\"}}}]}}}}'",
	  "kubectl patch StatefulSet db", "\"limits\":{\"cpu\":\"1052m\"}"},
	 "side"},
	{"advise api -o patch",
	 0,
	 {"{\"containers\":[{\"name\":\"app\"", "\"initContainers\":[{\"name\":\"mesh\""},
	 "first"},
	{"advise web -o vpa",
	 0,
	 {"name: deployment-web\n", "updateMode: \"Off\"", "containerName: app",
	  "minAllowed:\n        cpu: \"199m\""},
	 "db"},
	{"advise -o scenario --policy safe",
	 0,
	 {"- name: safe\n  resize:\n",
	  "- \"shop/Deployment/web=app/limits.memory:160Mi,cpu:199m,memory:130Mi\"\n",
	  "- \"shop/StatefulSet/db=sql/limits.cpu:1052m,cpu:1003m,memory:130Mi\"\n"},
	 "side"},
	{"advise -o snapshot", 2, {"-o snapshot goes with whatif"}, NULL},
	{"advise -o csv",
	 0,
	 {"cpu_request_millicores", "shop,Deployment,web,app,2,tooLarge"},
	 NULL},
	{"advise --nodes", 0, {"SCENARIO", "now", "changed"}, NULL},
};

static void run(char *file, const char *words, int *code, struct buf *out)
{
	char *copy = mem_strdup(words), *save, *word;
	char *argv[16] = {(char *)program_path("evenkeel"), (char *)"--snapshot", file};
	size_t n = 3;

	for (word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
		argv[n++] = word;
	*code = process_run(argv, out, out);
	buf_add_str(out, "");
	free(copy);
}

static void check_all(char *file, const struct given *all, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct given *g = &all[i];
		struct buf out = BUF_INIT;
		const char *at;
		int code;

		run(file, g->words, &code, &out);
		at = out.data;
		for (size_t k = 0; k < 4 && g->says[k] && at; k++)
			at = strstr(at, g->says[k]);
		if (code != g->code || !at || (g->never && strstr(out.data, g->never)))
			fail_msg("%s: %d, %s", g->words, code, out.data);
		buf_fini(&out);
	}
}

static void test_commands(void **state)
{
	(void)state;
	check_all(path, cases, sizeof(cases) / sizeof(cases[0]));
}

/* One container each, named "app"; CPU in millicores, memory in MiB, -1: none. */
static const struct workload {
	const char *kind, *name;
	int cpu, cpu_limit, memory, memory_limit;
	int bucket; /* of all demand for CPU: 38 is about 36m, 73 1000m */
	int hertz, hours, peak;
	int oom_limit;
} workloads[] = {
	{"Rollout", "canary", 100, -1, 115, -1, 73, 10, 30, 100, 0},
	{"ReplicaSet", "web", 1000, 1000, 1024, 1024, 38, 10, 30, 100, 0},
	{"StatefulSet", "web", 100, 200, 115, 200, 73, 1, 30, 100, 0},
	{"DaemonSet", "young", 1000, -1, 1024, -1, 38, 10, 0, 100, 0},
	{"StatefulSet", "odd_name", 1000, -1, 1024, -1, 38, 10, 30, 100, 0},
	{"CronJob", "nightly", 1000, 1000, 1024, 2048, 38, 1, 30, 100, 0},
	{"StatefulSet", "leak", 100, 200, 64, 100, 73, 10, 30, 1000, 100},
	{"StatefulSet", "killed", 100, 20, 64, 100, 73, 1, 30, 90, 100},
	{"StatefulSet", "raised", 100, 50, 64, 8192, 38, 1, 30, 250, 250},
	{"StatefulSet", "bound", -1, 10, -1, 16, 73, 1, 30, 1000, 0},
	{"StatefulSet", "half", -1, 2000, 8192, 8192, 38, 1, 30, 1, 0},
};

enum { WORKLOADS = sizeof(workloads) / sizeof(workloads[0]) };

static void add_amounts(struct buf *out, int cpu, int memory)
{
	if (cpu >= 0)
		buf_printf(out, "\"cpu\":\"%dm\"%s", cpu, memory >= 0 ? "," : "");
	if (memory >= 0)
		buf_printf(out, "\"memory\":\"%dMi\"", memory);
}

static void add_pod(struct buf *out, const struct workload *w)
{
	const char *kind = strcmp(w->kind, "CronJob") == 0 ? "Job" : w->kind;

	buf_printf(out,
		   ",{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s-%s\","
		   "\"namespace\":\"shop\",\"uid\":\"%s-%s\",\"creationTimestamp\":"
		   "\"2026-01-01T00:00:00Z\",\"ownerReferences\":[{\"controller\":true,"
		   "\"kind\":\"%s\",\"name\":\"%s%s\",\"uid\":\"o\"}]},\"spec\":{\"nodeName\":"
		   "\"a\",\"containers\":[{\"name\":\"app\",\"resources\":{\"requests\":{",
		   w->kind, w->name, w->kind, w->name, kind, w->name,
		   strcmp(kind, "Job") == 0 ? "-28000000" : "");
	add_amounts(out, w->cpu, w->memory);
	buf_add_str(out, "},\"limits\":{");
	add_amounts(out, w->cpu_limit, w->memory_limit);
	buf_add_str(out, "}}}]},\"status\":{\"phase\":\"Running\"}}");
}

static void add_demand(struct buf *out, const struct workload *w, const char *key)
{
	buf_printf(out,
		   "%s{\"key\":\"%s%s/%s\",\"container\":\"%s\",\"seen\":1769860800,"
		   "\"measuredSeconds\":%d,\"samples\":%d,\"periods\":0,\"throttledPeriods\":0,"
		   "\"cpu\":[%d,1000],\"days\":[20484,%lld,%d,0],\"oomLimits\":[20484,%lld]}",
		   w == workloads ? "" : ",", key, w->kind, w->name, *key == '/' ? "" : "app",
		   w->hours * 3600 + 60, 1000 * w->hertz, w->bucket, (long long)w->peak << 20,
		   w->oom_limit > 0, (long long)w->oom_limit << 20);
}

/* With a Kubernetes API, or the same as units that have ended. */
static char *write_snapshot(bool kubernetes)
{
	char *file = mem_strdup("/tmp/evenkeel-advise-XXXXXX");
	struct buf out = BUF_INIT;
	FILE *f;

	buf_add_str(&out, "{\"apiVersion\":\"evenkeel.io/v1\",\"kind\":\"Snapshot\",\"time\":"
			  "\"2026-01-31T12:00:00Z\",\"list\":{\"apiVersion\":\"v1\",\"kind\":"
			  "\"List\",\"items\":[");
	if (kubernetes)
		buf_add_str(&out,
			    "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":"
			    "\"a\",\"uid\":\"a\"},\"status\":{\"allocatable\":{\"cpu\":\"64\","
			    "\"memory\":\"64Gi\",\"pods\":\"110\"},\"conditions\":[{\"type\":"
			    "\"Ready\",\"status\":\"True\"}]}}");
	for (int i = 0; i < WORKLOADS && kubernetes; i++)
		add_pod(&out, &workloads[i]);
	buf_printf(&out,
		   "]},\"sources\":[{\"kind\":\"Node\",\"state\":\"%s\",\"changed\":\"2026-01-"
		   "31T12:00:00Z\"},"
		   "{\"kind\":\"Pod\",\"state\":\"%s\",\"changed\":\"2026-01-31T12:00:00Z\"}],"
		   "\"usage\":{\"apiVersion\":\"evenkeel.io/v2\",\"kind\":\"Usage\","
		   "\"time\":\"2026-01-31T12:00:00Z\",\"nodes\":[],\"pods\":[]},"
		   "\"state\":{\"demand\":[",
		   kubernetes ? "synced" : "none", kubernetes ? "synced" : "none");
	for (int i = 0; i < WORKLOADS; i++)
		add_demand(&out, &workloads[i], kubernetes ? "shop/" : "/Unit/");
	buf_add_str(&out, "]}}");
	close(mkstemp(file));
	f = fopen(file, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(out.data, 1, out.len, f), out.len);
	assert_int_equal(fclose(f), 0);
	buf_fini(&out);
	return file;
}

/* Millicores or MiB of a text such as "250m"; the default where there is none. */
static int amount_of(const cJSON *resources, const char *list, const char *name, int otherwise)
{
	const char *text = cJSON_GetStringValue(
		cJSON_GetObjectItem(cJSON_GetObjectItem(resources, list), name));

	return text ? (int)strtol(text, NULL, 10) : otherwise;
}

static void check_bounds(const struct workload *w, const cJSON *resources)
{
	const int now[][2] = {{w->cpu, w->cpu_limit}, {w->memory, w->memory_limit}};

	for (int i = 0; i < 2; i++) {
		const char *name = i ? "memory" : "cpu";
		int request = amount_of(resources, "requests", name, now[i][0]),
		    limit = amount_of(resources, "limits", name, now[i][1]);

		if (limit >= 0 ? request > limit : amount_of(resources, "limits", name, -1) >= 0)
			fail_msg("%s/%s: %s %d, limit %d", w->kind, w->name, name, request, limit);
	}
}

/* What the API server would refuse. */
static void test_no_request_is_above_its_limit(void **state)
{
	static const char *const words[] = {
		"advise -o patch --confidence low",
		"advise -o patch --policy saving --confidence low",
		"advise -o patch --policy safe --throttled-below 50%",
	};
	char *file = write_snapshot(true);

	(void)state;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		struct buf out = BUF_INIT;
		int code, found = 0;

		run(file, words[i], &code, &out);
		assert_int_equal(code, 0);
		for (const struct workload *w = workloads; w < workloads + WORKLOADS; w++) {
			char *head = mem_printf("kubectl patch %s %s ", w->kind, w->name);
			const char *line = strstr(out.data, head), *at;
			cJSON *patch;

			free(head);
			if (!line)
				continue;
			at = strstr(line, "\"resources\":");
			patch = cJSON_Parse(at + strlen("\"resources\":"));
			assert_non_null(patch);
			check_bounds(w, patch);
			cJSON_Delete(patch);
			found++;
		}
		assert_true(found >= 7);
		buf_fini(&out);
	}
	remove(file);
	free(file);
}

static void test_notes(void **state)
{
	static const struct given kubernetes[] = {
		{"advise -o patch",
		 0,
		 {"1 container left out, as evenkeel cannot change workloads of their kind: "
		  "shop/Rollout/canary/app\n",
		  "1 container left out, as Kubernetes objects have no such names: "
		  "shop/StatefulSet/odd_name/app\n",
		  "1 container left out, as they were measured too short a time (--confidence low "
		  "takes them): shop/DaemonSet/young/app\n",
		  "pods of 3 workloads lose the class Guaranteed, as requests become smaller than "
		  "limits: shop/ReplicaSet/web, shop/StatefulSet/bound, shop/StatefulSet/half\n"},
		 "kubectl patch DaemonSet"},
		{"advise -o patch --confidence low",
		 0,
		 {"kubectl patch DaemonSet young"},
		 "too short"},
		{"advise -o patch --confidence high",
		 0,
		 {"kubectl patch CronJob nightly"},
		 "DaemonSet young"},
		{"advise -o vpa", 0, {"Rollout/canary", "DaemonSet/young"}, "Guaranteed"},
		{"advise young", 0, {"tooLarge"}, NULL},
		{"advise young --confidence medium",
		 4,
		 {"no container was measured long enough for --confidence medium"},
		 NULL},
		{"advise young --explain", 0, {"samples of 1m00s"}, NULL},
		/* The limit is raised, and of the two workloads web each has its own amounts. */
		{"advise shop/statefulset/web -o scenario",
		 0,
		 {"shop/StatefulSet/web=app/limits.cpu:10", "limits.memory:130Mi,cpu:10"},
		 "ReplicaSet"},
		{"advise --nodes", 0, {"changed"}, "have this name"},
		{"whatif --resize shop/web=cpu:10m",
		 2,
		 {"a ReplicaSet and a StatefulSet have this name: name one, as in "
		  "shop/ReplicaSet/web=.."},
		 NULL},
		{"advise --nodes",
		 0,
		 {"2 containers left out, as evenkeel cannot change workloads of their kind: "
		  "shop/CronJob/nightly/app, shop/Rollout/canary/app\n"},
		 "have this name"},
	};
	static const struct given units[] = {
		{"advise", 4, {"all that was measured has ended: --all shows it"}, NULL},
		{"advise --all --no-headers", 0, {"Unit/Rollout/canary        undeclared"}, "none"},
		{"advise Unit/StatefulSet/leak --no-headers", 0, {"Unit/StatefulSet/leak"}, "web"},
		{"advise --all", 0, {"Unit/"}, "Requests of"},
	};
	char *with = write_snapshot(true), *without = write_snapshot(false);

	(void)state;
	check_all(with, kubernetes, sizeof(kubernetes) / sizeof(kubernetes[0]));
	check_all(without, units, sizeof(units) / sizeof(units[0]));
	remove(with);
	remove(without);
	free(with);
	free(without);
}

#define NUMBER(path) ((int)api_fixture_number(&f, path))

static void test_pages(void **state)
{
	static const struct {
		const char *query;
		int status, items;
	} rows[] = {
		{"limit=500", 200, 6},		 {"namespace=shop", 200, 5},
		{"namespace=sho", 200, 0},	 {"labelSelector=app!=db", 200, 4},
		{"throttledBelow=", 200, 6},	 {"throttledBelow=50%", 200, 6},
		{"throttledBelow=0.5", 200, 6},	 {"throttledBelow=x", 400, 0},
		{"throttledBelow=0.5x", 400, 0}, {"throttledBelow=0", 400, 0},
		{"throttledBelow=1", 400, 0},	 {"limit=0", 400, 0},
	};
	struct snapshot *s = snapshot_new();
	struct buf token = BUF_INIT;
	struct api_fixture f;
	struct error error;
	int64_t now_ns;
	struct view *v;
	int items = 0;

	(void)state;
	assert_int_equal(snapshot_add(s, "s", snapshot, strlen(snapshot), &error), 0);
	assert_int_equal(snapshot_view(s, &v, &now_ns, &error), 0);
	snapshot_free(s);
	api_fixture_open(&f, v);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *target = mem_printf("/v1/advice?%s", rows[i].query);

		if (api_fixture_get(&f, target) != rows[i].status ||
		    cJSON_GetArraySize(api_fixture_at(f.json, "items")) != rows[i].items)
			fail_msg("%s: %s", target, f.response.body.data);
		free(target);
	}
	/* To clients of Kubernetes they have no name. */
	assert_int_equal(api_fixture_get(&f, "/apis/evenkeel.io/v1/advices"), 200);
	assert_string_equal(api_fixture_text(&f, "items.0.metadata.name"), "");
	assert_string_equal(api_fixture_text(&f, "items.1.metadata.namespace"), "shop");
	/* Each page goes on behind the last container of the one before. */
	do {
		char *target = mem_printf("/v1/advice?limit=1%s%s", items ? "&continue=" : "",
					  token.len ? token.data : "");

		assert_int_equal(api_fixture_get(&f, target), 200);
		assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, "items")), 1);
		assert_int_equal(NUMBER("total.containers"), 6);
		buf_clear(&token);
		buf_add_str(&token, api_fixture_text(&f, "continue"));
		free(target);
		items++;
	} while (token.len);
	assert_int_equal(items, 6);
	buf_fini(&token);
	api_fixture_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_commands),
		cmocka_unit_test(test_no_request_is_above_its_limit),
		cmocka_unit_test(test_notes),
		cmocka_unit_test(test_pages),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
