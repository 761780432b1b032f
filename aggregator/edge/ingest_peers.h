/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connections of agents to a listening socket: takes what they ask, one message at a time, and
 * answers it.
 */
#ifndef EVENKEEL_AGGREGATOR_EDGE_INGEST_PEERS_H
#define EVENKEEL_AGGREGATOR_EDGE_INGEST_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/edge/ingest_socket.h"
#include "aggregator/state/counters.h"
#include "shared/endpoint.h"

struct ingest_peers;

/* How an answer finds its way back. */
struct ingest_route {
	uint64_t peer;
	size_t len;
	uint8_t stack[WIRE_STACK_MAX];
};

/* A connection (ingest_route.peer) is closed, of which the last frame that was opened names a node. */
typedef void ingest_closed(void *ctx, const char *node, uint64_t connection);

struct ingest_message {
	const void *data; /* borrowed: until the next one is received */
	size_t len;
	struct ingest_route route;
};

/*
 * Takes over the descriptor, which listens and does not block. 0, or a negative errno; then it is
 * the caller's. counters and ctx are borrowed.
 */
int ingest_peers_open(struct ingest_peers **out, int listener, enum endpoint_kind kind,
		      struct ingest_counters *counters, ingest_closed *closed, void *ctx);
/* NULL is allowed. Peers that wait for an answer see the connection end. */
void ingest_peers_close(struct ingest_peers *p);
/* Readable when there is something to do. */
int ingest_peers_fd(const struct ingest_peers *p);
/*
 * 0; -EAGAIN: nobody asks just now; -EBUSY: there is more to look at, among which was no message.
 * now_ns is monotonic.
 */
int ingest_peers_receive(struct ingest_peers *p, struct ingest_message *message, int64_t now_ns);
/*
 * What the message was: a frame of that node, which a key of ours opens and which was news or was
 * not, or (NULL) none. It may be the end of its peer.
 */
void ingest_peers_judge(struct ingest_peers *p, const struct ingest_route *route, const char *node,
			bool news);
/* A peer that is gone or does not read loses its answer; never blocks. */
void ingest_peers_reply(struct ingest_peers *p, const struct ingest_route *route, const void *data,
			size_t len);

#endif
