/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any body that is sent to the actuator's mailbox is refused with a reason, or answered; the mailbox
 * stays within its bounds, and what GET answers afterwards is one JSON object. The first byte says
 * where the body goes; the last place is a frame of another aggregator.
 */
#include <assert.h>
#include <cjson/cJSON.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/act_box.h"
#include "aggregator/api/api.h"
#include "aggregator/planner/drain_log.h"
#include "shared/mem.h"
#include "tests/fuzz/bare_request.h"
#include "tests/quota_fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int64_t now_ns(void)
{
	return 1769860800000000000LL;
}

static cJSON *answer(const struct api_context *ctx, const char *method, const char *path,
		     const char *body, size_t len)
{
	const struct api_request rq = {.method = method,
				       .path = path,
				       .body = body,
				       .body_len = len,
				       .query = bare_query,
				       .query_other = bare_query_other};
	struct api_response rs = {.status = 200};
	cJSON *json;

	api_route(ctx, &rq, &rs);
	json = cJSON_ParseWithOpts(rs.body.data, NULL, true);
	assert(cJSON_IsObject(json));
	assert((rs.status / 100 == 2) == !cJSON_GetObjectItemCaseSensitive(json, "error"));
	buf_fini(&rs.body);
	return json;
}

static void expect_list(const struct api_context *ctx, const char *path, const char *list, int most)
{
	cJSON *json = answer(ctx, "GET", path, "", 0);
	const cJSON *items = cJSON_GetObjectItemCaseSensitive(json, list);

	assert(cJSON_IsArray(items) && cJSON_GetArraySize(items) <= most);
	cJSON_Delete(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const targets[][2] = {{"POST", "/v1/act/requests"},
						 {"PUT", "/v1/act"},
						 {"POST", "/v1/drain/history"}};
	static struct counters counters;
	struct api_context ctx = {.views = view_slot_new(),
				  .counters = &counters,
				  .now_ns = now_ns,
				  .decisions = drain_log_new()};
	char *body = mem_alloc(size + 1);

	ctx.acts = act_box_new(ctx.decisions);
	view_slot_publish(ctx.views, quota_fixture_view(quota_fixture_node("a", "cpu: 4")));
	if (size) {
		const struct buf frame = {body, size - 1, size};
		unsigned int place = data[0] % 4;
		struct error why;

		memcpy(body, data + 1, size - 1);
		body[size - 1] = '\0';
		if (place < 3)
			cJSON_Delete(
				answer(&ctx, targets[place][0], targets[place][1], body, size - 1));
		else
			act_box_hear(ctx.acts, &frame, now_ns(), &why);
		expect_list(&ctx, "/v1/act", "requests", 1);
		expect_list(&ctx, "/v1/drain/history", "items", 1);
	}
	free(body);
	act_box_free(ctx.acts);
	drain_log_free(ctx.decisions);
	view_slot_free(ctx.views);
	return 0;
}
