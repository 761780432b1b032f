/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop thread (libuv) owns the usage state. The ingest edge makes intervals of frames, hands
 * each to on_interval() and sends the ack. Applied intervals become visible with the next view:
 *
 *   ingest fd readable --> on_interval --> usage_apply --> dirty --(in a second)--> view --> slot
 *                                                                                             |
 *   HTTP threads  <------------------------------- take, read, drop --------------------------+
 *
 *   engine_publisher.c   makes views in slices between frames, and bounds their age
 *   engine_history.c     reads buckets of windows for HTTP threads, which wait for it
 *   engine_saver.c       with a state directory: saves node windows, and restores them before the
 *                        first frame is read
 *   engine_recorder.c    with --record: writes all of this down, for replays
 *   engine_informer.c    with a Kubernetes API: keeps the cluster model, and tells the reservations
 *                        of HTTP threads what became of their pods
 *   engine_planner.c     makes plans (slack, drains) of the newest view on a thread of its own
 *
 * A signal stops the loop; closing runs in the mirrored order of opening.
 */
#include "aggregator/engine.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "aggregator/planner/place_cache.h"
#include "aggregator/planner/plan.h"
#include "aggregator/api/act_box.h"
#include "aggregator/api/object_events.h"
#include "aggregator/api/quota_session.h"
#include "aggregator/api/waiting_pods.h"
#include "aggregator/api/prefetcher.h"
#include "aggregator/edge/http/http.h"
#include "aggregator/edge/ingest.h"
#include "aggregator/edge/kube/own_secrets.h"
#include "aggregator/engine_enrolment.h"
#include "aggregator/engine_history.h"
#include "aggregator/engine_informer.h"
#include "aggregator/engine_planner.h"
#include "aggregator/engine_publisher.h"
#include "aggregator/engine_recorder.h"
#include "aggregator/engine_saver.h"
#include "aggregator/state/counters.h"
#include "aggregator/state/join.h"
#include "aggregator/state/reservations.h"
#include "aggregator/state/usage.h"
#include "aggregator/state/victim_log.h"
#include "aggregator/state/view.h"
#include "shared/clock.h"
#include "shared/keyring.h"
#include "shared/log.h"
#include "shared/mem.h"
#include "shared/program.h"
#include "shared/syscalls.h"

#define HELD_WAIT_MS   1000
#define REFUSAL_LOG_NS (10 * NS_PER_SEC)

enum {
	FRAMES_PER_TURN = 64,
	DESCRIPTORS = 48, /* for itself, before any agent or client */
};

struct engine {
	/* fixed after start */
	const struct engine_config *config; /* borrowed */
	struct api_context api_context;
	struct http_server *http;
	struct token_reviews token_reviews; /* of tokens; zeroes: none */
	struct own_secrets *own_secrets; /* NULL: files are somebody else's */
	struct view_slot *views;
	struct plan_slot *plans;
	struct plan_peer *plan_peer; /* NULL: no other aggregator */
	struct planner *planner;
	struct drain_log *decisions;
	struct reservations *reservations;
	struct ingest *ingest;
	struct exchange *exchange; /* NULL: no other aggregator */

	/* loop thread */
	uv_loop_t loop;
	uv_poll_t ingest_poll;
	uv_signal_t signals[3];
	uv_timer_t shutdown;
	uv_async_t files_changed; /* sent by the thread of own_secrets */
	bool loop_open;
	struct keyring_place *key_place; /* NULL: no key */
	struct keyring keys;
	struct node_keys *node_keys;
	struct node_enroller *enroller; /* NULL: nodes get no keys of their own */
	struct ingest_enrolment enrolment; /* of the ingest */
	struct usage_state *usage;
	struct demand *demand;
	struct join *join;
	struct saver *saver; /* NULL: without a state directory */
	struct informer *informer; /* NULL: standalone */
	struct bucket_source *history; /* NULL until the loop is open */
	struct publisher *publisher; /* NULL until the loop is open */
	struct recorder *recorder; /* NULL: nothing is recorded */
	int64_t refusal_logged_ns; /* Unix time */
	uint64_t refusals_unlogged;
	int failure; /* what stopped the loop, negative errno; 0: a signal */

