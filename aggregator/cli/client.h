/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to one aggregator over HTTP, or to files in its stead, one at a time, with reasons that
 * say what to do.
 */
#pragma once

#include <cjson/cJSON.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "aggregator/cli/offline.h"
#include "shared/buf.h"
#include "shared/error.h"

struct client;
struct kube_config;

/* What proves who asks, and who answers. NULL: not given. All texts are borrowed. */
struct client_access {
	const char *token; /* what --token-file holds wins */
	const char *token_file; /* read anew for every request */
	const char *ca_file; /* NULL: the system's authorities */
	const char *server_name; /* that the server's certificate is for; NULL: the URL's */
	const char *certificate, *key;
	bool plain_tokens; /* tokens may travel in clear to other machines */
};

/*
 * server: "http://host:port", "https://..", with a path or without; "http://" may be left out. A
 * request under way gives up soon after *stop becomes true (stop may be NULL; it is borrowed).
 * -EINVAL with the reason.
 */
int client_new(struct client **c, const char *server, int64_t timeout_ns,
	       const volatile sig_atomic_t *stop, struct error *error);
/*
 * Requests go to the API server of the configuration, which is copied, and through it to the
 * aggregator. Certificates and tokens are the configuration's; client_set_access() is not for such
 * a client. -EINVAL, -EACCES with the reason.
 */
int client_new_cluster(struct client **c, const struct kube_config *config, int64_t timeout_ns,
		       const volatile sig_atomic_t *stop, struct error *error);
/*
 * For all requests from now on. -EINVAL with the reason: half a pair, files that cannot be read, a
 * token that would travel in clear.
 */
int client_set_access(struct client *c, const struct client_access *access, struct error *error);
/* Adds the text to the reason when nobody answers. */
void client_set_hint(struct client *c, const char *hint);
/* Answers from files, which it closes in the end. */
struct client *client_new_offline(struct offline *o);
void client_free(struct client *c);
/* Requests go through an API server. */
bool client_is_cluster(const struct client *c);
/* What server became, for messages. */
const char *client_server(const struct client *c);
/*
 * From now on what a GET brought is kept, up to a bound, and the next GET of it asks whether it
 * changed (If-None-Match): if not, the same body is given again.
 */
void client_keep(struct client *c);
/* Seconds since the body of the last client_get() came from the server. */
double client_body_age(const struct client *c);
/*
 * path begins with "/" and is escaped already. 0 with the whole body of a 2xx answer in *body
 * (replaced); -EHOSTUNREACH nobody answers, -EACCES it does not let us in (401, 403), -EKEYREJECTED
 * one side does not believe the other's certificate, -ETIMEDOUT, -EINTR stopped, -ENOENT the server
 * knows no such thing, -ENODATA what the answer needs is not known yet, -EBADRQC it refuses what an
 * option of the command line says, -EIO any other failure.
 */
int client_get(struct client *c, const char *path, struct buf *body, struct error *error);
/* Frees the request. */
int client_post(struct client *c, const char *path, cJSON *request, struct buf *body,
		struct error *error);
/* GETs path, or POSTs the request and frees it; after 0 *doc is the caller's, NULL if the body is no JSON. */
int client_ask(struct client *c, const char *path, cJSON *request, cJSON **doc,
	       struct error *error);
/* The exit status of the command after 0 or such an error. */
int client_exit(int rc);
/* Adds "text" to a path under construction with everything but letters, digits and -._~ escaped. */
void client_escape(const char *text, struct buf *out);
/* Adds a parameter of its query; NULL: none. */
void client_add_parameter(struct buf *path, const char *name, const char *value);
