/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why not nanomsg, as in the agent: it has a thread of its own, and a frame and its ack cost four
 * switches between that and ours, with a lock and an eventfd for each. For one agent that is
 * nothing; for thousands on the machine that is measured it was half of what the simulator took,
 * and what it takes spoils every latency. What goes over the wire is the same, byte for byte
 * (nanomsg's rfc/sp-tcp-mapping-01 and sp-request-reply-01):
 *
 *	connection   00 'S' 'P' 00  protocol, 2 bytes (48 REQ, 49 REP)  00 00      from each side, at once
 *	message      length of what follows, 8 bytes   id with its highest bit set, 4 bytes   frame
 *
 * integers in network order. So it is a second implementation of it, too. Pauses between attempts
 * to connect are the agent's.
 *
 *	CLOSED --pause is over--> CONNECTING --connected--> GREETING --greeted--> OPEN
 *	   ^________________________|___any error, end or nonsense_|________________|
 *
 * The fleet is linked with this before the agent's library, of which agent/sender_socket.o is then
 * not taken.
 */
#include "tests/fleet/plain_socket.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/sender_socket.h"
#include "shared/clock.h"
#include "shared/mem.h"

/* As agent/sender_socket.c has them. */
enum { RECONNECT_MS_MIN = 500, RECONNECT_MS_SPREAD = 1000, RECONNECT_MS_MAX = 5000 };
enum { REPLY_MAX = 16 * 1024, READ_BYTES = 2048, LENGTH_LEN = 8, ID_LEN = 4 };

#define ID_BOTTOM 0x80000000U
#define NODES_NET 0x7f010000U /* 127.1.0.0 */

static const char greeting[] = {0, 'S', 'P', 0, 0, 48, 0, 0};
static const char expected[] = {0, 'S', 'P', 0, 0, 49, 0, 0};

enum state { CLOSED, CONNECTING, GREETING, OPEN };

struct sender_socket {
	struct sockaddr_storage address; /* fixed after open, as are those down to seat */
	socklen_t address_len;
	int64_t first_pause_ns;
	int epoll;
	uint32_t seat, node;

	enum state state;
	int fd; /* -1 while closed */
	int64_t pause_ns, retry_ns; /* next pause; when the one under way is over */
	uint64_t connections;
	struct buf in; /* received, from the beginning of a message on */
	struct buf out; /* of a message that went out in part */
	bool emptied; /* the last read got all there was */
};

static int current_epoll = -1;
static uint32_t current_seat, current_node;

void plain_socket_report_to(int epoll, uint32_t seat, uint32_t node)
{
	current_epoll = epoll;
	current_seat = seat;
	current_node = node;
}

/* --- connections ------------------------------------------------------------------------------ */

static void watch(const struct sender_socket *s, int operation, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.u32 = s->seat};

	epoll_ctl(s->epoll, operation, s->fd, &event);
}

static void drop(struct sender_socket *s, int64_t pause_ns)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	s->state = CLOSED;
	s->emptied = false;
	buf_fini(&s->in);
	buf_fini(&s->out);
	s->retry_ns = clock_mono_ns() + pause_ns;
}

/* After a pause that doubles from attempt to attempt. */
static void lose(struct sender_socket *s)
{
	drop(s, s->pause_ns);
	s->pause_ns *= 2;
	if (s->pause_ns > RECONNECT_MS_MAX * NS_PER_MS)
		s->pause_ns = RECONNECT_MS_MAX * NS_PER_MS;
}

/* False if the node's own address on the loopback cannot be had. */
static bool bind_node(const struct sender_socket *s)
{
	const struct sockaddr_in from = {.sin_family = AF_INET,
					 .sin_addr.s_addr = htonl(NODES_NET + s->node)};
	const struct sockaddr_in *to = (const struct sockaddr_in *)&s->address;
	int on = 1;

	if (to->sin_family != AF_INET || to->sin_addr.s_addr != htonl(INADDR_LOOPBACK))
		return true;
	setsockopt(s->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
	return !bind(s->fd, (const struct sockaddr *)&from, sizeof(from));
}

static void begin_connecting(struct sender_socket *s)
{
	int on = 1;

	s->fd = socket(s->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (s->fd < 0) {
		lose(s);
		return;
	}
	if (s->address.ss_family != AF_UNIX)
		setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (!bind_node(s) || (connect(s->fd, (struct sockaddr *)&s->address, s->address_len) &&
			      errno != EINPROGRESS)) {
		lose(s);
		return;
	}
	s->state = CONNECTING;
	watch(s, EPOLL_CTL_ADD, EPOLLIN | EPOLLOUT);
}

static void greet(struct sender_socket *s)
{
	if (send(s->fd, greeting, sizeof(greeting), MSG_NOSIGNAL) == (ssize_t)sizeof(greeting)) {
		s->state = GREETING;
		watch(s, EPOLL_CTL_MOD, EPOLLIN);
	} else if (errno != EAGAIN) {
		lose(s);
	}
}

static void be_greeted(struct sender_socket *s)
{
	if (s->in.len < sizeof(expected))
		return;
	if (memcmp(s->in.data, expected, sizeof(expected)) != 0) {
		lose(s);
		return;
	}
	s->in.len -= sizeof(expected);
	memmove(s->in.data, s->in.data + sizeof(expected), s->in.len);
	s->state = OPEN;
	s->pause_ns = s->first_pause_ns;
	s->connections++;
}

static void flush(struct sender_socket *s)
{
	ssize_t sent = send(s->fd, s->out.data, s->out.len, MSG_NOSIGNAL);

	if (sent < 0 && errno != EAGAIN) {
		lose(s);
	} else if (sent > 0) {
		s->out.len -= (size_t)sent;
		memmove(s->out.data, s->out.data + sent, s->out.len);
		if (!s->out.len)
			watch(s, EPOLL_CTL_MOD, EPOLLIN);
	}
}

static void read_some(struct sender_socket *s)
{
	ssize_t got = recv(s->fd, buf_reserve(&s->in, READ_BYTES), READ_BYTES, 0);

	if (got > 0)
		s->in.len += (size_t)got;
	else if (got == 0 || errno != EAGAIN)
		lose(s);
	s->emptied = got < READ_BYTES;
}

/* Takes the connection as far as it goes now. */
static void advance(struct sender_socket *s)
{
	if (s->state == CLOSED && clock_mono_ns() >= s->retry_ns)
		begin_connecting(s);
	if (s->state == CONNECTING)
		greet(s);
	if (s->state >= GREETING && s->out.len)
		flush(s);
	if (s->state >= GREETING)
		read_some(s);
	if (s->state == GREETING)
		be_greeted(s);
}

/* --- what the sender calls -------------------------------------------------------------------- */

static int set_address(struct sender_socket *s, const struct endpoint *e)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
				 .ai_socktype = SOCK_STREAM},
			*found;
	struct sockaddr_un *un = (struct sockaddr_un *)&s->address;
	char port[8];

	if (e->kind == ENDPOINT_IPC) {
		un->sun_family = AF_UNIX;
		memcpy(un->sun_path, e->path, strlen(e->path) + 1);
		s->address_len = sizeof(*un);
		return 0;
	}
	snprintf(port, sizeof(port), "%u", e->port);
	if (getaddrinfo(e->host, port, &hints, &found))
		return -EINVAL;
	memcpy(&s->address, found->ai_addr, found->ai_addrlen);
	s->address_len = found->ai_addrlen;
	freeaddrinfo(found);
	return 0;
}

