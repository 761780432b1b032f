/* SPDX-License-Identifier: Apache-2.0 */
/* What upstream's TargetLoadPacking expects a pod to use; also for pods that were just placed. */
#ifndef EVENKEEL_AGGREGATOR_POLICY_TARGET_LOAD_PACKING_H
#define EVENKEEL_AGGREGATOR_POLICY_TARGET_LOAD_PACKING_H

#include "aggregator/policy/score.h"

/*
 * As upstream does, in millicores, overhead included: per container its limit, else its request
 * times the multiplier, else the default; init containers count nothing.
 */
int64_t target_load_packing_predict(const struct pod_spec *pod, const struct score_args *args);

#endif
