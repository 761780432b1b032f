/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libmicrohttpd around api_route().
 *
 * Two threads of the library each wait for their connections' events; a request runs on one of them from the first byte
 * to the last and never blocks: a handler takes a view, writes its answer into memory and drops the view. What a
 * slow client has not yet sent or read waits in memory, not on a thread.
 *
 * Requests that may take seconds (api_takes_long(): simulations of a whole cluster) are made elsewhere, so that none of
 * a scheduler waits behind them:
 *
 *     library's thread: request complete --> connection suspended --> workers: api_route() --> resumed
 *     library's thread: on_request() once more <----------------------------------------------'  --> answer sent
 *
 * Bounds. Connections: CONNECTIONS_MOST, at most three quarters of what the limit of open files leaves, so that agents are let
 * in however many clients there are, and where strangers can connect PER_IP_MOST from one address. Memory: a request's body what its route takes (api_body_most()), all bodies and unread answers together HELD_MOST
 * (beyond: 503, but answers up to SMALL_ANSWER, such as of health, always pass). Streams are made piece by piece as
 * the client reads; each holds what it is made from, so STREAMS_MOST at once (beyond: 503). Silence: DOOR_IDLE_SECONDS. What the library refuses by itself (bytes that are not
 * HTTP, headers beyond CONNECTION_BYTES) never reaches a handler.
 *
 * Before any of that a request passes the door (door.c): TLS, who is let in, and times for each of
 * its steps, after which its connection is cut. Whom it refuses is told so before the body is read.
 * Where the door wants a token reviewed, the connection is suspended likewise, behind the headers,
 * for threads that do nothing else; the library tells of the headers once more when it is resumed.
 *
 * Shutdown: long requests that have not begun are refused; then stopping closes every connection, completes every
 * request that began, and joins the threads.
 */
#include <errno.h>
#include <gnutls/abstract.h>
#include <microhttpd.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "aggregator/edge/http/door.h"
#include "aggregator/edge/http/http.h"
#include "aggregator/edge/http/listen.h"
#include "aggregator/edge/http/workers.h"
#include "shared/log.h"
#include "shared/mem.h"

enum {
	THREADS = 2,
	CONNECTIONS_MOST = 16384,
	CONNECTIONS_LEAST = 64,
	DESCRIPTORS_KEPT = 256, /* for files, databases, the Kubernetes API .. */
	PER_IP_MOST = 2048,
	CONNECTION_BYTES = 16384,
	BODY_SWALLOWED =
		16 << 20, /* read and forgotten, so that the client gets to read the refusal */
	HELD_MOST = 256 << 20,
	SMALL_ANSWER = 4096,
	STREAMS_MOST = 4,
	STREAM_BLOCK = 32 << 10,
	WORKERS = 2,
	LONG_MOST = 64, /* long requests that wait */
	REVIEWS_MOST = 256, /* requests that wait for a review of their token */
};

/* TLS 1.2 and 1.3, with ciphers that authenticate, and keys that do not outlive a session. */
#define TLS_PRIORITIES                                                                             \
	"NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-RSA:-CIPHER-ALL:+AES-256-GCM:"                \
	"+CHACHA20-POLY1305:+AES-128-GCM"

struct http_server {
	const struct api_context *ctx; /* fixed after start; borrowed */
	struct MHD_Daemon *daemon;
	struct listener listener;
	struct workers *workers;
	struct workers *reviewers; /* NULL: nobody is asked about tokens */
	struct door *door;
	atomic_size_t held_bytes;
	atomic_uint streams; /* under way */
};

/* One request between its first line and its end. */
struct pending {
	struct buf body;
	size_t seen; /* bytes of the body that arrived, kept or not */
	size_t body_most;
	bool too_large;
	bool busy;
	bool refused; /* by the door, as refusal says */
	bool reviewed; /* just now: the library tells of the headers once more */
	struct gate_refusal refusal;

	/* of a request that takes long; from its suspension to its resumption the worker's */
	struct work work;
	struct http_server *server;
	struct MHD_Connection *connection;
	const char *method, *path; /* the connection's */
	bool routed; /* rs is the answer, not sent yet */
	struct api_response rs;
};

/* An answer the library is sending. */
struct answer {
	struct http_server *server;
	char *data; /* owned */
	size_t len;
	struct shared_body *shared; /* held, and then data is its */
};

/* A stream the library is sending. */
struct sending {
	struct http_server *server;
	struct api_stream *stream; /* owned */
	struct buf piece; /* the newest */
	size_t sent; /* of it */
};

