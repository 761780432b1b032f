/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is let in to the HTTP API, over real TLS: tokens, certificates, reviews, and what is
 * exchanged while it runs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <semaphore.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "aggregator/api/act_box.h"
#include "aggregator/api/api_group.h"
#include "aggregator/api/front_proxy.h"
#include "aggregator/edge/http/http.h"
#include "aggregator/planner/drain_log.h"
#include "shared/mem.h"
#include "tests/access_scene.h"
#include "tests/process.h"

#define UNKNOWN_TOKEN "wrong-token-0123456789abcdef"

enum { TIMEOUT_S = 20 };

static int setup(void **state)
{
	*state = access_scene_new();
	return 0;
}

static int teardown(void **state)
{
	access_scene_free(*state);
	return 0;
}

static void start_guarded(struct access_scene *s)
{
	struct http_config config;

	access_scene_configure(s, &config);
	access_scene_start(s, &config);
}

static uint64_t refused(const struct access_scene *s, enum access_refusal why)
{
	return counter_get(&s->counters.access.refused[why]);
}

/* --- who is let in ---------------------------------------------------------------------------- */

static void test_who_is_let_in(void **state)
{
	struct access_scene *s = *state;
	const struct {
		struct access_client client;
		long status;
		const char *says;
	} cases[] = {
		{{.path = "/v1/nodes"}, 401, "send a bearer token, or a client certificate"},
		{{.path = "/v1/nodes", .token = UNKNOWN_TOKEN}, 401, "the token is not known"},
		{{.path = "/v1/nodes", .token = ACCESS_TOKEN}, 200, "NodeList"},
		{{.path = "/v1/nodes", .authorization = "bearer   " ACCESS_TOKEN " "},
		 200,
		 "NodeList"},
		{{.path = "/v1/nodes", .authorization = "Basic Zm9vOmJhcg=="}, 401, "Bearer TOKEN"},
		{{.path = "/v1/nodes", .authorization = "Bearer"}, 401, "Bearer TOKEN"},
		{{.path = "/v1/nodes", .authorization = "Bearer " ACCESS_TOKEN " x"},
		 401,
		 "Bearer TOKEN"},
		{{.path = "/v1/nodes", .authorization = ACCESS_TOKEN}, 401, "Bearer TOKEN"},
		{{.path = "/v1/nodes", .identity = &s->client}, 200, "NodeList"},
		{{.path = "/v1/nodes", .identity = &s->ended_client}, 401, "has ended"},
		{{.path = "/v1/nodes", .identity = &s->stranger},
		 401,
		 "not signed by an authority of --tls-client-ca"},
		{{.path = "/v1/nodes", .identity = &s->ended_client, .token = ACCESS_TOKEN},
		 200,
		 "NodeList"},
		{{.path = "/v1/nodes", .identity = &s->client, .token = UNKNOWN_TOKEN},
		 200,
		 "NodeList"},
		{{.path = "/healthz"}, 200, "ok"},
		{{.path = "/readyz", .token = UNKNOWN_TOKEN}, 200, "ok"},
		{{.path = "//healthz"}, 200, "ok"},
		{{.path = "/metrics"}, 401, ""},
		{{.path = "/watcher"}, 401, ""},
		{{.path = "/healthz/../v1/nodes"}, 401, ""},
		{{.path = "/nothing"}, 401, ""},
		{{.path = "/nothing", .token = ACCESS_TOKEN}, 404, ""},
		{{.path = "/v1/scores", .body = "{}"}, 401, ""},
		{{.path = "/extender/filter", .body = "{}", .token = ACCESS_TOKEN},
		 400,
		 "\"field\":\"Pod\""},
	};

	start_guarded(s);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct access_reply r;

		access_scene_ask(s, &cases[i].client, &r);
		if (r.status != cases[i].status || !strstr(r.body.data, cases[i].says))
			fail_msg("case %zu: %ld %s %s", i, r.status, curl_easy_strerror(r.code),
				 r.body.data);
		if (r.status == 401) {
			assert_non_null(strstr(r.headers.data,
					       "WWW-Authenticate: Bearer realm=\"evenkeel\"\r\n"));
			assert_non_null(strstr(r.body.data, "\"code\":\"unauthorized\""));
		}
		assert_null(strstr(r.body.data, ACCESS_TOKEN));
		assert_null(strstr(r.body.data, UNKNOWN_TOKEN));
		access_reply_fini(&r);
	}
	assert_int_equal(refused(s, ACCESS_REFUSAL_UNKNOWN_TOKEN), 1);
	assert_int_equal(refused(s, ACCESS_REFUSAL_BAD_CERTIFICATE), 2);
	assert_int_equal(refused(s, ACCESS_REFUSAL_NO_CREDENTIALS), 10);
}

