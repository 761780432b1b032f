/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /v1/nodes and /v1/nodes/NAME: what each machine has, what of it is promised, and what is
 * measured on it, how freshly, and by which means. GET /v1/names, for completion, is at the end.
 *
 * A node is listed when the Kubernetes API or one of its pods names it, or when its agent was
 * heard. lifecycle lists the conditions by which an administrator announces a change of the node
 * (DrainInProgress, Drained, MaintenancePlanned, ..). source.state none: it never was, so no agent
 * runs there; unknownToApi: no Node object has that name. Without an API, capacity and allocatable
 * are what the agent measured, and members that follow from pods' specs are absent.
 *
 * limitRatio is the sum of limits by allocatable, by the specs and by the kernel. What containers
 * without a limit count as is the request's choice, unlimited=ignore (the default), allocatable (of
 * their node) or requests (theirs); unlimitedContainers says how many there are.
 *
 * exclusiveCpuMillicores are CPUs that one pod each has alone. heldIdle is no room for other pods
 * though nothing uses it: exclusive CPUs, and protected memory in use beyond the working set.
 *
 * A list ends with "total", the sums over all nodes that match, on whatever page: knownToApi,
 * ready, unschedulable and the members of source count nodes; what there is and is promised is
 * summed over nodes that the API knows, where there is one, and usage over those under "measured",
 * which were heard within 5 minutes.
 */
#include <string.h>

#include "aggregator/api/api.h"
#include "aggregator/api/list.h"
#include "aggregator/api/nodes_total.h"
#include "aggregator/api/route.h"
#include "aggregator/api/score_job.h"
#include "aggregator/api/view_json.h"
#include "aggregator/planner/plan.h"
#include "aggregator/state/stats_json_parts.h"
#include "shared/clock.h"
#include "shared/jsonw.h"

static void write_source(struct json_io *io, struct node_stats *p, int64_t now_ns)
{
	enum freshness state = node_stats_freshness(p, now_ns);
	struct jsonw *w = io->out;

	jsonw_key_object(w, "source");
	jsonw_key_string(w, "state", freshness_name(state));
	if (state != NEVER)
		jsonw_key_fixed(w, "ageSeconds", (double)node_stats_age_ns(p, now_ns) / NS_PER_SEC,
				3);
	if (state != NEVER && !p->foreign)
		stats_json_do_source(io, p);
	jsonw_object_close(w);
}

/* The inputs of one answer. */
struct answer {
	const struct view *view;
	int64_t now_ns;
	enum limits_unlimited policy;
	struct assumed assumed;
};

static void write_object(struct jsonw *w, const struct answer *a, const struct view_node *n)
{
	const struct kube_node *known = n->model ? n->model->node : NULL;

	if (!known) {
		jsonw_key_true(w, "unknownToApi", view_knows(a->view, OBJECT_NODE));
		return;
	}
	jsonw_key_text(w, "uid", known->object.uid);
	view_json_write_labels(w, &known->labels);
	jsonw_key_bool(w, "ready", known->ready);
	jsonw_key_bool(w, "unschedulable", known->unschedulable);
	if (!known->lifecycle)
		return;
	jsonw_key_array(w, "lifecycle");
	for (unsigned int l = 0; l < NODE_LIFECYCLES; l++)
		if (known->lifecycle & 1U << l)
			jsonw_string(w, node_lifecycle_name((enum node_lifecycle)l));
	jsonw_array_close(w);
}

static void write_promises(struct jsonw *w, const struct answer *a, const struct view_node *n)
{
	struct limits_shares shares = {0};
	struct resources room;

	nodes_write_resources(w, "capacity", nodes_capacity(n, &room));
	nodes_write_resources(w, "allocatable", nodes_allocatable(n, &room));
	if (!n->model)
		return;
	view_json_write_resources(w, "requests", &n->sums.requests, ABSENT_ZERO);
	view_json_write_limits(w, &n->sums);
	limits_add(&shares, n, a->policy);
	view_json_write_ratio(w, &shares);
	jsonw_key_int(w, "pods", n->sums.pods);
}

/* Reservations of pods that the API does not show on the node yet. */
static void write_assumed(struct jsonw *w, const struct answer *a, const struct view_node *n)
{
	const struct score_assumed *s =
		a->assumed.count ? assumed_find(&a->assumed, view_index(a->view, n->name)) : NULL;

	if (!s)
		return;
	jsonw_key_object(w, "assumed");
	jsonw_key_int(w, "pods", s->pods);
	view_json_write_amounts(w, "requests", s->request_cpu_milli, s->request_mem_bytes);
	jsonw_key_object(w, "usage");
	jsonw_key_int(w, "cpuMillicores", s->cpu_milli);
	jsonw_object_close(w);
	jsonw_object_close(w);
}

