/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the JSON of an object to its record, for every kind but pods (object_pod.c). The head is
 * read and checked once; then the reader of the kind makes its record, with all text in one block,
 * and fills in what is not text. A reader that fails drops the half-built record: what is zero
 * needs no freeing. The tree is not kept.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/model/object_keep.h"
#include "aggregator/model/object_record.h"
#include "shared/mem.h"

const struct object_path OBJECT_METADATA = {NULL, "metadata", 0};
const struct object_path OBJECT_SPEC = {NULL, "spec", 0};
const struct object_path OBJECT_STATUS = {NULL, "status", 0};

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

int object_read_labels(const struct object_source *s, struct labels *out)
{
	struct error why;

	if (labels_read(object_json_find(s->metadata, "labels"), out, &why))
		return object_json_fail(&s->json, &OBJECT_METADATA, "labels", "%s", why.text);
	return 0;
}

int object_read_annotations(const struct object_source *s, bool (*kept)(const char *key),
			    struct labels *out)
{
	struct error why;

	if (labels_read_some(object_json_find(s->metadata, "annotations"), kept, out, &why))
		return object_json_fail(&s->json, &OBJECT_METADATA, "annotations", "%s", why.text);
	return 0;
}

static int read_owner_at(const struct object_source *s, const cJSON *json,
			 const struct object_path *path, struct owner_ref *out,
			 const char **api_version)
{
	if (api_version && object_json_string(&s->json, json, path, "apiVersion", "", api_version))
		return -EINVAL;
	if (object_json_string(&s->json, json, path, "kind", "", &out->kind) ||
	    object_json_string(&s->json, json, path, "name", "", &out->name))
		return -EINVAL;
	return object_json_string(&s->json, json, path, "uid", "", &out->uid);
}

int object_read_owner(const struct object_source *s, struct owner_ref *out,
		      const char **api_version)
{
	const struct object_path list = {&OBJECT_METADATA, "ownerReferences", 0};
	struct object_path path = {&list, NULL, 0};
	const cJSON *owners;

	*out = (struct owner_ref){"", "", ""};
	if (api_version)
		*api_version = "";
	if (object_json_array(&s->json, s->metadata, &OBJECT_METADATA, list.key, &owners))
		return -EINVAL;
	for (const cJSON *item = owners ? owners->child : NULL; item;
	     item = item->next, path.index++)
		if (cJSON_IsTrue(object_json_find(item, "controller")))
			return read_owner_at(s, item, &path, out, api_version);
	return 0;
}

static int read_part(const struct object_source *s, const char *key, const cJSON **out)
{
	return object_json_object(&s->json, s->whole, NULL, key, out);
}

static int read_times(const struct object_source *s, int64_t *created_ns, int64_t *deletion_ns)
{
	if (object_json_time(&s->json, s->metadata, &OBJECT_METADATA, "creationTimestamp",
			     created_ns))
		return -EINVAL;
	return object_json_time(&s->json, s->metadata, &OBJECT_METADATA, "deletionTimestamp",
				deletion_ns);
}

/* --- kinds */

static int finish(struct object *o, int err, struct object **out)
{
	if (err)
		object_drop(o);
	else
		*out = o;
	return err;
}

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

static int fill_node(const struct object_source *s, struct object *o)
{
	struct kube_node *n = (struct kube_node *)o;
	const cJSON *spec, *status;

	if (read_part(s, "spec", &spec) || read_part(s, "status", &status) ||
	    object_read_labels(s, &n->labels) ||
	    object_read_annotations(s, object_keep_annotation, &n->annotations) ||
	    read_times(s, &n->created_ns, &n->deletion_ns) ||
	    object_json_bool(&s->json, spec, &OBJECT_SPEC, "unschedulable", &n->unschedulable) ||
	    object_json_resources(&s->json, status, &OBJECT_STATUS, "capacity", NULL, &n->capacity))
		return -EINVAL;
	n->ready = has_condition(status, "Ready");
	n->lifecycle = read_lifecycle(status);
	n->features = declared_features_of_node(object_json_find(status, "declaredFeatures"));
	taints_read(object_json_find(spec, "taints"), &n->taints);
	return object_json_resources(&s->json, status, &OBJECT_STATUS, "allocatable", NULL,
				     &n->allocatable);
}

/*
 * How many pods the workload wants and has, each kind in its own words. Defaults are those of the
 * API server.
 */
