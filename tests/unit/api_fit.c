/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "aggregator/model/model.h"
#include "aggregator/state/join.h"
#include "aggregator/state/reservations.h"
#include "shared/mem.h"
#include "tests/api_fixture.h"
#include "tests/reservations_watch.h"
#include "tests/model_fixture.h"
#include "tests/view_fixture.h"

static struct api_fixture f;

#define NODE(name, cpu, more)                                                                      \
	"{\"metadata\":{\"name\":\"" name "\"},\"spec\":{" more "},\"status\":{\"allocatable\":{"  \
	"\"cpu\":\"" cpu "\",\"memory\":\"8Gi\",\"pods\":\"10\"},\"conditions\":[{\"type\":"       \
	"\"Ready\",\"status\":\"True\"}]}}"
#define WANTS(amount)                                                                              \
	"\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"" amount \
	"\"}}}]}"

static struct model *new_model(void)
{
	static const struct model_fixture_pod web = {.name = "web", .node = "bravo", .cpu = "3"};
	struct model *m = model_new();

	/* Put in another order than that of their names. */
	model_put(m, model_fixture_object(
			     OBJECT_NODE,
			     NODE("charlie", "4",
				  "\"taints\":[{\"key\":\"team\",\"value\":\"a\",\"effect\":"
				  "\"NoSchedule\"}]")));
	model_put(m, model_fixture_object(OBJECT_NODE, NODE("bravo", "4", "")));
	model_put(m, model_fixture_object(OBJECT_NODE, NODE("alpha", "4", "")));
	model_put(m, model_fixture_pod(&web));
	for (int kind = 0; kind < OBJECT_KINDS; kind++)
		model_fixture_sync(m, (enum object_kind)kind);
	return m;
}

static struct view *view_of(struct model *m)
{
	struct join *j = join_new();
	struct view *v = join_view(j, NULL, 0, model_cluster(m), VIEW_FIXTURE_NOW_NS);

	join_free(j);
	model_free(m);
	return v;
}

static int setup(void **state)
{
	(void)state;
	api_fixture_open(&f, view_of(new_model()));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	api_fixture_close(&f);
	return 0;
}

static int post(const char *body)
{
	return api_fixture_send(&f, "POST", "/v1/fit", body);
}

static const cJSON *at(const char *path)
{
	const cJSON *item = api_fixture_at(f.json, path);

	if (!item)
		fail_msg("nothing at %s in %s", path, f.response.body.data);
	return item;
}

static const char *text(const char *path)
{
	const char *value = cJSON_GetStringValue(at(path));

	assert_non_null(value);
	return value;
}

static void each_node_says_whether_and_why_not(void **state)
{
	(void)state;
	assert_int_equal(post("{\"pod\":{" WANTS("2") "}}"), 200);
	assert_string_equal(f.response.content_type, "application/json");
	assert_string_equal(text("kind"), "FitList");
	assert_string_equal(text("time"), "2026-01-31T12:00:00Z");
	assert_string_equal(text("useCap"), "off: no usage data");
	assert_int_equal(at("fits")->valueint, 1);
	assert_int_equal(at("refused.NodeResourcesFit")->valueint, 1);
	assert_int_equal(at("refused.TaintToleration")->valueint, 1);
	assert_int_equal(cJSON_GetArraySize(at("refused")), 2);
	assert_int_equal(cJSON_GetArraySize(at("items")), 3);
	assert_string_equal(text("items.0.node"), "alpha");
	assert_true(cJSON_IsTrue(at("items.0.fits")));
	assert_null(api_fixture_at(f.json, "items.0.filter"));
	assert_null(api_fixture_at(f.json, "items.0.reason"));
	assert_string_equal(text("items.1.node"), "bravo");
	assert_true(cJSON_IsFalse(at("items.1.fits")));
	assert_string_equal(text("items.1.filter"), "NodeResourcesFit");
	assert_non_null(strstr(text("items.1.reason"), "2000"));
	assert_non_null(strstr(text("items.1.reason"), "1000"));
	assert_string_equal(text("items.2.node"), "charlie");
	assert_string_equal(text("items.2.filter"), "TaintToleration");
	assert_non_null(strstr(text("items.2.reason"), "team"));
}

