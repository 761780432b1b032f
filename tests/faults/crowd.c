/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Too many clients, and too large ones, of a whole aggregator: ten thousand connections that say
 * nothing, half a request, or a request without ever reading the answer; more than there are
 * descriptors; JSON that is as large, deep or wide as it may be; what is no HTTP at all. Others are
 * served meanwhile, agents are heard, memory is bounded, and all is well when they are gone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/bench_agent.h"
#include "tests/frame_account.h"
#include "tests/process.h"
#include "tests/sanitized.h"
#include "tests/undisturbed.h"

enum {
	CROWD = 10000,
	OTHER_FILES = 400, /* of this process */
	TIMEOUT_S = 60,
	LONGEST_STAY_S = 180, /* 120 s to read an answer, after 30 s for a request */
	CONNECTION_KIB = 20, /* packaging/docs/access.md: 17 without TLS */
	SPARE_MIB = 32,
	ANSWERING = 4, /* threads, two of them for long questions */
	READING_MIB = 96, /* what one of them takes for a body of BODY bytes, at most */
	BUSY_S = 10, /* of waiting for a CPU, over all threads */
};

static struct {
	struct undisturbed u;
	int *fds;
	int count;
} s;

static int setup(void **state)
{
	(void)state;
	s.fds = mem_zalloc(CROWD, sizeof(*s.fds));
	s.count = 0;
	return undisturbed_open(&s.u);
}

static void disperse(void)
{
	while (s.count)
		close(s.fds[--s.count]);
}

static int teardown(void **state)
{
	(void)state;
	disperse();
	free(s.fds);
	undisturbed_close(&s.u);
	return 0;
}

static pid_t aggregator(void)
{
	return s.u.stack->aggregators[DISTURBED].pid;
}

static double metric(const char *name)
{
	return stack_metric(s.u.stack, DISTURBED, name);
}

struct wish {
	const char *metric;
	double at_least, at_most;
};

static bool is_granted(void *ctx)
{
	const struct wish *w = ctx;
	double value = metric(w->metric);

	return value >= w->at_least && value <= w->at_most;
}

static void await_metric_for(const char *name, double at_least, double at_most, double seconds)
{
	struct wish w = {name, at_least, at_most};

	if (!await(is_granted, &w, seconds))
		fail_msg("%s is %g", name, metric(name));
}

static void await_metric(const char *name, double at_least, double at_most)
{
	await_metric_for(name, at_least, at_most, TIMEOUT_S);
}

static void await_applied(double more)
{
	static const char applied[] = "evenkeel_frames_total{result=\"applied\"}";

	await_metric(applied, metric(applied) + more, 1e9);
}

/* A connection on which that was said; -1 when the system has no more. */
static int call(int port, const char *says)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to))) {
		close(fd);
		return -1;
	}
	if (*says)
		(void)send(fd, says, strlen(says), MSG_NOSIGNAL);
	return fd;
}

/* One more of the crowd; false when there is none to be had. */
static bool join_crowd(int port, const char *says)
{
	int fd = call(port, says);

	if (fd >= 0)
		s.fds[s.count++] = fd;
	return fd >= 0;
}

static void need_files(rlim_t count)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	if (limit.rlim_max < count) {
		print_message("SKIP: only %llu files may be open\n",
			      (unsigned long long)limit.rlim_max);
		skip();
	}
}

/* --- ten thousand ----------------------------------------------------------------------------- */

/* Awaited: the whole crowd, or that it was there and is cut already. */
static bool is_crowded(void *ctx)
{
	double there = metric("evenkeel_http_connections"), *most = ctx;

	if (there > *most)
		*most = there;
	return *most >= CROWD || (there >= 0 && there < *most / 2);
}

/* Both sides. */
static double starved_s(void)
{
	return process_cpu(aggregator()).waited_s + process_cpu(getpid()).waited_s;
}

/*
 * The most of the crowd that were there at once. All, unless the machine was so busy that the first
 * were cut before the last was let in: where they are not let in for another reason, both sides are
 * idle.
 */
static double crowd_there(double starved_before_s)
{
	double most = 0, starved;

	await(is_crowded, &most, LONGEST_STAY_S);
	starved = starved_s() - starved_before_s;
	if (most < (double)CROWD / 4 || (most < CROWD && starved < BUSY_S))
		fail_msg("only %g of %d connections are there; a CPU was waited for %.1f s", most,
			 CROWD, starved);
	return most;
}

