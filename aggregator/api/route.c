/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which handler answers which path and method, and how a refusal looks. A word in braces in a path
 * of the table stands for a name, which the handler takes from the path. Parameters are checked
 * here, by what the table says.
 */
#include <assert.h>

#include "aggregator/api/access_review.h"
#include "aggregator/api/api_group.h"
#include "aggregator/api/kube_objects.h"
#include "aggregator/api/route.h"
#include "shared/jsonw.h"
#include "shared/mem.h"

enum { PARAMETERS_MOST = 16, BODY_MOST = 1 << 20 };

/* Names are not empty. The last one of a template may have slashes. */
static bool is_path_of(const char *template, const char *path)
{
	size_t tail, len = strcspn(template, "{");

	while (strncmp(path, template, len) == 0) {
		path += len;
		if (!template[len])
			return !*path;
		template = strchr(template + len, '}') + 1;
		len = strcspn(template, "{");
		tail = strlen(path);
		if (!template[len])
			return tail > len && strcmp(path + tail - len, template) == 0;
		if (*path == '/')
			return false;
		path += strcspn(path, "/");
	}
	return false;
}

/* Whether it lacks only the name at its end. */
static bool has_folder(const char *path)
{
	size_t len = strlen(path);

	for (const struct route *r = api_routes; r->path; r++) {
		const char *name = r->path + len;

		if (strncmp(r->path, path, len) == 0 && *name == '{' &&
		    name[strcspn(name, "}") + 1] == '\0')
			return true;
	}
	return false;
}

/* "/v1/nodes/" is "/v1/nodes", as nothing is below it. */
static const struct route *find_path(const char *path)
{
	for (const struct route *r = api_group_routes; r->path; r++)
		if (is_path_of(r->path, path))
			return r;
	for (const struct route *r = api_routes; r->path; r++)
		if (is_path_of(r->path, path))
			return r;
	for (const struct route *r = api_routes; r->path; r++)
		if (strncmp(path, r->path, strlen(r->path)) == 0 &&
		    strcmp(path + strlen(r->path), "/") == 0 && has_folder(path))
			return r;
	return NULL;
}

static bool method_fits(const struct route *route, const char *method)
{
	if (!route->method || strcmp(route->method, method) == 0)
		return true;
	return strcmp(route->method, "GET") == 0 && strcmp(method, "HEAD") == 0;
}

/* The next method of the same path, or NULL. */
static const struct route *next_method(const struct route *r)
{
	return r[1].path && strcmp(r[1].path, r->path) == 0 ? r + 1 : NULL;
}

static const char *allowed(const struct route *r)
{
	enum { GETS = 1, POSTS = 2, PUTS = 4 };
	static const char *const texts[] = {
		[GETS] = "GET, HEAD",
		[POSTS] = "POST",
		[GETS | POSTS] = "GET, HEAD, POST",
		[GETS | PUTS] = "GET, HEAD, PUT",
	};
	unsigned int methods = 0;

	for (; r; r = next_method(r))
		methods |= r->method[0] == 'G' ? GETS : r->method[1] == 'O' ? POSTS : PUTS;
	assert(methods < sizeof(texts) / sizeof(texts[0]) && texts[methods]);
	return texts[methods];
}

/* An address configured with a slash at its end makes clients ask for "//watcher". */
const char *api_plain_path(const char *path)
{
	while (path[0] == '/' && path[1] == '/')
		path++;
	return path;
}

/* Of a path as requested. */
static const struct route *route_of(const char *path)
{
	char room[API_LOCAL_LEN], namespace[ACCESS_RESOURCE_LEN];

	return find_path(api_group_local_path(api_plain_path(path), room, namespace));
}

bool api_access_acts(const char *method, const char *path)
{
	const struct route *r = route_of(path);

	while (r && !(r->acts && method_fits(r, method)))
		r = next_method(r);
	return r;
}

size_t api_body_most(const char *path)
{
	const struct route *route = route_of(path);

	return route && route->body_most ? route->body_most : BODY_MOST;
}

/* Whether a member "pod" is a text: YAML takes long to read. Blanks are what cJSON skips. */
static bool has_pod_text(const char *body, size_t len)
{
	static const char name[] = "\"pod\"";
	const char *p;

	while ((p = memmem(body, len, name, strlen(name)))) {
		p += strlen(name);
		len -= (size_t)(p - body);
		for (body = p; len && (*body == ':' || (unsigned char)*body <= ' '); len--)
			body++;
		if (len && *body == '"')
			return true;
	}
	return false;
}

/*
 * As text: a word in another place only sends a short request the long way. What is escaped may be
 * any word.
 */
static bool may_have(const char *body, size_t len, const char *const *members)
{
	if (memchr(body, '\\', len) || has_pod_text(body, len))
		return true;
	for (; *members; members++)
		if (memmem(body, len, *members, strlen(*members)))
			return true;
	return false;
}

