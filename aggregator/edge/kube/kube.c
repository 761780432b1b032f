/* SPDX-License-Identifier: Apache-2.0 */
/*
 *	kube thread: one libcurl multi handle                             loop thread
 *	discoverer --versions--> feed of each kind --changes--> outbox --batches--> kube_take()
 *
 * Every list and watch has a handle and, on HTTP/1.1, a connection of its own, so that none waits
 * for another. All run on this one thread, since reading objects is what costs, and a list is read
 * once. No lock is held while others are called.
 *
 * The thread waits in two places: for its sockets and timers, and for room in the outbox when the
 * loop is behind. kube_stop() ends both waits at once; an exec plugin that is running is the one
 * thing it has to wait for.
 */
#include "aggregator/edge/kube/kube.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "aggregator/edge/kube/kube_discoverer.h"
#include "aggregator/edge/kube/kube_feed.h"
#include "aggregator/edge/kube/kube_log.h"
#include "aggregator/edge/kube/kube_outbox.h"
#include "aggregator/edge/kube/session.h"
#include "shared/clock.h"
#include "shared/mem.h"

enum { WAIT_MOST_MS = 60000 };

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
	struct kube_stats stats[OBJECT_KINDS];
	atomic_ullong flush_asked, flushed; /* tickets */
};

/* So that many of us, started at one moment, do not come back at one moment. */
static double random_share(void *ctx)
{
	uint32_t bits = 0;

	(void)ctx;
	if (getrandom(&bits, sizeof(bits), GRND_NONBLOCK) != sizeof(bits))
		return 0.5;
	return bits / 4294967296.0;
}

/* --- the thread ------------------------------------------------------------------------------- */

static int64_t wake_all(struct kube *k, int64_t now_ns)
{
	int64_t next_ns = discoverer_wake(&k->discoverer, now_ns), wake_ns;

	for (int kind = 0; kind < OBJECT_KINDS; kind++) {
		wake_ns = feed_wake(&k->feeds[kind], now_ns);
		next_ns = wake_ns < next_ns ? wake_ns : next_ns;
		kube_log_source(&k->log, (enum object_kind)kind, &k->feeds[kind].reflector.source);
	}
	return next_ns;
}

static void finish_transfers(struct kube *k)
{
	CURLMsg *message;
	int left;

	while (!kube_outbox_is_closed(&k->outbox) &&
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

static void tell_flushed(struct kube *k, unsigned long long asked)
{
	if (atomic_load(&k->flushed) == asked)
		return;
	atomic_store(&k->flushed, asked);
	k->outbox.ready(k->outbox.ctx);
}

static void *run(void *arg)
{
	struct kube *k = arg;
	int running;

	while (!kube_outbox_is_closed(&k->outbox)) {
		unsigned long long asked = atomic_load(&k->flush_asked);
		int64_t until_ns;

		curl_multi_perform(k->multi, &running);
		finish_transfers(k);
		until_ns = wake_all(k, clock_mono_ns());
		kube_outbox_flush(&k->outbox);
		tell_flushed(k, asked);
		wait_until(k, until_ns);
	}
	return NULL;
}

/* --- start and stop --------------------------------------------------------------------------- */

static void init_feeds(struct kube *k, const struct kube_timing *timing)
{
	for (int kind = 0; kind < OBJECT_KINDS; kind++)
		feed_init(&k->feeds[kind], (enum object_kind)kind, timing, random_share, NULL,
			  k->session, k->multi, &k->json, &k->outbox, &k->stats[kind]);
	discoverer_init(&k->discoverer, k->feeds, timing, random_share, NULL, k->session, k->multi);
}

/* Signals are the loop's; a peer that closed must not kill us with one either. */
static int start_thread(struct kube *k, struct reason *reason)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&k->thread, NULL, run, k);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc)
		reason_set(reason, "no thread for the Kubernetes API: %s", strerror(rc));
	return -rc;
}

static void free_all(struct kube *k)
{
	discoverer_fini(&k->discoverer);
	for (int kind = 0; kind < OBJECT_KINDS; kind++)
		feed_fini(&k->feeds[kind]);
	curl_multi_cleanup(k->multi);
	kube_session_free(k->session);
	kube_json_fini(&k->json);
	kube_outbox_fini(&k->outbox);
	free(k);
}

int kube_start_timed(struct kube **out, const struct kube_config *config,
		     const struct kube_timing *timing, void (*ready)(void *ctx), void *ctx,
		     struct reason *reason)
{
	struct kube *k = mem_zalloc(1, sizeof(*k));
	int rc;

	curl_global_init(CURL_GLOBAL_DEFAULT);
	rc = kube_session_new(&k->session, config, reason);
	if (rc) {
		free(k);
		return rc;
	}
	k->multi = curl_multi_init();
	if (!k->multi)
		mem_exhausted();
	kube_outbox_init(&k->outbox, ready, ctx);
	kube_json_setup();
	kube_json_init(&k->json);
	init_feeds(k, timing);
	rc = start_thread(k, reason);
	if (rc) {
		free_all(k);
		return rc;
	}
	*out = k;
	return 0;
}

int kube_start(struct kube **k, const struct kube_config *config, void (*ready)(void *ctx),
	       void *ctx, struct reason *reason)
{
	return kube_start_timed(k, config, kube_timing_usual(), ready, ctx, reason);
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

const struct kube_stats *kube_stats_get(const struct kube *k, enum object_kind kind)
{
	return &k->stats[kind];
}