static void some_nodes_are_listed_and_all_are_counted(void **state)
{
	(void)state;
	assert_int_equal(post("{\"pod\":{" WANTS("2") "},\"nodes\":[\"charlie\",\"alpha\"]}"), 200);
	assert_int_equal(cJSON_GetArraySize(at("items")), 2);
	assert_string_equal(text("items.0.node"), "alpha");
	assert_string_equal(text("items.1.node"), "charlie");
	assert_int_equal(at("refused.NodeResourcesFit")->valueint, 1);
	assert_int_equal(post("{\"pod\":{" WANTS("2") "},\"nodes\":[]}"), 200);
	assert_int_equal(cJSON_GetArraySize(at("items")), 0);
	assert_int_equal(at("fits")->valueint, 1);
}

/* As kubectl get -o json prints it: bound, and with the uid that the cluster knows. */
static void a_pod_of_the_cluster_is_not_in_its_own_way(void **state)
{
	(void)state;
	assert_int_equal(
		post("{\"pod\":{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"default\","
		     "\"name\":\"web\",\"uid\":\"uid-default-web\"},\"spec\":{"
		     "\"nodeName\":\"bravo\",\"containers\":[{\"resources\":{\"requests\":{"
		     "\"cpu\":\"4\"}}}]},\"status\":{\"phase\":\"Running\"}}}"),
		200);
	assert_int_equal(at("fits")->valueint, 2);
	assert_true(cJSON_IsTrue(at("items.1.fits")));
	/* A namesake that came later does not replace it. */
	assert_int_equal(
		post("{\"pod\":{\"metadata\":{\"name\":\"web\",\"uid\":\"uid-other\"}," WANTS(
			"4") "}}"),
		200);
	assert_int_equal(at("fits")->valueint, 1);
	assert_true(cJSON_IsFalse(at("items.1.fits")));
}

/* What is known under the name that a manifest lacks is another pod. */
static void a_manifest_without_a_name_is_no_pod_that_is_known(void **state)
{
	static const struct model_fixture_pod pod = {.name = "pod", .node = "alpha", .cpu = "3"};
	struct model *m = new_model();
	struct api_fixture named;

	(void)state;
	model_put(m, model_fixture_pod(&pod));
	api_fixture_open(&named, view_of(m));
	assert_int_equal(api_fixture_send(&named, "POST", "/v1/fit", "{\"pod\":{" WANTS("2") "}}"),
			 200);
	assert_int_equal(api_fixture_at(named.json, "fits")->valueint, 0);
	assert_int_equal(
		api_fixture_send(&named, "POST", "/v1/fit",
				 "{\"pod\":{\"metadata\":{\"name\":\"pod\"}," WANTS("2") "}}"),
		200);
	assert_int_equal(api_fixture_at(named.json, "fits")->valueint, 1);
	api_fixture_close(&named);
}

/* --- what is promised */

static void reserve(struct reservations *set, const char *name, const char *node, int64_t cpu_milli)
{
	struct reservation e = {.uid = name, .namespace = "default", .name = name, .node = node};

	resources_set(&e.requests, RESOURCE_CPU, cpu_milli);
	resources_set(&e.requests, RESOURCE_PODS, 1);
	assert_int_equal(reservations_reserve(set, &e, VIEW_FIXTURE_NOW_NS), 0);
}

static int64_t fits(const char *target, const char *metadata)
{
	char *body = mem_printf("{\"pod\":{\"metadata\":{%s}," WANTS("2") "}%s}", metadata,
				strcmp(target, "/v1/fit") == 0 ? "" : ",\"fits\":true");

	assert_int_equal(api_fixture_send(&f, "POST", target, body), 200);
	free(body);
	return at("fits")->valueint;
}

/* As much room as the scores say there is. */
static void room_that_is_promised_to_others_is_none(void **state)
{
	static const char *const targets[] = {"/v1/fit", "/v1/scores"};

	(void)state;
	f.ctx.reservations = reservations_new();
	for (size_t i = 0; i < 2; i++) {
		reserve(f.ctx.reservations, "small", "alpha", 10);
		reservations_charge(f.ctx.reservations, "small", "alpha", VIEW_FIXTURE_NOW_NS);
		reserve(f.ctx.reservations, "lost", "", 3000);
		reservations_charge(f.ctx.reservations, "lost", "nowhere", VIEW_FIXTURE_NOW_NS);
		reserve(f.ctx.reservations, "new", "", 3000);
		assert_int_equal(fits(targets[i], ""), 1);
		reservations_charge(f.ctx.reservations, "new", "alpha", VIEW_FIXTURE_NOW_NS);
		assert_int_equal(fits(targets[i], ""), 0);
		assert_int_equal(fits(targets[i], "\"name\":\"other\""), 0);
		assert_int_equal(fits(targets[i], "\"name\":\"new\""), 1);
		assert_int_equal(fits(targets[i], "\"name\":\"x\",\"uid\":\"new\""), 1);
		assert_int_equal(fits(targets[i], "\"name\":\"new\",\"uid\":\"x\""), 0);
		reservations_bind(f.ctx.reservations, "new", "bravo", 1000);
		assert_int_equal(fits(targets[i], ""), 1);
		reservations_release(f.ctx.reservations, "new");
		reservations_release(f.ctx.reservations, "lost");
		reservations_release(f.ctx.reservations, "small");
	}
	reservations_free(f.ctx.reservations);
	f.ctx.reservations = NULL;
}

