/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes are read one by one, and their pods by spec.nodeName. All nodes are listed at the beginning
 * and once in a minute, for marks and taints of a former holder. Pods of a ReplicaSet are listed by
 * their pod-template-hash, those of other owners by namespace.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/actuator/edge.h"
#include "shared/array.h"
#include "shared/document.h"
#include "shared/clock.h"
#include "shared/mem.h"

#define LIST_EVERY_NS (60 * NS_PER_SEC)
#define READ_MS	      10000L

/* --- nodes ------------------------------------------------------------------------------------ */

static bool has_taint(const cJSON *node, const char *key)
{
	return document_find(node, "spec.taints", "key", key);
}

/* Why others have the node; NULL: they have not. */
static const char *foreign(struct edge *e, const cJSON *node)
{
	static const char *const taints[] = {"ToBeDeletedByClusterAutoscaler",
					     "karpenter.sh/disrupted", "karpenter.sh/disruption",
					     "kubevirt.io/drain", "medik8s.io/drain"};
	static const char *const annotations[] = {
		"evenkeel.io/draining", "cluster-autoscaler.kubernetes.io/scale-down-disabled",
		"karpenter.sh/do-not-disrupt", "weave.works/kured-reboot-in-progress"};

	if (document_at(node, "metadata.deletionTimestamp"))
		return "its object is being deleted";
	for (size_t i = 0; i < sizeof(taints) / sizeof(taints[0]); i++)
		if (has_taint(node, taints[i]))
			return edge_keep(e, mem_printf("it has the taint %s", taints[i]));
	for (size_t i = 0; i < sizeof(annotations) / sizeof(annotations[0]); i++) {
		const char *value = document_annotation(node, annotations[i]);

		if (value && strcmp(value, "false") != 0)
			return edge_keep(e, mem_printf("it has the annotation %s", annotations[i]));
	}
	return NULL;
}

static bool is_selected(const struct edge *e, const cJSON *node)
{
	struct labels labels;
	bool matches;

	if (!e->selector)
		return true;
	if (labels_read(document_at(node, "metadata.labels"), &labels, NULL))
		return false;
	matches = selector_matches(e->selector, &labels);
	labels_fini(&labels);
	return matches;
}

static void read_node(struct edge *e, const cJSON *node, struct act_node *out)
{
	const char *mark = document_annotation(node, MARK_ANNOTATION);

	*out = (struct act_node){
		.name = document_text_or(node, "metadata.name", ""),
		.uid = document_text_or(node, "metadata.uid", ""),
		.foreign = foreign(e, node),
		.zone = document_label(node, "topology.kubernetes.io/zone"),
		.selected = is_selected(e, node),
		.cordoned = document_is_true(node, "spec.unschedulable"),
		.tainted = has_taint(node, MARK_TAINT),
		.ending = document_at(node, "metadata.deletionTimestamp") != NULL,
	};
	if (mark)
		mark_read(mark, &out->mark);
}

/* --- pods ------------------------------------------------------------------------------------- */

static bool stays(const cJSON *pod)
{
	return document_has_ended(pod) || document_annotation(pod, "kubernetes.io/config.mirror") ||
	       document_is(document_controller(pod), "kind", "DaemonSet");
}

/* Other labels may differ from pod to pod: topology, index, role. */
static void add_owner(struct edge *e, const cJSON *pod, const char *uid)
{
	const char *hash = document_label(pod, "pod-template-hash");

	if (array_find_text(e->owners, e->owner_count, sizeof(*e->owners), uid))
		return;
	ARRAY_ADD(e->owners, e->owner_count) = (struct edge_owner){
		mem_strdup(uid), mem_strdup(document_text_or(pod, "metadata.namespace", "")),
		hash ? mem_printf("pod-template-hash%%3D%s", hash) : mem_strdup("")};
}

static int read_pods(struct edge *e, struct act_node *node, struct error *error)
{
	const char *path = edge_keep(e, mem_printf("/api/v1/pods?fieldSelector=spec.nodeName%%3D%s",
						   node->name));
	const cJSON *list = edge_get(e, path, READ_MS, error);
	const cJSON *pod = document_first(list, "items");
	struct act_pod *pods;

	if (!list)
		return -EIO;
	pods = mem_zalloc((size_t)cJSON_GetArraySize(document_at(list, "items")) + 1,
			  sizeof(*pods));
	edge_keep(e, (char *)pods);
	for (; pod; pod = pod->next) {
		const char *owner = document_text_or(document_controller(pod), "uid", "");

		if (stays(pod))
			continue;
		if (*owner)
			add_owner(e, pod, owner);
		pods[node->pod_count++] = (struct act_pod){
			.namespace = document_text_or(pod, "metadata.namespace", ""),
			.name = document_text_or(pod, "metadata.name", ""),
			.uid = document_text_or(pod, "metadata.uid", ""),
			.owner = owner,
			.ending = document_at(pod, "metadata.deletionTimestamp") != NULL,
		};
	}
	node->pods = pods;
	return 0;
}

static bool are_listed_together(const struct edge_owner *a, const struct edge_owner *b)
{
	return strcmp(a->namespace, b->namespace) == 0 && strcmp(a->selector, b->selector) == 0;
}

