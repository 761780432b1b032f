/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread blocks in one request, at most ten seconds, or in kube_writer_wait(); a stop ends
 * both. One handle makes all requests and keeps its connection.
 */
#include "aggregator/edge/kube/kube_writer.h"

#include <string.h>

#include "shared/clock.h"
#include "shared/log.h"
#include "shared/thread.h"

#define TIMEOUT_MS 10000L

enum { ANSWER_MAX = 16 << 10 };

bool kube_writer_stops(const struct kube_writer *w)
{
	return atomic_load(&w->stopping);
}

bool kube_writer_wait(struct kube_writer *w, int64_t ns)
{
	int64_t until_ns = clock_mono_ns() + ns;

	pthread_mutex_lock(&w->lock);
	while (!atomic_load(&w->stopping) && thread_cond_wait(&w->stop, &w->lock, until_ns))
		;
	pthread_mutex_unlock(&w->lock);
	return !atomic_load(&w->stopping);
}

/* --- requests --------------------------------------------------------------------------------- */

long kube_writer_send(struct kube_writer *w, enum kube_method method, const char *path,
		      const struct buf *body)
{
	struct error why = {""};
	long status = kube_call_send(&w->call, method, path, body, &why);

	if (!status && !atomic_load(&w->stopping))
		log_warn("%s: %s", w->what, why.text);
	return status;
}

const char *kube_writer_answer(const struct kube_writer *w)
{
	return w->call.answer.data ? w->call.answer.data : "";
}

/* --- life ------------------------------------------------------------------------------------- */

static void release(struct kube_writer *w)
{
	kube_call_close(&w->call);
	pthread_cond_destroy(&w->stop);
	pthread_mutex_destroy(&w->lock);
}

int kube_writer_start(struct kube_writer *w, const struct kube_config *config, const char *what,
		      void *(*run)(void *arg), void *arg, struct error *error)
{
	int rc;

	*w = (struct kube_writer){.what = what,
				  .call = {.answer_max = ANSWER_MAX, .stopping = &w->stopping}};
	rc = kube_call_open(&w->call, config, TIMEOUT_MS, error);
	if (rc)
		return rc;
	pthread_mutex_init(&w->lock, NULL);
	thread_cond_init(&w->stop);
	rc = thread_start(&w->thread, 0, run, arg);
	if (rc) {
		error_set(error, "no thread: %s: %s", what, strerror(-rc));
		release(w);
	}
	return rc;
}

void kube_writer_stop(struct kube_writer *w)
{
	pthread_mutex_lock(&w->lock);
	atomic_store(&w->stopping, true);
	pthread_cond_signal(&w->stop);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	release(w);
}
