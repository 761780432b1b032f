/* SPDX-License-Identifier: Apache-2.0 */
/* What filter and preempt would answer now about a pod that they had nothing for. */
#ifndef EVENKEEL_AGGREGATOR_API_EXTENDER_REHEARSAL_H
#define EVENKEEL_AGGREGATOR_API_EXTENDER_REHEARSAL_H

#include "aggregator/api/extender_call.h"

/* Whether filter would let it pass on one of these nodes; nothing is reserved or counted. */
bool extender_filter_rehearse(const struct api_context *ctx, struct kube_pod *pod,
			      const struct extender_nodes *nodes);
/*
 * Whether preempt would find victims on one of these nodes; nobody is told of them. *retry_ns: the
 * next end of a minimum runtime or a window of evictions, 0: none holds victims back.
 */
bool extender_preempt_rehearse(const struct api_context *ctx, struct kube_pod *pod,
			       const struct extender_nodes *nodes, int64_t *retry_ns);
/*
 * The first pod, by priority and name, that the scheduler has no place for although its quota is
 * within its min, and that is not told yet. The text says who could give way, or that the pod waits
 * for pods without a quota; it stays empty where there is nothing to say. NULL: no such pod. The
 * caller drops the pod. Costs a search for victims.
 */
struct kube_pod *quota_reclaim_next(const struct api_context *ctx,
				    bool (*is_told)(const void *who, const struct kube_pod *pod),
				    const void *who, struct buf *text);

#endif
