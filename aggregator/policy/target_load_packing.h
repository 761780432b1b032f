/* SPDX-License-Identifier: Apache-2.0 */
/* What TargetLoadPacking expects a pod to use; also for pods that were just placed. */
#ifndef EVENKEEL_AGGREGATOR_POLICY_TARGET_LOAD_PACKING_H
#define EVENKEEL_AGGREGATOR_POLICY_TARGET_LOAD_PACKING_H

#include "aggregator/policy/score.h"

/*
 * Millicores, overhead included. upstream: per container its limit, else its request times the
 * multiplier, else the default; init containers count nothing. Else: a value stated for the whole
 * pod comes first, sidecars count as containers, a limit only with use_limits, and an explicit 0 is
 * no statement.
 */
int64_t target_load_packing_predict(const struct pod_spec *pod, const struct score_args *args,
				    bool upstream);
/* The same, but where it is known what the pods of its owner use, that. */
int64_t target_load_packing_expect(const struct score_query *q);

#endif
