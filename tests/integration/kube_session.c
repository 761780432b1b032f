/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions against an HTTPS server on the loopback: who is trusted, who we say we are, and what we say when neither works. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "aggregator/edge/kube/session_internal.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/process.h"
#include "tests/tls_server.h"
#include "tests/tunnel.h"

#define SECOND NS_PER_SEC

struct scene {
	char *folder;
	struct tls_identity ca, other_ca, server, elsewhere, ended, alice, bob;
	struct kube_config config;
	struct kube_session *session;
	struct tls_server *https;
	struct tls_request seen;
	CURL *handle;
	int64_t now_ns;
	struct reason why;
	char error[CURL_ERROR_SIZE];
};

static size_t drop(char *data, size_t size, size_t count, void *context)
{
	(void)data;
	(void)context;
	return size * count;
}

static int setup(void **state)
{
	struct scene *s = mem_zalloc(1, sizeof(*s));

	s->folder = folder_make();
	tls_identity_make(&s->ca, &(struct tls_wish){.name = "ca"});
	tls_identity_make(&s->other_ca, &(struct tls_wish){.name = "ca"});
	tls_identity_make(&s->server, &(struct tls_wish){.name = "kubernetes",
							 .dns = "kubernetes.example",
							 .address = "127.0.0.1",
							 .issuer = &s->ca});
	tls_identity_make(&s->elsewhere, &(struct tls_wish){.name = "kubernetes",
							    .dns = "kubernetes.example",
							    .issuer = &s->ca});
	tls_identity_make(&s->ended, &(struct tls_wish){.name = "kubernetes",
							.address = "127.0.0.1",
							.issuer = &s->ca,
							.ended = true});
	tls_identity_make(&s->alice, &(struct tls_wish){.name = "alice", .issuer = &s->ca});
	tls_identity_make(&s->bob, &(struct tls_wish){.name = "bob", .issuer = &s->ca});
	s->handle = curl_easy_init();
	curl_easy_setopt(s->handle, CURLOPT_WRITEFUNCTION, drop);
	curl_easy_setopt(s->handle, CURLOPT_ERRORBUFFER, s->error);
	curl_easy_setopt(s->handle, CURLOPT_TIMEOUT, 20L);
	s->now_ns = 1000 * SECOND;
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	curl_easy_cleanup(s->handle);
	kube_session_free(s->session);
	tls_server_stop(s->https);
	kube_config_fini(&s->config);
	tls_request_fini(&s->seen);
	tls_identity_fini(&s->ca);
	tls_identity_fini(&s->other_ca);
	tls_identity_fini(&s->server);
	tls_identity_fini(&s->elsewhere);
	tls_identity_fini(&s->ended);
	tls_identity_fini(&s->alice);
	tls_identity_fini(&s->bob);
	folder_remove(s->folder);
	free(s);
	return 0;
}

/* --- steps -------------------------------------------------------------------------------------------------- */

static void serve(struct scene *s, const struct tls_identity *id, const char *client_ca)
{
	s->https = tls_server_start(id, client_ca);
	s->config.server =
		mem_printf("http%s://127.0.0.1:%d", id ? "s" : "", tls_server_port(s->https));
	s->config.source = mem_strdup("the test");
	if (id)
		s->config.ca_data = mem_strdup(s->ca.certificate);
}

static int open_session(struct scene *s)
{
	kube_session_free(s->session);
	s->session = NULL;
	return kube_session_new(&s->session, &s->config, &s->why);
}

/* The status, or 0 with the reason. */
static long get(struct scene *s)
{
	long status = 0;
	CURLcode code;
	int rc = kube_session_prepare(s->session, s->handle, "/api/v1/pods", s->now_ns, &s->why);

	if (rc) {
		assert_int_equal(rc, -EACCES);
		return 0;
	}
	s->error[0] = '\0';
	code = curl_easy_perform(s->handle);
	if (code != CURLE_OK) {
		kube_session_explain(s->session, s->handle, code, s->error, &s->why);
		return 0;
	}
	curl_easy_getinfo(s->handle, CURLINFO_RESPONSE_CODE, &status);
	tls_request_fini(&s->seen);
	tls_server_seen(s->https, &s->seen);
	return status;
}

