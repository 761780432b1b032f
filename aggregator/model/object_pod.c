/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pod is read in two parts: what it has in common with the other pods of its owner becomes a
 * template, and what is its own a small record. The text of the template is what is compared, and
 * so everything else in a template is made of what the text says.
 *
 * Of the status only what somebody decides by is kept, as numbers. The one part that stays text is
 * that of containers that were resized in place and not finished: their sums cannot be told from
 * the template.
 */
#include <stdlib.h>
#include <string.h>

#include "aggregator/model/object_bounds.h"
#include "aggregator/model/object_keep.h"
#include "aggregator/model/object_record.h"
#include "aggregator/model/pod_sums.h"
#include "shared/mem.h"
#include "shared/refs.h"

enum { GRACE_DEFAULT_SEC = 30 };

static const char *const phases[] = {
	[POD_PENDING] = "Pending", [POD_RUNNING] = "Running", [POD_SUCCEEDED] = "Succeeded",
	[POD_FAILED] = "Failed",   [POD_UNKNOWN] = "Unknown",
};

const char *pod_phase_name(enum pod_phase phase)
{
	return phases[phase];
}

const struct pod_sums *kube_pod_sums(const struct kube_pod *p)
{
	return p->resized ? p->resized : &p->template->sums;
}

const struct resources *kube_pod_requests(const struct kube_pod *p)
{
	return &kube_pod_sums(p)->requests;
}

const struct resources *kube_pod_limits(const struct kube_pod *p)
{
	return &kube_pod_sums(p)->limits;
}

bool kube_pod_is_active(const struct kube_pod *p)
{
	return p->phase != POD_SUCCEEDED && p->phase != POD_FAILED;
}

int32_t kube_pod_grace_sec(const struct kube_pod *p)
{
	return p->template->grace_sec < 0 ? GRACE_DEFAULT_SEC : p->template->grace_sec;
}

bool kube_pods_are_alike(const struct kube_pod *a, const struct kube_pod *b)
{
	return *a->template->owner.uid &&
	       strcmp(a->template->owner.uid, b->template->owner.uid) == 0 &&
	       a->template->priority == b->template->priority &&
	       resources_equal(kube_pod_requests(a), kube_pod_requests(b));
}

bool kube_pod_find_container(const struct kube_pod *p, const char *id,
			     char name[CONTAINER_NAME_MAX + 1])
{
	for (const char *at = p->containers; *at; at += strcspn(at, "\n") + 1) {
		size_t len = strcspn(at, "\n") - CONTAINER_ID_KEPT - 1;

		if (strncmp(at, id, CONTAINER_ID_KEPT) != 0)
			continue;
		memcpy(name, at + CONTAINER_ID_KEPT + 1, len);
		name[len] = '\0';
		return true;
	}
	return false;
}

/* --- templates */

struct pod_template *pod_template_hold(struct pod_template *t)
{
	refs_hold(&t->users);
	return t;
}

void pod_template_drop(struct pod_template *t)
{
	if (!t || !refs_drop(&t->users))
		return;
	labels_fini(&t->labels);
	labels_fini(&t->annotations);
	labels_fini(&t->local_volumes);
	pod_spec_free_members(&t->spec);
	pod_sums_fini(&t->sums);
	free(t);
}

/*
 * Eight bytes at a time, the last ones filled up with zeros. It is compared with texts, and so has
 * no enemy to fear but slowness.
 */
static uint64_t hash_text(const char *text, size_t len)
{
	uint64_t hash = 0x9E3779B97F4A7C15 ^ len;

	for (size_t at = 0; at < len; at += 8) {
		uint64_t word = 0;

		memcpy(&word, text + at, len - at < 8 ? len - at : 8);
		hash = (hash ^ word) * 0xFF51AFD7ED558CCD;
		hash ^= hash >> 32;
	}
	return hash;
}

/* Borrowed from the tree. Kubernetes has schedulingGroup since 1.36, workloadRef in 1.35. */
static struct pod_gang read_gang(const struct object_source *s, const cJSON *spec)
{
	const cJSON *ref = object_json_find(spec, "workloadRef");
	const cJSON *labels = object_json_find(s->metadata.json, "labels");
	const char *name =
		object_json_text(object_json_find(spec, "schedulingGroup"), "podGroupName");

