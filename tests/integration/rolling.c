/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two aggregators (--peer) behind a client that follows /readyz as a Service of Kubernetes does: one
 * after the other is replaced while it asks. No request fails, on new and on kept connections.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <curl/curl.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/fleet/launch.h"
#include "tests/process.h"
#include "tests/stack.h"

enum { PROBE_MS = 100, ASK_MS = 10, DELAY_S = 2 };

/* A client whose requests go to the ready ones in turn; each has a connection that it keeps. */
struct client {
	struct scene *scene;
	pthread_t thread;
	bool keep; /* connections */
	atomic_ullong asked, failed;
	char failure[256]; /* the first */
};

struct scene {
	struct stack *stack;
	const char *options[2][9];
	char *peers[2], *states[2];
	pid_t fleet;
	atomic_bool ready[2], stop;
	pthread_t prober;
	struct client clients[2];
};

static char *url_of(const struct scene *s, int i, const char *path)
{
	return mem_printf("http://127.0.0.1:%d%s", s->stack->aggregators[i].http_port, path);
}

static void *probe(void *arg)
{
	struct scene *s = arg;

	while (!atomic_load(&s->stop)) {
		for (int i = 0; i < 2; i++) {
			char *url = url_of(s, i, "/readyz");
			struct buf body = BUF_INIT;

			atomic_store(&s->ready[i], http_get(url, &body) == 200);
			buf_fini(&body);
			free(url);
		}
		poll(NULL, 0, PROBE_MS);
	}
	return NULL;
}

static size_t discard(char *data, size_t size, size_t count, void *to)
{
	(void)data;
	(void)to;
	return size * count;
}

static void request(struct client *c, CURL *curl, int i)
{
	static const char *const paths[] = {"/v1/nodes?limit=5", "/v1/status", "/watcher/health"};
	char *url = url_of(c->scene, i, paths[atomic_load(&c->asked) % 3]);
	CURLcode code;
	long status = 0;

	curl_easy_setopt(curl, CURLOPT_URL, url);
	code = curl_easy_perform(curl);
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	if (code != CURLE_OK || status != 200) {
		if (!atomic_fetch_add(&c->failed, 1))
			snprintf(c->failure, sizeof(c->failure), "%s: %ld, %s", url, status,
				 curl_easy_strerror(code));
	}
	atomic_fetch_add(&c->asked, 1);
	free(url);
}

/* One that is ready; -1: none is. */
static int choose(const struct scene *s, unsigned long long turn)
{
	for (unsigned long long n = turn; n < turn + 2; n++)
		if (atomic_load(&s->ready[n % 2]))
			return (int)(n % 2);
	return -1;
}

static void *run_client(void *arg)
{
	struct client *c = arg;
	CURL *curls[2];

	for (int i = 0; i < 2; i++) {
		curls[i] = curl_easy_init();
		curl_easy_setopt(curls[i], CURLOPT_WRITEFUNCTION, discard);
		curl_easy_setopt(curls[i], CURLOPT_NOSIGNAL, 1L);
		curl_easy_setopt(curls[i], CURLOPT_FORBID_REUSE, c->keep ? 0L : 1L);
		curl_easy_setopt(curls[i], CURLOPT_FRESH_CONNECT, c->keep ? 0L : 1L);
	}
	while (!atomic_load(&c->scene->stop)) {
		int i = choose(c->scene, atomic_load(&c->asked));

		if (i >= 0) {
			request(c, curls[i], i);
		} else if (!atomic_fetch_add(&c->failed, 1)) {
			snprintf(c->failure, sizeof(c->failure), "none is ready");
		}
		poll(NULL, 0, ASK_MS);
	}
	for (int i = 0; i < 2; i++)
		curl_easy_cleanup(curls[i]);
	return NULL;
}

/* --- the stage -------------------------------------------------------------------------------- */

static int setup(void **state)
{
	struct scene *s = mem_zalloc(1, sizeof(*s));

	if (sodium_init() < 0)
		return -1;
	curl_global_init(CURL_GLOBAL_DEFAULT);
	s->stack = stack_new();
	for (int i = 0; i < 2; i++) {
		s->stack->aggregators[i].http_port = free_port();
		s->stack->aggregators[i].ingest_port = free_port();
	}
	for (int i = 0; i < 2; i++) {
		const char *const o[] = {"--peer",	     NULL, "--state-dir", NULL,
					 "--shutdown-delay", "2s", NULL};

		memcpy(s->options[i], o, sizeof(o));
		s->peers[i] =
			mem_printf("tcp://127.0.0.1:%d", s->stack->aggregators[1 - i].ingest_port);
		s->states[i] = mem_printf("%s/state-%d", s->stack->folder, i);
		s->options[i][1] = s->peers[i];
		s->options[i][3] = s->states[i];
		s->stack->aggregators[i].more = s->options[i];
	}
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	if (s->fleet)
		process_stop(s->fleet, SIGKILL);
	stack_free(s->stack, 0);
	for (int i = 0; i < 2; i++) {
		free(s->peers[i]);
		free(s->states[i]);
	}
	free(s);
	return 0;
}

