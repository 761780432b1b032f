/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever path a client asks for: what RBAC is asked about and what answers are of one resource,
 * and a path of one namespace leads to pods alone. The text is a field selector as well.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/api_group.h"
#include "shared/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *path = mem_strndup((const char *)data, size), room[API_LOCAL_LEN];
	char namespace[ACCESS_RESOURCE_LEN], *remote;
	struct access_request q, again;
	const char *local;
	bool bad = false;

	api_access_request("GET", path, &q);
	local = api_group_local_path(path, room, namespace);
	assert(!q.group == !q.version && (q.group || !q.resource[0]));
	assert(!namespace[0] || strncmp(local, "/v1/pods", 8) == 0);
	assert(!namespace[0] || !q.name[0] ||
	       (strncmp(local + 9, namespace, strlen(namespace)) == 0 &&
		local[9 + strlen(namespace)] == '/'));
	if (local != path) {
		assert(strncmp(local, "/v1/", 4) == 0);
		assert(q.group && strcmp(q.group, API_GROUP) == 0);
		assert(strcmp(namespace, q.namespace) == 0);
		remote = api_group_remote_path(local);
		assert(remote);
		if (!strchr(local, '?')) {
			api_access_request("GET", remote, &again);
			assert(strcmp(again.resource, q.resource) == 0);
			/* A route of its own has no name in it. */
			assert(strcmp(again.name, q.name) == 0 ||
			       (q.subresource[0] && local != room));
		}
		free(remote);
	}
	metrics_fields_match(path, "a", "b", &bad);
	free(path);
	return 0;
}
