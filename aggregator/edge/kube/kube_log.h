/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the log says of the API: its troubles and their ends, once, however many kinds have them.
 * Kube thread.
 */
#ifndef EVENKEEL_AGGREGATOR_EDGE_KUBE_KUBE_LOG_H
#define EVENKEEL_AGGREGATOR_EDGE_KUBE_KUBE_LOG_H

#include "aggregator/model/model.h"

struct kube_log {
	enum source_state states[OBJECT_KINDS]; /* as they were told */
	bool troubled[OBJECT_KINDS];
	bool any_trouble, complete; /* as they were logged */
};

/* How a kind's source is now; called as often as one likes. */
void kube_log_source(struct kube_log *l, enum object_kind kind, const struct model_source *source);

#endif
