/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots from end to end: streamed by the real server to readers of every pace, and the evenkeel
 * program over files, which prints what it printed over the server, byte for byte.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <math.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "aggregator/edge/http/http.h"
#include "shared/mem.h"
#include "tests/cluster_fixture.h"
#include "tests/http_plain.h"
#include "tests/process.h"
#include "tests/view_fixture.h"

enum { ARGS_MAX = 12, STREAMS_MOST = 4, STATS = 5000 };

struct scene {
	struct api_context ctx;
	struct counters counters;
	struct http_server *server;
	char *folder, *url;
	char *snapshot; /* a file with the whole of the cluster */
};

static int64_t fixed_now(void)
{
	return VIEW_FIXTURE_NOW_NS;
}

static void write_file(const char *path, const char *text, size_t len)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

/* The caller frees the path. */
static char *file_of(const struct scene *s, const char *name, const char *text)
{
	char *path = mem_printf("%s/%s", s->folder, name);

	write_file(path, text, strlen(text));
	return path;
}

static int setup(void **state)
{
	struct scene *s = mem_zalloc(1, sizeof(*s));
	struct buf body = BUF_INIT;
	struct error error;
	char *url;

	s->ctx = (struct api_context){
		.views = view_slot_new(),
		.counters = &s->counters,
		.now_ns = fixed_now,
		.watcher_smoothed = 1,
	};
	view_slot_publish(s->ctx.views, cluster_fixture_new());
	if (http_plain_start(&s->server, "127.0.0.1:0", &s->ctx, &error)) {
		print_error("%s\n", error.text);
		return -1;
	}
	s->folder = folder_make();
	s->url = mem_printf("http://%s", http_address(s->server));
	s->snapshot = mem_printf("%s/snapshot.json", s->folder);
	url = mem_printf("%s/v1/snapshot", s->url);
	if (http_get(url, &body) != 200)
		return -1;
	write_file(s->snapshot, body.data, body.len);
	free(url);
	buf_fini(&body);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	http_stop(s->server);
	view_slot_free(s->ctx.views);
	folder_remove(s->folder);
	free(s->snapshot);
	free(s->url);
	free(s);
	return 0;
}

/* --- the program ------------------------------------------------------------------------------ */

struct result {
	int code;
	struct buf out, err;
};

/* Arguments that are "SNAPSHOT" and such are the scene's. */
static void run(struct result *r, char *const args[ARGS_MAX])
{
	char *argv[ARGS_MAX + 2] = {(char *)program_path("evenkeel")};

	*r = (struct result){0};
	for (size_t i = 0; i < ARGS_MAX && args[i]; i++)
		argv[i + 1] = args[i];
	r->code = process_run(argv, &r->out, &r->err);
	buf_add_str(&r->out, "");
	buf_add_str(&r->err, "");
}

static void result_fini(struct result *r)
{
	buf_fini(&r->out);
	buf_fini(&r->err);
}

static void test_offline_is_online(void **state)
{
	static char *const commands[][6] = {
		{"nodes"},
		{"nodes", "-o", "wide"},
		{"nodes", "-o", "json"},
		{"nodes", "alpha", "lima"},
		{"nodes", "nobody"},
		{"pods"},
		{"pods", "-o", "wide", "--all"},
		{"pods", "-n", "shop", "-o", "json"},
		{"pods", "-l", "app=web"},
		{"scores"},
		{"scores", "--explain"},
		{"scores", "alpha", "--variant", "upstream", "-o", "json"},
		{"scores", "--strict"},
	};
	const struct scene *s = *state;

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		char *online[ARGS_MAX] = {NULL}, *offline[ARGS_MAX] = {NULL};
		struct result a, b;
		size_t n = 0;

		for (; n < 6 && commands[i][n]; n++)
			online[n] = offline[n] = commands[i][n];
		online[n] = "--server";
		online[n + 1] = s->url;
		offline[n] = "--snapshot";
		offline[n + 1] = s->snapshot;
		run(&a, online);
		run(&b, offline);
		assert_true(a.out.len > 0);
		assert_string_equal(a.out.data, b.out.data);
		assert_string_equal(a.err.data, b.err.data);
		assert_int_equal(a.code, b.code);
		result_fini(&a);
		result_fini(&b);
	}
}

