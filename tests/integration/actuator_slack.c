/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of slack: what the actuator applies and removes, and which answers keep it from both. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <curl/curl.h>
#include <string.h>

#include "aggregator/actuator/slack.h"
#include "shared/clock.h"
#include "tests/actuator_scene.h"

#define COUNT(of)   (sizeof(of) / sizeof((of)[0]))
#define BUFFERS	    "/apis/autoscaling.x-k8s.io/v1beta1"
#define DEPLOYMENTS "/apis/apps/v1/deployments?"
#define TEMPLATES   "/api/v1/podtemplates?"
#define LISTED	    BUFFERS "/capacitybuffers?"
#define WEB	    "/apis/apps/v1/namespaces/shop/deployments/web"
#define OLD	    "/apis/apps/v1/namespaces/shop/deployments/old"

#define OF(kind, name)                                                                             \
	"kind: " kind "\nmetadata:\n  name: " name "\n  namespace: shop\nspec:\n  replicas: 4\n"
#define OBJECT(name, manager, label)                                                               \
	"{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"shop\",\"uid\":\"u-" name            \
	"\",\"managedFields\":[{\"manager\":\"" manager "\"}]},\"spec\":{\"replicas\":1,"          \
	"\"selector\":{\"matchLabels\":{\"" label "\":\"c\"}}}}"
#define OURS(name)   OBJECT(name, "evenkeel", "evenkeel.io/slack-class")
#define ITEMS(items) "{\"items\":[" items "]}"

static struct act_options rules;

struct answer {
	int status;
	const char *body;
};

static void script(struct actuator_scene *s, const char *part, const struct answer *a)
{
	if (a->status)
		actuator_scene_answer(s, part, a->status, a->body);
}

static const struct {
	struct answer buffers, report, target, deployments, named;
	size_t applied, removed;
} step_cases[] = {
#define NONE                                                                                       \
	{                                                                                          \
		404, "{}"                                                                          \
	}
#define GOOD                                                                                       \
	{                                                                                          \
		200, "{}"                                                                          \
	}
#define WANTED                                                                                     \
	{                                                                                          \
		200, OF("Deployment", "web")                                                       \
	}
#define OLD_ONE                                                                                    \
	{                                                                                          \
		200, ITEMS(OURS("old"))                                                            \
	}
	{NONE, GOOD, WANTED, OLD_ONE, NONE, 1, 1},
	/* A target without objects removes all of ours, one that cannot be read none. */
	{NONE, GOOD, {200, ""}, OLD_ONE, NONE, 0, 1},
	{{500, "{}"}, GOOD, WANTED, OLD_ONE, NONE, 0, 0},
	{{403, "{}"}, GOOD, WANTED, OLD_ONE, NONE, 0, 0},
	{NONE, {503, "{}"}, WANTED, OLD_ONE, NONE, 0, 0},
	{NONE, {200, "{\"stale\":\"it is old\"}"}, WANTED, OLD_ONE, NONE, 0, 0},
	{NONE, GOOD, {503, "{}"}, OLD_ONE, NONE, 0, 0},
	{NONE, GOOD, {200, "a: [\n"}, OLD_ONE, NONE, 0, 0},
	{NONE,
	 GOOD,
	 {200, OF("Deployment", "web") "---\n" OF("ReplicaSet", "r")},
	 OLD_ONE,
	 NONE,
	 0,
	 0},
	{NONE, GOOD, {200, "kind: Deployment\n"}, OLD_ONE, NONE, 0, 0},
	{NONE, GOOD, WANTED, {403, "{}"}, NONE, 0, 0},
	{NONE, GOOD, WANTED, OLD_ONE, {500, "{}"}, 0, 0},
	/* Objects of others. */
	{NONE,
	 GOOD,
	 WANTED,
	 {200, ITEMS(OBJECT("old", "kubectl", "evenkeel.io/slack-class"))},
	 NONE,
	 1,
	 0},
	{NONE, GOOD, WANTED, {200, ITEMS(OBJECT("old", "evenkeel", "app"))}, NONE, 1, 0},
	{NONE,
	 GOOD,
	 WANTED,
	 {200, ITEMS("")},
	 {200, OBJECT("web", "kubectl", "evenkeel.io/slack-class")},
	 0,
	 0},
	{NONE, GOOD, WANTED, {200, ITEMS("")}, {200, OBJECT("web", "evenkeel", "app")}, 0, 0},
	{NONE, GOOD, WANTED, {200, ITEMS("")}, {200, OURS("web")}, 1, 0},
};

