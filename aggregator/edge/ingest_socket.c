/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nanomsg 1.1.5 listens with a backlog of 100 (10 on ipc) and without keepalive: when thousands of agents come back at
 * once most of their SYNs are dropped and retried for half a minute, and a node that lost its power holds its descriptor
 * for ever. It does not show the listening descriptor, so that is looked for in /proc/self/fd after binding; Linux hands
 * the options on to the sockets it accepts. Without /proc it works, only slower and forgetting nobody.
 *
 * An ipc socket's file is checked before nanomsg sees it: nanomsg unlinks whatever refuses a connection, a regular
 * file too, and aborts where it may not. A stale file, left by a killed process, is removed; the new one is made 0600.
 *
 * Ancillary data is copied, never handed over, so that nothing depends on who frees it when sending fails.
 */
#include "aggregator/edge/ingest_socket.h"

#include <arpa/inet.h>
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <nanomsg/nn.h>
#include <nanomsg/reqrep.h>
#include <nanomsg/tcp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "shared/mem.h"

enum {
	RECEIVE_MAX = 1024 * 1024, /* a longer message makes nanomsg drop the connection */
	BACKLOG = 4096,
	/* A silent peer is gone after 10 + 3 * 5 s, one that does not acknowledge an answer after 20. */
	KEEPALIVE_IDLE_S = 10,
	KEEPALIVE_INTERVAL_S = 5,
	KEEPALIVE_COUNT = 3,
	USER_TIMEOUT_MS = 20000,
};

struct ingest_socket {
	struct endpoint endpoint;
	int nn;
	int fd;
};

static int set(int nn, int level, int option, int value)
{
	return nn_setsockopt(nn, level, option, &value, sizeof(value));
}

/* --- the file of an ipc socket ---------------------------------------------------------------------------------- */

/* 0: nobody listens; -EADDRINUSE: somebody does; else why that cannot be told. */
static int try_connect(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc;

	if (fd < 0)
		return -errno;
	memcpy(address.sun_path, path, strlen(path) + 1);
	rc = connect(fd, (struct sockaddr *)&address, sizeof(address)) ? errno : 0;
	close(fd);
	/* EAGAIN: its backlog is full. */
	if (rc == 0 || rc == EAGAIN)
		return -EADDRINUSE;
	return rc == ECONNREFUSED || rc == ENOENT ? 0 : -rc;
}

/* A bind that fails leaks in nanomsg, so what can be known before is. */
static int check_directory(const char *path)
{
	char directory[ENDPOINT_PATH_MAX];
	size_t len = (size_t)(strrchr(path, '/') - path);

	memcpy(directory, path, len);
	directory[len] = '\0';
	return access(len ? directory : "/", W_OK | X_OK) ? -errno : 0;
}

static int clear_path(const char *path, struct reason *reason)
{
	struct stat st;
	int rc;

	if (lstat(path, &st)) {
		rc = errno == ENOENT ? check_directory(path) : -errno;
	} else if (!S_ISSOCK(st.st_mode)) {
		reason_set(reason, "%s: is there and not a socket: choose another path", path);
		return -EEXIST;
	} else {
		rc = try_connect(path);
		if (!rc && unlink(path) && errno != ENOENT)
			rc = -errno;
	}
	if (rc == -EADDRINUSE)
		reason_set(reason, "%s: another process listens there: stop it, or choose another",
			   path);
	else if (rc)
		reason_set(reason, "%s: %s", path, strerror(-rc));
	return rc;
}

/* --- the listening descriptor ------------------------------------------------------------------------------------ */

static bool is_listener(int fd, const struct endpoint *endpoint)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
		struct sockaddr_un un;
	} address = {0};
	socklen_t len = sizeof(address), flag_len = sizeof(int);
	int accepting = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &accepting, &flag_len) || !accepting ||
	    getsockname(fd, &address.any, &len))
		return false;
	switch (address.any.sa_family) {
	case AF_INET:
		return endpoint->kind == ENDPOINT_TCP &&
		       address.v4.sin_port == htons(endpoint->port);
	case AF_INET6:
		return endpoint->kind == ENDPOINT_TCP &&
		       address.v6.sin6_port == htons(endpoint->port);
	case AF_UNIX:
		return endpoint->kind == ENDPOINT_IPC &&
		       !strncmp(address.un.sun_path, endpoint->path, sizeof(address.un.sun_path));
	default:
		return false;
	}
}

static void tune(int fd, const struct endpoint *endpoint)
{
	static const struct {
		int level, option, value;
	} options[] = {
		{SOL_SOCKET, SO_KEEPALIVE, 1},
		{IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S},
		{IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S},
		{IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_COUNT},
		{IPPROTO_TCP, TCP_USER_TIMEOUT, USER_TIMEOUT_MS},
	};

	listen(fd, BACKLOG);
	if (endpoint->kind != ENDPOINT_TCP)
		return;
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		setsockopt(fd, options[i].level, options[i].option, &options[i].value,
			   sizeof(options[i].value));
}

