/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /v1/snapshot: all that answers are made from, as one document that the command line answers
 * from as the aggregator would have at that moment.
 *
 * With 150,000 pods it has hundreds of megabytes, so it is a stream: the view is held to its end,
 * and each piece is what fits in PIECE. What else is held is one pointer for each pod, since pods
 * lie by their nodes and are told by name.
 */
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/api.h"
#include "aggregator/planner/plan.h"
#include "aggregator/api/snapshot_state.h"
#include "aggregator/state/stats_json.h"
#include "shared/array.h"
#include "shared/jsonw.h"
#include "shared/mem.h"

enum { PIECE = 64 << 10 };

struct snapshot_stream {
	struct api_stream stream;
	struct reservations_copy
		*reservations; /* held; taken before the view; NULL: there is none */
	struct plan_result *plan; /* held; NULL: there is none */
	const struct plan_memory *remembered; /* borrowed; NULL: nothing */
	struct view *view; /* held */
	int64_t now_ns;
	struct kube_pod **pods; /* owned array; all of the cluster's, in order */
	size_t pod_count;
	struct jsonw w; /* to the piece at hand */
	size_t part; /* the next one to write, of parts[] */
	int kind; /* of objects */
	size_t at, inner; /* within the kind; the node and its pod */
};

/* --- the pods of the cluster, in order -------------------------------------------------------- */

static int compare_pods(const void *a, const void *b)
{
	return object_compare(&(*(struct kube_pod *const *)a)->object,
			      &(*(struct kube_pod *const *)b)->object);
}

static void gather_pods(struct snapshot_stream *s)
{
	const struct cluster *c = s->view->cluster;
	const struct object_table *homeless = c->tables[OBJECT_POD];

	s->pods = mem_alloc((homeless->count + c->pod_count + 1) * sizeof(struct kube_pod *));
	for (size_t i = 0; i < homeless->count; i++)
		s->pods[s->pod_count++] = (struct kube_pod *)homeless->of[i];
	for (size_t i = 0; i < c->node_count; i++) {
		const struct model_node *n = c->nodes[i];

		memcpy(s->pods + s->pod_count, n->pods, n->pod_count * sizeof(struct kube_pod *));
		s->pod_count += n->pod_count;
	}
	array_sort(s->pods, s->pod_count, sizeof(struct kube_pod *), compare_pods);
}

/* The i-th object of the kind, or NULL. */
static const struct object *object_at(const struct snapshot_stream *s, int kind, size_t i)
{
	const struct object_table *t;

	if (!s->view->cluster)
		return NULL;
	if (kind == OBJECT_POD)
		return i < s->pod_count ? &s->pods[i]->object : NULL;
	t = s->view->cluster->tables[kind];
	return i < t->count ? t->of[i] : NULL;
}

/* --- pieces ----------------------------------------------------------------------------------- */

static void write_unreadable(struct jsonw *w, const struct unreadables *u)
{
	if (!u->count)
		return;
	jsonw_key_array(w, "unreadable");
	for (uint32_t i = 0; i < u->count; i++) {
		jsonw_object_open(w);
		jsonw_key_string(w, "namespace", u->of[i].namespace);
		jsonw_key_string(w, "name", u->of[i].name);
		jsonw_key_text(w, "node", u->of[i].node);
		jsonw_key_string(w, "reason", u->of[i].why);
		jsonw_object_close(w);
	}
	jsonw_array_close(w);
	jsonw_key_true(w, "moreUnreadable", u->more);
}

static void write_source(struct jsonw *w, enum object_kind kind, const struct model_source *source)
{
	jsonw_object_open(w);
	jsonw_key_string(w, "kind", object_kind_name(kind));
	jsonw_key_string(w, "resource", object_kind_resource(kind));
	jsonw_key_text(w, "apiVersion", source->api_version);
	jsonw_key_string(w, "state", source_state_name(source->state));
	jsonw_key_time_exact(w, "changed", source->changed_ns);
	jsonw_key_text(w, "message", source->message);
	if (source->skipped) {
		jsonw_key_uint(w, "skipped", source->skipped);
	}
	jsonw_key_text(w, "skippedLast", source->skipped_last);
	write_unreadable(w, &source->unreadable);
	jsonw_object_close(w);
}

void snapshot_write_sources(struct jsonw *w, const struct cluster *c)
{
	jsonw_array_open(w);
	for (int k = 0; k < OBJECT_KINDS; k++)
		write_source(w, (enum object_kind)k, &c->sources[k]);
	jsonw_array_close(w);
}

static void next_part(struct snapshot_stream *s)
{
	s->part++;
	s->at = s->inner = 0;
}

static void write_head(struct snapshot_stream *s)
{
	const struct cluster *c = s->view->cluster;
	struct jsonw *w = &s->w;

	jsonw_object_open(w);
	jsonw_key_string(w, "apiVersion", "evenkeel.io/v1");
	jsonw_key_string(w, "kind", "Snapshot");
	jsonw_key_time_exact(w, "time", s->now_ns);
	if (s->plan)
		jsonw_key_hex(w, "aggregatorRun", s->plan->run);
	if (c) {
		jsonw_key(w, "sources");
		snapshot_write_sources(w, c);
	}
	jsonw_key_object(w, "list");
	jsonw_key_string(w, "apiVersion", "v1");
	jsonw_key_string(w, "kind", "List");
	jsonw_key_array(w, "items");
	next_part(s);
}

