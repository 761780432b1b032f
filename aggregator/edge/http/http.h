/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP edge: libmicrohttpd's threads answer by the routes of the API. */
#ifndef EVENKEEL_AGGREGATOR_EDGE_HTTP_HTTP_H
#define EVENKEEL_AGGREGATOR_EDGE_HTTP_HTTP_H

#include <stdint.h>

#include "aggregator/api/api.h"
#include "aggregator/edge/http/gate.h"
#include "aggregator/edge/http/tls.h"
#include "shared/reason.h"

/* How long a client may take for each part of a request; 0: the usual time. */
struct http_patience {
	int64_t headers_ns; /* with the TLS handshake */
	int64_t body_ns;
	int64_t answer_ns; /* to read it */
	int64_t stream_ns; /* to read one that is made while it is read */
};

struct http_config {
	/* "127.0.0.1:2020", "[::1]:2020", ":2020", port 0 picks one. */
	const char *listen;
	const struct api_context *ctx;
	struct tls_files tls; /* no certificate: plain HTTP */
	struct gate_options gate;
	bool plain_tokens; /* tokens may travel in clear between machines */
	bool insecure_open; /* other machines may ask, whoever they are */
	struct http_patience patience;
};

struct http_server;
/*
 * -EADDRINUSE, -EINVAL.. with the reason. config is copied; what it points to is borrowed. -EINVAL
 * also where tokens would travel in clear between machines, or other machines ask without any, and
 * that is not allowed.
 */
int http_start_with(struct http_server **s, const struct http_config *config,
		    struct reason *reason);
/* The same for everybody, without TLS. */
int http_start(struct http_server **s, const char *listen, const struct api_context *ctx,
	       struct reason *reason);
void http_stop(struct http_server *s);
/* Soon reads certificates and tokens again; it does so by itself every ten seconds. */
void http_reload(struct http_server *s);
/* The address it really listens on, "127.0.0.1:2020". */
const char *http_address(const struct http_server *s);

#endif
