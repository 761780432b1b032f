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
	struct request_error error;
};

static const struct request_error *no_plugin(const struct parser *p, const char *name)
{
	error_set(p->error.error, "there is no plugin \"%.64s\"; there are %s", name,
		  score_plugin_names());
	return &p->error;
}

/*
 * A manifest names no owner, a pod of the API server's its controller among others: its uid and
 * workload.
 */
static int read_owner(const struct parser *p, const cJSON *metadata)
{
	const cJSON *list = request_member(metadata, "ownerReferences"), *item;
	const char *hash =
		object_json_text(request_member(metadata, "labels"), "pod-template-hash");
	size_t i = 0;

	if (request_lacks(list))
		return 0;
	if (!cJSON_IsArray(list))
		return request_fail(&p->error, "must be a list", "pod.metadata.ownerReferences");
	for (item = list->child; item; item = item->next, i++) {
		const struct owner_ref owner = {object_json_text(item, "kind"),
						object_json_text(item, "name"), ""};
		const cJSON *uid = request_member(item, "uid");

		if (!cJSON_IsObject(item))
			return request_fail(&p->error, "must be an object",
					    "pod.metadata.ownerReferences[%zu]", i);
		if (!cJSON_IsTrue(request_member(item, "controller")))
			continue;
		if (!cJSON_IsString(uid))
			return request_fail(&p->error, "must be a string",
					    "pod.metadata.ownerReferences[%zu].uid", i);
		p->rq->owner_uid = uid->valuestring;
		workload_key(object_json_text(metadata, "namespace"), &owner, hash,
			     p->rq->workload);
	}
	return 0;
}

/* A manifest has none. */
static int read_uid(const struct parser *p, const cJSON *metadata)
{
	const cJSON *uid = request_member(metadata, "uid");

	if (request_lacks(uid))
		return 0;
	if (!cJSON_IsString(uid))
		return request_fail(&p->error, "must be a string", "pod.metadata.uid");
	p->rq->pod_uid = uid->valuestring;
	return 0;
}

static int read_spec(const struct parser *p, const cJSON *pod, char field[OBJECT_FIELD_MAX])
{
	const cJSON *spec = request_member(pod, "spec");

	if (pod_spec_read(pod, &p->rq->pod, field, p->error.error))
		return -EINVAL;
	if (!p->rq->args.values.limit_other_count)
		return 0;
	return pod_sums_read(spec, NULL, POD_SUMS_SCHEDULER, &p->rq->sums, field, p->error.error);
}

static int read_pod(const struct parser *p, const cJSON *item)
{
	const cJSON *metadata = request_member(item, "metadata");
	char inner[OBJECT_FIELD_MAX];

	if (read_spec(p, item, inner)) {
		snprintf(p->error.field, SCORES_FIELD_MAX, "pod%s%s", *inner ? "." : "", inner);
		return -EINVAL;
	}
	return read_uid(p, metadata) ? -EINVAL : read_owner(p, metadata);
}

static int read_nodes(const struct parser *p, const cJSON *list)
{
	if (request_nodes_check(list, p->error.field, p->error.error))
		return -EINVAL;
	p->rq->nodes = list;
	return 0;
}

static int read_variant(const struct parser *p, const cJSON *item)
{
	if (!cJSON_IsString(item))
		return request_fail(&p->error, "must be a string", "variant");
	if (score_variant_find(item->valuestring, &p->rq->blend.variant)) {
		request_fail(&p->error, "", "variant");
		return error_fail(p->error.error, -EINVAL,
				  "there is no variant \"%.64s\"; there are %s", item->valuestring,
				  score_variant_names());
	}
	extender_options_args(p->extender, p->rq->blend.variant, &p->rq->args.values);
	return 0;
}

static int read_bool(const struct parser *p, const cJSON *item, bool *out)
{
	if (!cJSON_IsBool(item))
		return request_fail(&p->error, "must be true or false", "%s", item->string);
	*out = cJSON_IsTrue(item);
	return 0;
}

static int read_explain(const struct parser *p, const cJSON *item)
{
	return read_bool(p, item, &p->rq->explain);
}

