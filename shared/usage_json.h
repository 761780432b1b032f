/* SPDX-License-Identifier: Apache-2.0 */
/* JSON of kernel limits, common to agent and aggregator. */
#pragma once

#include <stdint.h>

#include "shared/interval.h"
#include "shared/jsonw.h"

/* Decimals: finer than the measurement. */
enum { CPU_DECIMALS = 3, BYTES_DECIMALS = 0, SHARE_DECIMALS = 6, SECONDS_DECIMALS = 6 };

/* null: no limit; absent: unknown. */
void usage_json_write_limit(struct jsonw *w, const char *key, int64_t limit);
/*
 * "kernelLimits":{"cpuMillicores","memoryBytes","memoryHighBytes","swapBytes","pids","cpuBurstMicroseconds"};
 * null is no limit; a burst is a time per period, 0 for none. Nothing where none is known.
 */
void usage_json_write_limits(struct jsonw *w, const struct kernel_limits *limits);
