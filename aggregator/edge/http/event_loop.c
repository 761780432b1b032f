/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libmicrohttpd reads requests, writes answers and bounds connections; this file accepts them and
 * runs it. Why the library's own threads and accepting (MHD_USE_INTERNAL_POLLING_THREAD,
 * MHD_OPTION_THREAD_POOL_SIZE) are not used, as version 0.9.75 has them:
 *
 *	accepting	without a descriptor and without a connection it calls accept() in a loop
 *			that uses a whole core; with connections it accepts again only when one of
 *			them ends, however many descriptors are free by then
 *	TLS		it calls a session whose client sent part of a handshake again and again: so
 *			the loop suspends the connection until its client sends more (connections.h)
 *	per client	MHD_OPTION_PER_IP_CONNECTION_LIMIT counts IPv6 addresses one by one, of
 *			which one client has 2^64, and is a limit of each daemon (endpoint.h)
 *
 *     epoll --+-- the library's epoll: all connections      --> MHD_run()
 *             +-- the listener, which all loops share       --> accept, MHD_add_connection()
 *             +-- an eventfd: a connection is resumed, or stop
 *             +-- clients whose part of a TLS handshake is awaited
 *
 * A loop with all its connections (MHD_OPTION_CONNECTION_LIMIT) leaves clients to the other loops
 * and to the backlog. Without a descriptor a loop accepts nothing for PAUSE_NS. After PAUSES_MOST
 * pauses it gives up a spare descriptor to accept and close the waiting clients, and counts them.
 *
 * A stop ends the loop; then the thread closes every connection and completes every request.
 */
#include "aggregator/edge/http/server.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <gnutls/abstract.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shared/clock.h"
#include "shared/endpoint.h"
#include "shared/file.h"
#include "shared/log.h"
#include "shared/mem.h"
#include "shared/thread.h"

enum {
	EVENTS_MAX = 16,
	ACCEPTS_MAX = 16, /* between two runs of the library */
	REFUSALS_MAX = 64,
	PAUSES_MOST = 10,
	CONNECTION_BYTES = 16384,
};

#define PAUSE_NS (100 * NS_PER_MS)

/* TLS 1.2 and 1.3, with ciphers that authenticate, and keys that do not outlive a session. */
#define TLS_PRIORITIES                                                                             \
	"NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-RSA:-CIPHER-ALL:+AES-256-GCM:"                \
	"+CHACHA20-POLY1305:+AES-128-GCM"

struct event_loop {
	/* fixed after start */
	struct http_server *server; /* borrowed */
	unsigned int most; /* connections */
	struct MHD_Daemon *daemon;
	int wake;
	pthread_t thread;

	/* the thread's */
	struct handshakes handshakes; /* its epoll is the loop's */
	int spare; /* a descriptor to give up; negative: none */
	bool listening; /* epoll reports the listener */
	int64_t resume_ns; /* no client is accepted before; 0: no pause */
	int pauses; /* in a row, for want of a descriptor */

	/* any thread */
	atomic_bool stop;
};

/* --- accepting -------------------------------------------------------------------------------- */

/* How many connections more the library takes. */
static unsigned int room(const struct event_loop *l)
{
	unsigned int count = MHD_get_daemon_info(l->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS)
				     ->num_connections;

	return count < l->most ? l->most - count : 0;
}

static void set_listening(struct event_loop *l)
{
	struct epoll_event event = {.data.ptr = &l->server->listener};
	bool listening;
	int rc;

	if (l->resume_ns && clock_mono_ns() >= l->resume_ns)
		l->resume_ns = 0;
	listening = !l->resume_ns && room(l);
	if (listening == l->listening)
		return;
	l->listening = listening;
	event.events = listening ? EPOLLIN : 0;
	rc = epoll_ctl(l->handshakes.epoll, EPOLL_CTL_MOD, l->server->listener.fd, &event);
	assert(rc == 0);
}

