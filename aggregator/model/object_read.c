/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the JSON of an object to its record, for every kind but pods (object_pod.c). The head is
 * read and checked once; then the reader of the kind makes its record, with all text in one block,
 * and fills in what is not text. An error does not end the reading: the record is dropped at its
 * end. The tree is not kept.
 */
#include <errno.h>
#include <string.h>

#include "aggregator/model/object_keep.h"
#include "aggregator/model/object_record.h"
#include "shared/mem.h"

void *object_new(const struct object_source *s, size_t size, size_t extra, char **room)
{
	size_t strings = strlen(s->namespace) + strlen(s->name) + strlen(s->uid) + 3;
	struct object *o = mem_alloc(size + strings + s->text.len + 1 + extra);
	char *at = (char *)o + size;

	memset(o, 0, size);
	atomic_init(&o->users, 1);
	o->kind = s->kind;
	o->namespace = mem_put_text(&at, s->namespace);
	o->name = mem_put_text(&at, s->name);
	o->uid = mem_put_text(&at, s->uid);
	if (s->text.data)
		o->text = mem_put_text(&at, s->text.data);
	*room = at;
	return o;
}

/* --- parts that several kinds have */

void object_read_labels(const struct object_source *s, const char *member,
			bool (*kept)(const char *key), struct labels *out)
{
	struct error why;

	if (labels_read_some(object_json_find(s->metadata.json, member), kept, out, &why))
		object_json_fail(&s->metadata, member, "%s", why.text);
}

struct owner_ref object_read_owner(const struct object_source *s, const char **api_version)
{
	const struct object_json list = object_json_list(&s->metadata, "ownerReferences");
	struct object_json item = object_json_begin(&list);

	while (item.json && !cJSON_IsTrue(object_json_find(item.json, "controller")))
		object_json_next(&item);
	if (api_version)
		*api_version = object_json_string(&item, "apiVersion", "");
	return (struct owner_ref){object_json_string(&item, "kind", ""),
				  object_json_string(&item, "name", ""),
				  object_json_string(&item, "uid", "")};
}

/* --- kinds */

/* Whether the condition is True. */
static bool has_condition(const cJSON *status, const char *wanted)
{
	const cJSON *list = object_json_find(status, "conditions");

	for (const cJSON *item = object_json_first(list); item; item = item->next)
		if (object_json_is(item, "type", wanted) && *object_json_text(item, "status"))
			return object_json_is(item, "status", "True");
	return false;
}

const char *node_lifecycle_name(enum node_lifecycle l)
{
	static const char *const names[NODE_LIFECYCLES] = {
		[NODE_SHUTDOWN_IN_PROGRESS] = "GracefulNodeShutdownInProgress",
		[NODE_DRAIN_IN_PROGRESS] = "DrainInProgress",
		[NODE_DRAINED] = "Drained",
		[NODE_MAINTENANCE_PLANNED] = "MaintenancePlanned",
		[NODE_MAINTENANCE_IN_PROGRESS] = "MaintenanceInProgress",
	};

	return names[l];
}

bool kube_node_is_draining(const struct kube_node *n)
{
	const char *draining = labels_find(&n->annotations, "evenkeel.io/draining");

	return draining && strcmp(draining, "false") != 0;
}

static uint8_t read_lifecycle(const cJSON *status)
{
	uint8_t found = 0;

	for (unsigned int l = 0; l < NODE_LIFECYCLES; l++)
		if (has_condition(status, node_lifecycle_name((enum node_lifecycle)l)))
			found |= (uint8_t)(1U << l);
	return found;
}

static void fill_node(const struct object_source *s, struct object *o)
{
	struct kube_node *n = (struct kube_node *)o;
	const struct object_json spec = object_json_object(&s->whole, "spec"),
				 status = object_json_object(&s->whole, "status");

	object_read_labels(s, "labels", NULL, &n->labels);
	object_read_labels(s, "annotations", object_keep_annotation, &n->annotations);
	n->created_ns = object_json_time(&s->metadata, "creationTimestamp");
	n->deletion_ns = object_json_time(&s->metadata, "deletionTimestamp");
	n->unschedulable = object_json_bool(&spec, "unschedulable");
	object_json_resources(&status, "capacity", &n->capacity);
	n->ready = has_condition(status.json, "Ready");
	n->lifecycle = read_lifecycle(status.json);
	n->features = declared_features_of_node(object_json_find(status.json, "declaredFeatures"));
	taints_read(object_json_find(spec.json, "taints"), &n->taints);
	object_json_resources(&status, "allocatable", &n->allocatable);
}