enum api_work api_work_of(const char *path, const char *body, size_t len)
{
	const struct route *route = route_of(path);

	if (!route)
		return API_WORK_NOW;
	if (route->long_by && !may_have(body, len, route->long_by))
		return API_WORK_SHORT;
	return route->work;
}

enum api_access api_access_class(const char *path)
{
	const struct route *route = route_of(path);

	return route ? route->access : API_ACCESS_GUARDED;
}

static const struct {
	int status;
	const char *code;
} failures[] = {
#define X(name, number, text, reason) [FAIL_##name] = {.status = (number), .code = (text)},
	API_FAILURES(X)
#undef X
};

bool api_fail(struct api_response *rs, enum api_failure failure, const char *field,
	      const char *format, ...)
{
	char message[512];
	struct jsonw w;

	MEM_FORMAT(message, sizeof(message), format);
	buf_clear(&rs->body);
	jsonw_begin(&w, &rs->body);
	jsonw_key_object(&w, "error");
	jsonw_key_string(&w, "code", failures[failure].code);
	jsonw_key_string(&w, "message", message);
	jsonw_key_text(&w, "field", field);
	jsonw_object_close(&w);
	jsonw_object_close(&w);
	buf_add_char(&rs->body, '\n');
	rs->status = failures[failure].status;
	rs->content_type = "application/json";
	return false;
}

bool api_field_check(const struct api_field *f, const char *text, struct api_response *rs)
{
	struct buf known = BUF_INIT;
	const char *const *v = f->values;

	for (; *v && strcmp(*v, text) != 0; v++)
		buf_printf(&known, "%s%s", known.len ? ", " : "", *v);
	if (!*v && f->type == API_BOOLEAN)
		api_fail(rs, FAIL_BAD_REQUEST, f->name, "\"%.60s\" is neither true nor false",
			 text);
	else if (!*v)
		api_fail(rs, FAIL_BAD_REQUEST, f->name, "there is no %s \"%.64s\"; there are %s",
			 f->name, text, known.data);
	buf_fini(&known);
	return *v;
}

int api_query_choice(const struct api_request *rq, const char *name, const char *const *values)
{
	const char *text = rq->query(rq, name);
	int i = 0;

	while (text && values[i] && strcmp(values[i], text) != 0)
		i++;
	return text && values[i] ? i : 0;
}

bool api_query_flag(const struct api_request *rq, const char *name)
{
	const char *text = rq->query(rq, name);

	return text && strcmp(text, "true") == 0;
}

/*
 * False: a parameter is unknown, or has an unknown value, and *rs says so. kubectl sends `limit` for
 * every list.
 */
static bool check_query(const struct route *route, const struct api_request *rq, bool grouped,
			struct api_response *rs)
{
	const char *known[PARAMETERS_MOST + 3], *other;
	size_t count = 0;

	if (!route->query || route->lenient)
		return true;
	for (const struct api_field *f = route->query; f->name; f++) {
		const char *text = rq->query(rq, f->name);

		assert(count < PARAMETERS_MOST);
		known[count++] = f->name;
		if (f->values && text && *text && !api_field_check(f, text, rs))
			return false;
	}
	if (grouped) {
		known[count++] = "limit";
		known[count++] = "includeObject";
	}
	known[count] = NULL;
	other = rq->query_other(rq, known);
	if (other)
		api_fail(rs, FAIL_BAD_REQUEST, other, "unknown parameter \"%s\"", other);
	return !other;
}

void api_route(const struct api_context *ctx, const struct api_request *rq, struct api_response *rs)
{
	char room[API_LOCAL_LEN], namespace[ACCESS_RESOURCE_LEN];
	struct api_request plain = *rq;
	struct access_request path;
	const struct route *first, *route;
	bool grouped;

	plain.path = api_group_local_path(api_plain_path(rq->path), room, namespace);
	plain.in_namespace = namespace[0] ? namespace : NULL;
	grouped = plain.path == room;
	/* The first of the path, and the one of the method. */
	first = route = find_path(plain.path);
	while (route && !method_fits(route, plain.method))
		route = next_method(route);
	rs->status = route && route->status ? route->status : 200;
	if (!first) {
		api_fail(rs, FAIL_NOT_FOUND, NULL, "there is nothing at %s", plain.path);
	} else if (!route) {
		rs->allow = allowed(first);
		api_fail(rs, FAIL_METHOD_NOT_ALLOWED, NULL, "%s answers %s, not %s", first->path,
			 rs->allow, plain.method);
	} else if (check_query(route, &plain, grouped, rs)) {
		route->handler(ctx, &plain, rs);
		api_access_request(plain.method, api_plain_path(rq->path), &path);
		if (grouped && strcmp(route->method, "GET") == 0)
			kube_objects_of(&plain, &path, rs);
	}
}
