/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/actuator/mailbox.h"

#include <stdlib.h>
#include <string.h>

#include "shared/array.h"
#include "shared/clock.h"
#include "shared/document.h"
#include "shared/jsonw.h"
#include "shared/log.h"
#include "shared/mem.h"

#define WAIT_NS (60 * NS_PER_SEC) /* for a plan that has the node */

enum {
	/* outcomes that are told; the oldest ones go; an aggregator may list a request after its end */
	ENDED_MOST = 64,
	REASONS_MOST = 16, /* that are told of a request: an aggregator keeps no more */
};

void mailbox_init(struct mailbox *m, const char *lease_namespace, const char *lease_name,
		  char *const *acts, const char *holder)
{
	*m = (struct mailbox){.acts = acts, .holder = holder};
	m->lease_path = mem_printf("/apis/coordination.k8s.io/v1/namespaces/%s/leases/%s",
				   lease_namespace, lease_name);
}

static void drop(struct mailbox *m, size_t at)
{
	struct request *r = &m->requests[at];

	cJSON_Delete(r->json);
	cJSON_Delete(r->reasons);
	memmove(r, r + 1, (--m->count - at) * sizeof(*r));
}

void mailbox_forget(struct mailbox *m)
{
	while (m->count)
		drop(m, m->count - 1);
}

void mailbox_fini(struct mailbox *m)
{
	mailbox_forget(m);
	free(m->requests);
	free(m->lease_path);
}

/* --- requests --------------------------------------------------------------------------------- */

static bool is_open(const struct request *r)
{
	return strcmp(r->state, "taken") == 0;
}

struct edge_named *mailbox_nodes(const struct mailbox *m, size_t *count)
{
	struct edge_named *named = NULL;

	*count = 0;
	for (size_t i = 0; i < m->count; i++) {
		const cJSON *json = m->requests[i].json;
		bool acts = !document_is_true(json, "dryRun");

		if (!is_open(&m->requests[i]))
			continue;
		for (const cJSON *n = document_first(json, "nodes"); n; n = n->next) {
			ARRAY_ADD(named, *count) = (struct edge_named){
				.node = cJSON_IsString(n) ? n->valuestring : "",
				.drain = acts && document_is(json, "action", "drain"),
				.undo = acts && document_is(json, "action", "undo"),
			};
		}
	}
	return named;
}

static void set_pause(struct request *r, struct edge *e, const char *path)
{
	const char *value = document_is(r->json, "action", "pause") ? "\"true\"" : "null";
	struct buf body = BUF_INIT;
	const char *answer;

	buf_printf(&body, "{\"metadata\":{\"annotations\":{\"" LEASE_PAUSED "\":%s}}}", value);
	r->state = "done";
	if (edge_send(e, KUBE_MERGE, path, &body, &answer) != 200) {
		r->state = "refused";
		cJSON_AddItemToArray(r->reasons, cJSON_CreateString(answer));
	}
	buf_fini(&body);
}

static void take(struct mailbox *m, struct edge *e, const cJSON *json, int64_t now_ns)
{
	static const char *const actions[] = {"drain", "undo", "pause", "resume", NULL};
	static const char *const open_states[] = {"waiting", "taken", NULL};
	const char *id = document_text(json, "id");
	const char *action = document_text_or(json, "action", "");
	struct request *r;

	for (size_t i = 0; id && i < m->count; i++)
		if (document_is(m->requests[i].json, "id", id))
			return;
	if (!id || !array_has_text(actions, action) ||
	    !array_has_text(open_states, document_text_or(json, "state", "")))
		return;
	r = &ARRAY_ADD(m->requests, m->count);
	*r = (struct request){.json = cJSON_Duplicate(json, true),
			      .state = "taken",
			      .since_ns = now_ns,
			      .since_wall_ns = clock_wall_ns(),
			      .reasons = cJSON_CreateArray()};
	log_info("request %s of %s: %s", id, document_text_or(json, "user", "?"), action);
	if (strcmp(action, "pause") == 0 || strcmp(action, "resume") == 0)
		set_pause(r, e, m->lease_path);
}

/* --- what became of them ---------------------------------------------------------------------- */

