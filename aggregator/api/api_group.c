/* SPDX-License-Identifier: Apache-2.0 */
/*
 *	/apis/evenkeel.io/v1/nodes/a				GET /v1/nodes/a, verb get
 *	/apis/evenkeel.io/v1/drains				GET /v1/drain, verb list
 *	/apis/evenkeel.io/v1/scores				POST /v1/scores, verb create
 *	/apis/evenkeel.io/v1/acts/requests			POST /v1/act/requests, verb create
 *	/apis/evenkeel.io/v1/acts/NAME/report			PUT /v1/act, verb update of acts/report
 *	/apis/evenkeel.io/v1/drains/NAME/history		POST /v1/drain/history, verb create of drains/history
 *	/apis/evenkeel.io/v1/namespaces/shop/pods		GET /v1/pods?namespace=shop
 *	/apis/evenkeel.io/v1/namespaces/shop/pods/a/history	GET /v1/pods/shop/a/history
 *	/apis/metrics.k8s.io/v1/nodes				metrics_api.c, as for v1beta1
 *	/apis, /apis/GROUP, /apis/GROUP/VERSION, /openapi/..	discovery
 *
 * Pods alone are in namespaces: a user who may list another resource in one namespace must not read
 * that of the whole cluster. Access and routes go by one parser of paths, group_path_of().
 */
#include "aggregator/api/api_group.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "shared/document.h"
#include "shared/jsonw.h"
#include "shared/mem.h"

#define PREFIX	 "/apis/"
#define RESOURCE PREFIX API_GROUP "/" API_GROUP_VERSION "/"
#define METRICS	 PREFIX API_METRICS_GROUP

/* Versions of one group stand together, the preferred one first. */
static const struct group {
	const char *name, *version;
} groups[] = {
	{API_GROUP, API_GROUP_VERSION},
	{API_METRICS_GROUP, "v1"},
	{API_METRICS_GROUP, "v1beta1"},
};

enum { GROUPS = sizeof(groups) / sizeof(groups[0]) };

/* --- paths ------------------------------------------------------------------------------------ */

/* The next part of a path goes to `to`; what follows its slash. NULL: it has no room. */
static const char *take_part(const char *at, char *to, size_t size)
{
	size_t len = strcspn(at, "/");

	if (len >= size)
		return NULL;
	memcpy(to, at, len);
	to[len] = '\0';
	return at + len + (at[len] == '/');
}

/* "nodes/NAME/SUBRESOURCE", maybe behind "namespaces/NAMESPACE/". False: no room, or no name. */
static bool take_resource(const char *at, struct access_request *q)
{
	at = take_part(at, q->resource, sizeof(q->resource));
	if (at && strcmp(q->resource, "namespaces") == 0 && strchr(at, '/')) {
		at = take_part(at, q->namespace, sizeof(q->namespace));
		if (at)
			at = take_part(at, q->resource, sizeof(q->resource));
	}
	if (at)
		at = take_part(at, q->name, sizeof(q->name));
	return at && (q->name[0] || !*at) &&
	       snprintf(q->subresource, sizeof(q->subresource), "%s", at) <
		       (int)sizeof(q->subresource);
}

/* False: no resource of these groups. Parts without room leave an unknown resource. */
static bool group_path_of(const char *path, struct access_request *q)
{
	*q = (struct access_request){.path = path};
	for (size_t i = 0; i < GROUPS; i++) {
		char prefix[64];
		int len = snprintf(prefix, sizeof(prefix), PREFIX "%s/%s/", groups[i].name,
				   groups[i].version);

		if (strncmp(path, prefix, (size_t)len) != 0 || !path[len])
			continue;
		if (!take_resource(path + len, q))
			*q = (struct access_request){.path = path, .resource = "?"};
		q->group = groups[i].name;
		q->version = groups[i].version;
		return true;
	}
	return false;
}

