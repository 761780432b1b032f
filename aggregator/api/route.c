/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which handler answers which path and method, and how a refusal looks. A path ending in "/" in the table also stands
 * for everything below it; the handler takes the rest of the path as a name.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/api/api.h"
#include "shared/jsonw.h"

enum {
	BODY_MOST = 1 << 20,
	/* Names of all nodes, or all nodes whole: 5000 with what a kubelet tells have about 60 MiB. */
	EXTENDER_BODY_MOST = 64 << 20,
};

struct route {
	const char *path;
	const char *method; /* NULL: any, as load-watcher; GET includes HEAD */
	api_handler *handler;
	size_t body_most; /* 0: BODY_MOST */
	bool takes_long; /* simulates the whole cluster, or may */
};

static const struct route routes[] = {
	{"/watcher", NULL, api_watcher, 0, false},
	{"/watcher/health", NULL, api_watcher_health, 0, false},
	{"/watcher/", NULL, api_watcher, 0, false},
	{"/extender/filter", "POST", api_extender_filter, EXTENDER_BODY_MOST, false},
	{"/extender/prioritize", "POST", api_extender_prioritize, EXTENDER_BODY_MOST, false},
	{"/extender/preempt", "POST", api_extender_preempt, EXTENDER_BODY_MOST, true},
	{"/v1/nodes", "GET", api_nodes, 0, false},
	{"/v1/nodes/", "GET", api_nodes, 0, false},
	{"/v1/pods", "GET", api_pods, 0, false},
	{"/v1/quotas", "GET", api_quotas, 0, false},
	{"/v1/quotas/admit", "POST", api_quotas_admit, 0, false},
	{"/v1/quotas/preempt", "POST", api_quotas_preempt, 0, true},
	{"/v1/quotas/", "GET", api_quotas, 0, false},
	{"/v1/scores", "POST", api_scores, 0, true},
	{"/v1/drain", "GET", api_drain, 0, false},
	{"/v1/fit", "POST", api_fit, 0, true},
	{"/v1/slack", "GET", api_slack, 0, false},
	{"/v1/snapshot", "GET", api_snapshot, 0, false},
	{"/v1/status", "GET", api_status, 0, false},
	{"/metrics", "GET", api_metrics, 0, false},
	{"/healthz", "GET", api_healthz, 0, false},
	{"/readyz", "GET", api_readyz, 0, false},
};

/* First match; exact paths stand before the folder they are in. */
static const struct route *find_route(const char *path)
{
	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
		size_t len = strlen(routes[i].path);
		bool folder = routes[i].path[len - 1] == '/';

		if (folder ? strncmp(path, routes[i].path, len) == 0
			   : strcmp(path, routes[i].path) == 0)
			return &routes[i];
	}
	return NULL;
}

/* An address configured with a slash at its end makes clients ask for "//watcher". */
const char *api_plain_path(const char *path)
{
	while (path[0] == '/' && path[1] == '/')
		path++;
	return path;
}

size_t api_body_most(const char *path)
{
	const struct route *route = find_route(api_plain_path(path));

	return route && route->body_most ? route->body_most : BODY_MOST;
}

bool api_takes_long(const char *path)
{
	const struct route *route = find_route(api_plain_path(path));

	return route && route->takes_long;
}

enum api_door api_door_of(const char *path)
{
	const struct route *route = find_route(api_plain_path(path));

	if (route && (route->handler == api_healthz || route->handler == api_readyz))
		return API_DOOR_OPEN;
	if (route && (route->handler == api_watcher || route->handler == api_watcher_health))
		return API_DOOR_WATCHER;
	return API_DOOR_GUARDED;
}

static bool method_fits(const struct route *route, const char *method)
{
	if (!route->method || strcmp(route->method, method) == 0)
		return true;
	return strcmp(route->method, "GET") == 0 && strcmp(method, "HEAD") == 0;
}

static const struct {
	int status;
	const char *code;
} failures[] = {
#define X(name, number, text) [FAIL_##name] = {.status = (number), .code = (text)},
	API_FAILURES(X)
#undef X
};

void api_fail(struct api_response *rs, enum api_failure failure, const char *field,
	      const char *format, ...)
{
	char message[512];
	struct jsonw w;
	va_list args;

	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	buf_clear(&rs->body);
	jsonw_init(&w, &rs->body);
	jsonw_object_open(&w);
	jsonw_key(&w, "error");
	jsonw_object_open(&w);
	jsonw_key_string(&w, "code", failures[failure].code);
	jsonw_key_string(&w, "message", message);
	if (field)
		jsonw_key_string(&w, "field", field);
	jsonw_object_close(&w);
	jsonw_object_close(&w);
	buf_add_char(&rs->body, '\n');
	rs->status = failures[failure].status;
	rs->content_type = "application/json";
}

void api_route(const struct api_context *ctx, const struct api_request *rq, struct api_response *rs)
{
	const struct route *route;
	struct api_request plain = *rq;

	plain.path = api_plain_path(rq->path);
	rs->status = 200;
	route = find_route(plain.path);
	if (!route) {
		api_fail(rs, FAIL_NOT_FOUND, NULL, "there is nothing at %s", plain.path);
	} else if (!method_fits(route, plain.method)) {
		api_fail(rs, FAIL_METHOD_NOT_ALLOWED, NULL, "%s answers %s, not %s", route->path,
			 route->method, plain.method);
		rs->allow = strcmp(route->method, "GET") == 0 ? "GET, HEAD" : route->method;
	} else {
		route->handler(ctx, &plain, rs);
	}
}
