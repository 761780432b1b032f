/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The installation on a real API server with nothing prepared: what the aggregator makes for itself,
 * as its ServiceAccount with the rights of the manifests, and what it does when that exists, is
 * another's, is garbled, or may not be read. There is no kubelet: aggregators and an agent run here,
 * with the files that a kubelet would mount.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <curl/curl.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "aggregator/edge/kube/authority.h"
#include "shared/clock.h"
#include "shared/file.h"
#include "shared/mem.h"
#include "tests/kube_testbed.h"
#include "tests/process.h"
#include "tests/stack.h"

#define IN	  "/api/v1/namespaces/evenkeel"
#define TLS	  IN "/secrets/evenkeel-tls"
#define ENROLMENT IN "/secrets/evenkeel-enrolment"
#define MAP	  IN "/configmaps/evenkeel-enrolment"
#define SERVICES  "/apis/apiregistration.k8s.io/v1/apiservices"
#define BINDINGS  "/apis/rbac.authorization.k8s.io/v1/namespaces/evenkeel/rolebindings"
#define DAY_S	  (24 * 3600LL)
#define SECONDS	  60
/* The aggregator reads its Secrets once a minute, and certificates every ten seconds. */
#define RENEWAL_SECONDS 120

enum { REPLICAS = 2 };

struct replica {
	char *folder; /* that the manifests mount in memory */
	int http_port, ingest_port;
	pid_t pid; /* 0: not running */
};

static struct kube_testbed *bed;
static char *kubeconfig, *token_path;
static struct replica replicas[REPLICAS];
static int64_t applied_ns;

/* --- objects ---------------------------------------------------------------------------------- */

/* NULL: there is none. The caller deletes it. */
static cJSON *object(const char *path)
{
	struct buf answer = BUF_INIT;
	cJSON *json = control_plane_send(bed->plane, "GET", path, NULL, &answer) == 200
			      ? cJSON_Parse(answer.data)
			      : NULL;

	buf_fini(&answer);
	return json;
}

static char *version(const char *path)
{
	cJSON *json = object(path);
	const char *text = cJSON_GetStringValue(json_at(json, "metadata.resourceVersion"));
	char *copy = mem_strdup(text ? text : "none");

	cJSON_Delete(json);
	return copy;
}

/* A member of a Secret, decoded; the caller frees it. */
static char *member(const char *path, const char *name)
{
	cJSON *json = object(path);
	const char *text =
		cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json_at(json, "data"), name));
	char *data = mem_zalloc(1, text ? strlen(text) + 1 : 1);

	if (text)
		assert_int_equal(sodium_base642bin((unsigned char *)data, strlen(text), text,
						   strlen(text), NULL, NULL, NULL,
						   sodium_base64_VARIANT_ORIGINAL),
				 0);
	cJSON_Delete(json);
	return data;
}

static void delete (const char *path)
{
	control_plane_must(bed->plane, "DELETE", path, NULL);
}

/* --- replicas --------------------------------------------------------------------------------- */

static char *log_of(const struct replica *r)
{
	return mem_printf("%s.log", r->folder);
}

static bool log_has(const struct replica *r, const char *words)
{
	char *path = log_of(r);
	struct buf text = BUF_INIT;
	struct error ignored;
	bool has = !file_read(path, 1 << 20, &text, &ignored) && strstr(text.data, words);

	buf_fini(&text);
	free(path);
	return has;
}

static void print_log(const struct replica *r)
{
	char *path = log_of(r);
	struct buf text = BUF_INIT;
	struct error ignored;

	if (!file_read(path, 1 << 20, &text, &ignored))
		print_message("%s", text.data);
	buf_fini(&text);
	free(path);
}

