/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evenkeel scores: the score of each node for a pod, best first. How an answer looks stands in
 * scores_answer.c.
 */
#include "aggregator/cli/answer.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/pod_file.h"
#include "aggregator/policy/score/score_tables.h"
#include "shared/mem.h"
#include "shared/yaml_json.h"

static const char *const sort_keys[] = {"score", "name", NULL};
/* For completion; the server knows them by itself. */
static const char *const plugin_words[] = {
#define X(id, name, ...) name,
	SCORE_PLUGIN_ROWS(X)
#undef X
		NULL};
static const char *const variant_words[] = {"corrected", "upstream", "kep", NULL};

static const struct option_spec specs[] = {
	CLI_TEXT("pod", 0, pod, "FILE",
		 "The pod to place, or a Deployment, StatefulSet, DaemonSet, Job, CronJob or "
		 "ReplicaSet for the pod of its template, in YAML or JSON; \"-\" reads standard "
		 "input. Without it a pod that requests nothing."),
	CLI_OPTION("plugin", 'p', OPTION_LIST, plugins, "NAME[:ARGS]", NULL, plugin_words,
		   "Score by this plugin. ARGS are its arguments by upstream's "
		   "names, as ARGUMENT=VALUE,.. or as an object {..} in JSON or YAML. Without it "
		   "those of --blend, else TargetLoadPacking, LoadVariationRiskBalancing and "
		   "LimitAware."),
	CLI_TEXT("blend", 0, blend, "PLUGIN=N,..",
		 "Weights of the plugins in the score, such as TargetLoadPacking=3,LimitAware=1."),
	CLI_OPTION("variant", 0, OPTION_STRING, variant, "NAME", NULL, variant_words,
		   "Rules: corrected (the server's default), upstream, or kep."),
	CLI_FLAG("explain", 0, explain, "Print every input and term."),
	CLI_CHOICE("sort-by", 0, sort, NULL, "score", sort_keys, "Order of the nodes."),
	{0},
};

/* --- plugins ---------------------------------------------------------------------------------- */

enum { DEPTH_MAX = 16, BYTES_MAX = 1 << 20 };

static int fail(const char *option, struct error *reason)
{
	return error_fail(
		reason, -EINVAL,
		"--plugin: \"%.200s\" is not of the form NAME, NAME:ARGUMENT=VALUE,.. or NAME:{..}",
		option);
}

/* The one value that a YAML text is, or NULL with the reason. */
static cJSON *parse_yaml(const char *text, struct error *reason)
{
	const struct yaml_json_limits limits = {DEPTH_MAX, BYTES_MAX};
	struct error error = {"x: it is not one value"};
	struct buf json = BUF_INIT;
	size_t documents = 0;
	cJSON *value = NULL;

	if (yaml_json_convert("x", text, strlen(text), &limits, &json, &documents, &error) == 0 &&
	    documents == 1)
		value = cJSON_ParseWithLength(json.data, json.len);
	if (!value) /* in one line the number of the line is nothing to know */
		error_set(reason, "--plugin: \"%.200s\": %s", text, strchr(error.text, ' ') + 1);
	buf_fini(&json);
	return value;
}

/*
 * The object below which the last part of a dotted name belongs; NULL: a part is a value already.
 */
static cJSON *enter(cJSON *object, char **name)
{
	char *dot;

	while ((dot = strchr(*name, '.'))) {
		cJSON *inner;

		*dot = '\0';
		inner = cJSON_GetObjectItemCaseSensitive(object, *name);
		if (!inner)
			inner = cJSON_AddObjectToObject(object, *name);
		if (!cJSON_IsObject(inner))
			return NULL;
		object = inner;
		*name = dot + 1;
	}
	return object;
}

/* ARGUMENT=VALUE; text is overwritten. */
static int add_argument(cJSON *args, const char *option, char *text, struct error *reason)
{
	char *equals = strchr(text, '='), *name = text;
	cJSON *object, *value;

	if (!equals || equals == text || !equals[1])
		return fail(option, reason);
	*equals = '\0';
	object = enter(args, &name);
	if (!object || !*name)
		return fail(option, reason);
	if (cJSON_GetObjectItemCaseSensitive(object, name))
		return error_fail(reason, -EINVAL, "--plugin: %s is given twice in \"%.200s\"",
				  text, option);
	value = parse_yaml(equals + 1, reason);
	if (!value)
		return -EINVAL;
	cJSON_AddItemToObject(object, name, value);
	return 0;
}

static cJSON *parse_short(const char *option, const char *text, struct error *reason)
{
	char *copy = mem_strdup(text), *at = copy, *part;
	cJSON *args = cJSON_CreateObject();
	int rc = 0;

	while (!rc && (part = strsep(&at, ",")))
		rc = add_argument(args, option, part, reason);
	free(copy);
	if (!rc)
		return args;
	cJSON_Delete(args);
	return NULL;
}

/* One option; a plugin without arguments has no member in args. */
static int add_plugin(cJSON *names, cJSON *args, const char *option, struct error *reason)
{
	size_t len = strcspn(option, ":");
	const char *text = option + len + 1;
	cJSON *own = NULL;
	char *name;

	if (!len)
		return fail(option, reason);
	if (option[len]) {
		own = *text == '{' ? parse_yaml(text, reason) : parse_short(option, text, reason);
		if (!own)
			return -EINVAL;
	}
	name = mem_strndup(option, len);
	cJSON_AddItemToArray(names, cJSON_CreateString(name));
	cJSON_AddItemToObject(args, name, own);
	free(name);
	return 0;
}

