/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests and limits of a whole pod: the sums that the kube-scheduler, the quota plugin and its
 * status controller each make of containers, init containers, sidecars, overhead, the pod's own
 * resources and a resize. Pure.
 */
#pragma once

#include <cjson/cJSON.h>

#include "aggregator/model/resources.h"
#include "shared/error.h"

struct pod_sums {
	struct resources requests, limits;
	struct resources *running; /* limits without init containers; NULL: as limits */
	/* containers and sidecars without a limit, none at pod level */
	uint32_t unlimited_cpu, unlimited_mem, unlimited_storage;
	int64_t unlimited_storage_requests; /* ephemeral storage that the last ones request */
};

enum pod_sums_rule {
	POD_SUMS_SCHEDULER, /* kubernetes/component-helpers resource/helpers.go: all of it */
	POD_SUMS_QUOTA_UPSTREAM, /* the capacity plugin: no sidecars, no pod level */
	POD_SUMS_STATUS_UPSTREAM, /* its status controller: as that, but without overhead */
};

/*
 * Of the spec of a pod, and of its status where a resize was done or is under way (status may be
 * NULL). Requests that are absent where there is a limit become the limit, as the API server does.
 * -EINVAL: field (of OBJECT_FIELD_MAX) names the quantity.
 */
int pod_sums_read(const cJSON *spec, const cJSON *status, enum pod_sums_rule rule,
		  struct pod_sums *out, char *field, struct error *error);
bool pod_sums_equal(const struct pod_sums *a, const struct pod_sums *b);
void pod_sums_fini(struct pod_sums *s);