/* --- nominated pods */

static void open_with_nominated(struct api_fixture *named, bool global_default)
{
	struct model *m = new_model();

	model_put(m, model_fixture_object(OBJECT_PRIORITY_CLASS,
					  "{\"metadata\":{\"name\":\"high\"},\"value\":10}"));
	model_put(m,
		  model_fixture_object(
			  OBJECT_POD,
			  "{\"metadata\":{\"namespace\":\"default\",\"name\":\"soon\",\"labels\":{"
			  "\"app\":\"soon\"}},\"spec\":{\"priority\":5,\"containers\":[{\"name\":"
			  "\"c\",\"resources\":{\"requests\":{\"cpu\":\"3\"}}}]},\"status\":{"
			  "\"nominatedNodeName\":\"alpha\"}}"));
	model_put(m,
		  model_fixture_object(
			  OBJECT_POD,
			  "{\"metadata\":{\"namespace\":\"default\",\"name\":\"lost\"},\"spec\":{"
			  "\"containers\":[{\"name\":\"c\"}]},\"status\":{\"nominatedNodeName\":"
			  "\"nowhere\"}}"));
	if (global_default)
		model_put(m, model_fixture_object(OBJECT_PRIORITY_CLASS,
						  "{\"metadata\":{\"name\":\"usual\"},\"value\":7,"
						  "\"globalDefault\":true}"));
	api_fixture_open(named, view_of(m));
}

static void a_nominated_pod_of_no_lower_priority_has_its_room(void **state)
{
	static const struct {
		const char *metadata, *spec;
		bool fits;
	} rows[] = {
		{"", "", false},
		{"", "\"priority\":5,", false},
		{"", "\"priority\":6,", true},
		{"", "\"priorityClassName\":\"high\",", true},
		{"", "\"priorityClassName\":\"unheard-of\",", false},
		{"", "\"priorityClassName\":\"system-cluster-critical\",", true},
		{"\"name\":\"soon\"", "", true},
		/* The room of a nominated pod counts, its company does not yet. */
		{"",
		 "\"priority\":0,\"affinity\":{\"podAffinity\":{"
		 "\"requiredDuringSchedulingIgnoredDuringExecution\":[{\"topologyKey\":"
		 "\"kubernetes.io/"
		 "hostname\",\"labelSelector\":{\"matchLabels\":{\"app\":\"soon\"}}}]"
		 "}},",
		 false},
	};
	struct api_fixture named;

	(void)state;
	open_with_nominated(&named, false);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *body =
			mem_printf("{\"pod\":{\"metadata\":{%s},\"spec\":{%s\"containers\":[{"
				   "\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"2\"}}}"
				   "]}},\"fits\":true,\"nodes\":[\"alpha\"]}",
				   rows[i].metadata, rows[i].spec);

		assert_int_equal(api_fixture_send(&named, "POST", "/v1/scores", body), 200);
		if (cJSON_IsTrue(api_fixture_at(named.json, "items.0.fits")) != rows[i].fits)
			fail_msg("row %zu: %s", i, named.response.body.data);
		assert_int_equal(api_fixture_at(named.json, "fits")->valueint, rows[i].fits);
		free(body);
	}
	api_fixture_close(&named);
}

static void the_default_class_counts_for_a_manifest(void **state)
{
	struct api_fixture named;

	(void)state;
	open_with_nominated(&named, true);
	assert_int_equal(api_fixture_send(&named, "POST", "/v1/fit",
					  "{\"pod\":{\"spec\":{\"containers\":[{\"name\":\"c\","
					  "\"resources\":{\"requests\":{\"cpu\":\"2\"}}}]}},"
					  "\"nodes\":[\"alpha\"]}"),
			 200);
	assert_int_equal(api_fixture_at(named.json, "fits")->valueint, 1);
	api_fixture_close(&named);
}

/* A clock that is no clock: it is read under the lock of the reservations, and so when a copy is taken. */
static struct view *next_view;

