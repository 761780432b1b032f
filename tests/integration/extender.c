/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The extender over real HTTP: what a scheduler would never send, and 32 schedulers at once while a
 * loop binds pods, deletes them and publishes views as the aggregator's does. EXTENDER_SECONDS=30
 * makes the latter last so long instead of a fixed number of questions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <curl/curl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "aggregator/api/policy_options.h"
#include "aggregator/edge/http/http.h"
#include "aggregator/state/join.h"
#include "aggregator/state/reservations.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/api_fixture.h"
#include "tests/consistent.h"
#include "tests/http_plain.h"
#include "tests/model_fixture.h"
#include "tests/process.h"
#include "tests/view_fixture.h"

enum { NODES = 40, MEASURED = 30, CLIENTS = 32, QUESTIONS = 40, MIB = 1 << 20 };

struct scene {
	struct api_context ctx;
	struct counters counters;
	struct extender_options options;
	struct http_server *server;
	/* the loop */
	struct model *model;
	struct model_pod_watch watch;
	struct join *join;
	struct node_stats *node_stats[MEASURED];
};

static int64_t fixed_now(void)
{
	return VIEW_FIXTURE_NOW_NS;
}

static void on_put(void *ctx, const struct kube_pod *was, const struct kube_pod *pod,
		   uint64_t generation)
{
	(void)was;
	reservations_bind(ctx, pod->object.uid, pod->node, generation);
}

static void on_gone(void *ctx, const struct kube_pod *pod)
{
	reservations_release(ctx, pod->object.uid);
}

static void publish(struct scene *s)
{
	struct cluster *c = model_cluster(s->model);
	uint64_t generation = c->generation;

	view_slot_publish(s->ctx.views,
			  join_view(s->join, s->node_stats, MEASURED, c, fixed_now()));
	reservations_settle(s->ctx.reservations, generation, fixed_now());
}

static int setup(void **state)
{
	struct scene *s = mem_zalloc(1, sizeof(*s));
	struct error error;
	char name[16];

	api_fixture_extender(&s->options);
	s->options.limits.use_cap[SCORE_CPU] = 0.9;
	s->ctx = (struct api_context){
		.views = view_slot_new(),
		.counters = &s->counters,
		.now_ns = fixed_now,
		.watcher_smoothed = 1,
		.reservations = reservations_new(),
		.extender = &s->options,
	};
	s->model = model_new();
	s->watch = (struct model_pod_watch){on_put, on_gone, s->ctx.reservations};
	model_watch_pods(s->model, &s->watch);
	s->join = join_new();
	for (int i = 0; i < NODES; i++) {
		snprintf(name, sizeof(name), "node-%02d", i);
		model_put(s->model, model_fixture_node(name, 65, 129));
		if (i < MEASURED) {
			struct node_stats stats =
				view_fixture_node(name, VIEW_FIXTURE_NOW_NS - NS_PER_SEC, 3600,
						  100 * i, 50);

			s->node_stats[i] = node_stats_new(&stats);
		}
	}
	for (int kind = 0; kind < OBJECT_KINDS; kind++)
		model_fixture_sync(s->model, (enum object_kind)kind);
	publish(s);
	if (http_plain_start(&s->server, "127.0.0.1:0", &s->ctx, &error)) {
		print_error("%s\n", error.text);
		return -1;
	}
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	http_stop(s->server);
	for (int i = 0; i < MEASURED; i++)
		node_stats_drop(s->node_stats[i]);
	join_free(s->join);
	model_free(s->model);
	view_slot_free(s->ctx.views);
	reservations_free(s->ctx.reservations);
	free(s);
	return 0;
}

/* --- clients ---------------------------------------------------------------------------------- */

struct client {
	struct scene *scene;
	CURL *curl; /* kept, as a scheduler keeps its connection */
	struct buf answer;
	cJSON *json; /* of the answer; NULL: it is none */
	int number;
	pthread_t thread;
	unsigned int seed;
	uint64_t asked, wrong;
	char why[256]; /* the first wrong answer */
};

