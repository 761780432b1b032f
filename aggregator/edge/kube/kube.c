/* SPDX-License-Identifier: Apache-2.0 */
/*
 *	kube thread: one libcurl multi handle                             loop thread
 *	discoverer --versions--> feed of each kind --changes--> outbox --batches--> kube_take()
 *
 * Each list and watch has a handle and, on HTTP/1.1, a connection of its own, so none waits for
 * another. All run on one thread: reading objects is the cost, and a list is read once. No lock is
 * held during calls of others.
 *
 * The thread waits for its sockets and timers, and for room in the outbox if the loop is behind.
 * kube_stop() ends both waits at once; it only has to wait for a running exec plugin.
 */
#include "aggregator/edge/kube/kube.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "aggregator/edge/kube/discovery.h"
#include "aggregator/edge/kube/kube_feed.h"
#include "aggregator/edge/kube/session.h"
#include "shared/clock.h"
#include "shared/log.h"
#include "shared/mem.h"
#include "shared/thread.h"

enum { WAIT_MOST_MS = 60000 };

/* Spreads the retries of processes that started together. */
static double random_share(void)
{
	uint32_t bits = 0;

	if (getrandom(&bits, sizeof(bits), GRND_NONBLOCK) != sizeof(bits))
		return 0.5;
	return bits / 4294967296.0;
}

/* --- log -------------------------------------------------------------------------------------- */

/*
 * A lost server is fifteen broken watches and one log line; so is its return. Troubles of one kind
 * (no permission, no such resource) have a line of their own.
 */
struct kube_log {
	enum source_state states[OBJECT_KINDS]; /* as reported */
	bool troubled[OBJECT_KINDS];
	bool any_trouble, complete; /* as logged */
};

/* Logs changes of a kind's source; called at any rate. */
static void log_source(struct kube_log *l, enum object_kind kind, const struct model_source *source)
{
	bool any = false;

	if (source->state != l->states[kind] && source->state == SOURCE_FORBIDDEN)
		log_warn("%s: %s", object_kind_resource(kind), source->message);
	else if (source->state != l->states[kind] && source->state == SOURCE_ABSENT)
		log_info("%s: %s", object_kind_resource(kind), source->message);
	l->states[kind] = source->state;
	l->troubled[kind] = (source->state == SOURCE_STALE || source->state == SOURCE_LISTING) &&
			    source->message[0];
	for (int i = 0; i < OBJECT_KINDS; i++)
		any |= l->troubled[i];
	if (any && !l->any_trouble)
		log_warn("the watch of %s failed, and maybe others: %s; trying again",
			 object_kind_resource(kind), source->message);
	else if (!any && l->any_trouble)
		log_info("every watch of the Kubernetes API works again");
	l->any_trouble = any;
	if (l->complete)
		return;
	for (int i = 0; i < OBJECT_KINDS; i++)
		if (l->states[i] != SOURCE_SYNCED && l->states[i] != SOURCE_FORBIDDEN &&
		    l->states[i] != SOURCE_ABSENT)
			return;
	l->complete = true;
	log_info("every kind of object that the API serves is listed");
}

/* --- discovery -------------------------------------------------------------------------------- */

/*
 * A run requests the groups, and each version that may have a wanted kind, one after the other on
 * one connection. Runs: at the start, then every few seconds while a kind is missing; a missing
 * group costs one request. A kind whose list answers 404 waits for such a run. Failures are
 * retried as those of lists: with backoff, once a minute if forbidden, and once at once after a
 * 401.
 */
struct discoverer {
	/* fixed after init */
	struct feed *feeds; /* borrowed; OBJECT_KINDS of them */
	const struct kube_timing *timing; /* borrowed */

	struct discovery discovery;
	struct transfer transfer;
	struct buf body;
	bool running;
	bool renewed; /* the credentials, without a success since */
	struct backoff backoff;
	int64_t next_ns; /* monotonic; not before */
};

enum { ANSWER_MAX = 4 << 20, SILENCE_S = 30 };

static void ask(struct discoverer *d, int64_t now_ns);

static void on_open(void *ctx)
{
	struct discoverer *d = ctx;

	d->renewed = false;
	buf_clear(&d->body);
}

