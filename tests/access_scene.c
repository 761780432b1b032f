/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/access_scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shared/mem.h"
#include "tests/process.h"
#include "tests/view_fixture.h"

static int64_t fixed_now(void)
{
	return VIEW_FIXTURE_NOW_NS;
}

char *access_scene_write(struct access_scene *s, const char *name, const char *text)
{
	char *path = mem_printf("%s/%s", s->folder, name), *fresh = mem_printf("%s.new", path);
	int fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	size_t len = strlen(text);

	if (fd < 0 || write(fd, text, len) != (ssize_t)len || close(fd) || rename(fresh, path)) {
		perror(path);
		abort();
	}
	free(fresh);
	return path;
}

static void make_identities(struct access_scene *s)
{
	const struct tls_wish wishes[] = {
		{.name = "servers"},
		{.name = "server",
		 .dns = "evenkeel.example",
		 .address = "127.0.0.1",
		 .issuer = &s->authority},
		{.name = "clients"},
		{.name = "scheduler", .issuer = &s->client_authority},
		{.name = "scheduler", .issuer = &s->client_authority, .ended = true},
		{.name = "clients"},
		{.name = "scheduler", .issuer = &s->stranger_authority},
	};
	struct tls_identity *const made[] = {&s->authority,	   &s->server,
					     &s->client_authority, &s->client,
					     &s->ended_client,	   &s->stranger_authority,
					     &s->stranger};

	for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++)
		tls_identity_make(made[i], &wishes[i]);
}

struct access_scene *access_scene_new(void)
{
	struct access_scene *s = mem_zalloc(1, sizeof(*s));

	s->folder = folder_make();
	make_identities(s);
	s->certificate = access_scene_write(s, "server.crt", s->server.certificate);
	s->key = access_scene_write(s, "server.key", s->server.key);
	s->client_ca = access_scene_write(s, "clients.crt", s->client_authority.certificate);
	s->tokens = access_scene_write(s, "tokens", ACCESS_TOKEN ",somebody\n");
	s->ctx = (struct api_context){
		.views = view_slot_new(),
		.counters = &s->counters,
		.now_ns = fixed_now,
		.watcher_smoothed = 1,
	};
	view_slot_publish(s->ctx.views, view_fixture_new());
	return s;
}

void access_scene_free(struct access_scene *s)
{
	struct tls_identity *const made[] = {&s->authority,	   &s->server,
					     &s->client_authority, &s->client,
					     &s->ended_client,	   &s->stranger_authority,
					     &s->stranger};

	http_stop(s->http);
	view_slot_free(s->ctx.views);
	for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++)
		tls_identity_fini(made[i]);
	free(s->certificate);
	free(s->key);
	free(s->client_ca);
	free(s->tokens);
	folder_remove(s->folder);
	free(s);
}

void access_scene_configure(struct access_scene *s, struct http_config *config)
{
	*config = (struct http_config){
		.listen = "127.0.0.1:0",
		.ctx = &s->ctx,
		.tls = {s->certificate, s->key, s->client_ca, false},
		.auth = {.token_file = s->tokens},
	};
}

void access_scene_start(struct access_scene *s, const struct http_config *config)
{
	struct error error = {""};

	if (http_start_with(&s->http, config, &error))
		fail_msg("%s", error.text);
}

/* --- clients ---------------------------------------------------------------------------------- */

static size_t collect(char *data, size_t size, size_t count, void *to)
{
	buf_add(to, data, size * count);
	return size * count;
}

/* libcurl on GnuTLS takes files only. */
static void set_tls(struct access_scene *s, CURL *curl, const struct access_client *client)
{
	const struct tls_identity *trusted = client->trusts ? client->trusts : &s->authority;
	char *ca = access_scene_write(s, "trusted.crt", trusted->certificate);

	curl_easy_setopt(curl, CURLOPT_CAINFO, ca);
	free(ca);
	if (!client->identity)
		return;
	char *certificate = access_scene_write(s, "client.crt", client->identity->certificate);
	char *key = access_scene_write(s, "client.key", client->identity->key);

	curl_easy_setopt(curl, CURLOPT_SSLCERT, certificate);
	curl_easy_setopt(curl, CURLOPT_SSLKEY, key);
	free(certificate);
	free(key);
}

static struct curl_slist *headers_of(const struct access_client *client)
{
	struct curl_slist *headers =
		client->body ? curl_slist_append(NULL, "Content-Type: application/json") : NULL;
	char *line = NULL;

	if (client->authorization)
		line = mem_printf("Authorization: %s", client->authorization);
	else if (client->token)
		line = mem_printf("Authorization: Bearer %s", client->token);
	if (line)
		headers = curl_slist_append(headers, line);
	for (const char *const *more = client->headers; more && *more; more++)
		headers = curl_slist_append(headers, *more);
	free(line);
	return headers;
}

void access_scene_ask(struct access_scene *s, const struct access_client *client,
		      struct access_reply *reply)
{
	const char *scheme = s->counters.access.ways & ACCESS_OVER_TLS ? "https" : "http";
	char *url = mem_printf("%s://%s%s", scheme, http_address(s->http), client->path);
	struct curl_slist *headers = headers_of(client);
	CURL *curl = client->curl ? client->curl : curl_easy_init();

	*reply = (struct access_reply){0};
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT, 30L);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, collect);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, &reply->body);
	curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, collect);
	curl_easy_setopt(curl, CURLOPT_HEADERDATA, &reply->headers);
	curl_easy_setopt(curl, CURLOPT_INTERFACE, client->from);
	if (client->body)
		curl_easy_setopt(curl, CURLOPT_POSTFIELDS, client->body);
	if (client->method)
		curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, client->method);
	set_tls(s, curl, client);
	reply->code = curl_easy_perform(curl);
	if (reply->code == CURLE_OK)
		curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &reply->status);
	buf_add_str(&reply->body, "");
	buf_add_str(&reply->headers, "");
	if (!client->curl)
		curl_easy_cleanup(curl);
	curl_slist_free_all(headers);
	free(url);
}

void access_reply_fini(struct access_reply *reply)
{
	buf_fini(&reply->headers);
	buf_fini(&reply->body);
}

long access_scene_status(struct access_scene *s, const struct access_client *client)
{
	struct access_reply reply;

	access_scene_ask(s, client, &reply);
	access_reply_fini(&reply);
	return reply.status;
}