static void assert_says(const struct scene *s, const char *text)
{
	if (!strstr(s->why.text, text))
		fail_msg("\"%s\" is not in: %s", text, s->why.text);
}

static char *file_at(const struct scene *s, const char *name)
{
	return mem_printf("%s/%s", s->folder, name);
}

static void write_file(const struct scene *s, const char *name, const char *text)
{
	char *path = file_at(s, name);
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
	free(path);
}

/* --- trust -------------------------------------------------------------------------------------------------- */

static void asks_where_the_configuration_says(void **state)
{
	struct scene *s = *state;

	serve(s, &s->server, NULL);
	s->config.token = mem_strdup("secret-1");
	tls_server_demand(s->https, "secret-1", NULL);
	assert_int_equal(open_session(s), 0);
	assert_string_equal(kube_session_server(s->session), s->config.server);
	assert_int_equal(get(s), 200);
	assert_string_equal(s->seen.path, "/api/v1/pods");
	assert_string_equal(s->seen.authorization, "Bearer secret-1");
	assert_string_equal(s->seen.accept, "application/json");
}

static void keeps_the_path_of_the_server(void **state)
{
	struct scene *s = *state;
	char *server;

	serve(s, &s->server, NULL);
	server = mem_printf("%s/k8s/clusters/c-1/", s->config.server);
	free(s->config.server);
	s->config.server = server;
	assert_int_equal(open_session(s), 0);
	assert_int_equal(get(s), 200);
	assert_string_equal(s->seen.path, "/k8s/clusters/c-1/api/v1/pods");
}

static void refuses_a_server_of_another_authority(void **state)
{
	struct scene *s = *state;

	serve(s, &s->server, NULL);
	free(s->config.ca_data);
	s->config.ca_data = mem_strdup(s->other_ca.certificate);
	assert_int_equal(open_session(s), 0);
	assert_int_equal(get(s), 0);
	assert_says(s, s->config.server);
	assert_says(s, "the server's certificate is not signed by the certificate-authority-data "
		       "given");
	/* With the system's authorities it is no better. */
	free(s->config.ca_data);
	s->config.ca_data = NULL;
	assert_int_equal(open_session(s), 0);
	assert_int_equal(get(s), 0);
	assert_says(s, "is not signed by the certificate authorities of this system");
}

static void refuses_a_certificate_that_ended(void **state)
{
	struct scene *s = *state;

	serve(s, &s->ended, NULL);
	assert_int_equal(open_session(s), 0);
	assert_int_equal(get(s), 0);
	assert_says(s, "the server's certificate has ended");
}

static void refuses_a_server_of_another_name(void **state)
{
	struct scene *s = *state;

	serve(s, &s->elsewhere, NULL);
	assert_int_equal(open_session(s), 0);
	assert_int_equal(get(s), 0);
	assert_says(s, "the server's certificate is not for 127.0.0.1; see tls-server-name");

	s->config.tls_server_name = mem_strdup("another.example");
	assert_int_equal(open_session(s), 0);
	assert_int_equal(get(s), 0);
	assert_says(s, "the server's certificate is not for another.example");
}

static void verifies_by_tls_server_name(void **state)
{
	struct scene *s = *state;
	char *host;

	serve(s, &s->elsewhere, NULL);
	s->config.tls_server_name = mem_strdup("kubernetes.example");
	assert_int_equal(open_session(s), 0);
	assert_int_equal(get(s), 200);
	host = mem_printf("127.0.0.1:%d", tls_server_port(s->https));
	assert_string_equal(s->seen.host, host);
	assert_string_equal(s->seen.sni, "kubernetes.example");
	free(host);
}

static void trusts_anybody_only_when_told(void **state)
{
	struct scene *s = *state;

	serve(s, &s->ended, NULL);
	free(s->config.ca_data);
	s->config.ca_data = NULL;
	s->config.insecure_skip_tls_verify = true;
	assert_int_equal(open_session(s), 0);
	assert_int_equal(get(s), 200);
}

/* --- ways ---------------------------------------------------------------------------------------------------- */

