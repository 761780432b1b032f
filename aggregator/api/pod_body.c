/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree is changed before it is read: what the API server would have filled in is filled in
 * there, so that one reader (fit_pod_read) has all of the rules of a pod.
 */
#include "aggregator/api/pod_body.h"

#include <stdlib.h>
#include <string.h>

#include "aggregator/api/fit_ask.h"
#include "shared/mem.h"

static cJSON *member(const cJSON *object, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(object, name);
}

static bool is_absent(const cJSON *item)
{
	return !item || cJSON_IsNull(item);
}

/* --- what a manifest may leave out */

static void default_to(cJSON *object, const char *key, const char *value)
{
	if (!cJSON_IsObject(object) || !is_absent(member(object, key)))
		return; /* what is of another kind is refused when it is read */
	cJSON_DeleteItemFromObjectCaseSensitive(object, key);
	cJSON_AddStringToObject(object, key, value);
}

/* As kubectl's -n: for a pod that names none, and no other than the one it names. */
static bool apply_namespace(const cJSON *tree, cJSON *pod, struct api_response *rs)
{
	const cJSON *wanted = member(tree, "namespace");
	cJSON *metadata = member(pod, "metadata");
	const cJSON *own = member(metadata, "namespace");

	if (is_absent(wanted))
		return true;
	if (!cJSON_IsString(wanted) || !*wanted->valuestring) {
		api_fail(rs, FAIL_BAD_REQUEST, "namespace", "must be the name of a namespace");
		return false;
	}
	if (cJSON_IsString(own) && strcmp(own->valuestring, wanted->valuestring) != 0) {
		api_fail(rs, FAIL_BAD_REQUEST, "namespace",
			 "\"%.253s\" is not the pod's, which is \"%.253s\"", wanted->valuestring,
			 own->valuestring);
		return false;
	}
	if (is_absent(metadata)) {
		cJSON_DeleteItemFromObjectCaseSensitive(pod, "metadata");
		metadata = cJSON_AddObjectToObject(pod, "metadata");
	}
	default_to(metadata, "namespace", wanted->valuestring);
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

static void set_priority(cJSON *spec, const struct kube_priority_class *class)
{
	cJSON_DeleteItemFromObjectCaseSensitive(spec, "priority");
	cJSON_AddNumberToObject(spec, "priority", class->value);
	if (!class->preempts)
		default_to(spec, "preemptionPolicy", "Never");
}

/* False: the class that is named is none. */
static bool resolve_priority(cJSON *pod, const struct cluster *c, struct api_response *rs)
{
	const struct kube_priority_class *class = NULL;
	cJSON *spec = member(pod, "spec");
	const cJSON *name = member(spec, "priorityClassName");

	if (!cJSON_IsObject(spec) || !is_absent(member(spec, "priority")))
		return true; /* the API server has filled it in */
	if (cJSON_IsString(name) && *name->valuestring) {
		if (c)
			class = (const struct kube_priority_class *)cluster_find(
				c, OBJECT_PRIORITY_CLASS, "", name->valuestring);
		if (!class)
			class = find_builtin(name->valuestring);
		if (!class) {
			api_fail(rs, FAIL_BAD_REQUEST, "pod.spec.priorityClassName",
				 "there is no PriorityClass \"%.253s\"", name->valuestring);
			return false;
		}
	} else if (c && is_absent(name)) {
		class = find_default(c->tables[OBJECT_PRIORITY_CLASS]);
	}
	if (class)
		set_priority(spec, class);
	return true;
}

/* --- reading */

/* Members that are no objects are refused by fit_pod_read(), which reads the pod after this. */
static bool complete_pod(const cJSON *tree, cJSON *pod, const struct cluster *c,
			 struct api_response *rs)
{
	return !cJSON_IsObject(pod) ||
	       (apply_namespace(tree, pod, rs) && resolve_priority(pod, c, rs));
}

static bool read_pod(struct pod_body *body, const struct cluster *c, struct api_response *rs)
{
	cJSON *pod = member(body->tree, "pod");
	char field[FIT_FIELD_MAX] = "";
	struct reason why = {""};
	const char *policy;

	if (!complete_pod(body->tree, pod, c, rs))
		return false;
	if (fit_pod_read(is_absent(pod) ? NULL : pod, &body->pod, field, &why)) {
		api_fail(rs, FAIL_BAD_REQUEST, field, "%s", why.text);
		return false;
	}
	policy = cJSON_GetStringValue(member(member(pod, "spec"), "preemptionPolicy"));
	body->never_preempts = policy && strcmp(policy, "Never") == 0;
	return true;
}

static bool read_body(const struct api_request *rq, const struct api_field *members,
		      const struct cluster *c, struct pod_body *body, struct api_response *rs)
{
	if (strlen(rq->body) == rq->body_len)
		body->tree = cJSON_ParseWithLengthOpts(rq->body, rq->body_len + 1, NULL, true);
	if (!cJSON_IsObject(body->tree)) {
		api_fail(rs, FAIL_BAD_REQUEST, NULL, "the body must be a JSON object");
		return false;
	}
	for (const cJSON *item = body->tree->child; item; item = item->next)
		if (!api_field_is_in(item->string, members)) {
			char *field = mem_strndup(item->string, 64);

			api_fail(rs, FAIL_BAD_REQUEST, field, "is not a member of this request");
			free(field);
			return false;
		}
	return read_pod(body, c, rs);
}

bool pod_body_read(const struct api_request *rq, const struct api_field *members,
		   const struct cluster *c, struct pod_body *body, struct api_response *rs)
{
	*body = (struct pod_body){0};
	if (read_body(rq, members, c, body, rs))
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
	const cJSON *item = member(body->tree, name);

	*out = NULL;
	if (!is_absent(item) && !cJSON_IsString(item)) {
		api_fail(rs, FAIL_BAD_REQUEST, name, "must be a string");
		return false;
	}
	if (cJSON_IsString(item))
		*out = item->valuestring;
	return true;
}