	/* any thread */
	struct counters counters;
};

static const enum frame_result result_of_verdict[] = {
	[USAGE_APPLIED] = FRAME_RESULT_applied, [USAGE_DUPLICATE] = FRAME_RESULT_duplicate,
	[USAGE_TOO_OLD] = FRAME_RESULT_too_old, [USAGE_NEED_FULL] = FRAME_RESULT_need_full,
	[USAGE_REFUSED] = FRAME_RESULT_refused,
};

static const enum ack_status status_of_verdict[] = {
	[USAGE_APPLIED] = ACK_APPLIED, [USAGE_DUPLICATE] = ACK_APPLIED,
	[USAGE_TOO_OLD] = ACK_TOO_OLD, [USAGE_NEED_FULL] = ACK_NEED_FULL,
	[USAGE_REFUSED] = ACK_REFUSED,
};

/* A refused node reports again every few seconds: the log gets some lines, /metrics counts all. */
static void log_refusal(struct engine *e, const char *what, const char *node, const char *why,
			int64_t now_ns)
{
	if (now_ns - e->refusal_logged_ns < REFUSAL_LOG_NS && now_ns >= e->refusal_logged_ns) {
		e->refusals_unlogged++;
		return;
	}
	log_warn("refused %s of node %s: %s (%" PRIu64 " other refusals not logged)", what, node,
		 why, e->refusals_unlogged);
	e->refusal_logged_ns = now_ns;
	e->refusals_unlogged = 0;
}

/* Why a frame of that header, which opened, does not count; NULL: it does. */
static const char *shared_key_fault(const struct engine *e, const struct frame_header *header,
				    int64_t now_ns)
{
	if (!e->enroller || node_keys_find(e->node_keys, header->key_id, now_ns))
		return NULL;
	if (!e->config->shared_keys)
		return "agents have to enrol here (--aggregator-key): this aggregator takes no "
		       "shared key without --allow-shared-key true";
	return node_keys_pod(e->node_keys, header->node, now_ns)
		       ? "the node has enrolled: a shared key does not count for it"
		       : NULL;
}

/* A refused agent keeps its intervals, and asks again soon. */
static bool on_admit(void *ctx, const struct frame_header *header, uint64_t connection,
		     int64_t now_ns, struct ack *ack, enum frame_result *result)
{
	struct engine *e = ctx;
	const char *fault = shared_key_fault(e, header, now_ns);
	enum usage_admission admission =
		fault ? USAGE_ADMITTED : usage_admit(e->usage, header, connection, now_ns);
	bool rival = admission == USAGE_RIVAL;

	if (!fault && admission == USAGE_ADMITTED)
		return true;
	*result = fault	  ? FRAME_RESULT_shared_key
		  : rival ? FRAME_RESULT_rival
			  : FRAME_RESULT_need_full;
	ack->status = ACK_NEED_FULL;
	ack->wait_ms = HELD_WAIT_MS;
	if (!fault)
		fault = rival ? "another agent reports as this node: give each a --node-name of "
				"its own"
			      : "the node's last agent may come back";
	snprintf(ack->reason, sizeof(ack->reason), "%s", fault);
	if (*result != FRAME_RESULT_need_full)
		log_refusal(e, "an interval", header->node, ack->reason, now_ns);
	return false;
}

static void on_closed(void *ctx, const char *node, uint64_t connection)
{
	usage_note_closed(((struct engine *)ctx)->usage, node, connection);
}

static enum frame_result on_interval(void *ctx, const struct ingest_interval *i, struct ack *ack)
{
	const struct frame_header *header = i->header;
	const struct interval *interval = i->decoded;
	struct engine *e = ctx;
	struct usage_answer answer = {0};

