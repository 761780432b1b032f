/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --token-review against a real API server: tokens of ServiceAccounts, made by it, are let in where
 * RBAC names the path, and others are told what is missing; with the API server gone, what it said
 * lately holds, and then 503.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <curl/curl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/clock.h"
#include "shared/file.h"
#include "shared/mem.h"
#include "tests/kube_testbed.h"
#include "tests/process.h"
#include "tests/stack.h"

#define ACCOUNTS "/api/v1/namespaces/default/serviceaccounts"
#define BINDINGS "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"

/* What was found out is remembered so long where it allows. */
enum { CACHED_S = 60 };

static struct kube_testbed *bed;
static char *reader, *scheduler, *nobody, *elsewhere; /* tokens */

/* --- the cluster ------------------------------------------------------------------------------ */

static void bind_user(const char *role, const char *kind, const char *name)
{
	bool account = strcmp(kind, "ServiceAccount") == 0;
	char *body = mem_printf(
		"{\"apiVersion\":\"rbac.authorization.k8s.io/v1\",\"kind\":\"ClusterRoleBinding\","
		"\"metadata\":{\"name\":\"%s-%s\"},\"roleRef\":{\"apiGroup\":"
		"\"rbac.authorization.k8s.io\",\"kind\":\"ClusterRole\",\"name\":\"%s\"},"
		"\"subjects\":[{\"kind\":\"%s\",\"name\":\"%s\"%s}]}",
		name, strchr(role, ':') ? "delegates" : role, role, kind, name,
		account ? ",\"namespace\":\"default\"" : "");

	control_plane_must(bed->plane, "POST", BINDINGS, body);
	free(body);
}

/* What `kubectl create token` asks for. audience NULL: the API server. */
static char *make_token(const char *account, const char *audience)
{
	char *path = mem_printf(ACCOUNTS "/%s/token", account);
	char *body = audience ? mem_printf("{\"spec\":{\"audiences\":[\"%s\"],"
					   "\"expirationSeconds\":3600}}",
					   audience)
			      : mem_strdup("{\"spec\":{\"expirationSeconds\":3600}}");
	struct buf answer = BUF_INIT;
	long status = control_plane_send(bed->plane, "POST", path, body, &answer);
	cJSON *json = cJSON_Parse(answer.data ? answer.data : "");
	const char *token = cJSON_GetStringValue(json_at(json, "status.token"));
	char *copy;

	if (status != 201 || !token)
		fail_msg("no token for %s: %ld %s", account, status, answer.data);
	copy = mem_strdup(token);
	cJSON_Delete(json);
	buf_fini(&answer);
	free(body);
	free(path);
	return copy;
}

static void make_account(const char *name)
{
	char *body = mem_printf("{\"metadata\":{\"name\":\"%s\"}}", name);

	control_plane_must(bed->plane, "POST", ACCOUNTS, body);
	free(body);
}

/* --- asking ----------------------------------------------------------------------------------- */

static size_t collect(char *data, size_t size, size_t count, void *to)
{
	buf_add(to, data, size * count);
	return size * count;
}

static long ask(const char *path, const char *body, const char *token, struct buf *answer)
{
	char *url = mem_printf("http://127.0.0.1:%d%s", bed->aggregators[0].http_port, path);
	CURL *curl = curl_easy_init();
	long status = 0;

	buf_clear(answer);
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT, 60L);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, collect);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
	if (token) {
		curl_easy_setopt(curl, CURLOPT_XOAUTH2_BEARER, token);
		curl_easy_setopt(curl, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
	}
	if (body) {
		curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
		curl_easy_setopt(curl, CURLOPT_HTTPHEADER, http_json_headers());
	}
	if (curl_easy_perform(curl) == CURLE_OK)
		curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	buf_add_str(answer, "");
	curl_easy_cleanup(curl);
	free(url);
	return status;
}

static void expect(const char *path, const char *body, const char *token, long status,
		   const char *says)
{
	struct buf answer = BUF_INIT;
	long got = ask(path, body, token, &answer);

	if (got != status || !strstr(answer.data, says))
		fail_msg("%s: %ld instead of %ld: %.300s", path, got, status, answer.data);
	buf_fini(&answer);
}

/* --- tests ------------------------------------------------------------------------------------ */

static void test_roles_decide(void **state)
{
	(void)state;
	expect("/v1/nodes", NULL, NULL, 401, "send a bearer token");
	expect("/v1/nodes", NULL, "wrong-token-0123456789", 401, "the token is not known");
	expect("/v1/nodes", NULL, reader, 200, "NodeList");
	expect("/v1/nodes?limit=1", NULL, reader, 200, "NodeList");
	expect("/metrics", NULL, reader, 200, "evenkeel_http_token_reviews_total");
	expect("/v1/fit", "{}", reader, 400, "\"field\":\"pod\"");
	expect("/extender/filter", "{}", reader, 403,
	       "system:serviceaccount:default:reader may not post /extender/filter");
	expect("/extender/filter", "{}", scheduler, 400, "\"field\":\"Pod\"");
	expect("/v1/nodes", NULL, scheduler, 403, "may not get /v1/nodes");
	expect("/v1/nodes", NULL, nobody, 403,
	       "system:serviceaccount:default:nobody may not get /v1/nodes: a ClusterRole bound to "
	       "it needs that path in nonResourceURLs with verb get");
	expect("/healthz", NULL, NULL, 200, "ok");
}

