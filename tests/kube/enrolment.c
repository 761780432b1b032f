/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Enrolment by tokens of pods against a real API server: the token of a pod of the agents'
 * ServiceAccount enrols the node of that pod, and no other token enrols any.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <curl/curl.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "shared/clock.h"
#include "shared/file.h"
#include "shared/mem.h"
#include "tests/enrol_client.h"
#include "tests/kube_testbed.h"
#include "tests/process.h"
#include "tests/stack.h"

#define NAMESPACE "/api/v1/namespaces/default"
#define BINDINGS  "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
#define AUDIENCE  "evenkeel-ingest"
#define TOKEN	  "0123456789abcdef0123"

static struct kube_testbed *bed;
static char *key_path, *public_path;

/* --- the cluster ------------------------------------------------------------------------------ */

/* body is freed. */
static void make(const char *path, char *body)
{
	control_plane_must(bed->plane, "POST", path, body);
	free(body);
}

static void make_account(const char *name)
{
	make(NAMESPACE "/serviceaccounts", mem_printf("{\"metadata\":{\"name\":\"%s\"}}", name));
}

/* On node-NUMBER. */
static void make_pod_named(const char *name, const char *account, const char *number)
{
	make(NAMESPACE "/pods",
	     mem_printf("{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"nodeName\":\"node-%s\","
			"\"serviceAccountName\":\"%s\",\"containers\":[{\"name\":\"c\",\"image\":"
			"\"none\"}]}}",
			name, number, account));
}

/* "agent-1" is a pod of ServiceAccount "agent" on node-1. */
static void make_pod(const char *account, const char *number)
{
	char *name = mem_printf("%s-%s", account, number);

	make_pod_named(name, account, number);
	free(name);
}

static cJSON *send_json(const char *method, const char *path, const char *body)
{
	struct buf answer = BUF_INIT;
	long status = control_plane_send(bed->plane, method, path, body, &answer);
	cJSON *json = cJSON_Parse(answer.data ? answer.data : "");

	if (status != 200 && status != 201)
		fail_msg("%s %s: %ld %s", method, path, status, answer.data);
	buf_fini(&answer);
	return json;
}

/* As the kubelet asks for it. pod NULL: bound to none. */
static char *make_token(const char *account, const char *pod, const char *audience)
{
	char *path = mem_printf(NAMESPACE "/serviceaccounts/%s/token", account);
	char *pod_path = mem_printf(NAMESPACE "/pods/%s", pod ? pod : ""), *body, *token;
	cJSON *of = pod ? send_json("GET", pod_path, NULL) : NULL, *json;

	body = mem_printf(
		"{\"spec\":{\"audiences\":[\"%s\"],\"expirationSeconds\":3600%s%s%s%s%s}}",
		audience,
		pod ? ",\"boundObjectRef\":{\"apiVersion\":\"v1\",\"kind\":\"Pod\","
		      "\"name\":\""
		    : "",
		pod ? pod : "", pod ? "\",\"uid\":\"" : "",
		pod ? json_at(of, "metadata.uid")->valuestring : "", pod ? "\"}" : "");
	json = send_json("POST", path, body);
	token = mem_strdup(json_at(json, "status.token")->valuestring);
	cJSON_Delete(json);
	cJSON_Delete(of);
	free(body);
	free(path);
	free(pod_path);
	return token;
}

/* --- enrolments ------------------------------------------------------------------------------- */

/* On a connection of its own, as refusals end connections. */
static void ask(const char *node, enum credential_kind kind, const char *credential,
		struct enrolment_answer *a)
{
	struct sender_socket *connection = enrol_client_dial(bed->aggregators[0].ingest_port);

	enrol_client_ask(connection, public_path, node, kind, credential, a);
	sender_socket_close(connection);
}

static void expect(const char *account, const char *pod, const char *audience, const char *node,
		   enum enrolment_status status, const char *reason)
{
	char *token = make_token(account, pod, audience);
	struct enrolment_answer a;