/* With the options of the manifests. */
static void start(struct replica *r)
{
	char *argv[] = {
		mem_strdup(program_path("evenkeel-aggregator")),
		(char *)"--kubeconfig",
		kubeconfig,
		mem_printf("--listen=127.0.0.1:%d", r->http_port),
		mem_printf("--ingest=tcp://127.0.0.1:%d", r->ingest_port),
		mem_printf("--enrolment-key=%s/enrolment", r->folder),
		mem_strdup("--enrol-service-account=evenkeel/evenkeel-agent"),
		mem_strdup("--own-secrets=evenkeel"),
		mem_printf("--tls-cert=%s/tls.crt", r->folder),
		mem_printf("--tls-key=%s/tls.key", r->folder),
		mem_printf("--tls-client-ca=%s/ca.crt", r->folder),
		mem_strdup("--token-review"),
		NULL,
	};
	char *log = log_of(r);

	r->pid = process_start(log, argv);
	assert_true(r->pid > 0);
	for (size_t i = 0; argv[i]; i++)
		if (i != 1 && i != 2)
			free(argv[i]);
	free(log);
}

static bool is_ready(void *replica)
{
	const struct replica *r = replica;
	char *url = mem_printf("https://127.0.0.1:%d/readyz", r->http_port);
	struct buf body = BUF_INIT;
	bool ready = http_get(url, &body) == 200;

	buf_fini(&body);
	free(url);
	return ready;
}

static void await_ready(struct replica *r)
{
	if (await(is_ready, r, SECONDS))
		return;
	print_log(r);
	fail_msg("the aggregator does not become ready");
}

static void stop(struct replica *r)
{
	assert_int_equal(process_stop(r->pid, SIGTERM), 0);
	r->pid = 0;
}

/* As another pod: its folder is empty. */
static void renew_folder(struct replica *r)
{
	folder_remove(r->folder);
	r->folder = folder_make();
}

/* Of one that cannot start. */
static void expect_failure(struct replica *r, const char *words)
{
	int status = 0;

	renew_folder(r);
	start(r);
	assert_int_equal(waitpid(r->pid, &status, 0), r->pid);
	r->pid = 0;
	print_log(r);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	assert_true(log_has(r, words));
}

/* --- clients ---------------------------------------------------------------------------------- */

static void write_private(const char *path, const char *text)
{
	struct error error;

	if (file_replace(path, 0600, text, strlen(text), &error))
		fail_msg("%s", error.text);
}

/* By the authority in the Secret, and a token of the aggregator's ServiceAccount. */
static cJSON *ask(const struct replica *r, const char *what)
{
	char *ca = member(TLS, "ca.crt"), *ca_path = mem_printf("%s/ca.crt", bed->folder);
	char *argv[] = {mem_strdup(program_path("evenkeel")),
			(char *)what,
			(char *)"--output=json",
			mem_printf("--server=https://127.0.0.1:%d", r->http_port),
			mem_printf("--ca-file=%s", ca_path),
			mem_printf("--token-file=%s", token_path),
			NULL};
	struct buf out = BUF_INIT, err = BUF_INIT;
	cJSON *json = NULL;

	write_private(ca_path, ca);
	/* It also answers, and fails, while no node is measured. */
	process_run(argv, &out, &err);
	json = cJSON_Parse(out.data);
	if (!json)
		print_message("          %s", err.data ? err.data : "no word");
	free(argv[0]);
	for (size_t i = 3; argv[i]; i++)
		free(argv[i]);
	buf_fini(&out);
	buf_fini(&err);
	free(ca);
	free(ca_path);
	return json;
}

/* Of the ServiceAccount of the aggregator, which may look. */
static void write_token(void)
{
	struct buf answer = BUF_INIT;
	cJSON *token;

	assert_int_equal(control_plane_send(bed->plane, "POST",
					    IN "/serviceaccounts/evenkeel-aggregator/token",
					    "{\"spec\":{}}", &answer),
			 201);
	token = cJSON_Parse(answer.data);
	write_private(token_path, json_at(token, "status.token")->valuestring);
	cJSON_Delete(token);
	buf_fini(&answer);
}

/* --- tests ------------------------------------------------------------------------------------ */

static double since_applied(void)
{
	return (double)(clock_mono_ns() - applied_ns) / NS_PER_SEC;
}

