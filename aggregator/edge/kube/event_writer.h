/* SPDX-License-Identifier: Apache-2.0 */
/* Writes Events about nodes, quotas and refused pods (object_events.h). Off by default. */
#pragma once

#include "aggregator/api/api.h"
#include "aggregator/api/object_events.h"
#include "aggregator/edge/kube/config.h"
#include "shared/buf.h"
#include "shared/error.h"

struct event_writer;

/*
 * Starts the thread. of: bits of enum object_events_of. config is copied, the context borrowed until
 * the stop. 0, or -errno with the reason.
 */
int event_writer_start(struct event_writer **w, const struct kube_config *config, unsigned int of,
		       const struct api_context *ctx, struct error *error);
/* Cuts a running request. NULL is allowed. */
void event_writer_stop(struct event_writer *w);

/* --- event_body.c ----------------------------------------------------------------------------- */

/*
 * Append path and body of a request; the caller adds the field manager to the path. The first writes
 * a new event of that name and component at that Unix time; the second writes that the event
 * happened again, `count` times with the first.
 */
void event_writer_create(const struct object_event *event, const char *component, const char *name,
			 int64_t now_ns, struct buf *path, struct buf *body);
void event_writer_repeat(const struct object_event *event, const char *name, unsigned int count,
			 int64_t now_ns, struct buf *path, struct buf *body);