	ask(node, CREDENTIAL_SERVICE_ACCOUNT, token, &a);
	if (a.status != status || !strstr(a.reason, reason))
		fail_msg("%s as %s: %d %s", pod ? pod : account, node, a.status, a.reason);
	free(token);
}

/* The agent of that pod, on node-1. */
static enum enrolment_status enrol_pod(const char *pod, struct enrolment_answer *a)
{
	char *token = make_token("agent", pod, AUDIENCE);

	ask("node-1", CREDENTIAL_SERVICE_ACCOUNT, token, a);
	free(token);
	return a->status;
}

static bool is_enrolled(void *unused)
{
	struct enrolment_answer a;

	(void)unused;
	return enrol_pod("agent-1", &a) == ENROLMENT_DONE;
}

/* Before Kubernetes 1.32 the model has to know the pod first. */
static void test_token_of_the_node(void **state)
{
	(void)state;
	assert_true(await(is_enrolled, NULL, 30));
	expect("agent", "agent-2", AUDIENCE, "node-2", ENROLMENT_DONE, "");
}

static void test_other_tokens(void **state)
{
	struct enrolment_answer a;

	(void)state;
	expect("agent", "agent-1", AUDIENCE, "node-2", ENROLMENT_REFUSED, "a pod on another node");
	expect("other", "other-1", AUDIENCE, "node-1", ENROLMENT_REFUSED, "another ServiceAccount");
	expect("agent", "agent-1", "elsewhere", "node-1", ENROLMENT_REFUSED, "another audience");
	expect("agent", NULL, AUDIENCE, "node-1", ENROLMENT_REFUSED, "of no pod");
	ask("node-1", CREDENTIAL_SERVICE_ACCOUNT, "made-up-token", &a);
	assert_int_equal(a.status, ENROLMENT_REFUSED);
	/* The join token is for all nodes, but pods have enrolled node-1 and node-2. */
	ask("node-1", CREDENTIAL_JOIN_TOKEN, TOKEN, &a);
	assert_int_equal(a.status, ENROLMENT_REFUSED);
	assert_non_null(strstr(a.reason, "the node's key is of a pod"));
	ask("node-3", CREDENTIAL_JOIN_TOKEN, TOKEN, &a);
	assert_int_equal(a.status, ENROLMENT_DONE);
	ask("node-1", CREDENTIAL_JOIN_TOKEN, "made-up-token", &a);
	assert_int_equal(a.status, ENROLMENT_REFUSED);
}

/* --- a token whose time has ended ------------------------------------------------------------- */

enum { BASE64 = sodium_base64_VARIANT_URLSAFE_NO_PADDING };

static char *encode(const void *data, size_t len)
{
	char *text = mem_alloc(sodium_base64_ENCODED_LEN(len, BASE64));

	return sodium_bin2base64(text, sodium_base64_ENCODED_LEN(len, BASE64), data, len, BASE64);
}

enum { ES256_NUMBER = 32 };

static void put_number(unsigned char *end, const gnutls_datum_t *number)
{
	size_t len = number->size < ES256_NUMBER ? number->size : ES256_NUMBER;

	memcpy(end - len, number->data + number->size - len, len);
}

/* ES256 with the API server's key: the two numbers of a signature, without their frame. */
static char *sign(const char *text)
{
	char *key = mem_printf("%s/api-0/apiserver.key", bed->plane->folder);
	char *file = mem_printf("%s/unsigned", bed->folder), *signature;
	char *argv[] = {(char *)"/usr/bin/openssl",
			(char *)"dgst",
			(char *)"-sha256",
			(char *)"-sign",
			key,
			file,
			NULL};
	unsigned char numbers[2 * ES256_NUMBER] = {0};
	gnutls_datum_t r, s, framed;
	struct buf out = BUF_INIT;
	FILE *to = fopen(file, "we");

	assert_non_null(to);
	fputs(text, to);
	assert_int_equal(fclose(to), 0);
	assert_int_equal(process_run(argv, &out, NULL), 0);
	framed = (gnutls_datum_t){(unsigned char *)out.data, (unsigned int)out.len};
	assert_int_equal(gnutls_decode_rs_value(&framed, &r, &s), 0);
	put_number(numbers + ES256_NUMBER, &r);
	put_number(numbers + sizeof(numbers), &s);
	signature = encode(numbers, sizeof(numbers));
	gnutls_free(r.data);
	gnutls_free(s.data);
	buf_fini(&out);
	free(file);
	free(key);
	return signature;
}

