/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects are written one by one, each into a buffer and from there to the file, so that 150,000
 * pods take no memory. Of quotas there is one for each namespace but kube-system: every third was
 * promised less than it uses and borrows, the others lend.
 */
#include "tests/fleet/dump.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "shared/timefmt.h"
#include "tests/fleet/dump_internal.h"

#define MADE_NS (INT64_C(1735689600) * NS_PER_SEC) /* 2025-01-01 */
#define WEEKS_S (6 * 7 * 24 * 3600)
#define MIB	(INT64_C(1) << 20)

const char *const dump_priority_names[PRIORITIES] = {
	[PRIORITY_NODE_CRITICAL] = "system-node-critical",
	[PRIORITY_HIGH] = "platform-high",
	[PRIORITY_STANDARD] = "standard",
	[PRIORITY_BATCH] = "batch-low",
};

const int32_t dump_priority_values[PRIORITIES] = {
	[PRIORITY_NODE_CRITICAL] = 2000001000,
	[PRIORITY_HIGH] = 100000,
	[PRIORITY_STANDARD] = 0,
	[PRIORITY_BATCH] = -100,
};

/* --- parts ------------------------------------------------------------------------------------ */

void dump_open(struct dump *d, const char *api_version, const char *kind)
{
	jsonw_init(&d->w, &d->text);
	jsonw_object_open(&d->w);
	jsonw_key_string(&d->w, "apiVersion", api_version);
	jsonw_key_string(&d->w, "kind", kind);
}

void dump_close(struct dump *d)
{
	jsonw_object_close(&d->w);
	if (d->items++)
		fputs(",\n", d->file);
	fwrite(d->text.data, 1, d->text.len, d->file);
	buf_clear(&d->text);
}

void dump_uid(const struct dump *d, enum dump_kind kind, uint64_t which, char text[POD_UID_LEN + 1])
{
	if (kind == DUMP_POD)
		cluster_pod_uid(d->cluster, which, 0, text);
	else
		cluster_uid(d->cluster, kind, which, text);
}

int64_t dump_created_ns(const struct dump *d, enum dump_kind kind, uint64_t which)
{
	int64_t before = (int64_t)(cluster_unit(d->cluster, (uint64_t)kind << 8, which) * WEEKS_S);

	return MADE_NS - before * NS_PER_SEC;
}

/* The API's times are whole seconds. */
void dump_time(struct dump *d, const char *key, int64_t unix_ns)
{
	char text[TIMEFMT_LEN];

	timefmt_rfc3339(unix_ns, text);
	jsonw_key_string(&d->w, key, text);
}

void dump_metadata(struct dump *d, enum dump_kind kind, uint64_t which, const char *namespace,
		   const char *name)
{
	char uid[POD_UID_LEN + 1];

	dump_uid(d, kind, which, uid);
	jsonw_key(&d->w, "metadata");
	jsonw_object_open(&d->w);
	jsonw_key_string(&d->w, "name", name);
	if (namespace)
		jsonw_key_string(&d->w, "namespace", namespace);
	jsonw_key_string(&d->w, "uid", uid);
	dump_time(d, "creationTimestamp", dump_created_ns(d, kind, which));
}

static void write_quantity(struct dump *d, const char *key, int64_t amount, const char *unit)
{
	char text[32];

	if (amount <= 0)
		return;
	snprintf(text, sizeof(text), "%lld%s", (long long)amount, unit);
	jsonw_key_string(&d->w, key, text);
}

void dump_resources(struct dump *d, const char *key, int64_t cpu_milli, int64_t mem_bytes)
{
	jsonw_key(&d->w, key);
	jsonw_object_open(&d->w);
	write_quantity(d, "cpu", cpu_milli, "m");
	if (mem_bytes % MIB)
		write_quantity(d, "memory", mem_bytes, "");
	else
		write_quantity(d, "memory", mem_bytes / MIB, "Mi");
	jsonw_object_close(&d->w);
}

void dump_condition(struct dump *d, const char *type, bool status, const char *reason,
		    int64_t since_ns)
{
	jsonw_object_open(&d->w);
	jsonw_key_string(&d->w, "type", type);
	jsonw_key_string(&d->w, "status", status ? "True" : "False");
	if (reason)
		jsonw_key_string(&d->w, "reason", reason);
	dump_time(d, "lastTransitionTime", since_ns);
	jsonw_object_close(&d->w);
}

