/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Balloons: placeholders that are real pods, as slack_yaml_write() writes them. They hold room, so
 * each must stand for a placeholder:
 *
 *   demand   a balloon is none: it counts neither as requested nor as an arrival
 *   held     a balloon on a node that counts, at least as large as a placeholder of its class,
 *            replaces one. Balloons of units replace as many units as their sum comes to, whatever
 *            the size of a unit when they were applied. A balloon that is pending or in deletion
 *            holds nothing
 *   slots    a balloon is no obstacle, since the scheduler preempts it
 *
 * A balloon has its label and a priority below 0: a pod that no other can preempt is no slack. Its
 * namespace and the label's value, the name of the class's objects, identify the class.
 *
 * Objects are made as trees and written by libyaml. Strings are quoted where a YAML reader may err.
 *
 * A balloon must not look like its workload: with the workload's labels it would get the traffic of its
 * Service, and count for its disruption budgets. So it has one label of its own. Each anti-affinity
 * term of the workload appears twice: against the workload's pods, and against balloons. Spread counts
 * balloons only. Host ports and claims are left out. The pods of a PodTemplate of a CapacityBuffer
 * never run, and so have the workload's labels.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/model/object_json.h"
#include "aggregator/policy/slack/slack_internal.h"
#include "shared/array.h"
#include "shared/json_yaml.h"
#include "shared/mem.h"

enum { NAME_LEN = 64, NAME_KEPT = 54 };

static uint32_t hash_of(const char *text)
{
	uint32_t hash = 2166136261U;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 16777619U;
	return hash;
}

/* The name of a class's objects, a DNS label; with a hash of the key if characters are lost. */
static void balloon_name(const char *key, char name[NAME_LEN])
{
	const char *slash = strchr(key, '/'), *from = slash ? slash + 1 : key;
	size_t len = (size_t)snprintf(name, NAME_LEN, "%s-", SLACK_REPLICA_SET);
	bool exact = true;

	for (; *from && len < NAME_KEPT; from++) {
		char letter = (char)tolower((unsigned char)*from);

		exact &= isalnum((unsigned char)letter) || letter == '-' || letter == '/';
		name[len++] = isalnum((unsigned char)letter) ? letter : '-';
	}
	while (name[len - 1] == '-')
		len--;
	name[len] = '\0';
	if (!exact || *from)
		snprintf(name + len, NAME_LEN - len, "-%08x", hash_of(key));
}

bool slack_is_balloon(const struct kube_pod *pod)
{
	return pod->template->priority < 0 &&
	       labels_find(&pod->template->labels, SLACK_CLASS_LABEL);
}

/* --- counting */

static void count_balloon(struct slack_entry *classes, const struct kube_pod *pod,
			  struct slack_amount *of_units)
{
	const struct slack_amount holds = slack_amount_of(kube_pod_requests(pod));
	char *name = mem_printf("%s/%s", pod->object.namespace,
				labels_find(&pod->template->labels, SLACK_CLASS_LABEL));
	struct slack_entry *e;
	int64_t count;

	HASH_FIND(by_objects, classes, name, strlen(name), e);
	free(name);
	if (e && e->kind == SLACK_UNIT) {
		slack_amount_add(of_units, &holds, 1);
		count = slack_slots(of_units, &e->pattern.shape);
		e->balloons = count > UINT32_MAX ? UINT32_MAX : (uint32_t)count;
	} else if (e && slack_amount_fits(&e->pattern.shape, &holds)) {
		e->balloons++;
	}
}

