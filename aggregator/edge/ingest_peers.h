/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connections of agents to a listening socket: receives their messages one at a time, and sends
 * answers.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/edge/ingest_socket.h"
#include "aggregator/state/counters.h"
#include "shared/endpoint.h"

struct ingest_peers;

/* The way of an answer back. */
struct ingest_route {
	uint64_t peer;
	size_t len;
	uint8_t stack[WIRE_STACK_MAX];
};

/* A connection (ingest_route.peer) is closed; its last opened frame was of that node. */
typedef void ingest_closed(void *ctx, const char *node, uint64_t connection);

struct ingest_message {
	const void *data; /* borrowed until the next message */
	size_t len;
	struct ingest_route route;
};

/*
 * Takes over the descriptor, which listens and does not block. 0, or a negative errno; then the
 * descriptor stays the caller's. counters and ctx are borrowed.
 */
int ingest_peers_open(struct ingest_peers **out, int listener, enum endpoint_kind kind,
		      struct ingest_counters *counters, ingest_closed *closed, void *ctx);
/* NULL is allowed. Closes every connection. */
void ingest_peers_close(struct ingest_peers *p);
/* Readable when ingest_peers_receive() has something to do. */
int ingest_peers_fd(const struct ingest_peers *p);
/*
 * 0; -EAGAIN: no message now; -EBUSY: call again, no message among the events so far. now_ns is
 * monotonic.
 */
int ingest_peers_receive(struct ingest_peers *p, struct ingest_message *message, int64_t now_ns);
/*
 * The verdict on a message: an opened frame of that node, applied or not, or (NULL) no such frame.
 * May close its connection.
 */
void ingest_peers_judge(struct ingest_peers *p, const struct ingest_route *route, const char *node,
			bool news);
/* A closed or full connection loses the answer; never blocks. */
void ingest_peers_reply(struct ingest_peers *p, const struct ingest_route *route, const void *data,
			size_t len);
/* Gives a connection to the caller. Its descriptor; negative: the connection is closed. */
int ingest_peers_release(struct ingest_peers *p, const struct ingest_route *route);