static void test_open_watcher(void **state)
{
	static const struct {
		const char *path;
		long status;
	} cases[] = {
		{"/watcher", 200},	  {"/watcher/alpha", 200}, {"//watcher?host=alpha", 200},
		{"/watcher/health", 200}, {"/v1/nodes", 401},	   {"/watchers", 401},
	};
	struct access_scene *s = *state;
	struct http_config config;

	access_scene_configure(s, &config);
	config.auth.open_watcher = true;
	access_scene_start(s, &config);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct access_client client = {.path = cases[i].path};

		assert_int_equal(access_scene_status(s, &client), cases[i].status);
	}
}

/* A server whose certificate does not fit is refused by clients, and plain HTTP gets no answer. */
static void test_server_is_verified(void **state)
{
	struct access_scene *s = *state;
	const struct access_client distrusting = {.path = "/healthz",
						  .trusts = &s->stranger_authority};
	struct access_reply r;

	start_guarded(s);
	access_scene_ask(s, &distrusting, &r);
	assert_int_equal(r.code, CURLE_PEER_FAILED_VERIFICATION);
	access_reply_fini(&r);
	s->counters.access.ways = 0;
	access_scene_ask(s, &(struct access_client){.path = "/healthz"}, &r);
	assert_int_equal(r.status, 0);
	access_reply_fini(&r);
}

static void test_tokens_in_clear(void **state)
{
	struct access_scene *s = *state;
	struct http_config config = {.listen = ":0",
				     .ctx = &s->ctx,
				     .auth = {.token_file = s->tokens}};
	struct error why = {""};

	assert_int_equal(http_start_with(&s->http, &config, &why), -EINVAL);
	assert_non_null(strstr(why.text, "--allow-plain-tokens"));
	s->http = NULL;
	config.plain_tokens = true;
	access_scene_start(s, &config);
	http_stop(s->http);
	config.plain_tokens = false;
	config.listen = "127.0.0.1:0";
	access_scene_start(s, &config);
	assert_int_equal(access_scene_status(s, &(struct access_client){.path = "/v1/nodes"}), 401);
	assert_int_equal(access_scene_status(s, &(struct access_client){.path = "/v1/nodes",
									.token = ACCESS_TOKEN}),
			 200);
}

