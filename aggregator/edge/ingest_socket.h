/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The replying side of nanomsg REQ/REP: a listening socket for thousands of agents, and the bytes
 * of the wire format.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "shared/endpoint.h"
#include "shared/error.h"

/*
 * Opens a non-blocking listener. 0 with *fd, the caller's; -EADDRINUSE, -EADDRNOTAVAIL, -EACCES,
 * -EEXIST, ..: the reason has the remedy.
 */
int ingest_socket_listen(int *fd, const struct endpoint *endpoint, struct error *error);
/* Removes the file of an open ipc socket. */
void ingest_socket_remove(const struct endpoint *endpoint);

/* --- bytes ------------------------------------------------------------------------------------ */

enum {
	WIRE_HELLO_LEN = 8,
	WIRE_HEAD_MAX = 9, /* of a message: its length, on ipc behind a byte for its kind */
	WIRE_HOPS_MAX = 8, /* NN_MAXTTL */
	WIRE_STACK_MAX = WIRE_HOPS_MAX * 4,
	WIRE_MESSAGE_MAX = 1024 * 1024, /* the stack of ids included */
};

/* Sent first by this side, and by the asking one. */
extern const uint8_t wire_hello[WIRE_HELLO_LEN], wire_asker_hello[WIRE_HELLO_LEN];
/* 0; -EAGAIN: correct so far; -EPROTO: not a REQ socket. */
int wire_check_hello(const void *data, size_t len);

/* Length of the head of a message. */
size_t wire_head_len(enum endpoint_kind kind);
/* Writes the head of a message of len bytes. */
void wire_put_head(enum endpoint_kind kind, size_t len, uint8_t *head);
/*
 * The length of the message at data, without its head: 0 with *message_len written; -EAGAIN: the
 * head is not complete; -EPROTO: unknown kind; -EMSGSIZE: over WIRE_MESSAGE_MAX.
 */
int wire_get_head(enum endpoint_kind kind, const void *data, size_t len, size_t *message_len);

/*
 * Bytes of the stack of ids at the beginning of a request: each device on the way adds one at the
 * front; the requester's own, at the end, has the highest bit set. 0: no stack, or too long; such
 * a request cannot be answered.
 */
size_t wire_stack_len(const void *message, size_t len);
