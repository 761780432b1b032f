/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP edge: libmicrohttpd's threads answer by the routes of the API. */
#ifndef EVENKEEL_AGGREGATOR_EDGE_HTTP_HTTP_H
#define EVENKEEL_AGGREGATOR_EDGE_HTTP_HTTP_H

#include "aggregator/api/api.h"
#include "shared/reason.h"

struct http_server;
/* listen: "127.0.0.1:2020", "[::1]:2020", ":2020", port 0 picks one. -EADDRINUSE, -EINVAL.. with the reason. */
int http_start(struct http_server **s, const char *listen, const struct api_context *ctx,
	       struct reason *reason);
void http_stop(struct http_server *s);
/* The address it really listens on, "127.0.0.1:2020". */
const char *http_address(const struct http_server *s);

#endif
