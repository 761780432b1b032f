/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pod is read into the record that the model would have of it, so that requests, owner and
 * priority are counted here as everywhere else. The copy of the reservations is taken before the
 * view (reservations.h).
 */
#include "aggregator/api/extender_call.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/prefetcher.h"
#include "aggregator/state/uid_set.h"
#include "shared/clock.h"
#include "shared/mem.h"

static struct extender_counters *counters_of(const struct extender_call *c)
{
	return &c->ctx->counters->extender;
}

bool extender_read_pod(const cJSON *json, struct kube_pod **pod, struct api_response *rs)
{
	char below[OBJECT_FIELD_MAX] = "", field[OBJECT_FIELD_MAX + 8];
	struct error why = {""};
	struct object *record;

	if (object_read(OBJECT_POD, json, &record, below, &why)) {
		snprintf(field, sizeof(field), "Pod%s%s", *below ? "." : "", below);
		return api_fail(rs, FAIL_BAD_REQUEST, field, "%s", why.text);
	}
	*pod = (struct kube_pod *)record;
	return true;
}

static bool read_question(struct extender_call *c, const struct api_request *rq,
			  struct api_response *rs)
{
	char field[EXTENDER_FIELD_MAX];
	struct error error = {""};

	if (extender_args_parse(rq->body, rq->body_len, &c->args, field, &error))
		return api_fail(rs, FAIL_BAD_REQUEST, *field ? field : NULL, "%s", error.text);
	if (extender_read_pod(c->args.pod, &c->pod, rs))
		return true;
	extender_args_fini(&c->args);
	return false;
}

/* Of names that are there twice the first counts. */
static void find_places(struct extender_call *c)
{
	const struct node_index *index = node_index_of(c->view);
	bool *seen = mem_zalloc(c->view->node_count + 1, sizeof(*seen));
	struct uid_set strangers = {0};
	size_t kept = 0;

	c->places = mem_alloc((c->args.count + 1) * sizeof(*c->places));
	for (size_t i = 0; i < c->args.count; i++) {
		size_t place = node_index_find(index, c->args.nodes[i].name);

		if (place < c->view->node_count ? seen[place]
						: !uid_set_add(&strangers, c->args.nodes[i].name))
			continue;
		seen[place] = true;
		c->args.nodes[kept] = c->args.nodes[i];
		c->places[kept++] = place;
	}
	c->args.count = kept;
	uid_set_fini(&strangers);
	free(seen);
}

/* --- the call */

static void take_world(struct extender_call *c)
{
	c->reservations = reservations_take(c->ctx->reservations, c->now_ns);
	c->view = view_slot_take(c->ctx->views);
	find_places(c);
}

static void drop_world(struct extender_call *c)
{
	free(c->places);
	view_drop(c->view);
	reservations_copy_drop(c->reservations);
}

void extender_call_renew(struct extender_call *c)
{
	drop_world(c);
	take_world(c);
	c->ask.view = c->view;
	c->ask.reservations = c->reservations;
}

void extender_call_refresh(struct extender_call *c)
{
	c->fresh = true;
	view_slot_refresh(c->ctx->views, clock_mono_ns() + EXTENDER_REFRESH_NS);
	extender_call_renew(c);
}

/* The score question about the pod, for the copies that were taken. */
static void prepare(struct extender_call *c)
{
	extender_options_args(c->ctx->extender, SCORE_CORRECTED, &c->score_args);
	extender_options_blend(c->ctx->extender, SCORE_CORRECTED, &c->blend, &c->score_args);
	workload_key_of(c->pod, c->workload);
	c->ask = (struct score_ask){
		.view = c->view,
		.reservations = c->reservations,
		.now_ns = c->now_ns,
		.blend = &c->blend,
		.args = &c->score_args,
		.pod = &c->pod->template->spec,
		.pod_uid = c->pod->object.uid,
		.owner_uid = c->pod->template->owner.uid,
		.workload = c->workload,
	};
}

/* Before it lists anything, a source is SOURCE_NONE for a moment, as what is in no file is for ever. */
bool extender_knows_cluster(const struct view *v, struct api_response *rs)
{
	static const enum object_kind kinds[] = {OBJECT_NODE, OBJECT_POD, OBJECT_ELASTIC_QUOTA};
	const char *missing = NULL;

	for (size_t i = 0; v->cluster && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		enum source_state state = v->cluster->sources[kinds[i]].state;

		if (state == SOURCE_SNAPSHOT)
			return true;
		if (state == SOURCE_NONE || state == SOURCE_LISTING)
			missing = object_kind_resource(kinds[i]);
	}
	if (missing && rs)
		api_fail(rs, FAIL_NO_DATA, NULL, "%s are not listed yet: ask again", missing);
	return !missing;
}

