/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pod of a request: a manifest, or a pod as the Kubernetes API tells it, as one that is still to
 * be placed.
 */
#pragma once

#include <cjson/cJSON.h>

#include "aggregator/model/object.h"
#include "shared/jsonw.h"

/* Sets a member that a manifest leaves out. One of another kind is refused when it is read. */
void pod_manifest_default(cJSON *object, const char *key, const char *value);
/*
 * The pod as one that is pending: what a manifest may leave out is filled in, what a pod has become
 * is forgotten; the tree is changed that way. One without a name gets one that no pod can have. 0
 * and a record for the caller to drop, or -EINVAL: field ("pod.spec.containers") is what is wrong,
 * or what nobody here can judge, and reason says why.
 */
enum { POD_MANIFEST_FIELD_MAX = OBJECT_FIELD_MAX + 8 };
int pod_manifest_read(cJSON *pod, struct kube_pod **out, char field[POD_MANIFEST_FIELD_MAX],
		      struct error *error);
/*
 * "warnings": a list of texts, where there are any: members of the spec that no known version of
 * Kubernetes has, and the group of the pod, which the answer does not take into account.
 */
void pod_manifest_write_warnings(const cJSON *pod, struct jsonw *w);
