/* SPDX-License-Identifier: Apache-2.0 */
/* Names of cgroup levels in vectors and messages of tests. */
#pragma once

#include "agent/identity.h"

static inline const char *cgroup_level_name(enum cgroup_level level)
{
	static const char *const names[] = {
		[LEVEL_NONE] = "none",
		[LEVEL_ROOT] = "root",
		[LEVEL_KUBEPODS] = "kubepods",
		[LEVEL_QOS] = "qos",
		[LEVEL_POD] = "pod",
		[LEVEL_POD_SUB] = "pod-sub",
		[LEVEL_CONTAINER] = "container",
		[LEVEL_CONTAINER_SUB] = "container-sub",
		[LEVEL_HELPER] = "helper",
	};

	return names[level];
}