void slack_count_balloons(struct slack_run *r)
{
	struct slack_entry *classes = NULL;

	for (size_t c = 0; c < r->class_count; c++) {
		struct slack_entry *e = r->classes[c];
		char name[NAME_LEN];

		if (!e->objects) {
			balloon_name(e->key, name);
			e->objects = mem_printf("%s/%s", e->pattern.record->object.namespace, name);
		}
		HASH_ADD_KEYPTR(by_objects, classes, e->objects, strlen(e->objects), e);
	}
	for (size_t i = 0; i < r->survey.balloon_count; i++) {
		const struct slack_balloon *b = &r->survey.balloons[i];

		if (r->survey.counts[b->node] && !b->pod->deletion_ns)
			count_balloon(classes, b->pod, &r->result->basis->of_balloons);
	}
	HASH_CLEAR(by_objects, classes);
}

uint32_t slack_missing(const struct slack_run *r, uint32_t class)
{
	const struct slack_entry *e = r->classes[class];
	uint32_t held = e->placed + e->balloons;

	return held < e->wanted ? e->wanted - held : 0;
}

uint32_t slack_surplus(const struct slack_run *r, uint32_t class)
{
	const struct slack_entry *e = r->classes[class];
	uint32_t held = e->placed + e->balloons;
	uint32_t surplus = held > e->wanted ? held - e->wanted : 0;

	return surplus < e->placed ? surplus : e->placed;
}

void slack_take_balloons(struct slack_run *r)
{
	for (size_t i = 0; i < r->survey.balloon_count; i++) {
		const struct object *o = &r->survey.balloons[i].pod->object;
		place_pod pod = place_find_pod(r->place, o->namespace, o->name);

		if (pod != PLACE_NONE && place_where(r->place, pod) != PLACE_NONE)
			place_take(r->place, pod);
	}
}

/* --- documents */

#define REQUIRED "requiredDuringSchedulingIgnoredDuringExecution"

void slack_yaml_options_default(struct slack_yaml_options *o)
{
	*o = (struct slack_yaml_options){.kind = SLACK_YAML_BALLOONS,
					 .image = "registry.k8s.io/pause:3.9",
					 .priority = -10};
}

/* Takes over the tree. */
static void write_document(struct buf *out, cJSON *tree)
{
	json_yaml_write(tree, true, out);
	cJSON_Delete(tree);
}

/* --- objects */

static cJSON *new_object(const char *api_version, const char *kind, const char *namespace,
			 const char *name)
{
	cJSON *object = cJSON_CreateObject(), *metadata;

	cJSON_AddStringToObject(object, "apiVersion", api_version);
	cJSON_AddStringToObject(object, "kind", kind);
	metadata = cJSON_AddObjectToObject(object, "metadata");
	cJSON_AddStringToObject(metadata, "name", name);
	if (*namespace)
		cJSON_AddStringToObject(metadata, "namespace", namespace);
	cJSON_AddStringToObject(cJSON_AddObjectToObject(metadata, "labels"),
				"app.kubernetes.io/part-of", "evenkeel");
	return object;
}

static cJSON *own_selector(const char *name)
{
	cJSON *selector = cJSON_CreateObject();

	cJSON_AddStringToObject(cJSON_AddObjectToObject(selector, "matchLabels"), SLACK_CLASS_LABEL,
				name);
	return selector;
}

/* --- the pod */

static void add_amount(cJSON *list, const char *name, int64_t amount)
{
	char text[32];

	snprintf(text, sizeof(text), "%lld%s", (long long)amount,
		 strcmp(name, "cpu") == 0 ? "m" : "");
	cJSON_AddStringToObject(list, name, text);
}

/* Extended resources need limits equal to what is requested. */
static cJSON *container_of(const struct slack_class *c, const char *image)
{
	const struct resources *asks = &c->record->template->sums.requests;
	cJSON *container = cJSON_CreateObject(), *resources, *requests, *limits = NULL;
	const char *name;
	int64_t amount;
	size_t at = 0;

	cJSON_AddStringToObject(container, "name", "placeholder");
	cJSON_AddStringToObject(container, "image", image);
	resources = cJSON_AddObjectToObject(container, "resources");
	requests = cJSON_AddObjectToObject(resources, "requests");
	while (resources_next(asks, &at, &name, &amount)) {
		if (strcmp(name, "pods") == 0)
			continue;
		add_amount(requests, name, amount);
		if (strcmp(name, "cpu") == 0 || strcmp(name, "memory") == 0 ||
		    strcmp(name, "ephemeral-storage") == 0)
			continue;
		limits = limits ? limits : cJSON_AddObjectToObject(resources, "limits");
		add_amount(limits, name, amount);
	}
	return container;
}

