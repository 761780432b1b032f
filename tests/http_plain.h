/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server for everybody, without TLS. */
#pragma once

#include "aggregator/edge/http/http.h"

/* Fails as http_start_with() does. */
static inline int http_plain_start(struct http_server **s, const char *listen,
				   const struct api_context *ctx, struct error *error)
{
	const struct http_config config = {.listen = listen, .ctx = ctx};

	return http_start_with(s, &config, error);
}
