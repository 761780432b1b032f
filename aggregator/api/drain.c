/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /v1/drain[?node=NAME[,NAME..]][&labelSelector=S][&explain=true]: which nodes could go, which go now and where
 * their pods would go then, and why the others stay.
 *
 *   {"apiVersion","kind":"DrainPlan","time",HEAD,"planned","viewVersion","variant":"corrected","useCap":"on"[,"cap":{"cpuShare","memoryShare","z","contention"}],"ownerShare"[,"podUse"],"complete":true,
 *    "verdicts":{"needed":I,"notExamined":I,"unneeded":I,"drain":I,"inDeletion":I,"kept":I,"drained":I},
 *    "throttled":{"state":false,"nodes":{"used","limit"},"drains":{"used","limit"},"held":I},
 *    "owed":{"ofDeletions","ofEvictions","pending","placeholders","placed","unplaced","waiting"[,"why"]},
 *    "wave":WAVE|null,"items":[NODE,..][,"narration":[S,..]]}
 *
 * The plan is the planner's newest, and "planned" when that was; nothing is done about it here.
 * Nodes come by name: all, or those that are asked for. A name that nobody knows is 404.
 *
 *   HEAD        the beginning, as in plan_ask.h
 *   podUse      "shared out of their nodes": nobody measured some pods of measured nodes
 *   useCap      on; "off: .." and why: destinations are then chosen by requests alone
 *   cap         of destinations' real use, while it is on: shares of the allocatable, deviations, share of waiting
 *   ownerShare  how much of an owner's pods may be away at once, at least one
 *   complete    every candidate was examined; else some have the verdict notExamined, and keep their timers
 *   throttled   state: no more nodes of any kind may go, and "held" nodes wait for that. What is used are nodes in deletion, and of this wave
 *   owed        pods that were placed before any node was asked: of nodes in deletion, missing replicas of recent evictions, pending ones, and
 *               placeholders of extra capacity. While any of the first two fit nowhere nothing goes
 *
 *   NODE   name, verdict   needed; notExamined; unneeded: it could go, and the reasons say why it does not yet; drain: it is in the wave; inDeletion;
 *                          kept: pods of the wave, or of nodes that could go, would come here; drained: it is cordoned and empty, and uses up no limit
 *          since, due      unneeded since, and may go after; absent where it is needed
 *          group           absent where all nodes are one; atomic: its nodes go all at once, or none
 *          softTainted     true: it has the taint evenkeel.io/drain-candidate (evenkeel drain -o soft-taints)
 *          pods, daemonPods, allocatable, requests, usage{cpuMillicores,workingSetBytes}
 *                          usage: means of the longest window; absent where it is not measured
 *          utilization     {requested,used,rightSized}: shares of the allocatable; the last if requests were the 95th percentile of use, and some headroom
 *          idleInFact      by requests it is needed, and would not be then
 *          reasons         [REASON,..]: the first is the one that decides
 *          moves           [MOVE,..] with explain: where its pods went in the simulation
 *   REASON {"code","text"[,"pod":{"namespace","name"}][,"numbers":{..}][,"refused":{FILTER:I,..}][,"unblock"]}
 *          refused: how many nodes each filter kept the pod from; unblock: what would change it. Codes are in drain_options.h
 *   WAVE   {"emptyNodes","drainedNodes","pods","robust","anyOrder"[,"notRobust"],"evictions","reserved":[GUEST,..],"nodes":[{"name","uid"[,"emptyDir":true][,"unmanaged":true],"moves":[MOVE,..],"guests":[GUEST,..]},..],
 *           "destinations":[{"node","pods"[,"cpuMillicores":{["now","reserved",]"before","after","limit"},"memoryBytes":{..}]},..],
 *           "disruptions":[{"kind","namespace","name","pods"[,"allowed","left"][,"oneAfterTheOther":true]},..]}
 *          in the order in which nodes should go; robust: the pods had places in some other orders
 *          as well, which is false only with --drain-not-robust; anyOrder: that is proven for all, and nodes may be drained at once, and not each
 *          after the one before; evictions: the apiVersion of Evictions, such as policy/v1; reserved: the pods of "owed" but placeholders; guests: those of them that the simulation moves with the node; emptyDir, unmanaged:
 *          some pod has an emptyDir, or no controller; destinations: now is the mean of real use, reserved what the prediction
 *          (before, after) has on top before the wave; disruptions: what
 *          leaves PodDisruptionBudgets, and owners; so many may leave at once, by the budget or the
 *          owner's share, before the wave and after it (pods that are not ready use nothing of it)
 *   GUEST  {"namespace","name","uid","to","after"}: after so many moves of the node
 *   MOVE   {"namespace","name"[,"to"][,"deleted":true][,"placeholder":true][,"workload":{"kind","name"[,"replicas"]}][,"step":I]
 *           [,"ageSeconds":I][,"uid"],"cpuMillicores","memoryBytes"}: requests; a placeholder is room that is kept for pods to come (/v1/slack); without "to" it has nowhere to
 *          go, or ended; deleted: it has no controller, and so is not made anew, nor in "pods" or at a destination; step: of nodes that hold more pods of an owner or a budget than
 *          may be away at once: it leaves when the replacements of those of the step before are ready; ageSeconds: of pods that came less than 10
 *          minutes ago, maybe for evicted ones
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/list.h"
#include "aggregator/api/plan_ask.h"
#include "aggregator/api/route.h"
#include "aggregator/api/view_json.h"
#include "aggregator/policy/slack/slack.h"
#include "aggregator/state/windows.h"
#include "shared/clock.h"
#include "shared/duration.h"
#include "shared/mem.h"