	if (*name)
		return (struct pod_gang){OBJECT_POD_GROUP, name, "", ""};
	if (*object_json_text(ref, "name"))
		return (struct pod_gang){OBJECT_WORKLOAD, object_json_text(ref, "name"),
					 object_json_text(ref, "podGroup"),
					 object_json_text(ref, "podGroupReplicaKey")};
	name = object_json_text(labels, "scheduling.x-k8s.io/pod-group");
	if (!*name)
		name = object_json_text(labels, "pod-group.scheduling.sigs.k8s.io");
	return (struct pod_gang){OBJECT_COSCHEDULING_GROUP, name, "", ""};
}

static struct pod_template *new_template(const struct object_source *s, const char *bound_to,
					 const struct owner_ref *owner, const char *owner_api,
					 const char *priority_class)
{
	const struct pod_gang gang = read_gang(s, object_json_find(s->whole.json, "spec"));
	struct buf text = BUF_INIT;
	struct pod_template *t;
	size_t spec_at;
	char *room;

	object_keep_template(&s->whole, bound_to, &text, &spec_at);
	t = mem_alloc(sizeof(*t) + text.len + strlen(owner->kind) + strlen(owner->name) +
		      strlen(owner->uid) + strlen(owner_api) + strlen(priority_class) +
		      strlen(gang.name) + strlen(gang.part) + strlen(gang.replica) + 9);
	memset(t, 0, sizeof(*t));
	room = (char *)(t + 1);
	atomic_init(&t->users, 1);
	t->text = mem_put_text(&room, text.data);
	t->text_len = text.len;
	t->spec_at = spec_at;
	t->hash = hash_text(t->text, t->text_len);
	t->owner.kind = mem_put_text(&room, owner->kind);
	t->owner.name = mem_put_text(&room, owner->name);
	t->owner.uid = mem_put_text(&room, owner->uid);
	t->owner_api = mem_put_text(&room, owner_api);
	t->priority_class = mem_put_text(&room, priority_class);
	t->gang = (struct pod_gang){gang.kind, mem_put_text(&room, gang.name),
				    mem_put_text(&room, gang.part),
				    mem_put_text(&room, gang.replica)};
	buf_fini(&text);
	return t;
}

/* The medium "Memory" is gone with any restart of the pod, so that nobody keeps anything there. */
static const char *local_kind(const cJSON *volume)
{
	const cJSON *empty = object_json_find(volume, "emptyDir");

	if (object_json_find(volume, "hostPath"))
		return "hostPath";
	return empty && !object_json_is(empty, "medium", "Memory") ? "emptyDir" : NULL;
}

/* An unreadable list counts as a volume that holds data. */
static void read_local_volumes(const cJSON *spec, struct pod_template *t)
{
	const cJSON *list = object_json_find(spec, "volumes");
	cJSON *found = cJSON_CreateObject();

	if (list && !cJSON_IsArray(list) && !cJSON_IsNull(list))
		cJSON_AddStringToObject(found, "", "unknown");
	for (const cJSON *item = object_json_first(list); item; item = item->next) {
		const char *kind = local_kind(item);

		if (kind)
			cJSON_AddStringToObject(found, object_json_text(item, "name"), kind);
	}
	labels_read(found, &t->local_volumes, NULL);
	cJSON_Delete(found);
}

/* These decide only about leaving, and so an odd one is as none: no pod is lost for it. */
static void read_ending(const cJSON *spec, struct pod_template *t)
{
	const cJSON *grace = object_json_find(spec, "terminationGracePeriodSeconds");

	t->restart = object_json_is(spec, "restartPolicy", "Never")	  ? POD_RESTART_NEVER
		     : object_json_is(spec, "restartPolicy", "OnFailure") ? POD_RESTART_ON_FAILURE
									  : POD_RESTART_ALWAYS;
	t->grace_sec = cJSON_IsNumber(grace) && grace->valuedouble >= 0 ? grace->valueint : -1;
	read_local_volumes(spec, t);
}

static void fill_template(const struct object_source *s, const struct object_json *spec,
			  struct pod_template *t)
{
	struct object_fault *fault = spec->fault;

	t->priority = object_json_int32(spec, "priority", 0);
	object_read_labels(s, "labels", NULL, &t->labels);
	object_read_labels(s, "annotations", object_keep_pod_annotation, &t->annotations);
	read_ending(spec->json, t);
	t->mirror = labels_find(&t->annotations, "kubernetes.io/config.mirror") != NULL;
	if (fault->found)
		return;
	fault->found = pod_spec_read(s->whole.json, &t->spec, fault->field, fault->error) ||
		       pod_sums_read(spec->json, NULL, POD_SUMS_SCHEDULER, &t->sums, fault->field,
				     fault->error);
	t->spec.name = NULL; /* it is the pod's, and belongs to the tree */
}