static void write_object(struct snapshot_stream *s)
{
	const struct object *o = object_at(s, s->kind, s->at);

	if (o) {
		object_write(o, jsonw_json(&s->w));
		s->at++;
	} else if (++s->kind == OBJECT_KINDS) {
		next_part(s);
	} else {
		s->at = 0;
	}
}

static void write_usage_head(struct snapshot_stream *s)
{
	struct jsonw *w = &s->w;

	jsonw_array_close(w);
	jsonw_object_close(w);
	jsonw_key_object(w, "usage");
	jsonw_key_string(w, "apiVersion", STATS_JSON_VERSION);
	jsonw_key_string(w, "kind", "Usage");
	jsonw_key_time_exact(w, "time", s->now_ns);
	jsonw_key_array(w, "nodes");
	next_part(s);
}

static void write_node(struct snapshot_stream *s)
{
	const struct view_node *n;

	if (s->at == s->view->node_count) {
		jsonw_array_close(&s->w);
		jsonw_key_array(&s->w, "pods");
		next_part(s);
		return;
	}
	n = s->view->nodes[s->at++];
	/* A node that only the API knows has empty stats, which it gets again by itself. */
	if (n->stats->end_ns || !n->model)
		stats_json_write_node(n->stats, &s->w);
}

static void write_pod(struct snapshot_stream *s)
{
	const struct node_stats *stats;

	if (s->at == s->view->node_count) {
		jsonw_array_close(&s->w);
		jsonw_object_close(&s->w);
		next_part(s);
		return;
	}
	stats = s->view->nodes[s->at]->stats;
	if (s->inner == stats->pod_count) {
		s->at++;
		s->inner = 0;
		return;
	}
	stats_json_write_pod(stats, &stats->pods[s->inner++], &s->w);
}

void snapshot_write_state(struct jsonw *w, const struct snapshot_state *s)
{
	const struct reservations_copy *ledger = s->reservations;
	const struct owner_table *owners = s->view->owners;
	const struct cluster *c = s->view->cluster;

	jsonw_object_open(w);
	if (ledger && ledger->count) {
		jsonw_key_array(w, "ledger");
		for (size_t i = 0; i < ledger->count; i++)
			if (reservations_counts(ledger->of[i], c ? c->generation : 0))
				snapshot_write_reservation(w, ledger->of[i]);
		jsonw_array_close(w);
	}
	if (s->memory && owners && owners->workloads && owners->workloads->count) {
		jsonw_key(w, "workloads");
		workload_table_write_list(owners->workloads, w);
	}
	if (s->memory && s->view->demand) {
		jsonw_key(w, "demand");
		demand_write(s->view->demand, -1, w);
	}
	for (int p = 0; p < PLAN_PARTS; p++) {
		const struct shared_body *memory = s->plan ? s->plan[p] : NULL;
		const char *remembered = !s->plan && s->remembered ? s->remembered->of[p] : NULL;

		if (!memory && !remembered)
			continue;
		jsonw_key(w, plan_part_name((enum plan_part)p));
		buf_add(jsonw_json(w), memory ? memory->data : remembered,
			memory ? memory->len : strlen(remembered));
	}
	jsonw_object_close(w);
}

/* Some megabytes at most, and the end. */
static void write_state(struct snapshot_stream *s)
{
	const struct snapshot_state state = {s->view, s->reservations,
					     s->plan ? s->plan->memory : NULL, s->remembered, true};

	jsonw_key(&s->w, "state");
	snapshot_write_state(&s->w, &state);
	jsonw_object_close(&s->w);
	buf_add_char(s->w.out, '\n');
	next_part(s);
}

/* Each is called until it goes on to the next part, one call for one item. */
static void (*const parts[])(struct snapshot_stream *s) = {
	write_head, write_object, write_usage_head, write_node, write_pod, write_state,
};

enum { PARTS = sizeof(parts) / sizeof(parts[0]) };

static bool next_piece(struct api_stream *stream, struct buf *out)
{
	struct snapshot_stream *s = (struct snapshot_stream *)stream;
	size_t before = out->len;

	if (s->part == PARTS)
		return false;
	s->w.out = out;
	while (s->part != PARTS && out->len - before < PIECE)
		parts[s->part](s);
	return true;
}

static void free_stream(struct api_stream *stream)
{
	struct snapshot_stream *s = (struct snapshot_stream *)stream;

	view_drop(s->view);
	reservations_copy_drop(s->reservations);
	plan_result_drop(s->plan);
	free(s->pods);
	free(s);
}

void api_snapshot(const struct api_context *ctx, const struct api_request *rq,
		  struct api_response *rs)
{
	struct snapshot_stream *s = mem_zalloc(1, sizeof(*s));

	(void)rq;
	s->stream = (struct api_stream){next_piece, free_stream};
	s->now_ns = ctx->now_ns();
	s->reservations = reservations_take(ctx->reservations, s->now_ns);
	s->plan = ctx->plans ? plan_slot_take(ctx->plans) : NULL;
	s->remembered = ctx->memory;
	s->view = view_slot_take(ctx->views);
	if (s->view->cluster)
		gather_pods(s);
	rs->content_type = "application/json";
	rs->stream = &s->stream;
}
