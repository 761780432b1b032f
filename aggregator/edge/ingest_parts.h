/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the parts of intervals that travel in several frames, within bounds. Pure. */
#ifndef EVENKEEL_AGGREGATOR_EDGE_INGEST_PARTS_H
#define EVENKEEL_AGGREGATOR_EDGE_INGEST_PARTS_H

#include <stddef.h>

#include "shared/body.h"
#include "shared/buf.h"
#include "shared/frame.h"

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
size_t ingest_parts_nodes(const struct ingest_parts *p);
size_t ingest_parts_bytes(const struct ingest_parts *p);

#endif