static void test_nothing_is_prepared(void **state)
{
	struct buf said = BUF_INIT;
	cJSON *nodes;

	(void)state;
	control_plane_must(bed->plane, "POST", "/api/v1/nodes",
			   "{\"metadata\":{\"name\":\"node-1\"}}");
	applied_ns = clock_mono_ns();
	control_plane_apply(bed->plane, "-f", bed->plane->version->installation, &said);
	buf_fini(&said);
	kubeconfig = kube_testbed_account(bed, "evenkeel", "evenkeel-aggregator");
	write_token();
	print_message("          installed after %.1f s\n", since_applied());
	start(&replicas[0]);
	await_ready(&replicas[0]);
	nodes = ask(&replicas[0], "nodes");
	assert_non_null(json_item(nodes, "node-1"));
	print_message("          first answer after %.1f s\n", since_applied());
	cJSON_Delete(nodes);
}

/* What the kubelet mounts into the agent's pod: the ConfigMap, and a token of the pod. */
static void mount(const char *folder)
{
	static const char *const pod =
		"{\"metadata\":{\"name\":\"agent\"},\"spec\":{\"nodeName\":\"node-1\","
		"\"serviceAccountName\":\"evenkeel-agent\",\"containers\":[{\"name\":\"c\","
		"\"image\":\"none\"}]}}";
	char *key_path = mem_printf("%s/aggregator.pub", folder),
	     *path = mem_printf("%s/token", folder), *body;
	struct buf answer = BUF_INIT;
	cJSON *map = object(MAP), *made, *token;

	assert_int_equal(control_plane_send(bed->plane, "POST", IN "/pods", pod, &answer), 201);
	made = cJSON_Parse(answer.data);
	body = mem_printf(
		"{\"spec\":{\"audiences\":[\"evenkeel-ingest\"],\"boundObjectRef\":{"
		"\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"agent\",\"uid\":\"%s\"}}}",
		json_at(made, "metadata.uid")->valuestring);
	assert_int_equal(control_plane_send(bed->plane, "POST",
					    IN "/serviceaccounts/evenkeel-agent/token", body,
					    &answer),
			 201);
	token = cJSON_Parse(answer.data);
	write_private(path, json_at(token, "status.token")->valuestring);
	write_private(key_path, cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(
					json_at(map, "data"), "aggregator.pub")));
	cJSON_Delete(map);
	cJSON_Delete(made);
	cJSON_Delete(token);
	buf_fini(&answer);
	free(body);
	free(path);
	free(key_path);
}

static bool is_measured(void *unused)
{
	cJSON *nodes = ask(&replicas[0], "nodes");
	const char *state =
		cJSON_GetStringValue(json_at(json_item(nodes, "node-1"), "source.state"));
	bool is = state && strcmp(state, "fresh") == 0;

	(void)unused;
	cJSON_Delete(nodes);
	return is;
}

static void test_agent_enrols(void **state)
{
	char *folder = folder_make(), *log = mem_printf("%s/agent.log", bed->folder);
	char *argv[] = {mem_strdup(program_path("evenkeel-agent")),
			mem_printf("--aggregator=tcp://127.0.0.1:%d", replicas[0].ingest_port),
			mem_printf("--aggregator-key=%s/aggregator.pub", folder),
			mem_printf("--kubernetes-token-file=%s/token", folder),
			mem_strdup("--node-name=node-1"),
			mem_strdup("--tier=T3"),
			mem_strdup("--interval=1s"),
			NULL};
	pid_t agent;
	bool measured;

	(void)state;
	mount(folder);
	agent = process_start(log, argv);
	measured = await(is_measured, NULL, SECONDS);
	print_message("          first measured node after %.1f s\n", since_applied());
	process_stop(agent, SIGTERM);
	assert_true(measured);
	for (size_t i = 0; argv[i]; i++)
		free(argv[i]);
	free(log);
	folder_remove(folder);
}

/* An API of another server, without our label. */
static void make_services(void)
{
	control_plane_must(
		bed->plane, "POST", SERVICES,
		"{\"metadata\":{\"name\":\"v1beta1.metrics.k8s.io\"},\"spec\":{\"group\":"
		"\"metrics.k8s.io\",\"version\":\"v1beta1\",\"insecureSkipTLSVerify\":true,"
		"\"groupPriorityMinimum\":100,\"versionPriority\":100,\"service\":{"
		"\"name\":\"metrics-server\",\"namespace\":\"kube-system\"}}}");
}

