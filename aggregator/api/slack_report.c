/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /v1/slack: room that is kept for pods to come: how much, of which sizes, where, and what
 * could start now.
 *
 *   {"apiVersion","kind":"SlackList","time",HEAD,"planned":T,"version":I,"viewVersion":I,"useCap":"on"[,"podUse"],
 *    "target":{"nodes":I,"allocatable":A,"requested":A,"extra":A,"from":"rate|arrivals","rate":0.1,"base":"requested|allocatable",
 *              "arrivalSpans":I,"arrivalSpansNeeded":I,"granularity":I,"unit":A},
 *    "total":{"wanted","placed","unplaced","nodesToAdd"},
 *    "items":[CLASS,..],
 *    "nodesToAdd":[{"like":NODE[,"instanceType":S],"gives":A,"count":I},..],
 *    "moves":{"Placed":I,..},
 *    "notes":[{"about":S,"text":S},..][,"narration":[S,..]]}
 *
 *   HEAD   as in plan_ask.h; its id is that of the drain plan of the same step
 *   A      {"cpuMillicores","memoryBytes"}
 *   CLASS  name       "shop/Deployment/web", a workload with annotation evenkeel.io/slack; "cover-1", ..: sizes that hold any pod of those that
 *                     share ("shared"); "unit": what is missing to the target
 *          origin     workload, cover, unit
 *          verdict    placed; lowering (fewer would do, and are kept until lowerAt); unplaced (nodes are missing); impossible (no node there is
 *                     could hold one, were it empty)
 *          reason     why some are unplaced; refused: how many nodes each filter refused
 *          shape      A of one
 *          target     by today's numbers; wanted: with what is not given up yet; placed + unplaced
 *                     are that; balloons: of the placed, as many as real pods hold the room of that
 *                     were applied with format=balloons
 *          slots      {byRequests,byUse}: how many could start now in what real pods leave free, placeholders being no obstacle: as the scheduler
 *                     sees it, and of these where the CPU and memory are really there (absent where no node is measured). "atLeast": more may fit
 *          fragmentation  share of what is free that no such pod can use, 0..1
 *          asks       with explain: what it asks of nodes and other pods, canonical JSON
 *          nodes      [{node,count}]: where they are; balloons are among the cluster's pods
 *
 * target: nodes are those that count (ready, not cordoned, not in deletion), and all amounts
 * without DaemonSets; extra is E = rate * base, or what arrives while a node starts, once so many
 * spans of that length were watched as are needed. nodesToAdd would hold what is unplaced. moves
 * counts what this step did, by cause. notes are annotations that cannot be followed, and what does
 * not fit within a bound.
 *
 * Parameters: class=NAME, node=NAME: only that class; only classes with something there, and only
 * that node of theirs (totals stay those of all; 404 where there is no such class or node); explain=true: narration, the step's own
 * sentences, and "asks"; format=balloons|capacitybuffer: YAML for kubectl apply in place of all
 * that.
 *
 * The planner made it at "planned", every --plan-interval; over a snapshot the step is made at once.
 * Without nodes and pods of an API or snapshot: 503.
 */
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/api.h"
#include "aggregator/api/list.h"
#include "aggregator/api/plan_ask.h"
#include "aggregator/api/route.h"
#include "aggregator/api/view_json.h"
#include "aggregator/policy/slack/slack.h"
#include "shared/arith.h"
#include "shared/array.h"
#include "shared/jsonw.h"
#include "shared/mem.h"

struct slack_request {
	const char *class, *node; /* NULL: all; borrowed */
	bool explain;
};

/* --- parts of the answer ---------------------------------------------------------------------- */

static void write_target(struct jsonw *w, const struct plan_result *r)
{
	const struct slack_options *o = &r->slack_options;
	const struct slack_result *s = &r->slack;

	jsonw_key_object(w, "target");
	jsonw_key_int(w, "nodes", s->nodes);
	view_json_write_amounts(w, "allocatable", s->allocatable.cpu_milli,
				s->allocatable.mem_bytes);
	view_json_write_amounts(w, "requested", s->requested.cpu_milli, s->requested.mem_bytes);
	view_json_write_amounts(w, "extra", s->extra.cpu_milli, s->extra.mem_bytes);
	jsonw_key_string(w, "from", s->by_arrivals ? "arrivals" : "rate");
	jsonw_key_fixed(w, "rate", (double)o->rate_ppm / SLACK_PPM, 6);
	jsonw_key_string(w, "base",
			 o->base == SLACK_BASE_ALLOCATABLE ? "allocatable" : "requested");
	if (o->from_arrivals) {
		jsonw_key_int(w, "arrivalSpans", s->arrival_spans);
		jsonw_key_int(w, "arrivalSpansNeeded", slack_arrivals_needed(o->node_start_ns));
	}
	jsonw_key_int(w, "granularity", o->granularity);
	view_json_write_amounts(w, "unit", s->unit.cpu_milli, s->unit.mem_bytes);
	jsonw_object_close(w);
}