	usage_apply(e->usage, header->node, header->run, header->nonce, i->decoded, i->now_ns,
		    &answer);
	recorder_interval(e->recorder, i, answer.verdict);
	ack->status = status_of_verdict[answer.verdict];
	ack->applied = answer.applied;
	ack->durable = answer.durable;
	ack->resend_from = answer.resend_from;
	memcpy(ack->reason, answer.reason, sizeof(answer.reason));
	counter_add(&e->counters.store.lost_intervals, answer.lost);
	counter_add(&e->counters.intervals_missing, answer.missing);
	if (answer.verdict == USAGE_APPLIED) {
		counter_add(&e->counters.intervals_merged, interval->merged - 1);
		usage_note_connection(e->usage, header->node, i->connection,
				      interval->end_ns - interval->start_ns, i->now_ns);
	}
	for (int k = 0; k < QUARANTINE_REASON_COUNT; k++)
		if (answer.quarantine.count[k])
			counter_add(&e->counters.quarantined[k], answer.quarantine.count[k]);
	if (answer.clock_flagged)
		log_warn("the clock of node %s is off by %+.0f s: its times are corrected",
			 header->node, answer.clock_ahead_seconds);
	if (answer.verdict == USAGE_REFUSED)
		log_refusal(e, "an interval", header->node, answer.reason, i->now_ns);
	return result_of_verdict[answer.verdict];
}

static const struct ingest_handler ingest_handler = {on_admit, on_interval, on_closed};

static int on_enrolment(void *ctx, const void *data, size_t len, const struct ingest_route *route,
			int64_t now_ns, struct buf *answer, bool *refused)
{
	struct engine *e = ctx;

	return node_enroller_take(e->enroller, data, len, route, now_ns, answer, refused);
}

static void on_reviewed(void *ctx, const struct ingest_route *route, const struct buf *answer,
			enum frame_result result, bool refused)
{
	struct engine *e = ctx;

	counter_add(&e->counters.frames[result], 1);
	ingest_send(e->ingest, route, answer, refused);
}

static const struct kube_pod *find_pod(void *ctx, const char *namespace, const char *name,
				       const char *uid)
{
	return informer_pod(((struct engine *)ctx)->informer, namespace, name, uid);
}

static bool lists_pods(void *ctx)
{
	return informer_lists_pods(((struct engine *)ctx)->informer);
}

static void on_not_enrolled(void *ctx, const char *node, const char *why, int64_t now_ns)
{
	log_refusal(ctx, "an enrolment", node, why, now_ns);
}

static void on_foreign(void *ctx, const char *node, const char *owner, int64_t now_ns)
{
	char why[NODE_NAME_MAX + 32];

	snprintf(why, sizeof(why), "its key is of node %s", owner);
	log_refusal(ctx, "an interval", node, why, now_ns);
}

static void on_published(void *ctx, int64_t now_ns)
{
	struct engine *e = ctx;

	prefetcher_published(e->api_context.prefetcher, now_ns);
	place_cache_tidy(e->api_context.places, now_ns);
	place_cache_tidy(e->api_context.scheduler_places, now_ns);
	quota_book_cache_tidy(e->api_context.books, now_ns);
}

static void on_frames(uv_poll_t *poll, int status, int events)
{
	struct engine *e = poll->data;
	int taken;

	(void)events;
	if (status < 0) {
		e->failure = status;
		uv_stop(&e->loop);
		return;
	}
	taken = ingest_step(e->ingest, FRAMES_PER_TURN, clock_wall_ns(), clock_mono_ns());
	publisher_note_frames(e->publisher, (size_t)taken, taken < FRAMES_PER_TURN);
}

/* The keys that only aggregators have, if there are such. */
static const struct keyring *keys_of_aggregators(const struct engine *e)
{
	return e->enroller ? node_enroller_keys(e->enroller) : &e->keys;
}

static void reload_keys(struct engine *e)
{
	struct error why;

	if (!e->key_place)
		return;
	if (keyring_read(&e->keys, e->key_place, &why))
		log_error("keeping the old keys: %s", why.text);
	else
		log_info("read the keys again");
}

static void on_shutdown(uv_timer_t *timer)
{
	uv_stop(timer->loop);
}

/* Of keys, tokens and certificates. The loop runs when all is open. */
static void on_files_changed(uv_async_t *async)
{
	struct engine *e = async->data;

	node_enroller_reload(e->enroller);
	exchange_set_keys(e->exchange, keys_of_aggregators(e));
	http_reload(e->http);
}

