/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The socket is a raw REQ socket. The ordinary one of nanomsg 1.1.5 keeps one reply, and a second
 * reply with another id frees it before it is fetched: the process aborts (tried). It also forgets
 * the request after a bad ack, and resends by its own timer. A raw socket leaves the request's id
 * in a header made here, and the sender decides. The id only sorts out late replies; the seal
 * decides the rest.
 *
 * nanomsg reconnects by itself, for ever. The sender replaces a dead connection (a peer without
 * power, a cut in which TCP backs off for minutes) by sender_socket_reconnect(), also if
 * connections break one after the other: nanomsg 1.1.5 takes unused bytes of one for the beginning
 * of the next on the same endpoint.
 *
 * Closing loses what was just sent. Endpoints have addresses, never names: nanomsg would look up a
 * name, and closing would wait for that.
 */
#include "agent/sender_socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <nanomsg/nn.h>
#include <nanomsg/reqrep.h>
#include <nanomsg/tcp.h>
#include <poll.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"

/*
 * nanomsg has no jitter: each agent picks a random first pause, doubled up to the maximum. At 5 s
 * all agents are back within seconds of a restart; 5000 agents make 1000 attempts a second.
 */
enum { RECONNECT_MS_MIN = 500, RECONNECT_MS_SPREAD = 1000, RECONNECT_MS_MAX = 5000 };

/* Of an ack; a longer message makes nanomsg close the connection. */
enum { REPLY_MAX = 16 * 1024 };

/* Marks the bottom of the stack of request ids, for the raw REP side. */
#define ID_BOTTOM 0x80000000U

/* Ancillary data of a message: its SP header, the length and 4 bytes of id. */
union control {
	struct nn_cmsghdr header;
	char bytes[NN_CMSG_SPACE(sizeof(size_t) + 8 * sizeof(uint32_t))];
};

struct sender_socket {
	struct endpoint endpoint;
	int nn; /* the socket */
	int connection; /* the nanomsg endpoint; negative: none yet */
	int receive_fd, send_fd;
};

static int set(int nn, int level, int option, int value)
{
	return nn_setsockopt(nn, level, option, &value, sizeof(value));
}

static int get_fd(int nn, int option)
{
	int fd = -1;
	size_t len = sizeof(fd);

	return nn_getsockopt(nn, NN_SOL_SOCKET, option, &fd, &len) ? -1 : fd;
}

static int configure(const struct sender_socket *s)
{
	int pause = RECONNECT_MS_MIN + (int)randombytes_uniform(RECONNECT_MS_SPREAD);

	return set(s->nn, NN_SOL_SOCKET, NN_RECONNECT_IVL, pause) ||
			       set(s->nn, NN_SOL_SOCKET, NN_RECONNECT_IVL_MAX, RECONNECT_MS_MAX) ||
			       set(s->nn, NN_SOL_SOCKET, NN_RCVMAXSIZE, REPLY_MAX) ||
			       set(s->nn, NN_SOL_SOCKET, NN_IPV4ONLY,
				   endpoint_ipv4_only(&s->endpoint)) ||
			       set(s->nn, NN_TCP, NN_TCP_NODELAY, 1)
		       ? -1
		       : 0;
}

int sender_socket_open(struct sender_socket **out, const struct endpoint *endpoint,
		       struct error *error)
{
	struct sender_socket *s = mem_zalloc(1, sizeof(*s));
	int rc;

	s->endpoint = *endpoint;
	s->nn = nn_socket(AF_SP_RAW, NN_REQ);
	if (s->nn < 0 || configure(s))
		goto fail;
	s->receive_fd = get_fd(s->nn, NN_RCVFD);
	s->send_fd = get_fd(s->nn, NN_SNDFD);
	s->connection = -1;
	if (s->receive_fd < 0 || s->send_fd < 0)
		goto fail;
	*out = s;
	return 0;

fail:
	rc = -nn_errno();
	error_set(error, "%s: %s", endpoint->url, nn_strerror(-rc));
	sender_socket_close(s);
	return rc;
}

void sender_socket_close(struct sender_socket *s)
{
	if (!s)
		return;
	if (s->nn >= 0)
		nn_close(s->nn);
	free(s);
}

int sender_socket_fd(const struct sender_socket *s)
{
	return s->receive_fd;
}

bool sender_socket_ready(struct sender_socket *s)
{
	struct pollfd p = {.fd = s->send_fd, .events = POLLIN};

	if (s->connection < 0)
		s->connection = nn_connect(s->nn, s->endpoint.url);
	return poll(&p, 1, 0) == 1;
}

int sender_socket_send(struct sender_socket *s, uint32_t id, const void *data, size_t len)
{
	union control control = {0};
	struct nn_iovec body = {.iov_base = (void *)data, .iov_len = len};
	struct nn_msghdr message = {.msg_iov = &body,
				    .msg_iovlen = 1,
				    .msg_control = &control,
				    .msg_controllen = NN_CMSG_SPACE(sizeof(size_t) + sizeof(id))};
	unsigned char *to = NN_CMSG_DATA(&control.header);
	size_t id_len = sizeof(id);
	uint32_t wire = htonl(id | ID_BOTTOM);

	control.header.cmsg_len = message.msg_controllen;
	control.header.cmsg_level = PROTO_SP;
	control.header.cmsg_type = SP_HDR;
	memcpy(to, &id_len, sizeof(id_len));
	memcpy(to + sizeof(id_len), &wire, sizeof(wire));
	return nn_sendmsg(s->nn, &message, NN_DONTWAIT) < 0 ? -EAGAIN : 0;
}

int sender_socket_receive(struct sender_socket *s, uint32_t *id, struct buf *data)
{
	union control control = {0};
	void *received = NULL;
	struct nn_iovec body = {.iov_base = &received, .iov_len = NN_MSG};
	struct nn_msghdr message = {.msg_iov = &body,
				    .msg_iovlen = 1,
				    .msg_control = &control,
				    .msg_controllen = sizeof(control)};
	const unsigned char *from = NN_CMSG_DATA(&control.header);
	size_t id_len;
	uint32_t wire;
	int len = nn_recvmsg(s->nn, &message, NN_DONTWAIT);

	if (len < 0)
		return -EAGAIN;
	memcpy(&id_len, from, sizeof(id_len));
	memcpy(&wire, from + sizeof(id_len), sizeof(wire));
	*id = id_len == sizeof(wire) ? ntohl(wire) & ~ID_BOTTOM : 0;
	buf_clear(data);
	buf_add(data, received, (size_t)len);
	nn_freemsg(received);
	return 0;
}

uint64_t sender_socket_connections(const struct sender_socket *s)
{
	return nn_get_statistic(s->nn, NN_STAT_ESTABLISHED_CONNECTIONS);
}

void sender_socket_reconnect(struct sender_socket *s)
{
	int fresh = nn_connect(s->nn, s->endpoint.url);

	/* The old one keeps trying if there is no new one. */
	if (fresh < 0)
		return;
	if (s->connection >= 0)
		nn_shutdown(s->nn, s->connection);
	s->connection = fresh;
}