static const char dump[] =
	"apiVersion: v1\n"
	"kind: List\n"
	"items:\n"
	"- apiVersion: v1\n"
	"  kind: Node\n"
	"  metadata: {name: n1, creationTimestamp: \"2026-01-30T10:00:00Z\"}\n"
	"  status:\n"
	"    capacity: {cpu: \"4\", memory: 8Gi}\n"
	"    conditions:\n"
	"    - {type: Ready, status: \"True\", lastHeartbeatTime: \"2026-01-31T12:00:00Z\"}\n"
	"- apiVersion: v1\n"
	"  kind: Pod\n"
	"  metadata: {name: web, namespace: shop}\n"
	"  spec: {nodeName: n1, containers: [{name: c, resources: {requests: {cpu: 500m}}}]}\n"
	"  status: {phase: Running}\n";

static const char broken[] = "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"b\","
			     "\"namespace\":\"shop\"},\"spec\":{\"containers\":[{\"resources\":{"
			     "\"limits\":{\"cpu\":\"5q\"}}}]}}";

static const char watcher[] =
	"{\"timestamp\":1769860810,\"window\":{\"duration\":\"15m\",\"start\":1769859905,\"end\":"
	"1769860805},"
	"\"source\":\"Prometheus\",\"data\":{\"NodeMetricsMap\":{\"n1\":{\"metrics\":["
	"{\"type\":\"CPU\",\"operator\":\"AVG\",\"rollup\":\"15m\",\"value\":25},"
	"{\"type\":\"CPU\",\"operator\":\"STD\",\"rollup\":\"15m\",\"value\":5},"
	"{\"type\":\"Memory\",\"operator\":\"AVG\",\"rollup\":\"15m\",\"value\":50},"
	"{\"type\":\"Memory\",\"operator\":\"STD\",\"rollup\":\"15m\",\"value\":1}]}}}}";

#define NO_USAGE "evenkeel: no usage is in the snapshot: give measurements with --usage\n"
#define SKIPPED                                                                                    \
	"skipped Pod shop/b: spec.containers[0].resources.limits.cpu: \"5q\" is not a quantity: "  \
	"a number like 250m, 1.5Gi or 12e6 is expected\n"

/* Names of the scene's files stand for their paths. */
static char *resolve(char *const files[][2], char *arg)
{
	for (size_t i = 0; files[i][0]; i++)
		if (strcmp(files[i][0], arg) == 0)
			return files[i][1];
	return arg;
}

/* Expects err at the end of standard error, and nothing there when it is "". */
static void check(char *const files[][2], char *const args[ARGS_MAX], int code, const char *err)
{
	char *resolved[ARGS_MAX] = {NULL};
	struct result r;

	for (size_t i = 0; i < ARGS_MAX && args[i]; i++)
		resolved[i] = resolve(files, args[i]);
	run(&r, resolved);
	if (r.err.len < strlen(err) || (!*err && r.err.len) ||
	    strcmp(r.err.data + r.err.len - strlen(err), err) != 0)
		assert_string_equal(r.err.data, err);
	if (r.code != code)
		fail_msg("exit %d instead of %d: %s", r.code, code, r.err.data);
	result_fini(&r);
}

