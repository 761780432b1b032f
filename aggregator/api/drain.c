/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /v1/drain[?node=NAME[,NAME..]][&labelSelector=S][&explain=true]: which nodes could go, which go now and where
 * their pods would go then, and why the others stay.
 *
 *   {"apiVersion","kind":"DrainPlan","time"[,"stale":S],"planned","viewVersion","variant":"corrected","useCap":"on"[,"cap":{"cpuShare","memoryShare","z","contention"}],"ownerShare"[,"podUse"],"complete":true,
 *    "verdicts":{"needed":I,"notExamined":I,"unneeded":I,"drain":I,"inDeletion":I,"kept":I,"drained":I},
 *    "throttled":{"state":false,"nodes":{"used","limit"},"drains":{"used","limit"},"held":I},
 *    "owed":{"ofDeletions","ofEvictions","pending","placeholders","placed","unplaced","waiting"[,"why"]},
 *    "wave":WAVE|null,"items":[NODE,..][,"narration":[S,..]]}
 *
 * The plan is the planner's newest, and "planned" when that was; nothing is done about it here.
 * Nodes come by name: all, or those that are asked for. A name that nobody knows is 404.
 *
 *   stale       why the plan may not be true any more: it is old, or the cluster's objects are
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
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/drain_json.h"
#include "aggregator/api/list.h"
#include "aggregator/api/plan_ask.h"
#include "aggregator/api/route.h"
#include "aggregator/api/view_json.h"
#include "shared/hash.h"
#include "shared/mem.h"

struct question {
	bool explain;
	const char *names; /* borrowed; NULL: all */
	struct selector *selector; /* owned; NULL: any labels */
};

static bool read_question(const struct api_request *rq, struct question *q, struct api_response *rs)
{
	q->explain = api_query_flag(rq, "explain");
	q->names = rq->query(rq, "node");
	if (q->names && !*q->names)
		return api_fail(rs, FAIL_BAD_REQUEST, "node", "must name a node");
	return list_selector_read(rq, &q->selector, rs);
}

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
	static const struct labels none;

	for (size_t i = 0; i < p->node_count; i++) {
		const struct view_node *n = chosen[i] ? view_find(p->view, p->nodes[i].name) : NULL;
		const struct kube_node *known = n && n->model ? n->model->node : NULL;

		chosen[i] = chosen[i] && selector_matches(selector, known ? &known->labels : &none);
	}
}

/* A plan never changes; what is said of it may. */
static uint64_t etag_of(const struct plan_result *r, const struct error *stale)
{
	uint64_t hash = hash_bytes((uint64_t)r->time_ns ^ r->version << 48, stale->text,
				   strlen(stale->text));

	return hash ? hash : 1;
}

static void write_cap(struct jsonw *w, const struct place_cap *cap)
{
	jsonw_key_object(w, "cap");
	jsonw_key(w, "cpuShare");
	jsonw_exact(w, cap->cpu_share);
	jsonw_key(w, "memoryShare");
	jsonw_exact(w, cap->mem_share);
	jsonw_key(w, "z");
	jsonw_exact(w, cap->z);
	jsonw_key(w, "contention");
	jsonw_exact(w, cap->contention);
	jsonw_object_close(w);
}

static void write_plan(const struct plan_result *r, const struct question *q, const bool *chosen,
		       int64_t now_ns, struct api_response *rs)
{
	const struct drain_plan *p = r->drain;
	struct error stale;
	struct jsonw w;

	list_answer_open(rs, &w, "DrainPlan", now_ns);
	plan_ask_stale(r, now_ns, &stale);
	rs->etag = etag_of(r, &stale);
	jsonw_key_text(&w, "stale", stale.text);
	drain_json_write_head(&w, p);
	if (p->capped)
		write_cap(&w, &r->cap);
	drain_json_write_wave(&w, p);
	jsonw_key_array(&w, "items");
	for (size_t i = 0; i < p->node_count; i++) {
		if (!chosen[i])
			continue;
		jsonw_object_open(&w);
		drain_json_write_node(&w, p, &p->nodes[i], q->explain);
		jsonw_object_close(&w);
	}
	jsonw_array_close(&w);
	if (q->explain)
		list_write_lines(&w, "narration", p->narration);
	list_answer_close(&w);
}

static void answer(const struct plan_result *r, const struct question *q, int64_t now_ns,
		   struct api_response *rs)
{
	const struct drain_plan *p = r->drain;
	bool *chosen = mem_zalloc(p->node_count + 1, sizeof(*chosen));

	memset(chosen, !q->names, p->node_count);
	if (!q->names || choose_named(p, q->names, chosen, rs)) {
		if (q->selector)
			choose_labelled(p, q->selector, chosen);
		write_plan(r, q, chosen, now_ns, rs);
	}
	free(chosen);
}

void api_drain(const struct api_context *ctx, const struct api_request *rq, struct api_response *rs)
{
	struct plan_result *r;
	struct question q = {0};

	if (!read_question(rq, &q, rs))
		return;
	r = plan_ask(ctx, rs);
	if (r)
		answer(r, &q, ctx->now_ns(), rs);
	plan_result_drop(r);
	selector_free(q.selector);
}