static void test_ten_thousand_connections(void **state)
{
	static const char *const says[] = {"",
					   "GET /v1/nodes HTTP/1.1\r\nHost: localhost\r\nX-Half: ",
					   "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"};
	int port;
	double before_mib, grown_mib, starved, there;

	(void)state;
	/* The aggregator lets three quarters of its descriptors be connections. */
	need_files(CROWD / 3 * 4 + OTHER_FILES);
	stack_start_aggregator(s.u.stack, DISTURBED);
	stack_start_agent(s.u.stack, 1, (const char *[]){"--interval", "1s", NULL});
	await_applied(3);
	port = s.u.stack->aggregators[DISTURBED].http_port;
	before_mib = bench_resident_mib(aggregator());
	starved = starved_s();
	for (int i = 0; i < CROWD; i++)
		assert_true(join_crowd(port, says[i % 3]));
	there = crowd_there(starved);
	/* Others are served, and the agent is heard, while all of them are there. */
	for (int i = 0; i < 20; i++) {
		cJSON *nodes = stack_get(s.u.stack, DISTURBED, "/v1/nodes");

		assert_non_null(json_item(nodes, "test-node"));
		cJSON_Delete(nodes);
	}
	await_applied(3);
	grown_mib = bench_resident_mib(aggregator()) - before_mib;
	print_message("%.0f connections at once: %.0f MiB, %.1f KiB each\n", there, grown_mib,
		      grown_mib * 1024 / there);
	assert_true(grown_mib <= (double)CROWD * CONNECTION_KIB / 1024 + SPARE_MIB);
	/* None may stay for as long as it likes. */
	await_metric_for("evenkeel_http_connections", 0, 10, LONGEST_STAY_S);
	assert_int_equal(stack_stop_agent(s.u.stack, SIGTERM), 0);
}

/* --- no descriptors --------------------------------------------------------------------------- */

static int files_of(pid_t pid)
{
	char *path = mem_printf("/proc/%d/fd", (int)pid);
	DIR *dir = opendir(path);
	int count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	free(path);
	return count - 2; /* "." and ".." */
}

static bool has_files(void *wanted)
{
	return files_of(aggregator()) >= *(const int *)wanted;
}

static bool undisturbed_has_heard(void *ctx)
{
	(void)ctx;
	return stack_metric(s.u.stack, UNDISTURBED, "evenkeel_frames_total{result=\"applied\"}") >=
	       5;
}

/*
 * Strangers took all descriptors before the agent came. It is let in when they are gone, and
 * nothing of what it measured meanwhile is missing.
 */
static void test_no_descriptors(void **state)
{
	enum { MORE = 60, STRANGERS = 200 };
	struct rlimit few, all;
	int wanted;

	(void)state;
	stack_start_aggregator(s.u.stack, DISTURBED);
	stack_start_aggregator(s.u.stack, UNDISTURBED);
	wanted = files_of(aggregator()) + MORE;
	assert_int_equal(prlimit(aggregator(), RLIMIT_NOFILE, NULL, &all), 0);
	few = (struct rlimit){(rlim_t)wanted, all.rlim_max};
	assert_int_equal(prlimit(aggregator(), RLIMIT_NOFILE, &few, NULL), 0);
	for (int i = 0; i < STRANGERS; i++)
		assert_true(join_crowd(s.u.stack->aggregators[DISTURBED].ingest_port, ""));
	assert_true(await(has_files, &wanted, TIMEOUT_S));
	stack_start_agent(s.u.stack, 2, (const char *[]){"--interval", "2s", NULL});
	assert_true(await(undisturbed_has_heard, NULL, TIMEOUT_S));
	disperse();
	await_metric("evenkeel_frames_total{result=\"applied\"}", 1, 1e9);
	/* Those for whom there was none were let in and out, or had others leave, and are counted. */
	assert_true(metric("evenkeel_ingest_refused_total") +
			    metric("evenkeel_ingest_closed_total{reason=\"room\"}") >=
		    STRANGERS - MORE);
	assert_true(undisturbed_equal(&s.u, "/v1/nodes", TIMEOUT_S));
	assert_true(undisturbed_equal(&s.u, "/v1/pods", TIMEOUT_S));
	frame_account_expect_whole(s.u.stack, DISTURBED);
	assert_int_equal(prlimit(aggregator(), RLIMIT_NOFILE, &all, NULL), 0);
	assert_int_equal(stack_stop_agent(s.u.stack, SIGTERM), 0);
}

/* --- huge JSON -------------------------------------------------------------------------------- */

enum { BODY = 1000 * 1000 };

/* Begins with `head`, then as many `part` as fit, then `tail`. */
static struct buf make_body(const char *head, const char *part, const char *tail)
{
	struct buf body = BUF_INIT;

	buf_add_str(&body, head);
	while (body.len + strlen(part) + strlen(tail) <= BODY)
		buf_add_str(&body, part);
	buf_add_str(&body, tail);
	return body;
}

/* One node and one quota: everything can be asked. */
static char *write_cluster(void)
{
	char *path = mem_printf("%s/dump.yaml", s.u.stack->folder);
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs("apiVersion: v1\nkind: List\nitems:\n"
	      "- {apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: "
	      "'4', memory: 16Gi, pods: '110'}, conditions: [{type: Ready, status: 'True'}]}}\n"
	      "- {apiVersion: scheduling.x-k8s.io/v1alpha1, kind: ElasticQuota, metadata: {name: "
	      "q, namespace: d}, spec: {min: {cpu: 2}, max: {cpu: 4}}}\n",
	      f);
	assert_int_equal(fclose(f), 0);
	return path;
}

