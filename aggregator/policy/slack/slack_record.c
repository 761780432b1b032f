/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A placeholder as a pod: the record for the placement core. It is made of a pod's template, of the
 * template in a workload's object, or of a size, and read as every pod.
 *
 * Parts of one replica are left out: labels that tell replicas of a StatefulSet apart, and claims
 * made for one pod, since the next pod gets its own. The labels are the workload's, so that
 * constraints of others apply. A record is made once and kept, since the core identifies classes of
 * pods by their templates.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/model/object_json.h"
#include "aggregator/policy/slack/slack_internal.h"
#include "shared/array.h"
#include "shared/mem.h"

#define REQUIRED "requiredDuringSchedulingIgnoredDuringExecution"

void slack_pattern_fini(struct slack_pattern *p)
{
	if (p->record)
		object_drop(&p->record->object);
	pod_template_drop(p->template);
	object_drop(p->workload);
	free(p->signature);
	for (size_t i = 0; i < p->key_count; i++)
		free(p->keys[i]);
	*p = (struct slack_pattern){0};
}

/* --- constraints on other pods */

static void add_key(struct slack_pattern *p, const cJSON *term)
{
	const char *key = cJSON_GetStringValue(object_json_find(term, "topologyKey"));

	p->minds_others = true;
	if (key && p->key_count < SLACK_KEYS_MAX &&
	    !array_find_text(p->keys, p->key_count, sizeof(*p->keys), key))
		p->keys[p->key_count++] = mem_strdup(key);
}

/* True: there are terms. */
static bool read_terms(struct slack_pattern *p, const cJSON *affinity, const char *member)
{
	const cJSON *list = object_json_find(object_json_find(affinity, member), REQUIRED);

	for (const cJSON *term = object_json_first(list); term; term = term->next)
		add_key(p, term);
	return object_json_first(list);
}

static void read_ports(struct slack_pattern *p, const cJSON *containers)
{
	for (const cJSON *c = object_json_first(containers); c; c = c->next)
		for (const cJSON *port = object_json_first(object_json_find(c, "ports")); port;
		     port = port->next)
			p->minds_others |= object_json_find(port, "hostPort") != NULL;
}

static void read_minding(struct slack_pattern *p, const cJSON *spec)
{
	const cJSON *affinity = object_json_find(spec, "affinity");
	const cJSON *spread = object_json_find(spec, "topologySpreadConstraints");

	p->is_company = read_terms(p, affinity, "podAffinity");
	read_terms(p, affinity, "podAntiAffinity");
	for (const cJSON *c = object_json_first(spread); c; c = c->next) {
		const char *when = cJSON_GetStringValue(object_json_find(c, "whenUnsatisfiable"));

		if (when && strcmp(when, "ScheduleAnyway") == 0)
			continue;
		add_key(p, c);
		p->is_company = true;
	}
	read_ports(p, object_json_find(spec, "containers"));
	read_ports(p, object_json_find(spec, "initContainers"));
}

static bool has_claims(const cJSON *spec)
{
	const cJSON *volumes = object_json_find(spec, "volumes");

	for (const cJSON *v = object_json_first(volumes); v; v = v->next)
		if (object_json_find(v, "persistentVolumeClaim"))
			return true;
	return false;
}

static char *signature_of(const cJSON *spec)
{
	static const char *const members[] = {"affinity", "nodeSelector", "tolerations",
					      "topologySpreadConstraints"};
	cJSON *out = cJSON_CreateObject();
	char *text, *copy;

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		const cJSON *m = object_json_find(spec, members[i]);

		if (m)
			cJSON_AddItemToObject(out, members[i], cJSON_Duplicate(m, true));
	}
	text = out->child ? cJSON_PrintUnformatted(out) : NULL;
	copy = mem_strdup(text ? text : "");
	cJSON_free(text);
	cJSON_Delete(out);
	return copy;
}

/* --- the pod */

/*
 * A volume of one pod: a generic ephemeral volume, or a claim of a StatefulSet's template ("data-
 * web-0").
 */
static bool is_own_volume(const cJSON *volume, const char *pod)
{
	const cJSON *claim = object_json_find(volume, "persistentVolumeClaim");
	const char *name = cJSON_GetStringValue(object_json_find(claim, "claimName"));
	size_t len = name ? strlen(name) : 0, pod_len = strlen(pod);

	if (object_json_find(volume, "ephemeral"))
		return true;
	return pod_len && len > pod_len + 1 && name[len - pod_len - 1] == '-' &&
	       strcmp(name + len - pod_len, pod) == 0;
}

static void drop_own_volumes(cJSON *spec, const char *pod)
{
	cJSON *list = cJSON_GetObjectItemCaseSensitive(spec, "volumes"), *next;

	for (cJSON *v = cJSON_IsArray(list) ? list->child : NULL; v; v = next) {
		next = v->next;
		if (is_own_volume(v, pod))
			cJSON_Delete(cJSON_DetachItemViaPointer(list, v));
	}
}

