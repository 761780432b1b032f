/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loaded before the C library's, this library is asked first: each function here counts its call
 * and passes it on, or fails it where the test said so. The libraries of the program (nanomsg,
 * libmicrohttpd, libuv, libcurl) ask it too; what the C library does within itself it does not see,
 * but for allocations.
 *
 * It allocates nothing, takes no lock and maps its file before main(), so that a program that
 * confines itself may go on using it. Without the file nothing fails.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <nanomsg/nn.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "tests/seam/control.h"

static struct seam_control *control;

__attribute__((constructor)) static void map_control(void)
{
	const char *path = getenv(SEAM_ENVIRONMENT);
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *at;

	if (fd < 0)
		return;
	at = mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (at != MAP_FAILED)
		control = at;
}

/* True when the call is to fail, with what. */
static bool fails(enum seam_call call, int *error)
{
	struct seam_counters *c = control ? &control->of[call] : NULL;

	if (!c)
		return false;
	atomic_fetch_add(&c->calls, 1);
	if (atomic_load(&c->times) <= 0)
		return false;
	if (atomic_load(&c->after) > 0 && atomic_fetch_sub(&c->after, 1) > 0)
		return false;
	if (atomic_fetch_sub(&c->times, 1) <= 0) {
		atomic_store(&c->times, 0);
		return false;
	}
	*error = atomic_load(&c->error);
	atomic_fetch_add(&c->met, 1);
	return true;
}

/* True when the call fails for good; its errno is set. */
static bool refused(enum seam_call call)
{
	int error;

	if (!fails(call, &error))
		return false;
	errno = error;
	return true;
}

/* As above; *len is 1 when only a byte is to pass. */
static bool refused_or_short(enum seam_call call, size_t *len)
{
	int error;

	if (!fails(call, &error))
		return false;
	if (error == SEAM_SHORT) {
		*len = *len ? 1 : 0;
		return false;
	}
	errno = error;
	return true;
}

/*
 * The next one of that name; casting through a union, as POSIX has it that a pointer may hold a
 * function.
 */