static const struct {
	char *args[ARGS_MAX];
	int code;
	const char *err;
} exits[] = {
	{{"nodes", "--snapshot", "DUMP"}, 4, NO_USAGE},
	{{"pods", "--snapshot", "DUMP"}, 4, NO_USAGE},
	{{"scores", "--snapshot", "DUMP"}, 4, NO_USAGE},
	{{"nodes", "--snapshot", "DUMP", "--usage", "USAGE"}, 0, ""},
	{{"scores", "--snapshot", "DUMP", "--usage", "USAGE", "--explain"}, 0, ""},
	{{"nodes", "--snapshot", "DUMP", "--snapshot", "BROKEN", "--usage", "USAGE"}, 0, SKIPPED},
	{{"nodes", "--snapshot", "DUMP", "--snapshot", "BROKEN", "--usage", "USAGE", "--strict"},
	 1,
	 " cannot be used (--strict)\n"},
	{{"nodes", "n2", "--snapshot", "DUMP", "--usage", "USAGE"},
	 4,
	 "evenkeel: node \"n2\" is not known\n"},
	{{"nodes", "--snapshot", "/does/not/exist"},
	 1,
	 "evenkeel: /does/not/exist: No such file or directory\n"},
	{{"nodes", "--snapshot", "/"}, 1, "evenkeel: /: Is a directory\n"},
	{{"nodes", "--snapshot", "EMPTY"}, 1, ": there is nothing in it\n"},
	{{"nodes", "--snapshot", "USAGE"},
	 1,
	 ":1: this is an answer of /watcher, which only the command evenkeel takes, as "
	 "--usage; a snapshot is the cluster's objects\n"},
	{{"nodes", "--snapshot", "SNAPSHOT", "--snapshot", "DUMP"},
	 1,
	 ":1: a Snapshot was given, which holds everything; give it alone\n"},
	{{"nodes", "--snapshot", "SNAPSHOT", "--usage", "USAGE"},
	 1,
	 ": a Snapshot has measurements of its own; give it alone\n"},
	{{"nodes", "--snapshot", "DUMP", "--server", "http://127.0.0.1:2020"},
	 2,
	 "evenkeel: --server and --snapshot: answers come from the one or the other\n"},
	{{"nodes", "--snapshot", "DUMP", "--watch"},
	 2,
	 "evenkeel: --watch needs a server: a snapshot does not change\n"},
	{{"nodes", "--usage", "USAGE"},
	 2,
	 "evenkeel: --usage goes with --snapshot, which gives the nodes\n"},
	{{"scores", "--snapshot", "-", "--pod", "-"},
	 2,
	 "evenkeel: standard input (\"-\") can be read only once\n"},
	{{"nodes", "--snapshot", "-", "--usage", "-"},
	 2,
	 "evenkeel: standard input (\"-\") can be read only once\n"},
	{{"scores", "--snapshot", "DUMP", "--plugin", "Peak"},
	 2,
	 "evenkeel: plugins[0]: there is no plugin \"Peak\"; there are TargetLoadPacking, "
	 "LoadVariationRiskBalancing, LowRiskOverCommitment, Peaks, "
	 "NodeResourcesAllocatable, "
	 "LimitAware\n"},
	{{"scores", "--snapshot", "DUMP", "--plugin", "TargetLoadPacking:targetUtilization=500"},
	 2,
	 "evenkeel: args.TargetLoadPacking.targetUtilization: 500 is not allowed: above 0 "
	 "and at "
	 "most 100\n"},
	{{"scores", "--snapshot", "DUMP", "--plugin", "TargetLoadPacking:x"},
	 2,
	 "evenkeel: --plugin: \"TargetLoadPacking:x\" is not of the form NAME, "
	 "NAME:ARGUMENT=VALUE,.. or NAME:{..}\n"},
	{{"scores", "--snapshot", "DUMP", "--pod", "POD"},
	 1,
	 "evenkeel: pod.spec.containers[0].resources.limits.cpu: \"5q\" is not a quantity: "
	 "a "
	 "number like 250m, 1.5Gi or 12e6 is expected\n"},
};

static void test_exit_codes(void **state)
{
	const struct scene *s = *state;
	char *yaml = file_of(s, "dump.yaml", dump), *pod = file_of(s, "broken.json", broken),
	     *usage = file_of(s, "watcher.json", watcher), *empty = file_of(s, "empty", "");
	char *const files[][2] = {{"DUMP", yaml},   {"BROKEN", pod},	       {"USAGE", usage},
				  {"EMPTY", empty}, {"SNAPSHOT", s->snapshot}, {"POD", pod},
				  {NULL, NULL}};

	for (size_t i = 0; i < sizeof(exits) / sizeof(exits[0]); i++)
		check(files, exits[i].args, exits[i].code, exits[i].err);
	free(yaml);
	free(pod);
	free(usage);
	free(empty);
}

/* --- limits of every resource ----------------------------------------------------------------- */

#define HAS                                                                                        \
	"\"cpu\":\"10\",\"memory\":\"10Gi\",\"ephemeral-storage\":\"100Gi\",\"pods\":\"110\","     \
	"\"hugepages-2Mi\":\"1Gi\""
#define NODE_WITH(name, more)                                                                      \
	"{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"" name                  \
	"\"},\"status\":{\"capacity\":{" HAS more "},\"allocatable\":{" HAS more "}}},"
#define POD_ON(name, node, spec)                                                                   \
	"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"" name                   \
	"\",\"namespace\":\"d\",\"uid\":\"" name "\"},\"spec\":{\"nodeName\":\"" node "\"," spec   \
	"},\"status\":{\"phase\":\"Running\"}}"
