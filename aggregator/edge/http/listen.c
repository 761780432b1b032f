/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library reports only that starting failed. Operators need the address, the cause and a
 * remedy.
 */
#include "aggregator/edge/http/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Clients reconnect all at once after a restart; the kernel limits this to net.core.somaxconn. */
enum { BACKLOG = 4096 };

struct address_parts {
	char host[256]; /* "" is every address */
	char port[8];
};

static int split_address(const char *address, struct address_parts *parts, struct error *error)
{
	const char *colon = strrchr(address, ':');
	const char *host = address, *end = colon;
	size_t digits;

	if (!colon)
		goto bad;
	digits = strspn(colon + 1, "0123456789");
	if (!digits || digits > 5 || colon[1 + digits] || strtol(colon + 1, NULL, 10) > 65535)
		goto bad;
	if (*host == '[') {
		host++;
		end--;
		if (end < host || *end != ']')
			goto bad;
	} else if (memchr(host, ':', (size_t)(end - host))) {
		goto bad;
	}
	if ((size_t)(end - host) >= sizeof(parts->host))
		goto bad;
	snprintf(parts->host, sizeof(parts->host), "%.*s", (int)(end - host), host);
	snprintf(parts->port, sizeof(parts->port), "%s", colon + 1);
	return 0;
bad:
	return error_fail(error, -EINVAL, "\"%s\" is not HOST:PORT, [IPV6]:PORT or :PORT", address);
}

static int resolve(const struct address_parts *parts, int family, struct addrinfo **found,
		   struct error *error)
{
	const struct addrinfo hints = {
		.ai_family = family,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_PASSIVE | AI_NUMERICSERV,
	};
	const char *host = parts->host[0] ? parts->host : NULL;
	int rc = getaddrinfo(host, parts->port, &hints, found);

	if (!rc)
		return 0;
	return error_fail(error, -EINVAL, "\"%s\" is not an address of this machine: %s",
			  parts->host, gai_strerror(rc));
}

static int open_socket(const struct addrinfo *at, int *out)
{
	int on = 1, off = 0, rc;
	int fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (at->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (bind(fd, at->ai_addr, at->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0) {
		rc = -errno;
		close(fd);
		return rc;
	}
	*out = fd;
	return 0;
}

static const char *advice(int rc)
{
	switch (-rc) {
	case EADDRINUSE:
		return "another process listens there; stop it or choose another port";
	case EACCES:
		return "ports below 1024 need CAP_NET_BIND_SERVICE; choose a higher one";
	case EADDRNOTAVAIL:
		return "no interface of this machine has that address";
	default:
		return strerror(-rc);
	}
}

/* Binds the first address of the family that can be bound. */
static int bind_family(struct listener *l, const struct address_parts *parts, int family,
		       struct error *error)
{
	struct addrinfo *found;
	int rc = resolve(parts, family, &found, error);

	if (rc)
		return rc;
	for (const struct addrinfo *at = found; at; at = at->ai_next) {
		rc = open_socket(at, &l->fd);
		if (!rc)
			break;
	}
	if (rc)
		error_set(error, "%s", advice(rc));
	freeaddrinfo(found);
	return rc;
}

int listen_open(struct listener *l, const char *address, struct error *error)
{
	struct address_parts parts;
	int rc = split_address(address, &parts, error);

	if (rc)
		goto out;
	/* A socket of IPv6's any-address takes IPv4 too; a kernel without IPv6 has only IPv4. */
	if (!parts.host[0])
		rc = bind_family(l, &parts, AF_INET6, error);
	if (parts.host[0] || (rc && rc != -EADDRINUSE && rc != -EACCES))
		rc = bind_family(l, &parts, parts.host[0] ? AF_UNSPEC : AF_INET, error);
	if (!rc) {
		struct sockaddr_storage at = {0};
		socklen_t len = sizeof(at);
		char host[INET6_ADDRSTRLEN] = "", port[8] = "";

		getsockname(l->fd, (struct sockaddr *)&at, &len);
		getnameinfo((struct sockaddr *)&at, len, host, sizeof(host), port, sizeof(port),
			    NI_NUMERICHOST | NI_NUMERICSERV);
		snprintf(l->address, sizeof(l->address),
			 at.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
		l->loopback = host_is_loopback((const struct sockaddr *)&at);
	}
out:
	if (rc)
		error_prefix(error, "cannot listen on %s", address);
	return rc;
}
