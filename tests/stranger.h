/* SPDX-License-Identifier: Apache-2.0 */
/* Clients of a shipped program's ports that say byte for byte what they are told. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "shared/buf.h"

/* A connection from that address of the loopback ("127.0.0.9") or NULL; -1: none is to be had. */
int stranger_connect(int port, const char *from);
/* False when the peer has closed. */
bool stranger_say(int fd, const void *data, size_t len);
/* What comes until the end, or until nothing came for so long; true: it ended. */
bool stranger_hear(int fd, int silent_ms, struct buf *out);
/* Whether the peer has ended the connection by now. */
bool stranger_is_cut(int fd);
/*
 * Says all of it on a connection of its own and hears the answer to the end of the connection, or
 * of silence. How many answers there were, whose first line's status is in *status (0: none).
 */
int stranger_ask(int port, const void *data, size_t len, long *status, struct buf *out);
