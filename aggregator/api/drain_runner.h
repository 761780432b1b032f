/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the planner's core calls for drains: the settings, and what is remembered from step to step.
 */
#ifndef EVENKEEL_AGGREGATOR_API_DRAIN_RUNNER_H
#define EVENKEEL_AGGREGATOR_API_DRAIN_RUNNER_H

#include <stdbool.h>

#include "aggregator/api/drain_log.h"
#include "aggregator/api/drain_settings.h"
#include "aggregator/api/plan_core.h"
#include "aggregator/state/counters.h"

/*
 * Fills *out; its state is the core's to free. setup is borrowed for that long. counters and
 * decisions (where what was decided goes) may be NULL. timed: a step simulates no longer than
 * rules.simulation_ns of this machine's time; else it comes to its end, and so the same input gives
 * the same plan.
 */
void drain_runner_open(struct plan_drain *out, const struct drain_setup *setup, bool timed,
		       struct drain_counters *counters, struct drain_log *decisions);

#endif
