/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of cgroup_paths: a cgroup's path in, its identity out. */
#include <string.h>

#include "agent/identity.h"
#include "tests/cgroup_level.h"
#include "tests/conformance/values.h"

static bool same(const cJSON *expect, const char *key, const char *got, struct error *error)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(expect, key);
	const char *want = cJSON_GetStringValue(item);

	if (item && (want ? got && strcmp(want, got) == 0 : cJSON_IsNull(item) && !got))
		return true;
	values_fail(error, "%s is %s, expected %s", key, got ? got : "null",
		    !item  ? "nothing"
		    : want ? want
			   : "null");
	return false;
}

static const char *qos_name(enum qos_class qos)
{
	static const char *const names[] = {
		[QOS_UNKNOWN] = NULL,
		[QOS_GUARANTEED] = "guaranteed",
		[QOS_BURSTABLE] = "burstable",
		[QOS_BEST_EFFORT] = "besteffort",
	};

	return names[qos];
}

/*
 * A container always has a runtime, even if its path does not say which; what is none has none. Of
 * a helper it is known that some runtime made it: null and "unknown" say the same there.
 */
static const char *runtime_name(const struct identity *id, const cJSON *expect)
{
	static const char *const names[] = {
		[RUNTIME_UNKNOWN] = "unknown", [RUNTIME_CONTAINERD] = "containerd",
		[RUNTIME_CRIO] = "cri-o",      [RUNTIME_DOCKER] = "docker",
		[RUNTIME_PODMAN] = "podman",
	};
	bool container = id->level == LEVEL_CONTAINER || id->level == LEVEL_CONTAINER_SUB ||
			 (id->level == LEVEL_HELPER && values_get(expect, "runtime"));

	return id->runtime == RUNTIME_UNKNOWN && !container ? NULL : names[id->runtime];
}

enum outcome run_cgroup_path(const cJSON *c, struct error *error)
{
	static const char *const keys[] = {"level", "podUID",  "containerID",
					   "qos",   "runtime", NULL};
	const char *path = cJSON_GetStringValue(values_get(c, "path"));
	const cJSON *expect = values_get(c, "expect");
	struct identity id;

	if (!path || !cJSON_IsObject(expect) || !values_only(expect, keys, error))
		return values_fail(error, "a case must have a path and expect an identity");
	identity_parse(path, &id);
	return same(expect, "level", cgroup_level_name(id.level), error) &&
			       same(expect, "podUID", id.pod_uid[0] ? id.pod_uid : NULL, error) &&
			       same(expect, "containerID",
				    id.container_id[0] ? id.container_id : NULL, error) &&
			       same(expect, "qos", qos_name(id.qos), error) &&
			       same(expect, "runtime", runtime_name(&id, expect), error)
		       ? PASSED
		       : FAILED;
}