/* Counts the pods of an owner, and of those after it in the same list. */
static int read_owners(struct edge *e, size_t first, struct error *error)
{
	const struct edge_owner *of = &e->owners[first];
	const cJSON *list;

	for (size_t i = 0; i < first; i++)
		if (are_listed_together(&e->owners[i], of))
			return 0;
	list = edge_get(e,
			edge_keep(e, mem_printf("/api/v1/namespaces/%s/pods?labelSelector=%s",
						of->namespace, of->selector)),
			READ_MS, error);
	if (!list)
		return -EIO;
	for (const cJSON *pod = document_first(list, "items"); pod; pod = pod->next) {
		if (document_at(pod, "metadata.deletionTimestamp") ||
		    !document_has_condition(pod, "Ready"))
			continue;
		for (size_t i = first; i < e->owner_count; i++)
			e->ready[i].ready +=
				are_listed_together(&e->owners[i], of) &&
				document_is(document_controller(pod), "uid", e->owners[i].uid);
	}
	edge_drop(e);
	return 0;
}

/* --- which nodes ------------------------------------------------------------------------------ */

static void forget_marked(struct edge *e)
{
	while (e->marked_count)
		free(e->marked[--e->marked_count]);
}

static int list_marked(struct edge *e, int64_t now_ns, struct error *error)
{
	const char *path = "/api/v1/nodes?limit=500", *next;
	struct act_node node;
	int rc = 0;

	forget_marked(e);
	do {
		const cJSON *list = edge_get(e, path, READ_MS, error);

		rc = list ? 0 : -EIO;
		for (const cJSON *n = document_first(list, "items"); n; n = n->next) {
			read_node(e, n, &node);
			if (act_is_ours(&node))
				ARRAY_ADD(e->marked, e->marked_count) = mem_strdup(node.name);
		}
		next = document_text(list, "metadata.continue");
		path = next && *next
			       ? edge_keep(e,
					   mem_printf("/api/v1/nodes?limit=500&continue=%s", next))
			       : NULL;
		if (list)
			edge_drop(e);
	} while (path);
	if (!rc)
		e->listed_ns = now_ns;
	return rc;
}

struct act_node *edge_find_node(const struct edge *e, const char *name)
{
	return array_find_text(e->nodes, e->cluster.node_count, sizeof(struct act_node), name);
}

static int add_node(struct edge *e, const char *name, struct error *error)
{
	struct act_cluster *c = &e->cluster;
	struct error why = {""};
	const cJSON *doc;

	if (edge_find_node(e, name))
		return 0;
	doc = edge_get(e, edge_keep(e, mem_printf("/api/v1/nodes/%s", name)), READ_MS, &why);
	if (!doc && e->status == 404)
		return 0;
	if (!doc) {
		*error = why;
		return -EIO;
	}
	e->nodes = mem_realloc(e->nodes, (c->node_count + 1) * sizeof(*e->nodes));
	e->node_docs = mem_realloc(e->node_docs, (c->node_count + 1) * sizeof(cJSON *));
	e->node_docs[c->node_count] = doc;
	read_node(e, doc, &e->nodes[c->node_count++]);
	return 0;
}

static int add_named(struct edge *e, const struct edge_named *named, struct error *error)
{
	int rc = add_node(e, named->node, error);
	struct act_node *node = edge_find_node(e, named->node);

	if (node) {
		node->wants_drain |= named->drain;
		node->wants_undo |= named->undo;
	}
	return rc;
}

static int add_nodes(struct edge *e, const struct act_state *s, const struct edge_named *named,
		     size_t count, struct error *error)
{
	int rc = 0;

	for (size_t i = 0; i < s->drain_count && !rc; i++)
		rc = add_node(e, s->drains[i].node, error);
	for (size_t i = 0; i < e->marked_count && !rc; i++)
		rc = add_node(e, e->marked[i], error);
	for (size_t i = 0; i < e->offer.node_count && !rc; i++)
		rc = add_node(e, e->offer.nodes[i].name, error);
	for (size_t i = 0; i < count && !rc; i++)
		rc = add_named(e, &named[i], error);
	return rc;
}

static void forget_owners(struct edge *e)
{
	while (e->owner_count) {
		struct edge_owner *o = &e->owners[--e->owner_count];

		free(o->uid);
		free(o->namespace);
		free(o->selector);
	}
}

int edge_read_cluster(struct edge *e, const struct act_state *s, const struct edge_named *named,
		      size_t count, int64_t now_ns, struct error *error)
{
	struct act_cluster *c = &e->cluster;
	int rc = 0;

	if (!e->listed_ns || now_ns - e->listed_ns > LIST_EVERY_NS)
		rc = list_marked(e, now_ns, error);
	if (!s->drain_count)
		forget_owners(e);
	if (!rc)
		rc = add_nodes(e, s, named, count, error);
	for (size_t i = 0; i < c->node_count && !rc; i++)
		if (mark_is_active(e->nodes[i].mark.phase) && e->nodes[i].tainted)
			rc = read_pods(e, &e->nodes[i], error);
	e->ready = mem_zalloc(e->owner_count + 1, sizeof(*e->ready));
	for (size_t i = 0; i < e->owner_count; i++)
		e->ready[i].uid = e->owners[i].uid;
	for (size_t i = 0; i < e->owner_count && !rc; i++)
		rc = read_owners(e, i, error);
	c->nodes = e->nodes;
	c->owners = e->ready;
	c->owner_count = e->owner_count;
	return rc;
}

void edge_forget(struct edge *e)
{
	forget_marked(e);
	forget_owners(e);
	cJSON_Delete(e->promise);
	e->promise = NULL;
	e->listed_ns = 0;
	e->taint_seen_s = 0;
}
