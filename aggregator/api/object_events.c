/* SPDX-License-Identifier: Apache-2.0 */
/*
 *	log of decisions about drains (drain_log.h)	each change of a node's verdict
 *	newest view, every 10 s				states of quotas: over max, findings of lint
 *	ring of refused pods (waiting_pods.h)		each refusal
 *
 * Nothing is queued here: each source is bounded by itself, and what a sink does not take in time is
 * left out by the source. Decisions of before the start have no events.
 */
#include "aggregator/api/object_events.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/api/quota_session.h"
#include "aggregator/api/waiting_pods.h"
#include "aggregator/planner/drain_log.h"
#include "aggregator/policy/quota/lint.h"
#include "shared/clock.h"

#define PAUSE_NS   (300 * NS_PER_SEC)
#define LASTING_NS (1800 * NS_PER_SEC) /* an API server forgets events after an hour */
#define CHECK_NS   (10 * NS_PER_SEC)

enum { REASON_LEN = 64 };

static const char *const names[] = {"nodes", "quotas", "pods"};

int object_events_parse(const char *text, unsigned int *of, struct error *error)
{
	unsigned int bits = 0;

	for (const char *at = text; at; at = strchr(at, ',')) {
		size_t i = 0, len;

		at += at != text;
		len = strcspn(at, ",");
		while (i < 3 && (strlen(names[i]) != len || strncmp(names[i], at, len) != 0))
			i++;
		if (i == 3)
			return error_fail(error, -EINVAL,
					  "\"%.100s\" is no list of nodes, quotas and pods", text);
		bits |= 1U << i;
	}
	*of = bits;
	return 0;
}

/* Who takes the events, and whether it still does. */
struct offer {
	bool (*sink)(void *to, const struct object_event *event);
	void *to;
	bool going;
};

static void offer(struct offer *f, const struct object_event *event)
{
	f->going = f->going && f->sink(f->to, event);
}

/* "Node" and "unneeded" are "NodeUnneeded". */
static void reason_of(const char *prefix, const char *word, char reason[REASON_LEN])
{
	snprintf(reason, REASON_LEN, "%s%c%s", prefix, toupper((unsigned char)*word), word + 1);
}

/* --- nodes ------------------------------------------------------------------------------------ */

/* As kubelets do it, the uid is the name: by that every kubectl finds the Events of a node. */
static void offer_row(struct offer *f, const struct view *v, const struct drain_row *row)
{
	const struct view_node *n = row->verdict ? view_find(v, row->node) : NULL;
	char reason[REASON_LEN];

	if (!n || !n->model || !n->model->node)
		return;
	reason_of("Node", row->event, reason);
	offer(f, &(struct object_event){
			 .api_version = "v1",
			 .kind = "Node",
			 .namespace = "",
			 .name = row->node,
			 .uid = row->node,
			 .reason = reason,
			 .note = row->text,
			 .pause_ns = PAUSE_NS,
		 });
}

static void offer_nodes(struct object_events *o, struct offer *f)
{
	struct view *v = view_slot_take(o->ctx->views);
	struct drain_rows rows;

	drain_log_read(o->ctx->decisions, o->told, &rows);
	for (size_t i = 0; i < rows.count && f->going; i++) {
		offer_row(f, v, rows.of[i]);
		if (f->going)
			o->told = rows.first + i;
	}
	drain_rows_fini(&rows);
	view_drop(v);
}

/* --- quotas ----------------------------------------------------------------------------------- */

static void offer_quota(struct offer *f, const struct view *v, const char *namespace,
			const char *name, const char *code, const char *note)
{
	const struct object *object =
		cluster_find(v->cluster, OBJECT_ELASTIC_QUOTA, namespace, name);
	char reason[REASON_LEN];

	reason_of("Quota", code, reason);
	offer(f, &(struct object_event){
			 .api_version = v->cluster->sources[OBJECT_ELASTIC_QUOTA].api_version,
			 .kind = object_kind_name(OBJECT_ELASTIC_QUOTA),
			 .namespace = namespace,
			 .name = name,
			 .uid = object ? object->uid : "",
			 .reason = reason,
			 .note = note,
			 .warning = true,
			 .pause_ns = PAUSE_NS,
			 .lasting_ns = LASTING_NS,
		 });
}