/* "": the request is carried out; NULL: not yet; else the reason of a refusal. */
static const char *judge_drain(const struct request *r, struct edge *e, const struct act_state *s,
			       const struct act_node *n, int64_t now_ns)
{
	const char *left;

	/* Not a former drain of a node that takes pods again. */
	if (n->mark.phase == MARK_DRAINED && (n->cordoned || n->mark.since_ns >= r->since_wall_ns))
		return "";
	for (size_t i = 0; document_is_true(r->json, "dryRun") && i < e->offer.node_count; i++)
		if (strcmp(e->offer.nodes[i].name, n->name) == 0)
			return "";
	if (mark_is_active(n->mark.phase))
		return NULL;
	if (n->mark.phase == MARK_ROLLED_BACK && n->mark.since_ns >= r->since_wall_ns)
		return *s->wave.reason.text ? s->wave.reason.text : "it was rolled back";
	if (n->foreign || !e->plan_doc || now_ns - r->since_ns <= WAIT_NS)
		return n->foreign;
	left = act_why_left(s, n->name);
	return left ? left : edge_why_not(e, n->name);
}

static const char *judge(const struct request *r, struct edge *e, const struct act_state *s,
			 const char *node, int64_t now_ns)
{
	const struct act_node *n = edge_find_node(e, node);

	if (!n) {
		/*
		 * The same of a node that is not read: it is of a request of this step, or deleted.
		 */
		if (now_ns - r->since_ns <= WAIT_NS)
			return NULL;
		for (size_t i = 0; i < s->wave.ended_count; i++)
			if (s->wave.ended[i].drained && strcmp(s->wave.ended[i].node, node) == 0)
				return "";
		return document_is(r->json, "action", "undo") ? "" : "it is gone";
	}
	if (document_is(r->json, "action", "undo"))
		return !act_is_ours(n) && n->mark.phase != MARK_DRAINED ? "" : NULL;
	return judge_drain(r, e, s, n, now_ns);
}

/* Ends the request when each of its nodes is drained, undone or refused. */
static void follow(struct request *r, struct edge *e, const struct act_state *s, int64_t now_ns)
{
	bool open = false;

	cJSON_Delete(r->reasons);
	r->reasons = cJSON_CreateArray();
	for (const cJSON *n = document_first(r->json, "nodes"); n; n = n->next) {
		const char *name = cJSON_IsString(n) ? n->valuestring : "";
		const char *why = judge(r, e, s, name, now_ns);

		open |= !why;
		if (why && *why)
			cJSON_AddItemToArray(
				r->reasons,
				cJSON_CreateString(edge_keep(e, mem_printf("%s: %s", name, why))));
	}
	if (!open)
		r->state = r->reasons->child ? "refused" : "done";
}

/* --- reports ---------------------------------------------------------------------------------- */

static void write_request(struct jsonw *w, const struct request *r)
{
	jsonw_object_open(w);
	jsonw_key_string(w, "id", document_text(r->json, "id"));
	jsonw_key_string(w, "state", r->state);
	jsonw_key_array(w, "reasons");
	for (int i = 0; i < REASONS_MOST && i < cJSON_GetArraySize(r->reasons); i++)
		jsonw_string(w, cJSON_GetArrayItem(r->reasons, i)->valuestring);
	jsonw_array_close(w);
	jsonw_object_close(w);
}

static void write_drain(struct jsonw *w, const struct act_drain *d)
{
	size_t moved = 0;

	for (size_t i = 0; i < d->move_count; i++)
		moved += d->moves[i].replaced;
	jsonw_object_open(w);
	jsonw_key_string(w, "name", d->node);
	jsonw_key_string(w, "plan", d->mark.plan);
	jsonw_key_string(w, "phase", mark_phase_name(d->mark.phase));
	jsonw_key_int(w, "moved", (int64_t)moved);
	jsonw_key_int(w, "of", (int64_t)d->move_count);
	jsonw_key_time(w, "since", d->mark.since_ns);
	jsonw_object_close(w);
}

static void write_destination(struct jsonw *w, const struct edge *e, const struct act_use *u)
{
	const cJSON *p = document_find(e->promise, "destinations", "node", u->node);

	jsonw_object_open(w);
	jsonw_key_string(w, "node", u->node);
	jsonw_key_fixed(w, "cpuPromised", document_number(p, "cpuMillicores.after") / 1000, 3);
	jsonw_key_fixed(w, "cpuMeasured", u->cpu_milli / 1000, 3);
	jsonw_key_fixed(w, "memoryPromised", document_number(p, "memoryBytes.after"), 0);
	jsonw_key_fixed(w, "memoryMeasured", u->mem_bytes, 0);
	jsonw_key_fixed(w, "cpuCap", u->cpu_cap_milli / 1000, 3);
	jsonw_key_fixed(w, "contention", u->contention, 4);
	jsonw_object_close(w);
}