static int read_counts(const struct object_source *s, struct kube_workload *w)
{
	bool daemons = s->kind == OBJECT_DAEMON_SET, job = s->kind == OBJECT_JOB;
	const char *wanted = daemons ? "desiredNumberScheduled" : job ? "parallelism" : "replicas";
	const char *present = daemons ? "currentNumberScheduled" : job ? "active" : "replicas";
	const struct object_path *path = &OBJECT_STATUS;
	const cJSON *spec, *status;

	if (read_part(s, "spec", &spec) || read_part(s, "status", &status) ||
	    object_json_int32(&s->json, daemons ? status : spec, daemons ? path : &OBJECT_SPEC,
			      wanted, daemons ? -1 : 1, &w->replicas) ||
	    object_json_int32(&s->json, status, path, present, 0, &w->present) ||
	    object_json_int32(&s->json, status, path, "currentReplicas", 0, &w->current_revision) ||
	    object_json_int32(&s->json, status, path, "succeeded", 0, &w->succeeded))
		return -EINVAL;
	return object_json_int32(&s->json, spec, &OBJECT_SPEC, "completions", -1, &w->completions);
}

static int read_workload(const struct object_source *s, struct object **out)
{
	struct kube_workload *w;
	struct owner_ref owner;
	char *room;

	if (object_read_owner(s, &owner, NULL))
		return -EINVAL;
	w = object_new(s, sizeof(*w),
		       strlen(owner.kind) + strlen(owner.name) + strlen(owner.uid) + 3, &room);
	w->owner.kind = mem_put_text(&room, owner.kind);
	w->owner.name = mem_put_text(&room, owner.name);
	w->owner.uid = mem_put_text(&room, owner.uid);
	return finish(&w->object,
		      read_counts(s, w)
			      ? -EINVAL
			      : object_read_annotations(s, object_keep_annotation, &w->annotations),
		      out);
}