static void write_total(struct jsonw *w, const struct slack_result *s)
{
	int64_t wanted = 0, placed = 0, add = 0;

	for (size_t i = 0; i < s->class_count; i++) {
		wanted += s->classes[i].wanted;
		placed += s->classes[i].placed;
	}
	for (size_t i = 0; i < s->demand_count; i++)
		add += s->demand[i].count;
	jsonw_key_object(w, "total");
	jsonw_key_int(w, "wanted", wanted);
	jsonw_key_int(w, "placed", placed);
	jsonw_key_int(w, "unplaced", wanted - placed);
	jsonw_key_int(w, "nodesToAdd", add);
	jsonw_object_close(w);
}

static const char *verdict_of(const struct slack_class *c)
{
	if (c->unplaced)
		return c->fits_no_node ? "impossible" : "unplaced";
	return c->target < c->wanted ? "lowering" : "placed";
}

static void write_refusals(struct jsonw *w, const struct slack_class *c)
{
	if (!c->unplaced)
		return;
	if (c->fits_no_node)
		jsonw_key_string(w, "reason",
				 "no node there is could hold one, were it empty: more nodes of "
				 "these sizes do not help");
	else if (c->why.text[0])
		jsonw_key_string(w, "reason", c->why.text);
	place_counts_write(&c->refused, w);
}

/* By class, then by node: the result has them by node. */
static int compare_placed(const void *left, const void *right)
{
	const struct slack_placed *a = left, *b = right;

	return COMPARE(a->class, b->class) ?: COMPARE(a->node, b->node);
}

/* The placeholders of one class, or those on one node of it. */
static void write_nodes(struct jsonw *w, const struct slack_result *s, const struct slack_placed *p,
			size_t count)
{
	jsonw_key_array(w, "nodes");
	for (size_t i = 0, same; i < count; i += same) {
		for (same = 1; i + same < count && p[i + same].node == p[i].node; same++)
			;
		jsonw_object_open(w);
		jsonw_key_string(w, "node", s->view->nodes[p[i].node]->name);
		jsonw_key_int(w, "count", (int64_t)same);
		jsonw_object_close(w);
	}
	jsonw_array_close(w);
}

static void write_class(struct jsonw *w, const struct slack_result *s, const struct slack_class *c,
			const struct slack_placed *placed, size_t count, bool explain)
{
	static const char *const kinds[] = {
		[SLACK_WORKLOAD] = "workload", [SLACK_COVER] = "cover", [SLACK_UNIT] = "unit"};

	jsonw_object_open(w);
	jsonw_key_string(w, "name", c->key);
	jsonw_key_string(w, "origin", kinds[c->kind]);
	jsonw_key_string(w, "verdict", verdict_of(c));
	write_refusals(w, c);
	view_json_write_amounts(w, "shape", c->shape.cpu_milli, c->shape.mem_bytes);
	jsonw_key_int(w, "target", c->target);
	jsonw_key_int(w, "wanted", c->wanted);
	if (c->lower_ns)
		jsonw_key_time(w, "lowerAt", c->lower_ns);
	jsonw_key_int(w, "placed", c->placed);
	if (c->balloons)
		jsonw_key_int(w, "balloons", c->balloons);
	jsonw_key_int(w, "unplaced", c->unplaced);
	jsonw_key_object(w, "slots");
	jsonw_key_int(w, "byRequests", c->slots);
	jsonw_key_true(w, "atLeast", c->slots_more);
	if (c->slots_by_use >= 0)
		jsonw_key_int(w, "byUse", c->slots_by_use);
	jsonw_object_close(w);
	jsonw_key_fixed(w, "fragmentation", (double)c->fragmentation_ppm / SLACK_PPM, 6);
	if (explain && *c->signature)
		jsonw_key_string(w, "asks", c->signature);
	write_nodes(w, s, placed, count);
	jsonw_object_close(w);
}