static void write_report(struct jsonw *w, const struct mailbox *m, const struct edge *e,
			 const struct act_state *s, const struct reclaim_state *reclaim,
			 bool paused)
{
	jsonw_object_open(w);
	jsonw_key_string(w, "holder", m->holder);
	jsonw_key_int(w, "transitions", e->transitions);
	jsonw_key_string(w, "version", EVENKEEL_VERSION);
	jsonw_key_bool(w, "paused", paused);
	jsonw_key_bool(w, "dryRun", e->dry_run);
	jsonw_key_array(w, "acts");
	for (char *const *act = m->acts; *act; act++)
		jsonw_string(w, *act);
	jsonw_array_close(w);
	jsonw_key_array(w, "requests");
	for (size_t i = 0; i < m->count; i++)
		write_request(w, &m->requests[i]);
	jsonw_array_close(w);
	jsonw_key_array(w, "nodes");
	for (size_t i = 0; i < s->drain_count; i++)
		if (mark_is_active(s->drains[i].mark.phase))
			write_drain(w, &s->drains[i]);
	jsonw_array_close(w);
	jsonw_key_array(w, "destinations");
	for (size_t i = 0; i < e->use_count; i++)
		write_destination(w, e, &e->uses[i]);
	jsonw_array_close(w);
	reclaim_write(reclaim, w);
	jsonw_object_close(w);
}

void mailbox_exchange(struct mailbox *m, struct edge *e, const struct act_state *s,
		      const struct reclaim_state *reclaim, bool paused, int64_t now_ns)
{
	struct buf body = BUF_INIT;
	const char *answer;
	struct jsonw w;
	bool told = m->told;

	for (size_t i = 0; i < m->count; i++)
		if (is_open(&m->requests[i]))
			follow(&m->requests[i], e, s, now_ns);
	jsonw_init(&w, &body);
	write_report(&w, m, e, s, reclaim, paused);
	edge_send(e, KUBE_REPLACE, EDGE_GROUP "/acts/current/report", &body, &answer);
	buf_fini(&body);
	m->told = e->status != 200;
	if (m->told && !told)
		log_warn("the aggregator takes no reports (HTTP %ld): %s", e->status, answer);
	for (size_t i = m->count, ended = 0; i-- > 0 && !m->told;)
		if (!is_open(&m->requests[i]) && ++ended > ENDED_MOST)
			drop(m, i);
	for (const cJSON *r = m->told ? NULL : document_first(e->said, "requests"); r; r = r->next)
		take(m, e, r, now_ns);
}

static void write_ended(struct jsonw *w, const struct act_wave *wave)
{
	size_t moves = 0;

	jsonw_key_array(w, "nodes");
	for (size_t i = 0; i < wave->ended_count; i++) {
		const struct act_ended *e = &wave->ended[i];

		moves += e->moves;
		jsonw_object_open(w);
		jsonw_key_string(w, "name", e->node);
		jsonw_key_string(w, "outcome", e->drained ? "drained" : "rolledBack");
		jsonw_key_uint(w, "evictions", e->evictions);
		jsonw_key_int(w, "seconds", e->seconds);
		jsonw_object_close(w);
	}
	jsonw_array_close(w);
	jsonw_key_object(w, "promised");
	jsonw_key_uint(w, "nodes", wave->ended_count);
	jsonw_key_uint(w, "pods", moves);
	jsonw_object_close(w);
	jsonw_key_object(w, "achieved");
	jsonw_key_uint(w, "nodes", wave->drained);
	jsonw_key_uint(w, "pods", wave->evictions);
	jsonw_object_close(w);
}

void mailbox_report_wave(struct edge *e, const struct act_wave *wave)
{
	struct buf body = BUF_INIT;
	const char *answer;
	struct jsonw w;

	jsonw_begin(&w, &body);
	jsonw_key_string(&w, "kind", "WaveReport");
	jsonw_key_string(&w, "plan", wave->plan);
	jsonw_key_time(&w, "begin", wave->begin_ns);
	jsonw_key_time(&w, "end", wave->end_ns);
	jsonw_key_string(&w, "outcome",
			 wave->destination_hot		      ? "stopped"
			 : wave->drained == wave->ended_count ? "drained"
							      : "rolledBack");
	jsonw_key_text(&w, "reason", wave->reason.text);
	write_ended(&w, wave);
	jsonw_key_array(&w, "violations");
	if (wave->destination_hot)
		jsonw_string(&w, wave->reason.text);
	jsonw_array_close(&w);
	jsonw_key_uint(&w, "evictions", wave->evictions);
	jsonw_key_uint(&w, "refused", wave->refused);
	jsonw_object_close(&w);
	edge_send(e, KUBE_POST, EDGE_GROUP "/drains/current/history", &body, &answer);
	if (e->status / 100 != 2)
		log_warn("the report of a wave is not kept (HTTP %ld): %s", e->status, answer);
	buf_fini(&body);
}
