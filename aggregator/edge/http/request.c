/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library calls for the headers, for each piece of the body and at its end, and once more
 * after a suspended connection is resumed:
 *
 *     headers --> auth --pass--> body, within bounds --> api_route() --> answer_send()
 *                   |  |                           |             ^
 *             refuse|  |review: suspended          | suspended   |
 *                   v  v                           v             |
 *              answer  review workers --> resumed  workers ------+
 *
 * A refused client gets the reason: the rest of its body is read and dropped, up to BODY_SWALLOWED.
 */
#include "aggregator/edge/http/server.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "shared/array.h"
#include "shared/mem.h"

enum { BODY_SWALLOWED = 16 << 20 };

/* A request between its first line and its end. */
struct pending {
	struct buf body;
	size_t seen; /* bytes of the body so far, kept or not */
	size_t body_most;
	bool scheduler; /* a path of schedulers */
	bool too_large;
	bool busy;
	bool refused; /* by the connection manager; see refusal */
	bool reviewed; /* by now: the library reports the headers once more */
	struct auth_refusal refusal;

	/* the worker's, from suspension to resumption */
	struct work work;
	struct http_server *server;
	struct event_loop *loop;
	struct connection *c;
	struct MHD_Connection *connection; /* the library's c */
	const char *method, *path, *version; /* the connection's */
	bool routed; /* rs is the answer, not sent yet */
	struct api_response rs;
};

/* --- the query, as handlers see it ------------------------------------------------------------ */

struct search {
	const char *name; /* wanted; NULL: any */
	const char *const *known; /* but not one of these */
	const char *found;
};

static enum MHD_Result on_parameter(void *cls, enum MHD_ValueKind kind, const char *key,
				    const char *value)
{
	struct search *s = cls;

	(void)kind;
	if (!*key) /* "?" and "&" at an end */
		return MHD_YES;
	if (s->name && strcmp(s->name, key) == 0)
		s->found = value ? value : "";
	else if (s->known && !array_has_text(s->known, key))
		s->found = key;
	return s->found ? MHD_NO : MHD_YES;
}

static const char *query(const struct api_request *rq, const char *name)
{
	struct search s = {.name = name};

	MHD_get_connection_values(rq->connection, MHD_GET_ARGUMENT_KIND, on_parameter, &s);
	return s.found;
}

