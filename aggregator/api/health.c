/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Liveness and readiness for whoever starts the service. The threads that answer are the ones being asked about, so an
 * answer is the proof. Without an API to follow there are no caches to wait for: ready means serving. A database that fails
 * is told of but takes nobody out of service: another replica would not have it either.
 */
#include "aggregator/api/api.h"

static void answer_ok(struct api_response *rs)
{
	rs->content_type = "text/plain; charset=utf-8";
	buf_add_str(&rs->body, "ok\n");
}

void api_healthz(const struct api_context *ctx, const struct api_request *rq,
		 struct api_response *rs)
{
	(void)ctx;
	(void)rq;
	answer_ok(rs);
}

void api_readyz(const struct api_context *ctx, const struct api_request *rq,
		struct api_response *rs)
{
	(void)rq;
	answer_ok(rs);
	if (counter_get(&ctx->counters->store.alarm))
		buf_add_str(&rs->body, "store: node windows are not being saved, see the log\n");
}
