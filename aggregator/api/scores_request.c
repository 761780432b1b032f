/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every member is read by a function of its own, found in a table; a name that is not in the table
 * is an error with its path, so that a misspelt setting never goes unnoticed. The order of the
 * table is the order of reading: what a member means may depend on those before it.
 */
#include "aggregator/api/scores_request.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/api/pod_file.h"
#include "aggregator/api/request_body.h"
#include "aggregator/api/route.h"
#include "aggregator/model/object_json.h"

struct parser {
	struct scores_request *rq;
	const struct extender_options *extender; /* NULL: none */
	struct object_json body;
};

static void refuse_plugin(const struct object_json *at, const char *name)
{
	object_json_fail(at, NULL, "there is no plugin \"%.64s\"; there are %s", name,
			 score_plugin_names());
}

/*
 * A manifest names no owner, a pod of the API server's its controller among others: its uid and
 * workload.
 */
static void read_owner(const struct parser *p, const struct object_json *metadata)
{
	const struct object_json list = object_json_list(metadata, "ownerReferences");
	const char *hash =
		object_json_text(object_json_find(metadata->json, "labels"), "pod-template-hash");

	for (struct object_json item = object_json_begin(&list); item.json;
	     object_json_next(&item)) {
		const struct owner_ref owner = {object_json_text(item.json, "kind"),
						object_json_text(item.json, "name"), ""};
		const char *uid;

		if (!cJSON_IsObject(item.json))
			object_json_fail(&item, NULL, "must be an object");
		if (!cJSON_IsTrue(object_json_find(item.json, "controller")))
			continue;
		uid = object_json_string(&item, "uid", NULL);
		if (!uid)
			object_json_fail(&item, "uid", "must be a string");
		p->rq->owner_uid = uid;
		workload_key(object_json_text(metadata->json, "namespace"), &owner, hash,
			     p->rq->workload);
	}
}

static void read_pod(const struct parser *p, const struct object_json *pod)
{
	struct object_fault *fault = pod->fault;
	struct scores_request *rq = p->rq;
	struct object_json metadata;
	char inner[OBJECT_FIELD_MAX];

	fault->found = pod_spec_read(pod->json, &rq->pod, inner, fault->error) ||
		       (rq->args.values.limit_other_count &&
			pod_sums_read(object_json_find(pod->json, "spec"), NULL, POD_SUMS_SCHEDULER,
				      &rq->sums, inner, fault->error));
	if (fault->found) {
		snprintf(fault->field, fault->field_max, "pod%s%s", *inner ? "." : "", inner);
		return;
	}
	metadata = object_json_object(pod, "metadata");
	rq->pod_uid = object_json_string(&metadata, "uid", ""); /* a manifest has none */
	read_owner(p, &metadata);
}

static void read_nodes(const struct parser *p, const struct object_json *list)
{
	request_nodes_check(list);
	p->rq->nodes = list->json;
}

static void read_variant(const struct parser *p, const struct object_json *at)
{
	const char *name = object_json_string(&p->body, at->key, "");

	if (at->fault->found)
		return;
	if (score_variant_find(name, &p->rq->blend.variant))
		object_json_fail(at, NULL, "there is no variant \"%.64s\"; there are %s", name,
				 score_variant_names());
	else
		extender_options_args(p->extender, p->rq->blend.variant, &p->rq->args.values);
}

static void read_explain(const struct parser *p, const struct object_json *at)
{
	p->rq->explain = object_json_bool(&p->body, at->key);
}

static void read_fits(const struct parser *p, const struct object_json *at)
{
	p->rq->fits = object_json_bool(&p->body, at->key);
}

static size_t find_chosen(const struct scores_request *rq, enum score_plugin_id plugin)
{
	size_t i = 0;

	while (i < rq->blend.count && rq->blend.plugins[i] != plugin)
		i++;
	return i;
}

static void choose(struct scores_request *rq, enum score_plugin_id plugin)
{
	assert(rq->blend.count < SCORE_PLUGINS);
	rq->blend.plugins[rq->blend.count] = plugin;
	rq->blend.weights[rq->blend.count++] = 1;
}

static bool check_variant(const struct parser *p, enum score_plugin_id plugin)
{
	bool has = score_plugin_has(plugin, p->rq->blend.variant);

	if (!has)
		object_json_fail(&p->body, "variant", "%s has no variant %s",
				 score_plugin_name(plugin),
				 score_variant_name(p->rq->blend.variant));
	return has;
}

static void read_plugin(const struct parser *p, const struct object_json *at)
{
	enum score_plugin_id plugin;

	if (!cJSON_IsString(at->json))
		object_json_fail(at, NULL, "must be the name of a plugin");
	else if (score_plugin_find(at->json->valuestring, &plugin))
		refuse_plugin(at, at->json->valuestring);
	else if (find_chosen(p->rq, plugin) < p->rq->blend.count)
		object_json_fail(at, NULL, "is named twice");
	else if (check_variant(p, plugin))
		choose(p->rq, plugin);
}