static const int64_t YOUNG_NS = 600 * NS_PER_SEC;

/* --- pods that move */

/*
 * The owner whose replacement must be ready before others leave; of a kind that kubectl rollout does
 * not know, with its number of pods.
 */
static void write_workload(struct jsonw *w, const struct drain_plan *p, const struct kube_pod *pod)
{
	const struct cluster *c = p->view->cluster;
	struct owner_ref who = cluster_workload_of(c, pod);
	const struct object *object = NULL;
	enum object_kind kind;

	if (!object_kind_find(pod->template->owner_api, who.kind, &kind))
		object = cluster_find(c, kind, pod->object.namespace, who.name);
	jsonw_key_object(w, "workload");
	jsonw_key_string(w, "kind", who.kind);
	jsonw_key_string(w, "name", who.name);
	if (object && (kind == OBJECT_REPLICA_SET || kind == OBJECT_REPLICATION_CONTROLLER))
		jsonw_key_int(w, "replicas", ((const struct kube_workload *)object)->replicas);
	jsonw_object_close(w);
}

static void write_move(struct jsonw *w, const struct drain_plan *p, const char *node,
		       const struct drain_move *m)
{
	/* Room that is kept for pods to come: its pod is nobody's. */
	bool placeholder = strcmp(m->pod->object.namespace, SLACK_NAMESPACE) == 0 &&
			   strcmp(m->pod->template->owner.name, SLACK_REPLICA_SET) == 0;
	bool deleted = !placeholder && drain_is_deleted(m->pod);
	const struct resources *r = kube_pod_requests(m->pod);
	int64_t age_ns = elapsed_ns(p->time_ns, m->pod->created_ns);

	jsonw_object_open(w);
	jsonw_key_string(w, "namespace", m->pod->object.namespace);
	jsonw_key_string(w, "name", m->pod->object.name);
	if (!placeholder && *m->pod->node && strcmp(m->pod->node, node) != 0)
		jsonw_key_string(w, "from", m->pod->node);
	if (m->to && !deleted)
		jsonw_key_string(w, "to", m->to);
	jsonw_key_true(w, "deleted", deleted);
	if (placeholder)
		jsonw_key_bool(w, "placeholder", true);
	else if (!deleted)
		write_workload(w, p, m->pod);
	if (m->step)
		jsonw_key_int(w, "step", m->step);
	if (!placeholder) {
		/* A young pod has hardly begun, or moves a second time. */
		if (m->pod->created_ns && age_ns < YOUNG_NS)
			jsonw_key_int(w, "ageSeconds", age_ns / NS_PER_SEC);
		jsonw_key_string(w, "uid", m->pod->object.uid);
	}
	jsonw_key_int(w, "cpuMillicores", r->of[RESOURCE_CPU]);
	jsonw_key_int(w, "memoryBytes", r->of[RESOURCE_MEMORY]);
	jsonw_object_close(w);
}

