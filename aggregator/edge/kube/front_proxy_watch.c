/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads by name instead of a watch: the ConfigMap changes once in years, and certificates and tokens
 * of files are read every ten seconds as well. If a read fails, the former content stays in force;
 * the log gets a line when the trouble begins.
 */
#include "aggregator/edge/kube/front_proxy_watch.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/edge/kube/session.h"
#include "shared/clock.h"
#include "shared/log.h"
#include "shared/mem.h"
#include "shared/thread.h"

#define PATH	   "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
#define EVERY_NS   (10 * NS_PER_SEC)
#define TIMEOUT_MS 5000L

enum { ANSWER_MAX = 1 << 20 };

struct front_proxy_watch {
	/* fixed after start */
	void (*changed)(void *ctx, struct front_proxy *p);
	void *ctx;
	pthread_t thread;
	atomic_bool stopping;

	/* the thread's */
	struct kube_call call;
	char *version; /* of the last content; owned; NULL: none */
	bool failing; /* logged */

	pthread_mutex_t lock;
	pthread_cond_t stopped;
};

/* Gives a new content on. 0, or -errno with the reason. */
static int take(struct front_proxy_watch *w, struct error *error)
{
	const struct buf *answer = &w->call.answer;
	cJSON *json = cJSON_ParseWithLength(answer->data, answer->len);
	const char *version = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(
		cJSON_GetObjectItemCaseSensitive(json, "metadata"), "resourceVersion"));
	struct front_proxy *p;
	int rc = 0;

	if (!version || !w->version || strcmp(version, w->version) != 0) {
		rc = front_proxy_read(&p, answer->data, answer->len, error);
		if (!rc)
			w->changed(w->ctx, p);
		free(w->version);
		w->version = !rc && version ? mem_strdup(version) : NULL;
	}
	cJSON_Delete(json);
	return rc;
}

static void look(struct front_proxy_watch *w)
{
	struct error error = {""};
	long status = kube_call_send(&w->call, KUBE_GET, PATH, NULL, &error);
	int rc = -EIO;

	if (status == 401)
		kube_session_unauthorized(w->call.session);
	if (status == 200)
		rc = take(w, &error);
	else if (status)
		error_set(&error, "%s answers %ld to " PATH "%s",
			  kube_session_server(w->call.session), status,
			  status == 403
				  ? "; bind the Role extension-apiserver-authentication-reader "
				    "of kube-system to the aggregator's ServiceAccount"
				  : "");
	if (rc && !w->failing && !atomic_load(&w->stopping))
		log_warn("the front proxy of the API server is not known: %s; what was known stays "
			 "in force",
			 error.text);
	w->failing = rc;
}

static void *run(void *arg)
{
	struct front_proxy_watch *w = arg;

	while (!atomic_load(&w->stopping)) {
		int64_t until_ns;

		look(w);
		until_ns = clock_mono_ns() + EVERY_NS;
		pthread_mutex_lock(&w->lock);
		while (!atomic_load(&w->stopping) &&
		       thread_cond_wait(&w->stopped, &w->lock, until_ns))
			;
		pthread_mutex_unlock(&w->lock);
	}
	return NULL;
}

static void destroy(struct front_proxy_watch *w)
{
	kube_call_close(&w->call);
	pthread_cond_destroy(&w->stopped);
	pthread_mutex_destroy(&w->lock);
	free(w->version);
	free(w);
}

int front_proxy_watch_start(struct front_proxy_watch **out, const struct kube_config *config,
			    void (*changed)(void *ctx, struct front_proxy *p), void *ctx,
			    struct error *error)
{
	struct front_proxy_watch *w = mem_zalloc(1, sizeof(*w));
	int rc;

	w->changed = changed;
	w->ctx = ctx;
	w->call.answer_max = ANSWER_MAX;
	w->call.stopping = &w->stopping;
	pthread_mutex_init(&w->lock, NULL);
	thread_cond_init(&w->stopped);
	rc = kube_call_open(&w->call, config, TIMEOUT_MS, error);
	if (!rc) {
		rc = thread_start(&w->thread, 0, run, w);
		if (rc)
			error_set(error, "no thread to follow the front proxy: %s", strerror(-rc));
	}
	if (rc)
		destroy(w);
	else
		*out = w;
	return rc;
}

void front_proxy_watch_stop(struct front_proxy_watch *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	atomic_store(&w->stopping, true);
	pthread_cond_signal(&w->stopped);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	destroy(w);
}
