/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes kube-schedulers ask again about pods that filter refused, once it would not, and tells of
 * such pods by Events. Off unless asked for.
 */
#ifndef EVENKEEL_AGGREGATOR_EDGE_KUBE_REQUEUER_H
#define EVENKEEL_AGGREGATOR_EDGE_KUBE_REQUEUER_H

#include "aggregator/api/api.h"
#include "aggregator/edge/kube/config.h"
#include "shared/buf.h"
#include "shared/reason.h"

struct waiting_event;

/*
 * "NAMESPACE/NAME" of a PersistentVolumeClaim, both as the API allows them; the namespace's length.
 * 0: it is none.
 */
size_t requeuer_claim_namespace(const char *claim);

struct requeuer;

/*
 * Starts the thread, which reviews the pods that wait (ctx->waiting). claim NULL: it nudges nobody,
 * and writes Events alone. config is copied, the others are borrowed until the stop. 0, or -errno
 * with the reason.
 */
int requeuer_start(struct requeuer **r, const struct kube_config *config, const char *claim,
		   const struct api_context *ctx, struct reason *reason);
/* Cuts what is under way. NULL is allowed. */
void requeuer_stop(struct requeuer *r);

/* What is sent, for tests: a claim's annotation, as of that Unix time; and an Event. */
void requeuer_request(const char *claim, int64_t now_ns, struct buf *path, struct buf *body);
void requeuer_event_request(const struct waiting_event *event, int64_t now_ns, struct buf *path,
			    struct buf *body);

#endif