static size_t on_data(char *data, size_t size, size_t count, void *to)
{
	buf_add(to, data, size * count);
	return size * count;
}

static void client_open(struct client *c, struct scene *s)
{
	*c = (struct client){.scene = s, .curl = curl_easy_init()};
	curl_easy_setopt(c->curl, CURLOPT_TIMEOUT, 120L);
	curl_easy_setopt(c->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c->curl, CURLOPT_WRITEFUNCTION, on_data);
	curl_easy_setopt(c->curl, CURLOPT_WRITEDATA, &c->answer);
}

static void client_close(struct client *c)
{
	curl_easy_cleanup(c->curl);
	cJSON_Delete(c->json);
	buf_fini(&c->answer);
}

/* The status; 0: there was no answer. */
static long ask(struct client *c, const char *path, const char *body, size_t len)
{
	char *url = mem_printf("http://%s%s", http_address(c->scene->server), path);
	long status = 0;

	buf_clear(&c->answer);
	cJSON_Delete(c->json);
	c->json = NULL;
	curl_easy_setopt(c->curl, CURLOPT_URL, url);
	curl_easy_setopt(c->curl, CURLOPT_POST, 1L);
	curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, http_json_headers());
	curl_easy_setopt(c->curl, CURLOPT_POSTFIELDS, body);
	curl_easy_setopt(c->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)len);
	if (curl_easy_perform(c->curl) == CURLE_OK)
		curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &status);
	if (c->answer.len)
		c->json = cJSON_ParseWithLength(c->answer.data, c->answer.len);
	free(url);
	c->asked++;
	return status;
}

static const cJSON *member(const cJSON *json, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(json, name);
}

static char *question(const char *uid, int cpu_milli, int nodes)
{
	struct buf body = BUF_INIT;

	buf_printf(&body,
		   "{\"Pod\":{\"metadata\":{\"name\":\"%s\",\"namespace\":\"shop\",\"uid\":\"%s\"},"
		   "\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":"
		   "\"%dm\",\"memory\":\"64Mi\"}}}]}},\"Nodes\":null,\"NodeNames\":[",
		   *uid ? uid : "nameless", uid, cpu_milli);
	for (int i = 0; i < nodes; i++)
		buf_printf(&body, "%s\"node-%02d\"", i ? "," : "", i);
	buf_add_str(&body, "]}");
	return buf_take(&body, NULL);
}

static size_t reserved(const struct scene *s)
{
	struct reservations_copy *copy = reservations_take(s->ctx.reservations, fixed_now());
	size_t count = copy->count;

	reservations_copy_drop(copy);
	return count;
}

/* --- what no scheduler sends ------------------------------------------------------------------ */

static void odd_questions_get_defined_answers_and_leave_nothing(void **state)
{
	static const char *const bad[] = {"",
					  "{",
					  "null",
					  "[1,2",
					  "{\"Pod\":7}",
					  "{\"Pod\":{}}",
					  "\xff\xfe",
					  "{\"NodeNames\":[]}"};
	struct scene *s = *state;
	struct client c;

	client_open(&c, s);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(ask(&c, "/extender/filter", bad[i], strlen(bad[i])), 400);
		assert_int_equal(ask(&c, "/extender/prioritize", bad[i], strlen(bad[i])), 400);
		assert_non_null(member(c.json, "error"));
	}
	assert_int_equal(ask(&c, "/extender/filter", "{}\0{}", 5), 400);
	assert_int_equal(ask(&c, "/extender/nothing", "{}", 2), 404);
	assert_int_equal(reserved(s), 0);
	client_close(&c);
}

