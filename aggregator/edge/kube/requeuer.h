/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes kube-schedulers requeue pods that the extender's filter refused, once it would accept them.
 * Off by default.
 */
#pragma once

#include "aggregator/api/api.h"
#include "aggregator/edge/kube/config.h"
#include "shared/buf.h"
#include "shared/error.h"

/* The length of the namespace of "NAMESPACE/NAME", a valid PersistentVolumeClaim; 0: it is none. */
size_t requeuer_claim_namespace(const char *claim);

struct requeuer;

/*
 * Starts the thread, which checks the waiting pods (ctx->waiting). claim NULL: nothing is sent.
 * config is copied, the others are borrowed until the stop. 0, or -errno with the reason; *r is to be
 * stopped in any case.
 */
int requeuer_start(struct requeuer **r, const struct kube_config *config, const char *claim,
		   const struct api_context *ctx, struct error *error);
/* Cuts a running request. NULL is allowed. */
void requeuer_stop(struct requeuer *r);

/* The annotation of a claim at that Unix time; exported for tests. */
void requeuer_request(const char *claim, int64_t now_ns, struct buf *path, struct buf *body);