static void write_classes(struct jsonw *w, const struct slack_result *s,
			  const struct slack_request *q)
{
	struct slack_placed *placed = mem_alloc((s->placed_count + 1) * sizeof(*placed));
	size_t count = 0, from = 0, end;

	for (size_t i = 0; i < s->placed_count; i++)
		if (!q->node || strcmp(s->view->nodes[s->placed[i].node]->name, q->node) == 0)
			placed[count++] = s->placed[i];
	qsort(placed, count, sizeof(*placed), compare_placed);
	jsonw_key_array(w, "items");
	for (size_t c = 0; c < s->class_count; c++, from = end) {
		for (end = from; end < count && placed[end].class == c;)
			end++;
		if ((!q->class || strcmp(q->class, s->classes[c].key) == 0) &&
		    (!q->node || end > from))
			write_class(w, s, &s->classes[c], placed + from, end - from, q->explain);
	}
	jsonw_array_close(w);
	free(placed);
}

static void write_demand(struct jsonw *w, const struct slack_result *s)
{
	jsonw_key_array(w, "nodesToAdd");
	for (size_t i = 0; i < s->demand_count; i++) {
		const struct slack_demand *d = &s->demand[i];

		jsonw_object_open(w);
		jsonw_key_string(w, "like", d->like);
		jsonw_key_text(w, "instanceType", d->instance_type);
		view_json_write_amounts(w, "gives", d->gives.cpu_milli, d->gives.mem_bytes);
		jsonw_key_int(w, "count", d->count);
		jsonw_object_close(w);
	}
	jsonw_array_close(w);
}

static void write_moves(struct jsonw *w, const struct slack_result *s)
{
	int64_t of[SLACK_CAUSES] = {0};

	for (size_t i = 0; i < s->move_count; i++)
		of[s->moves[i].cause]++;
	jsonw_key_object(w, "moves");
	for (int c = 0; c < SLACK_CAUSES; c++)
		if (of[c])
			jsonw_key_int(w, slack_cause_name((enum slack_cause)c), of[c]);
	jsonw_object_close(w);
}

/* --- the answer ------------------------------------------------------------------------------- */

static void write_answer(const struct plan_result *r, struct plan_peer *peer,
			 const struct slack_request *q, int64_t now_ns, struct api_response *rs)
{
	struct jsonw w;

	list_answer_open(rs, &w, "SlackList", now_ns);
	plan_ask_write_head(r, peer, now_ns, &w);
	jsonw_key_time(&w, "planned", r->time_ns);
	jsonw_key_int(&w, "version", (int64_t)r->version);
	jsonw_key_int(&w, "viewVersion", (int64_t)r->slack.view->version);
	jsonw_key_string(&w, "useCap", r->use_cap ? "on" : "off: no usage data");
	list_write_pod_use(&w, r->use_shared);
	write_target(&w, r);
	write_total(&w, &r->slack);
	write_classes(&w, &r->slack, q);
	write_demand(&w, &r->slack);
	write_moves(&w, &r->slack);
	jsonw_key_array(&w, "notes");
	for (size_t i = 0; i < r->slack.issue_count; i++) {
		jsonw_object_open(&w);
		jsonw_key_string(&w, "about", r->slack.issues[i].who);
		jsonw_key_string(&w, "text", r->slack.issues[i].text);
		jsonw_object_close(&w);
	}
	jsonw_array_close(&w);
	if (q->explain)
		list_write_lines(&w, "narration", r->slack.narration.data);
	list_answer_close(&w);
}

void api_slack(const struct api_context *ctx, const struct api_request *rq, struct api_response *rs)
{
	const struct slack_request q = {rq->query(rq, "class"), rq->query(rq, "node"),
					api_query_flag(rq, "explain")};
	int format = api_query_choice(rq, "format", api_formats);
	struct slack_yaml_options yaml;
	struct plan_result *r = plan_ask(ctx, rs);

	if (!r)
		return;
	if (q.class && !array_find_text(r->slack.classes, r->slack.class_count,
					sizeof(*r->slack.classes), q.class)) {
		api_fail(rs, FAIL_NOT_FOUND, "class", "there is no class \"%.253s\"", q.class);
	} else if (q.node && view_index(r->slack.view, q.node) == r->slack.view->node_count) {
		api_fail(rs, FAIL_NOT_FOUND, "node", "there is no node \"%.253s\"", q.node);
	} else if (format) {
		slack_yaml_options_default(&yaml);
		yaml.kind = format == 1 ? SLACK_YAML_BALLOONS : SLACK_YAML_BUFFERS;
		rs->content_type = "application/yaml";
		slack_yaml_write(&r->slack, &yaml, &rs->body);
	} else {
		write_answer(r, ctx->plan_peer, &q, ctx->now_ns(), rs);
	}
	plan_result_drop(r);
}
