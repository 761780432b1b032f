/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Controllers, budgets and volumes. A Deployment is known by its ReplicaSet, as evenkeel reads it;
 * a Job by every other's CronJob.
 */
#include <string.h>

#include "tests/fleet/dump_internal.h"

#define MIB (INT64_C(1) << 20)

enum { VOLUME_GIB = 20 };

struct dump_controller dump_controller_of(const struct dump *d, size_t workload)
{
	static const struct dump_controller of[] = {
		[WORKLOAD_DEPLOYMENT] = {"apps/v1", "ReplicaSet", DUMP_REPLICA_SET, ""},
		[WORKLOAD_STATEFUL_SET] = {"apps/v1", "StatefulSet", DUMP_STATEFUL_SET, ""},
		[WORKLOAD_DAEMON_SET] = {"apps/v1", "DaemonSet", DUMP_DAEMON_SET, ""},
		[WORKLOAD_JOB] = {"batch/v1", "Job", DUMP_JOB, ""},
		[WORKLOAD_BARE] = {NULL, NULL, DUMP_POD, ""},
	};
	const struct workload *w = &d->cluster->workloads[workload];
	struct dump_controller c = of[w->kind];

	if (w->kind == WORKLOAD_DEPLOYMENT)
		cluster_replica_set_name(d->cluster, workload, c.name);
	else
		memcpy(c.name, w->name, sizeof(c.name));
	return c;
}

static void write_owner(struct dump *d, size_t workload)
{
	const struct workload *w = &d->cluster->workloads[workload];
	char uid[POD_UID_LEN + 1];

	if (w->kind == WORKLOAD_DEPLOYMENT) {
		dump_uid(d, DUMP_DEPLOYMENT, workload, uid);
		dump_owner(d, "apps/v1", "Deployment", w->name, uid);
	} else if (w->kind == WORKLOAD_JOB && workload % 2) {
		dump_uid(d, DUMP_CRON_JOB, workload, uid);
		dump_owner(d, "batch/v1", "CronJob", w->name, uid);
	}
}

static void write_selector(struct dump *d, const struct workload *w)
{
	jsonw_key(&d->w, "selector");
	jsonw_object_open(&d->w);
	dump_app(d, "matchLabels", w->name);
	jsonw_object_close(&d->w);
}

static void write_spec(struct dump *d, const struct workload *w)
{
	jsonw_key(&d->w, "spec");
	jsonw_object_open(&d->w);
	if (w->kind == WORKLOAD_JOB) {
		jsonw_key_int(&d->w, "parallelism", w->replicas);
		jsonw_key_int(&d->w, "completions", w->replicas);
	} else {
		if (w->kind != WORKLOAD_DAEMON_SET)
			jsonw_key_int(&d->w, "replicas", w->replicas);
		write_selector(d, w);
	}
	jsonw_object_close(&d->w);
}

static uint32_t placed_of(const struct cluster *c, const struct workload *w)
{
	uint32_t placed = 0;

	for (size_t i = 0; i < w->replicas; i++)
		placed += c->pods[w->first_pod + i].node >= 0;
	return placed;
}

static void write_status(struct dump *d, const struct workload *w)
{
	uint32_t placed = placed_of(d->cluster, w);

	jsonw_key(&d->w, "status");
	jsonw_object_open(&d->w);
	if (w->kind == WORKLOAD_JOB) {
		jsonw_key_int(&d->w, "active", w->replicas);
	} else if (w->kind == WORKLOAD_DAEMON_SET) {
		jsonw_key_int(&d->w, "desiredNumberScheduled", w->replicas);
		jsonw_key_int(&d->w, "currentNumberScheduled", placed);
		jsonw_key_int(&d->w, "numberReady", placed);
	} else {
		jsonw_key_int(&d->w, "replicas", w->replicas);
		jsonw_key_int(&d->w, "readyReplicas", placed);
	}
	jsonw_object_close(&d->w);
}

/* One in eight asks the slack engine for room for one more replica. */
static void write_annotations(struct dump *d, const struct workload *w, size_t workload)
{
	if (w->kind != WORKLOAD_DEPLOYMENT || workload % 8)
		return;
	jsonw_key(&d->w, "annotations");
	jsonw_object_open(&d->w);
	jsonw_key_string(&d->w, "evenkeel.io/slack", "1");
	jsonw_object_close(&d->w);
}

static void write_budget(struct dump *d, size_t workload, const char *namespace)
{
	const struct workload *w = &d->cluster->workloads[workload];
	/* Every fourth lets nothing go. */
	int allowed = workload % 4 || d->cluster->config.movable ? 1 : 0;

	dump_open(d, "policy/v1", "PodDisruptionBudget");
	dump_metadata(d, DUMP_BUDGET, workload, namespace, w->name);
	jsonw_object_close(&d->w);
	jsonw_key(&d->w, "spec");
	jsonw_object_open(&d->w);
	jsonw_key_int(&d->w, "maxUnavailable", allowed);
	write_selector(d, w);
	jsonw_object_close(&d->w);
	jsonw_key(&d->w, "status");
	jsonw_object_open(&d->w);
	jsonw_key_int(&d->w, "disruptionsAllowed", allowed);
	jsonw_key_int(&d->w, "expectedPods", w->replicas);
	jsonw_key_int(&d->w, "currentHealthy", w->replicas);
	jsonw_key_int(&d->w, "desiredHealthy", (int64_t)w->replicas - allowed);
	jsonw_key_int(&d->w, "observedGeneration", 1);
	jsonw_object_close(&d->w);
	dump_close(d);
}

