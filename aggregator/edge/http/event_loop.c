/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libmicrohttpd reads requests and writes answers; the thread it does that on, and accepting, are
 * ours. Left to itself it asks again at once, without end, for a connection that the process has no
 * descriptor for; and where it has connections already, only when one of these ends, however many
 * descriptors are free meanwhile.
 *
 *     epoll --+-- the library's epoll: all connections      --> MHD_run()
 *             +-- the listener, which all loops hear        --> accept, MHD_add_connection()
 *             +-- an eventfd: a connection is resumed, or stop
 *             +-- clients whose part of a TLS handshake is awaited (connections.h)
 *
 * A client is let in by a loop that has nothing else to do. It has its place before it is accepted
 * (connections_reserve()): while there is none, clients wait in the backlog, and the library, whose bound
 * is the same, never gets to it. The library tells of who was added at once or, from version 1.0
 * on, when it runs next: until then the place is known by the descriptor.
 *
 * What can fail. Without a descriptor the loop leaves the listener alone for PAUSE_NS and asks
 * again, so that a short want is not noticed. After PAUSES_MOST of these it gives up a spare
 * descriptor to let those who wait in and out again, so that nobody hangs; they are counted. What
 * the library has no memory for it closes.
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
#include "shared/log.h"
#include "shared/mem.h"
#include "shared/thread.h"

enum {
	EVENTS_MAX = 16,
	ACCEPTS_MAX = 16, /* between two looks at those who are in */
	REFUSALS_MAX = 64,
	PAUSES_MOST = 10,
	CONNECTION_BYTES = 16384,
};

#define PAUSE_NS (100 * NS_PER_MS)

/* TLS 1.2 and 1.3, with ciphers that authenticate, and keys that do not outlive a session. */
#define TLS_PRIORITIES                                                                             \
	"NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-RSA:-CIPHER-ALL:+AES-256-GCM:"                \
	"+CHACHA20-POLY1305:+AES-128-GCM"

/* Whom the library was given and has not told of yet. */
struct arrival {
	int fd;
	struct connection *place;
};

struct event_loop {
	/* fixed after start */
	struct http_server *server; /* borrowed, as are the two below */
	struct conn_manager *manager;
	int listener;
	struct MHD_Daemon *daemon;
	int wake;
	pthread_t thread;

	/* the thread's */
	struct handshakes handshakes; /* its epoll is the loop's */
	int spare; /* a descriptor to give up; negative: there is none */
	int64_t resume_ns; /* the listener is not heard before; 0: it is heard */
	bool crowded; /* and not, since there is no place */
	int pauses; /* in a row, for want of a descriptor */
	struct arrival arrivals[ACCEPTS_MAX]; /* since the library last ran */
	int arrival_count;

	/* any thread */
	atomic_bool stop;
};

/* --- accepting -------------------------------------------------------------------------------- */

static void hear_listener(struct event_loop *l, bool hear)
{
	struct epoll_event event = {.events = hear ? EPOLLIN : 0, .data.ptr = &l->listener};
	int rc = epoll_ctl(l->handshakes.epoll, EPOLL_CTL_MOD, l->listener, &event);

	assert(rc == 0);
}

static void pause_accepting(struct event_loop *l, bool crowded)
{
	l->resume_ns = clock_mono_ns() + PAUSE_NS;
	l->crowded = crowded;
	hear_listener(l, false);
}

