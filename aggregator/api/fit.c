/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /v1/fit {"pod":POD[,"nodes":[NAME,..]]}: where a pod could go now, and for each node where it could not, why.
 *
 *   {"apiVersion","kind":"FitList","time","useCap":"on","fits":3,"refused":{"NodeResourcesFit":4,..},
 *    "items":[{"node","fits":true},{"node","fits":false,"filter","reason"},..]}
 *
 * Nodes are in the order of their names; "fits" and "refused" count all of the cluster, also where `nodes` asks for some. The filter is the
 * first that refuses, in the order of enum place_filter, and the reason its sentence.
 *
 * The pod is a manifest, or a pod as the API tells it: then the question is where else it could be. What the cluster knows under its uid, or under
 * its name where a manifest has no uid, is taken away first, so that it is not in its own way; where it is bound to is not asked.
 *
 * Without an API or a snapshot nothing is known of taints, labels and requests, and no answer would be true: 503.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/api.h"
#include "aggregator/api/list.h"
#include "aggregator/api/place_pool.h"
#include "aggregator/model/object.h"
#include "shared/jsonw.h"
#include "shared/mem.h"

struct fit_request {
	cJSON *tree; /* owned */
	const cJSON *nodes; /* list of names, or NULL: all */
	struct kube_pod *pod; /* held */
};

static void request_fini(struct fit_request *rq)
{
	if (rq->pod)
		object_drop(&rq->pod->object);
	cJSON_Delete(rq->tree);
}

static cJSON *member(const cJSON *object, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(object, name);
}

/* --- the body */

static void default_to(cJSON *object, const char *key, const char *value)
{
	const cJSON *item = member(object, key);

	if (!cJSON_IsObject(object) || (item && !cJSON_IsNull(item)))
		return; /* what is of another kind is refused when it is read */
	cJSON_DeleteItemFromObjectCaseSensitive(object, key);
	cJSON_AddStringToObject(object, key, value);
}

/* What a manifest may leave out is filled in; what a pod has become is forgotten. */
static void make_pending(cJSON *pod)
{
	cJSON *metadata = member(pod, "metadata");

	if (!metadata || cJSON_IsNull(metadata)) {
		cJSON_DeleteItemFromObjectCaseSensitive(pod, "metadata");
		metadata = cJSON_AddObjectToObject(pod, "metadata");
	}
	default_to(metadata, "name", "pod");
	default_to(metadata, "namespace", "default");
	cJSON_DeleteItemFromObjectCaseSensitive(metadata, "deletionTimestamp");
	cJSON_DeleteItemFromObjectCaseSensitive(member(pod, "spec"), "nodeName");
	cJSON_DeleteItemFromObjectCaseSensitive(member(pod, "status"), "phase");
}

static bool read_pod(cJSON *pod, struct fit_request *rq, struct api_response *rs)
{
	char inner[OBJECT_FIELD_MAX] = "", field[OBJECT_FIELD_MAX + 8];
	struct reason reason = {""};
	struct object *record;

	if (!cJSON_IsObject(pod)) {
		api_fail(rs, FAIL_BAD_REQUEST, "pod", pod ? "must be a Pod object" : "is required");
		return false;
	}
	make_pending(pod);
	if (object_read(OBJECT_POD, pod, &record, inner, &reason)) {
		snprintf(field, sizeof(field), "pod%s%s", *inner ? "." : "", inner);
		api_fail(rs, FAIL_BAD_REQUEST, field, "%s", reason.text);
		return false;
	}
	rq->pod = (struct kube_pod *)record;
	return true;
}

static bool read_nodes(const cJSON *list, struct fit_request *rq, struct api_response *rs)
{
	size_t i = 0;

	if (!list || cJSON_IsNull(list))
		return true;
	if (!cJSON_IsArray(list)) {
		api_fail(rs, FAIL_BAD_REQUEST, "nodes", "must be a list of node names");
		return false;
	}
	for (const cJSON *item = list->child; item; item = item->next, i++)
		if (!cJSON_IsString(item)) {
			char *field = mem_printf("nodes[%zu]", i);

			api_fail(rs, FAIL_BAD_REQUEST, field, "must be the name of a node");
			free(field);
			return false;
		}
	rq->nodes = list;
	return true;
}

static bool read_request(const struct api_request *from, struct fit_request *rq,
			 struct api_response *rs)
{
	if (strlen(from->body) == from->body_len)
		rq->tree = cJSON_ParseWithLengthOpts(from->body, from->body_len + 1, NULL, true);
	if (!rq->tree || !cJSON_IsObject(rq->tree)) {
		api_fail(rs, FAIL_BAD_REQUEST, NULL, "the body must be a JSON object");
		return false;
	}
	for (const cJSON *item = rq->tree->child; item; item = item->next)
		if (strcmp(item->string, "pod") != 0 && strcmp(item->string, "nodes") != 0) {
			char *field = mem_strndup(item->string, 64);

			api_fail(rs, FAIL_BAD_REQUEST, field, "is not a member of this request");
			free(field);
			return false;
		}
	return read_nodes(member(rq->tree, "nodes"), rq, rs) &&
	       read_pod(member(rq->tree, "pod"), rq, rs);
}