static void write_moves(struct jsonw *w, const struct drain_plan *p,
			const struct drain_plan_node *n)
{
	jsonw_key_array(w, "moves");
	for (size_t i = 0; i < n->move_count; i++)
		write_move(w, p, n->name, &n->moves[i]);
	jsonw_array_close(w);
}

/* --- reasons */

static void write_reason(struct jsonw *w, const struct drain_why *why)
{
	jsonw_object_open(w);
	jsonw_key_string(w, "code", drain_reason_name(why->code));
	jsonw_key_string(w, "text", why->text);
	if (why->pod) {
		jsonw_key_object(w, "pod");
		jsonw_key_string(w, "namespace", why->pod->object.namespace);
		jsonw_key_string(w, "name", why->pod->object.name);
		jsonw_object_close(w);
	}
	drain_why_write(why, w);
	jsonw_key_text(w, "unblock", why->unblock);
	jsonw_object_close(w);
}

/* --- nodes */

/* The means of the window that speaks for it. */
static const struct window_set *use_of(const struct view_node *n, int64_t now_ns)
{
	enum freshness fresh = node_stats_freshness(n->stats, now_ns);
	int window;

	return fresh == FRESH || fresh == LATE ? window_longest(n->stats->usage.windows, &window)
					       : NULL;
}

static void write_amounts(struct jsonw *w, const struct view_node *n, int64_t now_ns)
{
	const struct window_set *set;

	jsonw_key_int(w, "pods", n->sums.pods);
	jsonw_key_int(w, "daemonPods", n->sums.daemon_pods);
	view_json_write_capacity(w, "allocatable", n->cpu_allocatable_milli,
				 n->mem_allocatable_bytes);
	view_json_write_amounts(w, "requests", n->sums.requests.of[RESOURCE_CPU],
				n->sums.requests.of[RESOURCE_MEMORY]);
	set = use_of(n, now_ns);
	if (!set)
		return;
	jsonw_key_object(w, "usage");
	if (set->cpu_milli.known)
		jsonw_key_fixed(w, "cpuMillicores", set->cpu_milli.mean, 3);
	if (set->working_set_bytes.known)
		jsonw_key_fixed(w, "workingSetBytes", set->working_set_bytes.mean, 0);
	jsonw_object_close(w);
}

static void write_shares(struct jsonw *w, const struct drain_plan_node *n)
{
	if (!n->requested_known && !n->used_known)
		return;
	jsonw_key_object(w, "utilization");
	if (n->requested_known)
		jsonw_key_fixed(w, "requested", n->requested_share, 4);
	if (n->used_known)
		jsonw_key_fixed(w, "used", n->used_share, 4);
	if (n->right_sized_share > 0)
		jsonw_key_fixed(w, "rightSized", n->right_sized_share, 4);
	jsonw_object_close(w);
}

void drain_json_write_node(struct jsonw *w, const struct drain_plan *p,
			   const struct drain_plan_node *n, bool moves)
{
	const struct view_node *known = view_find(p->view, n->name);

	jsonw_key_string(w, "name", n->name);
	jsonw_key_string(w, "verdict", drain_verdict_name(n->verdict));
	if (n->since_ns) {
		jsonw_key_time(w, "since", n->since_ns);
		jsonw_key_time(w, "due", n->due_ns);
	}
	jsonw_key_text(w, "group", n->group);
	jsonw_key_true(w, "atomic", n->atomic);
	if (known->model && known->model->node &&
	    taints_find(&known->model->node->taints, "evenkeel.io/drain-candidate"))
		jsonw_key_bool(w, "softTainted", true);
	write_amounts(w, known, p->time_ns);
	write_shares(w, n);
	jsonw_key_true(w, "idleInFact", n->idle_in_fact);
	jsonw_key_array(w, "reasons");
	for (size_t i = 0; i < n->reason_count; i++)
		write_reason(w, &n->reasons[i]);
	jsonw_array_close(w);
	if (moves)
		write_moves(w, p, n);
}