void dump_owner(struct dump *d, const char *api_version, const char *kind, const char *name,
		const char *uid)
{
	jsonw_key(&d->w, "ownerReferences");
	jsonw_array_open(&d->w);
	jsonw_object_open(&d->w);
	jsonw_key_string(&d->w, "apiVersion", api_version);
	jsonw_key_string(&d->w, "kind", kind);
	jsonw_key_string(&d->w, "name", name);
	jsonw_key_string(&d->w, "uid", uid);
	jsonw_key_bool(&d->w, "controller", true);
	jsonw_key_bool(&d->w, "blockOwnerDeletion", true);
	jsonw_object_close(&d->w);
	jsonw_array_close(&d->w);
}

void dump_app(struct dump *d, const char *key, const char *name)
{
	jsonw_key(&d->w, key);
	jsonw_object_open(&d->w);
	jsonw_key_string(&d->w, "app", name);
	jsonw_object_close(&d->w);
}

/* --- nodes and what is cluster-wide ----------------------------------------------------------- */

static void write_node_labels(struct dump *d, const struct cluster_node *n, const char *name)
{
	static const char *const types[] = {"m8.large", "m16.large", "m32.large"};
	char zone[16];

	snprintf(zone, sizeof(zone), "zone-%c", 'a' + (int)n->zone);
	jsonw_key(&d->w, "labels");
	jsonw_object_open(&d->w);
	jsonw_key_string(&d->w, "kubernetes.io/arch", "amd64");
	jsonw_key_string(&d->w, "kubernetes.io/hostname", name);
	jsonw_key_string(&d->w, "kubernetes.io/os", "linux");
	jsonw_key_string(&d->w, "node.kubernetes.io/instance-type", types[n->shape]);
	jsonw_key_string(&d->w, "topology.kubernetes.io/region", "region-1");
	jsonw_key_string(&d->w, "topology.kubernetes.io/zone", zone);
	jsonw_key_string(&d->w, "pool", n->batch ? "batch" : "general");
	jsonw_object_close(&d->w);
}

static void write_taint(struct dump *d, const char *key, const char *value)
{
	jsonw_object_open(&d->w);
	jsonw_key_string(&d->w, "key", key);
	if (value)
		jsonw_key_string(&d->w, "value", value);
	jsonw_key_string(&d->w, "effect", "NoSchedule");
	jsonw_object_close(&d->w);
}

static void write_node_spec(struct dump *d, const struct cluster_node *n)
{
	jsonw_key(&d->w, "spec");
	jsonw_object_open(&d->w);
	if (n->cordoned)
		jsonw_key_bool(&d->w, "unschedulable", true);
	if (n->batch || n->cordoned) {
		jsonw_key(&d->w, "taints");
		jsonw_array_open(&d->w);
		if (n->batch)
			write_taint(d, "dedicated", "batch");
		if (n->cordoned)
			write_taint(d, "node.kubernetes.io/unschedulable", NULL);
		jsonw_array_close(&d->w);
	}
	jsonw_object_close(&d->w);
}

static void write_amounts(struct dump *d, const char *key, int64_t cpu_milli, int64_t mem_bytes,
			  uint32_t pods)
{
	jsonw_key(&d->w, key);
	jsonw_object_open(&d->w);
	write_quantity(d, "cpu", cpu_milli, "m");
	write_quantity(d, "memory", mem_bytes / 1024, "Ki");
	write_quantity(d, "ephemeral-storage", 100, "Gi");
	write_quantity(d, "pods", pods, "");
	jsonw_object_close(&d->w);
}

static void write_node(struct dump *d, uint32_t i)
{
	const struct cluster_node *n = &d->cluster->nodes[i];
	uint32_t pods = n->target < 90 ? 110 : n->target + 20;
	char name[CLUSTER_NAME_MAX];

	cluster_node_name(i, name);
	dump_open(d, "v1", "Node");
	dump_metadata(d, DUMP_NODE, i, NULL, name);
	write_node_labels(d, n, name);
	jsonw_object_close(&d->w);
	write_node_spec(d, n);
	jsonw_key(&d->w, "status");
	jsonw_object_open(&d->w);
	write_amounts(d, "capacity", n->cpu_milli, n->mem_bytes, pods);
	write_amounts(d, "allocatable", n->allocatable_cpu_milli, n->allocatable_mem_bytes, pods);
	jsonw_key(&d->w, "conditions");
	jsonw_array_open(&d->w);
	dump_condition(d, "Ready", true, "KubeletReady", dump_created_ns(d, DUMP_NODE, i));
	jsonw_array_close(&d->w);
	jsonw_object_close(&d->w);
	dump_close(d);
}

static void write_namespace(struct dump *d, uint32_t i)
{
	char name[CLUSTER_NAME_MAX];

	cluster_namespace_name(i, name);
	dump_open(d, "v1", "Namespace");
	dump_metadata(d, DUMP_NAMESPACE, i, NULL, name);
	jsonw_key(&d->w, "labels");
	jsonw_object_open(&d->w);
	jsonw_key_string(&d->w, "kubernetes.io/metadata.name", name);
	jsonw_object_close(&d->w);
	jsonw_object_close(&d->w);
	dump_close(d);
}