/* The proxy is asked for the true address; only TLS inside of the tunnel knows the other name. */
static void goes_through_a_proxy(void **state)
{
	struct scene *s = *state;
	struct tunnel *tunnel;

	serve(s, &s->elsewhere, NULL);
	tunnel = tunnel_start(tls_server_port(s->https));
	s->config.proxy_url = mem_printf("http://127.0.0.1:%d", tunnel_port(tunnel));
	s->config.tls_server_name = mem_strdup("kubernetes.example");
	free(s->config.server);
	s->config.server = mem_strdup("https://192.0.2.1:6443");
	s->config.token = mem_strdup("secret");
	assert_int_equal(open_session(s), 0);
	assert_int_equal(get(s), 200);
	assert_string_equal(tunnel_asked(tunnel), "192.0.2.1:6443");
	assert_string_equal(s->seen.sni, "kubernetes.example");
	assert_string_equal(s->seen.host, "192.0.2.1:6443");
	assert_string_equal(s->seen.authorization, "Bearer secret");
	tunnel_stop(tunnel);
	s->now_ns += SECOND;
	assert_int_equal(open_session(s), 0);
	curl_easy_setopt(s->handle, CURLOPT_FRESH_CONNECT, 1L);
	assert_int_equal(get(s), 0);
	assert_says(s,
		    "https://192.0.2.1:6443: its proxy-url cannot be reached: Connection refused");
}

static void a_proxy_of_the_environment_is_not_for_this_machine(void **state)
{
	struct scene *s = *state;

	serve(s, &s->server, NULL);
	setenv("https_proxy", "http://127.0.0.1:1", 1);
	assert_int_equal(open_session(s), 0);
	assert_int_equal(get(s), 200);
	free(s->config.server);
	s->config.server = mem_strdup("https://192.0.2.1:6443");
	assert_int_equal(open_session(s), 0);
	assert_int_equal(get(s), 0);
	assert_says(s, "https://192.0.2.1:6443: ");
	assert_says(s, "Connection refused");
	unsetenv("https_proxy");
}

static void tells_who_cannot_be_reached(void **state)
{
	struct scene *s = *state;

	s->config.server = mem_printf("https://127.0.0.1:%d", free_port());
	assert_int_equal(open_session(s), 0);
	assert_int_equal(get(s), 0);
	assert_says(s, s->config.server);
	assert_says(s, ": cannot be reached: Connection refused");
}

/* --- client certificates ------------------------------------------------------------------------------------ */

static void use_certificate(struct scene *s, const struct tls_identity *id)
{
	write_file(s, "client.crt", id->certificate);
	write_file(s, "client.key", id->key);
}

static void shows_the_certificate_that_is_demanded(void **state)
{
	struct scene *s = *state;

	serve(s, &s->server, s->ca.certificate);
	tls_server_demand(s->https, NULL, "alice");
	assert_int_equal(open_session(s), 0);
	assert_int_equal(get(s), 401);
	s->config.client_certificate_data = mem_strdup(s->alice.certificate);
	s->config.client_key_data = mem_strdup(s->alice.key);
	assert_int_equal(open_session(s), 0);
	assert_int_equal(get(s), 200);
	assert_string_equal(s->seen.client, "alice");
}

/* The connection of the former certificate must not be used with the new one. */
static void exchanged_certificates_are_used_within_a_minute(void **state)
{
	struct scene *s = *state;

	serve(s, &s->server, s->ca.certificate);
	use_certificate(s, &s->alice);
	s->config.client_certificate_file = file_at(s, "client.crt");
	s->config.client_key_file = file_at(s, "client.key");
	assert_int_equal(open_session(s), 0);
	assert_int_equal(get(s), 200);
	assert_int_equal(get(s), 200);
	assert_string_equal(s->seen.client, "alice");
	assert_int_equal(s->seen.connections, 1);

	use_certificate(s, &s->bob);
	s->now_ns += 59 * SECOND;
	assert_int_equal(get(s), 200);
	assert_string_equal(s->seen.client, "alice");
	assert_int_equal(s->seen.connections, 1);
	s->now_ns += 1 * SECOND;
	assert_int_equal(get(s), 200);
	assert_string_equal(s->seen.client, "bob");
	assert_int_equal(s->seen.connections, 2);
}