int plugin_option_add(const struct option_list *plugins, cJSON *request, struct error *reason)
{
	cJSON *names, *args;
	int rc = 0;

	if (!plugins->count)
		return 0;
	names = cJSON_AddArrayToObject(request, "plugins");
	args = cJSON_CreateObject();
	for (size_t i = 0; i < plugins->count && !rc; i++)
		rc = add_plugin(names, args, plugins->items[i], reason);
	if (args->child)
		cJSON_AddItemToObject(request, "args", args);
	else
		cJSON_Delete(args);
	return rc;
}

/* --- the request ------------------------------------------------------------------------------ */

/* A number above 0, as JSON writes it. */
static bool is_weight(const char *text)
{
	size_t digits = strspn(text, "0123456789"), len = digits;

	if (text[len] == '.')
		len += 1 + strspn(text + len + 1, "0123456789");
	return digits > 0 && text[len - 1] != '.' && !(digits > 1 && text[0] == '0') &&
	       !text[len] && strtod(text, NULL) > 0;
}

/* PLUGIN=N,..; weights stay as they are written. */
static int add_blend(cJSON *request, const char *text, struct error *reason)
{
	cJSON *blend = cJSON_AddObjectToObject(request, "blend");
	char *copy = mem_strdup(text), *at = copy, *part;
	int rc = 0;

	while (!rc && (part = strsep(&at, ","))) {
		char *equals = strchr(part, '=');

		if (!equals || equals == part || !is_weight(equals + 1)) {
			rc = error_fail(
				reason, -EINVAL,
				"--blend: \"%.200s\" is not of the form PLUGIN=N with N above 0",
				part);
			continue;
		}
		*equals = '\0';
		cJSON_AddRawToObject(blend, part, equals + 1);
	}
	free(copy);
	return rc;
}

cJSON *scores_request(const struct cli *cli, const char *pod, struct error *reason)
{
	const struct cli_options *o = cli->options;
	cJSON *request = cJSON_CreateObject();

	cJSON_AddRawToObject(request, "pod", pod);
	if (cli->operand_count)
		cJSON_AddItemToObject(request, "nodes",
				      cJSON_CreateStringArray((const char *const *)cli->operands,
							      (int)cli->operand_count));
	if (plugin_option_add(&o->plugins, request, reason) ||
	    (o->blend && add_blend(request, o->blend, reason))) {
		cJSON_Delete(request);
		return NULL;
	}
	if (o->variant)
		cJSON_AddStringToObject(request, "variant", o->variant);
	if (o->explain || (o->pod && *o->pod))
		cJSON_AddTrueToObject(request, o->explain ? "explain" : "fits");
	return request;
}

/* --- the command ------------------------------------------------------------------------------ */

static int run(struct cli *cli)
{
	const char *file = cli->options->pod;
	struct buf pod = BUF_INIT;
	cJSON *request;
	int code = answer_check_pod(cli);

	if (code)
		return code;
	buf_add_str(&pod, "{\"spec\":{\"containers\":[]}}");
	if (file && file[0]) {
		buf_clear(&pod);
		code = pod_file_read(file, &pod, &cli->reason) ? CLI_ERROR : CLI_OK;
	}
	request = code ? NULL : scores_request(cli, pod.data, &cli->reason);
	if (request)
		code = answer_post(cli, &scores_answer, "/v1/scores", request);
	else if (!code)
		code = CLI_USAGE;
	buf_fini(&pod);
	return code;
}

#define HEADING(id, name, heading, ...) " " heading " (" name ")"
#define HEADINGS			SCORE_PLUGIN_ROWS(HEADING)

const struct command command_scores = {
	.name = "scores",
	.usage = "[NODE..]",
	.summary = "Show the score of each node for a pod, and its terms",
	.details = "Scores nodes for a pod from 0 to 100, best first, by each plugin and blended. "
		   "Columns by plugin:" HEADINGS ". Arguments look like --plugin "
		   "TargetLoadPacking:targetUtilization=50,defaultRequestsMultiplier=2, with a dot "
		   "for what is nested (defaultRequests.cpu=500m), or like --plugin "
		   "'NodeResourcesAllocatable:{mode: Most, resources: [{name: cpu, weight: 1}]}'. "
		   "LimitAware's resources are cpu, memory, ephemeral-storage, hugepages-SIZE and "
		   "extended ones; its init: ignore leaves init containers out. -o wide and "
		   "--explain name the first filter that refuses. Exits 3 if the pod does not fit "
		   "on a node that is named.",
	.examples = {{"evenkeel scores --pod web.yaml",
		      "The best node for a pod, or for a pod of a Deployment."},
		     {"evenkeel scores --pod web.yaml --explain node-7",
		      "Every term of the score of one node."},
		     {"evenkeel scores --pod web.yaml --snapshot dump.json --usage watcher.json",
		      "The same from files, without a server."}},
	.terms = {"RUNG", "blend", "FITS", "late", "expired", "variant"},
	.specs = specs,
	.names = "NODE",
	.lists = true,
	.run = run,
};
