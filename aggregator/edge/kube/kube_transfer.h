/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request at a time on a connection of its own: from a path to bytes that count, or why there
 * are none. Kube thread.
 */
#ifndef EVENKEEL_AGGREGATOR_EDGE_KUBE_KUBE_TRANSFER_H
#define EVENKEEL_AGGREGATOR_EDGE_KUBE_KUBE_TRANSFER_H

#include <curl/curl.h>
#include <stdbool.h>

#include "aggregator/edge/kube/reflector_status.h"
#include "aggregator/edge/kube/session.h"
#include "shared/buf.h"

/* Who is told. Only on_end may start the next request. */
struct transfer_hooks {
	void (*on_open)(void *ctx); /* the answer is 200 */
	/* Bytes of it. False: no more of them, and on_end is next. */
	bool (*on_data)(void *ctx, const char *data, size_t len);
	/* NULL: the answer is complete, or on_data did not want more. */
	void (*on_end)(void *ctx, const struct kube_status *fault);
};

struct transfer_request {
	const char *path;
	bool gzip; /* may be compressed */
	long total_ms; /* the whole answer takes so long at most; 0: as long as bytes come */
	long silence_s; /* with no bytes for so long it is given up; 0: as long as it takes */
};

struct transfer {
	/* fixed after init */
	struct kube_session *session; /* borrowed, as is multi */
	CURLM *multi;
	const struct transfer_hooks *hooks;
	void *ctx;
	CURL *handle;

	bool active, opened, enough;
	struct buf refusal; /* the body of an answer other than 200 */
	char detail[CURL_ERROR_SIZE];
};

void transfer_init(struct transfer *t, struct kube_session *session, CURLM *multi,
		   const struct transfer_hooks *hooks, void *ctx);
/* Cuts what is under way; nobody is told. */
void transfer_fini(struct transfer *t);
/* Without a credential on_end is called from here. */
void transfer_start(struct transfer *t, const struct transfer_request *request, int64_t now_ns);
/* The multi handle is done with it. */
void transfer_finish(struct transfer *t, CURLcode code);
/* Whose handle it is. */
struct transfer *transfer_of(CURL *handle);

#endif