/* Half exchanged: the key is another's. The former pair serves until the new one is whole. */
static void half_a_pair_waits_for_the_other_half(void **state)
{
	struct scene *s = *state;

	serve(s, &s->server, s->ca.certificate);
	use_certificate(s, &s->alice);
	s->config.client_certificate_file = file_at(s, "client.crt");
	s->config.client_key_file = file_at(s, "client.key");
	assert_int_equal(open_session(s), 0);
	assert_int_equal(get(s), 200);
	write_file(s, "client.crt", s->bob.certificate);
	s->now_ns += 61 * SECOND;
	assert_int_equal(get(s), 200);
	assert_string_equal(s->seen.client, "alice");
	/* Not so when the server refuses that one. */
	kube_session_unauthorized(s->session);
	assert_int_equal(get(s), 0);
	assert_says(s, "client certificate and key: ");
	use_certificate(s, &s->bob);
	assert_int_equal(get(s), 200);
	assert_string_equal(s->seen.client, "bob");
}

static void a_session_tells_which_file_is_of_no_use(void **state)
{
	struct scene *s = *state;

	s->config.server = mem_strdup("https://127.0.0.1:1");
	s->config.source = mem_strdup("kubeconfig");
	s->config.ca_file = file_at(s, "ca.crt");
	assert_int_equal(open_session(s), -EACCES);
	assert_says(s, "kubeconfig: certificate authority: ");
	assert_says(s, "/ca.crt: No such file or directory");
	write_file(s, "ca.crt", "-----BEGIN CERTIFICATE-----\nnone\n");
	assert_int_equal(open_session(s), -EACCES);
	assert_says(s, "kubeconfig: certificate authority: ");
	write_file(s, "ca.crt", "");
	assert_int_equal(open_session(s), -EACCES);
	assert_says(s, "kubeconfig: certificate authority: ");
	write_file(s, "ca.crt", s->ca.certificate);
	assert_int_equal(open_session(s), 0);
}

/* --- tokens ------------------------------------------------------------------------------------------------- */

/* As the kubelet does it: the new folder, and a link that is exchanged in one step. */
static void mount_token(const struct scene *s, const char *folder, const char *token)
{
	char *dir = file_at(s, folder), *link = file_at(s, "..data"), *fresh = file_at(s, "..new");
	char *file = mem_printf("%s/token", folder);

	assert_int_equal(mkdir(dir, 0700), 0);
	write_file(s, file, token);
	assert_int_equal(symlink(folder, fresh), 0);
	assert_int_equal(rename(fresh, link), 0);
	free(file);
	free(fresh);
	free(link);
	free(dir);
}

static void follow_token(struct scene *s)
{
	char *link = file_at(s, "token");

	assert_int_equal(symlink("..data/token", link), 0);
	s->config.token_file = link;
}

static void an_exchanged_token_is_used_within_a_minute(void **state)
{
	struct scene *s = *state;

	serve(s, &s->server, NULL);
	mount_token(s, "..1", "first\n");
	follow_token(s);
	assert_int_equal(open_session(s), 0);
	assert_int_equal(get(s), 200);
	assert_string_equal(s->seen.authorization, "Bearer first");
	mount_token(s, "..2", "second\n");
	s->now_ns += 59 * SECOND;
	assert_int_equal(get(s), 200);
	assert_string_equal(s->seen.authorization, "Bearer first");
	s->now_ns += 1 * SECOND;
	assert_int_equal(get(s), 200);
	assert_string_equal(s->seen.authorization, "Bearer second");
}

static void a_refused_token_is_read_again_at_once(void **state)
{
	struct scene *s = *state;

	serve(s, &s->server, NULL);
	mount_token(s, "..1", "first");
	follow_token(s);
	assert_int_equal(open_session(s), 0);
	assert_int_equal(get(s), 200);
	tls_server_demand(s->https, "second", NULL);
	mount_token(s, "..2", "second");
	assert_int_equal(get(s), 401);
	kube_session_unauthorized(s->session);
	assert_int_equal(get(s), 200);
}