/* The same token, issued so much earlier. */
static char *age_token(const char *token, int by_s)
{
	static const char *const times[] = {"iat", "nbf", "exp"};
	const char *begin = strchr(token, '.') + 1, *end = strchr(begin, '.');
	char *claims = mem_zalloc(1, strlen(token)), *text, *body, *signature, *aged;
	cJSON *json;

	assert_int_equal(sodium_base642bin((uint8_t *)claims, strlen(token) - 1, begin,
					   (size_t)(end - begin), NULL, NULL, NULL, BASE64),
			 0);
	json = cJSON_Parse(claims);
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		cJSON *time = cJSON_GetObjectItemCaseSensitive(json, times[i]);

		if (time)
			cJSON_SetNumberValue(time, time->valuedouble - by_s);
	}
	text = cJSON_PrintUnformatted(json);
	body = encode(text, strlen(text));
	free(claims);
	claims = mem_printf("%.*s%s", (int)(begin - token), token, body);
	signature = sign(claims);
	aged = mem_printf("%s.%s", claims, signature);
	cJSON_Delete(json);
	free(text);
	free(body);
	free(claims);
	free(signature);
	return aged;
}

static void test_expired_token(void **state)
{
	static const struct {
		int age_s;
		enum enrolment_status want;
	} cases[] = {{0, ENROLMENT_DONE}, {60, ENROLMENT_DONE}, {7200, ENROLMENT_REFUSED}};
	char *token = make_token("agent", "agent-1", AUDIENCE);

	(void)state;
	assert_true(await(is_enrolled, NULL, 30));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *aged = age_token(token, cases[i].age_s);
		struct enrolment_answer a;

		ask("node-1", CREDENTIAL_SERVICE_ACCOUNT, aged, &a);
		assert_int_equal(a.status, cases[i].want);
		free(aged);
	}
	free(token);
}

/* --- two pods on one node --------------------------------------------------------------------- */

static cJSON *get_pod(const char *name)
{
	char *path = mem_printf(NAMESPACE "/pods/%s", name);
	cJSON *pod = send_json("GET", path, NULL);

	free(path);
	return pod;
}

/* Times of creation are in seconds. */
static bool is_second_over(void *name)
{
	cJSON *pod = get_pod(name);
	time_t now = time(NULL);
	char text[32];
	struct tm tm;
	bool over;

	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
	over = strcmp(text, json_at(pod, "metadata.creationTimestamp")->valuestring) > 0;
	cJSON_Delete(pod);
	return over;
}

/* Once the model knows both pods. */
static bool is_older_one_refused(void *unused)
{
	struct enrolment_answer a;

	(void)unused;
	return enrol_pod("newer-1", &a) == ENROLMENT_DONE &&
	       enrol_pod("agent-1", &a) == ENROLMENT_REFUSED && strstr(a.reason, "newer pod");
}

static void test_newer_pod(void **state)
{
	(void)state;
	assert_true(await(is_enrolled, NULL, 30));
	assert_true(await(is_second_over, (void *)"agent-1", 30));
	make_pod_named("newer-1", "agent", "1");
	assert_true(await(is_older_one_refused, NULL, 30));
	control_plane_must(bed->plane, "DELETE", NAMESPACE "/pods/newer-1",
			   "{\"gracePeriodSeconds\":0}");
	assert_true(await(is_enrolled, NULL, 30));
}