int sender_socket_open(struct sender_socket **out, const struct endpoint *endpoint,
		       struct error *error)
{
	struct sender_socket *s = mem_zalloc(1, sizeof(*s));

	if (set_address(s, endpoint)) {
		error_set(error, "%s: not an address", endpoint->url);
		free(s);
		return -EINVAL;
	}
	s->fd = -1;
	s->epoll = current_epoll;
	s->seat = current_seat;
	s->node = current_node;
	s->first_pause_ns =
		(RECONNECT_MS_MIN + (int64_t)randombytes_uniform(RECONNECT_MS_SPREAD)) * NS_PER_MS;
	s->pause_ns = s->first_pause_ns;
	begin_connecting(s);
	*out = s;
	return 0;
}

void sender_socket_close(struct sender_socket *s)
{
	if (!s)
		return;
	drop(s, 0);
	free(s);
}

int sender_socket_fd(const struct sender_socket *s)
{
	return s->fd;
}

bool sender_socket_ready(struct sender_socket *s)
{
	return s->state == OPEN && !s->out.len;
}

int sender_socket_send(struct sender_socket *s, uint32_t id, const void *data, size_t len)
{
	uint64_t length = htobe64(ID_LEN + len);
	uint32_t wire = htonl(id | ID_BOTTOM);
	char head[LENGTH_LEN + ID_LEN];
	struct iovec pieces[] = {{head, sizeof(head)}, {(void *)data, len}};
	struct msghdr message = {.msg_iov = pieces, .msg_iovlen = 2};
	ssize_t sent;

	if (!sender_socket_ready(s))
		return -EAGAIN;
	memcpy(head, &length, sizeof(length));
	memcpy(head + LENGTH_LEN, &wire, sizeof(wire));
	sent = sendmsg(s->fd, &message, MSG_NOSIGNAL);
	if (sent < (ssize_t)sizeof(head)) {
		/* A full buffer in which not even this has room: another connection is as good. */
		lose(s);
		return -EAGAIN;
	}
	sent -= (ssize_t)sizeof(head);
	if ((size_t)sent < len) {
		buf_add(&s->out, (const char *)data + sent, len - (size_t)sent);
		watch(s, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
	}
	return 0;
}

/* Takes the message at the front of what came; false when it is not complete. */
static bool take_message(struct sender_socket *s, uint32_t *id, struct buf *data)
{
	uint64_t length;
	uint32_t wire;

	if (s->state != OPEN || s->in.len < LENGTH_LEN)
		return false;
	memcpy(&length, s->in.data, sizeof(length));
	length = be64toh(length);
	if (length < ID_LEN || length > REPLY_MAX) {
		lose(s);
		return false;
	}
	if (s->in.len < LENGTH_LEN + length)
		return false;
	memcpy(&wire, s->in.data + LENGTH_LEN, sizeof(wire));
	*id = ntohl(wire) & ~ID_BOTTOM;
	buf_clear(data);
	buf_add(data, s->in.data + LENGTH_LEN + ID_LEN, length - ID_LEN);
	s->in.len -= LENGTH_LEN + length;
	memmove(s->in.data, s->in.data + LENGTH_LEN + length, s->in.len);
	return true;
}

int sender_socket_receive(struct sender_socket *s, uint32_t *id, struct buf *data)
{
	if (take_message(s, id, data))
		return 0;
	/* What comes after a read that got less than it could is an event of its own. */
	if (!s->emptied)
		advance(s);
	if (take_message(s, id, data))
		return 0;
	s->emptied = false;
	return -EAGAIN;
}

uint64_t sender_socket_connections(const struct sender_socket *s)
{
	return s->connections;
}

void sender_socket_reconnect(struct sender_socket *s)
{
	drop(s, 0);
	begin_connecting(s);
}