static void steps(void **state)
{
	actuator_scene_teardown(state);
	for (size_t i = 0; i < COUNT(step_cases); i++) {
		struct slack_keeper keeper = {.rules.act = &rules};
		struct actuator_scene *s;

		actuator_scene_setup(state);
		s = *state;
		script(s, BUFFERS, &step_cases[i].buffers);
		script(s, EDGE_GROUP "/slacks", &step_cases[i].report);
		script(s, EDGE_GROUP "/slacks?format=balloons", &step_cases[i].target);
		script(s, DEPLOYMENTS, &step_cases[i].deployments);
		script(s, WEB, &step_cases[i].named);
		assert_int_equal(slack_run(&keeper, &s->edge, false, s->now_ns),
				 step_cases[i].applied + step_cases[i].removed > 0);
		assert_int_equal(kube_peer_count(s->peer, "PATCH "), step_cases[i].applied);
		assert_int_equal(kube_peer_count(s->peer, "PATCH " WEB "?fieldManager=evenkeel"),
				 step_cases[i].applied);
		assert_int_equal(kube_peer_count(s->peer, "DELETE "), step_cases[i].removed);
		if (step_cases[i].applied)
			actuator_scene_expect_body(
				s, "PATCH " WEB,
				"{\"kind\":\"Deployment\",\"metadata\":{\"name\":\"web\","
				"\"namespace\":\"shop\"},\"spec\":{\"replicas\":4}}");
		if (step_cases[i].removed)
			actuator_scene_expect_body(s, "DELETE " OLD,
						   "{\"preconditions\":{\"uid\":\"u-old\"},"
						   "\"propagationPolicy\":\"Background\"}");
		assert_int_equal(kube_peer_count(s->peer, TEMPLATES), 0);
		slack_forget(&keeper);
		if (i + 1 < COUNT(step_cases))
			actuator_scene_teardown(state);
	}
}

/* Fields that others changed are taken back, of objects that are ours; a new one may be another's. */
static void fields_of_others(void **state)
{
	struct slack_keeper keeper = {.rules.act = &rules};
	struct actuator_scene *s = *state;

	actuator_scene_answer(s, BUFFERS, 404, "{}");
	actuator_scene_answer(s, EDGE_GROUP "/slacks", 200, "{}");
	actuator_scene_answer(s, EDGE_GROUP "/slacks?format=balloons", 200,
			      "kind: Namespace\nmetadata:\n  name: shop\n---\n" OF(
				      "Deployment", "web") "---\n" OF("Deployment", "new"));
	actuator_scene_answer(s, DEPLOYMENTS, 200, ITEMS(OURS("web")));
	actuator_scene_answer(s, "/deployments/new", 404, "{}");
	assert_true(slack_run(&keeper, &s->edge, false, s->now_ns));
	assert_int_equal(kube_peer_count(s->peer, "PATCH "), 3);
	assert_int_equal(kube_peer_count(s->peer, "force"), 1);
	assert_int_equal(kube_peer_count(s->peer, "PATCH " WEB "?fieldManager=evenkeel&force=true"),
			 1);
	slack_forget(&keeper);
}

/* Where the API server knows CapacityBuffers: those, and no balloons. */
static void buffers(void **state)
{
	static const char *const lists[] = {DEPLOYMENTS, TEMPLATES, LISTED};
	struct slack_keeper keeper = {.rules.act = &rules};
	struct actuator_scene *s = *state;

	s->edge.dry_run = true;
	actuator_scene_answer(s, EDGE_GROUP "/slacks", 200, "{}");
	actuator_scene_answer(s, EDGE_GROUP "/slacks?format=capacitybuffer", 200,
			      "kind: Namespace\nmetadata:\n  name: shop\n---\n" OF("CapacityBuffer",
										   "web"));
	actuator_scene_answer(s, DEPLOYMENTS, 200, ITEMS(OURS("web")));
	actuator_scene_answer(s, TEMPLATES, 200, ITEMS(OURS("web")));
	actuator_scene_answer(s, LISTED, 200, ITEMS(OBJECT("web", "evenkeel", "app")));
	assert_true(slack_run(&keeper, &s->edge, false, s->now_ns));
	for (size_t i = 0; i < COUNT(lists); i++)
		assert_int_equal(kube_peer_count(s->peer, lists[i]), 1);
	assert_int_equal(kube_peer_count(s->peer, "PATCH "), 2);
	assert_int_equal(kube_peer_count(s->peer, "PATCH /api/v1/namespaces/shop?fieldManager="
						  "evenkeel&dryRun=All"),
			 1);
	assert_int_equal(kube_peer_count(s->peer,
					 "PATCH " BUFFERS "/namespaces/shop/capacitybuffers/web?"),
			 1);
	assert_int_equal(kube_peer_count(s->peer, "DELETE "), 2);
	assert_int_equal(kube_peer_count(s->peer, "DELETE /api/v1/namespaces/shop/podtemplates/web?"
						  "fieldManager=evenkeel&dryRun=All"),
			 1);
	/* Shared objects are not read. */
	assert_int_equal(kube_peer_count(s->peer, "/api/v1/namespaces/shop"), 2);
	slack_forget(&keeper);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name)                                                                                 \
	cmocka_unit_test_setup_teardown(name, actuator_scene_setup, actuator_scene_teardown)
		TEST(steps),
		TEST(fields_of_others),
		TEST(buffers),
	};

	if (curl_global_init(CURL_GLOBAL_DEFAULT))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
