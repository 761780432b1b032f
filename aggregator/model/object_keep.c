/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One table for each kind lists the members that are kept; every other member is dropped. A row
 * either keeps a member whole, so that readers that must understand all of it (an affinity, a
 * toleration) see what a later Kubernetes adds, or has a table for the members below. Members of
 * one pod only and members that change all the time (heartbeats, conditions' messages, tokens in
 * volumes) are in no table: pods of one owner must get the same text, and a node must not change
 * with every heartbeat.
 */
#include "aggregator/model/object_keep.h"

#include <string.h>

#include "aggregator/model/declared_features.h"
#include "aggregator/model/object_bounds.h"
#include "aggregator/model/object_record.h"
#include "aggregator/model/object_text.h"
#include "shared/array.h"

/* clang-format off */
#define ALL(name_)		     {.name = (name_)}
#define SOME(name_, below_)	     {.name = (name_), .below = (below_)}
#define PICK(name_, member_)	     {.name = (name_), .member = (member_)}
#define EACH(name_, below_, element_) {.name = (name_), .below = (below_), .element = (element_)}
#define END			     {.name = NULL}
#define ROWS(...)		     ((const struct object_text_row[]){__VA_ARGS__, END})
/* Of an object whose other rows come after its metadata. */
#define OBJECT(...)		     ROWS(SOME("metadata", METADATA), __VA_ARGS__)
/* clang-format on */

/* --- annotations: by their beginnings */

static const char *const pod_prefixes[] = {
	"evenkeel.io/",		 "cluster-autoscaler.kubernetes.io/",
	"kubernetes.io/config.", "karpenter.sh/",
	"descheduler",
};

