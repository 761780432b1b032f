/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/conformance/drain_records.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/drain/drain_eligibility.h"
#include "shared/mem.h"
#include "shared/timefmt.h"
#include "tests/conformance/values.h"

static const int64_t SECOND_NS = 1000000000;

bool drain_records_add(struct drain_records *r, enum object_kind kind, cJSON *json,
		       struct error *error)
{
	char field[OBJECT_FIELD_MAX] = "";
	struct error refused = {""};
	struct object *o = NULL;
	int err = object_read(kind, json, &o, field, &refused);

	cJSON_Delete(json);
	if (err) {
		values_fail(error, "%s: %s", field, refused.text);
		return false;
	}
	r->of = mem_realloc(r->of, (r->count + 1) * sizeof(struct object *));
	r->of[r->count++] = o;
	return true;
}

void drain_records_fini(struct drain_records *r)
{
	for (size_t i = 0; i < r->count; i++)
		object_drop(r->of[i]);
	free(r->of);
	*r = (struct drain_records){0};
}

const struct kube_pod *const *drain_records_pods(const struct drain_records *r)
{
	return (const struct kube_pod *const *)r->of;
}

bool drain_case_seconds(const cJSON *object, const char *key, int64_t *out_ns, struct error *error)
{
	double value;

	if (!values_number(object, key, &value, error))
		return false;
	*out_ns = (int64_t)(value * (double)SECOND_NS);
	return true;
}

/* --- pods */

static void add_copy(cJSON *to, const char *name, const cJSON *from, const char *key)
{
	const cJSON *item = values_get(from, key);

	if (item)
		cJSON_AddItemToObject(to, name, cJSON_Duplicate(item, true));
}

static bool add_age(cJSON *to, const char *name, const cJSON *from, const char *key,
		    struct error *error)
{
	char text[TIMEFMT_LEN];
	int64_t age_ns;

	if (!values_get(from, key))
		return true;
	if (!drain_case_seconds(from, key, &age_ns, error))
		return false;
	timefmt_rfc3339(DRAIN_CASE_NOW_NS - age_ns, text);
	cJSON_AddStringToObject(to, name, text);
	return true;
}

static void add_owner(cJSON *metadata, const char *api, const char *kind, const char *name)
{
	cJSON *list = cJSON_AddArrayToObject(metadata, "ownerReferences");
	cJSON *owner = cJSON_CreateObject();

	cJSON_AddItemToArray(list, owner);
	cJSON_AddStringToObject(owner, "apiVersion", api);
	cJSON_AddStringToObject(owner, "kind", kind);
	cJSON_AddStringToObject(owner, "name", name);
	cJSON_AddTrueToObject(owner, "controller");
}

static bool text_member(const cJSON *object, const char *key, const char *absent, const char **out,
			struct error *error)
{
	const cJSON *item = values_get(object, key);

	*out = item ? cJSON_GetStringValue(item) : absent;
	if (!*out)
		values_fail(error, "\"%s\" must be a string", key);
	return *out != NULL;
}

/* The cases that only have marks instead of owners and annotations. */
static bool add_marks(cJSON *metadata, const cJSON *pod)
{
	const char *via = cJSON_GetStringValue(values_get(pod, "via"));
	cJSON *annotations = cJSON_GetObjectItemCaseSensitive(metadata, "annotations");

	if (!annotations)
		annotations = cJSON_AddObjectToObject(metadata, "annotations");
	if (cJSON_IsTrue(values_get(pod, "mirror")))
		cJSON_AddStringToObject(annotations, "kubernetes.io/config.mirror", "x");
	if (!cJSON_IsTrue(values_get(pod, "daemonset")))
		return true;
	if (via && strstr(via, "annotation"))
		cJSON_AddStringToObject(annotations,
					"cluster-autoscaler.kubernetes.io/daemonset-pod", "true");
	else
		add_owner(metadata, "apps/v1", "DaemonSet", "ds");
	return true;
}

static bool make_metadata(cJSON *metadata, const cJSON *pod, struct error *error)
{
	const cJSON *owner = values_get(pod, "owner");
	const char *name, *namespace, *kind, *api, *owner_name;

	if (!text_member(pod, "name", "pod", &name, error) ||
	    !text_member(pod, "ns", "default", &namespace, error))
		return false;
	cJSON_AddStringToObject(metadata, "name", name);
	cJSON_AddStringToObject(metadata, "namespace", namespace);
	add_copy(metadata, "annotations", pod, "annotations");
	add_copy(metadata, "labels", pod, "labels");
	if (owner) {
		if (!text_member(owner, "kind", NULL, &kind, error) ||
		    !text_member(owner, "api", "", &api, error) ||
		    !text_member(owner, "name", NULL, &owner_name, error))
			return false;
		add_owner(metadata, api, kind, owner_name);
	}
	return add_marks(metadata, pod) &&
	       add_age(metadata, "creationTimestamp", pod, "created_age_s", error) &&
	       add_age(metadata, "deletionTimestamp", pod, "deleted_since_s", error);
}

