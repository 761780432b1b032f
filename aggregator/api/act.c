/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of people to the actuator, and the reports of the actuator.
 *
 * GET /v1/act
 *   {"apiVersion","kind":"Act","time","actuator":{..}|null[,"reportedAgoSeconds":F],
 *    "requests":[{"id","action","nodes":[S,..],"dryRun":B[,"user"],"at","state","reasons":[S,..]},..]}
 *
 *   actuator  the newest report as it was sent, without its requests; null: there was none
 *   requests  oldest first, at most 64; a finished one makes room for a new one
 *   state     waiting, taken, refused or done; one that waits for more than 60 s is refused
 *
 * POST /v1/act/requests {"action","nodes","dryRun"}: 202 {"apiVersion","kind":"ActRequest","time",
 *   "id","state":"waiting"}; 404 for a node that nobody knows, 429 where 16 wait already
 *
 * PUT /v1/act {"holder","transitions",..}: the actuator's report; the answer is that of GET. 409: an
 *   actuator with a later Lease has reported within 60 s
 *
 * The members of both bodies are listed in route_table.c.
 */
#include "aggregator/api/act_box.h"

#include <stdlib.h>
#include <string.h>

#include "aggregator/api/list.h"
#include "aggregator/api/request_body.h"

enum { NODES_MOST = 100 };

static void write_box(const struct api_context *ctx, struct api_response *rs)
{
	int64_t now_ns = ctx->now_ns();
	struct jsonw w;

	list_answer_open(rs, &w, "Act", now_ns);
	if (ctx->acts) {
		rs->etag = act_box_write(ctx->acts, now_ns, &w);
	} else {
		jsonw_key_null(&w, "actuator");
		jsonw_key_array(&w, "requests");
		jsonw_array_close(&w);
	}
	list_answer_close(&w);
}

void api_act(const struct api_context *ctx, const struct api_request *rq, struct api_response *rs)
{
	(void)rq;
	write_box(ctx, rs);
}

/* A body with the members of the list; NULL: *rs says why not. The caller deletes it. */
static cJSON *read_body(const struct api_context *ctx, const struct api_request *rq,
			const struct api_field *members, struct api_response *rs)
{
	cJSON *tree = request_parse(rq, members, rs);

	if (tree && request_check(tree, members, rs) && ctx->acts)
		return tree;
	if (tree && !ctx->acts && rs->status / 100 == 2)
		api_fail(rs, FAIL_BAD_REQUEST, NULL, "a snapshot has no actuator");
	cJSON_Delete(tree);
	return NULL;
}

/* --- requests --------------------------------------------------------------------------------- */

static bool check_nodes(const struct api_context *ctx, const cJSON *nodes, struct api_response *rs)
{
	struct view *v;
	bool *chosen, good;

	if (!nodes || !nodes->child || cJSON_GetArraySize(nodes) > NODES_MOST)
		return api_fail(rs, FAIL_BAD_REQUEST, "nodes", "must name 1 to %d nodes",
				NODES_MOST);
	v = view_slot_take(ctx->views);
	good = request_nodes_choose(nodes, v, &chosen, FAIL_NOT_FOUND, rs);
	view_drop(v);
	if (good)
		free(chosen);
	return good;
}

static bool check_request(const struct api_context *ctx, const cJSON *tree, struct api_response *rs)
{
	const char *action = request_member(tree, "action")->valuestring;

	if (strcmp(action, "drain") == 0 || strcmp(action, "undo") == 0)
		return check_nodes(ctx, request_member(tree, "nodes"), rs);
	for (const cJSON *m = tree->child; m; m = m->next)
		if (strcmp(m->string, "action") != 0)
			return api_fail(rs, FAIL_BAD_REQUEST, m->string, "does not go with %s",
					action);
	return true;
}

void api_act_request(const struct api_context *ctx, const struct api_request *rq,
		     struct api_response *rs)
{
	cJSON *tree = read_body(ctx, rq, api_act_request_members, rs);
	const char *user = rq->user ? rq->user : "";
	int64_t now_ns = ctx->now_ns();
	char id[ACT_ID_LEN];
	struct jsonw w;

	if (!tree)
		return;
	if (!check_request(ctx, tree, rs)) {
		cJSON_Delete(tree);
	} else if (act_box_ask(ctx->acts, tree, user, now_ns, id)) {
		cJSON_Delete(tree);
		api_fail(rs, FAIL_TOO_MANY, NULL, "%d requests wait for the actuator",
			 ACT_OPEN_MOST);
	} else {
		list_answer_open(rs, &w, "ActRequest", now_ns);
		jsonw_key_string(&w, "id", id);
		jsonw_key_string(&w, "state", "waiting");
		list_answer_close(&w);
	}
}

/* --- reports ---------------------------------------------------------------------------------- */

void api_act_report(const struct api_context *ctx, const struct api_request *rq,
		    struct api_response *rs)
{
	cJSON *tree = read_body(ctx, rq, api_act_report_members, rs);

	if (!tree)
		return;
	if (!act_box_report(ctx->acts, tree, ctx->now_ns())) {
		write_box(ctx, rs);
		rs->etag = 0;
		return;
	}
	cJSON_Delete(tree);
	api_fail(rs, FAIL_CONFLICT, "transitions", "an actuator with a later Lease has reported");
}