#define NEXT(name)                                                                                 \
	static __typeof__(&(name)) next_;                                                          \
	if (!next_)                                                                                \
	*(void **)&next_ = dlsym(RTLD_NEXT, #name)

/* A function that passes its arguments on, or fails with `failed`. */
#define SEAM(call, failed, type, name, parameters, ...)                                            \
	type name parameters                                                                       \
	{                                                                                          \
		NEXT(name);                                                                        \
		return refused(call) ? (failed) : next_(__VA_ARGS__);                              \
	}

/* --- sockets ---------------------------------------------------------------------------------- */

SEAM(SEAM_SOCKET, -1, int, socket, (int domain, int type, int protocol), domain, type, protocol)
SEAM(SEAM_BIND, -1, int, bind, (int fd, const struct sockaddr *to, socklen_t len), fd, to, len)
SEAM(SEAM_LISTEN, -1, int, listen, (int fd, int backlog), fd, backlog)
SEAM(SEAM_ACCEPT, -1, int, accept, (int fd, struct sockaddr *from, socklen_t *len), fd, from, len)
SEAM(SEAM_ACCEPT, -1, int, accept4, (int fd, struct sockaddr *from, socklen_t *len, int flags), fd,
     from, len, flags)
SEAM(SEAM_CONNECT, -1, int, connect, (int fd, const struct sockaddr *to, socklen_t len), fd, to,
     len)
SEAM(SEAM_OPTION, -1, int, setsockopt,
     (int fd, int level, int option, const void *value, socklen_t len), fd, level, option, value,
     len)
SEAM(SEAM_DESCRIPTOR, -1, int, eventfd, (unsigned int value, int flags), value, flags)
SEAM(SEAM_DESCRIPTOR, -1, int, pipe2, (int fds[2], int flags), fds, flags)
SEAM(SEAM_DESCRIPTOR, -1, int, socketpair, (int domain, int type, int protocol, int fds[2]), domain,
     type, protocol, fds)
SEAM(SEAM_DESCRIPTOR, -1, int, epoll_create, (int size), size)
SEAM(SEAM_DESCRIPTOR, -1, int, epoll_create1, (int flags), flags)
SEAM(SEAM_DESCRIPTOR, -1, int, timerfd_create, (clockid_t clock, int flags), clock, flags)
SEAM(SEAM_DESCRIPTOR, -1, int, signalfd, (int fd, const sigset_t *mask, int flags), fd, mask, flags)
SEAM(SEAM_POLL, -1, int, poll, (struct pollfd * fds, nfds_t count, int ms), fds, count, ms)
SEAM(SEAM_POLL, -1, int, epoll_wait, (int fd, struct epoll_event *events, int most, int ms), fd,
     events, most, ms)
SEAM(SEAM_POLL, -1, int, epoll_pwait,
     (int fd, struct epoll_event *events, int most, int ms, const sigset_t *mask), fd, events, most,
     ms, mask)
SEAM(SEAM_THREAD, EAGAIN, int, pthread_create,
     (pthread_t * thread, const pthread_attr_t *attributes, void *(*run)(void *), void *ctx),
     thread, attributes, run, ctx)

/* --- nanomsg ---------------------------------------------------------------------------------- */

SEAM(SEAM_NN_OPEN, -1, int, nn_socket, (int domain, int protocol), domain, protocol)
SEAM(SEAM_NN_OPEN, -1, int, nn_bind, (int nn, const char *url), nn, url)
SEAM(SEAM_NN_OPEN, -1, int, nn_connect, (int nn, const char *url), nn, url)
SEAM(SEAM_NN_SEND, -1, int, nn_sendmsg, (int nn, const struct nn_msghdr *message, int flags), nn,
     message, flags)
SEAM(SEAM_NN_RECEIVE, -1, int, nn_recvmsg, (int nn, struct nn_msghdr *message, int flags), nn,
     message, flags)

/* --- what may pass in part -------------------------------------------------------------------- */

ssize_t send(int fd, const void *data, size_t len, int flags)
{
	NEXT(send);
	return refused_or_short(SEAM_SEND, &len) ? -1 : next_(fd, data, len, flags);
}

ssize_t sendto(int fd, const void *data, size_t len, int flags, const struct sockaddr *to,
	       socklen_t to_len)
{
	NEXT(sendto);
	return refused_or_short(SEAM_SEND, &len) ? -1 : next_(fd, data, len, flags, to, to_len);
}

ssize_t recv(int fd, void *data, size_t len, int flags)
{
	NEXT(recv);
	return refused_or_short(SEAM_RECEIVE, &len) ? -1 : next_(fd, data, len, flags);
}

ssize_t recvfrom(int fd, void *data, size_t len, int flags, struct sockaddr *from,
		 socklen_t *from_len)
{
	NEXT(recvfrom);
	return refused_or_short(SEAM_RECEIVE, &len) ? -1
						    : next_(fd, data, len, flags, from, from_len);
}

ssize_t sendfile64(int out, int in, off64_t *offset, size_t count)
{
	NEXT(sendfile64);
	return refused_or_short(SEAM_SEND, &count) ? -1 : next_(out, in, offset, count);
}

/* Its first byte, of all that is in its parts. */
static struct msghdr first_byte(const struct msghdr *message, struct iovec *part)
{
	struct msghdr less = *message;
	size_t i = 0;

	while (i + 1 < message->msg_iovlen && !message->msg_iov[i].iov_len)
		i++;
	*part = message->msg_iov[i];
	part->iov_len = part->iov_len ? 1 : 0;
	less.msg_iov = part;
	less.msg_iovlen = 1;
	return less;
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	struct iovec part;
	struct msghdr less;
	size_t len = 2;

	NEXT(sendmsg);
	if (refused_or_short(SEAM_SEND, &len))
		return -1;
	if (len == 2 || !message->msg_iovlen)
		return next_(fd, message, flags);
	less = first_byte(message, &part);
	return next_(fd, &less, flags);
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	struct iovec part;
	struct msghdr less;
	size_t len = 2;
	ssize_t got;

	NEXT(recvmsg);
	if (refused_or_short(SEAM_RECEIVE, &len))
		return -1;
	if (len == 2 || !message->msg_iovlen)
		return next_(fd, message, flags);
	less = first_byte(message, &part);
	got = next_(fd, &less, flags);
	less.msg_iov = message->msg_iov;
	less.msg_iovlen = message->msg_iovlen;
	*message = less;
	return got;
}

/* --- memory ----------------------------------------------------------------------------------- */

#ifndef SEAM_SANITIZED

/* Of whichever heap the program has; looking up what is there allocates nothing. */
SEAM(SEAM_ALLOCATE, NULL, void *, malloc, (size_t size), size)
SEAM(SEAM_ALLOCATE, NULL, void *, calloc, (size_t count, size_t size), count, size)
SEAM(SEAM_ALLOCATE, NULL, void *, realloc, (void *old, size_t size), old, size)
SEAM(SEAM_ALLOCATE, MAP_FAILED, void *, mmap,
     (void *at, size_t len, int protection, int flags, int fd, off_t offset), at, len, protection,
     flags, fd, offset)
SEAM(SEAM_ALLOCATE, MAP_FAILED, void *, mmap64,
     (void *at, size_t len, int protection, int flags, int fd, off64_t offset), at, len, protection,
     flags, fd, offset)

#endif
