/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections' threads answer; the test's thread scripts, sends more into held answers, and looks
 * at what was asked. One mutex guards it all. A held answer leaves its connection's thread reading,
 * so that it sees the client go.
 */
#include "tests/kube_peer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "aggregator/model/object.h"
#include "shared/buf.h"
#include "shared/file.h"
#include "shared/mem.h"
#include "tests/process.h"

enum { REQUEST_MAX = 96 << 10, AWAIT_SECONDS = 20 };

struct script {
	struct script *next;
	char *part, *headers, *body;
	struct peer_answer answer;
};

struct connection {
	struct connection *next;
	struct kube_peer *peer;
	pthread_t thread;
	int fd; /* -1: closed */
	char *held; /* path of the answer that is held; NULL: none */
};

struct request {
	char *path, *headers, *body;
};

struct kube_peer {
	int port, listener;
	char *url;
	pthread_t thread;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* under lock */
	struct script *scripts;
	struct connection *connections;
	struct request *requests;
	size_t request_count;
	char *token, *lacking;
	bool refusing, stopping;
};

static bool send_all(int fd, const char *data, size_t len)
{
	while (len) {
		ssize_t sent = send(fd, data, len, MSG_NOSIGNAL);

		if (sent <= 0)
			return false;
		data += sent;
		len -= (size_t)sent;
	}
	return true;
}

static bool send_chunk(int fd, const char *data, size_t len)
{
	struct buf chunk = BUF_INIT;
	bool ok;

	buf_printf(&chunk, "%zx\r\n", len);
	buf_add(&chunk, data, len);
	buf_add_str(&chunk, "\r\n");
	ok = send_all(fd, chunk.data, chunk.len);
	buf_fini(&chunk);
	return ok;
}

/* Closing then sends a reset, as a machine that went away and came back would. */
static void reset(int fd)
{
	struct linger none = {.l_onoff = 1};

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	shutdown(fd, SHUT_RD);
}

/* --- a healthy server ------------------------------------------------------------------------- */

static int group_len(const char *version)
{
	const char *slash = strchr(version, '/');

	return slash ? (int)(slash - version) : 0;
}

static bool is_lacking(const struct kube_peer *p, const char *version)
{
	return p->lacking && (int)strlen(p->lacking) == group_len(version) &&
	       strncmp(p->lacking, version, strlen(p->lacking)) == 0;
}

static void add_groups(const struct kube_peer *p, struct buf *out)
{
	buf_add_str(out, "{\"kind\":\"APIGroupList\",\"groups\":[");
	for (int kind = 0, n = 0; kind < OBJECT_KINDS; kind++) {
		const char *version = object_kind_version((enum object_kind)kind);

		if (!strchr(version, '/') || is_lacking(p, version))
			continue;
		buf_printf(out, "%s{\"name\":\"%.*s\",\"versions\":[{\"groupVersion\":\"%s\"}]}",
			   n++ ? "," : "", group_len(version), version, version);
	}
	buf_add_str(out, "]}");
}

static void add_resources(const char *wanted, struct buf *out)
{
	buf_add_str(out, "{\"kind\":\"APIResourceList\",\"resources\":[");
	for (int kind = 0, n = 0; kind < OBJECT_KINDS; kind++)
		if (strcmp(object_kind_version((enum object_kind)kind), wanted) == 0)
			buf_printf(out, "%s{\"name\":\"%.*s\",\"verbs\":[\"list\",\"watch\"]}",
				   n++ ? "," : "", object_kind_resource_len((enum object_kind)kind),
				   object_kind_resource((enum object_kind)kind));
	buf_add_str(out, "]}");
}

static int find_kind(const char *version, const char *resource, size_t len)
{
	for (int kind = 0; kind < OBJECT_KINDS; kind++) {
		const char *name = object_kind_resource((enum object_kind)kind);

		if (strcmp(object_kind_version((enum object_kind)kind), version) == 0 &&
		    object_kind_resource_len((enum object_kind)kind) == (int)len &&
		    strncmp(name, resource, len) == 0)
			return kind;
	}
	return -1;
}