/* --- the answer */

/* Marks the nodes that are asked for; false: *rs says which name is unknown. */
static bool choose_nodes(const struct place *p, const cJSON *names, bool *chosen,
			 struct api_response *rs)
{
	size_t i = 0;

	for (const cJSON *item = names->child; item; item = item->next, i++) {
		place_node n = place_find_node(p, item->valuestring);

		if (n == PLACE_NONE) {
			char *field = mem_printf("nodes[%zu]", i);

			api_fail(rs, FAIL_BAD_REQUEST, field, "there is no node \"%.253s\"",
				 item->valuestring);
			free(field);
			return false;
		}
		chosen[n] = true;
	}
	return true;
}

/* The pod as the cluster has it is not in its own way. */
static void take_itself(struct place *p, const struct kube_pod *pod)
{
	place_pod known = place_find_pod(p, pod->object.namespace, pod->object.name);
	const char *uid = pod->object.uid;

	if (known == PLACE_NONE || place_where(p, known) == PLACE_NONE)
		return;
	if (!*uid || strcmp(uid, place_pod_record(p, known)->object.uid) == 0)
		place_take(p, known);
}

static void write_counts(struct jsonw *w, struct place *p, place_pod pod)
{
	struct place_counts counts = {{0}};

	for (place_node n = 0; n < place_node_count(p); n++)
		counts.of[place_check(p, pod, n)]++;
	jsonw_key_int(w, "fits", counts.of[PLACE_FITS]);
	jsonw_key(w, "refused");
	jsonw_object_open(w);
	for (int f = PLACE_FITS + 1; f < PLACE_FILTERS; f++)
		if (counts.of[f])
			jsonw_key_int(w, place_filter_name((enum place_filter)f), counts.of[f]);
	jsonw_object_close(w);
}

static void write_node(struct jsonw *w, struct place *p, place_pod pod, place_node n)
{
	struct reason why = {""};
	enum place_filter filter = place_explain(p, pod, n, &why);

	jsonw_object_open(w);
	jsonw_key_string(w, "node", place_node_name(p, n));
	jsonw_key_bool(w, "fits", filter == PLACE_FITS);
	if (filter != PLACE_FITS) {
		jsonw_key_string(w, "filter", place_filter_name(filter));
		jsonw_key_string(w, "reason", why.text);
	}
	jsonw_object_close(w);
}

static void write_answer(struct place *p, place_pod pod, const bool *chosen, int64_t now_ns,
			 struct api_response *rs)
{
	struct jsonw w;

	rs->content_type = "application/json";
	jsonw_init(&w, &rs->body);
	jsonw_object_open(&w);
	list_write_header(&w, "FitList", now_ns);
	jsonw_key_string(&w, "useCap", place_cap_applies(p) ? "on" : "off: no usage data");
	write_counts(&w, p, pod);
	jsonw_key(&w, "items");
	jsonw_array_open(&w);
	for (place_node n = 0; n < place_node_count(p); n++)
		if (!chosen || chosen[n])
			write_node(&w, p, pod, n);
	jsonw_array_close(&w);
	jsonw_object_close(&w);
	buf_add_char(&rs->body, '\n');
}

static void answer(const struct api_context *ctx, struct view *v, const struct fit_request *rq,
		   struct api_response *rs)
{
	int64_t now_ns = ctx->now_ns();
	struct place *p = place_pool_take(ctx->places, v, now_ns);
	bool *chosen = NULL;

	if (rq->nodes)
		chosen = mem_zalloc(place_node_count(p) + 1, sizeof(*chosen));
	if (!chosen || choose_nodes(p, rq->nodes, chosen, rs)) {
		take_itself(p, rq->pod);
		write_answer(p, place_add_pod(p, rq->pod), chosen, now_ns, rs);
	}
	free(chosen);
	place_pool_give(ctx->places, p);
}

/* False: *rs says what is not known. */
static bool knows_cluster(const struct view *v, struct api_response *rs)
{
	static const enum object_kind needed[] = {OBJECT_NODE, OBJECT_POD};

	if (!v->cluster) {
		api_fail(rs, FAIL_NO_DATA, NULL,
			 "nothing is known of the cluster's nodes and pods: there is no Kubernetes "
			 "API and no snapshot to ask");
		return false;
	}
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		const struct model_source *s = &v->cluster->sources[needed[i]];

		if (view_knows(v, needed[i]))
			continue;
		api_fail(rs, FAIL_NO_DATA, NULL, "the cluster's %s are not known: %s%s%.200s",
			 object_kind_resource(needed[i]), source_state_name(s->state),
			 *s->message ? ": " : "", s->message);
		return false;
	}
	return true;
}

void api_fit(const struct api_context *ctx, const struct api_request *rq, struct api_response *rs)
{
	struct fit_request request = {0};
	struct view *v;

	if (read_request(rq, &request, rs)) {
		v = view_slot_take(ctx->views);
		if (knows_cluster(v, rs))
			answer(ctx, v, &request, rs);
		view_drop(v);
	}
	request_fini(&request);
}