static bool hold(struct http_server *s, size_t len)
{
	if (atomic_fetch_add(&s->held_bytes, len) + len <= HELD_MOST)
		return true;
	atomic_fetch_sub(&s->held_bytes, len);
	return false;
}

static void release(struct http_server *s, size_t len)
{
	atomic_fetch_sub(&s->held_bytes, len);
}

/* --- the query, as handlers see it ------------------------------------------------------------------------------ */

struct search {
	const char *name; /* wanted, or */
	const char *const *known; /* everything but these */
	const char *found;
};

static bool is_known(const char *const *known, const char *name)
{
	for (; *known; known++)
		if (strcmp(*known, name) == 0)
			return true;
	return false;
}

static enum MHD_Result on_parameter(void *cls, enum MHD_ValueKind kind, const char *key,
				    const char *value)
{
	struct search *s = cls;

	(void)kind;
	if (!*key) /* "?" and "&" at an end */
		return MHD_YES;
	if (s->name && strcmp(s->name, key) == 0)
		s->found = value ? value : "";
	else if (s->known && !is_known(s->known, key))
		s->found = key;
	return s->found ? MHD_NO : MHD_YES;
}

static const char *query(const struct api_request *rq, const char *name)
{
	struct search s = {.name = name};

	MHD_get_connection_values(rq->connection, MHD_GET_ARGUMENT_KIND, on_parameter, &s);
	return s.found;
}

static const char *header(const struct api_request *rq, const char *name)
{
	return MHD_lookup_connection_value(rq->connection, MHD_HEADER_KIND, name);
}

static const char *query_other(const struct api_request *rq, const char *const *known)
{
	struct search s = {.known = known};

	MHD_get_connection_values(rq->connection, MHD_GET_ARGUMENT_KIND, on_parameter, &s);
	return s.found;
}

/* --- answers ---------------------------------------------------------------------------------------------------- */

static void free_answer(void *cls)
{
	struct answer *a = cls;

	release(a->server, a->len);
	if (a->shared)
		shared_body_drop(a->shared);
	else
		free(a->data);
	free(a);
}

static size_t answer_len(const struct api_response *rs)
{
	return rs->shared ? rs->shared->len : rs->body.len;
}

/* Counts the answer as held, which free_answer() ends; false where it would be too much. */
static bool hold_answer(struct http_server *s, const struct api_response *rs)
{
	size_t len = answer_len(rs);

	if (len > SMALL_ANSWER)
		return hold(s, len);
	atomic_fetch_add(&s->held_bytes, len);
	return true;
}

/* Takes the body over, which is counted as held. A shared one counts as held for every answer: who reads slowly
 * may be its last user. */
static struct MHD_Response *new_answer(struct http_server *s, struct api_response *rs)
{
	struct answer *a = mem_zalloc(1, sizeof(*a));
	struct MHD_Response *response;

	a->server = s;
	a->shared = rs->shared;
	rs->shared = NULL;
	if (a->shared) {
		a->data = a->shared->data;
		a->len = a->shared->len;
	} else {
		a->data = buf_take(&rs->body, &a->len);
	}
	response = MHD_create_response_from_buffer_with_free_callback_cls(a->len, a->data,
									  free_answer, a);
	if (!response)
		free_answer(a);
	return response;
}

/* --- streams ---------------------------------------------------------------------------------------------------- */

static void end_sending(void *cls)
{
	struct sending *d = cls;

	atomic_fetch_sub(&d->server->streams, 1);
	d->stream->free(d->stream);
	buf_fini(&d->piece);
	free(d);
}

/* The library takes 0 for "ask again at once", so an empty piece is not the end of it. */
static ssize_t send_piece(void *cls, uint64_t at, char *to, size_t most)
{
	struct sending *d = cls;
	size_t len;

	(void)at;
	while (d->sent == d->piece.len) {
		buf_clear(&d->piece);
		d->sent = 0;
		if (!d->stream->next(d->stream, &d->piece))
			return MHD_CONTENT_READER_END_OF_STREAM;
	}
	len = d->piece.len - d->sent < most ? d->piece.len - d->sent : most;
	memcpy(to, d->piece.data + d->sent, len);
	d->sent += len;
	return (ssize_t)len;
}

/* Whether one more may begin, which is counted then until end_sending(). */
static bool begin_stream(struct http_server *s)
{
	if (atomic_fetch_add(&s->streams, 1) < STREAMS_MOST)
		return true;
	atomic_fetch_sub(&s->streams, 1);
	return false;
}

