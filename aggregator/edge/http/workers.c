/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One queue under one lock; whoever of the threads is idle takes its head. A stop wakes all: each
 * completes what it has begun, and what still waits is run by the one that stops, to be refused.
 */
#include "aggregator/edge/http/workers.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"

struct workers {
	/* fixed after start */
	unsigned int waiting_most;
	unsigned int thread_count;
	pthread_t *threads; /* owned */

	pthread_mutex_t lock;
	pthread_cond_t news;
	/* under lock */
	struct work *first, **last;
	unsigned int waiting;
	bool stop;
};

/* The next one, waiting for it; NULL: stop. */
static struct work *take(struct workers *ws)
{
	struct work *w = NULL;

	pthread_mutex_lock(&ws->lock);
	while (!ws->first && !ws->stop)
		pthread_cond_wait(&ws->news, &ws->lock);
	if (!ws->stop) {
		w = ws->first;
		ws->first = w->next;
		if (!ws->first)
			ws->last = &ws->first;
		ws->waiting--;
	}
	pthread_mutex_unlock(&ws->lock);
	return w;
}

static void *work(void *arg)
{
	struct work *w;

	while ((w = take(arg)) != NULL)
		w->run(w, false);
	return NULL;
}

bool workers_give(struct workers *ws, struct work *w)
{
	bool taken = false;

	pthread_mutex_lock(&ws->lock);
	if (!ws->stop && ws->waiting < ws->waiting_most) {
		taken = true;
		w->next = NULL;
		*ws->last = w;
		ws->last = &w->next;
		ws->waiting++;
		pthread_cond_signal(&ws->news);
	}
	pthread_mutex_unlock(&ws->lock);
	return taken;
}

int workers_start(struct workers **out, unsigned int threads, unsigned int waiting_most,
		  struct reason *reason)
{
	struct workers *ws = mem_zalloc(1, sizeof(*ws));
	sigset_t all, before;
	int rc = 0;

	ws->waiting_most = waiting_most;
	ws->threads = mem_zalloc(threads, sizeof(*ws->threads));
	ws->last = &ws->first;
	pthread_mutex_init(&ws->lock, NULL);
	pthread_cond_init(&ws->news, NULL);
	/* Signals are for the loop thread. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (!rc && ws->thread_count < threads) {
		rc = -pthread_create(&ws->threads[ws->thread_count], NULL, work, ws);
		if (!rc)
			ws->thread_count++;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc) {
		reason_set(reason, "no thread for long requests: %s", strerror(-rc));
		workers_stop(ws);
		workers_free(ws);
		return rc;
	}
	*out = ws;
	return 0;
}

void workers_stop(struct workers *ws)
{
	struct work *w;

	if (!ws)
		return;
	pthread_mutex_lock(&ws->lock);
	ws->stop = true;
	pthread_cond_broadcast(&ws->news);
	pthread_mutex_unlock(&ws->lock);
	for (unsigned int i = 0; i < ws->thread_count; i++)
		pthread_join(ws->threads[i], NULL);
	while ((w = ws->first) != NULL) {
		ws->first = w->next;
		w->run(w, true);
	}
}

void workers_free(struct workers *ws)
{
	if (!ws)
		return;
	pthread_cond_destroy(&ws->news);
	pthread_mutex_destroy(&ws->lock);
	free(ws->threads);
	free(ws);
}