static int64_t publish_next(void)
{
	if (next_view)
		view_slot_publish(f.ctx.views, next_view);
	next_view = NULL;
	return 0;
}

/* Else what is published in between, and settled, is in neither. */
static void reservations_are_taken_before_the_view(void **state)
{
	static const struct model_fixture_pod full = {.name = "full", .node = "alpha", .cpu = "3"};
	static const char *const targets[] = {"/v1/fit", "/v1/scores"};

	(void)state;
	f.ctx.reservations = reservations_new();
	reservations_watch(f.ctx.reservations, publish_next);
	for (size_t i = 0; i < 2; i++) {
		struct model *m = new_model();

		model_put(m, model_fixture_pod(&full));
		next_view = view_of(m);
		assert_int_equal(fits(targets[i], ""), 0);
		next_view = view_of(new_model());
		assert_int_equal(fits(targets[i], ""), 1);
	}
	reservations_free(f.ctx.reservations);
	f.ctx.reservations = NULL;
}

#define CONTAINERS "[{name: c, resources: {requests: {cpu: 2}}}]"

/* A text is read as the command reads a file. */
static void a_pod_may_be_a_text(void **state)
{
	static const char *const paths[] = {"/v1/fit", "/v1/scores"};
	static const char *const pods[] = {
		"{" WANTS("2") "}",
		"\"spec: {containers: " CONTAINERS "}\"",
		"\"kind: Job\\nspec: {template: {spec: {containers: " CONTAINERS "}}}\"",
	};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		char *first = NULL;

		for (size_t p = 0; p < 3; p++) {
			char *body = mem_printf("{\"pod\":%s}", pods[p]);

			assert_int_equal(api_fixture_send(&f, "POST", paths[i], body), 200);
			if (first)
				assert_string_equal(f.response.body.data, first);
			else
				first = mem_strdup(f.response.body.data);
			free(body);
		}
		free(first);
	}
}

static void what_is_wrong_is_named(void **state)
{
	static const struct {
		const char *body, *field, *message;
	} rows[] = {
		{"[]", "", "the body must be a JSON object"},
		{"{\"pod\":", "", "the body must be a JSON object"},
		{"{}", "pod", "is required"},
		{"{\"pod\":3}", "pod", "must be a Pod object"},
		{"{\"pod\":\"\"}", "pod", "manifest: holds no pod"},
		{"{\"pod\":\"kind: Service\"}", "pod",
		 "manifest: a Service makes no pods; give a Pod, or what has its template"},
		{"{\"pod\":{}}", "pod.spec", "is required"},
		{"{\"pod\":{\"metadata\":3}}", "pod.metadata", NULL},
		{"{\"pod\":{\"metadata\":{\"name\":4},\"spec\":{}}}", "pod.metadata.name", NULL},
		{"{\"pod\":{" WANTS("many") "}}", "pod.spec.containers[0].resources.requests.cpu",
		 NULL},
		{"{\"pod\":{" WANTS("1") "},\"nodes\":{}}", "nodes",
		 "must be a list of node names"},
		{"{\"pod\":{" WANTS("1") "},\"nodes\":[\"alpha\",1]}", "nodes[1]",
		 "must be the name of a node"},
		{"{\"pod\":{" WANTS("1") "},\"nodes\":[\"alpha\",\"zulu\"]}", "nodes[1]",
		 "there is no node \"zulu\""},
		{"{\"pod\":{" WANTS("1") "},\"node\":[]}", "node",
		 "is not a member of this request"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(post(rows[i].body), 400);
		assert_string_equal(api_fixture_error(&f), "badRequest");
		assert_string_equal(http_fixture_error_field(&f), rows[i].field);
		if (rows[i].message)
			assert_string_equal(text("error.message"), rows[i].message);
	}
	assert_int_equal(api_fixture_send(&f, "GET", "/v1/fit", ""), 405);
}

static void without_an_api_there_is_no_answer(void **state)
{
	struct api_fixture none;

	(void)state;
	api_fixture_open(&none, view_fixture_new());
	assert_int_equal(api_fixture_send(&none, "POST", "/v1/fit", "{\"pod\":{" WANTS("1") "}}"),
			 503);
	assert_string_equal(api_fixture_error(&none), "noData");
	api_fixture_close(&none);
}

static void what_may_not_be_read_is_said(void **state)
{
	const struct model_source forbidden = {.state = SOURCE_FORBIDDEN,
					       .message = "list pods is not allowed"};
	struct model *m = new_model();
	struct api_fixture blind;

	(void)state;
	model_set_source(m, OBJECT_POD, &forbidden);
	api_fixture_open(&blind, view_of(m));
	assert_int_equal(api_fixture_send(&blind, "POST", "/v1/fit", "{\"pod\":{" WANTS("1") "}}"),
			 503);
	assert_non_null(strstr(cJSON_GetStringValue(api_fixture_at(blind.json, "error.message")),
			       "pods are not known: forbidden: list pods is not allowed"));
	api_fixture_close(&blind);
}

static int score(const char *body)
{
	return api_fixture_send(&f, "POST", "/v1/scores", body);
}

/* By the same filters as here, beside the scores. */
static void scores_tell_whether_the_pod_fits(void **state)
{
	static const char *const asks[] = {"explain", "fits"};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		char *body = mem_printf("{\"%s\":true,\"nodes\":[\"alpha\",\"charlie\"],"
					"\"pod\":{" WANTS("2") "}}",
					asks[i]);

		assert_int_equal(score(body), 200);
		free(body);
		assert_string_equal(text("kind"), "ScoreList");
		assert_int_equal(at("fits")->valueint, 1);
		assert_int_equal(at("refused.NodeResourcesFit")->valueint, 1);
		assert_int_equal(at("refused.TaintToleration")->valueint, 1);
		assert_int_equal(cJSON_GetArraySize(at("items")), 2);
		assert_true(cJSON_IsTrue(at("items.0.fits")));
		assert_null(api_fixture_at(f.json, "items.0.filter"));
		assert_true(cJSON_IsFalse(at("items.1.fits")));
		assert_string_equal(text("items.1.filter"), "TaintToleration");
		assert_non_null(strstr(text("items.1.fitReason"), "team"));
	}
	/* The plugins' pod is not the one that was filled in. */
	assert_int_equal(score("{\"explain\":true}"), 200);
	assert_int_equal(at("fits")->valueint, 2);
	assert_int_equal(score("{\"pod\":{" WANTS("2") "}}"), 200);
	assert_null(api_fixture_at(f.json, "fits"));
	assert_null(api_fixture_at(f.json, "items.0.fits"));
	assert_int_equal(score("{\"fits\":1}"), 400);
	assert_string_equal(http_fixture_error_field(&f), "fits");
}

