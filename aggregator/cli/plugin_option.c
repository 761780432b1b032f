/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/cli/plugin_option.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"
#include "shared/yaml_json.h"

enum { DEPTH_MAX = 16, BYTES_MAX = 1 << 20 };

static int fail(const char *option, struct reason *reason)
{
	reason_set(
		reason,
		"--plugin: \"%.200s\" is not of the form NAME, NAME:ARGUMENT=VALUE,.. or NAME:{..}",
		option);
	return -EINVAL;
}

/* The one value that a YAML text is, or NULL with the reason. */
static cJSON *parse_yaml(const char *text, struct reason *reason)
{
	const struct yaml_json_limits limits = {DEPTH_MAX, BYTES_MAX};
	struct reason why = {"x: it is not one value"};
	struct buf json = BUF_INIT;
	size_t documents = 0;
	cJSON *value = NULL;

	if (yaml_json_convert("x", text, strlen(text), &limits, &json, &documents, &why) == 0 &&
	    documents == 1)
		value = cJSON_ParseWithLength(json.data, json.len);
	if (!value) /* in one line the number of the line is nothing to know */
		reason_set(reason, "--plugin: \"%.200s\": %s", text, strchr(why.text, ' ') + 1);
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
static int add_argument(cJSON *args, const char *option, char *text, struct reason *reason)
{
	char *equals = strchr(text, '='), *name = text;
	cJSON *object, *value;

	if (!equals || equals == text || !equals[1])
		return fail(option, reason);
	*equals = '\0';
	object = enter(args, &name);
	if (!object || !*name)
		return fail(option, reason);
	if (cJSON_GetObjectItemCaseSensitive(object, name)) {
		reason_set(reason, "--plugin: %s is given twice in \"%.200s\"", text, option);
		return -EINVAL;
	}
	value = parse_yaml(equals + 1, reason);
	if (!value)
		return -EINVAL;
	cJSON_AddItemToObject(object, name, value);
	return 0;
}

static cJSON *parse_short(const char *option, const char *text, struct reason *reason)
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

static cJSON *parse_args(const char *option, const char *text, struct reason *reason)
{
	cJSON *args;

	if (*text != '{')
		return parse_short(option, text, reason);
	args = parse_yaml(text, reason);
	if (args && !cJSON_IsObject(args)) {
		cJSON_Delete(args);
		fail(option, reason);
		return NULL;
	}
	return args;
}

/* Adds the arguments of one option, if it has any. */
static int add_args(cJSON *all, const char *option, struct reason *reason)
{
	size_t len = strcspn(option, ":");
	char *name;
	cJSON *args;

	if (!len)
		return fail(option, reason);
	if (!option[len])
		return 0;
	args = parse_args(option, option + len + 1, reason);
	if (!args)
		return -EINVAL;
	name = mem_strndup(option, len);
	cJSON_AddItemToObject(all, name, args);
	free(name);
	return 0;
}

static void write_names(const struct option_list *plugins, struct jsonw *w)
{
	jsonw_key(w, "plugins");
	jsonw_array_open(w);
	for (size_t i = 0; i < plugins->count; i++) {
		const char *option = plugins->items[i];
		char *name = mem_strndup(option, strcspn(option, ":"));

		jsonw_string(w, name);
		free(name);
	}
	jsonw_array_close(w);
}

int plugin_option_write(const struct option_list *plugins, struct jsonw *w, struct reason *reason)
{
	cJSON *all;
	char *text;
	int rc = 0;

	if (!plugins->count)
		return 0;
	all = cJSON_CreateObject();
	for (size_t i = 0; i < plugins->count && !rc; i++)
		rc = add_args(all, plugins->items[i], reason);
	if (!rc) {
		write_names(plugins, w);
		if (all->child) {
			text = cJSON_PrintUnformatted(all);
			jsonw_key(w, "args");
			buf_add_str(w->out, text);
			w->comma = true;
			cJSON_free(text);
		}
	}
	cJSON_Delete(all);
	return rc;
}
