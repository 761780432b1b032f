/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What evenkeel keeps of Kubernetes objects: immutable, reference-counted records that any thread
 * may hold.
 *
 * A record is made from the JSON of an object. Fields nobody needs are dropped by the tables in
 * object_keep.c; what is kept stays as canonical text, too (members sorted by name, no white
 * space), so that a snapshot is written from it and unknown members of a kept part (an operator of
 * tomorrow) are still there for those who must refuse what they cannot judge.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/model/declared_features.h"
#include "aggregator/model/labels.h"
#include "aggregator/model/pod_spec.h"
#include "aggregator/model/pod_sums.h"
#include "aggregator/model/resources.h"
#include "shared/buf.h"
#include "shared/error.h"

/*
 * X(name, apiVersion of a dump, kind, resource, namespaced). The order is that of a snapshot. A
 * resource whose name another group has, too, is named with its group, as kubectl does.
 */
#define OBJECT_KIND_TABLE(X)                                                                       \
	X(NODE, "v1", "Node", "nodes", false)                                                      \
	X(NAMESPACE, "v1", "Namespace", "namespaces", false)                                       \
	X(PRIORITY_CLASS, "scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", false)       \
	X(REPLICA_SET, "apps/v1", "ReplicaSet", "replicasets", true)                               \
	X(STATEFUL_SET, "apps/v1", "StatefulSet", "statefulsets", true)                            \
	X(DAEMON_SET, "apps/v1", "DaemonSet", "daemonsets", true)                                  \
	X(JOB, "batch/v1", "Job", "jobs", true)                                                    \
	X(REPLICATION_CONTROLLER, "v1", "ReplicationController", "replicationcontrollers", true)   \
	X(POD_DISRUPTION_BUDGET, "policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", true) \
	X(RESOURCE_QUOTA, "v1", "ResourceQuota", "resourcequotas", true)                           \
	X(ELASTIC_QUOTA, "scheduling.x-k8s.io/v1alpha1", "ElasticQuota", "elasticquotas", true)    \
	X(POD_GROUP, "scheduling.k8s.io/v1beta1", "PodGroup", "podgroups", true)                   \
	X(COSCHEDULING_GROUP, "scheduling.x-k8s.io/v1alpha1", "PodGroup",                          \
	  "podgroups.scheduling.x-k8s.io", true)                                                   \
	X(WORKLOAD, "scheduling.k8s.io/v1alpha1", "Workload", "workloads", true)                   \
	X(PERSISTENT_VOLUME, "v1", "PersistentVolume", "persistentvolumes", false)                 \
	X(PERSISTENT_VOLUME_CLAIM, "v1", "PersistentVolumeClaim", "persistentvolumeclaims", true)  \
	X(STORAGE_CLASS, "storage.k8s.io/v1", "StorageClass", "storageclasses", false)             \
	X(CSI_NODE, "storage.k8s.io/v1", "CSINode", "csinodes", false)                             \
	X(DEVICE_CLASS, "resource.k8s.io/v1", "DeviceClass", "deviceclasses", false)               \
	X(DEVICE_TAINT_RULE, "resource.k8s.io/v1", "DeviceTaintRule", "devicetaintrules", false)   \
	X(RESOURCE_SLICE, "resource.k8s.io/v1", "ResourceSlice", "resourceslices", false)          \
	X(RESOURCE_CLAIM_TEMPLATE, "resource.k8s.io/v1", "ResourceClaimTemplate",                  \
	  "resourceclaimtemplates", true)                                                          \
	X(RESOURCE_CLAIM, "resource.k8s.io/v1", "ResourceClaim", "resourceclaims", true)           \
	X(POD, "v1", "Pod", "pods", true)

enum object_kind {
#define X(name, version, kind, resource, namespaced) OBJECT_##name,
	OBJECT_KIND_TABLE(X)
#undef X
		OBJECT_KINDS
};

