/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two parts that send bodies to the Kubernetes API, reviews of tokens and statuses of quotas,
 * against a server that answers as scripted; tests/kube has them against a real one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "aggregator/edge/kube/front_proxy_watch.h"
#include "aggregator/edge/kube/status_writer.h"
#include "aggregator/edge/kube/token_review.h"
#include "shared/mem.h"
#include "tests/kube_scene.h"
#include "tests/process.h"
#include "tests/quota_fixture.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, kube_scene_setup, kube_scene_teardown)
#define COUNT(of)  (sizeof(of) / sizeof((of)[0]))

/* --- reviews ---------------------------------------------------------------------------------- */

#define USER                                                                                       \
	"\"user\":{\"username\":\"alice\",\"uid\":\"7\",\"groups\":[\"a\",\"b\"],\"extra\":{"      \
	"\"k\":[\"v\",\"w\"]}}"
#define KNOWN	"{\"status\":{\"authenticated\":true," USER "}}"
#define ALLOWED "{\"status\":{\"allowed\":true}}"

static void see(struct kube_scene *s)
{
	tls_request_fini(&s->seen);
	tls_server_seen(s->https, &s->seen);
}

static struct token_review_client *client_of(struct kube_scene *s, const char *audience)
{
	struct token_review_client *r;

	assert_int_equal(token_review_client_new(&r, &s->config, audience, &s->why), 0);
	return r;
}

/* Of a token. */
static void ask(struct token_review_client *r, const char *verb, const char *path,
		struct access_answer *a)
{
	struct access_request request = {.path = path};

	snprintf(request.verb, sizeof(request.verb), "%s", verb);
	token_review_client_ask(
		r, &(struct access_question){.token = "the-token", .request = &request}, a);
}