static void on_signal(uv_signal_t *handle, int number)
{
	struct engine *e = handle->data;
	bool again = counter_get(&e->counters.leaving);
	int64_t delay_ns = again ? 0 : e->config->shutdown_delay_ns;

	if (number == SIGHUP) {
		reload_keys(e);
		on_files_changed(&e->files_changed);
		return;
	}
	counter_set(&e->counters.leaving, 1);
	if (delay_ns)
		log_info("ending in %.1f s; another signal ends at once",
			 (double)delay_ns / NS_PER_SEC);
	uv_timer_start(&e->shutdown, on_shutdown, (uint64_t)(delay_ns / NS_PER_MS), 0);
}

/* Any thread. */
static void note_files_changed(void *ctx)
{
	uv_async_send(&((struct engine *)ctx)->files_changed);
}

static int open_own_secrets(struct engine *e, struct error *error)
{
	const struct engine_config *c = e->config;
	const struct own_secrets_config config = {
		.namespace = c->own_secrets,
		.certificate = c->access->certificate,
		.key = c->access->key,
		.authority = c->access->client_ca,
		.enrolment = c->enrolment_key_path,
	};
	struct kube_config kube = {0};
	int rc = kube_config_find(&kube, c->kubeconfig, c->kube_context, error);

	if (rc)
		error_prefix(error, "--own-secrets");
	else
		rc = own_secrets_open(&e->own_secrets, &kube, &config, error);
	kube_config_fini(&kube);
	return rc;
}

static int watch_ingest(struct engine *e)
{
	int rc = uv_poll_init(&e->loop, &e->ingest_poll, ingest_fd(e->ingest));

	e->ingest_poll.data = e;
	return rc ? rc : uv_poll_start(&e->ingest_poll, UV_READABLE, on_frames);
}

static int watch_signals(struct engine *e)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	int rc = uv_timer_init(&e->loop, &e->shutdown);

	for (int i = 0; i < 3 && !rc; i++) {
		rc = uv_signal_init(&e->loop, &e->signals[i]);
		e->signals[i].data = e;
		if (!rc)
			rc = uv_signal_start(&e->signals[i], on_signal, numbers[i]);
	}
	return rc;
}

static int open_recorder(struct engine *e, struct error *error)
{
	const struct recorder_config config = {
		.dir = e->config->record_dir,
		.keep_ns = e->config->record_keep_ns,
		.bytes_most = e->config->record_bytes_most,
		.plans = e->plans,
		.reservations = e->reservations,
		.counters = &e->counters.record,
	};

	return config.dir ? recorder_open(&e->recorder, &config, error) : 0;
}

static int open_loop(struct engine *e, struct error *error)
{
	const struct publisher_config config = {
		.loop = &e->loop,
		.usage = e->usage,
		.join = e->join,
		.views = e->views,
		.reservations = e->reservations,
		.informer = &e->informer,
		.counters = &e->counters,
		.recorder = e->recorder,
		.published = on_published,
		.ctx = e,
	};
	int rc;

	/* Without memory libuv itself aborts without a message. */
	uv_replace_allocator(mem_alloc, mem_realloc, mem_zalloc, free);
	rc = uv_loop_init(&e->loop);
	e->loop_open = rc == 0;
	if (!rc)
		rc = publisher_open(&e->publisher, &config);
	e->files_changed.data = e;
	if (!rc)
		rc = uv_async_init(&e->loop, &e->files_changed, on_files_changed);
	if (!rc)
		rc = history_open(&e->history, &e->loop, e->usage);
	if (!rc)
		rc = watch_signals(e);
	if (!rc)
		rc = watch_ingest(e);
	if (rc)
		error_set(error, "the event loop does not start: %s", uv_strerror(rc));
	return rc;
}

