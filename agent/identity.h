/* SPDX-License-Identifier: Apache-2.0 */
/* The identity of a cgroup, from its path: pod, container, QoS class and runtime. Pure. */
#pragma once

#include "shared/interval.h"

enum cgroup_level {
	LEVEL_NONE, /* not of Kubernetes */
	LEVEL_ROOT, /* "/" */
	LEVEL_KUBEPODS, /* the root of all pods */
	LEVEL_QOS, /* kubepods' burstable or besteffort child */
	LEVEL_POD,
	LEVEL_POD_SUB, /* below a pod but no container */
	LEVEL_CONTAINER,
	LEVEL_CONTAINER_SUB, /* below a container: counted once, with it */
	LEVEL_HELPER, /* crio-conmon, libpod-conmon, kata_overhead and all below it */
};

struct identity {
	enum cgroup_level level;
	enum qos_class qos;
	enum container_runtime runtime; /* RUNTIME_UNKNOWN also if the path does not tell */
	char pod_uid[POD_UID_LEN + 1]; /* with dashes; "" where there is none */
	char container_id[CONTAINER_ID_LEN + 1];
};

/* path: below the hierarchy's mount, with the leading slash. */
void identity_parse(const char *path, struct identity *identity);