static bool add_amount(cJSON *list, const char *name, const cJSON *object, const char *key,
		       const char *unit, struct error *error)
{
	char text[32];
	int64_t amount;

	if (!values_get(object, key))
		return true;
	if (!values_int(object, key, &amount, error))
		return false;
	snprintf(text, sizeof(text), "%" PRId64 "%s", amount, unit);
	cJSON_AddStringToObject(list, name, text);
	return true;
}

static bool add_volumes(cJSON *spec, const cJSON *pod, struct error *error)
{
	cJSON *list = cJSON_AddArrayToObject(spec, "volumes");
	const cJSON *given = values_get(pod, "volumes");

	for (const cJSON *item = given ? given->child : NULL; item; item = item->next) {
		const char *name, *type, *medium;
		cJSON *volume = cJSON_CreateObject(), *of;

		cJSON_AddItemToArray(list, volume);
		if (!text_member(item, "name", NULL, &name, error) ||
		    !text_member(item, "type", NULL, &type, error) ||
		    !text_member(item, "medium", "", &medium, error))
			return false;
		cJSON_AddStringToObject(volume, "name", name);
		of = cJSON_AddObjectToObject(volume, type);
		if (*medium)
			cJSON_AddStringToObject(of, "medium", medium);
	}
	return true;
}

/* A sidecar is told by its restart policy, or by a mark. */
static bool is_sidecar(const cJSON *init)
{
	const char *policy = cJSON_GetStringValue(values_get(init, "restart_policy"));

	return (policy && strcmp(policy, "Always") == 0) ||
	       cJSON_IsTrue(values_get(init, "sidecar")) ||
	       cJSON_IsTrue(values_get(init, "restartable"));
}

static bool add_init(cJSON *spec, const cJSON *given, struct error *error)
{
	static const char *const keys[] = {"cpu_m",   "mem",	     "restart_policy",
					   "sidecar", "restartable", NULL};
	cJSON *list = cJSON_AddArrayToObject(spec, "initContainers");

	for (const cJSON *item = given ? given->child : NULL; item; item = item->next) {
		cJSON *container = cJSON_CreateObject(), *requests;

		cJSON_AddItemToArray(list, container);
		if (is_sidecar(item))
			cJSON_AddStringToObject(container, "restartPolicy", "Always");
		requests = cJSON_AddObjectToObject(cJSON_AddObjectToObject(container, "resources"),
						   "requests");
		if (!values_only(item, keys, error) ||
		    !add_amount(requests, "cpu", item, "cpu_m", "m", error) ||
		    !add_amount(requests, "memory", item, "mem", "", error))
			return false;
	}
	return true;
}

static bool make_pod_spec(cJSON *spec, const cJSON *pod, struct error *error)
{
	cJSON *container = cJSON_CreateObject();
	cJSON *requests;

	cJSON_AddItemToArray(cJSON_AddArrayToObject(spec, "containers"), container);
	requests = cJSON_AddObjectToObject(cJSON_AddObjectToObject(container, "resources"),
					   "requests");
	add_copy(spec, "restartPolicy", pod, "restart_policy");
	add_copy(spec, "terminationGracePeriodSeconds", pod, "grace_s");
	return add_amount(requests, "cpu", pod, "cpu_m", "m", error) &&
	       add_amount(requests, "memory", pod, "mem", "", error) &&
	       add_amount(requests, "nvidia.com/gpu", pod, "gpu", "", error) &&
	       add_init(spec, values_get(pod, values_get(pod, "init") ? "init" : "init_containers"),
			error) &&
	       add_volumes(spec, pod, error);
}

bool drain_records_add_pod(struct drain_records *r, const cJSON *pod, struct error *error)
{
	static const char *const keys[] = {"name",
					   "ns",
					   "owner",
					   "annotations",
					   "labels",
					   "phase",
					   "volumes",
					   "restart_policy",
					   "deleted_since_s",
					   "created_age_s",
					   "grace_s",
					   "cpu_m",
					   "mem",
					   "gpu",
					   "devices",
					   "daemonset",
					   "mirror",
					   "via",
					   "init",
					   "init_containers",
					   NULL};
	cJSON *json = cJSON_CreateObject();
	cJSON *status = cJSON_AddObjectToObject(json, "status");

	add_copy(status, "phase", pod, "phase");
	if (!values_only(pod, keys, error) ||
	    !make_metadata(cJSON_AddObjectToObject(json, "metadata"), pod, error) ||
	    !make_pod_spec(cJSON_AddObjectToObject(json, "spec"), pod, error)) {
		cJSON_Delete(json);
		return false;
	}
	return drain_records_add(r, OBJECT_POD, json, error);
}