static void write_priority_class(struct dump *d, int i)
{
	dump_open(d, "scheduling.k8s.io/v1", "PriorityClass");
	dump_metadata(d, DUMP_PRIORITY_CLASS, (uint64_t)i, NULL, dump_priority_names[i]);
	jsonw_object_close(&d->w);
	jsonw_key_int(&d->w, "value", dump_priority_values[i]);
	jsonw_key_bool(&d->w, "globalDefault", i == PRIORITY_STANDARD);
	jsonw_key_string(&d->w, "preemptionPolicy",
			 i == PRIORITY_BATCH ? "Never" : "PreemptLowerPriority");
	dump_close(d);
}

static void write_storage_class(struct dump *d)
{
	dump_open(d, "storage.k8s.io/v1", "StorageClass");
	dump_metadata(d, DUMP_STORAGE_CLASS, 0, NULL, "zonal-ssd");
	jsonw_object_close(&d->w);
	jsonw_key_string(&d->w, "provisioner", "disks.example.com");
	jsonw_key_string(&d->w, "volumeBindingMode", "WaitForFirstConsumer");
	dump_close(d);
}

/* What a namespace's pods on nodes ask for, of which its quota is made. */
struct asked {
	int64_t cpu_milli, mem_bytes;
};

static void write_quota(struct dump *d, uint32_t i, const struct asked *asked)
{
	bool borrows = i % 3 == 1;
	/* Above the sum of all min nobody's replacement is admitted. */
	int64_t lends = d->cluster->config.movable ? 150 : 120;
	int64_t min = borrows ? 60 : lends, max = borrows ? 130 : 200;
	char namespace[CLUSTER_NAME_MAX];

	cluster_namespace_name(i, namespace);
	dump_open(d, "scheduling.x-k8s.io/v1alpha1", "ElasticQuota");
	dump_metadata(d, DUMP_QUOTA, i, namespace, "quota");
	jsonw_object_close(&d->w);
	jsonw_key(&d->w, "spec");
	jsonw_object_open(&d->w);
	dump_resources(d, "min", asked->cpu_milli / 100 * min,
		       asked->mem_bytes / MIB / 100 * min * MIB);
	dump_resources(d, "max", asked->cpu_milli / 100 * max,
		       asked->mem_bytes / MIB / 100 * max * MIB);
	jsonw_object_close(&d->w);
	jsonw_key(&d->w, "status");
	jsonw_object_open(&d->w);
	dump_resources(d, "used", asked->cpu_milli, asked->mem_bytes);
	jsonw_object_close(&d->w);
	dump_close(d);
}

static void write_quotas(struct dump *d)
{
	const struct cluster *c = d->cluster;
	struct asked *asked = mem_zalloc(c->namespaces, sizeof(*asked));

	for (size_t p = 0; p < c->pod_count; p++) {
		const struct workload *w = cluster_workload(c, &c->pods[p]);

		if (c->pods[p].node < 0)
			continue;
		asked[w->namespace].cpu_milli += w->cpu_milli;
		asked[w->namespace].mem_bytes += w->mem_bytes;
	}
	for (uint32_t i = 1; i < c->namespaces; i++)
		write_quota(d, i, &asked[i]);
	free(asked);
}

/* --- the list --------------------------------------------------------------------------------- */

static void write_items(struct dump *d)
{
	const struct cluster *c = d->cluster;

	for (uint32_t i = 0; i < c->config.nodes; i++)
		write_node(d, i);
	for (uint32_t i = 0; i < c->namespaces; i++)
		write_namespace(d, i);
	for (int i = 0; i < PRIORITIES; i++)
		write_priority_class(d, i);
	for (size_t i = 0; i < c->workload_count; i++)
		dump_workload(d, i);
	write_quotas(d);
	write_storage_class(d);
	for (size_t i = 0; i < c->pod_count; i++) {
		if (cluster_workload(c, &c->pods[i])->volume)
			dump_volume(d, i);
		dump_pod(d, i);
	}
}

int dump_write(const struct cluster *c, const char *path, struct error *reason)
{
	struct dump d = {.cluster = c, .file = fopen(path, "we")};
	int rc = d.file ? 0 : -errno;
	bool failed;

	if (!d.file) {
		error_set(reason, "%s: %s", path, strerror(-rc));
		return rc;
	}
	fputs("{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[\n", d.file);
	write_items(&d);
	fputs("\n]}\n", d.file);
	buf_fini(&d.text);
	failed = ferror(d.file);
	if (fclose(d.file) || failed) {
		error_set(reason, "%s: cannot be written", path);
		return -EIO;
	}
	return 0;
}
