/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The history that the loop reads for HTTP threads: of a real agent's node, whose buckets make up its
 * windows; and while the loop answers many threads, or none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <curl/curl.h>
#include <errno.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/engine_history.h"
#include "aggregator/state/window_sums.h"
#include "shared/mem.h"
#include "shared/thread.h"
#include "tests/cgroup_fixture.h"
#include "tests/near.h"
#include "tests/process.h"
#include "tests/stack.h"
#include "tests/usage_fixture.h"

enum { READERS = 8, READS = 200 };

#define NOW_NS INT64_C(1700000000000000000)

/* --- a real agent ----------------------------------------------------------------------------- */

/* An object's answer and its history. */
struct scene {
	struct stack *stack;
	char *object, *history; /* paths */
	char *name; /* of the object in a list; NULL: it is no list */
	struct cgroup_fixture *cgroups;
};

static double number(const cJSON *json, const char *path)
{
	const cJSON *value = json_at(json, path);

	return cJSON_IsNumber(value) ? value->valuedouble : -1;
}

static const cJSON *last_of(const cJSON *items)
{
	return cJSON_GetArrayItem(items, cJSON_GetArraySize(items) - 1);
}

/*
 * The 15 minutes' window is the merge of the buckets, by its memory, which every kind of hierarchy
 * has. False: one of the answers is newer.
 */
static bool agree(const cJSON *object, const cJSON *history)
{
	const cJSON *window = json_at(object, "usage.memoryBytes.windows.15m"), *item;
	const cJSON *items = json_at(history, "items");
	const char *end = cJSON_GetStringValue(json_at(last_of(items), "end"));
	double seconds = 0, sum = 0, most = -1;
	int counted = 0;

	if (cJSON_GetArraySize(items) < 2 || !window || !end ||
	    strcmp(end, cJSON_GetStringValue(json_at(window, "end"))) != 0)
		return false;
	cJSON_ArrayForEach (item, items) {
		seconds += number(item, "seconds");
		sum += number(item, "seconds") * number(item, "memoryBytes.mean");
		most = fmax(most, number(item, "memoryBytes.max"));
		counted += json_at(item, "contention") != NULL;
	}
	if (!counted)
		return false;
	assert_string_equal(cJSON_GetStringValue(json_at(cJSON_GetArrayItem(items, 0), "start")),
			    cJSON_GetStringValue(json_at(window, "start")));
	assert_near(most, number(window, "max"));
	/* Seconds have 6 decimals. */
	assert_true(fabs(sum / seconds - number(window, "mean")) <= 1e-4 * number(window, "mean"));
	return true;
}

static bool is_whole(void *ctx)
{
	struct scene *s = ctx;
	cJSON *object = stack_get(s->stack, 0, s->object);
	cJSON *history = stack_get(s->stack, 0, s->history);
	bool whole =
		object && history && agree(s->name ? json_item(object, s->name) : object, history);

	cJSON_Delete(object);
	cJSON_Delete(history);
	return whole;
}

/* The answers are shown where they do not agree in time. */
static void expect_whole(struct scene *s, double seconds)
{
	cJSON *object, *history;

	if (await(is_whole, s, seconds))
		return;
	object = stack_get(s->stack, 0, s->object);
	history = stack_get(s->stack, 0, s->history);
	print_message("%s\n",
		      cJSON_PrintUnformatted(s->name ? json_item(object, s->name) : object));
	print_message("%s\n", cJSON_PrintUnformatted(history));
	fail();
}

#define POD "kubepods/pod7e5e5c0a-11fe-4111-8111-00000000b0c5"

/* The pod of the test: any other may be gone soon. */
static bool has_workload(void *ctx)
{
	struct scene *s = ctx;
	const char *own = cgroup_fixture_path(s->cgroups, POD) + 1;
	cJSON *pods = stack_get(s->stack, 0, "/v1/pods?limit=5000");
	const cJSON *pod;
	char *escaped;

	cJSON_ArrayForEach (pod, json_at(pods, "items")) {
		const char *name = cJSON_GetStringValue(json_at(pod, "name"));

		if (strcmp(name, own) != 0)
			continue;
		s->name = mem_strdup(name);
		escaped = curl_easy_escape(NULL, s->name, 0);
		s->history = mem_printf("/v1/pods/-/%s/history?node=test-node", escaped);
		curl_free(escaped);
	}
	cJSON_Delete(pods);
	return s->name;
}

