/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a real kube-scheduler is answered is what `evenkeel scores --pod` foretold, and what is
 * reserved by it goes to the node the pod got, and away. A tap between the two shows the answers,
 * and keeps one from the scheduler, so that what lasts milliseconds can be looked at. What the
 * nodes and their residents are: tests/sched_world.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <curl/curl.h>
#include <math.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"
#include "tests/extender_tap.h"
#include "tests/process.h"
#include "tests/sched_world.h"
#include "tests/stack.h"

static const char *const no_options[] = {NULL};

static struct sched_world *world;
static struct extender_tap *tap;

/* --- what the command line says -------------------------------------------------------------- */

/* 0..10 by node. */
struct ranks {
	int of[SCHED_NODES];
};

static struct ranks ranks_from(const cJSON *priorities)
{
	struct ranks r = {{0}};
	const cJSON *item;

	assert_int_equal(cJSON_GetArraySize(priorities), SCHED_NODES);
	cJSON_ArrayForEach (item, priorities) {
		const char *host = json_at(item, "Host")->valuestring;

		r.of[sched_node(world, host)] = json_at(item, "Score")->valueint;
	}
	return r;
}

/* The default blend, which the answer rounds. */
static double blend_of(const cJSON *item)
{
	double sum = 0, weights = 0;
	const cJSON *plugin;

	cJSON_ArrayForEach (plugin, json_at(item, "plugins")) {
		bool limits = strcmp(json_at(plugin, "name")->valuestring, "LimitAware") == 0;
		double weight = limits ? 0.01 : 1;

		sum += weight * json_at(plugin, "score")->valuedouble;
		weights += weight;
	}
	return sum / weights;
}

/* The steps that prioritize makes of scores: between the worst and the best, which has 10 alone. */
static struct ranks ranks_of_scores(const cJSON *items)
{
	double best = -1, worst = 101, scores[SCHED_NODES] = {0};
	struct ranks r = {{0}};
	const cJSON *item;
	bool found = false;

	assert_int_equal(cJSON_GetArraySize(items), SCHED_NODES);
	cJSON_ArrayForEach (item, items) {
		size_t i = sched_node(world, json_at(item, "node")->valuestring);

		scores[i] = blend_of(item);
		best = fmax(best, scores[i]);
		worst = fmin(worst, scores[i]);
	}
	for (size_t i = 0; i < SCHED_NODES; i++) {
		double steps = floor(10 * (best - scores[i]) / fmax(best - worst, 10));

		r.of[i] = (int)fmax(10 - steps, 1);
		r.of[i] -= r.of[i] == 10 && found;
		found |= r.of[i] == 10;
	}
	return r;
}

/* What prioritize will answer, by evenkeel scores --pod. */
static struct ranks predict(const char *text)
{
	char *file = mem_printf("%s/pod.json", world->bed->folder);
	char *server = mem_printf("http://127.0.0.1:%d", world->bed->aggregators[0].http_port);
	char *program = mem_strdup(program_path("evenkeel"));
	char *argv[] = {program, (char *)"scores", (char *)"--server", server, (char *)"--pod",
			file,	 (char *)"-o",	   (char *)"json",     NULL};
	struct buf out = BUF_INIT, err = BUF_INIT;
	FILE *f = fopen(file, "w");
	struct ranks ranks;
	cJSON *json;

	assert_true(f && fputs(text, f) >= 0 && fclose(f) == 0);
	if (process_run(argv, &out, &err))
		fail_msg("evenkeel scores: %s", err.data ? err.data : "no word");
	json = cJSON_Parse(out.data);
	ranks = ranks_of_scores(json_at(json, "items"));
	cJSON_Delete(json);
	buf_fini(&out);
	buf_fini(&err);
	free(program);
	free(server);
	free(file);
	return ranks;
}