/* Repeats each anti-affinity term against balloons. */
static void keep_apart(cJSON *affinity, const char *name)
{
	cJSON *apart = cJSON_GetObjectItemCaseSensitive(affinity, "podAntiAffinity");
	cJSON *list = cJSON_GetObjectItemCaseSensitive(apart, REQUIRED);
	int count = cJSON_IsArray(list) ? cJSON_GetArraySize(list) : 0;

	for (int i = 0; i < count; i++) {
		const cJSON *key = object_json_find(cJSON_GetArrayItem(list, i), "topologyKey");
		cJSON *term = cJSON_CreateObject();

		cJSON_AddItemToObject(term, "labelSelector", own_selector(name));
		cJSON_AddItemToObject(term, "topologyKey", cJSON_Duplicate(key, true));
		cJSON_AddItemToArray(list, term);
	}
}

static void spread_own(cJSON *constraints, const char *name)
{
	cJSON *c;

	cJSON_ArrayForEach (c, constraints) {
		cJSON_DeleteItemFromObjectCaseSensitive(c, "labelSelector");
		cJSON_DeleteItemFromObjectCaseSensitive(c, "matchLabelKeys");
		cJSON_AddItemToObject(c, "labelSelector", own_selector(name));
	}
}

/*
 * {"metadata":{"labels"},"spec"}; balloon: the name of those that run, NULL of a template that only
 * describes.
 */
static cJSON *template_of(const struct slack_class *c, const char *image, const char *balloon)
{
	cJSON *tree = cJSON_Parse(c->record->template->text), *out = cJSON_CreateObject();
	cJSON *metadata = cJSON_AddObjectToObject(out, "metadata"), *labels, *containers;
	cJSON *spec = *c->signature ? cJSON_Parse(c->signature) : cJSON_CreateObject();

	cJSON_AddItemToObject(out, "spec", spec);
	labels = cJSON_DetachItemFromObjectCaseSensitive(
		cJSON_GetObjectItemCaseSensitive(tree, "metadata"), "labels");
	if (labels)
		cJSON_AddItemToObject(metadata, "labels", labels);
	containers = cJSON_AddArrayToObject(spec, "containers");
	cJSON_AddItemToArray(containers, container_of(c, image));
	if (balloon) {
		cJSON_DeleteItemFromObjectCaseSensitive(metadata, "labels");
		cJSON_AddStringToObject(cJSON_AddObjectToObject(metadata, "labels"),
					SLACK_CLASS_LABEL, balloon);
		keep_apart(cJSON_GetObjectItemCaseSensitive(spec, "affinity"), balloon);
		spread_own(cJSON_GetObjectItemCaseSensitive(spec, "topologySpreadConstraints"),
			   balloon);
	}
	cJSON_Delete(tree);
	return out;
}

/* --- balloons */

static cJSON *balloon(const struct slack_class *c, const struct slack_yaml_options *o)
{
	const char *namespace = c->record->object.namespace;
	cJSON *object, *spec, *template, *pod;
	char name[NAME_LEN];

	balloon_name(c->key, name);
	object = new_object("apps/v1", "Deployment", namespace, name);
	spec = cJSON_AddObjectToObject(object, "spec");
	cJSON_AddNumberToObject(spec, "replicas", c->wanted);
	/* New balloons of another size find room only when the old ones are gone. */
	cJSON_AddStringToObject(cJSON_AddObjectToObject(spec, "strategy"), "type", "Recreate");
	cJSON_AddItemToObject(spec, "selector", own_selector(name));
	template = template_of(c, o->image, name);
	pod = cJSON_GetObjectItemCaseSensitive(template, "spec");
	cJSON_AddStringToObject(pod, "priorityClassName", SLACK_REPLICA_SET);
	cJSON_AddNumberToObject(pod, "terminationGracePeriodSeconds", 0);
	cJSON_AddFalseToObject(pod, "automountServiceAccountToken");
	cJSON_AddItemToObject(spec, "template", template);
	return object;
}