static void test_verdicts(void **state)
{
	static const struct {
		const char *audience;
		struct tls_answer answers[2]; /* of a TokenReview, of a SubjectAccessReview */
		enum access_verdict verdict;
		const char *error;
	} cases[] = {
#define ANSWERS(token_status, token, access_status, access)                                        \
	{{"tokenreviews", token_status, token}, {"subjectaccessreviews", access_status, access}}
		{NULL, ANSWERS(201, KNOWN, 201, ALLOWED), ACCESS_ALLOWED, ""},
		{NULL, ANSWERS(200, KNOWN, 200, ALLOWED), ACCESS_ALLOWED, ""},
		{NULL, ANSWERS(201, KNOWN, 201, "{\"status\":{\"allowed\":false}}"), ACCESS_DENIED,
		 "no role allows it"},
		{NULL, ANSWERS(201, KNOWN, 201, "{\"status\":{\"allowed\":true,\"denied\":true}}"),
		 ACCESS_DENIED, "no role allows it"},
		{NULL, ANSWERS(201, KNOWN, 201, "{\"status\":{}}"), ACCESS_UNANSWERED,
		 "the Kubernetes API answers a SubjectAccessReview without a verdict"},
		{NULL, ANSWERS(201, KNOWN, 403, "{}"), ACCESS_UNANSWERED,
		 "answers 403 to /apis/authorization.k8s.io/v1/subjectaccessreviews; bind the "
		 "ClusterRole system:auth-delegator to the aggregator's ServiceAccount"},
		{NULL, ANSWERS(201, "{\"status\":{\"authenticated\":false}}", 201, ALLOWED),
		 ACCESS_UNKNOWN, "the Kubernetes API does not know the token"},
		{NULL, ANSWERS(201, "{}", 201, ALLOWED), ACCESS_UNANSWERED,
		 "the Kubernetes API answers a TokenReview without a status"},
		{NULL,
		 ANSWERS(201, "{\"status\":{\"authenticated\":true,\"user\":{}}}", 201, ALLOWED),
		 ACCESS_UNANSWERED, "the Kubernetes API names a user that cannot be one"},
		{NULL,
		 ANSWERS(201,
			 "{\"status\":{\"authenticated\":true,\"user\":{\"username\":\"x\","
			 "\"groups\":[1]}}}",
			 201, ALLOWED),
		 ACCESS_UNANSWERED, "the Kubernetes API names a user that cannot be one"},
		{NULL, ANSWERS(500, KNOWN, 201, ALLOWED), ACCESS_UNANSWERED,
		 "answers 500 to /apis/authentication.k8s.io/v1/tokenreviews"},
		{NULL, ANSWERS(400, KNOWN, 201, ALLOWED), ACCESS_UNKNOWN, "answers 400 to"},
		{NULL, ANSWERS(422, KNOWN, 201, ALLOWED), ACCESS_UNKNOWN, "answers 422 to"},
		{NULL, ANSWERS(403, KNOWN, 201, ALLOWED), ACCESS_UNANSWERED, "answers 403 to"},
		{NULL, ANSWERS(404, KNOWN, 201, ALLOWED), ACCESS_UNANSWERED, "answers 404 to"},
		{NULL, ANSWERS(429, KNOWN, 201, ALLOWED), ACCESS_UNANSWERED, "answers 429 to"},
		{NULL, ANSWERS(201, KNOWN, 400, ALLOWED), ACCESS_UNANSWERED,
		 "answers 400 to /apis/authorization.k8s.io/v1/subjectaccessreviews"},
		{"evenkeel", ANSWERS(201, KNOWN, 201, ALLOWED), ACCESS_UNKNOWN,
		 "the Kubernetes API does not know the token"},
		{"evenkeel",
		 ANSWERS(201,
			 "{\"status\":{\"authenticated\":true,\"audiences\":[\"x\",\"evenkeel\"]"
			 "," USER "}}",
			 201, ALLOWED),
		 ACCESS_ALLOWED, ""},
#undef ANSWERS
	};
	struct kube_scene *s = *state;

	kube_scene_serve(s, &s->server, NULL);
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct token_review_client *r = client_of(s, cases[i].audience);
		struct access_answer a;

		tls_server_script(s->https, cases[i].answers, 2);
		ask(r, "get", "/v1/nodes", &a);
		token_review_client_free(r);
		if (a.verdict != cases[i].verdict || !strstr(a.error.text, cases[i].error))
			fail_msg("case %zu: %d, %s", i, (int)a.verdict, a.error.text);
		assert_string_equal(a.user, a.verdict == ACCESS_ALLOWED ||
							    a.verdict == ACCESS_DENIED ||
							    strstr(a.error.text, "SubjectAccess") ||
							    strstr(a.error.text, "subjectaccess")
						    ? "alice"
						    : "");
	}
}

/* The user as the TokenReview names it, whole, and the token in no other request. */
static void test_bodies(void **state)
{
	static const struct tls_answer known[] = {
		{"tokenreviews", 201, KNOWN},
		{"subjectaccessreviews", 201, ALLOWED},
	};
	static const struct tls_answer unknown = {"tokenreviews", 201, "{\"status\":{}}"};
	struct kube_scene *s = *state;
	struct token_review_client *r;
	struct access_answer a;

	kube_scene_serve(s, &s->server, NULL);
	r = client_of(s, "evenkeel");
	tls_server_script(s->https, &unknown, 1);
	ask(r, "get", "/v1/nodes", &a);
	see(s);
	assert_string_equal(s->seen.method, "POST");
	assert_string_equal(s->seen.body,
			    "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"TokenReview\","
			    "\"spec\":{\"token\":\"the-token\",\"audiences\":[\"evenkeel\"]}}");
	token_review_client_free(r);
	r = client_of(s, NULL);
	tls_server_script(s->https, known, 2);
	ask(r, "post", "/v1/scores", &a);
	see(s);
	assert_string_equal(
		s->seen.body,
		"{\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":\"SubjectAccessReview\","
		"\"spec\":{\"user\":\"alice\",\"uid\":\"7\",\"groups\":[\"a\",\"b\"],\"extra\":{"
		"\"k\":[\"v\",\"w\"]},\"nonResourceAttributes\":{\"verb\":\"post\","
		"\"path\":\"/v1/scores\"}}}");
	token_review_client_free(r);
}