static void expect_same(const struct ranks *a, const struct ranks *b)
{
	for (size_t i = 0; i < SCHED_NODES; i++)
		if (a->of[i] != b->of[i])
			fail_msg("%s: %d was predicted, %d answered", world->names[i], a->of[i],
				 b->of[i]);
}

static size_t first_of(const struct ranks *r, size_t except)
{
	size_t first = except == 0;

	for (size_t i = 0; i < SCHED_NODES; i++)
		if (i != except && r->of[i] > r->of[first])
			first = i;
	return first;
}

static int lowest(const struct ranks *r)
{
	int low = r->of[0];

	for (size_t i = 1; i < SCHED_NODES; i++)
		low = r->of[i] < low ? r->of[i] : low;
	return low;
}

/* From nearly idle to full, and more or less steady. */
static void use_by_degrees(void)
{
	for (size_t i = 0; i < SCHED_NODES; i++)
		sched_use(world, i, 800 + 1200 * (double)i, 200 + 900 * (double)(i % 4));
}

static void test_scores_are_predicted(void **state)
{
	(void)state;
	use_by_degrees();
	sched_restart_aggregator(world, no_options);
	tap = extender_tap_start(world->bed->aggregators[0].http_port);
	sched_start(world, extender_tap_port(tap), true, 0);
	for (int i = 0; i < 5; i++) {
		char *name = mem_printf("foreseen-%d", i);
		char *resources = mem_printf("{\"requests\":{\"cpu\":\"%dm\",\"memory\":\"1Gi\"}}",
					     100 + 700 * i);
		char *text = sched_pod_text(name, "", resources);
		struct ranks predicted, answered;
		cJSON *list;

		sched_await_heard(world);
		predicted = predict(text);
		sched_make_pod(world, name, "", resources);
		sched_await_placed(world, "foreseen", (size_t)i + 1);
		list = extender_tap_priorities(tap, name);
		answered = ranks_from(list);
		sched_print(name, answered.of);
		expect_same(&predicted, &answered);
		assert_true(answered.of[first_of(&answered, SCHED_NODES)] >= 3 + lowest(&answered));
		cJSON_Delete(list);
		sched_await_no_reservations(world);
		free(text);
		free(resources);
		free(name);
	}
	sched_remove_pods(world);
}

/* --- a reservation's life -------------------------------------------------------------------- */

static size_t collect(char *data, size_t size, size_t count, void *to)
{
	buf_add(to, data, size * count);
	return size * count;
}

/* What the extender answers about a pod without a uid, which so leaves nothing behind. */
static struct ranks ask(const char *pod)
{
	char *url = mem_printf("http://127.0.0.1:%d/extender/prioritize",
			       world->bed->aggregators[0].http_port);
	struct buf question = BUF_INIT, answer = BUF_INIT;
	CURL *curl = curl_easy_init();
	struct ranks ranks;
	cJSON *list;

	buf_printf(&question, "{\"Pod\":%s,\"NodeNames\":[", pod);
	for (size_t i = 0; i < SCHED_NODES; i++)
		buf_printf(&question, "%s\"%s\"", i ? "," : "", world->names[i]);
	buf_add_str(&question, "]}");
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(curl, CURLOPT_POSTFIELDS, question.data);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, http_json_headers());
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, collect);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, &answer);
	assert_int_equal(curl_easy_perform(curl), CURLE_OK);
	list = cJSON_Parse(answer.data);
	ranks = ranks_from(list);
	cJSON_Delete(list);
	curl_easy_cleanup(curl);
	buf_fini(&question);
	buf_fini(&answer);
	free(url);
	return ranks;
}

static bool is_held(void *ctx)
{
	return extender_tap_holds(ctx);
}

/* Counts of the reservations since the last look. */
struct counts {
	double charged, bound, moved, settled;
};