#define LIMITED(amounts) "{\"name\":\"c\",\"resources\":{\"limits\":{" amounts "}}}"

/* The GPUs of a are limited to 3 of 4 by an init container, and b has none. */
static const char limits_dump[] = "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[" NODE_WITH(
	"a", ",\"x.io/gpu\":\"4\"") NODE_WITH("b", "")
	POD_ON("init", "a",
	       "\"containers\":[" LIMITED(
		       "\"cpu\":\"1\",\"memory\":\"1Gi\",\"ephemeral-storage\":"
		       "\"10Gi\",\"hugepages-2Mi\":\"256Mi\",\"x.io/gpu\":"
		       "\"1\"") "],\"initContainers\":[" LIMITED("\"cpu\":\"3\",\"memory\":"
								 "\"512Mi\",\"ephemeral-storage\":"
								 "\"30Gi\","
								 "\"x.io/gpu\":\"3\"") "]") "," POD_ON("open",
												       "b",
												       "\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"500m\","
												       "\"memory\":\"1Gi\",\"ephemeral-storage\":\"5Gi\"}}}]") "]}";

static const char limited_pod[] =
	"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\"},\"spec\":{"
	"\"containers\":[" LIMITED("\"cpu\":\"1\",\"ephemeral-storage\":\"10Gi\"") "]}}";

static const char limited_usage[] =
	"{\"timestamp\":1769860700,\"window\":{\"duration\":\"15m\",\"start\":1769859900,\"end\":"
	"1769860800},\"source\":\"k8s\",\"data\":{\"NodeMetricsMap\":{\"a\":{\"metrics\":[{"
	"\"type\":"
	"\"CPU\",\"operator\":\"AVG\",\"rollup\":\"15m\",\"value\":30}]},\"b\":{\"metrics\":[{"
	"\"type\":\"CPU\",\"operator\":\"AVG\",\"rollup\":\"15m\",\"value\":30}]}}}}";

static cJSON *answer(char *const args[ARGS_MAX])
{
	struct result r;
	cJSON *json;

	run(&r, args);
	if (r.code)
		fail_msg("%s: %s", args[0], r.err.data);
	json = cJSON_Parse(r.out.data);
	assert_non_null(json);
	result_fini(&r);
	return json;
}

static double limit_term(const cJSON *scores, int node, const char *name)
{
	const cJSON *item = cJSON_GetArrayItem(cJSON_GetObjectItem(scores, "items"), node);
	const cJSON *plugin = cJSON_GetArrayItem(cJSON_GetObjectItem(item, "plugins"), 0), *term;

	cJSON_ArrayForEach (term, cJSON_GetObjectItem(plugin, "terms")) {
		if (strcmp(cJSON_GetObjectItem(term, "name")->valuestring, name) == 0)
			return cJSON_GetObjectItem(term, "value")->valuedouble;
	}
	fail_msg("no term %s", name);
	return 0;
}

static double shown_ratio(const cJSON *nodes, int node, const char *resource)
{
	const cJSON *item = cJSON_GetArrayItem(cJSON_GetObjectItem(nodes, "items"), node);
	const cJSON *ratio = cJSON_GetObjectItem(item, "limitRatio");

	return cJSON_GetObjectItem(cJSON_GetObjectItem(ratio, "declared"), resource)->valuedouble;
}

