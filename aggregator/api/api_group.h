/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API groups that the Kubernetes API server asks for behind its own address (its aggregation
 * layer): evenkeel.io, whose resources are routes of /v1, and metrics.k8s.io.
 */
#pragma once

#include <stdbool.h>

#include "aggregator/api/access_review.h"
#include "aggregator/api/route.h"

#define API_GROUP	  "evenkeel.io"
#define API_GROUP_VERSION "v1"
#define API_METRICS_GROUP "metrics.k8s.io"

enum { API_LOCAL_LEN = 512 };

/* Discovery and metrics.k8s.io; evenkeel.io has the routes with a resource. */
extern const struct route api_group_routes[]; /* ended by a NULL path */

/*
 * The request as RBAC sees it, by path (plain, borrowed) and method alone. Everything below
 * /apis/GROUP/VERSION/ of these groups is a resource, also where nothing answers.
 */
void api_access_request(const char *method, const char *path, struct access_request *request);
/* The rule of a role that allows the request of a resource: "{apiGroups: [..], ..}". */
void api_access_rule(const struct access_request *request, char rule[ACCESS_RULE_LEN]);

/*
 * The path of /v1 that a resource of evenkeel.io stands for, in `room`; else the path itself.
 * namespace (of ACCESS_RESOURCE_LEN) gets that of the path, or "".
 */
const char *api_group_local_path(const char *path, char room[API_LOCAL_LEN], char *namespace);
/*
 * Where the actuator reports to, behind the API server: PUT /v1/act and POST /v1/drain/history as
 * subresources, so that a role can allow them and nothing else. The names in them are not looked at.
 */
#define API_GROUP_ACT_REPORT  "/apis/" API_GROUP "/" API_GROUP_VERSION "/acts/current/report"
#define API_GROUP_WAVE_REPORT "/apis/" API_GROUP "/" API_GROUP_VERSION "/drains/current/history"
/*
 * The reverse, for clients: "/v1/pods?namespace=a" is /apis/evenkeel.io/v1/namespaces/a/pods with
 * the same query. The caller frees it; NULL: the group has no such resource.
 */
char *api_group_remote_path(const char *local);

/* Makes a failure below /apis/ a Status of the Kubernetes API, which keeps its "error". */
void api_fail_as_status(const char *path, struct api_response *rs);

/*
 * --- metrics_api.c: the resources of metrics.k8s.io, in v1 and v1beta1 alike: use of nodes and pods,
 * for kubectl top and autoscalers
 */

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
