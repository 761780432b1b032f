/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread blocks in one request, at most ten seconds, or in kube_writer_wait(); a stop ends
 * both. One handle makes all requests and keeps its connection.
 */
#include "aggregator/edge/kube/kube_writer.h"

#include "shared/clock.h"
#include "shared/log.h"

#define TIMEOUT_MS 10000L

enum { ANSWER_MAX = 16 << 10 };

bool kube_writer_stops(const struct kube_writer *w)
{
	return atomic_load(&w->thread.stopping);
}

bool kube_writer_wait(struct kube_writer *w, int64_t ns)
{
	return helper_wait(&w->thread, clock_mono_ns() + ns);
}

/* --- requests --------------------------------------------------------------------------------- */

long kube_writer_send(struct kube_writer *w, enum kube_method method, const char *path,
		      const struct buf *body)
{
	struct error why = {""};
	long status = kube_call_send(&w->call, method, path, body, &why);

	if (!status && !atomic_load(&w->thread.stopping))
		log_warn("%s: %s", w->what, why.text);
	return status;
}

const char *kube_writer_answer(const struct kube_writer *w)
{
	return w->call.answer.data ? w->call.answer.data : "";
}

/* --- life ------------------------------------------------------------------------------------- */

int kube_writer_start(struct kube_writer *w, const struct kube_config *config, const char *what,
		      void *(*run)(void *arg), void *arg, struct error *error)
{
	int rc;

	*w = (struct kube_writer){
		.what = what, .call = {.answer_max = ANSWER_MAX, .stopping = &w->thread.stopping}};
	rc = kube_call_open(&w->call, config, TIMEOUT_MS, error);
	if (rc)
		return rc;
	rc = helper_start(&w->thread, "requests", run, arg, error);
	return rc ? error_at(error, rc, "%s", what) : 0;
}

void kube_writer_stop(struct kube_writer *w)
{
	helper_stop(&w->thread);
	kube_call_close(&w->call);
}