static void pause_accepting(struct event_loop *l)
{
	if (++l->pauses == PAUSES_MOST)
		log_warn("there is no descriptor for clients of the HTTP API: they are turned "
			 "away until there is");
	if (l->pauses >= PAUSES_MOST) {
		struct access_counters *c = &l->server->ctx->counters->access;

		l->pauses = PAUSES_MOST;
		for (int i = 0;
		     i < REFUSALS_MAX && endpoint_refuse_one(l->server->listener.fd, &l->spare);
		     i++)
			counter_add(&c->refused[ACCESS_REFUSAL_NO_DESCRIPTOR], 1);
	}
	l->resume_ns = clock_mono_ns() + PAUSE_NS;
}

/* True while there may be more clients. */
static bool accept_one(struct event_loop *l)
{
	struct sockaddr_storage from = {0};
	socklen_t len = sizeof(from);
	int fd = accept4(l->server->listener.fd, (struct sockaddr *)&from, &len,
			 SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd >= 0) {
		l->pauses = 0;
		/* The library closes a connection for which it has no memory. */
		MHD_add_connection(l->daemon, fd, (const struct sockaddr *)&from, len);
		return true;
	}
	if (errno == EINTR || errno == ECONNABORTED)
		return true;
	if (errno == EWOULDBLOCK)
		l->pauses = 0;
	else
		pause_accepting(l);
	return false;
}

/* The library from version 1.0 on counts new connections when it runs next. */
static void accept_clients(struct event_loop *l)
{
	unsigned int most = room(l);

	for (unsigned int i = 0; i < most && i < ACCEPTS_MAX && accept_one(l); i++)
		;
}

/* --- the loop --------------------------------------------------------------------------------- */

/* Milliseconds until the next timeout; -1: none. */
static int timeout_ms(const struct event_loop *l)
{
	MHD_UNSIGNED_LONG_LONG library_ms;
	int64_t ms = INT_MAX, left_ns;

	if (MHD_get_timeout(l->daemon, &library_ms) == MHD_YES && library_ms < INT_MAX)
		ms = (int64_t)library_ms;
	if (l->resume_ns) {
		left_ns = l->resume_ns - clock_mono_ns();
		left_ns = left_ns > 0 ? left_ns : 0;
		/* Rounded up. */
		if (left_ns / NS_PER_MS + 1 < ms)
			ms = left_ns / NS_PER_MS + 1;
	}
	return ms == INT_MAX ? -1 : (int)ms;
}

static void forget_wakes(const struct event_loop *l)
{
	uint64_t count;
	ssize_t n = read(l->wake, &count, sizeof(count));

	assert(n == sizeof(count));
}

static void take_event(struct event_loop *l, void *of)
{
	if (of == &l->wake)
		forget_wakes(l);
	else if (of == &l->server->listener && !atomic_load(&l->stop))
		accept_clients(l);
	else if (of != &l->server->listener && of != &l->daemon)
		handshake_go_on(of);
}

static void *run(void *arg)
{
	struct event_loop *l = arg;

	while (!atomic_load(&l->stop)) {
		struct epoll_event events[EVENTS_MAX];
		int count = epoll_wait(l->handshakes.epoll, events, EVENTS_MAX, timeout_ms(l));

		/* The library runs after every wait: a new connection may have a request. */
		for (int i = 0; i < count; i++)
			take_event(l, events[i].data.ptr);
		MHD_run(l->daemon);
		set_listening(l);
	}
	/* MHD_stop_daemon() requires that no connection is suspended. */
	while (l->handshakes.waiting)
		handshake_go_on(l->handshakes.waiting);
	MHD_stop_daemon(l->daemon);
	return NULL;
}

static void wake(const struct event_loop *l)
{
	uint64_t one = 1;
	ssize_t n = write(l->wake, &one, sizeof(one));

	assert(n == sizeof(one));
}

struct http_server *event_loop_server(const struct event_loop *l)
{
	return l->server;
}

void event_loop_resume(struct event_loop *l, struct MHD_Connection *connection)
{
	MHD_resume_connection(connection);
	wake(l);
}

/* --- life ------------------------------------------------------------------------------------- */

static void on_connection(void *loop, struct MHD_Connection *connection, void **context,
			  enum MHD_ConnectionNotificationCode code)
{
	struct event_loop *l = loop;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		*context = conn_manager_begin(l->server->manager, connection, &l->handshakes);
	} else if (*context) {
		conn_manager_end(l->server->manager, *context);
		*context = NULL;
	}
}

