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
	{"advise -l app=db", 0, {"sql"}, "Deployment"},
	{"advise -n other", 4, {NULL}, "sql"},
	{"advise nothing", 4, {"no container of a workload \"nothing\""}, NULL},
	{"advise a b", 2, {"advise takes one workload"}, NULL},
	{"advise --throttled-below 2", 1, {"is not a share"}, NULL},
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
	 {"apiVersion: autoscaling.k8s.io/v1", "updateMode: \"Off\"", "containerName: app",
	  "minAllowed:\n        cpu: \"199m\""},
	 "db"},
	{"advise -o scenario --policy safe",
	 0,
	 {"- name: safe\n  resize:\n", "  - \"shop/api=mesh/cpu:1003m,memory:130Mi\"\n",
	  "  - \"shop/web=app/cpu:199m,memory:130Mi\"\n",
	  "- \"shop/db=sql/cpu:200m,memory:130Mi\"\n"},
	 "side"},
	{"advise -o snapshot", 2, {"-o snapshot goes with whatif"}, NULL},
	{"advise -o csv",
	 0,
	 {"cpu_request_millicores", "shop,Deployment,web,app,2,tooLarge"},
	 NULL},
	{"advise --nodes", 0, {"SCENARIO", "now", "changed"}, NULL},
};

static void run(const char *words, int *code, struct buf *out)
{
	char *copy = mem_strdup(words), *save, *word;
	char *argv[16] = {(char *)program_path("evenkeel"), (char *)"--snapshot", path};
	size_t n = 3;

	for (word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
		argv[n++] = word;
	*code = process_run(argv, out, out);
	buf_add_str(out, "");
	free(copy);
}

static void test_commands(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct given *g = &cases[i];
		struct buf out = BUF_INIT;
		const char *at;
		int code;

		run(g->words, &code, &out);
		at = out.data;
		for (size_t k = 0; k < 4 && g->says[k] && at; k++)
			at = strstr(at, g->says[k]);
		if (code != g->code || !at || (g->never && strstr(out.data, g->never)))
			fail_msg("%s: %d, %s", g->words, code, out.data);
		buf_fini(&out);
	}
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
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_commands),
					   cmocka_unit_test(test_pages)};

	return cmocka_run_group_tests(tests, setup, teardown);
}
