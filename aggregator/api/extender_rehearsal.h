/* SPDX-License-Identifier: Apache-2.0 */
/* What filter and preempt would answer now about a pod that they had nothing for. */
#ifndef EVENKEEL_AGGREGATOR_API_EXTENDER_REHEARSAL_H
#define EVENKEEL_AGGREGATOR_API_EXTENDER_REHEARSAL_H

#include "aggregator/api/extender_call.h"

/* Whether filter would let it pass on one of these nodes; nothing is reserved or counted. */
bool extender_filter_rehearse(const struct api_context *ctx, struct kube_pod *pod,
			      const struct extender_nodes *nodes);
/* Whether preempt would find victims on one of these nodes; nobody is told of them. */
bool extender_preempt_rehearse(const struct api_context *ctx, struct kube_pod *pod,
			       const struct extender_nodes *nodes);
/*
 * Who could give way to a pending pod whose quota is within its min, or that it waits for pods
 * without a quota, in a sentence. False: there is nothing to say. Costs a search for victims.
 */
bool quota_reclaim_tell(const struct api_context *ctx, const struct kube_pod *pod, struct buf *out);

#endif