bool extender_call_open(struct extender_call *c, enum extender_verb verb,
			const struct api_context *ctx, const struct api_request *rq,
			struct api_response *rs)
{
	*c = (struct extender_call){.ctx = ctx, .verb = verb, .now_ns = ctx->now_ns()};
	counter_add(&counters_of(c)->requests[verb], 1);
	if (!read_question(c, rq, rs)) {
		counter_add(&counters_of(c)->malformed, 1);
		return false;
	}
	take_world(c);
	prepare(c);
	if (verb != EXTENDER_FILTER || extender_knows_cluster(c->view, rs))
		return true;
	extender_call_close(c);
	return false;
}

void extender_call_close(struct extender_call *c)
{
	int64_t took_ns = c->ctx->now_ns() - c->now_ns;

	if (took_ns > 0)
		counter_add(&counters_of(c)->took_ns[c->verb], (uint64_t)took_ns);
	extender_call_close_again(c);
}

struct extender_nodes *extender_nodes_new(const struct view *v)
{
	struct extender_nodes *nodes = mem_zalloc(1, sizeof(*nodes) + v->node_count * sizeof(bool));

	nodes->set_version = v->node_set_version;
	nodes->count = v->node_count;
	return nodes;
}

struct extender_nodes *extender_call_nodes(const struct extender_call *c)
{
	struct extender_nodes *nodes = extender_nodes_new(c->view);

	for (size_t i = 0; i < c->args.count; i++)
		if (c->places[i] < nodes->count)
			nodes->chosen[c->places[i]] = true;
	return nodes;
}

void extender_call_open_again(struct extender_call *c, const struct api_context *ctx,
			      struct kube_pod *pod, const struct extender_nodes *nodes)
{
	struct view *v;
	bool all;

	*c = (struct extender_call){
		.ctx = ctx, .verb = EXTENDER_FILTER, .now_ns = ctx->now_ns(), .fresh = true};
	object_hold(&pod->object);
	c->pod = pod;
	c->reservations = reservations_take(ctx->reservations, c->now_ns);
	c->view = v = view_slot_take(ctx->views);
	all = !v->node_set_version || nodes->set_version != v->node_set_version ||
	      nodes->count != v->node_count;
	c->args.nodes = mem_zalloc(v->node_count + 1, sizeof(*c->args.nodes));
	c->places = mem_alloc((v->node_count + 1) * sizeof(*c->places));
	for (size_t i = 0; i < v->node_count; i++) {
		if (!all && !nodes->chosen[i])
			continue;
		c->args.nodes[c->args.count].name = v->nodes[i]->name;
		c->places[c->args.count++] = i;
	}
	prepare(c);
}

void extender_call_close_again(struct extender_call *c)
{
	drop_world(c);
	object_drop(&c->pod->object);
	extender_args_fini(&c->args);
}

bool extender_call_may_reserve(const struct extender_call *c)
{
	return c->ctx->reservations && *c->pod->object.uid && !*c->pod->node;
}

int extender_call_reserve(const struct extender_call *c, const char *node,
			  const struct reservations_copy *seen)
{
	const struct expected_use expected = score_ask_expected(&c->ask);
	const struct reservation entry = {
		.uid = c->pod->object.uid,
		.namespace = c->pod->object.namespace,
		.name = c->pod->object.name,
		.node = node,
		.requests = *kube_pod_requests(c->pod),
		.expected_cpu_milli = expected.cpu_milli,
		.expected_high_cpu_milli = expected.cpu_high_milli,
		.expected_mem_bytes = expected.mem_bytes,
		.priority = c->pod->template->priority,
	};
	struct reservations *set = c->ctx->reservations;
	int rc = -EINVAL;

	if (extender_call_may_reserve(c))
		rc = seen ? reservations_reserve_seen(set, &entry, seen, c->now_ns)
			  : reservations_reserve(set, &entry, c->now_ns);
	if (rc && rc != -EALREADY && rc != -EAGAIN)
		counter_add(&counters_of(c)->unreserved, 1);
	return rc;
}

void extender_call_tell(const struct extender_call *c)
{
	if (extender_call_may_reserve(c))
		reservations_tell(c->ctx->reservations, c->pod->object.uid);
}