static void drop_stream(struct api_response *rs)
{
	if (rs->stream)
		rs->stream->free(rs->stream);
	rs->stream = NULL;
}

/* Takes the stream over, which has begun. */
static struct MHD_Response *new_stream(struct http_server *s, struct api_response *rs)
{
	struct sending *d = mem_zalloc(1, sizeof(*d));
	struct MHD_Response *response;

	d->server = s;
	d->stream = rs->stream;
	rs->stream = NULL;
	response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, send_piece, d,
						     end_sending);
	if (!response)
		end_sending(d);
	return response;
}

/* --- sending ---------------------------------------------------------------------------------------------------- */

/* A client that has this very answer (If-None-Match lists its tag, or is "*") need not get it again. */
static bool is_unchanged(struct MHD_Connection *connection, const char *tag)
{
	const char *have = MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
						       MHD_HTTP_HEADER_IF_NONE_MATCH);

	return have && (strcmp(have, "*") == 0 || strstr(have, tag));
}

static void drop_shared(struct api_response *rs)
{
	shared_body_drop(rs->shared);
	rs->shared = NULL;
	rs->gzip = false;
}

/* Weak: the bytes may differ in ages. Turns *rs into a 304 where the client knows it. */
static void tag_answer(struct MHD_Connection *connection, struct api_response *rs, char header[32])
{
	snprintf(header, 32, "W/\"%016llx\"", (unsigned long long)rs->etag);
	if (is_unchanged(connection, header + 2)) {
		rs->status = 304;
		rs->content_type = NULL;
		drop_shared(rs);
		buf_clear(&rs->body);
	}
}

/* Without a header the answer would say something else, so there is none where one finds no memory. */
static bool add_header(struct MHD_Response *response, const char *name, const char *value)
{
	return !value || MHD_add_response_header(response, name, value) == MHD_YES;
}

/* What a client is to do about 401, and when about 429. */
static bool add_refusal_headers(struct MHD_Response *response, const struct api_response *rs)
{
	char seconds[16];

	snprintf(seconds, sizeof(seconds), "%d", rs->retry_after_s);
	return add_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE,
			  rs->status == 401 ? "Bearer realm=\"evenkeel\"" : NULL) &&
	       add_header(response, MHD_HTTP_HEADER_RETRY_AFTER,
			  rs->retry_after_s ? seconds : NULL);
}

static bool add_headers(struct MHD_Response *response, const struct api_response *rs,
			const char *tag)
{
	return add_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, rs->content_type) &&
	       add_header(response, MHD_HTTP_HEADER_CONTENT_ENCODING, rs->gzip ? "gzip" : NULL) &&
	       add_header(response, MHD_HTTP_HEADER_VARY,
			  rs->negotiated ? "Accept-Encoding" : NULL) &&
	       add_header(response, MHD_HTTP_HEADER_ALLOW, rs->allow) &&
	       add_refusal_headers(response, rs) &&
	       add_header(response, MHD_HTTP_HEADER_ETAG, *tag ? tag : NULL);
}

static enum MHD_Result send_answer(struct http_server *s, struct MHD_Connection *connection,
				   struct api_response *rs)
{
	struct MHD_Response *response;
	enum MHD_Result result;
	char tag[32] = "";

	if (rs->status == 200 && rs->etag)
		tag_answer(connection, rs, tag);
	if (rs->stream && !begin_stream(s)) {
		drop_stream(rs);
		api_fail(rs, FAIL_BUSY, NULL, "%d snapshots are being read; try again",
			 STREAMS_MOST);
	}
	if (!rs->stream && !hold_answer(s, rs)) {
		drop_shared(rs);
		tag[0] = '\0';
		api_fail(rs, FAIL_BUSY, NULL, "too many answers are being read; try again");
		hold_answer(s, rs);
	}
	counter_add(&s->ctx->counters->http_requests[rs->status / 100 % 6], 1);
	door_step(s->door, connection, rs->stream ? DOOR_STREAM : DOOR_ANSWER);
	response = rs->stream ? new_stream(s, rs) : new_answer(s, rs);
	if (!response)
		return MHD_NO;
	result = MHD_NO;
	if (add_headers(response, rs, tag))
		result = MHD_queue_response(connection, (unsigned int)rs->status, response);
	MHD_destroy_response(response);
	return result;
}

