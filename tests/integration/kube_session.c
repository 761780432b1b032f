/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions against an HTTPS server on the loopback: who is trusted, who we say we are, and what we
 * say when neither works.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shared/mem.h"
#include "tests/kube_scene.h"
#include "tests/process.h"
#include "tests/tunnel.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, kube_scene_setup, kube_scene_teardown)

/* --- trust ------------------------------------------------------------------------------------ */

static void asks_where_the_configuration_says(void **state)
{
	struct kube_scene *s = *state;

	kube_scene_serve(s, &s->server, NULL);
	s->config.token = mem_strdup("secret-1");
	tls_server_demand(s->https, "secret-1", NULL);
	assert_int_equal(kube_scene_open(s), 0);
	assert_string_equal(kube_session_server(s->session), s->config.server);
	assert_int_equal(kube_scene_get(s), 200);
	assert_string_equal(s->seen.path, "/api/v1/pods");
	assert_string_equal(s->seen.authorization, "Bearer secret-1");
	assert_string_equal(s->seen.accept,
			    "application/json;drop=metadata.managedFields, application/json");
}

static void keeps_the_path_of_the_server(void **state)
{
	struct kube_scene *s = *state;
	char *server;

	kube_scene_serve(s, &s->server, NULL);
	server = mem_printf("%s/k8s/clusters/c-1/", s->config.server);
	free(s->config.server);
	s->config.server = server;
	assert_int_equal(kube_scene_open(s), 0);
	assert_int_equal(kube_scene_get(s), 200);
	assert_string_equal(s->seen.path, "/k8s/clusters/c-1/api/v1/pods");
}

static void refuses_a_server_of_another_authority(void **state)
{
	struct kube_scene *s = *state;

	kube_scene_serve(s, &s->server, NULL);
	free(s->config.ca_data);
	s->config.ca_data = mem_strdup(s->other_ca.certificate);
	assert_int_equal(kube_scene_open(s), 0);
	assert_int_equal(kube_scene_get(s), 0);
	kube_scene_assert_says(s, s->config.server);
	kube_scene_assert_says(
		s, "the server's certificate is not signed by the certificate-authority-data "
		   "given");
	/* With the system's authorities it is no better. */
	free(s->config.ca_data);
	s->config.ca_data = NULL;
	assert_int_equal(kube_scene_open(s), 0);
	assert_int_equal(kube_scene_get(s), 0);
	kube_scene_assert_says(s, "is not signed by the certificate authorities of this system");
}

static void refuses_a_certificate_that_ended(void **state)
{
	struct kube_scene *s = *state;

	kube_scene_serve(s, &s->ended, NULL);
	assert_int_equal(kube_scene_open(s), 0);
	assert_int_equal(kube_scene_get(s), 0);
	kube_scene_assert_says(s, "the server's certificate has ended");
}

static void refuses_a_server_of_another_name(void **state)
{
	struct kube_scene *s = *state;

	kube_scene_serve(s, &s->elsewhere, NULL);
	assert_int_equal(kube_scene_open(s), 0);
	assert_int_equal(kube_scene_get(s), 0);
	kube_scene_assert_says(
		s, "the server's certificate is not for 127.0.0.1; see tls-server-name");

	s->config.tls_server_name = mem_strdup("another.example");
	assert_int_equal(kube_scene_open(s), 0);
	assert_int_equal(kube_scene_get(s), 0);
	kube_scene_assert_says(s, "the server's certificate is not for another.example");
}

static void verifies_by_tls_server_name(void **state)
{
	struct kube_scene *s = *state;
	char *host;

	kube_scene_serve(s, &s->elsewhere, NULL);
	s->config.tls_server_name = mem_strdup("kubernetes.example");
	assert_int_equal(kube_scene_open(s), 0);
	assert_int_equal(kube_scene_get(s), 200);
	host = mem_printf("127.0.0.1:%d", tls_server_port(s->https));
	assert_string_equal(s->seen.host, host);
	assert_string_equal(s->seen.sni, "kubernetes.example");
	free(host);
}

static void trusts_anybody_only_when_told(void **state)
{
	struct kube_scene *s = *state;

	kube_scene_serve(s, &s->ended, NULL);
	free(s->config.ca_data);
	s->config.ca_data = NULL;
	s->config.insecure_skip_tls_verify = true;
	assert_int_equal(kube_scene_open(s), 0);
	assert_int_equal(kube_scene_get(s), 200);
}

/* --- ways ------------------------------------------------------------------------------------- */