static const char *verb_of(const char *method, const struct access_request *q)
{
	static const char *const verbs[][2] = {{"POST", "create"}, {"PUT", "update"}};

	if (q->group && strcmp(method, "GET") == 0)
		return q->name[0] ? "get" : "list";
	for (size_t i = 0; q->group && i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (strcmp(method, verbs[i][0]) == 0)
			return verbs[i][1];
	return method;
}

void api_access_request(const char *method, const char *path, struct access_request *q)
{
	size_t len = 0;

	if (strcmp(method, "HEAD") == 0)
		method = "GET";
	group_path_of(path, q);
	method = verb_of(method, q);
	for (; len < sizeof(q->verb) - 1 && method[len]; len++)
		q->verb[len] = (char)tolower((unsigned char)method[len]);
	q->verb[len] = '\0';
}

void api_access_rule(const struct access_request *q, char rule[ACCESS_RULE_LEN])
{
	snprintf(rule, ACCESS_RULE_LEN, "{apiGroups: [%s], resources: [%s%s%s], verbs: [%s]}",
		 q->group, q->resource, q->subresource[0] ? "/" : "", q->subresource, q->verb);
}

/* --- resources of evenkeel.io ----------------------------------------------------------------- */

static bool is_namespaced(const char *resource)
{
	return strcmp(resource, "pods") == 0;
}

static bool is_below(const char *path, const char *folder, const char *ends)
{
	size_t len = strlen(folder);

	return strncmp(path, folder, len) == 0 && (!path[len] || strchr(ends, path[len]));
}

/* The route of the subresource if it has one of its own, else of the resource; NULL: none. */
static const struct route *find_resource(const struct access_request *q)
{
	const struct route *found = NULL;

	for (const struct route *r = api_routes; r->path; r++) {
		if (!r->resource || strcmp(r->resource, q->resource) != 0)
			continue;
		if (r->subresource && strcmp(r->subresource, q->subresource) == 0)
			return r;
		if (!r->subresource && !found)
			found = r;
	}
	return found;
}

const char *api_group_local_path(const char *path, char room[API_LOCAL_LEN], char *namespace)
{
	struct access_request q;
	const struct route *r;
	const char *in;

	namespace[0] = '\0';
	if (!group_path_of(path, &q) || strcmp(q.group, API_GROUP) != 0)
		return path;
	r = find_resource(&q);
	if (!r || (q.namespace[0] && !is_namespaced(q.resource)) ||
	    (is_namespaced(q.resource) && q.name[0] && !q.namespace[0]))
		return path;
	if (r->subresource)
		return r->path;
	in = q.name[0] ? q.namespace : "";
	snprintf(room, API_LOCAL_LEN, "%s%s%s%s%s%s%s", r->path, *in ? "/" : "", in,
		 q.name[0] ? "/" : "", q.name, q.subresource[0] ? "/" : "", q.subresource);
	memcpy(namespace, q.namespace, sizeof(q.namespace));
	return room;
}

char *api_group_remote_path(const char *local)
{
	const struct route *r = api_routes;
	const char *in = NULL, *rest;
	size_t len = 0;

	while (r->path && !(r->resource && !r->subresource && is_below(local, r->path, "/?")))
		r++;
	if (!r->path)
		return NULL;
	rest = local + strlen(r->path);
	if (is_namespaced(r->resource) && *rest == '/') {
		in = rest + 1;
		len = strcspn(in, "/");
		rest = in + len;
	} else if (is_namespaced(r->resource) && (in = strstr(rest, "namespace="))) {
		in += strlen("namespace=");
		len = strcspn(in, "&");
	}
	return mem_printf(RESOURCE "%s%.*s%s%s%s", len ? "namespaces/" : "", (int)len,
			  len ? in : "", len ? "/" : "", r->resource, rest);
}

/* --- discovery -------------------------------------------------------------------------------- */

static void open_object(struct api_response *rs, struct jsonw *w, const char *kind)
{
	rs->content_type = "application/json";
	jsonw_begin(w, &rs->body);
	jsonw_key_string(w, "kind", kind);
	jsonw_key_string(w, "apiVersion", "v1");
}

static void write_version(struct jsonw *w, const struct group *g)
{
	char text[64];

	snprintf(text, sizeof(text), "%s/%s", g->name, g->version);
	jsonw_object_open(w);
	jsonw_key_string(w, "groupVersion", text);
	jsonw_key_string(w, "version", g->version);
	jsonw_object_close(w);
}

/* From its first version on; what is behind its last. */
static const struct group *write_group(struct jsonw *w, const struct group *g)
{
	const struct group *v = g;

	jsonw_key_string(w, "name", g->name);
	jsonw_key_array(w, "versions");
	for (; v < groups + GROUPS && strcmp(v->name, g->name) == 0; v++)
		write_version(w, v);
	jsonw_array_close(w);
	jsonw_key(w, "preferredVersion");
	write_version(w, g);
	return v;
}

/* GET /apis */
static void answer_groups(const struct api_context *ctx, const struct api_request *rq,
			  struct api_response *rs)
{
	struct jsonw w;

	(void)ctx, (void)rq;
	open_object(rs, &w, "APIGroupList");
	jsonw_key_array(&w, "groups");
	for (const struct group *g = groups; g < groups + GROUPS;) {
		jsonw_object_open(&w);
		g = write_group(&w, g);
		jsonw_object_close(&w);
	}
	jsonw_array_close(&w);
	jsonw_object_close(&w);
}

static const struct group *group_of(const char *path)
{
	size_t i = 0;

	while (i + 1 < GROUPS && !is_below(path + strlen(PREFIX), groups[i].name, "/"))
		i++;
	return &groups[i];
}

/* GET /apis/GROUP */
static void answer_group(const struct api_context *ctx, const struct api_request *rq,
			 struct api_response *rs)
{
	struct jsonw w;

	(void)ctx;
	open_object(rs, &w, "APIGroup");
	write_group(&w, group_of(rq->path));
	jsonw_object_close(&w);
}

/* Bits, by the order in which they are told. */
enum verbs { CREATE = 1, GET_ONE = 2, LIST = 4, UPDATE = 8 };

static void write_resource(struct jsonw *w, const char *name, const char *kind, bool namespaced,
			   unsigned int verbs)
{
	static const char *const names[] = {"create", "get", "list", "update"};

	jsonw_object_open(w);
	jsonw_key_string(w, "name", name);
	jsonw_key_string(w, "singularName", "");
	jsonw_key_bool(w, "namespaced", namespaced);
	jsonw_key_string(w, "kind", kind);
	jsonw_key_array(w, "verbs");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (verbs >> i & 1)
			jsonw_string(w, names[i]);
	jsonw_array_close(w);
	jsonw_object_close(w);
}

/* Of the route with a resource and those below it; a subresource is a route of its own. */
static unsigned int verbs_of(const struct route *of)
{
	unsigned int verbs = 0;

	if (of->subresource)
		return strcmp(of->method, "POST") == 0 ? CREATE : UPDATE;
	for (const struct route *r = api_routes; r->path; r++)
		if (!r->subresource && is_below(r->path, of->path, "/"))
			verbs |= route_is_posted(r) ? CREATE : r == of ? LIST : GET_ONE;
	return verbs;
}

/* "NodeList" is a list of Node. */
static void write_route(struct jsonw *w, const struct route *r)
{
	char kind[32], name[2 * ACCESS_RESOURCE_LEN];
	const char *sub = r->subresource;
	const char *list = strstr(r->kind, "List");
	size_t len = list ? (size_t)(list - r->kind) : strlen(r->kind);

	snprintf(kind, sizeof(kind), "%.*s", (int)len, r->kind);
	snprintf(name, sizeof(name), "%s%s%s", r->resource, sub ? "/" : "", sub ? sub : "");
	write_resource(w, name, kind, is_namespaced(r->resource), verbs_of(r));
}

/* GET /apis/GROUP/VERSION */
static void answer_resources(const struct api_context *ctx, const struct api_request *rq,
			     struct api_response *rs)
{
	const struct group *g = group_of(rq->path);
	struct jsonw w;

	(void)ctx;
	open_object(rs, &w, "APIResourceList");
	jsonw_key_string(&w, "groupVersion", rq->path + strlen(PREFIX));
	jsonw_key_array(&w, "resources");
	if (g == &groups[0]) {
		for (const struct route *r = api_routes; r->path; r++)
			if (r->resource)
				write_route(&w, r);
	} else {
		write_resource(&w, "nodes", "NodeMetrics", false, GET_ONE | LIST);
		write_resource(&w, "pods", "PodMetrics", true, GET_ONE | LIST);
	}
	jsonw_array_close(&w);
	jsonw_object_close(&w);
}

/* GET /openapi/v2 and v3: the API server merges descriptions of its extensions; ours adds nothing. */
static void answer_openapi(const struct api_context *ctx, const struct api_request *rq,
			   struct api_response *rs)
{
	(void)ctx;
	rs->content_type = "application/json";
	buf_add_str(&rs->body, strcmp(rq->path, "/openapi/v3") == 0
				       ? "{\"paths\":{}}"
				       : "{\"swagger\":\"2.0\",\"info\":{\"title\":\"evenkeel\","
					 "\"version\":\"" EVENKEEL_VERSION "\"},\"paths\":{}}");
}

/* clang-format off */
#define GET(path, handler, work) \
	{path, "GET", handler, work, "An answer to the Kubernetes API server", \
	 .content_type = "application/json"}
/* clang-format on */

const struct route api_group_routes[] = {
	GET("/apis", answer_groups, API_WORK_SHORT),
	GET("/apis/" API_GROUP, answer_group, API_WORK_SHORT),
	GET("/apis/" API_GROUP "/" API_GROUP_VERSION, answer_resources, API_WORK_SHORT),
	GET(METRICS, answer_group, API_WORK_SHORT),
	GET(METRICS "/v1", answer_resources, API_WORK_SHORT),
	GET(METRICS "/v1beta1", answer_resources, API_WORK_SHORT),
	GET(METRICS "/{version}/nodes", api_node_metrics, API_WORK_SHORT),
	GET(METRICS "/{version}/nodes/{name}", api_node_metrics, API_WORK_SHORT),
	GET(METRICS "/{version}/pods", api_pod_metrics, API_WORK_SHORT),
	GET(METRICS "/{version}/namespaces/{namespace}/pods", api_pod_metrics, API_WORK_SHORT),
	GET(METRICS "/{version}/namespaces/{namespace}/pods/{name}", api_pod_metrics,
	    API_WORK_SHORT),
	GET("/openapi/v2", answer_openapi, API_WORK_NOW),
	GET("/openapi/v3", answer_openapi, API_WORK_NOW),
	{0},
};

/* --- failures --------------------------------------------------------------------------------- */

static const char *reason_of(int status)
{
	static const struct {
		int status;
		const char *reason;
	} reasons[] = {
#define X(name, status, code, reason) {status, reason},
		API_FAILURES(X)
#undef X
	};

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return "";
}

void api_fail_as_status(const char *path, struct api_response *rs)
{
	struct buf error = rs->body;
	struct jsonw w;
	cJSON *json;

	if (rs->status < 400 || strncmp(path, PREFIX, strlen(PREFIX)) != 0)
		return;
	json = cJSON_ParseWithLength(error.data, error.len);
	buf_init(&rs->body);
	open_object(rs, &w, "Status");
	jsonw_key_object(&w, "metadata");
	jsonw_object_close(&w);
	jsonw_key_string(&w, "status", "Failure");
	jsonw_key_string(&w, "message", document_text(json, "error.message"));
	jsonw_key_string(&w, "reason", reason_of(rs->status));
	jsonw_key_int(&w, "code", rs->status);
	buf_add_char(&rs->body, ',');
	buf_add(&rs->body, error.data + 1, error.len - 1); /* "error":{..}} */
	cJSON_Delete(json);
	buf_fini(&error);
}
