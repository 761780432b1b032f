/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /v1/status: how the service itself fares, for evenkeel doctor and whoever asks why an answer
 * looks odd; and GET /healthz, /readyz.
 *
 *   version, clock{flagged, nodes[]}, frames{.., mergedIntervals, missingIntervals}, quarantine{values, nodes[]}
 *   kubernetes{mode: standalone|inCluster|kubeconfig|snapshot,
 *              resources[{resource, apiVersion, state, objects, ageSeconds, stateSeconds, relists, watchErrors, skipped,
 *                         skippedLast, message}]}
 *   agents{nodes, fresh, late, expired, none, unknownToApi, tiers{T0..T3}, examples{late[], expired[], none[],
 *          unknownToApi[], T3[]}}
 *   database{state: none|ok|failing, saves, failures, lastSaveAgeSeconds, bytes, setAside, lostIntervals}
 *   refusedPods{waiting, nudge: off|unused|ok|forbidden|notFound|failing, nudges, failures}
 *   peer{state: none|alone|together, answersAcknowledged, answersLate, answersAlone, refused, elder,
 *        plan: same|other|unknown, planSeconds, planIntervalSeconds}
 *   view{version, ageSeconds, nodes, pods}
 *
 * ageSeconds is that of the newest event or bookmark, absent where there was none; stateSeconds is
 * how long the state lasts. Counters begin when the service does. Nodes are named up to
 * EXAMPLES_MOST of a sort, in the order of their names, so the answer is small however large the
 * cluster is.
 */
#include <math.h>
#include <stdlib.h>

#include "aggregator/api/api.h"
#include "aggregator/api/list.h"
#include "aggregator/model/model.h"
#include "aggregator/planner/plan_peer.h"
#include "aggregator/state/node_clock.h"
#include "shared/clock.h"
#include "shared/jsonw.h"
#include "shared/mem.h"

enum {
	EXAMPLES_MOST = 20,
	/* A start is ready while at most one in so many nodes is awaited: some are always gone. */
	AWAITED_ONE_IN = 100,
};

#define AGENTS_WAIT_NS (60 * NS_PER_SEC) /* for agents, since the start .. */
#define PEER_WAIT_NS   (5 * NS_PER_SEC) /* .. and without the other aggregator */

static void write_age(struct jsonw *w, const char *key, int64_t since_ns, int64_t now_ns)
{
	if (since_ns > 0)
		jsonw_key_fixed(w, key, fmax(0, (double)(now_ns - since_ns) / NS_PER_SEC), 3);
}

/* --- the Kubernetes API ----------------------------------------------------------------------- */

static void write_resource(struct jsonw *w, const struct cluster *c, enum object_kind kind,
			   int64_t now_ns)
{
	const struct model_source *s = &c->sources[kind];

	jsonw_object_open(w);
	jsonw_key_string(w, "resource", object_kind_resource(kind));
	jsonw_key_text(w, "apiVersion", s->api_version);
	jsonw_key_string(w, "state", source_state_name(s->state));
	/* The table of pods has only those without a node. */
	jsonw_key_uint(w, "objects", kind == OBJECT_POD ? c->pod_count : c->tables[kind]->count);
	write_age(w, "ageSeconds", s->event_ns, now_ns);
	write_age(w, "stateSeconds", s->changed_ns, now_ns);
	jsonw_key_uint(w, "relists", s->relists);
	jsonw_key_uint(w, "watchErrors", s->watch_errors);
	jsonw_key_uint(w, "skipped", s->skipped);
	jsonw_key_text(w, "skippedLast", s->skipped_last);
	jsonw_key_text(w, "message", s->message);
	jsonw_object_close(w);
}

/* --- agents, and what is odd about them ------------------------------------------------------- */

/* Sorts of nodes; a node is of several. */
enum sort {
	SORT_FRESH,
	SORT_LATE,
	SORT_EXPIRED,
	SORT_NO_AGENT, /* and there ought to be one: a node that only pods still name is gone */
	SORT_UNKNOWN, /* to the API, which lists nodes */
	SORT_FILES, /* sampled by tier T3 */
	SORT_CLOCK, /* off by too much */
	SORT_QUARANTINE,
	SORTS
};