static void a_vanished_token_serves_until_it_is_refused(void **state)
{
	struct scene *s = *state;
	char *link;

	serve(s, &s->server, NULL);
	mount_token(s, "..1", "first");
	follow_token(s);
	assert_int_equal(open_session(s), 0);
	assert_int_equal(get(s), 200);
	link = file_at(s, "..data");
	assert_int_equal(unlink(link), 0);
	free(link);
	s->now_ns += 61 * SECOND;
	assert_int_equal(get(s), 200);
	assert_string_equal(s->seen.authorization, "Bearer first");
	kube_session_unauthorized(s->session);
	assert_int_equal(get(s), 0);
	assert_says(s, "token: ");
	assert_says(s, "/token: No such file or directory");
	mount_token(s, "..2", "second");
	assert_int_equal(get(s), 200);
	assert_string_equal(s->seen.authorization, "Bearer second");
}

static void bad_token_files_are_refused(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{"", "/token: the token is empty"},
		{" \n\t\r\n", "/token: the token is empty"},
		{"secret\nX-Evil: 1", "/token: byte 7 of the token is no printable ASCII"},
		{"sec\x7fret", "/token: byte 4 of the token is no printable ASCII"},
		{"secr\xc3\xa9t", "/token: byte 5 of the token is no printable ASCII"},
	};
	struct scene *s = *state;
	char *large = mem_alloc(16384 + 2);

	s->config.server = mem_strdup("https://127.0.0.1:1");
	s->config.token_file = file_at(s, "token");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		write_file(s, "token", rows[i].text);
		assert_int_equal(open_session(s), -EACCES);
		assert_says(s, rows[i].says);
		assert_null(strstr(s->why.text, "secr"));
	}
	memset(large, 'a', 16384 + 1);
	large[16384 + 1] = '\0';
	write_file(s, "token", large);
	assert_int_equal(open_session(s), -EACCES);
	assert_says(s, "/token: the token is longer than 16 KiB");
	write_file(s, "token", large + 1);
	assert_int_equal(open_session(s), 0);
	free(large);
}

static void a_token_does_not_travel_in_clear(void **state)
{
	struct scene *s = *state;

	s->config.server = mem_strdup("http://192.0.2.1:8080");
	assert_int_equal(open_session(s), 0);
	s->config.token = mem_strdup("secret");
	assert_int_equal(open_session(s), -EINVAL);
	assert_says(s, "server: http://192.0.2.1:8080 is not https, and a token would travel in "
		       "clear");
	/* On this machine it may. */
	free(s->config.server);
	serve(s, NULL, NULL);
	assert_int_equal(open_session(s), 0);
	assert_int_equal(get(s), 200);
	assert_string_equal(s->seen.authorization, "Bearer secret");
}

/* --- exec plugins ------------------------------------------------------------------------------------------- */

#define V1 "client.authentication.k8s.io/v1"
#define ANSWER(status)                                                                             \
	"{\"apiVersion\":\"" V1 "\",\"kind\":\"ExecCredential\",\"status\":{" status "}}"

/* A script that notes each of its runs in the file runs, and then does what body says, in its folder. */
static void install_plugin(struct scene *s, const char *body)
{
	char *script = mem_printf("#!/bin/sh\ncd '%s'\necho run >> runs\n%s\n", s->folder, body);

	write_file(s, "plugin", script);
	free(script);
	if (!s->config.exec_command) {
		s->config.exec_command = file_at(s, "plugin");
		s->config.exec_api_version = mem_strdup(V1);
	}
	assert_int_equal(chmod(s->config.exec_command, 0700), 0);
}

static char *read_file(const struct scene *s, const char *name)
{
	char *path = file_at(s, name), text[65536];
	FILE *f = fopen(path, "r");
	size_t len = f ? fread(text, 1, sizeof(text), f) : 0;

	free(path);
	if (f)
		fclose(f);
	return mem_strndup(text, len);
}

static size_t count_runs(const struct scene *s)
{
	char *text = read_file(s, "runs");
	size_t len = strlen(text);

	free(text);
	return len / strlen("run\n");
}

