/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of requests in JSON: their members, names of nodes, and the pod they ask about. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "aggregator/api/route.h"
#include "aggregator/model/model.h"
#include "aggregator/model/object.h"
#include "aggregator/model/object_json.h"
#include "aggregator/state/view.h"
#include "shared/jsonw.h"

static inline cJSON *request_member(const cJSON *object, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(object, name);
}

static inline bool request_lacks(const cJSON *member)
{
	return !member || cJSON_IsNull(member);
}

/* Sets both, or where why is NULL the field alone: the reason is there already. -EINVAL. */
int request_fail(const struct object_fault *e, const char *why, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* An object whose members are all in the list, for the caller to delete; NULL: *rs says why not. */
cJSON *request_parse(const struct api_request *rq, const struct api_field *members,
		     struct api_response *rs);

/*
 * Whether the parsed body has the types that the list says, each member once and all that are
 * required; texts are free of controls and at most REQUEST_TEXT_MAX bytes long. False: *rs names
 * the wrong member ("nodes[3].phase").
 */
enum { REQUEST_TEXT_MAX = 2048, REQUEST_LIST_MAX = 5000 };
bool request_check(const cJSON *tree, const struct api_field *members, struct api_response *rs);

/* --- the member "nodes": names of the nodes that an answer is to list */

/* Whether it is a list of names. */
void request_nodes_check(const struct object_json *list);
/*
 * Which of the view's nodes are asked for, by their places, in *chosen, the caller's to free; NULL
 * for all, where the list is NULL. It has passed request_nodes_check(). False: the view does not
 * have one, and *rs has the failure.
 */
bool request_nodes_choose(const cJSON *list, const struct view *v, bool **chosen,
			  enum api_failure failure, struct api_response *rs);

/* --- {"pod":POD, ..}: the pod is a manifest, or a pod as the API tells it */

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
 * The class of that name, of the cluster (NULL: none is known) or built in; name "": the global
 * default. NULL: there is none. Borrowed from c, or static.
 */
const struct kube_priority_class *request_priority_class(const struct cluster *c, const char *name);
/*
 * A member of the body that must be a string where it is there; *out is NULL where it is not.
 * False: *rs says so.
 */
bool pod_body_string(const struct pod_body *body, const char *name, const char **out,
		     struct api_response *rs);

/*
 * --- pod_manifest.c: the pod of a request, a manifest or a pod as the Kubernetes API tells it, as
 * one that is still to be placed
 */

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
