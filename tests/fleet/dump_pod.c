/* SPDX-License-Identifier: Apache-2.0 */
/* One pod as its workload's template, the scheduler and the kubelet would have left it. */
#include <string.h>

#include "shared/clock.h"
#include "tests/fleet/dump_internal.h"

static const char *const container_names[CLUSTER_CONTAINERS_MAX] = {"app",   "proxy",  "metrics",
								    "logs",  "config", "auth",
								    "cache", "sync"};

static void write_container(struct dump *d, const struct workload *w, uint32_t k)
{
	jsonw_object_open(&d->w);
	jsonw_key_string(&d->w, "name", container_names[k]);
	jsonw_key_string(&d->w, "image", "registry.example.com/app:1");
	jsonw_key(&d->w, "resources");
	jsonw_object_open(&d->w);
	if (w->cpu_milli || w->mem_bytes)
		dump_resources(d, "requests", cluster_container_part(w, k, w->cpu_milli),
			       cluster_container_part(w, k, w->mem_bytes));
	if (w->cpu_limit_milli || w->mem_limit_bytes)
		dump_resources(d, "limits", cluster_container_part(w, k, w->cpu_limit_milli),
			       cluster_container_part(w, k, w->mem_limit_bytes));
	jsonw_object_close(&d->w);
	jsonw_object_close(&d->w);
}

static void write_label_selector(struct dump *d, const struct workload *w)
{
	jsonw_key(&d->w, "labelSelector");
	jsonw_object_open(&d->w);
	dump_app(d, "matchLabels", w->name);
	jsonw_object_close(&d->w);
}

static void write_apart(struct dump *d, const struct workload *w)
{
	jsonw_key(&d->w, "affinity");
	jsonw_object_open(&d->w);
	jsonw_key(&d->w, "podAntiAffinity");
	jsonw_object_open(&d->w);
	jsonw_key(&d->w, "requiredDuringSchedulingIgnoredDuringExecution");
	jsonw_array_open(&d->w);
	jsonw_object_open(&d->w);
	jsonw_key_string(&d->w, "topologyKey", "kubernetes.io/hostname");
	write_label_selector(d, w);
	jsonw_object_close(&d->w);
	jsonw_array_close(&d->w);
	jsonw_object_close(&d->w);
	jsonw_object_close(&d->w);
}

static void write_spread(struct dump *d, const struct workload *w)
{
	jsonw_key(&d->w, "topologySpreadConstraints");
	jsonw_array_open(&d->w);
	jsonw_object_open(&d->w);
	jsonw_key_int(&d->w, "maxSkew", 1);
	jsonw_key_string(&d->w, "topologyKey", "topology.kubernetes.io/zone");
	jsonw_key_string(&d->w, "whenUnsatisfiable", "DoNotSchedule");
	write_label_selector(d, w);
	jsonw_object_close(&d->w);
	jsonw_array_close(&d->w);
}

static void write_tolerations(struct dump *d, const struct workload *w)
{
	jsonw_key(&d->w, "tolerations");
	jsonw_array_open(&d->w);
	jsonw_object_open(&d->w);
	if (w->batch) {
		jsonw_key_string(&d->w, "key", "dedicated");
		jsonw_key_string(&d->w, "operator", "Equal");
		jsonw_key_string(&d->w, "value", "batch");
		jsonw_key_string(&d->w, "effect", "NoSchedule");
	} else {
		jsonw_key_string(&d->w, "operator", "Exists");
	}
	jsonw_object_close(&d->w);
	jsonw_array_close(&d->w);
}

static void write_volumes(struct dump *d, const struct workload *w, size_t pod)
{
	char claim[2 * CLUSTER_NAME_MAX];

	jsonw_key(&d->w, "volumes");
	jsonw_array_open(&d->w);
	jsonw_object_open(&d->w);
	if (w->volume) {
		dump_claim_name(d, pod, claim);
		jsonw_key_string(&d->w, "name", "data");
		jsonw_key(&d->w, "persistentVolumeClaim");
		jsonw_object_open(&d->w);
		jsonw_key_string(&d->w, "claimName", claim);
	} else {
		jsonw_key_string(&d->w, "name", "scratch");
		jsonw_key(&d->w, "emptyDir");
		jsonw_object_open(&d->w);
	}
	jsonw_object_close(&d->w);
	jsonw_object_close(&d->w);
	jsonw_array_close(&d->w);
}

