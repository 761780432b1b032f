/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection gets the newest certificate before its first byte, and a timeout for each step. The
 * library's own timeout (MHD_OPTION_CONNECTION_TIMEOUT) is one of silence: a client that sends a
 * byte now and then never meets it. Requests then pass authorization (auth.c).
 *
 * One thread cuts overdue connections once a second, and reads certificates and tokens again every
 * ten seconds or at a reload: that touches a disk, and no thread that answers waits for a disk. A
 * file that cannot be read leaves the former content in force, with a counter, and a log line when
 * the trouble begins.
 *
 * Refusals are logged at most every ten seconds, without tokens or headers: a client with a wrong
 * configuration repeats its request for ever.
 */
#include "aggregator/edge/http/conn_manager.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "shared/clock.h"
#include "shared/log.h"
#include "shared/mem.h"
#include "shared/thread.h"

#define HEADERS_NS    (30 * NS_PER_SEC)
#define BODY_NS	      (60 * NS_PER_SEC)
#define ANSWER_NS     (120 * NS_PER_SEC)
#define STREAM_NS     (600 * NS_PER_SEC)
#define TICK_NS	      NS_PER_SEC
#define RELOAD_NS     (10 * NS_PER_SEC)
#define REFUSAL_LOG_S 10
#define EXPIRY_WARN_S (7 * 86400)

struct conn_manager {
	/* fixed after start */
	struct auth *auth;
	struct tls *tls; /* NULL: plain */
	struct connections *connections;
	struct access_counters *counters; /* borrowed */
	struct http_timeouts timeouts;
	int64_t idle_ns, tick_ns;
	struct helper thread;

	/* the thread's */
	bool failing; /* to read files; logged */
	bool ending; /* the certificate; logged */

	pthread_rwlock_t proxy_lock;
	struct front_proxy *proxy; /* owned; under proxy_lock; NULL: none is known */

	/* any thread */
	atomic_bool reload;
	atomic_int_least64_t refusal_logged_s;
	atomic_uint_least64_t refusals_unlogged;
};

/* --- connections ------------------------------------------------------------------------------ */

struct connection *conn_manager_find(struct MHD_Connection *connection)
{
	return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)
		->socket_context;
}

static gnutls_session_t session_of(struct MHD_Connection *connection)
{
	return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION)->tls_session;
}

static const struct sockaddr *client_address(struct MHD_Connection *connection)
{
	return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
}

static void count_refusal(struct conn_manager *m, enum access_refusal refusal)
{
	counter_add(&m->counters->refused[refusal], 1);
}

struct connection *conn_manager_begin(struct conn_manager *m, struct MHD_Connection *connection,
				      struct handshakes *handshakes)
{
	int fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	struct connection *c = connections_begin(m->connections, client_address(connection), fd,
						 clock_mono_ns() + m->timeouts.headers_ns);

	if (!c) {
		count_refusal(m, ACCESS_REFUSAL_CONNECTIONS);
		shutdown(fd, SHUT_RDWR);
		return NULL;
	}
	c->library = connection;
	c->loop = handshakes;
	if (m->tls) {
		c->tls = tls_hold(m->tls);
		tls_set_begin(c->tls, session_of(connection));
		handshake_begin(&c->handshake, handshakes, connection, session_of(connection), fd);
		if (connections_shake(m->connections, c))
			count_refusal(m, ACCESS_REFUSAL_HANDSHAKES);
	}
	return c;
}

void conn_manager_end(struct conn_manager *m, struct connection *c)
{
	handshake_end(&c->handshake);
	free(c->user);
	connections_end(m->connections, c);
}

static int64_t timeout_of(const struct conn_manager *m, enum conn_step step)
{
	switch (step) {
	case CONN_REQUEST:
		return m->idle_ns + m->timeouts.headers_ns;
	case CONN_BODY:
		return m->timeouts.body_ns;
	case CONN_ANSWER:
		return m->timeouts.answer_ns;
	case CONN_STREAM:
		return m->timeouts.stream_ns;
	default:
		return INT64_MAX;
	}
}

