/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any file given as a snapshot is refused with a reason, or becomes a view whose own snapshot is
 * read, again and again.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/api.h"
#include "aggregator/api/snapshot.h"
#include "tests/fuzz/bare_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int64_t moment_ns;

static int64_t now_ns(void)
{
	return moment_ns;
}

static void get(const struct api_context *ctx, const char *path, struct buf *out)
{
	const struct api_request rq = {.method = "GET",
				       .path = path,
				       .body = "",
				       .query = bare_query,
				       .query_other = bare_query_other};
	struct api_response rs = {.status = 200};

	api_route(ctx, &rq, &rs);
	assert(rs.status == 200);
	if (rs.stream) {
		while (rs.stream->next(rs.stream, out))
			;
		rs.stream->free(rs.stream);
	}
	buf_fini(&rs.body);
}

/* NULL: refused. */
static struct view *read_view(const char *text, size_t len)
{
	struct snapshot *s = snapshot_new();
	struct error error = {""};
	struct view *v = NULL;

	if (snapshot_add(s, "fuzz", text, len, &error) ||
	    snapshot_view(s, &v, &moment_ns, &error)) {
		assert(error.text[0]);
		v = NULL;
	}
	snapshot_free(s);
	return v;
}

/* The view's snapshot; takes the view over. */
static void write_view(struct view *v, struct buf *out)
{
	static struct counters counters;
	struct api_context ctx = {.views = view_slot_new(),
				  .counters = &counters,
				  .now_ns = now_ns,
				  .watcher_smoothed = 1};

	struct buf other = BUF_INIT;

	view_slot_publish(ctx.views, v);
	get(&ctx, "/v1/snapshot", out);
	get(&ctx, "/v1/nodes", &other);
	get(&ctx, "/v1/pods", &other);
	buf_fini(&other);
	view_slot_free(ctx.views);
}

/*
 * Messages are cut, and bytes that are no UTF-8 repaired, when they are written first; from then on
 * nothing changes.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf texts[3] = {BUF_INIT, BUF_INIT, BUF_INIT};
	struct view *v = read_view((const char *)data, size);

	for (int i = 0; i < 3 && v; i++) {
		write_view(v, &texts[i]);
		v = read_view(texts[i].data, texts[i].len);
		assert(v);
	}
	view_drop(v);
	if (texts[2].len)
		assert(texts[1].len == texts[2].len &&
		       memcmp(texts[1].data, texts[2].data, texts[1].len) == 0);
	for (int i = 0; i < 3; i++)
		buf_fini(&texts[i]);
	return 0;
}