bool drain_records_add_pods(struct drain_records *r, const cJSON *list, struct error *error)
{
	for (const cJSON *pod = list ? list->child : NULL; pod; pod = pod->next)
		if (!drain_records_add_pod(r, pod, error))
			return false;
	return true;
}

/* --- nodes */

static bool add_taint(cJSON *spec, const cJSON *node, struct error *error)
{
	cJSON *taint;
	char value[32];
	int64_t age_ns;

	if (!values_get(node, "to_be_deleted_taint_age_s"))
		return true;
	if (!drain_case_seconds(node, "to_be_deleted_taint_age_s", &age_ns, error))
		return false;
	taint = cJSON_CreateObject();
	cJSON_AddItemToArray(cJSON_AddArrayToObject(spec, "taints"), taint);
	snprintf(value, sizeof(value), "%" PRId64, (DRAIN_CASE_NOW_NS - age_ns) / SECOND_NS);
	cJSON_AddStringToObject(taint, "key", DRAIN_TAINT_DELETION);
	cJSON_AddStringToObject(taint, "value", value);
	cJSON_AddStringToObject(taint, "effect", "NoSchedule");
	return true;
}

static void add_ready(cJSON *status, const cJSON *node)
{
	const cJSON *ready = values_get(node, "ready");
	cJSON *condition;

	if (!ready)
		return;
	condition = cJSON_CreateObject();
	cJSON_AddItemToArray(cJSON_AddArrayToObject(status, "conditions"), condition);
	cJSON_AddStringToObject(condition, "type", "Ready");
	cJSON_AddStringToObject(condition, "status", cJSON_IsTrue(ready) ? "True" : "False");
}

static void add_node_marks(cJSON *metadata, const cJSON *node)
{
	cJSON *annotations = cJSON_AddObjectToObject(metadata, "annotations");
	cJSON *labels = cJSON_AddObjectToObject(metadata, "labels");

	if (cJSON_IsTrue(values_get(node, "scale_down_disabled")))
		cJSON_AddStringToObject(annotations,
					"cluster-autoscaler.kubernetes.io/scale-down-disabled",
					"true");
	if (cJSON_IsTrue(values_get(node, "gpu_label")))
		cJSON_AddStringToObject(labels, "cloud.google.com/gke-accelerator", "x");
}

bool drain_records_add_node(struct drain_records *r, const cJSON *node, struct error *error)
{
	static const char *const keys[] = {"name",
					   "cpu_m",
					   "mem",
					   "gpu",
					   "gpu_label",
					   "ready",
					   "scale_down_disabled",
					   "to_be_deleted_taint_age_s",
					   "dra_pool_incomplete",
					   NULL};
	cJSON *json = cJSON_CreateObject(), *metadata = cJSON_AddObjectToObject(json, "metadata");
	cJSON *status = cJSON_AddObjectToObject(json, "status");
	cJSON *allocatable = cJSON_AddObjectToObject(status, "allocatable");
	const char *name;

	if (!values_only(node, keys, error) || !text_member(node, "name", "node", &name, error) ||
	    !add_amount(allocatable, "cpu", node, "cpu_m", "m", error) ||
	    !add_amount(allocatable, "memory", node, "mem", "", error) ||
	    !add_amount(allocatable, "nvidia.com/gpu", node, "gpu", "", error) ||
	    !add_taint(cJSON_AddObjectToObject(json, "spec"), node, error)) {
		cJSON_Delete(json);
		return false;
	}
	cJSON_AddStringToObject(metadata, "name", name);
	add_node_marks(metadata, node);
	add_ready(status, node);
	return drain_records_add(r, OBJECT_NODE, json, error);
}

/* --- budgets, owners */

static bool add_budget(struct drain_records *r, const cJSON *budget, struct error *error)
{
	cJSON *json = cJSON_CreateObject(), *metadata = cJSON_AddObjectToObject(json, "metadata");
	cJSON *spec = cJSON_AddObjectToObject(json, "spec");
	cJSON *status = cJSON_AddObjectToObject(json, "status");
	const cJSON *match = values_get(budget, "match");
	const char *namespace;
	char name[32];

	snprintf(name, sizeof(name), "budget-%zu", r->count);
	cJSON_AddStringToObject(metadata, "name", name);
	if (!text_member(budget, "ns", "", &namespace, error)) {
		cJSON_Delete(json);
		return false;
	}
	cJSON_AddStringToObject(metadata, "namespace", namespace);
	if (match)
		add_copy(cJSON_AddObjectToObject(spec, "selector"), "matchLabels", budget, "match");
	add_copy(status, "disruptionsAllowed", budget, "allowed");
	return drain_records_add(r, OBJECT_POD_DISRUPTION_BUDGET, json, error);
}