/* A user of the front proxy is not looked for, and a resource is asked about by its attributes. */
static void test_users(void **state)
{
	static const struct tls_answer allowed = {"subjectaccessreviews", 201, ALLOWED};
	const struct access_request request = {.path = "/x",
					       .group = "evenkeel.io",
					       .version = "v1",
					       .verb = "list",
					       .resource = "pods",
					       .namespace = "shop",
					       .name = "a",
					       .subresource = "history"};
	struct access_question q = {.user = "{\"username\":\"alice\",\"groups\":[\"a\"]}",
				    .request = &request};
	struct kube_scene *s = *state;
	struct token_review_client *r;
	struct access_answer a;

	kube_scene_serve(s, &s->server, NULL);
	r = client_of(s, "evenkeel");
	tls_server_script(s->https, &allowed, 1);
	token_review_client_ask(r, &q, &a);
	assert_int_equal(a.verdict, ACCESS_ALLOWED);
	assert_string_equal(a.user, "alice");
	see(s);
	assert_int_equal(s->seen.requests, 1);
	assert_string_equal(
		s->seen.body,
		"{\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":\"SubjectAccessReview\","
		"\"spec\":{\"user\":\"alice\",\"groups\":[\"a\"],\"extra\":{},"
		"\"resourceAttributes\":{\"verb\":\"list\",\"group\":\"evenkeel.io\","
		"\"version\":\"v1\",\"resource\":\"pods\",\"namespace\":\"shop\",\"name\":\"a\","
		"\"subresource\":\"history\"}}}");
	token_review_client_free(r);
}

/* What the front proxy's ConfigMap says comes at once. */
static void on_proxy(void *ctx, struct front_proxy *p)
{
	sem_t *seen = ctx;

	assert_true(front_proxy_allows(p, "proxy"));
	assert_false(front_proxy_allows(p, "other"));
	front_proxy_free(p);
	sem_post(seen);
}

static void test_front_proxy(void **state)
{
	static const struct tls_answer map = {
		"/configmaps/extension-apiserver-authentication", 200,
		"{\"metadata\":{\"resourceVersion\":\"7\"},\"data\":{"
		"\"requestheader-client-ca-file\":\"PEM\",\"requestheader-allowed-names\":"
		"\"[\\\"proxy\\\"]\"}}"};
	struct kube_scene *s = *state;
	struct front_proxy_watch *w;
	struct timespec until;
	sem_t seen;

	sem_init(&seen, 0, 0);
	kube_scene_serve(s, &s->server, NULL);
	tls_server_script(s->https, &map, 1);
	assert_int_equal(front_proxy_watch_start(&w, &s->config, on_proxy, &seen, &s->why), 0);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 60;
	assert_int_equal(sem_timedwait(&seen, &until), 0);
	front_proxy_watch_stop(w);
	see(s);
	assert_string_equal(s->seen.method, "GET");
	assert_string_equal(
		s->seen.path,
		"/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication");
	sem_destroy(&seen);
}

struct pause {
	struct kube_scene *scene;
	struct token_review_client *client;
	struct access_answer first, last;
};

/* While the pause lasts, the answer is the first one's, and no request is sent. */
static bool is_over(void *ctx)
{
	struct pause *p = ctx;

	ask(p->client, "get", "/", &p->last);
	if (p->last.verdict != ACCESS_UNANSWERED)
		return true;
	assert_string_equal(p->last.error.text, p->first.error.text);
	see(p->scene);
	assert_int_equal(p->scene->seen.requests, 1);
	return false;
}

static void test_pause_after_a_failure(void **state)
{
	static const struct tls_answer broken = {"tokenreviews", 500, "{}"};
	static const struct tls_answer known[] = {
		{"tokenreviews", 201, KNOWN},
		{"subjectaccessreviews", 201, ALLOWED},
	};
	struct pause p = {.scene = *state};
	int64_t begin_ns = clock_mono_ns();

	kube_scene_serve(p.scene, &p.scene->server, NULL);
	p.client = client_of(p.scene, NULL);
	tls_server_script(p.scene->https, &broken, 1);
	ask(p.client, "get", "/", &p.first);
	tls_server_script(p.scene->https, known, 2);
	assert_true(await(is_over, &p, 10));
	assert_true(clock_mono_ns() - begin_ns >= SECOND);
	assert_int_equal(p.last.verdict, ACCESS_ALLOWED);
	see(p.scene);
	assert_int_equal(p.scene->seen.requests, 3);
	token_review_client_free(p.client);
}

