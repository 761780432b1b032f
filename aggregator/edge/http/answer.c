/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers wait in memory until their clients have read them. All bodies and unread answers
 * together are at most HELD_MOST; a quarter of it is for schedulers alone. Beyond that, requests
 * get 503, but answers up to SMALL_ANSWER, such as of health, always pass. A stream is made piece
 * by piece as its client reads, and holds its source: STREAMS_MOST at once, then 503.
 */
#include "aggregator/edge/http/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/api_group.h"
#include "shared/mem.h"

enum {
	HELD_MOST = 256 << 20,
	SMALL_ANSWER = 4096,
	STREAMS_MOST = 4,
	STREAM_BLOCK = 32 << 10,
};

/* An answer that the library sends. */
struct answer {
	struct http_server *server;
	char *data; /* owned */
	size_t len;
	struct shared_body *shared; /* held; the owner of data */
};

/* A stream that the library sends. */
struct sending {
	struct http_server *server;
	struct api_stream *stream; /* owned */
	struct buf piece; /* the newest */
	size_t sent; /* of it */
};

bool answer_hold(struct http_server *s, size_t len, bool scheduler)
{
	size_t most = scheduler ? HELD_MOST : HELD_MOST / 4 * 3;

	if (atomic_fetch_add(&s->held_bytes, len) + len <= most)
		return true;
	atomic_fetch_sub(&s->held_bytes, len);
	return false;
}

void answer_release(struct http_server *s, size_t len)
{
	atomic_fetch_sub(&s->held_bytes, len);
}

/* --- answers ---------------------------------------------------------------------------------- */

static void free_answer(void *cls)
{
	struct answer *a = cls;

	answer_release(a->server, a->len);
	if (a->shared)
		shared_body_drop(a->shared);
	else
		free(a->data);
	free(a);
}

/* Counts the answer as held until free_answer(). False: too much is held. */
static bool hold_answer(struct http_server *s, const struct api_response *rs, bool scheduler)
{
	size_t len = rs->shared ? rs->shared->len : rs->body.len;

	if (len > SMALL_ANSWER)
		return answer_hold(s, len, scheduler);
	atomic_fetch_add(&s->held_bytes, len);
	return true;
}

/*
 * Takes over the body, which is held. A shared body counts for every answer: a slow client may be
 * its last user.
 */
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

/* --- streams ---------------------------------------------------------------------------------- */

static void end_sending(void *cls)
{
	struct sending *d = cls;

	atomic_fetch_sub(&d->server->streams, 1);
	d->stream->free(d->stream);
	buf_fini(&d->piece);
	free(d);
}

/* Never 0 bytes: the library would ask again at once. */
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

/* Counts one more stream until end_sending(). False: too many. */
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

/* Takes over the stream, which begin_stream() counted. */
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

/* --- sending ---------------------------------------------------------------------------------- */

/* Whether If-None-Match of the client lists the tag, or is "*". */
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

/* A weak tag: the bytes may differ in ages. Makes a 304 of *rs if the client has that answer. */
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

/* False: no memory for the header. The answer would say something else without it. */
static bool add_header(struct MHD_Response *response, const char *name, const char *value)
{
	return !value || MHD_add_response_header(response, name, value) == MHD_YES;
}

/* What a client has to do after 401 and 429. */
static bool add_refusal_headers(struct MHD_Response *response, const struct api_response *rs)
{
	char seconds[16];

	snprintf(seconds, sizeof(seconds), "%d", rs->retry_after_s);
	return add_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE,
			  rs->status == 401 ? "Bearer realm=\"evenkeel\"" : NULL) &&
	       add_header(response, MHD_HTTP_HEADER_RETRY_AFTER,
			  rs->retry_after_s ? seconds : NULL);
}

/* A page runs nothing but its own files, and tells other sites nothing. */
static bool add_page_headers(struct MHD_Response *response, const char *policy)
{
	return add_header(response, "Content-Security-Policy", policy) &&
	       add_header(response, "X-Content-Type-Options", policy ? "nosniff" : NULL) &&
	       add_header(response, "Referrer-Policy", policy ? "no-referrer" : NULL) &&
	       add_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, policy ? "no-cache" : NULL);
}

static bool add_headers(struct MHD_Response *response, const struct api_response *rs,
			const char *tag)
{
	return add_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, rs->content_type) &&
	       add_header(response, MHD_HTTP_HEADER_CONTENT_ENCODING, rs->gzip ? "gzip" : NULL) &&
	       add_header(response, MHD_HTTP_HEADER_VARY,
			  rs->negotiated ? "Accept-Encoding" : NULL) &&
	       add_header(response, MHD_HTTP_HEADER_ALLOW, rs->allow) &&
	       add_header(response, MHD_HTTP_HEADER_CONNECTION, rs->last ? "close" : NULL) &&
	       add_refusal_headers(response, rs) && add_page_headers(response, rs->policy) &&
	       add_header(response, MHD_HTTP_HEADER_ETAG, *tag ? tag : NULL);
}

enum MHD_Result answer_send(struct http_server *s, struct connection *c, const char *path,
			    struct api_response *rs, bool scheduler)
{
	struct MHD_Response *response;
	enum MHD_Result result;
	char tag[32] = "";

	rs->last = rs->last || counter_get(&s->ctx->counters->leaving);
	if (rs->status == 200 && rs->etag)
		tag_answer(c->library, rs, tag);
	if (rs->stream && !begin_stream(s)) {
		drop_stream(rs);
		api_fail(rs, FAIL_BUSY, NULL, "%d snapshots are being read; try again",
			 STREAMS_MOST);
	}
	api_fail_as_status(api_plain_path(path), rs);
	if (!rs->stream && !hold_answer(s, rs, scheduler)) {
		drop_shared(rs);
		tag[0] = '\0';
		api_fail(rs, FAIL_BUSY, NULL, "too many answers are being read; try again");
		api_fail_as_status(api_plain_path(path), rs);
		hold_answer(s, rs, scheduler);
	}
	counter_add(&s->ctx->counters->http_requests[rs->status / 100 % 6], 1);
	conn_manager_step(s->manager, c, rs->stream ? CONN_STREAM : CONN_ANSWER);
	response = rs->stream ? new_stream(s, rs) : new_answer(s, rs);
	if (!response)
		return MHD_NO;
	result = MHD_NO;
	if (add_headers(response, rs, tag))
		result = MHD_queue_response(c->library, (unsigned int)rs->status, response);
	MHD_destroy_response(response);
	return result;
}

void answer_drop(struct api_response *rs)
{
	if (rs->shared)
		drop_shared(rs);
	drop_stream(rs);
	buf_fini(&rs->body);
}