/* --- the wave */

/* now: NaN where it is not measured. */
static void write_change(struct jsonw *w, const char *key, double now, double before, double after,
			 double limit)
{
	jsonw_key_object(w, key);
	if (!isnan(now)) {
		jsonw_key_fixed(w, "now", now, 0);
		jsonw_key_fixed(w, "reserved", fmax(0, before - now), 0);
	}
	jsonw_key_fixed(w, "before", before, 0);
	jsonw_key_fixed(w, "after", after, 0);
	jsonw_key_fixed(w, "limit", limit, 0);
	jsonw_object_close(w);
}

static double mean_of(const struct window_stats *s)
{
	return s->known ? s->mean : NAN;
}

static void write_destination(struct jsonw *w, const struct drain_plan *p,
			      const struct drain_destination *d)
{
	const struct view_node *n = view_find(p->view, d->node);
	const struct window_set *set = use_of(n, p->time_ns);

	jsonw_object_open(w);
	jsonw_key_string(w, "node", d->node);
	jsonw_key_int(w, "pods", (int64_t)d->pods);
	if (d->predicted) {
		write_change(w, "cpuMillicores", set ? mean_of(&set->cpu_milli) : NAN,
			     d->before.cpu_milli, d->after.cpu_milli, d->after.cpu_limit_milli);
		write_change(w, "memoryBytes",
			     set ? mean_of(set->working_set_bytes.known ? &set->working_set_bytes
									: &set->mem_bytes)
				 : NAN,
			     d->before.mem_bytes, d->after.mem_bytes, d->after.mem_limit_bytes);
	}
	jsonw_object_close(w);
}

static void write_cost(struct jsonw *w, const struct drain_cost *c)
{
	jsonw_object_open(w);
	jsonw_key_string(w, "kind", c->kind);
	jsonw_key_string(w, "namespace", c->namespace);
	jsonw_key_string(w, "name", c->name);
	jsonw_key_int(w, "pods", (int64_t)c->pods);
	if (c->limited) {
		jsonw_key_int(w, "allowed", c->allowed);
		jsonw_key_int(w, "left", c->left);
	}
	jsonw_key_true(w, "oneAfterTheOther", c->one_after_the_other);
	jsonw_object_close(w);
}

/* kubectl drain asks to be told of both; its pods of DaemonSets and static ones stay. */
static void write_traits(struct jsonw *w, const struct view_node *n)
{
	bool empty_dir = false, unmanaged = false;

	for (size_t i = 0; i < n->model->pod_count; i++) {
		const struct kube_pod *pod = n->model->pods[i];
		const struct pod_template *t = pod->template;

		if (!kube_pod_is_active(pod) || t->mirror ||
		    strcmp(t->owner.kind, "DaemonSet") == 0)
			continue;
		empty_dir |= strstr(t->text + t->spec_at, "\"emptyDir\"") != NULL;
		unmanaged |= !*t->owner.kind;
	}
	jsonw_key_true(w, "emptyDir", empty_dir);
	jsonw_key_true(w, "unmanaged", unmanaged);
}

static void write_guests(struct jsonw *w, const char *key, const struct drain_move *of,
			 size_t count)
{
	jsonw_key_array(w, key);
	for (size_t i = 0; i < count; i++) {
		jsonw_object_open(w);
		jsonw_key_string(w, "namespace", of[i].pod->object.namespace);
		jsonw_key_string(w, "name", of[i].pod->object.name);
		jsonw_key_string(w, "uid", of[i].pod->object.uid);
		jsonw_key_string(w, "to", of[i].to);
		jsonw_key_int(w, "after", of[i].after);
		jsonw_object_close(w);
	}
	jsonw_array_close(w);
}

const char *drain_json_eviction_api(const struct view *v)
{
	const char *found = v->cluster->sources[OBJECT_POD_DISRUPTION_BUDGET].api_version;

	return *found ? found : object_kind_version(OBJECT_POD_DISRUPTION_BUDGET);
}