/*
 * How many pods the workload wants and has, each kind in its own words. Defaults are those of the
 * API server.
 */
static void read_counts(const struct object_source *s, struct kube_workload *w)
{
	const struct object_json spec = object_json_object(&s->whole, "spec"),
				 status = object_json_object(&s->whole, "status");

	if (s->kind == OBJECT_DAEMON_SET) {
		w->replicas = object_json_int32(&status, "desiredNumberScheduled", -1);
		w->present = object_json_int32(&status, "currentNumberScheduled", 0);
	} else if (s->kind == OBJECT_JOB) {
		w->replicas = object_json_int32(&spec, "parallelism", 1);
		w->present = object_json_int32(&status, "active", 0);
	} else {
		w->replicas = object_json_int32(&spec, "replicas", 1);
		w->present = object_json_int32(&status, "replicas", 0);
	}
	w->current_revision = object_json_int32(&status, "currentReplicas", 0);
	w->succeeded = object_json_int32(&status, "succeeded", 0);
	w->completions = object_json_int32(&spec, "completions", -1);
}

static struct object *read_workload(const struct object_source *s)
{
	const struct owner_ref owner = object_read_owner(s, NULL);
	struct kube_workload *w;
	char *room;

	w = object_new(s, sizeof(*w),
		       strlen(owner.kind) + strlen(owner.name) + strlen(owner.uid) + 3, &room);
	w->owner.kind = mem_put_text(&room, owner.kind);
	w->owner.name = mem_put_text(&room, owner.name);
	w->owner.uid = mem_put_text(&room, owner.uid);
	read_counts(s, w);
	object_read_labels(s, "annotations", object_keep_annotation, &w->annotations);
	return &w->object;
}

static void fill_priority_class(const struct object_source *s, struct object *o)
{
	struct kube_priority_class *c = (struct kube_priority_class *)o;

	c->value = object_json_int32(&s->whole, "value", 0);
	c->global_default = object_json_bool(&s->whole, "globalDefault");
	c->preempts = strcmp(object_json_string(&s->whole, "preemptionPolicy", ""), "Never") != 0;
}

/* "requests.x" is "x" by another name. Claims of volumes are not what pods request. */
static const char *quota_name(const char *name)
{
	static const char requests[] = "requests.";
	size_t len = sizeof(requests) - 1;

	if (strncmp(name, requests, len) == 0 && strcmp(name + len, "storage") != 0)
		return name + len;
	return name;
}

static void fold_names(const struct resources *hard, struct resources *max)
{
	const char *name;
	int64_t amount, other;

	for (size_t at = 0; resources_next(hard, &at, &name, &amount);) {
		name = quota_name(name);
		if (!resources_find(max, name, &other) || amount < other)
			resources_set_named(max, name, amount);
	}
}

static void fill_quota(const struct object_source *s, struct object *o)
{
	struct kube_quota *q = (struct kube_quota *)o;
	const struct object_json spec = object_json_object(&s->whole, "spec");
	struct resources hard = RESOURCES_NONE;

	q->created_ns = object_json_time(&s->metadata, "creationTimestamp");
	object_read_labels(s, "annotations", object_keep_annotation, &q->annotations);
	if (s->kind == OBJECT_RESOURCE_QUOTA) {
		q->has_max = object_json_resources(&spec, "hard", &hard);
		fold_names(&hard, &q->max);
		resources_fini(&hard);
	} else {
		q->has_min = object_json_resources(&spec, "min", &q->min);
		q->has_max = object_json_resources(&spec, "max", &q->max);
	}
}

/* A policy without "gang" has no minimum. */
static int32_t read_min(const struct object_json *of, const char *key)
{
	const struct object_json policy = object_json_object(of, key),
				 gang = object_json_object(&policy, "gang");

	return object_json_int32(&gang, "minCount", 0);
}

/* Of the names of all elements, each with its end. */
static size_t names_size(const cJSON *list)
{
	size_t size = 0;

	for (const cJSON *item = object_json_first(list); item; item = item->next)
		size += strlen(object_json_text(item, "name")) + 1;
	return size;
}

