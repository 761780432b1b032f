/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the API of an aggregator must tell of a cluster, worked out anew from what kubectl prints.
 */
#pragma once

#include <stddef.h>

#include <cjson/cJSON.h>

#include "shared/buf.h"

/*
 * From `kubectl get nodes,pods,replicasets,jobs -A -o json`: arrays of items as /v1/nodes and
 * /v1/pods have them, with those members only that the Kubernetes API determines. Pods that have
 * ended are left out: they hold nothing.
 */
struct kube_truth {
	cJSON *nodes, *pods; /* owned */
	size_t bound; /* pods with a node */
};

void kube_truth_read(struct kube_truth *t, const cJSON *list);
void kube_truth_fini(struct kube_truth *t);

/*
 * How many items are not told, told without being there, or told with a member that differs from
 * the truth; a line for each of the first is added to *why. Members the truth has not are passed
 * over.
 */
size_t kube_truth_compare(const cJSON *truth, const cJSON *items, struct buf *why);
/*
 * The item of that namespace ("" or NULL where there is none) and name in an array; NULL: not
 * there.
 */
const cJSON *kube_truth_find(const cJSON *items, const char *namespace, const char *name);
/*
 * "250m", "1.5Gi", "1e3": the amount, rounded up; of CPU in thousandths. The test fails on what is
 * no quantity.
 */
double kube_truth_amount(const char *resource, const char *quantity);
