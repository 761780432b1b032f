/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Enrolments by tokens of pods, with an API server that answers as scripted and a model that has what
 * the test puts there; tests/kube/enrolment has a real API server.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/engine_enrolment.h"
#include "shared/mem.h"
#include "tests/kube_scene.h"
#include "tests/process.h"

#define POD(of, name) "\"authentication.kubernetes.io/pod-" of "\":[\"" name "\"]"
#define NODE_CLAIM    ",\"authentication.kubernetes.io/node-name\":[\"node-1\"]"
#define USER(more)                                                                                 \
	"{\"status\":{\"authenticated\":true,\"audiences\":[\"evenkeel-ingest\"],\"user\":{"       \
	"\"username\":\"system:serviceaccount:ns:agent\",\"extra\":{" POD("name", "old") "," POD(  \
		"uid", "1") more "}}}}"
#define JWT "aGVhZA.Ym9keQ.c2lnbg"

struct world {
	struct kube_scene *scene;
	uv_loop_t loop;
	struct node_keys *keys;
	struct enrolment_keys own; /* as the file has it */
	struct node_enroller *en;
	struct kube_pod pods[2]; /* "old" and "new"; without a uid: not known */
	bool lists_pods, refused;
	unsigned int answered;
	struct buf answer; /* the last one */
	/* the last enrolment */
	struct frame_header header;
	uint8_t reply_secret[KEY_LEN];
	uint64_t stamp_ns;
};

/* --- the aggregator's side -------------------------------------------------------------------- */

static const struct kube_pod *find_pod(void *ctx, const char *namespace, const char *name,
				       const char *uid)
{
	const struct kube_pod *pods = ((struct world *)ctx)->pods;

	assert_string_equal(namespace, "ns");
	for (int i = 0; i < 2; i++)
		if (!strcmp(pods[i].object.name, name) && !strcmp(pods[i].object.uid, uid))
			return &pods[i];
	return NULL;
}

static bool lists_pods(void *ctx)
{
	return ((struct world *)ctx)->lists_pods;
}

static void on_answer(void *ctx, const struct ingest_route *route, const struct buf *answer,
		      enum frame_result result, bool refused)
{
	struct world *w = ctx;

	assert_true(route->peer > 0);
	assert_true(result == FRAME_RESULT_enrolled || result == FRAME_RESULT_not_enrolled);
	buf_clear(&w->answer);
	buf_add(&w->answer, answer->data, answer->len);
	w->refused = refused;
	w->answered++;
}

static void on_refused(void *ctx, const char *node, const char *why, int64_t now_ns)
{
	(void)ctx;
	(void)now_ns;
	assert_string_equal(node, "node-1");
	assert_true(why[0]);
}

static char *write_kubeconfig(const struct world *w)
{
	char *ca = kube_scene_path(w->scene, "ca.crt"), *text;

	kube_scene_write(w->scene, "ca.crt", w->scene->ca.certificate);
	text = mem_printf("current-context: c\n"
			  "contexts: [{name: c, context: {cluster: c, user: u}}]\n"
			  "users: [{name: u, user: {token: t}}]\n"
			  "clusters: [{name: c, cluster: {server: \"https://127.0.0.1:%d\", "
			  "certificate-authority: \"%s\"}}]\n",
			  tls_server_port(w->scene->https), ca);
	kube_scene_write(w->scene, "kubeconfig", text);
	free(text);
	free(ca);
	return kube_scene_path(w->scene, "kubeconfig");
}

static void open_enroller(struct world *w)
{
	char *key = kube_scene_path(w->scene, "key"), *kubeconfig = write_kubeconfig(w);
	const struct node_enroller_config config = {
		.key_path = key,
		.service_account = "ns/agent",
		.kubeconfig = kubeconfig,
		.loop = &w->loop,
		.keys = w->keys,
		.pod = find_pod,
		.lists_pods = lists_pods,
		.answered = on_answer,
		.refused = on_refused,
		.ctx = w,
	};
	struct keyring_place *place;
	struct error why;

	assert_int_equal(node_enroller_open(&w->en, &config, &why), 0);
	assert_int_equal(keyring_open(&place, key, &why), 0);
	assert_int_equal(keyring_read(&w->own.ring, place, &why), 0);
	enrolment_keys_pair(&w->own);
	keyring_close(place);
	free(key);
	free(kubeconfig);
}