static void a_pod_that_scores_alone_can_read_fits_nowhere(void **state)
{
	(void)state;
	assert_int_equal(score("{\"explain\":true,\"pod\":{\"spec\":{\"containers\":[],"
			       "\"volumes\":7}}}"),
			 200);
	assert_int_equal(at("fits")->valueint, 0);
	assert_int_equal(at("refused.Unknown")->valueint, 3);
	assert_true(cJSON_IsFalse(at("items.0.fits")));
	assert_string_equal(text("items.0.filter"), "Unknown");
	assert_string_equal(text("items.0.fitReason"), "Unknown: pod.spec.volumes: must be a list");
}

static void scores_tell_nothing_of_fitness_without_an_api(void **state)
{
	struct api_fixture none;

	(void)state;
	api_fixture_open(&none, view_fixture_new());
	assert_int_equal(api_fixture_send(&none, "POST", "/v1/scores", "{\"explain\":true}"), 200);
	assert_null(api_fixture_at(none.json, "fits"));
	assert_null(api_fixture_at(none.json, "items.0.fits"));
	assert_null(api_fixture_at(none.json, "items.0.filter"));
	api_fixture_close(&none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_node_says_whether_and_why_not),
		cmocka_unit_test(some_nodes_are_listed_and_all_are_counted),
		cmocka_unit_test(a_pod_of_the_cluster_is_not_in_its_own_way),
		cmocka_unit_test(a_manifest_without_a_name_is_no_pod_that_is_known),
		cmocka_unit_test(room_that_is_promised_to_others_is_none),
		cmocka_unit_test(a_nominated_pod_of_no_lower_priority_has_its_room),
		cmocka_unit_test(the_default_class_counts_for_a_manifest),
		cmocka_unit_test(reservations_are_taken_before_the_view),
		cmocka_unit_test(a_pod_may_be_a_text),
		cmocka_unit_test(what_is_wrong_is_named),
		cmocka_unit_test(without_an_api_there_is_no_answer),
		cmocka_unit_test(what_may_not_be_read_is_said),
		cmocka_unit_test(scores_tell_whether_the_pod_fits),
		cmocka_unit_test(a_pod_that_scores_alone_can_read_fits_nowhere),
		cmocka_unit_test(scores_tell_nothing_of_fitness_without_an_api),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