static bool are_both_ready(void *ctx)
{
	struct scene *s = ctx;

	return atomic_load(&s->ready[0]) && atomic_load(&s->ready[1]);
}

static void start_fleet(struct scene *s)
{
	char *also = mem_printf("tcp://127.0.0.1:%d", s->stack->aggregators[1].ingest_port);
	const char *const options[] = {"--nodes",     "50",  "--pods-per-node", "5",
				       "--interval",  "1s",  "--history",	"60s",
				       "--ring-span", "15m", "--also",		also,
				       NULL};

	s->fleet = fleet_start(s->stack, options);
	free(also);
}

static bool has_samples(void *ctx)
{
	struct scene *s = ctx;

	return stack_metric(s->stack, 0, "evenkeel_frames_total{result=\"applied\"}") > 200 &&
	       stack_metric(s->stack, 1, "evenkeel_frames_total{result=\"applied\"}") > 200;
}

/* --- what is told ----------------------------------------------------------------------------- */

static bool is_unready(void *ctx)
{
	char *url = ctx;
	struct buf body = BUF_INIT;
	bool is = http_get(url, &body) == 503 && body.data && strstr(body.data, "ending");

	buf_fini(&body);
	return is;
}

/* As a rolling update does: the other one has to be ready before. */
static void replace(struct scene *s, int i)
{
	char *url = url_of(s, i, "/readyz");
	pid_t pid = s->stack->aggregators[i].pid;
	int64_t told_ns = clock_mono_ns(), took_ns;
	int status = 0;
	cJSON *json;

	assert_true(await(are_both_ready, s, 90));
	kill(pid, SIGTERM);
	assert_true(await(is_unready, url, 10));
	json = stack_get(s->stack, i, "/v1/status");
	assert_non_null(json);
	cJSON_Delete(json);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	took_ns = clock_mono_ns() - told_ns;
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_true(took_ns >= DELAY_S * NS_PER_SEC);
	stack_launch_aggregator(s->stack, i);
	free(url);
}

static void no_request_fails_while_both_are_replaced(void **state)
{
	struct scene *s = *state;
	unsigned long long failed = 0;

	stack_start_aggregator(s->stack, 0);
	stack_start_aggregator(s->stack, 1);
	start_fleet(s);
	assert_true(await(has_samples, s, 60));
	assert_int_equal(pthread_create(&s->prober, NULL, probe, s), 0);
	assert_true(await(are_both_ready, s, 60));
	for (int i = 0; i < 2; i++) {
		s->clients[i].scene = s;
		s->clients[i].keep = i == 1;
		assert_int_equal(
			pthread_create(&s->clients[i].thread, NULL, run_client, &s->clients[i]), 0);
	}
	for (int n = 0; n < 4; n++)
		replace(s, n % 2);
	assert_true(await(are_both_ready, s, 90));
	atomic_store(&s->stop, true);
	pthread_join(s->prober, NULL);
	for (int i = 0; i < 2; i++) {
		struct client *c = &s->clients[i];

		pthread_join(c->thread, NULL);
		print_message("%s connections: %llu requests, %llu failed%s%s\n",
			      c->keep ? "kept" : "new", c->asked, c->failed,
			      *c->failure ? ": " : "", c->failure);
		assert_true(atomic_load(&c->asked) > 100);
		failed += atomic_load(&c->failed);
	}
	assert_true(failed == 0);
}

static void a_second_signal_ends_it_at_once(void **state)
{
	struct scene *s = *state;
	int64_t began_ns;
	char *url;
	int status = 0;

	s->options[0][5] = "300s";
	stack_start_aggregator(s->stack, 0);
	url = url_of(s, 0, "/readyz");
	kill(s->stack->aggregators[0].pid, SIGTERM);
	assert_true(await(is_unready, url, 5));
	began_ns = clock_mono_ns();
	kill(s->stack->aggregators[0].pid, SIGTERM);
	waitpid(s->stack->aggregators[0].pid, &status, 0);
	s->stack->aggregators[0].pid = 0;
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_true(clock_mono_ns() - began_ns < (int64_t)(scaled_s(10) * NS_PER_SEC));
	free(url);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(no_request_fails_while_both_are_replaced),
		TEST(a_second_signal_ends_it_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