static int fill_priority_class(const struct object_source *s, struct object *o)
{
	struct kube_priority_class *c = (struct kube_priority_class *)o;
	const char *policy;

	if (object_json_int32(&s->json, s->whole, NULL, "value", 0, &c->value) ||
	    object_json_bool(&s->json, s->whole, NULL, "globalDefault", &c->global_default) ||
	    object_json_string(&s->json, s->whole, NULL, "preemptionPolicy", "", &policy))
		return -EINVAL;
	c->preempts = strcmp(policy, "Never") != 0;
	return 0;
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

static int fill_hard(const struct object_source *s, const cJSON *spec, struct kube_quota *q)
{
	struct resources hard = RESOURCES_NONE;
	int err = object_json_resources(&s->json, spec, &OBJECT_SPEC, "hard", &q->has_max, &hard);

	if (!err)
		fold_names(&hard, &q->max);
	resources_fini(&hard);
	return err;
}

static int fill_quota(const struct object_source *s, struct object *o)
{
	struct kube_quota *q = (struct kube_quota *)o;
	const cJSON *spec;
	int64_t deletion_ns;

	if (read_part(s, "spec", &spec) || read_times(s, &q->created_ns, &deletion_ns) ||
	    object_read_annotations(s, object_keep_annotation, &q->annotations))
		return -EINVAL;
	if (s->kind == OBJECT_RESOURCE_QUOTA)
		return fill_hard(s, spec, q);
	if (object_json_resources(&s->json, spec, &OBJECT_SPEC, "min", &q->has_min, &q->min))
		return -EINVAL;
	return object_json_resources(&s->json, spec, &OBJECT_SPEC, "max", &q->has_max, &q->max);
}

/* A policy without "gang" has no minimum. */
static int read_min(const struct object_source *s, const cJSON *policy,
		    const struct object_path *path, int32_t *out)
{
	const struct object_path gang_path = {path, "gang", 0};
	const cJSON *gang;

	if (object_json_object(&s->json, policy, path, gang_path.key, &gang))
		return -EINVAL;
	return object_json_int32(&s->json, gang, &gang_path, "minCount", 0, out);
}

static int fill_group(const struct object_source *s, const cJSON *spec, struct kube_gang *g)
{
	const struct object_path path = {&OBJECT_SPEC, "schedulingPolicy", 0};
	const cJSON *policy;

	g->of[0].part = "";
	if (s->kind == OBJECT_COSCHEDULING_GROUP)
		return object_json_int32(&s->json, spec, &OBJECT_SPEC, "minMember", 0,
					 &g->of[0].pods);
	if (object_json_object(&s->json, spec, &OBJECT_SPEC, path.key, &policy))
		return -EINVAL;
	return read_min(s, policy, &path, &g->of[0].pods);
}

static int fill_workload(const struct object_source *s, const cJSON *groups, struct kube_gang *g,
			 char *room)
{
	const struct object_path list = {&OBJECT_SPEC, "podGroups", 0};
	struct object_path item_path = {&list, NULL, 0};
	const struct object_path path = {&item_path, "policy", 0};
	const cJSON *item, *policy;
	const char *name;

	cJSON_ArrayForEach (item, groups) {
		struct gang_min *of = &g->of[item_path.index];

		if (object_json_string(&s->json, item, &item_path, "name", "", &name) ||
		    object_json_object(&s->json, item, &item_path, path.key, &policy) ||
		    read_min(s, policy, &path, &of->pods))
			return -EINVAL;
		of->part = mem_put_text(&room, name);
		item_path.index++;
	}
	return 0;
}

/* Of the names of all elements, each with its end. */
static size_t names_size(const cJSON *list)
{
	size_t size = 0;

	for (const cJSON *item = object_json_first(list); item; item = item->next)
		size += strlen(object_json_text(item, "name")) + 1;
	return size;
}

static int read_gang(const struct object_source *s, struct object **out)
{
	const cJSON *spec, *groups = NULL;
	size_t count = 1;
	struct kube_gang *g;
	char *room;

	if (read_part(s, "spec", &spec) ||
	    object_json_array(&s->json, spec, &OBJECT_SPEC, "podGroups", &groups))
		return -EINVAL;
	if (s->kind == OBJECT_WORKLOAD)
		count = groups ? (size_t)cJSON_GetArraySize(groups) : 0;
	g = object_new(s, sizeof(*g) + count * sizeof(g->of[0]), names_size(groups), &room);
	g->count = count;
	return finish(&g->object,
		      s->kind == OBJECT_WORKLOAD ? fill_workload(s, groups, g, room)
						 : fill_group(s, spec, g),
		      out);
}

/* A driver without a count has no limit. */
static int fill_csi_node(const struct object_source *s, const cJSON *drivers,
			 struct kube_csi_node *n, char *room)
{
	const struct object_path list = {&OBJECT_SPEC, "drivers", 0};
	struct object_path path = {&list, NULL, 0};
	const struct object_path below = {&path, "allocatable", 0};
	const cJSON *item, *allocatable;
	const char *name;
	int32_t count;

	cJSON_ArrayForEach (item, drivers) {
		if (object_json_string(&s->json, item, &path, "name", "", &name) ||
		    object_json_object(&s->json, item, &path, below.key, &allocatable) ||
		    object_json_int32(&s->json, allocatable, &below, "count", -1, &count))
			return -EINVAL;
		if (count >= 0)
			n->of[n->count++] = (struct csi_limit){mem_put_text(&room, name), count};
		path.index++;
	}
	return 0;
}

static int read_csi_node(const struct object_source *s, struct object **out)
{
	const cJSON *spec, *drivers;
	struct kube_csi_node *n;
	size_t count;
	char *room;

	if (read_part(s, "spec", &spec) ||
	    object_json_array(&s->json, spec, &OBJECT_SPEC, "drivers", &drivers))
		return -EINVAL;
	count = drivers ? (size_t)cJSON_GetArraySize(drivers) : 0;
	n = object_new(s, sizeof(*n) + count * sizeof(n->of[0]), names_size(drivers), &room);
	return finish(&n->object, fill_csi_node(s, drivers, n, room), out);
}

/* In policy/v1 an empty selector is that of every pod, in v1beta1 that of none. */
static int fill_selector(const struct object_source *s, struct kube_pdb *b)
{
	const cJSON *spec, *json;
	struct error why;

	if (read_part(s, "spec", &spec))
		return -EINVAL;
	json = object_json_find(spec, "selector");
	if (!json)
		return 0;
	if (selector_read(json, &b->selector, &why))
		return object_json_fail(&s->json, &OBJECT_SPEC, "selector", "%s", why.text);
	if (selector_is_empty(b->selector) && strcmp(s->api_version, "policy/v1beta1") == 0) {
		selector_free(b->selector);
		b->selector = NULL;
	}
	return 0;
}

/* A status without a generation is taken as that of the spec: not every dump has it. */
static int fill_eviction(const struct object_source *s, const cJSON *status, struct kube_pdb *b)
{
	const cJSON *spec = object_json_find(s->whole, "spec");
	const char *policy;
	int32_t generation, observed;

	if (object_json_string(&s->json, spec, &OBJECT_SPEC, "unhealthyPodEvictionPolicy", "",
			       &policy) ||
	    object_json_int32(&s->json, s->metadata, &OBJECT_METADATA, "generation", 0,
			      &generation) ||
	    object_json_int32(&s->json, status, &OBJECT_STATUS, "observedGeneration", generation,
			      &observed))
		return -EINVAL;
	b->frees_unhealthy = strcmp(policy, "AlwaysAllow") == 0;
	b->stale = observed < generation;
	return 0;
}

static int fill_budget(const struct object_source *s, struct object *o)
{
	struct kube_pdb *b = (struct kube_pdb *)o;
	const struct object_path *path = &OBJECT_STATUS;
	const cJSON *status;

	if (fill_selector(s, b) || read_part(s, "status", &status) || fill_eviction(s, status, b) ||
	    object_json_int32(&s->json, status, path, "disruptionsAllowed", 0,
			      &b->disruptions_allowed) ||
	    object_json_int32(&s->json, status, path, "expectedPods", 0, &b->expected_pods) ||
	    object_json_int32(&s->json, status, path, "currentHealthy", 0, &b->current_healthy))
		return -EINVAL;
	return object_json_int32(&s->json, status, path, "desiredHealthy", 0, &b->desired_healthy);
}

/*
 * How the record of a kind is made: `read` makes it, or else a record of `size` bytes (0: the head
 * alone) is made for `fill`.
 */
static const struct kind_reader {
	int (*read)(const struct object_source *s, struct object **out);
	int (*fill)(const struct object_source *s, struct object *o);
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
};

static int read_kind(const struct object_source *s, struct object **out)
{
	const struct kind_reader *r = &readers[s->kind];
	struct object *o;
	char *room;

	if (r->read)
		return r->read(s, out);
	o = object_new(s, r->size ? r->size : sizeof(*o), 0, &room);
	return finish(o, r->fill ? r->fill(s, o) : 0, out);
}

/* --- the head */

static int check_type(struct object_source *s)
{
	const char *name = object_kind_name(s->kind), *kind;
	enum object_kind found;

	if (object_json_string(&s->json, s->whole, NULL, "apiVersion", object_kind_version(s->kind),
			       &s->api_version) ||
	    object_json_string(&s->json, s->whole, NULL, "kind", name, &kind))
		return -EINVAL;
	if (strcmp(kind, name) != 0)
		return object_json_fail(&s->json, NULL, "kind", "must be %s, and not \"%.60s\"",
					name, kind);
	if (object_kind_find(s->api_version, kind, &found) || found != s->kind)
		return object_json_fail(&s->json, NULL, "apiVersion",
					"must be of the group of %s, and not \"%.60s\"",
					object_kind_version(s->kind), s->api_version);
	return 0;
}

static int read_names(struct object_source *s)
{
	const struct object_path *path = &OBJECT_METADATA;

	if (read_part(s, "metadata", &s->metadata) ||
	    object_json_string(&s->json, s->metadata, path, "name", "", &s->name) ||
	    object_json_string(&s->json, s->metadata, path, "namespace", "", &s->namespace) ||
	    object_json_string(&s->json, s->metadata, path, "uid", "", &s->uid))
		return -EINVAL;
	if (!*s->name)
		return object_json_fail(&s->json, path, "name", "is required");
	if (!object_kind_namespaced(s->kind))
		s->namespace = "";
	return 0;
}

int object_read(enum object_kind kind, const cJSON *json, struct object **out,
		char field[OBJECT_FIELD_MAX], struct error *error)
{
	struct object_source s = {
		.json = {field, error},
		.kind = kind,
		.whole = json,
		.namespace = "",
		.name = "",
		.uid = "",
	};
	int err;

	if (!cJSON_IsObject(json))
		return object_json_fail(&s.json, NULL, NULL, "must be an object");
	if (check_type(&s) || read_names(&s))
		return -EINVAL;
	if (kind == OBJECT_POD)
		return object_pod_read(&s, out);
	err = object_keep_write(&s.json, kind, s.api_version, json, &s.text);
	if (!err)
		err = read_kind(&s, out);
	buf_fini(&s.text);
	return err;
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