/* Deep in nesting, many names, larger than any body may be. */
static void huge_questions_are_answered_or_refused(void **state)
{
	enum { DEEP = 4 * MIB, NAMES = 200000, LARGE = 65 * MIB };
	struct scene *s = *state;
	char *body = mem_zalloc(LARGE + 1, 1);
	struct buf names = BUF_INIT;
	struct client c;

	client_open(&c, s);
	buf_add_str(&names, "{\"Pod\":");
	for (int i = 0; i < DEEP; i++)
		buf_add_char(&names, '[');
	assert_int_equal(ask(&c, "/extender/filter", names.data, names.len), 400);
	buf_clear(&names);
	memset(body, ' ', LARGE);
	assert_int_equal(ask(&c, "/extender/filter", body, LARGE), 413);
	assert_int_equal(ask(&c, "/v1/scores", body, 2 * MIB), 413);
	buf_add_str(
		&names,
		"{\"Pod\":{\"metadata\":{\"name\":\"p\",\"uid\":\"p\"},\"spec\":{\"containers\":"
		"[]}},\"NodeNames\":[");
	for (int i = 0; i < NAMES; i++)
		buf_printf(&names, "%s\"x-%d\"", i ? "," : "", i);
	buf_add_str(&names, "]}");
	assert_int_equal(ask(&c, "/extender/filter", names.data, names.len), 200);
	assert_int_equal(cJSON_GetArraySize(member(c.json, "FailedNodes")), NAMES);
	assert_int_equal(ask(&c, "/extender/prioritize", names.data, names.len), 200);
	assert_int_equal(cJSON_GetArraySize(c.json), NAMES);
	assert_int_equal(reserved(s),
			 1); /* charged to a node that is not there, until its time ends */
	reservations_settle(s->ctx.reservations, 0, fixed_now() + RESERVATIONS_TTL_NS);
	assert_int_equal(reserved(s), 0);
	buf_fini(&names);
	free(body);
	client_close(&c);
}

/* Whole nodes, as kubelets make them: what passes comes back byte for byte. */
static void whole_nodes_come_back_as_they_were_sent(void **state)
{
	enum { IMAGES = 200 };
	struct scene *s = *state;
	struct buf body = BUF_INIT, node = BUF_INIT;
	struct client c;

	client_open(&c, s);
	buf_add_str(&node, "{\"metadata\":{\"name\":\"node-01\"},\"status\":{\"images\":[");
	for (int i = 0; i < IMAGES; i++)
		buf_printf(
			&node,
			"%s{\"names\":[\"registry.example/\\u0061\\\"}]-%d\"],\"sizeBytes\": %d}",
			i ? "," : "", i, i);
	buf_add_str(&node, "]}}");
	buf_printf(&body,
		   "{\"Pod\":{\"metadata\":{\"name\":\"p\",\"uid\":\"p\"},\"spec\":{\"containers\":"
		   "[]}},\"NodeNames\":null,\"Nodes\":{\"metadata\":{},\"items\":[%s,{\"metadata\":"
		   "{\"name\":\"gone\"}}]}}",
		   node.data);
	assert_int_equal(ask(&c, "/extender/filter", body.data, body.len), 200);
	buf_add_char(&c.answer, '\0');
	assert_non_null(strstr(c.answer.data, node.data));
	assert_non_null(member(member(c.json, "FailedNodes"), "gone"));
	assert_null(member(c.json, "NodeNames"));
	assert_int_equal(reserved(s), 1);
	buf_fini(&body);
	buf_fini(&node);
	client_close(&c);
}

