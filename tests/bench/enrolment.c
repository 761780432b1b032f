/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 5000 agents enrol by tokens of their pods with an aggregator that has lost their keys: the whole
 * exchange, in one process, and reviews over HTTPS by a scripted API server in the same process. As
 * after a restart they come within five seconds, and come again when they are told to.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/engine_enrolment.h"
#include "shared/mem.h"
#include "tests/bench_report.h"
#include "tests/kube_scene.h"

#define SPREAD_NS (5 * NS_PER_SEC)
#define NAME	  "node-%05d" /* of a node, its pod, the pod's uid, and in its token */
#define TOKEN	  "aGVhZA." NAME ".c2lnbg"

enum { AGENTS = 5000, NAME_LEN = 10 };

struct agent {
	int64_t due_ns; /* 0: asked */
	struct frame_header header;
	uint8_t reply_secret[KEY_LEN];
};

static struct kube_scene *scene;
static uv_loop_t loop;
static struct node_keys *keys;
static struct enrolment_keys own;
static struct node_enroller *enroller;
static struct agent agents[AGENTS];
static int enrolled, later;

/* The user of the token in a TokenReview. */
static char *review(const char *body)
{
	const char *token = strstr(body, "aGVhZA.");
	char name[NAME_LEN + 1] = "";

	assert_non_null(token);
	memcpy(name, token + 7, NAME_LEN);
	return mem_printf("{\"status\":{\"authenticated\":true,\"audiences\":[\"evenkeel-ingest\"],"
			  "\"user\":{\"username\":\"system:serviceaccount:ns:agent\",\"extra\":{"
			  "\"authentication.kubernetes.io/pod-name\":[\"%s\"],"
			  "\"authentication.kubernetes.io/pod-uid\":[\"%s\"],"
			  "\"authentication.kubernetes.io/node-name\":[\"%s\"]}}}}",
			  name, name, name);
}

static const struct kube_pod *find_pod(void *ctx, const char *namespace, const char *name,
				       const char *uid)
{
	(void)ctx, (void)namespace, (void)name, (void)uid;
	return NULL;
}

static bool lists_pods(void *ctx)
{
	(void)ctx;
	return true;
}

static void on_answer(void *ctx, const struct ingest_route *route, const struct buf *answer,
		      enum frame_result result, bool refused)
{
	struct agent *agent = &agents[route->peer - 1];
	struct enrolment_answer a;

	(void)ctx, (void)result;
	assert_false(refused);
	assert_int_equal(enrolment_answer_open(answer->data, answer->len, &agent->header,
					       own.public_keys[0], agent->reply_secret, &a, NULL),
			 0);
	if (a.status == ENROLMENT_DONE) {
		enrolled++;
		return;
	}
	assert_int_equal(a.status, ENROLMENT_LATER);
	later++;
	agent->due_ns = clock_mono_ns() + a.wait_ms * NS_PER_MS;
}

static void on_refused(void *ctx, const char *node, const char *why, int64_t now_ns)
{
	(void)ctx, (void)node, (void)why, (void)now_ns;
}

static void ask(int i)
{
	const struct ingest_route route = {.peer = (uint64_t)i + 1};
	struct enrolment e = {.kind = CREDENTIAL_SERVICE_ACCOUNT,
			      .stamp_ns = (uint64_t)clock_wall_ns()};
	char *token = mem_printf(TOKEN, i);
	struct buf frame = BUF_INIT, answer = BUF_INIT;
	bool refused = false;
	int rc;

	agents[i].due_ns = 0;
	snprintf(e.node, sizeof(e.node), NAME, i);
	e.credential = (struct span){(const uint8_t *)token, strlen(token)};
	crypto_box_keypair(e.reply_key, agents[i].reply_secret);
	enrolment_seal(&frame, &agents[i].header, own.public_keys[0], &e);
	rc = node_enroller_take(enroller, frame.data, frame.len, &route, clock_wall_ns(), &answer,
				&refused);
	assert_true(rc >= 0);
	if (answer.len)
		on_answer(NULL, &route, &answer, (enum frame_result)rc, refused);
	buf_fini(&frame);
	buf_fini(&answer);
	free(token);
}

