/* SPDX-License-Identifier: Apache-2.0 */
/* The nanomsg side of a sender: requests to one address, never blocking. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/buf.h"
#include "shared/endpoint.h"
#include "shared/error.h"

struct sender_socket;

/* Starts threads. 0 or -errno of nanomsg, with the reason. */
int sender_socket_open(struct sender_socket **s, const struct endpoint *endpoint,
		       struct error *error);
void sender_socket_close(struct sender_socket *s);
/* Readable when there is a reply (NN_RCVFD). */
int sender_socket_fd(const struct sender_socket *s);
/*
 * Whether there is a connection that takes a message. The first call connects: the aggregator waits
 * only some seconds for the first frame.
 */
bool sender_socket_ready(struct sender_socket *s);
/* Sends request `id` (31 bits). 0, or -EAGAIN without a ready connection. */
int sender_socket_send(struct sender_socket *s, uint32_t id, const void *data, size_t len);
/* Replaces *data by the next reply, with the id of its request; -EAGAIN: none. */
int sender_socket_receive(struct sender_socket *s, uint32_t *id, struct buf *data);
/* The number of connections so far; one more than at the sending: the request may be lost. */
uint64_t sender_socket_connections(const struct sender_socket *s);
/* Replaces the connection, or the attempt, at once. */
void sender_socket_reconnect(struct sender_socket *s);
