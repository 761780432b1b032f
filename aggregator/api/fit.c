/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /v1/fit {"pod":POD[,"nodes":[NAME,..]]}: where a pod could go now, and for each node where
 * it could not, why.
 *
 *   {"apiVersion","kind":"FitList","time","useCap":"on"[,"podUse"][,"warnings":[TEXT,..]],"fits":3,"refused":{"NodeResourcesFit":4,..},
 *    "items":[{"node","fits":true},{"node","fits":false,"filter","reason"},..]}
 *
 * Nodes are in the order of their names; "fits" and "refused" count all of the cluster, also where
 * `nodes` asks for some. The filter is the first that refuses, in the order of enum place_filter,
 * and the reason its sentence.
 *
 * The pod is a manifest, or a pod as the API shows it: then the question is where else it could be.
 * The pod's own usage, known by its uid or else by its name, is ignored. The node that a pod of the
 * API is bound to is ignored as well; a manifest with spec.nodeName is refused. Reservations of
 * other pods count as used (reservations.h), and a node must have room for the pod beside the pods
 * that are nominated for the node.
 *
 * Without an API or a snapshot nothing is known of taints, labels and requests, and no answer would
 * be true: 503.
 */
#include <stdlib.h>

#include "aggregator/api/api.h"
#include "aggregator/api/fit_ask.h"
#include "aggregator/api/list.h"
#include "aggregator/planner/place_cache.h"
#include "aggregator/api/request_body.h"
#include "shared/jsonw.h"

/* The priority of a manifest's class is not looked up: only nominated pods are compared by it. */
static bool read_body(struct pod_body *body, struct api_response *rs)
{
	cJSON *pod = request_member(body->tree, "pod");
	char field[POD_MANIFEST_FIELD_MAX];
	struct error error = {""};
	struct object_fault fault = {field, sizeof(field), &error, false};
	const struct object_json nodes = {object_json_find(body->tree, "nodes"), &fault, NULL,
					  "nodes", 0};

	if (nodes.json)
		request_nodes_check(&nodes);
	if (!fault.found && !pod_manifest_read(pod, &body->pod, field, &error))
		return true;
	return api_fail(rs, FAIL_BAD_REQUEST, field, "%s", error.text);
}

static void write_answer(const struct fit_ask *a, const cJSON *pod, const bool *chosen,
			 int64_t now_ns, struct api_response *rs)
{
	struct jsonw w;

	list_answer_open(rs, &w, "FitList", now_ns);
	jsonw_key_string(&w, "useCap", place_cap_applies(a->place) ? "on" : "off: no usage data");
	list_write_pod_use(&w, place_use_is_shared(a->place));
	pod_manifest_write_warnings(pod, &w);
	fit_ask_write_counts(a, &w);
	jsonw_key_array(&w, "items");
	for (place_node n = 0; n < place_node_count(a->place); n++)
		if (!chosen || chosen[n]) {
			struct error why = {""};
			enum place_filter filter = fit_ask_node(a, n, &why);

			jsonw_object_open(&w);
			jsonw_key_string(&w, "node", place_node_name(a->place, n));
			jsonw_key_bool(&w, "fits", filter == PLACE_FITS);
			if (filter != PLACE_FITS) {
				jsonw_key_string(&w, "filter", place_filter_name(filter));
				jsonw_key_string(&w, "reason", why.text);
			}
			jsonw_object_close(&w);
		}
	jsonw_array_close(&w);
	list_answer_close(&w);
}

static void answer(const struct api_context *ctx, const struct reservations_copy *reservations,
		   struct view *v, const struct pod_body *body, struct api_response *rs)
{
	int64_t now_ns = ctx->now_ns();
	struct fit_ask a;
	bool *chosen;

	if (!request_nodes_choose(object_json_find(body->tree, "nodes"), v, &chosen,
				  FAIL_BAD_REQUEST, rs))
		return;
	fit_ask_open(&a, ctx->places, v, reservations, body->pod, now_ns);
	write_answer(&a, request_member(body->tree, "pod"), chosen, now_ns, rs);
	fit_ask_close(&a);
	free(chosen);
}

void api_fit(const struct api_context *ctx, const struct api_request *rq, struct api_response *rs)
{
	struct pod_body body = {0};
	struct error error = {""};
	struct reservations_copy *reservations;
	struct view *v;

	body.tree = request_parse(rq, api_fit_members, rs);
	if (body.tree && read_body(&body, rs)) {
		reservations = reservations_take(ctx->reservations, ctx->now_ns());
		v = view_slot_take(ctx->views);
		if (place_cache_can_answer(v, &error))
			answer(ctx, reservations, v, &body, rs);
		else
			api_fail(rs, FAIL_NO_DATA, NULL, "%s", error.text);
		view_drop(v);
		reservations_copy_drop(reservations);
	}
	pod_body_fini(&body);
}
