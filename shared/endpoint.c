/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nanomsg does not check addresses: a path longer than sun_path or port 0 ends in abort(). All its
 * assertions about an address are checked here.
 */
#include "shared/endpoint.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "shared/file.h"

static int parse_port(const char *text, uint16_t *port)
{
	size_t len = strlen(text);
	unsigned long value;

	if (len < 1 || len > 5 || strspn(text, "0123456789") != len)
		return -EINVAL;
	value = strtoul(text, NULL, 10);
	if (value < 1 || value > UINT16_MAX)
		return -EINVAL;
	*port = (uint16_t)value;
	return 0;
}

/* A host in brackets must be an IPv6 address; no other host has a colon. */
static int parse_host(const char *text, size_t len, char *host)
{
	struct in6_addr address;
	bool bracketed = len > 2 && text[0] == '[' && text[len - 1] == ']';

	if (bracketed) {
		text++;
		len -= 2;
	}
	if (len < 1)
		return -EINVAL;
	memcpy(host, text, len);
	host[len] = '\0';
	if (bracketed)
		return inet_pton(AF_INET6, host, &address) == 1 ? 0 : -EINVAL;
	return strpbrk(host, ":;/[] ") ? -EINVAL : 0;
}

static int parse_tcp(struct endpoint *e, const char *rest, struct error *error)
{
	const char *colon = strrchr(rest, ':');

	e->kind = ENDPOINT_TCP;
	if (!colon || parse_host(rest, (size_t)(colon - rest), e->host))
		return error_fail(error, -EINVAL,
				  "%s: expected tcp://HOST:PORT; IPv6 as tcp://[ADDRESS]:PORT",
				  e->url);
	if (parse_port(colon + 1, &e->port))
		return error_fail(error, -EINVAL, "%s: the port must be a number from 1 to 65535",
				  e->url);
	return 0;
}

static int parse_ipc(struct endpoint *e, const char *rest, struct error *error)
{
	e->kind = ENDPOINT_IPC;
	if (rest[0] != '/' || rest[1] == '\0')
		return error_fail(error, -EINVAL, "%s: expected an absolute path, ipc:///run/NAME",
				  e->url);
	if (strlen(rest) >= sizeof(e->path))
		return error_fail(error, -EINVAL,
				  "%s: the path of a socket may have at most %zu bytes", e->url,
				  sizeof(e->path) - 1);
	memcpy(e->path, rest, strlen(rest) + 1);
	return 0;
}

int endpoint_parse(struct endpoint *e, const char *url, struct error *error)
{
	struct endpoint parsed = {0};
	int rc;

	if (strlen(url) > ENDPOINT_URL_MAX)
		return error_fail(error, -EINVAL, "%.40s..: an address may have at most %d bytes",
				  url, ENDPOINT_URL_MAX);
	memcpy(parsed.url, url, strlen(url) + 1);
	if (!strncmp(url, "tcp://", 6)) {
		rc = parse_tcp(&parsed, url + 6, error);
	} else if (!strncmp(url, "ipc://", 6))
		rc = parse_ipc(&parsed, url + 6, error);
	else
		rc = error_fail(error, -EINVAL, "%s: expected tcp://HOST:PORT or ipc:///PATH", url);
	if (!rc)
		*e = parsed;
	return rc;
}

bool endpoint_is_address(const struct endpoint *e)
{
	struct in6_addr v6;
	struct in_addr v4;

	return inet_pton(AF_INET, e->host, &v4) == 1 || inet_pton(AF_INET6, e->host, &v6) == 1;
}

bool endpoint_ipv4_only(const struct endpoint *e)
{
	struct in6_addr v6;
	struct in_addr v4;
	int fd;

	if (inet_pton(AF_INET, e->host, &v4) == 1)
		return true;
	if (inet_pton(AF_INET6, e->host, &v6) == 1)
		return false;
	/* Of a name: whether the kernel has no IPv6. */
	fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	file_close(fd);
	return fd < 0;
}

enum { ADDRESS_LEN = 8 };

uint64_t peer_hash(const uint8_t key[PEER_KEY_LEN], const struct sockaddr *from)
{
	/* The family first: 32.1.13.184 and 2001:db8::/64 have the same bytes. */
	uint8_t text[1 + ADDRESS_LEN] = {4}, hash[crypto_shorthash_BYTES];
	uint64_t client;

	if (from->sa_family == AF_INET) {
		memcpy(text + 1, &((const struct sockaddr_in *)from)->sin_addr, 4);
	} else if (from->sa_family == AF_INET6) {
		const struct in6_addr *six = &((const struct sockaddr_in6 *)from)->sin6_addr;

		if (IN6_IS_ADDR_V4MAPPED(six)) {
			memcpy(text + 1, six->s6_addr + 12, 4);
		} else {
			text[0] = 6;
			memcpy(text + 1, six->s6_addr, ADDRESS_LEN);
		}
	}
	crypto_shorthash(hash, text, sizeof(text), key);
	memcpy(&client, hash, sizeof(client));
	return client ? client : 1;
}

bool endpoint_refuse_one(int listener, int *spare)
{
	int fd;

	file_close(*spare);
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	file_close(fd);
	*spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return fd >= 0;
}
