/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A proof is a plan of the aggregator that
 *
 *   - the planner made after a snapshot had the taints of all nodes that wait for a proof
 *   - has those nodes; the other nodes of the wave are left out
 *   - the checker (aggregator/verify) agrees with, on a snapshot taken after it
 *   - moves pods to nodes that were measured in the last 10 s, where the plan has a cap of real use
 *
 * Times are those of the aggregator's clock. Of two aggregators with one address, either may answer:
 * plan and snapshots count together only if they have the same aggregatorRun.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/actuator/edge.h"
#include "shared/document.h"
#include "shared/clock.h"
#include "shared/log.h"
#include "shared/mem.h"
#include "shared/timefmt.h"

#define OFFER_EVERY_NS (10 * NS_PER_SEC)
#define PLAN_MS	       20000L
#define SNAPSHOT_MS    120000L
#define USE_MS	       5000L

enum { READS_MAX = 4 }; /* of a document, until it is of the run that is wanted */

static const double USE_AGE_S = 10, PEER_GONE_S = 30;

/* --- the plan --------------------------------------------------------------------------------- */

static bool read_wave(struct edge *e, cJSON *plan, struct verify_plan *out)
{
	char *text = cJSON_PrintUnformatted(plan);
	int rc = verify_plan_read(text, strlen(text), out, &e->refusal);

	cJSON_free(text);
	if (rc)
		error_prefix(&e->refusal, "the plan is unreadable");
	return rc == 0;
}

bool edge_is_agreed(const cJSON *doc, struct error *why)
{
	const cJSON *peer = document_at(doc, "peer");

	if (!peer || document_is(peer, "plan", "same"))
		return true;
	if (document_is(peer, "plan", "other"))
		error_set(why, "the other aggregator has planned another wave");
	else if (!(document_number(peer, "seconds") >= PEER_GONE_S))
		error_set(why, "the other aggregator tells no plan: it counts as gone after %.0f s",
			  PEER_GONE_S);
	return !*why->text;
}

static const char *run_of(const cJSON *doc)
{
	return document_text_or(doc, "aggregatorRun", "");
}

/* run: of an aggregator, if possible; NULL: of any. */
static cJSON *read_of_run(struct edge *e, const char *path, long timeout_ms, const char *run)
{
	cJSON *doc = edge_get(e, path, timeout_ms, &e->refusal);

	for (int i = 1; i < READS_MAX && doc && run && strcmp(run_of(doc), run) != 0; i++) {
		edge_drop(e);
		doc = edge_get(e, path, timeout_ms, &e->refusal);
	}
	return doc;
}

const char *edge_why_not(struct edge *e, const char *node)
{
	const cJSON *item = document_find(e->plan_doc, "items", "name", node);

	if (*e->refusal.text)
		return e->refusal.text;
	if (!e->plan_doc)
		return "there is no plan yet";
	if (!item)
		return "the planner does not know it";
	return edge_keep(e, mem_printf("%s: %s", document_text_or(item, "verdict", "?"),
				       document_text_or(document_first(item, "reasons"), "text",
							"it is not in the wave")));
}

/* --- the proof -------------------------------------------------------------------------------- */

static bool has_taints(const cJSON *snapshot, const struct verify_plan *p)
{
	for (size_t i = 0; i < p->node_count; i++) {
		const cJSON *o = document_first(snapshot, "list.items");

		while (o && !(document_is(o, "kind", "Node") &&
			      document_is(o, "metadata.name", p->nodes[i].name)))
			o = o->next;
		if (!document_find(o, "spec.taints", "key", MARK_TAINT))
			return false;
	}
	return true;
}

static bool use_is_fresh(struct edge *e, const cJSON *snapshot)
{
	const struct verify_plan *p = &e->proof;
	double now_s = document_time(snapshot, "time");

	for (size_t i = 0; p->capped && i < p->move_count; i++) {
		const cJSON *use = document_find(snapshot, "usage.nodes", "name", p->moves[i].to);

		if (!p->moves[i].to || document_time(use, "end") >= now_s - USE_AGE_S)
			continue;
		error_set(&e->refusal, "destination %s was not measured in the last 10 s",
			  p->moves[i].to);
		return false;
	}
	return true;
}