/* The default answer; its body is in out. */
static struct peer_answer answer_healthy(const struct kube_peer *p, const char *path,
					 struct buf *out)
{
	size_t skip = strncmp(path, "/apis/", 6) == 0 ? 6 : 5;
	size_t parts = skip == 6 ? 2 : 1, len = 0;
	char version[128];
	int kind;

	if (*path != '/')
		return (struct peer_answer){.status = strncmp(path, "POST ", 5) == 0 ? 201 : 404,
					    .body = "{}"};
	if (strcmp(path, "/apis") == 0) {
		add_groups(p, out);
		return (struct peer_answer){.body = out->data};
	}
	for (const char *c = path + skip; *c && *c != '?'; c++, len++)
		if (*c == '/' && --parts == 0)
			break;
	snprintf(version, sizeof(version), "%.*s", (int)len, path + skip);
	path += skip + len;
	if (is_lacking(p, version))
		return (struct peer_answer){.status = 404};
	if (!*path) {
		add_resources(version, out);
		return (struct peer_answer){.body = out->data};
	}
	kind = find_kind(version, path + 1, strcspn(path + 1, "?"));
	if (kind < 0)
		return (struct peer_answer){.status = 404};
	if (strstr(path, "watch=1"))
		return (struct peer_answer){.then = PEER_HOLD};
	buf_printf(out,
		   "{\"kind\":\"%sList\",\"apiVersion\":\"%s\",\"metadata\":{\"resourceVersion\":"
		   "\"100\"},\"items\":[]}",
		   object_kind_name((enum object_kind)kind), version);
	return (struct peer_answer){.body = out->data};
}

/* --- answering -------------------------------------------------------------------------------- */

static void compress_body(struct buf *body)
{
	struct buf packed = BUF_INIT;
	z_stream z = {.avail_in = (uInt)body->len, .next_in = (Bytef *)body->data};
	size_t room = compressBound(body->len) + 64;
	int rc = deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);

	assert(rc == Z_OK);
	z.next_out = (Bytef *)buf_reserve(&packed, room);
	z.avail_out = (uInt)room;
	rc = deflate(&z, Z_FINISH);
	assert(rc == Z_STREAM_END);
	packed.len = z.total_out;
	deflateEnd(&z);
	buf_fini(body);
	*body = packed;
}

static void hold(struct connection *c, const char *path)
{
	c->held = mem_strdup(path);
	pthread_cond_broadcast(&c->peer->changed);
}

/* Whether the connection goes on. */
static bool send_answer(struct connection *c, const char *path, const struct peer_answer *a)
{
	struct buf head = BUF_INIT, body = BUF_INIT;
	size_t step, at;
	bool ok;

	buf_add_str(&body, a->body ? a->body : "");
	if (a->gzip)
		compress_body(&body);
	buf_printf(&head,
		   "HTTP/1.1 %d X\r\nContent-Type: application/json\r\nTransfer-Encoding: "
		   "chunked\r\n%s%s\r\n",
		   a->status ? a->status : 200, a->gzip ? "Content-Encoding: gzip\r\n" : "",
		   a->headers ? a->headers : "");
	/* Who sees the head of an answer without a body may at once send more into it. */
	pthread_mutex_lock(&c->peer->lock);
	ok = send_all(c->fd, head.data, head.len);
	if (ok && a->then == PEER_HOLD && !body.len)
		hold(c, path);
	pthread_mutex_unlock(&c->peer->lock);
	step = a->chunk ? a->chunk : body.len;
	for (at = 0; ok && at < body.len; at += step)
		ok = send_chunk(c->fd, body.data + at, step < body.len - at ? step : body.len - at);
	if (ok && a->then == PEER_END)
		ok = send_all(c->fd, "0\r\n\r\n", 5);
	if (a->then == PEER_CUT) {
		reset(c->fd);
		ok = false;
	}
	pthread_mutex_lock(&c->peer->lock);
	if (ok && a->then == PEER_HOLD && body.len)
		hold(c, path);
	pthread_mutex_unlock(&c->peer->lock);
	buf_fini(&head);
	buf_fini(&body);
	return ok;
}