static void on_recalled(void *ctx, const char *name, const char *text, size_t len)
{
	struct engine *e = ctx;
	struct error why = {""};
	bool keys = strcmp(name, SAVER_NODE_KEYS) == 0;
	int rc = 0;

	if (keys)
		rc = node_keys_read(e->node_keys, text, len, &why);
	else if (strncmp(name, SAVER_DEMAND, strlen(SAVER_DEMAND)) == 0)
		rc = demand_read_text(e->demand, text, len, &why);
	else if (strcmp(name, SAVER_WORKLOADS) == 0)
		rc = join_recall(e->join, text, len, &why);
	else
		planner_remember(e->planner, name, text, len);
	if (rc)
		log_error("%s of the database cannot be read%s: %s", name,
			  keys ? ", so every agent has to enrol again" : " and is left out",
			  why.text);
}

static struct planner *make_planner(struct engine *e)
{
	struct plan_drain drain;
	const struct planner_config config = {
		.views = e->views,
		.plans = e->plans,
		.peer = e->plan_peer,
		.counters = &e->counters.planner,
		.every_ns = e->config->plan_interval_ns,
		.slack = &e->config->slack,
		.drain = &drain,
	};

	drain_runner_open(&drain, &e->config->drain, true, &e->counters.drain, e->decisions);
	return planner_new(&config);
}

static int open_saver(struct engine *e, struct error *error)
{
	struct saver_config config = {
		.dir = e->config->state_dir,
		.copies = e->config->peer,
		.every_ns = e->config->save_interval_ns,
		.nodes_max = usage_default_limits.nodes_max,
		.loop = &e->loop,
		.usage = e->usage,
		.counters = &e->counters,
		.plans = e->plans,
		.views = e->views,
		.decisions = e->decisions,
		.node_keys = e->node_keys,
		.publisher = e->publisher,
		.recalled = on_recalled,
		.ctx = e,
	};

	return config.dir ? saver_open(&e->saver, &config, error) : 0;
}

/* Any thread. */
static void on_view_wanted(void *ctx, uint64_t ticket)
{
	struct engine *e = ctx;

	if (!informer_catch_up(e->informer, ticket))
		publisher_want(e->publisher, ticket);
}

/* The first view has the cluster: without it the service would seem standalone and ready. */
static int open_informer(struct engine *e, struct error *error)
{
	struct informer_config config = {
		.snapshots = &e->config->snapshots,
		.kubeconfig = e->config->kubeconfig,
		.context = e->config->kube_context,
		.standalone = e->config->standalone,
		.loop = &e->loop,
		.publisher = e->publisher,
		.reservations = e->reservations,
		.status_counters = e->config->write_quota_status ? &e->counters.quota : NULL,
		.views = e->views,
		.quota = &e->config->quota,
		.nudge_claim = e->config->nudge_claim,
		.events = e->config->events,
		.api = &e->api_context,
	};
	int rc = informer_open(&e->informer, &config, error);

	e->api_context.kubernetes_mode = informer_mode(e->informer);
	if (!rc && e->informer)
		publisher_publish(e->publisher);
	return rc;
}

/* The thread of the front proxy's watch. */
static void on_front_proxy(void *ctx, struct front_proxy *p)
{
	http_set_front_proxy(((struct engine *)ctx)->http, p);
}

static int open_http(struct engine *e, struct error *error)
{
	const struct engine_config *c = e->config;
	struct http_config config = {.listen = c->listen, .ctx = &e->api_context};
	int rc = 0;

	access_options_apply(c->access, &config);
	if (c->access->token_review) {
		rc = token_reviews_open(&e->token_reviews, c->kubeconfig, c->kube_context,
					c->access->audience, error);
		if (rc)
			error_prefix(error, "--token-review");
		config.auth.review_client = &e->token_reviews.access;
	}
	if (!rc)
		rc = http_start_with(&e->http, &config, error);
	if (!rc && c->access->front_proxy)
		rc = token_reviews_follow_proxy(&e->token_reviews, c->kubeconfig, c->kube_context,
						on_front_proxy, e, error);
	return rc;
}