static unsigned int sorts_of(const struct view *v, const struct view_node *n, int64_t now_ns)
{
	const struct node_stats *p = n->stats;
	enum freshness state = node_stats_freshness(p, now_ns);
	bool heard = state != NEVER, known = n->model && n->model->node;
	const bool of[SORTS] = {
		[SORT_FRESH] = state == FRESH,
		[SORT_LATE] = state == LATE,
		[SORT_EXPIRED] = state == EXPIRED,
		[SORT_NO_AGENT] = !heard && (known || !n->model),
		[SORT_UNKNOWN] = heard && !known && view_knows(v, OBJECT_NODE),
		[SORT_FILES] = heard && p->tier == TIER_T3 && !p->foreign,
		[SORT_CLOCK] = p->clock_known && llabs(p->clock_ahead_ns) > NODE_CLOCK_FLAGGED_NS,
		[SORT_QUARANTINE] = p->quarantine.count > 0,
	};
	unsigned int bits = 0;

	for (int s = 0; s < SORTS; s++)
		bits |= (unsigned int)of[s] << s;
	return bits;
}

struct tally {
	const struct view *view;
	unsigned int *sorts; /* owned; bits of enum sort, by node */
	size_t of[SORTS], tiers[TIERS];
	uint64_t quarantined; /* values */
};

static void count_nodes(struct tally *t, const struct view *v, int64_t now_ns)
{
	*t = (struct tally){.view = v};
	t->sorts = mem_alloc((v->node_count + 1) * sizeof(*t->sorts));
	for (size_t i = 0; i < v->node_count; i++) {
		const struct node_stats *p = v->nodes[i]->stats;

		t->sorts[i] = sorts_of(v, v->nodes[i], now_ns);
		for (int s = 0; s < SORTS; s++)
			t->of[s] += t->sorts[i] >> s & 1;
		if (node_stats_freshness(p, now_ns) != NEVER && !p->foreign)
			t->tiers[p->tier]++;
		t->quarantined += p->quarantine.count;
	}
}

static void write_node(struct jsonw *w, const struct view_node *n, enum sort sort)
{
	if (sort != SORT_CLOCK && sort != SORT_QUARANTINE) {
		jsonw_string(w, n->name);
		return;
	}
	jsonw_object_open(w);
	jsonw_key_string(w, "name", n->name);
	if (sort == SORT_CLOCK) {
		jsonw_key_fixed(w, "skewSeconds", (double)n->stats->clock_ahead_ns / NS_PER_SEC, 3);
	} else {
		jsonw_key_uint(w, "values", n->stats->quarantine.count);
		jsonw_key_string(w, "lastMessage", n->stats->quarantine.message);
	}
	jsonw_object_close(w);
}

/* key:[..]: the first nodes of the sort. */
static void write_nodes(struct jsonw *w, const char *key, const struct tally *t, enum sort sort)
{
	size_t left = EXAMPLES_MOST;

	jsonw_key_array(w, key);
	for (size_t i = 0; i < t->view->node_count && left; i++)
		if (t->sorts[i] >> sort & 1) {
			write_node(w, t->view->nodes[i], sort);
			left--;
		}
	jsonw_array_close(w);
}

static void write_agents(struct jsonw *w, const struct tally *t)
{
	static const char *const keys[] = {
		[SORT_FRESH] = "fresh",		 [SORT_LATE] = "late",
		[SORT_EXPIRED] = "expired",	 [SORT_NO_AGENT] = "none",
		[SORT_UNKNOWN] = "unknownToApi", [SORT_FILES] = "T3",
	};

	jsonw_key_object(w, "agents");
	jsonw_key_uint(w, "nodes",
		       t->of[SORT_FRESH] + t->of[SORT_LATE] + t->of[SORT_EXPIRED] +
			       t->of[SORT_NO_AGENT]);
	for (int s = SORT_FRESH; s <= SORT_UNKNOWN; s++)
		jsonw_key_uint(w, keys[s], t->of[s]);
	jsonw_key_object(w, "tiers");
	for (int tier = 0; tier < TIERS; tier++)
		jsonw_key_uint(w, sampler_tiers[tier], t->tiers[tier]);
	jsonw_object_close(w);
	jsonw_key_object(w, "examples");
	for (int s = SORT_LATE; s <= SORT_FILES; s++)
		write_nodes(w, keys[s], t, (enum sort)s);
	jsonw_object_close(w);
	jsonw_object_close(w);
}

static void write_odd_nodes(struct jsonw *w, const struct tally *t)
{
	jsonw_key_object(w, "clock");
	jsonw_key_uint(w, "flagged", t->of[SORT_CLOCK]);
	write_nodes(w, "nodes", t, SORT_CLOCK);
	jsonw_object_close(w);
	jsonw_key_object(w, "quarantine");
	jsonw_key_uint(w, "values", t->quarantined);
	write_nodes(w, "nodes", t, SORT_QUARANTINE);
	jsonw_object_close(w);
}