/* A credential that is not accepted is read again, once. */
static void test_outdated_credential(void **state)
{
	static const struct tls_answer rejected = {"tokenreviews", 401, "{}"};
	struct kube_scene *s = *state;
	struct token_review_client *r;
	struct access_answer a;

	kube_scene_serve(s, &s->server, NULL);
	r = client_of(s, NULL);
	tls_server_script(s->https, &rejected, 1);
	ask(r, "get", "/", &a);
	assert_int_equal(a.verdict, ACCESS_UNANSWERED);
	see(s);
	assert_int_equal(s->seen.requests, 2);
	token_review_client_free(r);
}

/* --- statuses --------------------------------------------------------------------------------- */

static bool has_four_requests(void *scene)
{
	see(scene);
	return ((struct kube_scene *)scene)->seen.requests == 4;
}

static bool has_five_requests(void *scene)
{
	see(scene);
	return ((struct kube_scene *)scene)->seen.requests == 5;
}

/*
 * Of four quotas one is written, one is another's, one has a resource of another's and one is
 * forbidden: the first goes on.
 */
static void test_statuses(void **state)
{
	static const struct tls_answer script[] = {
		{"/namespaces/shop/", 200,
		 "{\"status\":{\"used\":{\"cpu\":\"0\",\"pods\":\"1\"}}}"},
		{"/namespaces/team-a/", 200, "{}"},
		{"/namespaces/team-b/", 409, "{}"},
		{"/namespaces/team-c/", 403, "{}"},
	};
	struct kube_scene *s = *state;
	struct view_slot *views = view_slot_new();
	struct quota_counters counters = {0};
	struct quota_options options;
	struct status_writer *w;
	struct view *v;
	char *items = mem_printf("%s%s%s%s%s%s", quota_fixture_node("n", "cpu: 8, memory: 32Gi"),
				 quota_fixture_quota("shop", "q", "cpu: 1", "cpu: 8"),
				 quota_fixture_quota("team-a", "q", "cpu: 1", "cpu: 8"),
				 quota_fixture_quota("team-b", "q", "cpu: 1", "cpu: 8"),
				 quota_fixture_quota("team-c", "q", "cpu: 1", "cpu: 8"),
				 quota_fixture_pod("team-a", "p", "n", 0, "cpu: 2"));

	kube_scene_serve(s, &s->server, NULL);
	tls_server_script(s->https, script, COUNT(script));
	quota_options_default(&options);
	v = quota_fixture_view(items);
	/* Only what the API vouches for is written. */
	v->cluster->sources[OBJECT_ELASTIC_QUOTA].state = SOURCE_SYNCED;
	v->cluster->sources[OBJECT_POD].state = SOURCE_SYNCED;
	view_slot_publish(views, v);
	assert_int_equal(status_writer_start(&w, &s->config, views, &options, &counters, &s->why),
			 0);
	assert_true(await(has_four_requests, s, 30));
	assert_string_equal(s->seen.path, "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/team-c/"
					  "elasticquotas/q/status");
	/* The view shows no written status: the next round writes it again, and leaves the others. */
	assert_true(await(has_five_requests, s, 30));
	assert_string_equal(s->seen.method, "PATCH");
	assert_non_null(strstr(s->seen.path, "/namespaces/team-a/"));
	assert_non_null(strstr(s->seen.body, "\"status\":{\"used\":{\"cpu\":\"2\"}}"));
	status_writer_stop(w);
	assert_int_equal(counter_get(&counters.status_written), 3);
	assert_int_equal(counter_get(&counters.status_failed), 2);
	assert_true(has_five_requests(s));
	view_slot_free(views);
	free(items);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_verdicts),
		TEST(test_bodies),
		TEST(test_users),
		TEST(test_front_proxy),
		TEST(test_pause_after_a_failure),
		TEST(test_outdated_credential),
		TEST(test_statuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