static struct object *read_gang(const struct object_source *s)
{
	const struct object_json spec = object_json_object(&s->whole, "spec"),
				 groups = object_json_list(&spec, "podGroups");
	bool several = s->kind == OBJECT_WORKLOAD;
	size_t count = several ? object_json_count(&groups) : 1;
	struct kube_gang *g;
	char *room;

	g = object_new(s, sizeof(*g) + count * sizeof(g->of[0]), names_size(groups.json), &room);
	g->count = count;
	if (!several)
		g->of[0] = (struct gang_min){"", s->kind == OBJECT_COSCHEDULING_GROUP
							 ? object_json_int32(&spec, "minMember", 0)
							 : read_min(&spec, "schedulingPolicy")};
	for (struct object_json item = object_json_begin(&groups); several && item.json;
	     object_json_next(&item)) {
		const char *name = object_json_string(&item, "name", "");

		g->of[item.index].part = mem_put_text(&room, name);
		g->of[item.index].pods = read_min(&item, "policy");
	}
	return &g->object;
}

/* A driver without a count has no limit. */
static struct object *read_csi_node(const struct object_source *s)
{
	const struct object_json spec = object_json_object(&s->whole, "spec"),
				 drivers = object_json_list(&spec, "drivers");
	struct kube_csi_node *n;
	char *room;

	n = object_new(s, sizeof(*n) + object_json_count(&drivers) * sizeof(n->of[0]),
		       names_size(drivers.json), &room);
	for (struct object_json item = object_json_begin(&drivers); item.json;
	     object_json_next(&item)) {
		const char *name = object_json_string(&item, "name", "");
		const struct object_json allocatable = object_json_object(&item, "allocatable");
		int32_t count = object_json_int32(&allocatable, "count", -1);

		if (count >= 0)
			n->of[n->count++] = (struct csi_limit){mem_put_text(&room, name), count};
	}
	return &n->object;
}

/* In policy/v1 an empty selector is that of every pod, in v1beta1 that of none. */
static void fill_selector(const struct object_source *s, const struct object_json *spec,
			  struct kube_pdb *b)
{
	const cJSON *json = object_json_find(spec->json, "selector");
	struct error why;

	if (!json)
		return;
	if (selector_read(json, &b->selector, &why)) {
		object_json_fail(spec, "selector", "%s", why.text);
	} else if (selector_is_empty(b->selector) &&
		   strcmp(s->api_version, "policy/v1beta1") == 0) {
		selector_free(b->selector);
		b->selector = NULL;
	}
}

static void fill_budget(const struct object_source *s, struct object *o)
{
	struct kube_pdb *b = (struct kube_pdb *)o;
	const struct object_json spec = object_json_object(&s->whole, "spec");
	struct object_json status;
	int32_t generation;

	fill_selector(s, &spec, b);
	status = object_json_object(&s->whole, "status");
	b->frees_unhealthy = strcmp(object_json_string(&spec, "unhealthyPodEvictionPolicy", ""),
				    "AlwaysAllow") == 0;
	generation = object_json_int32(&s->metadata, "generation", 0);
	/* A status without a generation is taken as that of the spec: not every dump has it. */
	b->stale = object_json_int32(&status, "observedGeneration", generation) < generation;
	b->disruptions_allowed = object_json_int32(&status, "disruptionsAllowed", 0);
	b->expected_pods = object_json_int32(&status, "expectedPods", 0);
	b->current_healthy = object_json_int32(&status, "currentHealthy", 0);
	b->desired_healthy = object_json_int32(&status, "desiredHealthy", 0);
}

/*
 * How the record of a kind is made: `read` makes it, or else a record of `size` bytes (0: the head
 * alone) is made for `fill`.
 */