static void resume_accepting(struct event_loop *l)
{
	if (!l->resume_ns)
		return;
	if (clock_mono_ns() < l->resume_ns &&
	    !(l->crowded && connections_have_room(conn_manager_connections(l->manager))))
		return;
	l->resume_ns = 0;
	hear_listener(l, true);
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

/* Lets somebody in and out at once; false when nobody waits, or that cannot be done either. */
static bool refuse_one(struct event_loop *l)
{
	int fd;

	close_fd(l->spare);
	fd = accept4(l->listener, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		conn_manager_count_unserved(l->manager);
	close_fd(fd);
	l->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return fd >= 0;
}

static void bear_want(struct event_loop *l)
{
	if (++l->pauses == PAUSES_MOST)
		log_warn("there is no descriptor for clients of the HTTP API: they are turned "
			 "away until there is");
	if (l->pauses >= PAUSES_MOST) {
		l->pauses = PAUSES_MOST;
		for (int i = 0; i < REFUSALS_MAX && refuse_one(l); i++)
			;
	}
	pause_accepting(l, false);
}

/* True while it is worth asking again. */
static bool go_on_after(struct event_loop *l, int error)
{
	switch (error) {
	case EINTR:
	case ECONNABORTED:
		return true;
	case EWOULDBLOCK:
		l->pauses = 0;
		return false;
	default:
		bear_want(l);
		return false;
	}
}

/* The place of who has that descriptor; NULL: the library told of him before. */
static struct connection *take_arrival(struct event_loop *l, int fd)
{
	for (int i = 0; i < l->arrival_count; i++) {
		struct connection *place = l->arrivals[i].place;

		if (l->arrivals[i].fd != fd)
			continue;
		l->arrivals[i] = l->arrivals[--l->arrival_count];
		return place;
	}
	return NULL;
}

/* Who is there, in the place that was kept; the descriptor is the library's then. */
static void let_in(struct event_loop *l, struct connection *place, int fd,
		   const struct sockaddr_storage *from, socklen_t len)
{
	if (!conn_manager_admit(l->manager, place, (const struct sockaddr *)from)) {
		conn_manager_end(l->manager, place);
		close(fd);
		return;
	}
	l->arrivals[l->arrival_count++] = (struct arrival){fd, place};
	if (MHD_add_connection(l->daemon, fd, (const struct sockaddr *)from, len) == MHD_YES)
		return;
	place = take_arrival(l, fd);
	if (place)
		conn_manager_end(l->manager, place);
}

/* True while there may be more. */
static bool accept_one(struct event_loop *l)
{
	struct connection *place = connections_reserve(conn_manager_connections(l->manager));
	struct sockaddr_storage from = {0};
	socklen_t len = sizeof(from);
	int fd, error;

	if (!place) {
		pause_accepting(l, true);
		return false;
	}
	fd = accept4(l->listener, (struct sockaddr *)&from, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0) {
		error = errno;
		conn_manager_end(l->manager, place);
		return go_on_after(l, error);
	}
	l->pauses = 0;
	let_in(l, place, fd, &from, len);
	return true;
}

static void accept_clients(struct event_loop *l)
{
	for (int i = 0; i < ACCEPTS_MAX; i++)
		if (!accept_one(l))
			return;
}

/* --- the loop --------------------------------------------------------------------------------- */

/* Milliseconds until something is due; -1: nothing is. */
static int timeout_ms(const struct event_loop *l)
{
	MHD_UNSIGNED_LONG_LONG library_ms;
	int64_t ms = INT_MAX, left_ns;

	if (MHD_get_timeout(l->daemon, &library_ms) == MHD_YES && library_ms < INT_MAX)
		ms = (int64_t)library_ms;
	if (l->resume_ns) {
		left_ns = l->resume_ns - clock_mono_ns();
		left_ns = left_ns > 0 ? left_ns : 0;
		/* Rounded up: not due yet is not worth waking for. */
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
	else if (of == &l->listener && !atomic_load(&l->stop))
		accept_clients(l);
	else if (of != &l->listener && of != &l->daemon)
		handshake_go_on(of);
}

/* The library looks at its connections however it was woken: who was let in may have asked. */
static void run_once(struct event_loop *l)
{
	struct epoll_event events[EVENTS_MAX];
	int count = epoll_wait(l->handshakes.epoll, events, EVENTS_MAX, timeout_ms(l));

	for (int i = 0; i < count; i++)
		take_event(l, events[i].data.ptr);
	MHD_run(l->daemon);
	/* Those of whom the library has not told by now it has closed. */
	while (l->arrival_count)
		conn_manager_end(l->manager, l->arrivals[--l->arrival_count].place);
	resume_accepting(l);
}

static void *run(void *arg)
{
	struct event_loop *l = arg;

	while (!atomic_load(&l->stop))
		run_once(l);
	handshakes_go_on(&l->handshakes);
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
	const union MHD_ConnectionInfo *info;
	struct event_loop *l = loop;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
		*context = take_arrival(l, info->connect_fd);
		assert(*context);
		conn_manager_begin(l->manager, *context, connection, &l->handshakes);
	} else if (*context) {
		conn_manager_end(l->manager, *context);
		*context = NULL;
	}
}

/*
 * The certificates of sessions are set one by one (tls.h); without any of its own the library would
 * not start.
 */
static int no_certificate(gnutls_session_t session, const struct gnutls_cert_retr_st *info,
			  gnutls_pcert_st **certificates, unsigned int *count,
			  gnutls_ocsp_data_st **ocsp, unsigned int *ocsp_count,
			  gnutls_privkey_t *key, unsigned int *flags)
{
	(void)session, (void)info, (void)certificates, (void)count;
	(void)ocsp, (void)ocsp_count, (void)key, (void)flags;
	return -1;
}

/* What the library has to say; of all that only lengths are answered otherwise. */
static void on_message(void *loop, const char *format, va_list args)
{
	struct event_loop *l = loop;

	(void)args;
	if (strstr(format, "Content-Length"))
		conn_manager_refuse_lengths(l->manager, &l->handshakes);
}

/* SIGPIPE is blocked on the thread, so the library may send as it likes. */
static struct MHD_Daemon *start_daemon(struct event_loop *l)
{
	bool tls = conn_manager_has_tls(l->manager);
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
		MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_CONNECTION_LIMIT,
		connections_most(conn_manager_connections(l->manager)), MHD_OPTION_URI_LOG_CALLBACK,
		request_on_target, l, MHD_OPTION_UNESCAPE_CALLBACK, request_unescape, NULL,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
		MHD_OPTION_CONNECTION_TIMEOUT, CONN_IDLE_SECONDS, MHD_OPTION_NOTIFY_COMPLETED,
		request_on_completed, l, MHD_OPTION_NOTIFY_CONNECTION, on_connection, l,
		MHD_OPTION_ARRAY, tls ? for_tls : none, MHD_OPTION_END);
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
	return rc ? rc : watch(l, l->listener, &l->listener);
}

static void free_loop(struct event_loop *l)
{
	close_fd(l->wake);
	close_fd(l->handshakes.epoll);
	close_fd(l->spare);
	free(l);
}

int event_loop_start(struct event_loop **out, struct http_server *server, int listener,
		     struct conn_manager *manager, struct reason *reason)
{
	struct event_loop *l = mem_zalloc(1, sizeof(*l));
	int rc;

	l->server = server;
	l->manager = manager;
	l->listener = listener;
	rc = open_descriptors(l);
	if (!rc)
		rc = thread_start(&l->thread, 0, run, l);
	if (!rc) {
		*out = l;
		return 0;
	}
	reason_set(reason, "%s", strerror(-rc));
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