/* In any order and any number of times: one pod has one reservation, and none once it is gone. */
static void repeated_and_late_questions_reserve_once(void **state)
{
	static const struct model_fixture_pod pod = {
		.namespace = "shop", .name = "p", .uid = "p", .node = "node-07", .cpu = "100m"};
	struct scene *s = *state;
	char *p = question("p", 100, NODES), *nobody = question("", 100, NODES);
	struct client c;

	client_open(&c, s);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(ask(&c, "/extender/prioritize", p, strlen(p)), 200);
		assert_int_equal(ask(&c, "/extender/filter", p, strlen(p)), 200);
		assert_int_equal(ask(&c, "/extender/filter", nobody, strlen(nobody)), 200);
		assert_int_equal(reserved(s), 1);
	}
	model_put(s->model, model_fixture_pod(&pod));
	assert_int_equal(ask(&c, "/extender/prioritize", p, strlen(p)),
			 200); /* after it was bound */
	assert_int_equal(reserved(s), 1);
	publish(s);
	assert_int_equal(reserved(s), 0);
	assert_int_equal(ask(&c, "/extender/filter", p, strlen(p)), 200); /* after all was over */
	assert_int_equal(reserved(s), 1);
	model_replace_begin(s->model, OBJECT_POD);
	model_replace_end(s->model, OBJECT_POD); /* a new list has it no more */
	assert_int_equal(reserved(s), 0);
	free(p);
	free(nobody);
	client_close(&c);
}

/* --- many schedulers -------------------------------------------------------------------------- */

static atomic_bool stopping;
static atomic_int running;

static void note(struct client *c, const char *what)
{
	if (!c->wrong++)
		snprintf(c->why, sizeof(c->why), "%s: %.180s", what,
			 c->answer.data ? c->answer.data : "");
}

static void check_filter(struct client *c, int nodes)
{
	int passed = cJSON_GetArraySize(member(c->json, "NodeNames"));
	int failed = cJSON_GetArraySize(member(c->json, "FailedNodes"));

	if (passed + failed != nodes)
		note(c, "filter left nodes out");
}

static void check_priorities(struct client *c, int nodes)
{
	if (cJSON_GetArraySize(c->json) != nodes)
		note(c, "prioritize left nodes out");
	for (const cJSON *item = c->json ? c->json->child : NULL; item; item = item->next) {
		double score = cJSON_GetNumberValue(member(item, "Score"));

		if (!cJSON_IsString(member(item, "Host")) || !(score >= 0 && score <= 10))
			note(c, "prioritize gave no score");
	}
}

static void ask_about_a_pod(struct client *c, int i)
{
	int nodes = 1 + rand_r(&c->seed) % NODES;
	char uid[48], *body;

	snprintf(uid, sizeof(uid), "pod-%02d-%d", c->number, i);
	body = question(uid, rand_r(&c->seed) % 2000, nodes);
	if (rand_r(&c->seed) % 8) {
		if (ask(c, "/extender/filter", body, strlen(body)) != 200)
			note(c, "filter");
		else
			check_filter(c, nodes);
	}
	if (rand_r(&c->seed) % 8) {
		if (ask(c, "/extender/prioritize", body, strlen(body)) != 200)
			note(c, "prioritize");
		else
			check_priorities(c, nodes);
	}
	free(body);
	if (rand_r(&c->seed) % 16 == 0 && ask(c, "/extender/filter", "{\"Pod\":", 7) != 400)
		note(c, "half a question");
	if (rand_r(&c->seed) % 16 == 0 && ask(c, "/v1/scores", "{}", 2) != 200)
		note(c, "scores");
}

static void *run_client(void *arg)
{
	struct client *c = arg;
	bool timed = getenv("EXTENDER_SECONDS") != NULL;

	for (int i = 0; timed ? !atomic_load(&stopping) : i < QUESTIONS; i++)
		ask_about_a_pod(c, i);
	atomic_fetch_sub(&running, 1);
	return NULL;
}

/*
 * The loop: pods that were charged are bound there, or elsewhere, or deleted; those that are shown
 * end some time later.
 */
