/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets and memory of a real program, which fail when they are told to: the seam for tests of
 * whole processes. The program is the one that is shipped; a library is loaded before the C
 * library's (tests/seam/preload.c).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum seam_call {
	SEAM_SOCKET,
	SEAM_BIND,
	SEAM_LISTEN,
	SEAM_ACCEPT,
	SEAM_CONNECT,
	SEAM_OPTION, /* setsockopt */
	SEAM_SEND, /* send, sendto, sendmsg, sendfile */
	SEAM_RECEIVE, /* recv, recvfrom, recvmsg */
	SEAM_DESCRIPTOR, /* eventfd, pipe2, socketpair, epoll_create, timerfd_create, signalfd */
	SEAM_POLL, /* poll, epoll_wait */
	SEAM_THREAD,
	SEAM_NN_OPEN, /* nn_socket, nn_bind, nn_connect */
	SEAM_NN_SEND,
	SEAM_NN_RECEIVE,
	SEAM_ALLOCATE, /* malloc, calloc, realloc, strdup ..; mmap */
	SEAM_CALLS,
};

/* Sanitizers know allocations by themselves: with them SEAM_ALLOCATE is never met. */
#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define SEAM_WITHOUT_MEMORY
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define SEAM_WITHOUT_MEMORY
#endif

enum { SEAM_SHORT = 0 }; /* for an errno: a byte is taken or given */

#define SEAM_FOR_EVER INT64_MAX

struct seam; /* one program's */

const char *seam_call_name(enum seam_call call);
/* Its file is made in `folder`, which is the caller's. Nothing fails. */
struct seam *seam_open(const char *folder, const char *name);
void seam_close(struct seam *s);
/* Programs that are started from now on have this seam; NULL: none. Their counts begin anew. */
void seam_enter(struct seam *s);
/*
 * Calls fail from now on, with that errno: after so many that succeed (0: at once), so many times;
 * then none does. What was set for the same call before is forgotten.
 */
void seam_set(struct seam *s, enum seam_call call, int error, int64_t after, int64_t times);
void seam_heal(struct seam *s); /* all calls */
int64_t seam_met(const struct seam *s, enum seam_call call); /* how many failed since it was set */
int64_t seam_calls(const struct seam *s, enum seam_call call); /* how many were made */
