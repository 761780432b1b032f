/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to one API server: libcurl handles with TLS, proxy and the newest credentials. */
#pragma once

#include <curl/curl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/edge/kube/config.h"
#include "shared/buf.h"
#include "shared/error.h"

struct kube_session;

/*
 * config is copied. Reads its files, runs no plugin. -EINVAL or -EACCES with the reason, which
 * names what is unusable; also if a token would travel in clear to another machine.
 */
int kube_session_new(struct kube_session **s, const struct kube_config *config,
		     struct error *error);
void kube_session_free(struct kube_session *s);
/*
 * Sets a handle up for a GET of path ("/api/v1/pods?limit=500"): URL, TLS, proxy, authorization,
 * headers, keepalive and TCP_USER_TIMEOUT. now_ns: of one monotonic clock. Files are read again
 * after a minute; an exec plugin runs (within its limit) when its credential expires. The settings
 * stay valid until the handle is cleaned up or prepared again, or eight credentials later; the
 * session outlives the handle. -EACCES: no credential, with the reason; nothing is set.
 * CURLOPT_HTTPHEADER is used (Accept, and Host with tls-server-name). The caller sets callbacks,
 * HTTP version, encodings, and every timeout but that of connecting (30 s). Redirects are not
 * followed.
 */
int kube_session_prepare(struct kube_session *s, CURL *handle, const char *path, int64_t now_ns,
			 struct error *error);
enum kube_method {
	KUBE_GET,
	KUBE_APPLY, /* server-side apply */
	KUBE_MERGE, /* a merge patch, which never creates an object */
	KUBE_POST,
	KUBE_REPLACE,
	KUBE_DELETE,
	KUBE_METHODS,
};

/*
 * After a 401: the next kube_session_prepare() reads every credential again, and a failure is an
 * error then. A plugin's credential younger than 10 s is kept: requests in flight were made with
 * the former one.
 */
void kube_session_unauthorized(struct kube_session *s);
/*
 * Why a prepared handle failed, for an operator: which host was not reached, whose certificate is
 * not trusted. detail: the handle's CURLOPT_ERRORBUFFER; NULL or "" is allowed.
 */
void kube_session_explain(const struct kube_session *s, CURL *handle, CURLcode code,
			  const char *detail, struct error *error);
const char *kube_session_server(const struct kube_session *s);
/* The headers of every request, and one more unless it is NULL; the caller frees the list. */
struct curl_slist *kube_session_headers(const struct kube_session *s, const char *more);

/* --- requests on the thread of the caller ----------------------------------------------------- */

struct kube_call {
	struct kube_session *session; /* owned, as are the two below */
	CURL *handle;
	struct buf answer; /* of the last request, as text */
	size_t answer_max; /* bytes kept of it */
	const atomic_bool *stopping; /* borrowed; ends a request */
	const char *hint; /* for the reason of a 403: "bind the Role .."; NULL: none */
	char detail[CURL_ERROR_SIZE];
};

/*
 * For requests of at most timeout_ms; answer_max and stopping are set. config is copied. Errors of
 * kube_session_new().
 */
int kube_call_open(struct kube_call *c, const struct kube_config *config, long timeout_ms,
		   struct error *error);
void kube_call_close(struct kube_call *c); /* accepts zeroes */
/* 200 or 201. */
bool kube_call_succeeds(long status);
/*
 * The HTTP status; 0: no answer. The reason unless the request succeeded. body NULL: none (KUBE_GET).
 * After a 401 one retry with the newest credential.
 */
long kube_call_send(struct kube_call *c, enum kube_method method, const char *path,
		    const struct buf *body, struct error *error);