static void a_plugin_gives_a_token(void **state)
{
	struct scene *s = *state;

	serve(s, &s->server, NULL);
	install_plugin(s, "echo '" ANSWER("\"token\":\"from-plugin\"") "'");
	assert_int_equal(open_session(s), 0);
	assert_int_equal(count_runs(s), 0);
	assert_int_equal(get(s), 200);
	assert_string_equal(s->seen.authorization, "Bearer from-plugin");
	/* It told no end, so it is not asked again until the server refuses. */
	s->now_ns += 86400 * SECOND;
	assert_int_equal(get(s), 200);
	assert_int_equal(count_runs(s), 1);
	kube_session_unauthorized(s->session);
	assert_int_equal(get(s), 200);
	assert_int_equal(count_runs(s), 2);
	/* The newest is what it would give anyway. */
	kube_session_unauthorized(s->session);
	s->now_ns += 9 * SECOND;
	assert_int_equal(get(s), 200);
	assert_int_equal(count_runs(s), 2);
	kube_session_unauthorized(s->session);
	s->now_ns += 1 * SECOND;
	assert_int_equal(get(s), 200);
	assert_int_equal(count_runs(s), 3);
}

static void a_plugin_runs_again_before_its_credential_ends(void **state)
{
	struct scene *s = *state;

	serve(s, &s->server, NULL);
	install_plugin(s,
		       "end=$(date -u -d '+1000 seconds' +%Y-%m-%dT%H:%M:%SZ)\n"
		       "printf '" ANSWER("\"token\":\"t\",\"expirationTimestamp\":\"%s\"") "' "
											   "$end");
	assert_int_equal(open_session(s), 0);
	assert_int_equal(get(s), 200);
	s->now_ns += 900 * SECOND;
	assert_int_equal(get(s), 200);
	assert_int_equal(count_runs(s), 1);
	s->now_ns += 40 * SECOND;
	assert_int_equal(get(s), 200);
	assert_int_equal(count_runs(s), 2);
	/* One that fails does no harm before the end, and rests after each failure. */
	install_plugin(s, "exit 1");
	s->now_ns += 941 * SECOND;
	assert_int_equal(get(s), 200);
	assert_int_equal(get(s), 200);
	assert_int_equal(count_runs(s), 3);
	s->now_ns += 60 * SECOND;
	assert_int_equal(get(s), 0);
	assert_says(s, "/plugin: failed with exit status 1");
	assert_int_equal(count_runs(s), 4);
	assert_int_equal(get(s), 0);
	assert_int_equal(count_runs(s), 4);
}

static void a_plugin_gives_a_certificate(void **state)
{
	struct scene *s = *state;

	serve(s, &s->server, s->ca.certificate);
	use_certificate(s, &s->bob);
	install_plugin(s, "crt=$(awk '{printf \"%s\\\\n\", $0}' client.crt)\n"
			  "key=$(awk '{printf \"%s\\\\n\", $0}' client.key)\n"
			  "cat <<END\n" ANSWER("\"clientCertificateData\":\"$crt\","
					       "\"clientKeyData\":\"$key\"") "\nEND");
	assert_int_equal(open_session(s), 0);
	assert_int_equal(get(s), 200);
	assert_string_equal(s->seen.client, "bob");
	assert_string_equal(s->seen.authorization, "");
	/* Another's key: not a credential. */
	kube_session_unauthorized(s->session);
	write_file(s, "client.key", s->alice.key);
	s->now_ns += 10 * SECOND;
	assert_int_equal(get(s), 0);
	assert_says(s, "/plugin: client certificate and key: ");
}

