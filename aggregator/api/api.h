/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API without a network: requests are answered from views, by the aggregator's HTTP threads and
 * by the CLI over a snapshot alike. Of the state, the API changes nothing but the reservations.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/state/shared_body.h"
#include "aggregator/state/counters.h"
#include "aggregator/state/view.h"
#include "shared/buf.h"

struct window_buckets;

/* The buckets of windows. */
struct bucket_source {
	/*
	 * Reads those of a node, or of the pod that its stats have (NULL: the node's). -ENOENT: they
	 * are not known; -ETIMEDOUT. Any thread but the loop's.
	 */
	int (*read)(struct bucket_source *s, const char *node, const struct pod_stats *pod,
		    struct window_buckets *out);
};

/* The inputs of handlers; fixed after start, borrowed. */
struct api_context {
	struct view_slot *views;
	struct bucket_source *buckets; /* NULL: there are only windows (offline) */
	struct counters *counters;
	int64_t (*now_ns)(void); /* Unix time */
	int64_t started_ns; /* when the service began; 0: it is none (offline) */
	/* --watcher-variant upstream: 404 and 500 as load-watcher gives them */
	bool watcher_upstream;
	int watcher_smoothed; /* --watcher-stddev smoothed:N; 1: raw */
	bool watcher_allocatable; /* --watcher-denominator allocatable */
	struct watcher_cache *watcher_cache; /* NULL: every answer is made anew */
	struct prefetcher *prefetcher; /* NULL: nothing is prefetched */
	/*
	 * Where the cluster model comes from: "inCluster", "kubeconfig", "snapshot"; NULL:
	 * standalone.
	 */
	const char *kubernetes_mode;
	struct reservations *reservations; /* NULL: nothing is reserved (offline) */
	struct place_cache *places; /* placement cores to ask, .. */
	struct place_cache *scheduler_places; /* .. and those of requests of schedulers */
	struct quota_book_cache *books; /* of quotas; NULL: each answer makes its own */
	const struct quota_options *quota; /* NULL: the usual ones, as the next */
	const struct preempt_options *preempt;
	struct victim_log *victims; /* answered to schedulers; NULL: there is no extender */
	struct waiting_pods *waiting; /* that filter refused; NULL: they are not remembered */
	const struct extender_options *extender;
	/* of the planner; NULL: none runs, and plans are made when they are asked for, .. */
	struct plan_slot *plans;
	struct plan_peer *plan_peer; /* plans of the other aggregator; NULL: there is none */
	const struct slack_options *slack; /* .. by these (NULL: the usual ones), .. */
	const struct drain_setup *drain; /* .. and these (likewise), .. */
	const struct plan_memory *memory; /* .. from what was remembered (NULL: nothing) */
	const struct plan_moment *planned; /* .. as of then; NULL: now, of the newest view */
	struct drain_log *decisions; /* NULL: what the memory has of them */
	struct act_box *acts; /* NULL: there is no actuator (offline) */
};

struct api_request {
	const char *method;
	const char *path;
	const char *body; /* NUL-terminated */
	size_t body_len;
	/* NULL when the query has no such parameter; "" when it has no value. */
	const char *(*query)(const struct api_request *r, const char *name);
	/* The first parameter that is not in the NULL-terminated list, or NULL. */
	const char *(*query_other)(const struct api_request *r, const char *const *known);
	/* A header of the request, or NULL. The member is NULL where there are none. */
	const char *(*header)(const struct api_request *r, const char *name);
	/* The path is open to all and the Host header is not one of ours: a foreign page may read it. */
	bool foreign;
	/* That of the path (api_group.h), which wins over the query's; NULL: none. */
	const char *in_namespace;
	const char *user; /* the name that was admitted; NULL: not known */
	void *connection;
};

/* A body that is made while it is sent, so that it is never in memory as a whole. */
struct api_stream {
	/*
	 * Appends the next piece, of bounded length, to out; false: there was none left. Any
	 * thread, one at a time.
	 */
	bool (*next)(struct api_stream *s, struct buf *out);
	void (*free)(struct api_stream *s); /* whether it came to its end or not */
};

struct api_response {
	int status; /* 200 unless set */
	const char *content_type; /* static string; NULL: no Content-Type header */
	const char *allow; /* static string: the methods, with 405 */
	int retry_after_s; /* with 429; 0: not told */
	uint64_t etag; /* of a 200 to GET: equal means nothing but ages changed; 0: none */
	struct buf body;
	struct shared_body *shared; /* held; sent instead of body */
	struct api_stream *stream; /* owned; sent instead of body; never with a failure */
	bool gzip; /* shared, or else body, is compressed */
	const char *policy; /* static string: Content-Security-Policy of a page; NULL: no page */
	bool negotiated; /* another Accept-Encoding might have had another body */
	bool last; /* of the connection */
};

typedef void api_handler(const struct api_context *ctx, const struct api_request *rq,
			 struct api_response *rs);