static void test_restart_keeps_them(void **state)
{
	static const char *const paths[] = {TLS, ENROLMENT, MAP};
	char *before[3], *after;
	cJSON *ours, *other, *secret;

	(void)state;
	make_services();
	for (size_t i = 0; i < 3; i++)
		before[i] = version(paths[i]);
	stop(&replicas[0]);
	renew_folder(&replicas[0]);
	start(&replicas[0]);
	await_ready(&replicas[0]);
	for (size_t i = 0; i < 3; i++) {
		after = version(paths[i]);
		assert_string_equal(before[i], after);
		free(before[i]);
		free(after);
	}
	ours = object(SERVICES "/v1.evenkeel.io");
	other = object(SERVICES "/v1beta1.metrics.k8s.io");
	secret = object(TLS);
	assert_string_equal(cJSON_GetStringValue(json_at(ours, "spec.caBundle")),
			    cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(
				    json_at(secret, "data"), "ca.crt")));
	assert_null(json_at(other, "spec.caBundle"));
	cJSON_Delete(ours);
	cJSON_Delete(other);
	cJSON_Delete(secret);
	stop(&replicas[0]);
}

/* Of two that start at once the first one's objects count. */
static void test_two_start_at_once(void **state)
{
	struct buf files[REPLICAS] = {BUF_INIT, BUF_INIT};
	struct error error;
	char *public_key, *name;

	(void)state;
	delete (TLS);
	delete (ENROLMENT);
	delete (MAP);
	for (int i = 0; i < REPLICAS; i++) {
		renew_folder(&replicas[i]);
		start(&replicas[i]);
	}
	for (int i = 0; i < REPLICAS; i++)
		await_ready(&replicas[i]);
	public_key = member(TLS, "tls.crt");
	for (int i = 0; i < REPLICAS; i++) {
		name = mem_printf("%s/tls.crt", replicas[i].folder);
		assert_int_equal(file_read(name, 1 << 20, &files[i], &error), 0);
		assert_string_equal(files[i].data, public_key);
		buf_clear(&files[i]);
		free(name);
		name = mem_printf("%s/enrolment.pub", replicas[i].folder);
		assert_int_equal(file_read(name, 1 << 20, &files[i], &error), 0);
		free(name);
	}
	assert_string_equal(files[0].data, files[1].data);
	for (int i = 0; i < REPLICAS; i++)
		buf_fini(&files[i]);
	free(public_key);
	stop(&replicas[1]);
}

/* --- renewal ---------------------------------------------------------------------------------- */

static bool is_renewed(void *former)
{
	char *now = member(TLS, "tls.crt");
	bool other = strcmp(now, former) != 0;

	free(now);
	return other;
}

/* To clients that trust the authority in the Secret. */
static bool is_answering(void *unused)
{
	cJSON *nodes = ask(&replicas[0], "nodes");
	bool answers = nodes != NULL;

	(void)unused;
	cJSON_Delete(nodes);
	return answers;
}

/* A running aggregator renews a certificate in its last month by the same authority. */
static void test_renewal(void **state)
{
	struct authority_set old = {0};
	char *text[4], *body, *ca;
	struct error error;

	(void)state;
	assert_int_equal(authority_issue(&old, "evenkeel-aggregator", "evenkeel",
					 clock_wall_ns() / NS_PER_SEC - 340 * DAY_S, &error),
			 0);
	const char *const pems[4] = {old.certificate, old.key, old.ca_certificate, old.ca_key};

	for (size_t i = 0; i < 4; i++) {
		size_t size =
			sodium_base64_ENCODED_LEN(strlen(pems[i]), sodium_base64_VARIANT_ORIGINAL);

		text[i] = mem_alloc(size);
		sodium_bin2base64(text[i], size, (const unsigned char *)pems[i], strlen(pems[i]),
				  sodium_base64_VARIANT_ORIGINAL);
	}
	body = mem_printf("{\"data\":{\"tls.crt\":\"%s\",\"tls.key\":\"%s\",\"ca.crt\":\"%s\","
			  "\"ca.key\":\"%s\"}}",
			  text[0], text[1], text[2], text[3]);
	control_plane_must(bed->plane, "PATCH", TLS, body);
	assert_true(await(is_renewed, old.certificate, RENEWAL_SECONDS));
	ca = member(TLS, "ca.crt");
	assert_string_equal(ca, old.ca_certificate);
	assert_true(await(is_answering, NULL, RENEWAL_SECONDS));
	stop(&replicas[0]);
	for (size_t i = 0; i < 4; i++)
		free(text[i]);
	free(ca);
	free(body);
	authority_fini(&old);
}