static const struct kind_reader {
	struct object *(*read)(const struct object_source *s);
	void (*fill)(const struct object_source *s, struct object *o);
	size_t size;
} readers[OBJECT_KINDS] = {
	[OBJECT_NODE] = {.fill = fill_node, .size = sizeof(struct kube_node)},
	[OBJECT_PRIORITY_CLASS] = {.fill = fill_priority_class,
				   .size = sizeof(struct kube_priority_class)},
	[OBJECT_REPLICA_SET] = {.read = read_workload},
	[OBJECT_STATEFUL_SET] = {.read = read_workload},
	[OBJECT_DAEMON_SET] = {.read = read_workload},
	[OBJECT_JOB] = {.read = read_workload},
	[OBJECT_REPLICATION_CONTROLLER] = {.read = read_workload},
	[OBJECT_POD_DISRUPTION_BUDGET] = {.fill = fill_budget, .size = sizeof(struct kube_pdb)},
	[OBJECT_RESOURCE_QUOTA] = {.fill = fill_quota, .size = sizeof(struct kube_quota)},
	[OBJECT_ELASTIC_QUOTA] = {.fill = fill_quota, .size = sizeof(struct kube_quota)},
	[OBJECT_POD_GROUP] = {.read = read_gang},
	[OBJECT_COSCHEDULING_GROUP] = {.read = read_gang},
	[OBJECT_WORKLOAD] = {.read = read_gang},
	[OBJECT_CSI_NODE] = {.read = read_csi_node},
	[OBJECT_POD] = {.read = object_pod_read},
};

static struct object *read_kind(const struct object_source *s)
{
	const struct kind_reader *r = &readers[s->kind];
	struct object *o;
	char *room;

	if (r->read)
		return r->read(s);
	o = object_new(s, r->size ? r->size : sizeof(*o), 0, &room);
	if (r->fill)
		r->fill(s, o);
	return o;
}

/* --- the head */

static void read_type(struct object_source *s)
{
	const char *name = object_kind_name(s->kind), *version = object_kind_version(s->kind);
	const char *kind;
	enum object_kind found;

	s->api_version = object_json_string(&s->whole, "apiVersion", version);
	kind = object_json_string(&s->whole, "kind", name);
	if (strcmp(kind, name) != 0)
		object_json_fail(&s->whole, "kind", "must be %s, and not \"%.60s\"", name, kind);
	if (object_kind_find(s->api_version, kind, &found) || found != s->kind)
		object_json_fail(&s->whole, "apiVersion",
				 "must be of the group of %s, and not \"%.60s\"", version,
				 s->api_version);
}

static void read_names(struct object_source *s)
{
	s->metadata = object_json_object(&s->whole, "metadata");
	s->name = object_json_string(&s->metadata, "name", "");
	s->namespace = object_json_string(&s->metadata, "namespace", "");
	s->uid = object_json_string(&s->metadata, "uid", "");
	if (!*s->name)
		object_json_fail(&s->metadata, "name", "is required");
	if (!object_kind_namespaced(s->kind))
		s->namespace = "";
}

int object_read(enum object_kind kind, const cJSON *json, struct object **out,
		char field[OBJECT_FIELD_MAX], struct error *error)
{
	struct object_fault fault = {field, OBJECT_FIELD_MAX, error, false};
	struct object_source s = {.whole = {json, &fault, NULL, "", 0}, .kind = kind};
	struct object *o = NULL;

	if (!cJSON_IsObject(json))
		object_json_fail(&s.whole, NULL, "must be an object");
	read_type(&s);
	read_names(&s);
	if (kind != OBJECT_POD && !fault.found)
		object_keep_write(&s.whole, kind, s.api_version, &s.text);
	if (!fault.found)
		o = read_kind(&s);
	buf_fini(&s.text);
	if (fault.found) {
		object_drop(o);
		return -EINVAL;
	}
	*out = o;
	return 0;
}

void object_fini(struct object *o)
{
	switch (o->kind) {
	case OBJECT_NODE: {
		struct kube_node *n = (struct kube_node *)o;

		labels_fini(&n->labels);
		labels_fini(&n->annotations);
		taints_fini(&n->taints);
		resources_fini(&n->capacity);
		resources_fini(&n->allocatable);
		break;
	}
	case OBJECT_REPLICA_SET:
	case OBJECT_STATEFUL_SET:
	case OBJECT_DAEMON_SET:
	case OBJECT_JOB:
	case OBJECT_REPLICATION_CONTROLLER:
		labels_fini(&((struct kube_workload *)o)->annotations);
		break;
	case OBJECT_RESOURCE_QUOTA:
	case OBJECT_ELASTIC_QUOTA: {
		struct kube_quota *q = (struct kube_quota *)o;

		labels_fini(&q->annotations);
		resources_fini(&q->min);
		resources_fini(&q->max);
		break;
	}
	case OBJECT_POD_DISRUPTION_BUDGET:
		selector_free(((struct kube_pdb *)o)->selector);
		break;
	default:
		break;
	}
}
