/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A guarded HTTP server in this process, with authorities, certificates and tokens in a folder, and
 * clients of every kind.
 */
#pragma once

#include <stdbool.h>

#include <curl/curl.h>

#include "aggregator/edge/http/http.h"
#include "shared/buf.h"
#include "tests/tls_server.h"

#define ACCESS_TOKEN	   "good-token-0123456789abcdef"
#define ACCESS_OTHER_TOKEN "other-token-0123456789abcdef"

struct access_scene {
	char *folder;
	struct tls_identity authority, server; /* the server's */
	struct tls_identity client_authority, client, ended_client; /* of clients .. */
	struct tls_identity stranger_authority, stranger; /* .. and what is none of ours */
	char *certificate, *key, *client_ca, *tokens; /* paths of what the server reads */
	struct api_context ctx;
	struct counters counters;
	struct http_server *http; /* NULL: not started */
};

struct access_scene *access_scene_new(void);
void access_scene_free(struct access_scene *s);

/*
 * The path of a file of the folder with that text, mode 0600, put there at once; the caller frees
 * it.
 */
char *access_scene_write(struct access_scene *s, const char *name, const char *text);
/* TLS with client certificates, and the token file with ACCESS_TOKEN. */
void access_scene_configure(struct access_scene *s, struct http_config *config);
/* Fails the test when it does not start. */
void access_scene_start(struct access_scene *s, const struct http_config *config);

/* What a client sends along; zeroes: nothing. */
struct access_client {
	const char *method; /* NULL: GET, or POST where there is a body */
	const char *path;
	const char *authorization; /* the whole header's value */
	const char *token; /* "Bearer" goes in front */
	const struct tls_identity *identity;
	const struct tls_identity *trusts; /* NULL: the scene's authority */
	const char *from; /* an address of ours */
	const char *body;
	const char *const *headers; /* others, ended by NULL; NULL: none */
	CURL *curl; /* a handle to go on with; NULL: a connection of its own */
};

struct access_reply {
	long status; /* 0: no answer, code says why */
	CURLcode code;
	struct buf headers, body;
};

void access_scene_ask(struct access_scene *s, const struct access_client *client,
		      struct access_reply *reply);
void access_reply_fini(struct access_reply *reply);
/* The status alone. */
long access_scene_status(struct access_scene *s, const struct access_client *client);