static bool on_data(void *ctx, const char *data, size_t len)
{
	struct discoverer *d = ctx;

	if (d->body.len + len > ANSWER_MAX)
		return false;
	buf_add(&d->body, data, len);
	return true;
}

static int64_t wait_after(struct discoverer *d, const struct kube_status *fault, int64_t now_ns)
{
	int64_t wait;

	if (!fault)
		return d->timing->absent_ns;
	if (fault->code == 403)
		return d->timing->forbidden_ns;
	if (fault->code == 401) {
		kube_session_unauthorized(d->transfer.session);
		if (!d->renewed) {
			d->renewed = true;
			return 0;
		}
	}
	wait = backoff_next(&d->backoff, &d->timing->backoff, random_share(), now_ns);
	return fault->retry_after_ns > wait ? fault->retry_after_ns : wait;
}

/* True: not known, with *why. */
static bool tell(struct discoverer *d, struct feed *f, struct kube_status *why)
{
	static const enum reflector_event_type events[] = {
		[DISCOVERY_SERVED] = REFLECTOR_SERVED,
		[DISCOVERY_UNSERVED] = REFLECTOR_UNSERVED,
		[DISCOVERY_FAULT] = REFLECTOR_UNDISCOVERED,
	};
	const char *version = NULL;
	enum discovery_verdict verdict =
		discovery_find(&d->discovery, f->reflector.kind, &version, why);
	bool failed = verdict == DISCOVERY_FAULT;

	feed_discovered(f, events[verdict], version, failed ? why : NULL);
	return failed;
}

static void finish(struct discoverer *d, int64_t now_ns)
{
	struct kube_status why;
	bool failed = false;

	d->running = false;
	for (int kind = 0; kind < OBJECT_KINDS; kind++)
		if (feed_is_unknown(&d->feeds[kind]))
			failed |= tell(d, &d->feeds[kind], &why);
	d->next_ns = now_ns + wait_after(d, failed ? &why : NULL, now_ns);
}

static void on_end(void *ctx, const struct kube_status *fault)
{
	struct discoverer *d = ctx;

	discovery_answer(&d->discovery, d->body.data, d->body.len, fault);
	buf_clear(&d->body);
	ask(d, clock_mono_ns());
}

static const struct transfer_hooks hooks = {on_open, on_data, on_end};

static void ask(struct discoverer *d, int64_t now_ns)
{
	char path[DISCOVERY_PATH_MAX];
	struct transfer_request rq = {.path = path, .gzip = true, .silence_s = SILENCE_S};

	if (discovery_next(&d->discovery, path))
		transfer_start(&d->transfer, &rq, now_ns);
	else
		finish(d, now_ns);
}

/* Begins a run if due. Monotonic time of the next, INT64_MAX: none, or one is running. */
static int64_t discoverer_wake(struct discoverer *d, int64_t now_ns)
{
	uint32_t wanted = 0; /* kinds that wait for discovery, as bits */

	for (int kind = 0; kind < OBJECT_KINDS; kind++)
		if (feed_is_unknown(&d->feeds[kind]))
			wanted |= 1U << kind;
	if (d->running || !wanted)
		return INT64_MAX;
	if (now_ns < d->next_ns)
		return d->next_ns;
	d->running = true;
	discovery_begin(&d->discovery, wanted);
	ask(d, now_ns);
	return d->running ? INT64_MAX : d->next_ns;
}

/* --- the thread ------------------------------------------------------------------------------- */

struct kube {
	/* fixed after start */
	struct kube_session *session;
	CURLM *multi;
	pthread_t thread;

	/* kube thread */
	struct kube_json json;
	struct feed feeds[OBJECT_KINDS];
	struct discoverer discoverer;
	struct kube_log log;

	/* any thread */
	struct kube_outbox outbox;
	atomic_ullong flush_asked, flushed; /* tickets */
};

static int64_t wake_all(struct kube *k, int64_t now_ns)
{
	int64_t next_ns = discoverer_wake(&k->discoverer, now_ns), wake_ns;

	for (int kind = 0; kind < OBJECT_KINDS; kind++) {
		wake_ns = feed_wake(&k->feeds[kind], now_ns);
		next_ns = wake_ns < next_ns ? wake_ns : next_ns;
		log_source(&k->log, (enum object_kind)kind, &k->feeds[kind].reflector.source);
	}
	return next_ns;
}