/* A token that was given to another service is not one for us, though its owner may. */
static void test_audience(void **state)
{
	(void)state;
	expect("/v1/nodes", NULL, elsewhere, 401, "the token is not known");
}

static bool is_let_in(void *token)
{
	struct buf answer = BUF_INIT;
	long status = ask("/v1/status", NULL, token, &answer);

	buf_fini(&answer);
	return status == 200;
}

/* What is granted counts as soon as the refusal is forgotten, within ten seconds. */
static void test_grants_are_seen(void **state)
{
	(void)state;
	expect("/v1/status", NULL, nobody, 403, "may not get /v1/status");
	bind_user("evenkeel-view", "ServiceAccount", "nobody");
	assert_true(await(is_let_in, nobody, 60));
}

static bool is_known_no_more(void *token)
{
	struct buf answer = BUF_INIT;
	long status = ask("/v1/pods", NULL, token, &answer);
	bool gone = status == 503 && strstr(answer.data, "\"code\":\"notReviewed\"");

	if (status != 200 && !gone)
		fail_msg("%ld %s", status, answer.data);
	buf_fini(&answer);
	return gone;
}

static void test_api_server_gone(void **state)
{
	int64_t asked_ns, gone_ns;

	(void)state;
	expect("/v1/pods", NULL, reader, 200, "PodList");
	asked_ns = clock_mono_ns();
	control_plane_kill_api(bed->plane, 0);
	/* Known still. */
	expect("/v1/pods", NULL, reader, 200, "PodList");
	/* Never asked about. */
	expect("/v1/drain", NULL, reader, 503, "the review of the token failed");
	expect("/v1/nodes", NULL, "another-token-0123456789", 503,
	       "the review of the token failed");
	expect("/healthz", NULL, NULL, 200, "ok");
	assert_true(await(is_known_no_more, reader, CACHED_S + 30));
	gone_ns = clock_mono_ns();
	assert_true(gone_ns - asked_ns > CACHED_S * NS_PER_SEC / 2);
	control_plane_start_api(bed->plane, 0, true);
	assert_true(await(is_let_in, reader, 60));
}

static void test_stops(void **state)
{
	(void)state;
	assert_int_equal(kube_testbed_stop_aggregator(bed, 0), 0);
}

static int open_bed(void **state)
{
	static const char *const more[] = {"--token-review", "--token-audience", "evenkeel",
					   "--verbose", NULL};

	(void)state;
	control_plane_create(bed->plane, "packaging/kubernetes/core/clusterrole.yaml");
	control_plane_create(bed->plane, "packaging/kubernetes/core/clients.yaml");
	bind_user("evenkeel-aggregator", "User", CONTROL_RESTRICTED_USER);
	make_account("reader");
	make_account("scheduler");
	make_account("nobody");
	bind_user("evenkeel-view", "ServiceAccount", "reader");
	bind_user("evenkeel-extender", "ServiceAccount", "scheduler");
	reader = make_token("reader", "evenkeel");
	scheduler = make_token("scheduler", "evenkeel");
	nobody = make_token("nobody", "evenkeel");
	elsewhere = make_token("reader", NULL);
	kube_testbed_start_aggregator_with(bed, 0, bed->plane->restricted, more);
	return 0;
}

/* No token is in the log, whatever happened. */
static void test_no_token_is_logged(void **state)
{
	char *path = mem_printf("%s/aggregator-0.log", bed->folder);
	const char *const secrets[] = {reader,
				       scheduler,
				       nobody,
				       elsewhere,
				       "wrong-token-0123456789",
				       "another-token-0123456789"};
	struct buf log = BUF_INIT;

	(void)state;
	assert_int_equal(file_read(path, 16 << 20, &log, NULL), 0);
	assert_non_null(strstr(log.data, "refused a request from 127.0.0.1"));
	for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++)
		assert_null(strstr(log.data, secrets[i]));
	buf_fini(&log);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_roles_decide),	cmocka_unit_test(test_audience),
		cmocka_unit_test(test_grants_are_seen), cmocka_unit_test(test_api_server_gone),
		cmocka_unit_test(test_stops),		cmocka_unit_test(test_no_token_is_logged),
	};
	int failed;

	if (sodium_init() < 0 || curl_global_init(CURL_GLOBAL_DEFAULT))
		return 1;
	bed = kube_testbed_new_bare();
	if (!bed)
		return 0;
	failed = cmocka_run_group_tests(tests, open_bed, NULL);
	kube_testbed_free(bed, failed != 0);
	free(reader);
	free(scheduler);
	free(nobody);
	free(elsewhere);
	curl_global_cleanup();
	return failed;
}