/* The proxy is asked for the true address; only TLS inside of the tunnel knows the other name. */
static void goes_through_a_proxy(void **state)
{
	struct kube_scene *s = *state;
	struct tunnel *tunnel;

	kube_scene_serve(s, &s->elsewhere, NULL);
	tunnel = tunnel_start(tls_server_port(s->https));
	s->config.proxy_url = mem_printf("http://127.0.0.1:%d", tunnel_port(tunnel));
	s->config.tls_server_name = mem_strdup("kubernetes.example");
	free(s->config.server);
	s->config.server = mem_strdup("https://192.0.2.1:6443");
	s->config.token = mem_strdup("secret");
	assert_int_equal(kube_scene_open(s), 0);
	assert_int_equal(kube_scene_get(s), 200);
	assert_string_equal(tunnel_asked(tunnel), "192.0.2.1:6443");
	assert_string_equal(s->seen.sni, "kubernetes.example");
	assert_string_equal(s->seen.host, "192.0.2.1:6443");
	assert_string_equal(s->seen.authorization, "Bearer secret");
	tunnel_stop(tunnel);
	s->now_ns += SECOND;
	assert_int_equal(kube_scene_open(s), 0);
	curl_easy_setopt(s->handle, CURLOPT_FRESH_CONNECT, 1L);
	assert_int_equal(kube_scene_get(s), 0);
	kube_scene_assert_says(
		s, "https://192.0.2.1:6443: its proxy-url cannot be reached: Connection refused");
}

static void a_proxy_of_the_environment_is_not_for_this_machine(void **state)
{
	struct kube_scene *s = *state;

	kube_scene_serve(s, &s->server, NULL);
	setenv("https_proxy", "http://127.0.0.1:1", 1);
	assert_int_equal(kube_scene_open(s), 0);
	assert_int_equal(kube_scene_get(s), 200);
	free(s->config.server);
	s->config.server = mem_strdup("https://192.0.2.1:6443");
	assert_int_equal(kube_scene_open(s), 0);
	assert_int_equal(kube_scene_get(s), 0);
	kube_scene_assert_says(s, "https://192.0.2.1:6443: ");
	kube_scene_assert_says(s, "Connection refused");
	unsetenv("https_proxy");
}

static void tells_who_cannot_be_reached(void **state)
{
	struct kube_scene *s = *state;

	s->config.server = mem_printf("https://127.0.0.1:%d", free_port());
	assert_int_equal(kube_scene_open(s), 0);
	assert_int_equal(kube_scene_get(s), 0);
	kube_scene_assert_says(s, s->config.server);
	kube_scene_assert_says(s, ": cannot be reached: Connection refused");
}

/* --- client certificates ---------------------------------------------------------------------- */

static void shows_the_certificate_that_is_demanded(void **state)
{
	struct kube_scene *s = *state;

	kube_scene_serve(s, &s->server, s->ca.certificate);
	tls_server_demand(s->https, NULL, "alice");
	assert_int_equal(kube_scene_open(s), 0);
	assert_int_equal(kube_scene_get(s), 401);
	s->config.client_certificate_data = mem_strdup(s->alice.certificate);
	s->config.client_key_data = mem_strdup(s->alice.key);
	assert_int_equal(kube_scene_open(s), 0);
	assert_int_equal(kube_scene_get(s), 200);
	assert_string_equal(s->seen.client, "alice");
}

/* The connection of the former certificate must not be used with the new one. */
static void exchanged_certificates_are_used_within_a_minute(void **state)
{
	struct kube_scene *s = *state;

	kube_scene_serve(s, &s->server, s->ca.certificate);
	kube_scene_write_client(s, &s->alice);
	s->config.client_certificate_file = kube_scene_path(s, "client.crt");
	s->config.client_key_file = kube_scene_path(s, "client.key");
	assert_int_equal(kube_scene_open(s), 0);
	assert_int_equal(kube_scene_get(s), 200);
	assert_int_equal(kube_scene_get(s), 200);
	assert_string_equal(s->seen.client, "alice");
	assert_int_equal(s->seen.connections, 1);

	kube_scene_write_client(s, &s->bob);
	s->now_ns += 59 * SECOND;
	assert_int_equal(kube_scene_get(s), 200);
	assert_string_equal(s->seen.client, "alice");
	assert_int_equal(s->seen.connections, 1);
	s->now_ns += 1 * SECOND;
	assert_int_equal(kube_scene_get(s), 200);
	assert_string_equal(s->seen.client, "bob");
	assert_int_equal(s->seen.connections, 2);
	/* Read again, but the same: no reason for another connection. */
	s->now_ns += 61 * SECOND;
	assert_int_equal(kube_scene_get(s), 200);
	assert_int_equal(s->seen.connections, 2);
}

