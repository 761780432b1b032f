/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and ids are not kept but made again from the seed whenever they are asked for: 150,000
 * pods' would be 30 MiB, in each of ten processes.
 */
#include <stdio.h>
#include <string.h>

#include "tests/fleet/cluster.h"

enum { HASH_POD = 101, HASH_CONTAINER, HASH_SUFFIX, HASH_TEMPLATE, HASH_LIFE };

/* splitmix64's finalizer (S. Vigna, public domain), over the three numbers in turn. */
static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

uint64_t cluster_hash(const struct cluster *c, uint64_t what, uint64_t which)
{
	return mix(mix(mix(c->config.seed) ^ what) ^ which);
}

double cluster_unit(const struct cluster *c, uint64_t what, uint64_t which)
{
	return (double)(cluster_hash(c, what, which) >> 11) / (double)(1ULL << 53);
}

void cluster_node_name(uint32_t node, char text[CLUSTER_NAME_MAX])
{
	snprintf(text, CLUSTER_NAME_MAX, "node-%04u", node);
}

void cluster_namespace_name(uint32_t namespace, char text[CLUSTER_NAME_MAX])
{
	static const char *const names[] = {"kube-system", "shop",  "payments", "search", "media",
					    "analytics",   "build", "identity", "mail"};
	enum { OURS = sizeof(names) / sizeof(names[0]) - 1 };
	uint32_t round = namespace ? (namespace - 1) / OURS : 0;
	const char *name = names[namespace ? 1 + (namespace - 1) % OURS : 0];

	if (round)
		snprintf(text, CLUSTER_NAME_MAX, "%s-%u", name, round + 1);
	else
		snprintf(text, CLUSTER_NAME_MAX, "%s", name);
}

/* The letters Kubernetes makes names of: no vowels, so no words. */
static void write_suffix(uint64_t hash, int len, char *text)
{
	static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";

	for (int i = 0; i < len; i++, hash /= sizeof(letters) - 1)
		text[i] = letters[hash % (sizeof(letters) - 1)];
	text[len] = '\0';
}

void cluster_replica_set_name(const struct cluster *c, size_t workload, char text[CLUSTER_NAME_MAX])
{
	char suffix[10];

	write_suffix(cluster_hash(c, HASH_TEMPLATE, workload), 9, suffix);
	snprintf(text, CLUSTER_NAME_MAX, "%.50s-%s", c->workloads[workload].name, suffix);
}

void cluster_pod_name(const struct cluster *c, size_t pod, char text[CLUSTER_NAME_MAX])
{
	const struct cluster_pod *p = &c->pods[pod];
	const struct workload *w = cluster_workload(c, p);
	char suffix[6], set[CLUSTER_NAME_MAX];

	write_suffix(cluster_hash(c, HASH_SUFFIX, pod), 5, suffix);
	switch (w->kind) {
	case WORKLOAD_DEPLOYMENT:
		cluster_replica_set_name(c, p->workload, set);
		snprintf(text, CLUSTER_NAME_MAX, "%.57s-%s", set, suffix);
		break;
	case WORKLOAD_STATEFUL_SET:
		snprintf(text, CLUSTER_NAME_MAX, "%.50s-%u", w->name, p->ordinal);
		break;
	case WORKLOAD_DAEMON_SET:
	case WORKLOAD_JOB:
	case WORKLOAD_BARE:
		snprintf(text, CLUSTER_NAME_MAX, "%.57s-%s", w->name, suffix);
		break;
	}
}

void cluster_uid(const struct cluster *c, uint64_t what, uint64_t which, char text[POD_UID_LEN + 1])
{
	uint64_t a = cluster_hash(c, what, which), b = cluster_hash(c, what, ~which);

	/* Version 4, variant 1. */
	snprintf(text, POD_UID_LEN + 1, "%08x-%04x-4%03x-%04x-%012llx", (unsigned int)(a >> 32),
		 (unsigned int)(a >> 16 & 0xffff), (unsigned int)(a & 0xfff),
		 (unsigned int)(0x8000 | (b >> 48 & 0x3fff)),
		 (unsigned long long)(b & 0xffffffffffffULL));
}

void cluster_pod_uid(const struct cluster *c, size_t pod, uint32_t life, char text[POD_UID_LEN + 1])
{
	cluster_uid(c, HASH_POD, pod | (uint64_t)life << 32, text);
}

void cluster_container_id(const struct cluster *c, size_t pod, uint32_t life, uint32_t container,
			  char text[CONTAINER_ID_LEN + 1])
{
	uint64_t which = (pod * CLUSTER_CONTAINERS_MAX + container) | (uint64_t)life << 32;

	for (uint64_t i = 0; i < 4; i++)
		snprintf(text + 16 * i, 17, "%016llx",
			 (unsigned long long)cluster_hash(c, HASH_CONTAINER + (i << 32), which));
}

uint32_t cluster_pod_life(const struct cluster *c, size_t pod, int64_t at_ns)
{
	int64_t life_ns = c->config.pod_life_ns, since = at_ns - c->config.epoch_ns;

	if (!life_ns || since < 0 ||
	    cluster_workload(c, &c->pods[pod])->kind == WORKLOAD_DAEMON_SET)
		return 0;
	since += (int64_t)(cluster_unit(c, HASH_LIFE, pod) * (double)life_ns);
	return (uint32_t)(since / life_ns);
}
