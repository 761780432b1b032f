/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever the ConfigMap of the front proxy holds, and whatever headers a client sends: a user is
 * JSON with a name, and nobody is named without a header of the configured name. The input is the
 * ConfigMap up to the first newline, then lines "NAME: VALUE".
 */
#include <assert.h>
#include <cjson/cJSON.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/front_proxy.h"
#include "shared/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEADERS = 64 };

static size_t take_headers(char *text, struct front_proxy_header headers[HEADERS])
{
	size_t count = 0;
	char *rest = NULL;

	for (char *line = strtok_r(text, "\n", &rest); line && count < HEADERS;
	     line = strtok_r(NULL, "\n", &rest)) {
		char *colon = strstr(line, ": ");

		if (!colon)
			continue;
		*colon = '\0';
		headers[count++] = (struct front_proxy_header){line, colon + 2};
	}
	return count;
}

static void name_user(const struct front_proxy *p, char *text)
{
	struct front_proxy_header headers[HEADERS];
	size_t count = take_headers(text, headers);
	char *user = front_proxy_user(p, headers, count), *again;
	cJSON *json;

	assert(!user || (count && p->lists[FRONT_PROXY_USERS][0]));
	if (!user)
		return;
	again = front_proxy_user(p, headers, count);
	assert(strcmp(user, again) == 0);
	json = cJSON_Parse(user);
	assert(*cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "username")));
	cJSON_Delete(json);
	free(again);
	free(user);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = mem_strndup((const char *)data, size), *headers = strchr(text, '\n');
	size_t len = headers ? (size_t)(headers - text) : strlen(text);
	struct error why = {""};
	struct front_proxy *p = NULL;

	if (front_proxy_read(&p, text, len, &why)) {
		assert(!p && why.text[0]);
	} else {
		assert(p->client_ca[0]);
		front_proxy_allows(p, "front-proxy-client");
		if (headers)
			name_user(p, headers + 1);
	}
	front_proxy_free(p);
	free(text);
	return 0;
}