bool drain_records_add_budgets(struct drain_records *r, const cJSON *list, struct error *error)
{
	static const char *const keys[] = {"ns", "match", "allowed", NULL};

	for (const cJSON *item = list ? list->child : NULL; item; item = item->next)
		if (!values_only(item, keys, error) || !add_budget(r, item, error))
			return false;
	return true;
}

/* Those of the source's test all have 5 replicas. */
static bool put_owner(struct model *m, enum object_kind kind, const char *path, struct error *error)
{
	const char *slash = path ? strchr(path, '/') : NULL;
	struct drain_records one = {0};
	cJSON *json, *metadata;
	char *namespace;

	if (!slash) {
		values_fail(error, "an owner must be namespace/name");
		return false;
	}
	json = cJSON_CreateObject();
	metadata = cJSON_AddObjectToObject(json, "metadata");
	namespace = mem_strndup(path, (size_t)(slash - path));
	cJSON_AddStringToObject(metadata, "namespace", namespace);
	cJSON_AddStringToObject(metadata, "name", slash + 1);
	cJSON_AddNumberToObject(cJSON_AddObjectToObject(json, "spec"), "replicas", 5);
	free(namespace);
	if (!drain_records_add(&one, kind, json, error))
		return false;
	model_put(m, one.of[0]);
	free(one.of);
	return true;
}

bool drain_records_cluster(const cJSON *listers, struct cluster **out, struct error *error)
{
	static const struct {
		const char *key;
		enum object_kind kind;
	} kinds[] = {
		{"rc", OBJECT_REPLICATION_CONTROLLER},
		{"rs", OBJECT_REPLICA_SET},
		{"ds", OBJECT_DAEMON_SET},
		{"job", OBJECT_JOB},
		{"ss", OBJECT_STATEFUL_SET},
	};
	static const struct model_source known = {.state = SOURCE_SNAPSHOT};
	struct model *m;
	bool good = true;

	*out = NULL;
	if (!listers)
		return true;
	m = model_new();
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const cJSON *list = values_get(listers, kinds[i].key);

		model_set_source(m, kinds[i].kind, &known);
		for (const cJSON *item = list ? list->child : NULL; good && item; item = item->next)
			good = put_owner(m, kinds[i].kind, cJSON_GetStringValue(item), error);
	}
	if (good)
		*out = model_cluster(m);
	model_free(m);
	return good;
}

/* --- options and wants */

static bool set_flag(const cJSON *c, const char *key, bool *out)
{
	const cJSON *item = values_get(c, key);

	if (item)
		*out = cJSON_IsTrue(item);
	return !item || cJSON_IsBool(item);
}

static bool set_seconds(const cJSON *c, const char *key, int64_t *out_ns)
{
	return !values_get(c, key) || drain_case_seconds(c, key, out_ns, NULL);
}

bool drain_case_options(const cJSON *c, struct drain_options *o, struct error *error)
{
	const cJSON *replicas = values_get(c, "min_replica_count");
	const cJSON *threshold = values_get(c, "utilization_threshold");

	drain_options_upstream(o);
	if (replicas)
		o->min_replicas = replicas->valueint;
	if (threshold)
		o->utilization = threshold->valuedouble;
	if (set_flag(c, "skip_system", &o->skip_system) &&
	    set_flag(c, "skip_local_storage", &o->skip_local_storage) &&
	    set_flag(c, "skip_custom_controller", &o->skip_custom_controllers) &&
	    set_flag(c, "skip_daemonset", &o->ignore_daemon_sets) &&
	    set_flag(c, "ignore_daemonsets_utilization", &o->ignore_daemon_sets) &&
	    set_flag(c, "skip_mirror", &o->ignore_mirror) &&
	    set_flag(c, "scale_down_unready_enabled", &o->drain_unready) &&
	    set_seconds(c, "system_timeout_s", &o->system_timeout_ns) &&
	    set_seconds(c, "unneeded_s", &o->unneeded_ns) &&
	    set_seconds(c, "unready_s", &o->unready_ns))
		return true;
	values_fail(error, "options cannot be read");
	return false;
}

bool drain_case_same(const cJSON *object, const char *key, const char *got, struct error *error)
{
	const char *want = cJSON_GetStringValue(values_get(object, key));

	if (!want)
		want = strcmp(got, "NoReason") == 0 ? "NoReason" : "";
	if (strcmp(want, got) == 0)
		return true;
	values_fail(error, "%s is %s, and not %s", key, got, want);
	return false;
}