static bool is_refused_on_node_3(void *token)
{
	struct enrolment_answer a;

	ask("node-3", CREDENTIAL_SERVICE_ACCOUNT, token, &a);
	return a.status == ENROLMENT_REFUSED;
}

/* The pod is gone: its token ends with it, once the API server's cache has seen that. */
static void test_token_of_a_deleted_pod(void **state)
{
	char *token = make_token("agent", "agent-3", AUDIENCE);

	(void)state;
	control_plane_must(bed->plane, "DELETE", NAMESPACE "/pods/agent-3",
			   "{\"gracePeriodSeconds\":0}");
	assert_true(await(is_refused_on_node_3, token, 30));
	free(token);
}

static void test_api_server_gone(void **state)
{
	char *token = make_token("agent", "agent-1", AUDIENCE);
	struct enrolment_answer a;

	(void)state;
	control_plane_kill_api(bed->plane, 0);
	ask("node-1", CREDENTIAL_SERVICE_ACCOUNT, token, &a);
	assert_int_equal(a.status, ENROLMENT_LATER);
	assert_non_null(strstr(a.reason, "cannot be reviewed now"));
	assert_true(a.wait_ms > 0);
	free(token);
}

static void test_stops(void **state)
{
	(void)state;
	assert_int_equal(kube_testbed_stop_aggregator(bed, 0), 0);
}

static int open_bed(void **state)
{
	char *tokens = mem_printf("%s/tokens", bed->folder);
	const char *const more[] = {"--enrolment-key",
				    key_path,
				    "--enrol-service-account",
				    "default/agent",
				    "--join-token-file",
				    tokens,
				    NULL};
	FILE *file = fopen(tokens, "we");

	(void)state;
	assert_true(file && fputs(TOKEN " *\n", file) >= 0 && fclose(file) == 0);
	assert_int_equal(chmod(tokens, 0600), 0);
	control_plane_create(bed->plane, "packaging/kubernetes/core/clusterrole.yaml");
	make(BINDINGS,
	     mem_printf("{\"apiVersion\":\"rbac.authorization.k8s.io/"
			"v1\",\"kind\":\"ClusterRoleBinding\","
			"\"metadata\":{\"name\":\"a\"},\"roleRef\":{\"apiGroup\":"
			"\"rbac.authorization.k8s.io\",\"kind\":\"ClusterRole\",\"name\":\"%s\"},"
			"\"subjects\":[{\"kind\":\"User\",\"name\":\"%s\"}]}",
			"evenkeel-aggregator", CONTROL_RESTRICTED_USER));
	make_account("agent");
	make_account("other");
	for (int i = 1; i <= 3; i++) {
		char number[2] = {(char)('0' + i), '\0'};

		make("/api/v1/nodes", mem_printf("{\"metadata\":{\"name\":\"node-%s\"}}", number));
		make_pod("agent", number);
	}
	make_pod("other", "1");
	kube_testbed_start_aggregator_with(bed, 0, bed->plane->restricted, more);
	free(tokens);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_token_of_the_node),
		cmocka_unit_test(test_other_tokens),
		cmocka_unit_test(test_expired_token),
		cmocka_unit_test(test_newer_pod),
		cmocka_unit_test(test_token_of_a_deleted_pod),
		cmocka_unit_test(test_api_server_gone),
		cmocka_unit_test(test_stops),
	};
	int failed;

	if (sodium_init() < 0 || curl_global_init(CURL_GLOBAL_DEFAULT))
		return 1;
	bed = kube_testbed_new_bare();
	if (!bed)
		return 0;
	key_path = mem_printf("%s/enrolment.key", bed->folder);
	public_path = mem_printf("%s.pub", key_path);
	failed = cmocka_run_group_tests(tests, open_bed, NULL);
	kube_testbed_free(bed, failed != 0);
	free(key_path);
	free(public_path);
	curl_global_cleanup();
	return failed;
}
