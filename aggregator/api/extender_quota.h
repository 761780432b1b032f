/* SPDX-License-Identifier: Apache-2.0 */
/* The gate of quotas in filter. */
#ifndef EVENKEEL_AGGREGATOR_API_EXTENDER_QUOTA_H
#define EVENKEEL_AGGREGATOR_API_EXTENDER_QUOTA_H

#include "aggregator/api/extender_gate.h"

extender_gate extender_quota_gate;

#endif
