/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The port of the agents: opens frames, joins their parts, hands intervals to a handler, seals
 * acks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/edge/ingest_copy.h"
#include "aggregator/edge/ingest_exchange.h"
#include "aggregator/edge/ingest_peers.h"
#include "aggregator/state/counters.h"
#include "aggregator/state/node_keys.h"
#include "shared/body.h"
#include "shared/buf.h"
#include "shared/frame.h"
#include "shared/keyring.h"
#include "shared/error.h"

/* A complete interval; all is borrowed. */
struct ingest_interval {
	const struct frame_header *header; /* of its last frame */
	uint64_t connection; /* of the same */
	const struct buf *parts; /* the bodies of its frames */
	size_t part_count;
	struct interval *decoded;
	int64_t now_ns;
};

/*
 * Called on the loop thread. The first two fill status, applied, durable, orders and reason of
 * *ack (zeroed before, except for server_time_ns = now_ns).
 */
struct ingest_handler {
	/*
	 * For each opened frame, before anything of it is kept. False: *ack is the answer, and
	 * *result the count.
	 */
	bool (*admit)(void *ctx, const struct frame_header *header, uint64_t connection,
		      int64_t now_ns, struct ack *ack, enum frame_result *result);
	/* Returns how the last frame of the interval is counted. */
	enum frame_result (*interval)(void *ctx, const struct ingest_interval *i, struct ack *ack);
	/* A connection with opened frames is closed; the last of them was of this node. */
	ingest_closed *closed;
};

struct ingest;

/* Keys of nodes (shared/enrolment.h). */
struct ingest_enrolment {
	const struct node_keys *keys;
	/*
	 * For each enrolment: appends the answer to *answer; *refused as of ingest_send(). Without
	 * one the answer follows by ingest_send(), or never. The frame_result; -errno as
	 * frame_open(): it does not open.
	 */
	int (*take)(void *ctx, const void *data, size_t len, const struct ingest_route *route,
		    int64_t now_ns, struct buf *answer, bool *refused);
	/* A frame of `node` was refused, as its key is of `owner`. */
	void (*foreign)(void *ctx, const char *node, const char *owner, int64_t now_ns);
};

/*
 * Binds url (tcp://host:port or ipc:///path, made 0600). -EINVAL without keys on tcp, -EADDRINUSE,
 * ..: the reason has the remedy. keys, enrolment, counters, handler and ctx are borrowed.
 * enrolment NULL: nodes have no keys of their own.
 */
int ingest_open(struct ingest **in, const char *url, const struct keyring *keys,
		const struct ingest_enrolment *enrolment, struct counters *counters,
		const struct ingest_handler *handler, void *ctx, struct error *error);
void ingest_close(struct ingest *in);
/*
 * Sends the answer to an enrolment, if its connection is still open. A refusal counts as a frame that
 * does not open.
 */
void ingest_send(struct ingest *in, const struct ingest_route *route, const struct buf *answer,
		 bool refused);
/*
 * Connections of another aggregator go to the exchange, or for a copy of the database to the copier;
 * both borrowed. Before the first step.
 */
void ingest_set_exchange(struct ingest *in, struct exchange *exchange, struct copier *copier);
/* Readable when a frame or a connection needs ingest_step(). */
int ingest_fd(const struct ingest *in);
/*
 * Takes at most `most` frames without blocking; returns their number. now_ns is Unix time, mono_ns
 * monotonic.
 */
int ingest_step(struct ingest *in, int most, int64_t now_ns, int64_t mono_ns);

/* --- parts of intervals, within bounds; exported for tests ------------------------------------ */

struct ingest_parts;

struct ingest_parts_limits {
	size_t nodes_max; /* with an incomplete interval */
	size_t bytes_max; /* of all stored parts */
};

struct ingest_parts *ingest_parts_new(const struct ingest_parts_limits *limits);
void ingest_parts_free(struct ingest_parts *p);
/*
 * Stores the body (taken over and left empty) of the part that the header names. Returns the
 * number of parts if the interval is complete: they are moved to parts[0..] in order; else 0.
 * Order and repetition do not matter. A node has one incomplete interval: another run, sequence or
 * number of parts, or another content of a stored part, begins it anew. Over a limit the oldest
 * incomplete interval is dropped.
 */
size_t ingest_parts_add(struct ingest_parts *p, const struct frame_header *header, struct buf *body,
			struct buf parts[BODY_PARTS_MAX]);
