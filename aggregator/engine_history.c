/* SPDX-License-Identifier: Apache-2.0 */
/*
 *   HTTP thread: read() --request, uv_async--> loop: on_asked() --answered--> HTTP thread
 *
 * A request lies on the stack of the thread that waits for it. The loop answers all that wait under
 * the lock, some microseconds each. A thread that waited for WAIT_NS takes its request back: the
 * loop is stuck, or has ended. Nothing is done and nothing kept while nobody asks.
 */
#include "aggregator/engine_history.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <utlist.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "shared/thread.h"

#define WAIT_NS (2 * NS_PER_SEC)

struct request {
	const char *node;
	const struct pod_stats *pod;
	struct window_buckets *out;
	int rc; /* 1: not answered yet */
	struct request *next;
};

struct history {
	struct bucket_source source; /* first */
	/* fixed after start */
	const struct usage_state *usage; /* loop thread */

	uv_async_t asked; /* any thread */
	pthread_mutex_t lock;
	pthread_cond_t answered;
	/* under lock */
	struct request *requests;
};

static void on_asked(uv_async_t *asked)
{
	struct history *h = asked->data;

	pthread_mutex_lock(&h->lock);
	for (struct request *r = h->requests; r; r = r->next)
		r->rc = usage_read_buckets(h->usage, r->node, r->pod, r->out);
	h->requests = NULL;
	pthread_cond_broadcast(&h->answered);
	pthread_mutex_unlock(&h->lock);
}

static int read_buckets(struct bucket_source *s, const char *node, const struct pod_stats *pod,
			struct window_buckets *out)
{
	struct history *h = (struct history *)s;
	struct request r = {.node = node, .pod = pod, .out = out, .rc = 1};
	int64_t until_ns = clock_mono_ns() + WAIT_NS;

	pthread_mutex_lock(&h->lock);
	LL_PREPEND(h->requests, &r);
	uv_async_send(&h->asked);
	while (r.rc > 0 && thread_cond_wait(&h->answered, &h->lock, until_ns))
		;
	if (r.rc > 0) {
		LL_DELETE(h->requests, &r);
		r.rc = -ETIMEDOUT;
	}
	pthread_mutex_unlock(&h->lock);
	return r.rc;
}

int history_open(struct bucket_source **out, uv_loop_t *loop, const struct usage_state *usage)
{
	struct history *h = mem_zalloc(1, sizeof(*h));

	h->source.read = read_buckets;
	h->usage = usage;
	h->asked.data = h;
	pthread_mutex_init(&h->lock, NULL);
	thread_cond_init(&h->answered);
	*out = &h->source;
	return uv_async_init(loop, &h->asked, on_asked);
}

void history_free(struct bucket_source *source)
{
	struct history *h = (struct history *)source;

	if (!h)
		return;
	pthread_cond_destroy(&h->answered);
	pthread_mutex_destroy(&h->lock);
	free(h);
}
