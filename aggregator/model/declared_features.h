/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Features of the kubelet that a pod can need and a node declares (status.declaredFeatures): the
 * rules of the kube-scheduler's filter NodeDeclaredFeatures. Pure.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

/* A set of the features that some pod can need, a bit each. */
typedef uint8_t declared_features;

/* Of a node's list of names. Names of other features are left out: no pod needs them. */
declared_features declared_features_of_node(const cJSON *list);
declared_features declared_features_of_pod(const cJSON *spec);
/* The first in a set that is not empty: "RestartAllContainersOnContainerExits". */
const char *declared_features_name(declared_features set);

/* Whether a restart rule or a mount of a container needs a feature. */
bool declared_features_restart_rule(const cJSON *rule);
bool declared_features_mount(const cJSON *mount);
