/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When thousands of agents return at once, a short backlog drops most SYNs, which are retried for
 * half a minute. Without keepalive a node that lost its power holds a descriptor for ever.
 * Accepted sockets inherit the options of the listener on Linux.
 *
 * The file of an ipc socket is replaced only if it is a socket without a listener, as a killed
 * process leaves it. The new one is made 0600.
 *
 * The bytes: the SP mappings to TCP and, as nanomsg has it, to ipc, and the request/reply protocol.
 *
 *     hello      0 'S' 'P' 0, protocol as 16 bits (48: REQ, 49: REP), 0 0; once, in both directions
 *     message    on ipc only: 1; length as 64 bits, then so many bytes: stack of ids, frame
 *     stack      0..7 ids of 32 bits below 2^31, one id above; an answer carries its request's
 *
 * Numbers are big-endian. No byte is trusted: lengths are compared before they are added.
 */
#include "aggregator/edge/ingest_socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum {
	BACKLOG = 4096,
	/*
	 * A silent peer ends after 10 + 3 * 5 s, a peer that does not acknowledge an answer after
	 * 20 s.
	 */
	KEEPALIVE_IDLE_S = 10,
	KEEPALIVE_INTERVAL_S = 5,
	KEEPALIVE_COUNT = 3,
	USER_TIMEOUT_MS = 20000,
};

/* --- the file of an ipc socket ---------------------------------------------------------------- */

/* 0: no listener; -EADDRINUSE: a listener; else why that is not known. */
static int try_connect(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc;

	if (fd < 0)
		return -errno;
	memcpy(address.sun_path, path, strlen(path));
	rc = connect(fd, (struct sockaddr *)&address, sizeof(address)) ? errno : 0;
	close(fd);
	/* EAGAIN: the backlog is full. */
	if (rc == 0 || rc == EAGAIN)
		return -EADDRINUSE;
	return rc == ECONNREFUSED || rc == ENOENT ? 0 : -rc;
}

static int clear_path(const char *path, struct error *reason)
{
	struct stat st;
	int rc;

	if (lstat(path, &st)) {
		rc = errno == ENOENT ? 0 : -errno;
	} else if (!S_ISSOCK(st.st_mode)) {
		return error_fail(reason, -EEXIST,
				  "%s: is there and not a socket: choose another path", path);
	} else {
		rc = try_connect(path);
		if (!rc && unlink(path) && errno != ENOENT)
			rc = -errno;
	}
	if (rc == -EADDRINUSE)
		error_set(reason, "%s: another process listens there: stop it, or choose another",
			  path);
	else if (rc)
		error_set(reason, "%s: %s", path, strerror(-rc));
	return rc;
}

/* --- binding ---------------------------------------------------------------------------------- */

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_un un;
};

/* -ENODEV: the host is no address. */
static int read_tcp(const struct endpoint *e, union address *a, socklen_t *len)
{
	bool all = !strcmp(e->host, "*");

	if (endpoint_ipv4_only(e)) {
		a->v4.sin_family = AF_INET;
		a->v4.sin_port = htons(e->port);
		*len = sizeof(a->v4);
		return all || inet_pton(AF_INET, e->host, &a->v4.sin_addr) == 1 ? 0 : -ENODEV;
	}
	a->v6.sin6_family = AF_INET6;
	a->v6.sin6_port = htons(e->port);
	*len = sizeof(a->v6);
	return all || inet_pton(AF_INET6, e->host, &a->v6.sin6_addr) == 1 ? 0 : -ENODEV;
}

static int read_address(const struct endpoint *e, union address *a, socklen_t *len)
{
	*a = (union address){0};
	if (e->kind == ENDPOINT_TCP)
		return read_tcp(e, a, len);
	a->un.sun_family = AF_UNIX;
	memcpy(a->un.sun_path, e->path, strlen(e->path));
	*len = sizeof(a->un);
	return 0;
}