static int open_enroller(struct engine *e, struct error *error)
{
	const struct node_enroller_config config = {
		.key_path = e->config->enrolment_key_path,
		.join_token_path = e->config->join_token_path,
		.service_account = e->config->enrol_service_account,
		.kubeconfig = e->config->kubeconfig,
		.kube_context = e->config->kube_context,
		.loop = &e->loop,
		.pod = find_pod,
		.lists_pods = lists_pods,
		.answered = on_reviewed,
		.keys = e->node_keys,
		.refused = on_not_enrolled,
		.ctx = e,
	};

	e->enrolment = (struct ingest_enrolment){
		.keys = e->node_keys,
		.take = on_enrolment,
		.foreign = on_foreign,
	};
	if (e->keys.count && !e->config->shared_keys)
		log_warn("agents have to enrol: frames under keys of --key-file count only with "
			 "--allow-shared-key true");
	return node_enroller_open(&e->enroller, &config, error);
}

/* The filter would bind a program for credentials, too. */
static int restrict_calls(struct engine *e, struct error *error)
{
	if (e->config->filter < 0)
		return 0;
	if (!informer_runs_programs(e->informer))
		return syscalls_restrict(e->config->filter, error);
	log_warn("system calls stay unrestricted: the kubeconfig has a program for credentials");
	close(e->config->filter);
	return 0;
}

/* As answers tell their time, so that a replay of that time has the same ages. */
static int64_t now_ms(void)
{
	return clock_wall_ns() / NS_PER_MS * NS_PER_MS;
}

/* State and caches; nothing is opened. */
static struct engine *new_engine(const struct engine_config *config)
{
	struct engine *e = mem_zalloc(1, sizeof(*e));

	e->config = config;
	e->demand = demand_new();
	e->usage = usage_new(&usage_default_limits);
	usage_set_demand(e->usage, e->demand);
	e->node_keys = node_keys_new(usage_default_limits.nodes_max);
	e->join = join_new();
	join_set_demand(e->join, e->demand);
	e->views = view_slot_new();
	e->reservations = reservations_new();
	e->plans = plan_slot_new();
	if (config->peer)
		e->plan_peer = plan_peer_new(e->plans, &e->counters.exchange,
					     plan_slot_run(e->plans), clock_mono_ns());
	e->decisions = drain_log_new();
	e->planner = make_planner(e);
	e->api_context = (struct api_context){
		.views = e->views,
		.counters = &e->counters,
		.now_ns = now_ms,
		.watcher_upstream = config->watcher_upstream,
		.watcher_smoothed = config->watcher_smoothed,
		.watcher_allocatable = config->watcher_allocatable,
		.watcher_cache = watcher_cache_new(),
		.places = place_cache_new(),
		.scheduler_places = place_cache_new(),
		.books = quota_book_cache_new(&config->quota),
		.reservations = e->reservations,
		.extender = &config->extender,
		.quota = &config->quota,
		.preempt = &config->preempt,
		.victims = victim_log_new(),
		.waiting = waiting_pods_new(&e->counters.requeue, config->events & EVENTS_OF_PODS
									  ? &e->counters.events
									  : NULL),
		.acts = act_box_new(e->decisions),
		.plans = e->plans,
		.plan_peer = e->plan_peer,
		.slack = &config->slack,
		.drain = &config->drain,
		.decisions = e->decisions,
	};
	return e;
}

/* Files, sockets and threads, each after those that it uses. */
static int open_parts(struct engine *e, struct error *error)
{
	const struct engine_config *config = e->config;
	int rc = program_check_descriptors(DESCRIPTORS, error);

	if (!rc && config->own_secrets)
		rc = open_own_secrets(e, error);
	if (!rc && config->key_path)
		rc = keyring_open(&e->key_place, config->key_path, error);
	if (!rc && e->key_place)
		rc = keyring_read(&e->keys, e->key_place, error);
	if (!rc && config->enrolment_key_path)
		rc = open_enroller(e, error);
	if (!rc && config->peer)
		rc = saver_take_copy(config->state_dir, config->peer, keys_of_aggregators(e),
				     &e->counters.exchange, error);
	if (!rc)
		rc = ingest_open(&e->ingest, config->ingest, &e->keys,
				 e->enroller ? &e->enrolment : NULL, &e->counters, &ingest_handler,
				 e, error);
	/* With a shared key, agents could ask the actuator. */
	if (!rc && config->peer)
		rc = exchange_open(&e->exchange, config->peer, keys_of_aggregators(e),
				   e->reservations, e->plan_peer,
				   e->enroller ? e->api_context.acts : NULL, &e->counters.exchange,
				   error);
	if (!rc)
		rc = open_recorder(e, error);
	if (!rc)
		rc = open_loop(e, error);
	if (!rc)
		e->api_context.buckets = e->history;
	if (!rc)
		rc = open_saver(e, error);
	if (!rc)
		ingest_set_exchange(e->ingest, e->exchange, saver_copier(e->saver));
	if (!rc)
		rc = open_informer(e, error);
	if (!rc)
		rc = planner_start(e->planner, e->recorder, error);
	if (!rc)
		rc = prefetcher_start(&e->api_context.prefetcher, e->views, error);
	view_slot_on_refresh(e->views, on_view_wanted, e);
	e->api_context.started_ns = clock_wall_ns();
	plan_peer_begin(e->plan_peer, clock_mono_ns());
	if (!rc)
		rc = open_http(e, error);
	if (!rc && e->own_secrets)
		rc = own_secrets_start(e->own_secrets, note_files_changed, e, error);
	if (!rc)
		rc = restrict_calls(e, error);
	return rc;
}

