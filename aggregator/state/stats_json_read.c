/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Items are kept with strings of their own until all are there; then the pods are sorted below
 * their nodes, and each node's stats are made of its part of them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/state/stats_json.h"
#include "aggregator/state/stats_json_parts.h"
#include "shared/arith.h"
#include "shared/array.h"
#include "shared/mem.h"

/* A pod that was read, packed, with all that its pointers lead to. */
struct kept_pod {
	char *node;
	int64_t end_ns;
	size_t order; /* of adding: keeps pods of one name as they came */
	struct pod_stats pod;
	struct kernel_limits limits;
	struct pod_peaks *peaks; /* NULL: none */
	char *cause; /* the name of pod.cause; NULL: tasks in no pod */
	struct kernel_limits *container_limits;
};

struct stats_json_set {
	size_t node_count, pod_count;
	struct node_stats *nodes; /* names are owned */
	struct kept_pod *pods;
};

struct stats_json_set *stats_json_set_new(void)
{
	return mem_zalloc(1, sizeof(struct stats_json_set));
}

static void free_containers(const struct container_stats *containers, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free((char *)containers[i].name);
		free((char *)containers[i].id);
	}
	free((struct container_stats *)containers);
}

static void free_pod(struct kept_pod *p)
{
	free_containers(p->pod.containers, p->pod.container_count);
	free(p->container_limits);
	free(p->peaks);
	free((char *)p->pod.name);
	free((char *)p->pod.uid);
	free(p->cause);
	free(p->node);
}

void stats_json_set_free(struct stats_json_set *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->node_count; i++)
		free((char *)s->nodes[i].name);
	for (size_t i = 0; i < s->pod_count; i++)
		free_pod(&s->pods[i]);
	free(s->nodes);
	free(s->pods);
	free(s);
}

/* Ends reading; 0, with what was put aside as the reason, or -EINVAL and the path. */
static int end_reading(struct json_io *io, char field[JSON_IO_FIELD_MAX])
{
	int rc = io->bad ? -EINVAL : 0;

	if (!rc && io->aside[0])
		error_set(io->error, "%s", io->aside);
	if (rc)
		memcpy(field, io->path, JSON_IO_FIELD_MAX);
	json_io_end(io);
	return rc;
}

void stats_json_add_stats(struct stats_json_set *s, const struct node_stats *stats)
{
	struct node_stats *p = &ARRAY_ADD(s->nodes, s->node_count);

	memcpy(p, stats, sizeof(*p));
	p->name = mem_strdup(stats->name);
}

int stats_json_add_node(struct stats_json_set *s, cJSON *item, char field[JSON_IO_FIELD_MAX],
			struct error *reason)
{
	struct node_stats stats = {.generation = 1};
	struct json_io io;

	json_io_read(&io, item, reason);
	stats_json_do_node(&io, &stats);
	json_io_finish(&io);
	if (!io.bad && s->node_count >= STATS_JSON_NODES_MAX)
		json_io_fail(&io, "name", "there are more than %d nodes", STATS_JSON_NODES_MAX);
	if (!io.bad)
		stats_json_add_stats(s, &stats);
	return end_reading(&io, field);
}

/* --- pods ------------------------------------------------------------------------------------- */

static void read_containers(struct json_io *io, struct kept_pod *kept, int64_t end_ns)
{
	struct container_stats *containers;
	struct json_io_level level;
	size_t count = 0;

	if (!json_io_list(io, "containers", &count, STATS_JSON_CONTAINERS_MAX, &level))
		return;
	containers = mem_zalloc(count, sizeof(*containers));
	kept->container_limits = mem_zalloc(count, sizeof(*kept->container_limits));
	for (size_t i = 0; i < count; i++) {
		struct container_stats *c = &containers[i];

		kept->container_limits[i] = KERNEL_LIMITS_UNKNOWN;
		stats_json_do_container_item(io, i, c, &kept->container_limits[i], end_ns);
		c->name = mem_strdup(c->name ? c->name : "");
		c->id = mem_strdup(c->id ? c->id : "");
		c->limits = &kept->container_limits[i];
	}
	kept->pod.containers = containers;
	kept->pod.container_count = (uint32_t)count;
	json_io_list_leave(io, &level);
}

/* Copies out of the tree that was read. */
static void keep_pod(struct kept_pod *kept, const struct stats_json_pod *p)
{
	struct container_stats *containers = (struct container_stats *)kept->pod.containers;
	uint32_t count = kept->pod.container_count;

	array_sort(containers, count, sizeof(*containers), array_compare_text);
	kept->pod = p->pod;
	kept->pod.containers = containers;
	kept->pod.container_count = count;
	kept->node = mem_strdup(p->node ? p->node : "");
	kept->pod.name = mem_strdup(p->pod.name ? p->pod.name : "");
	kept->pod.uid = mem_strdup(p->pod.uid ? p->pod.uid : "");
	kept->end_ns = p->end_ns;
	kept->limits = p->limits;
	kept->pod.cause.share = p->cause.share;
	kept->cause = p->cause.name ? mem_strdup(p->cause.name) : NULL;
	if (p->has_peaks) {
		kept->peaks = mem_alloc(sizeof(*kept->peaks));
		*kept->peaks = p->peaks;
	}
	pod_usage_pack(&p->usage, p->end_ns, &kept->pod.usage);
}