static void route(struct http_server *s, struct MHD_Connection *connection, const char *method,
		  const char *path, const struct pending *p, struct api_response *rs)
{
	const struct api_request rq = {
		.method = method,
		.path = path,
		.body = p->body.data ? p->body.data : "",
		.body_len = p->body.len,
		.query = query,
		.query_other = query_other,
		.header = header,
		.connection = connection,
	};

	api_route(s->ctx, &rq, rs);
}

static enum MHD_Result answer_request(struct http_server *s, struct MHD_Connection *connection,
				      const char *method, const char *path, struct pending *p)
{
	struct api_response rs = {.status = 200};

	if (p->refused) {
		api_fail(&rs, p->refusal.failure, NULL, "%s", p->refusal.text);
		rs.retry_after_s = p->refusal.retry_after_s;
	} else if (p->too_large) {
		counter_add(&s->ctx->counters->access.refused[ACCESS_REFUSAL_TOO_LARGE], 1);
		api_fail(&rs, FAIL_TOO_LARGE, NULL, "the body is larger than %zu bytes",
			 p->body_most);
	} else if (p->busy) {
		api_fail(&rs, FAIL_BUSY, NULL, "too many requests at once; try again");
	} else {
		route(s, connection, method, path, p, &rs);
	}
	return send_answer(s, connection, &rs);
}

/* --- requests that take long ------------------------------------------------------------------------------------ */

/* A worker's thread, or the one that stops the server. Behind the resumption nothing of it may be touched. */
static void run_long(struct work *w, bool stopping)
{
	struct pending *p = (struct pending *)((char *)w - offsetof(struct pending, work));

	p->rs.status = 200;
	if (stopping)
		api_fail(&p->rs, FAIL_BUSY, NULL, "the server is stopping");
	else
		route(p->server, p->connection, p->method, p->path, p, &p->rs);
	p->routed = true;
	MHD_resume_connection(p->connection);
}

/* The same of a review: whether the request is let in. */
static void run_review(struct work *w, bool stopping)
{
	struct pending *p = (struct pending *)((char *)w - offsetof(struct pending, work));

	if (stopping)
		door_refuse_busy(p->server->door, p->connection, &p->refusal);
	p->refused = stopping || door_review(p->server->door, p->connection, p->method, p->path,
					     &p->refusal) == GATE_REFUSE;
	door_step(p->server->door, p->connection, DOOR_BODY);
	MHD_resume_connection(p->connection);
}

/* The library's thread goes on with others meanwhile. False: too many wait already. */
static bool do_later(struct workers *ws, void (*run)(struct work *w, bool stopping),
		     struct pending *p)
{
	p->work.run = run;
	door_step(p->server->door, p->connection, DOOR_WORK);
	MHD_suspend_connection(p->connection);
	if (workers_give(ws, &p->work))
		return true;
	MHD_resume_connection(p->connection);
	return false;
}

static enum MHD_Result answer_routed(struct pending *p)
{
	struct api_response rs = p->rs;

	p->routed = false;
	p->rs = (struct api_response){0};
	return send_answer(p->server, p->connection, &rs);
}

static void drop_response(struct api_response *rs)
{
	if (rs->shared)
		drop_shared(rs);
	drop_stream(rs);
	buf_fini(&rs->body);
}

/* --- requests --------------------------------------------------------------------------------------------------- */

static size_t swallowed(size_t most)
{
	return most > BODY_SWALLOWED ? most : BODY_SWALLOWED;
}

/* A body that will be refused and that the client has not begun to send, or that is not worth reading to its end. */
static bool refuse_at_once(struct MHD_Connection *connection, size_t most)
{
	const char *length = MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
							 MHD_HTTP_HEADER_CONTENT_LENGTH);
	const char *expect =
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_EXPECT);
	unsigned long long announced = length ? strtoull(length, NULL, 10) : 0;

	return announced > (expect ? most : swallowed(most));
}

static bool has_body(struct MHD_Connection *connection)
{
	const char *length = MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
							 MHD_HTTP_HEADER_CONTENT_LENGTH);

	return (length && strcmp(length, "0") != 0) ||
	       MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
					   MHD_HTTP_HEADER_TRANSFER_ENCODING);
}

static void take_body(struct http_server *s, struct pending *p, const char *data, size_t len)
{
	p->seen += len;
	if (p->seen > p->body_most)
		p->too_large = true;
	if (p->too_large || p->busy || p->refused)
		return;
	if (!hold(s, len))
		p->busy = true;
	else
		buf_add(&p->body, data, len);
}

