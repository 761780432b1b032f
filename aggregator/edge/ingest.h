/* SPDX-License-Identifier: Apache-2.0 */
/* What agents send to: opens frames, joins parts, hands intervals over, seals acks. */
#ifndef EVENKEEL_AGGREGATOR_EDGE_INGEST_H
#define EVENKEEL_AGGREGATOR_EDGE_INGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/edge/ingest_peers.h"
#include "aggregator/state/counters.h"
#include "shared/body.h"
#include "shared/buf.h"
#include "shared/frame.h"
#include "shared/keyring.h"
#include "shared/reason.h"

/*
 * Called on the loop thread. Both of the first fill status, applied, durable, orders and reason of
 * *ack (zeroed before, but for server_time_ns = now_ns).
 */
struct ingest_handler {
	/*
	 * For each frame that was opened, before anything of it is kept. False: it is answered as it
	 * is, and counted as *result.
	 */
	bool (*admit)(void *ctx, const struct frame_header *header, uint64_t connection,
		      int64_t now_ns, struct ack *ack, enum frame_result *result);
	/*
	 * For each complete interval, which is ingest's again afterwards. Returns how its last frame
	 * is counted.
	 */
	enum frame_result (*interval)(void *ctx, const struct frame_header *header,
				      uint64_t connection, struct interval *interval,
				      int64_t now_ns, struct ack *ack);
	/* A connection of which frames were opened is closed; the last one was of this node. */
	ingest_closed *closed;
};

struct ingest;

/*
 * Binds url (tcp://host:port or ipc:///path, made 0600). -EINVAL without keys on tcp, -EADDRINUSE,
 * ..: the reason says what to do. keys, counters, handler and ctx are borrowed.
 */
int ingest_open(struct ingest **in, const char *url, const struct keyring *keys,
		struct counters *counters, const struct ingest_handler *handler, void *ctx,
		struct reason *reason);
void ingest_close(struct ingest *in);
/* Readable when there is something to take, or a connection to look after. */
int ingest_fd(const struct ingest *in);
/*
 * Takes at most `most` frames without blocking; returns how many there were. now_ns is Unix time,
 * mono_ns monotonic.
 */
int ingest_step(struct ingest *in, int most, int64_t now_ns, int64_t mono_ns);

/* --- parts of intervals that travel in several frames, within bounds; for tests --------------- */

struct ingest_parts;

struct ingest_parts_limits {
	size_t nodes_max; /* with an incomplete interval */
	size_t bytes_max; /* of all stored parts */
};

struct ingest_parts *ingest_parts_new(const struct ingest_parts_limits *limits);
void ingest_parts_free(struct ingest_parts *p);
/*
 * Stores the body (taken over and left empty) of the part the header names. Returns how many parts
 * there are once the interval is complete, moved to parts[0..] in order and forgotten here; 0 while
 * some are missing. Order and repetition do not matter. A node has one incomplete interval: another
 * run, sequence or number of parts, or another content of a part that is there, begins it anew.
 * Over a limit the interval that was begun first is forgotten.
 */
size_t ingest_parts_add(struct ingest_parts *p, const struct frame_header *header, struct buf *body,
			struct buf parts[BODY_PARTS_MAX]);

#endif
