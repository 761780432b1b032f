/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree of a pod is changed before it is read: what the API server would have filled in is filled
 * in there, so that one reader (pod_manifest_read) has all of the rules of a pod.
 */
#include "aggregator/api/request_body.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/pod_file.h"
#include "shared/document.h"
#include "shared/mem.h"

int request_fail(const struct object_fault *e, const char *why, const char *format, ...)
{
	MEM_FORMAT(e->field, e->field_max, format);
	if (why)
		error_set(e->error, "%s", why);
	return -EINVAL;
}

cJSON *request_parse(const struct api_request *rq, const struct api_field *members,
		     struct api_response *rs)
{
	struct error why = {""};
	cJSON *tree = NULL;

	if (strlen(rq->body) == rq->body_len)
		tree = cJSON_ParseWithLengthOpts(rq->body, rq->body_len + 1, NULL, true);
	if (!tree || !cJSON_IsObject(tree)) {
		api_fail(rs, FAIL_BAD_REQUEST, NULL, "the body must be a JSON object");
		cJSON_Delete(tree);
		return NULL;
	}
	for (const cJSON *item = tree->child; item; item = item->next) {
		const struct api_field *f = api_field_find(item->string, members);
		char *field;

		if (f && (!f->values || !cJSON_IsString(item) ||
			  api_field_check(f, item->valuestring, rs)))
			continue;
		field = mem_strndup(item->string, 64);
		if (!f)
			api_fail(rs, FAIL_BAD_REQUEST, field, "is not a member of this request");
		free(field);
		cJSON_Delete(tree);
		return NULL;
	}
	if (pod_file_replace(tree, &why)) {
		api_fail(rs, FAIL_BAD_REQUEST, "pod", "%s", why.text);
		cJSON_Delete(tree);
		return NULL;
	}
	return tree;
}

/* --- names of nodes */

void request_nodes_check(const struct object_json *list)
{
	if (!cJSON_IsArray(list->json))
		object_json_fail(list, NULL, "must be a list of node names");
	for (struct object_json item = object_json_begin(list); item.json; object_json_next(&item))
		if (!cJSON_IsString(item.json))
			object_json_fail(&item, NULL, "must be the name of a node");
}

bool request_nodes_choose(const cJSON *list, const struct view *v, bool **chosen,
			  enum api_failure failure, struct api_response *rs)
{
	bool *marks = list ? mem_zalloc(v->node_count + 1, sizeof(*marks)) : NULL;
	char field[32];
	size_t i = 0;

	for (const cJSON *item = list ? list->child : NULL; item; item = item->next, i++) {
		size_t place = view_index(v, item->valuestring);

		if (place < v->node_count) {
			marks[place] = true;
			continue;
		}
		snprintf(field, sizeof(field), "nodes[%zu]", i);
		free(marks);
		return api_fail(rs, failure, field, "there is no node \"%.253s\"",
				item->valuestring);
	}
	*chosen = marks;
	return true;
}

/* --- what a manifest may leave out: the namespace, and the priority of a class */

/* As kubectl's -n: for a pod that names none, and no other than the one it names. */
static bool apply_namespace(const cJSON *tree, cJSON *pod, struct api_response *rs)
{
	const cJSON *wanted = request_member(tree, "namespace");
	cJSON *metadata = request_member(pod, "metadata");
	const cJSON *own = request_member(metadata, "namespace");

	if (request_lacks(wanted))
		return true;
	if (!cJSON_IsString(wanted) || !*wanted->valuestring)
		return api_fail(rs, FAIL_BAD_REQUEST, "namespace",
				"must be the name of a namespace");
	if (cJSON_IsString(own) && strcmp(own->valuestring, wanted->valuestring) != 0)
		return api_fail(rs, FAIL_BAD_REQUEST, "namespace",
				"\"%.253s\" is not the pod's, which is \"%.253s\"",
				wanted->valuestring, own->valuestring);
	if (request_lacks(metadata)) {
		cJSON_DeleteItemFromObjectCaseSensitive(pod, "metadata");
		metadata = cJSON_AddObjectToObject(pod, "metadata");
	}
	pod_manifest_default(metadata, "namespace", wanted->valuestring);
	return true;
}