static void free_script(struct script *s)
{
	free(s->part);
	free(s->headers);
	free(s->body);
	free(s);
}

/* Under lock. */
static struct script *take_script(struct kube_peer *p, const char *path)
{
	for (struct script **s = &p->scripts; *s; s = &(*s)->next)
		if (strstr(path, (*s)->part)) {
			struct script *found = *s;

			*s = found->next;
			return found;
		}
	return NULL;
}

/* Under lock. */
static bool is_welcome(const struct kube_peer *p, const char *headers)
{
	struct buf line = BUF_INIT;
	bool welcome;

	if (!p->token)
		return true;
	buf_printf(&line, "Authorization: Bearer %s\r\n", p->token);
	welcome = strstr(headers, line.data) != NULL;
	buf_fini(&line);
	return welcome;
}

static void note_request(struct kube_peer *p, const struct request *rq)
{
	p->requests = mem_realloc(p->requests, (p->request_count + 1) * sizeof(*p->requests));
	p->requests[p->request_count++] = (struct request){
		.path = mem_strdup(rq->path),
		.headers = mem_strdup(rq->headers),
		.body = mem_strdup(rq->body),
	};
	pthread_cond_broadcast(&p->changed);
}

static bool answer(struct connection *c, const struct request *rq)
{
	struct kube_peer *p = c->peer;
	struct peer_answer a = {.status = 401,
				.body = "{\"kind\":\"Status\",\"message\":\"who?\"}"};
	struct script *script = NULL;
	struct buf body = BUF_INIT;
	bool ok;

	pthread_mutex_lock(&p->lock);
	note_request(p, rq);
	if (is_welcome(p, rq->headers)) {
		script = take_script(p, rq->path);
		a = script ? script->answer : answer_healthy(p, rq->path, &body);
	}
	pthread_mutex_unlock(&p->lock);
	ok = send_answer(c, rq->path, &a);
	if (script)
		free_script(script);
	buf_fini(&body);
	return ok;
}

/* --- connections ------------------------------------------------------------------------------ */

/* Bytes of the body that the headers announce. */
static size_t body_len(const char *text)
{
	const char *line = strcasestr(text, "\r\nContent-Length:");

	return line ? strtoul(line + strlen("\r\nContent-Length:"), NULL, 10) : 0;
}

/* Borrows from the text. */
static bool read_request(int fd, char *text, struct request *rq)
{
	size_t len = 0, want = 0;
	char *end = NULL;

	while (!end || len < want) {
		ssize_t got = recv(fd, text + len, REQUEST_MAX - 1 - len, 0);

		if (got <= 0)
			return false;
		len += (size_t)got;
		text[len] = '\0';
		end = strstr(text, "\r\n\r\n");
		want = end ? (size_t)(end + 4 - text) + body_len(text) : 0;
	}
	rq->body = end + 4;
	end[2] = '\0';
	rq->path = strncmp(text, "GET ", 4) == 0 ? text + 4 : text;
	end = strstr(text, " HTTP/");
	if (!end)
		return false;
	*end = '\0';
	rq->headers = end + 1;
	return true;
}