static void test_options(void **state)
{
	char x[] = "x";
	const struct {
		struct access_options o;
		const char *says;
	} cases[] = {
		{{.certificate = x}, "--tls-cert and --tls-key"},
		{{.key = x}, "--tls-cert and --tls-key"},
		{{.client_ca = x}, "--tls-client-ca"},
		{{.audience = x}, "--token-audience"},
		{{.open_watcher = true}, NULL},
		{{.certificate = x, .key = x, .client_ca = x, .open_watcher = true}, NULL},
		{{.token_review = true, .audience = x}, NULL},
		{{.token_file = NULL}, NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct error why = {""};

		assert_int_equal(access_options_check(&cases[i].o, &why),
				 cases[i].says ? -EINVAL : 0);
		if (cases[i].says)
			assert_non_null(strstr(why.text, cases[i].says));
	}
}

static void expect_no_start(struct access_scene *s, const struct http_config *config,
			    const char *says)
{
	struct error why = {""};

	assert_true(http_start_with(&s->http, config, &why) < 0);
	s->http = NULL;
	if (!strstr(why.text, says))
		fail_msg("\"%s\" does not say \"%s\"", why.text, says);
}

static void test_bad_files_stop_the_start(void **state)
{
	struct access_scene *s = *state;
	struct http_config config;

	access_scene_configure(s, &config);
	config.tls.key = s->certificate;
	expect_no_start(s, &config, "--tls-key");
	access_scene_configure(s, &config);
	config.tls.client_ca = s->key;
	expect_no_start(s, &config, "--tls-client-ca");
	access_scene_configure(s, &config);
	config.tls.certificate = "/nowhere/server.crt";
	expect_no_start(s, &config, "/nowhere/server.crt");
	access_scene_configure(s, &config);
	chmod(s->key, 0644);
	expect_no_start(s, &config, "--tls-key");
	expect_no_start(s, &config, "others may read or write it (mode 0644)");
	chmod(s->key, 0640);
	chmod(s->tokens, 0604);
	expect_no_start(s, &config, "others may read or write it (mode 0604)");
	chmod(s->tokens, 0640);
	access_scene_start(s, &config);
}

/* --- exchanged while it runs ------------------------------------------------------------------ */

struct hope {
	struct access_scene *scene;
	struct access_client client;
	long status;
};

static bool is_answered_so(void *ctx)
{
	struct hope *h = ctx;

	return access_scene_status(h->scene, &h->client) == h->status;
}

static void expect_soon(struct access_scene *s, const struct access_client *client, long status)
{
	struct hope h = {s, *client, status};

	if (!await(is_answered_so, &h, TIMEOUT_S))
		fail_msg("%s is not answered with %ld", client->path, status);
}

static bool has_failed_to_reload(void *ctx)
{
	const struct access_scene *s = ctx;

	return counter_get(&s->counters.access.reload_failures) > 0;
}

static void test_tokens_are_exchanged(void **state)
{
	const struct access_client first = {.path = "/v1/nodes", .token = ACCESS_TOKEN},
				   second = {.path = "/v1/nodes", .token = ACCESS_OTHER_TOKEN};
	struct access_scene *s = *state;

	start_guarded(s);
	free(access_scene_write(s, "tokens", ACCESS_TOKEN "\n" ACCESS_OTHER_TOKEN ",both\n"));
	http_reload(s->http);
	expect_soon(s, &second, 200);
	assert_int_equal(access_scene_status(s, &first), 200);
	free(access_scene_write(s, "tokens", ACCESS_OTHER_TOKEN ",both\n"));
	http_reload(s->http);
	expect_soon(s, &first, 401);
	/* What cannot be read changes nothing. */
	free(access_scene_write(s, "tokens", "short\n"));
	http_reload(s->http);
	assert_true(await(has_failed_to_reload, s, TIMEOUT_S));
	assert_int_equal(counter_get(&s->counters.access.reloads), 2);
	assert_int_equal(access_scene_status(s, &second), 200);
	assert_int_equal(access_scene_status(s, &first), 401);
}

static void test_certificate_is_exchanged(void **state)
{
	struct access_scene *s = *state;
	struct tls_identity next = {0};
	const struct tls_wish wish = {.name = "next",
				      .address = "127.0.0.1",
				      .issuer = &s->stranger_authority};
	const struct access_client fresh = {.path = "/healthz", .trusts = &s->stranger_authority};
	struct access_client old = {.path = "/v1/nodes", .token = ACCESS_TOKEN};
	CURL *kept = old.curl = curl_easy_init();
	long connections = 0;

	start_guarded(s);
	assert_int_equal(access_scene_status(s, &old), 200);
	tls_identity_make(&next, &wish);
	/* Half of it is no pair: the former stays. */
	free(access_scene_write(s, "server.crt", next.certificate));
	http_reload(s->http);
	assert_true(await(has_failed_to_reload, s, TIMEOUT_S));
	assert_int_equal(access_scene_status(s, &(struct access_client){.path = "/healthz"}), 200);
	free(access_scene_write(s, "server.key", next.key));
	http_reload(s->http);
	expect_soon(s, &fresh, 200);
	/* Who is connected notices nothing. */
	assert_int_equal(access_scene_status(s, &old), 200);
	curl_easy_getinfo(kept, CURLINFO_NUM_CONNECTS, &connections);
	assert_int_equal(connections, 0);
	curl_easy_cleanup(kept);
	tls_identity_fini(&next);
}

/* An authority that is taken away lets nobody in any more, not even who is connected. */
static void test_client_authority_is_exchanged(void **state)
{
	struct access_scene *s = *state;
	struct access_client old = {.path = "/v1/nodes", .identity = &s->client};
	const struct access_client fresh = {.path = "/v1/nodes", .identity = &s->stranger};
	CURL *kept = old.curl = curl_easy_init();
	long connections = 0;

	start_guarded(s);
	assert_int_equal(access_scene_status(s, &old), 200);
	free(access_scene_write(s, "clients.crt", s->stranger_authority.certificate));
	http_reload(s->http);
	expect_soon(s, &fresh, 200);
	assert_int_equal(access_scene_status(s, &old), 401);
	curl_easy_getinfo(kept, CURLINFO_NUM_CONNECTS, &connections);
	assert_int_equal(connections, 0);
	curl_easy_cleanup(kept);
}

/* --- reviews ---------------------------------------------------------------------------------- */

/* Who knows tokens, and whether it takes its time. */
struct knower {
	struct review_client access;
	atomic_uint asked;
	bool slow;
	sem_t begun, may_end;
};

static void know(void *ctx, const struct access_question *q, struct access_answer *a)
{
	const char *path = q->request->path, *verb = q->request->verb;
	struct knower *k = ctx;

	*a = (struct access_answer){.verdict = ACCESS_UNKNOWN};
	atomic_fetch_add(&k->asked, 1);
	if (k->slow) {
		sem_post(&k->begun);
		sem_wait(&k->may_end);
	}
	if (!q->token) {
		a->verdict = strstr(q->user, "\"admins\"") ? ACCESS_ALLOWED : ACCESS_DENIED;
		snprintf(a->user, sizeof(a->user), "alice");
	} else if (strcmp(q->token, ACCESS_OTHER_TOKEN) == 0) {
		a->verdict = strcmp(path, "/v1/pods") == 0 || strchr(path, '\n') ? ACCESS_DENIED
										 : ACCESS_ALLOWED;
		snprintf(a->user, sizeof(a->user), "system:serviceaccount:default:reader");
		if (strcmp(verb, "post") == 0 && strcmp(path, "/v1/scores") == 0)
			a->verdict = ACCESS_UNANSWERED;
		error_set(&a->error, "the API server is away");
	}
}

static void start_with(struct access_scene *s, struct knower *k)
{
	struct http_config config;

	k->access = (struct review_client){k, know, 2};
	sem_init(&k->begun, 0, 0);
	sem_init(&k->may_end, 0, 0);
	access_scene_configure(s, &config);
	config.auth.review_client = &k->access;
	config.tls = (struct tls_files){0};
	access_scene_start(s, &config);
}

static void expect(struct access_scene *s, const struct access_client *client, long status,
		   const char *says)
{
	struct access_reply r;

	access_scene_ask(s, client, &r);
	if (r.status != status || !strstr(r.body.data, says))
		fail_msg("%s: %ld %s", client->path, r.status, r.body.data);
	if (status == 503)
		assert_non_null(strstr(r.headers.data, "Retry-After: 1\r\n"));
	access_reply_fini(&r);
}

/* What the front proxy says of users. */
static const char *const admin[] = {"X-Remote-User: alice", "X-Remote-Group: admins", NULL};
static const char *const user[] = {"X-Remote-User: alice", NULL};

static struct front_proxy *front_proxy_of(const char *ca, const char *name)
{
	cJSON *map = cJSON_CreateObject(), *data = cJSON_AddObjectToObject(map, "data");
	char *names = mem_printf("[\"%s\"]", name), *text;
	struct front_proxy *p;

	cJSON_AddStringToObject(data, "requestheader-client-ca-file", ca);
	cJSON_AddStringToObject(data, "requestheader-allowed-names", names);
	cJSON_AddStringToObject(data, "requestheader-username-headers", "[\"X-Remote-User\"]");
	cJSON_AddStringToObject(data, "requestheader-group-headers", "[\"X-Remote-Group\"]");
	text = cJSON_PrintUnformatted(map);
	assert_int_equal(front_proxy_read(&p, text, strlen(text), NULL), 0);
	cJSON_Delete(map);
	free(names);
	free(text);
	return p;
}

/* The front proxy by the strangers' authority. */
static struct front_proxy *front_proxy_named(const struct access_scene *s, const char *name)
{
	return front_proxy_of(s->stranger_authority.certificate, name);
}

/*
 * Headers count on connections with the front proxy's certificate alone, as of now: a name that is
 * no longer allowed ends that on open connections.
 */
static void test_front_proxy(void **state)
{
	struct access_scene *s = *state;
	struct knower k = {.access = {&k, know, 2}};
	struct access_client proxied = {.path = "/apis/evenkeel.io/v1/nodes",
					.identity = &s->stranger,
					.headers = admin,
					.curl = curl_easy_init()};
	struct access_client alone = proxied;
	struct http_config config;

	access_scene_configure(s, &config);
	config.auth.review_client = &k.access;
	config.tls.front_proxy = true;
	access_scene_start(s, &config);
	/* Nothing is known of a front proxy yet. */
	expect(s, &proxied, 401, "not signed by an authority of --tls-client-ca");
	http_set_front_proxy(s->http, front_proxy_named(s, "scheduler"));
	expect_soon(s, &proxied, 200);
	proxied.headers = user;
	expect(s, &proxied, 403, "alice may not list nodes");
	proxied.headers = NULL;
	expect(s, &proxied, 401, "");
	alone.curl = NULL;
	alone.identity = NULL;
	expect(s, &alone, 401, "send a bearer token");
	/* A certificate of a client gets what it gets without the headers. */
	alone.identity = &s->client;
	alone.headers = user;
	expect(s, &alone, 200, "NodeList");
	proxied.headers = admin;
	http_set_front_proxy(s->http, front_proxy_named(s, "another"));
	expect(s, &proxied, 401, "");
	curl_easy_cleanup(proxied.curl);
}

/* An unusable authority of the front proxy changes nothing, and certificates are renewed. */
static void test_bad_front_proxy(void **state)
{
	struct access_scene *s = *state;
	struct tls_identity next = {0};
	const struct tls_wish wish = {.name = "next",
				      .address = "127.0.0.1",
				      .issuer = &s->stranger_authority};
	struct access_client proxied = {.path = "/apis/evenkeel.io/v1/nodes",
					.identity = &s->stranger,
					.headers = (const char *const[]){"X-Remote-User: alice",
									 "X-Remote-Group: admins",
									 NULL}};
	struct knower k = {.access = {&k, know, 2}};
	struct http_config config;

	access_scene_configure(s, &config);
	config.auth.review_client = &k.access;
	config.tls.front_proxy = true;
	access_scene_start(s, &config);
	http_set_front_proxy(s->http, front_proxy_named(s, "scheduler"));
	expect_soon(s, &proxied, 200);
	http_set_front_proxy(s->http, front_proxy_of("no PEM", "another"));
	tls_identity_make(&next, &wish);
	free(access_scene_write(s, "server.crt", next.certificate));
	free(access_scene_write(s, "server.key", next.key));
	http_reload(s->http);
	proxied.trusts = &s->stranger_authority;
	expect_soon(s, &proxied, 200);
	tls_identity_fini(&next);
}

/* Below /apis every failure is a Status, also what no route answers. */
static void test_failures_as_status(void **state)
{
	enum { BODY_LEN = 8 << 20 };
	struct access_scene *s = *state;
	char *body = mem_alloc(BODY_LEN + 1);
	struct access_client client = {.path = "/apis/evenkeel.io/v1/scores",
				       .identity = &s->client,
				       .body = body};

	memset(body, ' ', BODY_LEN);
	body[BODY_LEN] = '\0';
	start_guarded(s);
	expect(s, &client, 413, "\"reason\":\"RequestEntityTooLarge\"");
	client.body = NULL;
	client.path = "/apis/evenkeel.io/v1/nothing";
	expect(s, &client, 404, "\"kind\":\"Status\"");
	client.identity = NULL;
	expect(s, &client, 401, "\"reason\":\"Unauthorized\"");
	free(body);
}

/* --- who may ask the actuator, and speak for it ------------------------------------------------ */

#define ACTOR_TOKEN "actor-token-0123456789abcdef"
#define PAUSE	    "{\"action\":\"pause\"}"
#define GROUP	    "/apis/evenkeel.io/v1"
#define REPORT	    "{\"holder\":\"pod-1\",\"transitions\":1}"
#define WAVE                                                                                       \
	"{\"kind\":\"WaveReport\",\"plan\":\"p\",\"begin\":\"2026-01-31T12:00:00Z\",\"end\":"      \
	"\"2026-01-31T12:01:00Z\",\"outcome\":\"drained\"}"

static void test_who_may_act(void **state)
{
	struct access_scene *s = *state;
	struct knower k = {.access = {&k, know, 2}};
	enum { NOBODY, READER, ACTOR, REVIEWED, HOLDER, USER, ADMIN };
	const struct access_client clients[] = {
		[READER] = {.token = ACCESS_TOKEN},
		[ACTOR] = {.token = ACTOR_TOKEN},
		[REVIEWED] = {.token = ACCESS_OTHER_TOKEN},
		[HOLDER] = {.identity = &s->client},
		[USER] = {.identity = &s->stranger, .headers = user},
		[ADMIN] = {.identity = &s->stranger, .headers = admin},
	};
	static const struct {
		int who;
		const char *method, *path, *body;
		long status;
		const char *says;
	} cases[] = {
		{NOBODY, "POST", "/v1/act/requests", PAUSE, 401, "send a bearer token"},
		{READER, "POST", "/v1/act/requests", PAUSE, 403, "does not end in \\\",act"},
		{HOLDER, "POST", "/v1/act/requests", PAUSE, 403, "gives no right to act"},
		{ACTOR, "POST", "/v1/act/requests", PAUSE, 202, "\"state\":\"waiting\""},
		{REVIEWED, "POST", "/v1/act/requests", PAUSE, 202, ""},
		{REVIEWED, "POST", "/v1/act/requests", PAUSE, 202, ""}, /* the verdict is cached */
		{USER, "POST", GROUP "/acts/requests", PAUSE, 403, "[acts], verbs: [create]}"},
		{ADMIN, "POST", GROUP "/acts/requests", PAUSE, 202, ""},
		{ACTOR, "PUT", "/v1/act", REPORT, 200, "\"holder\":\"pod-1\""},
		{USER, "PUT", API_GROUP_ACT_REPORT, REPORT, 403, "[acts/report], verbs: [update]}"},
		{ADMIN, "PUT", API_GROUP_ACT_REPORT, REPORT, 200, "\"kind\":\"Act\""},
		{USER, "POST", API_GROUP_WAVE_REPORT, WAVE, 403, "[drains/history]"},
		{ADMIN, "POST", API_GROUP_WAVE_REPORT, WAVE, 200, "wave p drained"},
		{READER, "GET", "/v1/drain/history", NULL, 200, "waveReport"},
		{READER, "GET", "/v1/act", NULL, 200, "\"user\":\"bob\""},
		{HOLDER, "GET", "/v1/act", NULL, 200, "serviceaccount:default:reader\""},
		{READER, "GET", "/v1/act", NULL, 200, "\"user\":\"alice\""},
	};
	struct access_client client;
	struct http_config config;

	free(access_scene_write(s, "tokens", ACCESS_TOKEN ",somebody\n" ACTOR_TOKEN ",bob,act\n"));
	access_scene_configure(s, &config);
	config.auth.review_client = &k.access;
	config.tls.front_proxy = true;
	s->ctx.acts = act_box_new(NULL);
	s->ctx.decisions = drain_log_new();
	access_scene_start(s, &config);
	http_set_front_proxy(s->http, front_proxy_named(s, "scheduler"));
	client = clients[ADMIN];
	client.path = GROUP;
	expect_soon(s, &client, 200);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		client = clients[cases[i].who];
		client.method = cases[i].method;
		client.path = cases[i].path;
		client.body = cases[i].body;
		expect(s, &client, cases[i].status, cases[i].says);
	}
	http_stop(s->http);
	s->http = NULL;
	act_box_free(s->ctx.acts);
	drain_log_free(s->ctx.decisions);
}

