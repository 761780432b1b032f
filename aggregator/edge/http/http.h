/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP edge: libmicrohttpd's threads answer from views; nothing here changes state. */
#ifndef EVENKEEL_AGGREGATOR_EDGE_HTTP_HTTP_H
#define EVENKEEL_AGGREGATOR_EDGE_HTTP_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/edge/http/shared_body.h"
#include "aggregator/edge/http/watcher_cache.h"
#include "aggregator/state/counters.h"
#include "aggregator/state/view.h"
#include "shared/buf.h"
#include "shared/reason.h"

/* What handlers answer from; fixed after start, borrowed. */
struct http_context {
	struct view_slot *views;
	struct counters *counters;
	int64_t (*now_ns)(void); /* Unix time */
	bool watcher_upstream; /* --watcher-variant upstream: 404 and 500 as load-watcher gives them */
	int watcher_smoothed; /* --watcher-stddev smoothed:N; 1: raw */
	bool watcher_allocatable; /* --watcher-denominator allocatable */
	struct watcher_cache *watcher_cache; /* NULL: every answer is made anew */
};

struct http_request {
	const char *method;
	const char *path;
	const char *body; /* NUL-terminated */
	size_t body_len;
	/* NULL when the query has no such parameter; "" when it has no value. */
	const char *(*query)(const struct http_request *r, const char *name);
	/* The first parameter that is not in the NULL-terminated list, or NULL. */
	const char *(*query_other)(const struct http_request *r, const char *const *known);
	/* A header of the request, or NULL. The member is NULL where there are none. */
	const char *(*header)(const struct http_request *r, const char *name);
	void *connection;
};

struct http_response {
	int status; /* 200 unless set */
	const char *content_type; /* static string; NULL: no Content-Type header */
	const char *allow; /* static string: the methods, with 405 */
	uint64_t etag; /* of a 200 to GET: equal means nothing but ages changed; 0: none */
	struct buf body;
	struct shared_body *shared; /* held; sent instead of body */
	bool gzip; /* shared is compressed */
	bool negotiated; /* another Accept-Encoding might have had another body */
};

typedef void http_handler(const struct http_context *ctx, const struct http_request *rq,
			  struct http_response *rs);

/* Handlers, one file each; the route table is in route.c. */
http_handler http_nodes; /* GET /v1/nodes, /v1/nodes/NAME */
http_handler http_pods; /* GET /v1/pods */
http_handler http_scores; /* POST /v1/scores */
http_handler http_watcher; /* /watcher, /watcher/NAME */
http_handler http_watcher_health;
http_handler http_metrics;
http_handler http_healthz;
http_handler http_readyz;

/* Every refusal: X(name, status, code). What is wrong with a request in detail is said by field and message. */
#define HTTP_FAILURES(X)                                                                           \
	X(BAD_REQUEST, 400, "badRequest") /* a parameter, or a member of the body */               \
	X(NOT_FOUND, 404, "notFound") /* no such path, node or host */                             \
	X(METHOD_NOT_ALLOWED, 405, "methodNotAllowed")                                             \
	X(TOO_LARGE, 413, "tooLarge") /* the body */                                               \
	X(BUSY, 503, "busy") /* no memory for it now */                                            \
	X(NO_DATA, 503, "noData") /* nothing was heard of any node */

enum http_failure {
#define X(name, status, code) FAIL_##name,
	HTTP_FAILURES(X)
#undef X
};

/* {"error":{"code","message","field"}} with the status of the failure; field may be NULL. */
void http_fail(struct http_response *rs, enum http_failure failure, const char *field,
	       const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Runs the handler of method and path into *rs (404 and 405 included); what server.c does per request, and tests. */
void http_route(const struct http_context *ctx, const struct http_request *rq,
		struct http_response *rs);

struct http_server;
/* listen: "127.0.0.1:2020", "[::1]:2020", ":2020", port 0 picks one. -EADDRINUSE, -EINVAL.. with the reason. */
int http_start(struct http_server **s, const char *listen, const struct http_context *ctx,
	       struct reason *reason);
void http_stop(struct http_server *s);
/* The address it really listens on, "127.0.0.1:2020". */
const char *http_address(const struct http_server *s);

#endif