/* Names the pod by its class; names of pods have no slashes. */
static cJSON *make_metadata(const char *key, const char *namespace)
{
	cJSON *metadata =
		cJSON_Parse("{\"uid\":\"" SLACK_REPLICA_SET
			    "\",\"ownerReferences\":[{\"apiVersion\":\"apps/v1\","
			    "\"kind\":\"ReplicaSet\",\"name\":\"" SLACK_REPLICA_SET
			    "\",\"uid\":\"" SLACK_REPLICA_SET "\",\"controller\":true}]}");
	char *name = mem_printf("%s-%s", SLACK_REPLICA_SET, key);

	for (char *at = name; *at; at++)
		if (*at == '/')
			*at = '-';
	cJSON_AddStringToObject(metadata, "namespace", namespace);
	cJSON_AddStringToObject(metadata, "name", name);
	free(name);
	return metadata;
}

/* {"metadata":{labels},"spec"} becomes a pod's; takes over both. */
static cJSON *make_pod(cJSON *labels, cJSON *spec, const char *key, const char *namespace)
{
	static const char *const own[] = {"statefulset.kubernetes.io/pod-name",
					  "apps.kubernetes.io/pod-index",
					  "batch.kubernetes.io/job-completion-index"};
	cJSON *pod = cJSON_CreateObject(), *metadata = make_metadata(key, namespace);

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		cJSON_DeleteItemFromObjectCaseSensitive(labels, own[i]);
	if (labels)
		cJSON_AddItemToObject(metadata, "labels", labels);
	cJSON_AddItemToObject(pod, "metadata", metadata);
	cJSON_AddItemToObject(pod, "spec", spec ? spec : cJSON_CreateObject());
	return pod;
}

/* Takes over the tree. */
static int read_pod(struct slack_pattern *p, cJSON *pod, struct error *error)
{
	struct slack_pattern made = {0};
	const cJSON *spec = object_json_find(pod, "spec");
	char field[OBJECT_FIELD_MAX];
	const struct resources *asks;
	struct object *o;

	if (object_read(OBJECT_POD, pod, &o, field, error)) {
		error_prefix(error, "%s", field);
		cJSON_Delete(pod);
		return -EINVAL;
	}
	made.record = (struct kube_pod *)o;
	asks = &made.record->template->sums.requests;
	made.shape = slack_amount_of(asks);
	made.other_resources = asks->extended_count || asks->of[RESOURCE_EPHEMERAL_STORAGE];
	made.signature = signature_of(spec);
	read_minding(&made, spec);
	made.has_claims = has_claims(spec);
	cJSON_Delete(pod);
	slack_pattern_fini(p);
	*p = made;
	return 0;
}

/* `from` has metadata and spec. `pod` is the name of its pod, or "". */
static int read_template(struct slack_pattern *p, const char *key, cJSON *from,
			 const struct object *of, const char *pod, struct error *error)
{
	cJSON *spec = cJSON_DetachItemFromObjectCaseSensitive(from, "spec");
	cJSON *labels = cJSON_DetachItemFromObjectCaseSensitive(
		cJSON_GetObjectItemCaseSensitive(from, "metadata"), "labels");

	drop_own_volumes(spec, pod);
	return read_pod(p, make_pod(labels, spec, key, of->namespace), error);
}

int slack_pattern_of_pod(struct slack_pattern *p, const char *key, const struct kube_pod *pod,
			 struct error *error)
{
	cJSON *tree;
	int err;

	if (p->record && p->template == pod->template)
		return 0;
	tree = cJSON_Parse(pod->template->text);
	err = read_template(p, key, tree, &pod->object, pod->object.name, error);
	cJSON_Delete(tree);
	if (!err)
		p->template = pod_template_hold(pod->template);
	return err;
}

int slack_pattern_of_workload(struct slack_pattern *p, const char *key,
			      const struct object *workload, struct error *error)
{
	cJSON *tree, *template;
	int err = -ENOENT;

	if (p->record && p->workload == workload)
		return 0;
	tree = cJSON_Parse(workload->text);
	template = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(tree, "spec"),
						    "template");
	if (object_json_find(template, "spec"))
		err = read_template(p, key, template, workload, "", error);
	cJSON_Delete(tree);
	if (!err)
		p->workload = object_hold((struct object *)workload);
	return err;
}

void slack_pattern_of_shape(struct slack_pattern *p, const char *key,
			    const struct slack_amount *shape)
{
	struct error error = {""};
	char *spec;
	int err;

	if (p->record && p->shape.cpu_milli == shape->cpu_milli &&
	    p->shape.mem_bytes == shape->mem_bytes)
		return;
	spec = mem_printf("{\"containers\":[{\"name\":\"placeholder\",\"resources\":{\"requests\":{"
			  "\"cpu\":\"%lldm\",\"memory\":\"%lld\"}}}]}",
			  (long long)shape->cpu_milli, (long long)shape->mem_bytes);
	err = read_pod(p, make_pod(NULL, cJSON_Parse(spec), key, SLACK_NAMESPACE), &error);
	free(spec);
	assert(!err); /* the tree is valid */
	(void)err;
}
