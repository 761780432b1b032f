/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bodies that ask something about one pod: {"pod":POD, ..}. The pod is a manifest, or a pod as the
 * API tells it.
 */
#ifndef EVENKEEL_AGGREGATOR_API_POD_BODY_H
#define EVENKEEL_AGGREGATOR_API_POD_BODY_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "aggregator/api/route.h"
#include "aggregator/model/model.h"
#include "aggregator/model/object.h"

struct pod_body {
	cJSON *tree; /* owned: the whole body */
	struct kube_pod *pod; /* held */
	bool never_preempts; /* by its preemptionPolicy, or that of its PriorityClass */
};

/*
 * Reads a body whose members are all in the list `members`, and its pod, as one that is still to be
 * placed: what a manifest may leave out is filled in as the API server would (the namespace, a
 * name, the priority of its class or of the global default), and what the pod has become is
 * forgotten (node, phase, deletion). A member "namespace" of the body is that of a pod that names
 * none, and must be no other. Classes are looked up in c; NULL: none is known. False: *rs says what
 * is wrong, and the field is its path ("pod.spec.priorityClassName").
 */
bool pod_body_read(const struct api_request *rq, const struct api_field *members,
		   const struct cluster *c, struct pod_body *body, struct api_response *rs);
void pod_body_fini(struct pod_body *body);
/*
 * A member of the body that must be a string where it is there; *out is NULL where it is not.
 * False: *rs says so.
 */
bool pod_body_string(const struct pod_body *body, const char *name, const char **out,
		     struct api_response *rs);

#endif