/* --- the service ------------------------------------------------------------------------------ */

/* Frames of agents, by result. */
static void write_frames(struct jsonw *w, const struct counters *c)
{
	static const struct {
		const char *key;
		enum frame_result result;
	} shown[] = {
		{"applied", FRAME_RESULT_applied},     {"refused", FRAME_RESULT_refused},
		{"malformed", FRAME_RESULT_malformed}, {"version", FRAME_RESULT_version},
		{"oversized", FRAME_RESULT_oversized}, {"unknownKey", FRAME_RESULT_unknown_key},
		{"forged", FRAME_RESULT_forged},       {"rival", FRAME_RESULT_rival},
		{"foreign", FRAME_RESULT_foreign},     {"sharedKey", FRAME_RESULT_shared_key},
		{"enrolled", FRAME_RESULT_enrolled},   {"notEnrolled", FRAME_RESULT_not_enrolled},
	};

	jsonw_key_object(w, "frames");
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		jsonw_key_uint(w, shown[i].key, counter_get(&c->frames[shown[i].result]));
	jsonw_key_uint(w, "mergedIntervals", counter_get(&c->intervals_merged));
	jsonw_key_uint(w, "missingIntervals", counter_get(&c->intervals_missing));
	jsonw_object_close(w);
}

/* The ways of access to this API. */
static void write_access(struct jsonw *w, const struct access_counters *c, int64_t now_ns)
{
	static const struct {
		const char *key;
		enum access_way way;
	} ways[] = {
		{"tokenFile", ACCESS_BY_TOKEN},
		{"tokenReview", ACCESS_BY_REVIEW},
		{"clientCertificates", ACCESS_BY_CERTIFICATE},
		{"tls", ACCESS_OVER_TLS},
		{"fromOtherMachines", ACCESS_FROM_AFAR},
	};
	uint64_t have = counter_get(&c->ways), refused = 0;

	for (int r = 0; r < ACCESS_REFUSALS; r++)
		refused += counter_get(&c->refused[r]);
	jsonw_key_object(w, "access");
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		jsonw_key_bool(w, ways[i].key, have & ways[i].way);
	}
	if (have & ACCESS_OVER_TLS) {
		jsonw_key(w, "certificateEndsInSeconds");
		jsonw_int(w, (int64_t)counter_get(&c->certificate_ends_s) - now_ns / NS_PER_SEC);
	}
	jsonw_key_uint(w, "reloadFailures", counter_get(&c->reload_failures));
	jsonw_key_uint(w, "refused", refused);
	jsonw_object_close(w);
}

static void write_database(struct jsonw *w, const struct store_counters *c, int64_t now_ns)
{
	bool enabled = counter_get(&c->enabled);

	jsonw_key_object(w, "database");
	jsonw_key_string(w, "state", !enabled ? "none" : counter_get(&c->alarm) ? "failing" : "ok");
	if (enabled) {
		jsonw_key_uint(w, "saves", counter_get(&c->saves));
		jsonw_key_uint(w, "failures", counter_get(&c->failures));
		write_age(w, "lastSaveAgeSeconds", (int64_t)counter_get(&c->saved_ns), now_ns);
		jsonw_key_uint(w, "bytes", counter_get(&c->bytes));
		jsonw_key_uint(w, "setAside", counter_get(&c->aside));
		jsonw_key_uint(w, "lostIntervals", counter_get(&c->lost_intervals));
	}
	jsonw_object_close(w);
}

/* Whether schedulers can be made to ask again, by what the API last said of --nudge-claim. */
static const char *nudge_state(const struct requeue_counters *c)
{
	if (!counter_get(&c->enabled))
		return "off";
	switch (counter_get(&c->status)) {
	case 0:
		return counter_get(&c->failed) ? "failing" : "unused";
	case 200:
		return "ok";
	case 403:
		return "forbidden";
	case 404:
		return "notFound";
	default:
		return "failing";
	}
}

/* Plans of both; the interval is that of this one's newest. */
static void write_plans(struct jsonw *w, const struct api_context *ctx)
{
	struct plan_peer_state s = plan_peer_look(ctx->plan_peer, NULL, clock_mono_ns());
	struct plan_result *newest = plan_slot_take(ctx->plans);

	jsonw_key_bool(w, "elder", s.elder);
	jsonw_key_string(w, "plan", plan_accord_name(s.accord));
	jsonw_key_int(w, "planSeconds", s.for_ns / NS_PER_SEC);
	if (newest)
		jsonw_key_fixed(w, "planIntervalSeconds", (double)newest->every_ns / NS_PER_SEC, 1);
	plan_result_drop(newest);
}