static void finish_transfers(struct kube *k)
{
	CURLMsg *message;
	int left;

	while (!atomic_load(&k->outbox.closed) &&
	       (message = curl_multi_info_read(k->multi, &left)) != NULL)
		if (message->msg == CURLMSG_DONE)
			transfer_finish(transfer_of(message->easy_handle), message->data.result);
}

static void wait_until(struct kube *k, int64_t until_ns)
{
	int64_t wait_ns = until_ns == INT64_MAX ? INT64_MAX : until_ns - clock_mono_ns();
	int wait_ms = WAIT_MOST_MS;

	if (wait_ns <= 0)
		return;
	if (wait_ns / NS_PER_MS < wait_ms)
		wait_ms = (int)(wait_ns / NS_PER_MS) + 1;
	curl_multi_poll(k->multi, NULL, 0, wait_ms, NULL);
}

static void *run(void *arg)
{
	struct kube *k = arg;
	int running;

	while (!atomic_load(&k->outbox.closed)) {
		unsigned long long asked = atomic_load(&k->flush_asked);
		int64_t until_ns;

		curl_multi_perform(k->multi, &running);
		finish_transfers(k);
		until_ns = wake_all(k, clock_mono_ns());
		kube_outbox_flush(&k->outbox);
		if (atomic_load(&k->flushed) != asked) {
			atomic_store(&k->flushed, asked);
			k->outbox.ready(k->outbox.ctx);
		}
		wait_until(k, until_ns);
	}
	return NULL;
}

/* --- start and stop --------------------------------------------------------------------------- */

static void init_feeds(struct kube *k, const struct kube_timing *timing)
{
	for (int kind = 0; kind < OBJECT_KINDS; kind++)
		feed_init(&k->feeds[kind], (enum object_kind)kind, timing, random_share, k->session,
			  k->multi, &k->json, &k->outbox);
	k->discoverer = (struct discoverer){.feeds = k->feeds, .timing = timing};
	transfer_init(&k->discoverer.transfer, k->session, k->multi, &hooks, &k->discoverer);
}

static void free_all(struct kube *k)
{
	transfer_fini(&k->discoverer.transfer);
	buf_fini(&k->discoverer.body);
	for (int kind = 0; kind < OBJECT_KINDS; kind++)
		feed_fini(&k->feeds[kind]);
	curl_multi_cleanup(k->multi);
	kube_session_free(k->session);
	kube_json_fini(&k->json);
	kube_outbox_fini(&k->outbox);
	free(k);
}

int kube_start(struct kube **out, const struct kube_config *config,
	       const struct kube_timing *timing, void (*ready)(void *ctx), void *ctx,
	       struct error *error)
{
	struct kube *k = mem_zalloc(1, sizeof(*k));
	int rc;

	curl_global_init(CURL_GLOBAL_DEFAULT);
	rc = kube_session_new(&k->session, config, error);
	if (rc) {
		free(k);
		return rc;
	}
	k->multi = curl_multi_init();
	if (!k->multi)
		mem_exhausted();
	kube_outbox_init(&k->outbox, ready, ctx);
	kube_json_init(&k->json);
	init_feeds(k, timing ? timing : kube_timing_usual());
	rc = thread_start(&k->thread, 0, run, k);
	if (rc) {
		error_set(error, "no thread for the Kubernetes API: %s", strerror(-rc));
		free_all(k);
		return rc;
	}
	*out = k;
	return 0;
}

void kube_stop(struct kube *k)
{
	if (!k)
		return;
	kube_outbox_close(&k->outbox);
	curl_multi_wakeup(k->multi);
	pthread_join(k->thread, NULL);
	free_all(k);
}

struct kube_batch *kube_take(struct kube *k)
{
	return kube_outbox_take(&k->outbox);
}

void kube_flush(struct kube *k, uint64_t ticket)
{
	unsigned long long asked = atomic_load(&k->flush_asked);

	while (asked < ticket && !atomic_compare_exchange_weak(&k->flush_asked, &asked, ticket))
		;
	curl_multi_wakeup(k->multi);
}

uint64_t kube_flushed(const struct kube *k)
{
	return atomic_load(&k->flushed);
}