static void tune_tcp(int fd, int family)
{
	static const struct {
		int level, option, value;
	} options[] = {
		{SOL_SOCKET, SO_REUSEADDR, 1},
		{SOL_SOCKET, SO_KEEPALIVE, 1},
		{IPPROTO_TCP, TCP_NODELAY, 1},
		{IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S},
		{IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S},
		{IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_COUNT},
		{IPPROTO_TCP, TCP_USER_TIMEOUT, USER_TIMEOUT_MS},
	};
	static const int no = 0;

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		setsockopt(fd, options[i].level, options[i].option, &options[i].value,
			   sizeof(options[i].value));
	if (family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
}

static int listen_at(const union address *a, socklen_t len, int *out)
{
	int fd = socket(a->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc;
	mode_t mask;

	if (fd < 0)
		return -errno;
	if (a->any.sa_family != AF_UNIX)
		tune_tcp(fd, a->any.sa_family);
	mask = umask(0177);
	rc = bind(fd, &a->any, len) ? -errno : 0;
	umask(mask);
	if (!rc && listen(fd, BACKLOG))
		rc = -errno;
	if (rc)
		close(fd);
	else
		*out = fd;
	return rc;
}

static const char *advice(const struct endpoint *endpoint, int error)
{
	if (endpoint->kind == ENDPOINT_IPC)
		return strerror(error);
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
		return strerror(error);
	}
}

int ingest_socket_listen(int *fd, const struct endpoint *endpoint, struct error *reason)
{
	union address address;
	socklen_t len;
	int rc;

	if (endpoint->kind == ENDPOINT_IPC) {
		rc = clear_path(endpoint->path, reason);
		if (rc)
			return rc;
	}
	rc = read_address(endpoint, &address, &len);
	if (!rc)
		rc = listen_at(&address, len, fd);
	if (rc)
		error_set(reason, "%s: %s", endpoint->url, advice(endpoint, -rc));
	return rc;
}

void ingest_socket_remove(const struct endpoint *endpoint)
{
	if (endpoint->kind == ENDPOINT_IPC)
		unlink(endpoint->path);
}

/* --- bytes ------------------------------------------------------------------------------------ */

enum { LENGTH_LEN = 8, ID_LEN = 4, IPC_MESSAGE = 1 };

const uint8_t wire_hello[WIRE_HELLO_LEN] = {0, 'S', 'P', 0, 0, 49, 0, 0};

const uint8_t wire_asker_hello[WIRE_HELLO_LEN] = {0, 'S', 'P', 0, 0, 48, 0, 0};

int wire_check_hello(const void *data, size_t len)
{
	if (memcmp(data, wire_asker_hello, len < WIRE_HELLO_LEN ? len : WIRE_HELLO_LEN) != 0)
		return -EPROTO;
	return len < WIRE_HELLO_LEN ? -EAGAIN : 0;
}

size_t wire_head_len(enum endpoint_kind kind)
{
	return kind == ENDPOINT_IPC ? LENGTH_LEN + 1 : LENGTH_LEN;
}

void wire_put_head(enum endpoint_kind kind, size_t len, uint8_t *head)
{
	if (kind == ENDPOINT_IPC)
		*head++ = IPC_MESSAGE;
	for (int i = 0; i < LENGTH_LEN; i++)
		head[i] = (uint8_t)((uint64_t)len >> (8 * (LENGTH_LEN - 1 - i)));
}

int wire_get_head(enum endpoint_kind kind, const void *data, size_t len, size_t *message_len)
{
	const uint8_t *at = data;
	uint64_t value = 0;

	if (len < wire_head_len(kind))
		return -EAGAIN;
	if (kind == ENDPOINT_IPC && *at++ != IPC_MESSAGE)
		return -EPROTO;
	for (int i = 0; i < LENGTH_LEN; i++)
		value = value << 8 | at[i];
	if (value > WIRE_MESSAGE_MAX)
		return -EMSGSIZE;
	*message_len = (size_t)value;
	return 0;
}

size_t wire_stack_len(const void *message, size_t len)
{
	const uint8_t *at = message;

	for (size_t end = ID_LEN; end <= len && end <= WIRE_STACK_MAX; end += ID_LEN)
		if (at[end - ID_LEN] & 0x80)
			return end;
	return 0;
}
