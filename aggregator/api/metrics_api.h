/* SPDX-License-Identifier: Apache-2.0 */
/* The resources of metrics.k8s.io, in v1 and v1beta1 alike: use of nodes and pods, for kubectl top and autoscalers. */
#pragma once

#include <stdbool.h>

#include "aggregator/api/api.h"

/* GET nodes, nodes/NAME; pods, namespaces/NAMESPACE/pods, namespaces/NAMESPACE/pods/NAME */
api_handler api_node_metrics;
api_handler api_pod_metrics;

enum { METRICS_QUANTITY_LEN = 32 };

/* As apimachinery writes them: "1250u", "250m", "2"; "12Ki", "4Gi", "1000". */
void metrics_cpu_quantity(int64_t micro_cores, char out[METRICS_QUANTITY_LEN]);
void metrics_bytes_quantity(int64_t bytes, char out[METRICS_QUANTITY_LEN]);

/*
 * Whether a field selector ("metadata.name=a,metadata.namespace!=b") selects the object; a list
 * without a namespace has none of that field. *bad becomes true for a selector of another form.
 */
bool metrics_fields_match(const char *selector, const char *name, const char *namespace, bool *bad);
