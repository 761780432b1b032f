/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One kind's way from the API to the outbox: what its reflector orders is requested, and what comes
 * is read. Kube thread.
 */
#ifndef EVENKEEL_AGGREGATOR_EDGE_KUBE_KUBE_FEED_H
#define EVENKEEL_AGGREGATOR_EDGE_KUBE_KUBE_FEED_H

#include "aggregator/edge/kube/kube_json.h"
#include "aggregator/edge/kube/kube_outbox.h"
#include "aggregator/edge/kube/kube_transfer.h"
#include "aggregator/edge/kube/reflector.h"
#include "aggregator/edge/kube/splitter.h"

struct feed {
	/* fixed after init */
	struct kube_json *json; /* borrowed, as are all here */
	struct kube_outbox *outbox;
	struct kube_stats *stats;

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
	       CURLM *multi, struct kube_json *json, struct kube_outbox *outbox,
	       struct kube_stats *stats);
void feed_fini(struct feed *f);
/* What discovery found: SERVED with its apiVersion, UNSERVED, or UNDISCOVERED with the status. */
void feed_discovered(struct feed *f, enum reflector_event_type type, const char *api_version,
		     const struct kube_status *status);
/* Does what is due. Monotonic time of what is due next, INT64_MAX: nothing. */
int64_t feed_wake(struct feed *f, int64_t now_ns);
/* It waits for discovery. */
bool feed_is_unknown(const struct feed *f);

#endif
