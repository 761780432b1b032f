/* SPDX-License-Identifier: Apache-2.0 */
/* The nanomsg side of ingest: a raw REP socket with what nanomsg leaves out of listening. */
#ifndef EVENKEEL_AGGREGATOR_EDGE_INGEST_SOCKET_H
#define EVENKEEL_AGGREGATOR_EDGE_INGEST_SOCKET_H

#include <stddef.h>

#include "shared/endpoint.h"
#include "shared/reason.h"

struct ingest_socket;

/* How an answer finds its way back; opaque. */
struct ingest_route {
	_Alignas(size_t) char bytes[64];
	size_t len;
};

struct ingest_message {
	void *data; /* owned by nanomsg; NULL after ingest_message_free() */
	size_t len;
	struct ingest_route route;
};

/* -EADDRINUSE, -EADDRNOTAVAIL, -EACCES, -EINVAL, ..: the reason says what to do. */
int ingest_socket_open(struct ingest_socket **s, const struct endpoint *endpoint,
		       struct reason *reason);
void ingest_socket_close(struct ingest_socket *s);
/* Readable when a message waits (NN_RCVFD). */
int ingest_socket_fd(const struct ingest_socket *s);
/* 0, or -EAGAIN. */
int ingest_socket_receive(struct ingest_socket *s, struct ingest_message *message);
void ingest_message_free(struct ingest_message *message);
/* A peer that is gone or does not read loses its answer; never blocks. */
void ingest_socket_reply(struct ingest_socket *s, const struct ingest_route *route,
			 const void *data, size_t len);

#endif
