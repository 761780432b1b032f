/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /v1/pods: what each pod asks for, may take and uses.
 *
 * With an API the pods are the API's, on their nodes or waiting for one (no member node), and those
 * that only an agent sees: unknownToApi, with the cgroup's path for a name. What no agent measures
 * has an empty usage and no contention. Where the kernel enforces another limit than the spec asks
 * for, limitMismatch tells both (limits.h). limits sums the containers that have one; null is none,
 * and unlimitedContainers counts those without. resize is the state of a change of resources in
 * place: Proposed, Deferred, Infeasible or InProgress.
 *
 * A container's name is the pod's, and its cgroup beside it, where the API has told its id; else
 * the name is the cgroup.
 *
 * Without an API a pod's name is its cgroup's path and its namespace is empty; without Kubernetes
 * the workloads are systemd's units and slices. What each used at its peak in each hour of the day
 * is told with peaks=true: it doubles the answer.
 */
#include <string.h>

#include "aggregator/api/api.h"
#include "aggregator/api/list.h"
#include "aggregator/api/route.h"
#include "aggregator/api/view_json.h"
#include "aggregator/model/pod_sums.h"
#include "aggregator/state/stats_json_parts.h"
#include "shared/jsonw.h"

/* The inputs of one answer. */
struct answer {
	const struct view *view;
	bool peaks;
};

static void write_workload(struct jsonw *w, const struct answer *a, const struct view_pod *p)
{
	struct owner_ref owner = {0};

	if (p->pod)
		owner = cluster_workload_of(a->view->cluster, p->pod);
	else
		owner = (struct owner_ref){.kind = entity_kind_name[p->use->kind],
					   .name = p->use->name};
	jsonw_key_object(w, "workload");
	jsonw_key_string(w, "kind", owner.kind);
	jsonw_key_string(w, "name", owner.name);
	jsonw_object_close(w);
}

static void write_container(struct json_io *io, const struct view_pod *p,
			    const struct container_stats *c, int64_t end_ns)
{
	char name[CONTAINER_NAME_MAX + 1];
	bool named = p->pod && kube_pod_find_container(p->pod, c->id, name);
	struct kernel_limits limits = *c->limits;
	struct container_stats copy = *c;

	jsonw_object_open(io->out);
	if (named)
		jsonw_key_string(io->out, "name", name);
	jsonw_key_string(io->out, named ? "cgroup" : "name", c->name);
	stats_json_do_container(io, &copy, &limits, end_ns);
	jsonw_object_close(io->out);
}

static void write_names(struct jsonw *w, const struct list_item *item)
{
	const struct view_pod *p = &item->pod;

	jsonw_key_string(w, "namespace", view_pod_namespace(p));
	jsonw_key_string(w, "name", view_pod_name(p));
	jsonw_key_text(w, "uid", view_pod_uid(p));
	if (p->pod)
		view_json_write_labels(w, &p->pod->template->labels);
	if (item->node)
		jsonw_key_string(w, "node", item->node->name);
	if (p->pod)
		jsonw_key_string(w, "phase", pod_phase_name((enum pod_phase)p->pod->phase));
	if (p->pod && p->pod->qos[0])
		jsonw_key_string(w, "qosClass", p->pod->qos);
	else if (p->use)
		jsonw_key_text(w, "qosClass", qos_class_name[p->use->qos]);
}

/* Requests, limits and a resize. */
static void write_wishes(struct jsonw *w, const struct kube_pod *pod)
{
	static const char *const resizes[] = {
		[POD_RESIZE_NONE] = NULL,
		[POD_RESIZE_PROPOSED] = "Proposed",
		[POD_RESIZE_DEFERRED] = "Deferred",
		[POD_RESIZE_INFEASIBLE] = "Infeasible",
		[POD_RESIZE_IN_PROGRESS] = "InProgress",
	};
	const struct pod_sums *sums = kube_pod_sums(pod);

	view_json_write_resources(w, "requests", &sums->requests, ABSENT_LEFT_OUT);
	view_json_write_resources(w, "limits", &sums->limits, ABSENT_NULL);
	view_json_write_unlimited(w, sums->unlimited_cpu, sums->unlimited_mem);
	jsonw_key_text(w, "resize", resizes[pod->resize]);
}