static void write_spec(struct dump *d, const struct workload *w, size_t pod)
{
	const struct cluster_pod *p = &d->cluster->pods[pod];
	char node[CLUSTER_NAME_MAX];

	jsonw_key(&d->w, "spec");
	jsonw_object_open(&d->w);
	if (p->node >= 0) {
		cluster_node_name((uint32_t)p->node, node);
		jsonw_key_string(&d->w, "nodeName", node);
	}
	jsonw_key_string(&d->w, "schedulerName", "default-scheduler");
	jsonw_key_string(&d->w, "priorityClassName", dump_priority_names[w->priority]);
	jsonw_key_int(&d->w, "priority", dump_priority_values[w->priority]);
	jsonw_key_string(&d->w, "restartPolicy", w->kind == WORKLOAD_JOB ? "OnFailure" : "Always");
	jsonw_key(&d->w, "containers");
	jsonw_array_open(&d->w);
	for (uint32_t k = 0; k < w->containers; k++)
		write_container(d, w, k);
	jsonw_array_close(&d->w);
	if (w->batch) {
		jsonw_key(&d->w, "nodeSelector");
		jsonw_object_open(&d->w);
		jsonw_key_string(&d->w, "pool", "batch");
		jsonw_object_close(&d->w);
	}
	if (w->batch || w->kind == WORKLOAD_DAEMON_SET)
		write_tolerations(d, w);
	if (w->apart)
		write_apart(d, w);
	if (w->spread)
		write_spread(d, w);
	if (w->volume || w->scratch)
		write_volumes(d, w, pod);
	jsonw_object_close(&d->w);
}

static void write_container_status(struct dump *d, size_t pod, uint32_t k, int64_t started_ns)
{
	char id[CONTAINER_ID_LEN + 1], url[CONTAINER_ID_LEN + 16];

	cluster_container_id(d->cluster, pod, 0, k, id);
	snprintf(url, sizeof(url), "containerd://%s", id);
	jsonw_object_open(&d->w);
	jsonw_key_string(&d->w, "name", container_names[k]);
	jsonw_key_string(&d->w, "containerID", url);
	jsonw_key_bool(&d->w, "ready", true);
	jsonw_key_int(&d->w, "restartCount", 0);
	jsonw_key(&d->w, "state");
	jsonw_object_open(&d->w);
	jsonw_key(&d->w, "running");
	jsonw_object_open(&d->w);
	dump_time(d, "startedAt", started_ns);
	jsonw_object_close(&d->w);
	jsonw_object_close(&d->w);
	jsonw_object_close(&d->w);
}

static void write_status(struct dump *d, const struct workload *w, size_t pod)
{
	static const char *const classes[] = {
		[QOS_GUARANTEED] = "Guaranteed",
		[QOS_BURSTABLE] = "Burstable",
		[QOS_BEST_EFFORT] = "BestEffort",
	};
	bool runs = d->cluster->pods[pod].node >= 0;
	int64_t since = dump_created_ns(d, DUMP_POD, pod) + 2 * NS_PER_SEC;

	jsonw_key(&d->w, "status");
	jsonw_object_open(&d->w);
	jsonw_key_string(&d->w, "phase", runs ? "Running" : "Pending");
	jsonw_key_string(&d->w, "qosClass", classes[cluster_qos(w)]);
	jsonw_key(&d->w, "conditions");
	jsonw_array_open(&d->w);
	dump_condition(d, "PodScheduled", runs, runs ? NULL : "Unschedulable", since);
	if (runs)
		dump_condition(d, "Ready", true, NULL, since);
	jsonw_array_close(&d->w);
	if (runs) {
		dump_time(d, "startTime", since);
		jsonw_key(&d->w, "containerStatuses");
		jsonw_array_open(&d->w);
		for (uint32_t k = 0; k < w->containers; k++)
			write_container_status(d, pod, k, since);
		jsonw_array_close(&d->w);
	}
	jsonw_object_close(&d->w);
}

void dump_pod(struct dump *d, size_t pod)
{
	const struct cluster_pod *p = &d->cluster->pods[pod];
	const struct workload *w = cluster_workload(d->cluster, p);
	struct dump_controller owner = dump_controller_of(d, p->workload);
	char name[CLUSTER_NAME_MAX], namespace[CLUSTER_NAME_MAX], uid[POD_UID_LEN + 1];

	cluster_pod_name(d->cluster, pod, name);
	cluster_namespace_name(w->namespace, namespace);
	dump_open(d, "v1", "Pod");
	dump_metadata(d, DUMP_POD, pod, namespace, name);
	jsonw_key(&d->w, "labels");
	jsonw_object_open(&d->w);
	jsonw_key_string(&d->w, "app", w->name);
	/* By it and the ReplicaSet's name the Deployment is known. */
	if (w->kind == WORKLOAD_DEPLOYMENT)
		jsonw_key_string(&d->w, "pod-template-hash", strrchr(owner.name, '-') + 1);
	jsonw_object_close(&d->w);
	if (owner.kind) {
		dump_uid(d, owner.dump_kind, p->workload, uid);
		dump_owner(d, owner.api_version, owner.kind, owner.name, uid);
	}
	jsonw_object_close(&d->w);
	write_spec(d, w, pod);
	write_status(d, w, pod);
	dump_close(d);
}