const char *object_kind_name(enum object_kind kind); /* "PodDisruptionBudget" */
const char *object_kind_resource(enum object_kind kind); /* "poddisruptionbudgets" */
int object_kind_resource_len(
	enum object_kind kind); /* without its group: as paths and rules have it */
const char *object_kind_version(enum object_kind kind); /* "policy/v1": what a snapshot says */
bool object_kind_namespaced(enum object_kind kind);
/*
 * -ENOENT for a kind that is not kept. Any version of the right group will do ("policy/v1beta1");
 * ElasticQuota is known in scheduling.x-k8s.io and scheduling.sigs.k8s.io, and so is the PodGroup
 * of scheduler-plugins.
 */
int object_kind_find(const char *api_version, const char *kind, enum object_kind *out);

/* The head of every record. */
struct object {
	atomic_uint users;
	enum object_kind kind;
	const char *namespace; /* "" where there is none */
	const char *name;
	const char *uid; /* "" where the object has none */
	const char *text; /* canonical JSON of what is kept; of a pod NULL, see struct kube_pod */
};

/*
 * Canonical: no white space; apiVersion and kind, then the other members sorted by name (strcmp) at
 * every level; null is left out; whole numbers as integers. Quantities and times stay as they were
 * written.
 */

enum { OBJECT_FIELD_MAX = 160 };

/*
 * 0 with a record the caller drops. -EINVAL: a field that matters cannot be read; field then is its
 * path ("spec.containers[0].resources.requests.cpu") and the reason says what is wrong. What is
 * merely unknown is kept or dropped. An object without apiVersion counts as object_kind_version():
 * who reads the items of a list gives them the list's. Without kind it is of the kind it is read
 * as.
 */
int object_read(enum object_kind kind, const cJSON *json, struct object **out,
		char field[OBJECT_FIELD_MAX], struct error *error);
struct object *object_hold(struct object *o);
/* Any thread; the last user frees it. NULL is allowed. */
void object_drop(struct object *o);
/* By namespace, then name (strcmp). */
int object_compare(const struct object *a, const struct object *b);
/* One JSON object with apiVersion and kind, which object_read() makes an equal record of. */
void object_write(const struct object *o, struct buf *out);

/* --- nodes */

/*
 * Conditions by which an administrator says that a node is about to change (Kubernetes 1.37,
 * NodeLifecycleConditions). The first three end its pods: it takes no more. Under maintenance the
 * kube-scheduler goes on to place pods; plans move none to such a node.
 */
enum node_lifecycle {
	NODE_SHUTDOWN_IN_PROGRESS,
	NODE_DRAIN_IN_PROGRESS,
	NODE_DRAINED,
	NODE_MAINTENANCE_PLANNED,
	NODE_MAINTENANCE_IN_PROGRESS,
	NODE_LIFECYCLES,
	NODE_ENDING =
		1 << NODE_SHUTDOWN_IN_PROGRESS | 1 << NODE_DRAIN_IN_PROGRESS | 1 << NODE_DRAINED,
	NODE_MAINTENANCE = 1 << NODE_MAINTENANCE_PLANNED | 1 << NODE_MAINTENANCE_IN_PROGRESS,
};

const char *node_lifecycle_name(enum node_lifecycle l); /* "DrainInProgress" */

/* --- taints of a node, as its spec has them */

struct taint {
	const char *key, *value, *effect; /* "" where there is none */
};

/* In the order of the node. */
struct taints {
	size_t count;
	struct taint *of; /* owned with its strings, in one block */
	bool unreadable; /* no list, or an element of it has no key */
};

/* From a JSON list. Anything else has no taints, and elements without a key are left out. */
void taints_read(const cJSON *json, struct taints *out);
void taints_fini(struct taints *t);
/* The first with that key, or NULL. */
const struct taint *taints_find(const struct taints *t, const char *key);