static bool judge(struct edge *e, const cJSON *snapshot)
{
	struct verify_report report;
	const struct verify_violation *v;

	if (verify_judge(&e->proof, snapshot, &report, &e->refusal))
		return false;
	v = report.of;
	if (report.count)
		error_set(&e->refusal, "the checker refuses the plan: %s: %s%s%s%s%.300s",
			  verify_invariant_name(v->invariant), v->move ? v->move->namespace : "",
			  v->move ? "/" : "", v->move ? v->move->name : "", v->move ? ": " : "",
			  v->text.text);
	verify_report_fini(&report);
	return !*e->refusal.text;
}

static void keep_promise(struct edge *e)
{
	cJSON_Delete(e->promise);
	e->promise = cJSON_CreateObject();
	cJSON_AddItemToObject(e->promise, "cap",
			      cJSON_Duplicate(document_at(e->plan_doc, "cap"), true));
	cJSON_AddItemToObject(e->promise, "destinations",
			      cJSON_Duplicate(document_at(e->plan_doc, "wave.destinations"), true));
}

static void prove(struct edge *e, const struct act_state *s, cJSON *plan)
{
	const cJSON *snapshot;
	cJSON *nodes = cJSON_GetObjectItemCaseSensitive(plan, "nodes"), *next;

	/* Only the nodes that wait for a proof. */
	for (cJSON *n = nodes ? nodes->child : NULL; n; n = next) {
		next = n->next;
		if (!act_is_unproven(s, document_text_or(n, "name", "")))
			cJSON_Delete(cJSON_DetachItemViaPointer(nodes, n));
	}
	if (!read_wave(e, plan, &e->proof))
		return;
	if (!e->proof.node_count && s->drain_count)
		error_set(&e->refusal, "%s", edge_why_not(e, s->drains[0].node));
	if (!e->proof.node_count)
		return;
	snapshot = read_of_run(e, EDGE_GROUP "/snapshots", SNAPSHOT_MS, run_of(e->plan_doc));
	if (!snapshot)
		return;
	if (strcmp(run_of(snapshot), run_of(e->plan_doc)) != 0) {
		error_set(&e->refusal, "plan and snapshot are of different aggregators");
	} else if (!has_taints(snapshot, &e->proof)) {
		error_set(&e->refusal, "the aggregator has not seen the taints yet");
	} else if (!e->taint_seen_s || !(document_time(e->plan_doc, "planned") > e->taint_seen_s)) {
		if (!e->taint_seen_s) {
			e->taint_seen_s = document_time(snapshot, "time");
			snprintf(e->taint_run, sizeof(e->taint_run), "%s", run_of(snapshot));
		}
		error_set(&e->refusal, "no plan is newer than the taints");
	} else if (use_is_fresh(e, snapshot) && judge(e, snapshot)) {
		e->plan.proof = &e->proof;
		e->plan.any_order = document_is_true(e->plan_doc, "wave.anyOrder");
		keep_promise(e);
	}
}

/* Equal but for numbers, such as ages. */
static bool is_repeated(const char *why, const char *last)
{
	static const char digits[] = "0123456789";

	for (;; why++, last++) {
		why += strspn(why, digits);
		last += strspn(last, digits);
		if (*why != *last || !*why)
			return *why == *last;
	}
}

static void log_refusal(struct edge *e, bool proves)
{
	const char *why = e->refusal.text;

	if (*why && !is_repeated(why, e->logged.text))
		log_info("%s: %s", proves ? "no proof yet" : "no plan yet", why);
	else if (!*why && *e->logged.text && !proves)
		log_info("there is a plan now");
	e->logged = e->refusal;
}