/* The other aggregator. */
static void write_peer(struct jsonw *w, const struct api_context *ctx)
{
	const struct exchange_counters *c = &ctx->counters->exchange;
	bool enabled = counter_get(&c->enabled);

	jsonw_key_object(w, "peer");
	jsonw_key_string(w, "state",
			 !enabled		     ? "none"
			 : counter_get(&c->together) ? "together"
						     : "alone");
	if (enabled) {
		jsonw_key_uint(w, "answersAcknowledged",
			       counter_get(&c->answers[EXCHANGE_ACKNOWLEDGED]));
		jsonw_key_uint(w, "answersLate", counter_get(&c->answers[EXCHANGE_LATE]));
		jsonw_key_uint(w, "answersAlone", counter_get(&c->answers[EXCHANGE_ALONE]));
		jsonw_key_uint(w, "refused", counter_get(&c->refused));
	}
	if (ctx->plan_peer)
		write_plans(w, ctx);
	jsonw_object_close(w);
}

static void write_view(struct jsonw *w, const struct view *v, int64_t now_ns)
{
	uint64_t pods = v->cluster ? v->cluster->tables[OBJECT_POD]->count : 0;

	for (size_t i = 0; i < v->node_count; i++)
		pods += v->nodes[i]->pod_count;
	jsonw_key_object(w, "view");
	jsonw_key_uint(w, "version", v->version);
	write_age(w, "ageSeconds", v->time_ns, now_ns);
	jsonw_key_uint(w, "nodes", v->node_count);
	jsonw_key_uint(w, "pods", pods);
	jsonw_object_close(w);
}

void api_status(const struct api_context *ctx, const struct api_request *rq,
		struct api_response *rs)
{
	int64_t now_ns = ctx->now_ns();
	struct view *v = view_slot_take(ctx->views);
	struct tally tally;
	struct jsonw w;

	(void)rq;
	list_answer_open(rs, &w, "Status", now_ns);
	jsonw_key_string(&w, "version", EVENKEEL_VERSION);
	jsonw_key_object(&w, "kubernetes");
	jsonw_key_string(&w, "mode", ctx->kubernetes_mode ? ctx->kubernetes_mode : "standalone");
	jsonw_key_array(&w, "resources");
	for (int kind = 0; v->cluster && kind < OBJECT_KINDS; kind++)
		write_resource(&w, v->cluster, (enum object_kind)kind, now_ns);
	jsonw_array_close(&w);
	jsonw_object_close(&w);
	count_nodes(&tally, v, now_ns);
	write_agents(&w, &tally);
	write_odd_nodes(&w, &tally);
	free(tally.sorts);
	write_frames(&w, ctx->counters);
	write_access(&w, &ctx->counters->access, now_ns);
	write_database(&w, &ctx->counters->store, now_ns);
	jsonw_key_object(&w, "refusedPods");
	jsonw_key_uint(&w, "waiting", counter_get(&ctx->counters->requeue.waiting));
	jsonw_key_string(&w, "nudge", nudge_state(&ctx->counters->requeue));
	jsonw_key_uint(&w, "nudges", counter_get(&ctx->counters->requeue.sent));
	jsonw_key_uint(&w, "failures", counter_get(&ctx->counters->requeue.failed));
	jsonw_object_close(&w);
	write_peer(&w, ctx);
	write_view(&w, v, now_ns);
	list_answer_close(&w);
	view_drop(v);
}

/*
 * --- health
 *
 * Liveness and readiness for whoever starts the service. The threads that answer are the ones being
 * asked about, so an answer is the proof. Without an API to follow there are no caches to wait for:
 * ready means serving. With one, every kind was complete once before a first answer counts, but for
 * kinds that the API does not have or does not show; nodes and pods are always needed. With another
 * aggregator that serves meanwhile, a start also waits for the agents. A model that
 * became stale later and a database that fails are told of but take nobody out of service: another
 * replica would not be better off.
 */

static void answer_ok(struct api_response *rs)
{
	rs->content_type = "text/plain; charset=utf-8";
	buf_add_str(&rs->body, "ok\n");
}

