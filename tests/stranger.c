/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/stranger.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { ANSWER_MS = 20000 };

static struct sockaddr_in address_of(const char *host, int port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

	inet_pton(AF_INET, host ? host : "127.0.0.1", &at.sin_addr);
	return at;
}

int stranger_connect(int port, const char *from)
{
	const struct timeval timeout = {.tv_sec = 30};
	struct sockaddr_in to = address_of(NULL, port), mine = address_of(from, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	if ((from && bind(fd, (struct sockaddr *)&mine, sizeof(mine))) ||
	    connect(fd, (struct sockaddr *)&to, sizeof(to))) {
		close(fd);
		return -1;
	}
	return fd;
}

bool stranger_say(int fd, const void *data, size_t len)
{
	const char *at = data;

	while (len) {
		ssize_t sent = send(fd, at, len, MSG_NOSIGNAL);

		if (sent <= 0)
			return false;
		at += sent;
		len -= (size_t)sent;
	}
	return true;
}

bool stranger_hear(int fd, int silent_ms, struct buf *out)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};
	char chunk[4096];

	while (poll(&ready, 1, silent_ms) > 0) {
		ssize_t len = recv(fd, chunk, sizeof(chunk), 0);

		if (len <= 0)
			return true;
		buf_add(out, chunk, (size_t)len);
	}
	return false;
}

bool stranger_is_cut(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0;
}

int stranger_ask(int port, const void *data, size_t len, long *status, struct buf *out)
{
	static const char start[] = "HTTP/1.1 ";
	int fd = stranger_connect(port, NULL), answers = 0;
	struct pollfd ready = {.fd = fd, .events = POLLIN};

	*status = 0;
	if (fd < 0)
		return 0;
	buf_clear(out);
	stranger_say(fd, data, len);
	/* After the first answer, the end of requests makes the server end the connection as soon as it has answered all. */
	if (poll(&ready, 1, ANSWER_MS) > 0)
		shutdown(fd, SHUT_WR);
	stranger_hear(fd, ANSWER_MS, out);
	close(fd);
	buf_add_str(out, "");
	if (out->len && !strncmp(out->data, start, sizeof(start) - 1))
		*status = strtol(out->data + sizeof(start) - 1, NULL, 10);
	for (const char *at = out->data; at && (at = strstr(at, start)); at++)
		answers++;
	return answers;
}