/* The two that every API server has, whether a dump of its classes is there or not. */
static const struct kube_priority_class *find_builtin(const char *name)
{
	static const struct kube_priority_class builtin[] = {
		{.object = {.name = "system-cluster-critical"},
		 .value = 2000000000,
		 .preempts = true},
		{.object = {.name = "system-node-critical"}, .value = 2000001000, .preempts = true},
	};

	for (size_t i = 0; i < sizeof(builtin) / sizeof(builtin[0]); i++)
		if (strcmp(builtin[i].object.name, name) == 0)
			return &builtin[i];
	return NULL;
}

/*
 * NULL: none is the default. Of several the one with the lowest value, as the API server takes it.
 */
static const struct kube_priority_class *find_default(const struct object_table *classes)
{
	const struct kube_priority_class *found = NULL;

	for (size_t i = 0; i < classes->count; i++) {
		const struct kube_priority_class *c =
			(const struct kube_priority_class *)classes->of[i];

		if (c->global_default && (!found || c->value < found->value))
			found = c;
	}
	return found;
}

const struct kube_priority_class *request_priority_class(const struct cluster *c, const char *name)
{
	const struct object *found = NULL;

	if (!*name)
		return c ? find_default(c->tables[OBJECT_PRIORITY_CLASS]) : NULL;
	if (c)
		found = cluster_find(c, OBJECT_PRIORITY_CLASS, "", name);
	return found ? (const struct kube_priority_class *)found : find_builtin(name);
}

/* False: the class that is named is none. */
static bool resolve_priority(cJSON *pod, const struct cluster *c, struct api_response *rs)
{
	const struct kube_priority_class *class = NULL;
	cJSON *spec = request_member(pod, "spec");
	const cJSON *name = request_member(spec, "priorityClassName");

	if (!cJSON_IsObject(spec) || !request_lacks(request_member(spec, "priority")))
		return true; /* the API server has filled it in */
	if (cJSON_IsString(name) && *name->valuestring) {
		class = request_priority_class(c, name->valuestring);
		if (!class)
			return api_fail(rs, FAIL_BAD_REQUEST, "pod.spec.priorityClassName",
					"there is no PriorityClass \"%.253s\"", name->valuestring);
	} else if (request_lacks(name)) {
		class = request_priority_class(c, "");
	}
	if (class) {
		cJSON_DeleteItemFromObjectCaseSensitive(spec, "priority");
		cJSON_AddNumberToObject(spec, "priority", class->value);
		if (!class->preempts)
			pod_manifest_default(spec, "preemptionPolicy", "Never");
	}
	return true;
}

/* --- bodies that ask about a pod */

static bool read_pod(struct pod_body *body, const struct cluster *c, struct api_response *rs)
{
	cJSON *pod = request_member(body->tree, "pod");
	char field[POD_MANIFEST_FIELD_MAX] = "";
	struct error why = {""};

	/* Members that are no objects are refused by pod_manifest_read(). */
	if (cJSON_IsObject(pod) &&
	    (!apply_namespace(body->tree, pod, rs) || !resolve_priority(pod, c, rs)))
		return false;
	if (pod_manifest_read(request_lacks(pod) ? NULL : pod, &body->pod, field, &why))
		return api_fail(rs, FAIL_BAD_REQUEST, field, "%s", why.text);
	body->never_preempts = document_is(pod, "spec.preemptionPolicy", "Never");
	return true;
}

bool pod_body_read(const struct api_request *rq, const struct api_field *members,
		   const struct cluster *c, struct pod_body *body, struct api_response *rs)
{
	*body = (struct pod_body){0};
	body->tree = request_parse(rq, members, rs);
	if (body->tree && read_pod(body, c, rs))
		return true;
	pod_body_fini(body);
	return false;
}

void pod_body_fini(struct pod_body *body)
{
	if (body->pod)
		object_drop(&body->pod->object);
	cJSON_Delete(body->tree);
	*body = (struct pod_body){0};
}

bool pod_body_string(const struct pod_body *body, const char *name, const char **out,
		     struct api_response *rs)
{
	const cJSON *item = request_member(body->tree, name);

	*out = NULL;
	if (!request_lacks(item) && !cJSON_IsString(item))
		return api_fail(rs, FAIL_BAD_REQUEST, name, "must be a string");
	if (cJSON_IsString(item))
		*out = item->valuestring;
	return true;
}