struct kube_node {
	struct object object;
	struct labels labels, annotations; /* annotations: those kept */
	struct taints taints;
	struct resources capacity, allocatable;
	bool ready; /* condition Ready is True */
	bool unschedulable; /* cordoned */
	uint8_t lifecycle; /* 1 << enum node_lifecycle for each condition that is True */
	declared_features features; /* status.declaredFeatures */
	int64_t created_ns, deletion_ns; /* 0: unknown, not in deletion */
};

/* Annotated evenkeel.io/draining, with another value than "false": drained by other means. */
bool kube_node_is_draining(const struct kube_node *n);

/* --- pods */

struct owner_ref {
	const char *kind, *name, *uid; /* the controller; "" where there is none */
};

enum pod_restart { POD_RESTART_ALWAYS, POD_RESTART_ON_FAILURE, POD_RESTART_NEVER };

/* The group of pods of which some minimum must be there for any to work, as the pod names it. */
struct pod_gang {
	enum object_kind kind; /* of the object that tells the minimum, in the pod's namespace */
	const char *name; /* "" none */
	const char *part; /* of a Workload, the name of its podGroup; else "" */
	const char *replica; /* of a Workload, podGroupReplicaKey; else "" */
};

/* The common part of the pods of one owner; model_put() makes equal templates one. */
struct pod_template {
	atomic_uint users;
	uint64_t hash; /* of text */
	/*
	 * Canonical JSON: {"metadata":{annotations,labels,ownerReferences},"spec":{..}} without
	 * nodeName, and without the affinity by which a DaemonSet binds each of its pods to a node.
	 */
	const char *text;
	size_t text_len;
	size_t spec_at; /* where in text the object of "spec" begins */
	struct labels labels, annotations; /* annotations: those kept */
	struct owner_ref owner;
	const char *owner_api; /* "apps/v1"; "" where there is no owner, or it does not say */
	struct pod_spec spec; /* for scores: CPU and memory by container */
	struct pod_sums sums; /* of the pod: sidecars, init, overhead, pod level */
	int32_t priority;
	const char *priority_class; /* "" */
	struct pod_gang gang;
	bool mirror; /* a static pod's image in the API */
	uint8_t restart; /* enum pod_restart */
	int32_t grace_sec; /* terminationGracePeriodSeconds; -1 where it is not said */
	/*
	 * Names of volumes whose data are lost with the pod's place: hostPath, and emptyDir that is
	 * not in memory.
	 */
	struct labels local_volumes; /* by name; the value is "hostPath" or "emptyDir" */
};

enum pod_phase { POD_PENDING, POD_RUNNING, POD_SUCCEEDED, POD_FAILED, POD_UNKNOWN };

struct kube_pod {
	struct object object;
	struct pod_template *template; /* held */
	const char *node; /* spec.nodeName, "" while pending */
	const char *nominated_node; /* status.nominatedNodeName, "" */
	const char *qos; /* status.qosClass, "" */
	/*
	 * Other sums than the template's where a resize is under way or was done in place (status);
	 * NULL: the template's.
	 */
	struct pod_sums *resized; /* owned */
	/* Canonical JSON of the status that makes them; NULL where resized is. */
	const char *resized_text;
	/*
	 * "0123456789abcdef web\n" for each container that has an id, whose beginning that is,
	 * without init containers that have ended; ""
	 */
	const char *containers;
	int64_t created_ns, deletion_ns; /* 0: unknown, not in deletion */
	int64_t started_ns; /* status.startTime: the kubelet took it on; 0: not yet */
	int64_t scheduled_ns; /* PodScheduled became True; 0: not yet */
	int64_t unschedulable_ns; /* PodScheduled was False as of then; 0: it is not */
	int64_t disruption_ns; /* condition DisruptionTarget; 0: none */
	uint32_t restarts;
	uint8_t phase; /* enum pod_phase */
	uint8_t resize; /* enum pod_resize */
	bool ready;
};

