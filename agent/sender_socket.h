/* SPDX-License-Identifier: Apache-2.0 */
/* The nanomsg side of a sender: one request at a time to one address, never blocking. */
#ifndef EVENKEEL_AGENT_SENDER_SOCKET_H
#define EVENKEEL_AGENT_SENDER_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/buf.h"
#include "shared/endpoint.h"
#include "shared/reason.h"

struct sender_socket;

/* Starts threads; -EINVAL, or what nanomsg says. */
int sender_socket_open(struct sender_socket **s, const struct endpoint *endpoint,
		       struct reason *reason);
void sender_socket_close(struct sender_socket *s);
/* Becomes readable when a reply came (NN_RCVFD). */
int sender_socket_fd(const struct sender_socket *s);
/*
 * True when there is a connection that takes a message. The first call begins to connect: the other
 * side gives who connects some seconds for the first frame.
 */
bool sender_socket_ready(struct sender_socket *s);
/* Sends request `id` (31 bits); 0, or -EAGAIN without a connection that takes it. */
int sender_socket_send(struct sender_socket *s, uint32_t id, const void *data, size_t len);
/* The next reply into *data (replaced) with the id of its request; -EAGAIN when there is none. */
int sender_socket_receive(struct sender_socket *s, uint32_t *id, struct buf *data);
/*
 * How many connections there were: one more than at the time of sending means that the request may
 * be lost.
 */
uint64_t sender_socket_connections(const struct sender_socket *s);
/* Gives the connection (or the attempt) up and begins a new one at once. */
void sender_socket_reconnect(struct sender_socket *s);

#endif