static struct counts counted(void)
{
	return (struct counts){sched_metric(world, "evenkeel_ledger_charged_total"),
			       sched_metric(world, "evenkeel_ledger_bound_total"),
			       sched_metric(world, "evenkeel_ledger_moved_total"),
			       sched_metric(world, "evenkeel_ledger_gone_total{why=\"settled\"}")};
}

/*
 * While the scheduler stands still with the answer before it. Nobody else's reservation is there.
 */
static void look_at_charge(size_t first, const struct ranks *before)
{
	char *text = sched_pod_text("other", "", sched_large_pod);
	struct ranks predicted = predict(text), answered = ask(text);

	assert_true(sched_metric(world, "evenkeel_ledger_entries{state=\"charged\"}") == 1);
	assert_true(sched_assumed_on(world, world->names[first]) == 1 &&
		    sched_assumed_on(world, NULL) == 1);
	expect_same(&predicted, &answered);
	sched_print("charged", answered.of);
	assert_true(answered.of[first] != before->of[first]);
	free(text);
}

/*
 * Charged to the node ranked first, bound to the one its affinity prefers, gone when a view shows
 * it there.
 */
static void test_reservation_moves_and_goes(void **state)
{
	static const char huge[] = "{\"requests\":{\"cpu\":\"6\",\"memory\":\"1Gi\"}}";
	struct counts before, after;
	struct ranks other, ranks;
	size_t first, real;
	struct sched_placed p;
	char *text, *more;

	(void)state;
	sched_await_no_reservations(world);
	before = counted();
	sched_await_heard(world);
	text = sched_pod_text("moving", "", huge);
	ranks = predict(text);
	first = first_of(&ranks, SCHED_NODES);
	real = first_of(&ranks, first);
	free(text);
	text = sched_pod_text("other", "", sched_large_pod);
	other = predict(text);
	free(text);
	sched_print("predicted", ranks.of);
	more = mem_printf("\"affinity\":{\"nodeAffinity\":{"
			  "\"preferredDuringSchedulingIgnoredDuringExecution\":[{\"weight\":100,"
			  "\"preference\":{\"matchExpressions\":[{\"key\":"
			  "\"kubernetes.io/hostname\",\"operator\":\"In\",\"values\":[\"%s\"]}]}}]"
			  "}},",
			  world->names[real]);
	extender_tap_hold(tap, world->bed->plane->scheduler);
	sched_make_pod(world, "moving", more, huge);
	assert_true(await(is_held, tap, SCHED_TIMEOUT));
	look_at_charge(first, &other);
	extender_tap_release(tap);
	p = sched_await_placed(world, "moving", 1);
	assert_int_equal(p.on[real], 1);
	sched_await_no_reservations(world);
	after = counted();
	assert_true(after.charged == before.charged + 1 && after.bound == before.bound + 1);
	assert_true(after.moved == before.moved + 1 && after.settled == before.settled + 1);
	free(more);
	sched_remove_pods(world);
}

/* Of all that this aggregator has reserved. */
static void test_nothing_is_left(void **state)
{
	(void)state;
	assert_true(sched_has_no_reservations(world));
	assert_true(sched_metric(world, "evenkeel_ledger_reserved_total") > 0);
	assert_true(sched_metric(world, "evenkeel_ledger_reserved_total") ==
		    sched_metric(world, "evenkeel_ledger_gone_total{why=\"settled\"}"));
	assert_true(sched_metric(world, "evenkeel_extender_unreserved_total") == 1);
	assert_true(sched_metric(world, "evenkeel_extender_malformed_total") == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scores_are_predicted),
		cmocka_unit_test(test_reservation_moves_and_goes),
		cmocka_unit_test(test_nothing_is_left),
	};
	int failed;

	if (sodium_init() < 0 || curl_global_init(CURL_GLOBAL_DEFAULT))
		return 1;
	world = sched_world_new();
	if (!world)
		return 0;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	sched_world_free(world, failed != 0);
	extender_tap_stop(tap);
	return failed != 0;
}
