/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any file given as measurements is refused with a reason, or makes node stats that answers can be
 * made from.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/api.h"
#include "aggregator/api/snapshot.h"
#include "tests/fuzz/bare_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char nodes[] =
	"{\"kind\":\"List\",\"apiVersion\":\"v1\",\"items\":[{\"kind\":\"Node\",\"apiVersion\":"
	"\"v1\","
	"\"metadata\":{\"name\":\"node-1\"},\"status\":{\"capacity\":{\"cpu\":\"4\",\"memory\":"
	"\"8Gi\"}}},"
	"{\"kind\":\"Node\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"n\"}}]}";

static int64_t moment_ns;

static int64_t now_ns(void)
{
	return moment_ns;
}

static void ask(const struct api_context *ctx, const char *method, const char *path,
		const char *body)
{
	const struct api_request rq = {.method = method,
				       .path = path,
				       .body = body,
				       .body_len = strlen(body),
				       .query = bare_query,
				       .query_other = bare_query_other};
	struct api_response rs = {.status = 200};

	api_route(ctx, &rq, &rs);
	/* /watcher has nothing to tell of nodes that were never heard. */
	assert(rs.status == 200 || rs.status == 404);
	buf_fini(&rs.body);
}

/* Takes the view over. */
static void look_at(struct view *v)
{
	static struct counters counters;
	const struct api_context ctx = {.views = view_slot_new(),
					.counters = &counters,
					.now_ns = now_ns,
					.watcher_smoothed = 1};

	view_slot_publish(ctx.views, v);
	ask(&ctx, "GET", "/v1/nodes", "");
	ask(&ctx, "GET", "/v1/pods", "");
	ask(&ctx, "GET", "/watcher", "");
	ask(&ctx, "GET", "/metrics", "");
	ask(&ctx, "POST", "/v1/scores", "{\"explain\":true}");
	view_slot_free(ctx.views);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct snapshot *s = snapshot_new();
	struct error error = {""};
	struct view *v = NULL;

	if (snapshot_add(s, "nodes", nodes, sizeof(nodes) - 1, &error) ||
	    snapshot_add_usage(s, "fuzz", (const char *)data, size, &error) ||
	    snapshot_view(s, &v, &moment_ns, &error))
		assert(error.text[0]);
	else
		look_at(v);
	snapshot_free(s);
	return 0;
}