/*
 * It is no globalDefault, which is not said: a server leaves out what is false, and applying the
 * object again would change it every time.
 */
static cJSON *priority_class(const struct slack_yaml_options *o)
{
	cJSON *object = new_object("scheduling.k8s.io/v1", "PriorityClass", "", SLACK_REPLICA_SET);

	cJSON_AddNumberToObject(object, "value", o->priority);
	cJSON_AddStringToObject(object, "preemptionPolicy", "Never");
	cJSON_AddStringToObject(
		object, "description",
		"Placeholders for pods to come: whoever needs the room preempts them.");
	return object;
}

/* --- buffers */

/* Adds the workload in the key "shop/Deployment/web" of the class. False: it cannot be scaled. */
static bool add_scalable(cJSON *spec, const struct slack_class *c)
{
	static const char *const apps[] = {"Deployment", "ReplicaSet", "StatefulSet", NULL};
	const char *slash = strchr(c->key, '/'), *name = slash ? strchr(slash + 1, '/') : NULL;
	const char *group;
	cJSON *ref;
	char *kind;

	if (!name)
		return false;
	kind = mem_strndup(slash + 1, (size_t)(name - slash - 1));
	group = array_has_text(apps, kind)		     ? "apps"
		: strcmp(kind, "ReplicationController") == 0 ? ""
							     : NULL;
	if (group) {
		ref = cJSON_AddObjectToObject(spec, "scalableRef");
		cJSON_AddStringToObject(ref, "apiGroup", group);
		cJSON_AddStringToObject(ref, "kind", kind);
		cJSON_AddStringToObject(ref, "name", name + 1);
	}
	free(kind);
	return group != NULL;
}

static void write_buffer(const struct slack_class *c, const struct slack_yaml_options *o,
			 struct buf *out)
{
	const char *namespace = c->record->object.namespace;
	char name[NAME_LEN];
	cJSON *object, *spec;

	balloon_name(c->key, name);
	object = new_object("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer", namespace, name);
	spec = cJSON_AddObjectToObject(object, "spec");
	if (!add_scalable(spec, c)) {
		cJSON *template = new_object("v1", "PodTemplate", namespace, name);

		cJSON_AddItemToObject(template, "template", template_of(c, o->image, NULL));
		write_document(out, template);
		cJSON_AddStringToObject(cJSON_AddObjectToObject(spec, "podTemplateRef"), "name",
					name);
	}
	cJSON_AddNumberToObject(spec, "replicas", c->wanted);
	write_document(out, object);
}

/* --- all of it */

void slack_yaml_write(const struct slack_result *r, const struct slack_yaml_options *o,
		      struct buf *out)
{
	bool own_namespace = false;

	for (size_t i = 0; i < r->class_count; i++)
		own_namespace |= r->classes[i].wanted && r->classes[i].kind != SLACK_WORKLOAD;
	if (own_namespace)
		write_document(out, new_object("v1", "Namespace", "", SLACK_NAMESPACE));
	if (o->kind == SLACK_YAML_BALLOONS)
		write_document(out, priority_class(o));
	for (size_t i = 0; i < r->class_count; i++) {
		if (!r->classes[i].wanted)
			continue;
		if (o->kind == SLACK_YAML_BALLOONS)
			write_document(out, balloon(&r->classes[i], o));
		else
			write_buffer(&r->classes[i], o, out);
	}
}