static const char *header_of(struct MHD_Connection *connection, const char *name)
{
	return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static const char *header(const struct api_request *rq, const char *name)
{
	return header_of(rq->connection, name);
}

static const char *query_other(const struct api_request *rq, const char *const *known)
{
	struct search s = {.known = known};

	MHD_get_connection_values(rq->connection, MHD_GET_ARGUMENT_KIND, on_parameter, &s);
	return s.found;
}

static void route(const struct pending *p, struct api_response *rs)
{
	const struct api_request rq = {
		.method = p->method,
		.path = p->path,
		.body = p->body.data ? p->body.data : "",
		.body_len = p->body.len,
		.query = query,
		.query_other = query_other,
		.header = header,
		.user = p->refusal.user,
		.foreign = api_access_class(p->path) == API_ACCESS_PUBLIC &&
			   !conn_manager_is_named(p->server->manager, p->c),
		.connection = p->connection,
	};

	api_route(p->server->ctx, &rq, rs);
}

static enum MHD_Result answer_request(struct pending *p)
{
	struct api_response rs = {.status = 200};

	if (p->refused) {
		api_fail(&rs, p->refusal.failure, NULL, "%s", p->refusal.text);
		rs.retry_after_s = p->refusal.retry_after_s;
		rs.last = p->refusal.reason == ACCESS_REFUSAL_UNCLEAR;
	} else if (p->too_large) {
		counter_add(&p->server->ctx->counters->access.refused[ACCESS_REFUSAL_TOO_LARGE], 1);
		api_fail(&rs, FAIL_TOO_LARGE, NULL, "the body is larger than %zu bytes",
			 p->body_most);
	} else if (p->busy) {
		api_fail(&rs, FAIL_BUSY, NULL, "too many requests at once; try again");
	} else {
		route(p, &rs);
	}
	return answer_send(p->server, p->c, p->path, &rs, p->scheduler);
}

/* --- work ------------------------------------------------------------------------------------- */

/* A worker's thread, or the thread that refuses it. After the resumption *p is the loop's. */
static void run_request(struct work *w, bool refused)
{
	struct pending *p = (struct pending *)((char *)w - offsetof(struct pending, work));

	p->rs.status = 200;
	p->busy = refused;
	p->routed = !refused;
	if (p->routed)
		route(p, &p->rs);
	event_loop_resume(p->loop, p->connection);
}

/* As run_request(), for a review. */
static void run_review(struct work *w, bool refused)
{
	struct pending *p = (struct pending *)((char *)w - offsetof(struct pending, work));

	p->refused = conn_manager_review(p->server->manager, p->c, p->method, p->path, refused,
					 &p->refusal) == AUTH_REFUSE;
	conn_manager_step(p->server->manager, p->c, CONN_BODY);
	event_loop_resume(p->loop, p->connection);
}

/* The loop serves others meanwhile, and is called once more. */
static enum MHD_Result do_later(struct workers *ws, void (*run)(struct work *w, bool refused),
				struct pending *p)
{
	p->work.run = run;
	p->work.client = conn_manager_client(p->server->manager, p->c, p->path, run == run_request);
	conn_manager_step(p->server->manager, p->c, CONN_WORK);
	MHD_suspend_connection(p->connection);
	workers_give(ws, &p->work);
	return MHD_YES;
}

/* --- requests --------------------------------------------------------------------------------- */

static size_t swallowed(size_t most)
{
	return most > BODY_SWALLOWED ? most : BODY_SWALLOWED;
}

/* Whether the body is refused before the client sends it, or too large to be read to its end. */
static bool refuse_at_once(struct MHD_Connection *connection, size_t most)
{
	const char *length = header_of(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);
	const char *expect = header_of(connection, MHD_HTTP_HEADER_EXPECT);
	unsigned long long announced = length ? strtoull(length, NULL, 10) : 0;

	return announced > (expect ? most : swallowed(most));
}

static bool has_body(struct MHD_Connection *connection)
{
	const char *length = header_of(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);

	return (length && strcmp(length, "0") != 0) ||
	       header_of(connection, MHD_HTTP_HEADER_TRANSFER_ENCODING);
}

static void take_body(struct pending *p, const char *data, size_t len)
{
	p->seen += len;
	if (p->seen > p->body_most)
		p->too_large = true;
	if (p->too_large || p->busy || p->refused)
		return;
	if (!answer_hold(p->server, len, p->scheduler))
		p->busy = true;
	else
		buf_add(&p->body, data, len);
}

void *request_on_target(void *loop, const char *target, struct MHD_Connection *connection)
{
	struct connection *c = conn_manager_find(connection);

	if (c)
		conn_manager_note_target(event_loop_server(loop)->manager, c, target);
	return NULL;
}

/*
 * A text with a NUL in it would be cut; nothing has a name with "%00". An escaped slash does not
 * divide a path: a proxy in front reads it as a part of a name.
 */
size_t request_unescape(void *cls, struct MHD_Connection *connection, char *text)
{
	const struct connection *c = conn_manager_find(connection);

	(void)cls;
	if (strstr(text, "%00") || (c && c->target.text == text && strcasestr(text, "%2f")))
		return strlen(text);
	return MHD_http_unescape(text);
}

/* The headers have arrived. MHD_YES: go on with the body, or an answer is queued. */
static enum MHD_Result begin_request(struct pending *p)
{
	struct http_server *s = p->server;

	p->body_most = api_body_most(p->path);
	p->scheduler = api_work_of(p->path, "", 0) == API_WORK_SCHEDULER;
	conn_manager_step(s->manager, p->c, CONN_BODY);
	switch (conn_manager_check(s->manager, p->c, p->method, p->path, p->version, &p->refusal)) {
	case AUTH_REFUSE:
		p->refused = true;
		break;
	case AUTH_REVIEW:
		p->too_large = refuse_at_once(p->connection, p->body_most);
		p->reviewed = true;
		return do_later(s->review_workers, run_review, p);
	case AUTH_PASS:
		p->too_large = refuse_at_once(p->connection, p->body_most);
		break;
	}
	if (p->refused || p->too_large)
		return answer_request(p);
	return MHD_YES;
}

static struct pending *new_pending(struct event_loop *loop, struct MHD_Connection *connection,
				   const char *method, const char *path, const char *version)
{
	struct pending *p = mem_zalloc(1, sizeof(*p));

	p->server = event_loop_server(loop);
	p->loop = loop;
	p->c = conn_manager_find(connection);
	p->connection = connection;
	p->method = method;
	p->path = path;
	p->version = version;
	return p;
}

enum MHD_Result request_on_progress(void *loop, struct MHD_Connection *connection, const char *path,
				    const char *method, const char *version, const char *upload,
				    size_t *upload_len, void **state)
{
	struct pending *p = *state;
	struct workers *ws;

	if (!p) {
		if (!conn_manager_find(connection))
			return MHD_NO; /* its client has too many connections */
		*state = p = new_pending(loop, connection, method, path, version);
		handshake_note_progress(&p->c->handshake);
		return begin_request(p);
	}
	handshake_note_progress(&p->c->handshake);
	if (*upload_len) {
		take_body(p, upload, *upload_len);
		*upload_len = 0;
		return p->seen > swallowed(p->body_most) ? MHD_NO : MHD_YES;
	}
	if (p->reviewed) {
		p->reviewed = false;
		if (!p->refused && !p->too_large && has_body(connection))
			return MHD_YES;
	}
	if (p->routed) {
		struct api_response rs = p->rs;

		p->routed = false;
		p->rs = (struct api_response){0};
		return answer_send(p->server, p->c, p->path, &rs, p->scheduler);
	}
	ws = p->server->workers[api_work_of(path, p->body.data ? p->body.data : "", p->body.len)];
	if (ws && !p->too_large && !p->busy && !p->refused)
		return do_later(ws, run_request, p);
	return answer_request(p);
}

void request_on_completed(void *loop, struct MHD_Connection *connection, void **state,
			  enum MHD_RequestTerminationCode how)
{
	struct pending *p = *state;

	(void)loop, (void)connection, (void)how;
	if (!p)
		return;
	conn_manager_step(p->server->manager, p->c, CONN_REQUEST);
	answer_release(p->server, p->body.len);
	buf_fini(&p->body);
	answer_drop(&p->rs);
	free(p);
	*state = NULL;
}