/* By the names that the API has. */
static void name_cause(const struct view_node *n, const struct pod_stats *use,
		       struct stats_json_cause *out)
{
	for (size_t i = 0; i < n->pod_count && use->cause.share > 0; i++) {
		const struct view_pod *p = &n->pods[i];

		if (!p->use || (size_t)(p->use - n->stats->pods) != use->cause.pod)
			continue;
		out->namespace = view_pod_namespace(p);
		out->name = view_pod_name(p);
	}
}

static void write_use(struct jsonw *w, const struct answer *a, const struct view_node *n,
		      const struct view_pod *p)
{
	const struct node_stats *stats = n->stats;
	struct stats_json_pod use = stats_json_pod_of(stats, p->use);
	struct json_io io;

	json_io_write(&io, w, true);
	use.has_peaks &= a->peaks;
	name_cause(n, p->use, &use.cause);
	stats_json_do_pod_use(&io, &use);
	jsonw_key_array(w, "containers");
	for (size_t i = 0; i < p->use->container_count; i++)
		write_container(&io, p, &p->use->containers[i], stats->end_ns);
	jsonw_array_close(w);
}

static void write_pod(struct jsonw *w, const struct answer *a, const struct list_item *item)
{
	const struct view_pod *p = &item->pod;

	jsonw_object_open(w);
	write_names(w, item);
	write_workload(w, a, p);
	if (p->pod)
		write_wishes(w, p->pod);
	else if (p->use->kind == ENTITY_POD && view_knows(a->view, OBJECT_POD))
		jsonw_key_bool(w, "unknownToApi", true);
	if (p->use) {
		usage_json_write_limits(w, p->use->limits);
		view_json_write_mismatch(w, item->node, p);
		write_use(w, a, item->node, p);
	} else {
		jsonw_key_object(w, "usage");
		jsonw_object_close(w);
	}
	jsonw_object_close(w);
}

static void offer(struct list_pick *pick, const struct list_item *item)
{
	static const struct labels none;
	const struct list_query *q = pick->query;
	const struct view_pod *p = &item->pod;

	if (q->namespace && strcmp(view_pod_namespace(p), q->namespace) != 0)
		return;
	if (q->selector &&
	    !selector_matches(q->selector, p->pod ? &p->pod->template->labels : &none))
		return;
	list_pick_offer(pick, *item);
}

static void offer_node(struct list_pick *pick, const struct view_node *n)
{
	for (size_t i = 0; i < n->pod_count; i++) {
		struct list_item item = {.node = n, .pod = n->pods[i]};

		if (list_pick_is_past(pick, &item))
			return; /* they are sorted */
		offer(pick, &item);
	}
}

static void offer_pending(struct list_pick *pick, const struct cluster *c)
{
	const struct object_table *pods = c->tables[OBJECT_POD];

	for (size_t i = 0; i < pods->count; i++) {
		struct list_item item = {.pod = {.pod = (const struct kube_pod *)pods->of[i]}};

		if (list_pick_is_past(pick, &item))
			return;
		offer(pick, &item);
	}
}

static void offer_all(struct list_pick *pick, const struct view *v)
{
	const struct view_node *one;

	if (pick->query->node) {
		one = view_find(v, pick->query->node);
		if (one)
			offer_node(pick, one);
		return;
	}
	for (size_t i = 0; i < v->node_count; i++)
		offer_node(pick, v->nodes[i]);
	if (v->cluster)
		offer_pending(pick, v->cluster);
}

static void answer_list(const struct answer *a, const struct list_query *q, int64_t now_ns,
			struct api_response *rs)
{
	struct list_pick pick;
	struct jsonw w;

	list_pick_init(&pick, q);
	offer_all(&pick, a->view);
	list_pick_sort(&pick);
	rs->etag = list_etag(a->view, now_ns);
	list_answer_open(rs, &w, "PodList", now_ns);
	jsonw_key_array(&w, "items");
	for (size_t i = 0; i < pick.count; i++)
		write_pod(&w, a, &pick.items[i]);
	jsonw_array_close(&w);
	list_write_close(&w, &pick);
	list_pick_fini(&pick);
}

void api_pods(const struct api_context *ctx, const struct api_request *rq, struct api_response *rs)
{
	struct answer a = {.peaks = api_query_flag(rq, "peaks")};
	struct list_query q;
	struct view *v;

	a.view = v = view_slot_take(ctx->views);
	if (list_query_read(rq, v, &q, rs)) {
		answer_list(&a, &q, ctx->now_ns(), rs);
		list_query_fini(&q);
	}
	view_drop(v);
}
