/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a cgroup path: the answer is always well-formed and its parts agree with each other.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/identity.h"
#include "shared/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int has_container(const struct identity *id)
{
	return id->level == LEVEL_CONTAINER || id->level == LEVEL_CONTAINER_SUB;
}

static void check(const struct identity *id)
{
	size_t uid = strnlen(id->pod_uid, sizeof(id->pod_uid));
	size_t container = strnlen(id->container_id, sizeof(id->container_id));

	assert(uid == 0 || uid == 32 || uid == POD_UID_LEN);
	assert(strspn(id->pod_uid, "0123456789abcdef-") == uid);
	assert(container == (has_container(id) ? CONTAINER_ID_LEN : 0));
	assert(strspn(id->container_id, "0123456789abcdef") == container);
	assert(id->level <= LEVEL_HELPER);
	if (id->level == LEVEL_POD || id->level == LEVEL_POD_SUB)
		assert(uid);
	if (uid)
		assert(id->qos != QOS_UNKNOWN && id->level != LEVEL_NONE &&
		       id->level != LEVEL_KUBEPODS && id->level != LEVEL_QOS);
	if (!has_container(id) && id->level != LEVEL_HELPER)
		assert(id->runtime == RUNTIME_UNKNOWN);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *path = mem_zalloc(size + 1, 1), *deeper = mem_alloc(size + 3);
	struct identity id, below;

	if (size)
		memcpy(path, data, size);
	identity_parse(path, &id);
	check(&id);

	/* One level deeper the workload is still the same. */
	snprintf(deeper, size + 3, "%s/x", path);
	identity_parse(deeper, &below);
	check(&below);
	if (has_container(&id) && !strstr(path, " (deleted)"))
		assert(below.level == LEVEL_CONTAINER_SUB &&
		       !strcmp(below.container_id, id.container_id));
	free(path);
	free(deeper);
	return 0;
}
