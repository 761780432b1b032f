/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Too many clients, and too large ones, of a whole aggregator: ten thousand connections that say
 * nothing, half a request, or a request without ever reading the answer; more than there are
 * descriptors; JSON that is as large, deep or wide as it may be. Others are served meanwhile,
 * agents are heard, memory is bounded, and all is well when they are gone.
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

#include "shared/mem.h"
#include "tests/bench_agent.h"
#include "tests/process.h"
#include "tests/undisturbed.h"

enum {
	CROWD = 10000,
	OTHER_FILES = 400, /* of this process */
	PATIENCE_S = 60,
	LONGEST_STAY_S = 180, /* 120 s to read an answer, after 30 s for a request */
	CONNECTION_KIB = 20, /* README: 17 without TLS */
	SPARE_MIB = 32,
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
	await_metric_for(name, at_least, at_most, PATIENCE_S);
}

static void await_applied(double more)
{
	static const char applied[] = "evenkeel_frames_total{result=\"applied\"}";

	await_metric(applied, metric(applied) + more, 1e9);
}

/* One more of the crowd; false when the system has no more for it. */
static bool join_crowd(int port, const char *says)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return false;
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to))) {
		close(fd);
		return false;
	}
	if (*says)
		(void)send(fd, says, strlen(says), MSG_NOSIGNAL);
	s.fds[s.count++] = fd;
	return true;
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

/*
 * The most of the crowd that were there at once. All, where they came quickly; a machine that is
 * too busy for that may cut the first before the last was let in.
 */
static double crowd_there(void)
{
	double most = 0;

	await(is_crowded, &most, LONGEST_STAY_S);
	if (most < (double)CROWD / 4)
		fail_msg("only %g of %d connections are there", most, CROWD);
	return most;
}

static void test_ten_thousand_connections(void **state)
{
	static const char *const says[] = {"", "GET /v1/nodes HTTP/1.1\r\nHost: h\r\nX-Half: ",
					   "GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n"};
	int port;
	double before_mib, grown_mib, there;

	(void)state;
	need_files(CROWD + OTHER_FILES);
	stack_start_aggregator(s.u.stack, DISTURBED);
	stack_start_agent(s.u.stack, 1, (const char *[]){"--interval", "1s", NULL});
	await_applied(3);
	port = s.u.stack->aggregators[DISTURBED].http_port;
	before_mib = bench_resident_mib(aggregator());
	for (int i = 0; i < CROWD; i++)
		assert_true(join_crowd(port, says[i % 3]));
	there = crowd_there();
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
	assert_true(await(has_files, &wanted, PATIENCE_S));
	stack_start_agent(s.u.stack, 2, (const char *[]){"--interval", "2s", NULL});
	assert_true(await(undisturbed_has_heard, NULL, PATIENCE_S));
	disperse();
	await_metric("evenkeel_frames_total{result=\"applied\"}", 1, 1e9);
	/* Those for whom there was none were let in and out, and are counted. */
	assert_true(metric("evenkeel_ingest_refused_total") >= STRANGERS - MORE);
	assert_true(undisturbed_equal(&s.u, "/v1/nodes", PATIENCE_S));
	assert_true(undisturbed_equal(&s.u, "/v1/pods", PATIENCE_S));
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

static void test_huge_json(void **state)
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
	char *dump = write_cluster();
	double before_mib;

	(void)state;
	s.u.stack->aggregators[DISTURBED].snapshot_path = dump;
	stack_start_aggregator(s.u.stack, DISTURBED);
	before_mib = bench_resident_mib(aggregator());
	for (size_t b = 0; b < sizeof(bodies) / sizeof(bodies[0]); b++) {
		struct buf body = make_body(bodies[b][0], bodies[b][1], bodies[b][2]);

		for (size_t p = 0; p < sizeof(paths) / sizeof(paths[0]); p++) {
			char *url =
				mem_printf("http://127.0.0.1:%d%s",
					   s.u.stack->aggregators[DISTURBED].http_port, paths[p]);
			struct buf answer = BUF_INIT;
			long status = http_post(url, body.data, &answer);

			if (status < 400 || status > 499 || answer.len > 4096)
				fail_msg("%s, body %zu: %ld, %zu bytes", paths[p], b, status,
					 answer.len);
			buf_fini(&answer);
			free(url);
		}
		buf_fini(&body);
	}
	print_message("%.0f MiB more after them\n", bench_resident_mib(aggregator()) - before_mib);
	assert_true(bench_resident_mib(aggregator()) - before_mib < 6 * SPARE_MIB);
	free(dump);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_ten_thousand_connections),
		TEST(test_no_descriptors),
		TEST(test_huge_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