static int setup(void **state)
{
	struct world *w = mem_zalloc(1, sizeof(*w));

	if (sodium_init() < 0 || kube_scene_setup((void **)&w->scene) || uv_loop_init(&w->loop))
		return -1;
	kube_scene_serve(w->scene, &w->scene->server, NULL);
	w->keys = node_keys_new(4);
	w->stamp_ns = (uint64_t)clock_wall_ns();
	for (int i = 0; i < 2; i++)
		w->pods[i] = (struct kube_pod){.object = {.name = i ? "new" : "old", .uid = ""},
					       .node = "node-1"};
	open_enroller(w);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	node_enroller_stop(w->en);
	uv_run(&w->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&w->loop), 0);
	node_enroller_close(w->en);
	node_keys_free(w->keys);
	buf_fini(&w->answer);
	kube_scene_teardown((void **)&w->scene);
	free(w);
	return 0;
}

/* --- the agent's side ------------------------------------------------------------------------- */

/* The result of node_enroller_take(). */
static int send_token(struct world *w, uint64_t peer, const char *token, size_t len)
{
	struct enrolment e = {.kind = CREDENTIAL_SERVICE_ACCOUNT,
			      .node = "node-1",
			      .stamp_ns = ++w->stamp_ns,
			      .credential = {(const uint8_t *)token, len}};
	const struct ingest_route route = {.peer = peer};
	struct buf frame = BUF_INIT, answer = BUF_INIT;
	bool refused = false;
	int rc;

	crypto_box_keypair(e.reply_key, w->reply_secret);
	enrolment_seal(&frame, &w->header, w->own.public_keys[0], &e);
	rc = node_enroller_take(w->en, frame.data, frame.len, &route, clock_wall_ns(), &answer,
				&refused);
	if (answer.len)
		on_answer(w, &route, &answer, (enum frame_result)rc, refused);
	buf_fini(&frame);
	buf_fini(&answer);
	return rc;
}

static void expect(struct world *w, const char *token, size_t len, enum enrolment_status status,
		   const char *reason)
{
	unsigned int before = w->answered;
	struct enrolment_answer a;

	send_token(w, 1, token, len);
	while (w->answered == before)
		uv_run(&w->loop, UV_RUN_ONCE);
	assert_int_equal(enrolment_answer_open(w->answer.data, w->answer.len, &w->header,
					       w->own.public_keys[0], w->reply_secret, &a, NULL),
			 0);
	if (a.status != status || !strstr(a.reason, reason))
		fail_msg("%d: %s", a.status, a.reason);
	assert_int_equal(w->refused, status == ENROLMENT_REFUSED);
}

/* --- tests ------------------------------------------------------------------------------------ */

static void test_what_no_review_can_tell(void **state)
{
	static const struct {
		const char *text;
		size_t len;
	} tokens[] = {{"\0", 1}, {"x", 1}, {JWT "=", sizeof(JWT)}, {JWT "\0", sizeof(JWT)}};
	struct world *w = *state;

	for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++)
		expect(w, tokens[i].text, tokens[i].len, ENROLMENT_REFUSED, "none of Kubernetes");
	tls_server_seen(w->scene->https, &w->scene->seen);
	assert_int_equal(w->scene->seen.requests, 0);
}