/* Handlers, one file each; the route table is in route.c. */
api_handler api_nodes; /* GET /v1/nodes, /v1/nodes/NAME */
api_handler api_node_history; /* GET /v1/nodes/NAME/history */
api_handler api_fleet; /* GET /v1/fleet */
api_handler api_pods; /* GET /v1/pods */
api_handler api_pod_history; /* GET /v1/pods/NAMESPACE/NAME/history */
api_handler api_advice; /* GET /v1/advice */
api_handler api_scores; /* POST /v1/scores */
api_handler api_drain; /* GET /v1/drain */
api_handler api_drain_history; /* GET /v1/drain/history */
api_handler api_drain_report; /* POST /v1/drain/history */
api_handler api_act; /* GET /v1/act */
api_handler api_act_report; /* PUT /v1/act */
api_handler api_act_request; /* POST /v1/act/requests */
api_handler api_fit; /* POST /v1/fit */
api_handler api_quotas; /* GET /v1/quotas, /v1/quotas/NAMESPACE */
api_handler api_quotas_admit; /* POST /v1/quotas/admit */
api_handler api_quotas_preempt; /* POST /v1/quotas/preempt */
api_handler api_quotas_reclaim; /* GET /v1/quotas/reclaim */
api_handler api_quotas_reserve; /* POST /v1/quotas/reclaim/reservations */
api_handler api_extender_filter; /* POST /extender/filter */
api_handler api_extender_prioritize; /* POST /extender/prioritize */
api_handler api_extender_preempt; /* POST /extender/preempt */
api_handler api_slack; /* GET /v1/slack */
api_handler api_snapshot; /* GET /v1/snapshot */
api_handler api_names; /* GET /v1/names */
api_handler api_status; /* GET /v1/status */
api_handler api_doctor; /* GET /v1/doctor */
api_handler api_watcher; /* /watcher, /watcher/NAME */
api_handler api_watcher_health;
api_handler api_metrics;
api_handler api_healthz;
api_handler api_readyz;
api_handler api_openapi; /* GET /openapi.json */
api_handler api_page; /* GET /, /page/FILE */

/*
 * Every refusal: X(name, status, code, reason in a Status of Kubernetes). Field and message have the
 * details.
 */
#define API_FAILURES(X)                                                                            \
	X(BAD_REQUEST, 400, "badRequest", "BadRequest") /* a parameter, or a member of the body */ \
	X(UNAUTHORIZED, 401, "unauthorized", "Unauthorized") /* unknown credentials */             \
	X(FORBIDDEN, 403, "forbidden", "Forbidden") /* known, and not allowed */                   \
	X(NOT_FOUND, 404, "notFound", "NotFound") /* no such path, node or host */                 \
	X(METHOD_NOT_ALLOWED, 405, "methodNotAllowed", "MethodNotAllowed")                         \
	X(CONFLICT, 409, "conflict", "Conflict") /* the cluster, or a newer one, says otherwise */ \
	X(TOO_LARGE, 413, "tooLarge", "RequestEntityTooLarge") /* the body */                      \
	/* the body is not said to be JSON */                                                      \
	X(UNSUPPORTED_TYPE, 415, "unsupportedMediaType", "UnsupportedMediaType")                   \
	X(TOO_MANY, 429, "tooManyRequests", "TooManyRequests") /* of one client */                 \
	X(BUSY, 503, "busy", "ServiceUnavailable") /* no memory for it now */                      \
	X(NOT_REVIEWED, 503, "notReviewed", "ServiceUnavailable") /* the token review failed */    \
	X(NO_DATA, 503, "noData", "ServiceUnavailable") /* no node has reported */

enum api_failure {
#define X(name, ...) FAIL_##name,
	API_FAILURES(X)
#undef X
};

/* {"error":{"code","message","field"}} with the status of the failure; field may be NULL. False. */
bool api_fail(struct api_response *rs, enum api_failure failure, const char *field,
	      const char *format, ...) __attribute__((format(printf, 4, 5)));

/*
 * Runs the handler of method and path into *rs (404 and 405 included); what the HTTP edge does per
 * request, and the CLI offline.
 */
void api_route(const struct api_context *ctx, const struct api_request *rq,
	       struct api_response *rs);
/* Clients that may request a path: authorized ones; all if --open-watcher is set; all. */
enum api_access { API_ACCESS_GUARDED, API_ACCESS_WATCHER, API_ACCESS_PUBLIC };
enum api_access api_access_class(const char *path);
/* Whether the request makes the actuator act, or speaks for it. */
bool api_access_acts(const char *method, const char *path);
/* The path without doubled slashes at its start: "//watcher" is "/watcher". In the same text. */
const char *api_plain_path(const char *path);
/* The most bytes of a body sent to that path. */
size_t api_body_most(const char *path);
/* The kind of work of an answer: requests of one kind wait for each other only. */
enum api_work {
	API_WORK_NOW, /* microseconds */
	API_WORK_SHORT, /* milliseconds in a large cluster */
	API_WORK_LONG, /* seconds there */
	API_WORK_SCHEDULER,
	API_WORKS
};
enum api_work api_work_of(const char *path, const char *body, size_t len);
