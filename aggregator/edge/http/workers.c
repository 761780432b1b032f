/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One queue under one lock. The first waiting work of a client gets the next round, and each
 * further one the round after: a client with one request comes before the second request of every
 * other. A full queue refuses the work of the latest round, which may be the new one.
 *
 * At a stop each thread completes its work, and the stopping thread refuses what waits.
 */
#include "aggregator/edge/http/workers.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "shared/mem.h"
#include "shared/thread.h"

struct workers {
	/* fixed after start */
	struct workers_options options;
	unsigned int thread_count;
	pthread_t *threads; /* owned */

	pthread_mutex_t lock;
	pthread_cond_t not_empty;
	/* under lock */
	struct work *first; /* by round */
	uint64_t round; /* of what was taken last */
	unsigned int waiting;
	bool stop;
};

/* Waits for the next work; NULL: stop. */
static struct work *take(struct workers *ws)
{
	struct work *w = NULL;

	pthread_mutex_lock(&ws->lock);
	while (!ws->first && !ws->stop)
		pthread_cond_wait(&ws->not_empty, &ws->lock);
	if (!ws->stop) {
		w = ws->first;
		ws->first = w->next;
		ws->round = w->round;
		ws->waiting--;
	}
	pthread_mutex_unlock(&ws->lock);
	return w;
}

static void *work(void *arg)
{
	const struct workers *ws = arg;
	struct work *w;

	/* Of this thread alone. A failure costs only the priority. */
	(void)setpriority(PRIO_PROCESS, 0, ws->options.nice);
	while ((w = take(arg)) != NULL)
		w->run(w, false);
	return NULL;
}

/* Under lock. Removes and returns the last work if it is behind *at, else NULL. */
static struct work *take_last(struct work **at)
{
	struct work *last;

	while (*at && (*at)->next)
		at = &(*at)->next;
	last = *at;
	*at = NULL;
	return last;
}

/* Under lock. The work to refuse instead, or NULL. */
static struct work *insert(struct workers *ws, struct work *w)
{
	struct work **at = &ws->first, *refused = NULL;

	w->round = ws->round + 1;
	for (const struct work *other = ws->first; other; other = other->next)
		if (other->client == w->client)
			w->round = other->round + 1;
	while (*at && (*at)->round <= w->round)
		at = &(*at)->next;
	if (ws->waiting < ws->options.waiting_most)
		ws->waiting++;
	else if (!(refused = take_last(at)))
		return w;
	w->next = *at;
	*at = w;
	pthread_cond_signal(&ws->not_empty);
	return refused;
}

void workers_give(struct workers *ws, struct work *w)
{
	struct work *refused;

	pthread_mutex_lock(&ws->lock);
	refused = ws->stop ? w : insert(ws, w);
	pthread_mutex_unlock(&ws->lock);
	if (refused)
		refused->run(refused, true);
}

int workers_start(struct workers **out, const struct workers_options *o, struct error *error)
{
	struct workers *ws = mem_zalloc(1, sizeof(*ws));
	int rc = 0;

	ws->options = *o;
	ws->threads = mem_zalloc(o->threads, sizeof(*ws->threads));
	pthread_mutex_init(&ws->lock, NULL);
	pthread_cond_init(&ws->not_empty, NULL);
	while (!rc && ws->thread_count < o->threads) {
		rc = thread_start(&ws->threads[ws->thread_count], 0, work, ws);
		if (!rc)
			ws->thread_count++;
	}
	if (rc) {
		error_set(error, "no thread for requests: %s", strerror(-rc));
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
	pthread_cond_broadcast(&ws->not_empty);
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
	pthread_cond_destroy(&ws->not_empty);
	pthread_mutex_destroy(&ws->lock);
	free(ws->threads);
	free(ws);
}