static int read_fits(const struct parser *p, const cJSON *item)
{
	return read_bool(p, item, &p->rq->fits);
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

static int check_variant(const struct parser *p, enum score_plugin_id plugin)
{
	if (score_plugin_has(plugin, p->rq->blend.variant))
		return 0;
	request_fail(&p->error, "", "variant");
	return error_fail(p->error.error, -EINVAL, "%s has no variant %s",
			  score_plugin_name(plugin), score_variant_name(p->rq->blend.variant));
}

static int read_plugins(const struct parser *p, const cJSON *list)
{
	const cJSON *item;
	size_t i = 0;

	if (!cJSON_IsArray(list) || !list->child)
		return request_fail(&p->error, "must be a list of at least one plugin", "plugins");
	for (item = list->child; item; item = item->next) {
		enum score_plugin_id plugin;

		if (!cJSON_IsString(item))
			return request_fail(&p->error, "must be the name of a plugin",
					    "plugins[%zu]", i);
		if (score_plugin_find(item->valuestring, &plugin))
			return request_fail(no_plugin(p, item->valuestring), NULL, "plugins[%zu]",
					    i);
		if (find_chosen(p->rq, plugin) < p->rq->blend.count)
			return request_fail(&p->error, "is named twice", "plugins[%zu]", i);
		if (check_variant(p, plugin))
			return -EINVAL;
		choose(p->rq, plugin);
		i++;
	}
	return 0;
}

static int read_weight(const struct parser *p, const cJSON *item, bool may_choose)
{
	struct scores_request *rq = p->rq;
	enum score_plugin_id plugin;
	size_t at;

	if (score_plugin_find(item->string, &plugin))
		return request_fail(no_plugin(p, item->string), NULL, "blend.%.64s", item->string);
	at = find_chosen(rq, plugin);
	if (at == rq->blend.count && !may_choose)
		return request_fail(&p->error, "is not among the plugins of this request",
				    "blend.%s", item->string);
	if (!cJSON_IsNumber(item) || !(item->valuedouble > 0 && item->valuedouble <= 1e6))
		return request_fail(&p->error, "must be a number above 0 and at most 1000000",
				    "blend.%s", item->string);
	if (check_variant(p, plugin))
		return -EINVAL;
	if (at == rq->blend.count)
		choose(rq, plugin);
	rq->blend.weights[at] = item->valuedouble;
	return 0;
}

static int read_blend(const struct parser *p, const cJSON *object)
{
	bool may_choose = p->rq->blend.count == 0;
	const cJSON *item;

	if (!cJSON_IsObject(object) || !object->child)
		return request_fail(&p->error, "must be an object of plugins and weights", "blend");
	for (item = object->child; item; item = item->next)
		if (read_weight(p, item, may_choose))
			return -EINVAL;
	return 0;
}

static int read_plugin_args(const struct parser *p, const cJSON *object)
{
	char below[SCORES_FIELD_MAX];
	enum score_plugin_id plugin;

	if (score_plugin_find(object->string, &plugin))
		return request_fail(no_plugin(p, object->string), NULL, "args.%.64s",
				    object->string);
	if (!scores_args_parse(&p->rq->args, plugin, p->rq->blend.variant, object, below,
			       p->error.error))
		return 0;
	snprintf(p->error.field, SCORES_FIELD_MAX, "args.%s%s%.200s", object->string,
		 *below ? "." : "", below);
	return -EINVAL;
}

static int read_args(const struct parser *p, const cJSON *object)
{
	const cJSON *item;

	if (!cJSON_IsObject(object))
		return request_fail(&p->error, "must be an object of plugins", "args");
	for (item = object->child; item; item = item->next)
		if (read_plugin_args(p, item))
			return -EINVAL;
	return 0;
}

static const struct member {
	const char *name;
	int (*read)(const struct parser *p, const cJSON *item);
} members[] = {
	{"variant", read_variant}, {"plugins", read_plugins}, {"blend", read_blend},
	{"args", read_args},	   {"nodes", read_nodes},     {"explain", read_explain},
	{"pod", read_pod},	   {"fits", read_fits},
};

enum { MEMBERS = sizeof(members) / sizeof(members[0]) };

static int refuse_unknown(const struct parser *p, const cJSON *tree)
{
	for (const cJSON *item = tree->child; item; item = item->next)
		if (!api_field_find(item->string, api_scores_members))
			return request_fail(&p->error, "is not a member of this request", "%.64s",
					    item->string);
	return 0;
}

static int read_members(const struct parser *p, cJSON *tree)
{
	if (refuse_unknown(p, tree))
		return -EINVAL;
	if (pod_file_replace(tree, p->error.error))
		return request_fail(&p->error, NULL, "pod");
	for (size_t i = 0; i < MEMBERS; i++) {
		const cJSON *item = request_member(tree, members[i].name);

		if (item && !cJSON_IsNull(item) && members[i].read(p, item))
			return -EINVAL;
	}
	return 0;
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
	struct parser p = {rq, extender, {field, SCORES_FIELD_MAX, error}};
	int err;

	memset(rq, 0, sizeof(*rq));
	rq->pod_uid = rq->owner_uid = "";
	extender_options_args(extender, rq->blend.variant, &rq->args.values);
	if (strlen(body) == len)
		rq->tree = cJSON_ParseWithLengthOpts(body, len + 1, NULL, true);
	if (!cJSON_IsObject(rq->tree))
		err = request_fail(&p.error, "the body must be a JSON object", "%s", "");
	else
		err = read_members(&p, rq->tree);
	if (err)
		scores_request_fini(rq);
	else if (!rq->blend.count)
		blend_by_default(rq, extender);
	return err;
}

void scores_request_fini(struct scores_request *rq)
{
	pod_spec_free_members(&rq->pod);
	pod_sums_fini(&rq->sums);
	scores_args_fini(&rq->args);
	cJSON_Delete(rq->tree);
	rq->tree = NULL;
}