static void turn(struct scene *s, unsigned int *seed)
{
	struct reservations_copy *copy = reservations_take(s->ctx.reservations, fixed_now());

	for (size_t i = 0; i < copy->count; i++) {
		const struct reservation *e = copy->of[i];
		struct model_fixture_pod pod = {.namespace = e->namespace,
						.name = e->name,
						.uid = e->uid,
						.node = e->node,
						.cpu = "10m"};

		if (e->state != RESERVATIONS_CHARGED ||
		    !reservations_counts(e, model_generation(s->model)))
			continue;
		if (rand_r(seed) % 4 == 0)
			pod.node = "node-00";
		if (rand_r(seed) % 8)
			model_put(s->model, model_fixture_pod(&pod));
		else
			reservations_release(s->ctx.reservations, e->uid);
	}
	reservations_copy_drop(copy);
	publish(s);
	if (rand_r(seed) % 8 == 0) {
		model_replace_begin(s->model, OBJECT_POD);
		model_replace_end(s->model, OBJECT_POD);
	}
}

static void run_loop(struct scene *s)
{
	const char *seconds = getenv("EXTENDER_SECONDS");
	int64_t end_ns = clock_mono_ns() + (seconds ? strtoll(seconds, NULL, 10) : 0) * NS_PER_SEC;
	unsigned int seed = 7;
	struct error why;

	while (atomic_load(&running) > 0) {
		turn(s, &seed);
		if (!reservations_is_consistent(s->ctx.reservations, &why))
			fail_msg("%s", why.text);
		if (clock_mono_ns() >= end_ns)
			atomic_store(&stopping, true);
	}
}

/* What is left is what the counters say; bound and shown, or expired, it is gone. */
static void check_reservations(struct scene *s)
{
	struct reservations_copy *copy = reservations_take(s->ctx.reservations, fixed_now());
	struct reservations_counters counters;
	size_t states[RESERVATIONS_STATES] = {0};
	struct error why;

	reservations_read_counters(s->ctx.reservations, &counters);
	for (size_t i = 0; i < copy->count; i++)
		states[copy->of[i]->state]++;
	for (int i = 0; i < RESERVATIONS_STATES; i++)
		assert_int_equal(states[i], counters.entries[i]);
	reservations_copy_drop(copy);
	if (!reservations_is_consistent(s->ctx.reservations, &why))
		fail_msg("%s", why.text);
	publish(s);
	reservations_settle(s->ctx.reservations, 0, fixed_now() + RESERVATIONS_TTL_NS);
	reservations_read_counters(s->ctx.reservations, &counters);
	assert_int_equal(reserved(s), 0);
	assert_int_equal(counters.reserved,
			 counters.settled + counters.released + counters.expired);
	assert_true(counters.bound > 0 && counters.moved > 0);
}

static void many_schedulers_at_once_get_valid_answers(void **state)
{
	struct client *clients = mem_zalloc(CLIENTS, sizeof(*clients));
	struct scene *s = *state;
	uint64_t asked = 0;

	atomic_store(&stopping, false);
	atomic_store(&running, CLIENTS);
	for (int i = 0; i < CLIENTS; i++) {
		client_open(&clients[i], s);
		clients[i].number = i;
		clients[i].seed = (unsigned int)i + 1;
		assert_int_equal(pthread_create(&clients[i].thread, NULL, run_client, &clients[i]),
				 0);
	}
	run_loop(s);
	for (int i = 0; i < CLIENTS; i++) {
		pthread_join(clients[i].thread, NULL);
		if (clients[i].wrong)
			fail_msg("%" PRIu64 " wrong answers, %s", clients[i].wrong, clients[i].why);
		asked += clients[i].asked;
		client_close(&clients[i]);
	}
	check_reservations(s);
	print_message("%" PRIu64 " questions\n", asked);
	free(clients);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(odd_questions_get_defined_answers_and_leave_nothing),
		T(huge_questions_are_answered_or_refused),
		T(whole_nodes_come_back_as_they_were_sent),
		T(repeated_and_late_questions_reserve_once),
		T(many_schedulers_at_once_get_valid_answers),
	};

	curl_global_init(CURL_GLOBAL_DEFAULT);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