static const char *const other_prefixes[] = {
	"delay-deletion.cluster-autoscaler.kubernetes.io/",
	"deployment.kubernetes.io/revision",
	"node.kubernetes.io/",
	"pv.kubernetes.io/bind-completed",
	"quota.scheduling.koordinator.sh/",
	"storageclass.kubernetes.io/is-default-class",
	"storageclass.beta.kubernetes.io/is-default-class",
	"volume.kubernetes.io/",
	"volume.beta.kubernetes.io/",
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool starts_with(const char *key, const char *const *prefixes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strncmp(key, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

bool object_keep_pod_annotation(const char *key)
{
	return starts_with(key, pod_prefixes, COUNT(pod_prefixes));
}

bool object_keep_annotation(const char *key)
{
	return object_keep_pod_annotation(key) ||
	       starts_with(key, other_prefixes, COUNT(other_prefixes));
}

/* --- tables */

static const struct object_text_row OWNER[] = {ALL("apiVersion"), ALL("controller"), ALL("kind"),
					       ALL("name"),	  ALL("uid"),	     END};

static const struct object_text_row METADATA[] = {
	PICK("annotations", object_keep_annotation),
	ALL("creationTimestamp"),
	ALL("deletionTimestamp"),
	ALL("generation"),
	ALL("labels"),
	ALL("name"),
	ALL("namespace"),
	SOME("ownerReferences", OWNER),
	ALL("uid"),
	END,
};

/* Of every kind of workload; none has them all. */
#define WORKLOAD_SPEC                                                                              \
	ALL("completionMode"), ALL("completions"), ALL("minReadySeconds"), ALL("parallelism"),     \
		ALL("replicas"), ALL("suspend")
static const struct object_text_row WORKLOAD_STATUS[] = {
	ALL("active"),
	ALL("availableReplicas"),
	ALL("completionTime"),
	ALL("currentNumberScheduled"),
	ALL("currentReplicas"),
	ALL("desiredNumberScheduled"),
	ALL("failed"),
	ALL("numberAvailable"),
	ALL("numberReady"),
	ALL("readyReplicas"),
	ALL("replicas"),
	ALL("succeeded"),
	END,
};
static const struct object_text_row WORKLOAD[] = {
	SOME("metadata", METADATA),
	SOME("spec", ROWS(WORKLOAD_SPEC)),
	SOME("status", WORKLOAD_STATUS),
	END,
};

static const struct object_text_row QUOTA[] = {
	SOME("metadata", METADATA),
	ALL("spec"),
	SOME("status", ROWS(ALL("hard"), ALL("used"))),
	END,
};

static const struct object_text_row GANG[] = {
	SOME("metadata", METADATA),
	SOME("spec", ROWS(ALL("minMember"), ALL("podGroups"), ALL("schedulingPolicy"))),
	END,
};

/* Opaque parameters of a driver and amounts of a device decide about no node. */
static bool is_placement_member(const char *name)
{
	return strcmp(name, "config") != 0 && strcmp(name, "capacity") != 0;
}

static const struct object_text_row DEVICE_CLAIM_SPEC[] = {PICK("devices", is_placement_member),
							   END};

static const struct object_text_row *const tables[OBJECT_KINDS] = {
	[OBJECT_NODE] =
		OBJECT(SOME("spec", ROWS(ALL("providerID"), ALL("taints"), ALL("unschedulable"))),
		       SOME("status", ROWS(ALL("allocatable"), ALL("capacity"),
					   SOME("conditions", ROWS(ALL("lastTransitionTime"),
								   ALL("status"), ALL("type"))),
					   ALL("declaredFeatures")))),
	[OBJECT_NAMESPACE] = OBJECT(SOME("status", ROWS(ALL("phase")))),
	[OBJECT_PRIORITY_CLASS] = ROWS(ALL("globalDefault"), SOME("metadata", METADATA),
				       ALL("preemptionPolicy"), ALL("value")),
	[OBJECT_REPLICA_SET] = WORKLOAD,
	[OBJECT_STATEFUL_SET] = WORKLOAD,
	[OBJECT_DAEMON_SET] = WORKLOAD,
	[OBJECT_JOB] = WORKLOAD,
	[OBJECT_REPLICATION_CONTROLLER] = WORKLOAD,
	[OBJECT_POD_DISRUPTION_BUDGET] = OBJECT(
		ALL("spec"), SOME("status", ROWS(ALL("currentHealthy"), ALL("desiredHealthy"),
						 ALL("disruptedPods"), ALL("disruptionsAllowed"),
						 ALL("expectedPods"), ALL("observedGeneration")))),
	[OBJECT_RESOURCE_QUOTA] = QUOTA,
	[OBJECT_ELASTIC_QUOTA] = QUOTA,
	[OBJECT_POD_GROUP] = GANG,
	[OBJECT_COSCHEDULING_GROUP] = GANG,
	[OBJECT_WORKLOAD] = GANG,
	[OBJECT_PERSISTENT_VOLUME] = OBJECT(
		SOME("spec", ROWS(ALL("accessModes"), ALL("capacity"),
				  SOME("claimRef", ROWS(ALL("name"), ALL("namespace"), ALL("uid"))),
				  SOME("csi", ROWS(ALL("driver"))), ALL("hostPath"), ALL("local"),
				  ALL("nodeAffinity"), ALL("persistentVolumeReclaimPolicy"),
				  ALL("storageClassName"), ALL("volumeMode"))),
		SOME("status", ROWS(ALL("phase")))),
	[OBJECT_PERSISTENT_VOLUME_CLAIM] = OBJECT(
		SOME("spec", ROWS(ALL("accessModes"), ALL("resources"), ALL("selector"),
				  ALL("storageClassName"), ALL("volumeMode"), ALL("volumeName"))),
		SOME("status", ROWS(ALL("accessModes"), ALL("capacity"), ALL("phase")))),
	[OBJECT_STORAGE_CLASS] =
		ROWS(ALL("allowedTopologies"), SOME("metadata", METADATA), ALL("provisioner"),
		     ALL("reclaimPolicy"), ALL("volumeBindingMode")),
	[OBJECT_CSI_NODE] =
		OBJECT(SOME("spec", ROWS(SOME("drivers", ROWS(ALL("allocatable"), ALL("name")))))),
	[OBJECT_DEVICE_CLASS] = OBJECT(PICK("spec", is_placement_member)),
	[OBJECT_DEVICE_TAINT_RULE] = OBJECT(ALL("spec")),
	[OBJECT_RESOURCE_SLICE] = OBJECT(SOME(
		"spec", ROWS(ALL("allNodes"), PICK("devices", is_placement_member), ALL("driver"),
			     ALL("nodeName"), ALL("nodeSelector"), ALL("perDeviceNodeSelection"),
			     ALL("pool"), ALL("skipNodeOperations")))),
	[OBJECT_RESOURCE_CLAIM_TEMPLATE] =
		OBJECT(SOME("spec", ROWS(SOME("spec", DEVICE_CLAIM_SPEC)))),
	[OBJECT_RESOURCE_CLAIM] = OBJECT(
		SOME("spec", DEVICE_CLAIM_SPEC),
		SOME("status", ROWS(SOME("allocation",
					 ROWS(SOME("devices",
						   ROWS(SOME("results",
							     ROWS(ALL("adminAccess"), ALL("device"),
								  ALL("driver"), ALL("pool"))))),
					      ALL("nodeSelector"))),
				    SOME("reservedFor", ROWS(ALL("resource"), ALL("uid")))))),
};

/* --- tables of pods */

/*
 * Kinds of volumes that neither keep a pod on its node nor lose anything with it. The one with the
 * token has a random name.
 */
static bool is_volume_member(const char *name)
{
	static const char *const dropped[] = {"configMap", "downwardAPI", "projected", "secret",
					      NULL};

	return !array_has_text(dropped, name);
}

/* Something besides its name is kept. */
static bool is_volume(const cJSON *volume)
{
	for (const cJSON *item = cJSON_IsObject(volume) ? volume->child : NULL; item;
	     item = item->next)
		if (strcmp(item->string, "name") != 0 && is_volume_member(item->string) &&
		    object_json_find(volume, item->string) == item && !object_text_is_nothing(item))
			return true;
	return false;
}

/* Only ports of the host can be in another pod's way. */
static bool is_host_port(const cJSON *port)
{
	const cJSON *number = object_json_find(port, "hostPort");

	return number && !object_text_is_nothing(number) &&
	       !(cJSON_IsNumber(number) && number->valuedouble == 0);
}

static const struct object_text_row CONTAINER[] = {
	ALL("name"),
	EACH("ports", ROWS(ALL("hostIP"), ALL("hostPort"), ALL("protocol")), is_host_port),
	ALL("resources"),
	ALL("restartPolicy"),
	EACH("restartPolicyRules", ROWS(ALL("action")), declared_features_restart_rule),
	EACH("volumeMounts", ROWS(ALL("bindMountOptions")), declared_features_mount),
	END,
};

static const struct object_text_row POD_METADATA[] = {
	PICK("annotations", object_keep_pod_annotation), ALL("labels"),
	SOME("ownerReferences", OWNER), END};

static const struct object_text_row POD_SPEC[] = {
	ALL("affinity"),
	SOME("containers", CONTAINER),
	ALL("hostNetwork"),
	ALL("hostUsers"),
	SOME("initContainers", CONTAINER),
	ALL("nodeSelector"),
	ALL("overhead"),
	ALL("preemptionPolicy"),
	ALL("priority"),
	ALL("priorityClassName"),
	ALL("resourceClaims"),
	ALL("resources"),
	ALL("restartPolicy"),
	ALL("runtimeClassName"),
	ALL("schedulerName"),
	ALL("schedulingGates"),
	ALL("schedulingGroup"),
	ALL("terminationGracePeriodSeconds"),
	ALL("tolerations"),
	ALL("topologySpreadConstraints"),
	{.name = "volumes", .member = is_volume_member, .element = is_volume},
	ALL("workloadRef"),
	END,
};

static const struct object_text_row CONTAINER_STATUS[] = {
	ALL("allocatedResources"), ALL("containerID"),	ALL("name"),
	ALL("resources"),	   ALL("restartCount"), END};
static const struct object_text_row RESIZE[] = {
	ALL("allocatedResources"),
	SOME("containerStatuses", CONTAINER_STATUS),
	SOME("initContainerStatuses", CONTAINER_STATUS),
	ALL("nodeAllocatableResourceClaimStatuses"),
	ALL("resources"),
	END,
};

/*
 * Of a workload that asks for slack, what its next pod would be, since it may have none; templates
 * of all the others, and of their old revisions, would be more than all else that is kept.
 */
static const struct object_text_row SLACK_WORKLOAD[] = {
	SOME("metadata", METADATA),
	SOME("spec", ROWS(WORKLOAD_SPEC, SOME("template", ROWS(SOME("metadata", POD_METADATA),
							       SOME("spec", POD_SPEC))))),
	SOME("status", WORKLOAD_STATUS),
	END,
};

static bool asks_for_slack(const cJSON *json)
{
	const cJSON *metadata = object_json_find(json, "metadata");

	return object_json_find(object_json_find(metadata, "annotations"), "evenkeel.io/slack") !=
	       NULL;
}

static const struct object_text_row *table_of(enum object_kind kind, const cJSON *json)
{
	const cJSON *template = object_json_find(object_json_find(json, "spec"), "template");

	if (tables[kind] == WORKLOAD && kind != OBJECT_DAEMON_SET &&
	    (asks_for_slack(json) || asks_for_slack(template)))
		return SLACK_WORKLOAD;
	return tables[kind];
}

void object_keep_write(const struct object_json *whole, enum object_kind kind,
		       const char *api_version, struct buf *out)
{
	struct object_text t;

	object_text_init(&t, out, OBJECT_BOUND_TEXT);
	jsonw_object_open(&t.json);
	jsonw_key_string(&t.json, "apiVersion", api_version);
	jsonw_key_string(&t.json, "kind", object_kind_name(kind));
	object_text_members(&t, whole->json, table_of(kind, whole->json));
	jsonw_object_close(&t.json);
	object_text_end(&t, whole);
}

/* [{"key":"metadata.name","operator":"In","values":[NODE]}] */
static bool is_binding(const cJSON *fields, const char *node)
{
	const cJSON *field = object_json_first(fields);
	const cJSON *value = object_json_first(object_json_find(field, "values"));

	return value && !field->next && !value->next &&
	       object_json_is(field, "key", "metadata.name") &&
	       object_json_is(field, "operator", "In") && cJSON_IsString(value) &&
	       strcmp(value->valuestring, node) == 0;
}

/*
 * The controller of DaemonSets puts matchFields with the node's name into every term of the
 * required affinity of a pod, and makes a term of its own where the template has none. Without what
 * it put there all pods of the set are alike. A pod whose terms say anything else keeps them all.
 */
static void skip_binding(struct object_text *t, const cJSON *spec, const char *node)
{
	const cJSON *affinity = object_json_find(spec, "affinity");
	const cJSON *required = object_json_find(object_json_find(affinity, "nodeAffinity"),
						 "requiredDuringSchedulingIgnoredDuringExecution");
	const cJSON *terms = object_json_find(required, "nodeSelectorTerms");
	bool alone = false;
	size_t count = 0;

	for (const cJSON *term = object_json_first(terms); term; term = term->next) {
		const cJSON *fields = object_json_find(term, "matchFields");

		if (count == OBJECT_TEXT_SKIPS_MAX || !is_binding(fields, node))
			return;
		alone |= !object_json_find(term, "matchExpressions");
		t->skip[count++] = fields;
	}
	if (alone) {
		t->skip[0] = required;
		count = 1;
	}
	t->skips = count;
}

void object_keep_template(const struct object_json *pod, const char *bound_to, struct buf *out,
			  size_t *spec_at)
{
	const cJSON *spec = object_json_find(pod->json, "spec");
	struct object_text t;

	object_text_init(&t, out, OBJECT_BOUND_POD_TEXT);
	if (bound_to)
		skip_binding(&t, spec, bound_to);
	jsonw_object_open(&t.json);
	jsonw_key(&t.json, "metadata");
	object_text_object(&t, object_json_find(pod->json, "metadata"), POD_METADATA);
	jsonw_key(&t.json, "spec");
	*spec_at = out->len;
	object_text_object(&t, spec, POD_SPEC);
	jsonw_object_close(&t.json);
	object_text_end(&t, pod);
}

void object_keep_resize(const struct object_json *status, struct buf *out)
{
	struct object_text t;

	object_text_init(&t, out, OBJECT_BOUND_POD_TEXT);
	object_text_object(&t, status->json, RESIZE);
	object_text_end(&t, status);
}
