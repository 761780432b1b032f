/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/actuator/mailbox.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/document.h"
#include "shared/clock.h"
#include "shared/jsonw.h"
#include "shared/log.h"
#include "shared/mem.h"

#define WAIT_NS (60 * NS_PER_SEC) /* for a plan that has the node */

static const char *const kinds[REQUEST_KINDS] = {"drain", "undo", "pause", "resume"};
static const char *const states[] = {"taken", "refused", "done"};

void mailbox_init(struct mailbox *m, const char *lease_namespace, const char *lease_name,
		  const char *acts)
{
	*m = (struct mailbox){.acts = acts};
	m->lease_path = mem_printf("/apis/coordination.k8s.io/v1/namespaces/%s/leases/%s",
				   lease_namespace, lease_name);
}

static void drop(struct mailbox *m, size_t at)
{
	struct request *r = &m->requests[at];

	while (r->node_count)
		free(r->nodes[--r->node_count]);
	free(r->nodes);
	free(r->id);
	buf_fini(&r->reasons);
	memmove(r, r + 1, (--m->count - at) * sizeof(*r));
}

void mailbox_fini(struct mailbox *m)
{
	while (m->count)
		drop(m, m->count - 1);
	free(m->requests);
	free(m->lease_path);
}

/* --- requests --------------------------------------------------------------------------------- */

bool mailbox_wants(const struct mailbox *m, enum request_kind kind, const char *node)
{
	for (size_t i = 0; i < m->count; i++) {
		const struct request *r = &m->requests[i];

		for (size_t k = 0; r->kind == kind && r->state == REQUEST_TAKEN && !r->dry_run &&
				   k < r->node_count;
		     k++)
			if (strcmp(r->nodes[k], node) == 0)
				return true;
	}
	return false;
}

const char **mailbox_nodes(const struct mailbox *m, size_t *count)
{
	const char **names = NULL;

	*count = 0;
	for (size_t i = 0; i < m->count; i++)
		for (size_t k = 0; k < m->requests[i].node_count; k++) {
			names = mem_realloc(names, (*count + 1) * sizeof(*names));
			names[(*count)++] = m->requests[i].nodes[k];
		}
	return names;
}

static void set_pause(struct request *r, struct edge *e, const char *path)
{
	struct buf body = BUF_INIT;
	const char *answer;

	buf_printf(&body, "{\"metadata\":{\"annotations\":{\"" LEASE_PAUSED "\":%s}}}",
		   r->kind == REQUEST_PAUSE ? "\"true\"" : "null");
	r->state = edge_send(e, KUBE_MERGE, path, &body, &answer) == 200 ? REQUEST_DONE
									 : REQUEST_REFUSED;
	buf_add_str(&r->reasons, answer);
	buf_fini(&body);
}

static void take(struct mailbox *m, struct edge *e, const cJSON *json, int64_t now_ns)
{
	struct request r = {.since_ns = now_ns, .since_wall_ns = clock_wall_ns()};
	const char *id = document_text(json, "id");
	const char *state = document_text_or(json, "state", "");

	for (size_t i = 0; id && i < m->count; i++)
		if (strcmp(m->requests[i].id, id) == 0)
			return;
	while (r.kind < REQUEST_KINDS && !document_is(json, "action", kinds[r.kind]))
		r.kind++;
	if (!id || r.kind == REQUEST_KINDS ||
	    (strcmp(state, "waiting") != 0 && strcmp(state, "taken") != 0))
		return;
	r.id = mem_strdup(id);
	r.dry_run = document_is_true(json, "dryRun");
	for (const cJSON *n = document_first(json, "nodes"); n; n = n->next) {
		if (!cJSON_IsString(n))
			continue;
		r.nodes = mem_realloc(r.nodes, (r.node_count + 1) * sizeof(*r.nodes));
		r.nodes[r.node_count++] = mem_strdup(n->valuestring);
	}
	m->requests = mem_realloc(m->requests, (m->count + 1) * sizeof(r));
	m->requests[m->count++] = r;
	log_info("request %s of %s: %s", id, document_text_or(json, "user", "?"), kinds[r.kind]);
	if (r.kind == REQUEST_PAUSE || r.kind == REQUEST_RESUME)
		set_pause(&m->requests[m->count - 1], e, m->lease_path);
}

