/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A feed: one kind's way from the API to the loop thread. Its parts: transfer (requests of the
 * reflector), JSON (documents), outbox (batches for the loop).
 */
#pragma once

#include <cjson/cJSON.h>
#include <curl/curl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "aggregator/edge/kube/kube.h"
#include "aggregator/edge/kube/reflector.h"
#include "aggregator/edge/kube/retry.h"
#include "aggregator/edge/kube/session.h"
#include "aggregator/edge/kube/splitter.h"
#include "shared/buf.h"

/* --- JSON: documents in reused memory --------------------------------------------------------- */

struct kube_json_block;

struct kube_json {
	struct kube_json_block *blocks; /* owned; the newest first */
};

/* Replaces cJSON's allocator of this process; outside of documents it behaves as before. */
void kube_json_init(struct kube_json *j);
void kube_json_fini(struct kube_json *j);
/*
 * NULL: no JSON. Until kube_json_end(), everything that cJSON allocates on this thread is part of
 * the document.
 */
cJSON *kube_json_begin(struct kube_json *j, const char *text, size_t len);
/* Frees the document; cJSON_Delete() is not needed. */
void kube_json_end(struct kube_json *j);

/* --- transfer: one request at a time, on a connection of its own ------------------------------ */

/* Callbacks. Only on_end may start the next request. */
struct transfer_hooks {
	void (*on_open)(void *ctx); /* the answer is 200 */
	/* Bytes of the answer. False: no more; on_end is next. */
	bool (*on_data)(void *ctx, const char *data, size_t len);
	/* fault NULL: the answer is complete, or on_data returned false. */
	void (*on_end)(void *ctx, const struct kube_status *fault);
};

struct transfer_request {
	const char *path;
	bool gzip; /* accepts compression */
	long total_ms; /* bound on the whole answer; 0: none */
	long silence_s; /* bound on silence; 0: none */
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
/* Cuts a running request without a callback. */
void transfer_fini(struct transfer *t);
/* Without a credential it calls on_end itself. */
void transfer_start(struct transfer *t, const struct transfer_request *request, int64_t now_ns);
/* After the multi handle has finished it. */
void transfer_finish(struct transfer *t, CURLcode code);
/* The transfer of a handle. */
struct transfer *transfer_of(CURL *handle);

/* --- outbox: batches in a bounded queue ------------------------------------------------------- */

struct kube_outbox {
	/* fixed after init */
	void (*ready)(void *ctx);
	void *ctx;

	/* kube thread */
	struct kube_batch *open; /* being filled; NULL: none */

	pthread_mutex_t lock;
	pthread_cond_t room;
	/* under lock */
	struct kube_batch *queue; /* oldest first */
	size_t count, bytes; /* queued */
	atomic_bool closed; /* any thread reads it */
};

void kube_outbox_init(struct kube_outbox *o, void (*ready)(void *ctx), void *ctx);
/* After all other threads. Frees what is left. */
void kube_outbox_fini(struct kube_outbox *o);

/*
 * Kube thread. The next change, zeroed except for type and kind, to be filled in before the next
 * call here. json_len: length of its JSON. Waits while the queue is full and a batch is ready for
 * it.
 */
struct kube_change *kube_outbox_add(struct kube_outbox *o, enum kube_change_type type,
				    enum object_kind kind, size_t json_len);
/* Kube thread. Hands over the open batch. */
void kube_outbox_flush(struct kube_outbox *o);
/* Loop thread. The oldest batch, or NULL. */
struct kube_batch *kube_outbox_take(struct kube_outbox *o);
/* Any thread. Ends the wait; nothing is queued any more. */
void kube_outbox_close(struct kube_outbox *o);

/* --- feed ------------------------------------------------------------------------------------- */

struct feed {
	/* fixed after init */
	struct kube_json *json; /* borrowed, as are all here */
	struct kube_outbox *outbox;

	struct reflector reflector;
	struct transfer transfer;
	struct splitter splitter; /* of the running answer */
	bool faulted; /* inside an answer of status 200: */
	struct kube_status fault;
	bool unreported; /* counters or ages of the source changed */
	bool skip_logged;
	int64_t reported_ns; /* monotonic: when the source was reported */
};

void feed_init(struct feed *f, enum object_kind kind, const struct kube_timing *timing,
	       double (*random)(void), struct kube_session *session, CURLM *multi,
	       struct kube_json *json, struct kube_outbox *outbox);
void feed_fini(struct feed *f);
/*
 * The result of discovery: SERVED with its apiVersion, UNSERVED, or UNDISCOVERED with the status.
 */
void feed_discovered(struct feed *f, enum reflector_event_type type, const char *api_version,
		     const struct kube_status *status);
/* Does what is due. Monotonic time of the next step, INT64_MAX: none. */
int64_t feed_wake(struct feed *f, int64_t now_ns);
/* It waits for discovery. */
bool feed_is_unknown(const struct feed *f);