static void a_plugin_is_told_what_it_needs(void **state)
{
	static char *arguments[] = {"get token", "$(reboot)", NULL};
	static char *variables[] = {"WHO=alice", "HOME=/elsewhere", NULL};
	struct scene *s = *state;
	char *text;

	serve(s, &s->server, NULL);
	install_plugin(s, "echo \"$#|$1|$2|$WHO|$HOME\" > told\n"
			  "echo \"$KUBERNETES_EXEC_INFO\" > info\n"
			  "read -r line && echo \"$line\" >> told\n"
			  "echo '" ANSWER("\"token\":\"t\"") "'");
	s->config.exec_args = arguments;
	s->config.exec_env = variables;
	s->config.exec_provide_cluster_info = true;
	s->config.tls_server_name = mem_strdup("kubernetes.example");
	assert_int_equal(open_session(s), 0);
	s->config.exec_args = s->config.exec_env = NULL;
	assert_int_equal(get(s), 200);
	text = read_file(s, "told");
	assert_string_equal(text, "2|get token|$(reboot)|alice|/elsewhere\n");
	free(text);
	text = read_file(s, "info");
	assert_non_null(strstr(text, "{\"apiVersion\":\"" V1 "\",\"kind\":\"ExecCredential\","
				     "\"spec\":{\"cluster\":{\"server\":\"https://127.0.0.1:"));
	assert_non_null(strstr(text, "\"tls-server-name\":\"kubernetes.example\","
				     "\"certificate-authority-data\":\"LS0tLS1CRUdJTi"));
	assert_non_null(strstr(text, "},\"interactive\":false}}\n"));
	free(text);
}

static void bad_plugins_are_named_with_what_they_said(void **state)
{
	static const struct {
		const char *body, *says;
	} rows[] = {
		{"echo first >&2; echo 'no login: run aws sso login' >&2; exit 3",
		 "/plugin: failed with exit status 3: no login: run aws sso login"},
		{"kill -9 $$", "/plugin: was ended by signal 9"},
		{"echo hello", "/plugin: printed what is no credential: not a JSON object"},
		{"exit 0", "/plugin: printed what is no credential: not a JSON object"},
		{"echo '{}'", "/plugin: printed what is no credential: not an ExecCredential"},
		{"echo '" ANSWER("") "'",
		 "/plugin: printed what is no credential: neither a token nor a certificate"},
		{"echo '" ANSWER("\"token\":\"a b\"") "'",
		 "/plugin: printed what is no credential: byte 2 of the token is no printable "
		 "ASCII"},
		{"end=$(date -u -d '-100 seconds' +%Y-%m-%dT%H:%M:%SZ)\n"
		 "printf '" ANSWER("\"token\":\"t\",\"expirationTimestamp\":\"%s\"") "' $end",
		 "/plugin: its credential ended 10"},
		{"yes", "/plugin: printed more than 256 KiB and was killed"},
		{"yes >&2", "/plugin: did not end within 0.5s and was killed"},
		{"exec >&- 2>&-; exec sleep 1000",
		 "/plugin: did not end within 0.5s and was killed"},
	};
	struct scene *s = *state;

	s->config.server = mem_strdup("https://127.0.0.1:1");
	install_plugin(s, "");
	assert_int_equal(open_session(s), 0);
	kube_session_limit_exec(s->session, SECOND / 2);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		/* Only the last two need so little time; a loaded machine may need more for the others. */
		bool hangs = strstr(rows[i].says, "did not end");

		kube_session_limit_exec(s->session, hangs ? SECOND / 2 : 30 * SECOND);
		install_plugin(s, rows[i].body);
		s->now_ns += 1000 * SECOND;
		assert_int_equal(get(s), 0);
		assert_says(s, "exec plugin /");
		assert_says(s, rows[i].says);
	}
}

static void a_missing_plugin_is_told_with_its_hint(void **state)
{
	struct scene *s = *state;

	s->config.server = mem_strdup("https://127.0.0.1:1");
	s->config.exec_command = mem_strdup("evenkeel-no-such-plugin");
	s->config.exec_api_version = mem_strdup(V1);
	assert_int_equal(open_session(s), 0);
	assert_int_equal(get(s), 0);
	assert_says(s, "exec plugin evenkeel-no-such-plugin: cannot be run: No such file or "
		       "directory");
	s->config.exec_install_hint = mem_strdup("get it\nfrom the shop");
	assert_int_equal(open_session(s), 0);
	assert_int_equal(get(s), 0);
	assert_says(s, "exec plugin evenkeel-no-such-plugin: is not installed: get it from the "
		       "shop");
}

