/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread: it accepts, reads the request's head, which must show no token to a proxy, answers
 * 200, and passes bytes on both ways until a side ends.
 */
#include "tests/tunnel.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shared/mem.h"

struct tunnel {
	int listener, port, target_port;
	int stop[2]; /* a pipe; readable: end */
	pthread_t thread;
	char asked[256]; /* read by tests when the request is over */
};

static int connect_to(int port)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons((uint16_t)port),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address))) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Waits for one of two; false: it is time to stop. */
static bool await_input(const struct tunnel *t, int a, int b, bool *from_a)
{
	struct pollfd fds[3] = {{t->stop[0], POLLIN, 0}, {a, POLLIN, 0}, {b, POLLIN, 0}};

	poll(fds, 3, -1);
	*from_a = fds[1].revents != 0;
	return fds[0].revents == 0;
}

static bool read_head(struct tunnel *t, int client)
{
	char head[2048];
	size_t len = 0;
	bool from_client;

	while (len < sizeof(head) - 1 && await_input(t, client, -1, &from_client)) {
		ssize_t got = read(client, head + len, sizeof(head) - 1 - len);

		if (got <= 0)
			return false;
		len += (size_t)got;
		head[len] = '\0';
		if (strstr(head, "\r\n\r\n"))
			return !strcasestr(head, "\r\nAuthorization:") &&
			       sscanf(head, "CONNECT %255s HTTP/1.1", t->asked) == 1;
	}
	return false;
}

static void pass_on(const struct tunnel *t, int client, int server)
{
	char chunk[4096];
	bool from_client;

	while (await_input(t, client, server, &from_client)) {
		ssize_t got = read(from_client ? client : server, chunk, sizeof(chunk));

		if (got <= 0 || write(from_client ? server : client, chunk, (size_t)got) != got)
			return;
	}
}

static void serve(struct tunnel *t, int client)
{
	static const char yes[] = "HTTP/1.1 200 Connected\r\n\r\n";
	int server;

	if (!read_head(t, client))
		return;
	server = connect_to(t->target_port);
	if (server < 0)
		return;
	if (write(client, yes, strlen(yes)) == (ssize_t)strlen(yes))
		pass_on(t, client, server);
	close(server);
}

static void *run(void *context)
{
	struct tunnel *t = context;
	bool ready;

	while (await_input(t, t->listener, -1, &ready)) {
		int client = accept4(t->listener, NULL, NULL, SOCK_CLOEXEC);

		if (client < 0)
			continue;
		serve(t, client);
		close(client);
	}
	return NULL;
}

struct tunnel *tunnel_start(int target_port)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(address);
	struct tunnel *t = mem_zalloc(1, sizeof(*t));

	t->target_port = target_port;
	t->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (t->listener < 0 || bind(t->listener, (struct sockaddr *)&address, len) ||
	    listen(t->listener, 8) || getsockname(t->listener, (struct sockaddr *)&address, &len) ||
	    pipe2(t->stop, O_CLOEXEC) || pthread_create(&t->thread, NULL, run, t)) {
		perror("tunnel");
		abort();
	}
	t->port = ntohs(address.sin_port);
	return t;
}

void tunnel_stop(struct tunnel *t)
{
	close(t->stop[1]);
	pthread_join(t->thread, NULL);
	close(t->stop[0]);
	close(t->listener);
	free(t);
}

int tunnel_port(const struct tunnel *t)
{
	return t->port;
}

const char *tunnel_asked(const struct tunnel *t)
{
	return t->asked;
}
