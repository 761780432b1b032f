/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kube_scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"
#include "tests/process.h"

static size_t drop(char *data, size_t size, size_t count, void *context)
{
	(void)data;
	(void)context;
	return size * count;
}

int kube_scene_setup(void **state)
{
	struct kube_scene *s = mem_zalloc(1, sizeof(*s));

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

int kube_scene_teardown(void **state)
{
	struct kube_scene *s = *state;

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

void kube_scene_serve(struct kube_scene *s, const struct tls_identity *id, const char *client_ca)
{
	s->https = tls_server_start(id, client_ca);
	s->config.server =
		mem_printf("http%s://127.0.0.1:%d", id ? "s" : "", tls_server_port(s->https));
	s->config.source = mem_strdup("the test");
	if (id)
		s->config.ca_data = mem_strdup(s->ca.certificate);
}

int kube_scene_open(struct kube_scene *s)
{
	kube_session_free(s->session);
	s->session = NULL;
	return kube_session_new(&s->session, &s->config, &s->why);
}

long kube_scene_get(struct kube_scene *s)
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

void kube_scene_assert_says(const struct kube_scene *s, const char *text)
{
	if (!strstr(s->why.text, text))
		fail_msg("\"%s\" is not in: %s", text, s->why.text);
}

char *kube_scene_path(const struct kube_scene *s, const char *name)
{
	return mem_printf("%s/%s", s->folder, name);
}

void kube_scene_write(const struct kube_scene *s, const char *name, const char *text)
{
	char *path = kube_scene_path(s, name);
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
	free(path);
}

void kube_scene_write_client(const struct kube_scene *s, const struct tls_identity *id)
{
	kube_scene_write(s, "client.crt", id->certificate);
	kube_scene_write(s, "client.key", id->key);
}

char *kube_scene_read(const struct kube_scene *s, const char *name)
{
	char *path = kube_scene_path(s, name), text[65536];
	FILE *f = fopen(path, "r");
	size_t len = f ? fread(text, 1, sizeof(text), f) : 0;

	free(path);
	if (f)
		fclose(f);
	return mem_strndup(text, len);
}
