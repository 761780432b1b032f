/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One kind's way from the API to the loop thread, and its parts: what its reflector orders is
 * requested (transfer), what comes is read (JSON) and handed over (outbox).
 */
#ifndef EVENKEEL_AGGREGATOR_EDGE_KUBE_KUBE_FEED_H
#define EVENKEEL_AGGREGATOR_EDGE_KUBE_KUBE_FEED_H

#include <cjson/cJSON.h>
#include <curl/curl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "aggregator/edge/kube/kube.h"
#include "aggregator/edge/kube/reflector.h"
#include "aggregator/edge/kube/retry.h"
#include "aggregator/edge/kube/session.h"
#include "aggregator/edge/kube/splitter.h"
#include "shared/buf.h"

/* --- JSON: one document after the other, each into the memory of the one before --------------- */

struct kube_json_block;

struct kube_json {
	struct kube_json_block *blocks; /* owned; the newest first */
};

/*
 * Once before any document; it changes where cJSON gets memory in this process, for all but
 * documents not at all.
 */
void kube_json_setup(void);
void kube_json_init(struct kube_json *j);
void kube_json_fini(struct kube_json *j);
/*
 * NULL: it is no JSON. Until kube_json_end(), all that cJSON makes on this thread is part of the
 * document.
 */
cJSON *kube_json_begin(struct kube_json *j, const char *text, size_t len);
/* The document is gone; there is nothing to delete. */
void kube_json_end(struct kube_json *j);

/* --- transfer: one request at a time, on a connection of its own ------------------------------ */

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
	struct kube_batch *first, **last;
	size_t count, bytes; /* of what is queued */
	bool closed;
};

void kube_outbox_init(struct kube_outbox *o, void (*ready)(void *ctx), void *ctx);
/* Once no other thread uses it. Frees what nobody took. */
void kube_outbox_fini(struct kube_outbox *o);

/*
 * Kube thread. The next change, zeroed but for type and kind, to be filled in before the next call
 * here. json_len: of what the change was read from. Waits while the queue is full and a batch is
 * ready for it.
 */
struct kube_change *kube_outbox_add(struct kube_outbox *o, enum kube_change_type type,
				    enum object_kind kind, size_t json_len);
/* Kube thread. Hands over what there is. */
void kube_outbox_flush(struct kube_outbox *o);
/* Loop thread. The oldest batch, or NULL. */
struct kube_batch *kube_outbox_take(struct kube_outbox *o);
/* Any thread. From now on nothing waits, and nothing is queued. */
void kube_outbox_close(struct kube_outbox *o);
bool kube_outbox_is_closed(struct kube_outbox *o);

/* --- feed ------------------------------------------------------------------------------------- */

struct feed {
	/* fixed after init */
	struct kube_json *json; /* borrowed, as are all here */
	struct kube_outbox *outbox;

	struct reflector reflector;
	struct transfer transfer;
	struct splitter splitter; /* of the answer under way */
	bool faulted; /* inside of an answer of status 200: */
	struct kube_status fault;
	bool untold; /* the source's counters or ages changed */
	bool skip_logged;
	int64_t told_ns; /* monotonic: when the source was told */
};

void feed_init(struct feed *f, enum object_kind kind, const struct kube_timing *timing,
	       double (*random)(void *ctx), void *random_ctx, struct kube_session *session,
	       CURLM *multi, struct kube_json *json, struct kube_outbox *outbox);
void feed_fini(struct feed *f);
/* What discovery found: SERVED with its apiVersion, UNSERVED, or UNDISCOVERED with the status. */
void feed_discovered(struct feed *f, enum reflector_event_type type, const char *api_version,
		     const struct kube_status *status);
/* Does what is due. Monotonic time of what is due next, INT64_MAX: nothing. */
int64_t feed_wake(struct feed *f, int64_t now_ns);
/* It waits for discovery. */
bool feed_is_unknown(const struct feed *f);

#endif