void dump_workload(struct dump *d, size_t workload)
{
	const struct workload *w = &d->cluster->workloads[workload];
	struct dump_controller c = dump_controller_of(d, workload);
	char namespace[CLUSTER_NAME_MAX];

	if (!c.kind)
		return;
	cluster_namespace_name(w->namespace, namespace);
	dump_open(d, c.api_version, c.kind);
	dump_metadata(d, c.dump_kind, workload, namespace, c.name);
	dump_app(d, "labels", w->name);
	write_annotations(d, w, workload);
	write_owner(d, workload);
	jsonw_object_close(&d->w);
	write_spec(d, w);
	write_status(d, w);
	dump_close(d);
	if (w->budget)
		write_budget(d, workload, namespace);
}

/* --- volumes ---------------------------------------------------------------------------------- */

void dump_claim_name(const struct dump *d, size_t pod, char text[2 * CLUSTER_NAME_MAX])
{
	char name[CLUSTER_NAME_MAX];

	cluster_pod_name(d->cluster, pod, name);
	snprintf(text, (size_t)2 * CLUSTER_NAME_MAX, "data-%s", name);
}

/* A disk can be attached in its zone alone. */
static void write_zone(struct dump *d, size_t pod)
{
	const struct cluster_pod *p = &d->cluster->pods[pod];
	char zone[16];

	snprintf(zone, sizeof(zone), "zone-%c",
		 'a' + (int)(p->node < 0 ? 0 : d->cluster->nodes[p->node].zone));
	jsonw_key(&d->w, "nodeAffinity");
	jsonw_object_open(&d->w);
	jsonw_key(&d->w, "required");
	jsonw_object_open(&d->w);
	jsonw_key(&d->w, "nodeSelectorTerms");
	jsonw_array_open(&d->w);
	jsonw_object_open(&d->w);
	jsonw_key(&d->w, "matchExpressions");
	jsonw_array_open(&d->w);
	jsonw_object_open(&d->w);
	jsonw_key_string(&d->w, "key", "topology.kubernetes.io/zone");
	jsonw_key_string(&d->w, "operator", "In");
	jsonw_key(&d->w, "values");
	jsonw_array_open(&d->w);
	jsonw_string(&d->w, zone);
	jsonw_array_close(&d->w);
	jsonw_object_close(&d->w);
	jsonw_array_close(&d->w);
	jsonw_object_close(&d->w);
	jsonw_array_close(&d->w);
	jsonw_object_close(&d->w);
	jsonw_object_close(&d->w);
}

static void write_disk(struct dump *d, const char *key)
{
	char size[16];

	snprintf(size, sizeof(size), "%dGi", VOLUME_GIB);
	jsonw_key(&d->w, key);
	jsonw_object_open(&d->w);
	jsonw_key_string(&d->w, "storage", size);
	jsonw_object_close(&d->w);
}

static void write_access(struct dump *d)
{
	jsonw_key(&d->w, "accessModes");
	jsonw_array_open(&d->w);
	jsonw_string(&d->w, "ReadWriteOnce");
	jsonw_array_close(&d->w);
	jsonw_key_string(&d->w, "storageClassName", "zonal-ssd");
	jsonw_key_string(&d->w, "volumeMode", "Filesystem");
}

static void write_bound(struct dump *d)
{
	jsonw_key(&d->w, "status");
	jsonw_object_open(&d->w);
	jsonw_key_string(&d->w, "phase", "Bound");
	jsonw_object_close(&d->w);
}

static void write_volume_name(const struct dump *d, size_t pod, char text[CLUSTER_NAME_MAX])
{
	char uid[POD_UID_LEN + 1];

	dump_uid(d, DUMP_CLAIM, pod, uid);
	snprintf(text, CLUSTER_NAME_MAX, "pvc-%s", uid);
}

static void write_claim(struct dump *d, size_t pod, const char *namespace, const char *claim,
			const char *volume)
{
	dump_open(d, "v1", "PersistentVolumeClaim");
	dump_metadata(d, DUMP_CLAIM, pod, namespace, claim);
	jsonw_object_close(&d->w);
	jsonw_key(&d->w, "spec");
	jsonw_object_open(&d->w);
	write_access(d);
	jsonw_key_string(&d->w, "volumeName", volume);
	jsonw_key(&d->w, "resources");
	jsonw_object_open(&d->w);
	write_disk(d, "requests");
	jsonw_object_close(&d->w);
	jsonw_object_close(&d->w);
	write_bound(d);
	dump_close(d);
}

void dump_volume(struct dump *d, size_t pod)
{
	const struct workload *w = cluster_workload(d->cluster, &d->cluster->pods[pod]);
	char namespace[CLUSTER_NAME_MAX], claim[2 * CLUSTER_NAME_MAX], volume[CLUSTER_NAME_MAX],
		uid[POD_UID_LEN + 1];

	cluster_namespace_name(w->namespace, namespace);
	dump_claim_name(d, pod, claim);
	write_volume_name(d, pod, volume);
	dump_uid(d, DUMP_CLAIM, pod, uid);
	dump_open(d, "v1", "PersistentVolume");
	dump_metadata(d, DUMP_VOLUME, pod, NULL, volume);
	jsonw_object_close(&d->w);
	jsonw_key(&d->w, "spec");
	jsonw_object_open(&d->w);
	write_access(d);
	write_disk(d, "capacity");
	jsonw_key(&d->w, "claimRef");
	jsonw_object_open(&d->w);
	jsonw_key_string(&d->w, "kind", "PersistentVolumeClaim");
	jsonw_key_string(&d->w, "namespace", namespace);
	jsonw_key_string(&d->w, "name", claim);
	jsonw_key_string(&d->w, "uid", uid);
	jsonw_object_close(&d->w);
	write_zone(d, pod);
	jsonw_object_close(&d->w);
	write_bound(d);
	dump_close(d);
	write_claim(d, pod, namespace, claim, volume);
}
