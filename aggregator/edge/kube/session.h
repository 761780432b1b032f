/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to one API server on the kube thread: libcurl handles with the right TLS, proxy and newest credentials. */
#ifndef EVENKEEL_AGGREGATOR_EDGE_KUBE_SESSION_H
#define EVENKEEL_AGGREGATOR_EDGE_KUBE_SESSION_H

#include <curl/curl.h>
#include <stdint.h>

#include "aggregator/edge/kube/config.h"
#include "shared/reason.h"

struct kube_session;

/* config is copied. Reads what files it names now. */
int kube_session_new(struct kube_session **s, const struct kube_config *config,
		     struct reason *reason);
void kube_session_free(struct kube_session *s);
/*
 * Sets url, TLS, proxy, authorization, keepalive and TCP_USER_TIMEOUT of a handle for a GET of path ("/api/v1/pods?limit=500"). Token files
 * are read again when they are older than a minute; an exec plugin runs (at most 30 s) when its credential ends. Everything set stays
 * valid until the handle is cleaned up or prepared again. -EACCES: no credential, with the reason; then nothing was set.
 */
int kube_session_prepare(struct kube_session *s, CURL *handle, const char *path, int64_t now_ns,
			 struct reason *reason);
/* The server said 401: the next kube_session_prepare() reads every credential anew. */
void kube_session_unauthorized(struct kube_session *s);
const char *kube_session_server(const struct kube_session *s);

#endif
