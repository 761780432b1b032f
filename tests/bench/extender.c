/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What it costs a kube-scheduler to ask about a pod: filter and prioritize of 5000 names, over HTTP
 * on one kept connection until the last byte is read, with 150,000 pods in the model. Alone; with
 * the hard limits on; and while other clients ask, each about pods of its own, so that reservations
 * change between any two answers.
 */
#include <arpa/inet.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "aggregator/api/policy_options.h"
#include "aggregator/edge/http/http.h"
#include "aggregator/state/reservations.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/api_fixture.h"
#include "tests/bench_cluster.h"
#include "tests/bench_report.h"
#include "tests/http_plain.h"
#include "tests/reservations_watch.h"
#include "tests/view_fixture.h"

enum { REPEAT = 300, ROOM = 1 << 22, OTHERS = 3 };

static double ms_since(int64_t start_ns)
{
	return (double)(clock_mono_ns() - start_ns) / 1e6;
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

/* Of this thread, so that what else the machine does while the lock is held does not count. */
static int64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * NS_PER_SEC + t.tv_nsec;
}

static int64_t fixture_now(void)
{
	return VIEW_FIXTURE_NOW_NS;
}

/* Names in no order, as the scheduler's walk over its cache gives them. */
static void add_names(struct buf *out)
{
	for (int i = 0; i < BENCH_NODES; i++)
		buf_printf(out, "%s\"node-%05d\"", i ? "," : "", i * 1663 % BENCH_NODES);
}

static char *make_request(const char *verb, const char *uid)
{
	struct buf body = BUF_INIT;
	char *request;

	buf_printf(
		&body,
		"{\"Pod\":{\"metadata\":{\"name\":\"%s\",\"namespace\":\"shop\",\"uid\":\"%s\"},"
		"\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":"
		"\"500m\",\"memory\":\"512Mi\"},\"limits\":{\"cpu\":\"1\",\"memory\":\"1Gi\"}}}]}},"
		"\"Nodes\":null,\"NodeNames\":[",
		uid, uid);
	add_names(&body);
	buf_add_str(&body, "]}");
	request = mem_printf("POST /extender/%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
			     "application/json\r\nContent-Length: %zu\r\n\r\n%s",
			     verb, body.len, body.data);
	buf_fini(&body);
	return request;
}

static void write_all(int fd, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t sent = write(fd, data, len);

		if (sent <= 0) {
			perror("write");
			exit(1);
		}
		data += sent;
		len -= (size_t)sent;
	}
}

static double ask(int fd, const char *request, char *room)
{
	int64_t start = clock_mono_ns();

	write_all(fd, request, strlen(request));
	if (!read_answer(fd, room, ROOM - 1)) {
		fprintf(stderr, "no answer: %.200s\n", room);
		exit(1);
	}
	return ms_since(start);
}

static void bench_verb(const char *address, const char *verb, const char *what, double budget)
{
	char *request = make_request(verb, "bench"), *room = mem_alloc(ROOM);
	double ms[REPEAT];
	int fd = dial(address);

	for (int i = 0; i < REPEAT; i++)
		ms[i] = ask(fd, request, room);
	report(what, budget, ms);
	close(fd);
	free(room);
	free(request);
}

/* What the answer costs without the network, however busy the machine is. */
static void bench_handler(const struct api_context *ctx, const char *verb, const char *what)
{
	char *request = make_request(verb, "handler"), *path = mem_printf("/extender/%s", verb);
	const char *body = strstr(request, "\r\n\r\n") + 4;
	double ms[REPEAT];

	for (int i = 0; i < REPEAT; i++) {
		const struct api_request rq = {
			.method = "POST", .path = path, .body = body, .body_len = strlen(body)};
		struct api_response rs = {.status = 200};
		int64_t start_ns = cpu_ns();

		api_route(ctx, &rq, &rs);
		ms[i] = (double)(cpu_ns() - start_ns) / 1e6;
		buf_fini(&rs.body);
	}
	report(what, NAN, ms);
	free(path);
	free(request);
}

/* --- other clients ---------------------------------------------------------------------------- */

static atomic_bool stopping;

struct other {
	const char *address;
	int number;
	pthread_t thread;
};

static void *ask_on(void *arg)
{
	struct other *o = arg;
	char *room = mem_alloc(ROOM), uid[32];
	int fd = dial(o->address);

	for (int i = 0; !atomic_load(&stopping); i++) {
		static const char *const verbs[] = {"filter", "prioritize"};
		char *request;

		snprintf(uid, sizeof(uid), "other-%d-%d", o->number, i / 2 % 1000);
		request = make_request(verbs[i % 2], uid);
		ask(fd, request, room);
		free(request);
	}
	close(fd);
	free(room);
	return NULL;
}

static void bench_among_others(const char *address)
{
	struct other others[OTHERS];

	for (int i = 0; i < OTHERS; i++) {
		others[i] = (struct other){.address = address, .number = i};
		pthread_create(&others[i].thread, NULL, ask_on, &others[i]);
	}
	bench_verb(address, "filter", "filter, 3 other clients", NAN);
	bench_verb(address, "prioritize", "prioritize, 3 other clients", NAN);
	atomic_store(&stopping, true);
	for (int i = 0; i < OTHERS; i++)
		pthread_join(others[i].thread, NULL);
}

int main(void)
{
	struct counters counters = {0};
	struct extender_options options;
	struct api_context ctx = {.counters = &counters,
				  .now_ns = fixture_now,
				  .extender = &options};
	struct error error = {""};
	struct http_server *server;

	bench_begin("extender");
	api_fixture_extender(&options);
	ctx.views = view_slot_new();
	ctx.reservations = reservations_new();
	reservations_watch(ctx.reservations, cpu_ns);
	view_slot_publish(ctx.views, bench_cluster_new());
	bench_handler(&ctx, "filter", "filter of 5000 names, CPU of the handler");
	bench_handler(&ctx, "prioritize", "prioritize of 5000 names, CPU of the handler");
	if (http_plain_start(&server, "127.0.0.1:0", &ctx, &error)) {
		fprintf(stderr, "http: %s\n", error.text);
		return 1;
	}
	bench_verb(http_address(server), "filter", "filter of 5000 names", NAN);
	bench_verb(http_address(server), "prioritize", "prioritize of 5000 names", 5);
	options.limits.use_cap[SCORE_CPU] = options.limits.use_cap[SCORE_MEMORY] = 0.9;
	bench_verb(http_address(server), "filter", "filter of 5000 names, capped use", NAN);
	bench_among_others(http_address(server));
	bench_row("most CPU time under the reservations' lock", "ms", NAN, 0,
		  (double)reservations_watch_longest_ns() / 1e6);
	http_stop(server);
	reservations_free(ctx.reservations);
	view_slot_free(ctx.views);
	bench_end();
	return 0;
}
