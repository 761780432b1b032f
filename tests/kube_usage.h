/* SPDX-License-Identifier: Apache-2.0 */
/* Agents that are not there: what they would have measured of a cluster's nodes and pods, told to an aggregator. */
#ifndef EVENKEEL_TESTS_KUBE_USAGE_H
#define EVENKEEL_TESTS_KUBE_USAGE_H

#include "tests/kube_truth.h"

/*
 * For each node of the truth the last 15 seconds, with an entry for each of its pods, sealed and sent as an agent does,
 * until all is acknowledged. Values are those of interval_make(). The test fails where that takes too long.
 */
void kube_usage_send(const struct kube_truth *truth, const char *url, const char *key_path);

#endif