static void *serve(void *arg)
{
	struct connection *c = arg;
	struct kube_peer *p = c->peer;
	char *text = mem_alloc(REQUEST_MAX);
	struct request rq;

	while (read_request(c->fd, text, &rq) && answer(c, &rq))
		continue;
	free(text);
	pthread_mutex_lock(&p->lock);
	close(c->fd);
	c->fd = -1;
	free(c->held);
	c->held = NULL;
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

static void add_connection(struct kube_peer *p, int fd)
{
	struct connection *c = mem_zalloc(1, sizeof(*c));
	int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	c->peer = p;
	c->fd = fd;
	pthread_mutex_lock(&p->lock);
	if (p->refusing)
		reset(fd);
	c->next = p->connections;
	p->connections = c;
	pthread_create(&c->thread, NULL, serve, c);
	pthread_mutex_unlock(&p->lock);
}

static void *listen_thread(void *arg)
{
	struct kube_peer *p = arg;
	int fd;

	while ((fd = accept(p->listener, NULL, NULL)) >= 0)
		add_connection(p, fd);
	return NULL;
}

static void open_listener(struct kube_peer *p)
{
	struct sockaddr_in a = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)p->port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int on = 1, rc;

	p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(p->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	rc = bind(p->listener, (struct sockaddr *)&a, sizeof(a));
	assert(rc == 0);
	rc = listen(p->listener, 64);
	assert(rc == 0);
	pthread_create(&p->thread, NULL, listen_thread, p);
}

static void close_listener(struct kube_peer *p)
{
	shutdown(p->listener, SHUT_RDWR);
	pthread_join(p->thread, NULL);
	close(p->listener);
	p->listener = -1;
}

static void reset_all(struct kube_peer *p)
{
	pthread_mutex_lock(&p->lock);
	for (struct connection *c = p->connections; c; c = c->next)
		if (c->fd >= 0)
			reset(c->fd);
	pthread_mutex_unlock(&p->lock);
}

/* --- life ------------------------------------------------------------------------------------- */

struct kube_peer *kube_peer_new(void)
{
	struct kube_peer *p = mem_zalloc(1, sizeof(*p));

	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->changed, NULL);
	p->port = free_port(); /* not an ephemeral one: it stays free while the server refuses */
	open_listener(p);
	p->url = mem_printf("http://127.0.0.1:%d", p->port);
	return p;
}