/* Every listener on our port is ours: SO_REUSEPORT is not used. */
static void tune_listeners(const struct endpoint *endpoint)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *entry;

	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		int fd = (int)strtol(entry->d_name, NULL, 10);

		if (entry->d_name[0] != '.' && is_listener(fd, endpoint))
			tune(fd, endpoint);
	}
	closedir(dir);
}

/* --- binding ------------------------------------------------------------------------------------------------------ */

static int configure(const struct ingest_socket *s)
{
	return set(s->nn, NN_SOL_SOCKET, NN_RCVMAXSIZE, RECEIVE_MAX) ||
			       set(s->nn, NN_SOL_SOCKET, NN_IPV4ONLY,
				   endpoint_ipv4_only(&s->endpoint)) ||
			       set(s->nn, NN_TCP, NN_TCP_NODELAY, 1)
		       ? -1
		       : 0;
}

static const char *advice(const struct endpoint *endpoint, int error)
{
	if (endpoint->kind == ENDPOINT_IPC)
		return nn_strerror(error);
	switch (error) {
	case EADDRINUSE:
		return "another process listens there: stop it, or choose another port";
	case ENODEV:
		return "give an IP address of this machine, or * for all";
	case EADDRNOTAVAIL:
		return "this machine does not have that address";
	case EACCES:
		return "not permitted: ports below 1024 need CAP_NET_BIND_SERVICE";
	default:
		return nn_strerror(error);
	}
}

static int bind_endpoint(struct ingest_socket *s, struct reason *reason)
{
	mode_t mask;
	int rc = 0;

	if (s->endpoint.kind == ENDPOINT_IPC)
		rc = clear_path(s->endpoint.path, reason);
	if (rc)
		return rc;
	mask = umask(0177);
	rc = nn_bind(s->nn, s->endpoint.url) < 0 ? -nn_errno() : 0;
	umask(mask);
	if (rc) {
		reason_set(reason, "%s: %s", s->endpoint.url, advice(&s->endpoint, -rc));
		return rc;
	}
	tune_listeners(&s->endpoint);
	return 0;
}

int ingest_socket_open(struct ingest_socket **out, const struct endpoint *endpoint,
		       struct reason *reason)
{
	struct ingest_socket *s = mem_zalloc(1, sizeof(*s));
	size_t len = sizeof(s->fd);
	int rc;

	s->endpoint = *endpoint;
	s->nn = nn_socket(AF_SP_RAW, NN_REP);
	if (s->nn < 0 || configure(s) ||
	    nn_getsockopt(s->nn, NN_SOL_SOCKET, NN_RCVFD, &s->fd, &len)) {
		rc = -nn_errno();
		reason_set(reason, "%s: %s", endpoint->url, nn_strerror(-rc));
	} else {
		rc = bind_endpoint(s, reason);
	}
	if (rc) {
		if (s->nn >= 0)
			nn_close(s->nn);
		free(s);
		return rc;
	}
	*out = s;
	return 0;
}

void ingest_socket_close(struct ingest_socket *s)
{
	if (!s)
		return;
	/* nanomsg unlinks the file and aborts where it may not; then the process, which is ending, keeps the socket. */
	if (s->endpoint.kind == ENDPOINT_TCP || !unlink(s->endpoint.path) || errno == ENOENT)
		nn_close(s->nn);
	free(s);
}

int ingest_socket_fd(const struct ingest_socket *s)
{
	return s->fd;
}

/* --- messages ----------------------------------------------------------------------------------------------------- */

/* Up to eight ids of four bytes, and the connection's: what nanomsg lets pass (NN_MAXTTL). */
static_assert(sizeof(((struct ingest_route *)0)->bytes) >=
		      NN_CMSG_SPACE(sizeof(size_t) + 9 * sizeof(uint32_t)),
	      "a route must hold the longest header");

int ingest_socket_receive(struct ingest_socket *s, struct ingest_message *message)
{
	struct ingest_message m = {0};
	struct nn_iovec body = {.iov_base = &m.data, .iov_len = NN_MSG};
	struct nn_msghdr header = {.msg_iov = &body,
				   .msg_iovlen = 1,
				   .msg_control = m.route.bytes,
				   .msg_controllen = sizeof(m.route.bytes)};
	const struct nn_cmsghdr *route = (const struct nn_cmsghdr *)m.route.bytes;
	int len = nn_recvmsg(s->nn, &header, NN_DONTWAIT);

	if (len < 0)
		return -EAGAIN;
	m.len = (size_t)len;
	m.route.len = route->cmsg_len;
	*message = m;
	return 0;
}

void ingest_message_free(struct ingest_message *message)
{
	if (message->data)
		nn_freemsg(message->data);
	message->data = NULL;
}

void ingest_socket_reply(struct ingest_socket *s, const struct ingest_route *route,
			 const void *data, size_t len)
{
	struct nn_iovec body = {.iov_base = (void *)data, .iov_len = len};
	struct nn_msghdr header = {.msg_iov = &body,
				   .msg_iovlen = 1,
				   .msg_control = (void *)route->bytes,
				   .msg_controllen = route->len};

	nn_sendmsg(s->nn, &header, NN_DONTWAIT);
}