static struct pod_template *read_template(const struct object_source *s,
					  const struct object_json *spec, const char *node)
{
	const char *owner_api;
	const struct owner_ref owner = object_read_owner(s, &owner_api);
	bool bound = strcmp(owner.kind, "DaemonSet") == 0;
	struct pod_template *t = new_template(s, bound ? node : NULL, &owner, owner_api,
					      object_json_string(spec, "priorityClassName", ""));

	fill_template(s, spec, t);
	return t;
}

/* --- what is the pod's own */

/* The classes there are need no copy in each pod. */
static const char *known_qos(const char *name)
{
	static const char *const known[] = {"Guaranteed", "Burstable", "BestEffort", ""};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(known[i], name) == 0)
			return known[i];
	return NULL;
}

static uint8_t phase_of(const char *name)
{
	for (unsigned int i = 0; i < sizeof(phases) / sizeof(phases[0]); i++)
		if (strcmp(phases[i], name) == 0)
			return (uint8_t)i;
	return POD_UNKNOWN;
}

static const cJSON *find_condition(const cJSON *status, const char *type)
{
	const cJSON *item = object_json_first(object_json_find(status, "conditions"));

	while (item && !object_json_is(item, "type", type))
		item = item->next;
	return item;
}

/*
 * Kubernetes from 1.33 on has conditions, which are there as long as they hold; before it had a
 * member.
 */
enum pod_resize object_pod_resize(const cJSON *status)
{
	static const struct {
		const char *word;
		enum pod_resize resize;
	} words[] = {
		{"Proposed", POD_RESIZE_PROPOSED},
		{"Deferred", POD_RESIZE_DEFERRED},
		{"Infeasible", POD_RESIZE_INFEASIBLE},
		{"InProgress", POD_RESIZE_IN_PROGRESS},
	};
	const cJSON *pending = find_condition(status, "PodResizePending");

	if (object_json_is(pending, "reason", "Infeasible"))
		return POD_RESIZE_INFEASIBLE;
	if (pending)
		return object_json_is(pending, "reason", "Deferred") ? POD_RESIZE_DEFERRED
								     : POD_RESIZE_PROPOSED;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (object_json_is(status, "resize", words[i].word))
			return words[i].resize;
	return find_condition(status, "PodResizeInProgress") ? POD_RESIZE_IN_PROGRESS
							     : POD_RESIZE_NONE;
}

/* Since when the condition has the state; 0 when it has another one. */
static int64_t read_since(const struct object_json *status, const char *type, const char *state,
			  int64_t created_ns)
{
	const struct object_json list = object_json_list(status, "conditions");
	struct object_json item = object_json_begin(&list);
	int64_t since_ns;

	while (item.json && !object_json_is(item.json, "type", type))
		object_json_next(&item);
	if (!object_json_is(item.json, "status", state))
		return 0;
	since_ns = object_json_time(&item, "lastTransitionTime");
	if (since_ns)
		return since_ns;
	return created_ns ? created_ns : 1;
}

static void add_restarts(const struct object_json *status, const char *key, uint32_t *restarts)
{
	const struct object_json list = object_json_list(status, key);

	for (struct object_json item = object_json_begin(&list); item.json;
	     object_json_next(&item)) {
		int32_t count = object_json_int32(&item, "restartCount", 0);

		if (count > 0)
			*restarts += (uint32_t)count;
		/* A sum is written as a number of 32 bits, too. */
		if (*restarts > INT32_MAX)
			*restarts = INT32_MAX;
	}
}

static void fill_pod(const struct object_source *s, const struct object_json *status,
		     struct kube_pod *p)
{
	p->created_ns = object_json_time(&s->metadata, "creationTimestamp");
	p->deletion_ns = object_json_time(&s->metadata, "deletionTimestamp");
	p->started_ns = object_json_time(status, "startTime");
	p->phase = phase_of(object_json_string(status, "phase", "Pending"));
	add_restarts(status, "containerStatuses", &p->restarts);
	add_restarts(status, "initContainerStatuses", &p->restarts);
	p->scheduled_ns = read_since(status, "PodScheduled", "True", p->created_ns);
	p->unschedulable_ns = read_since(status, "PodScheduled", "False", p->created_ns);
	p->ready = object_json_is(find_condition(status->json, "Ready"), "status", "True");
	p->resize = (uint8_t)object_pod_resize(status->json);
	p->disruption_ns = read_since(status, "DisruptionTarget", "True", p->created_ns);
}