void kube_peer_free(struct kube_peer *p)
{
	struct connection *c;
	struct script *s;

	if (p->listener >= 0)
		close_listener(p);
	reset_all(p);
	while ((c = p->connections) != NULL) {
		p->connections = c->next;
		pthread_join(c->thread, NULL);
		free(c);
	}
	while ((s = p->scripts) != NULL) {
		p->scripts = s->next;
		free_script(s);
	}
	for (size_t i = 0; i < p->request_count; i++) {
		free(p->requests[i].path);
		free(p->requests[i].headers);
		free(p->requests[i].body);
	}
	free(p->requests);
	free(p->token);
	free(p->lacking);
	free(p->url);
	pthread_cond_destroy(&p->changed);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

const char *kube_peer_url(const struct kube_peer *p)
{
	return p->url;
}

void kube_peer_write_config(const struct kube_peer *p, const char *path)
{
	char *text = mem_printf("apiVersion: v1\nkind: Config\ncurrent-context: c\n"
				"clusters: [{name: k, cluster: {server: '%s'}}]\n"
				"users: [{name: u, user: {}}]\n"
				"contexts: [{name: c, context: {cluster: k, user: u}}]\n",
				kube_peer_url(p));
	struct error why;

	if (file_replace(path, 0600, text, strlen(text), &why))
		fail_msg("%s", why.text);
	free(text);
}

/* --- what tests do ---------------------------------------------------------------------------- */

void kube_peer_script(struct kube_peer *p, const char *part, const struct peer_answer *a)
{
	struct script *s = mem_zalloc(1, sizeof(*s)), **last;

	s->part = mem_strdup(part);
	s->headers = a->headers ? mem_strdup(a->headers) : NULL;
	s->body = a->body ? mem_strdup(a->body) : NULL;
	s->answer = *a;
	s->answer.headers = s->headers;
	s->answer.body = s->body;
	pthread_mutex_lock(&p->lock);
	for (last = &p->scripts; *last; last = &(*last)->next)
		continue;
	*last = s;
	pthread_mutex_unlock(&p->lock);
}

enum held_do { HELD_SEND, HELD_END, HELD_CUT };

static int with_held(struct kube_peer *p, const char *part, enum held_do what, const char *text)
{
	int count = 0;

	pthread_mutex_lock(&p->lock);
	for (struct connection *c = p->connections; c; c = c->next) {
		if (c->fd < 0 || !c->held || !strstr(c->held, part))
			continue;
		count++;
		if (what == HELD_SEND) {
			send_chunk(c->fd, text, strlen(text));
			continue;
		}
		free(c->held);
		c->held = NULL;
		if (what == HELD_CUT)
			reset(c->fd);
		else
			send_all(c->fd, "0\r\n\r\n", 5);
	}
	pthread_mutex_unlock(&p->lock);
	return count;
}

int kube_peer_send(struct kube_peer *p, const char *part, const char *text)
{
	return with_held(p, part, HELD_SEND, text);
}

int kube_peer_end(struct kube_peer *p, const char *part)
{
	return with_held(p, part, HELD_END, NULL);
}

int kube_peer_cut(struct kube_peer *p, const char *part)
{
	return with_held(p, part, HELD_CUT, NULL);
}

static void set_string(struct kube_peer *p, char **to, const char *value)
{
	pthread_mutex_lock(&p->lock);
	free(*to);
	*to = value ? mem_strdup(value) : NULL;
	pthread_mutex_unlock(&p->lock);
}

void kube_peer_require_token(struct kube_peer *p, const char *token)
{
	set_string(p, &p->token, token);
}

void kube_peer_lack(struct kube_peer *p, const char *group)
{
	set_string(p, &p->lacking, group);
}

void kube_peer_refuse(struct kube_peer *p, bool refuse)
{
	pthread_mutex_lock(&p->lock);
	p->refusing = refuse;
	pthread_mutex_unlock(&p->lock);
	if (!refuse) {
		open_listener(p);
		return;
	}
	close_listener(p);
	reset_all(p);
}

/* Under lock. */
static const struct request *find_request(const struct kube_peer *p, const char *part, size_t i)
{
	for (size_t at = 0; at < p->request_count; at++)
		if (strstr(p->requests[at].path, part) && i-- == 0)
			return &p->requests[at];
	return NULL;
}

/* Under lock. */
static size_t count_requests(const struct kube_peer *p, const char *part)
{
	size_t count = 0;

	for (size_t i = 0; i < p->request_count; i++)
		count += strstr(p->requests[i].path, part) != NULL;
	return count;
}

size_t kube_peer_count(struct kube_peer *p, const char *part)
{
	size_t count;

	pthread_mutex_lock(&p->lock);
	count = count_requests(p, part);
	pthread_mutex_unlock(&p->lock);
	return count;
}

static bool is_held(const struct kube_peer *p, const char *part)
{
	for (const struct connection *c = p->connections; c; c = c->next)
		if (c->fd >= 0 && c->held && strstr(c->held, part))
			return true;
	return false;
}

/* count 0: until one is held. */
static bool await_change(struct kube_peer *p, const char *part, size_t count)
{
	struct timespec until;
	bool done;
	int rc = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += AWAIT_SECONDS;
	pthread_mutex_lock(&p->lock);
	do {
		done = count ? count_requests(p, part) >= count : is_held(p, part);
		if (!done && rc == 0)
			rc = pthread_cond_timedwait(&p->changed, &p->lock, &until);
		else
			break;
	} while (true);
	pthread_mutex_unlock(&p->lock);
	return done;
}

bool kube_peer_await(struct kube_peer *p, const char *part, size_t count)
{
	return await_change(p, part, count);
}

bool kube_peer_await_held(struct kube_peer *p, const char *part)
{
	return await_change(p, part, 0);
}

enum request_part { PATH, HEADERS, BODY };

static char *copy_part(struct kube_peer *p, const char *part, size_t i, enum request_part which)
{
	const struct request *rq;
	char *text;

	pthread_mutex_lock(&p->lock);
	rq = find_request(p, part, i);
	text = mem_strdup(!rq		  ? ""
			  : which == PATH ? rq->path
			  : which == BODY ? rq->body
					  : rq->headers);
	pthread_mutex_unlock(&p->lock);
	return text;
}

char *kube_peer_path(struct kube_peer *p, const char *part, size_t i)
{
	return copy_part(p, part, i, PATH);
}

char *kube_peer_headers(struct kube_peer *p, const char *part, size_t i)
{
	return copy_part(p, part, i, HEADERS);
}

char *kube_peer_body(struct kube_peer *p, const char *part, size_t i)
{
	return copy_part(p, part, i, BODY);
}