static void read_newest(struct edge *e, const struct act_state *s, bool proves)
{
	cJSON *plan;

	e->plan_doc = read_of_run(e, EDGE_GROUP "/drains", PLAN_MS,
				  e->taint_seen_s ? e->taint_run : NULL);
	if (document_text(e->plan_doc, "stale")) {
		error_set(&e->refusal, "the plan is stale: %s",
			  document_text(e->plan_doc, "stale"));
		e->taint_seen_s = 0; /* the other aggregator may have a better one */
	}
	if (!e->plan_doc || *e->refusal.text)
		return;
	if (strcmp(run_of(e->plan_doc), e->taint_run) != 0)
		e->taint_seen_s = 0; /* by another clock */
	snprintf(e->eviction_api, sizeof(e->eviction_api), "%s",
		 document_text_or(e->plan_doc, "wave.evictions", "policy/v1"));
	plan = document_drain_plan(e->plan_doc);
	if (proves)
		prove(e, s, plan);
	else if (edge_is_agreed(e->plan_doc, &e->refusal) && read_wave(e, plan, &e->offer)) {
		e->plan.offer = &e->offer;
		snprintf(e->plan.id, sizeof(e->plan.id), "%s",
			 document_text_or(e->plan_doc, "id", "unknown"));
	}
	cJSON_Delete(plan);
}

void edge_read_plan(struct edge *e, const struct act_state *s, int64_t now_ns)
{
	bool proves = act_wants_proof(s),
	     offers = act_wants_offer(s) &&
		      (!e->offered_ns || now_ns - e->offered_ns >= OFFER_EVERY_NS);

	e->plan.refusal = e->refusal.text;
	if (act_wants_offer(s)) { /* the promise of the last wave has no use */
		cJSON_Delete(e->promise);
		e->promise = NULL;
	}
	if (!proves)
		e->taint_seen_s = 0;
	if (!proves && !offers)
		return;
	e->offered_ns = now_ns;
	read_newest(e, s, proves);
	log_refusal(e, proves);
}

/* --- real use --------------------------------------------------------------------------------- */

/* node: of the API; NULL: it has none, or does not answer. */
static void read_use(const struct edge *e, const cJSON *promised, const cJSON *node,
		     struct act_use *u)
{
	bool fresh = document_is(node, "source.state", "fresh");
	double mem = document_number(node, "usage.workingSetBytes.latest.value");
	struct error ignored;

	if (isnan(mem)) /* not measured: the planner takes all memory then, too */
		mem = document_number(node, "usage.memoryBytes.latest.value");
	*u = (struct act_use){
		.node = document_text_or(promised, "node", ""),
		.cpu_milli =
			fresh ? document_number(node, "usage.cpuMillicores.latest.value") : NAN,
		.cpu_cap_milli = document_number(promised, "cpuMillicores.limit"),
		.mem_bytes = fresh ? mem : NAN,
		.mem_cap_bytes = document_number(promised, "memoryBytes.limit"),
		/* fmax(): of NaN and a number the number */
		.contention = fmax(document_number(node, "contention.cpu"),
				   document_number(node, "contention.memory")),
		.contention_cap = document_number(e->promise, "cap.contention"),
	};
	if (fresh)
		timefmt_parse(document_text_or(node, "usage.cpuMillicores.latest.end", ""),
			      &u->end_ns, &ignored);
}

void edge_read_uses(struct edge *e, const struct act_state *s)
{
	const cJSON *list = document_at(e->promise, "destinations");
	struct error why;
	bool away = false;

	if (!s->drain_count || !document_at(e->promise, "cap"))
		return;
	e->uses = mem_zalloc((size_t)cJSON_GetArraySize(list) + 1, sizeof(*e->uses));
	for (const cJSON *d = document_first(list, ""); d; d = d->next) {
		char *path = mem_printf(EDGE_GROUP "/nodes/%s", document_text_or(d, "node", ""));
		const cJSON *node = away ? NULL : edge_get(e, path, USE_MS, &why);

		/* Without an answer for one, the others are not waited for. */
		away |= !node && !e->status;
		read_use(e, d, node, &e->uses[e->use_count++]);
		free(path);
	}
}
