/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that lets clients in and serves them, from their first byte to their last. */
#ifndef EVENKEEL_AGGREGATOR_EDGE_HTTP_LANE_H
#define EVENKEEL_AGGREGATOR_EDGE_HTTP_LANE_H

#include <microhttpd.h>

#include "aggregator/edge/http/door.h"
#include "shared/reason.h"

struct http_server;
struct lane;

/*
 * The listener does not block, is shared with other lanes, and stays the caller's, as the door
 * does. -errno with the reason.
 */
int lane_start(struct lane **l, struct http_server *server, int listener, struct door *door,
	       struct reason *reason);
/*
 * Closes its connections and completes every request that began; none is suspended any more. NULL
 * is allowed.
 */
void lane_stop(struct lane *l);

struct http_server *lane_server(const struct lane *l);
/* Any thread: goes on with one of its connections that was suspended. */
void lane_resume(struct lane *l, struct MHD_Connection *connection);

#endif
