/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What it costs to score 5000 nodes for one pod by all plugins: the policy alone, the handler, and
 * over HTTP on one kept connection, until the last byte is read. No two pods are the same, but
 * where a row says so. The API knows the nodes and their pods, so that every plugin has all it asks
 * for; one pod of each node was just placed.
 */
#include <arpa/inet.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "aggregator/edge/http/http.h"
#include "aggregator/policy/score/score.h"
#include "aggregator/policy/score/score_rows.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/bench_cluster.h"
#include "tests/bench_report.h"
#include "tests/http_plain.h"
#include "tests/view_fixture.h"

enum { REPEAT = 300 };

/* What is asked for, and of how many pods: of all requests of a bench another one, or the same. */
struct question {
	const char *what;
	const char *rest; /* of the body, behind the pod */
	bool same;
};

static const char all_plugins[] =
	",\"plugins\":[\"TargetLoadPacking\",\"LoadVariationRiskBalancing\","
	"\"LowRiskOverCommitment\",\"Peaks\",\"NodeResourcesAllocatable\",\"LimitAware\"]";

/* The i-th body; the caller frees it. */
static char *body_of(const struct question *q, int i)
{
	int more = q->same ? 0 : i;

	return mem_printf("{\"pod\":{\"spec\":{\"containers\":[{\"resources\":{"
			  "\"requests\":{\"cpu\":\"%dm\",\"memory\":\"%dMi\"},"
			  "\"limits\":{\"cpu\":\"%dm\",\"memory\":\"1Gi\"}}}]}}%s}",
			  500 + more, 512 + more, 1000 + more, q->rest);
}

static double ms_since(int64_t start_ns)
{
	return (double)(clock_mono_ns() - start_ns) / 1e6;
}

/* Of this thread: what the machine's other work does not change as much. */
static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void report(const char *what, double budget, double *ms)
{
	char row[128];
	double p50 = bench_median(ms, REPEAT);

	/* bench_median() has sorted them. */
	snprintf(row, sizeof(row), "%s, p50", what);
	bench_row(row, "ms", NAN, 0, p50);
	snprintf(row, sizeof(row), "%s, p99", what);
	bench_row(row, "ms", budget, 0, ms[REPEAT * 99 / 100]);
}

/* As the handler reads them. */
static struct score_node *read_nodes(const struct view *v, const struct power_model *model)
{
	const struct score_rows *rows = score_rows_of(v);
	struct score_node *nodes = mem_alloc(v->node_count * sizeof(*nodes));
	struct score_args args;
	const struct score_query q = {.variant = SCORE_CORRECTED, .args = &args};

	score_args_default(&args, SCORE_CORRECTED);
	for (size_t i = 0; i < v->node_count; i++) {
		score_rows_read(rows, v, i, VIEW_FIXTURE_NOW_NS, &q, &nodes[i]);
		nodes[i].power = model;
	}
	return nodes;
}

/* By one plugin, or by all of them at once. */
static int64_t score_all(const struct score_query *q, const struct score_node *nodes, bool one,
			 enum score_plugin_id only)
{
	static const enum score_plugin_id all[SCORE_PLUGINS] = {
		PLUGIN_TARGET_LOAD_PACKING,
		PLUGIN_LOAD_VARIATION_RISK_BALANCING,
		PLUGIN_LOW_RISK_OVER_COMMITMENT,
		PLUGIN_PEAKS,
		PLUGIN_ALLOCATABLE,
		PLUGIN_LIMIT_AWARE,
	};
	static int64_t scores[SCORE_PLUGINS * BENCH_NODES];
	struct score_scale scales[SCORE_PLUGINS];
	size_t count = one ? 1 : SCORE_PLUGINS;
	int64_t sum = 0;

	score_columns(q, one ? &only : all, count, nodes, BENCH_NODES, scales, scores);
	for (size_t i = 0; i < count * BENCH_NODES; i++)
		sum += scores[i];
	return sum;
}

static void bench_policy(const struct view *v)
{
	static const struct power_model model = {"", 400, -90, -0.07};
	struct container_spec c = {.requests = {{{true, true}}, {{500, 1 << 29}}},
				   .limits = {{{true, true}}, {{1000, 1 << 30}}}};
	struct pod_spec pod = {.container_count = 1, .containers = &c};
	struct score_node *nodes = read_nodes(v, &model);
	struct score_args args;
	struct score_query q = {.args = &args, .pod = &pod};
	struct score_pod sums;
	double ms[REPEAT];
	int64_t sum = 0;

	score_args_default(&args, SCORE_CORRECTED);
	score_pod_read(&q, &sums);
	q.sums = &sums;
	for (int i = 0; i < REPEAT; i++) {
		int64_t start = clock_mono_ns();

		sum += score_all(&q, nodes, false, 0);
		ms[i] = ms_since(start);
	}
	report("6 plugins, 5000 nodes, policy alone", NAN, ms);
	for (enum score_plugin_id p = 0; p < SCORE_PLUGINS; p++) {
		char row[64];

		for (int i = 0; i < REPEAT; i++) {
			int64_t start = clock_mono_ns();

			sum += score_all(&q, nodes, true, p);
			ms[i] = ms_since(start);
		}
		snprintf(row, sizeof(row), "%s alone, p50", score_plugin_name(p));
		bench_row(row, "ms", NAN, 0, bench_median(ms, REPEAT));
	}
	if (sum <= 0) {
		fprintf(stderr, "no node got any score\n");
		exit(1);
	}
	free(nodes);
}