static void test_reviews(void **state)
{
	struct access_scene *s = *state;
	struct knower k = {0};
	struct access_client client = {.path = "/v1/nodes", .token = ACCESS_OTHER_TOKEN};

	start_with(s, &k);
	/* Once for each question, whatever the answer; what is in the file is not asked about. */
	for (int i = 0; i < 3; i++)
		expect(s, &client, 200, "NodeList");
	assert_int_equal(atomic_load(&k.asked), 1);
	client.path = "/v1/pods";
	for (int i = 0; i < 3; i++)
		expect(s, &client, 403,
		       "system:serviceaccount:default:reader may not get /v1/pods: a ClusterRole");
	assert_int_equal(atomic_load(&k.asked), 2);
	client.path = "//v1/pods";
	expect(s, &client, 403, "may not get /v1/pods");
	assert_int_equal(atomic_load(&k.asked), 2);
	/* What a path holds makes no line of its own in the log. */
	client.path = "/v1/nodes/a%0Aevenkeel:%20all%20is%20well";
	expect(s, &client, 403, "may not get /v1/nodes/a?evenkeel: all is well");
	assert_int_equal(atomic_load(&k.asked), 3);
	client.path = "/v1/pods";
	client.token = UNKNOWN_TOKEN;
	for (int i = 0; i < 3; i++)
		expect(s, &client, 401, "the token is not known");
	assert_int_equal(atomic_load(&k.asked), 4);
	client.token = ACCESS_TOKEN;
	expect(s, &client, 200, "PodList");
	assert_int_equal(atomic_load(&k.asked), 4);
	/* No answer is not remembered. */
	client = (struct access_client){.path = "/v1/scores",
					.body = "{}",
					.token = ACCESS_OTHER_TOKEN};
	expect(s, &client, 503, "the API server is away");
	expect(s, &client, 503, "the API server is away");
	assert_int_equal(atomic_load(&k.asked), 6);
	/* With a body that comes after the verdict. */
	client.path = "/extender/filter";
	expect(s, &client, 400, "\"field\":\"Pod\"");
	client.path = "/v1/fit";
	expect(s, &client, 400, "\"field\":\"pod\"");
	assert_int_equal(refused(s, ACCESS_REFUSAL_FORBIDDEN), 5);
	assert_int_equal(refused(s, ACCESS_REFUSAL_NOT_REVIEWED), 2);
}