static void a_request_prepared_before_an_exchange_still_connects(void **state)
{
	struct kube_scene *s = *state;
	CURL *other = curl_easy_init();

	kube_scene_serve(s, &s->server, s->ca.certificate);
	kube_scene_write_client(s, &s->alice);
	s->config.client_certificate_file = kube_scene_path(s, "client.crt");
	s->config.client_key_file = kube_scene_path(s, "client.key");
	assert_int_equal(kube_scene_open(s), 0);
	assert_int_equal(kube_session_prepare(s->session, s->handle, "/", s->now_ns, &s->why), 0);
	for (int i = 0; i < 3; i++) {
		kube_scene_write_client(s, i % 2 ? &s->alice : &s->bob);
		s->now_ns += 61 * SECOND;
		assert_int_equal(kube_session_prepare(s->session, other, "/", s->now_ns, &s->why),
				 0);
	}
	assert_int_equal(curl_easy_perform(s->handle), CURLE_OK);
	tls_server_seen(s->https, &s->seen);
	assert_string_equal(s->seen.client, "alice");
	curl_easy_cleanup(other);
}

/* Half exchanged: the key is another's. The former pair serves until the new one is whole. */
static void half_a_pair_waits_for_the_other_half(void **state)
{
	struct kube_scene *s = *state;

	kube_scene_serve(s, &s->server, s->ca.certificate);
	kube_scene_write_client(s, &s->alice);
	s->config.client_certificate_file = kube_scene_path(s, "client.crt");
	s->config.client_key_file = kube_scene_path(s, "client.key");
	assert_int_equal(kube_scene_open(s), 0);
	assert_int_equal(kube_scene_get(s), 200);
	kube_scene_write(s, "client.crt", s->bob.certificate);
	s->now_ns += 61 * SECOND;
	assert_int_equal(kube_scene_get(s), 200);
	assert_string_equal(s->seen.client, "alice");
	/* Not so when the server refuses that one. */
	kube_session_unauthorized(s->session);
	assert_int_equal(kube_scene_get(s), 0);
	kube_scene_assert_says(s, "client certificate and key: ");
	kube_scene_write_client(s, &s->bob);
	assert_int_equal(kube_scene_get(s), 200);
	assert_string_equal(s->seen.client, "bob");
}

static void a_session_tells_which_file_is_of_no_use(void **state)
{
	struct kube_scene *s = *state;

	s->config.server = mem_strdup("https://127.0.0.1:1");
	s->config.source = mem_strdup("kubeconfig");
	s->config.ca_file = kube_scene_path(s, "ca.crt");
	assert_int_equal(kube_scene_open(s), -EACCES);
	kube_scene_assert_says(s, "kubeconfig: certificate authority: ");
	kube_scene_assert_says(s, "/ca.crt: No such file or directory");
	kube_scene_write(s, "ca.crt", "-----BEGIN CERTIFICATE-----\nnone\n");
	assert_int_equal(kube_scene_open(s), -EACCES);
	kube_scene_assert_says(s, "kubeconfig: certificate authority: ");
	kube_scene_write(s, "ca.crt", "");
	assert_int_equal(kube_scene_open(s), -EACCES);
	kube_scene_assert_says(s, "kubeconfig: certificate authority: ");
	kube_scene_write(s, "ca.crt", s->ca.certificate);
	assert_int_equal(kube_scene_open(s), 0);
}

/* --- tokens ----------------------------------------------------------------------------------- */

/* As the kubelet does it: the new folder, and a link that is exchanged in one step. */
static void mount_token(const struct kube_scene *s, const char *folder, const char *token)
{
	char *dir = kube_scene_path(s, folder), *link = kube_scene_path(s, "..data"),
	     *fresh = kube_scene_path(s, "..new");
	char *file = mem_printf("%s/token", folder);

	assert_int_equal(mkdir(dir, 0700), 0);
	kube_scene_write(s, file, token);
	assert_int_equal(symlink(folder, fresh), 0);
	assert_int_equal(rename(fresh, link), 0);
	free(file);
	free(fresh);
	free(link);
	free(dir);
}

static void follow_token(struct kube_scene *s)
{
	char *link = kube_scene_path(s, "token");

	assert_int_equal(symlink("..data/token", link), 0);
	s->config.token_file = link;
}

static void an_exchanged_token_is_used_within_a_minute(void **state)
{
	struct kube_scene *s = *state;

	kube_scene_serve(s, &s->server, NULL);
	mount_token(s, "..1", "first\n");
	follow_token(s);
	assert_int_equal(kube_scene_open(s), 0);
	assert_int_equal(kube_scene_get(s), 200);
	assert_string_equal(s->seen.authorization, "Bearer first");
	mount_token(s, "..2", "second\n");
	s->now_ns += 59 * SECOND;
	assert_int_equal(kube_scene_get(s), 200);
	assert_string_equal(s->seen.authorization, "Bearer first");
	s->now_ns += 1 * SECOND;
	assert_int_equal(kube_scene_get(s), 200);
	assert_string_equal(s->seen.authorization, "Bearer second");
}

