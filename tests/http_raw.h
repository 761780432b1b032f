/* SPDX-License-Identifier: Apache-2.0 */
/* Clients of tests/http_scene.h's server that say byte for byte what they are told. */
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "shared/buf.h"
#include "tests/http_scene.h"

static inline int raw_socket(void)
{
	struct timeval timeout = {.tv_sec = 30};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	return fd;
}

static inline void raw_connect_from(int fd, const struct scene *s)
{
	const char *address = http_address(s->server);
	struct sockaddr_in at = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)strtol(strrchr(address, ':') + 1, NULL, 10)),
		.sin_addr = {htonl(INADDR_LOOPBACK)},
	};

	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
}

static inline int raw_connect(const struct scene *s)
{
	int fd = raw_socket();

	raw_connect_from(fd, s);
	return fd;
}

/* False when the peer has closed. */
static inline bool raw_send(int fd, const char *data, size_t len)
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

static inline bool raw_say(int fd, const char *text)
{
	return raw_send(fd, text, strlen(text));
}

/*
 * Reads until `until` was seen (NULL: until the end). False when the connection ended or nothing
 * came.
 */
static inline bool raw_read(int fd, const char *until, struct buf *out)
{
	char chunk[4096];
	ssize_t len;

	buf_clear(out);
	while ((len = recv(fd, chunk, sizeof(chunk), 0)) > 0) {
		buf_add(out, chunk, (size_t)len);
		if (until && strstr(out->data, until))
			return true;
	}
	return false;
}
