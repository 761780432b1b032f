/* SPDX-License-Identifier: Apache-2.0 */
#include "shared/document.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "shared/clock.h"
#include "shared/timefmt.h"

enum { MEMBER_MAX = 64 };

const cJSON *document_at(const cJSON *root, const char *path)
{
	char name[MEMBER_MAX];

	while (root && *path) {
		size_t len = strcspn(path, ".");

		if (len >= sizeof(name))
			return NULL;
		memcpy(name, path, len);
		name[len] = '\0';
		root = cJSON_IsObject(root) ? cJSON_GetObjectItemCaseSensitive(root, name) : NULL;
		path += len + (path[len] == '.');
	}
	return root;
}

const char *document_text(const cJSON *root, const char *path)
{
	const cJSON *item = document_at(root, path);

	return cJSON_IsString(item) ? item->valuestring : NULL;
}

const char *document_text_or(const cJSON *root, const char *path, const char *other)
{
	const char *text = document_text(root, path);

	return text ? text : other;
}

double document_number(const cJSON *root, const char *path)
{
	const cJSON *item = document_at(root, path);

	return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

int64_t document_count(const cJSON *root, const char *path, double end, int64_t other)
{
	double number = document_number(root, path);

	return number >= 0 && number < end ? (int64_t)number : other;
}

cJSON *document_first(const cJSON *root, const char *path)
{
	const cJSON *list = document_at(root, path);

	return cJSON_IsArray(list) ? list->child : NULL;
}

bool document_is(const cJSON *root, const char *path, const char *text)
{
	const char *is = document_text(root, path);

	return is && strcmp(is, text) == 0;
}

bool document_is_true(const cJSON *root, const char *path)
{
	return cJSON_IsTrue(document_at(root, path));
}

const cJSON *document_find(const cJSON *root, const char *path, const char *member,
			   const char *text)
{
	const cJSON *item = text ? document_first(root, path) : NULL;

	while (item && !document_is(item, member, text))
		item = item->next;
	return item;
}

bool document_is_null(const cJSON *root, const char *path)
{
	return cJSON_IsNull(document_at(root, path));
}

double document_time(const cJSON *root, const char *path)
{
	const char *text = document_text(root, path);
	int64_t unix_ns;

	return text && timefmt_parse(text, &unix_ns, NULL) == 0 ? (double)unix_ns / NS_PER_SEC
								: NAN;
}

static const char *metadata_text(const cJSON *object, const char *path, const char *key)
{
	return cJSON_GetStringValue(
		cJSON_GetObjectItemCaseSensitive(document_at(object, path), key));
}

const char *document_label(const cJSON *object, const char *key)
{
	return metadata_text(object, "metadata.labels", key);
}

const char *document_annotation(const cJSON *object, const char *key)
{
	return metadata_text(object, "metadata.annotations", key);
}

const cJSON *document_controller(const cJSON *object)
{
	const cJSON *owner = document_first(object, "metadata.ownerReferences");

	while (owner && !document_is_true(owner, "controller"))
		owner = owner->next;
	return owner;
}

bool document_has_ended(const cJSON *pod)
{
	return document_is(pod, "status.phase", "Succeeded") ||
	       document_is(pod, "status.phase", "Failed");
}

bool document_has_condition(const cJSON *object, const char *type)
{
	return document_is(document_find(object, "status.conditions", "type", type), "status",
			   "True");
}