static void open_enroller(void)
{
	char *key = kube_scene_path(scene, "key"), *ca = kube_scene_path(scene, "ca.crt"), *text;
	char *kubeconfig = kube_scene_path(scene, "kubeconfig");
	const struct node_enroller_config config = {
		.key_path = key,
		.service_account = "ns/agent",
		.kubeconfig = kubeconfig,
		.loop = &loop,
		.keys = keys,
		.pod = find_pod,
		.lists_pods = lists_pods,
		.answered = on_answer,
		.refused = on_refused,
	};
	struct keyring_place *place = NULL;
	struct error why;

	kube_scene_write(scene, "ca.crt", scene->ca.certificate);
	text = mem_printf(
		"current-context: c\ncontexts: [{name: c, context: {cluster: c, user: "
		"u}}]\nusers: [{name: u, user: {token: t}}]\nclusters: [{name: c, cluster: "
		"{server: \"https://127.0.0.1:%d\", certificate-authority: \"%s\"}}]\n",
		tls_server_port(scene->https), ca);
	kube_scene_write(scene, "kubeconfig", text);
	if (node_enroller_open(&enroller, &config, &why) || keyring_open(&place, key, &why) ||
	    keyring_read(&own.ring, place, &why))
		fail_msg("%s", why.text);
	enrolment_keys_pair(&own);
	keyring_close(place);
	free(text);
	free(kubeconfig);
	free(ca);
	free(key);
}

/* A restart with a database, after which nobody enrols. */
static void measure_kept_keys(void)
{
	struct node_keys *kept = node_keys_new(AGENTS);
	int64_t now_ns = clock_wall_ns(), start_ns;
	struct buf text = BUF_INIT;
	char name[NAME_LEN + 1];

	node_keys_write(keys, now_ns, &text);
	start_ns = clock_mono_ns();
	assert_int_equal(node_keys_read(kept, text.data, text.len, NULL), 0);
	bench_row("their keys read again, as after a restart with a database", "ms", (double)NAN, 0,
		  (double)(clock_mono_ns() - start_ns) / NS_PER_MS);
	for (int i = 0; i < AGENTS; i++) {
		snprintf(name, sizeof(name), NAME, i);
		assert_string_equal(node_keys_pod(kept, name, now_ns),
				    node_keys_pod(keys, name, now_ns));
	}
	buf_fini(&text);
	node_keys_free(kept);
}

static void measure(void **state)
{
	int64_t start_ns = clock_mono_ns();

	(void)state;
	for (int i = 0; i < AGENTS; i++)
		agents[i].due_ns = start_ns + i * (SPREAD_NS / AGENTS);
	while (enrolled < AGENTS) {
		int64_t now_ns = clock_mono_ns();

		for (int i = 0; i < AGENTS; i++)
			if (agents[i].due_ns && agents[i].due_ns <= now_ns)
				ask(i);
		uv_run(&loop, UV_RUN_NOWAIT);
	}
	bench_row("5000 nodes enrolled by TokenReview", "s", 30, 0,
		  (double)(clock_mono_ns() - start_ns) / NS_PER_SEC);
	bench_row("of these told to ask again in 5 s", "times", (double)NAN, 0, later);
	measure_kept_keys();
	node_enroller_stop(enroller);
	uv_run(&loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(measure)};
	int failed;

	if (sodium_init() < 0 || kube_scene_setup((void **)&scene) || uv_loop_init(&loop))
		return 1;
	kube_scene_serve(scene, &scene->server, NULL);
	tls_server_reply(scene->https, review);
	keys = node_keys_new(AGENTS);
	open_enroller();
	bench_begin("enrolment");
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	bench_end();
	node_enroller_close(enroller);
	node_keys_free(keys);
	kube_scene_teardown((void **)&scene);
	return failed;
}