int stats_json_add_pod(struct stats_json_set *s, cJSON *item, char field[JSON_IO_FIELD_MAX],
		       struct error *reason)
{
	struct stats_json_pod pod = {.limits = KERNEL_LIMITS_UNKNOWN};
	struct kept_pod kept = {.order = s->pod_count};
	struct json_io io;

	json_io_read(&io, item, reason);
	stats_json_do_pod(&io, &pod);
	read_containers(&io, &kept, pod.end_ns);
	json_io_finish(&io);
	if (!io.bad && s->pod_count >= STATS_JSON_PODS_MAX)
		json_io_fail(&io, "name", "there are more than %d pods", STATS_JSON_PODS_MAX);
	if (!io.bad) {
		keep_pod(&kept, &pod);
		ARRAY_ADD(s->pods, s->pod_count) = kept;
	} else {
		free_containers(kept.pod.containers, kept.pod.container_count);
		free(kept.container_limits);
	}
	return end_reading(&io, field);
}

/* --- stats ------------------------------------------------------------------------------------ */

static int compare_nodes(const void *a, const void *b)
{
	return strcmp(((const struct node_stats *)a)->name, ((const struct node_stats *)b)->name);
}

static int compare_pods(const void *a, const void *b)
{
	const struct kept_pod *x = a, *y = b;

	return strcmp(x->node, y->node)
		?: strcmp(x->pod.name, y->pod.name)
		?: COMPARE(x->order, y->order);
}

/* Pods of a node are where the node is; every pod has its node. */
static int check(const struct stats_json_set *s, struct error *reason)
{
	for (size_t i = 1; i < s->node_count; i++)
		if (strcmp(s->nodes[i - 1].name, s->nodes[i].name) == 0)
			return error_fail(reason, -EINVAL, "the node \"%s\" stands twice",
					  s->nodes[i].name);
	for (size_t i = 0, at = 0; i < s->pod_count; i++) {
		const struct kept_pod *p = &s->pods[i];

		while (at < s->node_count && strcmp(s->nodes[at].name, p->node) < 0)
			at++;
		if (at == s->node_count || strcmp(s->nodes[at].name, p->node) != 0)
			return error_fail(reason, -EINVAL,
					  "the pod \"%s\" is of a node \"%s\", which is not there",
					  p->pod.name, p->node);
		if (s->nodes[at].end_ns != p->end_ns)
			return error_fail(reason, -EINVAL,
					  "the pod \"%s\" has another end than its node \"%s\"",
					  p->pod.name, p->node);
	}
	return 0;
}

/* The peaks of those pods, to which they point then; NULL: none has any. */
static struct node_peaks *gather_peaks(const struct kept_pod *kept, struct pod_stats *pods,
				       size_t count)
{
	struct node_peaks *peaks;
	uint32_t with = 0;

	for (size_t i = 0; i < count; i++)
		with += kept[i].peaks != NULL;
	if (!with)
		return NULL;
	peaks = mem_zalloc(1, sizeof(*peaks) + with * sizeof(peaks->pods[0]));
	atomic_init(&peaks->users, 1);
	peaks->room = with;
	for (size_t i = 0; i < count; i++)
		if (kept[i].peaks) {
			peaks->pods[peaks->count] = *kept[i].peaks;
			pods[i].peaks = &peaks->pods[peaks->count++];
		}
	return peaks;
}

/* Names are sorted. A pod that is not there is named by nobody. */
static struct pod_cause find_cause(const struct kept_pod *p, const struct pod_stats *pods,
				   size_t count)
{
	struct pod_cause cause = {p->pod.cause.share, CAUSE_SYSTEM};
	bool found = true;

	if (p->cause)
		cause.pod = (uint32_t)array_find_name(pods, count, sizeof(*pods), p->cause, &found);
	return found && cause.share > 0 ? cause : (struct pod_cause){0, 0};
}

static struct node_stats *make_stats(struct node_stats *from, const struct kept_pod *kept,
				     size_t count)
{
	struct pod_stats *pods = mem_zalloc(count + 1, sizeof(*pods));
	struct node_stats *stats;

	for (size_t i = 0; i < count; i++) {
		pods[i] = kept[i].pod;
		pods[i].limits = &kept[i].limits;
	}
	for (size_t i = 0; i < count; i++)
		pods[i].cause = find_cause(&kept[i], pods, count);
	from->peaks = gather_peaks(kept, pods, count);
	from->pods = pods;
	from->pod_count = count;
	stats = node_stats_new(from);
	node_peaks_drop(from->peaks);
	free(pods);
	return stats;
}

int stats_json_set_stats(struct stats_json_set *s, struct node_stats ***node_stats, size_t *count,
			 struct error *reason)
{
	size_t at = 0;

	array_sort(s->nodes, s->node_count, sizeof(*s->nodes), compare_nodes);
	array_sort(s->pods, s->pod_count, sizeof(*s->pods), compare_pods);
	if (check(s, reason))
		return -EINVAL;
	*node_stats = mem_zalloc(s->node_count + 1, sizeof(struct node_stats *));
	for (size_t i = 0; i < s->node_count; i++) {
		struct node_stats from;
		size_t first = at;

		memcpy(&from, &s->nodes[i], sizeof(from));
		while (at < s->pod_count && strcmp(s->pods[at].node, from.name) == 0)
			at++;
		(*node_stats)[i] =
			make_stats(&from, at > first ? &s->pods[first] : NULL, at - first);
	}
	*count = s->node_count;
	return 0;
}
