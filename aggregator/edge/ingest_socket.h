/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The side of nanomsg's REQ/REP that answers, without nanomsg: a listening socket as thousands of
 * agents need it, and the bytes that are spoken on its streams.
 */
#ifndef EVENKEEL_AGGREGATOR_EDGE_INGEST_SOCKET_H
#define EVENKEEL_AGGREGATOR_EDGE_INGEST_SOCKET_H

#include <stddef.h>
#include <stdint.h>

#include "shared/endpoint.h"
#include "shared/reason.h"

/*
 * Opens one that does not block. 0 with *fd, the caller's; -EADDRINUSE, -EADDRNOTAVAIL, -EACCES,
 * -EEXIST, ..: the reason says what to do.
 */
int ingest_socket_listen(int *fd, const struct endpoint *endpoint, struct reason *reason);
/* Removes the file of an ipc socket, while it is open. */
void ingest_socket_remove(const struct endpoint *endpoint);

/* --- bytes ------------------------------------------------------------------------------------ */

enum {
	WIRE_HELLO_LEN = 8,
	WIRE_HEAD_MAX = 9, /* of a message: its length, on ipc behind a byte for its kind */
	WIRE_HOPS_MAX = 8, /* NN_MAXTTL */
	WIRE_STACK_MAX = WIRE_HOPS_MAX * 4,
	WIRE_MESSAGE_MAX = 1024 * 1024, /* the stack of ids included */
};

/* What either side sends first. */
extern const uint8_t wire_hello[WIRE_HELLO_LEN];
/* 0; -EAGAIN: right as far as it goes; -EPROTO: not a REQ socket. */
int wire_check_hello(const void *data, size_t len);

/* How long the head of a message is. */
size_t wire_head_len(enum endpoint_kind kind);
/* Writes the head of a message of len bytes. */
void wire_put_head(enum endpoint_kind kind, size_t len, uint8_t *head);
/*
 * The length of the message that begins at data, without its head: 0 with *message_len written;
 * -EAGAIN: the head is not all there; -EPROTO: of a kind there is not; -EMSGSIZE: over
 * WIRE_MESSAGE_MAX.
 */
int wire_get_head(enum endpoint_kind kind, const void *data, size_t len, size_t *message_len);

/*
 * Bytes of the stack of ids a request begins with: every device on its way put one on it, the
 * asker's own, which has the highest bit, lies at the bottom. 0: there is none, or it is too high;
 * such a request cannot be answered.
 */
size_t wire_stack_len(const void *message, size_t len);

#endif