enum pod_resize {
	POD_RESIZE_NONE,
	POD_RESIZE_PROPOSED,
	POD_RESIZE_DEFERRED,
	POD_RESIZE_INFEASIBLE,
	POD_RESIZE_IN_PROGRESS
};

/* Conditions without a time count from the pod's creation. */

struct pod_template *pod_template_hold(struct pod_template *t);
/* Any thread; the last user frees it. NULL is allowed. */
void pod_template_drop(struct pod_template *t);
/* The pod's requests and limits on its node, as the kube-scheduler sums them now. */
const struct pod_sums *kube_pod_sums(const struct kube_pod *p);
const struct resources *kube_pod_requests(const struct kube_pod *p);
const struct resources *kube_pod_limits(const struct kube_pod *p);
/* Neither Succeeded nor Failed: its requests count. */
bool kube_pod_is_active(const struct kube_pod *p);
/* terminationGracePeriodSeconds, with the default of the API server, 30. */
int32_t kube_pod_grace_sec(const struct kube_pod *p);
/* Of the same owner, with the same priority and requests: as hard to place. */
bool kube_pods_are_alike(const struct kube_pod *a, const struct kube_pod *b);
/* Of 64 digits of an id so many tell the containers of a pod apart. */
enum { CONTAINER_ID_KEPT = 16, CONTAINER_NAME_MAX = 63 };
/* The name of the container with that id. False: unknown, or it has none. */
bool kube_pod_find_container(const struct kube_pod *p, const char *id,
			     char name[CONTAINER_NAME_MAX + 1]);
const char *pod_phase_name(enum pod_phase phase); /* "Running" */

/* --- what else is read in more than its text; the others are a struct object */

/* ReplicaSet, StatefulSet, DaemonSet, Job, ReplicationController. */
struct kube_workload {
	struct object object;
	struct owner_ref owner; /* a Deployment, a CronJob */
	int32_t replicas; /* wanted: spec.replicas, desiredNumberScheduled, parallelism; -1 unknown */
	int32_t present; /* status: replicas, currentNumberScheduled, active */
	int32_t current_revision; /* status.currentReplicas of a StatefulSet: those of one revision */
	int32_t completions; /* of a Job, -1 where it is not said */
	int32_t succeeded; /* of a Job */
	struct labels annotations; /* those kept */
};

struct kube_priority_class {
	struct object object;
	int32_t value;
	bool global_default, preempts; /* preemptionPolicy is not Never */
};

/*
 * ElasticQuota and ResourceQuota (hard is max, min is empty). Absent lists have no keys. Of a
 * ResourceQuota "requests.cpu" is told as "cpu", the smaller where both are there, and so with
 * every other resource but storage; "limits.cpu" is in millicores.
 */
struct kube_quota {
	struct object object;
	struct resources min, max;
	bool has_min, has_max; /* the member is there */
	struct labels annotations; /* those kept */
	int64_t created_ns;
};

/* PodGroup of either API group, and Workload of 1.35, which has several groups. */
struct kube_gang {
	struct object object;
	size_t count;
	struct gang_min {
		const char *part; /* "" of a PodGroup */
		int32_t pods; /* minCount, minMember; 0: no minimum */
	} of[];
};

/* The most volumes that each driver attaches to the node of that name, where the driver says so. */
struct kube_csi_node {
	struct object object;
	size_t count;
	struct csi_limit {
		const char *driver;
		int32_t volumes;
	} of[];
};

struct kube_pdb {
	struct object object;
	struct selector *selector; /* owned; NULL: selects nothing (v1beta1: nor does {}) */
	int32_t disruptions_allowed, expected_pods, current_healthy, desired_healthy;
	bool stale; /* the status is that of an older spec: the API refuses evictions until it is not */
	bool frees_unhealthy; /* unhealthyPodEvictionPolicy is AlwaysAllow */
};