static void check_terms(const cJSON *scores)
{
	static const struct {
		int node;
		const char *name;
		double value;
	} cases[] = {
		{0, "cpuLimitRatio", 0.4}, /* max(1, 3) + 1 of 10 */
		{0, "cpuRaw", 60},
		{0, "ephemeral-storage.limitRatio", 0.4}, /* max(10, 30) + 10 of 100 */
		{0, "hugepages-2Mi.limitRatio", 0.25},
		{0, "x.io/gpu.limitRatio", 0.75}, /* max(1, 3) of 4 */
		{0, "raw", (60 + 60 + 75 + 25) / 4.0},
		{1, "cpuLimitRatioBefore", 0},
		{1, "cpuLimitRatio", 0.15}, /* what it requests, and 1 */
		{1, "ephemeral-storage.limitRatio", 0.15},
		{1, "hugepages-2Mi.limitRatio", 0},
		{1, "x.io/gpu.raw", 100},
		{1, "raw", (85 + 85 + 100 + 100) / 4.0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		double value = limit_term(scores, cases[i].node, cases[i].name);

		if (fabs(value - cases[i].value) > 1e-9)
			fail_msg("%d %s is %f", cases[i].node, cases[i].name, value);
	}
}

static void test_limits_of_every_resource(void **state)
{
#define RESOURCES                                                                                  \
	"resources: [{name: cpu, weight: 1}, {name: ephemeral-storage, weight: 1}, {name: "        \
	"hugepages-2Mi, weight: 1}, {name: x.io/gpu, weight: 1}]"
	char plugin[] = "--plugin=LimitAware:{" RESOURCES "}";
	char *dump_path = file_of(*state, "limits.json", limits_dump);
	char *pod_path = file_of(*state, "limited.json", limited_pod);
	char *usage = file_of(*state, "usage.json", limited_usage);
	char *args[ARGS_MAX] = {"scores", "--snapshot", dump_path,  "--usage", usage, "--pod",
				pod_path, "--explain",	"--output", "json",    plugin};
	char *const table[ARGS_MAX] = {"nodes", "--snapshot", dump_path, "--usage",
				       usage,	"--output",   "json"};
	cJSON *scores = answer(args), *nodes = answer(table);

	check_terms(scores);
	cJSON_Delete(scores);
	args[10] = "--plugin=LimitAware:{init: ignore, " RESOURCES "}";
	scores = answer(args);
	assert_true(limit_term(scores, 0, "cpuLimitRatio") == 0.2);
	assert_true(limit_term(scores, 0, "ephemeral-storage.limitRatio") == 0.2);
	assert_true(limit_term(scores, 0, "x.io/gpu.limitRatio") == 0.25);
	cJSON_Delete(scores);
	args[10] = "--plugin=LimitAware";
	scores = answer(args);
	for (int i = 0; i < 2; i++) {
		assert_true(limit_term(scores, i, "cpuLimitRatioBefore") ==
			    shown_ratio(nodes, i, "cpu"));
		assert_true(limit_term(scores, i, "memoryLimitRatioBefore") ==
			    shown_ratio(nodes, i, "memory"));
	}
	assert_true(shown_ratio(nodes, 0, "cpu") == 0.3 && shown_ratio(nodes, 0, "memory") == 0.1);
	cJSON_Delete(scores);
	cJSON_Delete(nodes);
	free(dump_path);
	free(pod_path);
	free(usage);
}

static void test_standard_input(void **state)
{
	const struct scene *s = *state;
	char *line =
		mem_printf("%s nodes --snapshot - < %s", program_path("evenkeel"), s->snapshot);
	char *shell[] = {"/bin/sh", "-c", line, NULL};
	char *args[ARGS_MAX] = {"nodes", "--snapshot", s->snapshot};
	struct result a, b = {0};

	run(&a, args);
	b.code = process_run(shell, &b.out, &b.err);
	assert_string_equal(a.out.data, b.out.data);
	assert_int_equal(a.code, b.code);
	result_fini(&a);
	result_fini(&b);
	free(line);
}

/* A server that the environment names is what files are instead of. */
static void test_environment(void **state)
{
	const struct scene *s = *state;
	char *args[ARGS_MAX] = {"nodes", "--snapshot", s->snapshot};
	struct result r;

	setenv("EVENKEEL_SERVER", "http://127.0.0.1:9", 1);
	run(&r, args);
	unsetenv("EVENKEEL_SERVER");
	assert_string_equal(r.err.data, "");
	assert_int_equal(r.code, 0);
	result_fini(&r);
}

/* --- streaming -------------------------------------------------------------------------------- */

static void publish_large_view(struct scene *s)
{
	struct node_stats *node_stats = mem_zalloc(STATS, sizeof(*node_stats));
	char(*names)[16] = mem_zalloc(STATS, sizeof(*names));

	for (int i = 0; i < STATS; i++) {
		snprintf(names[i], sizeof(names[i]), "node-%05d", i);
		node_stats[i] = view_fixture_node(names[i], VIEW_FIXTURE_NOW_NS, 900, i % 4000, 10);
	}
	view_slot_publish(s->ctx.views, view_fixture_of(node_stats, STATS));
	free(names);
	free(node_stats);
}

/* A connection that takes little at a time, and has asked. */
static int ask_slowly(const struct scene *s, const char *request)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	struct timeval timeout = {.tv_sec = 30};
	int fd = socket(AF_INET, SOCK_STREAM, 0), small = 4096;
	const char *port = strrchr(http_address(s->server), ':') + 1;

	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	address.sin_port = htons((uint16_t)strtol(port, NULL, 10));
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
	return fd;
}