/* A text with a NUL in it would be another one, cut; nothing has a name that has "%00" in it. */
static size_t unescape(void *cls, struct MHD_Connection *connection, char *text)
{
	(void)cls, (void)connection;
	return strstr(text, "%00") ? strlen(text) : MHD_http_unescape(text);
}

/* The headers have come. MHD_YES: go on with the body; an answer was sent already where there is to be none. */
static enum MHD_Result begin_request(struct http_server *s, struct pending *p)
{
	p->body_most = api_body_most(p->path);
	door_step(s->door, p->connection, DOOR_BODY);
	switch (door_check(s->door, p->connection, p->method, p->path, &p->refusal)) {
	case GATE_REFUSE:
		p->refused = true;
		break;
	case GATE_REVIEW:
		p->too_large = refuse_at_once(p->connection, p->body_most);
		p->reviewed = true;
		if (do_later(s->reviewers, run_review, p))
			return MHD_YES;
		door_refuse_busy(s->door, p->connection, &p->refusal);
		p->refused = true;
		/* It was resumed, and is asked about once more. */
		return MHD_YES;
	case GATE_PASS:
		p->too_large = refuse_at_once(p->connection, p->body_most);
		break;
	}
	if (p->refused || p->too_large)
		return answer_request(s, p->connection, p->method, p->path, p);
	return MHD_YES;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *path,
				  const char *method, const char *version, const char *upload,
				  size_t *upload_len, void **state)
{
	struct http_server *s = cls;
	struct pending *p = *state;

	(void)version;
	if (!p) {
		*state = p = mem_zalloc(1, sizeof(*p));
		p->server = s;
		p->connection = connection;
		p->method = method;
		p->path = path;
		return begin_request(s, p);
	}
	if (*upload_len) {
		take_body(s, p, upload, *upload_len);
		*upload_len = 0;
		return p->seen > swallowed(p->body_most) ? MHD_NO : MHD_YES;
	}
	if (p->reviewed) {
		p->reviewed = false;
		if (!p->refused && !p->too_large && has_body(connection))
			return MHD_YES;
	}
	if (p->routed)
		return answer_routed(p);
	if (!p->too_large && !p->busy && !p->refused &&
	    api_takes_long(path, p->body.data ? p->body.data : "", p->body.len)) {
		if (do_later(s->workers, run_long, p))
			return MHD_YES;
		p->busy = true;
		return MHD_YES; /* it was resumed, and is asked about once more */
	}
	return answer_request(s, connection, method, path, p);
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **state,
			 enum MHD_RequestTerminationCode how)
{
	struct pending *p = *state;

	(void)how;
	if (!p)
		return;
	door_step(p->server->door, connection, DOOR_REQUEST);
	release(cls, p->body.len);
	buf_fini(&p->body);
	drop_response(&p->rs);
	free(p);
	*state = NULL;
}

/* --- life ------------------------------------------------------------------------------------------------------- */

static unsigned int connection_limit(void)
{
	struct rlimit files;
	rlim_t left;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return CONNECTIONS_MOST;
	left = files.rlim_cur > DESCRIPTORS_KEPT ? files.rlim_cur - DESCRIPTORS_KEPT : 0;
	left = left / 4 * 3;
	return left < CONNECTIONS_LEAST	 ? CONNECTIONS_LEAST
	       : left > CONNECTIONS_MOST ? CONNECTIONS_MOST
					 : (unsigned int)left;
}

/* Tokens in clear are anybody's who sees the network. */
static int check_clear_text(const struct http_server *s, const struct http_config *config,
			    struct reason *reason)
{
	bool tls = config->tls.certificate, certificates = tls && config->tls.client_ca;
	bool tokens = config->gate.token_file || config->gate.reviewer;

	if (s->listener.loopback)
		return 0;
	if (tokens && !tls && !config->plain_tokens) {
		reason_set(reason,
			   "tokens would travel in clear to %s: give --tls-cert and --tls-key, or "
			   "--allow-plain-tokens where something else encrypts",
			   s->listener.address);
		return -EINVAL;
	}
	if (!tokens && !certificates)
		log_warn("everybody who can connect to %s may read everything and make "
			 "reservations; see --token-file, --token-review and --tls-client-ca",
			 s->listener.address);
	return 0;
}

static void note_ways(const struct http_server *s, const struct http_config *config)
{
	uint64_t ways = 0;

	ways |= config->gate.token_file ? ACCESS_BY_TOKEN : 0;
	ways |= config->gate.reviewer ? ACCESS_BY_REVIEW : 0;
	ways |= config->tls.certificate && config->tls.client_ca ? ACCESS_BY_CERTIFICATE : 0;
	ways |= config->tls.certificate ? ACCESS_OVER_TLS : 0;
	ways |= s->listener.loopback ? 0 : ACCESS_FROM_AFAR;
	counter_set(&s->ctx->counters->access.ways, ways);
}

