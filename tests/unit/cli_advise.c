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

#include "shared/buf.h"
#include "shared/mem.h"
#include "tests/process.h"

/* clang-format off */
#define POD(name, owner, kind, labels, containers)                                                 \
	"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"" name "\","             \
	"\"namespace\":\"shop\",\"uid\":\"" name "\",\"labels\":{" labels "},"                     \
	"\"creationTimestamp\":\"2026-01-01T00:00:00Z\",\"ownerReferences\":[{"                    \
	"\"controller\":true,\"kind\":\"" kind "\",\"name\":\"" owner "\",\"uid\":\"o-" owner "\"}]}," \
	"\"spec\":{\"nodeName\":\"a\",\"containers\":[" containers "]},"                           \
	"\"status\":{\"phase\":\"Running\"}}"
#define CONTAINER(name, requests, limits)                                                          \
	"{\"name\":\"" name "\",\"resources\":{\"requests\":{" requests "},\"limits\":{" limits "}}}"
#define WEB_POD(name)                                                                              \
	POD("web-5d4f8c7b9-" name, "web-5d4f8c7b9", "ReplicaSet",                                  \
	    "\"app\":\"web\",\"pod-template-hash\":\"5d4f8c7b9\"",                                 \
	    CONTAINER("app", "\"cpu\":\"1\",\"memory\":\"1Gi\"", "\"memory\":\"2Gi\"") ","         \
	    CONTAINER("side", "\"cpu\":\"10m\",\"memory\":\"32Mi\"", ""))
/* Of 2026-01-31, day 20484. */
#define DEMAND(key, container, cpu, peak)                                                          \
	"{\"key\":\"" key "\",\"container\":\"" container "\",\"seen\":1769860800,"                \
	"\"measuredSeconds\":90000,\"samples\":100000,\"periods\":100,\"throttledPeriods\":5,"     \
	"\"cpu\":[" cpu "],\"days\":[20484," peak ",0,0]}"

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
	    CONTAINER("sql", "\"cpu\":\"100m\",\"memory\":\"115Mi\"", "\"cpu\":\"200m\""))
	"]},"
	"\"usage\":{\"apiVersion\":\"evenkeel.io/v2\",\"kind\":\"Usage\","
	"\"time\":\"2026-01-31T12:00:00Z\",\"nodes\":[],\"pods\":[]},"
	"\"state\":{\"demand\":["
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
	 {"StatefulSet/db", "tooSmall", "Deployment/web  app", "fits"},
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
	{"advise web -o vpa",
	 0,
	 {"apiVersion: autoscaling.k8s.io/v1", "updateMode: \"Off\"", "containerName: app",
	  "minAllowed:\n        cpu: \"199m\""},
	 "db"},
	{"advise -o scenario --policy safe",
	 0,
	 {"- name: safe\n  resize:\n  - \"shop/web=app/cpu:199m,memory:130Mi\"\n",
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

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_commands)};

	return cmocka_run_group_tests(tests, setup, teardown);
}