static void write_members(struct jsonw *w, const struct answer *a, const struct view_node *n)
{
	struct node_stats p; /* a copy: parts of stats are an output, too */
	struct json_io io;

	memcpy(&p, n->stats, sizeof(p));
	json_io_write(&io, w, true);
	jsonw_key_string(w, "name", n->name);
	write_object(w, a, n);
	write_source(&io, &p, a->now_ns);
	write_promises(w, a, n);
	write_assumed(w, a, n);
	/* Idle, and yet no room for other pods. */
	if (p.exclusive_cpu_milli)
		jsonw_key_int(w, "exclusiveCpuMillicores", p.exclusive_cpu_milli);
	if (p.idle.cpu_milli || p.idle.mem_bytes)
		view_json_write_amounts(w, "heldIdle", p.idle.cpu_milli, p.idle.mem_bytes);
	stats_json_do_node_use(&io, &p);
}

static bool matches(const struct view_node *n, const struct list_query *q)
{
	return (!q->node || strcmp(n->name, q->node) == 0) &&
	       (!q->selector || selector_matches(q->selector, list_node_labels(n)));
}

static void answer_list(const struct answer *a, const struct list_query *q, struct api_response *rs)
{
	struct nodes_total total;
	struct list_pick pick;
	struct jsonw w;

	list_pick_init(&pick, q);
	nodes_total_init(&total, a->policy, a->view->cluster != NULL);
	for (size_t i = 0; i < a->view->node_count; i++) {
		if (!matches(a->view->nodes[i], q))
			continue;
		nodes_total_add(&total, a->view->nodes[i], a->now_ns);
		list_pick_offer(&pick, (struct list_item){.node = a->view->nodes[i]});
	}
	list_pick_sort(&pick);
	list_answer_open(rs, &w, "NodeList", a->now_ns);
	jsonw_key_array(&w, "items");
	for (size_t i = 0; i < pick.count; i++) {
		jsonw_object_open(&w);
		write_members(&w, a, pick.items[i].node);
		jsonw_object_close(&w);
	}
	jsonw_array_close(&w);
	nodes_total_write(&w, &total);
	list_write_close(&w, &pick);
	nodes_total_fini(&total);
	list_pick_fini(&pick);
}

static void answer_one(const struct answer *a, const char *name, struct api_response *rs)
{
	const struct view_node *n = view_find(a->view, name);
	struct jsonw w;

	if (!n) {
		api_fail(rs, FAIL_NOT_FOUND, NULL, "no agent has reported from a node \"%s\"%s",
			 name, a->view->cluster ? ", and the API has none of that name" : "");
		return;
	}
	list_answer_open(rs, &w, "Node", a->now_ns);
	write_members(&w, a, n);
	list_answer_close(&w);
}

void api_nodes(const struct api_context *ctx, const struct api_request *rq, struct api_response *rs)
{
	const char *name = rq->path + strlen("/v1/nodes");
	struct answer a = {.now_ns = ctx->now_ns()};
	struct reservations_copy *reservations;
	struct list_query q;
	struct view *v;

	name += *name == '/';
	a.policy = (enum limits_unlimited)api_query_choice(rq, "unlimited", api_unlimited);
	reservations = reservations_take(ctx->reservations, a.now_ns);
	a.view = v = view_slot_take(ctx->views);
	assumed_read(&a.assumed, v, reservations, "");
	if (list_query_read(rq, v, &q, rs)) {
		if (*name)
			answer_one(&a, name, rs);
		else
			answer_list(&a, &q, rs);
		list_query_fini(&q);
	}
	if (rs->status == 200)
		rs->etag = list_etag(v, a.now_ns) ^ assumed_hash(&a.assumed);
	assumed_fini(&a.assumed);
	view_drop(v);
	reservations_copy_drop(reservations);
}

/*
 * GET /v1/names: what things are called, for shells that complete a command line. Lists are sorted;
 * what is not known is an empty list.
 *
 *   {"apiVersion","kind":"Names","time","nodes":[S,..],"namespaces":[S,..],"slackClasses":[S,..]}
 *
 *   namespaces    with an API that tells them all, else those that have pods
 *   slackClasses  of the newest plan, as /v1/slack has them
 */
void api_names(const struct api_context *ctx, const struct api_request *rq, struct api_response *rs)
{
	struct plan_result *r = ctx->plans ? plan_slot_take(ctx->plans) : NULL;
	struct view *v = view_slot_take(ctx->views);
	struct jsonw w;
	const struct object_table *all;
	const struct namespace_table *with_pods;

	(void)rq;
	list_answer_open(rs, &w, "Names", ctx->now_ns());
	jsonw_key_array(&w, "nodes");
	for (size_t i = 0; i < v->node_count; i++)
		jsonw_string(&w, v->nodes[i]->name);
	jsonw_array_close(&w);
	all = view_table(v, OBJECT_NAMESPACE);
	with_pods = v->namespaces;
	jsonw_key_array(&w, "namespaces");
	for (size_t i = 0; all && i < all->count; i++)
		jsonw_string(&w, all->of[i]->name);
	for (size_t i = 0; !(all && all->count) && with_pods && i < with_pods->count; i++)
		jsonw_string(&w, with_pods->of[i].name);
	jsonw_array_close(&w);
	jsonw_key_array(&w, "slackClasses");
	for (size_t i = 0; r && i < r->slack.class_count; i++)
		jsonw_string(&w, r->slack.classes[i].key);
	jsonw_array_close(&w);
	list_answer_close(&w);
	plan_result_drop(r);
	view_drop(v);
}