void api_healthz(const struct api_context *ctx, const struct api_request *rq,
		 struct api_response *rs)
{
	(void)ctx;
	(void)rq;
	answer_ok(rs);
}

/* Whether nothing more is to be waited for. */
static bool is_settled(enum object_kind kind, enum source_state state)
{
	switch (state) {
	case SOURCE_SYNCED:
	case SOURCE_STALE:
	case SOURCE_SNAPSHOT:
		return true;
	case SOURCE_FORBIDDEN:
	case SOURCE_ABSENT:
		return kind != OBJECT_NODE && kind != OBJECT_POD;
	default:
		return false;
	}
}

/* Of what is not in a file nothing will come. */
static bool is_ready(const struct cluster *c)
{
	bool from_file = false, settled = true;

	for (int kind = 0; c && kind < OBJECT_KINDS; kind++) {
		from_file |= c->sources[kind].state == SOURCE_SNAPSHOT;
		settled &= is_settled((enum object_kind)kind, c->sources[kind].state);
	}
	return from_file || settled;
}

/* A line for each kind that is not as it should be. */
static void tell_sources(const struct cluster *c, struct buf *out)
{
	for (int kind = 0; c && kind < OBJECT_KINDS; kind++) {
		const struct model_source *s = &c->sources[kind];

		if (s->state == SOURCE_SYNCED || s->state == SOURCE_ABSENT ||
		    s->state == SOURCE_SNAPSHOT)
			continue;
		buf_printf(out, "%s: %s%s%s\n", object_kind_resource((enum object_kind)kind),
			   source_state_name(s->state), s->message[0] ? ": " : "", s->message);
	}
}

/*
 * The node was measured, but the newest intervals of its agent are missing: of a restored node those
 * since its row was saved (its start is unknown), of another one those since its agent came back. An
 * agent that was silent for 5 minutes before the start is not awaited.
 */
static bool is_catching_up(const struct node_stats *p, int64_t now_ns)
{
	enum freshness state = node_stats_freshness(p, now_ns);

	if (state == NEVER || p->foreign)
		return false;
	return p->start_ns ? state != FRESH : state != EXPIRED;
}

/*
 * Nodes whose agents are awaited: for a bounded time, and only while the other aggregator is connected,
 * or in the first 5 s. The elder of both waits for none: two that start together would leave nobody to
 * answer.
 */
static size_t count_awaited(const struct api_context *ctx, const struct view *v)
{
	const struct exchange_counters *peer = &ctx->counters->exchange;
	int64_t now_ns = ctx->now_ns(), age_ns = now_ns - ctx->started_ns;
	size_t count = 0;

	/* A clock that was set back makes the age negative. */
	if (!counter_get(&peer->enabled) || age_ns < 0 || age_ns > AGENTS_WAIT_NS ||
	    (age_ns > PEER_WAIT_NS && !counter_get(&peer->together)))
		return 0;
	if (ctx->plan_peer && plan_peer_look(ctx->plan_peer, NULL, clock_mono_ns()).elder)
		return 0;
	for (size_t i = 0; i < v->node_count; i++)
		count += is_catching_up(v->nodes[i]->stats, now_ns);
	return count * AWAITED_ONE_IN > v->node_count ? count : 0;
}

/* Why requests should go elsewhere; false: they should not. */
static bool tell_unready(const struct api_context *ctx, const struct view *v, struct buf *out)
{
	size_t awaited = count_awaited(ctx, v);

	if (counter_get(&ctx->counters->leaving))
		buf_add_str(out, "ending\n");
	else if (!is_ready(v->cluster))
		buf_add_str(out, "waiting for the Kubernetes API\n");
	else if (awaited)
		buf_printf(out, "waiting for the agents of %zu nodes\n", awaited);
	return out->len > 0;
}

void api_readyz(const struct api_context *ctx, const struct api_request *rq,
		struct api_response *rs)
{
	struct view *view = view_slot_take(ctx->views);

	if (!tell_unready(ctx, view, &rs->body)) {
		answer_ok(rs);
	} else {
		rs->status = 503;
		rs->content_type = "text/plain; charset=utf-8";
		if (rq->foreign) {
			buf_clear(&rs->body);
			buf_add_str(&rs->body, "not ready\n");
		}
	}
	if (!rq->foreign)
		tell_sources(view->cluster, &rs->body);
	view_drop(view);
	if (!rq->foreign && counter_get(&ctx->counters->store.alarm))
		buf_add_str(&rs->body, "store: nothing is being saved, see the log\n");
}