/* --- the key of enrolment ----------------------------------------------------------------------- */

static char *published;

static bool is_published_anew(void *unused)
{
	cJSON *map = object(MAP);
	const char *key = cJSON_GetStringValue(
		cJSON_GetObjectItemCaseSensitive(json_at(map, "data"), "aggregator.pub"));
	bool anew = key && strcmp(key, published) != 0;

	(void)unused;
	cJSON_Delete(map);
	return anew;
}

static bool is_used(void *folder)
{
	char *path = mem_printf("%s/enrolment.pub", (char *)folder);
	struct buf text = BUF_INIT;
	struct error ignored;
	cJSON *map = object(MAP);
	const char *key = cJSON_GetStringValue(
		cJSON_GetObjectItemCaseSensitive(json_at(map, "data"), "aggregator.pub"));
	bool used = !file_read(path, 4096, &text, &ignored) && key &&
		    strncmp(text.data, key, strlen(key)) == 0;

	cJSON_Delete(map);
	buf_fini(&text);
	free(path);
	return used;
}

/* A key that is added to the Secret is the running aggregator's, and agents get its public one. */
static void test_exchanged_key(void **state)
{
	cJSON *map = object(MAP);

	(void)state;
	published = mem_strdup(cJSON_GetStringValue(
		cJSON_GetObjectItemCaseSensitive(json_at(map, "data"), "aggregator.pub")));
	cJSON_Delete(map);
	control_plane_must(bed->plane, "PATCH", ENROLMENT,
			   "{\"data\":{\"99991231-000000\":"
			   "\"MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI=\"}}");
	assert_true(await(is_published_anew, NULL, RENEWAL_SECONDS));
	assert_true(await(is_used, replicas[0].folder, SECONDS));
	free(published);
}

/* --- failures --------------------------------------------------------------------------------- */

static void test_garbled_secrets_are_kept(void **state)
{
	char *before, *after;

	(void)state;
	control_plane_must(bed->plane, "PATCH", TLS, "{\"data\":{\"tls.crt\":\"bm9uZQ==\"}}");
	before = version(TLS);
	expect_failure(&replicas[0], "Secret evenkeel/evenkeel-tls cannot be used");
	after = version(TLS);
	assert_string_equal(before, after);
	free(before);
	free(after);
	delete (TLS);
	control_plane_must(bed->plane, "PATCH", ENROLMENT, "{\"data\":{\"0\":\"bm9uZQ==\"}}");
	expect_failure(&replicas[0], "0 is no key, which is 32 random bytes");
	delete (ENROLMENT);
}

static void test_missing_right(void **state)
{
	(void)state;
	delete (BINDINGS "/evenkeel-secrets");
	expect_failure(&replicas[0], "a right is missing, see secrets.yaml");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_prepared),
		cmocka_unit_test(test_agent_enrols),
		cmocka_unit_test(test_restart_keeps_them),
		cmocka_unit_test(test_two_start_at_once),
		cmocka_unit_test(test_exchanged_key),
		cmocka_unit_test(test_renewal),
		cmocka_unit_test(test_garbled_secrets_are_kept),
		cmocka_unit_test(test_missing_right),
	};
	int failed;

	if (sodium_init() < 0 || curl_global_init(CURL_GLOBAL_DEFAULT))
		return 1;
	bed = kube_testbed_new_bare();
	if (!bed)
		return 0;
	token_path = mem_printf("%s/token", bed->folder);
	for (int i = 0; i < REPLICAS; i++)
		replicas[i] = (struct replica){folder_make(), free_port(), free_port(), 0};
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	for (int i = 0; i < REPLICAS; i++) {
		if (replicas[i].pid)
			process_stop(replicas[i].pid, SIGKILL);
		if (failed)
			print_log(&replicas[i]);
		folder_remove(replicas[i].folder);
	}
	kube_testbed_free(bed, failed != 0);
	free(kubeconfig);
	free(token_path);
	curl_global_cleanup();
	return failed;
}