int engine_open(struct engine **out, const struct engine_config *config, struct error *error)
{
	struct engine *e;
	int rc;

	/* A failed allocation in cJSON must not look like an object without members. */
	cJSON_InitHooks(&(cJSON_Hooks){mem_alloc, free});
	e = new_engine(config);
	rc = open_parts(e, error);
	if (rc) {
		engine_close(e);
		return rc;
	}
	if (informer_from(e->informer))
		log_info("the cluster's objects come from %s", informer_from(e->informer));
	else
		log_info("standalone, without a Kubernetes API: workloads carry their cgroups' "
			 "names");
	log_info("listening on http%s://%s, agents report to %s",
		 config->access->certificate ? "s" : "", http_address(e->http), config->ingest);
	*out = e;
	return 0;
}

int engine_run(struct engine *e, struct error *error)
{
	uv_run(&e->loop, UV_RUN_DEFAULT);
	if (e->failure)
		error_set(error, "the ingest socket cannot be watched any more: %s",
			  uv_strerror(e->failure));
	return e->failure;
}

static void close_handle(uv_handle_t *handle, void *unused)
{
	(void)unused;
	uv_close(handle, NULL);
}

void engine_close(struct engine *e)
{
	int rc;

	if (!e)
		return;
	own_secrets_close(e->own_secrets);
	token_reviews_stop(&e->token_reviews);
	http_stop(e->http);
	exchange_close(e->exchange);
	token_reviews_close(&e->token_reviews);
	planner_stop(e->planner);
	prefetcher_stop(e->api_context.prefetcher);
	e->api_context.prefetcher = NULL; /* views are published below */
	saver_finish(e->saver);
	informer_stop(e->informer);
	node_enroller_stop(e->enroller);
	if (e->loop_open) {
		uv_walk(&e->loop, close_handle, NULL);
		uv_run(&e->loop, UV_RUN_DEFAULT);
		rc = uv_loop_close(&e->loop);
		assert(rc == 0);
	}
	recorder_close(e->recorder);
	saver_free(e->saver);
	informer_free(e->informer);
	ingest_close(e->ingest);
	place_cache_free(e->api_context.places);
	place_cache_free(e->api_context.scheduler_places);
	quota_book_cache_free(e->api_context.books);
	victim_log_free(e->api_context.victims);
	waiting_pods_free(e->api_context.waiting);
	act_box_free(e->api_context.acts);
	watcher_cache_free(e->api_context.watcher_cache);
	planner_free(e->planner);
	plan_peer_free(e->plan_peer);
	plan_slot_free(e->plans);
	drain_log_free(e->decisions);
	view_slot_free(e->views);
	reservations_free(e->reservations);
	join_free(e->join);
	publisher_free(e->publisher);
	history_free(e->history);
	usage_free(e->usage);
	demand_free(e->demand);
	node_enroller_close(e->enroller);
	node_keys_free(e->node_keys);
	keyring_wipe(&e->keys);
	keyring_close(e->key_place);
	free(e);
}