/* --- what became of them ---------------------------------------------------------------------- */

enum outcome { OUTCOME_OPEN, OUTCOME_DONE, OUTCOME_REFUSED };

static const struct act_node *find_node(const struct edge *e, const char *name)
{
	for (size_t i = 0; i < e->cluster.node_count; i++)
		if (strcmp(e->nodes[i].name, name) == 0)
			return &e->nodes[i];
	return NULL;
}

static bool is_offered(const struct edge *e, const char *name)
{
	for (size_t i = 0; i < e->offer.node_count; i++)
		if (strcmp(e->offer.nodes[i].name, name) == 0)
			return true;
	return false;
}

static enum outcome judge_drain(struct request *r, struct edge *e, const struct act_state *s,
				const struct act_node *n, int64_t now_ns)
{
	const char *why = n->foreign;

	if (n->mark.phase == MARK_DRAINED)
		return OUTCOME_DONE;
	if (r->dry_run && is_offered(e, n->name))
		return OUTCOME_DONE;
	if (mark_is_active(n->mark.phase))
		return OUTCOME_OPEN;
	if (n->mark.phase == MARK_ROLLED_BACK && n->mark.since_ns >= r->since_wall_ns)
		why = *s->wave.reason.text ? s->wave.reason.text : "it was rolled back";
	else if (!why && e->plan_doc && now_ns - r->since_ns > WAIT_NS)
		why = edge_why_not(e, n->name);
	if (!why)
		return OUTCOME_OPEN;
	buf_printf(&r->reasons, "%s: %s\n", n->name, why);
	return OUTCOME_REFUSED;
}

/* The node is not read: of a request of this step, or deleted. */
static enum outcome judge_gone(struct request *r, const struct act_state *s, const char *node,
			       int64_t now_ns)
{
	bool done = r->kind == REQUEST_UNDO;

	if (now_ns - r->since_ns <= WAIT_NS)
		return OUTCOME_OPEN;
	for (size_t i = 0; i < s->wave.ended_count; i++)
		done |= s->wave.ended[i].drained && strcmp(s->wave.ended[i].node, node) == 0;
	if (done)
		return OUTCOME_DONE;
	buf_printf(&r->reasons, "%s: it is gone\n", node);
	return OUTCOME_REFUSED;
}

static void follow_nodes(struct request *r, struct edge *e, const struct act_state *s,
			 int64_t now_ns)
{
	size_t done = 0, refused = 0;

	buf_clear(&r->reasons);
	for (size_t i = 0; i < r->node_count; i++) {
		const struct act_node *n = find_node(e, r->nodes[i]);
		enum outcome outcome = OUTCOME_OPEN;

		if (!n)
			outcome = judge_gone(r, s, r->nodes[i], now_ns);
		else if (r->kind == REQUEST_UNDO)
			outcome = !act_is_ours(n) && n->mark.phase != MARK_DRAINED ? OUTCOME_DONE
										   : OUTCOME_OPEN;
		else
			outcome = judge_drain(r, e, s, n, now_ns);
		done += outcome == OUTCOME_DONE;
		refused += outcome == OUTCOME_REFUSED;
	}
	if (done + refused == r->node_count)
		r->state = refused ? REQUEST_REFUSED : REQUEST_DONE;
}

void mailbox_follow(struct mailbox *m, struct edge *e, const struct act_state *s, int64_t now_ns)
{
	for (size_t i = 0; i < m->count; i++) {
		struct request *r = &m->requests[i];

		if (r->state == REQUEST_TAKEN)
			follow_nodes(r, e, s, now_ns);
	}
}

