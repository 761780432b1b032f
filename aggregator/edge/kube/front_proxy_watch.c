/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads by name instead of a watch: the ConfigMap changes once in years, and certificates and tokens
 * of files are read every ten seconds as well. If a read fails, the former content stays in force;
 * the log gets a line when the trouble begins.
 */
#include "aggregator/edge/kube/front_proxy_watch.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/edge/kube/kube_writer.h"
#include "shared/clock.h"
#include "shared/document.h"
#include "shared/log.h"
#include "shared/mem.h"

#define PATH	 "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
#define EVERY_NS (10 * NS_PER_SEC)

enum { ANSWER_MAX = 1 << 20 };

struct front_proxy_watch {
	struct kube_writer reader;

	/* fixed after start */
	void (*changed)(void *ctx, struct front_proxy *p);
	void *ctx;

	/* the thread's */
	char *version; /* of the last content; owned; NULL: none */
	bool failing; /* logged */
};

/* Gives a new content on. 0, or -errno with the reason. */
static int take(struct front_proxy_watch *w, struct error *error)
{
	const struct buf *answer = &w->reader.call.answer;
	cJSON *json = cJSON_ParseWithLength(answer->data, answer->len);
	const char *version = document_text(json, "metadata.resourceVersion");
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

static void *run(void *arg)
{
	struct front_proxy_watch *w = arg;
	struct kube_call *call = &w->reader.call;

	call->answer_max = ANSWER_MAX;
	call->hint = "bind the Role extension-apiserver-authentication-reader of kube-system to "
		     "the aggregator's ServiceAccount";
	do {
		struct error error = {""};
		bool failed = kube_call_send(call, KUBE_GET, PATH, NULL, &error) != 200 ||
			      take(w, &error);

		if (failed && !w->failing && !kube_writer_stops(&w->reader))
			log_warn("the front proxy of the API server is not known: %s; what was "
				 "known stays in force",
				 error.text);
		w->failing = failed;
	} while (kube_writer_wait(&w->reader, EVERY_NS));
	return NULL;
}

int front_proxy_watch_start(struct front_proxy_watch **out, const struct kube_config *config,
			    void (*changed)(void *ctx, struct front_proxy *p), void *ctx,
			    struct error *error)
{
	struct front_proxy_watch *w = *out = mem_zalloc(1, sizeof(*w));

	w->changed = changed;
	w->ctx = ctx;
	return kube_writer_start(&w->reader, config, "the front proxy is not followed", run, w,
				 error);
}

void front_proxy_watch_stop(struct front_proxy_watch *w)
{
	if (!w)
		return;
	kube_writer_stop(&w->reader);
	free(w->version);
	free(w);
}