/* "containerd://0123..". Init containers that have ended use nothing: they are left out. */
static void keep_containers(const struct object_json *status, const char *key, struct buf *out)
{
	const cJSON *list = object_json_find(status->json, key);
	size_t count = cJSON_IsArray(list) ? (size_t)cJSON_GetArraySize(list) : 0;
	size_t most = object_bound_of_list(key, count);

	if (most)
		object_json_fail(status, key, "must not have more than %zu elements, and has %zu",
				 most, count);
	for (const cJSON *item = object_json_first(list); item; item = item->next) {
		const char *name = object_json_text(item, "name"),
			   *id = object_json_text(item, "containerID");
		const char *behind = strstr(id, "://");

		id = behind ? behind + 3 : id;
		if (strspn(id, "0123456789abcdef") < CONTAINER_ID_KEPT || !*name ||
		    strlen(name) > CONTAINER_NAME_MAX || strpbrk(name, " \n") ||
		    (key[0] == 'i' &&
		     object_json_find(object_json_find(item, "state"), "terminated")))
			continue;
		buf_printf(out, "%.*s %s\n", CONTAINER_ID_KEPT, id, name);
	}
}

/* A pod before it has its block. */
struct draft {
	const char *node, *nominated, *qos;
	struct pod_template *template;
	struct pod_sums *resized; /* NULL: as the template */
	struct buf resized_text;
	struct buf containers;
};

/* Of a pod with a template and a status. */
static void read_resized(const cJSON *spec, const struct object_json *status, struct draft *d)
{
	struct object_fault *fault = status->fault;
	struct pod_sums sums;

	if (pod_sums_read(spec, status->json, POD_SUMS_SCHEDULER, &sums, fault->field,
			  fault->error)) {
		fault->found = true;
	} else if (pod_sums_equal(&sums, &d->template->sums)) {
		pod_sums_fini(&sums);
	} else {
		object_keep_resize(status, &d->resized_text);
		d->resized = mem_alloc(sizeof(*d->resized));
		*d->resized = sums;
	}
}

static void read_draft(const struct object_source *s, const struct object_json *spec,
		       const struct object_json *status, struct draft *d)
{
	d->node = object_json_string(spec, "nodeName", "");
	d->nominated = object_json_string(status, "nominatedNodeName", "");
	d->qos = object_json_string(status, "qosClass", "");
	d->template = read_template(s, spec, d->node);
	buf_add_str(&d->containers, "");
	keep_containers(status, "containerStatuses", &d->containers);
	keep_containers(status, "initContainerStatuses", &d->containers);
	if (status->json && !status->fault->found)
		read_resized(spec->json, status, d);
}

/* Moves what the draft holds into the record. */
static struct kube_pod *new_pod(const struct object_source *s, struct draft *d)
{
	const char *qos = known_qos(d->qos);
	struct kube_pod *p;
	char *room;

	p = object_new(s, sizeof(*p),
		       strlen(d->node) + strlen(d->nominated) + (qos ? 0 : strlen(d->qos) + 1) +
			       d->resized_text.len + d->containers.len + 4,
		       &room);
	p->node = mem_put_text(&room, d->node);
	p->nominated_node = mem_put_text(&room, d->nominated);
	p->qos = qos ? qos : mem_put_text(&room, d->qos);
	p->resized_text = d->resized ? mem_put_text(&room, d->resized_text.data) : NULL;
	p->containers = mem_put_text(&room, d->containers.data);
	p->template = d->template;
	p->resized = d->resized;
	d->template = NULL;
	d->resized = NULL;
	return p;
}

struct object *object_pod_read(const struct object_source *s)
{
	const struct object_json spec = object_json_object(&s->whole, "spec"),
				 status = object_json_object(&s->whole, "status");
	struct draft d = {0};
	struct kube_pod *p = NULL;

	if (!spec.json) {
		object_json_fail(&s->whole, "spec", "is required");
		return NULL;
	}
	read_draft(s, &spec, &status, &d);
	if (!status.fault->found) {
		p = new_pod(s, &d);
		fill_pod(s, &status, p);
	}
	pod_template_drop(d.template);
	buf_fini(&d.resized_text);
	buf_fini(&d.containers);
	return p ? &p->object : NULL;
}

void object_pod_fini(struct kube_pod *p)
{
	pod_template_drop(p->template);
	if (p->resized)
		pod_sums_fini(p->resized);
	free(p->resized);
}
