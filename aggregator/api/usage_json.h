/* SPDX-License-Identifier: Apache-2.0 */
/* The objects that nodes, pods and containers share in JSON: use, windows, contention, limits. */
#ifndef EVENKEEL_AGGREGATOR_API_USAGE_JSON_H
#define EVENKEEL_AGGREGATOR_API_USAGE_JSON_H

#include <stdint.h>

#include "aggregator/state/page.h"
#include "shared/jsonw.h"

/* Each writes a key and its object; what is unknown is absent, down to the whole object. */

/*
 * "usage":{"cpuMillicores":{"latest":{"value","end"},"windows":{"5m":{..},..}},"memoryBytes":..,"workingSetBytes":..,
 * "swapBytes":{"latest":..},"pids":{"latest":..}}; end_ns is that of the page.
 */
void usage_json_write(struct jsonw *w, const struct page_usage *u, int64_t end_ns);
/* The same of a container: latest values only. */
void usage_json_write_latest(struct jsonw *w, const struct page_latest *l, int64_t end_ns);
/*
 * "contention":{"cpu","memory","cpuStalledRatio","memoryStalledRatio","throttledRatio","throttledSeconds","oomKills"}
 * of the newest 5 minutes; here null says not measured. cpu and memory are the shares of the time
 * in which some task waited for neighbours, the stalled ones those in which none could run.
 */
void usage_json_write_contention(struct jsonw *w, const struct window_set windows[WINDOWS]);
/* The first four of a container, in the newest interval. */
void usage_json_write_pressure(struct jsonw *w, const struct page_container *c);
/*
 * "kernelLimits":{"cpuMillicores","memoryBytes","memoryHighBytes","swapBytes","pids","cpuBurstMicroseconds"};
 * null is no limit; a burst is a time per period, 0 for none.
 */
void usage_json_write_limits(struct jsonw *w, const struct kernel_limits *limits);
/* key:{"cpuMillicores","memoryBytes"} of a node; 0 is unknown. */
void usage_json_write_resources(struct jsonw *w, const char *key, int64_t cpu_milli,
				int64_t mem_bytes);
/* key: RFC 3339. */
void usage_json_write_time(struct jsonw *w, const char *key, int64_t unix_ns);

#endif