static bool is_gone(void *context)
{
	char path[64], stat[512] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", *(const int *)context);
	f = fopen(path, "r");
	if (!f)
		return true;
	(void)!fread(stat, 1, sizeof(stat) - 1, f);
	fclose(f);
	return strstr(stat, ") Z ") != NULL;
}

static int read_pid(const struct scene *s)
{
	char *text = read_file(s, "pid");
	int pid = (int)strtol(text, NULL, 10);

	free(text);
	return pid;
}

/* A hanging plugin is killed with what it started. */
static void a_hanging_plugin_leaves_nothing_behind(void **state)
{
	struct scene *s = *state;
	int pid;

	s->config.server = mem_strdup("https://127.0.0.1:1");
	install_plugin(s, "sleep 1000 & echo $! > pid; mv pid pid2; mv pid2 pid; wait");
	assert_int_equal(open_session(s), 0);
	kube_session_limit_exec(s->session, SECOND);
	assert_int_equal(get(s), 0);
	assert_says(s, "/plugin: did not end within 1s and was killed");
	pid = read_pid(s);
	/* On a machine that needs a second to start a shell there is nothing to look for. */
	if (pid > 0)
		assert_true(await(is_gone, &pid, 10));
}

/* What a plugin leaves running, with its stdout still open, does not keep anybody waiting. */
static void a_plugin_may_leave_a_helper(void **state)
{
	struct scene *s = *state;
	int pid;

	serve(s, &s->server, NULL);
	install_plugin(s, "sleep 1000 & echo $! > pid; echo '" ANSWER("\"token\":\"t\"") "'");
	assert_int_equal(open_session(s), 0);
	assert_int_equal(get(s), 200);
	pid = read_pid(s);
	assert_true(pid > 0);
	assert_false(is_gone(&pid));
	kill(pid, SIGKILL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(asks_where_the_configuration_says, setup, teardown),
		cmocka_unit_test_setup_teardown(keeps_the_path_of_the_server, setup, teardown),
		cmocka_unit_test_setup_teardown(refuses_a_server_of_another_authority, setup,
						teardown),
		cmocka_unit_test_setup_teardown(refuses_a_certificate_that_ended, setup, teardown),
		cmocka_unit_test_setup_teardown(refuses_a_server_of_another_name, setup, teardown),
		cmocka_unit_test_setup_teardown(verifies_by_tls_server_name, setup, teardown),
		cmocka_unit_test_setup_teardown(trusts_anybody_only_when_told, setup, teardown),
		cmocka_unit_test_setup_teardown(goes_through_a_proxy, setup, teardown),
		cmocka_unit_test_setup_teardown(a_proxy_of_the_environment_is_not_for_this_machine,
						setup, teardown),
		cmocka_unit_test_setup_teardown(tells_who_cannot_be_reached, setup, teardown),
		cmocka_unit_test_setup_teardown(shows_the_certificate_that_is_demanded, setup,
						teardown),
		cmocka_unit_test_setup_teardown(exchanged_certificates_are_used_within_a_minute,
						setup, teardown),
		cmocka_unit_test_setup_teardown(half_a_pair_waits_for_the_other_half, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_session_tells_which_file_is_of_no_use, setup,
						teardown),
		cmocka_unit_test_setup_teardown(an_exchanged_token_is_used_within_a_minute, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_refused_token_is_read_again_at_once, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_vanished_token_serves_until_it_is_refused, setup,
						teardown),
		cmocka_unit_test_setup_teardown(bad_token_files_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(a_token_does_not_travel_in_clear, setup, teardown),
		cmocka_unit_test_setup_teardown(a_plugin_gives_a_token, setup, teardown),
		cmocka_unit_test_setup_teardown(a_plugin_runs_again_before_its_credential_ends,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_plugin_gives_a_certificate, setup, teardown),
		cmocka_unit_test_setup_teardown(a_plugin_is_told_what_it_needs, setup, teardown),
		cmocka_unit_test_setup_teardown(bad_plugins_are_named_with_what_they_said, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_missing_plugin_is_told_with_its_hint, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_hanging_plugin_leaves_nothing_behind, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_plugin_may_leave_a_helper, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