/* While nobody says whose a token is, all others are served. */
static void test_slow_reviews_hold_up_nobody(void **state)
{
	enum { CLIENTS = 8 };
	struct access_scene *s = *state;
	struct knower k = {.slow = true};
	CURLM *multi = curl_multi_init();
	CURL *waiting[CLIENTS];
	struct curl_slist *headers =
		curl_slist_append(NULL, "Authorization: Bearer " ACCESS_OTHER_TOKEN);
	char *url;
	int running = 1;

	start_with(s, &k);
	url = mem_printf("http://%s/v1/nodes", http_address(s->http));
	for (int i = 0; i < CLIENTS; i++) {
		waiting[i] = curl_easy_init();
		curl_easy_setopt(waiting[i], CURLOPT_URL, url);
		curl_easy_setopt(waiting[i], CURLOPT_NOBODY, 1L);
		curl_easy_setopt(waiting[i], CURLOPT_HTTPHEADER, headers);
		curl_multi_add_handle(multi, waiting[i]);
	}
	while (sem_trywait(&k.begun)) {
		curl_multi_perform(multi, &running);
		curl_multi_poll(multi, NULL, 0, 20, NULL);
	}
	for (int i = 0; i < 20; i++)
		assert_int_equal(
			access_scene_status(s, &(struct access_client){.path = "/v1/nodes",
								       .token = ACCESS_TOKEN}),
			200);
	for (int i = 0; i < CLIENTS; i++)
		sem_post(&k.may_end);
	while (running) {
		curl_multi_perform(multi, &running);
		curl_multi_poll(multi, NULL, 0, 20, NULL);
	}
	for (int i = 0; i < CLIENTS; i++) {
		long status = 0;

		curl_easy_getinfo(waiting[i], CURLINFO_RESPONSE_CODE, &status);
		assert_int_equal(status, 200);
		curl_multi_remove_handle(multi, waiting[i]);
		curl_easy_cleanup(waiting[i]);
	}
	/* Those that waited behind the first two found what these had brought. */
	assert_in_range(atomic_load(&k.asked), 1, 2);
	curl_multi_cleanup(multi);
	curl_slist_free_all(headers);
	free(url);
}