static void add_sentence(struct buf *note, const char *text)
{
	buf_printf(note, "%s%s", note->len ? "; " : "", text);
}

/* Default quotas are no objects. */
static void offer_over_max(struct offer *f, const struct quota_session *s)
{
	struct quota_balances all;

	quota_balances_of(s->book, &all);
	for (size_t i = 0; i < quota_book_count(s->book); i++) {
		const struct quota *q = quota_book_at(s->book, i);
		struct quota_balance balance;
		struct buf note = BUF_INIT;
		const char *resource;
		struct error why;
		int64_t amount;

		quota_balance_of(s->book, i, &all, &balance);
		for (size_t at = 0; resources_next(&balance.told, &at, &resource, &amount);) {
			if (quota_state_of(q, &balance, resource) != QUOTA_STATE_OVER_MAX)
				continue;
			quota_state_tell(q, &balance, resource, &why);
			add_sentence(&note, why.text);
		}
		if (note.len && *q->name)
			offer_quota(f, s->view, q->namespace, q->name,
				    quota_state_name(QUOTA_STATE_OVER_MAX), note.data);
		quota_balance_fini(&balance);
		buf_fini(&note);
	}
	quota_balances_fini(&all);
}

static bool is_same(const struct quota_finding *a, const struct quota_finding *b)
{
	return a->code == b->code && strcmp(a->namespace, b->namespace) == 0 &&
	       strcmp(a->name, b->name) == 0;
}

/* Those of one quota and code are one event. */
static void offer_findings(struct offer *f, const struct quota_session *s)
{
	struct quota_findings found;
	size_t end;

	quota_lint(s->view, s->book, &s->options, &found);
	for (size_t i = 0; i < found.count; i = end) {
		const struct quota_finding *first = &found.of[i];
		struct buf note = BUF_INIT;

		for (end = i; end < found.count && is_same(first, &found.of[end]); end++)
			add_sentence(&note, found.of[end].text);
		if (quota_lint_kind(first->code)->severity != QUOTA_LINT_INFO &&
		    *first->namespace && *first->name)
			offer_quota(f, s->view, first->namespace, first->name,
				    quota_lint_kind(first->code)->code, note.data);
		buf_fini(&note);
	}
	quota_findings_fini(&found);
}

static void offer_quotas(const struct object_events *o, struct offer *f)
{
	struct api_response refusal = {0};
	struct quota_session session;

	if (quota_session_open(&session, o->ctx, NULL, &refusal)) {
		const struct model_source *sources = session.view->cluster->sources;

		if (sources[OBJECT_ELASTIC_QUOTA].state == SOURCE_SYNCED &&
		    sources[OBJECT_POD].state == SOURCE_SYNCED) {
			offer_over_max(f, &session);
			offer_findings(f, &session);
		}
		quota_session_close(&session);
	}
	buf_fini(&refusal.body);
}

/* --- pods ------------------------------------------------------------------------------------- */

/* How often a pod is told of is decided where it is refused. */
static void offer_pods(const struct object_events *o, struct offer *f)
{
	struct waiting_event event;

	while (f->going && waiting_pods_take_event(o->ctx->waiting, &event)) {
		offer(f, &(struct object_event){
				 .api_version = "v1",
				 .kind = "Pod",
				 .namespace = event.pod->object.namespace,
				 .name = event.pod->object.name,
				 .uid = event.pod->object.uid,
				 .reason = "RefusedByEvenkeel",
				 .note = event.message,
				 .warning = true,
			 });
		object_drop(&event.pod->object);
	}
}

void object_events_offer(struct object_events *o, int64_t now_ns,
			 bool (*sink)(void *to, const struct object_event *event), void *to)
{
	struct offer f = {sink, to, true};

	if (o->of & EVENTS_OF_PODS)
		offer_pods(o, &f);
	if (o->of & EVENTS_OF_NODES)
		offer_nodes(o, &f);
	if (o->of & EVENTS_OF_QUOTAS && f.going &&
	    (!o->checked_ns || now_ns - o->checked_ns >= CHECK_NS)) {
		offer_quotas(o, &f);
		o->checked_ns = now_ns;
	}
}