static void test_answers_of_the_api(void **state)
{
	static const struct {
		struct tls_answer answer;
		enum enrolment_status want;
		const char *reason;
	} cases[] = {
		{{"tokenreviews", 400, "{}"}, ENROLMENT_REFUSED, "does not know the token"},
		{{"tokenreviews", 201, "{\"status\":{}}"},
		 ENROLMENT_REFUSED,
		 "does not know the token"},
		{{"tokenreviews", 500, "{}"}, ENROLMENT_LATER, "cannot be reviewed now"},
	};
	struct world *w = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		tls_server_script(w->scene->https, &cases[i].answer, 1);
		expect(w, JWT, strlen(JWT), cases[i].want, cases[i].reason);
	}
}

/* The pod "old" of the token, and "new" on the same node. */
static void test_models(void **state)
{
	static const struct tls_answer answers[] = {{"tokenreviews", 201, USER("")},
						    {"tokenreviews", 201, USER(NODE_CLAIM)}};
	static const struct {
		bool claims_node, lists_pods, knows_old, knows_new, new_enrolled;
		const char *node; /* of the old one */
		enum enrolment_status want;
		const char *reason;
	} cases[] = {
		{false, false, false, false, false, "", ENROLMENT_LATER, "is not known here"},
		{false, true, false, false, false, "", ENROLMENT_LATER, "is not known here"},
		{false, true, true, false, false, "", ENROLMENT_LATER, "is not known here"},
		{false, true, true, false, false, "node-2", ENROLMENT_REFUSED, "another node"},
		{false, true, true, false, false, "node-1", ENROLMENT_DONE, ""},
		{true, false, false, false, false, "", ENROLMENT_DONE, ""},
		{true, false, false, false, true, "", ENROLMENT_LATER, "is not complete"},
		{true, false, true, false, true, "node-1", ENROLMENT_LATER, "is not complete"},
		{true, true, true, true, true, "node-1", ENROLMENT_REFUSED, "a newer pod"},
		{true, true, true, false, true, "node-1", ENROLMENT_DONE, ""},
	};
	uint8_t secret[KEY_LEN] = {0};
	struct world *w = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct enrolment of_new = {.node = "node-1", .stamp_ns = ++w->stamp_ns};
		struct enrolment_answer a;

		print_message("case %zu\n", i);
		of_new.reply_key[0] = secret[0] = (uint8_t)(i + 1);
		if (cases[i].new_enrolled)
			node_keys_issue(w->keys, &of_new, "new/2", secret, clock_wall_ns(), &a);
		w->lists_pods = cases[i].lists_pods;
		w->pods[0].object.uid = cases[i].knows_old ? "1" : "";
		w->pods[0].node = cases[i].node;
		w->pods[1].object.uid = cases[i].knows_new ? "2" : "";
		w->pods[0].created_ns = 1;
		w->pods[1].created_ns = 2;
		tls_server_script(w->scene->https, &answers[cases[i].claims_node], 1);
		expect(w, JWT, strlen(JWT), cases[i].want, cases[i].reason);
	}
}

/* Two reviews run, and one of each connection waits. */
static void test_one_connection_does_not_fill_the_queue(void **state)
{
	static const struct tls_answer unknown = {"tokenreviews", 201, "{\"status\":{}}"};
	struct world *w = *state;

	tls_server_script(w->scene->https, &unknown, 1);
	for (int i = 0; i < 3; i++)
		assert_int_equal(send_token(w, 7, JWT, strlen(JWT)), FRAME_RESULT_part);
	assert_int_equal(send_token(w, 7, JWT, strlen(JWT)), FRAME_RESULT_not_enrolled);
	assert_int_equal(w->answered, 1);
	assert_false(w->refused);
	assert_int_equal(send_token(w, 8, JWT, strlen(JWT)), FRAME_RESULT_part);
	uv_run(&w->loop, UV_RUN_DEFAULT);
	assert_int_equal(w->answered, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_what_no_review_can_tell, setup, teardown),
		cmocka_unit_test_setup_teardown(test_answers_of_the_api, setup, teardown),
		cmocka_unit_test_setup_teardown(test_models, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_connection_does_not_fill_the_queue, setup,
						teardown),
	};
	int failed;

	if (curl_global_init(CURL_GLOBAL_DEFAULT))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	curl_global_cleanup();
	return failed;
}