static void read_weight(const struct parser *p, const struct object_json *at, bool may_choose)
{
	struct scores_request *rq = p->rq;
	double weight = cJSON_GetNumberValue(at->json);
	enum score_plugin_id plugin;
	size_t chosen;

	if (score_plugin_find(at->key, &plugin)) {
		refuse_plugin(at, at->key);
		return;
	}
	chosen = find_chosen(rq, plugin);
	if (chosen == rq->blend.count && !may_choose)
		object_json_fail(at, NULL, "is not among the plugins of this request");
	else if (!(weight > 0 && weight <= 1e6))
		object_json_fail(at, NULL, "must be a number above 0 and at most 1000000");
	if (at->fault->found || !check_variant(p, plugin))
		return;
	if (chosen == rq->blend.count)
		choose(rq, plugin);
	rq->blend.weights[chosen] = weight;
}

static void read_plugins(const struct parser *p, const struct object_json *list)
{
	if (!cJSON_IsArray(list->json) || !list->json->child)
		object_json_fail(list, NULL, "must be a list of at least one plugin");
	for (struct object_json item = object_json_begin(list); item.json && !item.fault->found;
	     object_json_next(&item))
		read_plugin(p, &item);
}

static void read_blend(const struct parser *p, const struct object_json *blend)
{
	bool may_choose = p->rq->blend.count == 0;

	if (!cJSON_IsObject(blend->json) || !blend->json->child)
		object_json_fail(blend, NULL, "must be an object of plugins and weights");
	for (struct object_json item = object_json_begin(blend); item.json && !item.fault->found;
	     object_json_next(&item))
		read_weight(p, &item, may_choose);
}

static void read_plugin_args(const struct parser *p, const struct object_json *at)
{
	struct object_fault *fault = at->fault;
	char below[SCORES_FIELD_MAX];
	enum score_plugin_id plugin;

	if (score_plugin_find(at->key, &plugin)) {
		refuse_plugin(at, at->key);
	} else if (scores_args_parse(&p->rq->args, plugin, p->rq->blend.variant, at->json, below,
				     fault->error)) {
		fault->found = true;
		snprintf(fault->field, fault->field_max, "args.%s%s%.200s", at->key,
			 *below ? "." : "", below);
	}
}

static void read_args(const struct parser *p, const struct object_json *args)
{
	if (!cJSON_IsObject(args->json))
		object_json_fail(args, NULL, "must be an object of plugins");
	for (struct object_json item = object_json_begin(args); item.json && !item.fault->found;
	     object_json_next(&item))
		read_plugin_args(p, &item);
}

static const struct member {
	const char *name;
	void (*read)(const struct parser *p, const struct object_json *at);
} members[] = {
	{"variant", read_variant}, {"plugins", read_plugins}, {"blend", read_blend},
	{"args", read_args},	   {"nodes", read_nodes},     {"explain", read_explain},
	{"pod", read_pod},	   {"fits", read_fits},
};

enum { MEMBERS = sizeof(members) / sizeof(members[0]) };

static void read_members(const struct parser *p, cJSON *tree)
{
	struct object_fault *fault = p->body.fault;

	for (struct object_json at = object_json_begin(&p->body); at.json; object_json_next(&at))
		if (!api_field_find(at.key, api_scores_members))
			object_json_fail(&at, NULL, "is not a member of this request");
	if (!fault->found && pod_file_replace(tree, fault->error)) {
		fault->found = true;
		snprintf(fault->field, fault->field_max, "pod");
	}
	for (size_t i = 0; i < MEMBERS && !fault->found; i++) {
		const struct object_json at = {object_json_find(tree, members[i].name), fault,
					       &p->body, members[i].name, 0};

		if (at.json)
			members[i].read(p, &at);
	}
}

/* Arguments that the request states are kept. */
static void blend_by_default(struct scores_request *rq, const struct extender_options *extender)
{
	struct score_args usual, args = rq->args.values;

	score_args_default(&usual, rq->blend.variant);
	extender_options_blend(extender, rq->blend.variant, &rq->blend, &args);
	if (rq->args.values.safe_variance_margin == usual.safe_variance_margin)
		rq->args.values.safe_variance_margin = args.safe_variance_margin;
}

int scores_request_parse(const char *body, size_t len, const struct extender_options *extender,
			 struct scores_request *rq, char field[SCORES_FIELD_MAX],
			 struct error *error)
{
	struct object_fault fault = {field, SCORES_FIELD_MAX, error, false};
	struct parser p = {rq, extender, {NULL, &fault, NULL, "", 0}};

	memset(rq, 0, sizeof(*rq));
	rq->pod_uid = rq->owner_uid = "";
	extender_options_args(extender, rq->blend.variant, &rq->args.values);
	if (strlen(body) == len)
		rq->tree = cJSON_ParseWithLengthOpts(body, len + 1, NULL, true);
	p.body.json = rq->tree;
	if (!cJSON_IsObject(rq->tree))
		object_json_fail(&p.body, NULL, "the body must be a JSON object");
	else
		read_members(&p, rq->tree);
	if (fault.found)
		scores_request_fini(rq);
	else if (!rq->blend.count)
		blend_by_default(rq, extender);
	return fault.found ? -EINVAL : 0;
}

void scores_request_fini(struct scores_request *rq)
{
	pod_spec_free_members(&rq->pod);
	pod_sums_fini(&rq->sums);
	scores_args_fini(&rq->args);
	cJSON_Delete(rq->tree);
	rq->tree = NULL;
}
