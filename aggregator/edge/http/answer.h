/* SPDX-License-Identifier: Apache-2.0 */
/* From what a route said to the bytes that a client reads, within bounds. */
#ifndef EVENKEEL_AGGREGATOR_EDGE_HTTP_ANSWER_H
#define EVENKEEL_AGGREGATOR_EDGE_HTTP_ANSWER_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>

#include "aggregator/edge/http/server.h"

/*
 * Counts so many bytes as held for a client; false: there would be too many, and none is counted.
 * Requests of schedulers have room that no others take.
 */
bool answer_hold(struct http_server *s, size_t len, bool scheduler);
void answer_release(struct http_server *s, size_t len);

/*
 * Takes over what *rs owns, and gives it to the library: 503 where too much is being read already.
 * MHD_NO: the connection is to be closed.
 */
enum MHD_Result answer_send(struct http_server *s, struct MHD_Connection *connection,
			    struct api_response *rs, bool scheduler);
/* Of an answer that nobody will get. */
void answer_drop(struct api_response *rs);

#endif