void drain_json_write_wave(struct jsonw *w, const struct drain_plan *p)
{
	const struct drain_wave *wave = &p->wave;

	jsonw_key(w, "wave");
	if (!wave->node_count) {
		jsonw_null(w);
		return;
	}
	jsonw_object_open(w);
	jsonw_key_int(w, "emptyNodes", (int64_t)wave->empty_count);
	jsonw_key_int(w, "drainedNodes", (int64_t)(wave->node_count - wave->empty_count));
	jsonw_key_int(w, "pods", (int64_t)wave->pods);
	jsonw_key_bool(w, "robust", wave->robust);
	jsonw_key_bool(w, "anyOrder", wave->any_order);
	jsonw_key_text(w, "notRobust", wave->not_robust.text);
	jsonw_key_string(w, "evictions", drain_json_eviction_api(p->view));
	write_guests(w, "reserved", p->reserved.moves, p->reserved.move_count);
	jsonw_key_array(w, "nodes");
	for (size_t i = 0; i < wave->node_count; i++) {
		const struct view_node *n = view_find(p->view, wave->nodes[i]->name);

		jsonw_object_open(w);
		jsonw_key_string(w, "name", wave->nodes[i]->name);
		jsonw_key_string(w, "uid", n->model->node->object.uid);
		write_traits(w, n);
		write_moves(w, p, wave->nodes[i]);
		write_guests(w, "guests", wave->nodes[i]->moves + wave->nodes[i]->move_count,
			     wave->nodes[i]->guest_count);
		jsonw_object_close(w);
	}
	jsonw_array_close(w);
	jsonw_key_array(w, "destinations");
	for (size_t i = 0; i < wave->destination_count; i++)
		write_destination(w, p, &wave->destinations[i]);
	jsonw_array_close(w);
	jsonw_key_array(w, "disruptions");
	for (size_t i = 0; i < wave->cost_count; i++)
		write_cost(w, &wave->costs[i]);
	jsonw_array_close(w);
	jsonw_object_close(w);
}

/* --- all nodes */

static void write_used(struct jsonw *w, const char *key, int64_t used, int64_t limit)
{
	jsonw_key_object(w, key);
	jsonw_key_int(w, "used", used);
	jsonw_key_int(w, "limit", limit);
	jsonw_object_close(w);
}

static void write_verdicts(struct jsonw *w, const struct drain_plan *p)
{
	int64_t of[DRAIN_VERDICTS] = {0};

	for (size_t i = 0; i < p->node_count; i++)
		of[p->nodes[i].verdict]++;
	jsonw_key_object(w, "verdicts");
	for (int v = DRAIN_NEEDED; v < DRAIN_VERDICTS; v++)
		jsonw_key_int(w, drain_verdict_name((enum drain_verdict)v), of[v]);
	jsonw_object_close(w);
}

static const char *use_cap_of(const struct drain_plan *p)
{
	if (p->capped)
		return "on";
	for (size_t i = 0; i < p->view->node_count; i++)
		if (p->view->nodes[i]->stats->end_ns)
			return "off: it is switched off";
	return "off: no usage data";
}

static void write_exact(struct jsonw *w, const char *key, double value)
{
	jsonw_key(w, key);
	jsonw_exact(w, value);
}

void drain_json_write_head(struct jsonw *w, const struct drain_plan *p)
{
	jsonw_key_time(w, "planned", p->time_ns);
	jsonw_key_int(w, "viewVersion", (int64_t)p->view->version);
	jsonw_key_string(w, "variant", p->variant == DRAIN_UPSTREAM ? "upstream" : "corrected");
	jsonw_key_string(w, "useCap", use_cap_of(p));
	write_exact(w, "ownerShare", p->owner_share);
	list_write_pod_use(w, p->shared);
	jsonw_key_bool(w, "complete", p->complete);
	write_verdicts(w, p);
	jsonw_key_object(w, "throttled");
	jsonw_key_bool(w, "state", p->throttle.throttled);
	write_used(w, "nodes", p->throttle.used, p->throttle.limit);
	write_used(w, "drains", p->throttle.drains_used, p->throttle.drains_limit);
	jsonw_key_int(w, "held", (int64_t)p->throttle.held);
	jsonw_object_close(w);
	jsonw_key_object(w, "owed");
	jsonw_key_int(w, "ofDeletions", (int64_t)p->reserved.of_deletions);
	jsonw_key_int(w, "ofEvictions", (int64_t)p->reserved.of_evictions);
	jsonw_key_int(w, "pending", (int64_t)p->reserved.pending);
	jsonw_key_int(w, "placeholders", (int64_t)p->reserved.placeholders);
	jsonw_key_int(w, "placed", (int64_t)p->reserved.placed);
	jsonw_key_int(w, "unplaced", (int64_t)p->reserved.unplaced);
	jsonw_key_int(w, "waiting", (int64_t)p->reserved.waiting);
	jsonw_key_text(w, "why", p->reserved.error.text);
	jsonw_object_close(w);
}

