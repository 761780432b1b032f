/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the HTTP server share: http.h is what others see of it. */
#ifndef EVENKEEL_AGGREGATOR_EDGE_HTTP_SERVER_H
#define EVENKEEL_AGGREGATOR_EDGE_HTTP_SERVER_H

#include <stdatomic.h>

#include "aggregator/edge/http/door.h"
#include "aggregator/edge/http/lane.h"
#include "aggregator/edge/http/listen.h"
#include "aggregator/edge/http/workers.h"

enum { HTTP_LANES = 2 };

struct http_server {
	/* fixed after start */
	const struct api_context *ctx; /* borrowed */
	struct listener listener;
	struct lane *lanes[HTTP_LANES];
	struct workers *workers[API_WORKS]; /* NULL: a lane does it at once */
	struct workers *reviewers; /* NULL: nobody is asked about tokens */
	struct door *door;

	/* any thread; answer.h */
	atomic_size_t held_bytes;
	atomic_uint streams; /* under way */
};

#endif
