/* SPDX-License-Identifier: Apache-2.0 */
/* For handlers of ingest (aggregator/edge/ingest.h) that take whatever comes from whomever. */
#pragma once

#include "aggregator/edge/ingest.h"

static inline bool ingest_admits(void *ctx, const struct frame_header *header, uint64_t connection,
				 int64_t now_ns, struct ack *ack, enum frame_result *result)
{
	(void)ctx;
	(void)header;
	(void)connection;
	(void)now_ns;
	(void)ack;
	(void)result;
	return true;
}

static inline void ingest_forgets(void *ctx, const char *node, uint64_t connection)
{
	(void)ctx;
	(void)node;
	(void)connection;
}
