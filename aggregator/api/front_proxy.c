/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The members of the ConfigMap are texts; those of lists hold JSON: "[\"X-Remote-User\"]". Names of
 * headers compare without case. As in an API server's own reader the first header with a value
 * names the user, every value of the group headers is a group, and the rest of an extra header's
 * name is a key, in lower case and percent-encoded.
 */
#include "aggregator/api/front_proxy.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "shared/array.h"
#include "shared/document.h"
#include "shared/mem.h"

enum { CA_MOST = 256 << 10, LIST_MOST = 64, ITEM_MOST = 256 };

#define MEMBER(name) "requestheader-" name

static const char *const members[FRONT_PROXY_LISTS] = {
	[FRONT_PROXY_NAMES] = MEMBER("allowed-names"),
	[FRONT_PROXY_USERS] = MEMBER("username-headers"),
	[FRONT_PROXY_UIDS] = MEMBER("uid-headers"),
	[FRONT_PROXY_GROUPS] = MEMBER("group-headers"),
	[FRONT_PROXY_EXTRAS] = MEMBER("extra-headers-prefix"),
};

/* --- the ConfigMap ---------------------------------------------------------------------------- */

/* An absent member is an empty list. */
static int take_list(struct front_proxy *p, enum front_proxy_list which, const char *text,
		     struct error *error)
{
	cJSON *list = text ? cJSON_Parse(text) : NULL;
	const cJSON *item;
	size_t count = 0;
	bool good = !text || (cJSON_IsArray(list) && cJSON_GetArraySize(list) <= LIST_MOST);

	p->lists[which] = mem_zalloc(LIST_MOST + 1, sizeof(char *));
	cJSON_ArrayForEach (item, list) {
		const char *name = cJSON_GetStringValue(item);

		good = good && name && *name && strlen(name) <= ITEM_MOST;
		if (good)
			p->lists[which][count++] = mem_strdup(name);
	}
	cJSON_Delete(list);
	if (!good)
		error_set(error, "%s is not a JSON list of at most %d names", members[which],
			  LIST_MOST);
	return good ? 0 : -EINVAL;
}

static int take_members(struct front_proxy *p, const cJSON *data, struct error *error)
{
	const char *ca = document_text(data, MEMBER("client-ca-file"));
	int rc = 0;

	if (!ca || !*ca)
		return error_fail(
			error, -ENOENT,
			"the API server has no front proxy (--requestheader-client-ca-file)");
	if (strlen(ca) > CA_MOST)
		return error_fail(error, -EINVAL, "%s is larger than %d bytes",
				  MEMBER("client-ca-file"), CA_MOST);
	p->client_ca = mem_strdup(ca);
	for (int i = 0; i < FRONT_PROXY_LISTS && !rc; i++)
		rc = take_list(p, (enum front_proxy_list)i, document_text(data, members[i]), error);
	return rc;
}

int front_proxy_read(struct front_proxy **out, const char *json, size_t len, struct error *error)
{
	cJSON *map = cJSON_ParseWithLength(json, len);
	struct front_proxy *p = mem_zalloc(1, sizeof(*p));
	int rc = -EINVAL;

	if (cJSON_IsObject(map))
		rc = take_members(p, document_at(map, "data"), error);
	else
		error_set(error, "the answer is no ConfigMap");
	cJSON_Delete(map);
	if (rc)
		front_proxy_free(p);
	else
		*out = p;
	return rc;
}

void front_proxy_free(struct front_proxy *p)
{
	if (!p)
		return;
	for (int i = 0; i < FRONT_PROXY_LISTS; i++) {
		for (char **item = p->lists[i]; item && *item; item++)
			free(*item);
		free(p->lists[i]);
	}
	free(p->client_ca);
	free(p);
}

bool front_proxy_allows(const struct front_proxy *p, const char *name)
{
	const char *const *names = (const char *const *)p->lists[FRONT_PROXY_NAMES];

	return !*names || array_has_text(names, name);
}

/* --- headers ---------------------------------------------------------------------------------- */

/* The first value that is not empty, of the first such header of the list; NULL: none. */
static const char *first_value(char *const *names, const struct front_proxy_header *headers,
			       size_t count)
{
	for (; *names; names++)
		for (size_t i = 0; i < count; i++)
			if (strcasecmp(headers[i].name, *names) == 0 && headers[i].value[0])
				return headers[i].value;
	return NULL;
}

#define AUTHENTICATED "system:authenticated"

/* As an API server does: users that are not anonymous are in the group of all authenticated ones. */
static void add_groups(cJSON *user, char *const *names, const struct front_proxy_header *headers,
		       size_t count)
{
	const char *name = cJSON_GetObjectItemCaseSensitive(user, "username")->valuestring;
	bool complete = strcmp(name, "system:anonymous") == 0;
	cJSON *groups = cJSON_AddArrayToObject(user, "groups");

	for (; *names; names++) {
		for (size_t i = 0; i < count; i++) {
			if (strcasecmp(headers[i].name, *names) != 0)
				continue;
			complete = complete || strcmp(headers[i].value, AUTHENTICATED) == 0 ||
				   strcmp(headers[i].value, "system:unauthenticated") == 0;
			cJSON_AddItemToArray(groups, cJSON_CreateString(headers[i].value));
		}
	}
	if (!complete)
		cJSON_AddItemToArray(groups, cJSON_CreateString(AUTHENTICATED));
}

static int hex_digit(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
}

/* In place. "%00" stays as it is: no text could hold it. */
static void decode_key(char *key)
{
	char *to = key;

	for (const char *at = key; *at; at++) {
		bool coded = at[0] == '%' && isxdigit((unsigned char)at[1]) &&
			     isxdigit((unsigned char)at[2]) && (at[1] != '0' || at[2] != '0');

		*to++ = coded ? (char)(hex_digit(at[1]) * 16 + hex_digit(at[2]))
			      : (char)tolower((unsigned char)*at);
		at += coded ? 2 : 0;
	}
	*to = '\0';
}

static void add_extra(cJSON *extra, const char *rest, const char *value)
{
	char *key = mem_strdup(rest);
	cJSON *values;

	decode_key(key);
	values = cJSON_GetObjectItemCaseSensitive(extra, key);
	if (!values)
		values = cJSON_AddArrayToObject(extra, key);
	cJSON_AddItemToArray(values, cJSON_CreateString(value));
	free(key);
}

static void add_extras(cJSON *user, char *const *prefixes, const struct front_proxy_header *headers,
		       size_t count)
{
	cJSON *extra = cJSON_AddObjectToObject(user, "extra");

	for (; *prefixes; prefixes++) {
		size_t len = strlen(*prefixes);

		for (size_t i = 0; i < count; i++)
			if (strncasecmp(headers[i].name, *prefixes, len) == 0)
				add_extra(extra, headers[i].name + len, headers[i].value);
	}
}

char *front_proxy_user(const struct front_proxy *p, const struct front_proxy_header *headers,
		       size_t count)
{
	const char *name = first_value(p->lists[FRONT_PROXY_USERS], headers, count);
	const char *uid = first_value(p->lists[FRONT_PROXY_UIDS], headers, count);
	cJSON *user;
	char *text;

	if (!name)
		return NULL;
	user = cJSON_CreateObject();
	cJSON_AddStringToObject(user, "username", name);
	if (uid)
		cJSON_AddStringToObject(user, "uid", uid);
	add_groups(user, p->lists[FRONT_PROXY_GROUPS], headers, count);
	add_extras(user, p->lists[FRONT_PROXY_EXTRAS], headers, count);
	text = cJSON_PrintUnformatted(user);
	cJSON_Delete(user);
	return text;
}