/* --- the request */

/*
 * Which of the plan's nodes are named, by their numbers. False: *rs says which is not there.
 */
static bool choose_named(const struct drain_plan *p, const char *names, bool *chosen,
			 struct api_response *rs)
{
	char *copy = mem_strdup(names), *rest = copy, *name;
	bool found = true;

	while (found && (name = strsep(&rest, ","))) {
		const struct drain_plan_node *n = drain_plan_find(p, name);

		found = n != NULL;
		if (found)
			chosen[n - p->nodes] = true;
		else
			api_fail(rs, FAIL_NOT_FOUND, "node", "there is no node \"%.253s\"", name);
	}
	free(copy);
	return found;
}

/* Of the chosen those with such labels. */
static void choose_labelled(const struct drain_plan *p, const struct selector *selector,
			    bool *chosen)
{
	for (size_t i = 0; i < p->node_count; i++)
		chosen[i] =
			chosen[i] &&
			selector_matches(selector,
					 list_node_labels(view_find(p->view, p->nodes[i].name)));
}

static void write_cap(struct jsonw *w, const struct place_cap *cap)
{
	jsonw_key_object(w, "cap");
	write_exact(w, "cpuShare", cap->cpu_share);
	write_exact(w, "memoryShare", cap->mem_share);
	write_exact(w, "z", cap->z);
	write_exact(w, "contention", cap->contention);
	jsonw_object_close(w);
}

static void write_plan(const struct plan_result *r, struct plan_peer *peer, bool explain,
		       const bool *chosen, int64_t now_ns, struct api_response *rs)
{
	const struct drain_plan *p = r->drain;
	struct jsonw w;

	list_answer_open(rs, &w, "DrainPlan", now_ns);
	rs->etag = plan_ask_write_head(r, peer, now_ns, &w);
	drain_json_write_head(&w, p);
	if (p->capped)
		write_cap(&w, &r->cap);
	drain_json_write_wave(&w, p);
	jsonw_key_array(&w, "items");
	for (size_t i = 0; i < p->node_count; i++) {
		if (!chosen[i])
			continue;
		jsonw_object_open(&w);
		drain_json_write_node(&w, p, &p->nodes[i], explain);
		jsonw_object_close(&w);
	}
	jsonw_array_close(&w);
	if (explain)
		list_write_lines(&w, "narration", p->narration);
	list_answer_close(&w);
}

void api_drain(const struct api_context *ctx, const struct api_request *rq, struct api_response *rs)
{
	const char *names = rq->query(rq, "node");
	struct selector *selector = NULL;
	struct plan_result *r = NULL;

	if (names && !*names)
		api_fail(rs, FAIL_BAD_REQUEST, "node", "must name a node");
	else if (list_selector_read(rq, &selector, rs))
		r = plan_ask(ctx, rs);
	if (r) {
		const struct drain_plan *p = r->drain;
		bool *chosen = mem_zalloc(p->node_count + 1, sizeof(*chosen));

		memset(chosen, !names, p->node_count);
		if (!names || choose_named(p, names, chosen, rs)) {
			if (selector)
				choose_labelled(p, selector, chosen);
			write_plan(r, ctx->plan_peer, api_query_flag(rq, "explain"), chosen,
				   ctx->now_ns(), rs);
		}
		free(chosen);
	}
	plan_result_drop(r);
	selector_free(selector);
}