/* tls.h sets the certificate of each session; the library does not start without any callback. */
static int no_certificate(gnutls_session_t session, const struct gnutls_cert_retr_st *info,
			  gnutls_pcert_st **certificates, unsigned int *count,
			  gnutls_ocsp_data_st **ocsp, unsigned int *ocsp_count,
			  gnutls_privkey_t *key, unsigned int *flags)
{
	(void)session, (void)info, (void)certificates, (void)count;
	(void)ocsp, (void)ocsp_count, (void)key, (void)flags;
	return -1;
}

/* The library's log: bad lengths are answered, the rest is dropped. */
static void on_message(void *loop, const char *format, va_list args)
{
	struct event_loop *l = loop;

	(void)args;
	if (strstr(format, "Content-Length"))
		conn_manager_refuse_lengths(l->server->manager, &l->handshakes);
}

/* SIGPIPE is blocked on the thread, so the library may use plain send(). */
static struct MHD_Daemon *start_daemon(struct event_loop *l)
{
	bool tls = conn_manager_has_tls(l->server->manager);
	struct MHD_OptionItem for_tls[] = {
		{MHD_OPTION_HTTPS_CERT_CALLBACK2, 0, (void *)no_certificate},
		{MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)TLS_PRIORITIES},
		{MHD_OPTION_END, 0, NULL},
	};
	struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};

	return MHD_start_daemon(
		MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ERROR_LOG |
			MHD_ALLOW_SUSPEND_RESUME | (tls ? MHD_USE_TLS : 0),
		0, NULL, NULL, request_on_progress, l, MHD_OPTION_EXTERNAL_LOGGER, on_message, l,
		MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_CONNECTION_LIMIT, l->most,
		MHD_OPTION_URI_LOG_CALLBACK, request_on_target, l, MHD_OPTION_UNESCAPE_CALLBACK,
		request_unescape, NULL, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)CONNECTION_BYTES, MHD_OPTION_CONNECTION_TIMEOUT, CONN_IDLE_SECONDS,
		MHD_OPTION_NOTIFY_COMPLETED, request_on_completed, l, MHD_OPTION_NOTIFY_CONNECTION,
		on_connection, l, MHD_OPTION_ARRAY, tls ? for_tls : none, MHD_OPTION_END);
}

static int watch(struct event_loop *l, int fd, void *of)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = of};

	return epoll_ctl(l->handshakes.epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int open_descriptors(struct event_loop *l)
{
	const union MHD_DaemonInfo *info;
	int rc;

	l->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	l->handshakes.epoll = epoll_create1(EPOLL_CLOEXEC);
	l->wake = l->handshakes.epoll < 0 ? -1 : eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (l->wake < 0)
		return -errno;
	l->daemon = start_daemon(l);
	if (!l->daemon)
		return errno ? -errno : -EIO;
	info = MHD_get_daemon_info(l->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	rc = watch(l, info->epoll_fd, &l->daemon);
	if (!rc)
		rc = watch(l, l->wake, &l->wake);
	return rc ? rc : watch(l, l->server->listener.fd, &l->server->listener);
}

static void free_loop(struct event_loop *l)
{
	file_close(l->wake);
	file_close(l->handshakes.epoll);
	file_close(l->spare);
	free(l);
}

int event_loop_start(struct event_loop **out, struct http_server *server, unsigned int most,
		     struct error *error)
{
	struct event_loop *l = mem_zalloc(1, sizeof(*l));
	int rc;

	l->server = server;
	l->listening = true;
	l->most = most;
	rc = open_descriptors(l);
	if (!rc)
		rc = thread_start(&l->thread, 0, run, l);
	if (!rc) {
		*out = l;
		return 0;
	}
	error_set(error, "%s", strerror(-rc));
	MHD_stop_daemon(l->daemon);
	free_loop(l);
	return rc;
}

void event_loop_stop(struct event_loop *l)
{
	if (!l)
		return;
	atomic_store(&l->stop, true);
	wake(l);
	pthread_join(l->thread, NULL);
	free_loop(l);
}