/*
 * Tokens that nobody knows fill the queue, and a token of another address still finds a place.
 */
static void test_a_flood_of_tokens_leaves_room(void **state)
{
	enum { FLOOD = 300, ROOM = 256 + 2 };
	struct access_scene *s = *state;
	struct knower k = {.slow = true};
	CURLM *multi = curl_multi_init();
	CURL *flood[FLOOD];
	struct curl_slist *headers[FLOOD];
	char *url;
	int running = FLOOD, busy = 0;

	start_with(s, &k);
	url = mem_printf("http://%s/v1/nodes", http_address(s->http));
	for (int i = 0; i < FLOOD; i++) {
		char *header = mem_printf("Authorization: Bearer " UNKNOWN_TOKEN "%d", i);

		flood[i] = curl_easy_init();
		headers[i] = curl_slist_append(NULL, header);
		curl_easy_setopt(flood[i], CURLOPT_URL, url);
		curl_easy_setopt(flood[i], CURLOPT_NOBODY, 1L);
		curl_easy_setopt(flood[i], CURLOPT_HTTPHEADER, headers[i]);
		curl_multi_add_handle(multi, flood[i]);
		free(header);
	}
	/* All that find no room are answered while nobody knows anything yet. */
	while (running > ROOM) {
		curl_multi_perform(multi, &running);
		curl_multi_poll(multi, NULL, 0, 20, NULL);
	}
	for (int i = 0; i < FLOOD + 1; i++)
		sem_post(&k.may_end);
	expect(s,
	       &(struct access_client){
		       .path = "/v1/nodes", .token = ACCESS_OTHER_TOKEN, .from = "127.0.0.2"},
	       200, "NodeList");
	while (running) {
		curl_multi_perform(multi, &running);
		curl_multi_poll(multi, NULL, 0, 20, NULL);
	}
	for (int i = 0; i < FLOOD; i++) {
		long status = 0;

		curl_easy_getinfo(flood[i], CURLINFO_RESPONSE_CODE, &status);
		assert_true(status == 401 || status == 503);
		busy += status == 503;
		curl_multi_remove_handle(multi, flood[i]);
		curl_easy_cleanup(flood[i]);
		curl_slist_free_all(headers[i]);
	}
	assert_in_range(busy, FLOOD - ROOM, FLOOD - ROOM + 1);
	curl_multi_cleanup(multi);
	free(url);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_who_is_let_in),
		TEST(test_open_watcher),
		TEST(test_server_is_verified),
		TEST(test_tokens_in_clear),
		TEST(test_options),
		TEST(test_bad_files_stop_the_start),
		TEST(test_tokens_are_exchanged),
		TEST(test_certificate_is_exchanged),
		TEST(test_client_authority_is_exchanged),
		TEST(test_reviews),
		TEST(test_who_may_act),
		TEST(test_front_proxy),
		TEST(test_bad_front_proxy),
		TEST(test_failures_as_status),
		TEST(test_slow_reviews_hold_up_nobody),
		TEST(test_a_flood_of_tokens_leaves_room),
	};
	int failed;

	if (sodium_init() < 0 || curl_global_init(CURL_GLOBAL_DEFAULT))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	curl_global_cleanup();
	return failed;
}
