/* SPDX-License-Identifier: Apache-2.0 */
/* Runs discovery while some kind needs it, and tells those feeds what came out. Kube thread. */
#ifndef EVENKEEL_AGGREGATOR_EDGE_KUBE_KUBE_DISCOVERER_H
#define EVENKEEL_AGGREGATOR_EDGE_KUBE_KUBE_DISCOVERER_H

#include "aggregator/edge/kube/discovery.h"
#include "aggregator/edge/kube/kube_feed.h"

struct discoverer {
	/* fixed after init */
	struct feed *feeds; /* borrowed; OBJECT_KINDS of them */
	const struct kube_timing *timing; /* borrowed */
	double (*random)(void *ctx);
	void *random_ctx;

	struct discovery discovery;
	struct transfer transfer;
	struct buf body;
	bool running;
	bool renewed; /* the credentials, and nothing worked since */
	struct backoff backoff;
	int64_t next_ns; /* monotonic; not before */
};

void discoverer_init(struct discoverer *d, struct feed *feeds, const struct kube_timing *timing,
		     double (*random)(void *ctx), void *random_ctx, struct kube_session *session,
		     CURLM *multi);
void discoverer_fini(struct discoverer *d);
/*
 * Begins a run if one is due. Monotonic time of the next, INT64_MAX: none is needed, or one is
 * under way.
 */
int64_t discoverer_wake(struct discoverer *d, int64_t now_ns);

#endif
