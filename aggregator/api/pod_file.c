/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON goes to the server as it is, once it parses; anything else is YAML (shared/yaml_json.h). Of
 * what makes pods the pod is its template, with the namespace of the object, and the object for its
 * controller, by which the server finds what such pods use.
 */
#include "aggregator/api/pod_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/document.h"
#include "shared/mem.h"
#include "shared/yaml_json.h"

enum { FILE_MAX = 1 << 20, JSON_MAX = 4 << 20, DEPTH_MAX = 64 };

static int convert_yaml(const char *name, const char *text, size_t len, struct buf *json,
			struct error *error)
{
	const struct yaml_json_limits limits = {DEPTH_MAX, JSON_MAX};
	size_t documents, before = json->len;

	if (yaml_json_convert(name, text, len, &limits, json, &documents, error))
		return -EINVAL;
	if (documents == 1 && json->data[before] == '{') {
		json->data[--json->len] = '\0'; /* the newline */
		return 0;
	}
	json->len = before;
	return error_fail(error, -EINVAL,
			  documents > 1 ? "%s: holds several documents; give one pod"
					: "%s: holds no pod",
			  name);
}

/* --- what makes pods */

static const struct {
	const char *kind, *template;
} makers[] = {
	{"Deployment", "spec.template"},
	{"ReplicaSet", "spec.template"},
	{"StatefulSet", "spec.template"},
	{"DaemonSet", "spec.template"},
	{"Job", "spec.template"},
	{"ReplicationController", "spec.template"},
	{"CronJob", "spec.jobTemplate.spec.template"},
};

static void copy_member(cJSON *to, const char *name, const cJSON *from)
{
	const cJSON *value = document_at(from, name);

	if (value && !cJSON_HasObjectItem(to, name))
		cJSON_AddItemToObject(to, name, cJSON_Duplicate(value, true));
}

static cJSON *make_pod(const cJSON *maker, const char *kind, const cJSON *template)
{
	cJSON *pod = cJSON_CreateObject(), *metadata;
	cJSON *owner, *list;

	copy_member(pod, "metadata", template);
	copy_member(pod, "spec", template);
	metadata = cJSON_GetObjectItem(pod, "metadata");
	if (!cJSON_IsObject(metadata)) {
		cJSON_DeleteItemFromObject(pod, "metadata");
		metadata = cJSON_AddObjectToObject(pod, "metadata");
	}
	copy_member(metadata, "namespace", document_at(maker, "metadata"));
	owner = cJSON_CreateObject();
	list = cJSON_AddArrayToObject(metadata, "ownerReferences");
	cJSON_AddStringToObject(owner, "kind", kind);
	cJSON_AddStringToObject(owner, "name", document_text_or(maker, "metadata.name", ""));
	cJSON_AddStringToObject(owner, "uid", document_text_or(maker, "metadata.uid", ""));
	cJSON_AddTrueToObject(owner, "controller");
	cJSON_AddItemToArray(list, owner);
	return pod;
}

/* *json, from `before` on, is an object, and becomes a pod; what names no kind is one. */
static int take_template(const char *name, struct buf *json, size_t before, struct error *error)
{
	cJSON *doc = cJSON_ParseWithLength(json->data + before, json->len - before), *pod;
	const char *kind = document_text_or(doc, "kind", "Pod");
	const size_t count = sizeof(makers) / sizeof(makers[0]);
	const cJSON *template = NULL;
	int rc = 0;
	char *text;
	size_t i = 0;

	while (i < count && strcmp(makers[i].kind, kind) != 0)
		i++;
	if (i < count)
		template = document_at(doc, makers[i].template);
	if (cJSON_IsObject(template)) {
		pod = make_pod(doc, kind, template);
		text = cJSON_PrintUnformatted(pod);
		json->len = before;
		buf_add_str(json, text);
		cJSON_free(text);
		cJSON_Delete(pod);
	} else if (i < count) {
		rc = error_fail(error, -EINVAL, "%s: the %s has no %s", name, kind,
				makers[i].template);
	} else if (strcmp(kind, "Pod") != 0) {
		/* Kinds are of letters; lines and escapes of others do not get into the error. */
		int letters =
			(int)strspn(kind, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");

		rc = error_fail(error, -EINVAL,
				"%s: a %.*s makes no pods; give a Pod, or what has its template",
				name, letters < 63 ? letters : 63, kind);
	}
	cJSON_Delete(doc);
	return rc;
}

static const char *skip_blanks(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n'))
		p++;
	return p;
}

static int convert(const char *name, const char *text, size_t len, struct buf *json,
		   struct error *error)
{
	const char *begin = skip_blanks(text, text + len);

	if (begin < text + len && *begin == '{') {
		const char *end = NULL;
		cJSON *doc = cJSON_ParseWithLengthOpts(text, len, &end, false);
		bool whole = doc && skip_blanks(end, text + len) == text + len;

		cJSON_Delete(doc);
		if (whole) {
			buf_add(json, text, (size_t)(end - text));
			return 0;
		}
	}
	return convert_yaml(name, text, len, json, error);
}

int pod_file_convert(const char *name, const char *text, size_t len, struct buf *json,
		     struct error *error)
{
	size_t before = json->len;
	int rc = convert(name, text, len, json, error);

	if (rc == 0)
		rc = take_template(name, json, before, error);
	if (rc)
		json->len = before;
	return rc;
}

int pod_file_replace(cJSON *object, struct error *error)
{
	const cJSON *pod = cJSON_GetObjectItemCaseSensitive(object, "pod");
	struct buf json = BUF_INIT;
	int rc;

	if (!cJSON_IsString(pod))
		return 0;
	rc = pod_file_convert("manifest", pod->valuestring, strlen(pod->valuestring), &json, error);
	if (rc == 0)
		cJSON_ReplaceItemInObjectCaseSensitive(object, "pod",
						       cJSON_ParseWithLength(json.data, json.len));
	buf_fini(&json);
	return rc;
}

int pod_file_read(const char *path, struct buf *json, struct error *error)
{
	bool standard = strcmp(path, "-") == 0;
	FILE *file = standard ? stdin : fopen(path, "re");
	char *text;
	size_t len;
	int rc;

	if (!file)
		return error_fail(error, -EINVAL, "--pod: cannot read %s: %s", path,
				  strerror(errno));
	text = mem_alloc(FILE_MAX + 1);
	len = fread(text, 1, FILE_MAX + 1, file);
	if (ferror(file))
		rc = error_fail(error, -EINVAL, "--pod: cannot read %s: %s", path, strerror(errno));
	else if (len > FILE_MAX)
		rc = error_fail(error, -EINVAL, "--pod: %s is larger than 1 MiB", path);
	else
		rc = pod_file_convert(standard ? "standard input" : path, text, len, json, error);
	free(text);
	if (!standard)
		fclose(file);
	return rc;
}
