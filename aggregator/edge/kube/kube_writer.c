/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread blocks in one request, at most ten seconds, or in kube_writer_wait(); a stop cuts
 * both. One handle makes all requests and keeps its connection.
 */
#include "aggregator/edge/kube/kube_writer.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "shared/clock.h"
#include "shared/log.h"
#include "shared/mem.h"

#define TIMEOUT_MS 10000L

enum { ANSWER_MAX = 16 << 10 };

bool kube_writer_stops(const struct kube_writer *w)
{
	return atomic_load(&w->stopping);
}

bool kube_writer_wait(struct kube_writer *w, int64_t ns)
{
	struct timespec until;
	int64_t at_ns = clock_mono_ns() + ns;

	until.tv_sec = (time_t)(at_ns / NS_PER_SEC);
	until.tv_nsec = (long)(at_ns % NS_PER_SEC);
	pthread_mutex_lock(&w->lock);
	while (!atomic_load(&w->stopping) &&
	       pthread_cond_timedwait(&w->stop, &w->lock, &until) != ETIMEDOUT)
		;
	pthread_mutex_unlock(&w->lock);
	return !atomic_load(&w->stopping);
}

/* --- requests --------------------------------------------------------------------------------- */

static size_t on_data(char *data, size_t size, size_t count, void *ctx)
{
	struct kube_writer *w = ctx;

	if (w->answer.len < ANSWER_MAX)
		buf_add(&w->answer, data, size * count);
	return size * count;
}

static int on_progress(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	const struct kube_writer *w = ctx;

	(void)a, (void)b, (void)c, (void)d;
	return atomic_load(&w->stopping);
}

typedef void send_as(struct kube_session *s, CURL *handle, const char *body, size_t len);

static long send_body(struct kube_writer *w, send_as *as, const char *path, const struct buf *body)
{
	struct reason why = {""};
	long status = 0;
	CURLcode code;

	buf_clear(&w->answer);
	if (kube_session_prepare(w->session, w->handle, path, clock_mono_ns(), &why)) {
		log_warn("%s: %s", w->what, why.text);
		return 0;
	}
	as(w->session, w->handle, body->data, body->len);
	code = curl_easy_perform(w->handle);
	buf_add_str(&w->answer, "");
	if (code == CURLE_OK) {
		curl_easy_getinfo(w->handle, CURLINFO_RESPONSE_CODE, &status);
	} else if (!atomic_load(&w->stopping)) {
		kube_session_explain(w->session, w->handle, code, NULL, &why);
		log_warn("%s: %s", w->what, why.text);
	}
	if (status == 401)
		kube_session_unauthorized(w->session);
	return status;
}

long kube_writer_apply(struct kube_writer *w, const char *path, const struct buf *body)
{
	return send_body(w, kube_session_apply, path, body);
}

long kube_writer_merge(struct kube_writer *w, const char *path, const struct buf *body)
{
	return send_body(w, kube_session_merge, path, body);
}

long kube_writer_post(struct kube_writer *w, const char *path, const struct buf *body)
{
	return send_body(w, kube_session_post, path, body);
}

const char *kube_writer_answer(const struct kube_writer *w)
{
	return w->answer.data ? w->answer.data : "";
}

/* --- life ------------------------------------------------------------------------------------- */

static void prepare_handle(struct kube_writer *w)
{
	w->handle = curl_easy_init();
	if (!w->handle)
		mem_exhausted();
	curl_easy_setopt(w->handle, CURLOPT_WRITEFUNCTION, on_data);
	curl_easy_setopt(w->handle, CURLOPT_WRITEDATA, w);
	curl_easy_setopt(w->handle, CURLOPT_XFERINFOFUNCTION, on_progress);
	curl_easy_setopt(w->handle, CURLOPT_XFERINFODATA, w);
	curl_easy_setopt(w->handle, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(w->handle, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(w->handle, CURLOPT_TIMEOUT_MS, TIMEOUT_MS);
}

int kube_writer_open(struct kube_writer *w, const struct kube_config *config, const char *what,
		     struct reason *reason)
{
	pthread_condattr_t attributes;
	int rc;

	*w = (struct kube_writer){.what = what};
	rc = kube_session_new(&w->session, config, reason);
	if (rc)
		return rc;
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&w->stop, &attributes);
	pthread_condattr_destroy(&attributes);
	prepare_handle(w);
	return 0;
}

void kube_writer_close(struct kube_writer *w)
{
	curl_easy_cleanup(w->handle);
	kube_session_free(w->session);
	pthread_cond_destroy(&w->stop);
	pthread_mutex_destroy(&w->lock);
	buf_fini(&w->answer);
}

/* Signals are the loop's. */
int kube_writer_start(struct kube_writer *w, void *(*run)(void *arg), void *arg,
		      struct reason *reason)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&w->thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc)
		reason_set(reason, "no thread: %s: %s", w->what, strerror(rc));
	return -rc;
}

void kube_writer_stop(struct kube_writer *w)
{
	pthread_mutex_lock(&w->lock);
	atomic_store(&w->stopping, true);
	pthread_cond_signal(&w->stop);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
}