static void expect_refused(const char *path, const struct buf *body)
{
	char *url = mem_printf("http://127.0.0.1:%d%s", s.u.stack->aggregators[DISTURBED].http_port,
			       path);
	struct buf answer = BUF_INIT;
	long status = http_post(url, body->data, &answer);

	if (status < 400 || status > 499 || answer.len > 4096)
		fail_msg("%s, %.40s: %ld, %zu bytes", path, body->data, status, answer.len);
	buf_fini(&answer);
	free(url);
}

static void refuse_huge_json(void)
{
	static const char *const paths[] = {"/v1/fit",		"/v1/scores",
					    "/v1/quotas/admit", "/v1/quotas/preempt",
					    "/extender/filter", "/extender/prioritize",
					    "/extender/preempt"};
	static const char *const bodies[][3] = {
		{"", "[", ""},
		{"", "{\"pod\":", "1"},
		{"{\"pod\":", "1", "}"},
		{"{\"pod\":{\"metadata\":{\"name\":\"", "\\u0041", "\"}}}"},
		{"{", "\"pod\":[],", "\"pod\":[]}"},
		{"{\"pod\":[", "{},", "{}]}"},
		{"{\"Pod\":{},\"NodeNames\":[", "0,", "0]}"},
	};

	for (size_t b = 0; b < sizeof(bodies) / sizeof(bodies[0]); b++) {
		struct buf body = make_body(bodies[b][0], bodies[b][1], bodies[b][2]);

		for (size_t p = 0; p < sizeof(paths) / sizeof(paths[0]); p++)
			expect_refused(paths[p], &body);
		buf_fini(&body);
	}
}

static bool has_shrunk_to(void *most_mib)
{
	double mib = bench_resident_mib(aggregator());

	return mib > 0 && mib < *(double *)most_mib;
}

/* Each of the threads that answer may read one at a time; what that took is given back. */
static void test_huge_json(void **state)
{
	char *dump = write_cluster();
	double before_mib, after_mib, most_mib;

	(void)state;
	s.u.stack->aggregators[DISTURBED].snapshot_path = dump;
	stack_start_aggregator(s.u.stack, DISTURBED);
	before_mib = bench_resident_mib(aggregator());
	for (int round = 0; round < 3; round++)
		refuse_huge_json();
	after_mib = bench_resident_mib(aggregator());
	most_mib = before_mib + SPARE_MIB;
	assert_true(after_mib - before_mib < ANSWERING * READING_MIB);
	if (SANITIZED)
		print_message("SKIP: the sanitizer keeps what is freed\n");
	else
		assert_true(await(has_shrunk_to, &most_mib, TIMEOUT_S));
	print_message("%.0f MiB more after them, %.0f in the end\n", after_mib - before_mib,
		      bench_resident_mib(aggregator()) - before_mib);
	free(dump);
}

/* --- malformed requests ----------------------------------------------------------------------- */

/* What is said, and then no more, is answered with a refusal at once. */
static void expect_refusal(int port, const char *says)
{
	static const char *const starts[] = {"HTTP/1.1 4", "HTTP/1.1 505"};
	int fd = call(port, says);
	char answer[4096] = "";
	size_t len = 0;
	ssize_t got;

	assert_true(fd >= 0);
	shutdown(fd, SHUT_WR);
	while ((got = read(fd, answer + len, sizeof(answer) - 1 - len)) > 0)
		len += (size_t)got;
	close(fd);
	if (strncmp(answer, starts[0], strlen(starts[0])) != 0 &&
	    strncmp(answer, starts[1], strlen(starts[1])) != 0)
		fail_msg("%.40s: %.40s", says, answer);
}

static double mib_after_malformed(int count)
{
	static const char *const requests[] = {
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"GET /v1/nodes HTTP/9.9\r\nHost: localhost\r\n\r\n",
		"GET /healthz HTTP/1.1\r\nno colon\r\n\r\n",
		"POST /v1/scores HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
		"application/json\r\nContent-Length: -1\r\n\r\n",
		"POST /v1/scores HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
		"application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
	};
	int port = s.u.stack->aggregators[DISTURBED].http_port;

	for (int i = 0; i < count; i++)
		expect_refusal(port,
			       requests[(size_t)i % (sizeof(requests) / sizeof(requests[0]))]);
	return bench_resident_mib(aggregator());
}

/* None of them leaves as much as a line behind. */
static void test_malformed_requests(void **state)
{
	enum { SOME = 300, MANY = 3000, MOST_BYTES = 400 };
	double before_mib, after_mib;

	(void)state;
	stack_start_aggregator(s.u.stack, DISTURBED);
	before_mib = mib_after_malformed(SOME);
	after_mib = mib_after_malformed(MANY);
	print_message("%.2f MiB more after %d of them\n", after_mib - before_mib, MANY);
	assert_true((after_mib - before_mib) * 1024 * 1024 < (double)MANY * MOST_BYTES);
	await_metric("evenkeel_http_connections", 0, 2);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_ten_thousand_connections),
		TEST(test_no_descriptors),
		TEST(test_huge_json),
		TEST(test_malformed_requests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