void conn_manager_step(struct conn_manager *m, struct connection *c, enum conn_step step)
{
	int64_t timeout_ns = timeout_of(m, step);

	connection_expect(c, timeout_ns == INT64_MAX ? INT64_MAX : clock_mono_ns() + timeout_ns);
}

static void refuse_length(struct connection *c)
{
	struct api_response rs = {0};
	char *text;
	ssize_t sent;

	api_fail(&rs, FAIL_BAD_REQUEST, NULL, "Content-Length is no number of bytes");
	text = mem_printf("HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: "
			  "application/json\r\nContent-Length: %zu\r\n\r\n%s",
			  rs.body.len, rs.body.data);
	if (c->tls)
		sent = gnutls_record_send(session_of(c->library), text, strlen(text));
	else
		sent = send(c->fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
	(void)sent; /* the connection ends in any case */
	shutdown(c->fd, SHUT_WR);
	c->refused = true;
	free(text);
	buf_fini(&rs.body);
}

void conn_manager_refuse_lengths(struct conn_manager *m, const struct handshakes *loop)
{
	struct connection *c;

	while ((c = connections_find_bad(m->connections, loop))) {
		refuse_length(c);
		count_refusal(m, ACCESS_REFUSAL_UNCLEAR);
	}
}

/* --- requests --------------------------------------------------------------------------------- */

static enum auth_certificate check_certificate(struct conn_manager *m, struct connection *c,
					       const char **fault)
{
	if (!m->tls)
		return AUTH_CERTIFICATE_NONE;
	tls_client_check(m->tls, session_of(c->library), time(NULL), &c->client);
	*fault = c->client.fault;
	return c->client.state;
}

enum { HEADERS_MOST = 512 }; /* the library's memory for a connection holds fewer */

struct headers {
	struct front_proxy_header of[HEADERS_MOST];
	size_t count;
};

static enum MHD_Result on_header(void *cls, enum MHD_ValueKind kind, const char *name,
				 const char *value)
{
	struct headers *all = cls;

	(void)kind;
	if (all->count < HEADERS_MOST)
		all->of[all->count++] = (struct front_proxy_header){name, value ? value : ""};
	return MHD_YES;
}

/* Headers name a user on connections with the front proxy's certificate only. */
static void read_user(struct conn_manager *m, struct connection *c)
{
	const char *fault;

	free(c->user);
	c->user = NULL;
	check_certificate(m, c, &fault);
	if (!c->client.proxy)
		return;
	pthread_rwlock_rdlock(&m->proxy_lock);
	if (m->proxy && front_proxy_allows(m->proxy, c->client.name)) {
		struct headers all = {.count = 0};

		MHD_get_connection_values(c->library, MHD_HEADER_KIND, on_header, &all);
		c->user = front_proxy_user(m->proxy, all.of, all.count);
	}
	pthread_rwlock_unlock(&m->proxy_lock);
}

static const char *header(const struct connection *c, const char *name)
{
	return MHD_lookup_connection_value(c->library, MHD_HEADER_KIND, name);
}

/* The server's address of the connection, asked for once; NULL: not known. */
static const struct sockaddr *local_address(struct connection *c)
{
	socklen_t len = sizeof(c->local);

	if (!c->local.sin6_family && getsockname(c->fd, (struct sockaddr *)&c->local, &len) < 0)
		return NULL;
	return (const struct sockaddr *)&c->local;
}

static struct auth_request describe(struct conn_manager *m, struct connection *c,
				    const char *method, const char *path)
{
	struct auth_request rq = {
		.method = method,
		.path = path,
		.authorization = header(c, MHD_HTTP_HEADER_AUTHORIZATION),
		.host = header(c, MHD_HTTP_HEADER_HOST),
		.origin = header(c, MHD_HTTP_HEADER_ORIGIN),
		.content_type = header(c, MHD_HTTP_HEADER_CONTENT_TYPE),
		.from = client_address(c->library),
		.to = local_address(c),
		.user = c->user,
		.now_ns = clock_mono_ns(),
	};

	rq.certificate = check_certificate(m, c, &rq.certificate_fault);
	return rq;
}

static void log_refusal(struct conn_manager *m, const struct auth_request *rq,
			const struct auth_refusal *refusal)
{
	int64_t now_s = rq->now_ns / NS_PER_SEC, logged_s = atomic_load(&m->refusal_logged_s);
	char address[INET6_ADDRSTRLEN] = "";

	if ((logged_s && now_s - logged_s < REFUSAL_LOG_S) ||
	    !atomic_compare_exchange_strong(&m->refusal_logged_s, &logged_s, now_s)) {
		counter_add(&m->refusals_unlogged, 1);
		return;
	}
	getnameinfo(rq->from,
		    rq->from->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
						    : sizeof(struct sockaddr_in),
		    address, sizeof(address), NULL, 0, NI_NUMERICHOST);
	log_warn("refused a request from %s: %s (%llu other refusals not logged)", address,
		 refusal->text, (unsigned long long)atomic_exchange(&m->refusals_unlogged, 0));
}

void conn_manager_note_target(struct conn_manager *m, struct connection *c, const char *target)
{
	c->target = framing_note(target);
	handshake_note_progress(&c->handshake);
	if (m->tls)
		connections_shaken(m->connections, c);
}

enum auth_verdict conn_manager_check(struct conn_manager *m, struct connection *c,
				     const char *method, const char *path, const char *version,
				     struct auth_refusal *refusal)
{
	const char *fault = framing_fault(c->library, method, version, &c->target);
	enum auth_verdict verdict = AUTH_REFUSE;
	struct auth_request rq;

	read_user(m, c);
	rq = describe(m, c, method, path);
	if (fault) {
		*refusal = (struct auth_refusal){.reason = ACCESS_REFUSAL_UNCLEAR,
						 .failure = FAIL_BAD_REQUEST};
		snprintf(refusal->text, sizeof(refusal->text), "%s", fault);
		count_refusal(m, ACCESS_REFUSAL_UNCLEAR);
	} else {
		verdict = auth_check(m->auth, &rq, refusal);
	}
	if (verdict == AUTH_REFUSE)
		log_refusal(m, &rq, refusal);
	return verdict;
}

enum auth_verdict conn_manager_review(struct conn_manager *m, struct connection *c,
				      const char *method, const char *path, bool busy,
				      struct auth_refusal *refusal)
{
	struct auth_request rq;
	enum auth_verdict verdict;

	if (busy) {
		auth_refuse_busy(m->auth, refusal);
		return AUTH_REFUSE;
	}
	rq = describe(m, c, method, path);
	verdict = auth_review(m->auth, &rq, refusal);
	if (verdict == AUTH_REFUSE)
		log_refusal(m, &rq, refusal);
	return verdict;
}

bool conn_manager_is_named(struct conn_manager *m, struct connection *c)
{
	return auth_is_named(m->auth, header(c, MHD_HTTP_HEADER_HOST), local_address(c));
}

uint64_t conn_manager_client(struct conn_manager *m, struct connection *c, const char *path,
			     bool admitted)
{
	const struct auth_request rq = describe(m, c, "", path);

	return auth_client(m->auth, &rq, admitted);
}

/* --- the thread ------------------------------------------------------------------------------- */

static void note_certificate(struct conn_manager *m)
{
	int64_t ends_s = tls_ends_s(m->tls), left_s = ends_s - time(NULL);
	bool ending = left_s < EXPIRY_WARN_S;

	counter_set(&m->counters->certificate_ends_s, (uint64_t)ends_s);
	if (ending && !m->ending && left_s <= 0)
		log_warn("the certificate of --tls-cert has expired: clients refuse it");
	else if (ending && !m->ending)
		log_warn("the certificate of --tls-cert expires in %lld hours",
			 (long long)(left_s / 3600));
	m->ending = ending;
}

static void note_reload(struct conn_manager *m, int rc, const char *what, struct error *error)
{
	if (rc > 0) {
		counter_add(&m->counters->reloads, 1);
		log_info("read the %s again", what);
	}
	if (rc >= 0)
		return;
	counter_add(&m->counters->reload_failures, 1);
	if (!m->failing)
		log_warn("%s; the former content stays in force", error->text);
}

static void reload(struct conn_manager *m)
{
	struct error error = {""};
	int tls = m->tls ? tls_reload(m->tls, &error) : 0, tokens;

	note_reload(m, tls, "certificates", &error);
	if (m->tls)
		note_certificate(m);
	tokens = auth_reload(m->auth, &error);
	note_reload(m, tokens, "tokens", &error);
	m->failing = tls < 0 || tokens < 0;
}

static void *run(void *arg)
{
	struct conn_manager *m = arg;
	int64_t reload_ns = clock_mono_ns() + RELOAD_NS;

	while (helper_wait(&m->thread, clock_mono_ns() + m->tick_ns)) {
		int64_t now_ns = clock_mono_ns();
		size_t cut = connections_cut(m->connections, now_ns);

		if (cut)
			counter_add(&m->counters->refused[ACCESS_REFUSAL_SLOW], cut);
		counter_set(&m->counters->connections, connections_count(m->connections));
		if (atomic_exchange(&m->reload, false) || now_ns >= reload_ns) {
			reload(m);
			reload_ns = now_ns + RELOAD_NS;
		}
	}
	return NULL;
}

void conn_manager_set_front_proxy(struct conn_manager *m, struct front_proxy *p)
{
	struct error error;

	if (m->tls && tls_set_proxy_ca(m->tls, p->client_ca, &error)) {
		log_warn("the front proxy of the API server: %s; the former one stays in force",
			 error.text);
		front_proxy_free(p);
		return;
	}
	pthread_rwlock_wrlock(&m->proxy_lock);
	front_proxy_free(m->proxy);
	m->proxy = p;
	pthread_rwlock_unlock(&m->proxy_lock);
	conn_manager_reload(m);
}

void conn_manager_reload(struct conn_manager *m)
{
	atomic_store(&m->reload, true);
	helper_wake(&m->thread);
}

/* --- life ------------------------------------------------------------------------------------- */

static void set_timeouts(struct conn_manager *m, const struct http_timeouts *p)
{
	m->timeouts.headers_ns = p->headers_ns ? p->headers_ns : HEADERS_NS;
	m->timeouts.body_ns = p->body_ns ? p->body_ns : BODY_NS;
	m->timeouts.answer_ns = p->answer_ns ? p->answer_ns : ANSWER_NS;
	m->timeouts.stream_ns = p->stream_ns ? p->stream_ns : STREAM_NS;
	m->idle_ns = p->headers_ns ? 0 : CONN_IDLE_SECONDS * NS_PER_SEC;
	m->tick_ns = m->timeouts.headers_ns / 4 < TICK_NS ? m->timeouts.headers_ns / 4 : TICK_NS;
}

static struct conn_manager *make(const struct http_config *config, unsigned int of_client_most,
				 struct access_counters *counters)
{
	struct conn_manager *m = mem_zalloc(1, sizeof(*m));

	m->counters = counters;
	set_timeouts(m, &config->timeouts);
	pthread_rwlock_init(&m->proxy_lock, NULL);
	m->connections = connections_new(of_client_most);
	return m;
}

int conn_manager_start(struct conn_manager **out, const struct http_config *config,
		       unsigned int of_client_most, struct access_counters *counters,
		       struct error *reason)
{
	struct conn_manager *m = make(config, of_client_most, counters);
	struct auth_options options = config->auth;
	int rc = 0;

	options.certificates = config->tls.certificate && config->tls.client_ca;
	options.listen = config->listen;
	if (config->tls.certificate)
		rc = tls_open(&m->tls, &config->tls, reason);
	if (!rc && m->tls)
		note_certificate(m);
	if (!rc)
		rc = auth_open(&m->auth, &options, counters, reason);
	if (!rc)
		rc = helper_start(&m->thread, "connections", run, m, reason);
	if (rc)
		conn_manager_stop(m);
	else
		*out = m;
	return rc;
}

void conn_manager_stop(struct conn_manager *m)
{
	if (!m)
		return;
	helper_stop(&m->thread);
	auth_close(m->auth);
	tls_close(m->tls);
	connections_free(m->connections);
	front_proxy_free(m->proxy);
	pthread_rwlock_destroy(&m->proxy_lock);
	free(m);
}

bool conn_manager_has_tls(const struct conn_manager *m)
{
	return m->tls;
}