/* --- reports ---------------------------------------------------------------------------------- */

static void write_lines(struct jsonw *w, const char *key, const struct buf *lines)
{
	const char *at = lines->data ? lines->data : "";

	jsonw_key_array(w, key);
	for (size_t len; *at; at += len + (at[len] == '\n')) {
		len = strcspn(at, "\n");
		jsonw_text(w, at, len);
	}
	jsonw_array_close(w);
}

static void write_requests(struct jsonw *w, const struct mailbox *m)
{
	jsonw_key_array(w, "requests");
	for (size_t i = 0; i < m->count; i++) {
		jsonw_object_open(w);
		jsonw_key_string(w, "id", m->requests[i].id);
		jsonw_key_string(w, "state", states[m->requests[i].state]);
		write_lines(w, "reasons", &m->requests[i].reasons);
		jsonw_object_close(w);
	}
	jsonw_array_close(w);
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
			 const struct act_state *s, const char *holder, bool paused)
{
	jsonw_object_open(w);
	jsonw_key_string(w, "holder", holder);
	jsonw_key_int(w, "transitions", e->transitions);
	jsonw_key_string(w, "version", EVENKEEL_VERSION);
	jsonw_key_bool(w, "paused", paused);
	jsonw_key_bool(w, "dryRun", e->dry_run);
	jsonw_key_array(w, "acts");
	for (const char *at = m->acts; *at; at += strspn(at, ", ")) {
		size_t len = strcspn(at, ", ");

		jsonw_text(w, at, len);
		at += len;
	}
	jsonw_array_close(w);
	write_requests(w, m);
	jsonw_key_array(w, "nodes");
	for (size_t i = 0; i < s->drain_count; i++)
		if (mark_is_active(s->drains[i].mark.phase))
			write_drain(w, &s->drains[i]);
	jsonw_array_close(w);
	jsonw_key_array(w, "destinations");
	for (size_t i = 0; i < e->use_count; i++)
		write_destination(w, e, &e->uses[i]);
	jsonw_array_close(w);
	jsonw_object_close(w);
}

void mailbox_exchange(struct mailbox *m, struct edge *e, const struct act_state *s,
		      const char *holder, bool paused, int64_t now_ns)
{
	struct buf body = BUF_INIT;
	const char *answer;
	struct jsonw w;
	cJSON *box;

	jsonw_init(&w, &body);
	write_report(&w, m, e, s, holder, paused);
	edge_send(e, KUBE_REPLACE, EDGE_GROUP "/acts/current/report", &body, &answer);
	buf_fini(&body);
	if (e->status != 200) {
		if (!m->told)
			log_warn("the aggregator takes no reports (HTTP %ld): %s", e->status,
				 answer);
		m->told = true;
		return;
	}
	m->told = false;
	for (size_t i = m->count; i-- > 0;)
		if (m->requests[i].state != REQUEST_TAKEN)
			drop(m, i);
	box = cJSON_ParseWithLength(e->call.answer.data, e->call.answer.len);
	for (const cJSON *r = document_first(box, "requests"); r; r = r->next)
		take(m, e, r, now_ns);
	cJSON_Delete(box);
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

	jsonw_init(&w, &body);
	jsonw_object_open(&w);
	jsonw_key_string(&w, "kind", "WaveReport");
	jsonw_key_string(&w, "plan", wave->plan);
	jsonw_key_time(&w, "begin", wave->begin_ns);
	jsonw_key_time(&w, "end", wave->end_ns);
	jsonw_key_string(&w, "outcome",
			 wave->stopped			      ? "stopped"
			 : wave->drained == wave->ended_count ? "drained"
							      : "rolledBack");
	jsonw_key_text(&w, "reason", wave->reason.text);
	write_ended(&w, wave);
	jsonw_key_array(&w, "violations");
	if (wave->stopped)
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
