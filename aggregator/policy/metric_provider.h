/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a Trimaran plugin would get its metrics from. Here they come from the agents, whatever this
 * says: it is read so that a scheduler's own plugin arguments can be asked about as they are. Pure.
 */
#ifndef EVENKEEL_AGGREGATOR_POLICY_METRIC_PROVIDER_H
#define EVENKEEL_AGGREGATOR_POLICY_METRIC_PROVIDER_H

#include <stdbool.h>

/* Whether upstream has a client for it. */
bool metric_provider_is_known(const char *type);

#endif