/* The certificates of sessions are set one by one (tls.h); without any of its own the library would not start. */
static int no_certificate(gnutls_session_t session, const struct gnutls_cert_retr_st *info,
			  gnutls_pcert_st **certificates, unsigned int *count,
			  gnutls_ocsp_data_st **ocsp, unsigned int *ocsp_count,
			  gnutls_privkey_t *key, unsigned int *flags)
{
	(void)session, (void)info, (void)certificates, (void)count;
	(void)ocsp, (void)ocsp_count, (void)key, (void)flags;
	return -1;
}

/* The socket is the daemon's from here on. */
static int start_daemon(struct http_server *s, struct reason *reason)
{
	bool tls = door_has_tls(s->door);
	struct MHD_OptionItem for_tls[] = {
		{MHD_OPTION_HTTPS_CERT_CALLBACK2, 0, (void *)no_certificate},
		{MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)TLS_PRIORITIES},
		{MHD_OPTION_END, 0, NULL},
	};
	struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};
	int rc;

	s->daemon = MHD_start_daemon(
		MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | (tls ? MHD_USE_TLS : 0),
		0, NULL, NULL, on_request, s, MHD_OPTION_LISTEN_SOCKET, s->listener.fd,
		MHD_OPTION_THREAD_POOL_SIZE, THREADS, MHD_OPTION_CONNECTION_LIMIT,
		connection_limit(), MHD_OPTION_PER_IP_CONNECTION_LIMIT,
		s->listener.loopback ? 0U : PER_IP_MOST, MHD_OPTION_UNESCAPE_CALLBACK, unescape,
		NULL, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
		MHD_OPTION_CONNECTION_TIMEOUT, DOOR_IDLE_SECONDS, MHD_OPTION_NOTIFY_COMPLETED,
		on_completed, s, MHD_OPTION_NOTIFY_CONNECTION, door_on_connection, s->door,
		MHD_OPTION_ARRAY, tls ? for_tls : none, MHD_OPTION_END);
	if (s->daemon)
		return 0;
	rc = errno ? -errno : -EIO;
	reason_set(reason, "cannot start the HTTP server on %s: %s", s->listener.address,
		   strerror(-rc));
	return rc;
}

static int start_workers(struct http_server *s, const struct http_config *config,
			 struct reason *reason)
{
	const struct access_reviewer *reviewer = config->gate.reviewer;
	int rc = workers_start(&s->workers, WORKERS, LONG_MOST, reason);

	if (!rc && reviewer)
		rc = workers_start(&s->reviewers, reviewer->at_once, REVIEWS_MOST, reason);
	return rc;
}

static void free_server(struct http_server *s)
{
	workers_free(s->reviewers);
	workers_free(s->workers);
	door_close(s->door);
	free(s);
}

int http_start_with(struct http_server **out, const struct http_config *config,
		    struct reason *reason)
{
	struct http_server *s = mem_zalloc(1, sizeof(*s));
	int rc = listen_open(&s->listener, config->listen, reason);

	s->ctx = config->ctx;
	if (rc)
		goto free_server;
	rc = check_clear_text(s, config, reason);
	if (!rc)
		rc = door_open(&s->door, config, &s->ctx->counters->access, reason);
	if (!rc)
		rc = start_workers(s, config, reason);
	if (rc) {
		close(s->listener.fd);
		goto stop_workers;
	}
	note_ways(s, config);
	rc = start_daemon(s, reason);
	if (!rc) {
		*out = s;
		return 0;
	}
stop_workers:
	workers_stop(s->reviewers);
	workers_stop(s->workers);
free_server:
	free_server(s);
	return rc;
}

int http_start(struct http_server **s, const char *listen, const struct api_context *ctx,
	       struct reason *reason)
{
	const struct http_config config = {.listen = listen, .ctx = ctx};

	return http_start_with(s, &config, reason);
}

void http_stop(struct http_server *s)
{
	if (!s)
		return;
	workers_stop(s->reviewers);
	workers_stop(s->workers);
	MHD_stop_daemon(s->daemon); /* closes the listening socket, too */
	free_server(s);
}

void http_reload(struct http_server *s)
{
	door_reload(s->door);
}

const char *http_address(const struct http_server *s)
{
	return s->listener.address;
}
