/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any body that is posted to what quotas answer is refused with a reason, or answered with one JSON
 * object; and nobody is told to evict a pod that is not there. The first byte says where it is
 * posted.
 */
#include <assert.h>
#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/api.h"
#include "aggregator/state/reservations.h"
#include "aggregator/state/victim_log.h"
#include "shared/mem.h"
#include "tests/fuzz/bare_request.h"
#include "tests/quota_fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int64_t now_ns(void)
{
	return 1769860800000000000LL;
}

static struct view *make_view(void)
{
	struct buf items = BUF_INIT;
	struct view *v;

	buf_add_str(&items, quota_fixture_node("a", "cpu: 4, memory: 8Gi"));
	buf_add_str(&items, quota_fixture_quota("x", "q", "cpu: 1", "cpu: 4, memory: 8Gi"));
	buf_add_str(&items, quota_fixture_quota("y", "q", "cpu: 3", "cpu: 4"));
	buf_add_str(&items, quota_fixture_pod("x", "p", "a", 0, "cpu: 3, memory: 1Gi"));
	buf_add_str(&items, quota_fixture_pod("y", "waits", "", 0, "cpu: 2"));
	v = quota_fixture_view(items.data);
	buf_fini(&items);
	return v;
}

/* No victims but the one pod there is, x/p. */
static void check_victims(const cJSON *answer)
{
	const cJSON *nodes = cJSON_GetObjectItemCaseSensitive(answer, "NodeNameToMetaVictims");

	assert(cJSON_IsObject(nodes));
	for (const cJSON *node = nodes->child; node; node = node->next) {
		const cJSON *pods = cJSON_GetObjectItemCaseSensitive(node, "Pods");

		assert(strcmp(node->string, "a") == 0 && cJSON_GetArraySize(pods) == 1);
		assert(strcmp(cJSON_GetStringValue(
				      cJSON_GetObjectItemCaseSensitive(pods->child, "UID")),
			      "uid-x-p") == 0);
	}
}

static void post(const struct api_context *ctx, const char *path, const char *body, size_t len)
{
	const struct api_request rq = {.method = "POST",
				       .path = path,
				       .body = body,
				       .body_len = len,
				       .query = bare_query,
				       .query_other = bare_query_other};
	struct api_response rs = {.status = 200};
	cJSON *json;

	api_route(ctx, &rq, &rs);
	json = cJSON_Parse(rs.body.data);
	assert(cJSON_IsObject(json));
	assert(rs.status == 200 || rs.status == 400 || rs.status == 404 || rs.status == 409);
	assert((rs.status == 200) == !cJSON_GetObjectItemCaseSensitive(json, "error"));
	if (rs.status == 200 && strcmp(path, "/extender/preempt") == 0)
		check_victims(json);
	cJSON_Delete(json);
	buf_fini(&rs.body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const paths[] = {"/v1/quotas/admit", "/v1/quotas/preempt",
					    "/extender/preempt", "/extender/filter",
					    "/v1/quotas/reclaim/reservations"};
	static struct api_context ctx;
	static struct counters counters;
	char *body;

	if (!ctx.views) {
		ctx = (struct api_context){.views = view_slot_new(),
					   .counters = &counters,
					   .now_ns = now_ns,
					   .reservations = reservations_new(),
					   .victims = victim_log_new()};
		view_slot_publish(ctx.views, make_view());
	}
	if (!size)
		return 0;
	body = mem_alloc(size);
	memcpy(body, data + 1, size - 1);
	body[size - 1] = '\0';
	post(&ctx, paths[(uint8_t)(data[0] - '0') % (sizeof(paths) / sizeof(paths[0]))], body,
	     size - 1);
	free(body);
	return 0;
}