static void test_real_agent(void **state)
{
	static const char *const often[] = {"--interval", "3s", NULL};
	const struct cgroup_child child = {.hold_bytes = 8 << 20, .spin = true};
	struct error error;
	struct scene s = {
		.stack = stack_new(),
		.object = (char *)"/v1/nodes/test-node",
		.history = (char *)"/v1/nodes/test-node/history",
	};

	(void)state;
	s.cgroups = cgroup_fixture_new("history", &error);
	if (s.cgroups) {
		cgroup_fixture_make_tree(s.cgroups, POD);
		cgroup_fixture_spawn(s.cgroups, POD, &child);
	}
	stack_start_aggregator(s.stack, 0);
	assert_null(stack_get(s.stack, 0, s.history));
	stack_start_agent(s.stack, 1, often);
	expect_whole(&s, 60);
	if (s.cgroups) {
		assert_true(await(has_workload, &s, 60));
		s.object = (char *)"/v1/pods?limit=5000";
		expect_whole(&s, 90);
		free(s.history);
		free(s.name);
	}
	stack_free(s.stack, 0);
	cgroup_fixture_free(s.cgroups);
	if (!s.cgroups) {
		print_message("SKIP: %s\n", error.text);
		skip();
	}
}

/* --- the loop --------------------------------------------------------------------------------- */

struct loop {
	uv_loop_t uv;
	uv_async_t end;
	struct usage_state *usage;
	struct bucket_source *history;
	atomic_int readers, good;
};

static void on_end(uv_async_t *end)
{
	uv_stop(end->loop);
}

static void open_loop(struct loop *l)
{
	static const uint8_t run[FRAME_RUN_LEN] = {1};
	const struct usage_limits limits = {.nodes_max = 2, .pods_per_node_max = 8};
	const struct usage_fixture f = {1, NOW_NS, 5, 1, 1, true, 7};
	struct interval *told = usage_fixture_new(&f);
	struct usage_answer answer;

	*l = (struct loop){.usage = usage_new(&limits)};
	usage_apply(l->usage, "alpha", run, NULL, told, NOW_NS, &answer);
	assert_int_equal(answer.verdict, USAGE_APPLIED);
	interval_free(told);
	uv_loop_init(&l->uv);
	uv_async_init(&l->uv, &l->end, on_end);
	assert_int_equal(history_open(&l->history, &l->uv, l->usage), 0);
}

static void close_handle(uv_handle_t *handle, void *unused)
{
	(void)unused;
	uv_close(handle, NULL);
}

static void close_loop(struct loop *l)
{
	uv_walk(&l->uv, close_handle, NULL);
	uv_run(&l->uv, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&l->uv), 0);
	history_free(l->history);
	usage_free(l->usage);
}

static int read_node(struct loop *l, const char *node, struct window_buckets *out)
{
	struct bucket_source *source = l->history;

	return source->read(source, node, NULL, out);
}

static void *read_often(void *arg)
{
	struct loop *l = arg;
	struct window_buckets buckets;

	for (int i = 0; i < READS; i++) {
		l->good += read_node(l, "alpha", &buckets) == 0 && buckets.count == 1;
		l->good += read_node(l, "bravo", &buckets) == -ENOENT;
	}
	if (atomic_fetch_sub(&l->readers, 1) == 1)
		uv_async_send(&l->end);
	return NULL;
}

static void test_many_readers(void **state)
{
	pthread_t threads[READERS];
	struct loop l;

	(void)state;
	open_loop(&l);
	atomic_store(&l.readers, READERS);
	for (int i = 0; i < READERS; i++)
		assert_int_equal(thread_start(&threads[i], 0, read_often, &l), 0);
	uv_run(&l.uv, UV_RUN_DEFAULT);
	for (int i = 0; i < READERS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&l.good), READERS * 2 * READS);
	close_loop(&l);
}

/* A reader takes its request back, and the loop does not touch it later. */
static void test_no_loop(void **state)
{
	struct window_buckets *buckets = mem_alloc(sizeof(*buckets));
	struct loop l;

	(void)state;
	open_loop(&l);
	buckets->count = 77;
	assert_int_equal(read_node(&l, "alpha", buckets), -ETIMEDOUT);
	uv_run(&l.uv, UV_RUN_NOWAIT);
	assert_int_equal(buckets->count, 77);
	free(buckets);
	close_loop(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_real_agent),
		cmocka_unit_test(test_many_readers),
		cmocka_unit_test(test_no_loop),
	};

	if (sodium_init() < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
