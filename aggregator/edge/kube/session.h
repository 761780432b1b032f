/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to one API server on the kube thread: libcurl handles with the right TLS, proxy and
 * newest credentials.
 */
#ifndef EVENKEEL_AGGREGATOR_EDGE_KUBE_SESSION_H
#define EVENKEEL_AGGREGATOR_EDGE_KUBE_SESSION_H

#include <curl/curl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/edge/kube/config.h"
#include "shared/buf.h"
#include "shared/reason.h"

struct kube_session;

/*
 * config is copied. Reads what files it names now, and runs no plugin. -EINVAL or -EACCES with the
 * reason naming what cannot be used; also when a token would travel in clear to another machine.
 */
int kube_session_new(struct kube_session **s, const struct kube_config *config,
		     struct reason *reason);
void kube_session_free(struct kube_session *s);
/*
 * Sets url, TLS, proxy, authorization, headers, keepalive and TCP_USER_TIMEOUT of a handle for a
 * GET of path ("/api/v1/pods?limit=500"). now_ns: of a clock that only goes forward, always the
 * same one. Files are read again when that is a minute ago; an exec plugin runs (at most 30 s) when
 * its credential ends. Everything set stays valid until the handle is cleaned up or prepared again,
 * or eight credentials later; the session outlives the handle. -EACCES: no credential, with the
 * reason; then nothing was set.
 *
 * CURLOPT_HTTPHEADER is taken (Accept: application/json, and Host where tls-server-name is given).
 * Left to the caller: what is to be done with the answer, HTTP version, encodings, and every
 * timeout but that of connecting (30 s). Redirects are never followed.
 */
int kube_session_prepare(struct kube_session *s, CURL *handle, const char *path, int64_t now_ns,
			 struct reason *reason);
enum kube_method {
	KUBE_APPLY, /* server-side apply */
	KUBE_MERGE, /* a merge patch, which never creates an object */
	KUBE_POST,
	KUBE_METHODS,
};

/*
 * The server said 401: the next kube_session_prepare() reads every credential anew, and what cannot
 * be read is an error then. A plugin's that is less than 10 s old is kept: it is what the other
 * requests under way were not made with.
 */
void kube_session_unauthorized(struct kube_session *s);
/*
 * Why a prepared handle failed, in words for an operator: who could not be reached, whose
 * certificate is not trusted and by what. detail: the handle's CURLOPT_ERRORBUFFER; NULL or "" is
 * allowed.
 */
void kube_session_explain(const struct kube_session *s, CURL *handle, CURLcode code,
			  const char *detail, struct reason *reason);
const char *kube_session_server(const struct kube_session *s);

/* --- requests with a body, one at a time, on the thread of the caller ------------------------- */

struct kube_call {
	struct kube_session *session; /* owned, as are the two below */
	CURL *handle;
	struct buf answer; /* to the last request, as text */
	size_t answer_max; /* bytes that are kept of it */
	const atomic_bool *stopping; /* borrowed; ends a request */
	char detail[CURL_ERROR_SIZE];
};

/*
 * For requests that take timeout_ms at most; answer_max and stopping are set. config is copied.
 * Errors of kube_session_new().
 */
int kube_call_open(struct kube_call *c, const struct kube_config *config, long timeout_ms,
		   struct reason *reason);
void kube_call_close(struct kube_call *c); /* accepts zeroes */
/* The HTTP status; 0 with the reason: there is no answer. */
long kube_call_send(struct kube_call *c, enum kube_method method, const char *path,
		    const struct buf *body, struct reason *reason);

#endif
