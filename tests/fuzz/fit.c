/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any body of POST /v1/fit, and any pod in one: refused with a field and a reason, or answered for
 * every node, with counts that are those of its items; and scores of the same pod, where there are
 * any, tell the same of it.
 */
#include <assert.h>
#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/api.h"
#include "shared/mem.h"
#include "tests/fuzz/bare_request.h"
#include "tests/place_fixture.h"
#include "tests/view_fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { NODES = 3, REFUSED = -1 };

static struct api_context ctx;
static struct counters counters;

static int64_t fixed_now(void)
{
	return VIEW_FIXTURE_NOW_NS;
}

static void start(void)
{
	struct place_fixture f;

	place_fixture_init(&f);
	place_fixture_node(&f, "a", "'zone':'1'", "");
	place_fixture_node(&f, "b", "'zone':'2'", "'taints':[{'key':'t','effect':'NoSchedule'}]");
	place_fixture_node(&f, "c", "", "'unschedulable':true");
	place_fixture_pod(&f, "web", "a", "'app':'web'", "'hostNetwork':true");
	place_fixture_put(&f, OBJECT_PERSISTENT_VOLUME_CLAIM,
			  "{'metadata':{'namespace':'default','name':'data'},'spec':{}}");
	ctx = (struct api_context){.views = view_slot_new(),
				   .counters = &counters,
				   .now_ns = fixed_now};
	view_slot_publish(ctx.views, place_fixture_view(&f, NULL, 0));
	place_fixture_fini(&f);
}

/* How many nodes fit; REFUSED: the answer is 400. */
static int check_answer(const cJSON *answer, int status)
{
	const cJSON *error = cJSON_GetObjectItemCaseSensitive(answer, "error"), *node;
	const cJSON *items = cJSON_GetObjectItemCaseSensitive(answer, "items");
	const cJSON *counted = cJSON_GetObjectItemCaseSensitive(answer, "fits");
	int fits = 0;

	if (status != 200) {
		const char *message =
			cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(error, "message"));

		assert(status == 400 && message && *message);
		return REFUSED;
	}
	cJSON_ArrayForEach (node, items)
		fits += cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(node, "fits"));
	assert(counted && counted->valueint >= fits);
	assert(cJSON_GetArraySize(items) < NODES || counted->valueint == fits);
	return counted->valueint;
}

static int post(const char *path, const char *body, size_t len)
{
	const struct api_request rq = {.method = "POST",
				       .path = path,
				       .body = body,
				       .body_len = len,
				       .query = bare_query,
				       .query_other = bare_query_other};
	struct api_response rs = {.status = 200};
	cJSON *answer;
	int fits;

	api_route(&ctx, &rq, &rs);
	answer = cJSON_ParseWithLength(rs.body.data, rs.body.len);
	assert(cJSON_IsObject(answer));
	fits = check_answer(answer, rs.status);
	cJSON_Delete(answer);
	buf_fini(&rs.body);
	return fits;
}

/* A pod that cannot be judged may have scores, and fits nowhere then. */
static void check_pod(const char *text)
{
	char *body = mem_printf("{\"fits\":true,\"pod\":%s}", text);
	cJSON *whole = cJSON_Parse(body);
	int fits, beside;

	/* A text that ends the object early says more than one pod. */
	if (cJSON_GetArraySize(whole) == 2 && whole->child->next->child) {
		char *alone = mem_printf("{\"pod\":%s}", text);

		fits = post("/v1/fit", alone, strlen(alone));
		beside = post("/v1/scores", body, strlen(body));
		assert(beside == REFUSED || beside == (fits == REFUSED ? 0 : fits));
		free(alone);
	}
	cJSON_Delete(whole);
	free(body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = mem_alloc(size + 1);

	if (!ctx.views)
		start();
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	post("/v1/fit", text, size);
	check_pod(text);
	free(text);
	return 0;
}