static int64_t fixture_now(void)
{
	return VIEW_FIXTURE_NOW_NS;
}

static void bench_handler(const struct api_context *ctx, const struct question *q)
{
	double ms[REPEAT], cpu[REPEAT], bytes = 0;
	char row[96];

	for (int i = 0; i < REPEAT; i++) {
		char *body = body_of(q, i);
		struct api_request rq = {.method = "POST",
					 .path = "/v1/scores",
					 .body = body,
					 .body_len = strlen(body)};
		struct api_response rs = {.status = 200};
		int64_t start = clock_mono_ns();
		double cpu_start = cpu_ms();

		api_scores(ctx, &rq, &rs);
		cpu[i] = cpu_ms() - cpu_start;
		ms[i] = ms_since(start);
		bytes = (double)rs.body.len;
		buf_fini(&rs.body);
		free(body);
	}
	snprintf(row, sizeof(row), "%s, handler", q->what);
	report(row, NAN, ms);
	snprintf(row, sizeof(row), "%s, CPU of it, p50", q->what);
	bench_row(row, "ms", NAN, 0, bench_median(cpu, REPEAT));
	snprintf(row, sizeof(row), "%s, answer", q->what);
	bench_row(row, "MiB", NAN, 0, bytes / 1048576);
}

/* Reads one answer; false when the connection ends before it does. */
static bool read_answer(int fd, char *room, size_t size)
{
	size_t have = 0, want = SIZE_MAX;

	while (have < want) {
		ssize_t got = read(fd, room + have, size - have);

		if (got <= 0)
			return false;
		have += (size_t)got;
		if (want == SIZE_MAX) {
			char *end, *length;

			room[have] = '\0';
			end = strstr(room, "\r\n\r\n");
			length = strcasestr(room, "content-length:");
			if (end && length)
				want = (size_t)(end + 4 - room) +
				       strtoul(length + strlen("content-length:"), NULL, 10);
		}
	}
	return strncmp(room, "HTTP/1.1 200", 12) == 0;
}

static int dial(const char *address)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	to.sin_port = htons((uint16_t)strtoul(strrchr(address, ':') + 1, NULL, 10));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0)
		return fd;
	perror("connect");
	exit(1);
}

/* One request and its answer, to the last byte. */
static double ask(int fd, const struct question *q, int i, char *room, size_t size)
{
	char *body = body_of(q, i);
	char *say = mem_printf("POST /v1/scores HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
			       "application/json\r\nContent-Length: %zu\r\n\r\n%s",
			       strlen(body), body);
	int64_t start = clock_mono_ns();
	double ms;

	if (write(fd, say, strlen(say)) != (ssize_t)strlen(say) || !read_answer(fd, room, size)) {
		fprintf(stderr, "no answer: %.200s\n", room);
		exit(1);
	}
	ms = ms_since(start);
	free(say);
	free(body);
	return ms;
}

static void bench_http(const struct api_context *ctx, const struct question *q)
{
	enum { ROOM = 1 << 26 };
	struct error error = {""};
	struct http_server *server;
	char *room = mem_alloc(ROOM), row[96];
	double ms[REPEAT];
	int fd;

	if (http_plain_start(&server, "127.0.0.1:0", ctx, &error)) {
		fprintf(stderr, "http: %s\n", error.text);
		exit(1);
	}
	fd = dial(http_address(server));
	for (int i = 0; i < REPEAT; i++)
		ms[i] = ask(fd, q, i, room, ROOM - 1);
	snprintf(row, sizeof(row), "%s, %sover HTTP", q->what, q->same ? "the same pod " : "");
	report(row, 10, ms);
	close(fd);
	http_stop(server);
	free(room);
}

int main(void)
{
	static const struct question questions[] = {
		{"6 plugins, 5000 nodes", all_plugins, false},
		{"default blend, 5000 nodes", "", false},
	};
	static const struct question again = {"6 plugins, 5000 nodes", all_plugins, true};
	struct counters counters = {0};
	struct api_context ctx = {.counters = &counters, .now_ns = fixture_now};
	struct view *v = bench_cluster_new();

	bench_begin("scores");
	bench_policy(v);
	ctx.views = view_slot_new();
	view_slot_publish(ctx.views, v);
	for (int i = 0; i < 2; i++)
		bench_handler(&ctx, &questions[i]);
	for (int i = 0; i < 2; i++)
		bench_http(&ctx, &questions[i]);
	bench_http(&ctx, &again);
	view_slot_free(ctx.views);
	bench_end();
	return 0;
}