#define ASK "GET /v1/snapshot HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

/* The first line of the answer, with what else came. */
static void read_some(int fd, char text[4096])
{
	ssize_t len = recv(fd, text, 4095, 0);

	assert_true(len > 0);
	text[len] = '\0';
}

static void read_rest(int fd, struct buf *out)
{
	char chunk[65536];
	ssize_t len;

	while ((len = recv(fd, chunk, sizeof(chunk), 0)) > 0)
		buf_add(out, chunk, (size_t)len);
	assert_int_equal(len, 0);
}

/*
 * What is read slowly is of the moment at which it was asked for, whatever is published meanwhile,
 * and whole.
 */
static void test_slow_reader(void **state)
{
	struct scene *s = *state;
	static const char name[] = "\"name\":\"node-";
	struct buf rest = BUF_INIT;
	char head[4096];
	size_t found = 0;
	int fd;

	publish_large_view(s);
	fd = ask_slowly(s, ASK);
	read_some(fd, head);
	assert_memory_equal(head, "HTTP/1.1 200", 12);
	assert_non_null(strstr(head, "Transfer-Encoding: chunked"));
	view_slot_publish(s->ctx.views, cluster_fixture_new());
	read_rest(fd, &rest);
	close(fd);
	/* Sanitizers have strstr() read to the end each time. */
	for (size_t i = 0; i + strlen(name) <= rest.len; i++)
		found += memcmp(rest.data + i, name, strlen(name)) == 0;
	/* A name may be cut by the border of a chunk. */
	assert_in_range(found, STATS * 95 / 100, STATS);
	assert_non_null(strstr(rest.data + rest.len - 40, "\"state\":{}}\n\r\n0\r\n\r\n"));
	buf_fini(&rest);
}

/* Asks once more until it is not busy. */
static bool is_answered(void *context)
{
	char *url = mem_printf("%s/v1/snapshot", ((struct scene *)context)->url);
	struct buf body = BUF_INIT;
	long status = http_get(url, &body);

	buf_fini(&body);
	free(url);
	return status == 200;
}

static void test_so_many_at_once(void **state)
{
	struct scene *s = *state;
	int readers[STREAMS_MOST];
	char head[4096];
	int late;

	publish_large_view(s);
	for (int i = 0; i < STREAMS_MOST; i++) {
		readers[i] = ask_slowly(s, ASK);
		read_some(readers[i], head);
		assert_memory_equal(head, "HTTP/1.1 200", 12);
	}
	late = ask_slowly(s, ASK);
	read_some(late, head);
	assert_memory_equal(head, "HTTP/1.1 503", 12);
	close(late);
	/* All else is answered as ever. */
	late = ask_slowly(s, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
	read_some(late, head);
	assert_memory_equal(head, "HTTP/1.1 200", 12);
	close(late);
	for (int i = 0; i < STREAMS_MOST; i++)
		close(readers[i]);
	view_slot_publish(s->ctx.views, cluster_fixture_new());
	assert_true(await(is_answered, s, 30));
}

static void test_head_and_old_http(void **state)
{
	struct scene *s = *state;
	struct buf got = BUF_INIT;
	int fd = ask_slowly(
		s, "HEAD /v1/snapshot HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");

	read_rest(fd, &got);
	close(fd);
	assert_memory_equal(got.data, "HTTP/1.1 200", 12);
	assert_string_equal(got.data + got.len - 4, "\r\n\r\n");
	buf_clear(&got);
	fd = ask_slowly(s, "GET /v1/snapshot HTTP/1.0\r\nHost: localhost\r\n\r\n");
	read_rest(fd, &got);
	close(fd);
	assert_null(strstr(got.data, "chunked"));
	assert_string_equal(got.data + got.len - 12, "\"state\":{}}\n");
	buf_fini(&got);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_offline_is_online, setup, teardown),
		cmocka_unit_test_setup_teardown(test_exit_codes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_limits_of_every_resource, setup, teardown),
		cmocka_unit_test_setup_teardown(test_standard_input, setup, teardown),
		cmocka_unit_test_setup_teardown(test_environment, setup, teardown),
		cmocka_unit_test_setup_teardown(test_slow_reader, setup, teardown),
		cmocka_unit_test_setup_teardown(test_so_many_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_head_and_old_http, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