static void a_refused_token_is_read_again_at_once(void **state)
{
	struct kube_scene *s = *state;

	kube_scene_serve(s, &s->server, NULL);
	mount_token(s, "..1", "first");
	follow_token(s);
	assert_int_equal(kube_scene_open(s), 0);
	assert_int_equal(kube_scene_get(s), 200);
	tls_server_demand(s->https, "second", NULL);
	mount_token(s, "..2", "second");
	assert_int_equal(kube_scene_get(s), 401);
	kube_session_unauthorized(s->session);
	assert_int_equal(kube_scene_get(s), 200);
}

static void a_vanished_token_serves_until_it_is_refused(void **state)
{
	struct kube_scene *s = *state;
	char *link;

	kube_scene_serve(s, &s->server, NULL);
	mount_token(s, "..1", "first");
	follow_token(s);
	assert_int_equal(kube_scene_open(s), 0);
	assert_int_equal(kube_scene_get(s), 200);
	link = kube_scene_path(s, "..data");
	assert_int_equal(unlink(link), 0);
	free(link);
	s->now_ns += 61 * SECOND;
	assert_int_equal(kube_scene_get(s), 200);
	assert_string_equal(s->seen.authorization, "Bearer first");
	kube_session_unauthorized(s->session);
	assert_int_equal(kube_scene_get(s), 0);
	kube_scene_assert_says(s, "token: ");
	kube_scene_assert_says(s, "/token: No such file or directory");
	mount_token(s, "..2", "second");
	assert_int_equal(kube_scene_get(s), 200);
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
	struct kube_scene *s = *state;
	char *large = mem_alloc(16384 + 2);

	s->config.server = mem_strdup("https://127.0.0.1:1");
	s->config.token_file = kube_scene_path(s, "token");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		kube_scene_write(s, "token", rows[i].text);
		assert_int_equal(kube_scene_open(s), -EACCES);
		kube_scene_assert_says(s, rows[i].says);
		assert_null(strstr(s->why.text, "secr"));
	}
	memset(large, 'a', 16384 + 1);
	large[16384 + 1] = '\0';
	kube_scene_write(s, "token", large);
	assert_int_equal(kube_scene_open(s), -EACCES);
	kube_scene_assert_says(s, "/token: the token is longer than 16 KiB");
	kube_scene_write(s, "token", large + 1);
	assert_int_equal(kube_scene_open(s), 0);
	free(large);
}

static void a_token_does_not_travel_in_clear(void **state)
{
	struct kube_scene *s = *state;

	s->config.server = mem_strdup("http://192.0.2.1:8080");
	assert_int_equal(kube_scene_open(s), 0);
	s->config.token = mem_strdup("secret");
	assert_int_equal(kube_scene_open(s), -EINVAL);
	kube_scene_assert_says(
		s, "server: http://192.0.2.1:8080 is not https, and a token would travel in "
		   "clear");
	/* On this machine it may. */
	free(s->config.server);
	kube_scene_serve(s, NULL, NULL);
	assert_int_equal(kube_scene_open(s), 0);
	assert_int_equal(kube_scene_get(s), 200);
	assert_string_equal(s->seen.authorization, "Bearer secret");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(asks_where_the_configuration_says),
		TEST(keeps_the_path_of_the_server),
		TEST(refuses_a_server_of_another_authority),
		TEST(refuses_a_certificate_that_ended),
		TEST(refuses_a_server_of_another_name),
		TEST(verifies_by_tls_server_name),
		TEST(trusts_anybody_only_when_told),
		TEST(goes_through_a_proxy),
		TEST(a_proxy_of_the_environment_is_not_for_this_machine),
		TEST(tells_who_cannot_be_reached),
		TEST(shows_the_certificate_that_is_demanded),
		TEST(exchanged_certificates_are_used_within_a_minute),
		TEST(a_request_prepared_before_an_exchange_still_connects),
		TEST(half_a_pair_waits_for_the_other_half),
		TEST(a_session_tells_which_file_is_of_no_use),
		TEST(an_exchanged_token_is_used_within_a_minute),
		TEST(a_refused_token_is_read_again_at_once),
		TEST(a_vanished_token_serves_until_it_is_refused),
		TEST(bad_token_files_are_refused),
		TEST(a_token_does_not_travel_in_clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
