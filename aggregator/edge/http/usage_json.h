/* SPDX-License-Identifier: Apache-2.0 */
/* The objects that nodes, pods and containers share in JSON: use, windows, contention, limits. */
#ifndef EVENKEEL_AGGREGATOR_EDGE_HTTP_USAGE_JSON_H
#define EVENKEEL_AGGREGATOR_EDGE_HTTP_USAGE_JSON_H

#include <stdint.h>

#include "aggregator/state/page.h"
#include "shared/jsonw.h"

/* Each writes a key and its object; what is unknown is absent, down to the whole object. */

/* "usage":{"cpuMillicores":{"latest":{"value","end"},"windows":{"5m":{..},..}},"memoryBytes":..,"workingSetBytes":..} */
void usage_json_write(struct jsonw *w, const struct page_usage *u);
/* The same of a container: latest values only. */
void usage_json_write_container(struct jsonw *w, const struct page_container *c);
/* "contention":{"cpu","memory","throttledRatio","throttledSeconds","oomKills"} of the newest 5 minutes; here null
 * says not measured. */
void usage_json_write_contention(struct jsonw *w, const struct window_set windows[WINDOWS]);
/* "kernelLimits":{"cpuMillicores","memoryBytes"}; null is no limit. */
void usage_json_write_limits(struct jsonw *w, const struct kernel_limits *limits);
/* key:{"cpuMillicores","memoryBytes"} of a node; 0 is unknown. */
void usage_json_write_resources(struct jsonw *w, const char *key, int64_t cpu_milli,
				int64_t mem_bytes);
/* key: RFC 3339. */
void usage_json_write_time(struct jsonw *w, const char *key, int64_t unix_ns);

#endif
